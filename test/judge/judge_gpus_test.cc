// Which GPUs: each level of the choice, shares, fractions, MIG, NUMA policies, devices assumed.
#include <gtest/gtest.h>

#include "judge/specs.h"

namespace berth::judging {
namespace {

using model::NodeSpec;
using model::PodSpec;
using Kind = model::GpuDemandSpec::Kind;

std::string placed(const NodeSpec& node, const std::vector<PodSpec>& pods) {
  return text_of(decide({.nodes = {node}, .pods = pods, .gangs = {}, .budgets = {}}));
}

PodSpec shared(const std::string& name, int count) {
  PodSpec pod = a_pod(name);
  pod.gpu.kind = Kind::kShared;
  pod.gpu.count = count;
  return pod;
}

PodSpec mig(const std::string& name, int count) {
  PodSpec pod = a_pod(name);
  pod.gpu.kind = Kind::kMig;
  pod.gpu.count = count;
  pod.gpu.mig = "mig-1g";
  return pod;
}

// GPUs {0,1,2,3} on NUMA node 0, {4,..7} on 1; switches of two.
NodeSpec two_sockets() {
  NodeSpec node = gpu_node("n", 8);
  for (model::GpuSpec& gpu : node.gpus) {
    gpu.numa = gpu.index / 4;
    gpu.pcie_switch = gpu.index / 2;
  }
  return node;
}

TEST(WholeGpus, SmallestIndicesWhenNothingIsKnown) {
  EXPECT_EQ(placed(gpu_node("n", 4), {running(whole("q", 1), "n", {1}), whole("p", 2)}),
            "d/p@n[0,2]");
}

TEST(WholeGpus, FewestCliquesThenNumaThenSwitches) {
  NodeSpec node = two_sockets();
  EXPECT_EQ(placed(node, {running(whole("q", 1), "n", {0}), whole("p", 2)}), "d/p@n[2,3]");
  EXPECT_EQ(placed(node, {running(whole("q", 2), "n", {0, 2}), whole("p", 3)}), "d/p@n[4,5,6]");
  for (model::GpuSpec& gpu : node.gpus) gpu.nvlink_clique = gpu.index % 2;
  EXPECT_EQ(placed(node, {whole("p", 2)}), "d/p@n[0,2]");
  EXPECT_EQ(placed(node, {whole("p", 4)}), "d/p@n[0,2,4,6]");
}

TEST(WholeGpus, BrokenCliquesFirst) {
  NodeSpec node = gpu_node("n", 8);
  for (model::GpuSpec& gpu : node.gpus) gpu.nvlink_clique = gpu.index / 4;
  EXPECT_EQ(placed(node, {running(whole("q", 2), "n", {4, 5}), whole("p", 2)}), "d/p@n[6,7]");
  EXPECT_EQ(placed(node, {running(whole("q", 1), "n", {4}), whole("p", 4)}), "d/p@n[0,1,2,3]");
}

TEST(WholeGpus, NeedsEmptyDevicesThatAreNotPartitioned) {
  NodeSpec node = gpu_node("n", 3);
  node.gpus[0].mig = {{"mig-1g", 7}};
  EXPECT_EQ(placed(node, {running(fraction("q", 100), "n", {1}), whole("p", 1)}), "d/p@n[2]");
  EXPECT_EQ(placed(node, {running(fraction("q", 100), "n", {1}), whole("p", 2)}), "");
}

TEST(Shares, OneAfterAnotherOnTheFullest) {
  NodeSpec node = gpu_node("n", 2);
  node.shares_per_gpu = 3;
  EXPECT_EQ(placed(node, {shared("p", 4)}), "d/p@n[0,0,0,1]");
  EXPECT_EQ(placed(node, {running(shared("q", 1), "n", {1}), whole("p", 3)}), "d/p@n[0,1,1]");
  EXPECT_EQ(placed(node, {whole("p", 7)}), "");
  EXPECT_EQ(placed(gpu_node("n", 2), {shared("p", 1)}), "");
}

TEST(Fractions, FullestThatFitsOnDifferentDevices) {
  NodeSpec node = gpu_node("n", 4);
  std::vector<PodSpec> pods{running(fraction("a", 300), "n", {1}),
                            running(fraction("b", 600), "n", {2}), fraction("p", 500)};
  EXPECT_EQ(placed(node, pods), "d/p@n[1]");
  pods.back() = fraction("p", 400, 3);
  EXPECT_EQ(placed(node, pods), "d/p@n[0,1,2]");
  pods.back() = fraction("p", 700, 4);
  EXPECT_EQ(placed(node, pods), "");
}

TEST(Mig, FullestDeviceSlotBySlot) {
  NodeSpec node = gpu_node("n", 3);
  node.gpus[1].mig = {{"mig-1g", 2}, {"mig-3g", 1}};
  node.gpus[2].mig = {{"mig-1g", 1}};
  EXPECT_EQ(placed(node, {mig("p", 2)}), "d/p@n[1,2]");
  EXPECT_EQ(placed(node, {running(mig("q", 1), "n", {1}), mig("p", 1)}), "d/p@n[1]");
  EXPECT_EQ(placed(node, {mig("p", 4)}), "");
}

TEST(Numa, SinglePerContainerInStartOrder) {
  NodeSpec node = two_sockets();
  node.numa_policy = model::NumaPolicy::kSingleNumaNode;
  PodSpec pod = whole("p", 6);
  EXPECT_EQ(placed(node, {pod}), "");  // one container of 6
  pod.gpus_by_container = {3, 3};
  EXPECT_EQ(placed(node, {pod}), "d/p@n[0,1,2,4,5,6]");
  node.numa_scope = model::NumaScope::kPod;
  EXPECT_EQ(placed(node, {pod}), "");
  node.numa_scope = model::NumaScope::kContainer;
  pod.gpus_by_container = {2, 3, 1};  // 2 on node 0, 3 on node 1, 1 on node 0
  EXPECT_EQ(placed(node, {pod}), "d/p@n[0,1,2,4,5,6]");
  PodSpec even = whole("p", 4);
  even.gpus_by_container = {3, 1};
  EXPECT_EQ(placed(node, {running(whole("q", 1), "n", {0}), even}), "d/p@n[1,2,3,4]");
}

TEST(Numa, RestrictedToWhatTheEmptyMachineNeeds) {
  NodeSpec node = two_sockets();
  node.numa_policy = model::NumaPolicy::kRestricted;
  PodSpec busy = running(whole("q", 4), "n", {0, 1, 4, 5});
  EXPECT_EQ(placed(node, {busy, whole("p", 3)}), "");
  EXPECT_EQ(placed(node, {whole("p", 6)}), "d/p@n[0,1,2,3,4,5]");
  node.gpus[7].numa = -1;  // not all known: the policy is not judged
  EXPECT_EQ(placed(node, {busy, whole("p", 3)}), "d/p@n[2,3,6]");
  node.gpus[7].numa = 1;
  node.numa_policy = model::NumaPolicy::kBestEffort;
  EXPECT_EQ(placed(node, {busy, whole("p", 3)}), "d/p@n[2,3,6]");
}

TEST(AssumedDevices, KnownFirstThenByTheRuleInNameOrder) {
  NodeSpec node = gpu_node("n", 4);
  std::vector<PodSpec> pods{running(whole("b", 1), "n"), running(whole("a", 1), "n"),
                            running(whole("z", 1), "n", {0}), whole("p", 1)};
  EXPECT_EQ(placed(node, pods), "d/p@n[3]");
  // More than there is: what is there is taken, and no device falls below 0.
  pods.push_back(running(whole("c", 3), "n"));
  EXPECT_EQ(placed(node, pods), "");
}

}  // namespace
}  // namespace berth::judging
