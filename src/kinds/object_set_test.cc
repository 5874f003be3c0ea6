// What changes tell, step by step, equals what everything tells at once.
#include "kinds/object_set.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "model/snapshot_builder.h"
#include "text/yaml.h"

namespace berth::kinds {
namespace {

struct World {
  ObjectSet set{{.scheduler_names = {"berth"}, .seed = 7}};
  std::unique_ptr<model::SnapshotBuilder> builder = std::make_unique<model::SnapshotBuilder>();
  int version = 0;

  Effect put(std::string_view api, std::string_view kind, const std::string& yaml) {
    auto documents = text::parse_yaml(yaml);
    EXPECT_TRUE(documents.ok()) << yaml;
    if (!documents.ok() || documents->empty()) return Effect::kNone;
    return set.put(api, kind, documents->front().root());
  }
  Effect pod(const std::string& name, const std::string& meta, const std::string& spec,
             const std::string& status = "phase: Pending", const std::string& scheduler = "berth") {
    return put("v1", "Pod",
               fmt::format("metadata: {{name: {0}, namespace: d, uid: u-{0}, resourceVersion: "
                           "'{5}', {1}}}\nspec: {{schedulerName: {4}, {2}}}\nstatus: {{{3}}}\n",
                           name, meta, spec, status, scheduler, ++version));
  }
  Effect node(const std::string& name, int gpus, const std::string& more = "") {
    return put("v1", "Node",
               fmt::format("metadata: {{name: {0}, labels: {{kubernetes.io/hostname: {0}, "
                           "nvidia.com/gpu.count: '{1}', nvidia.com/gpu.product: "
                           "NVIDIA-H100-80GB-HBM3, topology.kubernetes.io/rack: r1{2}}}}}\nstatus: "
                           "{{allocatable: {{cpu: '64', memory: 512Gi, pods: '110', "
                           "nvidia.com/gpu: '{1}'}}, conditions: [{{type: Ready, status: "
                           "'True'}}]}}\n",
                           name, gpus, more));
  }

  void feed() {
    bool more = true;
    while (more) {
      ObjectChanges c = set.take_changes(3);
      if (c.everything) builder = std::make_unique<model::SnapshotBuilder>();
      for (const auto& name : c.gone_nodes) builder->remove_node(name);
      for (const auto& node : c.nodes) builder->upsert_node(node);
      for (const auto& gang : c.gone_gangs) builder->remove_gang(gang);
      for (const auto& gang : c.gangs) builder->upsert_gang(gang);
      for (const auto& name : c.gone_pods) builder->remove_pod(name);
      for (const auto& pod : c.pods) builder->upsert_pod(pod);
      if (c.budgets_changed) builder->set_budgets(c.budgets);
      more = c.more;
    }
  }
  std::string fresh() const {
    model::SnapshotBuilder other;
    const Inputs inputs = set.inputs();
    for (const auto& node : inputs.nodes) other.upsert_node(node);
    for (const auto& gang : inputs.gangs) other.upsert_gang(gang);
    for (const auto& pod : inputs.pods) other.upsert_pod(pod);
    other.set_budgets(inputs.budgets);
    return other.state().dump();
  }
};

// A resize is asked for in the spec, and done by a kubelet, or not.
TEST(ObjectSet, APodThatIsResizedHasWhatItsKubeletSays) {
  World w;
  w.node("node", 4);
  const auto cpu = [&](const char* asked, const std::string& status) {
    w.pod("p", "labels: {a: b}",
          fmt::format(
              "nodeName: node, containers: [{{name: c, resources: {{requests: {{cpu: '{}'}}}}}}]",
              asked),
          "phase: Running" + status);
    w.feed();
    EXPECT_EQ(w.builder->state().dump(), w.fresh());
    return 64000 - w.builder->state().node(0).cpu;
  };
  const auto has = [](const char* set_aside, const char* actual) {
    return fmt::format(
        ", containerStatuses: [{{name: c, allocatedResources: {{cpu: '{}'}}, "
        "resources: {{requests: {{cpu: '{}'}}}}}}]",
        set_aside, actual);
  };
  const std::string no = ", conditions: [{type: PodResizePending, status: 'True', reason: ";
  EXPECT_EQ(cpu("2", ""), 2000);
  EXPECT_EQ(cpu("2", has("2", "2")), 2000);
  EXPECT_EQ(cpu("100k", has("2", "2")), 100'000'000) << "the kubelet has not spoken";
  EXPECT_EQ(cpu("100k", has("2", "2") + no + "Deferred}]"), 100'000'000);
  EXPECT_EQ(cpu("100k", has("2", "3") + no + "Infeasible}]"), 3000);
  EXPECT_EQ(cpu("1", has("2", "3")), 3000) << "on its way down";
  EXPECT_EQ(cpu("1", has("x", "-3") + ", conditions: {}"), 1000)
      << "what cannot be read is not there";
  EXPECT_EQ(cpu("1", ", containerStatuses: [{name: other, allocatedResources: {cpu: 9}}, 5]"),
            1000);
}

constexpr const char* kOneGpu =
    "containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1, cpu: 2}}}]";

TEST(ObjectSet, EffectsOfPods) {
  World w;
  w.node("n1", 8);
  EXPECT_EQ(w.pod("a", "", kOneGpu), Effect::kNow);
  EXPECT_EQ(w.pod("a", "", kOneGpu), Effect::kNone) << "only the version differs";
  EXPECT_EQ(w.pod("other", "", kOneGpu, "phase: Pending", "default-scheduler"), Effect::kNone);
  EXPECT_EQ(w.set.pods(), 1u);
  const std::string bound = std::string(kOneGpu) + ", nodeName: n1";
  EXPECT_EQ(w.pod("other", "", bound, "phase: Running", "default-scheduler"), Effect::kNow);
  EXPECT_EQ(w.pod("a", "annotations: {berth.dev/gpus: '3'}", bound), Effect::kNow);
  EXPECT_EQ(w.set.pod("d/a")->body, w.set.pod("d/a")->body);
  w.feed();
  EXPECT_EQ(w.builder->state().dump(), w.fresh());
  EXPECT_EQ(w.pod("a", "annotations: {berth.dev/gpus: '3'}", bound, "phase: Succeeded"),
            Effect::kNow);
  EXPECT_EQ(w.set.pod("d/a"), nullptr);
  EXPECT_EQ(w.set.remove("v1", "Pod", "d", "a"), Effect::kNone);
}

TEST(ObjectSet, GpusByAnnotationAreThoseThatThePodWasBoundWith) {
  World w;
  w.node("n1", 8);
  const std::string bound = "containers: [{name: c}], nodeName: n1";
  const auto milli = [&w](const std::string& name) {
    for (const model::PodSpec& pod : w.set.inputs().pods) {
      if (pod.name == name) return pod.gpu.milli * pod.gpu.count;
    }
    return -1;
  };
  w.pod("part", "annotations: {gpu-fraction: '0.5'}", bound, "phase: Running");
  for (const char* later : {"'0.1'", "x", "'1', gpu-fraction-num-devices: '8'",
                            "x, berth.dev/gpus: '0,1,2,3,4,5,6,7'"}) {
    w.pod("part", fmt::format("annotations: {{gpu-fraction: {}}}", later), bound, "phase: Running");
    EXPECT_EQ(milli("part"), 500) << later;
  }
  w.pod("part", "", bound, "phase: Running");
  EXPECT_EQ(milli("part"), 500);
  w.pod("none", "", bound, "phase: Running");
  w.pod("none", "annotations: {gpu-fraction: x, berth.dev/gpus: '0,1'}", bound, "phase: Running");
  EXPECT_EQ(milli("none"), 0);
  // kube-scheduler gives nobody a GPU for an annotation.
  for (const char* asked : {"'0.5'", "x", "x, berth.dev/gpus: '0,1'"}) {
    w.pod("other", fmt::format("annotations: {{gpu-fraction: {}}}", asked), bound, "phase: Running",
          "default-scheduler");
    EXPECT_EQ(milli("other"), 0) << asked;
    w.set.remove("v1", "Pod", "d", "other");
  }
}

TEST(ObjectSet, EqualPodsShareOneBody) {
  World w;
  w.pod("a", "labels: {app: x}", kOneGpu);
  w.pod("b", "labels: {app: x}", std::string(kOneGpu) + ", nodeName: n1", "phase: Running");
  w.pod("c", "labels: {app: y}", kOneGpu);
  EXPECT_EQ(w.set.pod("d/a")->body, w.set.pod("d/b")->body);
  EXPECT_NE(w.set.pod("d/a")->body, w.set.pod("d/c")->body);
  EXPECT_EQ(w.set.pod("d/b")->node, "n1");
}

TEST(ObjectSet, AnInvalidPodIsToldAndLeavesTheModel) {
  World w;
  w.node("n1", 8);
  w.pod("a", "", kOneGpu);
  w.feed();
  w.pod("a", "", "containers: [{name: c, resources: {limits: {nvidia.com/gpu: -1}}}]");
  const ObjectChanges c = w.set.take_changes(10);
  ASSERT_EQ(c.gone_pods, std::vector<std::string>{"d/a"});
  ASSERT_FALSE(c.refused.empty());
  EXPECT_EQ(c.refused[0].object, "Pod d/a");
}

TEST(ObjectSet, DigestComesBackWithTheObjects) {
  World w, x;
  const std::uint64_t empty = w.set.digest();
  w.node("n1", 8);
  w.pod("a", "", kOneGpu);
  x.pod("a", "", kOneGpu);
  x.node("n1", 8);
  EXPECT_EQ(w.set.digest(), x.set.digest());
  EXPECT_NE(w.set.digest(), empty);
  w.set.remove("v1", "Pod", "d", "a");
  w.set.remove("v1", "Node", "", "n1");
  EXPECT_EQ(w.set.digest(), empty);
}

TEST(ObjectSet, InputsNameWhatIsWrongWithPods) {
  World w;
  w.pod("a", "", "containers: [{name: c, resources: {limits: {nvidia.com/gpu: -1}}}]");
  const Inputs inputs = w.set.inputs();
  ASSERT_EQ(inputs.invalid.size(), 1u);
  EXPECT_EQ(inputs.invalid[0].object, "Pod d/a");
  EXPECT_TRUE(inputs.pods.empty());
}

TEST(ObjectSet, RevisionsTellWhetherInputsMayDiffer) {
  World w;
  w.node("n1", 8);
  w.pod("a", "", kOneGpu);
  const std::uint64_t before = w.set.revision();
  w.node("n1", 8);
  w.pod("a", "", kOneGpu);
  EXPECT_EQ(w.set.revision(), before) << "only versions differ";
  std::uint64_t last = before;
  const auto grows = [&](const char* what) {
    EXPECT_GT(w.set.revision(), last) << what;
    last = w.set.revision();
  };
  w.pod("a", "", std::string(kOneGpu) + ", nodeName: n1", "phase: Running");
  grows("a pod is bound");
  w.node("n1", 4);
  grows("a node changes");
  w.put("batch/v1", "Job",
        "metadata: {name: j, namespace: d}\n"
        "spec: {template: {spec: {containers: [{name: c}]}}}\n");
  EXPECT_EQ(w.set.revision(), last) << "a Job that decides nothing";
  w.set.remove("v1", "Pod", "d", "a");
  grows("a pod is gone");
  w.set.remove("v1", "Pod", "d", "a");
  EXPECT_EQ(w.set.revision(), w.set.copy()->revision()) << "it was gone before";
}

TEST(ObjectSet, ACopyIsChangedByItself) {
  World w;
  w.node("n1", 8);
  w.pod("a", "", kOneGpu);
  w.pod("b", "", std::string(kOneGpu) + ", nodeName: n1", "phase: Running");
  const std::unique_ptr<ObjectSet> copy = w.set.copy();
  const auto names = [](const ObjectSet& set) {
    std::string out;
    for (const model::PodSpec& pod : set.inputs().pods) out += pod.name + '@' + pod.node_name + ' ';
    return out;
  };
  EXPECT_EQ(names(*copy), names(w.set));
  copy->remove("v1", "Pod", "d", "b");
  const auto other = text::parse_yaml(
      "metadata: {name: c, namespace: d}\nspec: {containers: [{name: c, resources: {limits: "
      "{nvidia.com/gpu: 1}}}]}\n");
  ASSERT_TRUE(other.ok());
  copy->put("v1", "Pod", other->front().root());
  EXPECT_EQ(names(*copy), "a@ c@ ") << "pods of every scheduler count in a copy";
  EXPECT_EQ(names(w.set), "a@ b@n1 ");
  w.set.remove("v1", "Node", "", "n1");
  EXPECT_EQ(copy->inputs().nodes.size(), 1u);
}

TEST(ObjectSet, JobsMakeNoPodsAndPodsOfQueuesComeWithInputs) {
  World w;
  w.node("n1", 8);
  w.put("batch/v1", "Job",
        "metadata: {name: j, namespace: d, annotations: {berth.dev/gang: 'true'}}\n"
        "spec: {parallelism: 2, template: {spec: {containers: [{name: c}]}}}\n");
  EXPECT_TRUE(w.set.inputs().pods.empty());
  w.pod("j-a", "ownerReferences: [{kind: Job, name: j, controller: true}]", kOneGpu);
  w.feed();
  EXPECT_EQ(w.builder->state().dump(), w.fresh());
  EXPECT_FALSE(w.set.in_queue("d/j-a"));
  w.put("kueue.x-k8s.io/v1beta2", "ClusterQueue",
        "metadata: {name: q}\nspec: {namespaceSelector: {}, resourceGroups: []}\n");
  w.pod("p", "labels: {kueue.x-k8s.io/queue-name: lq}", kOneGpu);
  EXPECT_TRUE(w.set.in_queue("d/p"));
  EXPECT_TRUE(w.set.queues_changed());
  w.set.inputs_taken();
  w.pod("plain", "", kOneGpu);
  EXPECT_FALSE(w.set.queues_changed());
  const ObjectChanges c = w.set.take_changes(10);
  ASSERT_EQ(c.pods.size(), 1u);
  EXPECT_EQ(c.pods[0].name, "plain");
}

// A pod is decided once: by its queue or without one, by inputs() and take_changes() alike.
TEST(ObjectSet, PodsWithoutALabelAreOfNoQueueAlsoWhereTheNamespaceHasADefault) {
  World w;
  w.node("n1", 8);
  w.put("kueue.x-k8s.io/v1beta2", "ClusterQueue",
        "metadata: {name: q}\nspec: {namespaceSelector: {}, resourceGroups: []}\n");
  w.put("kueue.x-k8s.io/v1beta2", "LocalQueue",
        "metadata: {name: default, namespace: d}\nspec: {clusterQueue: q}\n");
  w.put("scheduling.x-k8s.io/v1alpha1", "PodGroup",
        "metadata: {name: g, namespace: d}\nspec: {minMember: 1}\n");
  w.pod("plain", "", kOneGpu);
  w.pod("member", "labels: {scheduling.x-k8s.io/pod-group: g}", kOneGpu);
  const Inputs inputs = w.set.inputs();
  EXPECT_TRUE(inputs.queues.workloads.empty());
  ASSERT_EQ(inputs.pods.size(), 2u);
  for (const model::PodSpec& pod : inputs.pods) {
    EXPECT_FALSE(pod.queued) << pod.name;
    EXPECT_FALSE(w.set.in_queue("d/" + pod.name)) << pod.name;
  }
}

TEST(ObjectSet, OfPodsOnlyThoseOfQueuesAreTold) {
  World w;
  w.node("n1", 8);
  w.put("kueue.x-k8s.io/v1beta2", "ClusterQueue",
        "metadata: {name: q}\nspec: {namespaceSelector: {}, resourceGroups: []}\n");
  w.put("kueue.x-k8s.io/v1beta2", "LocalQueue",
        "metadata: {name: lq, namespace: d}\nspec: {clusterQueue: q}\n");
  w.pod("plain", "", kOneGpu);
  const QueueChanges idle = w.set.take_queue_changes();
  EXPECT_TRUE(idle.rules);
  EXPECT_TRUE(idle.pods.empty());
  EXPECT_EQ(w.set.queues().rules->queues.size(), 1u);
  EXPECT_EQ(w.set.queues().rules->local_queues.size(), 1u);
  w.pod("p", "labels: {kueue.x-k8s.io/queue-name: lq}", kOneGpu);
  const QueueChanges busy = w.set.take_queue_changes();
  EXPECT_FALSE(busy.rules);
  EXPECT_EQ(busy.pods.size(), 1u);
  EXPECT_EQ(busy.workloads.size(), 1u);
}

struct WaitingWorld : World {
  std::vector<std::shared_ptr<const model::WorkloadSpec>> decided() {
    set.take_queue_changes();
    return set.queues().workloads;
  }

  WaitingWorld() {
    put("kueue.x-k8s.io/v1beta2", "ClusterQueue",
        "metadata: {name: q}\nspec: {namespaceSelector: {}, resourceGroups: []}\n");
    put("kueue.x-k8s.io/v1beta2", "LocalQueue",
        "metadata: {name: lq, namespace: d}\nspec: {clusterQueue: q}\n");
  }
  // The later its number the later it was made.
  Effect workload(int number, const std::string& status = "{}", const std::string& cpu = "1",
                  const std::string& meta = "") {
    return put(
        "kueue.x-k8s.io/v1beta2", "Workload",
        fmt::format("metadata: {{name: w{0:05}, namespace: d, uid: u{0:05}, creationTimestamp: "
                    "'2026-01-01T{1:02}:{2:02}:{3:02}Z', resourceVersion: '{4}'{5}}}\nspec: "
                    "{{queueName: lq, podSets: [{{name: main, count: 1, template: {{spec: "
                    "{{containers: [{{name: c, image: i, resources: {{requests: {{cpu: "
                    "'{6}'}}}}}}]}}}}}}]}}\nstatus: {7}\n",
                    number, number / 3600, number / 60 % 60, number % 60, ++version, meta, cpu,
                    status));
  }
};

TEST(ObjectSet, OfManyThatWaitAndAreAlikeADecisionSeesTheFirst) {
  WaitingWorld w;
  for (int i = 0; i < 2'500; ++i) w.workload(i);
  w.workload(9'000, "{}", "2");
  w.workload(9'001,
             "{conditions: [{type: Evicted, status: 'True', reason: Preempted, message: m, "
             "lastTransitionTime: '2026-01-02T00:00:00Z'}]}");
  EXPECT_EQ(w.set.inputs().queues.workloads.size(), 2'502u);
  const auto seen = w.decided();
  ASSERT_EQ(seen.size(), 130u) << "half of 256 for each of two lanes, and who was evicted";
  EXPECT_EQ(seen.front()->name, "w00000");
  EXPECT_EQ(seen[127]->name, "w00127");
  EXPECT_EQ(seen[128]->name, "w09000");
  EXPECT_EQ(w.set.waiting_behind(), (std::map<std::string, int>{{"d/lq", 2'372}}));
  for (int i = 0; i < 2'300; ++i) {
    w.set.remove("kueue.x-k8s.io/v1beta2", "Workload", "d", fmt::format("w{:05}", i));
  }
  EXPECT_EQ(w.decided().front()->name, "w02300");
  EXPECT_TRUE(w.set.waiting_behind().empty()) << "they are few by now";
}

TEST(ObjectSet, PodsOfAWorkloadThatIsNotSeenAreNotQueuedAnew) {
  WaitingWorld w;
  const std::string owned =
      ", ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u-p, controller: true}]";
  for (int i = 0; i < 2'500; ++i) w.workload(i, "{}", "1", i == 2'499 ? owned : "");
  w.pod("p", "labels: {kueue.x-k8s.io/queue-name: lq}", kOneGpu);
  const QueueChanges changes = w.set.take_queue_changes();
  EXPECT_EQ(w.set.queues().workloads.size(), 256u);
  ASSERT_EQ(changes.pods.size(), 1u);
  EXPECT_TRUE(changes.pods.front().queued) << "it starts with its workload";
}

// Evicted with its pod gone it holds nothing; a pod of the same name that comes later is another.
TEST(ObjectSet, AnEvictedWorkloadEndsWithItsPod) {
  WaitingWorld w;
  const std::string owned =
      ", ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u-p, controller: true}]";
  const std::string evicted =
      "{conditions: [{type: Evicted, status: 'True', reason: Preempted, message: m, "
      "lastTransitionTime: '2026-01-02T00:00:00Z'}]}";
  w.pod("p", "labels: {kueue.x-k8s.io/queue-name: lq}", kOneGpu);
  w.workload(1, evicted, "1", owned);
  EXPECT_EQ(w.decided().front()->name, "w00001");
  w.set.remove("v1", "Pod", "d", "p");
  EXPECT_TRUE(w.decided().empty());
  w.put("v1", "Pod",
        std::string("metadata: {name: p, namespace: d, uid: other, resourceVersion: '7', labels: "
                    "{kueue.x-k8s.io/queue-name: lq}}\nspec: {schedulerName: berth, ") +
            kOneGpu + "}\nstatus: {phase: Pending}\n");
  ASSERT_EQ(w.decided().size(), 1u);
  EXPECT_EQ(w.decided().front()->name, "p");
}

TEST(ObjectSet, AGroupWhoseObjectIsWrittenAgainStaysInItsQueue) {
  WaitingWorld w;
  const auto group = [&w](const std::string& labels) {
    return w.put("scheduling.x-k8s.io/v1alpha1", "PodGroup",
                 "metadata: {name: g, namespace: d" + labels + "}\nspec: {minMember: 1}\n");
  };
  const std::string queued = ", labels: {kueue.x-k8s.io/queue-name: lq}";
  group(queued);
  w.pod("p", "labels: {scheduling.x-k8s.io/pod-group: g}", kOneGpu);
  EXPECT_TRUE(w.set.in_queue("d/p"));
  EXPECT_EQ(group(queued), Effect::kNone) << "its status, say";
  EXPECT_TRUE(w.set.in_queue("d/p"));
  EXPECT_EQ(group(""), Effect::kNow) << "it names no queue any more";
  EXPECT_FALSE(w.set.in_queue("d/p"));
}

// Our own words about a wait come back with the watch: nothing has to be decided for them.
TEST(ObjectSet, WhatIsOnlySaidOfAWaitChangesNothing) {
  WaitingWorld w;
  EXPECT_EQ(w.workload(1), Effect::kNow);
  w.set.inputs_taken();
  const std::string said =
      "{conditions: [{type: QuotaReserved, status: 'False', reason: WaitingForQuota, message: m}]}";
  EXPECT_EQ(w.workload(1, said), Effect::kNone);
  EXPECT_FALSE(w.set.queues_changed());
  EXPECT_EQ(
      w.workload(1, "{conditions: [{type: Finished, status: 'True', reason: r, message: m}]}"),
      Effect::kNow);
  EXPECT_TRUE(w.decided().empty());
  w.set.inputs_taken();
  const auto queue = [&w](const std::string& spec, const std::string& status) {
    return w.put("kueue.x-k8s.io/v1beta2", "ClusterQueue",
                 "metadata: {name: q}\nspec: {namespaceSelector: {}" + spec +
                     ", resourceGroups: []}\nstatus: {" + status + "}\n");
  };
  EXPECT_EQ(queue("", "pendingWorkloads: 3"), Effect::kNone);
  EXPECT_FALSE(w.set.queues_changed());
  EXPECT_EQ(queue(", cohortName: c", "pendingWorkloads: 3"), Effect::kNow);
  EXPECT_TRUE(w.set.queues_changed());
}

class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed) {}

  void step() {
    const std::string pod = fmt::format("p{}", random_.below(12));
    const std::string node = fmt::format("n{}", random_.below(4));
    switch (random_.below(12)) {
      case 0:
        w.node(node, static_cast<int>(4 * random_.below(3)),
               random_.chance(1, 2) ? ", rack: a" : "");
        break;
      case 1:
        w.set.remove("v1", "Node", "", node);
        break;
      case 2:
        gpu_node(node, pod);
        break;
      case 3:
        w.set.remove("v1", "Pod", "d", pod);
        break;
      case 4:
        group();
        break;
      case 5:
        if (random_.chance(1, 3))
          w.set.remove("scheduling.x-k8s.io/v1alpha1", "PodGroup", "d", "g");
        if (random_.chance(1, 8)) w.set.touch_all();
        break;
      case 6:
        w.put("v1", "PersistentVolumeClaim",
              fmt::format("metadata: {{name: c, namespace: d}}\nspec: {{volumeName: {}}}\n",
                          random_.chance(1, 2) ? "v" : "''"));
        break;
      case 7:
        w.put("v1", "PersistentVolume",
              "metadata: {name: v, labels: {topology.kubernetes.io/zone: z}}\nspec: {claimRef: "
              "{namespace: d, name: c}}\n");
        break;
      case 8:
        w.put("policy/v1", "PodDisruptionBudget",
              fmt::format("metadata: {{name: b, namespace: d}}\nspec: {{minAvailable: 1, selector: "
                          "{{matchLabels: {{app: x}}}}}}\nstatus: {{disruptionsAllowed: {}}}\n",
                          random_.below(3)));
        break;
      case 9:
        w.put("v1", "Namespace",
              fmt::format("metadata: {{name: d, labels: {{berth.dev/queue-required: '{}'}}}}\n",
                          random_.chance(1, 2)));
        break;
      default:
        put_pod(pod, node);
    }
  }
  void check(int at) {
    w.feed();
    ASSERT_EQ(w.builder->state().dump(), w.fresh()) << "step " << at;
    for (const model::PodSpec& pod : w.set.inputs().pods) {
      const auto id = w.builder->find_pod("d/" + pod.name);
      if (!id) continue;
      ASSERT_EQ(w.builder->state().pod(*id).info->needs_queue, pod.needs_queue)
          << "step " << at << ", pod " << pod.name;
    }
  }

  World w;

 private:
  void put_pod(const std::string& name, const std::string& node) {
    std::string meta = random_.chance(1, 2) ? "labels: {app: x" : "labels: {app: y";
    if (random_.chance(1, 3)) meta += ", scheduling.x-k8s.io/pod-group: g";
    meta += "}, annotations: {";
    if (random_.chance(1, 8)) meta += "kueue.x-k8s.io/podset-required-topology: rack, ";
    const bool bound = random_.chance(1, 2);
    if (bound && random_.chance(2, 3))
      meta += fmt::format("berth.dev/gpus: '{}'", random_.below(9));
    meta += "}";
    if (random_.chance(1, 10)) meta += ", deletionTimestamp: '2026-01-01T00:00:00Z'";
    std::string spec = fmt::format(
        "containers: [{{name: c, resources: {{limits: {{nvidia.com/gpu: {}, cpu: 2}}}}}}]",
        1 + random_.below(2));
    if (bound) spec += ", nodeName: " + node;
    if (random_.chance(1, 5)) {
      spec += ", volumes: [{name: a, persistentVolumeClaim: {claimName: c}}]";
    }
    if (random_.chance(1, 6)) {
      spec +=
          ", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
          "[{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: x}}}]}}";
    }
    constexpr const char* kPhases[] = {"Pending", "Pending", "Running", "Failed"};
    w.pod(name, meta, spec,
          fmt::format("phase: {}, startTime: '2026-01-01T00:00:0{}Z'", kPhases[random_.below(4)],
                      random_.below(2)));
  }
  void gpu_node(const std::string& node, const std::string& pod) {
    w.put("berth.dev/v1alpha1", "GpuNode",
          fmt::format("metadata: {{name: {}}}\nstatus: {{gpus: [{{index: 0, uuid: GPU-a, model: "
                      "NVIDIA-H100-80GB-HBM3, memoryMiB: 80000, health: {}}}, {{index: 1, uuid: "
                      "GPU-b, model: NVIDIA-H100-80GB-HBM3, memoryMiB: 80000, health: "
                      "Healthy, holders: [u-{}]}}]}}\n",
                      node, random_.chance(1, 2) ? "Healthy" : "Unhealthy", pod));
  }
  void group() {
    w.put("scheduling.x-k8s.io/v1alpha1", "PodGroup",
          fmt::format("metadata: {{name: g, namespace: d}}\nspec: {{minMember: {}}}\n",
                      1 + random_.below(3)));
  }

  Random random_;
};

TEST(ObjectSet, ChangesEqualEverythingAtOnce) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    History history(seed);
    for (int step = 0; step < 80; ++step) {
      history.step();
      if (step % 3 == 0) history.check(step);
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace berth::kinds
