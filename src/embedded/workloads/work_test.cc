#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "embedded/workloads/budget_controller.h"
#include "embedded/workloads/cluster_for_test.h"
#include "embedded/workloads/node_life.h"
#include "embedded/workloads/passes.h"
#include "embedded/workloads/replica_controller.h"
#include "embedded/workloads/work_controllers.h"
#include "text/path.h"

namespace berth::sim {
namespace {

const std::string kWorkPods = "/api/v1/namespaces/default/pods";
const std::string kJobs = "/apis/batch/v1/namespaces/default/jobs";
const std::string kSets = "/apis/apps/v1/namespaces/default/replicasets";
const std::string kDeployments = "/apis/apps/v1/namespaces/default/deployments";

const char* const kTemplate =
    "{metadata: {labels: {app: w}}, spec: {restartPolicy: Never, "
    "containers: [{name: main, image: i}]}}";

struct WorkWorld : Cluster {
  explicit WorkWorld(WorkOptions options = {}) { start(options); }
  void start(WorkOptions options = {}) {
    work.emplace(*client, Random(9), options);
    work->start();
    EXPECT_TRUE(loop.run_until([this] { return work->synced(); }, 20 * kTestSecond));
  }
  void job(const std::string& name, const std::string& spec) {
    create(kJobs, "metadata: {name: " + name + "}\nspec: {template: " + kTemplate +
                      (spec.empty() ? "" : ", ") + spec + "}");
    run(1);
  }
  std::string job_field(const std::string& name, const std::string& what) {
    return field(kJobs + '/' + name, what);
  }
  std::vector<std::string> pods() { return names(kWorkPods); }

  // What a kubelet says of a pod.
  void say(const std::string& pod, const std::string& phase, int code = 0) {
    const bool ended = phase != "Running";
    const std::string ready = ended ? "False" : "True";
    std::string yaml = "status: {phase: " + phase + ", conditions: [{type: Ready, status: '" +
                       ready + "', lastTransitionTime: '" + seconds_text(clock.now_ns()) + "'}]";
    if (ended) {
      yaml +=
          ", containerStatuses: [{name: main, image: i, imageID: i, ready: false, "
          "restartCount: 0, state: {terminated: {exitCode: " +
          std::to_string(code) + ", finishedAt: '" + seconds_text(clock.now_ns()) + "'}}}]";
    }
    merge(kWorkPods + '/' + pod + "/status", yaml + "}");
  }
  void say_all(const std::string& phase, int code = 0) {
    for (const std::string& pod : pods()) {
      const std::string now = field(kWorkPods + '/' + pod, "status.phase");
      if (now == "Pending" || (now == "Running" && phase != "Running")) say(pod, phase, code);
    }
  }
  std::optional<WorkControllers> work;
};

TEST(Jobs, RunThrough) {
  WorkWorld w;
  w.job("j", "completions: 3, parallelism: 2");
  ASSERT_EQ(w.pods().size(), 2u);
  EXPECT_EQ(w.job_field("j", "status.active"), "2");
  EXPECT_NE(w.job_field("j", "status.startTime"), "");
  const std::string pod = kWorkPods + '/' + w.pods()[0];
  EXPECT_EQ(w.field(pod, "metadata.finalizers.0"), "batch.kubernetes.io/job-tracking");
  EXPECT_EQ(w.field(pod, "metadata.ownerReferences.0.kind"), "Job");
  EXPECT_EQ(w.field(pod, "metadata.labels.job-name"), "j");
  w.say_all("Running");
  w.run(1);
  EXPECT_EQ(w.job_field("j", "status.ready"), "2");
  w.say_all("Succeeded");
  w.run(1);
  EXPECT_EQ(w.job_field("j", "status.succeeded"), "2");
  w.say_all("Succeeded");
  w.run(1);
  EXPECT_EQ(w.job_field("j", "status.succeeded"), "3");
  EXPECT_EQ(w.job_field("j", "status.conditions[Complete].status"), "True");
  EXPECT_EQ(w.job_field("j", "status.conditions[SuccessCriteriaMet].reason"), "CompletionsReached");
  EXPECT_NE(w.job_field("j", "status.completionTime"), "");
  EXPECT_EQ(w.job_field("j", "status.active"), "");
  ASSERT_EQ(w.pods().size(), 3u);
  for (const std::string& name : w.pods()) {
    EXPECT_EQ(w.field(kWorkPods + '/' + name, "metadata.finalizers"), "");
  }
  EXPECT_EQ(w.writes["POST pods"], 3);
  EXPECT_LE(w.writes["PATCH jobs/status"], 8);
  w.run(600);  // and nothing more happens
  EXPECT_LE(w.writes["PATCH jobs/status"], 8);
}

TEST(Jobs, IndexedPodsKnowTheirIndex) {
  WorkWorld w;
  w.job("j", "completions: 2, parallelism: 2, completionMode: Indexed");
  ASSERT_EQ(w.pods().size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const std::string pod = kWorkPods + '/' + w.pods()[static_cast<std::size_t>(i)];
    const auto object = w.call("GET", pod);
    const text::Value& meta = at(object.second.root(), "metadata");
    EXPECT_EQ(at(meta, "labels")[kIndexKey].string(), std::to_string(i));
    EXPECT_EQ(at(meta, "annotations")[kIndexKey].string(), std::to_string(i));
    EXPECT_TRUE(text_at(meta, "name").starts_with("j-" + std::to_string(i) + "-"));
    EXPECT_EQ(w.field(pod, "spec.hostname"), "j-" + std::to_string(i));
    EXPECT_EQ(w.field(pod, "spec.containers.0.env.0.name"), "JOB_COMPLETION_INDEX");
  }
  w.say_all("Succeeded");
  w.run(2);
  EXPECT_EQ(w.job_field("j", "status.completedIndexes"), "0,1");
  EXPECT_EQ(w.job_field("j", "status.conditions[Complete].status"), "True");
}

TEST(Jobs, FailBackOffAndGiveUp) {
  WorkWorld w;
  w.job("j", "backoffLimit: 1");
  w.say_all("Failed", 1);
  w.run(5);
  EXPECT_EQ(w.pods().size(), 1u);  // it waits
  EXPECT_EQ(w.job_field("j", "status.failed"), "1");
  w.run(7);
  EXPECT_EQ(w.pods().size(), 2u);
  w.say_all("Failed", 1);
  w.run(2);
  EXPECT_EQ(w.job_field("j", "status.failed"), "2");
  EXPECT_EQ(w.job_field("j", "status.conditions[Failed].reason"), "BackoffLimitExceeded");
  EXPECT_EQ(w.job_field("j", "status.conditions[FailureTarget].status"), "True");
  EXPECT_EQ(w.pods().size(), 2u);
}

TEST(Jobs, SuspendResumeAndGoAway) {
  WorkWorld w;
  w.job("j", "suspend: true, parallelism: 2, completions: 2, ttlSecondsAfterFinished: 30");
  EXPECT_EQ(w.pods().size(), 0u);
  EXPECT_EQ(w.job_field("j", "status.conditions[Suspended].status"), "True");
  EXPECT_EQ(w.job_field("j", "status.startTime"), "");
  w.merge(kJobs + "/j", "spec: {suspend: false}");
  w.run(1);
  EXPECT_EQ(w.pods().size(), 2u);
  EXPECT_EQ(w.job_field("j", "status.conditions[Suspended].status"), "False");
  const std::string started = w.job_field("j", "status.startTime");
  EXPECT_NE(started, "");
  w.run(5);
  w.merge(kJobs + "/j", "spec: {suspend: true}");
  w.run(2);
  EXPECT_EQ(w.pods().size(), 0u);
  EXPECT_EQ(w.job_field("j", "status.failed"), "");  // it was not their fault
  w.merge(kJobs + "/j", "spec: {suspend: false}");
  w.run(1);
  EXPECT_NE(w.job_field("j", "status.startTime"), started);
  w.say_all("Succeeded");
  w.run(2);
  EXPECT_EQ(w.job_field("j", "status.conditions[Complete].status"), "True");
  w.run(60);
  EXPECT_FALSE(w.exists(kJobs + "/j"));
}

TEST(Jobs, DeletedJobsLetTheirPodsGo) {
  WorkWorld w;
  w.job("j", "parallelism: 2, completions: 2");
  ASSERT_EQ(w.pods().size(), 2u);
  w.call("DELETE", kJobs + "/j", R"({"propagationPolicy":"Background"})");
  w.run(60);
  EXPECT_FALSE(w.exists(kJobs + "/j"));
  EXPECT_EQ(w.pods().size(), 0u);
}

TEST(Jobs, NoPodTwiceAfterACrash) {
  // The process dies after every so many writes; another one goes on.
  for (int after = 1; after <= 12; ++after) {
    WorkWorld w;
    int left = after;
    w.hook = [&left](const text::HttpRequest& request) {
      ApiFault fault;
      const auto agent = text::find_header(request.headers, "User-Agent");
      const bool component = !agent || *agent != "tester";
      if (request.method != "GET" && component && left-- <= 0) {
        fault.kind = ApiFault::Kind::kDropAfter;  // carried out, and nobody heard
      }
      return fault;
    };
    w.create(kJobs, "metadata: {name: j}\nspec: {completions: 4, parallelism: 4, template: " +
                        std::string(kTemplate) + "}");
    w.run(0.5);
    w.work.reset();
    w.hook = nullptr;
    w.start();
    w.run(5);
    EXPECT_EQ(w.pods().size(), 4u) << after;
    w.say_all("Succeeded");
    w.run(0.15);
    w.work.reset();  // in the middle of counting
    w.start();
    w.run(5);
    EXPECT_EQ(w.job_field("j", "status.succeeded"), "4") << after;
    EXPECT_EQ(w.job_field("j", "status.conditions[Complete].status"), "True") << after;
    EXPECT_EQ(w.pods().size(), 4u) << after;
  }
}

TEST(ReplicaSets, KeepTheirNumber) {
  WorkWorld w;
  w.create(kSets,
           "metadata: {name: r}\nspec: {replicas: 3, selector: {matchLabels: {app: w}}, template: "
           "{metadata: {labels: {app: w}}, spec: {containers: [{name: main, image: i}]}}}");
  w.run(1);
  ASSERT_EQ(w.pods().size(), 3u);
  w.say_all("Running");
  w.run(1);
  EXPECT_EQ(w.field(kSets + "/r", "status.readyReplicas"), "3");
  EXPECT_EQ(w.field(kSets + "/r", "status.availableReplicas"), "3");
  w.remove(kWorkPods + '/' + w.pods()[0]);
  w.run(1);
  EXPECT_EQ(w.pods().size(), 3u);
  EXPECT_EQ(w.field(kSets + "/r", "status.readyReplicas"), "2");
  w.merge(kSets + "/r", "spec: {replicas: 1}");
  w.run(2);
  ASSERT_EQ(w.pods().size(), 1u);  // the pending one went before those that run
  EXPECT_EQ(w.field(kWorkPods + '/' + w.pods()[0], "status.phase"), "Running");
  PodInfo old, young, costly;
  old.node = young.node = costly.node = "n";
  old.created_ns = 1;
  young.created_ns = 2;
  costly.deletion_cost = -5;
  EXPECT_TRUE(goes_before(young, old));
  EXPECT_TRUE(goes_before(costly, young));
}

TEST(ReplicationControllers, KeepTheirNumber) {
  WorkWorld w;
  const std::string controllers = "/api/v1/namespaces/default/replicationcontrollers";
  w.create(controllers,
           "metadata: {name: r}\nspec: {replicas: 2, selector: {app: w}, template: "
           "{metadata: {labels: {app: w}}, spec: {containers: [{name: main, image: i}]}}}");
  w.run(1);
  ASSERT_EQ(w.pods().size(), 2u);
  const std::string pod = kWorkPods + '/' + w.pods()[0];
  EXPECT_EQ(w.field(pod, "metadata.ownerReferences.0.kind"), "ReplicationController");
  EXPECT_EQ(w.field(pod, "metadata.ownerReferences.0.apiVersion"), "v1");
  w.say_all("Running");
  w.run(1);
  EXPECT_EQ(w.field(controllers + "/r", "status.readyReplicas"), "2");
  w.merge(controllers + "/r", "spec: {replicas: 0}");
  w.run(40);
  EXPECT_TRUE(w.pods().empty());
}

TEST(ReplicaSets, SayWhyTheirPodsAreRefused) {
  WorkWorld w;
  const std::string quotas = "/api/v1/namespaces/default/resourcequotas";
  w.create(quotas, "metadata: {name: q}\nspec: {hard: {pods: 1}}");
  w.create(kSets,
           "metadata: {name: r}\nspec: {replicas: 3, selector: {matchLabels: {app: w}}, template: "
           "{metadata: {labels: {app: w}}, spec: {containers: [{name: main, image: i}]}}}");
  w.run(2);
  ASSERT_EQ(w.pods().size(), 1u);
  const std::string said = w.field("/apis/events.k8s.io/v1/namespaces/default/events", "items");
  EXPECT_NE(said.find("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("FailedCreate"), std::string::npos);
  // With room for them they are made, a while later.
  w.merge(quotas + "/q", "spec: {hard: {pods: 3}}");
  w.run(70);
  EXPECT_EQ(w.pods().size(), 3u);
}

std::string deployment(const std::string& image, const std::string& more) {
  return "metadata: {name: d}\nspec: {replicas: 4, selector: {matchLabels: {app: w}}, " + more +
         "template: {metadata: {labels: {app: w}}, spec: {containers: [{name: main, image: " +
         image + "}]}}}";
}

TEST(Deployments, RollWithoutALoss) {
  WorkWorld w;
  w.create(kDeployments,
           deployment("a", "strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}, "));
  w.run(2);
  ASSERT_EQ(w.pods().size(), 4u);
  w.say_all("Running");
  w.run(2);
  const std::string path = kDeployments + "/d";
  EXPECT_EQ(w.field(path, "status.availableReplicas"), "4");
  EXPECT_EQ(w.field(path, "status.conditions[Available].status"), "True");
  EXPECT_EQ(w.field(path, "status.conditions[Progressing].reason"), "NewReplicaSetAvailable");
  const auto object = w.call("GET", path);
  EXPECT_EQ(
      text_at(object.second.root(), "metadata.annotations[deployment.kubernetes.io/revision]"),
      "1");
  ASSERT_EQ(w.names(kSets).size(), 1u);
  const std::string first = w.names(kSets)[0];
  EXPECT_NE(w.field(kSets + '/' + first, "spec.template.metadata.labels.pod-template-hash"), "");

  w.merge(path, "spec: {template: {spec: {containers: [{name: main, image: b}]}}}");
  std::size_t most = 0;
  int least = 4;
  for (int i = 0; i < 40; ++i) {
    w.run(0.5);
    most = std::max(most, w.pods().size());
    int ready = 0;
    for (const std::string& pod : w.pods()) {
      ready += w.field(kWorkPods + '/' + pod, "status.conditions[Ready].status") == "True";
    }
    least = std::min(least, ready);
    if (i % 2 == 1) w.say_all("Running");
  }
  EXPECT_EQ(most, 5u);
  EXPECT_GE(least, 3);
  EXPECT_EQ(w.field(path, "status.updatedReplicas"), "4");
  EXPECT_EQ(w.field(path, "status.replicas"), "4");
  EXPECT_EQ(w.field(kSets + '/' + first, "spec.replicas"), "0");
  for (const std::string& pod : w.pods()) {
    EXPECT_EQ(w.field(kWorkPods + '/' + pod, "spec.containers.0.image"), "b");
  }
  // Back again: the old ReplicaSet is used, with a new revision.
  w.merge(path, "spec: {template: {spec: {containers: [{name: main, image: a}]}}}");
  for (int i = 0; i < 20; ++i) {
    w.run(1);
    w.say_all("Running");
  }
  EXPECT_EQ(w.names(kSets).size(), 2u);
  EXPECT_EQ(w.field(kSets + '/' + first, "spec.replicas"), "4");
  const auto back = w.call("GET", kSets + '/' + first);
  EXPECT_EQ(text_at(back.second.root(), "metadata.annotations[deployment.kubernetes.io/revision]"),
            "3");
}

TEST(Deployments, ScaleRecreateAndStandStill) {
  WorkWorld w;
  const std::string path = kDeployments + "/d";
  w.create(kDeployments,
           deployment("a", "strategy: {type: Recreate}, progressDeadlineSeconds: 60, "));
  w.run(2);
  w.say_all("Running");
  w.run(1);
  w.merge(path, "spec: {replicas: 2}");
  w.run(2);
  EXPECT_EQ(w.pods().size(), 2u);
  w.merge(path, "spec: {replicas: 5}");
  w.run(2);
  EXPECT_EQ(w.pods().size(), 5u);
  EXPECT_EQ(w.field(path, "status.unavailableReplicas"), "3");
  w.merge(path, "spec: {template: {spec: {containers: [{name: main, image: b}]}}}");
  w.run(2);
  EXPECT_EQ(w.pods().size(), 5u);
  for (const std::string& pod : w.pods()) {
    EXPECT_EQ(w.field(kWorkPods + '/' + pod, "spec.containers.0.image"), "b");
  }
  w.run(120);  // the new ones never become ready
  EXPECT_EQ(w.field(path, "status.conditions[Progressing].reason"), "ProgressDeadlineExceeded");
  w.say_all("Running");
  w.run(2);
  EXPECT_EQ(w.field(path, "status.conditions[Progressing].reason"), "NewReplicaSetAvailable");
}

TEST(Budgets, Count) {
  struct Case {
    const char* spec;
    int expected, pods, ready;
    int want_expected, want_desired;
  };
  const Case cases[] = {
      {"minAvailable: 2", 4, 4, 3, 4, 2},   {"minAvailable: 50%", 5, 5, 5, 5, 3},
      {"maxUnavailable: 1", 4, 3, 3, 4, 3}, {"maxUnavailable: 30%", 10, 10, 10, 10, 7},
      {"maxUnavailable: 9", 4, 4, 4, 4, 0}, {"selector: {}", 4, 2, 2, 2, 1},
  };
  for (const Case& c : cases) {
    std::vector<PodInfo> pods(static_cast<std::size_t>(c.pods));
    std::vector<const PodInfo*> list;
    for (int i = 0; i < c.pods; ++i) {
      pods[static_cast<std::size_t>(i)].ready = i < c.ready;
      list.push_back(&pods[static_cast<std::size_t>(i)]);
    }
    const auto budget = text::parse_json(yaml_to_json("spec: {" + std::string(c.spec) + "}"));
    const BudgetCounts counts = count_budget(budget->root(), list, c.expected);
    EXPECT_EQ(counts.expected, c.want_expected) << c.spec;
    EXPECT_EQ(counts.desired, c.want_desired) << c.spec;
    EXPECT_EQ(counts.healthy, c.ready) << c.spec;
  }
}

TEST(Budgets, GuardEvictions) {
  WorkWorld w;
  w.create(kSets,
           "metadata: {name: r}\nspec: {replicas: 3, selector: {matchLabels: {app: w}}, template: "
           "{metadata: {labels: {app: w}}, spec: {containers: [{name: main, image: i}]}}}");
  const std::string budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
  w.create(budgets,
           "metadata: {name: b}\nspec: {maxUnavailable: 1, selector: {matchLabels: {app: w}}}");
  w.run(1);
  EXPECT_EQ(w.field(budgets + "/b", "status.disruptionsAllowed"), "0");
  w.say_all("Running");
  w.run(1);
  EXPECT_EQ(w.field(budgets + "/b", "status.disruptionsAllowed"), "1");
  EXPECT_EQ(w.field(budgets + "/b", "status.expectedPods"), "3");
  EXPECT_EQ(w.field(budgets + "/b", "status.conditions[DisruptionAllowed].status"), "True");
  const std::vector<std::string> pods = w.pods();
  const auto evict = [&w](const std::string& pod) {
    return w
        .call(
            "POST", kWorkPods + '/' + pod + "/eviction",
            R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":")" + pod + R"("}})")
        .first;
  };
  EXPECT_EQ(evict(pods[0]), 201);
  w.run(1);
  EXPECT_EQ(w.field(budgets + "/b", "status.disruptionsAllowed"), "0");
  EXPECT_EQ(evict(pods[1]), 429);
  w.say_all("Running");
  w.run(1);
  EXPECT_EQ(w.field(budgets + "/b", "status.disruptionsAllowed"), "1");
}

// ---- nodes ----

void put_node(WorkWorld& w, const std::string& name, const std::string& more = "") {
  w.create("/api/v1/nodes", "metadata: {name: " + name + "}\nspec: {" + more +
                                "}\nstatus: {conditions: [{type: Ready, status: 'True', "
                                "lastHeartbeatTime: '2027-01-15T08:00:00Z'}]}");
}

void put_lease(WorkWorld& w, const std::string& node) {
  w.create("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
           "metadata: {name: " + node + "}\nspec: {holderIdentity: " + node + ", renewTime: '" +
               micro_text(w.clock.now_ns()) + "'}");
}

void renew_lease(WorkWorld& w, const std::string& node) {
  w.merge("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + node,
          "spec: {renewTime: '" + micro_text(w.clock.now_ns()) + "'}");
}

std::string taints_of(WorkWorld& w, const std::string& node) {
  const auto object = w.call("GET", "/api/v1/nodes/" + node);
  std::string out;
  for (const text::Value& taint : at(object.second.root(), "spec.taints").items()) {
    out += std::string(text_at(taint, "key")) + ':' + std::string(text_at(taint, "effect")) + ' ';
  }
  return out;
}

TEST(NodeLife, SilenceTaintsAndEvicts) {
  WorkWorld w;
  put_node(w, "n1", "");
  put_node(w, "m1", "");
  w.create(kWorkPods,
           "metadata: {name: p}\nspec: {nodeName: n1, containers: [{name: main, image: i}]}");
  w.create(kWorkPods,
           "metadata: {name: stays}\nspec: {nodeName: n1, tolerations: [{operator: Exists}], "
           "containers: [{name: main, image: i}]}");
  put_lease(w, "n1");
  put_lease(w, "m1");
  for (int i = 0; i < 12; ++i) {
    w.run(10);
    if (i < 4) renew_lease(w, "n1");
    renew_lease(w, "m1");
    if (i == 6) {
      EXPECT_EQ(w.field("/api/v1/nodes/n1", "status.conditions[Ready].status"), "True");
      w.say("p", "Running");
    }
  }
  EXPECT_EQ(w.field("/api/v1/nodes/n1", "status.conditions[Ready].status"), "Unknown");
  EXPECT_EQ(w.field("/api/v1/nodes/n1", "status.conditions[Ready].reason"), "NodeStatusUnknown");
  EXPECT_EQ(w.field("/api/v1/nodes/m1", "status.conditions[Ready].status"), "True");
  EXPECT_EQ(taints_of(w, "n1"),
            "node.kubernetes.io/unreachable:NoSchedule node.kubernetes.io/unreachable:NoExecute ");
  EXPECT_EQ(taints_of(w, "m1"), "");
  EXPECT_EQ(w.field(kWorkPods + "/p", "status.conditions[Ready].status"), "False");
  EXPECT_EQ(w.field(kWorkPods + "/p", "metadata.deletionTimestamp"), "");
  for (int i = 0; i < 31; ++i) {
    w.run(10);
    renew_lease(w, "m1");
  }
  EXPECT_NE(w.field(kWorkPods + "/p", "metadata.deletionTimestamp"), "");
  EXPECT_EQ(w.field(kWorkPods + "/p", "status.conditions[DisruptionTarget].reason"),
            "DeletionByTaintManager");
  EXPECT_EQ(w.field(kWorkPods + "/stays", "metadata.deletionTimestamp"), "");
  // The kubelet is back.
  renew_lease(w, "n1");
  w.merge("/api/v1/nodes/n1/status", "status: {conditions: [{type: Ready, status: 'True'}]}");
  w.run(2);
  EXPECT_EQ(taints_of(w, "n1"), "");
}

TEST(NodeLife, CordonAndPodsOfLostNodes) {
  WorkWorld w;
  put_node(w, "n1", "taints: [{key: own, effect: NoSchedule}]");
  w.create(kWorkPods,
           "metadata: {name: p}\nspec: {nodeName: n1, containers: [{name: main, image: i}]}");
  w.run(1);
  w.merge("/api/v1/nodes/n1", "spec: {unschedulable: true}");
  w.run(1);
  EXPECT_EQ(taints_of(w, "n1"), "own:NoSchedule node.kubernetes.io/unschedulable:NoSchedule ");
  w.merge("/api/v1/nodes/n1", "spec: {unschedulable: null}");
  w.run(1);
  EXPECT_EQ(taints_of(w, "n1"), "own:NoSchedule ");
  w.remove("/api/v1/nodes/n1");
  w.run(30);
  EXPECT_TRUE(w.exists(kWorkPods + "/p"));
  w.run(20);
  EXPECT_FALSE(w.exists(kWorkPods + "/p"));
}

TEST(NodeLife, HowLongAPodStays) {
  const auto delay = [](const std::string& tolerations, const std::string& key) {
    const auto pod = text::parse_json(
        yaml_to_json("metadata: {name: p}\nspec: {tolerations: [" + tolerations + "]}"));
    model::Taint taint;
    taint.key = key;
    taint.effect = model::TaintEffect::kNoExecute;
    const std::int64_t ns = eviction_delay(read_pod_info(pod->root()), {taint}, 300 * kTestSecond);
    return ns < 0 ? ns : ns / kTestSecond;
  };
  const std::string lost = "node.kubernetes.io/unreachable";
  EXPECT_EQ(delay("", lost), 300);
  EXPECT_EQ(delay("", "mine"), 0);
  EXPECT_EQ(delay("{operator: Exists}", "mine"), -1);
  EXPECT_EQ(delay("{key: mine, operator: Exists, effect: NoExecute, tolerationSeconds: 7}", "mine"),
            7);
  EXPECT_EQ(delay("{key: mine, operator: Exists, effect: NoSchedule}", "mine"), 0);
  EXPECT_EQ(
      delay("{operator: Exists}, {key: mine, operator: Exists, tolerationSeconds: 5}", "mine"), 5);
}

TEST(Passes, OneAtATimeAndAgainAfterAFailure) {
  FakeClock clock;
  SteppedLoop loop(clock);
  std::vector<Passes::Finished> open;
  int begun = 0;
  Passes passes(loop, [&](const kube::Key&, Passes::Finished finished) {
    ++begun;
    open.push_back(std::move(finished));
  });
  passes.add({"", "a"});
  passes.add({"", "a"});
  loop.run_ready();
  EXPECT_EQ(begun, 1);
  passes.add({"", "a"});  // while it runs: once more afterwards
  loop.run_ready();
  EXPECT_EQ(begun, 1);
  open[0](true);
  open[0](true);  // said twice: counts once
  loop.run_ready();
  EXPECT_EQ(begun, 2);
  open[1](false);
  loop.run_ready();
  EXPECT_EQ(begun, 2);
  loop.run_for(kTestSecond);
  EXPECT_EQ(begun, 3);
  open[2](true);
  EXPECT_TRUE(passes.idle());
  passes.add_after({"", "b"}, 5 * kTestSecond);
  passes.add_after({"", "b"}, 2 * kTestSecond);
  passes.add_after({"", "b"}, 9 * kTestSecond);
  loop.run_for(3 * kTestSecond);
  EXPECT_EQ(begun, 4);
  open[3](true);
  loop.run_for(20 * kTestSecond);
  EXPECT_EQ(begun, 4);
}

}  // namespace
}  // namespace berth::sim
