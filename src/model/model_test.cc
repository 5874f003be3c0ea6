// The compact model on its own: pages, shapes, devices, and what the builder keeps. The judge's
// tests (test/judge) hold the whole of it to docs/placement.md on random clusters.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/random.h"
#include "model/device_choice.h"
#include "model/fit.h"
#include "model/journal.h"
#include "model/snapshot_builder.h"

namespace berth::model {
namespace {

TEST(Pages, ACopyIsAForkAndAWriteCopiesOnePage) {
  Pages<int, 4> pages;
  for (int i = 0; i < 10; ++i) pages.push_back(i, 1);
  Pages<int, 4> fork = pages;
  pages.detach();
  fork.write(5, 2) = 50;
  pages.write(0, 3) = -1;
  EXPECT_EQ(pages[5], 5);
  EXPECT_EQ(fork[5], 50);
  EXPECT_EQ(pages[0], -1);
  EXPECT_EQ(fork[0], 0);
  EXPECT_EQ(fork.page_data(2), pages.page_data(2)) << "an unwritten page is shared";
  EXPECT_NE(fork.stamp(1), pages.stamp(1));
  EXPECT_EQ(fork.stamp(2), pages.stamp(2));
}

std::optional<std::set<std::uint32_t>> changed(const Journal& a, const Journal& b,
                                               std::size_t most = 1000) {
  std::vector<std::uint32_t> out;
  if (!Journal::between(a.now(), b.now(), most, out)) return std::nullopt;
  return std::set<std::uint32_t>(out.begin(), out.end());
}

TEST(Journal, TellsWhatChangedBetweenCopies) {
  Journal main;
  main.add(1);
  Journal then = main, fork = main;
  main.add(2);
  fork.add(3);
  Journal of_fork = fork;
  of_fork.add(4);
  EXPECT_EQ(changed(then, main), (std::set<std::uint32_t>{2})) << "forward";
  EXPECT_EQ(changed(main, then), (std::set<std::uint32_t>{2})) << "back";
  EXPECT_EQ(changed(main, fork), (std::set<std::uint32_t>{2, 3})) << "aside";
  EXPECT_EQ(changed(of_fork, main), (std::set<std::uint32_t>{2, 3, 4}));
  EXPECT_EQ(changed(main, main), std::set<std::uint32_t>{});
  EXPECT_EQ(changed(Journal(), main), std::nullopt) << "nothing in common";
  EXPECT_EQ(changed(main, fork, 1), std::nullopt) << "more than asked for";
  main = then;  // as an overlay that is rolled back
  main.add(9);
  EXPECT_EQ(changed(fork, main), (std::set<std::uint32_t>{3, 9}));
}

TEST(Journal, ForgetsWhatIsLongAgo) {
  Journal journal;
  journal.add(0);
  Journal start = journal, recent;
  constexpr std::uint32_t kAll = Journal::kChunk * Journal::kDepth;
  for (std::uint32_t i = 1; i < kAll; ++i) journal.add(i);
  EXPECT_EQ(changed(start, journal, kAll)->size(), kAll - 1);
  recent = journal;
  journal.add(kAll);
  EXPECT_EQ(changed(start, journal, kAll), std::nullopt) << "a new tree";
  EXPECT_EQ(changed(recent, journal, kAll), std::nullopt);
}

NodeSpec eight_gpus(const std::string& name) {
  NodeSpec node{.name = name, .allocatable = {{"cpu", 64000}, {"memory", 1 << 30}, {"pods", 10}}};
  for (int g = 0; g < 8; ++g) {
    node.gpus.push_back({.index = g,
                         .model = "H100",
                         .memory_mib = 81559,
                         .numa = g / 4,
                         .pcie_switch = g / 2,
                         .nvlink_clique = 0});
  }
  return node;
}

PodSpec asks(const std::string& name, int gpus) {
  PodSpec pod{.ns = "a", .name = name, .requests = {{"cpu", 1000}}};
  if (gpus > 0) pod.gpu = {.kind = GpuDemandSpec::Kind::kWhole, .count = gpus};
  return pod;
}

TEST(SnapshotBuilder, PodsBeforeTheirNodesAndOrderDoNotMatter) {
  PodSpec pod = asks("p", 2);
  pod.node_name = "n1";
  SnapshotBuilder early, late;
  early.upsert_pod(pod);
  early.upsert_node(eight_gpus("n1"));
  early.upsert_node(eight_gpus("n0"));
  late.upsert_node(eight_gpus("n0"));
  late.upsert_node(eight_gpus("n1"));
  late.upsert_pod(pod);
  EXPECT_EQ(early.publish()->dump(), late.publish()->dump());
  EXPECT_EQ(early.state().info(0).name, "n0");
  EXPECT_EQ(early.state().node(1).whole, 0b11111100);
}

TEST(SnapshotBuilder, ShapesOfGonePodsAreForgotten) {
  SnapshotBuilder builder;
  builder.upsert_node(eight_gpus("n0"));
  for (int i = 0; i < 5000; ++i) {
    PodSpec pod = asks("p", 1);
    pod.labels = {{"job", std::to_string(i)}};
    pod.spread = {
        {.topology_key = kHostnameLabel,
         .pods = {.namespaces = {"a"},
                  .selector = {
                      {.key = "job", .op = text::Operator::kIn, .values = {std::to_string(i)}}}}}};
    builder.upsert_pod(pod);
    builder.publish();
  }
  EXPECT_EQ(builder.book().live_shapes(), 1u);
  EXPECT_LE(builder.book().counters(), 4u) << "counters are reused too";
}

TEST(SnapshotBuilder, ANodeThatLosesAGpuKeepsItsPods) {
  SnapshotBuilder builder;
  NodeSpec node = eight_gpus("n0");
  builder.upsert_node(node);
  PodSpec pod = asks("p", 4);
  pod.node_name = "n0";
  pod.gpu_indices = {0, 1, 2, 3};
  builder.upsert_pod(pod);
  auto before = builder.publish();
  node.gpus[7].health = Health::kUnhealthy;
  builder.upsert_node(node);
  auto after = builder.publish();
  EXPECT_EQ(after->node(0).whole, 0b11110000);
  EXPECT_EQ(after->info(0).usable, 0b01111111);
  EXPECT_EQ(before->info(0).usable, 0b11111111) << "the old snapshot is as it was";
}

// Whoever may write his pod's annotation may name the device of another's: a device is free where
// nobody runs, not where nobody says so.
TEST(SnapshotBuilder, OneDeviceIsOnePods) {
  SnapshotBuilder builder;
  builder.upsert_node(eight_gpus("n0"));
  const auto put = [&](const std::string& name, std::vector<int> devices) {
    PodSpec pod = asks(name, static_cast<int>(devices.size()));
    pod.node_name = "n0";
    pod.gpu_indices = std::move(devices);
    builder.upsert_pod(pod);
  };
  const auto free = [&] { return std::popcount(unsigned{builder.state().node(0).whole}); };
  const auto devices = [&](const std::string& name) {
    return builder.state().pod(*builder.find_pod("a/" + name)).gpus.indices();
  };
  put("b", {0, 1, 2, 3});
  put("c", {2, 3});
  put("a", {3});
  EXPECT_EQ(free(), 1);
  EXPECT_EQ(devices("a"), (std::vector<int>{3}));
  put("d", {4});
  EXPECT_EQ(free(), 0) << "and the guesses make way";
  EXPECT_EQ(devices("d"), (std::vector<int>{4}));
  builder.remove_pod("a/a");
  EXPECT_EQ(devices("b"), (std::vector<int>{0, 1, 2, 3})) << "as they say, where nobody else does";
  EXPECT_EQ(free(), 1);
  builder.remove_pod("a/b");
  EXPECT_EQ(devices("c"), (std::vector<int>{2, 3}));
  EXPECT_EQ(free(), 5);
}

NodeSpec random_node(Random& random, const std::string& name) {
  NodeSpec node = eight_gpus(name);
  node.labels = {{kHostnameLabel, name}, {"pool", random.chance(1, 2) ? "a" : "b"}};
  if (random.chance(1, 4)) node.taints.push_back({.key = "dedicated", .value = "x"});
  if (random.chance(1, 4)) node.gpus[random.below(8)].health = Health::kUnhealthy;
  node.unschedulable = random.chance(1, 8);
  return node;
}

PodSpec random_pod(Random& random, const std::string& name, const std::string& node) {
  PodSpec pod = asks(name, static_cast<int>(random.below(4)));
  pod.labels = {{"app", random.chance(1, 2) ? "x" : "y"}};
  pod.node_selector["pool"] = "a";
  pod.anti_affinity = {
      {.topology_key = kHostnameLabel,
       .pods = {.namespaces = {"a"},
                .selector = {{.key = "app", .op = text::Operator::kIn, .values = {"x"}}}}}};
  pod.node_name = node;
  if (pod.gpu.count > 0 && random.chance(1, 2)) {
    for (int g = 0; g < pod.gpu.count; ++g) pod.gpu_indices.push_back(g);
  }
  return pod;
}

// Nodes that stay keep what is known of them while others come, go and change around them.
TEST(SnapshotBuilder, NodesThatComeAndGoLeaveWhatAFreshBuilderHas) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    std::map<std::string, NodeSpec> nodes;
    std::map<std::string, PodSpec> pods;
    SnapshotBuilder builder;
    const auto any = [&random] { return "n" + std::to_string(random.below(12)); };
    for (int step = 0; step < 60; ++step) {
      const std::string node = any();
      const std::string pod = "p" + std::to_string(random.below(30));
      if (random.chance(1, 4)) {
        nodes[node] = random_node(random, node);
        builder.upsert_node(nodes[node]);
      } else if (random.chance(1, 5)) {
        nodes.erase(node);
        builder.remove_node(node);
      } else if (random.chance(2, 3)) {
        pods[pod] = random_pod(random, pod, random.chance(1, 6) ? "" : any());
        builder.upsert_pod(pods[pod]);
      } else {
        pods.erase(pod);
        builder.remove_pod("a/" + pod);
      }
      if (random.chance(1, 3)) continue;  // several changes at once
      if (random.chance(1, 3)) builder = SnapshotBuilder(builder);
      SnapshotBuilder fresh;
      for (const auto& [name, spec] : nodes) fresh.upsert_node(spec);
      for (const auto& [name, spec] : pods) fresh.upsert_pod(spec);
      const ClusterSnapshot got = builder.publish(), want = fresh.publish();
      ASSERT_EQ(got->dump(), want->dump()) << "seed " << seed << " step " << step;
      if (pods.empty()) continue;  // no rule names a label yet, or they are remembered
      for (std::size_t slot = 0; slot < got->nodes(); ++slot) {
        ASSERT_EQ(got->inventory().class_of(slot), want->inventory().class_of(slot))
            << "seed " << seed << " step " << step;
      }
    }
  }
}

Demand whole(int count) { return {.kind = GpuDemandSpec::Kind::kWhole, .count = count}; }

TEST(DeviceChoice, SmallRequestsLeaveCliquesWhole) {
  Interner strings;
  NodeSpec spec = eight_gpus("n0");
  for (auto& gpu : spec.gpus) gpu.nvlink_clique = gpu.index / 4;
  NodeInfo info = make_node_info(spec, strings);
  EXPECT_EQ(choose_whole(info, 0b11110111, whole(1)), 0b00000001)
      << "from the clique already broken";
  EXPECT_EQ(choose_whole(info, 0b11110111, whole(4)), 0b11110000);
  EXPECT_EQ(choose_whole(info, 0b11110111, whole(2)), 0b00000011) << "one switch";
  EXPECT_EQ(choose_whole(info, 0b00000111, whole(4)), 0) << "too few";
}

// What the page says, over every subset and with nothing left out: the measures, then the indices.
std::uint16_t best_by_hand(const NodeSpec& spec, std::uint16_t free, int count) {
  auto touched = [&](unsigned set, auto position) {
    std::set<int> groups;
    for (const auto& gpu : spec.gpus) {
      int at = position(gpu);
      if ((set >> gpu.index & 1) != 0) groups.insert(at < 0 ? -1 - gpu.index : at);
    }
    return groups;
  };
  std::optional<std::tuple<std::size_t, std::size_t, std::size_t, int, std::vector<int>>> best;
  unsigned chosen = 0;
  for (unsigned set = 0; set < 0x10000; ++set) {
    if ((set & ~unsigned{free}) != 0 || std::popcount(set) != count) continue;
    auto clique = [](const GpuSpec& g) { return g.nvlink_clique; };
    auto cliques = touched(set, clique);
    int left = 0;
    std::vector<int> indices;
    for (const auto& gpu : spec.gpus) {
      bool taken = (set >> gpu.index & 1) != 0;
      int at = clique(gpu) < 0 ? -1 - gpu.index : clique(gpu);
      if (taken) indices.push_back(gpu.index);
      if (!taken && (free >> gpu.index & 1) != 0 && cliques.contains(at)) ++left;
    }
    std::tuple cost{cliques.size(), touched(set, [](const GpuSpec& g) { return g.numa; }).size(),
                    touched(set, [](const GpuSpec& g) { return g.pcie_switch; }).size(), left,
                    indices};
    if (!best || cost < *best) {
      best = cost;
      chosen = set;
    }
  }
  return static_cast<std::uint16_t>(chosen);
}

TEST(DeviceChoice, AnySubsetOfSixteenIsExact) {
  Interner strings;
  Random random(16);
  for (int round = 0; round < 12; ++round) {
    NodeSpec spec{.name = "n"};
    for (int g = 0; g < 16; ++g) {
      spec.gpus.push_back({.index = g,
                           .numa = static_cast<int>(random.below(3)) - 1,
                           .pcie_switch = static_cast<int>(random.below(6)) - 1,
                           .nvlink_clique = static_cast<int>(random.below(5)) - 1});
    }
    NodeInfo info = make_node_info(spec, strings);
    auto free = static_cast<std::uint16_t>(round % 3 == 0 ? 0xFFFF : random.below(0x10000));
    int devices = std::popcount(free);
    if (devices == 0) continue;
    int count = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(devices)));
    EXPECT_EQ(choose_whole(info, free, whole(count)), best_by_hand(spec, free, count))
        << "round " << round << ", " << count << " of " << devices;
  }
}

TEST(Fit, CountsCopiesOfEveryKind) {
  Interner strings;
  NodeInfo info = make_node_info(eight_gpus("n0"), strings);
  NodeState state = empty_state(info);
  EXPECT_EQ(fit_count(info, state, whole(3), 100), 2);
  Demand fraction{.kind = GpuDemandSpec::Kind::kFraction, .count = 1, .milli = 400};
  EXPECT_EQ(fit_count(info, state, fraction, 100), 10) << "pod slots end it at 10, devices at 16";
  fraction.count = 8;
  EXPECT_EQ(fit_count(info, state, fraction, 100), 2);
  Demand cpu{.cpu = 20000};
  EXPECT_EQ(fit_count(info, state, cpu, 100), 3);
}

}  // namespace
}  // namespace berth::model
