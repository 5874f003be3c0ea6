// Placement of a workload: a pod of its own or a gang, all or nothing, with preemption; or a
// verdict.
//
// Works on a ClusterState that the caller owns (an overlay of the cycle): a placed workload is
// bound there when place() returns, a failed attempt leaves every free amount as it was.
// docs/placement.md defines the rules; the queueing stage calls this for trial placements.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decide/schedule/jobs.h"
#include "decide/schedule/placer.h"
#include "model/cluster_state.h"
#include "model/decision.h"
#include "model/reason.h"

namespace berth::schedule {

// A workload in the state: its pending members (one for a pod of its own) and its gang, or -1.
struct Workload {
  std::string name;  // "ns/name"
  std::int32_t gang = -1;
  std::shared_ptr<const model::GangSpec> terms;  // of members that have no gang in the state
  int priority = 0;
  bool preempts = true;
  std::int64_t created_ns = 0;
  std::vector<model::PodId> pending;  // not gated, in placement order
  int gated = 0;                      // pending members beside those
  std::vector<model::PodId> running;
  int min_pending = 1;           // so many of pending must be placed, or none
  bool ignore_topology = false;  // what if it asked for no required topology
};

// What must start together; null: a pod of its own.
inline const model::GangSpec* gang_of(const model::ClusterState& state, const Workload& workload) {
  if (workload.gang >= 0) return &state.gang(workload.gang);
  return workload.terms.get();
}

// Pods bound since construction; unbound again on destruction unless kept.
class Reservation {
 public:
  explicit Reservation(model::ClusterState& state) : state_(state) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() { rollback(0); }

  void bind(model::PodId id, const Target& target);
  void evict(model::PodId id);         // a bound pod off its node, back on rollback
  void give_back(std::size_t victim);  // an evicted pod onto its node again
  std::size_t mark() const { return steps_.size(); }
  void rollback(std::size_t mark);
  void keep() { steps_.clear(); }

  struct Step {
    model::PodId id = 0;
    bool evicted = false;
    std::uint32_t slot = 0;
    model::GpuTake gpus;
    bool breaks_budget = false;
  };
  const std::vector<Step>& steps() const { return steps_; }
  std::vector<Step> placed() const;

 private:
  model::ClusterState& state_;
  std::vector<Step> steps_;
};

struct Placed {
  std::vector<Reservation::Step> pods;     // bound, in order
  std::vector<Reservation::Step> victims;  // evicted, and where they were
};

// The order in which members are placed.
void sort_members(const model::ClusterState& state, std::vector<model::PodId>& pods);

// Places the workload's pending pods in the state, at least min_pending of them; empty: it does not
// fit.
Placed place(Placer& placer, model::ClusterState& state, const Workload& workload);

// The same with victims of lower priority, when place() finds nothing. budgets: what this cycle has
// evicted so far; the victims are added.
Placed place_preempting(Placer& placer, model::ClusterState& state, const Workload& workload,
                        BudgetCount& budgets, std::int64_t now_ns);

// A proof that the workload can never start: it would not fit if nothing ran.
bool never_fits(const model::ClusterState& state, const Workload& workload);

// The verdict, reason, message and (when asked) certificate of a workload that place() refused.
// With unplaced: of a gang whose other members were placed; that member is the first that was not.
model::Outcome explain_no(Placer& placer, const model::ClusterState& state,
                          const Workload& workload, bool certificate,
                          std::optional<model::PodId> unplaced = std::nullopt);

}  // namespace berth::schedule
