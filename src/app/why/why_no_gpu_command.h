// berth why-no-gpu: why a pod has no GPU though it should (people/why/no_gpu.h,
// docs/why-no-gpu.md).
//
// Asks a cluster for four objects: the pod, its Node, its GpuNode and its RuntimeClass; with -f all
// come from files. With node_local the status of the agent on this machine is looked at as well.
#pragma once

#include <string>

#include "app/views/cluster_view.h"

namespace berth::app {

struct NoGpuArguments {
  std::string pod;  // "NAME" or "NAMESPACE/NAME"
  ViewOptions view;
  std::string output = "table";
  bool node_local = false;
  std::string state_dir = "/var/lib/berth";
};

// Exit code: that of the answer, 1 no such pod or nothing to look at, 2 the command line is wrong.
int why_no_gpu_command(const NoGpuArguments& args, Terminal& terminal);

}  // namespace berth::app
