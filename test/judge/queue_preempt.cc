// What both searches share, and the classical one.
#include "judge/queue_preempt.h"

#include <algorithm>

namespace berth::judging::quota {

using model::PreemptWithin;
using model::Reclaim;

bool uses_any(const Holding& holding, const FlavorResources& needing) {
  return std::any_of(needing.begin(), needing.end(),
                     [&](const FlavorResource& fr) { return holding.assigned.contains(fr); });
}

bool may_preempt_within(const Asker& asker, const Holding& candidate) {
  switch (asker.queue->within) {
    case PreemptWithin::kNever:
      return false;
    case PreemptWithin::kLowerPriority:
      return asker.priority > candidate.priority;
    case PreemptWithin::kLowerOrNewerEqualPriority:
      return asker.priority > candidate.priority ||
             (asker.priority == candidate.priority && asker.queue_ns < candidate.queue_ns);
  }
  return false;
}

bool may_reclaim(const Asker& asker, const Holding& candidate) {
  switch (asker.queue->reclaim) {
    case Reclaim::kNever:
      return false;
    case Reclaim::kLowerPriority:
      return asker.priority > candidate.priority;
    case Reclaim::kAny:
      return true;
  }
  return false;
}

bool goes_before(const Asker& asker, const Holding& a, const Holding& b) {
  if (a.evicted != b.evicted) return a.evicted;
  const bool a_own = a.queue == asker.queue->name, b_own = b.queue == asker.queue->name;
  if (a_own != b_own) return b_own;
  if (asker.past_usage && a.queue == b.queue && a.local_queue != b.local_queue) {
    const double a_past = asker.past_usage(a.local_queue), b_past = asker.past_usage(b.local_queue);
    if (a_past != b_past) return a_past > b_past;
  }
  if (a.priority != b.priority) return a.priority < b.priority;
  if (a.reserved_ns != b.reserved_ns) return a.reserved_ns > b.reserved_ns;
  return a.tie < b.tie;
}

// By insertion from the order of names: with the usage of local queues the relation need not be an
// order (Q41).
void sort_candidates(const Asker& asker, std::vector<Holding>& candidates) {
  std::sort(candidates.begin(), candidates.end(),
            [](const Holding& a, const Holding& b) { return a.workload < b.workload; });
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    for (std::size_t j = i; j > 0 && goes_before(asker, candidates[j], candidates[j - 1]); --j) {
      std::swap(candidates[j], candidates[j - 1]);
    }
  }
}

void fill_back(QuotaState& state, const std::map<std::string, Holding>& all, const Asker& asker,
               const Usage& request, bool borrow, std::vector<Target>& targets) {
  for (std::size_t i = targets.size() - 1; i-- > 0;) {
    const std::string name = targets[i].workload;
    state.put(all.at(name));
    if (state.fits(asker.queue->name, request, borrow)) {
      targets[i] = targets.back();
      targets.pop_back();
    } else {
      state.remove(name);
    }
  }
}

std::vector<Target> find_targets(const QuotaState& state, const Asker& asker, const Usage& request,
                                 const FlavorResources& needing) {
  return asker.config->fair_sharing ? fair_targets(state, asker, request, needing)
                                    : classical_targets(state, asker, request, needing);
}

// ---- classical ----

namespace {

constexpr const char* kReclamation = "InCohortReclamation";
constexpr const char* kWhileBorrowing = "InCohortReclaimWhileBorrowing";

struct Candidate {
  Holding holding;
  std::string reason;
  bool only_without_borrowing = false;
};

struct Lists {
  std::vector<Holding> hierarchy, priority, same;
};

class ClassicalSearch {
 public:
  ClassicalSearch(const QuotaState& state, const Asker& asker, const Usage& request,
                  const FlavorResources& needing)
      : state_(state), asker_(asker), request_(request), needing_(needing) {}

  std::vector<Target> run() const {
    Lists lists = collect();
    std::vector<Candidate> candidates = sequence(lists);
    for (bool borrow : attempts(lists)) {
      std::vector<Target> targets = attempt(candidates, borrow);
      if (!targets.empty()) return targets;
    }
    return {};
  }

 private:
  NodeName own() const { return queue_node(asker_.queue->name); }

  // U + v <= S for every flavor-resource asked for.
  bool fits_in(const NodeName& node, const Usage& wanted) const {
    return std::none_of(wanted.begin(), wanted.end(), [&](const auto& one) {
      return state_.borrowing(node, one.first, one.second);
    });
  }

  Usage beyond(const NodeName& node, const Usage& wanted) const {
    Usage rest;
    for (const auto& [fr, amount] : wanted) {
      rest[fr] = std::max<std::int64_t>(0, minus(amount, state_.local_free(node, fr)));
    }
    return rest;
  }

  Lists collect() const {
    Lists lists;
    for (const auto& [name, holding] : state_.holders()) {
      if (holding.queue == asker_.queue->name && uses_any(holding, needing_) &&
          may_preempt_within(asker_, holding)) {
        lists.same.push_back(holding);
      }
    }
    bool advantage = fits_in(own(), request_);
    Usage remaining = beyond(own(), request_);
    NodeName visited = own();
    for (const NodeName& ancestor : state_.tree().ancestors(own())) {
      collect_below(ancestor, visited, advantage ? lists.hierarchy : lists.priority);
      advantage = advantage || fits_in(ancestor, remaining);
      remaining = beyond(ancestor, remaining);
      visited = ancestor;
    }
    return lists;
  }

  void collect_below(const NodeName& cohort, const NodeName& visited,
                     std::vector<Holding>& out) const {
    for (const NodeName& child : state_.tree().at(cohort).children) {
      if (child == visited || state_.within(child, needing_)) continue;
      if (child.cohort) {
        collect_below(child, visited, out);
        continue;
      }
      for (const auto& [name, holding] : state_.holders()) {
        if (holding.queue == child.name && uses_any(holding, needing_) &&
            may_reclaim(asker_, holding)) {
          out.push_back(holding);
        }
      }
    }
  }

  Candidate from_priority_list(const Holding& holding) const {
    const auto& threshold = asker_.queue->max_priority_threshold;
    if (!asker_.queue->borrow_by_preemption) return {holding, kReclamation, true};
    if (holding.priority >= asker_.priority || (threshold && holding.priority > *threshold)) {
      return {holding, kReclamation, true};
    }
    return {holding, kWhileBorrowing, false};
  }

  std::vector<Candidate> sequence(Lists lists) const {
    sort_candidates(asker_, lists.hierarchy);
    sort_candidates(asker_, lists.priority);
    sort_candidates(asker_, lists.same);
    std::vector<Candidate> all;
    for (bool evicted : {true, false}) {
      for (const Holding& holding : lists.hierarchy) {
        if (holding.evicted == evicted) all.push_back({holding, kReclamation, false});
      }
      for (const Holding& holding : lists.priority) {
        if (holding.evicted == evicted) all.push_back(from_priority_list(holding));
      }
      for (const Holding& holding : lists.same) {
        if (holding.evicted == evicted) all.push_back({holding, "InClusterQueue", false});
      }
    }
    return all;
  }

  std::vector<bool> attempts(const Lists& lists) const {
    const bool forbidden = !asker_.queue->borrow_by_preemption;
    const bool under = std::all_of(needing_.begin(), needing_.end(), [&](const auto& fr) {
      return state_.used(own(), fr) < state_.tree().quota(own(), fr).nominal;
    });
    if (lists.hierarchy.empty() && lists.priority.empty()) return {true};
    if (forbidden && !under) return {true};
    if (forbidden && lists.hierarchy.empty()) return {false, true};
    return {true, false};
  }

  // Its queue and the cohorts below the one it shares with the asker.
  bool still_exceeding(const QuotaState& now, const std::string& queue) const {
    std::vector<NodeName> shared = now.tree().ancestors(own());
    std::vector<NodeName> path = now.tree().ancestors(queue_node(queue));
    path.insert(path.begin(), queue_node(queue));
    for (const NodeName& node : path) {
      if (std::find(shared.begin(), shared.end(), node) != shared.end()) break;
      if (now.within(node, needing_)) return false;
    }
    return true;
  }

  std::vector<Target> attempt(const std::vector<Candidate>& candidates, bool borrow) const {
    QuotaState now = state_;
    std::vector<Target> targets;
    for (const Candidate& candidate : candidates) {
      const Holding& holding = candidate.holding;
      if (holding.queue != asker_.queue->name) {
        if (borrow && candidate.only_without_borrowing) continue;
        if (!still_exceeding(now, holding.queue)) continue;
      }
      now.remove(holding.workload);
      targets.push_back({holding.workload, candidate.reason});
      if (now.fits(asker_.queue->name, request_, borrow)) {
        fill_back(now, state_.holders(), asker_, request_, borrow, targets);
        return targets;
      }
    }
    return {};
  }

  const QuotaState& state_;
  const Asker& asker_;
  const Usage& request_;
  const FlavorResources& needing_;
};

}  // namespace

std::vector<Target> classical_targets(const QuotaState& state, const Asker& asker,
                                      const Usage& request, const FlavorResources& needing) {
  return ClassicalSearch(state, asker, request, needing).run();
}

}  // namespace berth::judging::quota
