// The one decision cycle. Plan, controller, simulation and explanation call only this.
//
// decide() is a pure function of the snapshot, the placer's policy and the time: the same three
// give the same decision, byte for byte. Beside the policy the Placer holds caches only; a fresh
// one changes nothing but time.
#pragma once

#include <cstdint>

#include "decide/queueing.h"
#include "model/cluster_state.h"
#include "model/decision.h"
#include "model/snapshot_builder.h"
#include "schedule/placer.h"
#include "schedule/policy.h"

namespace berth::decide {

struct Options {
  bool certificates = true;  // prove every "no"; without them only verdict, reason and message
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
};
Run run(model::SnapshotBuilder& builder, const schedule::Policy& policy, std::int64_t now_ns,
        int max_cycles, Options options = {}, const QueueSetting* queues = nullptr);

}  // namespace berth::decide
