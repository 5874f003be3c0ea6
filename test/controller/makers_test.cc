// Kinds that wait in queues as a whole, other than Jobs: JobSet, AppWrapper. Their operators are
// played by hand: what they would make and report is written as they do.
#include "controller/rig.h"
#include "text/editor.h"
#include "text/path.h"

namespace berth::control_test {
namespace {

constexpr const char* kQueuesOfFour =
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}, spec: "
    "{nodeLabels: {tier: train}, tolerations: [{key: team, operator: Exists}]}}\n"
    "---\n"
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: cq}, spec: "
    "{namespaceSelector: {}, preemption: {withinClusterQueue: LowerPriority}, resourceGroups: "
    "[{coveredResources: [nvidia.com/gpu], flavors: [{name: f, resources: [{name: "
    "nvidia.com/gpu, nominalQuota: 4}]}]}]}}\n"
    "---\n"
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: "
    "default}, spec: {clusterQueue: cq}}\n"
    "---\n"
    "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 100}\n";

constexpr const char* kLabelledNodes =
    "pools: [{name: m, count: 2, model: NVIDIA-H100-80GB-HBM3, gpus: 4, labels: {tier: train, own: "
    "'yes'}}]";

// {metadata, spec} of pods with so many GPUs each.
std::string template_of(int gpus, const std::string& labels = "",
                        const std::string& priority = "") {
  return fmt::format(
      "{{metadata: {{labels: {{{1}}}}}, spec: {{schedulerName: berth, restartPolicy: Never{2}, "
      "nodeSelector: {{own: 'yes'}}, containers: [{{name: c, image: i, resources: {{limits: "
      "{{nvidia.com/gpu: {0}}}}}}}]}}}}",
      gpus, labels, priority.empty() ? "" : ", priorityClassName: " + priority);
}

class MakerRig : public Rig {
 public:
  MakerRig() : Rig(kLabelledNodes) {
    define_kueue();
    define("jobset.x-k8s.io", "v1alpha2", "JobSet", true);
    define("workload.codeflare.dev", "v1beta2", "AppWrapper", true);
    apply(kQueuesOfFour);
    run(31 * kSecond);  // the collections are found
  }

  // A leader with a GPU and two workers of one each: three GPUs.
  void job_set(const std::string& name, bool suspend = false, int worker_gpus = 1) {
    apply(fmt::format(
        "{{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {{name: {0}, namespace: "
        "default, labels: {{kueue.x-k8s.io/queue-name: lq}}}}, spec: {{suspend: {1}, "
        "replicatedJobs: [{{name: leader, replicas: 1, template: {{spec: {{parallelism: 1, "
        "completions: 1, template: {2}}}}}}}, {{name: workers, replicas: 2, template: {{spec: "
        "{{parallelism: 1, completions: 1, template: {3}}}}}}}]}}}}",
        name, suspend, template_of(1), template_of(worker_gpus)));
  }
  static std::string path_of(const std::string& name) {
    return "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/" + name;
  }
  bool rests(const std::string& path) { return get(path).at("spec.suspend") == "true"; }

  // The Workload that it owns; "": there is none.
  std::string workload_of(const std::string& kind, const std::string& name) {
    const auto list = get("/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads");
    for (const text::Value& w : list.root().find("items")->items()) {
      const std::string_view own = text_at(w, "metadata.name");
      if (own.starts_with(kind + '-' + name + '-')) {
        return "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/" + std::string(own);
      }
    }
    return {};
  }
  std::string of_workload(const std::string& kind, const std::string& name, const std::string& type,
                          const std::string& field = "status") {
    const std::string path = workload_of(kind, name);
    return path.empty() ? "" : condition(path, type, field);
  }

  // What the operator of JobSets does: a Job for each replica, of the template as it is now.
  void make_jobs(const std::string& set, bool suspend = false) {
    const auto object = get(path_of(set));
    const std::string uid = object.at("metadata.uid");
    for (const text::Value& each : at(object.root(), "spec.replicatedJobs").items()) {
      const std::string role(text_at(each, "name"));
      for (int i = 0; i < int_at(each, "replicas"); ++i) {
        text::Editor edit;
        text::Value job_template = at(each, "template.spec.template");
        job_template = edit.with_at(job_template, "metadata.labels",
                                    "jobset.sigs.k8s.io/jobset-name", edit.string(set));
        const auto answer = world.post(
            "/apis/batch/v1/namespaces/default/jobs",
            fmt::format(
                R"({{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"{0}-{1}-{2}",)"
                R"("ownerReferences":[{{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":)"
                R"("JobSet","name":"{0}","uid":"{3}","controller":true}}]}},"spec":)"
                R"({{"suspend":{4},"parallelism":1,"completions":1,"template":{5}}}}})",
                set, role, i, uid, suspend, text::to_json(job_template)));
        ASSERT_EQ(answer.status, 201) << answer.body;
      }
    }
  }
  void status(const std::string& path, const std::string& json) {
    const auto answer = world.merge(path + "/status", R"({"status":)" + json + "}");
    ASSERT_EQ(answer.status, 200) << answer.body;
  }
  void job(const std::string& name, int gpus, const std::string& priority = "") {
    apply(fmt::format(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {0}, namespace: default, labels: "
        "{{kueue.x-k8s.io/queue-name: lq}}}}, spec: {{parallelism: 1, completions: 1, template: "
        "{{metadata: {{annotations: {{sim.berth.dev/run-seconds: '20'}}}}, spec: {{schedulerName: "
        "berth, restartPolicy: Never{2}, containers: [{{name: c, image: i, resources: {{limits: "
        "{{nvidia.com/gpu: {1}}}}}}}]}}}}}}}}",
        name, gpus, priority.empty() ? "" : ", priorityClassName: " + priority));
  }
};

TEST(ControllerMakers, TheLifeOfAJobSet) {
  MakerRig rig;
  rig.start();
  rig.job_set("train");  // made without resting: no webhook was there
  const std::string train = MakerRig::path_of("train");
  ASSERT_TRUE(rig.until([&] { return rig.of_workload("jobset", "train", "Admitted") == "True"; }))
      << rig.get(train).body;
  const auto workload = rig.get(rig.workload_of("jobset", "train"));
  EXPECT_EQ(workload.at("metadata.ownerReferences[0].kind"), "JobSet");
  EXPECT_EQ(workload.at("spec.podSets[0].name"), "leader");
  EXPECT_EQ(workload.at("spec.podSets[1].name"), "workers");
  EXPECT_EQ(workload.at("spec.podSets[1].count"), "2");
  ASSERT_TRUE(rig.until([&] { return !rig.rests(train); }));
  const auto started = rig.get(train);
  for (const int i : {0, 1}) {
    const std::string at = fmt::format("spec.replicatedJobs[{}].template.spec.template.", i);
    EXPECT_EQ(started.at(at + "spec.nodeSelector.tier"), "train") << started.body;
    EXPECT_EQ(started.at(at + "spec.nodeSelector.own"), "yes") << "what it asked for itself stays";
    EXPECT_EQ(started.at(at + "spec.tolerations[0].key"), "team");
    EXPECT_EQ(started.at(at + "metadata.labels['kueue.x-k8s.io/podset']"),
              i == 0 ? "leader" : "workers");
  }
  rig.job_set("next", true);
  rig.run(5 * kSecond);
  EXPECT_TRUE(rig.rests(MakerRig::path_of("next"))) << "its three GPUs are not there";
  EXPECT_EQ(rig.of_workload("jobset", "next", "QuotaReserved"), "False");
  // The operator makes its Jobs: their pods run, and wait in no queue of their own.
  rig.make_jobs("train");
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 3; }))
      << rig.brain->controller.summary().trouble;
  EXPECT_EQ(rig.workload_of("job", "train"), "");
  rig.status(train, R"({"replicatedJobsStatus":[{"name":"leader","ready":1,"active":1},)"
                    R"({"name":"workers","ready":2,"active":2}]})");
  ASSERT_TRUE(rig.until([&] { return rig.of_workload("jobset", "train", "PodsReady") == "True"; }));
  // It ends, and the next one starts.
  for (const char* job : {"train-leader-0", "train-workers-0", "train-workers-1"}) {
    rig.remove("/apis/batch/v1/namespaces/default/jobs/" + std::string(job));
  }
  rig.status(train, R"({"conditions":[{"type":"Completed","status":"True","reason":"AllJobs",)"
                    R"("message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]})");
  ASSERT_TRUE(rig.until([&] { return !rig.rests(MakerRig::path_of("next")); }));
  EXPECT_EQ(rig.of_workload("jobset", "train", "Finished", "reason"), "Succeeded");
}

// Whoever makes pods of a JobSet that waits, or calls himself one of them.
TEST(ControllerMakers, NothingOfAJobSetThatWaitsStarts) {
  MakerRig rig;
  rig.job("other", 4);
  rig.start();
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 1; }));
  rig.job_set("train");
  rig.make_jobs("train");
  rig.pod("liar", 1, "", "labels: {jobset.sigs.k8s.io/jobset-name: train}");
  rig.run(15 * kSecond);
  EXPECT_EQ(rig.bound().size(), 1u) << fmt::format("{}", fmt::join(rig.bound(), " "));
  EXPECT_TRUE(rig.rests(MakerRig::path_of("train")));
  // Once it is let in its pods have three GPUs, and whoever came on top has none of them.
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 3; }, 60 * kSecond))
      << fmt::format("{}", fmt::join(rig.bound(), " "));
  rig.run(20 * kSecond);
  EXPECT_EQ(rig.bound().size(), 3u) << fmt::format("{}", fmt::join(rig.bound(), " "));
}

TEST(ControllerMakers, AJobSetMakesWayAndComesBack) {
  MakerRig rig;
  rig.start();
  rig.job_set("train");
  const std::string train = MakerRig::path_of("train");
  ASSERT_TRUE(rig.until([&] {
    return rig.of_workload("jobset", "train", "Admitted") == "True" && !rig.rests(train);
  }));
  rig.make_jobs("train");
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 3; }));
  rig.status(train, R"({"replicatedJobsStatus":[{"name":"leader","ready":1,"active":1},)"
                    R"({"name":"workers","ready":2,"active":2}]})");
  rig.job("urgent", 4, "high");
  ASSERT_TRUE(rig.until([&] { return rig.rests(train); }));
  EXPECT_EQ(rig.of_workload("jobset", "train", "Evicted"), "True");
  // While its operator ends it, its quota is its own.
  rig.run(3 * kSecond);
  EXPECT_NE(rig.of_workload("job", "urgent", "Admitted"), "True");
  for (const char* job : {"train-leader-0", "train-workers-0", "train-workers-1"}) {
    rig.remove("/apis/batch/v1/namespaces/default/jobs/" + std::string(job));
  }
  rig.status(train, R"({"replicatedJobsStatus":[{"name":"leader","ready":0,"active":0},)"
                    R"({"name":"workers","ready":0,"active":0}]})");
  rig.start();  // another leader
  ASSERT_TRUE(rig.until([&] { return rig.of_workload("job", "urgent", "Admitted") == "True"; }));
  ASSERT_TRUE(rig.until([&] { return !rig.rests(train); }, 120 * kSecond))
      << "it starts again when the other has ended: "
      << rig.get(rig.workload_of("jobset", "train")).body;
}

// Its template may be changed while it rests: what is let in is what its pods will ask for.
TEST(ControllerMakers, WhatChangesWhileItRestsIsAskedForAsItIs) {
  MakerRig rig;
  rig.job("other", 4);
  rig.start();
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 1; }));
  rig.job_set("train", true, 1);
  ASSERT_TRUE(rig.until([&] { return !rig.workload_of("jobset", "train").empty(); }));
  const auto now = rig.get(MakerRig::path_of("train"));
  std::string body = text::to_json(now.root());
  const std::string two = R"("limits":{"nvidia.com/gpu":4})";
  const std::string one = R"("limits":{"nvidia.com/gpu":1})";
  body.replace(body.rfind(one), one.size(), two);  // the workers': nine GPUs in all
  const auto answer = rig.world.call("PUT", MakerRig::path_of("train"), body);
  ASSERT_EQ(answer.status, 200) << answer.body;
  rig.run(60 * kSecond);
  EXPECT_TRUE(rig.rests(MakerRig::path_of("train"))) << "nine GPUs of four";
}

// Nobody is let in whose Workload cannot be made: he would hold in each decision what he never
// gets.
TEST(ControllerMakers, WhoseWorkloadCannotBeMadeStopsNobody) {
  MakerRig rig;
  rig.start();
  rig.world.server->set_fault_hook([](const text::HttpRequest& request) {
    const bool his =
        request.method == "POST" && request.body.find("job-evil-") != std::string::npos;
    return his ? sim::ApiFault{.kind = sim::ApiFault::Kind::kRefuse, .status = 403}
               : sim::ApiFault{};
  });
  rig.job("evil", 4);
  rig.run(3 * kSecond);
  rig.job_set("train");
  ASSERT_TRUE(rig.until([&] { return rig.of_workload("jobset", "train", "Admitted") == "True"; }));
}

// An evicted JobSet gives its quota back, whoever calls himself one of its pods.
TEST(ControllerMakers, ALabelKeepsNoQuota) {
  MakerRig rig;
  rig.start();
  rig.job_set("train");
  const std::string train = MakerRig::path_of("train");
  ASSERT_TRUE(rig.until([&] { return !rig.rests(train); }));
  rig.apply(
      "{apiVersion: batch/v1, kind: Job, metadata: {name: anchor, namespace: default, labels: "
      "{kueue.x-k8s.io/queue-name: lq}}, spec: {parallelism: 1, completions: 1, template: "
      "{metadata: {labels: {jobset.sigs.k8s.io/jobset-name: train}, annotations: "
      "{sim.berth.dev/run-seconds: '100000'}}, spec: {schedulerName: berth, restartPolicy: Never, "
      "containers: [{name: c, image: i}]}}}}");
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 1; }));
  rig.job("urgent", 4, "high");
  ASSERT_TRUE(rig.until([&] { return rig.rests(train); }));
  rig.status(train, R"({"replicatedJobsStatus":[{"name":"leader","active":0}]})");
  EXPECT_TRUE(rig.until([&] { return rig.of_workload("job", "urgent", "Admitted") == "True"; },
                        30 * kSecond));
}

// Nor does a pod that names it as its owner and never starts, nor what its status says of pods that
// nobody has seen.
TEST(ControllerMakers, WhatNeverStartsKeepsNoQuota) {
  for (const bool by_status : {false, true}) {
    MakerRig rig;
    rig.world.merge("/api/v1/namespaces/default",
                    R"({"metadata":{"labels":{"berth.dev/queue-required":"true"}}})");
    rig.start();
    rig.job_set("train");
    const std::string train = MakerRig::path_of("train");
    ASSERT_TRUE(rig.until([&] { return !rig.rests(train); }));
    if (by_status) {
      rig.status(train, R"({"replicatedJobsStatus":[{"name":"leader","active":1}]})");
    } else {
      rig.apply(fmt::format(
          "{{apiVersion: v1, kind: Pod, metadata: {{name: anchor, namespace: default, "
          "ownerReferences: [{{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: train, "
          "uid: {}, controller: true}}]}}, spec: {{schedulerName: berth, containers: [{{name: c, "
          "image: i, resources: {{limits: {{nvidia.com/gpu: 4}}}}}}]}}}}",
          rig.get(train).at("metadata.uid")));
    }
    rig.run(3 * kSecond);
    EXPECT_TRUE(rig.bound().empty());
    rig.job("urgent", 4, "high");
    EXPECT_TRUE(rig.until([&] { return rig.of_workload("job", "urgent", "Admitted") == "True"; },
                          30 * kSecond))
        << by_status;
  }
}

// A child that waited by itself before its JobSet was queued is charged once.
TEST(ControllerMakers, AChildsOwnWorkloadEndsWithTheSets) {
  MakerRig rig;
  rig.start();
  rig.job_set("train", true);
  const std::string train = MakerRig::path_of("train");
  rig.world.merge(train, R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":null}}})");
  rig.run(3 * kSecond);
  rig.make_jobs("train");
  for (const char* job : {"train-leader-0", "train-workers-0", "train-workers-1"}) {
    rig.world.merge("/apis/batch/v1/namespaces/default/jobs/" + std::string(job),
                    R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"lq"}}})");
  }
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 3; }));
  rig.world.merge(train, R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"lq"}}})");
  ASSERT_TRUE(rig.until([&] {
    return rig.of_workload("job", "train-leader-0", "Finished", "reason") == "OutOfSync";
  }));
  // It rests until its pods are gone, as a Job would that runs when it is queued.
  ASSERT_TRUE(rig.until([&] { return rig.rests(train); }));
  for (const char* job : {"train-leader-0", "train-workers-0", "train-workers-1"}) {
    rig.remove("/apis/batch/v1/namespaces/default/jobs/" + std::string(job));
  }
  EXPECT_TRUE(rig.until([&] { return rig.of_workload("jobset", "train", "Admitted") == "True"; }))
      << rig.get(rig.workload_of("jobset", "train")).body;
}

// An operator that starts what is to rest is not fought at full speed.
TEST(ControllerMakers, WhoeverStartsItAgainIsToldSlowly) {
  MakerRig rig;
  rig.job("other", 4);
  rig.start();
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 1; }));
  rig.job_set("train", true);
  const std::string train = MakerRig::path_of("train");
  int turns = 0;
  for (int i = 0; i < 150; ++i) {
    if (rig.rests(train)) {
      ++turns;
      rig.world.merge(train, R"({"spec":{"suspend":false}})");
    }
    rig.run(kSecond / 10);
  }
  EXPECT_LE(turns, 10);
  EXPECT_GE(turns, 3);
  EXPECT_TRUE(rig.until([&] { return rig.rests(train); }, 70 * kSecond)) << "in the end it rests";
}

// Nor does that keep quota: whoever had it flip before it has to leave is told at once all the
// same.
TEST(ControllerMakers, TurnsBeforeAnEvictionKeepNoQuota) {
  MakerRig rig;
  rig.start();
  rig.job_set("train");
  const std::string train = MakerRig::path_of("train");
  ASSERT_TRUE(rig.until([&] { return !rig.rests(train); }));
  for (int i = 0; i < 300; ++i) {
    if (!rig.rests(train)) rig.world.merge(train, R"({"spec":{"suspend":true}})");
    rig.run(kSecond / 10);
  }
  rig.world.merge(train, R"({"spec":{"suspend":false}})");
  rig.job("urgent", 4, "high");
  EXPECT_TRUE(rig.until([&] { return rig.of_workload("job", "urgent", "Admitted") == "True"; },
                        5 * kSecond));
}

TEST(ControllerMakers, TheLifeOfAnAppWrapper) {
  MakerRig rig;
  rig.start();
  // A JobSet whose pod sets are found, and a kind that nobody knows with one that is declared.
  rig.apply(fmt::format(
      "{{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {{name: wrap, "
      "namespace: default, labels: {{kueue.x-k8s.io/queue-name: lq}}}}, spec: {{components: "
      "[{{template: {{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {{name: "
      "inner}}, spec: {{replicatedJobs: [{{name: a, replicas: 1, template: {{spec: {{template: "
      "{0}}}}}}}]}}}}}}, {{podSets: [{{path: template.spec.pods, replicas: 2}}], template: "
      "{{apiVersion: example.com/v1, kind: Thing, metadata: {{name: t}}, spec: {{pods: "
      "{0}}}}}}}]}}}}",
      template_of(1)));
  const std::string wrap =
      "/apis/workload.codeflare.dev/v1beta2/namespaces/default/appwrappers/wrap";
  ASSERT_TRUE(rig.until([&] {
    return rig.of_workload("appwrapper", "wrap", "Admitted") == "True";
  })) << rig.get(wrap).body;
  const auto workload = rig.get(rig.workload_of("appwrapper", "wrap"));
  EXPECT_EQ(workload.at("spec.podSets[0].name"), "wrap-0");
  EXPECT_EQ(workload.at("spec.podSets[1].name"), "wrap-1");
  EXPECT_EQ(workload.at("spec.podSets[1].count"), "2");
  ASSERT_TRUE(rig.until([&] { return rig.get(wrap).at("spec.suspend") == "false"; }));
  const auto started = rig.get(wrap);
  for (const int i : {0, 1}) {
    const std::string at = fmt::format("spec.components[{}].", i);
    EXPECT_EQ(started.at(at + "podSetInfos[0].nodeSelector.tier"), "train") << started.body;
    EXPECT_EQ(started.at(at + "podSetInfos[0].labels['kueue.x-k8s.io/podset']"),
              "wrap-" + std::to_string(i));
  }
  EXPECT_EQ(started.at("spec.components[1].template.spec.pods.spec.nodeSelector.tier"), "");
  // The JobSet that it makes is the wrapper's: it waits for nothing by itself.
  rig.job_set("inner");
  const auto owned = rig.world.merge(
      MakerRig::path_of("inner"),
      fmt::format(
          R"({{"metadata":{{"ownerReferences":[{{"apiVersion":"workload.codeflare.dev/v1beta2",)"
          R"("kind":"AppWrapper","name":"wrap","uid":"{}","controller":true}}]}},)"
          R"("spec":{{"suspend":false}}}})",
          started.at("metadata.uid")));
  ASSERT_EQ(owned.status, 200) << owned.body;
  rig.pod("t-0", 1, "", "labels: {workload.codeflare.dev/appwrapper: wrap}");
  ASSERT_TRUE(rig.until([&] { return rig.bound().size() == 1; }));
  rig.status(wrap, R"({"phase":"Running","conditions":[{"type":"PodsReady","status":"True"},)"
                   R"({"type":"QuotaReserved","status":"True"}]})");
  ASSERT_TRUE(
      rig.until([&] { return rig.of_workload("appwrapper", "wrap", "PodsReady") == "True"; }));
  rig.delete_pod("t-0");
  rig.status(wrap, R"({"phase":"Succeeded"})");
  ASSERT_TRUE(rig.until(
      [&] { return rig.of_workload("appwrapper", "wrap", "Finished", "reason") == "Succeeded"; }));
}

}  // namespace
}  // namespace berth::control_test
