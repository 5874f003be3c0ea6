// Whether an inventory is one that a machine can have. What sources of our own make up, or read
// from a file, goes through this before anything is built on it. Pure; O(devices).
#pragma once

#include "base/result.h"
#include "model/device.h"

namespace berth::discover {

// All that is wrong, each with its path: gpus[1].uuid: "GPU-1" twice, want each once.
Status check_inventory(const model::GpuInventory& inventory);

}  // namespace berth::discover
