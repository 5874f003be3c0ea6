#include "decide/admit/engine.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "decide/admit/world_for_test.h"

namespace berth::admit {
namespace {

std::vector<std::string> names_of(const Engine& engine, const std::vector<WorkloadId>& ids) {
  std::vector<std::string> out;
  for (const WorkloadId id : ids) out.push_back(engine.workload(id).name);
  return out;
}
std::vector<std::string> evicted_of(const Engine& engine, const CycleResult& result) {
  std::vector<std::string> out;
  for (const Eviction& e : result.evicted) {
    out.push_back(engine.workload(e.id).name + " by " + engine.workload(e.by).name + " " +
                  std::string(name(e.cause)));
  }
  return out;
}
using Names = std::vector<std::string>;

TEST(Engine, AdmitsInOrderUntilQuotaIsUsed) {
  const Book book(world_of({gpu_queue("a", "", 8)}));
  Engine engine(book);
  engine.add(asks("low", "a", 1, 4, 0, 1), 0);
  engine.add(asks("high", "a", 1, 6, 5, 2), 0);
  const CycleResult first = engine.cycle(10);
  EXPECT_EQ(names_of(engine, first.admitted), Names{"d/high"});
  const CycleResult second = engine.cycle(10);
  EXPECT_TRUE(second.admitted.empty());
  EXPECT_EQ(engine.workload(0).reason, NoReason::kWaitingForQuota);
  EXPECT_EQ(engine.workload(0).message,
            "couldn't assign flavors to pod set main: insufficient unused quota for "
            "nvidia.com/gpu in flavor h100, 2 more needed");
  engine.finish(1);
  EXPECT_EQ(names_of(engine, engine.step(20).admitted), Names{"d/low"});
  EXPECT_EQ(engine.check(), "");
}

TEST(Engine, StrictFifoHeadBlocksBestEffortDoesNot) {
  for (const bool strict : {true, false}) {
    auto queue = gpu_queue("a", "", 4);
    queue.strict_fifo = strict;
    const Book book(world_of({queue}));
    Engine engine(book);
    engine.add(holding(asks("running", "a", 1, 2, 0, 0), 1), 0);
    engine.add(asks("large", "a", 1, 4, 0, 1), 0);
    engine.add(asks("small", "a", 1, 1, 0, 2), 0);
    EXPECT_EQ(names_of(engine, engine.step(10).admitted), strict ? Names{} : Names{"d/small"});
  }
}

TEST(Engine, BorrowsFromTheCohortAndReclaims) {
  auto owner = gpu_queue("owner", "all", 4);
  owner.reclaim = model::Reclaim::kAny;
  const Book book(world_of({owner, gpu_queue("guest", "all", 4)}));
  Engine engine(book);
  engine.add(asks("g1", "guest", 1, 4, 0, 1), 0);
  engine.add(asks("g2", "guest", 1, 4, 0, 2), 0);
  EXPECT_EQ(names_of(engine, engine.step(10).admitted), (Names{"d/g1", "d/g2"}));
  engine.add(asks("o1", "owner", 1, 4, 0, 3), 0);
  const CycleResult reclaim = engine.step(20);
  EXPECT_EQ(evicted_of(engine, reclaim), Names{"d/g1 by d/o1 InCohortReclamation"});
  EXPECT_EQ(engine.workload(2).reason, NoReason::kWaitingForPreemptedWorkloads);
  engine.gone(reclaim.evicted[0].id, 30);
  EXPECT_EQ(names_of(engine, engine.step(30).admitted), Names{"d/o1"});
  EXPECT_EQ(engine.check(), "");
}

TEST(Engine, FairSharingTakesFromTheLargestShare) {
  auto inputs =
      world_of({gpu_queue("a", "all", 3), gpu_queue("b", "all", 3), gpu_queue("c", "all", 3)});
  for (auto& queue : inputs.queues) queue.reclaim = model::Reclaim::kAny;
  inputs.config.fair_sharing = true;
  const Book book(inputs);
  Engine engine(book);
  for (int i = 0; i < 6; ++i) {
    engine.add(holding(asks("b" + std::to_string(i), "b", 1, 1, 0, i), i), 0);
  }
  for (int i = 0; i < 3; ++i) {
    engine.add(holding(asks("c" + std::to_string(i), "c", 1, 1, 0, i), i), 0);
  }
  engine.add(asks("a0", "a", 1, 1, 0, 20), 0);
  EXPECT_EQ(evicted_of(engine, engine.cycle(30)), Names{"d/b5 by d/a0 InCohortReclamation"});
}

TEST(Engine, PartialAdmissionFindsTheLargestCountThatFits) {
  const Book book(world_of({gpu_queue("a", "", 7)}));
  Engine engine(book);
  auto spec = asks("elastic", "a", 10, 1, 0, 1);
  spec.pod_sets[0].min_count = 2;
  engine.add(spec, 0);
  EXPECT_EQ(names_of(engine, engine.step(10).admitted), Names{"d/elastic"});
  EXPECT_EQ(engine.workload(0).admission[0].count, 7);
}

}  // namespace
}  // namespace berth::admit
