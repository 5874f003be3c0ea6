// The rules of topology_tree.h one by one; topology_property_test.cc has random trees.
#include "decide/schedule/topology_tree.h"

#include <gtest/gtest.h>

#include "decide/schedule/topology_tree_for_test.h"

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

}  // namespace
}  // namespace berth::schedule
