// A trial gives what a decision from scratch gives, whatever was tried before it.
#include "people/why/trial.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace berth::people {
namespace {

using model::PodSpec;

model::NodeSpec trial_node(Random& random, int number) {
  model::NodeSpec node;
  node.name = fmt::format("n{:02}", number);
  node.labels = {{model::kHostnameLabel, node.name},
                 {model::kZoneLabel, fmt::format("z{}", random.below(3))},
                 {"pool", random.chance(1, 2) ? "a" : "b"}};
  if (random.chance(1, 5)) node.taints.push_back({.key = "dedicated", .value = "x"});
  node.allocatable = {{"cpu", random.chance(1, 2) ? 64'000 : 16'000},
                      {"memory", std::int64_t{1} << 38},
                      {"pods", 20}};
  const bool big = random.chance(1, 2);
  for (int g = 0; g < (big ? 8 : 4); ++g) {
    model::GpuSpec gpu;
    gpu.index = g;
    gpu.model = big ? "NVIDIA-H100-80GB-HBM3" : "NVIDIA-L4";
    gpu.memory_mib = big ? 81559 : 23034;
    gpu.nvlink_clique = g / 4;
    node.gpus.push_back(std::move(gpu));
  }
  return node;
}

PodSpec trial_pod(Random& random, std::string name) {
  PodSpec pod;
  pod.ns = random.chance(1, 2) ? "team" : "other";
  pod.name = std::move(name);
  pod.requests = {{"cpu", random.between(1, 9) * 1000}, {"memory", std::int64_t{8} << 30}};
  pod.labels = {{"app", fmt::format("app-{}", random.below(3))}};
  pod.priority = static_cast<int>(random.below(3)) * 10;
  if (random.chance(1, 4)) {
    pod.gpu = {.kind = model::GpuDemandSpec::Kind::kFraction, .count = 1, .milli = 500};
  } else {
    const int gpus = 1 << random.below(4);
    pod.gpu = {.kind = model::GpuDemandSpec::Kind::kWhole, .count = gpus};
    pod.gpus_by_container = {gpus};
  }
  if (random.chance(1, 4)) pod.node_selector["pool"] = random.chance(1, 2) ? "a" : "b";
  if (random.chance(1, 6)) {
    pod.tolerations.push_back({.key = "dedicated", .op = model::Toleration::Op::kExists});
  }
  const model::PodSet same_app{
      .namespaces = {pod.ns},
      .selector = {{"app", text::Operator::kIn, {fmt::format("app-{}", random.below(3))}}}};
  if (random.chance(1, 5)) {
    pod.anti_affinity.push_back({.topology_key = model::kHostnameLabel, .pods = same_app});
  }
  if (random.chance(1, 8)) {
    pod.affinity.push_back({.topology_key = model::kZoneLabel, .pods = same_app});
  }
  if (random.chance(1, 8)) {
    pod.spread.push_back({.topology_key = model::kZoneLabel, .pods = same_app});
  }
  return pod;
}

kinds::Inputs trial_cluster(Random& random) {
  kinds::Inputs out;
  const int nodes = static_cast<int>(random.between(2, 12));
  for (int n = 0; n < nodes; ++n) out.nodes.push_back(trial_node(random, n));
  for (int p = 0; p < nodes * 2; ++p) {
    PodSpec pod = trial_pod(random, fmt::format("run-{:02}", p));
    pod.node_name = fmt::format("n{:02}", random.below(static_cast<std::uint64_t>(nodes)));
    out.pods.push_back(std::move(pod));
  }
  for (int p = 0; p < 8; ++p) out.pods.push_back(trial_pod(random, fmt::format("want-{}", p)));
  if (random.chance(1, 2)) {
    out.gangs.push_back({.ns = "team", .name = "gang", .min_member = 3});
    for (int p = 0; p < 3; ++p) {
      PodSpec pod = trial_pod(random, fmt::format("member-{}", p));
      pod.ns = "team";
      pod.gang = "gang";
      out.pods.push_back(std::move(pod));
    }
  }
  return out;
}

// Another shape for the subject, somebody else's pod gone or changed, a node mended or added.
Draft trial_draft(Random& random, const kinds::Inputs& inputs, const Unit& unit) {
  Draft draft;
  const PodSpec& subject = *unit.pending.front();
  if (random.chance(3, 4)) {
    PodSpec pod = trial_pod(random, subject.name);
    pod.ns = subject.ns;
    pod.gang = subject.gang;
    draft.pods.emplace(pod.ns + '/' + pod.name, std::move(pod));
  }
  if (random.chance(1, 2)) {
    const PodSpec& other = inputs.pods[random.below(inputs.pods.size())];
    const std::string name = other.ns + '/' + other.name;
    if (&other != &subject && !draft.pods.contains(name)) draft.gone_pods.insert(name);
  }
  if (random.chance(1, 4)) {
    model::NodeSpec node = inputs.nodes[random.below(inputs.nodes.size())];
    node.taints.clear();
    if (random.chance(1, 2)) node.name = "added";
    draft.nodes.emplace(node.name, std::move(node));
  }
  return draft;
}

TrialOutcome from_scratch(const kinds::Inputs& inputs, const PlanOptions& options,
                          const Draft& draft, const Unit& unit) {
  const model::Policy policy = options.policy(inputs);
  model::SnapshotBuilder builder(schedule::keeps_apart(policy.placement));
  std::map<std::string, model::NodeSpec> nodes;
  for (const model::NodeSpec& node : inputs.nodes) nodes[node.name] = node;
  for (const auto& [name, node] : draft.nodes) nodes[name] = node;
  for (const auto& [name, node] : nodes) builder.upsert_node(node);
  for (const model::GangSpec& gang : inputs.gangs) builder.upsert_gang(gang);
  for (const PodSpec& pod : inputs.pods) {
    const std::string name = pod.ns + '/' + pod.name;
    const auto changed = draft.pods.find(name);
    if (draft.gone_pods.contains(name)) continue;
    builder.upsert_pod(changed == draft.pods.end() ? pod : changed->second);
  }
  const decide::Run run =
      decide::run(builder, policy.placement, 0, kMaxCycles, {.certificates = false});
  std::set<std::string> names;
  for (const PodSpec* pod : unit.pending) {
    const std::string name = pod->ns + '/' + pod->name;
    if (!draft.gone_pods.contains(name)) names.insert(name);
  }
  return outcome_of(run.decision, unit, names);
}

bool quick_from_scratch(Trials& trials, const kinds::Inputs& inputs, const PlanOptions& options,
                        const Draft& draft, const Unit& unit) {
  kinds::Inputs left = inputs;
  std::set<std::string> own;
  for (const PodSpec* pod : unit.pending) own.insert(pod->ns + '/' + pod->name);
  const model::ClusterState& after = trials.after().state();
  std::vector<PodSpec> kept;
  for (PodSpec& pod : left.pods) {
    const std::string name = pod.ns + '/' + pod.name;
    const model::PodEntry& entry = after.pod(*trials.after().find_pod(name));
    if (!own.contains(name) && entry.slot == model::kPending) continue;
    if (!own.contains(name) && entry.slot >= 0) {
      pod.node_name = after.info(static_cast<std::size_t>(entry.slot)).name;
      pod.gpu_indices = entry.assumed ? std::vector<int>() : entry.gpus.indices();
    }
    kept.push_back(std::move(pod));
  }
  left.pods = std::move(kept);
  return from_scratch(left, options, draft, unit).starts;
}

// Drafts as `add nodes` makes them.
Draft nodes_draft(Random& random, const kinds::Inputs& inputs) {
  Draft draft;
  for (int n = 0; n < static_cast<int>(random.between(1, 3)); ++n) {
    model::NodeSpec node = inputs.nodes[random.below(inputs.nodes.size())];
    node.name += fmt::format("-new-{}", n);
    node.labels[model::kHostnameLabel] = node.name;
    draft.nodes.emplace(node.name, std::move(node));
  }
  return draft;
}

TEST(Trials, GiveWhatADecisionFromScratchGives) {
  int started = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= BERTH_TRIALS; ++seed) {
    Random random(seed);
    const kinds::Inputs inputs = trial_cluster(random);
    PlanOptions options;
    Trials trials(inputs, options);
    const PodSpec& any = inputs.pods[inputs.pods.size() - 1 - random.below(8)];
    const Result<Unit> unit = find_unit(inputs, nullptr, {"pod", any.ns, any.name});
    ASSERT_TRUE(unit.ok()) << seed;
    trials.focus(*unit);
    for (int n = 0; n < 12; ++n) {
      Draft draft =
          random.chance(1, 4) ? nodes_draft(random, inputs) : trial_draft(random, inputs, *unit);
      if (random.chance(1, 4)) draft.nodes.merge(nodes_draft(random, inputs).nodes);
      const bool quick = trials.quick(draft, *unit);
      const TrialOutcome got = trials.run(draft, *unit);
      const TrialOutcome want = from_scratch(inputs, options, draft, *unit);
      const std::string where = fmt::format("seed {} draft {}", seed, n);
      ASSERT_EQ(got.starts, want.starts) << where;
      EXPECT_EQ(got.placed, want.placed) << where;
      EXPECT_EQ(got.victims, want.victims) << where;
      EXPECT_EQ(got.node, want.node) << where;
      EXPECT_EQ(got.no.reason, want.no.reason) << where;
      EXPECT_EQ(got.no.message, want.no.message) << where;
      (got.starts ? started : refused) += 1;
      // The first look is a decision on what the first decision left, the others taken away.
      EXPECT_EQ(quick, quick_from_scratch(trials, inputs, options, draft, *unit)) << where;
    }
  }
  EXPECT_GT(started, BERTH_TRIALS);
  EXPECT_GT(refused, BERTH_TRIALS);
}

}  // namespace
}  // namespace berth::people
