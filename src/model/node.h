// A node in the form decisions run on: what is fixed (NodeInfo) and what placements change
// (NodeState).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/interner.h"
#include "model/spec.h"

namespace berth::model {

// Amounts beyond cpu, memory, ephemeral storage and pods: at most this many kinds on a node.
inline constexpr int kMaxExtended = 8;

// Constant between changes of the Node object. Labels are interned: a large cluster repeats them.
// What every fit asks for stands first, on one cache line.
struct alignas(64) NodeInfo {
  std::uint16_t devices = 0;  // bit per device that serves whole GPUs and shares (not MIG)
  std::uint16_t usable = 0;   // of those: healthy and not reserved
  std::uint16_t mig = 0;      // partitioned devices
  std::uint16_t mig_usable = 0;
  // Of a device, what one nvidia.com/gpu (.shared) takes: 1000 on a node that does not share, 0
  // where nothing goes by that name.
  std::int16_t gpu_milli = kMilliPerGpu, shared_milli = 0;
  bool numa_known = false;  // of every device
  NumaPolicy numa_policy = NumaPolicy::kNone;
  NumaScope numa_scope = NumaScope::kContainer;
  int shares_per_gpu = 1;
  std::int64_t gpu_memory_mib = 0;  // of the first device

  std::string name;
  std::vector<std::pair<SymbolId, SymbolId>> labels;  // key, value; sorted by key id
  std::vector<Taint> taints;
  bool unschedulable = false, ready = true;
  std::int64_t cpu = 0, memory = 0, ephemeral = 0;
  std::int32_t pods = 0;
  std::vector<std::pair<SymbolId, std::int64_t>> extended;  // resource, amount; by resource name
  std::vector<GpuSpec> gpus;
  bool gpus_assumed = false;
  std::string gpu_model;  // of the first device

  int extended_column(SymbolId resource) const {
    for (std::size_t i = 0; i < extended.size(); ++i) {
      if (extended[i].first == resource) return static_cast<int>(i);
    }
    return -1;
  }
};

// What of a node's devices one pod holds: take[g] units of unit milli each; MIG slots have unit 0.
struct GpuTake {
  std::int16_t unit = 0;
  std::array<std::uint8_t, kMaxGpusPerNode> take{};

  bool empty() const { return take == std::array<std::uint8_t, kMaxGpusPerNode>{}; }
  std::vector<int> indices() const {  // ascending; a device once per share or slot held on it
    std::vector<int> out;
    for (int g = 0; g < kMaxGpusPerNode; ++g) {
      out.insert(out.end(), take[static_cast<std::size_t>(g)], g);
    }
    return out;
  }
  int milli() const {
    int total = 0;
    for (auto t : take) total += t * unit;
    return total;
  }
  friend bool operator==(const GpuTake&, const GpuTake&) = default;
};

// What is free now. Small and plain: a scan reads nothing else. Free amounts, a device's too, go
// below zero when bound pods exceed what is there (Kubernetes allows it).
struct alignas(64) NodeState {
  std::int64_t cpu = 0;
  std::int64_t memory = 0;
  std::int32_t pods = 0;
  std::uint16_t whole = 0;                          // bit per non-MIG device with nothing on it
  std::array<std::int16_t, kMaxGpusPerNode> gpu{};  // free milli of non-MIG devices
  std::int64_t ephemeral = 0;
  std::array<std::int64_t, kMaxExtended> extended{};  // by NodeInfo::extended column
};

}  // namespace berth::model
