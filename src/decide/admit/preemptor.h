// Which holders must leave so that a workload fits: Kueue's classical and fair-sharing rules.
//
// docs/queues.md states the rules. Every search removes holders from the ledger one by one until
// the request fits, gives back those that were not needed, and leaves the ledger as it was.
#pragma once

#include <span>
#include <vector>

#include "decide/admit/ground.h"
#include "decide/admit/ledger.h"
#include "model/policy.h"

namespace berth::admit {

class Preemptor {
 public:
  struct Request {
    WorkloadId id = 0;
    std::span<const CellId> cells;     // that need room made
    std::span<const Use> uses;         // all that is asked for
    Assignment* assignment = nullptr;  // to be placed on the ground too
  };

  Preemptor(Ledger& ledger, Ground* ground, const model::QueuePolicy& policy)
      : ledger_(ledger), ground_(ground), policy_(policy) {}
  void at(std::int64_t now_ns);  // before each cycle
  // Holders that the caller has taken out of the ledger for now.
  void without(std::vector<WorkloadId> absent) { absent_ = std::move(absent); }

  // In the order in which they are given up; empty when nothing helps.
  std::vector<Target> targets(const Request& request);

  // Whether budgets allow these besides those that were told to go, in this cycle or before.
  bool budgets_allow(const std::vector<WorkloadId>& claimed,
                     const std::vector<Target>& targets) const;

  // Whether room for one cell can be made: kReclaim from other queues alone, kPreempt with some of
  // its own, kNoCandidates; and how far it would borrow then.
  Mode possible(WorkloadId id, CellId cell, Amount amount, int& borrowing);

 private:
  struct Candidate {
    WorkloadId id = 0;
    Cause cause = Cause::kInClusterQueue;
    NodeId below = kNoParent;  // the node of its side just below the common ancestor; own: none
    bool only_without_borrowing = false;
  };
  struct Lists {
    std::vector<Candidate> hierarchy, priority, same;
  };
  struct FairQueue {
    QueueId queue = 0;
    std::vector<WorkloadId> left;  // best first
    std::size_t next = 0;
  };
  class FairOrder;

  bool uses_cells(const Workload& w, std::span<const CellId> cells) const;
  bool within(NodeId n, std::span<const CellId> cells) const;
  bool before(const Workload& preemptor, WorkloadId a, WorkloadId b) const;
  template <class T, class IdOf>
  void sort(const Workload& preemptor, std::vector<T>& list, const IdOf& id_of) const;
  bool eligible(const Request& request, WorkloadId holder) const;
  bool spared(WorkloadId preemptor, WorkloadId holder) const;
  bool budgets_allow_one_more(const std::vector<Target>& before, WorkloadId next) const;
  double worth(const Workload& w) const;  // by the policy's measure: the lowest goes first
  bool may_reclaim(const Workload& preemptor, const Workload& holder) const;
  bool may_take_own(const Workload& preemptor, const Workload& holder) const;
  bool fits(const Request& request, bool borrowing);
  void away(WorkloadId id);
  void back(WorkloadId id);
  void fill_back(const Request& request, bool borrowing, std::vector<Target>& targets);

  std::vector<Target> classical(const Request& request);
  Lists collect(const Request& request);
  void collect_below(const Request& request, NodeId at, NodeId but, NodeId below, bool advantage,
                     Lists& lists);
  Candidate classify(const Request& request, WorkloadId holder, NodeId below, bool advantage) const;
  std::vector<Candidate> in_sequence(const Request& request, Lists lists) const;
  bool attempt(const Request& request, const std::vector<Candidate>& sequence, bool borrowing,
               std::vector<Target>& targets);
  bool still_borrows(const Candidate& candidate, std::span<const CellId> cells) const;

  std::vector<Target> fair(const Request& request);
  bool fair_fits(const Request& request);
  bool first_strategy(const Request& request, std::vector<FairQueue>& queues,
                      std::vector<Target>& targets, std::vector<WorkloadId>& retry);
  bool second_strategy(const Request& request, std::vector<FairQueue>& queues,
                       std::vector<Target>& targets);
  bool allows(model::QueueConfig::Strategy strategy, QueueId preemptor, WorkloadId victim);
  std::vector<FairQueue> by_queue(const Workload& preemptor,
                                  const std::vector<WorkloadId>& all) const;

  Ledger& ledger_;
  Ground* ground_;
  bool on_ground_ = false;  // the search at hand looks at the ground too
  model::QueuePolicy policy_;
  std::int64_t now_ns_ = 0;
  std::vector<CellId> cells_;  // of the search at hand
  std::vector<WorkloadId> absent_;
  std::vector<WorkloadId> leaving_;  // where budgets count
};

}  // namespace berth::admit
