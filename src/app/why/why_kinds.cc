#include "app/why/why_kinds.h"

namespace berth::app {

std::vector<kube::Resource> kinds_asked(std::uint16_t by) {
  std::vector<kube::Resource> out;
  for (const kinds::KindRow& row : kinds::kind_table()) {
    const bool decided = row.is_asked(kinds::asked::kDecided);
    if (!row.is_asked(by) || (decided && by != kinds::asked::kDecided)) continue;
    const std::size_t each = row.is_asked(kinds::asked::kEachVersion) ? row.read().size() : 1;
    for (std::size_t version = 0; version < each; ++version) {
      out.push_back(kube::resource_of(row, version));
    }
  }
  return out;
}

}  // namespace berth::app
