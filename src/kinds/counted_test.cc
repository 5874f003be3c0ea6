// What runs or holds quota counts, whatever of it cannot be read.
#include "kinds/counted.h"

#include <fmt/format.h>

#include "base/random.h"
#include "kinds/object_set.h"
#include "kinds/read_for_test.h"
#include "model/snapshot_builder.h"

namespace berth::kinds {
namespace {

constexpr const char* kFourGpus =
    "{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {nvidia.com/gpu.count: '4', "
    "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}, status: {allocatable: {cpu: 64, memory: 1Ti, "
    "pods: 110, nvidia.com/gpu: 4}, conditions: [{type: Ready, status: 'True'}]}}\n---\n";

std::string pod_on(const std::string& node, const std::string& meta, const std::string& limits,
                   const std::string& spec = "") {
  return fmt::format(
      "{{apiVersion: v1, kind: Pod, metadata: {{name: p, namespace: t, uid: u{}}}, spec: {{{}"
      "containers: [{{name: c, resources: {{limits: {{{}}}}}}}]{}}}, status: {{phase: "
      "Running}}}}\n",
      meta.empty() ? "" : ", " + meta, node.empty() ? "" : "nodeName: " + node + ", ", limits,
      spec.empty() ? "" : ", " + spec);
}

// In milli-GPU, on node n1.
int held(const Inputs& in) {
  model::SnapshotBuilder builder;
  for (const auto& node : in.nodes) builder.upsert_node(node);
  for (const auto& gang : in.gangs) builder.upsert_gang(gang);
  for (const auto& pod : in.pods) builder.upsert_pod(pod);
  const model::ClusterState& state = builder.state();
  const auto slot = state.inventory().slot("n1");
  if (!slot) return -1;
  int free = 0;
  for (const auto milli : state.node(*slot).gpu) free += milli;
  return static_cast<int>(state.info(*slot).gpus.size()) * model::kMilliPerGpu - free;
}

// The same objects as a watch brings them.
Inputs live(const std::string& yaml) {
  ObjectSet set({.scheduler_names = {"berth"}, .seed = 3});
  const auto documents = text::parse_yaml(yaml);
  EXPECT_TRUE(documents.ok()) << yaml;
  for (const text::Document& document : *documents) {
    const text::Value& v = document.root();
    set.put(v.find("apiVersion")->string(), v.find("kind")->string(), v);
  }
  Inputs all_at_once = set.inputs();
  ObjectChanges changes = set.take_changes(100);
  EXPECT_EQ(changes.pods, all_at_once.pods);
  EXPECT_TRUE(changes.refused.empty());
  return all_at_once;
}

struct BadPart {
  const char* meta;
  const char* limits;
  const char* spec;
  const char* path;  // in the warning
  int held;
};

constexpr const char* kTwo = "nvidia.com/gpu: 2";
class PodsThatRun : public testing::TestWithParam<BadPart> {};

TEST_P(PodsThatRun, CountAndAreWarnedOf) {
  const BadPart& bad = GetParam();
  const std::string bound = kFourGpus + pod_on("n1", bad.meta, bad.limits, bad.spec);
  for (const Inputs& in : {read(bound), live(bound)}) {
    EXPECT_EQ(held(in), bad.held) << bound;
    EXPECT_TRUE(in.invalid.empty()) << all(in.invalid);
    EXPECT_EQ(in.counts.unread_objects, 1u);
    const std::string warnings = all(in.warnings);
    EXPECT_NE(warnings.find(bad.path), std::string::npos) << warnings;
    EXPECT_NE(warnings.find(kPodCounts), std::string::npos) << warnings;
  }
  // One that waits is refused, as ever.
  const Inputs waiting = read(kFourGpus + pod_on("", bad.meta, bad.limits, bad.spec));
  EXPECT_TRUE(waiting.pods.empty());
  EXPECT_NE(all(waiting.invalid).find(bad.path), std::string::npos) << all(waiting.invalid);
}

INSTANTIATE_TEST_SUITE_P(
    Table, PodsThatRun,
    testing::Values(
        BadPart{"annotations: {gpu-fraction: x}", kTwo, "", "gpu-fraction", 2000},
        BadPart{"annotations: {gpu-fraction: x}", "cpu: 1", "", "gpu-fraction", 1000},
        BadPart{"annotations: {gpu-fraction: x, berth.dev/gpus: '1,2'}", "cpu: 1", "",
                "gpu-fraction", 2000},
        BadPart{"annotations: {gpu-fraction: '0.2', gpu-memory: '100'}", "cpu: 1", "",
                "one way of asking", 1000},
        BadPart{"annotations: {gpu-fraction: '0.2'}", kTwo, "", "one way of asking", 2000},
        BadPart{"annotations: {gpu-memory: '-5'}", kTwo, "", "gpu-memory", 2000},
        BadPart{"annotations: {gpu-memory: '-5'}", "cpu: 1", "", "gpu-memory", 1000},
        BadPart{"annotations: {gpu-memory: x, gpu-fraction-num-devices: '3'}", "cpu: 1", "",
                "gpu-memory", 3000},
        BadPart{"annotations: {gpu-fraction: '0.5', gpu-fraction-num-devices: x}", "cpu: 1", "",
                "num-devices", 1000},
        BadPart{"annotations: {gpu-fraction-num-devices: '2'}", "cpu: 1", "", "num-devices", 2000},
        BadPart{"annotations: {berth.dev/gpus: '-1'}", kTwo, "", "berth.dev/gpus", 2000},
        BadPart{"annotations: {berth.dev/gpus: '0,x'}", kTwo, "", "berth.dev/gpus", 2000},
        BadPart{"annotations: {berth.dev/gpu-model: ','}", kTwo, "", "gpu-model", 2000},
        BadPart{"annotations: {berth.dev/gpu-memory-min: x}", kTwo, "", "gpu-memory-min", 2000},
        BadPart{"annotations: {berth.dev/topology-required: a b}", kTwo, "", "topology-required",
                2000},
        BadPart{"annotations: {scheduling.volcano.sh/group-min-member: x}", kTwo, "",
                "group-min-member", 2000},
        BadPart{"annotations: {scheduling.k8s.io/group-name: A B}", kTwo, "", "group-name", 2000},
        BadPart{"labels: {a: 'x y'}", kTwo, "", "labels.a", 2000},
        BadPart{"ownerReferences: [{kind: 5}]", kTwo, "", "ownerReferences", 2000},
        BadPart{"", kTwo, "affinity: {podAntiAffinity: 5}", "affinity", 2000},
        BadPart{"", kTwo, "topologySpreadConstraints: 5", "topologySpreadConstraints", 2000},
        BadPart{"", kTwo, "tolerations: [{operator: Maybe}]", "tolerations", 2000},
        BadPart{"", kTwo, "priority: high", "spec.priority", 2000},
        BadPart{"", "nvidia.com/gpu: x", "", "nvidia.com/gpu", 1000},
        BadPart{"", "nvidia.com/gpu: -3", "", "nvidia.com/gpu", 1000},
        BadPart{"", "nvidia.com/gpu: '1.5'", "", "nvidia.com/gpu", 2000},
        BadPart{"annotations: {berth.dev/gpus: '0,3'}", "nvidia.com/gpu: x", "", "nvidia.com/gpu",
                2000},
        BadPart{"", "nvidia.com/gpu: 2, memory: x", "", "memory", 2000},
        BadPart{"", "nvidia.com/gpu: 2, memory: 9Pi", "", "memory", 2000},
        BadPart{"", "nvidia.com/gpu: 2, nvidia.com/gpu.shared: 1", "", "one way of asking", 3000}));

// What the agent says is held, be the pod's own word what it may.
TEST(Counted, TheAgentsWordHolds) {
  const std::string agent =
      "---\n{apiVersion: berth.dev/v1alpha1, kind: GpuNode, metadata: {name: n1}, status: {gpus: "
      "[{index: 0}, {index: 1, holders: [u]}, {index: 2, holders: [u]}, {index: 3}]}}\n";
  for (const char* limits : {"cpu: 1", "nvidia.com/gpu: x", "nvidia.com/gpu: 1", kTwo}) {
    for (const char* meta : {"", "annotations: {berth.dev/gpus: '0'}",
                             "annotations: {gpu-fraction: x, berth.dev/gpus: x}"}) {
      const std::string yaml = kFourGpus + pod_on("n1", meta, limits) + agent;
      for (const Inputs& in : {read(yaml), live(yaml)}) {
        EXPECT_EQ(held(in), 2000) << limits << ' ' << meta;
        ASSERT_EQ(in.pods.size(), 1u);
        EXPECT_EQ(in.pods[0].gpu_indices, (std::vector<int>{1, 2})) << limits << ' ' << meta;
      }
    }
  }
}

// Random text in any annotation or label of a pod that runs: what it holds never falls.
TEST(Counted, RandomAnnotationsAndLabelsFreeNothing) {
  constexpr const char* kKeys[] = {"gpu-fraction",
                                   "gpu-memory",
                                   "gpu-fraction-num-devices",
                                   "berth.dev/gpus",
                                   "berth.dev/gpu-model",
                                   "berth.dev/gpu-memory-min",
                                   "berth.dev/topology-required",
                                   "berth.dev/topology-preferred",
                                   "kueue.x-k8s.io/podset-required-topology",
                                   "kueue.x-k8s.io/queue-name",
                                   "kueue.x-k8s.io/pod-group-name",
                                   "kueue.x-k8s.io/pod-group-total-count",
                                   "kueue.x-k8s.io/priority-class",
                                   "kai.scheduler/queue",
                                   "kai.scheduler/subgroup-name",
                                   "scheduling.k8s.io/group-name",
                                   "scheduling.volcano.sh/group-name",
                                   "scheduling.volcano.sh/group-min-member",
                                   "scheduling.volcano.sh/queue-name",
                                   "scheduling.x-k8s.io/pod-group",
                                   "pod-group-name",
                                   "volcano.sh/task-spec",
                                   "some.where/else"};
  constexpr std::string_view kLetters = "0123456789.,-xX /{}[";
  const std::string queue =
      "---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q}, spec: "
      "{namespaceSelector: {}}}\n---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, "
      "metadata: {name: default, namespace: t}, spec: {clusterQueue: q}}\n";
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    std::string meta;
    for (const char* part : {"annotations: {", "}, labels: {"}) {
      std::map<std::string, std::string> texts;
      for (int i = static_cast<int>(random.below(4)); i >= 0; --i) {
        std::string& value = texts[kKeys[random.below(std::size(kKeys))]];
        for (int n = static_cast<int>(random.below(6)); n > 0; --n) {
          value += kLetters[random.below(kLetters.size())];
        }
      }
      meta += part;
      for (const auto& [key, value] : texts) meta += fmt::format("\"{}\": \"{}\", ", key, value);
    }
    meta += '}';
    const std::string yaml = kFourGpus + pod_on("n1", meta, kTwo) + (seed % 2 == 0 ? queue : "");
    EXPECT_GE(held(read(yaml)), 2000) << yaml;
    ObjectSet set({.scheduler_names = {"berth"}, .seed = seed});
    const auto documents = text::parse_yaml(yaml);
    for (const text::Document& document : *documents) {
      const text::Value& v = document.root();
      set.put(v.find("apiVersion")->string(), v.find("kind")->string(), v);
    }
    EXPECT_GE(held(set.inputs()), 2000) << yaml;
    const std::size_t told = set.in_queue("t/p") ? 0 : 1;  // pods of queues are told by themselves
    if (told == 0) {
      Inputs of_queues = set.inputs();
      of_queues.pods = set.take_queue_changes().pods;
      EXPECT_GE(held(of_queues), 2000) << yaml;
    }
    EXPECT_EQ(set.take_changes(9).pods.size(), told) << yaml;
  }
}

// Equal pods share what was read of them, be they bound or not.
TEST(Counted, BoundAndWaitingPodsOfOneBody) {
  ObjectSet set({.scheduler_names = {"berth"}, .seed = 3});
  const auto put = [&set](const std::string& yaml) {
    const auto documents = text::parse_yaml(yaml);
    ASSERT_TRUE(documents.ok());
    set.put("v1", std::string(documents->front().root().find("kind")->string()),
            documents->front().root());
  };
  put(kFourGpus);
  const std::string ours = "schedulerName: berth";
  const std::string bad = "annotations: {gpu-memory: x}";
  put(pod_on("", bad, kTwo, ours));
  EXPECT_EQ(set.take_changes(9).refused.size(), 1u);
  EXPECT_EQ(set.unread().at("Pod"), 0u);
  // It was bound before it was spoilt, and the API does not show that yet.
  const auto believed = [](const std::string&, const LivePod&) {
    return ObjectSet::Place{"n1", {0, 1}};
  };
  set.touch_pod("t/p");
  ObjectChanges assumed = set.take_changes(9, believed);
  ASSERT_EQ(assumed.pods.size(), 1u);
  EXPECT_EQ(assumed.pods[0].gpu_indices, (std::vector<int>{0, 1}));
  EXPECT_EQ(held(set.inputs(believed)), 2000);
  put(pod_on("n1", bad, kTwo, ours));
  ObjectChanges bound = set.take_changes(9);
  EXPECT_EQ(bound.pods.size(), 1u);
  EXPECT_EQ(bound.unread.size(), 1u);
  EXPECT_EQ(set.unread().at("Pod"), 1u);
  put(pod_on("n1", "", kTwo, ours));
  EXPECT_EQ(set.unread().at("Pod"), 0u);
  EXPECT_TRUE(set.take_changes(9).unread.empty());
}

// ---- queues, and who holds quota of them ----

constexpr const char* kHead = "apiVersion: kueue.x-k8s.io/v1beta2, kind: ";

std::string queue_yaml(const std::string& more, const std::string& quota = "nominalQuota: 4") {
  return fmt::format(
      "{{{}ClusterQueue, metadata: {{name: q}}, spec: {{cohortName: all, namespaceSelector: {{}}, "
      "resourceGroups: [{{coveredResources: [nvidia.com/gpu], flavors: [{{name: f, resources: "
      "[{{name: nvidia.com/gpu, {}}}]}}]}}]{}}}}}\n---\n",
      kHead, quota, more.empty() ? "" : ", " + more);
}

std::string holder_yaml(const std::string& meta, const std::string& usage, const std::string& set,
                        const std::string& conditions, const std::string& queue = "q") {
  return fmt::format(
      "{{{}LocalQueue, metadata: {{name: l, namespace: t}}, spec: {{clusterQueue: q}}}}\n---\n"
      "{{{}Workload, metadata: {{name: w, namespace: t{}}}, spec: {{queueName: l, podSets: "
      "[{{name: "
      "main, count: 2, template: {{spec: {{containers: [{{name: c, resources: {{limits: "
      "{{nvidia.com/gpu: 1}}}}}}]}}}}{}}}]}}, status: {{conditions: [{}], admission: "
      "{{clusterQueue: "
      "{}, podSetAssignments: [{{name: main, {}}}]}}}}}}\n",
      kHead, kHead, meta.empty() ? "" : ", " + meta, set.empty() ? "" : ", " + set, conditions,
      queue, usage);
}
constexpr const char* kUsage =
    "flavors: {nvidia.com/gpu: f}, resourceUsage: {nvidia.com/gpu: 2}, count: 2";
constexpr const char* kReserved = "{type: QuotaReserved, status: 'True'}";

TEST(Counted, WhoHoldsQuotaGoesOnHoldingIt) {
  const std::string holders[] = {
      holder_yaml("annotations: {kueue.x-k8s.io/priority-boost: x}", kUsage, "", kReserved),
      holder_yaml("labels: {a: 5}", kUsage, "", kReserved),
      holder_yaml("", kUsage, "topologyRequest: {required: rack, preferred: rack}", kReserved),
      holder_yaml("", kUsage, "minCount: 9", kReserved),
      holder_yaml("", "flavors: {nvidia.com/gpu: f}, resourceUsage: {nvidia.com/gpu: x}, count: 2",
                  "", kReserved),
      holder_yaml("", "flavors: {nvidia.com/gpu: 5}, resourceUsage: {nvidia.com/gpu: 2}", "",
                  kReserved),
      holder_yaml("", "count: many, resourceUsage: 5, flavors: 5", "", kReserved),
      holder_yaml("", std::string(kUsage) + ", topologyAssignment: {levels: [], slices: 5}", "",
                  kReserved),
      holder_yaml("", kUsage, "", "{type: QuotaReserved, status: 5}"),
      holder_yaml("", kUsage, "", "{type: QuotaReserved, status: 'True', lastTransitionTime: x}"),
      holder_yaml("", kUsage, "", kReserved, "5"),
  };
  for (const std::string& holder : holders) {
    const std::string yaml = queue_yaml("") + holder;
    for (const Inputs& in : {read(yaml), live(yaml)}) {
      EXPECT_TRUE(in.invalid.empty()) << all(in.invalid) << holder;
      EXPECT_EQ(in.counts.unread_objects, 1u) << all(in.warnings) << holder;
      ASSERT_EQ(in.queues.workloads.size(), 1u) << holder;
      const auto& admission = in.queues.workloads[0].admission;
      ASSERT_TRUE(admission.has_value()) << holder;
      EXPECT_EQ(admission->queue, "q") << holder;
      ASSERT_EQ(admission->pod_sets.size(), 1u) << holder;
      EXPECT_EQ(admission->pod_sets[0].usage.at("nvidia.com/gpu"), 2) << holder;
      EXPECT_EQ(admission->pod_sets[0].flavors.at("nvidia.com/gpu"), "f") << holder;
      EXPECT_FALSE(admission->pod_sets[0].topology.has_value()) << holder;
    }
  }
  // One that waits is refused, as ever.
  const Inputs waiting =
      read(queue_yaml("") + holder_yaml("annotations: {kueue.x-k8s.io/priority-boost: x}", kUsage,
                                        "", "{type: QuotaReserved, status: 'False'}"));
  EXPECT_TRUE(waiting.queues.workloads.empty());
  EXPECT_EQ(waiting.counts.invalid_objects, 1u);
}

TEST(Counted, AQueueThatCannotBeReadKeepsWhoIsInIt) {
  const std::string queues[] = {queue_yaml("stopPolicy: Maybe"),
                                queue_yaml("queueingStrategy: 5"),
                                queue_yaml("preemption: {withinClusterQueue: Sometimes}"),
                                queue_yaml("fairSharing: {weight: -1}"),
                                queue_yaml("admissionChecksStrategy: 5"),
                                queue_yaml("flavorFungibility: {whenCanBorrow: x}"),
                                queue_yaml("", "nominalQuota: many"),
                                queue_yaml("", "nominalQuota: 4, lendingLimit: 9"),
                                queue_yaml("", "nominalQuota: -4")};
  for (const std::string& queue : queues) {
    const std::string yaml = queue + holder_yaml("", kUsage, "", kReserved);
    for (const Inputs& in : {read(yaml), live(yaml)}) {
      ASSERT_EQ(in.queues.queues.size(), 1u) << queue;
      const model::QueueSpec& spec = in.queues.queues[0];
      EXPECT_EQ(spec.stop, model::StopPolicy::kHold) << queue;
      EXPECT_EQ(spec.cohort, "all") << queue;
      ASSERT_EQ(spec.groups.size(), 1u) << queue;
      const model::ResourceQuota& quota = spec.groups[0].flavors.at(0).resources.at(0);
      EXPECT_GE(quota.nominal, 4) << queue << ": who is in it must not become a borrower";
      EXPECT_TRUE(quota.nominal == 4 || quota.lending_limit == 0) << queue;
      EXPECT_EQ(in.counts.invalid_objects, 1u) << "it must be corrected";
      EXPECT_NE(all(in.invalid).find("nothing new is let in"), std::string::npos);
    }
  }
  const auto local = [](const std::string& spec) {
    return read(
        queue_yaml("") +
        fmt::format("{{{}LocalQueue, metadata: {{name: l, namespace: t}}, {}}}", kHead, spec));
  };
  EXPECT_EQ(local("spec: {clusterQueue: q, stopPolicy: x}").queues.local_queues.at(0).stop,
            model::StopPolicy::kHold);
  const Inputs usage = local(
      "spec: {clusterQueue: q}, status: {fairSharing: {admissionFairSharingStatus: "
      "{consumedResources: {cpu: x}}}}");
  EXPECT_EQ(usage.queues.local_queues.at(0).stop, model::StopPolicy::kNone);
  EXPECT_EQ(usage.counts.unread_objects, 1u);
  const Inputs cohort = read(fmt::format(
      "{{{}Cohort, metadata: {{name: all}}, spec: {{parentName: top, resourceGroups: "
      "[{{coveredResources: [cpu, memory], flavors: [{{name: f, resources: [{{name: cpu, "
      "nominalQuota: 3}}, {{name: memory, nominalQuota: x}}]}}]}}]}}}}",
      kHead));
  ASSERT_EQ(cohort.queues.cohorts.size(), 1u);
  EXPECT_EQ(cohort.queues.cohorts[0].parent, "top");
  const auto& quotas = cohort.queues.cohorts[0].groups.at(0).flavors.at(0).resources;
  EXPECT_EQ(quotas.at(0).nominal, 3000);
  EXPECT_EQ(quotas.at(1).nominal, 0) << "what it cannot say its queues do not get";
}

}  // namespace
}  // namespace berth::kinds
