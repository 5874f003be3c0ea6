#include "decide/schedule/policy.h"

#include <algorithm>

namespace berth::schedule {

namespace {

bool among(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

bool matches(const PlacementPolicy::Class& one, const model::Shape& shape) {
  if (!among(one.namespaces, shape.ns) || !among(one.queues, shape.queue) ||
      !among(one.priority_classes, shape.priority_class)) {
    return false;
  }
  return text::matches(one.selector, [&](std::string_view key) -> std::optional<std::string_view> {
    const auto it = shape.labels.find(key);
    if (it == shape.labels.end()) return std::nullopt;
    return std::string_view(it->second);
  });
}

}  // namespace

std::optional<model::ShapeBook::Apart> apart(const PlacementPolicy& policy,
                                             const model::Shape& shape) {
  using Apart = model::ShapeBook::Apart;
  for (const PlacementPolicy::Class& one : policy.classes) {
    if (!matches(one, shape)) continue;
    return one.spread ? std::optional(Apart{one.over}) : std::nullopt;
  }
  return shape.service ? std::optional(Apart()) : std::nullopt;
}

}  // namespace berth::schedule
