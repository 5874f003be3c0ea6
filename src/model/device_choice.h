// Which GPUs of a node: the rules of docs/placement.md, "Which GPUs", exact for up to 16 devices.
//
// Used by placement and by the kubelet's preferred allocation alike, so that both pick the same
// devices. Pure. Whole devices: every subset is weighed (at most 12,870 for 8 of 16, well below 1
// ms).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/device.h"
#include "model/node.h"
#include "model/shape.h"

namespace berth::model {

// Free MIG slots of the demanded profile on each device; all 0 where devices are not known.
using MigFree = std::array<std::uint8_t, kMaxGpusPerNode>;

// The devices for the demand, or nothing when it does not fit. A demand without GPUs gets an empty
// take. MIG slots on a node whose devices are not known give an empty take too.
std::optional<GpuTake> choose_gpus(const NodeInfo& info, const NodeState& state,
                                   const Demand& demand, const MigFree& mig_free = {});

// Whole devices only: the best count of those in free, as a mask; 0 when there are too few or NUMA
// alignment refuses. must: devices of free that the choice has to contain.
std::uint16_t choose_whole(const NodeInfo& info, std::uint16_t free, const Demand& demand,
                           std::uint16_t must = 0);

// GpuSpec::nvlink_clique of each GPU, by its place in the inventory: numbered from 0, -1 without
// NVLink. A GPU joins the first clique whose members it is all linked to, in the order of indices,
// so a switch makes one clique, bridges make pairs, and a cube mesh its two fully linked halves.
std::vector<int> nvlink_cliques(const GpuInventory& inventory);

}  // namespace berth::model
