// What is told to leave leaves, also where the one who should end it does not; and what is changed
// while it runs takes nothing of others.
#include <fmt/format.h>

#include "controller/tenant_rig.h"
#include "text/path.h"

namespace berth::control_test {
namespace {

constexpr const char* kQueueOfEvil = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-evil";

class LeftRig : public TenantRig {
 public:
  // From the queues' side: whatever runs is to end.
  void drain() { world.merge(kQueueOfEvil, R"({"spec":{"stopPolicy":"HoldAndDrain"}})"); }
  std::string managed(const std::string& name, int pods) const {
    return fmt::format(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {}, namespace: evil, labels: "
        "{{kueue.x-k8s.io/queue-name: lq}}}}, spec: {{suspend: true, parallelism: {}, managedBy: "
        "evil.example/mine, template: {{spec: {{schedulerName: berth, restartPolicy: Never, "
        "containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]}}}}}}}}",
        name, pods);
  }
  bool is_admitted(const std::string& job) {
    const auto list = get("/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads");
    for (const text::Value& w : at(list.root(), "items").items()) {
      if (!text_at(w, "metadata.name").starts_with("job-" + job + "-")) continue;
      if (find(w, "status.admission") != nullptr) return true;
    }
    return false;
  }
  // Workloads of the namespace that have not ended.
  int live_workloads() {
    int sum = 0;
    const auto list = get("/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads");
    for (const text::Value& w : at(list.root(), "items").items()) {
      const text::Value* done = find_type(at(w, "status.conditions"), "Finished");
      sum += done != nullptr && text_at(*done, "status") == "True" ? 0 : 1;
    }
    return sum;
  }
};

TEST(LeftRunning, PodsOfAJobThatAnotherManages) {
  LeftRig rig;
  rig.apply(rig.managed("mine", 2));
  ASSERT_TRUE(rig.until([&] { return rig.is_admitted("mine"); }));
  for (const char* name : {"p0", "p1"}) rig.owned_pod(name, "Job", "mine", 1);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 2; }));
  rig.drain();
  EXPECT_TRUE(rig.until([&] { return rig.held("evil") == 0; }, 60 * kSecond));
}

TEST(LeftRunning, PodsOfAJobThatIsLeavingAndStays) {
  LeftRig rig;
  rig.job("evil", "stays", 2, 1,
          ", labels: {kueue.x-k8s.io/queue-name: lq}, finalizers: [evil.example/stay]");
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 2; }));
  rig.remove(rig.job_path("evil", "stays") + "?propagationPolicy=Background");
  rig.drain();
  EXPECT_TRUE(rig.until([&] { return rig.held("evil") == 0; }, 60 * kSecond));
}

TEST(LeftRunning, AJobsOwnControllerHasTimeToEndItsPods) {
  LeftRig rig;
  rig.job("evil", "plain", 2, 1);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 2; }));
  rig.drain();
  EXPECT_TRUE(rig.until([&] { return rig.held("evil") == 0; }, 8 * kSecond));
  EXPECT_EQ(rig.get(rig.job_path("evil", "plain")).at("spec.suspend"), "true");
}

// A thousandth of each of four GPUs leaves nobody a whole one.
TEST(LeftRunning, PartsOfManyDevicesAreChargedEach) {
  LeftRig rig;
  for (int i = 0; i < 3; ++i) {
    rig.apply(fmt::format(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: f{}, namespace: evil, annotations: "
        "{{gpu-fraction: '0.001', gpu-fraction-num-devices: '4'}}, labels: "
        "{{kueue.x-k8s.io/queue-name: lq}}}}, spec: {{schedulerName: berth, containers: [{{name: "
        "c, image: i}}]}}}}",
        i));
  }
  rig.run(15 * kSecond);
  int bound = 0;
  const auto list = rig.get("/api/v1/namespaces/evil/pods");
  for (const text::Value& pod : at(list.root(), "items").items()) {
    bound += text_at(pod, "spec.nodeName").empty() ? 0 : 1;
  }
  EXPECT_EQ(bound, 1) << "a quota of four";
}

// Whoever changes his mind twice in a moment has one Workload, and one number of pods.
TEST(LeftRunning, AnElasticJobThatChangesTwiceInAMoment) {
  for (int gap_ms = 0; gap_ms <= 600; gap_ms += 60) {
    SCOPED_TRACE(gap_ms);
    LeftRig rig;
    rig.job("evil", "e", 1, 1,
            ", labels: {kueue.x-k8s.io/queue-name: lq}, annotations: "
            "{kueue.x-k8s.io/elastic-job: 'true'}");
    ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 1; }));
    const std::string job = rig.job_path("evil", "e");
    rig.world.merge(job, R"({"spec":{"parallelism":4}})");
    rig.run(gap_ms * kSecond / 1000);
    rig.world.merge(job, R"({"spec":{"parallelism":3}})");
    EXPECT_TRUE(rig.until([&] { return rig.held("evil") == 3; }, 60 * kSecond));
    rig.run(15 * kSecond);
    EXPECT_EQ(rig.live_workloads(), 1);
    const std::string generation = rig.get(job).at("metadata.generation");
    const auto queue = rig.get(kQueueOfEvil);
    EXPECT_NE(text::to_json(at(queue.root(), "status.flavorsUsage")).find(R"("total":"3")"),
              std::string::npos);
    rig.run(10 * kSecond);
    EXPECT_EQ(rig.get(job).at("metadata.generation"), generation) << "it rests";
    EXPECT_EQ(rig.held("evil"), 3);
  }
}

TEST(LeftRunning, WhatAPodIsResizedToIsNotTakenFromOthers) {
  LeftRig rig;
  for (const char* queue : {"q-evil", "q-good"}) {
    rig.world.call("PATCH", std::string("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/") + queue,
                   R"([{"op":"add","path":"/spec/cohortName","value":"all"},)"
                   R"({"op":"replace","path":"/spec/resourceGroups/0","value":{"coveredResources":)"
                   R"(["nvidia.com/gpu","cpu"],"flavors":[{"name":"f","resources":[)"
                   R"({"name":"nvidia.com/gpu","nominalQuota":4},)"
                   R"({"name":"cpu","nominalQuota":10,"borrowingLimit":2}]}]}}])",
                   "application/json-patch+json");
  }
  rig.apply(
      "{apiVersion: v1, kind: Pod, metadata: {name: small, namespace: evil, labels: "
      "{kueue.x-k8s.io/queue-name: lq}}, spec: {schedulerName: berth, containers: [{name: c, "
      "image: i, resources: {requests: {cpu: '1'}, limits: {nvidia.com/gpu: 1}}}]}}");
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 1; }));
  rig.world.call("PATCH", "/api/v1/namespaces/evil/pods/small/resize",
                 R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"100"}}}]}})",
                 "application/strategic-merge-patch+json");
  const auto small = rig.get("/api/v1/namespaces/evil/pods/small");
  ASSERT_EQ(text_at(small.root(), "spec.containers[0].resources.requests.cpu"), "100");
  rig.apply(
      "{apiVersion: v1, kind: Pod, metadata: {name: eight, namespace: good, labels: "
      "{kueue.x-k8s.io/queue-name: lq}}, spec: {schedulerName: berth, containers: [{name: c, "
      "image: i, resources: {requests: {cpu: '8'}, limits: {nvidia.com/gpu: 1}}}]}}");
  EXPECT_TRUE(rig.until([&] { return rig.held("good") == 1; }, 30 * kSecond));
}

}  // namespace
}  // namespace berth::control_test
