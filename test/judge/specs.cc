// Texts of decisions for the judge's tests.
#include "judge/specs.h"

#include <algorithm>
#include <stdexcept>

namespace berth::judging {

std::string text_of(const model::Placement& placement) {
  std::string text = placement.pod + "@" + placement.node;
  if (!placement.gpus.empty()) {
    text += "[";
    for (int gpu : placement.gpus) {
      if (text.back() != '[') text += ",";
      text += std::to_string(gpu);
    }
    text += "]";
  }
  return placement.after_preemption ? text + "+" : text;
}

std::string text_of(const model::Decision& decision) {
  std::string text;
  for (const model::Placement& placement : decision.placements) {
    text += (text.empty() ? "" : " ") + text_of(placement);
  }
  for (const model::Preemption& victim : decision.preemptions) {
    text += (text.empty() ? "-" : " -") + victim.pod + (victim.breaks_budget ? "!" : "");
  }
  return text;
}

const model::Outcome& outcome_of(const model::Decision& decision, const std::string& workload) {
  for (const model::Outcome& outcome : decision.outcomes) {
    if (outcome.workload == workload) return outcome;
  }
  throw std::out_of_range("no outcome of " + workload);
}

}  // namespace berth::judging
