// Which GPUs of a node: the rules of docs/placement.md, "Which GPUs", exact for up to 16 devices.
//
// Used by placement and by the kubelet's preferred allocation alike, so that both pick the same
// devices. Pure. Whole devices: every subset is weighed (at most 12,870 for 8 of 16, well below 1
// ms).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

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
// alignment refuses.
std::uint16_t choose_whole(const NodeInfo& info, std::uint16_t free, const Demand& demand);

}  // namespace berth::model
