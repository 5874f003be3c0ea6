// Who of a cycle's heads goes first.
#include <algorithm>

#include "decide/admit/engine.h"

namespace berth::admit {

bool Engine::sooner(const Entry& a, const Entry& b) const {
  const Workload& x = ledger_.workloads[a.id];
  const Workload& y = ledger_.workloads[b.id];
  if (by_priority_ && x.priority() != y.priority()) return x.priority() > y.priority();
  if (x.order_ns != y.order_ns) return x.order_ns < y.order_ns;
  return x.uid < y.uid;
}

void Engine::sort_classical(std::vector<Entry>& entries) const {
  std::stable_sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
    const bool first = ledger_.workloads[a.id].preemptor;
    if (preemptors_first_ && first != ledger_.workloads[b.id].preemptor) return first;
    if (a.assignment.borrowing != b.assignment.borrowing) {
      return a.assignment.borrowing < b.assignment.borrowing;
    }
    return sooner(a, b);
  });
}

// ---- owners first ----

void Engine::serves(QueueId queue, int borrowing) {
  if (!options_.policy.owners_first) return;
  const auto least = served_.try_emplace(ledger_.book.queue(queue).root, borrowing).first;
  least->second = std::min(least->second, borrowing);
}

// It is parked, and the next of its line, who may ask for the queue's own, is seen a cycle later.
bool Engine::makes_way(const Entry& entry) const {
  const Assignment& a = entry.assignment;
  const bool parked = a.mode == Mode::kNoFit || (a.mode == Mode::kPreempt && entry.targets.empty());
  return parked && !a.progress.more() && !ledger_.book.queue(entry.queue).spec.strict_fifo &&
         lines_[entry.queue].size() > 1;
}

bool Engine::stands_back(const Entry& entry) {
  const auto served = served_.find(ledger_.book.queue(entry.queue).root);
  if (served == served_.end() || entry.assignment.borrowing <= served->second) return false;
  standing_back_.push_back(entry.queue);
  return true;
}

// Where the cycle served nobody, whoever stood back is next; true: there are such.
bool Engine::let_forward(const std::vector<WorkloadId>& heads) {
  return std::erase_if(standing_back_, [&](QueueId queue) {
           const NodeId root = ledger_.book.queue(queue).root;
           return !served_.contains(root) &&
                  std::any_of(heads.begin(), heads.end(), [&](WorkloadId id) {
                    return ledger_.queue_of(ledger_.workloads[id]).root == root;
                  });
         }) > 0;
}

// ---- fair sharing: a tournament up the tree ----

struct Engine::Standing {
  bool borrows = false;  // on what the entry asks for
  Share share;
};

Engine::Standing Engine::standing(const Entry& entry, NodeId at) {
  const NodeId queue = ledger_.book.queue(entry.queue).node;
  ledger_.fill(queue, entry.charged());
  Standing out{.borrows = false, .share = ledger_.tree.share(at)};
  for (const Use& use : entry.charged()) out.borrows |= ledger_.tree.borrows(at, use.cell);
  ledger_.drain(queue, entry.charged());
  return out;
}

// The entry of the node's part of the tree that goes first, if there is one.
std::optional<std::size_t> Engine::fair_winner(const std::vector<Entry>& entries, NodeId at) {
  if (const QueueId queue = ledger_.book.queue_at(at); queue != kNoId) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].queue == queue) return i;
    }
    return std::nullopt;
  }
  const bool lenders_first = ledger_.book.config().gate("FairSharingPrioritizeNonBorrowing", true);
  std::optional<std::size_t> best;
  Standing best_standing;
  for (const NodeId child : ledger_.book.children(at)) {
    const auto candidate = fair_winner(entries, child);
    if (!candidate) continue;
    const Standing mine = standing(entries[*candidate], child);
    bool wins = !best;
    if (best) {
      const bool first = ledger_.workloads[entries[*candidate].id].preemptor;
      if (preemptors_first_ && first != ledger_.workloads[entries[*best].id].preemptor) {
        wins = first;
      } else if (lenders_first && mine.borrows != best_standing.borrows) {
        wins = best_standing.borrows;
      } else if (mine.share < best_standing.share || best_standing.share < mine.share) {
        wins = mine.share < best_standing.share;
      } else {
        wins = sooner(entries[*candidate], entries[*best]);
      }
    }
    if (wins) {
      best = candidate;
      best_standing = mine;
    }
  }
  return best;
}

std::size_t Engine::fair_next(const std::vector<Entry>& entries) {
  for (const NodeId root : ledger_.book.roots()) {
    if (const auto winner = fair_winner(entries, root)) return *winner;
  }
  return 0;
}

}  // namespace berth::admit
