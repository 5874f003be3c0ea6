// More than a queue gave: whatever a tenant writes, its pods are let in as far as their workload
// holds quota, and others' workloads are not its to end or to hold up.
#include <fmt/format.h>

#include "controller/tenant_rig.h"

namespace berth::control_test {
namespace {

TEST(BeyondQuota, PodsThatNameAnAdmittedOwnerHaveItsRoomAndNoMore) {
  TenantRig rig;
  rig.job("evil", "small", 1, 1);
  rig.apply(
      "{apiVersion: v1, kind: Pod, metadata: {name: root, namespace: evil, labels: "
      "{kueue.x-k8s.io/queue-name: lq}}, spec: {schedulerName: berth, schedulingGates: [{name: "
      "kueue.x-k8s.io/admission}], containers: [{name: c, image: i}]}}");
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 1; }));
  ASSERT_TRUE(rig.until(
      [&] { return !rig.get("/api/v1/namespaces/evil/pods/root").at("spec.nodeName").empty(); }));
  for (int i = 0; i < 3; ++i) {
    rig.owned_pod(fmt::format("of-pod-{}", i), "Pod", "root", 4);
    rig.owned_pod(fmt::format("of-job-{}", i), "Job", "small", 4);
    rig.owned_pod(fmt::format("more-{}", i), "Job", "small", 1);
  }
  rig.run(30 * kSecond);
  EXPECT_EQ(rig.held("evil"), 1);
}

// The places that were chosen for a Job's pods are taken as its pods come.
TEST(BeyondQuota, PodsThatNameAnOwnerWhoWaitsDoNotTakeItsPlacesForMore) {
  TenantRig rig;
  rig.job("evil", "before", 1, 4);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }, 30 * kSecond));
  rig.job("evil", "j", 4, 1);
  rig.run(5 * kSecond);
  for (int i = 0; i < 3; ++i) rig.owned_pod(fmt::format("p{}", i), "Job", "j", 4);
  rig.remove("/apis/batch/v1/namespaces/evil/jobs/before");
  for (int second = 0; second < 30; ++second) {
    rig.run(kSecond);
    EXPECT_LE(rig.held("evil"), 4) << "after " << second << " s";
  }
}

TEST(BeyondQuota, AJobThatGrowsIsLetInAsItWasAdmitted) {
  TenantRig rig;
  rig.job("evil", "j", 1, 1);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 1; }));
  rig.world.merge(rig.job_path("evil", "j"), R"({"spec":{"parallelism":12}})");
  rig.run(30 * kSecond);
  EXPECT_EQ(rig.held("evil"), 1);
}

TEST(BeyondQuota, AJobThatWasAdmittedInPartGetsThatPart) {
  TenantRig rig;
  rig.job("evil", "j", 8, 1,
          ", labels: {kueue.x-k8s.io/queue-name: lq}, annotations: "
          "{kueue.x-k8s.io/job-min-parallelism: '1'}");
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
  rig.world.merge(rig.job_path("evil", "j"), R"({"spec":{"parallelism":8}})");
  rig.run(30 * kSecond);
  EXPECT_EQ(rig.held("evil"), 4);
}

TEST(BeyondQuota, AJobThatWasChangedWhileItWaitedAsksForWhatItIsNow) {
  TenantRig rig;
  rig.job("evil", "first", 4, 1);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
  rig.job("evil", "changed", 1, 1);
  rig.run(5 * kSecond);
  rig.world.call("PATCH", rig.job_path("evil", "changed"),
                 R"([{"op":"replace","path":"/spec/template/spec/containers/0/resources",)"
                 R"("value":{"limits":{"nvidia.com/gpu":"4"}}}])",
                 "application/json-patch+json");
  rig.job("evil", "last", 1, 1);
  rig.run(2 * kSecond);
  rig.remove(rig.job_path("evil", "first"));
  rig.run(60 * kSecond);
  EXPECT_EQ(rig.held("evil"), 4) << "the changed one alone";
  const auto queue = rig.get("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-evil");
  EXPECT_NE(queue.body.find(R"("total":"4")"), std::string::npos) << queue.body;
}

TEST(BeyondQuota, AnElasticJobThatShrinksHoldsWhatHasYetToLeave) {
  TenantRig rig;
  rig.job("evil", "e", 4, 1,
          ", labels: {kueue.x-k8s.io/queue-name: lq}, annotations: {kueue.x-k8s.io/elastic-job: "
          "'true'}");
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
  const auto list = rig.get("/api/v1/namespaces/evil/pods");
  for (const text::Value& pod : list.root().find("items")->items()) {
    rig.world.merge(
        "/api/v1/namespaces/evil/pods/" + std::string(pod.find("metadata")->find("name")->string()),
        R"({"metadata":{"finalizers":["evil.example/stays"]}})");
  }
  for (int i = 0; i < 4; ++i) {  // nobody ends them
    rig.nodes->inject(
        {.node = fmt::format("m-{}", i), .kind = sim::FaultKind::kSilent, .for_ns = 25 * kSecond});
  }
  rig.world.merge(rig.job_path("evil", "e"), R"({"spec":{"parallelism":1}})");
  rig.job("evil", "next", 3, 1);
  for (int i = 0; i < 20; ++i) {
    rig.run(kSecond);
    ASSERT_LE(rig.held("evil"), 4) << i;
  }
}

TEST(BeyondQuota, AJobOfAnAdmittedJobHasItsRoomAndNoMore) {
  TenantRig rig;
  rig.job("evil", "parent", 1, 1);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 1; }));
  rig.job("evil", "child", 2, 4,
          fmt::format(", ownerReferences: [{{apiVersion: batch/v1, kind: Job, name: parent, uid: "
                      "{}, controller: true}}]",
                      rig.get(rig.job_path("evil", "parent")).at("metadata.uid")));
  rig.run(30 * kSecond);
  EXPECT_EQ(rig.held("evil"), 1);
}

TEST(BeyondQuota, AnothersWorkloadIsNotOnesToReplace) {
  TenantRig rig;
  rig.job("good", "runs", 2, 1);
  ASSERT_TRUE(rig.until([&] { return rig.held("good") == 2; }));
  rig.job("good", "waits", 3, 1);
  rig.run(5 * kSecond);
  const std::string all = "/apis/kueue.x-k8s.io/v1beta2/namespaces/good/workloads";
  int slices = 0;
  const auto list = rig.get(all);
  for (const text::Value& victim : list.root().find("items")->items()) {
    ++slices;
    rig.apply(fmt::format(
        "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {{name: slice-{0}, "
        "namespace: evil, annotations: {{kueue.x-k8s.io/workload-slice-replacement-for: "
        "good/{1}}}}}, spec: {{queueName: lq, podSets: [{{name: main, count: {2}, template: "
        "{{spec: "
        "{{containers: [{{name: c, image: i, resources: {{requests: {{nvidia.com/gpu: "
        "1}}}}}}]}}}}}}]}}}}",
        slices, victim.find("metadata")->find("name")->string(), slices == 1 ? 4 : 100));
  }
  ASSERT_EQ(slices, 2);
  rig.run(30 * kSecond);
  EXPECT_EQ(rig.held("good"), 2);
  EXPECT_EQ(rig.get(all).body.find("WorkloadSliceReplaced"), std::string::npos);
  rig.remove(rig.job_path("good", "runs"));
  ASSERT_TRUE(rig.until([&] { return rig.held("good") == 3; })) << rig.get(all).body;
}

TEST(BeyondQuota, AnnotationsOfARunningPodTakeAndGiveNoGpus) {
  TenantRig rig;
  for (int i = 0; i < 4; ++i) {  // without GPUs, one on each node
    rig.apply(fmt::format(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: z{0}, namespace: evil, labels: "
        "{{kueue.x-k8s.io/queue-name: lq}}}}, spec: {{schedulerName: berth, nodeSelector: "
        "{{kubernetes.io/hostname: m-{0}}}, schedulingGates: [{{name: "
        "kueue.x-k8s.io/admission}}], containers: [{{name: c, image: i}}]}}}}",
        i));
  }
  rig.apply(
      "{apiVersion: v1, kind: Pod, metadata: {name: part, namespace: evil, annotations: "
      "{gpu-fraction: '1', gpu-fraction-num-devices: '4'}, labels: {kueue.x-k8s.io/queue-name: "
      "lq}}, spec: {schedulerName: berth, schedulingGates: [{name: kueue.x-k8s.io/admission}], "
      "containers: [{name: c, image: i}]}}");
  const std::string pods = "/api/v1/namespaces/evil/pods/";
  ASSERT_TRUE(rig.until([&] { return !rig.get(pods + "part").at("spec.nodeName").empty(); }));
  for (int i = 0; i < 4; ++i) {
    const std::string pod = pods + fmt::format("z{}", i);
    ASSERT_TRUE(rig.until([&] { return !rig.get(pod).at("spec.nodeName").empty(); }));
    rig.annotate(pod, i % 2 == 0 ? R"({"gpu-fraction":"x","berth.dev/gpus":"0,1,2,3"})"
                                 : R"({"gpu-fraction":"1","gpu-fraction-num-devices":"4"})");
  }
  rig.annotate(pods + "part",
               R"({"gpu-fraction":"0.1","gpu-fraction-num-devices":"1","berth.dev/gpus":"0"})");
  rig.run(5 * kSecond);
  rig.job("good", "g", 1, 4);
  ASSERT_TRUE(rig.until([&] { return rig.held("good") == 4; })) << "three nodes are free";
  rig.run(10 * kSecond);
  const auto list = rig.get("/api/v1/namespaces/good/pods");
  EXPECT_NE(list.root().find("items")->items().begin()->find("spec")->find("nodeName")->string(),
            rig.get(pods + "part").at("spec.nodeName"));
}

TEST(BeyondQuota, LargeJobsOfOneNamespaceAreItsOwnTrouble) {
  TenantRig rig;
  for (int i = 0; i < 5; ++i) rig.job("evil", fmt::format("big{}", i), 50'000, 1);
  rig.run(5 * kSecond);
  rig.job("good", "g", 1, 1);
  ASSERT_TRUE(rig.until([&] { return rig.held("good") == 1; }, 20 * kSecond));
}

}  // namespace
}  // namespace berth::control_test
