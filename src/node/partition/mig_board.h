// The MIG side of a machine without a driver: what simulated and recorded sources have in common.
// It keeps the GPU instances, and changes an inventory as a driver would. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/device.h"
#include "node/partition/mig_gpu.h"

namespace berth::partition {

class MigBoard {
 public:
  // Geometries are those of the products (usual_geometry); unknown ones with MIG have seven slices.
  explicit MigBoard(const model::GpuInventory& inventory);

  const std::vector<MigGpu>& gpus() const { return gpus_; }
  // As MigDriver's; what changed is written into the inventory that it was made from. half: see
  // apply_step().
  Status carry_out(const MigStep& step, model::GpuInventory& inventory, bool half = false);

 private:
  std::vector<MigGpu> gpus_;
  std::uint32_t made_ = 0;
};

}  // namespace berth::partition
