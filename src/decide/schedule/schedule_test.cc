// Worth, mix and caches on their own; the rules of placement are tested by test/judge and
// scenarios.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "decide/schedule/jobs.h"
#include "decide/schedule/lowest_running.h"
#include "decide/schedule/placer.h"
#include "decide/schedule/worth.h"
#include "model/fit.h"
#include "model/snapshot_builder.h"

namespace berth::schedule {
namespace {

using model::GpuDemandSpec;

model::NodeSpec node(const std::string& name, const std::string& gpu_model, int gpus, int cpu) {
  model::NodeSpec spec{.name = name, .allocatable = {{"cpu", cpu}, {"pods", 100}}};
  for (int g = 0; g < gpus; ++g)
    spec.gpus.push_back({.index = g, .model = gpu_model, .memory_mib = 80000});
  return spec;
}

model::PodSpec pod(const std::string& name, int count, int milli, int cpu) {
  model::PodSpec spec{.ns = "a", .name = name, .requests = {{"cpu", cpu}}};
  if (count > 0) {
    spec.gpu = {.kind = milli > 0 ? GpuDemandSpec::Kind::kFraction : GpuDemandSpec::Kind::kWhole,
                .count = count,
                .milli = milli};
  }
  return spec;
}

// Lets pods arrive and run; returns the node each took.
class Cluster {
 public:
  explicit Cluster(const std::vector<model::NodeSpec>& nodes) {
    for (const auto& n : nodes) builder.upsert_node(n);
  }
  std::string arrive(const model::PodSpec& spec) {
    auto id = builder.upsert_pod(spec);
    const auto& state = builder.state();
    auto shape = state.pod(id).shape;
    placer.observe(state, *shape);
    auto target = placer.find(state, shape);
    if (!target) return "";
    std::string name = state.info(target->slot).name;
    builder.bind(id, target->slot, target->gpus);
    return name;
  }
  model::SnapshotBuilder builder;
  Placer placer;
};

TEST(Packing, SharesFillOneDeviceBeforeTheNext) {
  Cluster cluster({node("n0", "H100", 8, 64000), node("n1", "H100", 8, 64000)});
  EXPECT_EQ(cluster.arrive(pod("a", 1, 500, 1000)), "n0");
  EXPECT_EQ(cluster.arrive(pod("b", 1, 500, 1000)), "n0");
  EXPECT_EQ(std::popcount(cluster.builder.state().node(0).whole), 7);
}

TEST(Packing, AScarceModelIsKeptForThoseWhoNeedIt) {
  Cluster cluster({node("a100-0", "A100", 8, 96000), node("h100-0", "H100", 8, 96000),
                   node("h100-1", "H100", 8, 96000), node("h100-2", "H100", 8, 96000)});
  for (int i = 0; i < 12; ++i) {
    auto picky = pod("picky" + std::to_string(i), 1, 0, 1000);
    picky.gpu_models = {"A100"};
    if (i < 4) {
      EXPECT_EQ(cluster.arrive(picky), "a100-0");
    }
    cluster.arrive(pod("any" + std::to_string(i), 1, 0, 1000));
  }
  for (int i = 0; i < 60; ++i) {  // demand for A100 is learned
    auto picky = pod("more" + std::to_string(i), 1, 0, 1000);
    picky.gpu_models = {"A100"};
    auto id = cluster.builder.upsert_pod(picky);
    cluster.placer.observe(cluster.builder.state(), *cluster.builder.state().pod(id).shape);
    cluster.builder.remove_pod(id);
  }
  EXPECT_NE(cluster.arrive(pod("late", 1, 0, 1000)), "a100-0");
}

TEST(Packing, CpuPodsGoWhereTheyStrandNoGpu) {
  Cluster cluster({node("gpu-0", "H100", 8, 64000), node("plain-0", "", 0, 64000)});
  EXPECT_EQ(cluster.arrive(pod("web", 0, 0, 8000)), "plain-0");
}

TEST(Worth, RoomAfterFollowsTheDeviceChoice) {
  Interner strings;
  model::NodeInfo info = model::make_node_info(node("n", "H100", 4, 64000), strings);
  model::NodeState state = model::empty_state(info);
  model::Demand core{
      .kind = GpuDemandSpec::Kind::kFraction, .count = 1, .milli = 300, .score_milli = 300};
  Room room = room_after(room_of(info, state), info, core);
  EXPECT_EQ(room.whole, 3);
  ASSERT_EQ(room.partials, 1);
  EXPECT_EQ(room.partial[0], 700);
  room = room_after(room, info, core);
  EXPECT_EQ(room.whole, 3);
  EXPECT_EQ(room.partial[0], 400);
  core.count = 2;  // different devices
  room = room_after(room, info, core);
  EXPECT_EQ(room.whole, 2);
  EXPECT_EQ(room.partials, 2);
}

// A placer with warm caches and one that sees the state for the first time agree.
TEST(Placer, CachesChangeNoAnswer) {
  Cluster cluster({node("n0", "H100", 8, 64000), node("n1", "A100", 4, 32000),
                   node("n2", "H100", 8, 48000), node("n3", "H100", 2, 16000)});
  for (int i = 0; i < 40; ++i) {
    cluster.arrive(pod("p" + std::to_string(i), i % 3, i % 2 == 0 ? 250 + i : 0, 500 + i * 37));
    Placer warm({.packing = PlacementPolicy::Packing::kMostAllocated});
    Placer cold({.packing = PlacementPolicy::Packing::kMostAllocated});
    auto id = cluster.builder.upsert_pod(pod("probe", 1, 300, 700));
    const auto& state = cluster.builder.state();
    for (int n = 0; n < 3; ++n) warm.find(state, state.pod(id).shape);
    auto a = warm.find(state, state.pod(id).shape);
    auto b = cold.find(state, state.pod(id).shape);
    ASSERT_EQ(a.has_value(), b.has_value());
    if (a) {
      EXPECT_EQ(a->slot, b->slot);
    }
    cluster.builder.remove_pod(id);
  }
}

int lowest_by_looking(const model::ClusterState& state) {
  int lowest = INT32_MAX;
  for (model::PodId id = 0; id < state.pod_ids(); ++id) {
    const model::PodEntry& entry = state.pod(id);
    if (!entry.info || entry.slot < 0) continue;
    const int gang = entry.info->gang;
    lowest = std::min(lowest, gang < 0 ? entry.info->priority : gang_priority(state, gang));
  }
  return lowest;
}

// One cache for a builder and its copies, nodes that come and go between.
TEST(LowestRunning, IsWhatALookAtEveryPodGives) {
  Random random(3);
  LowestRunning known;
  std::vector<model::SnapshotBuilder> builders(1);
  for (int step = 0; step < 3000; ++step) {
    const std::size_t at = random.below(builders.size());
    model::SnapshotBuilder& builder = builders[at];
    const std::string on = "n" + std::to_string(random.below(9));
    if (random.chance(1, 20)) {
      builder.upsert_node(node(on, "H100", 8, 64000));
    } else if (random.chance(1, 40)) {
      builder.remove_node(on);
    } else if (random.chance(2, 3)) {
      model::PodSpec spec = pod("p" + std::to_string(random.below(40)), 1, 0, 100);
      spec.priority = static_cast<int>(random.below(1000));
      if (random.chance(1, 3)) spec.gang = "g" + std::to_string(random.below(3));
      if (random.chance(3, 4)) spec.node_name = on;
      builder.upsert_pod(spec);
    } else {
      builder.remove_pod("a/p" + std::to_string(random.below(40)));
    }
    ASSERT_EQ(known.get(builder.state()), lowest_by_looking(builder.state())) << "step " << step;
    if (random.chance(1, 10) && builders.size() < 4) {
      builders.push_back(builders[at]);
      builders[at].publish();  // detached: the copy keeps what it has
    }
    if (random.chance(1, 20) && builders.size() > 1) builders.erase(builders.begin());
  }
}

std::vector<int> rooms_by_looking(const model::ClusterState& state, const model::Shape& shape,
                                  int key) {
  const model::Domains* domains = key < 0 ? nullptr : &state.inventory().domains(key);
  std::vector<int> out(domains == nullptr ? 1 : domains->values.size());
  RuleMemo rules;
  const model::NodeSet allowed = rules.get(state.inventory(), shape.rules).allowed;
  for (std::size_t slot = 0; slot < state.nodes(); ++slot) {
    const int domain = domains == nullptr ? 0 : domains->of[slot];
    if (domain < 0 || !allowed.test(slot)) continue;
    out[static_cast<std::size_t>(domain)] +=
        model::fit_count(state.info(slot), state.node(slot), *shape.demand, INT32_MAX);
  }
  return out;
}

// One placer for a builder and its copies, pods and nodes that come and go between.
TEST(RoomMemo, IsWhatALookAtEveryNodeGives) {
  Random random(11);
  Placer placer;
  std::vector<model::SnapshotBuilder> builders(1);
  builders[0].upsert_gang({.ns = "a", .name = "g", .required_topology = "rack"});
  int by_rack = 0;
  for (int step = 0; step < 3000; ++step) {
    const std::size_t at = random.below(builders.size());
    model::SnapshotBuilder& builder = builders[at];
    const std::string on = "n" + std::to_string(random.below(12));
    if (random.chance(1, 20)) {
      model::NodeSpec spec = node(on, random.chance(1, 2) ? "H100" : "A100", 8, 64000);
      if (random.chance(9, 10)) spec.labels["rack"] = "r" + std::to_string(random.below(3));
      builder.upsert_node(spec);
    } else if (random.chance(1, 60)) {
      builder.remove_node(on);
    } else if (random.chance(2, 3)) {
      model::PodSpec spec =
          pod("p" + std::to_string(random.below(40)), static_cast<int>(random.below(4)), 0, 1000);
      if (random.chance(1, 3)) spec.gpu_models = {"H100"};
      if (random.chance(3, 4)) spec.node_name = on;
      builder.upsert_pod(spec);
    } else {
      builder.remove_pod("a/p" + std::to_string(random.below(40)));
    }
    const model::ClusterState& state = builder.state();
    const auto id = builder.find_pod("a/p" + std::to_string(random.below(40)));
    if (!id) continue;
    const model::Shape& shape = *state.pod(*id).shape;
    const int rack = state.inventory().topology_key("rack");
    by_rack += rack >= 0 ? 1 : 0;
    for (const int key : {-1, rack}) {
      ASSERT_EQ(placer.rooms(state, shape, key), rooms_by_looking(state, shape, key))
          << "step " << step;
    }
    if (random.chance(1, 10) && builders.size() < 4) {
      builders.push_back(builders[at]);
      builders[at].publish();  // detached: the copy keeps what it has
    }
    if (random.chance(1, 20) && builders.size() > 1) builders.erase(builders.begin());
  }
  EXPECT_GT(by_rack, 1000);
}

}  // namespace
}  // namespace berth::schedule
