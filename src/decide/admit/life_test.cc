// Stages, departures, and what a site may ask of preemption.
#include <gtest/gtest.h>

#include "base/random.h"
#include "decide/admit/departure.h"
#include "decide/admit/engine.h"
#include "decide/admit/world_for_test.h"

namespace berth::admit {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(Stages, QuotaIsHeldUntilAnEvictedWorkloadIsGone) {
  EXPECT_TRUE(may_follow(Stage::kWaiting, Stage::kReserved));
  EXPECT_TRUE(may_follow(Stage::kReserved, Stage::kAdmitted));
  EXPECT_TRUE(may_follow(Stage::kAdmitted, Stage::kEvicting));
  EXPECT_TRUE(may_follow(Stage::kEvicting, Stage::kWaiting));
  EXPECT_FALSE(may_follow(Stage::kAdmitted, Stage::kWaiting));
  EXPECT_FALSE(may_follow(Stage::kFinished, Stage::kWaiting));
  EXPECT_TRUE(holds_quota(Stage::kEvicting));
}

TEST(Reasons, AreSpeltAsBothAgesOfKueueDo) {
  EXPECT_EQ(name(NoReason::kWaitingForQuota), "WaitingForQuota");
  EXPECT_EQ(old_name(NoReason::kWaitingForQuota), "Pending");
  EXPECT_EQ(old_name(NoReason::kMisconfigured), "Inadmissible");
  EXPECT_EQ(old_name(NoReason::kWaitingForPodsReady), "Waiting");
}

TEST(Departure, LatePodsComeBackAfterADoublingWait) {
  auto inputs = world_of({gpu_queue("a", "", 8)});
  inputs.config.pods_ready_timeout_s = 100;
  inputs.config.backoff_limit = 2;
  const Book book(inputs);
  auto spec = holding(asks("w", "a", 1, 1, 0, 0), 0);
  spec.admitted_ns = kSecond;
  spec.pods_ready = false;
  EXPECT_FALSE(departure_of(book, spec, 0, 100 * kSecond));
  auto late = departure_of(book, spec, 0, 102 * kSecond);
  ASSERT_TRUE(late);
  EXPECT_EQ(late->reason, "PodsReadyTimeout");
  EXPECT_EQ(late->requeue_at_ns, (102 + 60) * kSecond);
  spec.requeues = 1;
  EXPECT_EQ(departure_of(book, spec, 0, 102 * kSecond)->requeue_at_ns, (102 + 120) * kSecond);
  spec.requeues = 2;
  EXPECT_EQ(departure_of(book, spec, 0, 102 * kSecond)->reason,
            "DeactivatedDueToRequeuingLimitExceeded");
}

TEST(Departure, StoppedQueuesAndFailedChecks) {
  auto queue = gpu_queue("a", "", 8);
  queue.stop = model::StopPolicy::kHold;
  const Book book(world_of({queue}));
  auto spec = holding(asks("w", "a", 1, 1, 0, 0), 0);
  EXPECT_FALSE(departure_of(book, spec, 0, 0));  // Hold lets the admitted run
  spec.admitted = false;
  EXPECT_EQ(departure_of(book, spec, 0, 0)->reason, "ClusterQueueStopped");
  spec.checks["c"] = model::CheckState::kRejected;
  EXPECT_TRUE(departure_of(book, spec, 0, 0)->deactivates);
  spec.checks["c"] = model::CheckState::kRetry;
  EXPECT_EQ(departure_of(book, spec, 0, 0)->reason, "AdmissionCheck");
}

// It comes back at once, to the place in its queue that it had.
TEST(Departure, ABrokenGpuStartsItOver) {
  const Book book(world_of({gpu_queue("a", "", 8)}));
  auto spec = holding(asks("w", "a", 1, 1, 0, 0), 0);
  EXPECT_FALSE(departure_of(book, spec, 0, kSecond));
  spec.loss = {"GpuFailure", "GPU 3 of node n0 failed (Xid79) under its pod w-0"};
  const auto out = departure_of(book, spec, 0, kSecond);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->reason, "GpuFailure");
  EXPECT_EQ(out->message, spec.loss->message);
  EXPECT_FALSE(out->deactivates || out->orders_anew);
  EXPECT_EQ(out->requeue_at_ns, 0);
}

TEST(Departure, TimeIsUp) {
  const Book book(world_of({gpu_queue("a", "", 8)}));
  auto spec = holding(asks("w", "a", 1, 1, 0, 0), 0);
  spec.admitted_ns = kSecond;
  spec.max_execution_s = 100;
  spec.past_execution_s = 60;
  EXPECT_FALSE(departure_of(book, spec, 0, 41 * kSecond));
  EXPECT_EQ(departure_of(book, spec, 0, 42 * kSecond)->reason,
            "DeactivatedDueToMaximumExecutionTimeExceeded");
}

// An eviction counts for its place until quota is reserved again, then its creation does: an equal
// that is younger may not send it away, one that is older may.
TEST(Departure, WhoIsAdmittedAgainIsAsOldAsItWasCreated) {
  struct Case {
    int created, evicted, other;  // seconds
    bool victim;
  };
  for (const Case& c : {Case{1, 9, 5, false}, Case{5, 9, 1, true}, Case{7, 3, 5, true}}) {
    for (const char* reason : {"AdmissionCheck", "PodsReadyTimeout"}) {
      auto queue = gpu_queue("a", "", 8);
      queue.within = model::PreemptWithin::kLowerOrNewerEqualPriority;
      const Book book(world_of({queue}));
      Engine engine(book);
      auto spec = asks("w", "a", 1, 8, 0, c.created);
      spec.evicted = reason;
      spec.evicted_ns = c.evicted * kSecond;
      const auto again = engine.add(spec, 0);
      ASSERT_EQ(engine.cycle(10 * kSecond).admitted, std::vector<WorkloadId>{again});
      engine.add(asks("other", "a", 1, 8, 0, c.other), 0);
      EXPECT_EQ(engine.cycle(11 * kSecond).evicted.size(), c.victim ? 1u : 0u)
          << reason << ' ' << c.created;
    }
  }
}

// Whoever was reclaimed while borrowing lines up behind (without PrioritySortingWithinCohort), and
// no longer does once it was admitted again and left for another cause.
TEST(Departure, AReclaimCountsForOneWaitOnly) {
  auto lender = gpu_queue("a", "c", 4);
  lender.reclaim = model::Reclaim::kLowerPriority;
  lender.borrow_by_preemption = true;
  auto inputs = world_of({lender, gpu_queue("b", "c", 2)});
  inputs.config.gates["PrioritySortingWithinCohort"] = false;
  const Book book(inputs);
  Engine engine(book);
  const auto victim = engine.add(holding(asks("w", "b", 1, 4, 0, 1), 1), 0);
  const auto taker = engine.add(asks("taker", "a", 1, 5, 9, 2), 0);
  const CycleResult first = engine.cycle(10 * kSecond);
  ASSERT_EQ(first.evicted.size(), 1u);
  ASSERT_EQ(first.evicted[0].cause, Cause::kInCohortReclaimWhileBorrowing);
  engine.gone(victim, 10 * kSecond);
  EXPECT_GT(engine.workload(victim).order_ns, 10 * kSecond);
  engine.finish(taker);
  ASSERT_EQ(engine.cycle(20 * kSecond).admitted, std::vector<WorkloadId>{victim});
  EXPECT_EQ(engine.workload(victim).order_ns, kSecond);
  engine.depart(victim, {.reason = "NodeFailures", .message = {}});
  engine.gone(victim, 30 * kSecond);
  EXPECT_EQ(engine.workload(victim).order_ns, kSecond);
}

// Two holders of the queue, one small and old, one large and new; a third of higher priority comes.
CycleResult preempt_in(Engine& engine) {
  engine.add(holding(asks("small", "a", 1, 2, 0, 0), 10), 0);
  engine.add(holding(asks("large", "a", 1, 6, 1, 0), 90), 0);
  engine.add(asks("urgent", "a", 1, 2, 9, 50), 0);
  return engine.cycle(100 * kSecond);
}

std::string victim_with(const model::QueuePolicy& policy) {
  auto queue = gpu_queue("a", "", 8);
  queue.within = model::PreemptWithin::kLowerPriority;
  const Book book(world_of({queue}));
  Engine engine(book, nullptr, {.policy = policy});
  const CycleResult result = preempt_in(engine);
  return result.evicted.size() == 1 ? engine.workload(result.evicted[0].id).name : "nobody";
}

TEST(Policy, ChoosesVictimsAndSparesThem) {
  EXPECT_EQ(victim_with({}), "d/small");  // Kueue: the lowest priority
  EXPECT_EQ(victim_with({.preemption = false}), "nobody");
  EXPECT_EQ(victim_with({.min_runtime_ns = 200 * kSecond}), "nobody");
  EXPECT_EQ(victim_with({.min_runtime_ns = 50 * kSecond}), "d/small");
  EXPECT_EQ(victim_with({.victims = model::QueuePolicy::Victims::kFewestJobs}), "d/large");
  EXPECT_EQ(victim_with({.victims = model::QueuePolicy::Victims::kLeastLostWork}),
            "d/large");  // 6 x 10 s
}

TEST(Policy, NoPingPongAndBoundedEvictions) {
  for (const bool bounded : {true, false}) {
    auto queue = gpu_queue("a", "", 8);
    queue.within = model::PreemptWithin::kLowerPriority;
    const Book book(world_of({queue}));
    model::QueuePolicy policy;
    if (bounded) policy.max_evictions_per_hour = 1;
    Engine engine(book, nullptr, {.policy = policy});
    const auto victim = engine.add(holding(asks("low", "a", 1, 8, 0, 0), 1), 0);
    engine.add(asks("first", "a", 1, 8, 5, 10), 0);
    ASSERT_EQ(engine.cycle(10 * kSecond).evicted.size(), 1u);
    engine.gone(victim, 11 * kSecond);
    EXPECT_EQ(engine.cycle(11 * kSecond).admitted.size(), 1u);
    engine.finish(1);
    EXPECT_EQ(engine.cycle(12 * kSecond).admitted.size(), 1u);  // low runs again
    engine.add(asks("second", "a", 1, 8, 5, 20), 0);
    EXPECT_EQ(engine.cycle(20 * kSecond).evicted.size(), bounded ? 0u : 1u);
  }
}

struct Lent {
  std::vector<std::string> admitted;
  std::size_t evicted = 0;
  int tried = 0;
};

// All of a cohort's queues own 4 GPUs; a and b have `waiting` workloads of 2 in line, the others
// none.
Lent lend_with(const model::QueuePolicy& policy, int waiting, int idle = 0) {
  std::vector<model::QueueSpec> queues{gpu_queue("a", "c", 4), gpu_queue("b", "c", 4)};
  for (int i = 0; i < idle; ++i) queues.push_back(gpu_queue("idle-" + std::to_string(i), "c", 4));
  for (auto& queue : queues) queue.reclaim = model::Reclaim::kAny;
  const Book book(world_of(queues));
  Engine engine(book, nullptr, {.policy = policy});
  engine.add(holding(asks("b0", "b", 1, 2, 0, 0), 0), 0);
  engine.add(holding(asks("b1", "b", 1, 2, 0, 0), 0), 0);
  for (int i = 0; i < waiting; ++i) {
    engine.add(asks("b" + std::to_string(2 + i), "b", 1, 2, 9, i), 0);
    engine.add(asks("a" + std::to_string(i), "a", 1, 2, 0, 100 + i), 0);
  }
  Lent out;
  for (const auto& one : {engine.step(1000 * kSecond), engine.step(1001 * kSecond)}) {
    for (const WorkloadId id : one.admitted) out.admitted.push_back(engine.workload(id).name);
    out.evicted += one.evicted.size();
    out.tried += one.tried;
  }
  return out;
}

TEST(Policy, OwnersFirstLendsWhatIsNotTakenBackAtOnce) {
  using Admitted = std::vector<std::string>;
  // Kueue: one head of each queue a cycle, so b borrows before a's second comes, which reclaims it.
  const Lent kueue = lend_with({}, 2);
  EXPECT_EQ(kueue.admitted, (Admitted{"d/a0", "d/b2"}));
  EXPECT_EQ(kueue.evicted, 1u);
  const Lent ours = lend_with({.owners_first = true}, 2);
  EXPECT_EQ(ours.admitted, (Admitted{"d/a0", "d/a1"}));
  EXPECT_EQ(ours.evicted, 0u);
  // What nobody who owns it waits for is lent as ever.
  EXPECT_EQ(lend_with({.owners_first = true}, 2, 1).admitted,
            (Admitted{"d/a0", "d/a1", "d/b2", "d/b3"}));
  EXPECT_EQ(lend_with({.owners_first = true}, 1).admitted, (Admitted{"d/a0", "d/b2"}));
}

// All come at once, those of a queue ask for the same or for more than there is: nobody borrows
// while one waits whom its queue's own quota would do for.
TEST(Policy, OwnersFirstHoldsOnRandomCohorts) {
  int borrowed = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random = Random(seed).split("owners");
    std::vector<model::QueueSpec> queues;
    std::vector<std::int64_t> nominal, each;
    const auto count = static_cast<int>(2 + random.below(5));
    for (int q = 0; q < count; ++q) {
      nominal.push_back(static_cast<std::int64_t>(random.below(12)));
      each.push_back(1 + static_cast<std::int64_t>(random.below(5)));
      queues.push_back(gpu_queue(std::to_string(q), "c", nominal.back()));
      queues.back().strict_fifo = random.below(6) == 0;
    }
    const Book book(world_of(queues));
    Engine engine(book, nullptr, {.policy = {.owners_first = true}});
    std::vector<std::pair<std::size_t, std::int64_t>> asked;
    const auto workloads = static_cast<int>(random.below(60));
    for (int i = 0; i < workloads; ++i) {
      const auto q = random.below(static_cast<std::uint64_t>(count));
      asked.emplace_back(q, random.below(4) == 0 ? 100 + i : each[q]);
      engine.add(asks("w" + std::to_string(i), std::to_string(q), 1, asked.back().second,
                      static_cast<int>(random.below(3)), i),
                 0);
    }
    engine.step(1000 * kSecond);
    std::vector<std::int64_t> used(nominal.size());
    const auto runs = [&](WorkloadId id) { return engine.workload(id).stage == Stage::kAdmitted; };
    for (WorkloadId id = 0; id < asked.size(); ++id) {
      if (runs(id)) used[asked[id].first] += asked[id].second;
    }
    bool lent = false;
    for (std::size_t q = 0; q < used.size(); ++q) lent |= used[q] > nominal[q];
    borrowed += lent ? 1 : 0;
    for (WorkloadId id = 0; id < asked.size(); ++id) {
      const auto [q, amount] = asked[id];
      if (runs(id) || queues[q].strict_fifo) continue;  // behind a head that waits
      EXPECT_FALSE(lent && used[q] + amount <= nominal[q]) << "seed " << seed << " w" << id;
    }
  }
  EXPECT_GT(borrowed, 100);
}

// Whoever stands back is not looked at once more with each owner that is served.
TEST(Policy, OwnersFirstCostsALookMore) {
  std::vector<model::QueueSpec> queues{gpu_queue("a", "c", 400)};
  for (int i = 0; i < 50; ++i) queues.push_back(gpu_queue("b" + std::to_string(i), "c", 0));
  const Book book(world_of(queues));
  const auto tried = [&](bool owners_first) {
    Engine engine(book, nullptr, {.policy = {.owners_first = owners_first}});
    for (int i = 0; i < 300; ++i) engine.add(asks("a" + std::to_string(i), "a", 1, 1, 0, i), 0);
    for (int i = 0; i < 50; ++i) {
      engine.add(asks("w" + std::to_string(i), "b" + std::to_string(i), 1, 1, 0, i), 0);
    }
    const CycleResult result = engine.step(1000 * kSecond);
    EXPECT_EQ(result.admitted.size(), 350u);
    return result.tried;
  };
  EXPECT_EQ(tried(false), 350);
  EXPECT_LE(tried(true), 350 + 2 * 50);
}

TEST(AdmissionFairSharing, TheLocalQueueThatUsedLeastGoesFirst) {
  auto queue = gpu_queue("a", "", 1);
  queue.admission_fair_sharing = true;
  auto inputs = world_of({queue});
  inputs.local_queues = {{.ns = "d", .name = "x", .queue = "a"},
                         {.ns = "d", .name = "y", .queue = "a"}};
  inputs.config.half_life_s = 3600;
  const Book book(inputs);
  Engine engine(book);
  engine.add(asks("x1", "x", 1, 1, 0, 1), 0);
  engine.add(asks("x2", "x", 1, 1, 0, 2), 0);
  engine.add(asks("y1", "y", 1, 1, 0, 3), 0);
  EXPECT_EQ(engine.cycle(kSecond).admitted, std::vector<WorkloadId>{0});
  engine.finish(0);
  // x was charged for its start, so y comes before the older x2.
  EXPECT_EQ(engine.cycle(2 * kSecond).admitted, std::vector<WorkloadId>{2});
  EXPECT_GT(engine.ledger().local_usage[0], 0.0);
}

// By usage "hi" goes before "lo", by priority "lo" before "mid" before "hi": within one queue it is
// usage that counts, whatever stands in other queues.
TEST(AdmissionFairSharing, VictimsOfOneQueueGoByUsageBesideOtherQueues) {
  auto asker = gpu_queue("x", "c", 6);
  asker.reclaim = model::Reclaim::kAny;
  asker.admission_fair_sharing = true;
  auto inputs = world_of({asker, gpu_queue("a", "c", 1), gpu_queue("b", "c", 1)});
  inputs.local_queues.push_back({.ns = "d", .name = "a2", .queue = "a"});
  inputs.config.fair_sharing = true;
  inputs.config.half_life_s = 600;
  inputs.config.sampling_s = 4;
  const Book book(inputs);
  Engine engine(book);
  const auto held = [&](const char* name, const char* local, const char* queue, int gpus,
                        int priority) {
    auto spec = holding(asks(name, local, 1, gpus, priority, 0), 1);
    spec.admission->queue = queue;
    return engine.add(spec, 0);
  };
  held("1lo", "a2", "a", 1, 0);
  held("2mid", "b", "b", 2, 1);
  const auto hi = held("3hi", "a", "a", 4, 2);
  engine.add(asks("w", "x", 1, 2, 0, 5), 0);
  const CycleResult result = engine.cycle(10 * kSecond);
  ASSERT_EQ(result.evicted.size(), 1u);
  EXPECT_EQ(result.evicted[0].id, hi);
}

// The victim of `late` is taken by `first`; whom it asks instead is not the one admitted meanwhile.
TEST(FairSharing, NobodyIsAdmittedAndEvictedInOneCycle) {
  auto x = gpu_queue("x", "c", 12), y = gpu_queue("y", "c", 0);
  x.reclaim = y.reclaim = model::Reclaim::kAny;
  y.within = model::PreemptWithin::kLowerPriority;
  auto inputs = world_of({x, y, gpu_queue("z", "c", 0)});
  inputs.config.fair_sharing = true;
  const Book book(inputs);
  Engine engine(book);
  const auto victim = engine.add(holding(asks("victim", "y", 1, 5, 0, 0), 1), 0);
  const auto holder = engine.add(holding(asks("holder", "z", 1, 4, 0, 0), 1), 0);
  const auto first = engine.add(asks("first", "x", 1, 4, 0, 5), 0);
  const auto small = engine.add(asks("small", "z", 1, 2, 0, 5), 0);
  const auto late = engine.add(asks("late", "y", 1, 4, 5, 5), 0);
  const CycleResult result = engine.cycle(10 * kSecond);
  EXPECT_EQ(result.admitted, std::vector<WorkloadId>{small});
  ASSERT_EQ(result.evicted.size(), 2u);
  EXPECT_EQ(result.evicted[0], (Eviction{victim, first, Cause::kInCohortReclamation}));
  EXPECT_EQ(result.evicted[1], (Eviction{holder, late, Cause::kInCohortFairSharing}));
  EXPECT_EQ(engine.check(), "");
}

}  // namespace
}  // namespace berth::admit
