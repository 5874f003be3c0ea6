// Who has to go, classical and by fair shares, on worlds small enough to check by hand.
#include "judge/queue_preempt.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "judge/queue_specs.h"

namespace berth::judging {
namespace {

using model::PreemptWithin;
using model::QueueSpec;
using model::Reclaim;
using model::WorkloadSpec;
using Strategy = model::QueueConfig::Strategy;

constexpr PreemptWithin kNever = PreemptWithin::kNever;
constexpr PreemptWithin kLower = PreemptWithin::kLowerPriority;

// The victims of the cycle with their reasons.
std::string victims(const model::QueueInputs& inputs) {
  QueueJudge judge(inputs, 0);
  std::string text;
  for (const QueuePreempted& one : judge.cycle(1'000).preempted) {
    text += (text.empty() ? "" : " ") + one.workload.substr(2) + ":" + one.reason;
  }
  EXPECT_EQ(judge.check(), "");
  return text;
}

// ---- common rules ----

// By usage x goes before z (one queue, two local ones), by priority z before y before x: no order,
// so it must not matter in which they are found.
TEST(QueueVictims, AreSortedFromTheOrderOfNames) {
  const QueueSpec queue = a_queue("p", "c", 1);
  quota::Asker asker;
  asker.queue = &queue;
  asker.past_usage = [](const std::string& local) { return local == "n/much" ? 2.0 : 1.0; };
  std::vector<quota::Holding> all(3);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].workload = all[i].tie = std::string(1, "xyz"[i]);
    all[i].queue = i == 1 ? "b" : "a";
    all[i].local_queue = i == 0 ? "n/much" : "n/little";
    all[i].priority = 2 - static_cast<int>(i);
  }
  const auto by_name = [](const auto& a, const auto& b) { return a.workload < b.workload; };
  do {
    std::vector<quota::Holding> sorted = all;
    quota::sort_candidates(asker, sorted);
    EXPECT_EQ(sorted[0].workload + sorted[1].workload + sorted[2].workload, "yxz");
  } while (std::next_permutation(all.begin(), all.end(), by_name));
}

TEST(QueueVictims, WithinTheQueueLowestPriorityThenLatest) {
  QueueSpec queue = with(a_queue("q", "", 3), kLower);
  std::vector<WorkloadSpec> all = {holds(ask("a", "q", 1, 1), 5), holds(ask("b", "q", 1, 0), 1),
                                   holds(ask("c", "q", 1, 0), 3), ask("p", "q", 1, 2)};
  EXPECT_EQ(victims(world_of({queue}, all)), "c:InClusterQueue");
  all[3].pod_sets[0].requests["gpu"] = 3;
  EXPECT_EQ(victims(world_of({queue}, all)), "c:InClusterQueue b:InClusterQueue a:InClusterQueue");
  all[3].priority = 1;
  EXPECT_EQ(victims(world_of({queue}, all)), "");  // two are not enough
}

TEST(QueueVictims, EqualPriorityOnlyWhenNewer) {
  QueueSpec queue = with(a_queue("q", "", 1), PreemptWithin::kLowerOrNewerEqualPriority);
  auto who = [&](std::int64_t holder, std::int64_t asker) {
    return victims(
        world_of({queue}, {holds(ask("h", "q", 1, 1, holder)), ask("p", "q", 1, 1, asker)}));
  };
  EXPECT_EQ(who(5, 3), "h:InClusterQueue");
  EXPECT_EQ(who(3, 3), "");
  EXPECT_EQ(who(3, 5), "");
}

TEST(QueueVictims, EvictedOnesGoFirst) {
  QueueSpec queue = with(a_queue("q", "", 2), kLower);
  WorkloadSpec gone = holds(ask("a", "q", 1, 1), 1);
  gone.evicted = "Preempted";
  QueueJudge judge(world_of({queue}, {gone, holds(ask("b", "q", 1, 0), 9), ask("p", "q", 1, 2)}),
                   0);
  EXPECT_EQ(run_cycle(judge), "p PendingPreemption heap");  // nobody new
  judge.evictions_done();                                   // not ours to wait for
  EXPECT_EQ(judge.place("d/a"), "holding");
  EXPECT_EQ(run_cycle(judge), "p PendingPreemption heap");
}

TEST(QueueVictims, OfOtherFlavorsNobody) {
  QueueSpec queue = with(a_queue("q", "", {flavor_quota("f", 1), flavor_quota("g", 1)}), kLower);
  queue.preempt_stops_search = true;
  EXPECT_EQ(victims(world_of({queue}, {holds(ask("a", "q", 1, 0), 1, "f"),
                                       holds(ask("b", "q", 1, -5), 1, "g"), ask("p", "q", 1, 1)})),
            "a:InClusterQueue");
}

TEST(QueueVictims, WhoIsNotNeededStays) {
  QueueSpec queue = with(a_queue("q", "", 4), kLower);
  // a frees 1, c then 3 more; with c gone a may stay: 1 + 3 = 4.
  EXPECT_EQ(victims(world_of({queue}, {holds(ask("a", "q", 1, 0)), holds(ask("c", "q", 3, 1)),
                                       ask("p", "q", 3, 2)})),
            "c:InClusterQueue");
}

TEST(QueueVictims, TheLastOnePutBackTakesThePlaceOfTheDropped) {
  QueueSpec queue = with(a_queue("q", "", 7), kLower);
  // Removed: a 1, b 1, c 1, e 4. p wants 5: e and one more. From the back: c stays away only if
  // needed. With e gone 4 are free and 3 more of a, b, c; c back: 6, dropped; b back: 5, dropped;
  // a back: 4, kept away. e has taken the places of c and b.
  EXPECT_EQ(victims(world_of({queue}, {holds(ask("a", "q", 1, 0), 9), holds(ask("b", "q", 1, 0), 8),
                                       holds(ask("c", "q", 1, 0), 7), holds(ask("e", "q", 4, 1)),
                                       ask("p", "q", 5, 2)})),
            "a:InClusterQueue e:InClusterQueue");
}

// ---- classical ----

TEST(ClassicalVictims, OnlyQueuesThatBorrow) {
  auto world = [](Reclaim reclaim, int priority) {
    return world_of(
        {with(a_queue("p", "c", 4), kNever, reclaim), a_queue("q", "c", 0), a_queue("s", "c", 2)},
        {holds(ask("h", "q", 4, 1)), holds(ask("i", "s", 2, -9)), ask("a", "p", 4, priority)});
  };
  EXPECT_EQ(victims(world(Reclaim::kAny, 0)), "h:InCohortReclamation");
  EXPECT_EQ(victims(world(Reclaim::kLowerPriority, 1)), "");
  EXPECT_EQ(victims(world(Reclaim::kLowerPriority, 2)), "h:InCohortReclamation");
  EXPECT_EQ(victims(world(Reclaim::kNever, 2)), "");
}

TEST(ClassicalVictims, OtherQueuesBeforeTheOwn) {
  // p is 1 under its 3; q borrows 1. a wants 2: one of q and one of its own.
  EXPECT_EQ(victims(world_of(
                {with(a_queue("p", "c", 3), kLower, Reclaim::kAny), a_queue("q", "c", 1)},
                {holds(ask("m", "p", 1, 0)), holds(ask("n", "p", 1, 0), 7),
                 holds(ask("x", "q", 1, 5)), holds(ask("y", "q", 1, 5), 7), ask("a", "p", 2, 9)})),
            "y:InCohortReclamation n:InClusterQueue");
}

TEST(ClassicalVictims, AQueueIsLeftAloneOnceWithinItsQuota) {
  // q borrows 1 with two workloads of 2: the first takes it below its 3.
  EXPECT_EQ(victims(world_of({with(a_queue("p", "c", 2), kNever, Reclaim::kAny),
                              a_queue("q", "c", 3), a_queue("s", "c", 0)},
                             {holds(ask("x", "q", 2), 1), holds(ask("y", "q", 2), 9),
                              holds(ask("z", "s", 1, 9)), ask("a", "p", 2)})),
            "y:InCohortReclamation");
}

TEST(ClassicalVictims, WithoutBorrowingFirstWhenBorrowingMayNot) {
  // In [no-borrow] y goes (q is then within its 2), x stays, o goes: 0 + 4 <= 4 and 4 are free.
  EXPECT_EQ(
      victims(world_of({with(a_queue("p", "c", 4), kLower, Reclaim::kAny), a_queue("q", "c", 2)},
                       {holds(ask("o", "p", 2, 0)), holds(ask("x", "q", 2, 0), 1),
                        holds(ask("y", "q", 2, 0), 2), ask("a", "p", 4, 5)})),
      "y:InCohortReclamation o:InClusterQueue");
}

TEST(ClassicalVictims, BorrowingAfterAllWhenItCannotDoWithout) {
  // p holds 2 of 3 that cannot go (k), a wants 2 more: with borrowing only, from its own queue.
  EXPECT_EQ(victims(world_of({with(a_queue("p", "c", 3), kLower, Reclaim::kAny),
                              a_queue("q", "c", 2), a_queue("s", "c", 1)},
                             {holds(ask("k", "p", 1, 9)), holds(ask("m", "p", 1, 0)),
                              holds(ask("x", "q", 3, 0)), ask("a", "p", 3, 5)})),
            "");
  EXPECT_EQ(victims(world_of({with(a_queue("p", "c", 3), kLower, Reclaim::kAny),
                              a_queue("q", "c", 2), a_queue("s", "c", 2)},
                             {holds(ask("k", "p", 1, 9)), holds(ask("m", "p", 1, 0)),
                              holds(ask("x", "q", 3, 0)), ask("a", "p", 3, 5)})),
            "m:InClusterQueue");  // 4 in p then, 1 over its 3
}

TEST(ClassicalVictims, PreemptingToBorrow) {
  QueueSpec queue = with(a_queue("p", "c", 2), kNever, Reclaim::kAny);
  auto world = [&](const QueueSpec& p, int holder) {
    return world_of({p, a_queue("q", "c", 2)},
                    {holds(ask("h", "q", 3, holder)), ask("a", "p", 3, 5)});
  };
  QueueJudge forbidden(world(queue, 0), 0);
  EXPECT_EQ(run_cycle(forbidden), "a NoFit parked");
  queue.borrow_by_preemption = true;
  EXPECT_EQ(victims(world(queue, 0)), "h:InCohortReclaimWhileBorrowing");
  EXPECT_EQ(victims(world(queue, 5)), "");  // not of lower priority: only without borrowing
  queue.max_priority_threshold = -1;
  EXPECT_EQ(victims(world(queue, 0)), "");
  EXPECT_EQ(victims(world(queue, -1)), "h:InCohortReclaimWhileBorrowing");
}

TEST(ClassicalVictims, QuotaOfTheOwnCohortIsReclaimed) {
  // a borrows 1 of its cohort m, whose 4 the queue of another cohort took 3 of.
  auto world = [](bool flat) {
    return world_of({with(a_queue("p", flat ? "r" : "m", 1), kNever, Reclaim::kAny),
                     a_queue("k", flat ? "r" : "m", 3), a_queue("q", flat ? "r" : "n", 0)},
                    {holds(ask("h", "q", 3, 9)), ask("a", "p", 2)},
                    {a_cohort("m", "r"), a_cohort("n", "r"), a_cohort("r", "")});
  };
  EXPECT_EQ(victims(world(false)), "h:InCohortReclamation");
  QueueJudge flat(world(true), 0);
  EXPECT_EQ(run_cycle(flat), "a NoFit parked");
}

TEST(ClassicalVictims, HierarchyBeforePriorityAndCohortsWithinTheirQuotaAreLeftAlone) {
  // x borrows inside n, which as a whole is within its 2: no candidate. y's cohort o borrows.
  EXPECT_EQ(victims(world_of(
                {with(a_queue("p", "m", 2), kNever, Reclaim::kAny), a_queue("q", "n", 0),
                 a_queue("k", "n", 2), a_queue("s", "o", 0)},
                {holds(ask("x", "q", 2, -9)), holds(ask("y", "s", 2, 9)), ask("a", "p", 2)},
                {a_cohort("m", "r"), a_cohort("n", "r"), a_cohort("o", "r"), a_cohort("r", "")})),
            "y:InCohortReclamation");
}

TEST(ClassicalVictims, HierarchyListComesFirst) {
  // a is beyond its 1 but within m's 3: x of its own cohort is on the priority list (and may go
  // while a borrows), y beyond m on the hierarchy list. y goes first although x has less priority.
  QueueSpec queue = with(a_queue("p", "m", 1), kNever, Reclaim::kAny);
  queue.borrow_by_preemption = true;
  EXPECT_EQ(victims(world_of(
                {queue, a_queue("k", "m", 2), a_queue("j", "m", 0), a_queue("q", "n", 0)},
                {holds(ask("x", "j", 1, -9)), holds(ask("y", "q", 2, 3)), ask("a", "p", 2, 5)},
                {a_cohort("m", "r"), a_cohort("n", "r"), a_cohort("r", "")})),
            "y:InCohortReclamation");
}

// ---- fair sharing ----

model::QueueInputs fair(model::QueueInputs inputs, std::vector<Strategy> strategies = {}) {
  inputs.config.fair_sharing = true;
  if (!strategies.empty()) inputs.config.strategies = std::move(strategies);
  return inputs;
}

// q holds six of 1, 4 of them borrowed (667); the three queues have 2 each.
model::QueueInputs six_of_one(std::int64_t wanted) {
  std::vector<WorkloadSpec> all = {ask("a", "p", wanted)};
  for (int i = 0; i < 6; ++i) all.push_back(holds(ask("h" + std::to_string(i), "q", 1), i));
  return world_of({with(a_queue("p", "c", 2), kNever, Reclaim::kAny), a_queue("q", "c", 2),
                   a_queue("s", "c", 2)},
                  all);
}

TEST(FairVictims, FinalShareAllowsEqual) {
  const std::string three = "h5:InCohortFairSharing h4:InCohortFairSharing h3:InCohortFairSharing";
  // a with 3 has 1/6: after each victim q has 3/6, 2/6, 1/6.
  EXPECT_EQ(victims(fair(six_of_one(3))), three);
  EXPECT_EQ(victims(fair(six_of_one(3), {Strategy::kLessThanOrEqualToFinalShare})), three);
  // With 4 it has 2/6: the third victim would leave q 1/6; q with it has 2/6, which is not more.
  EXPECT_EQ(victims(fair(six_of_one(4))), "");
}

TEST(FairVictims, InitialShareLooksAtTheTargetAsItIs) {
  const std::vector<Strategy> initial = {Strategy::kLessThanInitialShare};
  // 1/6 < 4/6, 3/6, 2/6.
  EXPECT_EQ(victims(fair(six_of_one(3), initial)),
            "h5:InCohortFairSharing h4:InCohortFairSharing h3:InCohortFairSharing");
  EXPECT_EQ(victims(fair(six_of_one(4), initial)), "");  // 2/6 < 2/6 fails
}

TEST(FairVictims, WithinNominalNothingIsCompared) {
  EXPECT_EQ(victims(fair(six_of_one(2))), "h5:InCohortReclamation h4:InCohortReclamation");
}

TEST(FairVictims, TheSecondStrategyTakesWhatTheFirstRefused) {
  // a with 3 has 1/6. u goes (q then 2/6), v would leave q nothing: refused. Second: 1/6 < 2/6.
  // With v gone u is not needed any more.
  auto world = [](std::vector<Strategy> strategies) {
    return fair(
        world_of({with(a_queue("p", "c", 2), kNever, Reclaim::kAny), a_queue("q", "c", 2),
                  a_queue("s", "c", 2)},
                 {holds(ask("u", "q", 2), 9), holds(ask("v", "q", 4), 1), ask("a", "p", 3)}),
        std::move(strategies));
  };
  EXPECT_EQ(victims(world({})), "v:InCohortFairSharing");
  EXPECT_EQ(victims(world({Strategy::kLessThanOrEqualToFinalShare})), "");
}

TEST(FairVictims, TheHighestShareGivesFirst) {
  // q has 4/8 borrowed, s 2/8; weight 4 makes q's 1/8. a stays within its 2.
  auto world = [](double weight) {
    model::QueueInputs inputs =
        world_of({with(a_queue("p", "c", 2), kNever, Reclaim::kAny), a_queue("q", "c", 1),
                  a_queue("s", "c", 1), a_queue("l", "c", 4)},
                 {holds(ask("x", "q", 1), 1), holds(ask("y", "q", 4), 2),
                  holds(ask("z", "s", 3), 9), ask("a", "p", 1)});
    inputs.queues[1].weight = weight;
    return fair(std::move(inputs));
  };
  EXPECT_EQ(victims(world(1)), "y:InCohortReclamation");
  EXPECT_EQ(victims(world(4)), "z:InCohortReclamation");
}

TEST(FairVictims, TheOwnQueueIsATargetToo) {
  // Incoming usage counts: p would have 3 + 3 - 2 = 4/6 borrowed, q has 1/6. So p's own go first.
  EXPECT_EQ(victims(fair(world_of(
                {with(a_queue("p", "c", 2), kLower, Reclaim::kAny), a_queue("q", "c", 2),
                 a_queue("s", "c", 2)},
                {holds(ask("m", "p", 3, 0)), holds(ask("x", "q", 3, 0)), ask("a", "p", 3, 5)}))),
            "m:InClusterQueue");
}

TEST(FairVictims, PrioritiesHoldInFairSharingToo) {
  model::QueueInputs inputs = six_of_one(2);
  inputs.queues[0].reclaim = Reclaim::kLowerPriority;
  EXPECT_EQ(victims(fair(inputs)), "");
  inputs.workloads[0].priority = 1;
  EXPECT_EQ(victims(fair(inputs)), "h5:InCohortReclamation h4:InCohortReclamation");
}

TEST(FairVictims, SharesAreComparedBelowTheSharedCohort) {
  // p borrows a lot inside m, but m as a whole (2 + 2 - 4 = 0) borrows nothing; n borrows 2 of 6.
  auto world = [](bool flat) {
    return fair(world_of({with(a_queue("p", flat ? "r" : "m", 0), kNever, Reclaim::kAny),
                          a_queue("k", flat ? "r" : "m", 4), a_queue("q", flat ? "r" : "n", 2)},
                         {holds(ask("o", "p", 2, 9)), holds(ask("x", "q", 2), 1),
                          holds(ask("y", "q", 2), 2), ask("a", "p", 2)},
                         {a_cohort("m", "r"), a_cohort("n", "r"), a_cohort("r", "")}));
  };
  EXPECT_EQ(victims(world(false)), "y:InCohortFairSharing");
  EXPECT_EQ(victims(world(true)), "");  // 4/6 against 0 and 2/6
}

TEST(FairVictims, TwoInfiniteSharesCompareByRatio) {
  // Weight 0 in p and q. a with 1 has ratio 1/6; q's without h5 is 3/6.
  model::QueueInputs inputs = six_of_one(1);
  inputs.queues[0] = with(a_queue("p", "c", 0), kNever, Reclaim::kAny);
  inputs.queues[2] = a_queue("s", "c", 4);
  inputs.queues[0].weight = inputs.queues[1].weight = 0;
  EXPECT_EQ(victims(fair(inputs)), "h5:InCohortFairSharing");
  inputs.queues[1].weight = 1;
  EXPECT_EQ(victims(fair(inputs)), "");  // nobody finite yields to an infinite share
}

// ---- the tournament ----

std::string fair_cycle(model::QueueInputs inputs) { return first_cycle(fair(std::move(inputs))); }

TEST(FairOrder, TheLowerShareComesFirstWhateverThePriority) {
  auto world = [](double weight) {
    model::QueueInputs inputs =
        world_of({a_queue("p", "c", 0), a_queue("q", "c", 0), a_queue("l", "c", 6)},
                 {ask("a", "p", 4, 9), ask("b", "q", 3)});
    inputs.queues[0].weight = weight;
    return inputs;
  };
  EXPECT_EQ(first_cycle(world(1)), "+a@f; b FailedAfterNomination heap");
  EXPECT_EQ(fair_cycle(world(1)), "+b@f; a FailedAfterNomination heap");  // 4/6 and 3/6
  EXPECT_EQ(fair_cycle(world(2)), "+a@f; b FailedAfterNomination heap");  // 2/6 and 3/6
}

TEST(FairOrder, WhoDoesNotBorrowInWhatItAsksForComesFirst) {
  // p borrowed 2 of the other flavor (share 2/9) but not of the one it asks for now.
  model::QueueInputs inputs =
      world_of({a_queue("p", "c", {flavor_quota("f", 2), flavor_quota("g", 0)}),
                a_queue("q", "c", 1), a_queue("l", "c", {flavor_quota("g", 6)})},
               {holds(ask("h", "p", 2), 0, "g"), ask("a", "p", 2), ask("b", "q", 2, 9)});
  EXPECT_EQ(fair_cycle(inputs), "+a@f; b FailedAfterNomination heap");
}

TEST(FairOrder, WinnersOfCohortsMeetAboveThem) {
  // In m b (1) beats a (2). At the root m with b has 1/4, n with e 2/4: b, then n and a tie at 2/4
  // ... m with a has then 3/4, so e; nothing is left for a.
  EXPECT_EQ(fair_cycle(world_of({a_queue("p", "m", 0), a_queue("q", "m", 0), a_queue("s", "n", 0),
                                 a_queue("l", "r", 4)},
                                {ask("a", "p", 2, 9), ask("b", "q", 1), ask("e", "s", 2)},
                                {a_cohort("m", "r"), a_cohort("n", "r"), a_cohort("r", "")})),
            "+b@f; +e@f; a FailedAfterNomination heap");
}

}  // namespace
}  // namespace berth::judging
