#include "openb_berth.h"

#include <fmt/format.h>

#include "decide/schedule/placer.h"
#include "model/snapshot_builder.h"

namespace berth::openb {
namespace {

// Names carry the tie-break order of the experiment: the engine ranks nodes by name.
model::NodeSpec node_of(const Inventory& inventory, const NodeSpec& node, std::size_t rank) {
  model::NodeSpec spec;
  spec.name = fmt::format("node-{:05}", rank);
  spec.allocatable = {
      {"cpu", node.cpu_milli}, {"memory", std::int64_t{node.memory_mib} << 20}, {"pods", 1001}};
  for (int g = 0; g < node.gpus; ++g) {
    spec.gpus.push_back(
        {.index = g, .uuid = "", .model = inventory.models[node.model], .memory_mib = 16384});
  }
  return spec;
}

model::PodSpec pod_of(const Inventory& inventory, const Shape& shape, const Pod& pod,
                      std::size_t serial) {
  model::PodSpec spec;
  spec.ns = "openb";
  spec.name = fmt::format("pod-{}", serial);
  spec.requests = {{"cpu", shape.cpu_milli}, {"memory", std::int64_t{pod.memory_mib} << 20}};
  if (shape.num_gpu == 0) return spec;
  using Kind = model::GpuDemandSpec::Kind;
  spec.gpu = {.kind = shape.gpu_milli < kWholeGpu ? Kind::kFraction : Kind::kWhole,
              .count = shape.num_gpu,
              .milli = shape.gpu_milli < kWholeGpu ? shape.gpu_milli : 0};
  if (shape.model_mask == kAnyModel) return spec;
  for (std::size_t m = 0; m < inventory.models.size(); ++m) {
    if ((shape.model_mask >> m & 1) != 0) spec.gpu_models.push_back(inventory.models[m]);
  }
  if (spec.gpu_models.empty()) spec.gpu_models.push_back("no such model");
  return spec;
}

}  // namespace

Fill run_berth(const Inventory& inventory, const PodList& list, const Arrivals& arrivals) {
  model::SnapshotBuilder builder;
  for (std::size_t i = 0; i < arrivals.node_order.size(); ++i) {
    builder.upsert_node(node_of(inventory, inventory.nodes[arrivals.node_order[i]], i));
  }
  schedule::Placer placer;
  std::int64_t used = 0;
  std::size_t serial = 0;
  return fill_by(inventory, list, arrivals, [&](const Pod& pod) {
    const Shape& shape = list.shapes[pod.shape];
    auto id = builder.upsert_pod(pod_of(inventory, shape, pod, serial++));
    const auto& state = builder.state();
    auto wanted = state.pod(id).shape;
    placer.observe(state, *wanted);
    if (auto target = placer.find(state, wanted)) {
      builder.bind(id, target->slot, target->gpus);
      used += shape.total_gpu_milli();
    } else {
      builder.remove_pod(id);
    }
    return used;
  });
}

}  // namespace berth::openb
