// Who pays for a pod: the queue that let it in, whatever its author writes, before or later.
#include <fmt/format.h>

#include "controller/tenant_rig.h"

namespace berth::control_test {
namespace {

class ChargedRig : public TenantRig {
 public:
  ChargedRig() {
    apply(
        "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: shared, "
        "namespace: evil}, spec: {clusterQueue: q-good}}");
  }
  // meta: further fields of the metadata, with a comma before them.
  void evil_pod(const std::string& name, int gpus, const std::string& meta = "") {
    apply(
        fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {}, namespace: evil{}}}, "
                    "spec: {{schedulerName: berth, containers: [{{name: c, image: i, resources: "
                    "{{limits: {{nvidia.com/gpu: {}}}}}}}]}}}}",
                    name, meta, gpus));
  }
  // Of a kind that nobody knows, for pods and Workloads that its author makes himself.
  std::string owned_by(const std::string& map) {
    const std::string path = "/api/v1/namespaces/evil/configmaps/" + map;
    if (get(path).status == 404) {
      apply("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: evil, name: " + map + "}}");
    }
    return fmt::format(
        ", ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: {}, uid: {}, controller: "
        "true}}]",
        map, get(path).at("metadata.uid"));
  }
  void workload(const std::string& name, const std::string& meta, int pods, int gpus,
                const std::string& spec = "") {
    apply(fmt::format(
        "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {{name: {0}, namespace: "
        "evil{1}}}, spec: {{queueName: lq, {4}podSets: [{{name: main, count: {2}, template: "
        "{{spec: {{schedulerName: berth, containers: [{{name: c, image: i, resources: {{limits: "
        "{{nvidia.com/gpu: {3}}}}}}}]}}}}}}]}}}}",
        name, meta, pods, gpus, spec));
  }
  std::string workload_path(const std::string& name) {
    return "/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads/" + name;
  }
  bool admitted(const std::string& name) {
    return condition(workload_path(name), "Admitted") == "True";
  }
  void delete_workloads() {
    const auto list = get("/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads");
    for (const text::Value& w : list.root().find("items")->items()) {
      remove(workload_path(std::string(w.find("metadata")->find("name")->string())));
    }
  }
  void expect_at_most(int gpus, int seconds, const std::string& when) {
    for (int second = 0; second < seconds; ++second) {
      run(kSecond);
      ASSERT_LE(held("evil"), gpus) << when << ", after " << second << " s";
    }
  }
  // A JobSet of four pods with a GPU each that was let in; for what it is to own.
  std::string whole_of_four() {
    define("jobset.x-k8s.io", "v1alpha2", "JobSet", true);
    run(31 * kSecond);
    apply(
        "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: js, namespace: "
        "evil, labels: {kueue.x-k8s.io/queue-name: lq}}, spec: {suspend: true, replicatedJobs: "
        "[{name: w, replicas: 1, template: {spec: {parallelism: 4, completions: 4, template: "
        "{spec: {schedulerName: berth, restartPolicy: Never, containers: [{name: c, image: i, "
        "resources: {limits: {nvidia.com/gpu: 1}}}]}}}}}]}}");
    const std::string js = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/evil/jobsets/js";
    EXPECT_TRUE(until([&] { return get(js).at("spec.suspend") == "false"; }));
    return fmt::format(
        ", ownerReferences: [{{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: js, uid: "
        "{}, controller: true}}]",
        get(js).at("metadata.uid"));
  }
  void expect_good_gets_his() {
    job("good", "mine", 1, 4);
    EXPECT_TRUE(until([&] { return held("good") == 4; }, 30 * kSecond));
  }
};

TEST(Charged, APodOfTheNameOfAPlaceHasNone) {
  ChargedRig rig;
  for (int i = 0; i < 4; ++i) rig.evil_pod(fmt::format("j-{}", i), 1);
  rig.job("evil", "j", 4, 1);
  rig.expect_at_most(4, 20, "names of a Job's pods");
  EXPECT_EQ(rig.held("evil"), 4) << "its own pods run";
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(rig.get(fmt::format("/api/v1/namespaces/evil/pods/j-{}", i)).at("spec.nodeName"), "");
  }
}

// Nor is the place anybody's because of it: the workload's own pod is still to come.
TEST(Charged, APlaceIsKeptWhateverSitsSomewhereUnderItsName) {
  ChargedRig rig;
  for (const char* node : {"m-2", "m-3"}) {
    rig.world.merge(std::string("/api/v1/nodes/") + node, R"({"spec":{"unschedulable":true}})");
  }
  rig.workload("w", rig.owned_by("m"), 1, 4);
  ASSERT_TRUE(rig.until([&] { return rig.admitted("w"); }));
  rig.apply(
      "{apiVersion: v1, kind: Pod, metadata: {name: w-main-0, namespace: evil}, spec: "
      "{schedulerName: berth, nodeName: m-3, containers: [{name: c, image: i}]}}");
  rig.run(5 * kSecond);
  rig.job("good", "mine", 1, 4);
  ASSERT_TRUE(rig.until([&] { return rig.held("good") == 4; }));
  rig.evil_pod("real", 4, rig.owned_by("m"));
  EXPECT_TRUE(rig.until([&] { return rig.held("evil") == 4; }, 30 * kSecond));
  rig.run(5 * kSecond);
  EXPECT_EQ(rig.held("good"), 4) << "and runs";
}

TEST(Charged, WhatIsLeftOfAJobIsPaidByTheQueueThatLetItIn) {
  ChargedRig rig;
  for (int round = 0; round < 3; ++round) {
    const std::string name = fmt::format("o{}", round);
    rig.apply(fmt::format(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {}, namespace: evil, labels: "
        "{{kueue.x-k8s.io/queue-name: lq}}}}, spec: {{suspend: true, template: {{metadata: "
        "{{labels: "
        "{{kueue.x-k8s.io/queue-name: shared}}}}, spec: {{schedulerName: berth, restartPolicy: "
        "Never, containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: "
        "4}}}}}}]}}}}}}}}",
        name));
    rig.expect_at_most(4, 10, name);
    rig.remove(rig.job_path("evil", name) + "?propagationPolicy=Orphan");
    rig.delete_workloads();
  }
  EXPECT_EQ(rig.held("evil"), 4);
  rig.expect_good_gets_his();
  rig.start();  // by another leader
  rig.job("evil", "next", 1, 4);
  rig.expect_at_most(4, 15, "after a restart");
}

TEST(Charged, AGroupIsPaidByTheQueueOfTheGroup) {
  ChargedRig rig;
  rig.define("scheduling.x-k8s.io", "v1alpha1", "PodGroup", true);
  rig.run(31 * kSecond);
  for (int i = 0; i < 4; ++i) {
    rig.apply(fmt::format(
        "{{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {{name: g{0}, "
        "namespace: evil, labels: {{kueue.x-k8s.io/queue-name: shared}}}}, spec: {{minMember: "
        "1}}}}",
        i));
    rig.evil_pod(fmt::format("m{}", i), 4,
                 fmt::format(", labels: {{scheduling.x-k8s.io/pod-group: g{}}}", i));
    rig.expect_at_most(4, 12, fmt::format("group {}", i));
  }
  EXPECT_EQ(rig.held("evil"), 4) << "the first of them";
}

// A Workload stands for the group, and the group is not one more beside it.
TEST(Charged, AGroupWhosePodsNameTheQueueIsPaidOnce) {
  ChargedRig rig;
  rig.define("scheduling.x-k8s.io", "v1alpha1", "PodGroup", true);
  rig.run(31 * kSecond);
  for (int i = 0; i < 2; ++i) {
    rig.apply(fmt::format(
        "{{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {{name: h{0}, "
        "namespace: evil}}, spec: {{minMember: 2}}}}",
        i));
    for (int pod = 0; pod < 2; ++pod) {
      rig.evil_pod(fmt::format("h{}-{}", i, pod), 1,
                   fmt::format(", labels: {{scheduling.x-k8s.io/pod-group: h{}, "
                               "kueue.x-k8s.io/queue-name: lq}}",
                               i));
    }
    rig.run(6 * kSecond);
  }
  EXPECT_TRUE(rig.until([&] { return rig.held("evil") == 4; }, 60 * kSecond)) << rig.held("evil");
}

TEST(Charged, ARenamedPodSetHoldsWhatTheStatusSays) {
  ChargedRig rig;
  rig.workload("w", rig.owned_by("cm"), 1, 1);
  ASSERT_TRUE(rig.until([&] { return rig.admitted("w"); }));
  const auto answer = rig.world.call(
      "PATCH", rig.workload_path("w"),
      R"([{"op":"replace","path":"/spec/podSets/0/name","value":"x"},)"
      R"({"op":"replace","path":"/spec/podSets/0/count","value":100},)"
      R"({"op":"replace","path":"/spec/podSets/0/template/spec/containers/0/resources",)"
      R"("value":{"limits":{"nvidia.com/gpu":4},"requests":{"nvidia.com/gpu":4}}}])",
      "application/json-patch+json");
  ASSERT_EQ(answer.status, 200) << answer.body;
  for (int i = 0; i < 4; ++i) rig.evil_pod(fmt::format("p{}", i), 4, rig.owned_by("cm"));
  rig.expect_at_most(1, 15, "renamed");
  rig.evil_pod("right", 1, rig.owned_by("cm"));
  EXPECT_TRUE(rig.until([&] { return rig.held("evil") == 1; }, 30 * kSecond));
  rig.expect_good_gets_his();
}

TEST(Charged, AVariantThatHoldsNothingFreesNothing) {
  ChargedRig rig;
  for (int i = 0; i < 3; ++i) {
    rig.workload(fmt::format("w{}", i), rig.owned_by(fmt::format("cm{}", i)), 1, 4);
    rig.run(8 * kSecond);
    rig.workload(
        fmt::format("v{}", i),
        fmt::format(", annotations: {{kueue.x-k8s.io/workload-allowed-resource-flavors: "
                    "none}}, ownerReferences: [{{apiVersion: kueue.x-k8s.io/v1beta2, kind: "
                    "Workload, name: w{}, uid: {}, controller: true}}]",
                    i, rig.get(rig.workload_path(fmt::format("w{}", i))).at("metadata.uid")),
        1, 4, "active: false, ");
    rig.run(8 * kSecond);
  }
  for (int i = 0; i < 3; ++i) {
    rig.evil_pod(fmt::format("p{}", i), 4, rig.owned_by(fmt::format("cm{}", i)));
  }
  rig.expect_at_most(4, 20, "variants");
  EXPECT_EQ(rig.held("evil"), 4);
}

// Nor does one that calls itself a slice and asks for less than what runs.
TEST(Charged, ASmallerSliceFreesNothing) {
  ChargedRig rig;
  rig.evil_pod("p", 4, ", labels: {kueue.x-k8s.io/queue-name: lq}");
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
  rig.run(5 * kSecond);
  const auto list = rig.get("/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads");
  const text::Value* meta = list.root().find("items")->items()[0].find("metadata");
  rig.workload("slice",
               fmt::format(", annotations: {{kueue.x-k8s.io/workload-slice-replacement-for: {}}}, "
                           "ownerReferences: {}",
                           std::string(meta->find("name")->string()),
                           text::to_json(*meta->find("ownerReferences"))),
               1, 0);
  rig.evil_pod("more", 3, ", labels: {kueue.x-k8s.io/queue-name: lq}");
  rig.expect_at_most(4, 15, "a smaller slice");
}

TEST(Charged, SeatsThatTheStatusDoesNotKnowAreNobodys) {
  ChargedRig rig;
  rig.evil_pod("first", 1,
               ", annotations: {sim.berth.dev/ready-seconds: '1000'}" + rig.owned_by("cm"));
  rig.workload("w", rig.owned_by("cm"), 1, 1);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 1; }));
  std::string seats;
  for (int node = 0; node < 4; ++node) {
    for (int gpu = 0; gpu < 4; ++gpu) {
      seats += fmt::format(R"({}{{\"node\":\"m-{}\",\"gpus\":[{}]}})", seats.empty() ? "" : ",",
                           node, gpu);
    }
  }
  rig.annotate(rig.workload_path("w"), R"({"berth.dev/seats":"{\"main\":[)" + seats + R"(]}"})");
  rig.start();
  for (int i = 0; i < 15; ++i) rig.evil_pod(fmt::format("p{}", i), 1, rig.owned_by("cm"));
  rig.expect_at_most(1, 10, "seats");
  rig.expect_good_gets_his();
}

TEST(Charged, QuotaOfWhatIsGoneComesBack) {
  ChargedRig rig;
  rig.job("evil", "j", 1, 4);
  rig.evil_pod("p", 4, ", labels: {kueue.x-k8s.io/queue-name: lq}");
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
  for (int round = 0; round < 2; ++round) {
    rig.remove(rig.job_path("evil", "j") + "?propagationPolicy=Orphan");
    const auto list = rig.get("/api/v1/namespaces/evil/pods");
    for (const text::Value& pod : list.root().find("items")->items()) {
      if (pod.find("spec")->find("nodeName") == nullptr) continue;
      rig.remove("/api/v1/namespaces/evil/pods/" +
                 std::string(pod.find("metadata")->find("name")->string()) +
                 "?propagationPolicy=Orphan");
    }
    rig.job("evil", "j", 1, 4);
    ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 0; }, 60 * kSecond));
    ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }, 120 * kSecond)) << round;
  }
}

// A number is what whoever writes it likes; a class is the cluster's.
TEST(Charged, PrioritiesAreOfClasses) {
  ChargedRig rig;
  rig.world.merge("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-good",
                  R"({"spec":{"preemption":{"withinClusterQueue":"LowerPriority"}}})");
  rig.expect_good_gets_his();
  rig.job("evil", "j", 1, 4, ", labels: {kueue.x-k8s.io/queue-name: shared}");
  rig.run(10 * kSecond);
  const auto list = rig.get("/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads");
  ASSERT_EQ(list.root().find("items")->size(), 1u);
  const std::string name(
      list.root().find("items")->items()[0].find("metadata")->find("name")->string());
  rig.world.merge(rig.workload_path(name), R"({"spec":{"priority":2000000000}})");
  rig.run(20 * kSecond);
  EXPECT_EQ(rig.held("good"), 4);
  EXPECT_EQ(rig.held("evil"), 0);
}

// They cost their author nothing, and would take every slot of the cluster.
TEST(Charged, PlacesOfPodsThatAskForNothingAreNotKept) {
  ChargedRig rig;
  rig.apply(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: wide, namespace: evil, labels: "
      "{kueue.x-k8s.io/queue-name: lq}, annotations: {kueue.x-k8s.io/job-min-parallelism: '1'}}, "
      "spec: {suspend: true, parallelism: 10000, managedBy: evil.example/x, template: {spec: "
      "{schedulerName: berth, restartPolicy: Never, containers: [{name: c, image: i}]}}}}");
  rig.run(10 * kSecond);
  rig.expect_good_gets_his();
}

TEST(Charged, APodThatIsLargerThanItsPlaceIsPlacedLikeOthers) {
  ChargedRig rig;
  for (int i = 0; i < 4; ++i) {
    rig.workload(fmt::format("w{}", i), rig.owned_by(fmt::format("cm{}", i)), 1, 1);
  }
  ASSERT_TRUE(rig.until([&] { return rig.admitted("w3"); }));
  for (int i = 0; i < 4; ++i) {
    rig.apply(fmt::format(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: p{}, namespace: evil{}}}, spec: "
        "{{schedulerName: berth, containers: [{{name: c, image: i, resources: {{limits: "
        "{{nvidia.com/gpu: 1}}, requests: {{cpu: 60}}}}}}]}}}}",
        i, rig.owned_by(fmt::format("cm{}", i))));
  }
  rig.run(30 * kSecond);
  const auto list = rig.get("/api/v1/namespaces/evil/pods");
  for (const text::Value& pod : list.root().find("items")->items()) {
    EXPECT_NE(pod.find("status")->find("phase")->string(), "Failed");
  }
  EXPECT_EQ(rig.get("/api/v1/nodes").body.find("berth.dev/rejecting"), std::string::npos);
}

// ---- what honest users see of it --------------------------------------------------------------

TEST(Charged, AMemberThatIsReplacedHasTheRoomOfTheOneBefore) {
  for (const bool kueue_group : {false, true}) {
    ChargedRig rig;
    rig.define("scheduling.x-k8s.io", "v1alpha1", "PodGroup", true);
    rig.run(31 * kSecond);
    rig.apply(
        "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: x, namespace: "
        "evil}, spec: {minMember: 2}}");
    const std::string meta =
        kueue_group ? ", labels: {kueue.x-k8s.io/queue-name: lq, kueue.x-k8s.io/pod-group-name: "
                      "x}, annotations: {kueue.x-k8s.io/pod-group-total-count: '2'}"
                    : ", labels: {scheduling.x-k8s.io/pod-group: x, kueue.x-k8s.io/queue-name: lq}";
    for (int i = 0; i < 2; ++i) rig.evil_pod(fmt::format("x-{}", i), 2, meta);
    ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; })) << kueue_group;
    rig.run(5 * kSecond);
    rig.remove("/api/v1/namespaces/evil/pods/x-1");
    rig.run(5 * kSecond);
    ASSERT_EQ(rig.held("evil"), 2);
    rig.evil_pod("large", 4, meta);
    rig.run(5 * kSecond);
    EXPECT_EQ(rig.held("evil"), 2) << "no more than that";
    rig.remove("/api/v1/namespaces/evil/pods/large");
    rig.evil_pod("x-2", 2, meta);
    EXPECT_TRUE(rig.until([&] { return rig.held("evil") == 4; }, 30 * kSecond)) << kueue_group;
    for (int i = 3; i < 6; ++i) rig.evil_pod(fmt::format("x-{}", i), 2, meta);
    rig.run(10 * kSecond);
    EXPECT_EQ(rig.held("evil"), 4) << "one room, one replacement";
  }
}

// A Job's room is for the Job's pods: what names the group of one of them is not one of those.
TEST(Charged, AGroupThatAPodOfAJobNamesHasNoRoomInTheJob) {
  ChargedRig rig;
  rig.apply(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: evil, labels: "
      "{kueue.x-k8s.io/queue-name: lq}}, spec: {parallelism: 2, completions: 2, template: "
      "{metadata: {labels: {kueue.x-k8s.io/pod-group-name: g}}, spec: {schedulerName: berth, "
      "restartPolicy: Never, containers: [{name: c, image: i, resources: {limits: "
      "{nvidia.com/gpu: 2}}}]}}}}");
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
  const auto list = rig.get("/api/v1/namespaces/evil/pods");
  const auto first = list.root().find("items")->items()[0].find("metadata")->find("name");
  rig.world.merge("/apis/batch/v1/namespaces/evil/jobs/j", R"({"spec":{"parallelism":1}})");
  for (int i = 0; i < 4; ++i) {
    rig.evil_pod(fmt::format("g-{}", i), 2,
                 ", labels: {kueue.x-k8s.io/queue-name: lq, kueue.x-k8s.io/pod-group-name: g}, "
                 "annotations: {kueue.x-k8s.io/pod-group-total-count: '1'}");
  }
  rig.remove("/api/v1/namespaces/evil/pods/" + std::string(first->string()));
  rig.run(20 * kSecond);
  EXPECT_LE(rig.held("evil"), 4);
  rig.expect_good_gets_his();
}

TEST(Charged, NobodyWritesWhoPaysForHim) {
  ChargedRig rig;  // his LocalQueue "shared" leads there, and it does not take him
  rig.world.merge("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-good",
                  R"({"spec":{"namespaceSelector":{"matchLabels":{)"
                  R"("kubernetes.io/metadata.name":"good"}}}})");
  for (const char* node : {"nosuch", "m-3"}) {
    rig.apply(fmt::format(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: on-{0}, namespace: evil, annotations: "
        "{{berth.dev/charged-to: kueue/q-good}}}}, spec: {{schedulerName: berth, nodeName: {0}, "
        "containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: 4}}}}}}]}}}}",
        node));
  }
  rig.run(5 * kSecond);
  rig.expect_good_gets_his();
  // One that is bound says what is so, whatever it said before.
  rig.evil_pod("p", 1,
               ", annotations: {berth.dev/charged-to: kueue/q-good}, labels: "
               "{kueue.x-k8s.io/queue-name: lq}");
  rig.remove("/api/v1/namespaces/evil/pods/on-m-3");
  ASSERT_TRUE(rig.until(
      [&] { return !rig.get("/api/v1/namespaces/evil/pods/p").at("spec.nodeName").empty(); }));
  EXPECT_NE(rig.get("/api/v1/namespaces/evil/pods/p").body.find("kueue/q-evil"), std::string::npos);
}

// A LocalQueue is its namespace's: that it is gone frees nothing of what came by it.
TEST(Charged, WhoTakesHisLocalQueueAwayPaysAfterARestartToo) {
  ChargedRig rig;
  rig.job("evil", "j", 4, 1);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
  rig.run(3 * kSecond);
  rig.start();  // by another leader
  rig.run(3 * kSecond);
  rig.remove("/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/localqueues/lq");
  rig.remove(rig.job_path("evil", "j") + "?propagationPolicy=Orphan");
  rig.delete_workloads();
  rig.apply(
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: theirs, "
      "namespace: good}, spec: {clusterQueue: q-evil}}");
  rig.job("good", "second", 1, 4, ", labels: {kueue.x-k8s.io/queue-name: theirs}");
  rig.run(20 * kSecond);
  EXPECT_EQ(rig.held("evil"), 4);
  EXPECT_EQ(rig.held("good"), 0) << "q-evil has four, and they are in use";
  rig.expect_good_gets_his();
}

// What waits as a whole lets its pods in once: they have its room until they are gone, whatever
// their labels and their owners say by then.
TEST(Charged, TheRoomOfAWholeIsForThePodsThatItLetIn) {
  for (const bool by_labels : {true, false}) {
    ChargedRig rig;
    const std::string owner = rig.whole_of_four();
    for (int round = 0; round < 3; ++round) {
      const std::string job = fmt::format("j{}", round);
      if (by_labels) {
        for (int i = 0; i < 4; ++i) {
          rig.evil_pod(fmt::format("{}-{}", job, i), 1,
                       ", labels: {jobset.sigs.k8s.io/jobset-name: js, "
                       "jobset.sigs.k8s.io/replicatedjob-name: w}");
        }
      } else {
        rig.job("evil", job, 4, 1, owner);
      }
      rig.expect_at_most(4, 10, job);
      ASSERT_EQ(rig.held("evil"), 4) << by_labels;
      if (!by_labels) {
        rig.world.merge(rig.job_path("evil", job), R"({"metadata":{"ownerReferences":[]}})");
        continue;
      }
      for (int i = 0; i < 4; ++i) {
        rig.world.merge(fmt::format("/api/v1/namespaces/evil/pods/{}-{}", job, i),
                        R"({"metadata":{"labels":{"jobset.sigs.k8s.io/jobset-name":"other"}}})");
      }
      if (round == 1) rig.start();  // another leader has not seen how they were bound
    }
    rig.expect_good_gets_his();
  }
}

// Places that were chosen for a JobSet's pods are theirs, though only their Job says whose they
// are.
TEST(Charged, APlaceIsTakenHoweverItsPodIsKnown) {
  ChargedRig rig;
  rig.world.merge("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-good",
                  R"({"spec":{"resourceGroups":[{"coveredResources":["nvidia.com/gpu"],)"
                  R"("flavors":[{"name":"f","resources":[{"name":"nvidia.com/gpu",)"
                  R"("nominalQuota":12}]}]}]}})");
  rig.job("evil", "j", 4, 1, rig.whole_of_four());
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }, 10 * kSecond));
  rig.job("good", "mine", 3, 4);
  EXPECT_TRUE(rig.until([&] { return rig.held("good") == 12; }, 10 * kSecond));
}

TEST(Charged, APodThatCameOutLargerStartsAtOnce) {
  ChargedRig rig;
  rig.workload("w", rig.owned_by("cm"), 1, 4);
  ASSERT_TRUE(rig.until([&] { return rig.admitted("w"); }));
  rig.job("good", "mine", 1, 4);
  rig.run(5 * kSecond);
  rig.apply("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: evil" + rig.owned_by("cm") +
            "}, spec: {schedulerName: berth, containers: [{name: c, image: i, resources: {limits: "
            "{nvidia.com/gpu: 4}, requests: {cpu: 1}}}]}}");
  EXPECT_TRUE(rig.until([&] { return rig.held("evil") == 4; }, 5 * kSecond));
}

TEST(Charged, WhoseClassIsDeletedKeepsHisPriority) {
  ChargedRig rig;
  rig.world.merge("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/q-evil",
                  R"({"spec":{"preemption":{"withinClusterQueue":"LowerPriority"}}})");
  const auto job = [&](const std::string& name, int value) {
    rig.apply(fmt::format(
        "{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: c{1}}}, value: "
        "{1}}}\n---\n"
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {0}, namespace: evil, labels: "
        "{{kueue.x-k8s.io/queue-name: lq}}}}, spec: {{suspend: true, template: {{spec: "
        "{{schedulerName: berth, priorityClassName: c{1}, restartPolicy: Never, containers: "
        "[{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: 4}}}}}}]}}}}}}}}",
        name, value));
  };
  job("high", 1000);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
  rig.run(3 * kSecond);
  job("mid", 500);
  rig.remove("/apis/scheduling.k8s.io/v1/priorityclasses/c1000");
  rig.run(20 * kSecond);
  EXPECT_EQ(rig.get(rig.job_path("evil", "high")).at("spec.suspend"), "false");
  EXPECT_EQ(rig.get(rig.job_path("evil", "mid")).at("spec.suspend"), "true");
}

TEST(Charged, AWorkloadWhoseOwnerComesLaterIsWaitedFor) {
  ChargedRig rig;
  rig.workload("w", ", labels: {kueue.x-k8s.io/job-uid: u}", 1, 1);
  rig.workload("copy", ", labels: {kueue.x-k8s.io/job-uid: v, kueue.x-k8s.io/multikueue-origin: o}",
               1, 1);
  ASSERT_TRUE(rig.until([&] { return rig.admitted("w") && rig.admitted("copy"); }));
  rig.run(30 * kSecond);
  EXPECT_NE(rig.condition(rig.workload_path("w"), "Finished"), "True");
  EXPECT_TRUE(rig.until([&] { return rig.condition(rig.workload_path("w"), "Finished") == "True"; },
                        90 * kSecond));
  EXPECT_NE(rig.condition(rig.workload_path("copy"), "Finished"), "True");
}

TEST(Charged, WhatIsActivatedAgainWaitsAgain) {
  ChargedRig rig;
  rig.job("evil", "j", 1, 4);
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 4; }));
  const auto list = rig.get("/apis/kueue.x-k8s.io/v1beta2/namespaces/evil/workloads");
  const std::string path = rig.workload_path(
      std::string(list.root().find("items")->items()[0].find("metadata")->find("name")->string()));
  rig.world.merge(path, R"({"spec":{"active":false}})");
  ASSERT_TRUE(rig.until([&] { return rig.held("evil") == 0; }));
  rig.run(5 * kSecond);
  rig.world.merge(path, R"({"spec":{"active":true}})");
  EXPECT_TRUE(rig.until([&] { return rig.held("evil") == 4; }, 60 * kSecond));
}

// ---- Volcano's groups -----------------------------------------------------------------------

constexpr const char* kGroup =
    "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g, namespace: "
    "default}, spec: {minMember: 2, queue: red}}";
constexpr const char* kMember = "annotations: {scheduling.k8s.io/group-name: g}";

TEST(Charged, WhoComesToAGroupThatRunsNeedsRoomInItsQueue) {
  OthersRig rig;
  rig.apply(kGroup);
  for (int i = 0; i < 2; ++i) rig.pod(fmt::format("m{}", i), 1, "", kMember);
  ASSERT_TRUE(rig.until([&] { return rig.gpus_of_all() == 2; }));
  rig.delete_pod("m1");
  rig.run(5 * kSecond);
  rig.pod("large", 4, "", kMember);
  rig.run(15 * kSecond);
  EXPECT_EQ(rig.gpus_of_all(), 1);
  rig.pod("m2", 1, "", kMember);
  EXPECT_TRUE(rig.until([&] { return rig.gpus_of_all() == 2; }, 30 * kSecond));
  rig.start();
  rig.run(15 * kSecond);
  EXPECT_EQ(rig.gpus_of_all(), 2) << "also by another leader";
}

TEST(Charged, WhatRunsOfAGroupThatIsDeletedCountsInItsQueue) {
  OthersRig rig;
  for (int round = 0; round < 3; ++round) {
    const std::string name = fmt::format("s{}", round);
    rig.apply(
        "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {namespace: "
        "default, name: " +
        name + "}, spec: {minMember: 2, queue: red}}");
    for (int i = 0; i < 2; ++i) {
      rig.pod(fmt::format("m{}-{}", round, i), 2, "",
              "annotations: {scheduling.k8s.io/group-name: " + name + "}");
    }
    rig.run(12 * kSecond);
    EXPECT_EQ(rig.gpus_of_all(), 4) << round;
    rig.remove("/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/" + name);
    if (round == 1) rig.start();
    rig.run(5 * kSecond);
  }
}

// Neither Volcano nor KAI has an object that would say it.
TEST(Charged, WhoWaitsInAQueueOfOthersIsToldWhy) {
  OthersRig rig;
  rig.apply(kGroup);
  for (int i = 0; i < 2; ++i) rig.pod(fmt::format("m{}", i), 4, "", kMember);
  rig.pod("alone", 8, "", "labels: {kai.scheduler/queue: kai-red}");
  for (const char* name : {"m0", "m1", "alone"}) {
    const std::string path = std::string("/api/v1/namespaces/default/pods/") + name;
    EXPECT_TRUE(
        rig.until([&] { return rig.condition(path, "PodScheduled", "reason") == "WaitsInQueue"; },
                  30 * kSecond))
        << name;
  }
}

// Its queue gave the room of a member that is gone to others: the rest would hold GPUs for nothing.
TEST(Charged, AGroupThatCannotBeWholeAgainMakesWay) {
  OthersRig rig;
  rig.apply(kGroup);
  const std::string owner =
      ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: cm, uid: " +
      [&] {
        rig.apply(
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: cm, "
            "namespace: default}}");
        return rig.get("/api/v1/namespaces/default/configmaps/cm").at("metadata.uid");
      }() +
      ", controller: true}]";
  for (int i = 0; i < 2; ++i) rig.pod(fmt::format("m{}", i), 2, "", kMember + owner);
  ASSERT_TRUE(rig.until([&] { return rig.gpus_of_all() == 4; }));
  rig.pod("other", 2, "", "annotations: {scheduling.volcano.sh/queue-name: red}");
  rig.delete_pod("m1");
  ASSERT_TRUE(rig.until([&] { return !rig.node_of("other").empty(); }, 30 * kSecond));
  rig.pod("m2", 2, "", kMember + owner);
  EXPECT_TRUE(rig.until([&] { return rig.get_pod("m0").status == 404; }, 150 * kSecond));
}

}  // namespace
}  // namespace berth::control_test
