// What one machine has for GPU work, as its probes found it: GPUs, MIG instances, NICs, PCI
// devices.
//
// Written by a source (node/discover/gpu_source.h) and by edge/host/; read by everything on the
// node: resources, labels, CDI specs, allocation, health and metrics. Plain values, equal when the
// machine is. Positions that the probe could not tell are -1, amounts 0, texts empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace berth::model {

// What an inventory may hold.
inline constexpr int kMaxGpuIndex = 63;
inline constexpr std::size_t kMaxUuidBytes = 63;
inline constexpr std::size_t kMaxNameBytes = 96;
inline constexpr std::size_t kMaxMigPerGpu = 64;

struct MigEngines {
  int copy = 0, decoder = 0, encoder = 0, jpeg = 0, ofa = 0;
  friend bool operator==(const MigEngines&, const MigEngines&) = default;
};

// One compute instance that containers can use. Identified by its UUID: instance ids are reused in
// no order.
struct MigInstance {
  std::string uuid;     // "MIG-..."
  std::string profile;  // "1g.18gb", "1g.18gb+me", "1c.3g.71gb"
  int gpu_instance = 0, compute_instance = 0;
  int start = -1, slots = 0;  // placement in the memory grid
  std::int64_t memory_mib = 0;
  int multiprocessors = 0;
  int gpu_slices = 0, compute_slices = 0;  // "2g", "1c."
  MigEngines engines;
  friend bool operator==(const MigInstance&, const MigInstance&) = default;
};

struct GpuDevice {
  int index = 0;  // as the driver counts; unique, ascending
  int minor = 0;  // N of /dev/nvidiaN
  std::string uuid;
  std::string name;              // "NVIDIA H200", as the driver spells it
  std::string pci_bus_id;        // "0000:18:00.0", lower case, four-digit domain
  std::uint32_t pci_device = 0;  // device and vendor id, "233510de"
  std::int64_t memory_mib = 0;
  int compute_major = 0, compute_minor = 0;  // compute capability
  int numa = -1;
  int pcie_switch = -1;        // numbered from 0 within the machine
  std::vector<int> nvlinks;    // links to each GPU, by index; empty: none. Over a switch: to all
  std::string fabric_cluster;  // cluster UUID of a multi-node NVLink fabric; empty: none
  int fabric_clique = -1;
  bool mig_capable = false, mig_enabled = false;
  std::vector<MigInstance> mig;  // by gpu instance, then compute instance
  friend bool operator==(const GpuDevice&, const GpuDevice&) = default;
};

struct NicDevice {
  std::string name;  // "mlx5_0"
  std::string pci_bus_id;
  std::string link_layer;  // "InfiniBand" or "Ethernet"
  int numa = -1, pcie_switch = -1;
  friend bool operator==(const NicDevice&, const NicDevice&) = default;
};

struct PciDevice {
  std::string bus_id;
  std::uint32_t class_code = 0;  // 0x030200
  std::uint16_t vendor = 0, device = 0, subsystem_vendor = 0, subsystem_device = 0;
  int numa = -1;
  bool sriov = false;
  friend bool operator==(const PciDevice&, const PciDevice&) = default;
};

// What the driver answers for.
struct GpuInventory {
  std::string driver_version;  // "580.159.04"
  int cuda_major = 0, cuda_minor = 0;
  std::vector<GpuDevice> gpus;  // by index
  friend bool operator==(const GpuInventory&, const GpuInventory&) = default;
};

// What the machine has without asking the driver.
struct HostFacts {
  std::string machine;                            // DMI product name
  std::string kernel;                             // "6.1.0-13-amd64"
  std::map<std::string, std::string> os_release;  // ID, VERSION_ID
  std::vector<PciDevice> pci;                     // by bus id
  std::vector<NicDevice> nics;                    // by name
  friend bool operator==(const HostFacts&, const HostFacts&) = default;
};

}  // namespace berth::model
