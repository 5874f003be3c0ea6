// Jobs and pods that wait in queues.
#include <algorithm>

#include "controller/rig.h"

namespace berth::control_test {
namespace {

constexpr const char* kQueues =
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}, spec: "
    "{nodeLabels: {tier: train}}}\n"
    "---\n"
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: cq}, spec: "
    "{namespaceSelector: {}, preemption: {withinClusterQueue: LowerPriority}, resourceGroups: "
    "[{coveredResources: [nvidia.com/gpu, cpu], flavors: [{name: f, resources: [{name: "
    "nvidia.com/gpu, nominalQuota: 4}, {name: cpu, nominalQuota: 100}]}]}]}}\n"
    "---\n"
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: "
    "default}, spec: {clusterQueue: cq}}\n";

constexpr const char* kTrainNodes =
    "pools: [{name: m, count: 2, model: NVIDIA-H100-80GB-HBM3, gpus: 4, labels: {tier: train}}]";

class QueueRig : public Rig {
 public:
  explicit QueueRig(const char* queues = kQueues) : Rig(kTrainNodes) {
    define_kueue();
    apply(queues);
    run(31 * kSecond);  // the collections are found
  }
  void job(const std::string& name, int pods, int gpus, const std::string& run_seconds,
           const std::string& priority = "") {
    apply(fmt::format(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {0}, namespace: default, labels: "
        "{{kueue.x-k8s.io/queue-name: lq}}}}, spec: {{parallelism: {1}, completions: {1}, "
        "template: {{metadata: {{annotations: {{sim.berth.dev/run-seconds: '{3}'}}}}, spec: "
        "{{schedulerName: berth, restartPolicy: Never{4}, containers: [{{name: c, image: i, "
        "resources: {{limits: {{nvidia.com/gpu: {2}}}}}}}]}}}}}}}}",
        name, pods, gpus, run_seconds, priority.empty() ? "" : ", priorityClassName: " + priority));
  }
  void slow_patches(const char* path, std::int64_t by) {
    world.server->set_fault_hook([path, by](const text::HttpRequest& request) {
      const bool slow = request.method == "PATCH" && request.target.find(path) != std::string::npos;
      return slow ? sim::ApiFault{.kind = sim::ApiFault::Kind::kDelay, .delay_ns = by}
                  : sim::ApiFault{};
    });
  }
  sim::TestAnswer get_job(const std::string& name) {
    return get("/apis/batch/v1/namespaces/default/jobs/" + name);
  }
  // The path of the Workload that stands for a Job; "" while there is none.
  std::string workload_of(const std::string& job) {
    const auto list = get("/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads");
    for (const text::Value& w : list.root().find("items")->items()) {
      const std::string_view name = w.find("metadata")->find("name")->string();
      if (name.starts_with("job-" + job + "-")) {
        return "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/" + std::string(name);
      }
    }
    return {};
  }
  // What is known of a Job when a test fails.
  std::string story(const std::string& job) {
    std::string out = get_job(job).body + "\n" + get(workload_of(job)).body + "\n";
    for (const std::string& line : lines.decided) out += line + "\n";
    for (const std::string& line : lines.logged) out += line + "\n";
    return out + brain->controller.summary().trouble;
  }
  std::string workload_condition(const std::string& job, const std::string& type,
                                 const std::string& field = "status") {
    const std::string path = workload_of(job);
    return path.empty() ? "" : condition(path, type, field);
  }
};

TEST(ControllerQueues, TheLifeOfAQueuedJob) {
  QueueRig rig;
  rig.start();
  rig.job("first", 2, 2, "30");
  rig.run(2 * kSecond);  // the queue goes by whole seconds
  rig.job("second", 1, 4, "30");
  ASSERT_TRUE(rig.until([&] { return rig.workload_condition("first", "PodsReady") == "True"; }))
      << rig.story("first");
  EXPECT_EQ(rig.workload_condition("first", "QuotaReserved"), "True");
  EXPECT_EQ(rig.workload_condition("first", "Admitted"), "True");
  const auto first = rig.get_job("first");
  EXPECT_EQ(first.at("spec.suspend"), "false");
  EXPECT_EQ(first.at("spec.template.spec.nodeSelector.tier"), "train");
  EXPECT_EQ(rig.get(rig.workload_of("first")).at("status.admission.clusterQueue"), "cq");
  ASSERT_TRUE(rig.until([&] { return rig.get_job("second").at("spec.suspend") == "true"; }));
  ASSERT_TRUE(
      rig.until([&] { return rig.workload_condition("second", "QuotaReserved") == "False"; }));
  EXPECT_EQ(rig.workload_condition("second", "QuotaReserved", "reason"), "WaitingForQuota");
  const std::string queue = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/cq";
  ASSERT_TRUE(rig.until([&] { return rig.get(queue).at("status.admittedWorkloads") == "1"; }));
  EXPECT_EQ(rig.get(queue).at("status.pendingWorkloads"), "1");
  EXPECT_EQ(rig.condition(queue, "Active"), "True");
  ASSERT_TRUE(rig.until([&] { return rig.workload_condition("first", "Finished") == "True"; }));
  EXPECT_EQ(rig.workload_condition("first", "Finished", "reason"), "Succeeded");
  ASSERT_TRUE(rig.until([&] { return rig.workload_condition("second", "PodsReady") == "True"; }));
  const std::uint64_t acts = rig.brain->writes("act"), status = rig.brain->writes("status");
  rig.run(15 * kSecond);
  EXPECT_EQ(rig.brain->writes("act"), acts) << "nothing is written without a change";
  EXPECT_EQ(rig.brain->writes("status"), status);
}

// Its Workload, then its queue: whoever cannot read them knows at least that they hold.
TEST(ControllerQueues, WhatCannotBeReadGoesOnHoldingQuota) {
  QueueRig rig;
  rig.start();
  rig.job("one", 1, 4, "100000");
  ASSERT_TRUE(rig.until([&] { return rig.workload_condition("one", "Admitted") == "True"; }));
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 1; }));
  rig.job("two", 1, 4, "100000");
  rig.annotate(rig.workload_of("one"), R"({"kueue.x-k8s.io/priority-boost":"x"})");
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.bound().size(), 1u) << rig.story("two");
  EXPECT_NE(rig.workload_condition("two", "QuotaReserved"), "True");
  rig.annotate(rig.workload_of("one"), R"({"kueue.x-k8s.io/priority-boost":null})");
  const std::string queue = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/cq";
  rig.world.merge(queue, R"({"spec":{"queueingStrategy":"Sideways"}})");
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.bound().size(), 1u) << rig.story("two");
  EXPECT_EQ(rig.workload_condition("one", "Admitted"), "True");
  rig.remove("/apis/batch/v1/namespaces/default/jobs/one");
  rig.run(10 * kSecond);
  EXPECT_NE(rig.workload_condition("two", "QuotaReserved"), "True") << "nothing new is let in";
  rig.world.merge(queue, R"({"spec":{"queueingStrategy":"StrictFIFO"}})");
  EXPECT_TRUE(rig.until([&] { return rig.workload_condition("two", "Admitted") == "True"; }))
      << rig.story("two");
}

TEST(ControllerQueues, AHigherPriorityEvictsInTwoPhases) {
  QueueRig rig;
  rig.apply(
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, "
      "value: 1000}");
  rig.start();
  rig.job("low", 2, 2, "10000");
  ASSERT_TRUE(rig.until([&] { return rig.workload_condition("low", "PodsReady") == "True"; }));
  rig.job("high", 1, 4, "20", "high");
  ASSERT_TRUE(rig.until([&] { return rig.workload_condition("low", "Evicted") == "True"; }));
  EXPECT_EQ(rig.workload_condition("low", "Evicted", "reason"), "Preempted");
  ASSERT_TRUE(rig.until([&] { return rig.workload_condition("high", "PodsReady") == "True"; }));
  EXPECT_EQ(rig.workload_condition("low", "QuotaReserved"), "False");
  EXPECT_EQ(rig.get_job("low").at("spec.suspend"), "true");
  ASSERT_TRUE(rig.until([&] { return rig.workload_condition("high", "Finished") == "True"; }));
  ASSERT_TRUE(rig.until([&] { return rig.workload_condition("low", "PodsReady") == "True"; }))
      << "it starts again";
  EXPECT_EQ(rig.workload_condition("low", "Evicted"), "False");
}

TEST(ControllerQueues, QuotaBelowUsageLetsHoldersRun) {
  QueueRig rig;
  rig.start();
  rig.job("a", 1, 4, "60");
  ASSERT_TRUE(rig.until([&] { return rig.workload_condition("a", "PodsReady") == "True"; }));
  rig.world.merge("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/cq",
                  R"({"spec":{"resourceGroups":[{"coveredResources":["nvidia.com/gpu"],"flavors":)"
                  R"([{"name":"f","resources":[{"name":"nvidia.com/gpu","nominalQuota":2}]}]}]}})");
  rig.job("b", 1, 2, "5");
  rig.run(20 * kSecond);
  EXPECT_EQ(rig.workload_condition("a", "Admitted"), "True");
  EXPECT_EQ(rig.workload_condition("b", "QuotaReserved"), "False");
  ASSERT_TRUE(
      rig.until([&] { return rig.workload_condition("b", "Finished") == "True"; }, 180 * kSecond));
}

TEST(ControllerQueues, AdmissionChecksComeFirst) {
  QueueRig rig(
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}\n---\n"
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {name: ok}, spec: "
      "{controllerName: x}, status: {conditions: [{type: Active, status: 'True', reason: A, "
      "message: m, lastTransitionTime: '2026-01-01T00:00:00Z'}]}}\n---\n"
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: cq}, spec: "
      "{namespaceSelector: {}, admissionChecksStrategy: {admissionChecks: [{name: ok}]}, "
      "resourceGroups: [{coveredResources: [nvidia.com/gpu], flavors: [{name: f, resources: "
      "[{name: nvidia.com/gpu, nominalQuota: 4}]}]}]}}\n---\n"
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: "
      "default}, spec: {clusterQueue: cq}}\n");
  const auto active = rig.world.merge(
      "/apis/kueue.x-k8s.io/v1beta2/admissionchecks/ok/status",
      R"({"status":{"conditions":[{"type":"Active","status":"True","reason":"A","message":"m",)"
      R"("lastTransitionTime":"2026-01-01T00:00:00Z"}]}})");
  ASSERT_EQ(active.status, 200) << active.body;
  rig.start();
  rig.job("a", 1, 1, "5");
  ASSERT_TRUE(rig.until([&] { return rig.workload_condition("a", "QuotaReserved") == "True"; }));
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.workload_condition("a", "Admitted"), "False");
  EXPECT_EQ(rig.get_job("a").at("spec.suspend"), "true");
  const std::string path = rig.workload_of("a");
  EXPECT_NE(rig.get(path).at("status.admissionChecks").find("Pending"), std::string::npos);
  rig.world.merge(path + "/status",
                  R"({"status":{"admissionChecks":[{"name":"ok","state":"Ready","message":"",)"
                  R"("lastTransitionTime":"2026-01-01T00:00:00Z"}]}})");
  ASSERT_TRUE(rig.until([&] { return rig.workload_condition("a", "Finished") == "True"; }));
}

TEST(ControllerQueues, PodGroupsWithGatesAreLetGo) {
  QueueRig rig;
  rig.start();
  rig.job("first", 1, 4, "20");
  ASSERT_TRUE(rig.until([&] { return rig.workload_condition("first", "PodsReady") == "True"; }));
  const std::string meta =
      "labels: {kueue.x-k8s.io/queue-name: lq, kueue.x-k8s.io/pod-group-name: pg}, annotations: "
      "{kueue.x-k8s.io/pod-group-total-count: '2', sim.berth.dev/run-seconds: '5'}";
  const std::string gate = "schedulingGates: [{name: kueue.x-k8s.io/admission}]";
  rig.pod("pg0", 2, gate, meta);
  rig.pod("pg1", 2, gate, meta);
  rig.run(5 * kSecond);
  EXPECT_EQ(rig.node_of("pg0"), "");
  const std::string path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/pg";
  ASSERT_TRUE(rig.until([&] { return rig.condition(path, "Admitted") == "True"; }))
      << rig.get(path).body << rig.get_pod("pg0").body << rig.story("first");
  ASSERT_TRUE(rig.until([&] { return rig.condition(path, "Finished") == "True"; }));
  EXPECT_EQ(rig.phase_of("pg0"), "Succeeded");
}

TEST(ControllerQueues, QueuesAreLeftToKueueWhileItRuns) {
  QueueRig rig;
  rig.apply("{apiVersion: v1, kind: Namespace, metadata: {name: kueue-system}}");
  rig.apply(
      "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: "
      "c1f6bfd2.kueue.x-k8s.io, namespace: kueue-system}, spec: {holderIdentity: k, "
      "leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.000000Z'}}");
  rig.start();
  rig.job("a", 1, 1, "5");
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.workload_of("a"), "");
  EXPECT_NE(rig.brain->controller.summary().trouble.find("Kueue"), std::string::npos);
  rig.run(10 * kSecond);  // the lease is not renewed: Kueue is gone
  ASSERT_TRUE(rig.until([&] { return rig.workload_condition("a", "Finished") == "True"; }));
}

TEST(ControllerQueues, RestartsInTheMiddleOfAQueuedLife) {
  QueueRig rig;
  Random random(3);
  rig.job("a", 2, 1, "20");
  rig.run(2 * kSecond);
  rig.job("b", 2, 2, "20");
  const auto done = [&] {
    return rig.workload_condition("a", "Finished") == "True" &&
           rig.workload_condition("b", "Finished") == "True";
  };
  for (int i = 0; i < 40 && !done(); ++i) {
    rig.start({}, 300 + static_cast<std::uint64_t>(i));
    rig.run(random.between(0, 4 * kSecond));
  }
  rig.start();
  ASSERT_TRUE(rig.until(done, 300 * kSecond));
  EXPECT_EQ(rig.get_job("a").at("status.succeeded"), "2");
}

TEST(ControllerQueues, SinglePodsOfAQueueWaitForQuota) {
  QueueRig rig;
  rig.start();
  const std::string meta =
      "labels: {kueue.x-k8s.io/queue-name: lq}, annotations: {sim.berth.dev/run-seconds: '20'}";
  const std::string gate = "schedulingGates: [{name: kueue.x-k8s.io/admission}]";
  rig.pod("first", 3, gate, meta);
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("first") == "Running"; }))
      << rig.get_pod("first").body;
  rig.pod("second", 3, gate, meta);
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.node_of("second"), "") << "four GPUs of quota, three are used";
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("second") == "Succeeded"; }))
      << rig.get_pod("second").body;
  EXPECT_EQ(rig.get_pod("second").at("spec.nodeSelector.tier"), "train");
}

TEST(ControllerQueues, AHolderThatMayNotBeDeletedIsNotAskedAllTheTime) {
  QueueRig rig;
  rig.apply(
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: "
      "1000}");
  rig.start();
  const std::string meta = "labels: {kueue.x-k8s.io/queue-name: lq}";
  const std::string gate = "schedulingGates: [{name: kueue.x-k8s.io/admission}]";
  rig.pod("low", 4, gate, meta);
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("low") == "Running"; }));
  rig.brain->transport.refuses = [](const text::HttpRequest& request) {
    return request.method == "DELETE" && request.target.find("/pods/low") != std::string::npos ? 422
                                                                                               : 0;
  };
  rig.pod("high", 4, gate + ", priorityClassName: high", meta);
  const std::uint64_t before = rig.brain->writes("act");
  rig.run(120 * kSecond);
  EXPECT_EQ(rig.node_of("high"), "");
  EXPECT_GE(rig.brain->transport.refusals, 1);
  EXPECT_LE(rig.brain->transport.refusals, 20);
  EXPECT_LE(rig.brain->writes("act") - before, 60u);
  EXPECT_EQ(rig.brain->controller.summary().evicted, 0u);
  rig.brain->transport.refuses = nullptr;
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("high") == "Running"; }, 900 * kSecond));
}

TEST(ControllerQueues, NoPodIsBoundBeforeItsGateIsGone) {
  QueueRig rig;
  rig.start();
  rig.slow_patches("/pods/", kSecond);
  rig.pod("a", 1, "schedulingGates: [{name: kueue.x-k8s.io/admission}]",
          "labels: {kueue.x-k8s.io/queue-name: lq}");
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("a") == "Running"; })) << rig.get_pod("a").body;
  EXPECT_EQ(rig.brain->writes("bind"), 1U);
}

TEST(ControllerQueues, APlaceIsHeldWhileTheAdmissionIsWritten) {
  QueueRig rig;
  rig.start();
  rig.slow_patches("/workloads/", 3 * kSecond);
  rig.pod("a", 1, "schedulingGates: [{name: kueue.x-k8s.io/admission}]",
          "labels: {kueue.x-k8s.io/queue-name: lq}");
  rig.run(2 * kSecond);
  ASSERT_EQ(rig.node_of("a"), "") << "its admission is on its way";
  for (int i = 0; i < 8; ++i) rig.pod("b" + std::to_string(i), 1);
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("a") == "Running"; })) << rig.get_pod("a").body;
  rig.run(5 * kSecond);
  std::set<std::string> held = {rig.node_of("a") + rig.gpus_of("a")};
  int bound = 0;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "b" + std::to_string(i);
    if (rig.node_of(name).empty()) continue;
    ++bound;
    EXPECT_TRUE(held.insert(rig.node_of(name) + rig.gpus_of(name)).second) << name;
  }
  EXPECT_EQ(bound, 7) << "of 8 GPUs one was promised";
}

constexpr const char* kPodOfOthers =
    "{{apiVersion: v1, kind: Pod, metadata: {{name: {0}, namespace: default, labels: {{{1}}}, "
    "annotations: {{{2}}}}}, spec: {{schedulerName: {3}, restartPolicy: Never, containers: "
    "[{{name: "
    "c, image: i, resources: {{limits: {{nvidia.com/gpu: 2}}}}}}]}}}}";

TEST(ControllerQueues, QueuesOfVolcanoUnderItsName) {
  Rig rig(kTwoNodes);
  rig.define("scheduling.volcano.sh", "v1beta1", "Queue", false);
  rig.define("scheduling.volcano.sh", "v1beta1", "PodGroup", true);
  rig.apply(
      "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: red}, spec: "
      "{capability: {nvidia.com/gpu: 4}, deserved: {nvidia.com/gpu: 4}}}");
  for (const char* group : {"a", "b"}) {
    rig.apply(fmt::format(
        "{{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {{name: {}, "
        "namespace: default}}, spec: {{minMember: 2, queue: red}}}}",
        group));
  }
  rig.run(31 * kSecond);
  rig.start({.scheduler_names = {"berth", "volcano"}});
  const auto member = [&](const std::string& group, int i) {
    rig.apply(fmt::format(kPodOfOthers, group + std::to_string(i), "",
                          "scheduling.k8s.io/group-name: " + group, "volcano"));
  };
  for (int i = 0; i < 2; ++i) member("a", i);
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 2; }));
  for (int i = 0; i < 2; ++i) member("b", i);
  rig.run(20 * kSecond);
  EXPECT_EQ(rig.bound().size(), 2u) << "its queue has four GPUs";
  const std::string group = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/";
  ASSERT_TRUE(rig.until([&] { return rig.get(group + "a").at("status.phase") == "Running"; }));
  EXPECT_EQ(rig.get(group + "b").at("status.phase"), "Inqueue");
  rig.delete_pod("a0");
  rig.delete_pod("a1");
  ASSERT_TRUE(rig.until([&] { return !rig.node_of("b1").empty() && !rig.node_of("b0").empty(); }));
}

TEST(ControllerQueues, QueuesOfKaiUnderItsName) {
  Rig rig(kTwoNodes);
  rig.define("scheduling.run.ai", "v2", "Queue", false);
  rig.apply(
      "{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: red}, spec: {resources: "
      "{gpu: {quota: 2, limit: 2, overQuotaWeight: 1}}}}");
  rig.run(31 * kSecond);
  rig.start({.scheduler_names = {"berth", "kai-scheduler"}});
  for (const char* pod : {"one", "two"}) {
    rig.apply(fmt::format(kPodOfOthers, pod, "kai.scheduler/queue: red", "", "kai-scheduler"));
    rig.run(5 * kSecond);
  }
  EXPECT_EQ(rig.bound().size(), 1u) << "its queue may use two GPUs";
  EXPECT_FALSE(rig.node_of("one").empty());
  rig.delete_pod("one");
  ASSERT_TRUE(rig.until([&] { return !rig.node_of("two").empty(); }));
}

// A group that runs grows one pod at a time, and only as far as its queue has quota.
TEST(ControllerQueues, PodsBeyondTheMinimumOfAGroupNeedQuota) {
  Rig rig("pools: [{name: m, count: 4, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]");
  rig.define("scheduling.volcano.sh", "v1beta1", "Queue", false);
  rig.define("scheduling.volcano.sh", "v1beta1", "PodGroup", true);
  rig.apply(
      "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: red}, spec: "
      "{capability: {nvidia.com/gpu: 6}, deserved: {nvidia.com/gpu: 6}}}\n---\n"
      "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: a, namespace: "
      "default}, spec: {minMember: 2, queue: red}}");
  rig.run(31 * kSecond);
  rig.start({.scheduler_names = {"berth", "volcano"}, .max_writes_at_once = 1});
  for (int i = 0; i < 5; ++i) {
    rig.apply(fmt::format(kPodOfOthers, "a" + std::to_string(i), "",
                          "scheduling.k8s.io/group-name: a", "volcano"));
  }
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() >= 2; }));
  for (int i = 0; i < 300; ++i) {
    rig.run(kSecond / 10);
    ASSERT_LE(rig.bound().size(), 3u) << "six GPUs of quota, two a pod";
  }
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 3; }));
  rig.start({.scheduler_names = {"berth", "volcano"}}, 99);  // and so after a restart
  rig.run(30 * kSecond);
  EXPECT_EQ(rig.bound().size(), 3u);
  rig.world.merge("/apis/scheduling.volcano.sh/v1beta1/queues/red",
                  R"({"spec":{"capability":{"nvidia.com/gpu":"10"}}})");
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 5; }));
}

TEST(ControllerQueues, KaiGroupsSayWhatTheyHoldAndWhyTheyWait) {
  Rig rig(kTwoNodes);
  rig.define("scheduling.run.ai", "v2", "Queue", false);
  rig.define("scheduling.run.ai", "v2alpha2", "PodGroup", true);
  rig.apply(
      "{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: red}, spec: {resources: "
      "{gpu: {quota: 4, limit: 4, overQuotaWeight: 1}}}}");
  for (const char* group : {"a", "b"}) {
    rig.apply(fmt::format(
        "{{apiVersion: scheduling.run.ai/v2alpha2, kind: PodGroup, metadata: {{name: {}, "
        "namespace: default}}, spec: {{minMember: 2, queue: red}}}}",
        group));
  }
  rig.run(31 * kSecond);
  rig.start({.scheduler_names = {"berth", "kai-scheduler"}});
  const auto members = [&](const std::string& group) {
    for (int i = 0; i < 2; ++i) {
      rig.apply(fmt::format(kPodOfOthers, group + std::to_string(i), "kai.scheduler/queue: red",
                            "pod-group-name: " + group, "kai-scheduler"));
    }
  };
  members("a");
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 2; }));
  members("b");
  const std::string group = "/apis/scheduling.run.ai/v2alpha2/namespaces/default/podgroups/";
  ASSERT_TRUE(rig.until([&] { return rig.get(group + "a").at("status.running") == "2"; }));
  EXPECT_NE(rig.get(group + "a").body.find(R"("allocated":{"cpu":"0","nvidia.com/gpu":"4"})") !=
                    std::string::npos ||
                rig.get(group + "a").body.find(R"("allocated":{"nvidia.com/gpu":"4"})") !=
                    std::string::npos,
            false)
      << rig.get(group + "a").body;
  ASSERT_TRUE(rig.until([&] {
    return rig.get(group + "b").body.find("UnschedulableOnNodePool") != std::string::npos;
  })) << rig.get(group + "b").body;
  EXPECT_EQ(rig.get(group + "b").at("status.pending"), "2");
  EXPECT_EQ(rig.get(group + "a").body.find("UnschedulableOnNodePool"), std::string::npos);
  const std::string version = rig.get(group + "b").at("metadata.resourceVersion");
  rig.run(60 * kSecond);
  EXPECT_EQ(rig.get(group + "b").at("metadata.resourceVersion"), version) << "only on change";
  rig.delete_pod("a0");
  rig.delete_pod("a1");
  ASSERT_TRUE(rig.until([&] { return rig.get(group + "b").at("status.running") == "2"; }));
  EXPECT_EQ(rig.get(group + "b").body.find("UnschedulableOnNodePool"), std::string::npos);
}

// Queues a and b of four GPUs each; what one does not use the other may borrow.
std::string two_queues() {
  std::string out =
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}\n";
  for (const char* name : {"a", "b"}) {
    out += fmt::format(
        "---\n{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {{name: {0}}}, "
        "spec: {{namespaceSelector: {{}}, cohortName: all, preemption: {{reclaimWithinCohort: "
        "Any}}, resourceGroups: [{{coveredResources: [nvidia.com/gpu, cpu], flavors: [{{name: f, "
        "resources: [{{name: nvidia.com/gpu, nominalQuota: 4}}, {{name: cpu, nominalQuota: "
        "50}}]}}]}}]}}}}\n---\n{{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: "
        "{{name: {0}, namespace: default}}, spec: {{clusterQueue: {0}}}}}\n",
        name);
  }
  return out;
}

// Four heads of queue b want back what a borrowed: their victims leave together, and only those.
TEST(ControllerQueues, HeadsBehindTheFirstGetRoomInTheSameRound) {
  QueueRig rig(two_queues().c_str());
  rig.start();
  const std::string gate = "schedulingGates: [{name: kueue.x-k8s.io/admission}]";
  for (int i = 0; i < 8; ++i) {
    rig.pod(fmt::format("a{}", i), 1, gate + ", terminationGracePeriodSeconds: 30",
            "labels: {kueue.x-k8s.io/queue-name: a}");
  }
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 8; }));
  rig.run(5 * kSecond);
  // Nothing leaves: what is evicted now was decided while all victims still hold their quota.
  rig.world.server->set_fault_hook([](const text::HttpRequest& request) {
    return request.method == "DELETE"
               ? sim::ApiFault{.kind = sim::ApiFault::Kind::kDelay, .delay_ns = 20 * kSecond}
               : sim::ApiFault{};
  });
  for (int i = 0; i < 4; ++i) {
    rig.pod(fmt::format("b{}", i), 1, gate, "labels: {kueue.x-k8s.io/queue-name: b}");
  }
  const auto evicted = [&rig] {
    int out = 0;
    const auto list = rig.get("/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads");
    for (const text::Value& w : list.root().find("items")->items()) {
      const std::string name(w.find("metadata")->find("name")->string());
      out += rig.condition("/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/" + name,
                           "Preempted") == "True"
                 ? 1
                 : 0;
    }
    return out;
  };
  rig.run(10 * kSecond);
  EXPECT_EQ(evicted(), 4);
  EXPECT_EQ(rig.node_of("b0"), "") << "nobody has left yet";
  const auto bound = [&rig](char queue) {
    const auto all = rig.bound();
    return std::count_if(all.begin(), all.end(), [queue](const auto& p) { return p[0] == queue; });
  };
  ASSERT_TRUE(rig.until([&] { return bound('b') == 4; }));
  rig.run(60 * kSecond);
  EXPECT_EQ(bound('a'), 4) << "no more than its share is taken back";
  EXPECT_EQ(bound('b'), 4);
}

TEST(ControllerQueues, ManyThatWaitAreToldAFewAtATime) {
  QueueRig rig;
  rig.start();
  const std::string gate = "schedulingGates: [{name: kueue.x-k8s.io/admission}]";
  rig.pod("holder", 4, gate, "labels: {kueue.x-k8s.io/queue-name: lq}");
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 1; }));
  rig.pod("never", 5, gate, "labels: {kueue.x-k8s.io/queue-name: lq}");
  rig.pod("waits", 1, gate, "labels: {kueue.x-k8s.io/queue-name: lq}");
  const auto told = [&rig](const std::string& pod) {
    const auto list = rig.get("/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads");
    for (const text::Value& w : list.root().find("items")->items()) {
      const std::string name(w.find("metadata")->find("name")->string());
      if (!name.starts_with("pod-" + pod)) continue;
      return rig.condition("/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/" + name,
                           "QuotaReserved", "reason");
    }
    return std::string();
  };
  ASSERT_TRUE(rig.until([&] { return told("never") == "ExceedsMaxQuota"; }, kSecond / 2));
  EXPECT_EQ(told("waits"), "") << "it may be over in a moment";
  ASSERT_TRUE(rig.until([&] { return told("waits") == "WaitingForQuota"; }, 5 * kSecond));
}

// Kueue put its finalizer on them and is gone: they would stay for ever.
TEST(ControllerQueues, PodsThatEndLoseKueuesFinalizer) {
  QueueRig rig;
  rig.apply("{apiVersion: v1, kind: Namespace, metadata: {name: kueue-system}}");
  rig.apply(
      "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: "
      "c1f6bfd2.kueue.x-k8s.io, namespace: kueue-system}, spec: {holderIdentity: k, "
      "leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.000000Z'}}");
  const std::string meta =
      "labels: {kueue.x-k8s.io/queue-name: lq}, finalizers: [kueue.x-k8s.io/managed, other.io/x]";
  for (const char* name : {"waits", "runs", "ends"}) {
    const bool ends = std::string_view(name) == "ends";
    rig.pod(name, name[0] == 'w' ? 5 : 1, "",
            meta + (ends ? ", annotations: {sim.berth.dev/run-seconds: '1'}" : ""));
  }
  rig.delete_pod("waits");
  rig.start();
  const auto held = [&rig](const char* pod) {
    return rig.get_pod(pod).body.find("kueue.x-k8s.io/managed\"") != std::string::npos;
  };
  rig.run(10 * kSecond);
  EXPECT_TRUE(held("waits")) << "Kueue may be at work";
  ASSERT_TRUE(rig.until([&] { return !held("waits"); }));
  EXPECT_NE(rig.get_pod("waits").body.find("other.io/x"), std::string::npos) << "not ours to take";
  ASSERT_TRUE(rig.until([&] { return rig.phase_of("ends") == "Succeeded" && !held("ends"); }));
  rig.run(20 * kSecond);
  EXPECT_TRUE(held("runs"));
  rig.delete_pod("runs");
  ASSERT_TRUE(rig.until([&] { return !held("runs"); }));
}

// Admitted, its pods not there yet, and the controller is another one: nobody takes its places.
TEST(ControllerQueues, PlacesOfAnAdmittedJobSurviveARestart) {
  QueueRig rig;
  rig.start();
  rig.run(2 * kSecond);
  rig.work.reset();  // nobody makes pods
  rig.job("j", 2, 2, "10000");
  ASSERT_TRUE(rig.until([&] { return rig.workload_condition("j", "Admitted") == "True"; }));
  ASSERT_TRUE(rig.until([&] { return rig.get_job("j").at("spec.suspend") == "false"; }));
  EXPECT_NE(rig.workload_condition("j", "berth.dev/Placed", "message").find("\"main\":[{\"node\":"),
            std::string::npos);
  for (int i = 0; i < 4; ++i) rig.pod(fmt::format("rest{}", i), 2);
  rig.start({}, 400);
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 2; }));
  rig.run(5 * kSecond);
  EXPECT_EQ(rig.bound().size(), 2u) << "four GPUs are kept";
  rig.start({}, 500);
  rig.run(5 * kSecond);
  rig.start_work();
  ASSERT_TRUE(rig.until([&] { return rig.workload_condition("j", "PodsReady") == "True"; }))
      << rig.story("j");
  // Its pods were ready once: what is written down keeps no room after them.
  rig.start({}, 600);
  rig.run(kSecond);
  rig.remove("/apis/batch/v1/namespaces/default/jobs/j");
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 4; }));
}

// ---- namespaces that require a queue ----

// The webhook is away: who comes without a queue waits for one, and is told so.
TEST(ControllerQueues, WhatNamesNoQueueWaitsWhereOneIsRequired) {
  QueueRig rig;
  rig.start();
  const std::string ns = "/api/v1/namespaces/default";
  rig.world.call("PATCH", ns, R"({"metadata":{"labels":{"berth.dev/queue-required":"true"}}})",
                 "application/merge-patch+json");
  rig.run(2 * kSecond);
  for (int i = 0; i < 8; ++i) rig.pod("free-" + std::to_string(i), 1);
  rig.apply(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: default}, spec: {template: "
      "{spec: {schedulerName: berth, restartPolicy: Never, containers: [{name: c, image: i, "
      "resources: {limits: {nvidia.com/gpu: 1}}}]}}}}");
  rig.run(30 * kSecond);
  EXPECT_EQ(rig.bound(), std::vector<std::string>{}) << "quota is not opt-in";
  EXPECT_EQ(rig.get_job("j").at("spec.suspend"), "true");
  EXPECT_EQ(rig.condition(ns + "/pods/free-0", "PodScheduled", "message").substr(0, 14),
            "QueueRequired:");
  EXPECT_EQ(rig.workload_of("j"), "") << "an object's queue could not be changed";
  const auto events = rig.get("/apis/events.k8s.io/v1/namespaces/default/events");
  EXPECT_NE(events.body.find("Job/j names none: add the label"), std::string::npos);
  // They are told what to do, and do it.
  constexpr const char* kLabel = R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"lq"}}})";
  for (int i = 0; i < 8; ++i) {
    rig.world.call("PATCH", ns + "/pods/free-" + std::to_string(i), kLabel,
                   "application/merge-patch+json");
  }
  rig.run(60 * kSecond);
  EXPECT_EQ(rig.bound().size(), 4u) << "the quota";
  for (int i = 0; i < 8; ++i) rig.delete_pod("free-" + std::to_string(i));
  rig.world.call("PATCH", "/apis/batch/v1/namespaces/default/jobs/j", kLabel,
                 "application/merge-patch+json");
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 1; }));
  // The rule goes, and so does the wait.
  rig.pod("late", 1);
  rig.run(10 * kSecond);
  EXPECT_EQ(rig.node_of("late"), "");
  rig.world.call("PATCH", ns, R"({"metadata":{"labels":{"berth.dev/queue-required":null}}})",
                 "application/merge-patch+json");
  ASSERT_TRUE(rig.until([&] { return !rig.node_of("late").empty(); }));
}

// Somebody labels a pod with another team's queue.
TEST(ControllerQueues, AnotherTeamsQueueIsDenied) {
  QueueRig rig;
  rig.define("scheduling.run.ai", "v2", "Queue", false);
  rig.apply(
      "{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}\n---\n"
      "{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: red, annotations: "
      "{berth.dev/namespaces: team-a}}, spec: {resources: {gpu: {quota: 4, limit: 4, "
      "overQuotaWeight: 1}}}}\n---\n"
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: theirs, namespace: "
      "team-a}, spec: {clusterQueue: cq}}");
  rig.run(31 * kSecond);
  rig.start();
  rig.pod("kai", 1, "", "labels: {kai.scheduler/queue: red}");
  rig.pod("kueue", 1, "", "labels: {kueue.x-k8s.io/queue-name: theirs}");
  rig.pod("both", 1, "", "labels: {kueue.x-k8s.io/queue-name: red, kai.scheduler/queue: red}");
  rig.run(60 * kSecond);
  EXPECT_EQ(rig.bound(), std::vector<std::string>{});
  rig.world.call("PATCH", "/apis/scheduling.run.ai/v2/queues/red",
                 R"({"metadata":{"annotations":{"berth.dev/namespaces":"team-a,default"}}})",
                 "application/merge-patch+json");
  ASSERT_TRUE(rig.until([&] { return !rig.node_of("kai").empty(); }));
}

// A pod that stands in a queue as it is has no Workload that would say why it waits, and no
// autoscaler is to make room for it.
TEST(ControllerQueues, APodThatWaitsForItsTurnIsToldWhy) {
  QueueRig rig;
  rig.start();
  rig.apply(
      "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default, labels: "
      "{kueue.x-k8s.io/queue-name: lq}}, spec: {schedulerName: berth, containers: [{name: c, "
      "image: "
      "i, resources: {limits: {nvidia.com/gpu: 64}}}]}}");
  const std::string path = "/api/v1/namespaces/default/pods/p";
  ASSERT_TRUE(rig.until([&] { return rig.condition(path, "PodScheduled") == "False"; }));
  EXPECT_EQ(rig.condition(path, "PodScheduled", "reason"), "WaitsInQueue");
  EXPECT_TRUE(rig.condition(path, "PodScheduled", "message").starts_with("ExceedsMaxQuota"));
}

}  // namespace
}  // namespace berth::control_test
