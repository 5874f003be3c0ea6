// The one decision cycle. Plan, controller, simulation and explanation call only this.
//
// decide() is a pure function of the snapshot, the placer's policy, the time and, where there are
// some, the turns: the same give the same decision, byte for byte. Beside the policy the Placer
// holds caches only; a fresh one changes nothing but time.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "decide/queueing.h"
#include "decide/schedule/placer.h"
#include "decide/schedule/policy.h"
#include "decide/turns.h"
#include "model/cluster_state.h"
#include "model/decision.h"
#include "model/snapshot_builder.h"

namespace berth::decide {

struct Options {
  bool certificates = true;  // prove every "no"; without them only verdict, reason and message
  // For a controller, whose decisions take time to happen; a plan assumes that victims are gone at
  // once. Live,
  // - preemptions and evictions are asked for, and whoever they are for waits
  //   (WaitingForPreemptedWorkloads) until the objects say that the victims are gone. A placement
  //   or an admission with after_preemption says where it will be: do not carry it out, the next
  //   decision makes it again, or for good. The same victims are named again until they terminate
  //   (pods) or have the condition Evicted (workloads), so evict only those that do not leave yet;
  // - pods that terminate hold their room; a workload that fits without them waits for them and
  //   takes no further victims;
  // - workloads that are Evicted hold quota and nodes until none of their pods is bound; then they
  //   stand in Decision::released, and their quota is free in this very decision;
  // - run() decides pods once and queues until nothing changes. The builder is used up: give it a
  //   fresh one or a copy.
  // Admissions of queues bind no pods by themselves where pods are yet to be made: keep the
  // placements of an admitted workload as its seats (model::WorkloadSpec::seats, annotation
  // berth.dev/seats), then its room stays and its pods get their node and devices as placements of
  // a later decision, one for each pod that exists.
  bool live = false;
  // Names ("ns/name") of the workloads whose "no" is told; those of others have no reason, and
  // those of queues no outcome. For trials of one workload: what is placed and evicted is the same.
  // Null: everybody's.
  const std::set<std::string>* told = nullptr;
  bool verdicts_only = false;  // nobody's reason, nor how queues stand, nor Run::due_ns
  // For decide(): where there is more to do than one cycle should take, part of it is left to the
  // next ones, which this remembers. Null: all of it is done at once.
  Turns* turns = nullptr;
};

model::Decision decide(const model::ClusterSnapshot& snapshot, std::int64_t now_ns,
                       schedule::Placer& placer, Options options = {});

// Carries a decision out on the builder: victims are pending again, placements are bound.
void apply(const model::Decision& decision, model::SnapshotBuilder& builder);

// Cycles until nothing is placed or evicted any more, at most max_cycles. Placements and
// preemptions of all cycles in order; outcomes are those of the last cycle in which each workload
// was decided. A workload that was placed and evicted again shows as waiting. With queues, pods of
// no queue come first in a cycle, then one head of each queue.
struct Run {
  model::Decision decision;
  int cycles = 0;
  bool stable = false;
  // When time alone may change the decision: a backoff ends, a timeout strikes. INT64_MAX: never.
  std::int64_t due_ns = INT64_MAX;
};
Run run(model::SnapshotBuilder& builder, const model::PlacementPolicy& policy, std::int64_t now_ns,
        int max_cycles, Options options = {}, const QueueSetting* queues = nullptr);
// The same by a placer that has served copies of the builder before, and learns this one's mix:
// what it knows of nodes, rules and demands is not worked out again. It numbers kinds of nodes as
// it meets them: give it copies with the same nodes only.
Run run(model::SnapshotBuilder& builder, schedule::Placer& placer, std::int64_t now_ns,
        int max_cycles, Options options = {}, const QueueSetting* queues = nullptr);

}  // namespace berth::decide
