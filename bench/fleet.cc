#include "fleet.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>

namespace berth::bench {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

void add_rules(model::PodSpec& pod, int rules) {
  using text::Operator;
  switch (rules) {
    case 1:
      pod.node_selector = {{"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"}};
      break;
    case 2:
      pod.required_nodes = {{.labels = {{.key = "node-pool",
                                         .op = Operator::kIn,
                                         .values = {"pool-0", "pool-1", "pool-2"}}}}};
      pod.tolerations = {{.key = "nvidia.com/gpu", .op = model::Toleration::Op::kExists}};
      break;
    case 3:
      pod.spread = {
          {.max_skew = 400,
           .topology_key = model::kZoneLabel,
           .pods = {.namespaces = {"bench"},
                    .selector = {
                        {.key = "app", .op = Operator::kIn, .values = {pod.labels.at("app")}}}}}};
      break;
    default:
      break;
  }
}

}  // namespace

model::NodeSpec fleet_node(const FleetOptions& options, int number) {
  model::NodeSpec node;
  node.name = fmt::format("node-{:06}", number);
  bool h100 = number % 4 != 0;
  int rack = number / options.nodes_per_rack;
  node.labels = {
      {model::kHostnameLabel, node.name},
      {model::kZoneLabel, fmt::format("zone-{}", rack % options.zones)},
      {"topology.kubernetes.io/region", "region-1"},
      {"network.topology.nvidia.com/block", fmt::format("rack-{:04}", rack)},
      {"node-pool", fmt::format("pool-{}", number % 5)},
      {"nvidia.com/gpu.product", h100 ? "NVIDIA-H100-80GB-HBM3" : "NVIDIA-A100-SXM4-80GB"},
      {"nvidia.com/gpu.count", std::to_string(options.gpus)},
      {"nvidia.com/gpu.machine", "machine-x"},
  };
  for (int i = 0; static_cast<int>(node.labels.size()) < options.labels; ++i) {
    node.labels.emplace(fmt::format("feature.node.kubernetes.io/cpu-feature-{:02}", i),
                        i % 7 == 0 ? std::to_string(number % 11) : "true");
  }
  if (number % 20 == 0) node.taints = {{.key = "nvidia.com/gpu", .value = "present"}};
  node.allocatable = {
      {"cpu", 128'000}, {"memory", 2048 * kGiB}, {"ephemeral-storage", 3000 * kGiB}, {"pods", 110}};
  for (int g = 0; g < options.gpus; ++g) {
    node.gpus.push_back(
        {.index = g,
         .uuid = fmt::format("GPU-{:08x}-{:04x}-4000-8000-{:012x}", number, g, number),
         .model = node.labels.at("nvidia.com/gpu.product"),
         .memory_mib = 81559,
         .numa = g * 2 / options.gpus,
         .pcie_switch = g / 2,
         .nvlink_clique = 0});
  }
  return node;
}

model::PodSpec shaped_pod(int shape, std::uint64_t serial) {
  struct Ask {
    int count, milli, cpu, memory_gib;
  };
  static constexpr std::array<Ask, 16> kAsks = {{{1, 0, 8000, 64},
                                                 {1, 0, 12000, 128},
                                                 {1, 0, 4000, 32},
                                                 {1, 0, 16000, 200},
                                                 {2, 0, 16000, 256},
                                                 {2, 0, 24000, 256},
                                                 {4, 0, 32000, 512},
                                                 {4, 0, 48000, 512},
                                                 {8, 0, 96000, 1024},
                                                 {8, 0, 64000, 1024},
                                                 {1, 500, 4000, 32},
                                                 {1, 250, 2000, 16},
                                                 {1, 250, 4000, 32},
                                                 {1, 700, 6000, 48},
                                                 {0, 0, 4000, 16},
                                                 {0, 0, 8000, 64}}};
  const Ask& ask = kAsks[static_cast<std::size_t>(shape / 4)];
  model::PodSpec pod;
  pod.ns = "bench";
  pod.name = fmt::format("pod-{}", serial);
  pod.labels = {{"app", fmt::format("app-{}", shape)}};
  pod.requests = {{"cpu", ask.cpu}, {"memory", ask.memory_gib * kGiB}};
  using Kind = model::GpuDemandSpec::Kind;
  if (ask.count > 0) {
    pod.gpu = {.kind = ask.milli > 0 ? Kind::kFraction : Kind::kWhole,
               .count = ask.count,
               .milli = ask.milli};
  }
  add_rules(pod, shape % 4);
  return pod;
}

model::PodSpec unique_pod(Random& random, std::uint64_t serial) {
  auto shape = static_cast<int>(random.below(kShapes));
  model::PodSpec pod = shaped_pod(shape, serial);
  pod.requests["cpu"] += static_cast<std::int64_t>(serial % 997) * 2 + 1;
  pod.requests["memory"] += static_cast<std::int64_t>(serial) * 4096;
  pod.labels.emplace("job-name", fmt::format("job-{}", serial));
  if (pod.gpu.milli > 0) pod.gpu.milli += static_cast<int>(serial % 37);
  return pod;
}

double rss_mb() {
  long pages = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

}  // namespace berth::bench
