// GPUs that break under pods which do not notice: the whole workload starts over elsewhere.
#include "controller/rig.h"

namespace berth::control_test {
namespace {

// A driver that is silent for a GPU leaves the program on it running.
sim::Fault breaks(const std::string& node, int gpu) {
  return {.node = node, .gpu = gpu, .kind = sim::FaultKind::kGpuSilent};
}

std::string gang_job(const std::string& name, const std::string& labels = "") {
  return fmt::format(
      "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {0}, namespace: default, labels: "
      "{{{1}}}, annotations: {{berth.dev/gang: 'true'}}}}, spec: {{parallelism: 2, completions: 2, "
      "backoffLimit: 20, template: {{spec: {{schedulerName: berth, restartPolicy: Never, "
      "containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: 2}}}}}}]}}}}}}}}",
      name, labels);
}

// UIDs of pods of default that have not ended, with the node and the GPUs that they hold.
std::map<std::string, std::string> places_of(Rig& rig) {
  std::map<std::string, std::string> out;
  const auto list = rig.get("/api/v1/namespaces/default/pods");
  for (const text::Value& pod : list.root().find("items")->items()) {
    const std::string_view phase = pod.find("status")->find("phase")->string();
    const text::Value* node = pod.find("spec")->find("nodeName");
    if (phase != "Running" || node == nullptr) continue;
    if (pod.find("metadata")->find("deletionTimestamp") != nullptr) continue;
    const text::Value* notes = pod.find("metadata")->find("annotations");
    const text::Value* gpus = notes == nullptr ? nullptr : notes->find("berth.dev/gpus");
    out.emplace(pod.find("metadata")->find("uid")->string(),
                fmt::format("{} {}", node->string(), gpus == nullptr ? "" : gpus->string()));
  }
  return out;
}

// Breaks a GPU of the first of them; returns "node index".
std::string break_one(Rig& rig, const std::map<std::string, std::string>& places) {
  const std::string& first = places.begin()->second;
  const std::string node = first.substr(0, first.find(' '));
  const int gpu = first[first.find(' ') + 1] - '0';
  rig.nodes->inject(breaks(node, gpu));
  return fmt::format("{} {}", node, gpu);
}

bool uses(const std::map<std::string, std::string>& places, const std::string& broken) {
  const std::string node = broken.substr(0, broken.find(' '));
  const char gpu = broken.back();
  for (const auto& [uid, place] : places) {
    if (place.starts_with(node + ' ') && place.find(gpu, node.size() + 1) != std::string::npos) {
      return true;
    }
  }
  return false;
}

// All of before are gone, as many run, and none on the broken GPU.
bool moved(Rig& rig, const std::map<std::string, std::string>& before, const std::string& broken) {
  const auto now = places_of(rig);
  if (now.size() != before.size() || uses(now, broken)) return false;
  for (const auto& [uid, place] : now) {
    if (before.contains(uid)) return false;
  }
  return true;
}

// Agents tell who holds what.
struct CasualtyRig : Rig {
  CasualtyRig() : Rig(kTwoNodes) {
    define("berth.dev", "v1alpha1", "GpuNode", false);
    run(31 * kSecond);
  }
};

TEST(ControllerCasualties, AGangStartsOverWithoutTheBrokenGpu) {
  CasualtyRig rig;
  rig.start();
  rig.apply(gang_job("j"));
  ASSERT_TRUE(rig.until([&] { return places_of(rig).size() == 2; }));
  const auto before = places_of(rig);
  const std::string broken = break_one(rig, before);
  rig.run(8 * kSecond);
  EXPECT_EQ(places_of(rig), before) << "its program may end by itself";
  ASSERT_TRUE(rig.until([&] { return moved(rig, before, broken); }));
  EXPECT_EQ(rig.brain->controller.summary().evicted, 2u);
  rig.run(60 * kSecond);
  EXPECT_EQ(rig.brain->controller.summary().evicted, 2u) << "once is enough";
}

constexpr const char* kCasualtyQueues =
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}\n---\n"
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: cq}, spec: "
    "{namespaceSelector: {}, resourceGroups: [{coveredResources: [nvidia.com/gpu], flavors: "
    "[{name: f, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]}]}}\n---\n"
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: "
    "default}, spec: {clusterQueue: cq}}\n";

TEST(ControllerCasualties, AWorkloadOfAQueueIsEvictedAndWaitsItsTurnAgain) {
  CasualtyRig rig;
  rig.define_kueue();
  rig.apply(kCasualtyQueues);
  rig.run(31 * kSecond);
  rig.start();
  rig.apply(gang_job("j", "kueue.x-k8s.io/queue-name: lq"));
  ASSERT_TRUE(rig.until([&] { return places_of(rig).size() == 2; }));
  rig.run(5 * kSecond);
  const auto before = places_of(rig);
  const std::string broken = break_one(rig, before);
  std::string evicted;
  ASSERT_TRUE(rig.until([&] {
    const auto list = rig.get("/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads");
    const text::Value& w = list.root().find("items")->items()[0];
    const std::string path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/" +
                             std::string(w.find("metadata")->find("name")->string());
    if (rig.condition(path, "Evicted") == "True")
      evicted = rig.condition(path, "Evicted", "reason");
    return moved(rig, before, broken);
  }));
  EXPECT_EQ(evicted, "GpuFailure");
  rig.run(60 * kSecond);
  EXPECT_TRUE(moved(rig, before, broken));
}

// Kueue admitted it and is at work: its pods leave, its quota stays, nothing of its Workload
// changes.
TEST(ControllerCasualties, WhereKueueManagesTheQueueItsPodsLeaveAndComeAgain) {
  CasualtyRig rig;
  rig.define_kueue();
  rig.apply(kCasualtyQueues);
  rig.run(31 * kSecond);
  rig.start();
  rig.apply(gang_job("j", "kueue.x-k8s.io/queue-name: lq"));
  ASSERT_TRUE(rig.until([&] { return places_of(rig).size() == 2; }));
  rig.apply("{apiVersion: v1, kind: Namespace, metadata: {name: kueue-system}}");
  rig.apply(
      "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: "
      "c1f6bfd2.kueue.x-k8s.io, namespace: kueue-system}, spec: {holderIdentity: k, "
      "leaseDurationSeconds: 3600, renewTime: '2026-01-01T00:00:00.000000Z'}}");
  rig.run(5 * kSecond);
  const auto before = places_of(rig);
  const auto workloads = [&rig] {
    return rig.get("/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads").body;
  };
  const std::string said = workloads();
  const std::string broken = break_one(rig, before);
  ASSERT_TRUE(rig.until([&] { return moved(rig, before, broken); }));
  const auto kept = [](const std::string& body) { return body.substr(body.find("\"items\"")); };
  EXPECT_EQ(kept(workloads()), kept(said));
}

TEST(ControllerCasualties, PodsThatNobodyMakesAgainAndThoseThatWantToStayStay) {
  CasualtyRig rig;
  rig.start();
  rig.pod("alone", 4);
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("alone") == "Running"; }));
  rig.apply(
      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: default}, spec: "
      "{replicas: 1, selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}, "
      "annotations: {berth.dev/on-gpu-failure: keep}}, spec: {schedulerName: berth, containers: "
      "[{name: c, image: i, resources: {limits: {nvidia.com/gpu: 2}}}]}}}}");
  ASSERT_TRUE(rig.until([&] { return places_of(rig).size() == 2; }));
  for (const char* node : {"m-0", "m-1"}) {
    for (int gpu = 0; gpu < 4; ++gpu) rig.nodes->inject(breaks(node, gpu));
  }
  const auto before = places_of(rig);
  rig.run(60 * kSecond);
  EXPECT_EQ(places_of(rig), before);
  EXPECT_EQ(rig.brain->controller.summary().evicted, 0u);
  EXPECT_NE(rig.get("/apis/events.k8s.io/v1/events").body.find("GpuFailed"), std::string::npos);
}

TEST(ControllerCasualties, SwitchedOffPodsStay) {
  CasualtyRig rig;
  rig.start({.sick_gpus = {.act = false}});
  rig.apply(gang_job("j"));
  ASSERT_TRUE(rig.until([&] { return places_of(rig).size() == 2; }));
  const auto before = places_of(rig);
  break_one(rig, before);
  rig.run(120 * kSecond);
  EXPECT_EQ(places_of(rig), before);
}

// ---- nodes that a cloud takes back ----

// Three machines of four GPUs; gangs of two whole machines.
struct NoticeRig : Rig {
  NoticeRig() : Rig("pools: [{name: m, count: 3, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]") {
    define("berth.dev", "v1alpha1", "GpuNode", false);
    run(31 * kSecond);
  }
  static std::string wide_job(const std::string& labels = "", const std::string& spec = "") {
    std::string yaml = gang_job("j", labels);
    yaml.replace(yaml.find("nvidia.com/gpu: 2"), 17, "nvidia.com/gpu: 4");
    return yaml.insert(yaml.find("schedulerName"), spec);
  }
  void notice(const std::string& node, const std::string& key) {
    world.call("PATCH", "/api/v1/nodes/" + node,
               R"({"spec":{"taints":[{"key":")" + key + R"(","effect":"NoSchedule"}]}})",
               "application/merge-patch+json");
  }
};

// 30 seconds are left: whoever has to save needs all of them, on the other machine too.
TEST(ControllerCasualties, AGangIsToldOfANoticeInTheSameSecondAndStartsOverElsewhere) {
  for (const char* key :
       {"aws-node-termination-handler/spot-itn", "cloud.google.com/impending-node-termination"}) {
    NoticeRig rig;
    rig.start();
    rig.apply(NoticeRig::wide_job());
    ASSERT_TRUE(rig.until([&] { return places_of(rig).size() == 2; }));
    const auto before = places_of(rig);
    const std::string node = before.begin()->second.substr(0, 3);
    rig.notice(node, key);
    rig.run(kSecond);
    for (const auto& [uid, place] : before) {
      EXPECT_FALSE(places_of(rig).contains(uid)) << place << " was not told of " << key;
    }
    ASSERT_TRUE(rig.until([&] { return places_of(rig).size() == 2; }));
    for (const auto& [uid, place] : places_of(rig)) EXPECT_FALSE(place.starts_with(node));
    EXPECT_EQ(rig.brain->controller.summary().evicted, 2u);
  }
}

TEST(ControllerCasualties, AWorkloadOfAQueueLeavesANodeThatIsTakenBackAndIsAdmittedAgain) {
  NoticeRig rig;
  rig.define_kueue();
  std::string queues = kCasualtyQueues;
  queues.replace(queues.find("nominalQuota: 4"), 15, "nominalQuota: 8");
  rig.apply(queues);
  rig.run(31 * kSecond);
  rig.start();
  rig.apply(NoticeRig::wide_job("kueue.x-k8s.io/queue-name: lq"));
  ASSERT_TRUE(rig.until([&] { return places_of(rig).size() == 2; }));
  rig.run(5 * kSecond);
  const auto before = places_of(rig);
  const std::string node = before.begin()->second.substr(0, 3);
  rig.notice(node, "berth.dev/interruption");
  rig.run(kSecond);
  for (const auto& [uid, place] : before) EXPECT_FALSE(places_of(rig).contains(uid)) << place;
  ASSERT_TRUE(rig.until([&] { return places_of(rig).size() == 2; }));
  for (const auto& [uid, place] : places_of(rig)) EXPECT_FALSE(place.starts_with(node));
  EXPECT_NE(rig.get("/apis/events.k8s.io/v1/events").body.find("EvictedDueToNodeReclaimed"),
            std::string::npos);
}

TEST(ControllerCasualties, ANoticeLeavesServicesAndThoseThatTolerateItAlone) {
  NoticeRig rig;
  rig.start();
  rig.apply(NoticeRig::wide_job(
      "", "tolerations: [{key: aws-node-termination-handler/spot-itn, operator: Exists}], "));
  rig.apply(
      "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: default}, spec: "
      "{replicas: 1, selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, "
      "spec: {schedulerName: berth, containers: [{name: c, image: i, resources: {limits: "
      "{nvidia.com/gpu: 2}}}]}}}}");
  ASSERT_TRUE(rig.until([&] { return places_of(rig).size() == 3; }));
  const auto before = places_of(rig);
  for (const char* node : {"m-0", "m-1", "m-2"}) {
    rig.notice(node, "aws-node-termination-handler/spot-itn");
  }
  rig.run(60 * kSecond);
  EXPECT_EQ(places_of(rig), before);
}

}  // namespace
}  // namespace berth::control_test
