// berth preempted: who had to make room, when, why and for whom.
//
// From what the cluster keeps of it: conditions Evicted and Preempted of Workloads, the condition
// DisruptionTarget of pods, and events, which a cluster forgets after an hour or so. Newest first.
#pragma once

#include <string>

#include "app/views/view_screen.h"

namespace berth::app {

struct PreemptedArguments {
  ViewArguments show;
  std::string name;  // of a Job, Workload or Pod; may be ns/name; empty: all
};

// 0 shown, also when there is nothing; 1 not reached or not readable; 2 wrong options.
int preempted_command(const PreemptedArguments& arguments, Terminal& terminal);

}  // namespace berth::app
