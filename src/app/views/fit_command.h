// berth fit: would a workload start now, when, or never, and why.
//
// A workload that does not exist is put beside those that do, last in line among its priority, and
// the decision that the controller makes is made on that. "When" comes from what running pods
// declare (activeDeadlineSeconds, of queues maximumExecutionTimeSeconds); where the room needs a
// pod that declares nothing, the answer is unknown.
#pragma once

#include <string>

#include "app/views/view_screen.h"

namespace berth::app {

struct FitArguments {
  ViewArguments show;
  int gpus = 1;  // of each pod
  int pods = 1;
  std::string model, topology, queue, priority_class;
  std::string cpu, memory;  // of each pod; empty: it asks for none
};

// 0 now, 10 not now, 30 never, 1 not reached or not readable, 2 wrong options.
int fit_command(const FitArguments& arguments, Terminal& terminal);

}  // namespace berth::app
