// Trials in clusters with queues: each gives what a decision from scratch gives, and what the first
// look refuses the decision refuses too, but for a few.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "kinds/quota_requests.h"
#include "people/why/trial.h"

namespace berth::people {
namespace {

using model::PodSpec;
using model::WorkloadSpec;

constexpr int kNodes = 5;

PodSpec gpu_pod_of(std::string name, int gpus) {
  PodSpec pod;
  pod.ns = "team";
  pod.name = std::move(name);
  pod.requests = {{"cpu", 1000}};
  pod.gpu = {.kind = model::GpuDemandSpec::Kind::kWhole, .count = gpus};
  pod.gpus_by_container = {gpus};
  return pod;
}

model::PodSetSpec gpu_set_of(int gpus, int count) {
  model::PodSetSpec out;
  out.count = count;
  out.pod = std::make_shared<const PodSpec>(gpu_pod_of("main", gpus));
  out.requests = kinds::quota_requests(*out.pod, {});
  return out;
}

model::NodeSpec gpu_node_of(const std::string& name) {
  model::NodeSpec node;
  node.name = name;
  node.labels = {{model::kHostnameLabel, node.name}};
  node.allocatable = {{"cpu", 64'000}, {"pods", 20}};
  for (int g = 0; g < 8; ++g) {
    model::GpuSpec gpu;
    gpu.index = g;
    gpu.model = "NVIDIA-H100-80GB-HBM3";
    gpu.memory_mib = 81559;
    node.gpus.push_back(std::move(gpu));
  }
  return node;
}

model::QueueSpec random_queue(Random& random, const std::string& name) {
  using model::PreemptWithin;
  using model::Reclaim;
  model::QueueSpec queue;
  queue.name = name;
  if (!random.chance(1, 4)) queue.cohort = "org";
  queue.namespaces = text::Selector();
  queue.strict_fifo = random.chance(1, 4);
  queue.within = static_cast<PreemptWithin>(random.below(3));
  queue.reclaim = static_cast<Reclaim>(random.below(3));
  queue.borrow_by_preemption = random.chance(1, 4) && queue.reclaim != Reclaim::kNever;
  const auto gpus = static_cast<std::int64_t>(random.between(4, 24));
  model::FlavorQuota quota{.flavor = "h100",
                           .resources = {{.resource = "cpu", .nominal = 1'000'000},
                                         {.resource = "nvidia.com/gpu", .nominal = gpus}}};
  queue.groups = {{.covered = {"cpu", "nvidia.com/gpu"}, .flavors = {quota}}};
  return queue;
}

// It runs where there is room; false: there is none.
bool run_somewhere(WorkloadSpec& spec, std::array<int, kNodes>& free, kinds::Inputs& inputs) {
  const int gpus = spec.pod_sets.front().pod->gpu.count;
  std::vector<PodSpec> pods;
  for (int i = 0; i < spec.pod_sets.front().count; ++i) {
    const auto node = std::find_if(free.begin(), free.end(), [&](int f) { return f >= gpus; });
    if (node == free.end()) return false;
    *node -= gpus;
    pods.push_back(gpu_pod_of(fmt::format("{}-{}", spec.name, i), gpus));
    pods.back().node_name = fmt::format("n{}", node - free.begin());
    pods.back().queued = true;
    pods.back().owner = spec.owner;
    pods.back().priority = spec.priority;
    spec.pod_sets.front().pods.push_back("team/" + pods.back().name);
  }
  inputs.pods.insert(inputs.pods.end(), pods.begin(), pods.end());
  model::PodSetAdmission set{.name = "main", .count = spec.pod_sets.front().count};
  for (const auto& [resource, amount] : spec.pod_sets.front().requests) {
    set.flavors[resource] = "h100";
    set.usage[resource] = amount * set.count;
  }
  spec.admission = {.queue = spec.queue, .pod_sets = {set}};
  spec.admitted = true;
  spec.admitted_ns = spec.reserved_ns = spec.created_ns;
  return true;
}

kinds::Inputs queue_cluster(Random& random) {
  kinds::Inputs out;
  for (int n = 0; n < kNodes; ++n) out.nodes.push_back(gpu_node_of(fmt::format("n{}", n)));
  out.queues.flavors.push_back({.name = "h100"});
  out.queues.namespaces["team"];
  out.queues.config.fair_sharing = random.chance(1, 5);
  for (int q = 0; q < 3; ++q) {
    out.queues.queues.push_back(random_queue(random, fmt::format("q{}", q)));
    out.queues.local_queues.push_back(
        {.ns = "team", .name = fmt::format("q{}", q), .queue = fmt::format("q{}", q)});
  }
  std::array<int, kNodes> free{};
  free.fill(8);
  for (int w = 0; w < 16; ++w) {
    WorkloadSpec spec;
    spec.ns = "team";
    spec.name = fmt::format("w{:02}", w);
    spec.queue = fmt::format("q{}", random.below(3));
    spec.owner = random.chance(1, 2) ? "Job/" + spec.name : "";
    spec.priority = static_cast<int>(random.below(3));
    spec.created_ns = w * 1'000'000'000LL + 1;
    const int gpus = 1 << random.below(4);
    spec.pod_sets = {gpu_set_of(gpus, static_cast<int>(random.between(1, 3)))};
    if (w < 9 && !run_somewhere(spec, free, out)) continue;
    out.queues.workloads.push_back(std::move(spec));
  }
  if (random.chance(1, 2)) {
    PodSpec alone = gpu_pod_of("x-alone", 4);
    alone.priority = 1;
    out.pods.push_back(std::move(alone));
  }
  return out;
}

void take_out_one(const WorkloadSpec& spec, Draft& draft) {
  draft.gone_workloads.insert("team/" + spec.name);
  for (const std::string& pod : spec.pod_sets.front().pods) draft.gone_pods.insert(pod);
}

Draft queue_draft(Random& random, const kinds::Inputs& inputs, const WorkloadSpec& own) {
  Draft draft;
  const auto edit = [&]() -> WorkloadSpec& {
    return draft.workloads.try_emplace("team/" + own.name, own).first->second;
  };
  if (random.chance(1, 3)) {
    edit().pod_sets = {gpu_set_of(1 << random.below(4), static_cast<int>(random.between(1, 4)))};
  }
  if (random.chance(1, 5)) edit().queue = fmt::format("q{}", random.below(3));
  if (random.chance(1, 5)) edit().priority = static_cast<int>(random.below(5));
  for (const WorkloadSpec& other : inputs.queues.workloads) {
    if (other.name != own.name && random.chance(1, 10)) take_out_one(other, draft);
  }
  if (random.chance(1, 3)) {
    draft.queues = std::make_shared<model::QueueRules>(inputs.queues);
    auto& queue = draft.queues->queues[random.below(3)];
    queue.groups[0].flavors[0].resources[1].nominal += static_cast<int>(random.below(20));
    if (random.chance(1, 3)) queue.reclaim = model::Reclaim::kAny;
  }
  if (random.chance(1, 4)) draft.nodes.emplace("new", gpu_node_of("new"));
  return draft;
}

kinds::Inputs with_draft(const kinds::Inputs& inputs, const Draft& draft) {
  kinds::Inputs out = inputs;
  for (const auto& [name, node] : draft.nodes) out.nodes.push_back(node);
  std::sort(out.nodes.begin(), out.nodes.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::erase_if(out.pods, [&](const PodSpec& pod) {
    return draft.gone_pods.contains(pod.ns + '/' + pod.name);
  });
  if (draft.queues) static_cast<model::QueueRules&>(out.queues) = *draft.queues;
  std::erase_if(out.queues.workloads, [&](const WorkloadSpec& spec) {
    return draft.gone_workloads.contains(spec.ns + '/' + spec.name);
  });
  for (WorkloadSpec& spec : out.queues.workloads) {
    const auto changed = draft.workloads.find(spec.ns + '/' + spec.name);
    if (changed != draft.workloads.end()) spec = changed->second;
  }
  return out;
}

TEST(QueueTrials, GiveWhatADecisionFromScratchGives) {
  int started = 0, refused_at_once = 0, refused = 0, victims = 0, missed = 0;
  for (std::uint64_t seed = 1; seed <= BERTH_TRIALS; ++seed) {
    Random random(seed);
    const kinds::Inputs inputs = queue_cluster(random);
    PlanOptions options;
    options.now_ns = 100'000'000'000;
    Trials trials(inputs, options);
    const WorkloadSpec& own = inputs.queues.workloads.back();
    const Result<Unit> unit = find_unit(inputs, nullptr, {"workload", "team", own.name});
    ASSERT_TRUE(unit.ok()) << seed;
    trials.focus(*unit);
    for (int n = 0; n < 10; ++n) {
      const Draft draft = queue_draft(random, inputs, own);
      const bool quick = trials.quick(draft, *unit);
      const TrialOutcome got = trials.run(draft, *unit);
      const kinds::Inputs changed = with_draft(inputs, draft);
      const Trials anew(changed, options);
      const TrialOutcome want = outcome_of(anew.decision(), *unit, {});
      const std::string where = fmt::format("seed {} draft {}", seed, n);
      ASSERT_EQ(got.starts, want.starts) << where;
      EXPECT_EQ(got.placed, want.placed) << where;
      EXPECT_EQ(got.victims, want.victims) << where;
      EXPECT_EQ(got.node, want.node) << where;
      EXPECT_EQ(got.no.reason, want.no.reason) << where;
      EXPECT_EQ(got.no.message, want.no.message) << where;
      EXPECT_EQ(got.no.position, want.no.position) << where;
      missed += !quick && got.starts ? 1 : 0;
      (got.starts ? started : quick ? refused : refused_at_once) += 1;
      victims += got.victims;
    }
  }
  EXPECT_GT(started, BERTH_TRIALS);
  EXPECT_GT(refused, BERTH_TRIALS / 8);
  EXPECT_GT(refused_at_once, BERTH_TRIALS);
  EXPECT_GT(victims, BERTH_TRIALS / 2);
  EXPECT_LE(missed, 3);  // of 800: the change lets somebody else make room
}

}  // namespace
}  // namespace berth::people
