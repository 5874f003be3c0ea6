// What GPUs measure and what happens to them, as a source tells it (node/discover/gpu_source.h).
// Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::model {

// What the driver thinks must be done (NVML field 230).
enum class RecoveryAction : std::uint8_t {
  kNone,
  kGpuReset,
  kNodeReboot,
  kDrainP2p,
  kDrainAndReset,
  kRecoverImex,
  kUnknown,
};
std::string_view name(RecoveryAction action);

// Numbers of one GPU, or of one MIG instance. What the hardware does not tell is absent.
struct GpuCounters {
  std::optional<double> sm_clock_mhz, memory_clock_mhz;
  std::optional<double> gpu_temperature, memory_temperature;  // degrees C
  std::optional<double> power_w;
  std::optional<std::uint64_t> energy_mj;  // since boot
  std::optional<double> gpu_utilization, memory_utilization, encoder_utilization,
      decoder_utilization;  // percent
  std::optional<std::uint64_t> memory_free_mib, memory_used_mib, memory_reserved_mib;
  std::optional<std::uint64_t> pcie_replays;
  std::optional<std::uint64_t> nvlink_bandwidth;  // sum of all links' counters
  std::optional<std::uint64_t> remapped_correctable, remapped_uncorrectable;
  std::optional<std::uint64_t> ecc_single_volatile, ecc_double_volatile, ecc_single_aggregate,
      ecc_double_aggregate;
  std::optional<std::uint64_t> throttle_reasons;  // the driver's mask of clocks-event reasons
  // Profiling (GPM): ratios 0..1 and bytes per second.
  std::optional<double> graphics_active, sm_active, sm_occupancy, tensor_active, dram_active,
      fp64_active, fp32_active, fp16_active;
  std::optional<double> pcie_tx_bytes, pcie_rx_bytes, nvlink_tx_bytes, nvlink_rx_bytes;
};

// What decides about health, besides events.
struct GpuCondition {
  RecoveryAction recovery = RecoveryAction::kNone;
  bool remap_pending = false, remap_failed = false;
  int nvlinks_up = 0, nvlinks_down = 0;
  bool fabric_trouble = false;    // registered with a fabric that reports an error
  bool thermal_slowdown = false;  // by hardware
};

struct GpuProcess {
  int pid = 0;
  std::uint64_t memory_mib = 0;
  std::optional<double> utilization;  // percent of the GPU, where the driver tells
  std::string mig_uuid;               // empty: the whole GPU
};

enum class GpuAnswer : std::uint8_t {
  kFine,    // condition and counters are of now
  kSilent,  // the driver did not answer in time: nothing is known
  kLost,    // the driver says that the GPU is gone
  kError,   // it answered with another error, see error
};

struct GpuReading {
  std::string uuid;
  GpuAnswer answer = GpuAnswer::kFine;
  std::string error;
  GpuCondition condition;
  GpuCounters counters;
  std::vector<std::pair<std::string, GpuCounters>> mig;  // by instance UUID
  std::vector<GpuProcess> processes;
};

struct GpuEvent {
  enum class Kind : std::uint8_t {
    kXid,             // code: the Xid
    kRecoveryAction,  // the recovery action changed: read again
    kUnavailable,     // the GPU became unavailable
    kEccDouble,
    kEccStorm,
    kRemapped,
    kRemapFailed,
    kPoison,
    kFatalPoison,
    kMigChanged,  // instances came or went
    kInventory,   // GPUs came or went, or the driver was loaded or unloaded
  };
  Kind kind = Kind::kXid;
  std::string uuid;  // of the GPU; empty: all, or not known (then pci_bus_id may say)
  std::string pci_bus_id;
  int code = 0;
  int gpu_instance = -1, compute_instance = -1;
  int pid = 0;         // 0: not known
  std::string detail;  // the rest of the message, where there is one
  bool from_kernel_log = false;
};
std::string_view name(GpuEvent::Kind kind);

}  // namespace berth::model
