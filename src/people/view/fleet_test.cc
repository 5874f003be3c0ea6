#include "people/view/fleet.h"

#include <gtest/gtest.h>

#include "people/view/queue_view.h"
#include "text/json.h"

namespace berth::people {
namespace {

model::NodeSpec fleet_node(const std::string& name, const std::string& rack, int gpus,
                           const std::string& product = "NVIDIA-H100-80GB-HBM3") {
  model::NodeSpec node;
  node.name = name;
  node.labels = {{"topology.kubernetes.io/rack", rack}, {"karpenter.sh/nodepool", "p-" + rack}};
  node.allocatable = {{"cpu", 96'000}, {"memory", 1LL << 40}, {"pods", 110}};
  for (int i = 0; i < gpus; ++i) {
    model::GpuSpec gpu;
    gpu.index = i;
    gpu.model = product;
    gpu.memory_mib = 81'559;
    node.gpus.push_back(gpu);
  }
  return node;
}

model::PodSpec fleet_pod(const std::string& name, const std::string& node, int gpus) {
  model::PodSpec pod;
  pod.ns = "t";
  pod.name = name;
  pod.node_name = node;
  pod.gpu.kind = model::GpuDemandSpec::Kind::kWhole;
  pod.gpu.count = gpus;
  pod.gpus_by_container = {gpus};
  pod.created_ns = 1'000'000'000;
  return pod;
}

Fleet fleet_of(const kinds::Inputs& inputs) {
  return make_fleet(inputs, make_plan(inputs, {}), 3'600'000'000'000);
}

int sum_of_states(const GpuTally& tally) {
  return tally.used + tally.free + tally.unhealthy + tally.reserved + tally.unknown;
}

TEST(Fleet, GroupsAddUpToTheTotal) {
  kinds::Inputs in;
  in.nodes = {fleet_node("n0", "r0", 8), fleet_node("n1", "r1", 8),
              fleet_node("n2", "r1", 4, "NVIDIA-A100-SXM4-80GB"), fleet_node("n3", "r1", 0)};
  in.pods = {fleet_pod("a", "n0", 3), fleet_pod("b", "n2", 4)};
  const Fleet fleet = fleet_of(in);
  EXPECT_EQ(fleet.total.discovered(), 20);
  EXPECT_EQ(fleet.total.used, 7);
  EXPECT_EQ(fleet.total.nodes, 4);
  EXPECT_EQ(fleet.gpu_pods, 2);
  EXPECT_EQ(fleet.pool_key, "karpenter.sh/nodepool");
  for (const auto* groups : {&fleet.models, &fleet.pools, &fleet.racks}) {
    GpuTally sum;
    for (const FleetGroup& group : *groups) sum.add(group.tally);
    EXPECT_EQ(sum.discovered(), 20);
    EXPECT_EQ(sum_of_states(sum), 20);
    EXPECT_EQ(groups->size(), 2U);
  }
}

TEST(Fleet, RoomIsWhatWholeFreeGpusGive) {
  kinds::Inputs in;
  in.nodes = {fleet_node("n0", "r0", 8), fleet_node("n1", "r1", 8), fleet_node("n2", "r1", 8)};
  in.nodes[2].unschedulable = true;
  in.pods = {fleet_pod("a", "n0", 2), fleet_pod("b", "n1", 1)};
  const Fleet fleet = fleet_of(in);
  ASSERT_EQ(fleet.rooms.size(), 1U);
  const FleetRoom& room = fleet.rooms[0];
  EXPECT_EQ(room.free, 13);
  EXPECT_EQ(room.largest_node, 7);
  EXPECT_EQ(room.largest_rack, 7);
  EXPECT_EQ(room.rack, "r1");
  EXPECT_EQ(room.gangs[0].pods, 0);  // of 8
  EXPECT_EQ(room.gangs[1].pods, 2);  // of 4
  EXPECT_EQ(room.gangs[2].pods, 6);  // of 2
  EXPECT_EQ(room.gangs[3].pods, 13);
  EXPECT_EQ(room.largest_gang(), 8);
  EXPECT_EQ(fleet.total.reserved, 8);
}

TEST(Fleet, SharesAndSlicesArePartsOfDevices) {
  kinds::Inputs in;
  in.nodes = {fleet_node("shared", "r0", 2), fleet_node("mig", "r0", 2)};
  in.nodes[0].shares_per_gpu = 4;
  in.nodes[1].gpus[1].mig = {{"nvidia.com/mig-1g.10gb", 7}};
  model::PodSpec share = fleet_pod("share", "shared", 0);
  share.gpu = {.kind = model::GpuDemandSpec::Kind::kShared, .count = 1};
  model::PodSpec slice = fleet_pod("slice", "mig", 0);
  slice.gpu = {.kind = model::GpuDemandSpec::Kind::kMig, .count = 2};
  slice.gpu.mig = "nvidia.com/mig-1g.10gb";
  in.pods = {share, slice};
  const Fleet fleet = fleet_of(in);
  ASSERT_EQ(fleet.nodes.size(), 2U);
  const FleetNode& mig = fleet.nodes[0];
  EXPECT_EQ(mig.name, "mig");
  EXPECT_EQ(mig.tally.used, 1);
  EXPECT_EQ(mig.tally.free, 1);
  EXPECT_EQ(mig.tally.mig_slots, 7);
  EXPECT_EQ(mig.tally.mig_used, 2);
  EXPECT_EQ(mig.gpus[1].used_milli, 285);
  const FleetNode& shared = fleet.nodes[1];
  EXPECT_EQ(shared.tally.used, 1);
  EXPECT_EQ(shared.tally.used_milli, 250);
  EXPECT_EQ(shared.tally.free_milli, 1'750);
  EXPECT_EQ(sum_of_states(fleet.total), 4);
}

TEST(Fleet, WaitingByReasonWithItsAge) {
  kinds::Inputs in;
  in.nodes = {fleet_node("n0", "r0", 8)};
  in.pods = {fleet_pod("a", "n0", 6), fleet_pod("w0", "", 4), fleet_pod("w1", "", 9),
             fleet_pod("w2", "", 1)};
  const Fleet fleet = fleet_of(in);
  EXPECT_EQ(fleet.startable, 1);
  ASSERT_EQ(fleet.waiting.size(), 2U);
  EXPECT_EQ(fleet.waiting[0].workload, "t/w0");
  EXPECT_EQ(fleet.waiting[0].since_ns, 1'000'000'000);
  EXPECT_TRUE(fleet.waiting[1].never);
  ASSERT_EQ(fleet.reasons.size(), 2U);
  EXPECT_EQ(fleet.reasons[0].gpus_milli, 9'000);
  EXPECT_EQ(fleet.reasons[0].oldest_ns, 1'000'000'000);
}

TEST(Fleet, JsonIsJson) {
  kinds::Inputs in;
  in.nodes = {fleet_node("n0", "r0", 2)};
  in.pods = {fleet_pod("a", "n0", 1), fleet_pod("w", "", 4)};
  for (const int indent : {0, 2}) {
    EXPECT_TRUE(text::parse_json(fleet_json(fleet_of(in), indent)).ok());
    EXPECT_TRUE(
        text::parse_json(queue_view_json(make_queue_view(in, make_plan(in, {}), 0), indent)).ok());
  }
  EXPECT_EQ(make_fleet({}, make_plan({}, {}), 0).total.discovered(), 0);
}

}  // namespace
}  // namespace berth::people
