// The quota tree, requests, the queues and the cycle, on worlds small enough to check by hand.
#include "judge/queue_judge.h"

#include <gtest/gtest.h>

#include "judge/queue_specs.h"

namespace berth::judging {
namespace {

using model::PreemptWithin;
using model::Reclaim;
using model::WorkloadSpec;

constexpr std::int64_t kNoLimit = INT64_MAX;

// Figures of flavor f, resource gpu.
class Figures {
 public:
  explicit Figures(const model::QueueInputs& inputs) : judge_(inputs, 0) {
    EXPECT_EQ(judge_.check(), "");
  }
  std::int64_t quota(const std::string& cohort) const {
    return judge_.subtree_quota(QueueNode::kCohort, cohort, "f", "gpu");
  }
  std::int64_t used(const std::string& cohort) const {
    return judge_.usage(QueueNode::kCohort, cohort, "f", "gpu");
  }
  std::int64_t available(const std::string& queue) const {
    return judge_.available(QueueNode::kQueue, queue, "f", "gpu");
  }
  std::int64_t potential(const std::string& queue) const {
    return judge_.potential(QueueNode::kQueue, queue, "f", "gpu");
  }
  std::int64_t share(const std::string& queue) const {
    return judge_.weighted_share(QueueNode::kQueue, queue);
  }
  const QueueJudge& judge() const { return judge_; }

 private:
  QueueJudge judge_;
};

// ---- the tree ----

TEST(QuotaFigures, AFlatCohortSharesEverything) {
  Figures f(world_of({a_queue("p", "c", 4), a_queue("q", "c", 6)}, {holds(ask("w", "p", 5))}));
  EXPECT_EQ(f.quota("c"), 10);
  EXPECT_EQ(f.used("c"), 5);
  EXPECT_EQ(f.available("p"), 5);
  EXPECT_EQ(f.available("q"), 5);
  EXPECT_EQ(f.potential("q"), 10);
  EXPECT_EQ(f.judge().borrowed(QueueNode::kQueue, "p", "f", "gpu"), 1);
}

TEST(QuotaFigures, ALendingLimitKeepsTheRestAtHome) {
  const Limits lend3{.lend = 3};
  Figures f(
      world_of({a_queue("p", "c", 10, lend3), a_queue("q", "c", 2)}, {holds(ask("w", "p", 4))}));
  EXPECT_EQ(f.quota("c"), 5);      // 2 + (10 - 7)
  EXPECT_EQ(f.used("c"), 0);       // 4 of the 7 at home
  EXPECT_EQ(f.available("p"), 8);  // 3 at home, 5 of the cohort
  EXPECT_EQ(f.available("q"), 5);
  EXPECT_EQ(f.potential("p"), 12);
  EXPECT_EQ(f.potential("q"), 5);
  Figures more(
      world_of({a_queue("p", "c", 10, lend3), a_queue("q", "c", 2)}, {holds(ask("w", "p", 9))}));
  EXPECT_EQ(more.used("c"), 2);
  EXPECT_EQ(more.available("p"), 3);
  EXPECT_EQ(more.available("q"), 3);
}

TEST(QuotaFigures, ABorrowingLimitCapsWhatComesFromAbove) {
  const Limits borrow2{.borrow = 2};
  Figures idle(world_of({a_queue("p", "c", 4, borrow2), a_queue("q", "c", 10)}, {}));
  EXPECT_EQ(idle.available("p"), 6);
  EXPECT_EQ(idle.potential("p"), 6);
  Figures busy(
      world_of({a_queue("p", "c", 4, borrow2), a_queue("q", "c", 10)}, {holds(ask("w", "p", 5))}));
  EXPECT_EQ(busy.available("p"), 1);
  EXPECT_EQ(busy.available("q"), 9);
}

TEST(QuotaFigures, BothLimits) {
  Figures f(world_of({a_queue("p", "c", 10, {.borrow = 1, .lend = 4}), a_queue("q", "c", 10)},
                     {holds(ask("w", "p", 8))}));
  EXPECT_EQ(f.quota("c"), 14);
  EXPECT_EQ(f.used("c"), 2);
  EXPECT_EQ(f.available("p"), 3);   // 0 at home; min(12, (10 - 6) - 2 + 1)
  EXPECT_EQ(f.potential("p"), 11);  // min(6 + 14, 10 + 1)
}

TEST(QuotaFigures, CohortsWithQuotaAndLimitsOfTheirOwn) {
  auto world = [](std::int64_t used) {
    return world_of({a_queue("q", "m", 3)}, {holds(ask("w", "q", used))},
                    {a_cohort("m", "r", 2, {.lend = 1}), a_cohort("r", "", 5)});
  };
  Figures four(world(4)), five(world(5));
  EXPECT_EQ(four.quota("m"), 5);
  EXPECT_EQ(four.quota("r"), 6);  // 5 + the one that m lends
  EXPECT_EQ(four.used("m"), 4);
  EXPECT_EQ(four.used("r"), 0);
  EXPECT_EQ(four.available("q"), 6);
  EXPECT_EQ(four.potential("q"), 10);
  EXPECT_EQ(five.used("r"), 1);
  EXPECT_EQ(five.available("q"), 5);
}

TEST(QuotaFigures, ABorrowingLimitOfACohortHoldsForItsQueuesTogether) {
  Figures f(world_of({a_queue("p", "m", 1), a_queue("q", "m", 1), a_queue("l", "r", 9)},
                     {holds(ask("w", "p", 2))},
                     {a_cohort("m", "r", 0, {.borrow = 3}), a_cohort("r", "")}));
  EXPECT_EQ(f.available("q"), 3);  // min(11 - 2, 2 - 2 + 3)
  EXPECT_EQ(f.available("l"), 9);
  EXPECT_EQ(f.potential("q"), 5);
}

TEST(QuotaFigures, UnlimitedIsSharedUnlessItIsKept) {
  Figures shared(
      world_of({a_queue("p", "c", kNoLimit), a_queue("q", "c", 3)}, {holds(ask("w", "q", 7))}));
  EXPECT_EQ(shared.quota("c"), kNoLimit);
  EXPECT_EQ(shared.available("q"), kNoLimit);
  Figures kept(world_of({a_queue("p", "c", kNoLimit, {.lend = 5}), a_queue("q", "c", 3)}, {}));
  EXPECT_EQ(kept.quota("c"), 3);  // unlimited - unlimited = 0 is lent
  EXPECT_EQ(kept.available("p"), kNoLimit);
  EXPECT_EQ(kept.available("q"), 3);
}

TEST(QuotaFigures, OverAdmittedIsNoneAvailableAndLimitsNeedACohort) {
  Figures over(world_of({a_queue("q", "", 2)}, {holds(ask("w", "q", 5))}));
  EXPECT_EQ(over.available("q"), 0);
  Figures alone(world_of({a_queue("q", "", 4, {.borrow = 0, .lend = 1})}, {}));
  EXPECT_EQ(alone.available("q"), 4);
  EXPECT_EQ(alone.potential("q"), 4);
}

TEST(QuotaFigures, SharesArePerMilleOfWhatCanBeLent) {
  auto world = [](double weight) {
    model::QueueInputs inputs =
        world_of({a_queue("p", "c", 4), a_queue("q", "c", 3), a_queue("s", "c", 2)},
                 {holds(ask("w", "s", 3)), holds(ask("x", "p", 4))});
    inputs.queues[2].weight = weight;
    return inputs;
  };
  EXPECT_EQ(Figures(world(1)).share("s"), 112);  // 1000/9 rounded up
  EXPECT_EQ(Figures(world(2)).share("s"), 56);
  EXPECT_EQ(Figures(world(0)).share("s"), INT64_MAX);
  EXPECT_EQ(Figures(world(0)).share("p"), 0);
  EXPECT_EQ(Figures(world(1)).judge().weighted_share(QueueNode::kCohort, "c"), 0);
}

TEST(QuotaFigures, TheDominantResourceCountsOverAllItsFlavors) {
  model::QueueSpec p = a_queue("p", "c",
                               {{"f", {{"cpu", 8, {}, {}}, {"gpu", 4, {}, {}}}},
                                {"g", {{"cpu", 0, {}, {}}, {"gpu", 4, {}, {}}}}});
  p.groups[0].covered = {"cpu", "gpu"};
  model::QueueSpec q = p;
  q.name = "q";
  for (model::FlavorQuota& flavor : q.groups[0].flavors) {
    for (model::ResourceQuota& quota : flavor.resources) quota.nominal = 0;
  }
  WorkloadSpec one = ask("w", "q", 1), two = ask("x", "q", 1);
  one.pod_sets[0].requests["cpu"] = 3;
  Figures f(world_of({p, q}, {holds(one), holds(two, 0, "g")}));
  EXPECT_EQ(f.share("q"), 375);  // cpu 3/8; gpu 2/8
}

// ---- requests ----

TEST(QueueRequests, PodsAreCountedWhereCovered) {
  model::QueueSpec queue = a_queue("q", "", {flavor_quota("f", 2, {}, "pods")}, "pods");
  WorkloadSpec three = pods(ask("w", "q", 0), 3), two = pods(ask("w", "q", 0), 2);
  EXPECT_EQ(first_cycle(world_of({queue}, {three})), "w NoFit parked");
  QueueJudge judge(world_of({queue}, {two}), 0);
  QueueCycle cycle = judge.cycle(1);
  ASSERT_EQ(cycle.admitted.size(), 1U);
  EXPECT_EQ(cycle.admitted[0].admission.pod_sets[0].usage, (model::Amounts{{"pods", 2}}));
}

TEST(QueueRequests, UndeclaredResources) {
  WorkloadSpec none = ask("w", "q", 1), some = ask("w", "q", 1);
  none.pod_sets[0].requests["disk"] = 0;
  some.pod_sets[0].requests["disk"] = 1;
  EXPECT_EQ(first_cycle(world_of({a_queue("q", "", 1)}, {none})), "+w@f");
  EXPECT_EQ(first_cycle(world_of({a_queue("q", "", 1)}, {some})), "w NoFit parked");
  model::QueueInputs ignoring = world_of({a_queue("q", "", 1)}, {some});
  ignoring.config.ignore_undeclared = true;
  EXPECT_EQ(first_cycle(ignoring), "+w@f");
}

TEST(QueueRequests, PodsThatAreDoneNeedNothing) {
  WorkloadSpec waiting = pods(ask("w", "q", 1), 4);
  waiting.reclaimable["main"] = 2;
  EXPECT_EQ(first_cycle(world_of({a_queue("q", "", 2)}, {waiting})), "+w@f*2");
  WorkloadSpec running = holds(pods(ask("w", "p", 2), 4));
  running.reclaimable["main"] = 1;
  Figures f(world_of({a_queue("p", "c", 10)}, {running}));
  EXPECT_EQ(f.used("c"), 6);
}

// ---- queues ----

TEST(QueueOrder, PriorityThenTimeThenUid) {
  WorkloadSpec high = ask("z", "q", 1, 5, 9), old = ask("y", "q", 1, 0, 1);
  WorkloadSpec first = ask("x", "q", 1, 0, 2), second = ask("a", "q", 1, 0, 2);
  first.uid = "1";
  second.uid = "2";
  QueueJudge judge(world_of({a_queue("q", "", 9)}, {second, first, old, high}), 0);
  EXPECT_EQ(run_cycle(judge), "+z@f");  // one head in each cycle
  EXPECT_EQ(run_cycle(judge), "+y@f");
  EXPECT_EQ(run_cycle(judge), "+x@f");
  EXPECT_EQ(run_cycle(judge), "+a@f");
  EXPECT_EQ(run_cycle(judge), "");
}

TEST(QueueOrder, EvictedForPodsReadyStartsAtItsEviction) {
  WorkloadSpec late = ask("a", "q", 1, 0, 1), other = ask("b", "q", 1, 0, 5);
  late.evicted = "PodsReadyTimeout";
  late.evicted_ns = 7;
  model::QueueInputs world = world_of({a_queue("q", "", 1)}, {late, other});
  EXPECT_EQ(first_cycle(world), "+b@f");
  world.config.requeue_by_creation = true;
  EXPECT_EQ(first_cycle(world), "+a@f");
  world.workloads[0].evicted = "AdmissionCheck";
  EXPECT_EQ(first_cycle(world), "+b@f");
  world.workloads[0].evicted = "Preempted";
  EXPECT_EQ(first_cycle(world), "+a@f");
}

TEST(QueueOrder, StrictBlocksBestEffortParks) {
  model::QueueSpec strict = a_queue("q", "", 2);
  strict.strict_fifo = true;
  const std::vector<WorkloadSpec> two = {ask("big", "q", 3, 1), ask("small", "q", 1)};
  QueueJudge blocked(world_of({strict}, two), 0);
  EXPECT_EQ(run_cycle(blocked), "big NoFit heap");
  EXPECT_EQ(run_cycle(blocked), "big NoFit heap");
  QueueJudge best(world_of({a_queue("q", "", 2)}, two), 0);
  EXPECT_EQ(run_cycle(best), "big NoFit parked");
  EXPECT_EQ(run_cycle(best), "+small@f");
  EXPECT_EQ(run_cycle(best), "");
}

TEST(QueueOrder, EqualsOfAParkedOneAreParkedUntilAFlush) {
  QueueJudge judge(world_of({a_queue("q", "", 3)}, {holds(ask("h", "q", 2)), ask("a", "q", 2),
                                                    ask("b", "q", 2), ask("c", "q", 2, -1)}),
                   0);
  EXPECT_EQ(run_cycle(judge),
            "a PreemptionNoCandidates parked");  // 3 >= 2 of quota, nobody to evict
  EXPECT_EQ(judge.place("d/b"), "parked");
  EXPECT_EQ(judge.place("d/c"), "heap");  // of another priority
  judge.add(ask("late", "q", 2));
  EXPECT_EQ(judge.place("d/late"), "parked");
  judge.finish("d/h");
  for (const char* name : {"d/a", "d/b", "d/late"}) EXPECT_EQ(judge.place(name), "heap");
  judge.add(ask("later", "q", 2));
  EXPECT_EQ(judge.place("d/later"), "heap");
  EXPECT_EQ(run_cycle(judge), "+a@f");
}

TEST(QueueOrder, AFlushReachesTheWholeTree) {
  QueueJudge judge(world_of({a_queue("p", "c", 2), a_queue("q", "c", 0), a_queue("r", "", 0)},
                            {holds(ask("h", "p", 2)), ask("a", "q", 2), ask("b", "r", 1)}),
                   0);
  EXPECT_EQ(run_cycle(judge), "a NoFit parked; b NoFit parked");
  judge.finish("d/h");
  EXPECT_EQ(judge.place("d/a"), "heap");
  EXPECT_EQ(judge.place("d/b"), "parked");
  EXPECT_EQ(run_cycle(judge), "+a@f");
}

TEST(QueueOrder, APreemptorStaysAheadInBestEffortOnly) {
  for (bool strict : {false, true}) {
    model::QueueSpec queue = with(a_queue("q", "", 2), PreemptWithin::kLowerPriority);
    queue.strict_fifo = strict;
    QueueJudge judge(world_of({queue}, {holds(ask("v", "q", 2)), ask("p", "q", 2, 1)}), 0);
    EXPECT_EQ(run_cycle(judge), "-v InClusterQueue<p; p PendingPreemption heap");
    judge.add(ask("king", "q", 2, 9));
    judge.evictions_done();
    EXPECT_EQ(run_cycle(judge), strict ? "+king@f" : "+p@f");
  }
}

TEST(QueueOrder, VictimsHoldUntilTheyAreGoneAndWaitAgain) {
  model::QueueSpec queue = with(a_queue("q", "", 2), PreemptWithin::kLowerPriority);
  QueueJudge judge(world_of({queue}, {holds(ask("v", "q", 2)), ask("p", "q", 2, 1)}), 0);
  EXPECT_EQ(run_cycle(judge), "-v InClusterQueue<p; p PendingPreemption heap");
  EXPECT_EQ(run_cycle(judge), "p PendingPreemption heap");  // evicted once only
  EXPECT_EQ(judge.place("d/v"), "leaving");
  judge.evictions_done();
  EXPECT_EQ(judge.place("d/v"), "heap");
  EXPECT_EQ(run_cycle(judge), "+p@f");
  EXPECT_EQ(run_cycle(judge), "v PreemptionNoCandidates parked");
  EXPECT_EQ(judge.check(), "");
}

TEST(QueueOrder, NamespacesAndBackoffPark) {
  model::QueueSpec red = a_queue("q", "", 2), none = a_queue("q", "", 2);
  red.namespaces = text::Selector{{"team", text::Operator::kIn, {"red"}}};
  red.strict_fifo = true;
  none.namespaces.reset();
  EXPECT_EQ(first_cycle(world_of({red}, {ask("w", "q", 1)})), "w NamespaceMismatch parked");
  EXPECT_EQ(first_cycle(world_of({none}, {ask("w", "q", 1)})), "w NamespaceMismatch parked");
  model::QueueInputs labelled = world_of({red}, {ask("w", "q", 1)});
  labelled.namespaces["d"]["team"] = "red";
  EXPECT_EQ(first_cycle(labelled), "+w@f");

  WorkloadSpec later = ask("w", "q", 1), other = ask("x", "q", 1);
  later.requeue_at_ns = 50;
  QueueJudge judge(world_of({a_queue("q", "", 2)}, {later, other}), 0);
  EXPECT_EQ(judge.place("d/w"), "parked");
  EXPECT_EQ(run_cycle(judge, 10), "+x@f");
  judge.finish("d/x");  // a flush does not shorten it
  EXPECT_EQ(run_cycle(judge, 49), "");
  EXPECT_EQ(run_cycle(judge, 50), "+w@f");
  WorkloadSpec off = ask("w", "q", 1);
  off.not_requeued = "Deactivated";
  EXPECT_EQ(first_cycle(world_of({a_queue("q", "", 2)}, {off})), "");
}

TEST(QueueOrder, NothingIsTriedThatCannotBe) {
  WorkloadSpec inactive = ask("a", "q", 1), held = ask("b", "q", 1), lost = ask("c", "x", 1);
  inactive.active = false;
  held.held_by = "someone";
  WorkloadSpec rejected = ask("d", "q", 1);
  rejected.checks["k"] = model::CheckState::kRejected;
  QueueJudge judge(world_of({a_queue("q", "", 9)}, {inactive, held, lost, rejected}), 0);
  EXPECT_EQ(run_cycle(judge), "d  parked");
  EXPECT_EQ(run_cycle(judge), "");
  for (const char* name : {"d/a", "d/b", "d/c"}) EXPECT_EQ(judge.place(name), "out");
}

TEST(QueueOrder, InactiveQueues) {
  auto active = [](model::QueueInputs inputs) {
    const bool is = QueueJudge(inputs, 0).active("q");
    EXPECT_EQ(first_cycle(inputs), is ? "+w@f" : "");
    return is;
  };
  model::QueueInputs world = world_of({a_queue("q", "c", 1)}, {ask("w", "q", 1)});
  EXPECT_TRUE(active(world));
  model::QueueInputs stopped = world, unflavored = world, unchecked = world, cycle = world;
  stopped.queues[0].stop = model::StopPolicy::kHold;
  EXPECT_FALSE(active(stopped));
  unflavored.flavors.clear();
  EXPECT_FALSE(active(unflavored));
  unchecked.queues[0].checks.push_back({"k", {}});
  EXPECT_FALSE(active(unchecked));
  unchecked.checks.push_back({.name = "k", .controller = "", .active = true});
  EXPECT_TRUE(active(unchecked));
  unchecked.checks[0].active = false;
  EXPECT_FALSE(active(unchecked));
  cycle.cohorts = {a_cohort("c", "e"), a_cohort("e", "c")};
  EXPECT_FALSE(active(cycle));
  model::QueueInputs local = world;
  local.local_queues[0].stop = model::StopPolicy::kHold;
  EXPECT_EQ(first_cycle(local), "");
}

// ---- the cycle ----

TEST(QueueCycles, BorrowingLessComesBeforePriority) {
  EXPECT_EQ(first_cycle(world_of({a_queue("p", "c", 0), a_queue("q", "c", 4)},
                                 {ask("high", "p", 4, 9), ask("low", "q", 4)})),
            "+low@f; high FailedAfterNomination heap");
}

TEST(QueueCycles, ThenPriorityThenTime) {
  auto world = [](int priority, std::int64_t created) {
    return world_of({a_queue("p", "c", 0), a_queue("q", "c", 0), a_queue("l", "c", 4)},
                    {ask("a", "p", 4, 1, 1), ask("b", "q", 4, priority, created)});
  };
  EXPECT_EQ(first_cycle(world(2, 5)), "+b@f; a FailedAfterNomination heap");
  EXPECT_EQ(first_cycle(world(1, 5)), "+a@f; b FailedAfterNomination heap");
  EXPECT_EQ(first_cycle(world(1, 0)), "+b@f; a FailedAfterNomination heap");
  EXPECT_EQ(first_cycle(world(1, 1)), "+a@f; b FailedAfterNomination heap");
}

TEST(QueueCycles, DeeperBorrowingComesLater) {
  // q borrows inside its cohort (level 1), p from the root (level 2).
  EXPECT_EQ(first_cycle(world_of({a_queue("p", "m", 0), a_queue("q", "n", 0), a_queue("k", "n", 2)},
                                 {ask("far", "p", 2, 9), ask("near", "q", 2)},
                                 {a_cohort("m", "r"), a_cohort("n", "r"), a_cohort("r", "")})),
            "+near@f; far FailedAfterNomination heap");
}

TEST(QueueCycles, SeveralQueuesOfACohortInOneCycle) {
  EXPECT_EQ(first_cycle(world_of({a_queue("p", "c", 2), a_queue("q", "c", 3)},
                                 {ask("a", "p", 2), ask("b", "q", 3)})),
            "+a@f; +b@f");
}

// a wants 4 of its own quota, 2 of which h borrowed and keeps. b could have had 1 of the rest.
TEST(QueueCycles, AHeadWithoutCandidatesReservesItsQuota) {
  auto world = [](Reclaim reclaim) {
    return world_of(
        {with(a_queue("p", "c", 4), PreemptWithin::kNever, reclaim), a_queue("q", "c", 0)},
        {holds(ask("h", "q", 2, 5)), ask("a", "p", 4, 0), ask("b", "q", 1)});
  };
  EXPECT_EQ(first_cycle(world(Reclaim::kLowerPriority)),
            "a PreemptionNoCandidates parked; b FailedAfterNomination heap");
  EXPECT_EQ(first_cycle(world(Reclaim::kAny)),
            "-h InCohortReclamation<a; a PendingPreemption heap; b FailedAfterNomination heap");
}

// a would borrow: it reserves all it wants, what its limit leaves, or nothing (reclaim Any).
TEST(QueueCycles, AHeadThatWouldBorrowReservesUpToItsLimit) {
  auto world = [](Reclaim reclaim, std::int64_t lender, Limits limits) {
    return world_of({with(a_queue("p", "c", 4, limits), PreemptWithin::kNever, reclaim),
                     a_queue("q", "c", lender)},
                    {holds(ask("h", "p", 3, 5)), ask("a", "p", 2, 9), ask("b", "q", 1)});
  };
  EXPECT_EQ(first_cycle(world(Reclaim::kNever, 0, {})),
            "a PreemptionNoCandidates parked; b FailedAfterNomination heap");
  EXPECT_EQ(first_cycle(world(Reclaim::kAny, 0, {})), "+b@f; a PreemptionNoCandidates parked");
  // Available to a: min(4 - 3 + 0, 5 - 3) = 1; it keeps 4 + 0 - 3 = 1 and leaves 1.
  EXPECT_EQ(first_cycle(world(Reclaim::kNever, 1, {.borrow = 0})),
            "+b@f; a PreemptionNoCandidates parked");
}

TEST(QueueCycles, SharedVictimsAreWaitedFor) {
  QueueJudge judge(world_of({with(a_queue("p", "c", 2), PreemptWithin::kNever, Reclaim::kAny),
                             with(a_queue("q", "c", 2), PreemptWithin::kNever, Reclaim::kAny),
                             a_queue("s", "c", 0)},
                            {holds(ask("v", "s", 4)), ask("a", "p", 2), ask("b", "q", 2)}),
                   0);
  EXPECT_EQ(run_cycle(judge),
            "-v InCohortReclamation<a; a PendingPreemption heap; b PendingPreemption heap");
  judge.evictions_done();
  EXPECT_EQ(run_cycle(judge), "+a@f; +b@f; v FailedAfterNomination heap");
}

TEST(QueueCycles, OverlappingVictimsAreChosenAnew) {
  EXPECT_EQ(first_cycle(world_of({with(a_queue("p", "c", 2), PreemptWithin::kNever, Reclaim::kAny),
                                  with(a_queue("q", "c", 2), PreemptWithin::kNever, Reclaim::kAny),
                                  a_queue("s", "c", 0)},
                                 {holds(ask("v", "s", 2), 1), holds(ask("w", "s", 2), 2),
                                  ask("a", "p", 2), ask("b", "q", 2)})),
            "-w InCohortReclamation<a; -v InCohortReclamation<b; a PendingPreemption heap; "
            "b PendingPreemption heap");
}

TEST(QueueCycles, AClosedGateStopsPreemptionOnly) {
  model::QueueSpec queue = with(a_queue("q", "", 2), PreemptWithin::kLowerPriority);
  WorkloadSpec gated = ask("p", "q", 2, 1);
  gated.preemption_gated = true;
  EXPECT_EQ(first_cycle(world_of({queue}, {holds(ask("v", "q", 2)), gated})),
            "p PreemptionGated parked");
  EXPECT_EQ(first_cycle(world_of({queue}, {gated})), "+p@f");
}

// The room of victims counts as free for the rest of the cycle: 8 + 2 + 1 are held of 10.
TEST(QueueCycles, RoomOfVictimsIsGivenAwayBeforeTheyLeave) {
  QueueJudge judge(world_of({with(a_queue("p", "c", 8), PreemptWithin::kLowerPriority),
                             a_queue("q", "c", 1), a_queue("s", "c", 1)},
                            {holds(ask("v", "p", 4)), holds(ask("k", "p", 4, 9)),
                             ask("a", "p", 3, 1), ask("b", "q", 2, 0, 1), ask("e", "s", 1, 0, 2)}),
                   0);
  EXPECT_EQ(run_cycle(judge), "+e@f; +b@f; -v InClusterQueue<a; a PendingPreemption heap");
  EXPECT_EQ(judge.usage(QueueNode::kCohort, "c", "f", "gpu"), 11);
}

TEST(QueueCycles, ChecksHoldQuotaBack) {
  model::QueueInputs world = world_of({a_queue("q", "", 1)}, {ask("w", "q", 1)});
  world.queues[0].checks.push_back({"k", {}});
  world.checks.push_back({.name = "k", .controller = "", .active = true});
  QueueJudge judge(world, 0);
  EXPECT_EQ(run_cycle(judge), "+w@f");
  EXPECT_FALSE(judge.spec("d/w").admitted);
  EXPECT_EQ(judge.usage(QueueNode::kQueue, "q", "f", "gpu"), 1);
}

TEST(QueueCycles, AdmissionWaitsForPodsWhereItBlocks) {
  model::QueueInputs world =
      world_of({a_queue("p", "", 1), a_queue("q", "", 1)}, {ask("a", "p", 1, 1), ask("b", "q", 1)});
  world.config.block_admission = true;
  QueueJudge judge(world, 0);
  EXPECT_EQ(run_cycle(judge), "+a@f; b WaitingForPodsReady heap");
  EXPECT_EQ(run_cycle(judge), "b WaitingForPodsReady heap");
  judge.ready("d/a");
  EXPECT_EQ(run_cycle(judge), "+b@f");
}

// ---- admission fair sharing ----

TEST(QueueUsage, TheLocalQueueThatUsedLeastIsNext) {
  model::QueueInputs world = world_of({a_queue("q", "", 9)}, {});
  world.local_queues.push_back(
      {.ns = "d", .name = "k", .queue = "q", .stop = model::StopPolicy::kNone, .weight = 1});
  world.queues[0].admission_fair_sharing = true;
  world.config.half_life_s = 300;  // alpha of one sampling interval: 1/2
  world.workloads = {ask("a", "q", 2, 5), ask("b", "q", 1, 5), ask("x", "k", 1), ask("y", "k", 1)};
  QueueJudge judge(world, 0);
  EXPECT_EQ(run_cycle(judge, 1), "+a@f");  // 0 and 0; then q has 1
  EXPECT_EQ(run_cycle(judge, 2), "+x@f");  // k has 1/2
  EXPECT_EQ(run_cycle(judge, 3), "+y@f");  // 1 and 1/2
  EXPECT_EQ(run_cycle(judge, 4), "+b@f");
}

}  // namespace
}  // namespace berth::judging
