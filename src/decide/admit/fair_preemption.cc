// Fair sharing: whoever borrows the most of what could be lent gives way first.
#include <algorithm>
#include <limits>
#include <set>

#include "decide/admit/preemptor.h"

namespace berth::admit {

using Strategy = model::QueueConfig::Strategy;

namespace {

// The nodes just below the lowest common ancestor of two queues of one tree.
std::pair<NodeId, NodeId> below_common(const QuotaTree& tree, NodeId a, NodeId b) {
  std::vector<NodeId> up_a{a}, up_b{b};
  while (tree.has_parent(up_a.back())) up_a.push_back(tree.parent(up_a.back()));
  while (tree.has_parent(up_b.back())) up_b.push_back(tree.parent(up_b.back()));
  while (up_a.size() > 1 && up_b.size() > 1 && up_a[up_a.size() - 2] == up_b[up_b.size() - 2]) {
    up_a.pop_back();
    up_b.pop_back();
  }
  return {up_a[up_a.size() - 2], up_b[up_b.size() - 2]};
}

}  // namespace

// Picks the queue that gives up its next holder: from the root down along the highest share.
class Preemptor::FairOrder {
 public:
  FairOrder(Preemptor& owner, WorkloadId preemptor, std::vector<FairQueue>& queues)
      : owner_(owner), preemptor_(preemptor), queues_(queues) {
    NodeId n = owner_.ledger_.queue_of(owner_.ledger_.workloads[preemptor]).node;
    path_.insert(n);
    while (owner_.ledger_.tree.has_parent(n)) path_.insert(n = owner_.ledger_.tree.parent(n));
    root_ = n;
  }

  FairQueue* next() {
    if (owner_.ledger_.book.queue_at(root_) != kNoId) {  // a queue of no cohort
      FairQueue* own = of(root_);
      return own == nullptr || pruned_.contains(root_) ? nullptr : own;
    }
    while (!pruned_.contains(root_)) {
      if (FairQueue* found = descend(root_)) return found;
    }
    return nullptr;
  }
  void drop(const FairQueue& queue) { pruned_.insert(owner_.ledger_.book.queue(queue.queue).node); }

 private:
  FairQueue* of(NodeId n) {
    const QueueId queue = owner_.ledger_.book.queue_at(n);
    for (FairQueue& q : queues_) {
      if (q.queue == queue) return q.next < q.left.size() ? &q : nullptr;
    }
    return nullptr;
  }

  // Null: nothing below, and the node is pruned, or a part of it was and the caller tries again.
  FairQueue* descend(NodeId at) {
    const QuotaTree& tree = owner_.ledger_.tree;
    FairQueue* best = nullptr;
    Share best_share;
    NodeId best_cohort = kNoParent;
    Share cohort_share;
    const Workload& preemptor = owner_.ledger_.workloads[preemptor_];
    for (const NodeId child : owner_.ledger_.book.children(at)) {
      if (pruned_.contains(child)) continue;
      const Share share = tree.share(child);
      const bool on_path = path_.contains(child);
      const bool spared = !on_path && !tree.borrows_any(child);
      if (owner_.ledger_.book.queue_at(child) == kNoId) {
        if (spared) {
          pruned_.insert(child);
        } else if (best_cohort == kNoParent || cohort_share < share) {
          best_cohort = child;
          cohort_share = share;
        }
        continue;
      }
      FairQueue* queue = of(child);
      if (queue == nullptr || spared) {
        pruned_.insert(child);
        continue;
      }
      const bool tie = best != nullptr && !(share < best_share) && !(best_share < share);
      if (best == nullptr || best_share < share ||
          (tie && owner_.before(preemptor, queue->left[queue->next], best->left[best->next]))) {
        best = queue;
        best_share = share;
      }
    }
    if (best == nullptr && best_cohort == kNoParent) {
      pruned_.insert(at);
      return nullptr;
    }
    if (best_cohort != kNoParent && (best == nullptr || !(cohort_share < best_share))) {
      return descend(best_cohort);
    }
    return best;
  }

  Preemptor& owner_;
  WorkloadId preemptor_;
  std::vector<FairQueue>& queues_;
  std::set<NodeId> path_, pruned_;
  NodeId root_ = 0;
};

// The incoming usage is in the preemptor's queue for all shares; for fitting it is not.
bool Preemptor::fair_fits(const Request& request) {
  const NodeId node = ledger_.queue_of(ledger_.workloads[request.id]).node;
  ledger_.drain(node, request.uses);
  const bool fit = fits(request, true);
  ledger_.fill(node, request.uses);
  return fit;
}

bool Preemptor::allows(Strategy strategy, QueueId preemptor, WorkloadId victim) {
  const Workload& w = ledger_.workloads[victim];
  const NodeId target = ledger_.queue_of(w).node;
  const auto [mine, theirs] =
      below_common(ledger_.tree, ledger_.book.queue(preemptor).node, target);
  const Share own = ledger_.tree.share(mine);
  if (strategy == Strategy::kLessThanInitialShare) return own < ledger_.tree.share(theirs);
  ledger_.drain(target, w.uses);
  const Share left = ledger_.tree.share(theirs);
  ledger_.fill(target, w.uses);
  return !(left < own);
}

bool Preemptor::first_strategy(const Request& request, std::vector<FairQueue>& queues,
                               std::vector<Target>& targets, std::vector<WorkloadId>& retry) {
  const Workload& p = ledger_.workloads[request.id];
  const QueueId own = p.queue;
  const NodeId node = ledger_.book.queue(own).node;
  const auto& config = ledger_.book.config();
  const bool nominal_wins = config.gate("FairSharingPreemptWithinNominal", true);
  FairOrder order(*this, request.id, queues);
  while (FairQueue* queue = order.next()) {
    const bool unconditional = queue->queue == own || (nominal_wins && within(node, request.cells));
    const Cause cause = queue->queue == own ? Cause::kInClusterQueue
                        : unconditional     ? Cause::kInCohortReclamation
                                            : Cause::kInCohortFairSharing;
    while (queue->next < queue->left.size()) {
      const WorkloadId victim = queue->left[queue->next++];
      if (!unconditional && !allows(config.strategies.front(), own, victim)) {
        retry.push_back(victim);
        continue;
      }
      if (!budgets_allow_one_more(targets, victim)) continue;
      away(victim);
      targets.push_back({victim, cause});
      if (fair_fits(request)) return true;
      break;  // shares changed: another queue may be next
    }
  }
  return false;
}

bool Preemptor::second_strategy(const Request& request, std::vector<FairQueue>& queues,
                                std::vector<Target>& targets) {
  const Workload& p = ledger_.workloads[request.id];
  const auto& config = ledger_.book.config();
  FairOrder order(*this, request.id, queues);
  while (FairQueue* queue = order.next()) {
    const WorkloadId victim = queue->left[queue->next];
    if (allows(config.strategies[1], p.queue, victim) && budgets_allow_one_more(targets, victim)) {
      ++queue->next;
      away(victim);
      targets.push_back({victim, Cause::kInCohortFairSharing});
      if (fair_fits(request)) return true;
    }
    order.drop(*queue);  // at most one of each queue
  }
  return false;
}

std::vector<Target> Preemptor::fair(const Request& request) {
  const Workload& p = ledger_.workloads[request.id];
  const Queue& queue = ledger_.queue_of(p);
  std::vector<WorkloadId> all;
  for (const WorkloadId holder : ledger_.holders[p.queue]) {
    if (eligible(request, holder) && may_take_own(p, ledger_.workloads[holder])) {
      all.push_back(holder);
    }
  }
  if (queue.spec.reclaim != model::Reclaim::kNever && ledger_.tree.has_parent(queue.node)) {
    for (QueueId q = 0; q < ledger_.book.queues().size(); ++q) {
      const Queue& other = ledger_.book.queue(q);
      if (q == p.queue || other.root != queue.root || within(other.node, request.cells)) continue;
      for (const WorkloadId holder : ledger_.holders[q]) {
        if (eligible(request, holder) && may_reclaim(p, ledger_.workloads[holder])) {
          all.push_back(holder);
        }
      }
    }
  }
  if (all.empty()) return {};
  std::vector<FairQueue> queues = by_queue(p, all);
  std::vector<Target> targets;
  std::vector<WorkloadId> retry;
  ledger_.fill(queue.node, request.uses);
  bool fit = first_strategy(request, queues, targets, retry);
  if (!fit && ledger_.book.config().strategies.size() > 1) {
    std::vector<FairQueue> again = by_queue(p, retry);
    fit = second_strategy(request, again, targets);
  }
  ledger_.drain(queue.node, request.uses);
  if (fit) fill_back(request, true, targets);
  for (std::size_t i = targets.size(); i-- > 0;) back(targets[i].id);
  if (!fit) targets.clear();
  return targets;
}

}  // namespace berth::admit
