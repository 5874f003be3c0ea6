// Whether an inventory is one that a machine can have. What sources of our own make up, or read
// from a file, goes through this before anything is built on it. Pure; O(devices).
#pragma once

#include <cstddef>

#include "base/result.h"
#include "model/device.h"

namespace berth::discover {

inline constexpr int kMaxGpuIndex = 63;
inline constexpr std::size_t kMaxUuidBytes = 63;
inline constexpr std::size_t kMaxNameBytes = 96;
inline constexpr std::size_t kMaxMigPerGpu = 64;

// All that is wrong, each with its path: gpus[1].uuid: "GPU-1" twice, want each once.
Status check_inventory(const model::GpuInventory& inventory);

}  // namespace berth::discover
