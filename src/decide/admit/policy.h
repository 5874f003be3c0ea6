// What a site may ask of preemption beyond Kueue's rules. All of it is off by default; then, with
// quota alone deciding, decisions are Kueue's.
#pragma once

#include <cstdint>

namespace berth::admit {

struct Policy {
  bool preemption = true;
  // A holder is nobody's victim before it has run so long.
  std::int64_t min_runtime_ns = 0;
  // A holder whose pods a PodDisruptionBudget protects is nobody's victim.
  bool budgets = false;
  // Whoever borrows waits until those are served who borrow less, not only the first of each queue:
  // what the second of its owner's line would take back at once is not lent.
  bool owners_first = false;
  // Whoever was preempted by another does not preempt that one in turn.
  bool no_ping_pong = false;
  // So often an hour a workload may be preempted; 0: without end.
  int max_evictions_per_hour = 0;
  // Which of several holders goes first, once Kueue's first two rules (those that leave already,
  // then those of other queues) say nothing.
  enum class Victims : std::uint8_t {
    kLowestPriority,  // Kueue: lower priority, then the newest
    kFewestJobs,      // those that free the most, so that few are needed
    kLeastLostWork,   // those that have done the least: amount x time
  };
  Victims victims = Victims::kLowestPriority;
};

}  // namespace berth::admit
