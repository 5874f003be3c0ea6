// Preemption: who goes, in which order of cost, and what is given back.
#include <gtest/gtest.h>

#include "judge/specs.h"

namespace berth::judging {
namespace {

using model::PodSpec;
using model::Reason;
using model::Verdict;

PodSpec started(PodSpec pod, std::int64_t at) {
  pod.started_ns = at;
  return pod;
}

JudgeCluster two_full_nodes() {
  return {.nodes = {gpu_node("a", 1), gpu_node("b", 1)},
          .pods = {running(whole("x", 1), "a"), running(whole("y", 1), "b"),
                   with_priority(whole("p", 1), 10)},
          .gangs = {},
          .budgets = {}};
}

TEST(Preemption, LowerPriorityGoesAndWaits) {
  JudgeCluster cluster = two_full_nodes();
  model::Decision decision = decide(cluster);
  EXPECT_EQ(text_of(decision), "d/p@a[0]+ -d/x");
  EXPECT_EQ(decision.preemptions[0].by, "d/p");
  EXPECT_EQ(outcome_of(decision, "d/x").reason, Reason::kPreempted);
  EXPECT_EQ(outcome_of(decision, "d/p").verdict, Verdict::kPlaced);
  cluster.pods[2].preempts = false;
  EXPECT_EQ(text_of(decide(cluster)), "");
  cluster.pods[2] = whole("p", 1);  // equal priority
  EXPECT_EQ(text_of(decide(cluster)), "");
}

TEST(Preemption, NodeByBudgetPriorityJobsWorkRank) {
  JudgeCluster cluster = two_full_nodes();
  cluster.pods[0] = started(cluster.pods[0], 10);
  cluster.pods[1] = started(cluster.pods[1], 20);
  EXPECT_EQ(text_of(decide(cluster, 100)), "d/p@b[0]+ -d/y");  // less lost work
  cluster.pods[1].priority = 5;
  EXPECT_EQ(text_of(decide(cluster, 100)), "d/p@a[0]+ -d/x");  // lower priority
  cluster.pods[0] = started(running(fraction("x", 500), "a", {0}), 10);
  cluster.pods.push_back(started(running(fraction("x2", 500), "a", {0}), 10));
  EXPECT_EQ(text_of(decide(cluster, 100)), "d/p@a[0]+ -d/x -d/x2");  // still lower priority
  cluster.pods[1].priority = cluster.pods[0].priority;
  EXPECT_EQ(text_of(decide(cluster, 100)), "d/p@b[0]+ -d/y");  // fewer jobs
  model::BudgetSpec budget{.ns = "d",
                           .name = "y",
                           .selector = pods_of("y").selector,
                           .match_nothing = false,
                           .disruptions_allowed = 0};
  cluster.budgets = {budget};
  EXPECT_EQ(text_of(decide(cluster, 100)), "d/p@a[0]+ -d/x -d/x2");  // no budget broken
  cluster.budgets[0].disruptions_allowed = 1;
  EXPECT_EQ(text_of(decide(cluster, 100)), "d/p@b[0]+ -d/y");
  cluster.budgets[0].disruptions_allowed = 0;
  cluster.nodes.erase(cluster.nodes.begin());
  EXPECT_EQ(text_of(decide(cluster, 100)), "d/p@b[0]+ -d/y!");  // broken when there is no other way
}

TEST(Preemption, GivesBackWhatIsNotNeeded) {
  JudgeCluster cluster{
      .nodes = {gpu_node("a", 4)},
      .pods = {running(whole("big", 2), "a", {0, 1}), running(whole("one", 1), "a", {2}),
               running(with_priority(whole("two", 1), 5), "a", {3}),
               with_priority(whole("p", 1), 10)},
      .gangs = {},
      .budgets = {}};
  // Given back: two (priority), then one (fewer GPUs); big stays out.
  EXPECT_EQ(text_of(decide(cluster)), "d/p@a[0]+ -d/big");
  model::BudgetSpec budget{.ns = "d",
                           .name = "b",
                           .selector = pods_of("big").selector,
                           .match_nothing = false,
                           .disruptions_allowed = 0};
  cluster.budgets = {budget};
  EXPECT_EQ(text_of(decide(cluster)), "d/p@a[2]+ -d/one");
}

TEST(Preemption, WholeGangsGo) {
  JudgeCluster cluster{
      .nodes = {gpu_node("a", 1), gpu_node("b", 1), gpu_node("c", 1)},
      .pods = {member(running(whole("x0", 1), "a"), "x"), member(running(whole("x1", 1), "b"), "x"),
               running(with_priority(whole("y", 1), 20), "c"), with_priority(whole("p", 1), 10)},
      .gangs = {a_gang("x", 2)},
      .budgets = {}};
  model::Decision decision = decide(cluster);
  EXPECT_EQ(text_of(decision), "d/p@a[0]+ -d/x0 -d/x1");
  EXPECT_EQ(outcome_of(decision, "d/x").pods, 2);
  cluster.gangs[0].priority = 10;
  EXPECT_EQ(text_of(decide(cluster)), "");
}

TEST(Preemption, GangTakesFreeRoomFirst) {
  JudgeCluster cluster{.nodes = {gpu_node("a", 1), gpu_node("b", 1), gpu_node("c", 1)},
                       .pods = {running(whole("x", 1), "a"), running(whole("y", 1), "b"),
                                member(with_priority(whole("p0", 1), 10), "g"),
                                member(with_priority(whole("p1", 1), 10), "g")},
                       .gangs = {a_gang("g", 2)},
                       .budgets = {}};
  EXPECT_EQ(text_of(decide(cluster)), "d/p0@c[0]+ d/p1@a[0]+ -d/x");
}

TEST(Preemption, RequiredTopologyPerDomain) {
  const std::string zone = model::kZoneLabel;
  JudgeCluster cluster{
      .nodes = {in_zone(gpu_node("a", 1), "z1"), in_zone(gpu_node("b", 1), "z1"),
                in_zone(gpu_node("c", 2), "z2")},
      .pods = {running(whole("x", 1), "a"), running(whole("y", 1), "b"),
               running(whole("z", 1), "c", {0}), member(with_priority(whole("p0", 1), 10), "g"),
               member(with_priority(whole("p1", 1), 10), "g")},
      .gangs = {a_gang("g", 2, zone)},
      .budgets = {}};
  EXPECT_EQ(text_of(decide(cluster)), "d/p0@c[1]+ d/p1@c[0]+ -d/z");
  cluster.pods[2].priority = 10;
  EXPECT_EQ(text_of(decide(cluster)), "d/p0@a[0]+ d/p1@b[0]+ -d/x -d/y");
}

TEST(Preemption, EarlierVictimsAreReturnedWhenLaterOnesSuffice) {
  // p0 (1 GPU) evicts x on a; p1 (2 GPUs) fits only b, whose gang also holds a GPU of a.
  JudgeCluster cluster{.nodes = {gpu_node("a", 2), gpu_node("b", 2)},
                       .pods = {running(whole("x", 1), "a", {0}),
                                member(running(with_priority(whole("w0", 1), 5), "a", {1}), "w"),
                                member(running(with_priority(whole("w1", 2), 5), "b"), "w"),
                                member(with_priority(whole("p0", 1), 10), "g", "a"),
                                member(with_priority(whole("p1", 2), 10), "g", "b")},
                       .gangs = {a_gang("w", 2), a_gang("g", 2)},
                       .budgets = {}};
  // p0 keeps device 0, so x cannot return even though device 1 is free in the end.
  EXPECT_EQ(text_of(decide(cluster)), "d/p0@a[0]+ d/p1@b[0,1]+ -d/x -d/w0 -d/w1");
  cluster.pods[3] = member(with_priority(asking("p0", "cpu", 8000), 10), "g", "a");
  cluster.pods[0] = running(asking("x", "cpu", 4000), "a");
  cluster.pods[1].requests["cpu"] = 100;
  EXPECT_EQ(decide(cluster).placements.size(), 2U);
}

TEST(Preemption, NeverVerdictDoesNotPreempt) {
  JudgeCluster cluster = two_full_nodes();
  cluster.pods[2] = with_priority(whole("p", 2), 10);
  model::Decision decision = decide(cluster);
  EXPECT_EQ(text_of(decision), "");
  EXPECT_EQ(decision.outcomes[0].verdict, Verdict::kNever);
}

}  // namespace
}  // namespace berth::judging
