// Gangs: all or nothing, topologies, subgroups, and the verdicts and proofs about them.
#include <gtest/gtest.h>

#include "judge/specs.h"

namespace berth::judging {
namespace {

using model::NodeSpec;
using model::PodSpec;
using model::Reason;
using model::Verdict;

const std::string kZone = model::kZoneLabel;

std::vector<PodSpec> members(const std::string& gang, int count, int gpus,
                             const std::string& subgroup = "") {
  std::vector<PodSpec> list;
  for (int i = 0; i < count; ++i) {
    list.push_back(member(whole(gang + subgroup + std::to_string(i), gpus), gang, subgroup));
  }
  return list;
}

void append(std::vector<PodSpec>& list, const std::vector<PodSpec>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

TEST(Gangs, AllOrNothing) {
  JudgeCluster cluster{.nodes = {gpu_node("a", 2), gpu_node("b", 1)},
                       .pods = members("g", 4, 1),
                       .gangs = {a_gang("g", 4)},
                       .budgets = {}};
  model::Decision decision = decide(cluster);
  EXPECT_EQ(text_of(decision), "");
  EXPECT_EQ(decision.outcomes[0].verdict, Verdict::kNever);
  EXPECT_EQ(decision.outcomes[0].reason, Reason::kNeverFits);
  cluster.gangs[0].min_member = 3;
  decision = decide(cluster);
  EXPECT_EQ(text_of(decision), "d/g0@b[0] d/g1@a[0] d/g2@a[1]");
  EXPECT_EQ(decision.outcomes[0].verdict, Verdict::kPartial);
  EXPECT_EQ(decision.outcomes[0].placed, 3);
}

TEST(Gangs, WaitsWhenSomeMembersWouldFit) {
  JudgeCluster cluster{.nodes = {gpu_node("a", 2), gpu_node("b", 2)},
                       .pods = members("g", 4, 1),
                       .gangs = {a_gang("g", 4)},
                       .budgets = {}};
  cluster.pods.push_back(running(whole("x", 1), "a"));
  model::Outcome outcome = decide(cluster).outcomes[0];
  EXPECT_EQ(outcome.verdict, Verdict::kWait);
  EXPECT_EQ(outcome.reason, Reason::kGangDoesNotFit);
  EXPECT_TRUE(outcome.certificate.exact);
  EXPECT_EQ(outcome.certificate.needed_pods, 4);
  ASSERT_EQ(outcome.certificate.domains.size(), 1U);
  EXPECT_EQ(outcome.certificate.domains[0], (model::Certificate::Domain{"cluster", 3}));
}

TEST(Gangs, RunningMembersCountTowardsTheMinimum) {
  JudgeCluster cluster{.nodes = {gpu_node("a", 4)},
                       .pods = members("g", 3, 1),
                       .gangs = {a_gang("g", 3)},
                       .budgets = {}};
  cluster.pods[0].node_name = "a";
  cluster.pods[1].node_name = "a";
  EXPECT_EQ(text_of(decide(cluster)), "d/g2@a[2]");
}

TEST(Gangs, LargerMembersFirst) {
  JudgeCluster cluster{.nodes = {gpu_node("a", 2), gpu_node("b", 2)},
                       .pods = {member(whole("a1", 1), "g"), member(whole("b1", 1), "g"),
                                member(whole("z2", 2), "g")},
                       .gangs = {a_gang("g", 3)},
                       .budgets = {}};
  EXPECT_EQ(text_of(decide(cluster)), "d/z2@a[0,1] d/a1@b[0] d/b1@b[1]");
}

// z1: 2 + 2 GPUs, z2: 3, z3: 8
std::vector<NodeSpec> three_zones() {
  return {in_zone(gpu_node("a", 2), "z1"), in_zone(gpu_node("b", 2), "z1"),
          in_zone(gpu_node("c", 3), "z2"), in_zone(gpu_node("d", 8), "z3"), gpu_node("e", 8)};
}

TEST(Gangs, RequiredTopologyTakesTheSmallestDomainThatTakesAll) {
  JudgeCluster cluster{.nodes = three_zones(),
                       .pods = members("g", 4, 1),
                       .gangs = {a_gang("g", 2, kZone)},
                       .budgets = {}};
  EXPECT_EQ(text_of(decide(cluster)), "d/g0@a[0] d/g1@a[1] d/g2@b[0] d/g3@b[1]");
  cluster.pods = members("g", 9, 1);
  model::Decision decision = decide(cluster);  // none takes all: the largest that takes the minimum
  EXPECT_EQ(decision.placements.size(), 8U);
  EXPECT_EQ(decision.placements[0].node, "d");
  EXPECT_EQ(decision.outcomes[0].verdict, Verdict::kPartial);
  EXPECT_EQ(decision.outcomes[0].reason, Reason::kTopologyDomainTooSmall);
}

TEST(Gangs, RunningMembersBindTheDomain) {
  JudgeCluster cluster{.nodes = three_zones(),
                       .pods = members("g", 3, 1),
                       .gangs = {a_gang("g", 3, kZone)},
                       .budgets = {}};
  cluster.pods[2].node_name = "c";
  EXPECT_EQ(text_of(decide(cluster)), "d/g0@c[1] d/g1@c[2]");
}

TEST(Gangs, TopologyDomainTooSmall) {
  JudgeCluster cluster{.nodes = three_zones(),
                       .pods = members("g", 5, 1),
                       .gangs = {a_gang("g", 5, kZone)},
                       .budgets = {}};
  cluster.pods.push_back(running(whole("x", 4), "d", {0, 1, 2, 3}));
  model::Outcome outcome = decide(cluster).outcomes[0];
  EXPECT_EQ(outcome.verdict, Verdict::kWait);
  EXPECT_EQ(outcome.reason, Reason::kTopologyDomainTooSmall);
  EXPECT_EQ(outcome.certificate.domains_total, 3);
  EXPECT_EQ(outcome.certificate.domains[0], (model::Certificate::Domain{"z1", 4}));
  EXPECT_EQ(outcome.certificate.domains[2], (model::Certificate::Domain{"z2", 3}));
  cluster.gangs[0].min_member = 9;
  cluster.pods = members("g", 9, 1);
  EXPECT_EQ(decide(cluster).outcomes[0].verdict, Verdict::kNever);
}

TEST(Gangs, PreferredTopologyThenFewDomainsThenAnywhere) {
  JudgeCluster cluster{.nodes = three_zones(),
                       .pods = members("g", 3, 1),
                       .gangs = {a_gang("g", 3, "", kZone)},
                       .budgets = {}};
  EXPECT_EQ(text_of(decide(cluster)), "d/g0@c[0] d/g1@c[1] d/g2@c[2]");
  cluster.pods = members("g", 9, 1);
  model::Decision decision = decide(cluster);  // 8 in z3, one in the smallest that covers it
  ASSERT_EQ(decision.placements.size(), 9U);
  EXPECT_EQ(decision.placements[7].node, "d");
  EXPECT_EQ(decision.placements[8].node, "c");
  cluster.pods = members("g", 16, 1);
  decision = decide(cluster);  // 8 + 4 + 3 with a zone, and one on the node without
  ASSERT_EQ(decision.placements.size(), 16U);
  EXPECT_EQ(decision.placements[15].node, "e");
}

TEST(Gangs, SubgroupsWithMinimaAndTopologies) {
  JudgeCluster cluster{.nodes = three_zones(),
                       .pods = members("g", 1, 1, "head"),
                       .gangs = {a_gang("g", 1)},
                       .budgets = {}};
  append(cluster.pods, members("g", 3, 1, "work"));
  cluster.gangs[0].subgroups = {{"head", 1, "", ""}, {"work", 3, kZone, ""}};
  EXPECT_EQ(text_of(decide(cluster)), "d/ghead0@a[0] d/gwork0@a[1] d/gwork1@b[0] d/gwork2@b[1]");
  append(cluster.pods, members("g", 6, 1, "more"));
  cluster.gangs[0].subgroups.push_back({"more", 7, kZone, ""});
  EXPECT_EQ(decide(cluster).outcomes[0].reason, Reason::kGangIncomplete);
  cluster.gangs[0].subgroups[2].min_member = 6;
  EXPECT_EQ(decide(cluster).placements.size(), 10U);
  cluster.nodes.erase(cluster.nodes.begin() + 3);  // no zone takes 6 any more
  EXPECT_EQ(text_of(decide(cluster)), "");
}

TEST(Gangs, DifferentShapesAreNotExact) {
  NodeSpec node = gpu_node("a", 4);
  JudgeCluster cluster{.nodes = {node},
                       .pods = {member(whole("b", 2), "g"), member(whole("c", 1), "g"),
                                running(whole("x", 2), "a", {0, 1})},
                       .gangs = {a_gang("g", 2)},
                       .budgets = {}};
  model::Outcome outcome = decide(cluster).outcomes[0];
  EXPECT_EQ(outcome.reason, Reason::kGangDoesNotFit);
  EXPECT_FALSE(outcome.certificate.exact);
  cluster.pods[2] = running(whole("x", 3), "a", {0, 1, 2});
  outcome = decide(cluster).outcomes[0];  // one of two fits alone: proof enough
  EXPECT_TRUE(outcome.certificate.exact);
}

TEST(Gangs, FragmentedMember) {
  JudgeCluster cluster{.nodes = {gpu_node("a", 2), gpu_node("b", 2)},
                       .pods = members("g", 2, 2),
                       .gangs = {a_gang("g", 2)},
                       .budgets = {}};
  cluster.pods.push_back(running(whole("x", 1), "a"));
  cluster.pods.push_back(running(whole("y", 1), "b"));
  EXPECT_EQ(decide(cluster).outcomes[0].reason, Reason::kFragmented);
}

}  // namespace
}  // namespace berth::judging
