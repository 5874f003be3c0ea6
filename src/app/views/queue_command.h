// berth queue: the queues, or one of them with everything that waits there.
#pragma once

#include <string>

#include "app/views/view_screen.h"

namespace berth::app {

struct QueueArguments {
  ViewArguments show;
  std::string name;  // a ClusterQueue, or a LocalQueue of the namespace; empty: all
};

// 0 shown, 1 not reached, not readable or no such queue, 2 wrong options.
int queue_command(const QueueArguments& arguments, Terminal& terminal);

}  // namespace berth::app
