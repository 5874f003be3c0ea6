// policy/v1 PodDisruptionBudget: its status, by which evictions are allowed. Inside this folder.
#pragma once

#include <set>

#include "embedded/workloads/work_context.h"

namespace berth::sim {

struct BudgetCounts {
  int expected = 0, healthy = 0, desired = 0, allowed = 0;
};

// pods: those that the selector matches. expected: pods that their controllers ask for in all.
BudgetCounts count_budget(const text::Value& budget, const std::vector<const PodInfo*>& pods,
                          int expected);

class BudgetController {
 public:
  explicit BudgetController(WorkContext& context);
  void start();

 private:
  void pass(const kube::Key& key, Passes::Finished finished);
  int expected_pods(const std::vector<const PodInfo*>& pods) const;

  WorkContext& context_;
  Passes passes_;
  std::map<std::string, std::set<kube::Key>> by_namespace_;
};

}  // namespace berth::sim
