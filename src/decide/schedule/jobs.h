// What runs, as whole jobs: the units of preemption. Budgets and lost work are counted here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/cluster_state.h"

namespace berth::schedule {

__extension__ typedef __int128 Work;  // GPU milli x nanoseconds; 64 bits do not hold a month of 8

// A gang with all its running members, or a single pod.
struct Job {
  std::string name;  // "ns/name"
  std::int32_t gang = -1;
  int priority = 0;
  std::vector<model::PodId> pods;  // by name
  Work lost = 0;
  bool stays = false;  // one of its pods may not be evicted
};

// A gang's priority: its own, else the highest of its members.
int gang_priority(const model::ClusterState& state, std::int32_t gang);

// Running jobs of a lower priority, by priority, then name; without the gang itself, without pods
// that are being deleted: those go anyway, and without jobs of which a pod is nobody's to evict.
std::vector<Job> jobs_below(const model::ClusterState& state, int priority, std::int32_t itself,
                            std::int64_t now_ns);

// Evictions counted against disruption budgets.
class BudgetCount {
 public:
  explicit BudgetCount(const model::ClusterState& state);
  bool evict(const model::Shape& shape);  // counts it; true when a budget is exceeded
  bool forbids(const model::ClusterState& state, const Job& job) const;

 private:
  bool covers(std::size_t budget, const model::Shape& shape) const;

  const std::vector<model::BudgetSpec>* budgets_;
  std::vector<int> used_;
};

}  // namespace berth::schedule
