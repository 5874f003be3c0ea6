// Small parts of the model that every decision pays for: device choice, interning, overlays.
#include <benchmark/benchmark.h>

#include "fleet.h"
#include "model/device_choice.h"
#include "model/inventory.h"

namespace {

using namespace berth;

// 16 devices in four NVLink cliques over two NUMA nodes, so that no subset is as good as another.
model::NodeSpec wide_node() {
  model::NodeSpec node;
  node.name = "wide";
  for (int g = 0; g < model::kMaxGpusPerNode; ++g) {
    node.gpus.push_back({.index = g,
                         .uuid = "GPU-" + std::to_string(g),
                         .model = "NVIDIA-H100-80GB-HBM3",
                         .memory_mib = 81559,
                         .numa = g / 8,
                         .pcie_switch = g / 2,
                         .nvlink_clique = g * 7 % 16 / 4});
  }
  return node;
}

void BM_ChooseOfSixteen(benchmark::State& state) {
  Interner strings;
  auto info = model::make_node_info(wide_node(), strings);
  model::Demand demand;
  demand.kind = model::GpuDemandSpec::Kind::kWhole;
  demand.count = static_cast<int>(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(model::choose_whole(info, 0xFFFF, demand));
  }
}
BENCHMARK(BM_ChooseOfSixteen)->DenseRange(1, 15, 2)->Arg(8)->Unit(benchmark::kMicrosecond);

void BM_InternKnownShape(benchmark::State& state) {
  model::ShapeBook book;
  auto pod = bench::shaped_pod(3, 0);
  auto keep = book.intern(pod);
  for (auto _ : state) benchmark::DoNotOptimize(book.intern(pod));
}
BENCHMARK(BM_InternKnownShape);

// What one "what if" costs: copy a snapshot, take one pod off, drop it.
void BM_Overlay(benchmark::State& state) {
  model::SnapshotBuilder builder;
  bench::FleetOptions options{.nodes = static_cast<int>(state.range(0))};
  for (int i = 0; i < options.nodes; ++i) builder.upsert_node(bench::fleet_node(options, i));
  model::PodId id = 0;
  for (int i = 0; i < options.nodes; ++i) {
    auto pod = bench::shaped_pod(0, static_cast<std::uint64_t>(i));
    pod.node_name = bench::fleet_node(options, i).name;
    pod.gpu_indices = {0};
    id = builder.upsert_pod(pod);
  }
  auto snapshot = builder.publish();
  for (auto _ : state) {
    model::ClusterState overlay = *snapshot;
    overlay.unbind(id);
    benchmark::DoNotOptimize(overlay.node(0).cpu);
  }
}
BENCHMARK(BM_Overlay)->Arg(1000)->Arg(10000)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
