#include "kinds/kueue_pack.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/path.h"

namespace berth::kinds {

namespace {

using text::JsonWriter;
using text::Member;
using text::Value;

constexpr std::int64_t kMostPackedDomains = 100'000;

// The list, if it is one of strings.
const Value* strings_in(const Value* list) {
  if (list == nullptr || !list->is_array()) return nullptr;
  const auto items = list->items();
  return std::all_of(items.begin(), items.end(), [](const Value& v) { return v.is_string(); })
             ? list
             : nullptr;
}

// Its levels, where it has what is to be replaced and nothing yet in its place.
std::size_t levels_of(const Value& assignment, std::string_view from, std::string_view to) {
  const Value* levels = strings_in(assignment.find("levels"));
  const Value* list = assignment.find(from);
  if (levels == nullptr || list == nullptr || !list->is_array() || assignment.find(to) != nullptr) {
    return 0;
  }
  return levels->size();
}

// The assignment with the member `from` written by write() in its place.
template <class Write>
void replaced(const Value& assignment, std::string_view from, JsonWriter& out, const Write& write) {
  out.object([&] {
    for (const Member& member : assignment.members()) {
      if (member.key == from) {
        write(member.value);
      } else {
        out.field(member.key, member.value);
      }
    }
  });
}

// ---- domains ----

bool is_domain(const Value& domain, std::size_t levels) {
  const Value* values = strings_in(domain.find("values"));
  const Value* count = domain.find("count");
  return domain.size() == 2 && values != nullptr && values->size() == levels && count != nullptr &&
         count->as_int64().has_value();
}

// {"universal": v} where all are the same, else write(all of them).
template <class Of, class Write>
void write_shared(std::span<const Value> domains, const Of& of, JsonWriter& out,
                  const Write& write) {
  out.object([&] {
    const bool same = std::all_of(domains.begin(), domains.end(), [&](const Value& domain) {
      return text::equal(of(domain), of(domains.front()));
    });
    if (same) {
      out.field("universal", of(domains.front()));
    } else {
      out.key("individual");
      write();
    }
  });
}

void write_slice(std::span<const Value> domains, std::size_t levels, JsonWriter& out) {
  out.object([&] {
    out.field("domainCount", domains.size());
    const auto list = [&](const auto& of) {
      out.array([&] {
        for (const Value& domain : domains) out.value(of(domain));
      });
    };
    out.array("valuesPerLevel", [&] {
      for (std::size_t level = 0; level < levels; ++level) {
        const auto of = [level](const Value& domain) -> const Value& {
          return domain.find("values")->items()[level];
        };
        write_shared(domains, of, out, [&] {
          out.object([&] {
            out.key("roots");
            list(of);
          });
        });
      }
    });
    out.key("podCounts");
    const auto count = [](const Value& domain) -> const Value& { return *domain.find("count"); };
    write_shared(domains, count, out, [&] { list(count); });
  });
}

// ---- slices ----

struct SliceLevel {
  std::string_view universal, prefix, suffix;
  std::span<const Value> roots;  // empty: universal
};
struct PackedSlice {
  std::size_t domains = 0;
  std::vector<SliceLevel> levels;
  Value count;                    // of all, or
  std::span<const Value> counts;  // of each
};

bool read_slice_level(const Value& v, std::size_t domains, SliceLevel& out) {
  if (v.size() != 1) return false;
  if (const Value* universal = v.find("universal")) {
    out.universal = universal->string();
    return universal->is_string();
  }
  const Value* own = v.find("individual");
  const Value* roots = strings_in(find(own, "roots"));
  if (roots == nullptr || roots->size() != domains) return false;
  for (const Member& member : own->members()) {
    const bool affix = member.key == "prefix" || member.key == "suffix";
    if (member.key != "roots" && !(affix && member.value.is_string())) return false;
  }
  out.prefix = text_at(*own, "prefix");
  out.suffix = text_at(*own, "suffix");
  out.roots = roots->items();
  return true;
}

bool read_slice_counts(const Value& v, PackedSlice& out) {
  if (v.size() != 1) return false;
  if (const Value* universal = v.find("universal")) {
    out.count = *universal;
    return universal->as_int64().has_value();
  }
  const Value* own = v.find("individual");
  if (own == nullptr || !own->is_array() || own->size() != out.domains) return false;
  out.counts = own->items();
  return std::all_of(out.counts.begin(), out.counts.end(),
                     [](const Value& count) { return count.as_int64().has_value(); });
}

std::optional<PackedSlice> read_packed_slice(const Value& v, std::size_t levels) {
  const Value* domains = v.find("domainCount");
  const Value* values = v.find("valuesPerLevel");
  const Value* counts = v.find("podCounts");
  if (v.size() != 3 || domains == nullptr || values == nullptr || counts == nullptr) return {};
  const std::int64_t number = domains->as_int64().value_or(0);
  if (number < 1 || number > kMostPackedDomains || !values->is_array() ||
      values->size() != levels) {
    return {};
  }
  PackedSlice out;
  out.domains = static_cast<std::size_t>(number);
  for (const Value& level : values->items()) {
    if (!read_slice_level(level, out.domains, out.levels.emplace_back())) return {};
  }
  if (!read_slice_counts(*counts, out)) return {};
  return out;
}

// About as many bytes as its domains take.
std::size_t unpacked_bytes(const PackedSlice& slice) {
  std::size_t bytes = 40;
  std::size_t roots = 0;
  for (const SliceLevel& level : slice.levels) {
    bytes += 4 + level.universal.size() + level.prefix.size() + level.suffix.size();
    for (const Value& root : level.roots) roots += root.string().size();
  }
  return bytes * slice.domains + roots;
}

void write_domains(const PackedSlice& slice, JsonWriter& out) {
  for (std::size_t i = 0; i < slice.domains; ++i) {
    out.object([&] {
      out.array("values", [&] {
        for (const SliceLevel& level : slice.levels) {
          if (level.roots.empty()) {
            out.value(level.universal);
          } else {
            std::string value(level.prefix);
            value += level.roots[i].string();
            value += level.suffix;
            out.value(value);
          }
        }
      });
      out.field("count", slice.counts.empty() ? slice.count : slice.counts[i]);
    });
  }
}

}  // namespace

void pack_domains(const Value& assignment, JsonWriter& out) {
  const std::size_t levels = levels_of(assignment, "domains", "slices");
  if (levels == 0) return out.value(assignment);
  const auto domains = assignment.find("domains")->items();
  if (domains.size() > static_cast<std::size_t>(kMostPackedDomains) ||
      !std::all_of(domains.begin(), domains.end(),
                   [levels](const Value& domain) { return is_domain(domain, levels); })) {
    return out.value(assignment);
  }
  replaced(assignment, "domains", out, [&](const Value&) {
    out.array("slices", [&] {
      if (!domains.empty()) write_slice(domains, levels, out);
    });
  });
}

void unpack_slices(const Value& assignment, std::size_t& left, JsonWriter& out) {
  const std::size_t levels = levels_of(assignment, "slices", "domains");
  if (levels == 0) return out.value(assignment);
  std::vector<PackedSlice> slices;
  std::size_t domains = 0, bytes = 0;
  for (const Value& v : assignment.find("slices")->items()) {
    std::optional<PackedSlice> slice = read_packed_slice(v, levels);
    if (!slice) return out.value(assignment);
    domains += slice->domains;
    bytes += unpacked_bytes(*slice);
    if (domains > static_cast<std::size_t>(kMostPackedDomains) || bytes > left) {
      return out.value(assignment);
    }
    slices.push_back(std::move(*slice));
  }
  left -= bytes;
  replaced(assignment, "slices", out, [&](const Value&) {
    out.array("domains", [&] {
      for (const PackedSlice& slice : slices) write_domains(slice, out);
    });
  });
}

}  // namespace berth::kinds
