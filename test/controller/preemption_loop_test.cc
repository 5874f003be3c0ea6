// Workloads that would preempt one another: the world comes to rest, and none is a victim for ever.
//
// Small worlds are drawn from a seed: queues of one cohort with quota, weights and rules of
// preemption of their own, and Jobs without end of several priorities, more than there is room for.
// BERTH_SOAK=1 runs a thousand; BERTH_PREEMPTION_SEED=N runs that one alone.
#include <cstdlib>
#include <map>
#include <set>

#include "controller/rig.h"

#ifndef BERTH_PREEMPTION_SEEDS
#define BERTH_PREEMPTION_SEEDS 16
#endif

namespace berth::control_test {
namespace {

constexpr int kArrivals = 10;
constexpr std::int64_t kMinute = 60 * kSecond;

constexpr int kMostPreempted = 4;  // times of one workload, while others come

class LoopWorld {
 public:
  explicit LoopWorld(std::uint64_t seed)
      : rig_("pools: [{name: m, count: 2, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]"), random_(seed) {
    rig_.define_kueue();
    rig_.apply(
        "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}, spec: "
        "{}}");
    for (const auto& [name, value] :
         {std::pair("low", 10), std::pair("mid", 20), std::pair("high", 30)}) {
      rig_.apply(
          fmt::format("{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: "
                      "{{name: {}}}, value: {}}}",
                      name, value));
    }
    if (random_.below(2) == 0) {
      rig_.apply(
          "{apiVersion: v1, kind: Namespace, metadata: {name: kueue-system}}\n---\n"
          "{apiVersion: v1, kind: ConfigMap, metadata: {name: kueue-manager-config, namespace: "
          "kueue-system}, data: {controller_manager_config.yaml: '{apiVersion: "
          "config.kueue.x-k8s.io/v1beta2, kind: Configuration, fairSharing: {preemptionStrategies: "
          "[LessThanOrEqualToFinalShare, LessThanInitialShare]}}'}}");
    }
    queues_ = 2 + random_.below(2);
    for (std::uint64_t q = 0; q < queues_; ++q) add_queue(q);
    rig_.start();
    rig_.run(31 * kSecond);
  }

  // Whatever is to happen without anybody coming or going happens in minutes.
  void pass(std::int64_t minutes) {
    const std::int64_t end = rig_.world.clock.ticks_ns() + minutes * kMinute;
    for (int job = 0; job < kArrivals; ++job) {
      add_job(job);
      rig_.run(static_cast<std::int64_t>(1 + random_.below(25)) * kSecond);
    }
    rig_.run(end - minutes / 2 * kMinute - rig_.world.clock.ticks_ns());
    const auto early = preempted(Started::kEither);
    rig_.run(end - rig_.world.clock.ticks_ns());
    EXPECT_EQ(preempted(Started::kEither), early)
        << "nothing came or went, and somebody is preempted still\n"
        << story();
    for (const auto& [workload, times] : preempted()) {
      EXPECT_LE(times, kMostPreempted) << workload << "\n" << story();
    }
  }
  int total() const {
    int out = 0;
    for (const auto& [workload, times] : preempted()) out += times;
    return out;
  }

 private:
  std::string pick(std::initializer_list<const char*> all) {
    return *(all.begin() + random_.below(all.size()));
  }
  void add_queue(std::uint64_t q) {
    const std::string reclaim = pick({"LowerPriority", "Any", "Any", "Never"});
    const bool borrows = reclaim != "Never" && random_.below(3) == 0;
    rig_.apply(fmt::format(
        "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {{name: q{0}}}, spec: "
        "{{namespaceSelector: {{}}, cohortName: all, queueingStrategy: {1}, fairSharing: {{weight: "
        "'{2}'}}, preemption: {{withinClusterQueue: {3}, reclaimWithinCohort: {4}{5}}}, "
        "resourceGroups: [{{coveredResources: [nvidia.com/gpu], flavors: [{{name: f, resources: "
        "[{{name: nvidia.com/gpu, nominalQuota: {6}}}]}}]}}]}}}}\n---\n"
        "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {{name: q{0}, "
        "namespace: "
        "default}}, spec: {{clusterQueue: q{0}}}}}\n",
        q, pick({"BestEffortFIFO", "StrictFIFO"}), 1 + random_.below(3),
        pick({"LowerPriority", "LowerOrNewerEqualPriority"}), reclaim,
        borrows ? ", borrowWithinCohort: {policy: LowerPriority}" : "", 1 + random_.below(5)));
  }
  void add_job(int number) {
    rig_.apply(fmt::format(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: j{0}, namespace: default, labels: "
        "{{kueue.x-k8s.io/queue-name: q{1}}}}}, spec: {{parallelism: {2}, completions: {2}, "
        "template: {{spec: {{schedulerName: berth, restartPolicy: Never, priorityClassName: {3}, "
        "containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: "
        "{4}}}}}}}]}}}}}}}}",
        number, random_.below(queues_), 1 + random_.below(2), pick({"low", "mid", "high"}),
        1 + random_.below(4)));
  }
  // Times that each workload was told to leave for another. One that was let in by the same
  // decision never started: kBefore leaves those out.
  enum class Started { kBefore, kEither };
  std::map<std::string, int> preempted(Started which = Started::kBefore) const {
    std::map<std::string, int> out;
    for (const std::string& line : rig_.lines.decided) {
      const auto parsed = text::parse_json(line);
      EXPECT_TRUE(parsed.ok());
      const text::Value* all = parsed.ok() ? parsed->root().find("evictions") : nullptr;
      if (all == nullptr) continue;
      std::set<std::string_view> fresh;
      for (const text::Value& one : parsed->root().find("admissions")->items()) {
        fresh.insert(one.find("workload")->string());
      }
      for (const text::Value& one : all->items()) {
        const std::string_view name = one.find("workload")->string();
        if (one.find("by")->string().empty()) continue;
        if (which == Started::kEither || !fresh.contains(name)) ++out[std::string(name)];
      }
    }
    return out;
  }
  std::string story() const {
    std::string out;
    for (const std::string& line : rig_.lines.decided) {
      if (line.find(R"("by":)") != std::string::npos) out += line + "\n";
    }
    return out.substr(0, 20'000);
  }

  Rig rig_;
  Random random_;
  std::uint64_t queues_ = 0;
};

// How many were preempted in all of the worlds, a world at the mean.
double run_worlds() {
  std::uint64_t first = 1, last = BERTH_PREEMPTION_SEEDS;
  if (std::getenv("BERTH_SOAK") != nullptr) last = 1'000;        // NOLINT(concurrency-mt-unsafe)
  if (const char* one = std::getenv("BERTH_PREEMPTION_SEED")) {  // NOLINT(concurrency-mt-unsafe)
    first = last = std::strtoull(one, nullptr, 10);
  }
  int total = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    LoopWorld world(seed);
    world.pass(seed == first ? 60 : 10);
    total += world.total();
    if (::testing::Test::HasFailure()) break;
  }
  return static_cast<double>(total) / static_cast<double>(last - first + 1);
}

TEST(PreemptionLoop, TheWorldComesToRest) {
  EXPECT_GE(run_worlds(), BERTH_PREEMPTION_SEEDS < 16 ? 0 : 0.25)
      << "worlds without preemption are no test";
}

}  // namespace
}  // namespace berth::control_test
