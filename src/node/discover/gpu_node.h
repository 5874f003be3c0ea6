// The GpuNode object from what was found on the machine. Pure.
#pragma once

#include <string>
#include <vector>

#include "kinds/gpu_node.h"
#include "model/device.h"

namespace berth::discover {

// What the agent knows of a GPU besides the driver's facts.
struct GpuStanding {
  bool healthy = true;
  std::string reason;  // of an unhealthy one: "Xid79"
  int shares = 1;
  std::vector<std::string> holders;  // pod UIDs
};

// standing: as inventory.gpus. Products are spelled as labels spell them; NVLink cliques are
// numbered by the lowest index of GPUs that reach one another. At most 16 GPUs: what is beyond is
// left out.
kinds::GpuNode gpu_node(const std::string& node, const model::GpuInventory& inventory,
                        const model::HostFacts& host, const std::vector<GpuStanding>& standing);

}  // namespace berth::discover
