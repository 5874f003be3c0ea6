// The GPU rules on one node: what fits, what the kubelet admits, which devices.
#pragma once

#include <optional>
#include <vector>

#include "judge/state.h"

namespace berth::judging {

// Milli that one device or share of the demand takes on this node; 0 for MIG slots and for nodes
// that cannot serve the kind at all.
int unit_milli(const model::GpuDemandSpec& demand, const model::NodeSpec& node);

enum class Devices { kUsable, kAll };  // kAll: unhealthy and reserved ones count as usable

// How many devices, shares or slots of the demand's kind are free; a demand is served when they
// reach its count.
int free_units(const NodeState& node, const model::GpuDemandSpec& demand, Devices devices);
bool serves(const NodeState& node, const model::PodSpec& pod, Devices devices);

// The kubelet's Topology Manager, for a pod that the usable devices serve.
bool numa_admits(const NodeState& node, const model::PodSpec& pod);

// The devices by the rule "Which GPUs"; nothing when they cannot serve, or (obey_numa) when the
// kubelet refuses. A device is listed once for each share or slot taken on it.
std::optional<std::vector<Taken>> choose_devices(const NodeState& node, const model::PodSpec& pod,
                                                 Devices devices = Devices::kUsable,
                                                 bool obey_numa = true);

}  // namespace berth::judging
