#include "agent/gpu_offer.h"

#include <algorithm>

#include "edge/host/host.h"

namespace berth::agent {

// In a container the host's driver root is mounted somewhere else; outside it is where it is.
advertise::DriverFiles GpuOffer::find_files(const model::GpuInventory& gpus,
                                            const advertise::PluginConfig& config) const {
  const std::string root = host_.root == "/" ? "" : host_.root;
  host::SeenAt seen;
  seen.proc = root + "/proc";
  seen.sys = root + "/sys";
  if (host::is_folder(config.container_driver_root)) {
    seen.driver_root = config.container_driver_root;
    if (config.dev_root.empty() || config.dev_root == config.driver_root) {
      seen.dev_root = config.container_driver_root;
    }
  }
  return host::find_driver_files(config.driver_root, config.dev_root, gpus, host_.simulated, seen);
}

bool GpuOffer::make(const model::GpuInventory& gpus, const advertise::PluginConfig& config) {
  Result<advertise::Offer> made = advertise::offer(gpus, config);
  if (!made.ok()) {
    problem_ = made.error().to_string();
    log_.error("these GPUs cannot be advertised with this configuration", {{"why", problem_}});
    return false;
  }
  files_ = find_files(gpus, config);
  Result<advertise::Extras> besides = advertise::choose_extras(config, files_);
  if (!besides.ok()) {
    problem_ = besides.error().to_string();
    log_.error("what the configuration requires is not here", {{"why", problem_}});
    return false;
  }
  problem_.clear();
  for (const std::string& warning : made->warnings) log_.warn("offer", {{"what", warning}});
  for (const std::string& warning : besides->warnings) log_.warn("offer", {{"what", warning}});
  offer_ = std::move(*made);
  extras_ = std::move(*besides);
  choosers_.clear();
  for (const model::OfferedResource& resource : offer_.resources) {
    choosers_[resource.name] = std::make_unique<allocate::Chooser>(
        gpus, resource, config.shared_policy == advertise::SharedPolicy::kPacked);
  }
  return true;
}

const model::OfferedResource* GpuOffer::find(const std::string& resource) const {
  const auto found =
      std::find_if(offer_.resources.begin(), offer_.resources.end(),
                   [&](const model::OfferedResource& one) { return one.name == resource; });
  return found == offer_.resources.end() ? nullptr : &*found;
}

int GpuOffer::shares_of(int gpu) const {
  int shares = 1;
  for (const model::OfferedResource& resource : offer_.resources) {
    for (const model::OfferedDevice& device : resource.devices) {
      if (device.gpu == gpu) shares = std::max(shares, resource.replicas);
    }
  }
  return shares;
}

Result<std::vector<std::string>> GpuOffer::prefer(const std::string& resource,
                                                  const allocate::Ask& ask,
                                                  const std::vector<allocate::Hint>& hints) const {
  const auto chooser = choosers_.find(resource);
  if (chooser == choosers_.end()) {
    return Error(Code::kNotFound, resource + " is not offered by this node any more");
  }
  BERTH_TRY(allocate::Preference chosen, chooser->second->choose(ask, hints));
  if (!chosen.followed.empty()) {
    log_.debug("the controller's choice is followed", {{"pod", chosen.followed}});
  }
  return std::move(chosen.ids);
}

allocate::GrantRules GpuOffer::grant_rules(const advertise::PluginConfig& config) const {
  using advertise::DeviceList;
  const auto listed = [&](DeviceList way) {
    return std::find(config.device_list.begin(), config.device_list.end(), way) !=
           config.device_list.end();
  };
  allocate::GrantRules out;
  out.env_var = listed(DeviceList::kEnvVar);
  out.volume_mounts = listed(DeviceList::kVolumeMounts);
  out.cdi_annotations = listed(DeviceList::kCdiAnnotations);
  out.cdi_cri = listed(DeviceList::kCdiCri);
  out.by_index = config.device_id == advertise::DeviceId::kIndex;
  out.pass_device_specs = config.pass_device_specs;
  out.gdrcopy = config.gdrcopy;
  out.gds = config.gds;
  out.mofed = config.mofed;
  for (const advertise::DriverFiles::Extra& extra : extras_.served) {
    out.cdi_extras.push_back(advertise::cdi_name(extra));
    if (extra.what == "imex-channel") out.imex_channels = config.imex_channels;
    for (const advertise::DriverFiles::Mount& node : extra.nodes) {
      if (node.host != node.container) out.host_paths[node.container] = node.host;
    }
  }
  out.cdi_annotation_prefix = config.cdi_annotation_prefix;
  out.cdi_kind = advertise::kCdiKind;
  out.control_nodes = files_.control_nodes;
  const auto on_host = [&](const std::string& path) {
    if (!files_.dev_root.empty()) out.host_paths[path] = files_.dev_root + path;
  };
  for (const std::string& path : files_.control_nodes) on_host(path);
  for (const advertise::DriverFiles::GpuNodes& gpu : files_.gpus) {
    for (const std::vector<std::string>& caps : gpu.mig_caps) {
      for (const std::string& path : caps) on_host(path);
    }
    std::vector<std::string> nodes;
    for (const advertise::DriverFiles::Mount& node : gpu.nodes) {
      nodes.push_back(node.container);
      if (node.host != node.container) out.host_paths[node.container] = node.host;
    }
    out.gpu_nodes.push_back(std::move(nodes));
    out.mig_nodes.push_back(gpu.mig_caps);
  }
  return out;
}

}  // namespace berth::agent
