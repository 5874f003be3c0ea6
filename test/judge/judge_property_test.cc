// What must hold of every decision, whatever the cluster: over random ones of each mix.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "judge/generate.h"
#include "judge/match.h"
#include "judge/specs.h"

namespace berth::judging {
namespace {

using model::Outcome;
using model::PodSpec;
using model::Verdict;

constexpr int kSeeds = 150 / BERTH_JUDGE_SHARE;
constexpr std::int64_t kNow = kGeneratedAt + kSecond;

class EveryMix : public ::testing::TestWithParam<Mix> {
 protected:
  JudgeCluster cluster(int seed, int unknown_devices_percent = 10) const {
    return generate(Random(static_cast<std::uint64_t>(seed)),
                    {.mix = GetParam(), .unknown_devices_percent = unknown_devices_percent});
  }
};

const PodSpec& pod_of(const JudgeCluster& cluster, const std::string& name) {
  return *std::find_if(cluster.pods.begin(), cluster.pods.end(),
                       [&](const PodSpec& pod) { return full_name(pod) == name; });
}

TEST_P(EveryMix, InputOrderDoesNotMatter) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    JudgeCluster one = cluster(seed), two = one;
    Random random(static_cast<std::uint64_t>(seed));
    random.shuffle(two.nodes);
    random.shuffle(two.pods);
    random.shuffle(two.gangs);
    random.shuffle(two.budgets);
    ASSERT_EQ(judge(one, {}, kNow, true), judge(two, {}, kNow, true)) << "seed " << seed;
  }
}

TEST_P(EveryMix, AFullNodeChangesNothing) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    JudgeCluster one = cluster(seed), two = one;
    model::NodeSpec full;  // no labels: of no domain
    full.name = "full";
    full.allocatable["pods"] = 0;
    two.nodes.push_back(full);
    model::Decision first = judge(one, {}, kNow, false), second = judge(two, {}, kNow, false);
    ASSERT_EQ(first.placements, second.placements) << "seed " << seed;
    ASSERT_EQ(first.preemptions, second.preemptions) << "seed " << seed;
  }
}

// Carries the decision out step by step and asks, before each placement, whether it may be.
TEST_P(EveryMix, PlacementsPassEveryConstraint) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    JudgeCluster now = cluster(seed, 0);
    model::Decision decision = judge(now, {}, kNow, false);
    for (const model::Placement& placement : decision.placements) {
      const std::string workload = placement.gang.empty() ? placement.pod : placement.gang;
      model::Decision gone;
      for (const model::Preemption& victim : decision.preemptions) {
        if (victim.by == workload) gone.preemptions.push_back(victim);
      }
      apply(gone, kNow, now);
      auto rejected = rejections(now, pod_of(now, placement.pod), placement.node);
      ASSERT_TRUE(rejected.empty()) << "seed " << seed << " " << text_of(placement) << " by "
                                    << static_cast<int>(rejected.front());
      model::Decision step;
      step.placements = {placement};
      apply(step, kNow, now);
    }
  }
}

// Adds up what each node is asked for, apart from the judge's own books.
TEST_P(EveryMix, NothingIsOvercommitted) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    JudgeCluster now = cluster(seed, 0);
    apply(judge(now, {}, kNow, false), kNow, now);
    for (const model::NodeSpec& node : now.nodes) {
      model::Amounts left = node.allocatable;
      std::map<int, int> devices;
      for (const PodSpec& pod : now.pods) {
        if (pod.node_name != node.name) continue;
        for (const auto& [resource, value] : pod.requests) left[resource] -= value;
        --left["pods"];
        if (pod.gpu.kind == model::GpuDemandSpec::Kind::kMig) continue;
        ASSERT_EQ(static_cast<int>(pod.gpu_indices.size()), pod.gpu.count) << "seed " << seed;
        bool exclusive =
            pod.gpu.kind == model::GpuDemandSpec::Kind::kWhole && node.shares_per_gpu == 1;
        int milli = exclusive                                               ? 1000
                    : pod.gpu.kind == model::GpuDemandSpec::Kind::kFraction ? pod.gpu.milli
                                                                            : 1;
        for (int index : pod.gpu_indices) devices[index] += milli;
      }
      for (const auto& [resource, value] : left) ASSERT_GE(value, 0) << seed << " " << resource;
      for (auto [index, milli] : devices) ASSERT_LE(milli, 1000) << seed << " " << node.name;
    }
  }
}

TEST_P(EveryMix, GangsStartTogetherOrNotAtAll) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    JudgeCluster before = cluster(seed);
    model::Decision decision = judge(before, {}, kNow, false);
    JudgeCluster after = before;
    apply(decision, kNow, after);
    for (const Outcome& outcome : decision.outcomes) {
      bool started = outcome.verdict == Verdict::kPlaced || outcome.verdict == Verdict::kPartial;
      ASSERT_EQ(started, outcome.placed > 0) << "seed " << seed;
      ASSERT_EQ(outcome.verdict == Verdict::kPlaced, outcome.placed == outcome.pods);
      if (!outcome.gang || !started) continue;
      const auto& gang = *std::find_if(
          before.gangs.begin(), before.gangs.end(),
          [&](const auto& each) { return each.ns + "/" + each.name == outcome.workload; });
      std::map<std::string, int> running;
      std::set<std::string> domains;
      int all = 0;
      for (const PodSpec& pod : after.pods) {
        if (pod.ns != gang.ns || pod.gang != gang.name || pod.node_name.empty()) continue;
        ++running[pod.subgroup];
        ++all;
      }
      for (const model::Placement& placement : decision.placements) {
        if (placement.gang != outcome.workload) continue;
        for (const auto& node : after.nodes) {
          if (node.name != placement.node || gang.required_topology.empty()) continue;
          domains.insert(node.labels.at(gang.required_topology));
        }
      }
      ASSERT_GE(all, gang.min_member) << "seed " << seed;
      for (const auto& each : gang.subgroups) ASSERT_GE(running[each.name], each.min_member);
      ASSERT_LE(domains.size(), 1U) << "seed " << seed;
    }
  }
}

int priority_of(const JudgeCluster& cluster, const std::string& workload, bool gang) {
  int highest = -1;
  for (const PodSpec& pod : cluster.pods) {
    if (!gang && full_name(pod) == workload) return pod.priority;
    if (gang && pod.ns + "/" + pod.gang == workload) highest = std::max(highest, pod.priority);
  }
  for (const model::GangSpec& each : cluster.gangs) {
    if (each.ns + "/" + each.name == workload) return each.priority.value_or(highest);
  }
  return highest;
}

TEST_P(EveryMix, VictimsAreLowerAndEachIsNeeded) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    JudgeCluster before = cluster(seed, 0);
    model::Decision decision = judge(before, {}, kNow, false);
    std::map<std::string, const Outcome*> outcomes;
    for (const Outcome& outcome : decision.outcomes) outcomes[outcome.workload] = &outcome;
    for (const model::Preemption& victim : decision.preemptions) {
      const PodSpec& pod = pod_of(before, victim.pod);
      bool gang = !pod.gang.empty();
      std::string job = gang ? pod.ns + "/" + pod.gang : victim.pod;
      ASSERT_LT(priority_of(before, job, gang),
                priority_of(before, victim.by, outcomes.at(victim.by)->gang))
          << "seed " << seed << " " << job << " by " << victim.by;
    }
    if (decision.preemptions.empty() || decision.outcomes[0].gang) continue;
    // The first to be decided, a single pod: with any one victim job kept, its node rejects it.
    const std::string& first = decision.outcomes[0].workload;
    if (decision.preemptions[0].by != first) continue;
    for (const model::Preemption& kept : decision.preemptions) {
      if (kept.by != first) continue;
      const PodSpec& kept_pod = pod_of(before, kept.pod);
      model::Decision others;
      for (const model::Preemption& victim : decision.preemptions) {
        const PodSpec& pod = pod_of(before, victim.pod);
        bool same = pod.gang.empty() ? victim.pod == kept.pod
                                     : pod.ns == kept_pod.ns && pod.gang == kept_pod.gang;
        if (victim.by == first && !same) others.preemptions.push_back(victim);
      }
      JudgeCluster trial = before;
      apply(others, kNow, trial);
      ASSERT_FALSE(rejections(trial, pod_of(trial, first), decision.placements[0].node).empty())
          << "seed " << seed;
    }
  }
}

TEST_P(EveryMix, ANoHasAReasonAndABindingConstraint) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    for (const Outcome& outcome : judge(cluster(seed), {}, kNow, true).outcomes) {
      ASSERT_EQ(outcome.verdict == Verdict::kPlaced, outcome.reason == model::Reason::kNone);
      const model::Certificate& certificate = outcome.certificate;
      if (certificate.nodes == 0) continue;
      ASSERT_LE(certificate.fitting_nodes, certificate.nodes);
      ASSERT_TRUE(outcome.gang || certificate.fitting_nodes == 0) << "seed " << seed;
      int alone = 0;
      for (std::size_t i = 0; i < certificate.only.size(); ++i) {
        ASSERT_LE(certificate.only[i], certificate.removed[i]);
        alone += certificate.only[i];
      }
      ASSERT_LE(alone + certificate.fitting_nodes, certificate.nodes);
    }
  }
}

// A long run: requests come, are decided, end. Nothing but the specs is carried over.
TEST_P(EveryMix, SequencesStayConsistent) {
  for (int seed = 0; seed < 10; ++seed) {
    GenerateOptions options{.mix = GetParam()};
    Random random(static_cast<std::uint64_t>(seed));
    JudgeCluster now = generate(random, options);
    for (int step = 0; step < 30; ++step) {
      std::int64_t at = kNow + step * kSecond;
      add_request(random, options, 1000 + step, now);
      model::Decision decision = judge(now, {}, at, false);
      apply(decision, at, now);
      finish_some(random, 10, now);
      ASSERT_EQ(judge(now, {}, at, false), judge(now, {}, at, false));
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<Mix>& each) {
  switch (each.param) {
    case Mix::kPlain:
      return "Plain";
    case Mix::kConstraints:
      return "Constraints";
    case Mix::kGangs:
      return "Gangs";
    case Mix::kPreemption:
      return "Preemption";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Judge, EveryMix,
                         ::testing::Values(Mix::kPlain, Mix::kConstraints, Mix::kGangs,
                                           Mix::kPreemption),
                         name_of);

}  // namespace
}  // namespace berth::judging
