// berth status, berth gpus and berth doctor: the fleet, its GPUs, its troubles.
#pragma once

#include "app/views/view_screen.h"

namespace berth::app {

struct GpusArguments {
  ViewArguments show;
  bool tree = false;
  bool devices = false;  // every GPU on a line of its own
};

// Exit codes of status and gpus: 0 shown, 1 not reached or not readable, 2 wrong options.
int status_command(const ViewArguments& arguments, Terminal& terminal);
int gpus_command(const GpusArguments& arguments, Terminal& terminal);
// 0 healthy, 10 warnings, 40 errors, 1 and 2 as above.
int doctor_command(const ViewArguments& arguments, Terminal& terminal);

}  // namespace berth::app
