#include "embedded/workloads/index_set.h"

#include <algorithm>

#include "kinds/readers.h"

namespace berth::sim {

IndexSet IndexSet::parse(std::string_view text, int limit) {
  IndexSet out;
  for (const std::string_view part : kinds::split(text, ",")) {
    const std::size_t dash = part.find('-');
    std::int64_t first = 0, last = 0;
    if (!kinds::parse_int(part.substr(0, dash), first)) continue;
    last = first;
    if (dash != std::string_view::npos && !kinds::parse_int(part.substr(dash + 1), last)) {
      continue;
    }
    last = std::min<std::int64_t>(last, limit - 1);
    if (first <= last) out.add(static_cast<int>(first), static_cast<int>(last));
  }
  return out;
}

bool IndexSet::has(int index) const {
  const auto it = std::upper_bound(intervals_.begin(), intervals_.end(), index,
                                   [](int i, const auto& range) { return i < range.first; });
  return it != intervals_.begin() && std::prev(it)->second >= index;
}

void IndexSet::add(int index) { add(index, index); }

void IndexSet::add(int first, int last) {
  if (first > last) return;
  // The first interval that ends at or beyond the one before `first`: it may touch.
  auto it = std::lower_bound(intervals_.begin(), intervals_.end(), first - 1,
                             [](const auto& range, int i) { return range.second < i; });
  auto end = it;
  while (end != intervals_.end() && end->first <= last + 1) {
    first = std::min(first, end->first);
    last = std::max(last, end->second);
    size_ -= end->second - end->first + 1;
    ++end;
  }
  it = intervals_.erase(it, end);
  intervals_.insert(it, {first, last});
  size_ += last - first + 1;
}

std::string IndexSet::to_string() const {
  std::string out;
  for (const auto& [first, last] : intervals_) {
    if (!out.empty()) out += ',';
    out += std::to_string(first);
    if (last > first) out += (last == first + 1 ? ',' : '-') + std::to_string(last);
  }
  return out;
}

}  // namespace berth::sim
