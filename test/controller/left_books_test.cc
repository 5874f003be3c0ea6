// Ways out of the books: what runs counts for what let it in, whatever its author writes into it
// later, until it is gone.
#include <fmt/format.h>

#include "controller/tenant_rig.h"

namespace berth::control_test {
namespace {

constexpr const char* kNothing = R"({"metadata":{"ownerReferences":null,"labels":null}})";

// Of the namespace, that are on nodes and not told to leave.
std::vector<std::string> running(TenantRig& rig, const std::string& ns) {
  std::vector<std::string> out;
  const auto list = rig.get("/api/v1/namespaces/" + ns + "/pods");
  for (const text::Value& pod : list.root().find("items")->items()) {
    const text::Value& meta = *pod.find("metadata");
    if (pod.find("spec")->find("nodeName") == nullptr ||
        meta.find("deletionTimestamp") != nullptr) {
      continue;
    }
    out.push_back("/api/v1/namespaces/" + ns + "/pods/" + std::string(meta.find("name")->string()));
  }
  return out;
}

void expect_at_most(TenantRig& rig, int gpus, int seconds, const std::string& when) {
  for (int second = 0; second < seconds; ++second) {
    rig.run(kSecond);
    ASSERT_LE(rig.held("evil"), gpus) << when << ", after " << second << " s";
  }
}

TEST(LeftBooks, APodThatDropsItsOwnerStillHasItsRoom) {
  TenantRig rig;
  rig.job("evil", "j", 1, 4);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
  for (int round = 0; round < 3; ++round) {
    for (const std::string& pod : running(rig, "evil")) rig.world.merge(pod, kNothing);
    rig.owned_pod(fmt::format("x{}", round), "Job", "j", 4);
    expect_at_most(rig, 4, 8, fmt::format("round {}", round));
  }
  // Nor is it free when the Job is gone, and leaves nothing to end it.
  rig.remove(rig.job_path("evil", "j"));
  rig.job("evil", "k", 1, 4);
  expect_at_most(rig, 4, 15, "after the Job");
}

TEST(LeftBooks, APodThatDropsItsOwnerLeavesWithItsWorkload) {
  TenantRig rig;
  for (const char* ns : {"evil", "good"}) {
    rig.world.merge(fmt::format("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-{}", ns),
                    R"({"spec":{"cohortName":"all","preemption":{"reclaimWithinCohort":"Any"}}})");
  }
  rig.job("evil", "j", 2, 4);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 8; }));
  for (const std::string& pod : running(rig, "evil")) rig.world.merge(pod, kNothing);
  rig.job("good", "g", 1, 4);
  EXPECT_TRUE(rig.until([&] { return rig.held("good") == 4; }, 60 * kSecond));
  EXPECT_LE(rig.held("evil"), 4);
}

TEST(LeftBooks, WhatIsLeavingHasItsRoomUntilItIsGone) {
  TenantRig rig;
  const auto post = [&](const std::string& name) {
    rig.apply(fmt::format(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {}, namespace: evil, labels: "
        "{{kueue.x-k8s.io/queue-name: lq}}}}, spec: {{suspend: true, parallelism: 1, template: "
        "{{metadata: {{annotations: {{sim.berth.dev/run-seconds: '100000', "
        "sim.berth.dev/stop-seconds: '80000'}}}}, spec: {{terminationGracePeriodSeconds: 80000, "
        "schedulerName: berth, restartPolicy: Never, containers: [{{name: c, image: i, resources: "
        "{{limits: {{nvidia.com/gpu: 4}}}}}}]}}}}}}}}",
        name));
  };
  post("j");
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
  for (const std::string& pod : running(rig, "evil")) rig.remove(pod);
  expect_at_most(rig, 4, 30, "the pod was deleted");
  for (const char* next : {"k", "l"}) {
    rig.remove(rig.job_path("evil", "j"));
    post(next);
    expect_at_most(rig, 4, 15, "the Job was deleted");
  }
  EXPECT_EQ(rig.held("evil"), 4) << "it is leaving still, or this shows nothing";
}

// The pod of the Job that is gone is held by itself, and the one that runs by its own workload:
// each once, or whoever preempts both takes one away twice.
TEST(LeftBooks, AJobUnderTheNameOfOneThatIsLeaving) {
  TenantRig rig;
  rig.world.merge("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-evil",
                  R"({"spec":{"preemption":{"withinClusterQueue":"LowerPriority"}}})");
  rig.world.call(
      "PATCH", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-evil",
      R"([{"op":"replace","path":"/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota",)"
      R"("value":8}])",
      "application/json-patch+json");
  rig.apply(
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: "
      "1000}");
  const std::string job =
      "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {0}, namespace: evil, labels: "
      "{{kueue.x-k8s.io/queue-name: lq}}}}, spec: {{suspend: true, parallelism: {1}, template: "
      "{{metadata: {{annotations: {{sim.berth.dev/run-seconds: '100000', "
      "sim.berth.dev/stop-seconds: '60'}}}}, spec: {{terminationGracePeriodSeconds: 60, "
      "schedulerName: berth, restartPolicy: Never{2}, containers: [{{name: c, image: i, "
      "resources: {{limits: {{nvidia.com/gpu: 4}}}}}}]}}}}}}}}";
  for (int i = 0; i < 2; ++i) {
    rig.apply(fmt::format(fmt::runtime(job), "same", 1, ""));
    ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4 + 4 * i; }, 30 * kSecond)) << i;
    if (i == 0) rig.remove(rig.job_path("evil", "same"));
    rig.run(2 * kSecond);
  }
  rig.apply(fmt::format(fmt::runtime(job), "urgent", 2, ", priorityClassName: high"));
  for (int second = 0; second < 200; ++second) {
    rig.run(kSecond);
    ASSERT_LE(rig.held("evil"), 8) << second;
  }
  EXPECT_EQ(rig.get(rig.job_path("evil", "urgent")).at("status.active"), "2");
  EXPECT_EQ(rig.get(rig.job_path("evil", "same")).at("spec.suspend"), "true");
}

TEST(LeftBooks, RoomThatIsOnItsWayIsWaitedFor) {
  TenantRig rig;
  rig.world.merge("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-evil",
                  R"({"spec":{"preemption":{"withinClusterQueue":"LowerPriority"}}})");
  rig.apply(
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: "
      "1000}");
  const std::string job =
      "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {0}, namespace: evil, labels: "
      "{{kueue.x-k8s.io/queue-name: lq}}}}, spec: {{suspend: true, parallelism: 1, template: "
      "{{metadata: {{annotations: {{sim.berth.dev/run-seconds: '100000', "
      "sim.berth.dev/stop-seconds: '20'}}}}, spec: {{terminationGracePeriodSeconds: 20, "
      "schedulerName: berth, restartPolicy: Never{1}, containers: [{{name: c, image: i, "
      "resources: {{limits: {{nvidia.com/gpu: 2}}}}}}]}}}}}}}}";
  rig.apply(fmt::format(fmt::runtime(job), "stays", ""));
  rig.apply(fmt::format(fmt::runtime(job), "goes", ""));
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
  rig.remove(rig.job_path("evil", "goes"));
  rig.run(kSecond);
  rig.apply(fmt::format(fmt::runtime(job), "urgent", ", priorityClassName: high"));
  expect_at_most(rig, 4, 40, "one is leaving");
  EXPECT_EQ(rig.get(rig.job_path("evil", "stays")).at("status.active"), "1");
  EXPECT_EQ(rig.get(rig.job_path("evil", "urgent")).at("status.active"), "1");
}

TEST(LeftBooks, AnOrphanCountsOnce) {
  TenantRig rig;
  rig.job("evil", "j", 1, 2);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 2; }));
  rig.world.call("DELETE", rig.job_path("evil", "j") + "?propagationPolicy=Orphan");
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.held("evil"), 2);
  rig.job("evil", "k", 1, 2);
  EXPECT_TRUE(rig.until([&] { return rig.held("evil") == 4; }, 30 * kSecond))
      << "there is quota for both";
}

TEST(LeftBooks, APodWhoseWorkloadIsDeletedCounts) {
  TenantRig rig;
  for (int i = 0; i < 3; ++i) {
    rig.apply(fmt::format(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: p{}, namespace: evil, labels: "
        "{{kueue.x-k8s.io/queue-name: lq}}}}, spec: {{schedulerName: berth, schedulingGates: "
        "[{{name: kueue.x-k8s.io/admission}}], containers: [{{name: c, image: i, resources: "
        "{{limits: {{nvidia.com/gpu: 4}}}}}}]}}}}",
        i));
    expect_at_most(rig, 4, 8, fmt::format("pod {}", i));
    const std::string path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads";
    const auto list = rig.get(path);
    for (const text::Value& one : list.root().find("items")->items()) {
      rig.remove(path + '/' + std::string(one.find("metadata")->find("name")->string()));
    }
  }
  EXPECT_EQ(rig.held("evil"), 4);
}

TEST(LeftBooks, LabelsOfSetsLetNobodyIn) {
  TenantRig rig;
  for (int i = 1; i <= 2; ++i) {
    rig.apply(fmt::format(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: p{0}, namespace: evil, labels: "
        "{{kueue.x-k8s.io/queue-name: lq, kueue.x-k8s.io/pod-group-name: g}}, annotations: "
        "{{kueue.x-k8s.io/pod-group-total-count: '2'}}}}, spec: {{schedulerName: berth, "
        "schedulingGates: [{{name: kueue.x-k8s.io/admission}}], containers: [{{name: c, image: i, "
        "resources: {{limits: {{nvidia.com/gpu: {1}}}}}}}]}}}}",
        i, 2 * i - 1));
  }
  // Two kinds of pods are two sets, and both start.
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }, 60 * kSecond));
  for (int round = 0; round < 2; ++round) {
    for (const std::string& pod : running(rig, "evil")) {
      rig.world.merge(pod, R"({"metadata":{"labels":{"kueue.x-k8s.io/podset":"none"}}})");
    }
    rig.owned_pod(fmt::format("y{}", round), "Pod", "p1", 3);
    expect_at_most(rig, 4, 8, "labelled");
  }
}

TEST(LeftBooks, PodsOfAGroupTakeTheRoomOfTheirKind) {
  TenantRig rig;
  const int gpus[] = {2, 1, 1};
  for (int i = 0; i < 3; ++i) {
    rig.apply(fmt::format(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: g-{0}, namespace: evil, labels: "
        "{{kueue.x-k8s.io/queue-name: lq, kueue.x-k8s.io/pod-group-name: g}}, annotations: "
        "{{kueue.x-k8s.io/pod-group-total-count: '3'}}}}, spec: {{schedulerName: berth, "
        "schedulingGates: [{{name: kueue.x-k8s.io/admission}}], containers: [{{name: c, image: i, "
        "resources: {{limits: {{nvidia.com/gpu: {1}}}}}}}]}}}}",
        (i + 1) % 3, gpus[i]));
  }
  EXPECT_TRUE(rig.until([&] { return rig.held("evil") == 4; }, 30 * kSecond));
}

TEST(LeftBooks, ASliceOfAnothersOwnerReplacesNothing) {
  TenantRig rig;
  rig.job("evil", "j", 1, 4);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
  const auto list = rig.get("/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads");
  const std::string name(
      list.root().find("items")->items()[0].find("metadata")->find("name")->string());
  rig.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: cm, namespace: evil}}");
  const std::string uid = rig.get("/api/v1/namespaces/evil/configmaps/cm").at("metadata.uid");
  const std::string owner = fmt::format(
      "ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: cm, uid: {}, controller: true}}]",
      uid);
  const std::string spec =
      "{restartPolicy: Never, schedulerName: berth, containers: [{name: c, image: i, resources: "
      "{limits: {nvidia.com/gpu: 4}, requests: {nvidia.com/gpu: 4}}}]}";
  rig.apply(fmt::format(
      "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {{name: s, namespace: evil, "
      "annotations: {{kueue.x-k8s.io/workload-slice-replacement-for: evil/{}}}, {}}}, spec: "
      "{{queueName: lq, active: true, podSets: [{{name: main, count: 1, template: {{spec: "
      "{}}}}}]}}}}",
      name, owner, spec));
  rig.apply(
      fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: x, namespace: evil, {}}}, "
                  "spec: {}}}",
                  owner, spec));
  expect_at_most(rig, 4, 20, "with a slice");
  EXPECT_EQ(rig.get(rig.job_path("evil", "j")).at("spec.suspend"), "false");
}

// What runs stands where a slice's pods stand only if they ask for the same.
TEST(LeftBooks, ASliceOfOtherPodsReplacesNothing) {
  TenantRig rig;
  for (const char* team : {"evil", "good"}) {
    rig.world.merge(
        fmt::format("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-{}", team),
        R"({"spec":{"resourceGroups":[{"coveredResources":["nvidia.com/gpu"],"flavors":)"
        R"([{"name":"f","resources":[{"name":"nvidia.com/gpu","nominalQuota":8}]}]}]}})");
  }
  rig.apply(
      "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: evil, labels: "
      "{kueue.x-k8s.io/queue-name: lq}}, spec: {schedulerName: berth, containers: [{name: c, "
      "image: i, resources: {limits: {nvidia.com/gpu: 4}}}]}}");
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
  const auto list = rig.get("/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads");
  const std::string name(
      list.root().find("items")->items()[0].find("metadata")->find("name")->string());
  rig.apply(fmt::format(
      "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {{name: s, namespace: evil, "
      "annotations: {{kueue.x-k8s.io/workload-slice-replacement-for: evil/{}}}, ownerReferences: "
      "[{{apiVersion: v1, kind: Pod, name: p, uid: {}, controller: true}}]}}, spec: "
      "{{queueName: lq, active: true, podSets: [{{name: main, count: 4, template: {{spec: "
      "{{containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: 2}}}}}}]}}}}}}]"
      "}}}}",
      name, rig.get("/api/v1/namespaces/evil/pods/p").at("metadata.uid")));
  rig.run(10 * kSecond);
  rig.job("good", "g", 8, 1);
  EXPECT_TRUE(rig.until([&] { return rig.held("good") == 8; }, 10 * kSecond));
}

// Whoever deletes his LocalQueue, or has another one lead to somebody else's queue, still pays for
// what runs.
TEST(LeftBooks, WhatRunsCountsWhereItWasLetInWithoutItsLocalQueue) {
  for (const bool redirected : {false, true}) {
    TenantRig rig;
    for (const char* team : {"evil", "good"}) {
      rig.world.merge(fmt::format("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-{}", team),
                      fmt::format(R"({{"spec":{{"namespaceSelector":{{"matchLabels":)"
                                  R"({{"kubernetes.io/metadata.name":"{}"}}}}}}}})",
                                  team));
    }
    rig.job("evil", "j", 1, 4);
    ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
    if (redirected) {
      rig.apply(
          "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: aaa, namespace: "
          "evil}, spec: {clusterQueue: q-good}}");
    }
    rig.remove("/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/localqueues/lq");
    rig.remove(rig.job_path("evil", "j") + "?propagationPolicy=Orphan");
    const auto list = rig.get("/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads");
    for (const text::Value& w : list.root().find("items")->items()) {
      rig.remove("/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads/" +
                 std::string(w.find("metadata")->find("name")->string()));
    }
    const auto used = [&](const std::string& team) {
      const auto queue = rig.get("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-" + team);
      return text::to_json(*queue.root().find("status")->find("flavorsUsage"));
    };
    rig.run(15 * kSecond);
    EXPECT_EQ(rig.held("evil"), 4);
    EXPECT_NE(used("evil").find(R"("total":"4")"), std::string::npos) << used("evil");
    EXPECT_NE(used("good").find(R"("total":"0")"), std::string::npos) << used("good");
    rig.job("good", "g", 1, 4);
    EXPECT_TRUE(rig.until([&] { return rig.held("good") == 4; }, 15 * kSecond)) << redirected;
  }
}

// One queue of both, in which higher priorities preempt.
TEST(LeftBooks, ThePriorityNumberOfATemplateIsNobodys) {
  TenantRig rig;
  rig.world.merge("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-good",
                  R"({"spec":{"preemption":{"withinClusterQueue":"LowerPriority"}}})");
  rig.apply(
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: shared, namespace: "
      "evil}, spec: {clusterQueue: q-good}}");
  rig.job("good", "g", 1, 4);
  ASSERT_TRUE(rig.until([&] { return rig.held("good") == 4; }));
  rig.apply(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: e, namespace: evil, labels: "
      "{kueue.x-k8s.io/queue-name: shared}}, spec: {suspend: true, parallelism: 1, template: "
      "{spec: {priority: 2000000000, schedulerName: berth, restartPolicy: Never, containers: "
      "[{name: c, image: i, resources: {limits: {nvidia.com/gpu: 4}}}]}}}}");
  rig.run(20 * kSecond);
  EXPECT_EQ(rig.held("good"), 4);
}

// ---- queues of others -----------------------------------------------------------------------

TEST(LeftBooks, AGroupThatRunsDoesNotBringInMoreByItsMinimum) {
  OthersRig rig;
  rig.apply(
      "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g, namespace: "
      "default}, spec: {minMember: 1, queue: red}}");
  const std::string member = "annotations: {scheduling.k8s.io/group-name: g}";
  rig.pod("m0", 1, "", member);
  ASSERT_TRUE(rig.until([&] { return rig.gpus_of_all() == 1; }));
  for (int i = 1; i < 4; ++i) rig.pod(fmt::format("m{}", i), 4, "", member);
  const std::string group = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/g";
  rig.world.merge(group, R"({"spec":{"minMember":4}})");
  rig.run(15 * kSecond);
  EXPECT_EQ(rig.gpus_of_all(), 1);
  rig.world.merge(group, R"({"spec":{"queue":"blue"}})");
  rig.pod("next", 4, "", "annotations: {scheduling.volcano.sh/queue-name: red}");
  rig.run(15 * kSecond);
  EXPECT_EQ(rig.gpus_of_all(), 5) << "one of the others in blue; in red what runs still counts";
  EXPECT_EQ(rig.node_of("next"), "");
}

TEST(LeftBooks, APodThatRunsCountsInTheQueueThatLetItIn) {
  OthersRig rig;
  for (int i = 0; i < 3; ++i) {
    rig.pod(fmt::format("k{}", i), 4, "", "labels: {kai.scheduler/queue: kai-red}");
  }
  ASSERT_TRUE(rig.until([&] { return rig.gpus_of_all() == 4; }));
  for (const char* queue : {R"("kai-blue")", "null"}) {
    for (int i = 0; i < 3; ++i) {
      const std::string name = fmt::format("k{}", i);
      if (rig.node_of(name).empty()) continue;
      rig.world.merge(
          "/api/v1/namespaces/default/pods/" + name,
          fmt::format(R"({{"metadata":{{"labels":{{"kai.scheduler/queue":{}}}}}}})", queue));
    }
    rig.run(15 * kSecond);
    EXPECT_EQ(rig.gpus_of_all(), 4) << queue;
  }
}

// The next leader knows by what was written with it who let a pod in: whom it names as its owner
// since has a workload, too, and that one holds nothing.
TEST(LeftBooks, ANewOwnerWithAWorkloadFreesNoRoom) {
  TenantRig rig;
  rig.job("evil", "j", 1, 4);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
  rig.apply(
      "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: evil, labels: "
      "{kueue.x-k8s.io/queue-name: lq}}, spec: {schedulerName: berth, containers: [{name: c, "
      "image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}}");
  rig.run(3 * kSecond);
  const auto list = rig.get("/api/v1/namespaces/evil/pods");
  for (const text::Value& pod : list.root().find("items")->items()) {
    if (pod["spec"].find("nodeName") == nullptr) continue;
    const auto answer = rig.world.merge(
        "/api/v1/namespaces/evil/pods/" + std::string(pod["metadata"]["name"].string()),
        R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":")" +
            rig.get("/api/v1/namespaces/evil/pods/p").at("metadata.uid") +
            R"(","controller":true}]}})");
    ASSERT_EQ(answer.status, 200) << answer.body;
  }
  rig.start();  // another leader
  rig.owned_pod("x", "Job", "j", 4);
  rig.run(30 * kSecond);
  EXPECT_EQ(rig.held("evil"), 4);
}

}  // namespace
}  // namespace berth::control_test
