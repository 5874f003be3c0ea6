// The rules of topology_tree.h one by one, then random trees against what the rules promise.
#include "schedule/topology_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "base/random.h"

namespace berth::schedule {
namespace {

using model::TopologyAsk;

constexpr const char* kHost = model::kHostnameLabel;

TopologyAsk required_at(const std::string& level, std::vector<TopologyAsk::Slice> slices = {}) {
  return {.mode = TopologyAsk::Mode::kRequired, .level = level, .slices = std::move(slices)};
}
TopologyAsk preferred_at(const std::string& level, std::vector<TopologyAsk::Slice> slices = {}) {
  return {.mode = TopologyAsk::Mode::kPreferred, .level = level, .slices = std::move(slices)};
}
TopologyAsk unconstrained() { return {.mode = TopologyAsk::Mode::kUnconstrained}; }
TopologyAsk only_slices(std::vector<TopologyAsk::Slice> slices) {
  return {.slices = std::move(slices)};
}

TopologyPodSet pods(int count, TopologyAsk ask, std::int64_t per_pod = 1) {
  return {.count = count, .per_pod = {per_pod}, .ask = std::move(ask)};
}

// "block rack host" and free amounts of one resource, "gpu".
struct At {
  std::string block, rack, host;
  std::int64_t free = 0;
};

TopologyTree tree_of(const std::vector<At>& hosts) {
  TopologyTree tree("t", {"block", "rack", kHost}, {"gpu"});
  for (const At& at : hosts)
    tree.add_host({.name = at.host, .values = {at.block, at.rack, at.host}, .free = {at.free}});
  tree.seal();
  return tree;
}

// Blocks of racks of hosts, by what each host has free; hosts are named a, b, c, ... in order.
TopologyTree tree_with(const std::vector<std::vector<std::vector<std::int64_t>>>& blocks) {
  std::vector<At> hosts;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (std::size_t r = 0; r < blocks[b].size(); ++r) {
      for (const auto free : blocks[b][r]) {
        std::string host(1, static_cast<char>('a' + static_cast<int>(hosts.size())));
        hosts.push_back({"b" + std::to_string(b), "r" + std::to_string(r), host, free});
      }
    }
  }
  return tree_of(hosts);
}

std::string text_of(const model::TopologyAssignment& assignment) {
  std::string out;
  for (const auto& domain : assignment.domains) {
    out += out.empty() ? "" : " ";
    for (std::size_t i = 0; i < domain.values.size(); ++i)
      out += (i > 0 ? "/" : "") + domain.values[i];
    out += ":" + std::to_string(domain.count);
  }
  return out;
}

// "a:2 c:1", or the reason.
std::string placed(const TopologyTree& tree, const TopologyPodSet& set,
                   TopologyOptions options = {}) {
  const auto answer = tree.place({&set, 1}, options);
  return answer.ok ? text_of(answer.assignments.at(0)) : answer.message;
}

// "leader | workers".
std::string placed_led(const TopologyTree& tree, const TopologyPodSet& leader,
                       const TopologyPodSet& workers, TopologyOptions options = {}) {
  const std::vector<TopologyPodSet> group{leader, workers};
  const auto answer = tree.place(group, options);
  if (!answer.ok) return answer.message;
  return text_of(answer.assignments.at(0)) + " | " + text_of(answer.assignments.at(1));
}

// ---- required ----

TEST(TopologyTree, RequiredTakesTheTightestDomain) {
  const auto tree = tree_with({{{4, 4}, {2, 2}, {3, 3}}});  // racks of 8, 4 and 6
  EXPECT_EQ(placed(tree, pods(5, required_at("rack"))), "e:3 f:2");
  EXPECT_EQ(placed(tree, pods(4, required_at("rack"))), "c:2 d:2");
  EXPECT_EQ(placed(tree, pods(4, required_at(kHost))), "a:4") << "the first of two equal hosts";
}

TEST(TopologyTree, RequiredNeverSpills) {
  const auto tree = tree_with({{{4, 4}, {2, 2}}});
  EXPECT_EQ(placed(tree, pods(9, required_at("rack"))),
            "topology \"t\" allows to fit only 8 out of 9 pod(s)");
  EXPECT_EQ(placed(tree, pods(9, required_at("block"))), "a:4 b:4 c:1");
  EXPECT_EQ(tree.place(std::vector{pods(9, required_at("rack"))}).fits, 8);
}

// ---- preferred ----

TEST(TopologyTree, PreferredClimbsToTheNextLevelThatFits) {
  const auto tree = tree_with({{{2}, {2}}, {{3}, {3}}});
  EXPECT_EQ(placed(tree, pods(3, preferred_at("rack"))), "c:3") << "a rack has room";
  EXPECT_EQ(placed(tree, pods(4, preferred_at("rack"))), "a:2 b:2") << "the tightest block";
  EXPECT_EQ(placed(tree, pods(5, preferred_at(kHost))), "c:3 d:2") << "two levels up";
  EXPECT_EQ(placed(tree, pods(8, preferred_at("rack"))), "a:2 c:3 d:3")
      << "the roomiest block, and of the other only what is needed";
  EXPECT_EQ(placed(tree, pods(11, preferred_at("rack"))),
            "topology \"t\" allows to fit only 10 out of 11 pod(s)");
}

TEST(TopologyTree, SeveralWidestDomainsEndWithTheTightest) {
  const auto tree = tree_with({{{7}}, {{5}}, {{2}}});
  EXPECT_EQ(placed(tree, pods(9, preferred_at("block"))), "a:7 c:2") << "not b: c suffices";
}

// ---- unconstrained ----

TEST(TopologyTree, UnconstrainedUsesUpFragments) {
  const auto tree = tree_with({{{3, 3, 2, 1}}});
  EXPECT_EQ(placed(tree, pods(2, unconstrained())), "c:2") << "the least free that suffices";
  EXPECT_EQ(placed(tree, pods(7, unconstrained())), "a:3 b:1 c:2 d:1") << "least free first";
  EXPECT_EQ(placed(tree, pods(7, {})), "a:3 b:1 c:2 d:1") << "nothing asked is unconstrained";
  EXPECT_EQ(placed(tree, pods(7, unconstrained()), {.mixed = false}), "a:3 b:3 d:1")
      << "most free first, the last as tight as can be";
  EXPECT_EQ(placed(tree, pods(10, unconstrained())),
            "topology \"t\" allows to fit only 9 out of 10 pod(s)");
}

TEST(TopologyTree, FullHostsAreNotTaken) {
  const auto tree = tree_with({{{0, 2, 0, 1}}});
  EXPECT_EQ(placed(tree, pods(3, unconstrained())), "b:2 d:1");
}

// ---- slices ----

TEST(TopologyTree, SlicesCountWholeAndBreakTiesByFewestPods) {
  const auto tree = tree_with({{{6, 5, 4, 3, 2}}});
  const std::vector<TopologyAsk::Slice> two{{kHost, 2}};
  EXPECT_EQ(placed(tree, pods(12, required_at("rack", two))), "a:6 c:4 e:2");
  EXPECT_EQ(placed(tree, pods(10, only_slices(two))), "b:2 c:4 d:2 e:2");
  EXPECT_EQ(placed(tree, pods(20, required_at("rack", two))),
            "topology \"t\" allows to fit only 9 out of 10 slice(s)");
}

TEST(TopologyTree, ASliceStaysInOneDomainOfItsLevel) {
  const auto tree = tree_with({{{3, 2}, {3}, {3, 3}}});  // rack slices of 4: 1, 0, 1
  EXPECT_EQ(placed(tree, pods(8, required_at("block", {{"rack", 4}}))), "a:3 b:1 d:3 e:1");
  EXPECT_EQ(placed(tree, pods(12, required_at("block", {{"rack", 4}}))),
            "topology \"t\" allows to fit only 2 out of 3 slice(s)");
}

TEST(TopologyTree, SlicesAloneStartAtTheWidestLevel) {
  const auto tree = tree_with({{{4}, {4}}, {{4}, {3}}});
  // Slices of 4 per rack: block 0 has two, block 1 has one.
  EXPECT_EQ(placed(tree, pods(4, only_slices({{"rack", 4}}))), "c:4") << "the least free block";
  EXPECT_EQ(placed(tree, pods(8, only_slices({{"rack", 4}}))), "a:4 b:4") << "one block suffices";
  EXPECT_EQ(placed(tree, pods(12, only_slices({{"rack", 4}}))), "a:4 b:4 c:4");
  TopologyAsk both = only_slices({{"rack", 4}});
  both.mode = TopologyAsk::Mode::kUnconstrained;
  EXPECT_EQ(placed(tree, pods(4, both)), "c:4") << "unconstrained adds nothing";
}

TEST(TopologyTree, LayersOfSlicesDivideEachOther) {
  // Groups of 4 in a rack, pairs on a host: hosts of 3 hold one pair.
  const auto tree = tree_with({{{3, 3}, {3, 1}}, {{5, 2}}});
  const std::vector<TopologyAsk::Slice> layers{{"rack", 4}, {kHost, 2}};
  EXPECT_EQ(placed(tree, pods(4, required_at("rack", layers))), "a:2 b:2")
      << "rack 1 of block 0 has 4 pods free but only one pair";
  EXPECT_EQ(placed(tree, pods(8, preferred_at("block", layers))), "a:2 b:2 e:4");
  EXPECT_EQ(placed(tree, pods(8, required_at("block", layers))),
            "topology \"t\" allows to fit only 1 out of 2 slice(s); "
            "1/2 slice(s) fit on level rack; 3/4 slice(s) fit on level kubernetes.io/hostname");
}

TEST(TopologyTree, ThreeLayers) {
  TopologyTree tree("t", {"zone", "block", "rack", kHost}, {"gpu"});
  const auto host = [&](const std::string& block, const std::string& rack, const std::string& name,
                        std::int64_t free) {
    tree.add_host({.name = name, .values = {"z", block, rack, name}, .free = {free}});
  };
  host("b0", "r0", "a", 8);
  host("b0", "r1", "b", 5);
  host("b0", "r1", "c", 3);
  host("b1", "r2", "d", 8);
  host("b1", "r2", "e", 1);
  tree.seal();
  const std::vector<TopologyAsk::Slice> layers{{"block", 8}, {"rack", 4}, {kHost, 2}};
  EXPECT_EQ(placed(tree, pods(16, required_at("zone", layers))), "a:8 d:8")
      << "b and c hold three pairs, so one group of four: block 0 has room for 12, one slice";
  EXPECT_EQ(placed(tree, pods(24, required_at("zone", layers))),
            "topology \"t\" allows to fit only 2 out of 3 slice(s); 2/3 slice(s) fit on level "
            "block; 5/6 slice(s) fit on level rack; 11/12 slice(s) fit on level "
            "kubernetes.io/hostname");
}

// ---- going down ----

TEST(TopologyTree, FewDomainsOfEveryLevel) {
  // Racks of 6, 5 and 1: two racks, and of these the fewest hosts.
  const auto tree = tree_with({{{3, 3}, {5}, {1}}});
  EXPECT_EQ(placed(tree, pods(10, required_at("block"))), "a:3 b:2 c:5");
  EXPECT_EQ(placed(tree, pods(9, required_at("block"))), "a:3 b:1 c:5");
  EXPECT_EQ(placed(tree, pods(8, required_at("block"))), "a:3 c:5") << "host b is not needed";
  EXPECT_EQ(placed(tree, pods(7, required_at("block"))), "a:3 b:3 d:1")
      << "rack 2 suffices for the last pod, so rack 1 is left alone";
}

TEST(TopologyTree, EqualSlicesPreferFewerPodsFree) {
  const auto tree = tree_with({{{5}, {4}}});
  EXPECT_EQ(placed(tree, pods(4, required_at("rack", {{"rack", 4}}))), "b:4");
}

// ---- leader and workers ----

TEST(TopologyTree, LeaderAndWorkersShareTheDomain) {
  const auto tree = tree_with({{{4, 1}, {4, 4}}});
  const auto leader = pods(1, required_at("rack"), 2);
  EXPECT_EQ(placed_led(tree, leader, pods(3, required_at("rack"))), "a:1 | a:2 b:1")
      << "rack 0 has room for the leader of 2 and 3 workers";
  EXPECT_EQ(placed_led(tree, leader, pods(4, required_at("rack"))), "c:1 | c:2 d:2");
  EXPECT_EQ(placed_led(tree, leader, pods(7, required_at("rack"))),
            "topology \"t\" allows to fit only 6 out of 7 pod(s)");
  EXPECT_EQ(placed_led(tree, pods(1, required_at("rack"), 5), pods(1, required_at("rack"))),
            "topology \"t\" doesn't allow to fit any of 1 pod(s)")
      << "no host takes the leader";
}

TEST(TopologyTree, TheSmallerSetLeadsWhereverItStands) {
  const auto tree = tree_with({{{4, 4}}});
  EXPECT_EQ(placed_led(tree, pods(4, required_at("rack")), pods(1, required_at("rack"), 3)),
            "a:1 b:3 | a:1")
      << "workers first";
  const std::vector<TopologyPodSet> two{pods(2, unconstrained()), pods(3, unconstrained())};
  const auto answer = tree.place(two);
  EXPECT_FALSE(answer.ok);
  EXPECT_TRUE(answer.invalid);
  EXPECT_EQ(answer.message,
            "of two pod sets placed together one must have a single pod, the leader; the smaller "
            "has 2");
}

TEST(TopologyTree, TheLeaderGoesWhereTheWorkersStillFit) {
  // On a the leader costs a slice of 4; on b it costs nothing.
  const auto tree = tree_with({{{8, 6}}});
  EXPECT_EQ(
      placed_led(tree, pods(1, required_at("rack")), pods(12, required_at("rack", {{kHost, 4}}))),
      "b:1 | a:8 b:4");
  EXPECT_EQ(
      placed_led(tree, pods(1, required_at("rack")), pods(8, required_at("rack", {{kHost, 4}}))),
      "b:1 | a:4 b:4")
      << "beside the leader each has one slice; b has fewer pods to spare";
}

TEST(TopologyTree, LeaderAcrossTheWidestDomains) {
  const auto tree = tree_with({{{3}}, {{2}}});
  EXPECT_EQ(placed_led(tree, pods(1, preferred_at("rack")), pods(4, preferred_at("rack"))),
            "a:1 | a:2 b:2");
  EXPECT_EQ(placed_led(tree, pods(1, preferred_at("rack"), 3), pods(2, preferred_at("rack"))),
            "a:1 | b:2")
      << "the leader fills its host";
  EXPECT_EQ(placed_led(tree, pods(1, preferred_at("rack")), pods(5, preferred_at("rack"))),
            "topology \"t\" allows to fit only 4 out of 5 pod(s)");
}

// ---- balanced ----

TopologyOptions evenly() { return {.balanced = true}; }

TEST(TopologyBalanced, SpreadsEvenlyOverTheFewest) {
  EXPECT_EQ(placed(tree_with({{{15}, {15}}}), pods(25, preferred_at("rack")), evenly()),
            "a:13 b:12");
  EXPECT_EQ(placed(tree_with({{{15, 13, 10}}}), pods(23, preferred_at("rack")), evenly()),
            "a:12 b:11");
  EXPECT_EQ(placed(tree_with({{{20, 10}, {15, 15}}}), pods(22, preferred_at("rack")), evenly()),
            "c:11 d:11");
  EXPECT_EQ(placed(tree_with({{{20, 10}, {15, 15}}}), pods(20, preferred_at("rack")), evenly()),
            "a:20");
  EXPECT_EQ(placed(tree_with({{{10, 5}, {5, 5, 5}}}), pods(15, preferred_at("rack")), evenly()),
            "c:5 d:5 e:5")
      << "of two racks of 15 the more even";
  EXPECT_EQ(placed(tree_with({{{15}, {15}}, {{15, 15}}}), pods(25, preferred_at("rack")), evenly()),
            "c:13 d:12")
      << "the block where one rack suffices";
  EXPECT_EQ(placed(tree_with({{{15}, {15}, {15, 15}}}),
                   pods(25, preferred_at("rack", {{kHost, 5}})), evenly()),
            "c:15 d:10");
}

TEST(TopologyBalanced, OnlyPreferredIsBalanced) {
  const auto tree = tree_with({{{10, 10}}});
  EXPECT_EQ(placed(tree, pods(12, preferred_at("rack")), evenly()), "a:6 b:6");
  EXPECT_EQ(placed(tree, pods(12, preferred_at("rack"))), "a:10 b:2");
  EXPECT_EQ(placed(tree, pods(12, required_at("rack")), evenly()), "a:10 b:2");
}

TEST(TopologyBalanced, FallsBackWhereItCanNot) {
  EXPECT_EQ(placed(tree_with({{{5}}, {{4}}}), pods(8, preferred_at("rack")), evenly()), "a:5 b:3")
      << "no block has room for all";
  // 100 and 51 give a threshold of 51; the one rack that suffices would need three hosts of it.
  EXPECT_EQ(placed(tree_with({{{100}, {51, 51, 51}}}), pods(151, preferred_at("rack")), evenly()),
            "b:51 c:51 d:49");
}

TEST(TopologyBalanced, SlicesOfTheAskedLevelAreSpreadThere) {
  EXPECT_EQ(placed(tree_with({{{6, 6}, {6, 6}, {2}}}),
                   pods(16, preferred_at("rack", {{"rack", 4}})), evenly()),
            "a:6 b:2 c:6 d:2")
      << "two slices of 4 in each of two racks";
}

TEST(TopologyBalanced, TheTightestSetOfTheFewest) {
  // Two of four hosts for 10 with at least 5 each: 6 and 5, not 9.
  EXPECT_EQ(placed(tree_with({{{9, 5, 6, 4}}}), pods(10, preferred_at("rack")), evenly()),
            "b:5 c:5");
}

TEST(TopologyBalanced, OfEquallyTightSetsTheMostEven) {
  // Any two racks have room for 20; without the first their hosts are alike.
  EXPECT_EQ(placed(tree_with({{{6, 4}, {5, 5}, {5, 5}}}), pods(12, preferred_at("rack")), evenly()),
            "c:4 d:4 e:4");
}

TEST(TopologyBalanced, ExtraSlicesGoRound) {
  EXPECT_EQ(placed(tree_with({{{4, 4, 4, 4}}}), pods(15, preferred_at("rack")), evenly()),
            "a:4 b:4 c:4 d:3");
}

TEST(TopologyBalanced, WhatOneCanNotTakeGoesToTheOthers) {
  // The threshold is 3, the room of c; 20 more go round, and a is full first.
  EXPECT_EQ(placed(tree_with({{{9, 30, 3}}}), pods(29, preferred_at(kHost)), evenly()), "b:29");
  EXPECT_EQ(placed(tree_with({{{9, 21, 3}}}), pods(29, preferred_at(kHost)), evenly()), "a:9 b:20");
  EXPECT_EQ(placed(tree_with({{{9, 17, 3}}}), pods(28, preferred_at(kHost)), evenly()),
            "a:9 b:16 c:3");
}

TEST(TopologyBalanced, WithALeader) {
  EXPECT_EQ(placed_led(tree_with({{{7, 7}}}), pods(1, preferred_at("rack"), 2),
                       pods(10, preferred_at("rack")), evenly()),
            "a:1 | a:5 b:5");
  EXPECT_EQ(placed_led(tree_with({{{5, 6}}}), pods(1, preferred_at("rack")),
                       pods(10, preferred_at("rack")), evenly()),
            "b:1 | a:5 b:5")
      << "a keeps its 5 workers but can not lead";
}

// ---- what excludes nodes ----

TopologyHost labelled(const std::string& name, model::Labels labels,
                      std::vector<model::Taint> taints, std::int64_t free = 4) {
  return {.name = name,
          .values = {"r", name},
          .free = {free, 10},
          .labels = std::move(labels),
          .taints = std::move(taints)};
}

TopologyTree mixed_nodes(const std::string& lowest) {
  TopologyTree tree("t", {"rack", lowest}, {"gpu", "pods"});
  tree.add_host(labelled("a", {{"kind", "h100"}}, {}));
  tree.add_host(labelled("b", {{"kind", "a100"}}, {}));
  tree.add_host(
      labelled("c", {{"kind", "h100"}}, {{"team", "x", model::TaintEffect::kNoSchedule}}));
  tree.add_host(
      labelled("d", {{"kind", "h100"}}, {{"soft", "", model::TaintEffect::kPreferNoSchedule}}));
  tree.add_host(labelled("e", {{"kind", "h100"}, {"zone", "z"}},
                         {{"gone", "", model::TaintEffect::kNoExecute}}));
  tree.add_host(labelled("f", {{"kind", "h100"}}, {}, 0));
  tree.seal();
  return tree;
}

TEST(TopologyTree, SelectorsTaintsAndAffinityOfNodes) {
  const auto tree = mixed_nodes(kHost);
  model::PodSpec pod;
  pod.node_selector = {{"kind", "h100"}};
  auto set = pods(8, unconstrained());
  set.pod = &pod;
  EXPECT_EQ(placed(tree, set), "a:4 d:4");
  set.count = 9;
  EXPECT_EQ(placed(tree, set),
            "topology \"t\" allows to fit only 8 out of 9 pod(s). Total nodes: 6; excluded: "
            "nodeSelector: 1, taint \"gone:NoExecute\": 1, taint \"team=x:NoSchedule\": 1, "
            "resource \"gpu\": 1");
  const std::vector<model::Toleration> flavor{{.key = "team", .value = "x"}};
  set.tolerations = flavor;
  set.count = 12;
  EXPECT_EQ(placed(tree, set), "a:4 c:4 d:4") << "the flavor tolerates";
  pod.tolerations = {{.op = model::Toleration::Op::kExists}};
  pod.required_nodes = {{.labels = {{"zone", text::Operator::kExists, {}}}}};
  EXPECT_EQ(placed(tree, set),
            "topology \"t\" allows to fit only 4 out of 12 pod(s). Total nodes: 6; excluded: "
            "nodeSelector: 1, affinity: 4");
  pod.required_nodes = {{.fields = {{"metadata.name", text::Operator::kIn, {"f", "a"}}}}};
  set.count = 4;
  EXPECT_EQ(placed(tree, set), "a:4");
}

TEST(TopologyTree, GroupsOfNodesAreNotJudgedByRules) {
  const auto tree = mixed_nodes("slot");
  model::PodSpec pod;
  pod.node_selector = {{"kind", "none"}};
  auto set = pods(20, unconstrained());
  set.pod = &pod;
  EXPECT_EQ(placed(tree, set), "r/a:4 r/b:4 r/c:4 r/d:4 r/e:4");
}

TEST(TopologyTree, LeaderAndWorkersAreJudgedApart) {
  const auto tree = mixed_nodes(kHost);
  model::PodSpec on_a100, on_h100;
  on_a100.node_selector = {{"kind", "a100"}};
  on_h100.node_selector = {{"kind", "h100"}};
  auto leader = pods(1, required_at("rack"));
  auto workers = pods(4, required_at("rack"));
  leader.pod = &on_a100;
  workers.pod = &on_h100;
  EXPECT_EQ(placed_led(tree, leader, workers), "b:1 | a:4");
}

TEST(TopologyTree, EveryPodTakesOneOfPods) {
  TopologyTree tree("t", {kHost}, {"gpu", "pods"});
  tree.add_host({.name = "a", .values = {"a"}, .free = {100, 3}});
  tree.seal();
  EXPECT_EQ(placed(tree, pods(3, unconstrained())), "a:3");
  EXPECT_EQ(placed(tree, pods(4, unconstrained())),
            "topology \"t\" allows to fit only 3 out of 4 pod(s)");
  const std::vector<std::string> a{"a"};
  tree.add(a, 2, std::vector<std::int64_t>{1});
  EXPECT_EQ(placed(tree, pods(2, unconstrained())),
            "topology \"t\" allows to fit only 1 out of 2 pod(s)");
  tree.add(a, 1, std::vector<std::int64_t>{98});
  EXPECT_EQ(placed(tree, pods(1, unconstrained())),
            "topology \"t\" doesn't allow to fit any of 1 pod(s). Total nodes: 1; excluded: "
            "resource \"gpu\": 1");
}

TEST(TopologyTree, ATreeWithoutHosts) {
  EXPECT_EQ(placed(tree_of({}), pods(2, required_at("rack"))),
            "topology \"t\" doesn't allow to fit any of 2 pod(s)");
  EXPECT_EQ(placed(tree_of({}), pods(0, required_at("rack"))), "");
}

// ---- usage ----

TEST(TopologyTree, UsageCountsUnlessTheClusterIsTakenAsEmpty) {
  auto tree = tree_with({{{4, 4}}});
  const std::vector<std::string> a{"a"}, unknown{"zz"};
  const std::vector<std::int64_t> one{1};
  tree.add(a, 3, one);
  tree.add(unknown, 3, one);
  EXPECT_EQ(placed(tree, pods(6, required_at("rack"))),
            "topology \"t\" allows to fit only 5 out of 6 pod(s)");
  EXPECT_EQ(placed(tree, pods(6, required_at("rack")), {.empty = true}), "a:4 b:2");
  tree.add(a, 3, one);  // over-committed
  EXPECT_EQ(placed(tree, pods(4, required_at("rack"))), "b:4");
  tree.take(a, 3, one);
  EXPECT_EQ(placed(tree, pods(5, required_at("rack"))), "a:1 b:4");
  tree.take(unknown, 3, one);
  tree.take(tree.leaf(a), 3, one);
  EXPECT_EQ(placed(tree, pods(8, required_at("rack"))), "a:4 b:4");
  EXPECT_EQ(tree.leaf(unknown), TopologyTree::kNoLeaf);
}

TEST(TopologyTree, GroupsOfNodesAreSummedAndNamedByAllLevels) {
  TopologyTree tree("t", {"block", "rack"}, {"gpu"});
  tree.add_host({.name = "n3", .values = {"b1", "r1"}, .free = {1}});
  tree.add_host({.name = "n1", .values = {"b0", "r1"}, .free = {1}});
  tree.add_host({.name = "n2", .values = {"b0", "r1"}, .free = {2}});
  tree.seal();
  EXPECT_EQ(tree.leaves(), 2U);
  EXPECT_EQ(placed(tree, pods(4, unconstrained())), "b0/r1:3 b1/r1:1");
  const std::vector<std::string> rack{"b0", "r1"};
  tree.add(rack, 2, std::vector<std::int64_t>{1});
  EXPECT_EQ(placed(tree, pods(2, unconstrained())), "b0/r1:1 b1/r1:1");
  EXPECT_EQ(tree.leaf(std::vector<std::string>{"r1"}), TopologyTree::kNoLeaf);
  const auto answer = tree.place(std::vector{pods(1, unconstrained())});
  EXPECT_EQ(answer.assignments.at(0).levels, (std::vector<std::string>{"block", "rack"}));
}

TEST(TopologyTree, OneHostnameIsOneLeaf) {
  const auto tree = tree_of({{"b1", "r0", "a", 9}, {"b0", "r0", "a", 2}, {"b0", "r0", "b", 1}});
  EXPECT_EQ(tree.leaves(), 2U);
  EXPECT_EQ(placed(tree, pods(3, unconstrained())), "a:2 b:1");
}

TEST(TopologyTree, OrderIsThatOfAllLevels) {
  const auto tree = tree_of({{"b0", "r1", "a", 1}, {"b0", "r0", "z", 1}});
  EXPECT_EQ(placed(tree, pods(2, required_at("block"))), "z:1 a:1") << "rack r0 comes first";
}

// ---- asks that can not be met ----

TEST(TopologyTree, WrongAsksSayWhatToDo) {
  const auto tree = tree_with({{{4}}});
  const auto why = [&](const TopologyPodSet& set) {
    const auto answer = tree.place({&set, 1});
    EXPECT_FALSE(answer.ok);
    EXPECT_TRUE(answer.invalid);
    return answer.message;
  };
  EXPECT_EQ(why(pods(1, required_at("row"))),
            "the required level \"row\" is not a level of topology \"t\"; its levels are block, "
            "rack, kubernetes.io/hostname");
  EXPECT_EQ(why(pods(1, preferred_at("row"))).substr(0, 25), "the preferred level \"row\"");
  EXPECT_EQ(why(pods(1, only_slices({{"row", 1}}))).substr(0, 25), "the level of slices \"row\"");
  EXPECT_EQ(why(pods(3, only_slices({{"rack", 2}}))),
            "3 pods are not a multiple of the size of slices, 2");
  EXPECT_EQ(why(pods(2, required_at("rack", {{"block", 2}}))),
            "slices at \"block\" lie above the level \"rack\" that is asked for all pods");
  EXPECT_EQ(why(pods(4, only_slices({{"rack", 4}, {"rack", 2}}))),
            "slices at \"rack\" must lie below those at \"rack\"");
  EXPECT_EQ(why(pods(6, only_slices({{"block", 6}, {"rack", 4}}))),
            "slices of 4 at \"rack\" do not divide those of 6 at \"block\"");
  EXPECT_EQ(why(pods(6, only_slices({{"rack", 0}}))),
            "the size of slices is 0; it must be at least 1");
  EXPECT_EQ(why(pods(8, only_slices({{"block", 8}, {"rack", 4}, {kHost, 2}, {kHost, 1}}))),
            "slices have 4 layers; at most 3 are possible");
  EXPECT_TRUE(tree.has_level("rack"));
  EXPECT_FALSE(tree.has_level("row"));
}

TEST(TopologyTree, ExplainingIsOptional) {
  const auto tree = tree_with({{{4}}});
  const auto set = pods(5, unconstrained());
  const auto answer = tree.place({&set, 1}, {.explain = false});
  EXPECT_FALSE(answer.ok);
  EXPECT_EQ(answer.fits, 4);
  EXPECT_EQ(answer.message, "");
}

// ---- replacing a node ----

model::TopologyAssignment on_hosts(const std::vector<std::pair<std::string, int>>& hosts) {
  model::TopologyAssignment out{.levels = {kHost}};
  for (const auto& [host, count] : hosts) out.domains.push_back({{host}, count});
  return out;
}

std::string replaced(const TopologyTree& tree, const TopologyPodSet& set,
                     const model::TopologyAssignment& now, const std::string& node) {
  const auto answer = tree.replace(set, now, node);
  return answer.ok ? text_of(answer.assignments.at(0)) : answer.message;
}

TEST(TopologyReplace, TheRestStaysAndTheRequiredDomainHolds) {
  auto tree = tree_with({{{4, 4, 4}, {9}}});
  const std::vector<std::int64_t> one{1};
  const auto now = on_hosts({{"a", 4}, {"b", 3}});
  tree.add(std::vector<std::string>{"a"}, 4, one);
  tree.add(std::vector<std::string>{"b"}, 3, one);
  EXPECT_EQ(replaced(tree, pods(7, required_at("rack")), now, "a"), "b:3 c:4");
  EXPECT_EQ(replaced(tree, pods(7, required_at("rack")), now, "b"), "a:4 c:3");
  EXPECT_EQ(replaced(tree, pods(7, preferred_at("rack")), now, "a"), "b:3 c:4") << "tightest rack";
  tree.add(std::vector<std::string>{"c"}, 2, one);
  EXPECT_EQ(replaced(tree, pods(7, required_at("rack")), now, "a"),
            "topology \"t\" allows to fit only 3 out of 4 pod(s). Total nodes: 3; excluded: "
            "topologyDomain: 1");
  EXPECT_EQ(replaced(tree, pods(7, preferred_at("rack")), now, "a"), "b:3 d:4");
  EXPECT_EQ(replaced(tree, pods(7, required_at("rack")), now, "c"), "a:4 b:3") << "not used";
}

TEST(TopologyReplace, ANodeThatIsGone) {
  auto tree = tree_with({{{4, 4}, {9}}});
  EXPECT_EQ(replaced(tree, pods(4, required_at("rack")), on_hosts({{"a", 2}, {"gone", 2}}), "gone"),
            "a:4");
  EXPECT_EQ(replaced(tree, pods(4, required_at("rack")), on_hosts({{"gone", 4}}), "gone"), "a:4")
      << "nothing stays, so any rack will do";
  EXPECT_EQ(
      replaced(tree, pods(4, required_at("rack")), on_hosts({{"gone", 2}, {"lost", 2}}), "gone"),
      "topology \"t\" has none of the domains that hold the rest of the pods");
}

TEST(TopologyReplace, ABrokenSliceIsMendedInItsDomain) {
  const auto tree = tree_with({{{4, 4}, {4, 4}, {1}}});
  const auto ask = required_at("block", {{"rack", 4}});
  // Rack 0 lost 2 of its slice of 4; the gap is there though rack 2 would be tighter.
  EXPECT_EQ(replaced(tree, pods(8, ask), on_hosts({{"a", 2}, {"gone", 2}, {"c", 4}}), "gone"),
            "a:4 c:4");
  // A whole slice is lost: it may go to any rack of the block.
  EXPECT_EQ(replaced(tree, pods(8, ask), on_hosts({{"a", 4}, {"c", 4}}), "a"), "b:4 c:4");
  EXPECT_EQ(
      replaced(tree_with({{{4}, {4}, {4}}}), pods(8, ask), on_hosts({{"a", 4}, {"b", 4}}), "a"),
      "b:8")
      << "usage was not counted here";
}

TEST(TopologyReplace, TheInnermostBrokenLayerSaysWhere) {
  // Groups of 4 in a block, pairs in a rack. One pod of a pair is lost: it returns to that rack.
  const auto tree = tree_with({{{2, 2}, {2, 2}}});
  const auto ask = only_slices({{"block", 4}, {"rack", 2}});
  EXPECT_EQ(replaced(tree, pods(4, ask), on_hosts({{"a", 1}, {"gone", 1}, {"c", 2}}), "gone"),
            "a:2 c:2");
  // A whole pair is lost: the block's group is broken, the pair is not.
  auto used = tree_with({{{1, 1}, {1}, {2}}, {{2}}});
  for (const std::string host : {"a", "b"})
    used.add(std::vector{host}, 1, std::vector<std::int64_t>{1});
  EXPECT_EQ(replaced(used, pods(4, ask), on_hosts({{"a", 1}, {"b", 1}, {"gone", 2}}), "gone"),
            "a:1 b:1 d:2")
      << "inside the block, and both in one rack";
}

TEST(TopologyReplace, NeedsHostnames) {
  TopologyTree tree("t", {"rack"}, {"gpu"});
  tree.seal();
  const auto answer = tree.replace(pods(1, {}), {}, "a");
  EXPECT_TRUE(answer.invalid);
  EXPECT_EQ(answer.message,
            "topology \"t\" can not replace nodes: its lowest level is not kubernetes.io/hostname");
}

// ---- random trees against what the rules promise ----

// A random question with the definitions worked out by hand, without the tree: which totals each
// domain can take is found by adding up sets of totals, not by dividing.
class Puzzle {
 public:
  static constexpr int kLevels = 3;
  using Totals = std::set<int>;

  explicit Puzzle(Random& random) {
    const auto blocks = random.between(1, 3);
    for (int b = 0; b < blocks; ++b) {
      const auto racks = random.between(1, 3);
      for (int r = 0; r < racks; ++r) {
        const auto count = random.between(1, 3);
        for (int h = 0; h < count; ++h) {
          const std::string name =
              "h" + std::to_string(random.below(1000)) + "-" + std::to_string(hosts.size());
          hosts.push_back(
              {"b" + std::to_string(b), "r" + std::to_string(r), name, random.between(0, 6)});
        }
      }
    }
    std::sort(hosts.begin(), hosts.end(), [](const At& a, const At& b) {
      return std::tie(a.block, a.rack, a.host) < std::tie(b.block, b.rack, b.host);
    });
    set = pods(0, {}, random.between(1, 2));
    mode = static_cast<int>(random.below(4));
    level = static_cast<int>(random.below(kLevels));
    make_slices(random);
    const int size = layers.empty() ? 1 : layers.front().second;
    set.count = size * static_cast<int>(random.between(1, 12 / size + 1));
    if (mode == 0) set.ask.mode = TopologyAsk::Mode::kRequired;
    if (mode == 1) set.ask.mode = TopologyAsk::Mode::kPreferred;
    if (mode == 2) set.ask.mode = TopologyAsk::Mode::kUnconstrained;
    if (mode <= 1) set.ask.level = kNames[level];
    if (mode > 1) level = layers.empty() ? kLevels - 1 : 0;
    if (random.chance(1, 3)) leader = pods(1, set.ask, random.between(1, 5));
  }

  // Free of the leaf for workers, in pods, where the leader may sit there too.
  int room(std::size_t leaf, bool leads) const {
    const auto free = hosts[leaf].free - (leads ? leader->per_pod[0] : 0);
    return static_cast<int>(std::max<std::int64_t>(free, 0) / set.per_pod[0]);
  }

  // The domain of a leaf at a level, -1 being the whole tree.
  std::string domain(std::size_t leaf, int at) const {
    const At& host = hosts[leaf];
    if (at < 0) return "";
    if (at == 0) return host.block;
    return at == 1 ? host.block + "/" + host.rack : host.block + "/" + host.rack + "/" + host.host;
  }
  int size_at(int at) const {
    for (const auto& [l, size] : layers) {
      if (l == at) return size;
    }
    return 1;
  }

  // Totals of workers that the leaves of one domain can take; led: with the leader among them.
  Totals totals(int at, const std::string& name, bool led) const {
    Totals out;
    if (at == kLevels - 1) {
      for (std::size_t l = 0; l < hosts.size(); ++l) {
        if (domain(l, at) != name || (led && hosts[l].free < leader->per_pod[0])) continue;
        for (int n = 0; n <= room(l, led); ++n) out.insert(n);
      }
    } else {
      out = sums(at, name, led);
    }
    std::erase_if(out, [&](int n) { return n % size_at(at) != 0; });
    return out;
  }

  std::vector<std::string> domains(int at, const std::string& inside = "",
                                   int inside_at = -1) const {
    std::vector<std::string> out;
    for (std::size_t l = 0; l < hosts.size(); ++l) {
      if (domain(l, inside_at) != inside) continue;
      if (out.empty() || out.back() != domain(l, at)) out.push_back(domain(l, at));
    }
    return out;
  }

  TopologyAnswer ask(const TopologyTree& tree, TopologyOptions options = {}) const {
    std::vector<TopologyPodSet> group{set};
    if (leader) group.push_back(*leader);
    // Two single pods: the first leads.
    if (leader && set.count == 1) std::swap(group[0], group[1]);
    auto answer = tree.place(group, options);
    if (answer.ok && leader && set.count == 1)
      std::swap(answer.assignments[0], answer.assignments[1]);
    return answer;
  }

  std::vector<At> hosts;  // by values
  TopologyPodSet set;
  std::optional<TopologyPodSet> leader;
  int mode = 0, level = 0;
  std::vector<std::pair<int, int>> layers;  // level and size

 private:
  static constexpr const char* kNames[] = {"block", "rack", model::kHostnameLabel};

  void make_slices(Random& random) {
    if (!random.chance(2, 3)) return;
    int at = mode <= 1 ? static_cast<int>(random.between(level, kLevels - 1))
                       : static_cast<int>(random.below(kLevels));
    int size = random.chance(1, 2) ? 4 : static_cast<int>(random.between(1, 4));
    for (; at < kLevels; ++at) {
      layers.emplace_back(at, size);
      set.ask.slices.push_back({kNames[at], size});
      if (size % 2 != 0 || random.chance(1, 2)) break;
      size /= 2;
    }
  }

  Totals sums(int at, const std::string& name, bool led) const {
    Totals plain{0}, with_leader;
    for (const auto& child : domains(at + 1, name, at)) {
      const Totals more = totals(at + 1, child, false);
      Totals next_led;
      if (led) {
        const Totals here = totals(at + 1, child, true);
        for (const int a : plain) {
          for (const int b : here) next_led.insert(a + b);
        }
        for (const int a : with_leader) {
          for (const int b : more) next_led.insert(a + b);
        }
      }
      Totals next;
      for (const int a : plain) {
        for (const int b : more) next.insert(a + b);
      }
      plain = std::move(next);
      with_leader = std::move(next_led);
    }
    return led ? with_leader : plain;
  }
};

// Workers by leaf of the puzzle.
std::vector<int> by_leaf(const Puzzle& puzzle, const model::TopologyAssignment& assignment) {
  std::vector<int> out(puzzle.hosts.size(), 0);
  std::size_t last = 0;
  for (const auto& d : assignment.domains) {
    for (std::size_t l = 0; l < out.size(); ++l) {
      if (puzzle.hosts[l].host != d.values.at(0)) continue;
      EXPECT_EQ(out[l], 0) << "named twice";
      EXPECT_TRUE(last <= l) << "not sorted";
      EXPECT_GT(d.count, 0);
      out[l] = d.count;
      last = l;
    }
  }
  return out;
}

std::map<std::string, int> by_domain(const Puzzle& puzzle, const std::vector<int>& workers,
                                     int level) {
  std::map<std::string, int> out;
  for (std::size_t l = 0; l < workers.size(); ++l) {
    if (workers[l] > 0) out[puzzle.domain(l, level)] += workers[l];
  }
  return out;
}

// Amounts, slices, and the leader beside its workers.
void check_lawful(const Puzzle& puzzle, const TopologyAnswer& answer) {
  const auto workers = by_leaf(puzzle, answer.assignments.at(0));
  int total = 0;
  std::vector<int> leads(workers.size(), 0);
  if (puzzle.leader) leads = by_leaf(puzzle, answer.assignments.at(1));
  EXPECT_EQ(std::count(leads.begin(), leads.end(), 1), puzzle.leader ? 1 : 0);
  for (std::size_t l = 0; l < workers.size(); ++l) {
    total += workers[l];
    EXPECT_LE(workers[l], puzzle.room(l, leads[l] > 0));
    if (leads[l] > 0) {
      EXPECT_GE(puzzle.hosts[l].free, puzzle.leader->per_pod[0]);
    }
  }
  EXPECT_EQ(total, puzzle.set.count);
  for (const auto& [level, size] : puzzle.layers) {
    for (const auto& [name, count] : by_domain(puzzle, workers, level))
      EXPECT_EQ(count % size, 0) << name;
  }
}

bool fits_one(const Puzzle& puzzle, int level) {
  const auto names = puzzle.domains(level);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return puzzle.totals(level, name, puzzle.leader.has_value()).contains(puzzle.set.count);
  });
}

// The narrowest level, from the asked one up, at which one domain takes everything; -1: none.
int narrowest(const Puzzle& puzzle) {
  for (int level = puzzle.level; level >= 0; --level) {
    if (fits_one(puzzle, level)) return level;
    if (puzzle.mode != 1) return -1;
  }
  return -1;
}

int slices_in(const Puzzle& puzzle, const Puzzle::Totals& totals) {
  const int size = puzzle.layers.empty() ? 1 : puzzle.layers.front().second;
  int most = 0;
  for (const int total : totals) {
    if (total % size == 0) most = std::max(most, total / size);
  }
  return most;
}

// Feasible exactly when the definition says so; a "no" tells the most that fits.
void check_feasible(const Puzzle& puzzle, const TopologyAnswer& answer) {
  const bool led = puzzle.leader.has_value();
  int most = slices_in(puzzle, puzzle.totals(-1, "", led));
  if (puzzle.mode == 0) {
    most = 0;
    for (const auto& name : puzzle.domains(puzzle.level))
      most = std::max(most, slices_in(puzzle, puzzle.totals(puzzle.level, name, led)));
  }
  const int size = puzzle.layers.empty() ? 1 : puzzle.layers.front().second;
  EXPECT_EQ(answer.ok, most >= puzzle.set.count / size);
  EXPECT_FALSE(answer.invalid) << answer.message;
  if (answer.ok) {
    check_lawful(puzzle, answer);
  } else {
    EXPECT_EQ(answer.fits, most);
  }
}

// The level is the narrowest possible; below it, down to the slices, the number of domains is the
// least that has room. Not for unconstrained asks, which use up fragments.
void check_few(const Puzzle& puzzle, const TopologyAnswer& answer) {
  const int level = narrowest(puzzle);
  const auto workers = by_leaf(puzzle, answer.assignments.at(0));
  if (level >= 0) {
    EXPECT_EQ(by_domain(puzzle, workers, level).size(), 1U);
  }
  if (puzzle.mode > 1 || puzzle.leader) return;
  const int slice_level = puzzle.layers.empty() ? Puzzle::kLevels - 1 : puzzle.layers.front().first;
  for (int at = std::max(level, -1); at < slice_level; ++at) {
    std::vector<int> rooms;
    for (const auto& [name, count] : by_domain(puzzle, workers, at)) {
      for (const auto& child : puzzle.domains(at + 1, name, at))
        rooms.push_back(slices_in(puzzle, puzzle.totals(at + 1, child, false)));
    }
    std::sort(rooms.rbegin(), rooms.rend());
    int wanted = puzzle.set.count / (puzzle.layers.empty() ? 1 : puzzle.layers.front().second);
    std::size_t least = 0;
    while (wanted > 0) wanted -= rooms.at(least++);
    EXPECT_EQ(by_domain(puzzle, workers, at + 1).size(), least) << "level " << at + 1;
  }
}

// One domain: the tightest. Unconstrained without slices: the least free first.
void check_tight(const Puzzle& puzzle, const TopologyAnswer& answer) {
  if (puzzle.leader) return;
  const int level = narrowest(puzzle);
  const auto workers = by_leaf(puzzle, answer.assignments.at(0));
  if (level >= 0) {
    const auto used = by_domain(puzzle, workers, level);
    const auto room = [&](const std::string& name) {
      return slices_in(puzzle, puzzle.totals(level, name, false));
    };
    const int mine = room(used.begin()->first);
    for (const auto& name : puzzle.domains(level)) {
      const int other = room(name);
      EXPECT_FALSE(other < mine && puzzle.totals(level, name, false).contains(puzzle.set.count));
    }
  } else if (puzzle.mode > 1 && puzzle.layers.empty()) {
    std::vector<std::pair<int, std::size_t>> order;
    for (std::size_t l = 0; l < workers.size(); ++l) order.emplace_back(puzzle.room(l, false), l);
    std::sort(order.begin(), order.end());
    int left = puzzle.set.count;
    for (const auto& [room, l] : order) {
      EXPECT_EQ(workers[l], std::min(room, left));
      left -= workers[l];
    }
  }
}

int rounds() { return std::getenv("BERTH_SOAK") != nullptr ? 100'000 : 3'000; }

TEST(TopologyProperty, AnswersAreAsDefined) {
  Random random(20261);
  int yes = 0, led = 0;
  for (int i = 0; i < rounds() && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const Puzzle puzzle(random);
    const auto tree = tree_of(puzzle.hosts);
    const auto answer = puzzle.ask(tree);
    check_feasible(puzzle, answer);
    if (!answer.ok) continue;
    ++yes;
    led += puzzle.leader ? 1 : 0;
    check_few(puzzle, answer);
    check_tight(puzzle, answer);
  }
  EXPECT_GT(yes, rounds() / 3);
  EXPECT_GT(led, rounds() / 20);
}

TEST(TopologyProperty, OrderOfHostsAndPastUsageDoNotMatter) {
  Random random(20262);
  for (int i = 0; i < rounds() / 3 && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    Puzzle puzzle(random);
    const TopologyOptions options{.balanced = random.chance(1, 3), .mixed = random.chance(1, 2)};
    const auto expected = puzzle.ask(tree_of(puzzle.hosts), options);
    auto shuffled = puzzle.hosts;
    random.shuffle(shuffled);
    // Usage of half of the hosts is free in the tree and added; of others it is added and taken.
    std::vector<std::pair<std::string, int>> kept, gone;
    for (At& at : shuffled) {
      const int used = static_cast<int>(random.below(4));
      (random.chance(1, 2) ? kept : gone).emplace_back(at.host, used);
      if (!kept.empty() && kept.back().first == at.host) at.free += used;
    }
    auto tree = tree_of(shuffled);
    const std::vector<std::int64_t> one{1};
    const auto usage = [&](const auto& list, bool add) {
      for (const auto& [host, used] : list) {
        const std::vector<std::string> values{host};
        add ? tree.add(values, used, one) : tree.take(values, used, one);
      }
    };
    usage(gone, true);
    usage(kept, true);
    usage(gone, false);
    const auto answer = puzzle.ask(tree, options);
    EXPECT_EQ(answer.ok, expected.ok);
    EXPECT_EQ(answer.assignments, expected.assignments);
    EXPECT_EQ(answer.message, expected.message);
    EXPECT_EQ(answer.fits, expected.fits);
    // An empty cluster: what was added does not count, what nodes lack does.
    auto full = tree_of(puzzle.hosts);
    for (const At& at : puzzle.hosts) full.add(std::vector<std::string>{at.host}, 100, one);
    EXPECT_FALSE(puzzle.ask(full, options).ok);
    TopologyOptions empty = options;
    empty.empty = true;
    EXPECT_EQ(puzzle.ask(full, empty).assignments, expected.assignments);
  }
}

// The largest least share over all sets of domains at the balanced level under one parent.
int best_threshold(const Puzzle& puzzle, int parents, int at) {
  const int size = puzzle.layers.empty() ? 1 : puzzle.layers.front().second;
  const int wanted = puzzle.set.count / size;
  int best = 0;
  for (const auto& parent : puzzle.domains(parents)) {
    std::vector<int> rooms;
    for (const auto& name : puzzle.domains(at, parent, parents))
      rooms.push_back(slices_in(puzzle, puzzle.totals(at, name, false)));
    for (unsigned mask = 1; mask < 1U << rooms.size(); ++mask) {
      int sum = 0, least = INT32_MAX, count = 0;
      for (std::size_t i = 0; i < rooms.size(); ++i) {
        if ((mask >> i & 1U) == 0) continue;
        sum += rooms[i];
        least = std::min(least, rooms[i]);
        ++count;
      }
      if (sum >= wanted) best = std::max(best, std::min(least, wanted / count));
    }
  }
  return best;
}

// Of all sets of siblings that can give the threshold and take everything, the used one has the
// fewest members and the least room.
void check_tightest(const Puzzle& puzzle, const std::map<std::string, int>& used,
                    const std::string& parent, int threshold) {
  const int size = puzzle.layers.empty() ? 1 : puzzle.layers.front().second;
  std::vector<int> rooms;
  std::pair<int, int> mine{static_cast<int>(used.size()), 0}, best{INT32_MAX, 0};
  for (const auto& name : puzzle.domains(puzzle.level, parent, puzzle.level - 1)) {
    rooms.push_back(slices_in(puzzle, puzzle.totals(puzzle.level, name, false)));
    if (used.contains(name)) mine.second += rooms.back();
  }
  for (unsigned mask = 1; mask < 1U << rooms.size(); ++mask) {
    std::pair<int, int> set{0, 0};
    bool enough = true;
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      if ((mask >> i & 1U) == 0) continue;
      ++set.first;
      set.second += rooms[i];
      enough = enough && rooms[i] >= threshold;
    }
    if (enough && set.second >= puzzle.set.count / size) best = std::min(best, set);
  }
  EXPECT_EQ(mine, best);
}

TEST(TopologyProperty, BalancedReachesTheThresholdOrFallsBack) {
  Random random(20263);
  int balanced = 0;
  for (int i = 0; i < rounds() && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const Puzzle puzzle(random);
    if (puzzle.mode != 1) continue;
    const auto tree = tree_of(puzzle.hosts);
    const auto plain = puzzle.ask(tree);
    const auto even = puzzle.ask(tree, {.balanced = true});
    check_feasible(puzzle, even);
    if (puzzle.leader || !even.ok) continue;
    const int slice_level = puzzle.layers.empty() ? 2 : puzzle.layers.front().first;
    const int at = puzzle.level < slice_level ? puzzle.level + 1 : puzzle.level;
    const int threshold = best_threshold(puzzle, puzzle.level - 1, at);
    const int size = puzzle.layers.empty() ? 1 : puzzle.layers.front().second;
    int least = INT32_MAX;
    const auto workers = by_leaf(puzzle, even.assignments.at(0));
    for (const auto& [name, count] : by_domain(puzzle, workers, at))
      least = std::min(least, count / size);
    if (threshold == 0 || least < threshold) {
      EXPECT_EQ(even.assignments, plain.assignments) << "fell back";
    } else {
      ++balanced;
      EXPECT_EQ(least, threshold);
      const auto parent = by_domain(puzzle, workers, puzzle.level - 1);
      EXPECT_EQ(parent.size(), 1U) << "under one parent";
      if (at == puzzle.level && plain.assignments != even.assignments)
        check_tightest(puzzle, by_domain(puzzle, workers, at), parent.begin()->first, threshold);
    }
  }
  EXPECT_GT(balanced, rounds() / 20);
}

TEST(TopologyProperty, ReplacingKeepsTheRestAndTheRules) {
  Random random(20264);
  int replaced = 0, failed = 0;
  for (int i = 0; i < rounds() && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    Puzzle puzzle(random);
    puzzle.leader.reset();
    auto tree = tree_of(puzzle.hosts);
    const auto first = puzzle.ask(tree);
    if (!first.ok) continue;
    const auto& now = first.assignments.at(0);
    for (const auto& d : now.domains) tree.add(d.values, d.count, puzzle.set.per_pod);
    const auto& lost = now.domains[random.below(now.domains.size())];
    const auto answer = tree.replace(puzzle.set, now, lost.values[0]);
    if (!answer.ok) {
      ++failed;
      continue;
    }
    ++replaced;
    check_lawful(puzzle, answer);
    const auto workers = by_leaf(puzzle, answer.assignments.at(0));
    const auto before = by_leaf(puzzle, now);
    for (std::size_t l = 0; l < workers.size(); ++l) {
      if (puzzle.hosts[l].host == lost.values[0]) {
        EXPECT_EQ(workers[l], 0);
      } else {
        EXPECT_GE(workers[l], before[l]);
      }
    }
    if (puzzle.mode == 0) {
      EXPECT_EQ(by_domain(puzzle, workers, puzzle.level).size(), 1U);
    }
  }
  EXPECT_GT(replaced, rounds() / 10);
  EXPECT_GT(failed, rounds() / 50);
}

}  // namespace
}  // namespace berth::schedule
