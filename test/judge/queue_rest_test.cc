// Workloads that would preempt one another: nothing oscillates. An hour of random worlds in which
// nobody finishes: whoever was told to leave is gone at once and waits for its turn again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "decide/admit/engine.h"
#include "judge/queue_generate.h"

namespace berth::judging {
namespace {

constexpr std::int64_t kRestSecond = 1'000'000'000;
constexpr std::int64_t kRestStep = 10 * kRestSecond;
constexpr int kRestSteps = 360;  // an hour
constexpr int kArrivals = 8;     // one a minute, at first

int rest_worlds() {
  return std::getenv("BERTH_SOAK") != nullptr ? 20'000 : 100 / BERTH_JUDGE_SHARE;
}

struct RestHour {
  std::map<std::string, int> preempted;  // how often each
  int total = 0, late = 0;               // late: in the second half hour
  std::string last;                      // the latest of them
};

RestHour hour_of(std::uint64_t seed, const QueueMix& mix, const model::QueuePolicy& policy) {
  Random random(seed);
  const model::QueueInputs inputs = generate_queues(random, mix);
  const admit::Book book(inputs);
  admit::Engine engine(book, nullptr, {.policy = policy, .start_ns = kQueuesAt});
  for (const auto& spec : inputs.workloads) engine.add(spec, kQueuesAt);
  RestHour out;
  std::int64_t now = kQueuesAt;
  for (int step = 0; step < kRestSteps; ++step) {
    now += kRestStep;
    if (step % 6 == 0 && step / 6 < kArrivals) {
      engine.add(random_workload(random, mix, inputs, 1000 + step, now), now);
    }
    for (const admit::Eviction& eviction : engine.cycle(now).evicted) {
      const std::string& name = engine.workload(eviction.id).name;
      ++out.preempted[name];
      ++out.total;
      out.late += step >= kRestSteps / 2 ? 1 : 0;
      out.last = name + " by " + engine.workload(eviction.by).name;
      engine.gone(eviction.id, now);
    }
  }
  return out;
}

const QueueMix kRestMixes[] = {
    {.fair_sharing = false, .evicted_percent = 0, .odd_percent = 0},
    {.fair_sharing = true, .evicted_percent = 0, .odd_percent = 0},
    {.fair_sharing = false,
     .max_roots = 1,
     .max_queues = 3,
     .max_flavors = 1,
     .max_groups = 1,
     .evicted_percent = 0,
     .odd_percent = 0},
    {.fair_sharing = true,
     .max_roots = 1,
     .max_queues = 3,
     .max_flavors = 1,
     .max_groups = 1,
     .evicted_percent = 0,
     .odd_percent = 0},
};

class EveryRestMix : public ::testing::TestWithParam<int> {};

// Under Kueue's rules alone about one world in a hundred never comes to rest: two take turns, or
// one is sent away and is let in again before the other. A bound ends it, whatever the cause.
TEST_P(EveryRestMix, NobodyIsPreemptedMoreOftenThanIsAllowed) {
  constexpr int kMost = 3;
  int total = 0;
  for (int seed = 1; seed <= rest_worlds(); ++seed) {
    const RestHour hour = hour_of(static_cast<std::uint64_t>(seed), kRestMixes[GetParam()],
                                  {.max_evictions_per_hour = kMost});
    total += hour.total;
    EXPECT_EQ(hour.late, 0) << "seed " << seed << ", last " << hour.last;
    for (const auto& [name, times] : hour.preempted) {
      EXPECT_LE(times, kMost) << name << ", seed " << seed;
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(total, rest_worlds() / 4) << "worlds without preemption are no test";
}

INSTANTIATE_TEST_SUITE_P(Mixes, EveryRestMix, ::testing::Range(0, 4));

}  // namespace
}  // namespace berth::judging
