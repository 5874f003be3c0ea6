// What a workload was let in for is what its status says: pods, devices, CPU and memory. Jobs and
// Workloads that are changed later get no more, and no less.
#include <fmt/format.h>

#include "controller/tenant_rig.h"

namespace berth::control_test {
namespace {

class AdmittedRig : public TenantRig {
 public:
  void shape(const std::string& name, int parallelism) {
    world.merge(job_path("evil", name),
                fmt::format(R"({{"spec":{{"parallelism":{}}}}})", parallelism));
  }
  std::string elastic() const {
    return ", labels: {kueue.x-k8s.io/queue-name: lq}, annotations: {kueue.x-k8s.io/elastic-job: "
           "'true'}";
  }
  // The pods that the Workload of a Job was let in with; 0: it was not.
  std::int64_t admitted_of(const std::string& job) {
    const auto list = get("/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads");
    for (const text::Value& w : list.root().find("items")->items()) {
      const std::string name(w.find("metadata")->find("name")->string());
      if (!name.starts_with("job-" + job + "-")) continue;
      const text::Value* status = w.find("status");
      const text::Value* admission = status == nullptr ? nullptr : status->find("admission");
      if (admission == nullptr) return 0;
      const text::Value& set = admission->find("podSetAssignments")->items()[0];
      return set.find("count")->as_int64().value_or(0);
    }
    return 0;
  }
  int running(const std::string& ns, const std::string& of = "") {
    int sum = 0;
    const auto list = get("/api/v1/namespaces/" + ns + "/pods");
    for (const text::Value& pod : list.root().find("items")->items()) {
      if (!pod.find("metadata")->find("name")->string().starts_with(of)) continue;
      sum += pod.find("status")->find("phase")->string() == "Running" ? 1 : 0;
    }
    return sum;
  }
};

TEST(AsAdmitted, AnElasticJobThatShrankAsksAgainForWhatItGaveBack) {
  AdmittedRig rig;
  for (const char* name : {"e1", "e2", "e3"}) {
    rig.job("evil", name, 4, 1, rig.elastic());
    ASSERT_TRUE(rig.until([&] { return rig.running("evil") == 4; })) << name;
    rig.shape(name, 0);
    ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 0; })) << name;
    rig.run(5 * kSecond);
  }
  for (const char* name : {"e1", "e2", "e3"}) rig.shape(name, 4);
  for (int second = 0; second < 20; ++second) {
    rig.run(kSecond);
    ASSERT_LE(rig.held("evil"), 4) << second;
  }
  EXPECT_EQ(rig.held("evil"), 4) << "and one of them gets it";
}

TEST(AsAdmitted, AnElasticJobGrowsAndShrinksWhileItRuns) {
  AdmittedRig rig;
  rig.job("evil", "e", 1, 1, rig.elastic());
  ASSERT_TRUE(rig.until([&] { return rig.running("evil") == 1; }));
  rig.shape("e", 3);
  EXPECT_TRUE(rig.until([&] { return rig.running("evil") == 3; }, 30 * kSecond));
  const auto used = [&] {
    const auto queue = rig.get("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-evil");
    return text::to_json(*queue.root().find("status")->find("flavorsUsage"));
  };
  EXPECT_TRUE(rig.until([&] { return used().find(R"("total":"3")") != std::string::npos; }))
      << used();
  rig.job("evil", "waits", 3, 1);
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.running("evil"), 3);
  rig.shape("e", 1);
  EXPECT_TRUE(rig.until([&] { return rig.running("evil", "waits-") == 3; }, 60 * kSecond));
  EXPECT_EQ(rig.running("evil", "e-"), 1);
  EXPECT_EQ(rig.held("evil"), 4);
}

TEST(AsAdmitted, ASliceThatIsTooLargeIsTakenBack) {
  AdmittedRig rig;
  rig.job("evil", "e", 2, 1, rig.elastic());
  ASSERT_TRUE(rig.until([&] { return rig.running("evil") == 2; }));
  rig.shape("e", 12);
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.running("evil"), 2);
  // What is held is held: a pod that ends is replaced while the slice waits.
  const auto list = rig.get("/api/v1/namespaces/evil/pods");
  for (const text::Value& pod : list.root().find("items")->items()) {
    if (pod.find("status")->find("phase")->string() != "Running") continue;
    rig.remove("/api/v1/namespaces/evil/pods/" +
               std::string(pod.find("metadata")->find("name")->string()));
    break;
  }
  EXPECT_TRUE(rig.until([&] { return rig.running("evil") == 2; }, 60 * kSecond));
  rig.shape("e", 4);
  EXPECT_TRUE(rig.until([&] { return rig.running("evil") == 4; }, 30 * kSecond));
  rig.shape("e", 12);
  rig.run(5 * kSecond);
  rig.shape("e", 1);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 1; }, 30 * kSecond));
  rig.job("evil", "other", 3, 1);
  EXPECT_TRUE(rig.until([&] { return rig.running("evil", "other-") == 3; }, 30 * kSecond));
}

TEST(AsAdmitted, WhatIsAddedToAWorkloadLaterIsNotLetIn) {
  AdmittedRig rig;
  rig.apply("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: evil, name: own}}");
  const std::string owner = fmt::format(
      "ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: own, uid: {}, controller: "
      "true}}]",
      rig.get("/api/v1/namespaces/evil/configmaps/own").at("metadata.uid"));
  rig.apply(
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w, namespace: evil, " +
      owner +
      "}, spec: {queueName: lq, podSets: [{name: main, count: 8, template: {spec: {schedulerName: "
      "berth, containers: [{name: c, image: i, resources: {limits: {}}}]}}}]}}");
  const std::string path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads/w";
  ASSERT_TRUE(rig.until([&] { return rig.condition(path, "Admitted") == "True"; }));
  rig.world.call("PATCH", path,
                 R"([{"op":"add","path":"/spec/podSets/0/template/spec/containers/0/resources",)"
                 R"("value":{"limits":{"nvidia.com/gpu":"2"}}}])",
                 "application/json-patch+json");
  for (int i = 0; i < 7; ++i) {
    rig.apply(fmt::format(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: p{}, namespace: evil, {}}}, spec: "
        "{{schedulerName: berth, containers: [{{name: c, image: i, resources: {{limits: "
        "{{nvidia.com/gpu: 2}}}}}}]}}}}",
        i, owner));
  }
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.held("evil"), 0);
}

TEST(AsAdmitted, AJobThatIsChangedWhileItWaitsStartsAsItIs) {
  AdmittedRig rig;
  rig.job("evil", "first", 4, 1);
  ASSERT_TRUE(rig.until([&] { return rig.running("evil") == 4; }));
  rig.job("evil", "second", 2, 1);
  rig.run(5 * kSecond);
  rig.shape("second", 4);
  rig.run(5 * kSecond);
  rig.remove(rig.job_path("evil", "first") + "?propagationPolicy=Background");
  EXPECT_TRUE(rig.until([&] { return rig.running("evil", "second-") == 4; }, 30 * kSecond));
  EXPECT_EQ(rig.admitted_of("second"), 4);
  rig.job("evil", "third", 2, 1);
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.held("evil"), 4);
}

TEST(AsAdmitted, WhoWasLetInWithFewerPodsGetsThemAllTheNextTime) {
  AdmittedRig rig;
  rig.job("evil", "j", 6, 1,
          ", labels: {kueue.x-k8s.io/queue-name: lq}, annotations: "
          "{kueue.x-k8s.io/job-min-parallelism: '2'}");
  ASSERT_TRUE(rig.until([&] { return rig.running("evil") == 4; }));
  const auto list = rig.get("/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads");
  const std::string path =
      "/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads/" +
      std::string(list.root().find("items")->items()[0].find("metadata")->find("name")->string());
  rig.world.merge(path, R"({"spec":{"active":false}})");
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 0; }));
  rig.world.call("PATCH", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-evil",
                 R"([{"op":"replace","path":"/spec/resourceGroups/0/flavors/0/resources/0/)"
                 R"(nominalQuota","value":6}])",
                 "application/json-patch+json");
  rig.world.merge(path, R"({"spec":{"active":true}})");
  EXPECT_TRUE(rig.until([&] { return rig.running("evil") == 6; }, 30 * kSecond));
}

// Sidecars may come on top; whole machines may not.
TEST(AsAdmitted, CpuBeyondWhatWasLetInNeedsRoomInTheQueue) {
  AdmittedRig rig;
  rig.world.call(
      "PATCH", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-evil",
      R"([{"op":"replace","path":"/spec/resourceGroups/0","value":{"coveredResources":)"
      R"(["nvidia.com/gpu","cpu"],"flavors":[{"name":"f","resources":[)"
      R"({"name":"nvidia.com/gpu","nominalQuota":4},{"name":"cpu","nominalQuota":10}]}]}}])",
      "application/json-patch+json");
  rig.apply(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: evil, labels: "
      "{kueue.x-k8s.io/queue-name: lq}}, spec: {suspend: true, parallelism: 4, managedBy: "
      "evil.dev/x, template: {spec: {schedulerName: berth, restartPolicy: Never, containers: "
      "[{name: c, image: i, resources: {requests: {cpu: 1m}}}]}}}}");
  ASSERT_TRUE(rig.until([&] { return rig.admitted_of("j") == 4; }));
  rig.run(61 * kSecond);  // places are kept no longer
  const auto pod = [&](const std::string& name, const std::string& cpu) {
    rig.apply(fmt::format(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: evil, ownerReferences: "
        "[{{apiVersion: batch/v1, kind: Job, name: j, uid: {}, controller: true}}]}}, spec: "
        "{{schedulerName: berth, containers: [{{name: c, image: i, resources: {{requests: {{cpu: "
        "{}}}}}}}]}}}}",
        name, rig.get(rig.job_path("evil", "j")).at("metadata.uid"), cpu));
  };
  pod("sidecar", "200m");
  pod("large", "60");
  for (int i = 0; i < 3; ++i) pod(fmt::format("some-{}", i), "4");
  rig.run(15 * kSecond);
  EXPECT_EQ(rig.running("evil"), 3) << "10 CPUs: that one, and two of 4";
  EXPECT_NE(rig.get("/api/v1/namespaces/evil/pods/sidecar").at("spec.nodeName"), "");
}

TEST(AsAdmitted, AJobThatWaitsMovesWithItsLabels) {
  AdmittedRig rig;
  rig.apply(
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: other, namespace: "
      "evil}, spec: {clusterQueue: q-good}}");
  rig.job("evil", "first", 4, 1);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
  rig.job("evil", "moves", 2, 1);
  rig.run(5 * kSecond);
  EXPECT_EQ(rig.held("evil"), 4);
  rig.world.merge(rig.job_path("evil", "moves"),
                  R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"other"}}})");
  EXPECT_TRUE(rig.until([&] { return rig.held("evil") == 6; }, 30 * kSecond));
}

// ---- groups of pods -----------------------------------------------------------------------------

class GroupRig : public AdmittedRig {
 public:
  void member(const std::string& name, int gpus = 1) {
    apply(fmt::format(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: evil, labels: "
        "{{kueue.x-k8s.io/queue-name: lq, kueue.x-k8s.io/pod-group-name: g}}, annotations: "
        "{{kueue.x-k8s.io/pod-group-total-count: '2'}}}}, spec: {{schedulerName: berth, "
        "containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: {}}}}}}}]}}}}",
        name, gpus));
  }
  void replace(const std::string& old, const std::string& fresh) {
    remove("/api/v1/namespaces/evil/pods/" + old);
    until([&] { return get("/api/v1/namespaces/evil/pods/" + old).status == 404; });
    member(fresh);
    EXPECT_TRUE(until([&] { return on_node(fresh); }, 30 * kSecond)) << fresh;
    run(5 * kSecond);
  }
  bool on_node(const std::string& pod) {
    return !get("/api/v1/namespaces/evil/pods/" + pod).at("spec.nodeName").empty();
  }
};

TEST(AsAdmitted, EveryMemberOfAGroupMayBeReplaced) {
  GroupRig rig;
  rig.member("g-0");
  rig.member("g-1");
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 2; }));
  rig.replace("g-0", "g-2");
  rig.replace("g-1", "g-3");
  rig.replace("g-2", "g-4");
  const std::string path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads/g";
  EXPECT_EQ(rig.condition(path, "Admitted"), "True") << "its object is there as long as they are";
  EXPECT_EQ(rig.condition(path, "Finished"), "");
  // Those that are more than it was let in with wait as pods of their own.
  for (int i = 5; i < 9; ++i) rig.member(fmt::format("g-{}", i));
  rig.run(15 * kSecond);
  EXPECT_EQ(rig.held("evil"), 4);
  rig.start();
  rig.run(15 * kSecond);
  EXPECT_EQ(rig.held("evil"), 4);
}

TEST(AsAdmitted, AGroupMayNameTheQueueForItsPods) {
  AdmittedRig rig;
  rig.define("scheduling.x-k8s.io", "v1alpha1", "PodGroup", true);
  rig.run(31 * kSecond);
  rig.job("evil", "first", 3, 1);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 3; }));
  rig.apply(
      "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: pg, namespace: "
      "evil, labels: {kueue.x-k8s.io/queue-name: lq}}, spec: {minMember: 2}}");
  for (int i = 0; i < 2; ++i) {
    rig.apply(fmt::format(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: pg-{}, namespace: evil, labels: "
        "{{scheduling.x-k8s.io/pod-group: pg}}}}, spec: {{schedulerName: berth, containers: "
        "[{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]}}}}",
        i));
  }
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.held("evil"), 3);
  rig.remove(rig.job_path("evil", "first") + "?propagationPolicy=Background");
  EXPECT_TRUE(rig.until([&] { return rig.held("evil") == 2; }, 30 * kSecond)) << "in its turn";
}

TEST(AsAdmitted, APodOfAnOldNameWaitsLikeAnyOther) {
  AdmittedRig rig;
  const auto pod = [&](const std::string& name) {
    rig.apply(
        "{apiVersion: v1, kind: Pod, metadata: {namespace: evil, labels: "
        "{kueue.x-k8s.io/queue-name: lq}, name: " +
        name +
        "}, spec: {schedulerName: berth, containers: [{name: c, image: i, resources: {limits: "
        "{nvidia.com/gpu: 2}}}]}}");
  };
  pod("s-0");
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 2; }));
  const auto list = rig.get("/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads");
  const std::string workload(
      list.root().find("items")->items()[0].find("metadata")->find("name")->string());
  rig.world.merge("/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads/" + workload,
                  R"({"metadata":{"finalizers":["kueue.x-k8s.io/resource-in-use"]}})");
  rig.remove("/api/v1/namespaces/evil/pods/s-0");
  rig.run(2 * kSecond);
  rig.job("evil", "fills", 2, 1);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 2; }));
  pod("s-0");
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.held("evil"), 2) << "its Workload has not given back the rest";
}

TEST(AsAdmitted, APodRunsInTheFlavorThatItsWorkloadWasLetInWith) {
  AdmittedRig rig;
  for (int i = 0; i < 4; ++i) {
    rig.world.merge(
        fmt::format("/api/v1/nodes/m-{}", i),
        fmt::format(R"({{"metadata":{{"labels":{{"t":"{}"}}}}}})", i == 0 ? "cheap" : "dear"));
  }
  rig.world.merge("/apis/kueue.x-k8s.io/v1beta2/resourceflavors/f",
                  R"({"spec":{"nodeLabels":{"t":"cheap"}}})");
  rig.apply(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: evil, labels: "
      "{kueue.x-k8s.io/queue-name: lq}}, spec: {suspend: true, parallelism: 4, managedBy: "
      "evil.dev/x, template: {spec: {schedulerName: berth, restartPolicy: Never, containers: "
      "[{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}");
  ASSERT_TRUE(rig.until([&] { return rig.admitted_of("j") == 4; }));
  const auto pod = [&](const std::string& name, const std::string& spec) {
    rig.apply(fmt::format(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: evil, ownerReferences: "
        "[{{apiVersion: batch/v1, kind: Job, name: j, uid: {}, controller: true}}]}}, spec: "
        "{{schedulerName: berth, {}containers: [{{name: c, image: i, resources: {{limits: "
        "{{nvidia.com/gpu: 1}}}}}}]}}}}",
        name, rig.get(rig.job_path("evil", "j")).at("metadata.uid"), spec));
  };
  pod("dear-0", "nodeSelector: {t: dear}, ");
  rig.run(5 * kSecond);
  EXPECT_EQ(rig.held("evil"), 0) << "neither there nor in the place of one that may be here";
  rig.run(61 * kSecond);  // places are kept no longer
  pod("dear-1", "nodeSelector: {t: dear}, ");
  pod("plain", "");
  rig.run(15 * kSecond);
  EXPECT_EQ(rig.held("evil"), 1);
  EXPECT_EQ(rig.get("/api/v1/namespaces/evil/pods/plain").at("spec.nodeName"), "m-0");
}

}  // namespace
}  // namespace berth::control_test
