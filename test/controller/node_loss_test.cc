// Nodes that a cloud takes back, and nodes that die again and again: what ran there runs elsewhere,
// and nothing new goes to a node that is about to go.
#include <cstdlib>
#include <set>

#include "controller/rig.h"

namespace berth::control_test {
namespace {

constexpr const char* kRackLabel = "topology.kubernetes.io/rack";
constexpr const char* kTwoRacks =
    "pools: [{name: m, count: 4, model: NVIDIA-H100-80GB-HBM3, gpus: 4, racks: 2}]";

std::string loss_queues(int quota) {
  return fmt::format(
      "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {{name: f}}, spec: "
      "{{}}}}\n---\n"
      "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {{name: cq}}, spec: "
      "{{namespaceSelector: {{}}, resourceGroups: [{{coveredResources: [nvidia.com/gpu], flavors: "
      "[{{name: f, resources: [{{name: nvidia.com/gpu, nominalQuota: {0}}}]}}]}}]}}}}\n---\n"
      "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {{name: lq, namespace: "
      "default}}, spec: {{clusterQueue: cq}}}}\n",
      quota);
}

struct LossJob {
  std::string name;
  bool queued = false;
  int pods = 1, completions = 1, gpus = 1, seconds = 0;  // 0: without end
  std::string annotations;                               // of the Job
};

void post_job(Rig& rig, const LossJob& job) {
  std::string notes;
  if (job.seconds > 0) notes = fmt::format("sim.berth.dev/run-seconds: '{}'", job.seconds);
  rig.apply(fmt::format(
      "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {0}, namespace: default, labels: "
      "{{{1}}}, annotations: {{{2}}}}}, spec: {{parallelism: {3}, completions: {4}, backoffLimit: "
      "1000, template: {{metadata: {{annotations: {{{5}}}}}, spec: {{schedulerName: berth, "
      "restartPolicy: Never, containers: [{{name: c, image: i, resources: {{limits: "
      "{{nvidia.com/gpu: {6}}}}}}}]}}}}}}}}",
      job.name, job.queued ? "kueue.x-k8s.io/queue-name: lq" : "", job.annotations, job.pods,
      job.completions, notes, job.gpus));
}

struct LossPod {
  std::string name, uid, node, gpus, job;
  bool running = false, leaving = false;
};

// Those that are bound and have not ended.
std::vector<LossPod> held_now(Rig& rig) {
  std::vector<LossPod> out;
  const auto list = rig.get("/api/v1/namespaces/default/pods");
  for (const text::Value& pod : list.root().find("items")->items()) {
    const text::Value& meta = *pod.find("metadata");
    const std::string_view phase = pod.find("status")->find("phase")->string();
    const text::Value* node = pod.find("spec")->find("nodeName");
    if (node == nullptr || phase == "Failed" || phase == "Succeeded") continue;
    LossPod one;
    one.name = meta.find("name")->string();
    one.uid = meta.find("uid")->string();
    one.node = node->string();
    one.running = phase == "Running";
    one.leaving = meta.find("deletionTimestamp") != nullptr;
    one.job = one.name.substr(0, one.name.find('-'));
    const text::Value* notes = meta.find("annotations");
    const text::Value* gpus = notes == nullptr ? nullptr : notes->find("berth.dev/gpus");
    if (gpus != nullptr) one.gpus = gpus->string();
    out.push_back(std::move(one));
  }
  return out;
}

std::size_t running_outside(Rig& rig, const std::string& node) {
  std::size_t out = 0;
  for (const LossPod& pod : held_now(rig)) {
    out += pod.running && !pod.leaving && pod.node != node ? 1u : 0u;
  }
  return out;
}

std::string rack_of(Rig& rig, const std::string& node) {
  const auto found = rig.get("/api/v1/nodes/" + node);
  const text::Value* rack = found.root().find("metadata")->find("labels")->find(kRackLabel);
  return rack == nullptr ? "" : std::string(rack->string());
}

// ---- a cloud that wants its machine back ----------------------------------------------------

enum class Notice : std::uint8_t { kNoExecute, kTaintThenDrain, kCordonThenGone };

struct ReclaimCase {
  const char* name;
  Notice notice;
  bool queued;
};

class SpotReclaim : public ::testing::TestWithParam<ReclaimCase> {};

void give_notice(Rig& rig, const std::string& node, Notice notice) {
  const std::string at = "/api/v1/nodes/" + node;
  const auto taint = [&](const char* key, const char* effect) {
    const auto answer = rig.world.merge(
        at, fmt::format(R"({{"spec":{{"taints":[{{"key":"{}","effect":"{}"}}]}}}})", key, effect));
    ASSERT_EQ(answer.status, 200) << answer.body;
  };
  switch (notice) {
    case Notice::kNoExecute:
      return taint("cloud.example/spot-interruption", "NoExecute");
    case Notice::kTaintThenDrain:
      return taint("aws-node-termination-handler/spot-itn", "NoSchedule");
    case Notice::kCordonThenGone:
      rig.world.merge(at, R"({"spec":{"unschedulable":true}})");
  }
}

// What a termination handler does in the time that is left, and the machine at its end.
void take_node(Rig& rig, const std::string& node, Notice notice) {
  if (notice == Notice::kTaintThenDrain) {
    for (const LossPod& pod : held_now(rig)) {
      if (pod.node != node) continue;
      const auto answer = rig.world.post(
          "/api/v1/namespaces/default/pods/" + pod.name + "/eviction",
          fmt::format(
              R"({{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{}"}}}})",
              pod.name));
      ASSERT_EQ(answer.status, 201) << answer.body;
    }
    rig.run(10 * kSecond);
  }
  rig.remove("/api/v1/nodes/" + node);
}

// A gang of a rack has to leave it as a whole when one of its nodes goes: half of it here and half
// there is no answer. Of a workload of a queue without a topology the lost pods alone move.
TEST_P(SpotReclaim, WhatRunsThereRunsElsewhereAndNothingNewComes) {
  const auto [name, notice, queued] = GetParam();
  Rig rig(kTwoRacks);
  rig.define_kueue();
  rig.apply(loss_queues(16));
  rig.start();
  rig.run(31 * kSecond);
  post_job(rig, {.name = "gang",
                 .queued = queued,
                 .pods = 2,
                 .completions = 2,
                 .gpus = 4,
                 .annotations = queued ? ""
                                       : fmt::format("berth.dev/gang: 'true', "
                                                     "berth.dev/topology-required: {}",
                                                     kRackLabel)});
  ASSERT_TRUE(rig.until([&] { return running_outside(rig, "") == 2; }));
  rig.run(5 * kSecond);
  std::map<std::string, std::string> before;  // nodes by UID
  for (const LossPod& pod : held_now(rig)) before[pod.uid] = pod.node;
  const std::string lost = before.begin()->second;

  give_notice(rig, lost, notice);
  // Whatever comes now finds the node closed, also when nothing else has room.
  for (int i = 0; i < 12; ++i) rig.pod(fmt::format("new-{}", i), 1);
  const auto check_closed = [&] {
    for (const LossPod& pod : held_now(rig)) {
      EXPECT_TRUE(pod.node != lost || before.contains(pod.uid)) << pod.name;
    }
  };
  for (int i = 0; i < 30; ++i) {
    rig.run(kSecond);
    check_closed();
  }
  for (int i = 0; i < 12; ++i) rig.delete_pod(fmt::format("new-{}", i));
  take_node(rig, lost, notice);
  const auto moved = [&] {
    check_closed();
    return running_outside(rig, lost) == 2;
  };
  ASSERT_TRUE(rig.until(moved, 300 * kSecond)) << fmt::format("{}", fmt::join(rig.bound(), " "));
  rig.run(60 * kSecond);
  const auto after = held_now(rig);
  ASSERT_EQ(after.size(), 2u);
  std::set<std::string> racks;
  int anew = 0;
  for (const LossPod& pod : after) {
    racks.insert(rack_of(rig, pod.node));
    anew += before.contains(pod.uid) ? 0 : 1;
  }
  EXPECT_EQ(anew, queued ? 1 : 2);
  if (!queued) {
    EXPECT_EQ(racks.size(), 1u) << fmt::format("{}", fmt::join(rig.bound(), " "));
  }
}

INSTANTIATE_TEST_SUITE_P(Notices, SpotReclaim,
                         ::testing::Values(ReclaimCase{"GangNoExecute", Notice::kNoExecute, false},
                                           ReclaimCase{"GangDrain", Notice::kTaintThenDrain, false},
                                           ReclaimCase{"GangGone", Notice::kCordonThenGone, false},
                                           ReclaimCase{"QueueNoExecute", Notice::kNoExecute, true},
                                           ReclaimCase{"QueueDrain", Notice::kTaintThenDrain, true},
                                           ReclaimCase{"QueueGone", Notice::kCordonThenGone, true}),
                         [](const auto& one) { return std::string(one.param.name); });

// ---- a node that dies every Friday ----------------------------------------------------------

#ifndef BERTH_FRIDAYS
#define BERTH_FRIDAYS 10
#endif
constexpr int kFridays = BERTH_FRIDAYS;
constexpr int kPieces = 36;  // of each Job, three at a time

class BadFridays {
 public:
  explicit BadFridays(std::uint64_t seed)
      : rig_("pools: [{name: m, count: 3, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]"), random_(seed) {
    rig_.define_kueue();
    rig_.apply(loss_queues(6));
    rig_.start();
    rig_.run(31 * kSecond);
    // Together they fill the three nodes, as long as there is work.
    for (const bool queued : {true, false}) {
      post_job(rig_, {.name = queued ? "waits" : "plain",
                      .queued = queued,
                      .pods = 3,
                      .completions = kPieces,
                      .gpus = 2,
                      .seconds = 240});
    }
  }

  void run() {
    ASSERT_TRUE(rig_.until([&] { return held_now(rig_).size() == 6; }));
    for (int friday = 0; friday < kFridays; ++friday) {
      pass(static_cast<std::int64_t>(20 + random_.below(60)));
      const std::string node = fmt::format("m-{}", random_.below(3));
      // Sometimes it is back before anybody noticed, sometimes when its pods were given up.
      const std::int64_t down = random_.below(2) == 0
                                    ? static_cast<std::int64_t>(5 + random_.below(30))
                                    : static_cast<std::int64_t>(60 + random_.below(400));
      rig_.nodes->inject({.node = node, .kind = sim::FaultKind::kReboot, .for_ns = down * kSecond});
      std::set<std::string> known;
      for (const LossPod& pod : held_now(rig_)) known.insert(pod.uid);
      pass(down);
      ASSERT_GT(left(), 0) << "Fridays without work are no test";
      // After failures in a row a Job waits up to ten minutes before it makes pods again.
      EXPECT_TRUE(pass_until([&] { return used_anew(node, known); }, 900))
          << node << " came back from Friday " << friday
          << " and is not used: " << fmt::format("{}", fmt::join(rig_.bound(), " "));
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_TRUE(pass_until([&] { return left() == 0; }, 7200)) << jobs();
    EXPECT_GT(failed(), kFridays / 2) << "Fridays that cost nothing are no test";
    EXPECT_EQ(held_now(rig_).size(), 0u);
  }

 private:
  std::string jobs() { return rig_.get("/apis/batch/v1/namespaces/default/jobs").body; }
  int sum(const char* field) {
    int out = 0;
    const auto list = rig_.get("/apis/batch/v1/namespaces/default/jobs");
    for (const text::Value& job : list.root().find("items")->items()) {
      const text::Value* status = job.find("status");
      const text::Value* n = status == nullptr ? nullptr : status->find(field);
      if (n != nullptr) out += static_cast<int>(n->as_int64().value_or(0));
    }
    return out;
  }
  int left() { return 2 * kPieces - sum("succeeded"); }
  int failed() { return sum("failed"); }
  bool used_anew(const std::string& node, const std::set<std::string>& known) {
    for (const LossPod& pod : held_now(rig_)) {
      if (pod.node == node && pod.running && !known.contains(pod.uid)) return true;
    }
    return false;
  }

  // Nothing is bound twice: neither a pod nor a GPU.
  void check() {
    std::map<std::string, std::string> holder;
    for (const LossPod& pod : held_now(rig_)) {
      const auto& at = node_of_.try_emplace(pod.uid, pod.node).first->second;
      EXPECT_EQ(at, pod.node) << pod.name << " moved";
      for (const char gpu : pod.gpus) {
        if (gpu == ',') continue;
        const auto& other = holder.try_emplace(fmt::format("{} {}", pod.node, gpu), pod.name);
        EXPECT_TRUE(other.second) << other.first->first << " of " << pod.name << " and "
                                  << other.first->second;
      }
    }
    EXPECT_LE(sum("succeeded"), 2 * kPieces) << "no work is done twice";
  }
  void pass(std::int64_t seconds) {
    pass_until([] { return false; }, seconds);
  }
  bool pass_until(const std::function<bool()>& done, std::int64_t seconds) {
    for (; seconds > 0 && !done(); seconds -= kStep) {
      rig_.run(std::min(seconds, kStep) * kSecond);
      check();
    }
    return done();
  }
  static constexpr std::int64_t kStep = 10;

  Rig rig_;
  Random random_;
  std::map<std::string, std::string> node_of_;  // by UID
};

TEST(NodeLoss, WhatRunsOnANodeThatDiesEveryFridayIsDoneInTheEnd) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  const std::uint64_t last = std::getenv("BERTH_SOAK") != nullptr ? 200 : 2;
  for (std::uint64_t seed = 1; seed <= last; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    BadFridays(seed).run();
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace berth::control_test
