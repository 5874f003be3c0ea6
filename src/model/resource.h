// What a node offers to the kubelet: one resource name and the devices behind it.
//
// Made by node/advertise/resources.h; read by node/allocate/, edge/kubelet/ and node/monitor/. Ids
// are those of NVIDIA's plugin ("GPU-...", "MIG-...", "GPU-...::3"), so that the kubelet's
// checkpoint survives the swap.
#pragma once

#include <string>
#include <vector>

namespace berth::model {

struct OfferedDevice {
  std::string id;    // as the kubelet knows it; unique in the resource, at most 63 bytes
  std::string uuid;  // of the GPU or MIG instance: the id without "::N"
  int gpu = 0;       // index of the physical GPU
  int mig = -1;      // place in GpuDevice::mig; -1: the whole GPU
  int replica = -1;  // N of "::N"; -1: not shared
  int numa = -1;
  friend bool operator==(const OfferedDevice&, const OfferedDevice&) = default;
};

struct OfferedResource {
  std::string name;          // "nvidia.com/gpu", "nvidia.com/mig-1g.18gb", "nvidia.com/gpu.shared"
  std::string profile;       // of MIG; empty: whole GPUs
  int replicas = 1;          // of each device; 1: not shared
  bool at_most_one = false;  // failRequestsGreaterThanOne
  std::vector<OfferedDevice> devices;  // by gpu, mig, replica
  friend bool operator==(const OfferedResource&, const OfferedResource&) = default;
};

}  // namespace berth::model
