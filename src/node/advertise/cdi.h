// CDI specs: what a container gets together with a device. Pure: the files of the driver were found
// by edge/host/host.h.
//
// Devices are named by UUID, by index ("0", "1:0" for MIG) and "all"; kind
// "k8s.device-plugin.nvidia.com/gpu", as NVIDIA's plugin names them in its answers. No hooks:
// nothing runs inside a container's root. cdiVersion is the lowest that the content needs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/device.h"
#include "node/advertise/plugin_config.h"

namespace berth::advertise {

struct DriverFiles {
  struct Mount {
    std::string host, container;
    friend bool operator==(const Mount&, const Mount&) = default;
  };
  std::vector<Mount> libraries, binaries, firmware, configs;  // by container path
  std::vector<Mount> for_loaders;          // libraries once more, where loaders of images look
  std::vector<Mount> sockets;              // persistenced, fabricmanager: also noexec
  std::vector<std::string> control_nodes;  // "/dev/nvidiactl", ...: those that exist
  std::string dev_root;  // control nodes and caps are below it on the host; empty: at "/"
  struct GpuNodes {
    std::vector<Mount> nodes;  // host and container path: /dev/nvidia0, /dev/dri/card1
    std::vector<std::vector<std::string>>
        mig_caps;  // by place in GpuDevice::mig: /dev/nvidia-caps/...
    friend bool operator==(const GpuNodes&, const GpuNodes&) = default;
  };
  std::vector<GpuNodes> gpus;  // as the inventory's
  // What can come with a GPU besides; those that this machine has.
  struct Extra {
    std::string what;                 // "gds", "gdrcopy", "mofed", "imex-channel"
    std::string device;               // "all", or the channel
    std::vector<Mount> nodes, files;  // by container path; never without nodes
    friend bool operator==(const Extra&, const Extra&) = default;
  };
  std::vector<Extra> extras;
  friend bool operator==(const DriverFiles&, const DriverFiles&) = default;
};

inline constexpr const char* kCdiKind = "k8s.device-plugin.nvidia.com/gpu";

// JSON, the same for the same input. MIG GPUs have their instances as devices and not themselves,
// but under "all". An inventory without GPUs gives an empty text: there is nothing to write.
std::string cdi_spec(const model::GpuInventory& inventory, const DriverFiles& files);

// The same for one that comes with a GPU: kind "k8s.device-plugin.nvidia.com/gds".
std::string cdi_spec(const DriverFiles::Extra& extra);

// Of what the configuration wants besides GPUs, what this machine has. What it does not have is a
// warning, and containers go without it: one configuration serves unlike nodes. An error where the
// configuration requires it.
struct Extras {
  std::vector<DriverFiles::Extra> served;
  std::vector<std::string> warnings;
};
Result<Extras> choose_extras(const PluginConfig& config, const DriverFiles& files);
std::string cdi_name(const DriverFiles::Extra& extra);

std::string cdi_name(const std::string& device);  // "k8s.device-plugin.nvidia.com/gpu=GPU-..."

}  // namespace berth::advertise
