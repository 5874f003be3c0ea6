#include "kinds/node.h"

#include "kinds/products.h"
#include "kinds/read_for_test.h"

namespace berth::kinds {
namespace {

using model::Health;
using model::NodeSpec;

std::string node_yaml(const char* labels, const char* allocatable, const char* spec = "") {
  return "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {" + std::string(labels) +
         "}}\nspec: {" + spec + "}\nstatus: {allocatable: {cpu: 8, pods: 110, " + allocatable +
         "}}\n";
}
NodeSpec clean_node(const char* labels, const char* allocatable) {
  const Inputs in = read_clean(node_yaml(labels, allocatable));
  return in.nodes.empty() ? NodeSpec{} : in.nodes[0];
}
int healthy(const NodeSpec& node) {
  int count = 0;
  for (const auto& gpu : node.gpus) count += gpu.health == Health::kHealthy ? 1 : 0;
  return count;
}

TEST(Node, Plain) {
  const Inputs in = read_clean(R"(
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
spec:
  unschedulable: true
  podCIDR: 10.0.0.0/24
  taints: [{key: a, value: b, effect: NoExecute, timeAdded: 2024-01-01T00:00:00Z}]
status:
  allocatable: {cpu: 7910m, memory: 1Gi, ephemeral-storage: "100", pods: "110"}
  conditions: [{type: MemoryPressure, status: "False"}, {type: Ready, status: Unknown}]
  nodeInfo: {kubeletVersion: v1.37.0}
  somethingNew: 1
)");
  ASSERT_EQ(in.nodes.size(), 1u);
  const NodeSpec& n = in.nodes[0];
  EXPECT_TRUE(n.unschedulable);
  EXPECT_FALSE(n.ready);
  EXPECT_EQ(n.taints, (std::vector<model::Taint>{{"a", "b", model::TaintEffect::kNoExecute}}));
  EXPECT_EQ(n.allocatable,
            (model::Amounts{
                {"cpu", 7910}, {"ephemeral-storage", 100}, {"memory", 1 << 30}, {"pods", 110}}));
  EXPECT_TRUE(n.gpus.empty());
  EXPECT_FALSE(n.gpus_assumed);
}

TEST(Node, CapacityStandsInAndPodsAreAssumed) {
  const Inputs in = read(
      "{apiVersion: v1, kind: Node, metadata: {name: n0}, status: {capacity: "
      "{cpu: 1}}}");
  ASSERT_EQ(in.nodes.size(), 1u);
  EXPECT_TRUE(in.nodes[0].ready);
  EXPECT_EQ(in.nodes[0].allocatable, (model::Amounts{{"cpu", 1000}, {"pods", 110}}));
  EXPECT_EQ(in.warnings.size(), 1u);
}

TEST(Gpus, FromLabels) {
  const NodeSpec n = clean_node(
      "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, nvidia.com/gpu.count: '8', "
      "nvidia.com/gpu.memory: '81559', nvidia.com/gpu.replicas: '1', "
      "nvidia.com/gpu.sharing-strategy: none",
      "nvidia.com/gpu: 8");
  ASSERT_EQ(n.gpus.size(), 8u);
  EXPECT_TRUE(n.gpus_assumed);
  EXPECT_EQ(n.shares_per_gpu, 1);
  EXPECT_EQ(n.gpus[0].model, "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(n.gpus[0].memory_mib, 81559);
  EXPECT_EQ(n.gpus[3].numa, 0);
  EXPECT_EQ(n.gpus[4].numa, 1);
  EXPECT_EQ(n.gpus[5].pcie_switch, 2);
  EXPECT_EQ(n.gpus[7].nvlink_clique, 0);
  EXPECT_FALSE(n.allocatable.contains("nvidia.com/gpu"));
  EXPECT_EQ(healthy(n), 8);
}

TEST(Gpus, FewerThanUsualSayNothingOfNuma) {
  const NodeSpec n = clean_node("nvidia.com/gpu.product: NVIDIA-H200", "nvidia.com/gpu: 2");
  ASSERT_EQ(n.gpus.size(), 2u);
  EXPECT_EQ(n.gpus[1].numa, -1);
  EXPECT_EQ(n.gpus[1].nvlink_clique, 0);
  EXPECT_EQ(n.gpus[1].memory_mib, 143771);
}

TEST(Gpus, NotAdvertisedAreTheHighest) {
  const NodeSpec n = clean_node("nvidia.com/gpu.product: NVIDIA-L4, nvidia.com/gpu.count: '4'",
                                "nvidia.com/gpu: 3");
  ASSERT_EQ(n.gpus.size(), 4u);
  EXPECT_EQ(healthy(n), 3);
  EXPECT_EQ(n.gpus[3].health_reason, "not advertised by the node");
  EXPECT_EQ(n.gpus[0].nvlink_clique, -1);
}

TEST(Gpus, WithoutLabels) {
  const NodeSpec n = clean_node("", "nvidia.com/gpu: 4");
  ASSERT_EQ(n.gpus.size(), 4u);
  EXPECT_EQ(n.gpus[0].model, "");
  EXPECT_TRUE(n.gpus_assumed);
}

TEST(Gpus, Sharing) {
  const NodeSpec n = clean_node(
      "nvidia.com/gpu.product: Tesla-T4-SHARED, nvidia.com/gpu.count: '2', "
      "nvidia.com/gpu.replicas: '4', nvidia.com/gpu.sharing-strategy: time-slicing",
      "nvidia.com/gpu: 8");
  EXPECT_EQ(n.gpus.size(), 2u);
  EXPECT_EQ(n.shares_per_gpu, 4);
  EXPECT_EQ(n.gpus[0].model, "Tesla-T4");
  EXPECT_EQ(healthy(n), 2);
  EXPECT_EQ(n.gpu_names, model::GpuNames::kGpu);
  const NodeSpec renamed = clean_node(
      "nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.count: '2', nvidia.com/gpu.replicas: '4', "
      "nvidia.com/gpu.sharing-strategy: mps",
      "nvidia.com/gpu.shared: 4");
  EXPECT_EQ(renamed.shares_per_gpu, 4);
  EXPECT_EQ(healthy(renamed), 1);
  EXPECT_EQ(renamed.gpu_names, model::GpuNames::kShared);
  const Inputs bare = read(node_yaml("", "nvidia.com/gpu.shared: 6"));
  ASSERT_EQ(bare.nodes.size(), 1u);
  EXPECT_EQ(bare.nodes[0].gpus.size(), 1u);
  EXPECT_EQ(bare.nodes[0].shares_per_gpu, 6);
  EXPECT_EQ(bare.warnings.size(), 1u);
}

TEST(Gpus, MigMixed) {
  const NodeSpec n = clean_node(
      "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, nvidia.com/gpu.count: '8', "
      "nvidia.com/mig.strategy: mixed",
      "nvidia.com/gpu: 6, nvidia.com/mig-1g.10gb: 14");
  ASSERT_EQ(n.gpus.size(), 8u);
  EXPECT_TRUE(n.gpus[5].mig.empty());
  EXPECT_EQ(n.gpus[6].mig, (std::vector<model::MigSlots>{{"nvidia.com/mig-1g.10gb", 7}}));
  EXPECT_EQ(n.gpus[7].mig, n.gpus[6].mig);
  EXPECT_EQ(healthy(n), 8);
  EXPECT_EQ(n.allocatable.at("nvidia.com/mig-1g.10gb"), 14);
  const NodeSpec bare = clean_node("", "nvidia.com/mig-1g.10gb: 7");
  ASSERT_EQ(bare.gpus.size(), 1u);
  EXPECT_EQ(bare.gpus[0].mig.at(0).count, 7);
}

TEST(Gpus, MigSingle) {
  const NodeSpec n = clean_node(
      "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3-MIG-1g.10gb, nvidia.com/gpu.count: '56', "
      "nvidia.com/gpu.memory: '9984', nvidia.com/mig.strategy: single",
      "nvidia.com/gpu: 56");
  EXPECT_EQ(n.gpus.size(), 8u);
  EXPECT_EQ(n.shares_per_gpu, 7);
  EXPECT_EQ(n.gpus[0].memory_mib, 9984);
}

// A node is there with what can be read of it.
TEST(Gpus, Errors) {
  const Inputs many = read(node_yaml("", "nvidia.com/gpu: 17"));
  EXPECT_NE(all(many.warnings).find("found 17 GPUs"), std::string::npos) << all(many.warnings);
  ASSERT_EQ(many.nodes.size(), 1u);
  EXPECT_EQ(many.nodes[0].gpus.size(), 16u);
  EXPECT_EQ(healthy(many.nodes[0]), 0) << "which of them is which cannot be told";
  const Inputs in = read(node_yaml("nvidia.com/gpu.count: many", "nvidia.com/gpu: 1"));
  ASSERT_EQ(in.nodes.size(), 1u);
  EXPECT_EQ(in.nodes[0].gpus.size(), 1u);
  EXPECT_EQ(in.counts.invalid_objects, 0u);
  EXPECT_EQ(in.counts.unread_objects, 1u);
  EXPECT_NE(all(in.warnings).find("label nvidia.com/gpu.count: found \"many\""), std::string::npos);
  EXPECT_EQ(read(node_yaml("", "cpu2: -1")).nodes.at(0).allocatable.count("cpu2"), 0u);
  const Inputs label = read("{apiVersion: v1, kind: Node, metadata: {name: n0, labels: {a: 8}}}");
  EXPECT_EQ(label.nodes.at(0).labels.count("a"), 0u);
  const auto status = [](const std::string& text) {
    return read("{apiVersion: v1, kind: Node, metadata: {name: n0}, " + text + "}").nodes.at(0);
  };
  EXPECT_FALSE(status("status: {conditions: 7}").ready);
  EXPECT_FALSE(status("status: {conditions: [{type: Ready, status: 7}]}").ready);
  EXPECT_TRUE(status("spec: {unschedulable: 7}").unschedulable);
  EXPECT_EQ(status("spec: {taints: [{key: a, effect: Never}]}").taints.at(0).effect,
            model::TaintEffect::kNoSchedule);
  EXPECT_EQ(read("{apiVersion: v1, kind: Node, metadata: {name: No Name}}").nodes.size(), 0u);
}

TEST(Products, Table) {
  for (const Product& p : products()) {
    EXPECT_EQ(find_product(p.name), &p) << p.name;
    EXPECT_GT(p.memory_mib, 0);
    if (p.per_node > 0) {
      EXPECT_EQ(p.per_node % p.per_numa, 0) << p.name;
    }
  }
  EXPECT_EQ(find_product("h200"), find_product("NVIDIA-H200"));
  EXPECT_EQ(find_product("NVIDIA H100 80GB HBM3"), find_product("NVIDIA-H100-80GB-HBM3"));
  EXPECT_EQ(find_product("Quantum"), nullptr);
}

TEST(Products, MigSlots) {
  struct Case {
    const char* profile;
    int slices;
    std::int64_t memory;
    int want;
  };
  for (const Case& c :
       {Case{"1g.10gb", 7, 81559, 7}, Case{"1g.20gb", 7, 81559, 4}, Case{"2g.20gb", 7, 81559, 3},
        Case{"3g.40gb", 7, 81559, 2}, Case{"4g.40gb", 7, 81559, 1}, Case{"7g.80gb", 7, 81559, 1},
        Case{"1g.18gb", 7, 143771, 7}, Case{"1g.35gb", 7, 143771, 4}, Case{"3g.71gb", 7, 143771, 2},
        Case{"1g.5gb", 7, 40960, 7}, Case{"1g.23gb", 7, 183359, 7}, Case{"1g.6gb", 4, 24576, 4},
        Case{"2g.12gb", 4, 24576, 2}, Case{"1g.10gb.me", 7, 81559, 1}, Case{"1g.10gb", 7, 0, 7},
        Case{"x", 7, 0, 0}, Case{"g.gb", 7, 0, 0}, Case{"", 7, 0, 0}}) {
    EXPECT_EQ(mig_slots_per_gpu(c.profile, c.slices, c.memory), c.want) << c.profile;
  }
}

}  // namespace
}  // namespace berth::kinds
