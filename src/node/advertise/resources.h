// Inventory and configuration in, resources out: what NVIDIA's plugin would advertise (node.md
// b.3), and names by model and sharing by device, which it refuses. Pure; O(devices x replicas).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/device.h"
#include "model/resource.h"
#include "node/advertise/plugin_config.h"

namespace berth::advertise {

struct Offer {
  std::vector<model::OfferedResource> resources;  // by name; one without devices is not there
  std::vector<std::string> warnings;  // a MIG GPU without instances, a rule that matched nothing
  friend bool operator==(const Offer&, const Offer&) = default;
};

// An error where the strategy forbids what was found (MIG "single" on unequal instances): the text
// names the GPUs. At most kMaxOffered devices in all.
inline constexpr std::size_t kMaxOffered = 10'000;
Result<Offer> offer(const model::GpuInventory& inventory, const PluginConfig& config);

}  // namespace berth::advertise
