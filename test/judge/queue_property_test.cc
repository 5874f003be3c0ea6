// What must hold whatever the world: over random ones and random steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "judge/queue_generate.h"
#include "judge/queue_judge.h"

namespace berth::judging {
namespace {

using model::WorkloadSpec;
using Kind = QueueOperation::Kind;

constexpr std::int64_t kStepNs = 1'000'000'000;
constexpr int kSteps = 14;

int worlds() { return std::getenv("BERTH_SOAK") != nullptr ? 3'000 : 40 / BERTH_JUDGE_SHARE; }

struct QueueRun {
  explicit QueueRun(int seed, const QueueMix& how)
      : mix(how),
        random(static_cast<std::uint64_t>(seed)),
        inputs(generate_queues(random, mix)),
        judge(inputs, kQueuesAt) {}

  std::vector<std::string> holders() const {
    std::vector<std::string> names;
    for (const std::string& name : judge.workloads()) {
      if (judge.spec(name).admission) names.push_back(name);
    }
    return names;
  }

  // Whether it was a cycle.
  bool step() {
    now += kStepNs;
    QueueOperation next = random_operation(random, mix, inputs, holders(), ++serial, now);
    if (next.kind == Kind::kEvictionsDone) judge.evictions_done();
    if (next.kind == Kind::kFinish) judge.finish(next.workload);
    if (next.kind == Kind::kAdd) judge.add(next.spec);
    if (next.kind == Kind::kCycle) last = judge.cycle(now);
    return next.kind == Kind::kCycle;
  }

  QueueMix mix;
  Random random;
  model::QueueInputs inputs;
  QueueJudge judge;
  std::int64_t now = kQueuesAt;
  int serial = 1000;
  QueueCycle last;
};

const QueueMix kMixes[] = {
    {.fair_sharing = false},
    {.fair_sharing = true},
    {.fair_sharing = {}, .max_roots = 1, .max_queues = 5, .max_flavors = 1, .max_groups = 1},
    {.fair_sharing = {}, .admission_fair_sharing = true},
    {.fair_sharing = {}, .block_admission = true},
};

class EveryQueueMix : public ::testing::TestWithParam<int> {
 protected:
  const QueueMix& mix() const { return kMixes[GetParam()]; }
};

TEST_P(EveryQueueMix, UsageAddsUpAndEveryWorkloadIsInOnePlace) {
  for (int seed = 0; seed < worlds(); ++seed) {
    QueueRun run(seed, mix());
    ASSERT_EQ(run.judge.check(), "") << "seed " << seed;
    for (int i = 0; i < kSteps; ++i) {
      run.step();
      ASSERT_EQ(run.judge.check(), "") << "seed " << seed << " step " << i;
    }
  }
}

using FlavorAmounts = std::map<std::pair<std::string, std::string>, std::int64_t>;

FlavorAmounts usage_of(const model::AdmissionSpec& admission) {
  FlavorAmounts sum;
  for (const model::PodSetAdmission& set : admission.pod_sets) {
    for (const auto& [resource, flavor] : set.flavors) {
      sum[{flavor, resource}] += set.usage.at(resource);
    }
  }
  return sum;
}

bool preempts(const QueueCycle& cycle) {
  return std::any_of(cycle.left.begin(), cycle.left.end(),
                     [](const QueueLeft& one) { return one.reason == "PendingPreemption"; });
}

// What was admitted fits on top of those that held before; in a cycle with preemptors, on top of
// those that are not on their way out: a cycle counts the room of its victims as free.
TEST_P(EveryQueueMix, AdmittedFitWhatIsAvailable) {
  int cycles = 0, admitted = 0, preempted = 0, left = 0;
  for (int seed = 0; seed < worlds(); ++seed) {
    QueueRun run(seed, mix());
    for (int i = 0; i < kSteps; ++i) {
      QueueJudge before = run.judge;
      if (!run.step()) continue;
      ++cycles;
      for (const std::string& name : before.workloads()) {
        const bool leaves = run.judge.place(name) == "leaving" ||
                            (before.spec(name).admission && !before.spec(name).evicted.empty());
        if (leaves && preempts(run.last)) before.finish(name);
      }
      for (const QueueAdmitted& one : run.last.admitted) {
        for (const auto& [fr, amount] : usage_of(one.admission)) {
          ASSERT_LE(amount,
                    before.available(QueueNode::kQueue, one.admission.queue, fr.first, fr.second))
              << "seed " << seed << " step " << i << " " << one.workload;
        }
        WorkloadSpec holding = before.spec(one.workload);
        holding.admission = one.admission;
        before.add(holding);
      }
      admitted += static_cast<int>(run.last.admitted.size());
      preempted += static_cast<int>(run.last.preempted.size());
      left += static_cast<int>(run.last.left.size());
    }
  }
  RecordProperty("cycles", cycles);
  RecordProperty("admitted", admitted);
  RecordProperty("preempted", preempted);
  RecordProperty("left", left);
  EXPECT_GT(admitted, cycles / 8);
  EXPECT_GT(left, admitted / 4);
}

TEST_P(EveryQueueMix, ACycleTouchesEachQueueAndWorkloadOnce) {
  for (int seed = 0; seed < worlds(); ++seed) {
    QueueRun run(seed, mix());
    for (int i = 0; i < kSteps; ++i) {
      QueueJudge before = run.judge;
      if (!run.step()) continue;
      std::set<std::string> heads, victims, preemptors, queues;
      for (const QueueAdmitted& one : run.last.admitted) {
        ASSERT_TRUE(heads.insert(one.workload).second);
        ASSERT_TRUE(queues.insert(one.admission.queue).second) << "seed " << seed;
        ASSERT_EQ(run.judge.place(one.workload), "holding");
      }
      for (const QueueLeft& one : run.last.left) {
        ASSERT_TRUE(heads.insert(one.workload).second);
        ASSERT_EQ(run.judge.place(one.workload), one.parked ? "parked" : "heap")
            << "seed " << seed << " " << one.workload;
        if (one.reason == "PendingPreemption") preemptors.insert(one.workload);
      }
      for (const QueuePreempted& one : run.last.preempted) {
        ASSERT_TRUE(victims.insert(one.workload).second) << "seed " << seed;
        ASSERT_TRUE(preemptors.contains(one.by)) << "seed " << seed;
        ASSERT_EQ(before.place(one.workload), "holding");
        ASSERT_EQ(run.judge.place(one.workload), "leaving");
      }
      for (const std::string& head : heads) {
        const bool backed_off = before.spec(head).requeue_at_ns > 0;
        ASSERT_TRUE(before.place(head) == "heap" || backed_off) << "seed " << seed << " " << head;
      }
    }
  }
}

TEST_P(EveryQueueMix, ReleasedEqualsTaken) {
  for (int seed = 0; seed < worlds(); ++seed) {
    QueueRun run(seed, mix());
    for (int i = 0; i < kSteps; ++i) run.step();
    for (const std::string& name : run.judge.workloads()) run.judge.finish(name);
    for (const model::QueueSpec& queue : run.inputs.queues) {
      for (const model::FlavorSpec& flavor : run.inputs.flavors) {
        for (const char* resource : {"cpu", "gpu", "memory", "pods"}) {
          ASSERT_EQ(run.judge.usage(QueueNode::kQueue, queue.name, flavor.name, resource), 0);
          ASSERT_EQ(run.judge.usage(QueueNode::kCohort, queue.cohort, flavor.name, resource), 0);
        }
      }
    }
    ASSERT_EQ(run.judge.check(), "");
  }
}

TEST_P(EveryQueueMix, OrderOfTheInputDoesNotMatter) {
  for (int seed = 0; seed < worlds() / 2; ++seed) {
    QueueRun run(seed, mix());
    model::QueueInputs shuffled = run.inputs;
    Random random(static_cast<std::uint64_t>(seed));
    random.shuffle(shuffled.workloads);
    random.shuffle(shuffled.queues);
    random.shuffle(shuffled.cohorts);
    random.shuffle(shuffled.flavors);
    QueueJudge other(shuffled, kQueuesAt);
    for (int i = 1; i <= 4; ++i) {
      ASSERT_EQ(run.judge.cycle(kQueuesAt + i), other.cycle(kQueuesAt + i)) << "seed " << seed;
      run.judge.evictions_done();
      other.evictions_done();
    }
  }
}

void count_outcomes(const QueueRun& run, std::map<std::string, int>& seen) {
  for (const QueueAdmitted& one : run.last.admitted) {
    ++seen["admitted"];
    const WorkloadSpec& spec = run.judge.spec(one.workload);
    for (std::size_t i = 0; i < spec.pod_sets.size(); ++i) {
      if (spec.pod_sets[i].min_count && one.admission.pod_sets[i].count < spec.pod_sets[i].count) {
        ++seen["fewer pods"];
      }
    }
    for (const auto& [fr, amount] : usage_of(one.admission)) {
      if (run.judge.borrowed(QueueNode::kQueue, one.admission.queue, fr.first, fr.second) > 0) {
        ++seen["borrows"];
      }
    }
  }
  for (const QueuePreempted& one : run.last.preempted) ++seen[one.reason];
  for (const QueueLeft& one : run.last.left) {
    ++seen[one.reason + (one.parked ? " parked" : " heap")];
    if (!one.detail.empty()) ++seen[one.detail];
  }
}

// A generator that stops making contention would make every other test here pass.
TEST(QueueWorlds, ShowEveryOutcome) {
  std::map<std::string, int> seen;
  for (const QueueMix& mix : kMixes) {
    for (int seed = 0; seed < 100; ++seed) {
      QueueRun run(seed, mix);
      for (int i = 0; i < kSteps; ++i) {
        if (run.step()) count_outcomes(run, seen);
      }
    }
  }
  for (const auto& [outcome, count] : seen) RecordProperty(outcome, count);
  if (std::getenv("BERTH_SHOW") != nullptr) {
    for (const auto& [outcome, count] : seen) std::printf("%7d %s\n", count, outcome.c_str());
  }
  for (const char* outcome : {"admitted",
                              "fewer pods",
                              "borrows",
                              "InClusterQueue",
                              "InCohortReclamation",
                              "InCohortFairSharing",
                              "InCohortReclaimWhileBorrowing",
                              "NoFit parked",
                              "NoFit heap",
                              "PreemptionNoCandidates parked",
                              "PreemptionNoCandidates heap",
                              "PendingPreemption heap",
                              "FailedAfterNomination heap",
                              "NamespaceMismatch parked",
                              "WaitingForPodsReady heap",
                              "PreemptionGated parked",
                              "no longer fits",
                              "deferred",
                              "AdmissionCheck",
                              "NoMatchingFlavor",
                              "ExceedsMaxQuota",
                              "WaitingForQuota"}) {
    EXPECT_GE(seen[outcome], 3) << outcome;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryQueueMix, ::testing::Range(0, 5));

}  // namespace
}  // namespace berth::judging
