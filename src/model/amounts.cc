#include "model/amounts.h"

#include "text/quantity.h"

namespace berth::model {

Amounts amounts_of(const PodSpec& pod) {
  using Kind = GpuDemandSpec::Kind;
  Amounts out = pod.requests;
  const std::int64_t count = pod.gpu.count;
  switch (pod.gpu.kind) {
    case Kind::kNone:
      break;
    case Kind::kWhole:
    case Kind::kMemory:
      out[kGpuResource] += count;
      break;
    case Kind::kFraction:
      out[kGpuResource] += (count * pod.gpu.milli + kMilliPerGpu - 1) / kMilliPerGpu;
      break;
    case Kind::kShared:
      out[kSharedGpuResource] += count;
      break;
    case Kind::kMig:
      out[pod.gpu.mig] += count;
      break;
  }
  return out;
}

bool offers_gpus(const NodeSpec& node) { return node.gpu_names != GpuNames::kShared; }
bool offers_shares(const NodeSpec& node) {
  return node.gpu_names == GpuNames::kShared ||
         (node.gpu_names == GpuNames::kBoth && node.shares_per_gpu > 1);
}

Amounts amounts_of(const NodeSpec& node) {
  Amounts out = node.allocatable;
  for (const GpuSpec& gpu : node.gpus) {
    if (gpu.health != Health::kHealthy || gpu.reserved) continue;
    if (gpu.mig.empty()) {
      if (offers_gpus(node)) out[kGpuResource] += node.shares_per_gpu;
      if (offers_shares(node)) out[kSharedGpuResource] += node.shares_per_gpu;
    }
    for (const MigSlots& slots : gpu.mig) out[slots.resource] += slots.count;
  }
  return out;
}

std::string show_amount(std::string_view resource, std::int64_t amount) {
  if (amount == kUnlimited) return "unlimited";
  if (resource == "cpu") return text::Quantity::from_milli(amount).to_string();
  const bool bytes =
      resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-");
  return text::Quantity::from_units(amount,
                                    bytes ? text::Format::kBinarySI : text::Format::kDecimalSI)
      .to_string();
}

}  // namespace berth::model
