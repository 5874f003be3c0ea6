#include "embedded/nodes/machine.h"

#include <gtest/gtest.h>

namespace berth::sim {
namespace {

using Kind = model::GpuDemandSpec::Kind;

Pool pool_of(const std::string& words) {
  const auto fleet = parse_fleet("pools: [{name: p, " + words + "}]");
  EXPECT_TRUE(fleet.ok()) << words;
  return fleet.ok() ? fleet->pools[0] : Pool{};
}

Needs whole(int count, std::vector<int> wanted = {}) {
  Needs needs;
  needs.cpu_milli = 1000;
  needs.gpu.kind = Kind::kWhole;
  needs.gpu.count = count;
  needs.wanted = std::move(wanted);
  return needs;
}

TEST(Machine, FollowsTheHintWhereItCan) {
  Machine machine(pool_of("model: H100"), 0);
  Held a, b, c, d;
  ASSERT_FALSE(machine.admit(whole(2, {6, 7}), a));
  EXPECT_EQ(a.gpus.indices(), (std::vector<int>{6, 7}));
  EXPECT_FALSE(a.differs);
  // Taken already: the choice is the kubelet's, and the difference is told.
  ASSERT_FALSE(machine.admit(whole(2, {5, 6}), b));
  EXPECT_TRUE(b.differs);
  EXPECT_EQ(b.gpus.indices(), (std::vector<int>{0, 1}));
  machine.break_gpu(2, "lost");
  ASSERT_FALSE(machine.admit(whole(1, {2}), c));
  EXPECT_EQ(c.gpus.indices(), (std::vector<int>{3}));
  EXPECT_EQ(machine.used_gpus(), 5);
  EXPECT_EQ(machine.healthy_gpus(), 7);
  const auto refusal = machine.admit(whole(3), d);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, "UnexpectedAdmissionError");
  EXPECT_NE(refusal->message.find("Requested: 3, Available: 2"), std::string::npos);
  machine.release(a);
  ASSERT_FALSE(machine.admit(whole(3), d));
  EXPECT_EQ(machine.advertised()->capacity, 8);
  EXPECT_EQ(machine.advertised()->allocatable, 7);
  EXPECT_TRUE(machine.recover_gpu(2));
  EXPECT_EQ(machine.advertised()->allocatable, 8);
}

TEST(Machine, RefusesAsAKubeletDoes) {
  struct Case {
    const char* pool;
    Needs needs;
    const char* reason;
  };
  Needs cpu, memory, storage, shared, mig;
  cpu.cpu_milli = 9000;
  memory.memory = std::int64_t{65} << 30;
  storage.storage = std::int64_t{2} << 40;
  shared.gpu.kind = Kind::kShared;
  shared.gpu.count = 1;
  mig.gpu = {.kind = Kind::kMig, .count = 1, .mig = "nvidia.com/mig-1g.5gb"};
  const Case cases[] = {
      {"model: L4, gpus: 1, cpu: 8", cpu, "OutOfcpu"},
      {"model: L4, gpus: 1, cpu: 8", memory, "OutOfmemory"},
      {"model: L4, gpus: 1, cpu: 8", storage, "OutOfephemeral-storage"},
      {"model: L4, gpus: 1", shared, "UnexpectedAdmissionError"},
      {"model: L4, gpus: 1", mig, "UnexpectedAdmissionError"},
      {"cpu: 8", whole(1), "UnexpectedAdmissionError"},
  };
  for (const Case& c : cases) {
    Machine machine(pool_of(c.pool), 0);
    Held held;
    const auto refusal = machine.admit(c.needs, held);
    ASSERT_TRUE(refusal) << c.reason;
    EXPECT_EQ(refusal->reason, c.reason);
    EXPECT_FALSE(held.any);
  }
  Machine machine(pool_of("pods: 2"), 0);
  Held held;
  EXPECT_FALSE(machine.admit({}, held));
  EXPECT_FALSE(machine.admit({}, held));
  EXPECT_EQ(machine.admit({}, held)->reason, "OutOfpods");
}

TEST(Machine, TopologyManagerRefuses) {
  Machine machine(pool_of("model: H100, numaPolicy: single-numa-node"), 0);
  Held a, b, c;
  ASSERT_FALSE(machine.admit(whole(3, {0, 1, 2}), a));
  ASSERT_FALSE(machine.admit(whole(3, {4, 5, 6}), b));
  EXPECT_EQ(machine.admit(whole(2), c)->reason, "TopologyAffinityError");
  ASSERT_FALSE(machine.admit(whole(1), c));
  machine.release(a);
  // A hint across NUMA nodes is not followed.
  Held d;
  ASSERT_FALSE(machine.admit(whole(2, {0, 7}), d));
  EXPECT_TRUE(d.differs);
}

TEST(Machine, SharesAndSlices) {
  Machine shared(pool_of("model: A100, gpus: 2, shares: 4"), 0);
  EXPECT_EQ(shared.advertised()->capacity, 8);
  Held a, b;
  ASSERT_FALSE(shared.admit(whole(2, {1, 1}), a));
  EXPECT_EQ(a.gpus.indices(), (std::vector<int>{1, 1}));
  EXPECT_EQ(shared.admit(whole(7), b)->reason, "UnexpectedAdmissionError");
  ASSERT_FALSE(shared.admit(whole(6), b));
  shared.release(a);
  EXPECT_EQ(shared.used_gpus(), 2);

  Machine sliced(pool_of("model: A100-SXM4-40GB, gpus: 2, mig: 1g.5gb"), 0);
  EXPECT_EQ(sliced.advertised()->resource, "nvidia.com/mig-1g.5gb");
  EXPECT_EQ(sliced.advertised()->capacity, 14);
  Needs slots;
  slots.gpu = {.kind = Kind::kMig, .count = 7, .mig = "nvidia.com/mig-1g.5gb"};
  Held c, d, e;
  ASSERT_FALSE(sliced.admit(slots, c));
  ASSERT_FALSE(sliced.admit(slots, d));
  slots.gpu.count = 1;
  EXPECT_TRUE(sliced.admit(slots, e));
  sliced.release(c);
  sliced.break_gpu(0, "lost");
  EXPECT_TRUE(sliced.admit(slots, e));
  EXPECT_EQ(sliced.published()[0].gpu.health, model::Health::kUnhealthy);
}

TEST(Machine, HoldsWhatRuns) {
  Machine machine(pool_of("model: H100"), 0);
  Held known = machine.hold(whole(2), {3, 4});
  EXPECT_EQ(known.gpus.indices(), (std::vector<int>{3, 4}));
  Held unknown = machine.hold(whole(1), {});
  EXPECT_EQ(unknown.gpus.indices().size(), 1u);
  EXPECT_EQ(machine.used_gpus(), 3);
  machine.release(known);
  machine.release(unknown);
  machine.release(unknown);  // twice: nothing happens
  EXPECT_EQ(machine.used_gpus(), 0);
  EXPECT_TRUE(machine.drop_nvlink(5));
  EXPECT_EQ(machine.published()[5].gpu.nvlink_clique, -1);
  EXPECT_EQ(machine.published()[5].gpu.health, model::Health::kHealthy);
  EXPECT_EQ(machine.published()[4].gpu.uuid.size(), 40u);
}

}  // namespace
}  // namespace berth::sim
