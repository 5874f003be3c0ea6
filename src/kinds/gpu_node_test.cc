#include "kinds/gpu_node.h"

#include "kinds/read_for_test.h"
#include "text/json.h"

namespace berth::kinds {
namespace {

constexpr const char* kFull = R"(
apiVersion: berth.dev/v1alpha1
kind: GpuNode
metadata: {name: n1}
spec: {reservedGpus: [1]}
status:
  driverVersion: 580.159.04
  cudaVersion: "13.0"
  topologyManager: {policy: restricted, scope: pod}
  gpus:
  - {index: 1, uuid: GPU-b, model: NVIDIA-H200, memoryMiB: 143771, numaNode: 1, pcieSwitch: 3,
     nvlinkClique: 0, shares: 1, health: {state: Unhealthy, reason: "Xid 79"}, holders: [u1]}
  - {index: 0, uuid: GPU-a, model: NVIDIA-H200, memoryMiB: 143771, numaNode: 0, pcieSwitch: 0,
     nvlinkClique: 0, shares: 1, health: {state: Healthy}, holders: [u1, u2]}
  - {index: 2, migSlots: [{resource: nvidia.com/mig-1g.18gb, count: 7}]}
  nics: [{name: mlx5_0, numaNode: 0, pcieSwitch: 0}]
)";

GpuNode parse(std::string_view yaml) {
  auto documents = text::parse_yaml(yaml);
  EXPECT_TRUE(documents.ok());
  text::Decoder d;
  GpuNode out;
  decode(documents->at(0).root(), out, d);
  EXPECT_TRUE(d.ok()) << d.to_error().message();
  EXPECT_EQ(d.warnings(), 0u);
  return out;
}

TEST(GpuNode, RoundTrip) {
  const GpuNode node = parse(kFull);
  EXPECT_EQ(node.gpus.at(0).gpu.index, 0);
  EXPECT_TRUE(node.gpus.at(1).gpu.reserved);
  EXPECT_EQ(node.gpus.at(1).gpu.health_reason, "Xid 79");
  EXPECT_EQ(node.numa_policy, model::NumaPolicy::kRestricted);
  text::JsonWriter out;
  encode(node, out);
  ASSERT_TRUE(out.complete());
  EXPECT_EQ(parse(out.text()), node);
  GpuNode bare;
  bare.name = "x";
  text::JsonWriter small;
  encode(bare, small);
  EXPECT_EQ(parse(small.text()), bare);
}

TEST(GpuNode, MergesIntoTheNode) {
  const Inputs in = read(std::string(kFull) + R"(---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {nvidia.com/gpu.count: wrong}}
status: {allocatable: {pods: 9, nvidia.com/gpu: 1}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, uid: u1, annotations: {berth.dev/gpus: "0"}}
spec: {nodeName: n1, containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2}}}]}
)");
  EXPECT_EQ(all(in.invalid), "");
  ASSERT_EQ(in.nodes.size(), 1u);
  const model::NodeSpec& n = in.nodes[0];
  EXPECT_FALSE(n.gpus_assumed);
  EXPECT_EQ(n.gpus.size(), 3u);
  EXPECT_EQ(n.numa_scope, model::NumaScope::kPod);
  EXPECT_EQ(n.nics.size(), 1u);
  ASSERT_EQ(in.pods.size(), 1u);
  EXPECT_EQ(in.pods[0].gpu_indices, (std::vector<int>{0, 1}));
  EXPECT_EQ(in.warnings.size(), 1u) << all(in.warnings);  // the annotation differs
}

// What plan prints for several shares on one device is read back.
TEST(GpuNode, AnIndexPerShare) {
  const auto indices = [](const std::string& resource, const std::string& list) {
    return read(
               "{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {nvidia.com/gpu.count: "
               "'2', nvidia.com/gpu.replicas: '4', nvidia.com/gpu.product: NVIDIA-A10-SHARED}}, "
               "status: {allocatable: {pods: 9, nvidia.com/gpu.shared: 8}}}\n---\n"
               "{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {berth.dev/gpus: '" +
               list + "'}}, spec: {nodeName: n1, containers: [{name: c, resources: {limits: {" +
               resource + "}}}]}}\n")
        .pods.at(0)
        .gpu_indices;
  };
  EXPECT_EQ(indices("nvidia.com/gpu.shared: 3", "1,1,0"), (std::vector<int>{0, 1, 1}));
  EXPECT_EQ(indices("nvidia.com/gpu.shared: 2", "1,1,0"), std::vector<int>{}) << "more than asked";
}

TEST(GpuNode, Contradictions) {
  const Inputs in = read(std::string(kFull) +
                         "---\n{apiVersion: v1, kind: Node, metadata: {name: n1}, status: "
                         "{allocatable: {pods: 1, nvidia.com/gpu: 5}}}\n");
  EXPECT_NE(all(in.warnings).find("1 healthy GPUs or shares, allocatable 5"), std::string::npos)
      << all(in.warnings);
  EXPECT_NE(all(read(kFull).warnings).find("no Node of this name"), std::string::npos);
}

TEST(GpuNode, Errors) {
  const auto errors = [](const std::string& status) {
    return all(read("{apiVersion: berth.dev/v1alpha1, kind: GpuNode, metadata: {name: n0}, "
                    "status: {" +
                    status + "}}")
                   .warnings);
  };
  EXPECT_NE(errors("gpus: [{index: 0}, {index: 0}]").find("index 0 twice"), std::string::npos);
  EXPECT_NE(errors("gpus: [{index: 16}]").find("status.gpus[0].index"), std::string::npos);
  EXPECT_NE(errors("gpus: [{}]").find("index"), std::string::npos);
  EXPECT_NE(errors("gpus: [{index: 0, shares: 0}]").find("1..255"), std::string::npos);
  EXPECT_NE(errors("gpus: [{index: 0, health: {state: Sick}}]").find("Healthy"), std::string::npos);
  EXPECT_NE(errors("gpus: [{index: 0, migSlots: [{resource: cpu, count: 1}]}]").find("mig-"),
            std::string::npos);
  EXPECT_NE(errors("topologyManager: {policy: maybe}").find("best-effort"), std::string::npos);
}

// A GPU whose entry cannot be read is there for who holds it, and for nobody new.
TEST(GpuNode, OneBadEntryLeavesTheOthers) {
  const std::string bad[] = {"shares: 0",
                             "health: {state: Sick}",
                             "holders: 5",
                             "memoryMiB: many",
                             "migSlots: [{resource: cpu, count: 1}]",
                             "numaNode: -1"};
  for (const std::string& part : bad) {
    const Inputs in = read(
        "{apiVersion: v1, kind: Node, metadata: {name: n0}, status: {allocatable: "
        "{pods: 1, nvidia.com/gpu: 3}}}\n---\n{apiVersion: berth.dev/v1alpha1, kind: GpuNode, "
        "metadata: {name: n0}, status: {gpus: [{index: 0}, {index: 1, " +
        part + "}, {index: 2, holders: [u]}]}}\n");
    ASSERT_EQ(in.nodes.size(), 1u) << part;
    ASSERT_EQ(in.nodes[0].gpus.size(), 3u) << part;
    EXPECT_FALSE(in.nodes[0].gpus_assumed) << part;
    EXPECT_EQ(in.nodes[0].gpus[0].health, model::Health::kHealthy) << part;
    EXPECT_EQ(in.nodes[0].gpus[1].health, model::Health::kUnknown) << part;
    EXPECT_TRUE(in.nodes[0].gpus[1].mig.empty()) << part;
    EXPECT_TRUE(in.invalid.empty()) << all(in.invalid);
  }
}

}  // namespace
}  // namespace berth::kinds
