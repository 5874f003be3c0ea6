// podFailurePolicy and successPolicy.
#include <algorithm>

#include "embedded/workloads/job_plan.h"

namespace berth::sim {

namespace {

// The container that the rule matches, or nullptr.
const ContainerEnd* matching_end(const FailureRule& rule, const PodInfo& pod) {
  for (const ContainerEnd& end : pod.ends) {
    if (!rule.container.empty() && rule.container != end.container) continue;
    const bool listed =
        std::find(rule.codes.begin(), rule.codes.end(), end.exit_code) != rule.codes.end();
    if (listed == rule.in) return &end;
  }
  return nullptr;
}

}  // namespace

FailureVerdict judge_failure(const JobView& job, const PodInfo& pod) {
  if (!job.has_failure_policy) return {};
  for (std::size_t i = 0; i < job.failure_rules.size(); ++i) {
    const FailureRule& rule = job.failure_rules[i];
    std::string why;
    if (rule.by_exit_code) {
      const ContainerEnd* end = matching_end(rule, pod);
      if (end == nullptr) continue;
      why = "Container " + end->container + " for pod " + pod.key.to_string() +
            " failed with exit code " + std::to_string(end->exit_code);
    } else {
      const auto met =
          std::find_if(rule.conditions.begin(), rule.conditions.end(), [&pod](const auto& wanted) {
            return std::find(pod.conditions.begin(), pod.conditions.end(), wanted) !=
                   pod.conditions.end();
          });
      if (met == rule.conditions.end()) continue;
      why = "Pod " + pod.key.to_string() + " has condition " + met->first;
    }
    return {rule.action, why + " matching FailJob rule at index " + std::to_string(i)};
  }
  return {};
}

int met_success_rule(const JobView& job, const IndexSet& succeeded) {
  for (std::size_t i = 0; i < job.success_rules.size(); ++i) {
    const SuccessRule& rule = job.success_rules[i];
    int hits = 0, wanted = 0;
    if (!rule.indexes) {
      hits = succeeded.size();
      wanted = rule.count.value_or(1);
    } else {
      for (const auto& [first, last] : rule.indexes->intervals()) {
        for (const auto& [a, b] : succeeded.intervals()) {
          hits += std::max(0, std::min(b, last) - std::max(a, first) + 1);
        }
      }
      wanted = rule.count.value_or(rule.indexes->size());
    }
    if (hits >= wanted) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace berth::sim
