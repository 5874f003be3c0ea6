#include <array>
#include <string>

#include "judge/generate.h"

namespace berth::judging {

using model::GpuSpec;
using model::NodeSpec;

namespace {

struct Product {
  const char* model;
  std::int64_t memory_mib;
};
constexpr std::array<Product, 3> kProducts{
    {{"NVIDIA-H100-80GB-HBM3", 81559}, {"NVIDIA-A100-SXM4-40GB", 40960}, {"Tesla-T4", 15360}}};

std::string with_number(const char* prefix, std::uint64_t number) {
  return prefix + std::to_string(number);
}

void add_positions(Random& random, NodeSpec& node) {
  auto count = static_cast<int>(node.gpus.size());
  bool known_numa = random.chance(9, 10);
  auto cliques = random.below(4);  // none known, one, pairs, halves
  for (GpuSpec& gpu : node.gpus) {
    if (known_numa) gpu.numa = gpu.index * 2 / std::max(count, 2);
    if (random.chance(9, 10)) gpu.pcie_switch = gpu.index / 2;
    if (cliques == 1) gpu.nvlink_clique = 0;
    if (cliques == 2) gpu.nvlink_clique = gpu.index / 2;
    if (cliques == 3) gpu.nvlink_clique = gpu.index % 2;
  }
}

void partition(Random& random, NodeSpec& node) {
  for (GpuSpec& gpu : node.gpus) {
    if (random.chance(1, 3)) continue;
    gpu.mig.push_back({"nvidia.com/mig-1g.10gb", static_cast<int>(random.between(1, 4))});
    if (random.chance(1, 2)) gpu.mig.push_back({"nvidia.com/mig-3g.40gb", 1});
  }
}

void add_gpus(Random& random, NodeSpec& node) {
  const Product& product = kProducts[random.below(kProducts.size())];
  int count = 1 << random.below(4);
  for (int i = 0; i < count; ++i) {
    GpuSpec& gpu = node.gpus.emplace_back();
    gpu.index = i;
    gpu.uuid = "GPU-" + node.name + "-" + std::to_string(i);
    gpu.model = product.model;
    gpu.memory_mib = product.memory_mib;
  }
  add_positions(random, node);
  if (random.chance(1, 6)) {
    node.shares_per_gpu = static_cast<int>(random.between(2, 4));
    node.gpu_names = static_cast<model::GpuNames>(random.below(3));
  } else if (random.chance(1, 6)) {
    partition(random, node);
  }
  node.numa_policy = static_cast<model::NumaPolicy>(random.below(4));
  node.numa_scope = static_cast<model::NumaScope>(random.below(2));
}

void wear(Random& random, NodeSpec& node) {
  for (GpuSpec& gpu : node.gpus) {
    if (random.chance(1, 15)) gpu.health = model::Health::kUnhealthy;
    if (random.chance(1, 10)) gpu.health = model::Health::kUnknown;
    if (random.chance(1, 20)) gpu.reserved = true;
  }
  using model::TaintEffect;
  if (random.chance(1, 8)) node.taints.push_back({"team", "red", TaintEffect::kNoSchedule});
  if (random.chance(1, 12)) node.taints.push_back({"drain", "", TaintEffect::kNoExecute});
  if (random.chance(1, 6)) node.taints.push_back({"spot", "yes", TaintEffect::kPreferNoSchedule});
  node.unschedulable = random.chance(1, 15);
  if (node.unschedulable && random.chance(1, 2)) {
    node.taints.push_back({"node.kubernetes.io/unschedulable", "", TaintEffect::kNoSchedule});
  }
  node.ready = !random.chance(1, 20);
  if (!node.ready && random.chance(1, 2)) {
    node.taints.push_back({"node.kubernetes.io/not-ready", "", TaintEffect::kNoExecute});
  }
}

}  // namespace

NodeSpec random_node(Random& random, Mix mix, int number) {
  NodeSpec node;
  // Names whose byte order is not the order they are made in.
  node.name = with_number("n", random.below(90) + 10) + "-" + std::to_string(number);
  node.labels[model::kHostnameLabel] = node.name;
  if (random.chance(19, 20)) node.labels[model::kZoneLabel] = with_number("z", random.below(3));
  if (random.chance(9, 10)) node.labels["rack"] = with_number("r", random.below(5));
  if (random.chance(1, 2)) node.labels["disk"] = random.chance(1, 2) ? "ssd" : "hdd";
  if (random.chance(2, 3)) node.labels["generation"] = std::to_string(random.between(1, 5));
  node.allocatable["cpu"] = random.between(4, 32) * 1000;
  node.allocatable["memory"] = random.between(16, 128) << 30;
  if (random.chance(9, 10)) node.allocatable["ephemeral-storage"] = random.between(20, 200) << 30;
  node.allocatable["pods"] = random.chance(1, 4) ? random.between(2, 6) : 110;
  if (random.chance(1, 4)) node.allocatable["rdma/hca"] = random.between(1, 4);
  if (random.chance(3, 4)) add_gpus(random, node);
  bool worn = mix == Mix::kConstraints || (mix != Mix::kPlain && random.chance(1, 4));
  if (worn) wear(random, node);
  return node;
}

}  // namespace berth::judging
