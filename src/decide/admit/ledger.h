// Who holds what: the workloads, the quota tree they fill, and the holders of every queue.
//
// The tree's usage is the sum of what the holders' uses say, at all times but inside a trial; a
// trial (take_away .. bring_back) ends as it began. Plain data; the engine owns one.
#pragma once

#include <span>
#include <vector>

#include "decide/admit/workload.h"

namespace berth::admit {

struct Ledger {
  explicit Ledger(const Book& b)
      : book(b), tree(b.tree()), holders(b.queues().size()), local_usage(b.locals().size(), 0.0) {}

  const Book& book;
  QuotaTree tree;
  std::vector<Workload> workloads;
  std::vector<std::vector<WorkloadId>> holders;  // by queue
  std::vector<double> local_usage;               // admission fair sharing, by local queue

  const Queue& queue_of(const Workload& w) const { return book.queue(w.queue); }

  void fill(NodeId queue, std::span<const Use> uses) {
    for (const Use& use : uses) tree.add(queue, use.cell, use.amount);
  }
  void drain(NodeId queue, std::span<const Use> uses) {
    for (const Use& use : uses) tree.take(queue, use.cell, use.amount);
  }
  void seat(WorkloadId id) {
    Workload& w = workloads[id];
    w.seat = static_cast<std::uint32_t>(holders[w.queue].size());
    holders[w.queue].push_back(id);
    fill(queue_of(w).node, w.uses);
  }
  void unseat(WorkloadId id) {
    Workload& w = workloads[id];
    drain(queue_of(w).node, w.uses);
    auto& list = holders[w.queue];
    list[w.seat] = list.back();
    workloads[list[w.seat]].seat = w.seat;
    list.pop_back();
  }
  // All amounts are there, borrowing allowed or not.
  bool fits(NodeId queue, std::span<const Use> uses, bool borrowing = true) const {
    for (const Use& use : uses) {
      if (!borrowing && tree.borrows(queue, use.cell, use.amount)) return false;
      if (use.amount > tree.available(queue, use.cell)) return false;
    }
    return true;
  }
};

inline void add_use(std::vector<Use>& uses, CellId cell, Amount amount) {
  for (Use& use : uses) {
    if (use.cell == cell) {
      use.amount += amount;
      return;
    }
  }
  uses.push_back({cell, amount});
}

}  // namespace berth::admit
