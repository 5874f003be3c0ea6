// Which holders must go so that a request fits: the classical search and fair sharing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "judge/queue_tree.h"

namespace berth::judging::quota {

// A workload that asks, and what it lives under.
struct Asker {
  std::string workload;
  const model::QueueSpec* queue = nullptr;
  const model::QueueConfig* config = nullptr;
  int priority = 0;
  std::int64_t queue_ns = 0;
  std::string tie;
  std::function<double(const std::string& local_queue)> past_usage;  // admission fair sharing
};

struct Target {
  std::string workload, reason;
};

// The victims of an asker that wants `request`, of which `needing` is not free. `state` holds
// neither the request nor the asker. Empty when there is no way.
std::vector<Target> find_targets(const QuotaState& state, const Asker& asker, const Usage& request,
                                 const FlavorResources& needing);

// The parts, for the two searches.
std::vector<Target> classical_targets(const QuotaState& state, const Asker& asker,
                                      const Usage& request, const FlavorResources& needing);
std::vector<Target> fair_targets(const QuotaState& state, const Asker& asker, const Usage& request,
                                 const FlavorResources& needing);

bool uses_any(const Holding& holding, const FlavorResources& needing);
bool may_preempt_within(const Asker& asker, const Holding& candidate);
bool may_reclaim(const Asker& asker, const Holding& candidate);
// Of two candidates, which goes first.
bool goes_before(const Asker& asker, const Holding& a, const Holding& b);
void sort_candidates(const Asker& asker, std::vector<Holding>& candidates);
// Takes back what is not needed; `state` is without all of `targets`, in the order of removal.
void fill_back(QuotaState& state, const std::map<std::string, Holding>& all, const Asker& asker,
               const Usage& request, bool borrow, std::vector<Target>& targets);

}  // namespace berth::judging::quota
