// Devices in, the container's grant out, by device list strategy (docs/agent.md). Pure.
//
// Stages do not know one another, so what of the configuration matters comes as GrantRules.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/allocation.h"
#include "model/device.h"
#include "model/resource.h"

namespace berth::allocate {

struct GrantRules {
  bool env_var = true, volume_mounts = false, cdi_annotations = false, cdi_cri = false;
  bool by_index = false;  // deviceIDStrategy: index
  bool pass_device_specs = false;
  bool gdrcopy = false, gds = false, mofed = false;
  std::vector<int> imex_channels;
  std::string cdi_annotation_prefix = "cdi.k8s.io/";
  std::string cdi_kind;                             // "k8s.device-plugin.nvidia.com/gpu"
  std::vector<std::string> cdi_extras;              // names of what comes with every GPU
  std::vector<std::string> control_nodes;           // that exist: "/dev/nvidiactl"
  std::vector<std::vector<std::string>> gpu_nodes;  // by place in the inventory: "/dev/nvidia0"
  std::vector<std::vector<std::vector<std::string>>> mig_nodes;  // by GPU and instance: caps
  std::map<std::string, std::string> host_paths;  // of nodes whose path on the host is another
};

// annotation_id: a UUID of this answer, for the annotation's name. Devices are named in the order
// of the resource and once each, whatever the order of ids. Errors: unknown ids, ids named twice,
// devices that are gone from the inventory, more than one where the resource allows one, an empty
// list.
Result<model::ContainerGrant> grant(const model::GpuInventory& inventory,
                                    const model::OfferedResource& resource,
                                    const std::vector<std::string>& ids, const GrantRules& rules,
                                    const std::string& annotation_id);

}  // namespace berth::allocate
