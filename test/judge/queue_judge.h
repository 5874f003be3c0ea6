// The judge of queues: Kueue's decision by quota alone once more, by definition, for tests to
// compare the engine with.
//
// Written from the notes on Kueue's behaviour alone (quota tree, queues, cycle, flavors, both kinds
// of preemption, fair sharing, admission fair sharing). It keeps strings and maps, recounts usage
// from the list of holders after every change, has no index and no cache, and shares no code with
// src/admit. No nodes and no topology. Meant for at most 8 queues and 40 workloads. Not
// thread-safe: one judge, one owner.
//
// Readings: what the notes leave open, and what the judge takes it to mean.
//
//  Amounts and requests
//  Q1  PodSetSpec::requests are final: exclusions and transformations were applied before. Feature
//      gates are at their defaults; QueueConfig::gates is not read.
//  Q2  A covered resource that is asked for with 0 gets a flavor like any other (and level > 0 when
//      the queue is over its nominal quota). An undeclared one that is ignored has neither flavor
//      nor usage; one that is not makes the workload NoFit, detail NoMatchingFlavor.
//  Q3  A holder's pod set counts min(admission count, spec count - reclaimable) pods, at
//      usage / admission count each. minCount works on counts less the reclaimable ones.
//  Q4  Usage on a flavor-resource that the queue has no quota for counts with nominal 0. Holders
//      of a queue that does not exist count nowhere.
//  Q5  Limits of a root (and of a queue without cohort) count for nothing, but lendingLimit still
//      defines what is local to it. Unlimited nominal under a lendingLimit lends 0, since
//      Unlimited - Unlimited = 0.
//
//  Queues
//  Q6  Ties: uid, or ns/name for those without; compared as text. So in heaps, in the order of
//      entries (classical and tournament) and of victims.
//  Q7  Nothing waits that is inactive, held (admission-gated-by), incomplete, without a local queue
//      or a ClusterQueue, or in a stopped local queue. It is in no heap and is not reported.
//  Q8  An inactive queue (stopped; flavor, its topology or check missing; check inactive; cohort
//      cycle) has no heads. All but cycles change nothing else: its quota and usage stay in the
//      tree and its holders stay candidates. Stop policies evict nobody here. A cohort from which
//      a cycle is reached is part of the excluded tree; figures of such nodes are 0.
//  Q9  Flush (evictions_done, finish) is at once, not batched. Evicted workloads line up after the
//      flush. Whoever leaves, pending or not, flushes its tree; only holders bump the generation.
//  Q10 Backoff: parked, flushed or not, until a cycle at or after requeue_at_ns, which lines it up
//      like an arrival. Requeued=False without such a time: until add() brings it anew.
//  Q11 The sticky preemptor is no longer one once it is admitted, finished, or requeued with any
//      reason but PendingPreemption and FailedAfterNomination.
//  Q12 Shape: priority, and per pod set its name, count, minCount, requests, topology request, node
//      selector, required affinity and tolerations.
//  Q13 A namespace that is not known has no labels.
//
//  The cycle
//  Q14 Fair sharing processes unrelated trees one after another, by name of the root (cohort, or
//      queue without one); the classical order is one for all.
//  Q15 A NoFit entry is in the tournament with no usage. It changes nothing when its turn comes.
//  Q16 Victims hold their usage until evictions_done(), in later cycles too; they are candidates
//      then (evicted, so first), may be chosen again and are not reported again. A workload that
//      is Evicted in the input holds for ever.
//  Q17 In the snapshot of the cycle victims keep their usage and the preemptor's is added; "still
//      fits" and the second assignment see it without all victims claimed so far.
//  Q18 The reservation for Preempt without targets is never negative, "borrowing" is level > 0 of
//      the assignment, and `used` counts victims of this cycle as still there.
//  Q19 The gate stops entries that would preempt (mode Preempt with targets), not DeferredFit.
//  Q20 The second assignment takes the counts of the first, reduced or not, and tries the same
//      flavors only. Its targets cannot overlap, so "overlapping" does not come up.
//  Q21 Checks Retry and Rejected of a head: reason "", detail AdmissionCheck.
//  Q22 Where Kueue would block for PodsReady, the cycle ends: that entry and those after it are
//      left with WaitingForPodsReady, back in the heap. Who is admitted is not ready until ready().
//  Q23 A workload whose checks are not Ready holds quota and is in QueueCycle::admitted all the
//      same; only blocking and local queues' usage tell the two apart.
//
//  Flavors
//  Q24 The first resource group or pod set that does not fit ends the scan: those after it are not
//      looked at. Resources that no group covers come first. A pod set's progress is kept by
//      resource. A scan that reached the last flavor starts anew.
//  Q25 Progress is dropped when the attempt ended in FailedAfterNomination or PendingPreemption:
//      else a preemptor would not look at the flavor that it made room in.
//  Q26 What one resource comes to is a pair of mode and level; a flavor's is the worst pair in the
//      order of the queue's preference (trap 1). The flavor that stops the scan is taken even when
//      one before it was better. Equal flavors: the first.
//  Q27 "Quota could be reclaimed inside a proper subtree": the second result of the height rule.
//  Q28 The level of an assignment is the highest of any resource.
//  Q29 A flavor that fails for several resources has the most severe of their reasons.
//  Q30 The search for fewer pods is the usual binary one: of [low, high) the middle, rounded down.
//
//  Preemption
//  Q31 A candidate uses a flavor-resource when its admission names that flavor for the resource.
//  Q32 Timestamps in LowerOrNewerEqualPriority are queue timestamps.
//  Q33 What remains of a request after local quota is at least 0, and must fit (U + rest <= S) also
//      where it is 0.
//  Q34 "Exceeding in F": in one of F. "Within in F": in all of F. "Strictly under nominal in F":
//      in all of F.
//  Q35 The reason of a victim is that of its class at the start, in either attempt.
//
//  Fair sharing
//  Q36 Shares are doubles: 1000.0 x borrowed / lendable / weight, in this order. A resource of
//      which nothing, or without limit, can be lent does not count.
//  Q37 "Not borrowing", for pruning: U <= S in everything, not only in F. A cohort without targets
//      left is pruned too. Ties between cohorts: by name.
//  Q38 "Stays within nominal in F" is asked each time, incoming usage counted, victims gone.
//  Q39 Fits is asked without the incoming usage. The retry list has other queues' candidates only.
//
//  Admission fair sharing
//  Q40 A sample is taken by the first cycle at least sampling_s after the last one. Half life 0:
//      no usage is ever counted. Consumed usage starts at 0.
//  Q41 With candidates of several queues the order of victims need not be one; they are sorted by
//      insertion, from the order of names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/workload.h"

namespace berth::judging {

namespace quota {
class Book;
}

struct QueueAdmitted {
  std::string workload;  // "ns/name"
  model::AdmissionSpec admission;
  friend bool operator==(const QueueAdmitted&, const QueueAdmitted&) = default;
};

// reason: InClusterQueue, InCohortReclamation, InCohortFairSharing, InCohortReclaimWhileBorrowing.
struct QueuePreempted {
  std::string workload, by, reason;
  friend auto operator<=>(const QueuePreempted&, const QueuePreempted&) = default;
};

// A head that was tried in this cycle and not admitted.
//   reason                  detail
//   NoFit                   NoMatchingFlavor, ExceedsMaxQuota or WaitingForQuota
//   PreemptionNoCandidates
//   PreemptionGated
//   PendingPreemption       "deferred" when it waits for the victims of others
//   FailedAfterNomination   "no longer fits" or "overlapping"
//   NamespaceMismatch
//   WaitingForPodsReady
//   (empty)                 AdmissionCheck
struct QueueLeft {
  std::string workload, reason;
  bool parked = false;  // inadmissible; false: back in the heap
  std::string detail;
  friend auto operator<=>(const QueueLeft&, const QueueLeft&) = default;
};

// Each list in the order in which entries were processed; heads that had no entry come first.
struct QueueCycle {
  std::vector<QueueAdmitted> admitted;
  std::vector<QueuePreempted> preempted;
  std::vector<QueueLeft> left;
  friend bool operator==(const QueueCycle&, const QueueCycle&) = default;
};

enum class QueueNode : std::uint8_t { kQueue, kCohort };

class QueueJudge {
 public:
  QueueJudge(model::QueueInputs inputs, std::int64_t now_ns);
  QueueJudge(const QueueJudge& other);
  QueueJudge& operator=(const QueueJudge& other);
  ~QueueJudge();

  // Exactly one cycle, one head of each active ClusterQueue.
  QueueCycle cycle(std::int64_t now_ns);
  // Those evicted by earlier cycles are gone: their quota is free, they wait again.
  void evictions_done();
  void finish(const std::string& workload);       // "ns/name"; leaves, from wherever it is
  void add(const model::WorkloadSpec& workload);  // arrives; holding when it has an admission
  void ready(const std::string& workload);        // its pods are

  // Empty when every workload is where it may be and usage adds up the tree, also step by step.
  std::string check() const;

  // "heap", "parked", "holding", "leaving" (evicted, still holding), "out", or "gone".
  std::string place(const std::string& workload) const;
  std::vector<std::string> workloads() const;
  const model::WorkloadSpec& spec(const std::string& workload) const;  // one of workloads()

  // Figures as the holders are now. Unlimited is INT64_MAX; 0 for what does not exist.
  std::int64_t subtree_quota(QueueNode kind, const std::string& name, const std::string& flavor,
                             const std::string& resource) const;
  std::int64_t usage(QueueNode kind, const std::string& name, const std::string& flavor,
                     const std::string& resource) const;
  std::int64_t available(QueueNode kind, const std::string& name, const std::string& flavor,
                         const std::string& resource) const;
  std::int64_t potential(QueueNode kind, const std::string& name, const std::string& flavor,
                         const std::string& resource) const;
  std::int64_t borrowed(QueueNode kind, const std::string& name, const std::string& flavor,
                        const std::string& resource) const;                    // U - S, at least 0
  std::int64_t weighted_share(QueueNode kind, const std::string& name) const;  // as published
  bool active(const std::string& queue) const;

 private:
  std::unique_ptr<quota::Book> book_;
};

}  // namespace berth::judging
