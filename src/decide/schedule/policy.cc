#include "decide/schedule/policy.h"

namespace berth::schedule {

bool spreads(const Policy& policy, const model::Shape& shape) {
  for (const auto& rule : policy.rules) {
    bool hit = false;
    switch (rule.by) {
      case Policy::Rule::By::kPriorityClass:
        hit = shape.priority_class == rule.value;
        break;
      case Policy::Rule::By::kQueue:
        hit = shape.queue == rule.value;
        break;
      case Policy::Rule::By::kLabel: {
        auto it = shape.labels.find(rule.key);
        hit = it != shape.labels.end() && it->second == rule.value;
        break;
      }
    }
    if (hit) return rule.spread;
  }
  return shape.service;
}

}  // namespace berth::schedule
