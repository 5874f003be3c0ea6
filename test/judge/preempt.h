// Making room: whole jobs of lower priority go, as few and as cheap as the page says.
#pragma once

#include <string>
#include <vector>

#include "judge/gang.h"
#include "judge/rules.h"
#include "model/decision.h"

namespace berth::judging {

__extension__ typedef __int128 Work;  // GPU milli x nanoseconds; 64 bits do not hold a month of 8

// A gang with all its running members, or a single pod.
struct Job {
  std::string name;  // "ns/name"
  bool is_gang = false;
  int priority = 0;
  std::vector<std::size_t> pods;  // indices in State::bound, by pod name
  Work lost = 0;
};

class Preemptor {
 public:
  // jobs: all that run, whatever their priority.
  Preemptor(const Workload& workload, const JudgePolicy& policy,
            const std::vector<model::BudgetSpec>& budgets, std::vector<Job> jobs);

  // Places the workload by evicting lower jobs; true when enough members have a place. On false
  // the state is to be dropped.
  bool run(State& state) const;

  std::vector<const Job*> victims(const State& before, const State& after) const;
  std::vector<model::Preemption> listed(const State& before,
                                        const std::vector<const Job*>& victims) const;

 private:
  struct Option {
    int node = -1;
    std::vector<const Job*> victims;
    int against_budget = 0;
    int highest = 0;
    Work lost = 0;
    std::int64_t milli = 0;
  };
  bool place_evicting(State& state, const model::PodSpec& pod, const NodeSet& nodes) const;
  Option option_on(State& state, const model::PodSpec& pod, int node) const;
  void give_back(const State& before, State& after) const;
  bool replays(State state, std::size_t first) const;
  // In the order in which jobs are given back; node -1: GPU milli of all nodes count.
  void order_for_return(const State& state, std::vector<const Job*>& jobs, int node) const;
  bool forbidden(const State& state, const Job& job) const;
  std::vector<int> used_budgets(const State& state) const;

  const Workload& workload_;
  const JudgePolicy& policy_;
  const std::vector<model::BudgetSpec>& budgets_;
  std::vector<Job> jobs_;  // of lower priority only, by priority, then name
};

}  // namespace berth::judging
