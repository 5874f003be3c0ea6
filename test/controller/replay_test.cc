// Every decision of a history is made again from its log, and comes out the same.
#include "control/replay.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "control/world_file.h"
#include "controller/rig.h"

#ifndef BERTH_HISTORIES
#define BERTH_HISTORIES 4
#endif

namespace berth::control_test {
namespace {

struct Replayed {
  std::uint64_t decisions = 0, files = 0;
  std::string trouble;  // the first difference or damage, or empty
};

void replay_file(const std::string& path, Replayed& out) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return;
  ++out.files;
  control::Replay replay;
  std::string line;
  while (out.trouble.empty() && std::getline(in, line)) {
    auto answer = replay.line(line);
    if (!answer.ok()) {
      out.trouble = answer.error().to_string();
    } else if (*answer) {
      out.trouble = fmt::format("cycle {}: {} {} {}", (*answer)->cycle, (*answer)->what,
                                (*answer)->logged, (*answer)->found);
    }
  }
  out.decisions += replay.decisions();
}

constexpr const char* kReplayQueues =
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}\n---\n"
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: cq}, spec: "
    "{namespaceSelector: {}, preemption: {withinClusterQueue: LowerPriority}, resourceGroups: "
    "[{coveredResources: [nvidia.com/gpu], flavors: [{name: f, resources: [{name: nvidia.com/gpu, "
    "nominalQuota: 8}]}]}]}}\n---\n"
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: "
    "default}, spec: {clusterQueue: cq}}\n---\n"
    "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}";

// Pods, gangs and queued Jobs come and go, nodes fail and refuse.
class History {
 public:
  History(std::uint64_t seed, std::size_t max_bytes)
      : path(fmt::format("{}/berth-replay-{}-{}.log", testing::TempDir(), getpid(), seed)),
        log(path, max_bytes),
        rig("pools: [{name: m, count: 4, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]"),
        random_(seed) {
    rig.define_kueue();
    rig.define("scheduling.x-k8s.io", "v1alpha1", "PodGroup", true);
    rig.define("berth.dev", "v1alpha1", "BerthPolicy", false);
    rig.apply(kReplayQueues);
    rig.run(31 * kSecond);
    rig.inputs = &log;
    rig.start({}, seed + 1000);
  }
  ~History() {
    std::remove(path.c_str());
    std::remove((path + ".1").c_str());
  }

  void live(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      rig.run(random_.between(0, 3 * kSecond));
    }
    rig.run(30 * kSecond);
    log.flush();
  }

  std::string path;
  control::FileWorldLog log;
  Rig rig;

 private:
  void step() {
    const std::string name = "x" + std::to_string(made_++);
    const std::string run =
        fmt::format("annotations: {{sim.berth.dev/run-seconds: '{}'}}", random_.between(1, 40));
    const std::string node = "m-" + std::to_string(random_.below(4));
    switch (random_.below(11)) {
      case 0:
      case 1:
        return rig.pod(name, static_cast<int>(random_.between(0, 4)), "", run);
      case 2:
        return rig.pod(name, static_cast<int>(random_.between(1, 4)), "priorityClassName: high",
                       run);
      case 3:
        rig.apply(
            fmt::format("{{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, "
                        "metadata: {{name: {}, namespace: default}}, spec: {{minMember: 2}}}}",
                        name));
        for (int i = 0; i < 2; ++i) {
          rig.pod(fmt::format("{}-{}", name, i), 3, "",
                  fmt::format("labels: {{scheduling.x-k8s.io/pod-group: {}}}, {}", name, run));
        }
        return;
      case 4:
      case 5:
        return rig.apply(fmt::format(
            "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {0}, namespace: default, labels: "
            "{{kueue.x-k8s.io/queue-name: lq}}}}, spec: {{parallelism: 2, completions: 2, "
            "template: {{metadata: {{{1}}}, spec: {{schedulerName: berth, restartPolicy: Never, "
            "containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: "
            "2}}}}}}]}}}}}}}}",
            name, run));
      case 6:
        return rig.nodes->inject({.node = node,
                                  .gpu = 0,
                                  .kind = sim::FaultKind::kXid,
                                  .code = 79,
                                  .for_ns = 9 * kSecond});
      case 7:
        return rig.nodes->inject(
            {.node = node, .kind = sim::FaultKind::kRefusePods, .for_ns = 5 * kSecond});
      case 8: {  // something of a pod that runs cannot be read from now on
        const auto bound = rig.bound();
        if (bound.empty()) return;
        const std::string& one = bound[random_.below(bound.size())];
        const char* const bad[] = {R"({"gpu-fraction":"x"})", R"({"berth.dev/gpus":"-1"})",
                                   R"({"berth.dev/topology-required":"a b"})"};
        return rig.annotate_pod(one.substr(0, one.find('@')), bad[random_.below(std::size(bad))]);
      }
      case 9:
        return change_policy();
      default: {
        const auto bound = rig.bound();
        if (bound.empty()) return;
        const std::string& one = bound[random_.below(bound.size())];
        rig.delete_pod(one.substr(0, one.find('@')));
      }
    }
  }

  void change_policy() {
    const std::string at = "/apis/berth.dev/v1alpha1/berthpolicies/default";
    const char* const specs[] = {
        R"({"placement":{"packing":"LeastAllocated"}})", R"({"preemption":{"enabled":false}})",
        R"({"queues":{"minRuntime":"10s","victims":"FewestJobs"}})", R"({"queues":{"budgets":3}})"};
    rig.remove(at);
    rig.world.post("/apis/berth.dev/v1alpha1/berthpolicies",
                   fmt::format(R"({{"apiVersion":"berth.dev/v1alpha1","kind":"BerthPolicy",)"
                               R"("metadata":{{"name":"default"}},"spec":{}}})",
                               specs[random_.below(std::size(specs))]));
  }

  Random random_;
  int made_ = 0;
};

TEST(ControllerReplay, HistoriesComeOutTheSame) {
  for (std::uint64_t seed = 1; seed <= BERTH_HISTORIES; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed, seed % 2 == 0 ? 150'000 : 100'000'000);
    history.live(60);
    EXPECT_EQ(history.log.failures(), 0u);
    Replayed out;
    replay_file(history.path, out);
    replay_file(history.path + ".1", out);
    EXPECT_EQ(out.trouble, "");
    EXPECT_EQ(out.files, seed % 2 == 0 ? 2u : 1u);
    EXPECT_GT(out.decisions, 20u);
    const control::LastDecision& last = history.rig.brain->controller.last_decision();
    ASSERT_FALSE(history.rig.lines.decided.empty());
    const std::string& line = history.rig.lines.decided.back();
    EXPECT_TRUE(line.starts_with("{\"id\":\"" + last.id + "\"")) << last.id << " in " << line;
    EXPECT_GT(last.at_ns, 0);
    EXPECT_FALSE(last.version.empty());
  }
}

TEST(ControllerReplay, AChangedByteIsFound) {
  History history(77, 100'000'000);
  history.live(10);
  std::ifstream in(history.path, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  const std::string text = all.str();
  ASSERT_GT(text.size(), 10'000u);
  Random random(5);
  for (int i = 0; i < 12; ++i) {
    std::string changed = text;
    const std::size_t at = random.below(changed.size() - 1);
    changed[at] = static_cast<char>(changed[at] ^ 1);
    const std::string path = history.path + ".changed";
    std::ofstream(path, std::ios::binary) << changed;
    Replayed out;
    replay_file(path, out);
    EXPECT_NE(out.trouble, "") << at;
    std::remove(path.c_str());
  }
}

}  // namespace
}  // namespace berth::control_test
