// Which flavor is chosen, and with how many pods, on worlds small enough to check by hand.
#include <gtest/gtest.h>

#include "judge/queue_specs.h"

namespace berth::judging {
namespace {

using model::PreemptWithin;
using model::QueueSpec;
using model::Reclaim;
using model::WorkloadSpec;

QueueSpec two_flavors(std::int64_t f, std::int64_t g, const std::string& cohort = "") {
  return a_queue("q", cohort, {flavor_quota("f", f), flavor_quota("g", g)});
}

std::string detail_of(const model::QueueInputs& inputs) {
  QueueJudge judge(inputs, 0);
  QueueCycle cycle = judge.cycle(1);
  return cycle.left.empty() ? "" : cycle.left[0].detail;
}

TEST(FlavorScans, TheFirstThatFits) {
  EXPECT_EQ(first_cycle(world_of({two_flavors(2, 5)}, {ask("w", "q", 2)})), "+w@f");
  EXPECT_EQ(first_cycle(world_of({two_flavors(2, 5)}, {ask("w", "q", 3)})), "+w@g");
  EXPECT_EQ(first_cycle(world_of({two_flavors(2, 5)}, {ask("w", "q", 6)})), "w NoFit parked");
}

TEST(FlavorScans, WhyNothingFits) {
  EXPECT_EQ(detail_of(world_of({two_flavors(2, 5)}, {ask("w", "q", 6)})), "ExceedsMaxQuota");
  // Within the cohort's 4, but not of the queue's own 0, and borrowing may not preempt.
  EXPECT_EQ(detail_of(world_of({a_queue("q", "c", 0), a_queue("p", "c", 4)},
                               {holds(ask("h", "p", 4)), ask("w", "q", 1)})),
            "WaitingForQuota");
  model::QueueInputs tainted = world_of({two_flavors(9, 0)}, {ask("w", "q", 1)});
  tainted.flavors[0].node_taints.push_back({"k", "v", model::TaintEffect::kNoExecute});
  EXPECT_EQ(detail_of(tainted), "ExceedsMaxQuota");  // the least severe of the two flavors
  tainted.flavors[1].node_taints = tainted.flavors[0].node_taints;
  EXPECT_EQ(detail_of(tainted), "NoMatchingFlavor");
}

TEST(FlavorScans, TaintsNeedATolerationOfThePodOrTheFlavor) {
  model::QueueInputs world = world_of({two_flavors(5, 5)}, {ask("w", "q", 1)});
  world.flavors[0].node_taints.push_back({"k", "v", model::TaintEffect::kPreferNoSchedule});
  EXPECT_EQ(first_cycle(world), "+w@f");
  world.flavors[0].node_taints[0].effect = model::TaintEffect::kNoSchedule;
  EXPECT_EQ(first_cycle(world), "+w@g");
  model::QueueInputs flavor = world;
  flavor.flavors[0].tolerations.push_back({"k", model::Toleration::Op::kExists, "", {}});
  EXPECT_EQ(first_cycle(flavor), "+w@f");
  model::PodSpec pod;
  pod.tolerations.push_back({"k", model::Toleration::Op::kEqual, "v", {}});
  world.workloads[0] = with_pod(world.workloads[0], pod);
  EXPECT_EQ(first_cycle(world), "+w@f");
}

TEST(FlavorScans, OnlyKeysOfTheFlavorAreLookedAt) {
  model::QueueInputs world = world_of({two_flavors(5, 5)}, {ask("w", "q", 1)});
  world.flavors[0].node_labels["pool"] = "a";
  world.flavors[1].node_labels["pool"] = "b";
  auto where = [&](const model::PodSpec& pod) {
    model::QueueInputs with = world;
    with.workloads[0] = with_pod(with.workloads[0], pod);
    return first_cycle(with);
  };
  model::PodSpec selects, other, affine, either;
  selects.node_selector["pool"] = "b";
  EXPECT_EQ(where(selects), "+w@g");
  other.node_selector["zone"] = "x";
  EXPECT_EQ(where(other), "+w@f");
  affine.required_nodes.emplace_back().labels.push_back({"pool", text::Operator::kNotIn, {"a"}});
  EXPECT_EQ(where(affine), "+w@g");
  either = affine;  // a term that is empty once the other keys are dropped matches anything
  either.required_nodes.emplace_back().labels.push_back({"zone", text::Operator::kIn, {"x"}});
  EXPECT_EQ(where(either), "+w@f");
  model::PodSpec fields;
  fields.required_nodes.emplace_back().fields.push_back(
      {"metadata.name", text::Operator::kIn, {"n"}});
  EXPECT_EQ(where(fields), "+w@f");
}

TEST(FlavorScans, ResourcesOfAGroupShareAFlavor) {
  QueueSpec queue = a_queue("q", "",
                            {{"f", {{"cpu", 4, {}, {}}, {"gpu", 0, {}, {}}}},
                             {"g", {{"cpu", 0, {}, {}}, {"gpu", 4, {}, {}}}}});
  queue.groups[0].covered = {"cpu", "gpu"};
  WorkloadSpec both = ask("w", "q", 1), one = ask("w", "q", 1);
  both.pod_sets[0].requests["cpu"] = 1;
  EXPECT_EQ(first_cycle(world_of({queue}, {both})), "w NoFit parked");
  EXPECT_EQ(first_cycle(world_of({queue}, {one})), "+w@g");
  QueueSpec apart = a_queue("q", "", {flavor_quota("g", 4)});
  apart.groups.push_back({{"cpu"}, {flavor_quota("f", 4, {}, "cpu")}});
  EXPECT_EQ(first_cycle(world_of({apart}, {both})), "+w@f,g");
}

TEST(FlavorScans, LaterPodSetsSeeTheEarlierOnes) {
  WorkloadSpec two = ask("w", "q", 2);
  two.pod_sets.push_back(two.pod_sets[0]);
  two.pod_sets[1].name = "more";
  EXPECT_EQ(first_cycle(world_of({two_flavors(4, 4)}, {two})), "+w@f+f");
  EXPECT_EQ(first_cycle(world_of({two_flavors(3, 3)}, {two})), "+w@f+g");
  // The first set stopped at f, so its g is still to be tried.
  EXPECT_EQ(first_cycle(world_of({two_flavors(3, 1)}, {two})), "w NoFit heap");
  two.pod_sets[0].topology.group = two.pod_sets[1].topology.group = "together";
  EXPECT_EQ(first_cycle(world_of({two_flavors(3, 4)}, {two})), "+w@g+g");
}

// f can be had by borrowing, g without.
TEST(FlavorScans, WhenCanBorrow) {
  QueueSpec queue = two_flavors(1, 2, "c");
  QueueSpec lender = a_queue("l", "c", {flavor_quota("f", 5)});
  EXPECT_EQ(first_cycle(world_of({queue, lender}, {ask("w", "q", 2)})), "+w@f");
  queue.borrow_stops_search = false;
  EXPECT_EQ(first_cycle(world_of({queue, lender}, {ask("w", "q", 2)})), "+w@g");
  queue.groups[0].flavors[1].resources[0].nominal = 1;  // now g is out of reach: back to f
  EXPECT_EQ(first_cycle(world_of({queue, lender}, {ask("w", "q", 2)})), "+w@f");
}

// f can be had by evicting v, g is free.
TEST(FlavorScans, WhenCanPreempt) {
  QueueSpec queue = with(two_flavors(2, 2), PreemptWithin::kLowerPriority);
  const std::vector<WorkloadSpec> both = {holds(ask("v", "q", 2)), ask("w", "q", 2, 1)};
  EXPECT_EQ(first_cycle(world_of({queue}, both)), "+w@g");
  queue.preempt_stops_search = true;
  EXPECT_EQ(first_cycle(world_of({queue}, both)), "-v InClusterQueue<w; w PendingPreemption heap");
}

// Trap 1: f by evicting v and without borrowing, g at once but borrowed.
TEST(FlavorScans, PreferenceComparesModeFirstOrLevelFirst) {
  QueueSpec queue = with(two_flavors(2, 0, "c"), PreemptWithin::kLowerPriority);
  queue.borrow_stops_search = false;
  QueueSpec lender = a_queue("l", "c", {flavor_quota("g", 5)});
  const std::vector<WorkloadSpec> both = {holds(ask("v", "q", 2)), ask("w", "q", 2, 1)};
  EXPECT_EQ(first_cycle(world_of({queue, lender}, both)), "+w@g");
  queue.prefer_less_borrowing = true;
  EXPECT_EQ(first_cycle(world_of({queue, lender}, both)),
            "-v InClusterQueue<w; w PendingPreemption heap");
}

// Both flavors need victims: of the own queue in f, of another in g.
TEST(FlavorScans, ReclaimingIsBetterThanPreempting) {
  QueueSpec queue = with(two_flavors(2, 2, "c"), PreemptWithin::kLowerPriority, Reclaim::kAny);
  QueueSpec other = a_queue("p", "c", {flavor_quota("g", 0)});
  std::vector<WorkloadSpec> all = {holds(ask("v", "q", 2)), holds(ask("u", "p", 2, 9), 0, "g"),
                                   ask("w", "q", 2, 1)};
  EXPECT_EQ(first_cycle(world_of({queue, other}, all)),
            "-u InCohortReclamation<w; w PendingPreemption heap");
}

// gpu stops at f, which fits; cpu fits nowhere. The next attempt goes on with g, then it is over.
TEST(FlavorScans, UntriedFlavorsKeepTheHeadInTheHeap) {
  QueueSpec queue = two_flavors(2, 2);
  queue.groups.push_back({{"cpu"}, {flavor_quota("x", 1, {}, "cpu")}});
  WorkloadSpec both = ask("w", "q", 1);
  both.pod_sets[0].requests["cpu"] = 2;
  QueueJudge judge(world_of({queue}, {both}), 0);
  EXPECT_EQ(run_cycle(judge), "w NoFit heap");
  EXPECT_EQ(run_cycle(judge), "w NoFit parked");
  EXPECT_EQ(run_cycle(judge), "");
}

// The scan stopped at f in the first cycle and goes on with g in the second, until a holder left
// and more than a cycle has passed.
TEST(FlavorScans, ProgressLastsOneCycleOrUntilTheTreeChanges) {
  QueueSpec queue = two_flavors(2, 2);
  queue.strict_fifo = true;
  queue.groups.push_back({{"cpu"}, {flavor_quota("x", 2, {}, "cpu")}});
  WorkloadSpec holder = ask("h", "q", 0);
  holder.pod_sets[0].requests = {{"cpu", 2}};
  WorkloadSpec both = ask("w", "q", 1);
  both.pod_sets[0].requests["cpu"] = 2;
  const model::QueueInputs world = world_of({queue}, {holds(holder, 0, "x"), both});
  QueueJudge next(world, 0), later(world, 0);
  EXPECT_EQ(run_cycle(next), "w PreemptionNoCandidates heap");
  next.finish("d/h");
  EXPECT_EQ(run_cycle(next), "+w@g,x");  // of age 1
  EXPECT_EQ(run_cycle(later), "w PreemptionNoCandidates heap");
  later.add(ask("king", "q", 1, 9));
  EXPECT_EQ(run_cycle(later), "+king@f");
  later.finish("d/h");
  EXPECT_EQ(run_cycle(later), "+w@f,x");  // of age 2, and h left
}

// ---- fewer pods ----

TEST(FewerPods, TheSmallestReductionThatFits) {
  auto admits = [](std::int64_t quota, int count, std::optional<int> least) {
    return first_cycle(world_of({a_queue("q", "", quota)}, {pods(ask("w", "q", 1), count, least)}));
  };
  EXPECT_EQ(admits(3, 5, 2), "+w@f*3");
  EXPECT_EQ(admits(2, 5, 2), "+w@f*2");
  EXPECT_EQ(admits(1, 5, 2), "w NoFit parked");
  EXPECT_EQ(admits(5, 5, 2), "+w@f");
  EXPECT_EQ(admits(3, 5, {}), "w NoFit parked");
}

TEST(FewerPods, SeveralSetsShrinkInProportion) {
  // Deltas 4 and 2 of 6: at 3 of 6 the sets have 6 - 2 and 3 - 1 pods.
  WorkloadSpec two = pods(ask("w", "q", 1), 6, 2);
  two.pod_sets.push_back(two.pod_sets[0]);
  two.pod_sets[1].name = "more";
  two.pod_sets[1].count = 3;
  two.pod_sets[1].min_count = 1;
  EXPECT_EQ(first_cycle(world_of({a_queue("q", "", 6)}, {two})), "+w@f*4+f*2");
}

TEST(FewerPods, NotWhenPreemptionWouldDo) {
  QueueSpec queue = with(a_queue("q", "", 4), PreemptWithin::kLowerPriority);
  EXPECT_EQ(
      first_cycle(world_of({queue}, {holds(ask("v", "q", 2)), pods(ask("w", "q", 1, 1), 4, 1)})),
      "-v InClusterQueue<w; w PendingPreemption heap");
  EXPECT_EQ(
      first_cycle(world_of({queue}, {holds(ask("v", "q", 2, 5)), pods(ask("w", "q", 1, 1), 4, 1)})),
      "+w@f*2");
}

}  // namespace
}  // namespace berth::judging
