#include "node/partition/mig_board.h"

#include <algorithm>

#include "kinds/products.h"
#include "kinds/readers.h"

namespace berth::partition {

namespace {

MigGeometry geometry_of(const model::GpuDevice& gpu) {
  if (!gpu.mig_capable && !gpu.mig_enabled) return {};
  const kinds::Product* product = kinds::find_product(gpu.name);
  return usual_geometry(product == nullptr ? 7 : product->mig_slices, gpu.memory_mib);
}

// As the driver's: a UUID that no instance had before. The GPU's own makes it unique.
std::string instance_uuid(const std::string& gpu, std::uint32_t number) {
  std::string hex;
  for (int shift = 28; shift >= 0; shift -= 4) hex += "0123456789abcdef"[number >> shift & 0xf];
  const std::string of_gpu = gpu.starts_with("GPU-") ? gpu.substr(4) : gpu;
  return "MIG-" + hex + "-" + of_gpu.substr(0, 40);
}

}  // namespace

MigBoard::MigBoard(const model::GpuInventory& inventory) {
  for (const model::GpuDevice& gpu : inventory.gpus) {
    gpus_.push_back(mig_gpu_of(gpu, geometry_of(gpu)));
    gpus_.back().capable = gpu.mig_capable || gpu.mig_enabled;
  }
}

Status MigBoard::carry_out(const MigStep& step, model::GpuInventory& inventory, bool half) {
  const auto gpu = std::find_if(gpus_.begin(), gpus_.end(),
                                [&](const MigGpu& one) { return one.uuid == step.gpu; });
  if (gpu == gpus_.end()) return invalid("there is no GPU " + kinds::quoted(step.gpu));
  BERTH_CHECK(apply_step(*gpu, step, instance_uuid(step.gpu, ++made_), half));
  for (model::GpuDevice& device : inventory.gpus) {
    if (device.uuid == step.gpu) write_back(*gpu, device);
  }
  return {};
}

}  // namespace berth::partition
