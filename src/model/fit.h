// Does a demand fit a node's free amounts, and how often? The arithmetic of docs/placement.md,
// without labels, taints or other pods. Pure; a few nanoseconds each, except where NUMA alignment
// is simulated.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "model/node.h"
#include "model/shape.h"

namespace berth::model {

// Milli of one device that the demand takes on this node; 0 where it cannot be served at all.
inline int device_milli(const NodeInfo& info, const Demand& demand) {
  using Kind = GpuDemandSpec::Kind;
  switch (demand.kind) {
    case Kind::kNone:
    case Kind::kMig:
      return 0;
    case Kind::kWhole:
      return info.gpu_milli;
    case Kind::kShared:
      return info.shared_milli;
    case Kind::kFraction:
      return demand.milli;
    case Kind::kMemory:
      if (info.gpu_memory_mib <= 0 || demand.memory_mib > info.gpu_memory_mib) return 0;
      return static_cast<int>((demand.memory_mib * kMilliPerGpu + info.gpu_memory_mib - 1) /
                              info.gpu_memory_mib);
  }
  return 0;
}

// Shares go one by one onto devices; fractions need different devices.
inline bool takes_shares(const NodeInfo& info, const Demand& demand) {
  using Kind = GpuDemandSpec::Kind;
  return demand.kind == Kind::kShared || (demand.kind == Kind::kWhole && info.shares_per_gpu > 1);
}

// The GPUs constraint on all devices, or on the healthy and unreserved ones.
enum class Devices : std::uint8_t { kAll, kUsable };
bool fits_gpus(const NodeInfo& info, const NodeState& state, const Demand& demand, Devices devices);

// How the kubelet's Topology Manager would serve the pod from these whole devices: one request for
// any subset of the needed width; several containers fix how many come from each NUMA node.
struct NumaServed {
  bool ok = false;
  bool one_request = true;
  int width = 1;
  std::vector<std::uint16_t> masks;  // devices by NUMA node
  std::vector<int> taken;            // by NUMA node
  bool admits(std::uint16_t set) const;
};
NumaServed numa_serve(const NodeInfo& info, std::uint16_t free_whole, const Demand& demand);
inline bool numa_admits(const NodeInfo& info, std::uint16_t free_whole, const Demand& demand) {
  return numa_serve(info, free_whole, demand).ok;
}
inline bool numa_policy_applies(const NodeInfo& info) {
  return info.shares_per_gpu == 1 && info.numa_known &&
         (info.numa_policy == NumaPolicy::kRestricted ||
          info.numa_policy == NumaPolicy::kSingleNumaNode);
}
inline bool numa_applies(const NodeInfo& info, const Demand& demand) {
  return demand.kind == GpuDemandSpec::Kind::kWhole && numa_policy_applies(info);
}

bool fits_extended(const NodeInfo& info, const NodeState& state, const Demand& demand);

// Everything a placement takes: cpu .. NUMA policy.
inline bool fits(const NodeInfo& info, const NodeState& state, const Demand& demand) {
  if ((demand.cpu > state.cpu && demand.cpu > 0) ||
      (demand.memory > state.memory && demand.memory > 0) ||
      (demand.ephemeral > state.ephemeral && demand.ephemeral > 0) || state.pods < 1) {
    return false;
  }
  if (!demand.extended.empty() && !fits_extended(info, state, demand)) return false;
  if (!demand.asks_gpu()) return true;
  if (!fits_gpus(info, state, demand, Devices::kUsable)) return false;
  return !numa_applies(info, demand) ||
         numa_admits(info, static_cast<std::uint16_t>(state.whole & info.usable), demand);
}

// How many copies fit side by side, at most limit.
int fit_count(const NodeInfo& info, const NodeState& state, const Demand& demand, int limit);

// Takes the demand (with these devices) from the free amounts, or gives it back.
void take(const NodeInfo& info, NodeState& state, const Demand& demand, const GpuTake& gpus);
void give(const NodeInfo& info, NodeState& state, const Demand& demand, const GpuTake& gpus);

NodeState empty_state(const NodeInfo& info);  // nothing placed
// Free milli of the devices in mask (NodeInfo::usable, ::devices).
int free_milli(const NodeState& state, std::uint16_t mask);

}  // namespace berth::model
