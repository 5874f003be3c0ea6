#include "node/allocate/grant.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "kinds/readers.h"

namespace berth::allocate {
namespace {

using kinds::quoted;
using model::ContainerGrant;
using model::GpuInventory;
using model::OfferedDevice;
using model::OfferedResource;

// Where the container runtime of NVIDIA looks for a device list that is made of mounts.
constexpr std::string_view kMountRoot = "/var/run/nvidia-container-devices";

// One GPU or MIG instance, once, however many replicas of it were asked for.
struct Given {
  const OfferedDevice* device = nullptr;
  std::size_t place = 0;  // of its GPU in the inventory
  std::string name;       // in the device list: UUID or index
};

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ",") + word;
  return out;
}

Result<std::size_t> place_of(const GpuInventory& inventory, const OfferedDevice& device) {
  for (std::size_t i = 0; i < inventory.gpus.size(); ++i) {
    const model::GpuDevice& gpu = inventory.gpus[i];
    if (gpu.index != device.gpu) continue;
    if (device.mig < 0 && gpu.uuid == device.uuid) return i;
    const auto mig = static_cast<std::size_t>(device.mig);
    if (device.mig >= 0 && mig < gpu.mig.size() && gpu.mig[mig].uuid == device.uuid) return i;
  }
  return Error(Code::kUnavailable, "device " + device.id + " is no longer there");
}

Result<std::vector<Given>> find_devices(const GpuInventory& inventory,
                                        const OfferedResource& resource,
                                        const std::vector<std::string>& ids,
                                        const GrantRules& rules) {
  if (ids.empty()) return invalid(resource.name + ": no devices are asked for");
  std::set<std::string_view> wanted;
  for (const std::string& id : ids) {
    if (!wanted.insert(id).second) return invalid(resource.name + ": " + quoted(id) + " twice");
  }
  std::vector<Given> out;
  bool shared = false;
  for (const OfferedDevice& device : resource.devices) {
    if (wanted.erase(device.id) == 0) continue;
    shared = shared || device.replica >= 0;
    // Replicas of one device stand side by side.
    if (!out.empty() && out.back().device->uuid == device.uuid) continue;
    BERTH_TRY(const std::size_t place, place_of(inventory, device));
    std::string name = device.uuid;
    if (rules.by_index) {
      name = std::to_string(device.gpu);
      if (device.mig >= 0) name += ":" + std::to_string(device.mig);
    }
    out.push_back({&device, place, std::move(name)});
  }
  if (!wanted.empty()) {
    return Error(Code::kNotFound,
                 resource.name + ": there is no device " + quoted(*wanted.begin()));
  }
  if (resource.at_most_one && shared && ids.size() > 1) {
    return invalid(resource.name + ": found " + std::to_string(ids.size()) +
                   " devices, want at most 1 of a shared resource (failRequestsGreaterThanOne)");
  }
  return out;
}

std::vector<std::string> cdi_names(const std::vector<Given>& given, const GrantRules& rules) {
  std::vector<std::string> out;
  for (const Given& g : given) out.push_back(rules.cdi_kind + "=" + g.name);
  out.insert(out.end(), rules.cdi_extras.begin(), rules.cdi_extras.end());
  return out;
}

void add_mounts(const std::vector<Given>& given, const GrantRules& rules, ContainerGrant& out) {
  const std::string root(kMountRoot);
  out.environment["NVIDIA_VISIBLE_DEVICES"] = root;
  const auto add = [&](const std::string& name) {
    out.mounts.push_back({.container = root + "/" + name, .host = "/dev/null", .read_only = false});
  };
  for (const Given& g : given) add(g.name);
  for (int channel : rules.imex_channels) add("imex/" + std::to_string(channel));
}

void add_nodes(const std::vector<Given>& given, const GrantRules& rules, ContainerGrant& out) {
  std::set<std::string> seen;
  const auto add = [&](const std::string& path) {
    if (!seen.insert(path).second) return;
    auto host = rules.host_paths.find(path);
    out.nodes.push_back({.container = path,
                         .host = host == rules.host_paths.end() ? path : host->second,
                         .permissions = "rw"});
  };
  for (const std::string& path : rules.control_nodes) add(path);
  for (const Given& g : given) {
    if (g.place < rules.gpu_nodes.size()) {
      for (const std::string& path : rules.gpu_nodes[g.place]) add(path);
    }
    if (g.device->mig < 0 || g.place >= rules.mig_nodes.size()) continue;
    const auto& instances = rules.mig_nodes[g.place];
    const auto mig = static_cast<std::size_t>(g.device->mig);
    if (mig >= instances.size()) continue;
    for (const std::string& path : instances[mig]) add(path);
  }
  for (int channel : rules.imex_channels) {
    add("/dev/nvidia-caps-imex-channels/channel" + std::to_string(channel));
  }
}

}  // namespace

Result<ContainerGrant> grant(const GpuInventory& inventory, const OfferedResource& resource,
                             const std::vector<std::string>& ids, const GrantRules& rules,
                             const std::string& annotation_id) {
  BERTH_TRY(const std::vector<Given> given, find_devices(inventory, resource, ids, rules));
  ContainerGrant out;
  if (rules.cdi_annotations || rules.cdi_cri) {
    std::vector<std::string> names = cdi_names(given, rules);
    if (rules.cdi_annotations) {
      out.annotations[rules.cdi_annotation_prefix + "nvidia-device-plugin_" + annotation_id] =
          joined(names);
    }
    if (rules.cdi_cri) out.cdi = std::move(names);
  }
  // With CDI alone the specs say the rest.
  if (!rules.env_var && !rules.volume_mounts) return out;
  if (rules.env_var) {
    std::vector<std::string> names, channels;
    for (const Given& g : given) names.push_back(g.name);
    for (int channel : rules.imex_channels) channels.push_back(std::to_string(channel));
    out.environment["NVIDIA_VISIBLE_DEVICES"] = joined(names);
    if (!channels.empty()) out.environment["NVIDIA_IMEX_CHANNELS"] = joined(channels);
  }
  if (rules.volume_mounts) add_mounts(given, rules, out);
  if (rules.pass_device_specs) add_nodes(given, rules, out);
  if (rules.gdrcopy) out.environment["NVIDIA_GDRCOPY"] = "enabled";
  if (rules.gds) out.environment["NVIDIA_GDS"] = "enabled";
  if (rules.mofed) out.environment["NVIDIA_MOFED"] = "enabled";
  return out;
}

}  // namespace berth::allocate
