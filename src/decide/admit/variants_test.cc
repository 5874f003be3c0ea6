// Slices, variants, and admissions that are completed later.
#include <gtest/gtest.h>

#include "base/random.h"
#include "decide/admit/engine.h"
#include "decide/admit/world_for_test.h"

namespace berth::admit {
namespace {

constexpr std::int64_t kOneSecond = 1'000'000'000;

TEST(Slices, OnlyWhatIsBeyondTheOldSliceIsCharged) {
  const Book book(world_of({gpu_queue("a", "", 8)}));
  Engine engine(book);
  const auto old = engine.add(holding(asks("w", "a", 4, 1, 0, 0), 1), 0);
  const auto other = engine.add(holding(asks("x", "a", 2, 1, 0, 0), 1), 0);
  const auto fresh = engine.add(asks("w2", "a", 7, 1, 0, 5), 0);
  engine.grows(fresh, old);
  EXPECT_TRUE(engine.cycle(kOneSecond).admitted.empty());  // 3 more, 2 are free
  EXPECT_EQ(engine.check(), "");
  EXPECT_EQ(engine.workload(old).stage, Stage::kAdmitted);
  engine.finish(other);
  const CycleResult result = engine.cycle(2 * kOneSecond);
  EXPECT_EQ(result.admitted, std::vector<WorkloadId>{fresh});
  ASSERT_EQ(result.replaced.size(), 1u);
  EXPECT_EQ(result.replaced[0], std::pair(old, fresh));
  EXPECT_EQ(engine.workload(old).stage, Stage::kFinished);
  EXPECT_EQ(engine.check(), "");
  EXPECT_EQ(engine.ledger().tree.usage(book.queue(0).node, 0), Amount(7));
}

TEST(Slices, GrowByPreemptionAndNeverEvictThemselves) {
  auto queue = gpu_queue("a", "", 8);
  queue.within = model::PreemptWithin::kLowerPriority;
  const Book book(world_of({queue}));
  Engine engine(book);
  const auto old = engine.add(holding(asks("w", "a", 4, 1, 5, 0), 1), 0);
  const auto low = engine.add(holding(asks("x", "a", 4, 1, 0, 0), 1), 0);
  const auto fresh = engine.add(asks("w2", "a", 6, 1, 9, 5), 0);
  engine.grows(fresh, old);
  const CycleResult result = engine.cycle(kOneSecond);
  ASSERT_EQ(result.evicted.size(), 1u);
  EXPECT_EQ(result.evicted[0].id, low);
  engine.gone(low, kOneSecond);
  EXPECT_EQ(engine.cycle(kOneSecond).admitted, std::vector<WorkloadId>{fresh});
  EXPECT_EQ(engine.check(), "");
}

TEST(Slices, OfOneThatHoldsNothingTheNewOneAloneIsDecided) {
  const Book book(world_of({gpu_queue("a", "", 8)}));
  Engine engine(book);
  const auto old = engine.add(asks("w", "a", 2, 1, 0, 0), 0);
  const auto fresh = engine.add(asks("w2", "a", 4, 1, 0, 5), 0);
  engine.grows(fresh, old);
  EXPECT_EQ(engine.step(kOneSecond).admitted, std::vector<WorkloadId>{fresh});
  EXPECT_EQ(engine.workload(old).hold, Hold::kReplaced);
}

model::QueueInputs two_flavors(std::int64_t best, std::int64_t spare) {
  auto queue = gpu_queue("a", "", best);
  auto second = queue.groups[0].flavors[0];
  second.flavor = "spot";
  second.resources[0].nominal = spare;
  queue.groups[0].flavors.push_back(second);
  queue.concurrent = true;
  return world_of({queue}, {"h100", "spot"});
}

model::WorkloadSpec variant(const std::string& flavor, int rank) {
  auto out = asks("w-" + flavor, "a", 1, 4, 0, 0);
  out.uid = "w-" + std::to_string(rank);
  out.variant_of = "d/w";
  out.allowed_flavors = {flavor};
  return out;
}

TEST(Variants, TheBetterFlavorTakesOver) {
  for (const bool strict : {false, true}) {
    auto inputs = two_flavors(4, 4);
    inputs.queues[0].strict_fifo = strict;
    const Book book(inputs);
    Engine engine(book);
    const auto holder = engine.add(holding(asks("x", "a", 1, 4, 0, 0), 1), 0);
    const auto best = engine.add(variant("h100", 0), 0);
    const auto spare = engine.add(variant("spot", 1), 0);
    // The head of a strict queue keeps the others from trying.
    const std::vector<WorkloadId> first = engine.step(kOneSecond).admitted;
    EXPECT_EQ(first, strict ? std::vector<WorkloadId>{} : std::vector<WorkloadId>{spare});
    if (strict) continue;
    engine.finish(holder);
    const CycleResult moves = engine.step(2 * kOneSecond);
    ASSERT_EQ(moves.evicted.size(), 1u);
    EXPECT_EQ(moves.evicted[0], (Eviction{spare, best, Cause::kFlavorMigration}));
    engine.gone(spare, 2 * kOneSecond);
    EXPECT_EQ(engine.step(2 * kOneSecond).admitted, std::vector<WorkloadId>{best});
    EXPECT_TRUE(engine.step(3 * kOneSecond).admitted.empty());
    EXPECT_EQ(engine.check(), "");
  }
}

TEST(Variants, StayWhereThePolicySaysSo) {
  for (const bool retain : {true, false}) {
    auto inputs = two_flavors(4, 4);
    inputs.queues[0].retain_first = retain;
    if (!retain) inputs.queues[0].last_acceptable = "h100";
    const Book book(inputs);
    Engine engine(book);
    auto running = holding(variant("spot", 1), 1);
    running.admission->pod_sets[0].flavors[kGpu] = "spot";
    engine.add(running, 0);
    engine.add(variant("h100", 0), 0);
    EXPECT_EQ(engine.step(kOneSecond).evicted.size(), retain ? 0u : 1u);
  }
}

TEST(SecondPass, AdmissionIsCompleteWhenChecksAre) {
  auto queue = gpu_queue("a", "", 8);
  queue.checks = {{.name = "prov", .flavors = {}}};
  auto inputs = world_of({queue});
  inputs.checks = {{.name = "prov", .controller = "kueue.x-k8s.io/provisioning-request"}};
  const Book book(inputs);
  Engine engine(book);
  auto spec = holding(asks("w", "a", 1, 4, 0, 0), 1);
  spec.admitted = false;
  const auto waits = engine.add(spec, 0);
  spec.name = "ready";
  spec.checks["prov"] = model::CheckState::kReady;
  const auto ready = engine.add(spec, 0);
  EXPECT_EQ(engine.cycle(kOneSecond).settled, std::vector<WorkloadId>{ready});
  EXPECT_EQ(engine.workload(waits).checks, std::vector<std::string>{"prov"});
  EXPECT_EQ(engine.workload(waits).stage, Stage::kReserved);
}

// Random histories of slices and variants: sums hold, nobody is admitted twice, quota is kept.
TEST(Variants, InvariantsHoldOnRandomHistories) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    auto inputs = two_flavors(6, 6);
    inputs.queues[0].within = model::PreemptWithin::kLowerPriority;
    inputs.queues[0].strict_fifo = random.below(3) == 0;
    inputs.queues[0].retain_first = random.below(4) == 0;
    const Book book(inputs);
    Engine engine(book);
    std::vector<WorkloadId> old;  // that a slice may grow out of
    for (int step = 0; step < 60; ++step) {
      const std::int64_t now = (step + 1) * kOneSecond;
      const std::string name = "w" + std::to_string(step);
      const int priority = static_cast<int>(random.below(3));
      const int pods = 1 + static_cast<int>(random.below(4));
      const std::uint64_t what = random.below(8);
      if (what == 0) {
        for (int rank = 0; rank < 2; ++rank) {
          auto spec = variant(rank == 0 ? "h100" : "spot", rank);
          spec.name = name + "-" + std::to_string(rank);
          spec.uid = spec.name;
          spec.variant_of = "d/" + name;
          spec.priority = priority;
          engine.add(spec, now);
        }
      } else if (what <= 2) {
        old.push_back(engine.add(asks(name, "a", pods, 1, priority, step), now));
      } else if (what == 3 && !old.empty()) {
        const WorkloadId before = old[random.below(old.size())];
        const auto fresh = engine.add(asks(name, "a", pods + 1, 1, priority, step), now);
        if (engine.workload(before).stage != Stage::kFinished) engine.grows(fresh, before);
        old.push_back(fresh);
      } else if (what == 4 && engine.size() > 0) {
        engine.finish(static_cast<WorkloadId>(random.below(engine.size())));
      } else {
        engine.cycle(now);
      }
      for (WorkloadId id = 0; id < engine.size(); ++id) {
        if (engine.workload(id).stage == Stage::kEvicting && random.below(2) == 0) {
          engine.gone(id, now);
        }
      }
      ASSERT_EQ(engine.check(), "") << seed << ' ' << step;
      std::map<std::uint32_t, int> running;
      for (WorkloadId id = 0; id < engine.size(); ++id) {
        const Workload& w = engine.workload(id);
        if (w.family != kNoId && holds_quota(w.stage)) ++running[w.family];
      }
      for (const auto& [family, count] : running) ASSERT_LE(count, 1) << seed << ' ' << step;
      for (CellId cell = 0; cell < 2; ++cell) {
        ASSERT_LE(engine.ledger().tree.usage(book.queue(0).node, cell), Amount(6)) << seed;
      }
    }
  }
}

}  // namespace
}  // namespace berth::admit
