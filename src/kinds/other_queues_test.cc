#include "kinds/other_queues.h"

#include "kinds/read_for_test.h"

namespace berth::kinds::other_queues_test {
namespace {

using Names = std::vector<std::string>;
constexpr auto kAll = INT64_MAX;

std::string volcano_queue(const std::string& name, const std::string& spec,
                          const std::string& status = "") {
  return "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: " + name +
         "}, spec: {" + spec + "}, status: {" + status + "}}\n";
}
std::string kai_queue(const std::string& name, const std::string& spec) {
  return "---\n{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: " + name +
         "}, spec: {" + spec + "}}\n";
}
std::string gpu_node(const std::string& name, int gpus) {
  return "---\n{apiVersion: v1, kind: Node, metadata: {name: " + name +
         ", labels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}, status: {allocatable: {cpu: "
         "10, memory: 100, pods: 110, nvidia.com/gpu: " +
         std::to_string(gpus) + "}}}\n";
}
std::string grouped(const std::string& name, const std::string& group, const std::string& spec = "",
                    const std::string& more = "") {
  return "---\n{apiVersion: v1, kind: Pod, metadata: {name: " + name +
         ", namespace: ml, annotations: {scheduling.k8s.io/group-name: " + group + more +
         "}}, spec: {" + spec +
         " containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}}\n";
}
std::string volcano_group(const std::string& spec, const std::string& name = "g") {
  return "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: " +
         name + ", namespace: ml}, spec: {" + spec + "}}\n";
}
const model::ResourceQuota& quota(const Inputs& in, const std::string& name,
                                  const std::string& resource) {
  static const model::ResourceQuota kNone;
  const auto find = [&](const std::vector<model::ResourceGroup>& groups) {
    for (const auto& quota : groups.at(0).flavors.at(0).resources) {
      if (quota.resource == resource) return &quota;
    }
    ADD_FAILURE() << name << " has no " << resource;
    return &kNone;
  };
  for (const auto& queue : in.queues.queues) {
    if (queue.name == name) return *find(queue.groups);
  }
  for (const auto& cohort : in.queues.cohorts) {
    if (cohort.name == name) return *find(cohort.groups);
  }
  ADD_FAILURE() << "no queue or cohort " << name;
  return kNone;
}
const model::WorkloadSpec& only(const Inputs& in) {
  static const model::WorkloadSpec kNone;
  EXPECT_EQ(in.queues.workloads.size(), 1u);
  return in.queues.workloads.empty() ? kNone : in.queues.workloads[0];
}
void warns(const std::string& yaml, const std::string& part) {
  const Inputs in = read(yaml);
  EXPECT_NE(all(in.warnings).find(part), std::string::npos) << part << " in:\n" << all(in.warnings);
}
void refuses(const std::string& yaml, const std::string& part) {
  const Inputs in = read(yaml);
  EXPECT_NE(all(in.invalid).find(part), std::string::npos) << part << " in:\n" << all(in.invalid);
}

// Who is in the queue stays, and nothing new is let in.
void closes(const std::string& yaml, const std::string& part) {
  refuses(yaml, part);
  const Inputs in = read(yaml);
  ASSERT_EQ(in.queues.queues.size(), 1u);
  EXPECT_EQ(in.queues.queues[0].stop, model::StopPolicy::kHold);
}

// ---- Volcano queues ----

TEST(VolcanoQueues, StatedShares) {
  const Inputs in = read_clean(
      gpu_node("n1", 8) +
      volcano_queue("a",
                    "weight: 3, deserved: {nvidia.com/gpu: 4, cpu: 2}, guarantee: {resource: "
                    "{nvidia.com/gpu: 1}}, capability: {nvidia.com/gpu: 6}, dequeueStrategy: "
                    "fifo, reclaimable: true, type: x") +
      volcano_queue("b", "guarantee: {resource: {nvidia.com/gpu: 2}}", "state: Closed"));
  ASSERT_EQ(in.queues.queues.size(), 2u);
  const model::QueueSpec& a = in.queues.queues[0];
  EXPECT_EQ(a.cohort, "volcano");
  EXPECT_EQ(a.weight, 3);
  EXPECT_TRUE(a.strict_fifo && a.namespaces && a.namespaces->empty());
  EXPECT_EQ(a.reclaim, model::Reclaim::kAny);
  EXPECT_EQ(a.within, model::PreemptWithin::kLowerPriority);
  EXPECT_EQ(a.stop, model::StopPolicy::kNone);
  EXPECT_EQ(in.queues.queues[1].stop, model::StopPolicy::kHold);
  EXPECT_EQ(in.queues.flavors.at(0), (model::FlavorSpec{.name = "default"}));
  EXPECT_EQ(a.groups.at(0).flavors.at(0).flavor, "default");
  EXPECT_EQ(quota(in, "a", "nvidia.com/gpu"), (model::ResourceQuota{"nvidia.com/gpu", 4, 2, 3}));
  EXPECT_EQ(quota(in, "a", "cpu"), (model::ResourceQuota{"cpu", 2000, {}, {}}));
  EXPECT_EQ(quota(in, "a", "memory").nominal, kAll) << "nobody limits it";
  EXPECT_EQ(quota(in, "b", "nvidia.com/gpu"), (model::ResourceQuota{"nvidia.com/gpu", 2, {}, 0}));
  EXPECT_EQ(quota(in, "volcano", "nvidia.com/gpu").nominal, 2) << "8 - 4 - 2 are for all";
  EXPECT_TRUE(in.queues.config.fair_sharing);
}

TEST(VolcanoQueues, SharesByWeight) {
  const Inputs in = read_clean(gpu_node("n1", 8) + gpu_node("n2", 8) +
                               volcano_queue("a", "weight: 2, capability: {nvidia.com/gpu: 32}") +
                               volcano_queue("b", "capability: {nvidia.com/gpu: 4}"));
  EXPECT_EQ(quota(in, "a", "nvidia.com/gpu"), (model::ResourceQuota{"nvidia.com/gpu", 10, 22, {}}));
  EXPECT_EQ(quota(in, "a", "cpu"), (model::ResourceQuota{"cpu", 13333, {}, {}})) << "rounded down";
  EXPECT_EQ(quota(in, "b", "nvidia.com/gpu"), (model::ResourceQuota{"nvidia.com/gpu", 4, 0, {}}))
      << "5 by weight, 4 by capability";
  EXPECT_EQ(quota(in, "volcano", "nvidia.com/gpu").nominal, 2);
}

TEST(VolcanoQueues, Trees) {
  const Inputs in = read_clean(
      gpu_node("n1", 8) +
      volcano_queue("dept",
                    "parent: root, weight: 5, deserved: {nvidia.com/gpu: 6}, capability: "
                    "{nvidia.com/gpu: 7}, guarantee: {resource: {nvidia.com/gpu: 2}}") +
      volcano_queue("x", "parent: dept, deserved: {nvidia.com/gpu: 1}") +
      volcano_queue("z", "parent: dept, weight: 2"));
  ASSERT_EQ(in.queues.cohorts.size(), 2u);
  EXPECT_EQ(in.queues.cohorts[0].name + " in " + in.queues.cohorts[0].parent, "dept in volcano");
  EXPECT_EQ(in.queues.cohorts[0].weight, 5);
  EXPECT_EQ(in.queues.queues.at(0).cohort, "dept");
  EXPECT_EQ(quota(in, "z", "nvidia.com/gpu").nominal, 4) << "two thirds of the parent's 6";
  EXPECT_EQ(quota(in, "dept", "nvidia.com/gpu"), (model::ResourceQuota{"nvidia.com/gpu", 1, 1, 4}))
      << "what is above the children; limits count the whole";
  EXPECT_EQ(quota(in, "volcano", "nvidia.com/gpu").nominal, 2);
}

TEST(VolcanoQueues, ParentsThatCannotBe) {
  warns(volcano_queue("a", "parent: none"),
        "Queue a: spec.parent: found \"none\", want a Queue of the input; it is taken to be at the "
        "top");
  const Inputs in = read(volcano_queue("a", "parent: b") + volcano_queue("b", "parent: a"));
  EXPECT_NE(all(in.warnings)
                .find("Queue a: spec.parent: found \"b\", want a queue that is not below "
                      "this one"),
            std::string::npos)
      << all(in.warnings);
  EXPECT_EQ(in.queues.queues.size(), 1u);
  EXPECT_EQ(in.queues.cohorts.size(), 2u);
  closes(volcano_queue("a", "parent: a"), "Queue a: spec.parent: found the queue itself");
}

TEST(VolcanoQueues, Fields) {
  closes(volcano_queue("a", "weight: 0"), "spec.weight: found number 0, want an integer 1..65535");
  closes(volcano_queue("a", "deserved: {cpu: 2}, capability: {cpu: 1}"),
         "spec.deserved: found more cpu than capability, want at most the capability");
  closes(volcano_queue("a", "deserved: {cpu: 1}, guarantee: {resource: {cpu: 2}}"),
         "spec.guarantee: found more cpu than deserved");
  closes(volcano_queue("a", "capability: {cpu: -1}"), "spec.capability.cpu: found number -1");
  closes(volcano_queue("a", "dequeueStrategy: lifo"), "one of fifo, traverse");
  warns(volcano_queue("a", "reclaimable: false"),
        "Queue a: spec.reclaimable: found false, which has no equivalent");
  for (const std::string field :
       {"affinity: {nodeGroupAffinity: {}}", "extendClusters: [{name: x}]", "priority: 5"}) {
    warns(volcano_queue("a", field), "Queue a: spec." + field.substr(0, field.find(':')) +
                                         ": found a field that has no "
                                         "equivalent");
  }
  warns(volcano_queue("a", "preemptable: true"), "spec.preemptable: found an unknown field");
}

// ---- KAI queues ----

TEST(KaiQueues, Shares) {
  const Inputs in = read_clean(
      gpu_node("n1", 8) +
      kai_queue("dept",
                "displayName: d, resources: {gpu: {quota: 5, limit: 6, overQuotaWeight: 2}, "
                "cpu: {quota: -1, limit: -1, overQuotaWeight: 2}}, priority: 100") +
      kai_queue("a",
                "parentQueue: dept, resources: {gpu: {quota: 1.5, limit: -1}, cpu: {quota: "
                "1500, limit: 2000}, memory: {quota: 2, limit: 1}}") +
      kai_queue("b", "parentQueue: dept, resources: {gpu: {quota: -1, limit: 3}}"));
  EXPECT_EQ(quota(in, "a", "nvidia.com/gpu"), (model::ResourceQuota{"nvidia.com/gpu", 2, {}, {}}))
      << "fractions are rounded up";
  EXPECT_EQ(quota(in, "a", "cpu"), (model::ResourceQuota{"cpu", 1500, 500, {}}));
  EXPECT_EQ(quota(in, "a", "memory"), (model::ResourceQuota{"memory", 1'000'000, 0, {}}))
      << "a limit below the quota holds";
  EXPECT_EQ(quota(in, "b", "nvidia.com/gpu"), (model::ResourceQuota{"nvidia.com/gpu", 3, 0, {}}))
      << "unlimited up to its limit";
  EXPECT_EQ(quota(in, "b", "cpu").nominal, kAll);
  ASSERT_EQ(in.queues.cohorts.size(), 2u);
  EXPECT_EQ(in.queues.cohorts[0].name + " in " + in.queues.cohorts[0].parent, "dept in kai");
  EXPECT_EQ(in.queues.cohorts[0].weight, 2);
  EXPECT_EQ(quota(in, "dept", "nvidia.com/gpu"),
            (model::ResourceQuota{"nvidia.com/gpu", 0, 1, {}}));
  EXPECT_EQ(quota(in, "kai", "nvidia.com/gpu").nominal, 3);
  EXPECT_EQ(in.queues.queues.at(0).weight, 1);
}

TEST(KaiQueues, Fields) {
  closes(kai_queue("a", "resources: {gpu: {quota: -2}}"),
         "spec.resources.gpu.quota: found number -2, want at least 0, or -1 for no limit");
  closes(kai_queue("a", "resources: {gpu: {overQuotaWeight: -1}}"),
         "spec.resources.gpu.overQuotaWeight: found number -1");
  closes(kai_queue("a", "parentQueue: a"), "spec.parentQueue: found the queue itself");
  warns(kai_queue("a", "priority: 5"), "Queue a: spec.priority: found a field that has no equ");
  warns(kai_queue("a", "preemptMinRuntime: 5m"), "spec.preemptMinRuntime: found a field");
  warns(kai_queue("a", "resources: {gpu: {overQuotaWeight: 2}, cpu: {overQuotaWeight: 3}}"),
        "spec.resources: found different overQuotaWeights");
  warns(kai_queue("a", "parentQueue: none"), "Queue a: spec.parentQueue: found \"none\"");
}

TEST(OtherQueues, NamesOfSeveralSystems) {
  const Inputs in = read(
      volcano_queue("q", "weight: 1") + kai_queue("q", "") +
      "---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: q}, spec: "
      "{cohortName: volcano}}\n"
      "---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default}}\n"
      "---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: q, namespace: "
      "ml}, spec: {clusterQueue: q}}\n" +
      volcano_group("minMember: 1, queue: q") + grouped("a", "g"));
  ASSERT_EQ(in.queues.queues.size(), 3u);
  EXPECT_EQ(
      in.queues.queues[0].name + " " + in.queues.queues[1].name + " " + in.queues.queues[2].name,
      "kai-q q volcano-q");
  EXPECT_EQ(in.queues.queues[2].cohort, "volcano-queues") << "not Kueue's cohort";
  EXPECT_EQ(in.queues.queues[2].groups.at(0).flavors.at(0).flavor, "default-any");
  EXPECT_EQ(only(in).queue, "volcano-q");
  ASSERT_EQ(in.queues.local_queues.size(), 2u);
  EXPECT_EQ(in.queues.local_queues[1],
            (model::LocalQueueSpec{.ns = "ml", .name = "volcano-q", .queue = "volcano-q"}));
  EXPECT_FALSE(in.queues.config.fair_sharing) << "Kueue's Configuration says";
}

// ---- groups ----

TEST(OtherGroups, PendingOnesBecomeWorkloads) {
  const Inputs in = read_clean(gpu_node("n1", 8) + volcano_queue("q", "weight: 1") +
                               volcano_group("minMember: 2, queue: q, minTaskMember: {worker: 1}") +
                               grouped("a", "g", "", ", volcano.sh/task-spec: worker") +
                               grouped("b", "g", "", ", volcano.sh/task-spec: worker") +
                               grouped("c", "g", "priority: 7,") + grouped("d", "g"));
  EXPECT_TRUE(in.gangs.empty()) << "the workload stands for it";
  EXPECT_TRUE(in.notes.empty()) << all(in.notes);
  const model::WorkloadSpec& w = only(in);
  EXPECT_EQ(w.ns + "/" + w.name + " " + w.queue + " " + w.owner, "ml/g q PodGroup/g");
  EXPECT_EQ(w.priority, 7);
  EXPECT_FALSE(w.admission.has_value());
  ASSERT_EQ(w.pod_sets.size(), 3u);
  EXPECT_EQ(w.pod_sets[0].name, "worker");
  EXPECT_EQ(w.pod_sets[0].pods, (Names{"ml/a", "ml/b"}));
  EXPECT_EQ(w.pod_sets[0].count, 2);
  EXPECT_EQ(w.pod_sets[0].min_count, 1);
  EXPECT_EQ(w.pod_sets[0].requests, (model::Amounts{{"nvidia.com/gpu", 1}}));
  EXPECT_EQ(w.pod_sets[1].name, "main");
  EXPECT_EQ(w.pod_sets[2].name, "main-1") << "another shape";
  for (const auto& pod : in.pods) EXPECT_TRUE(pod.queued && pod.gang.empty()) << pod.name;
  EXPECT_EQ(in.queues.local_queues.at(0),
            (model::LocalQueueSpec{.ns = "ml", .name = "q", .queue = "q"}));
}

TEST(OtherGroups, Topologies) {
  const std::string base = gpu_node("n1", 8) + kai_queue("q", "");
  const auto group = [](const std::string& spec) {
    return "---\n{apiVersion: scheduling.run.ai/v2alpha2, kind: PodGroup, metadata: {name: g, "
           "namespace: ml}, spec: {minMember: 2, queue: q, " +
           spec + "}}\n";
  };
  const auto pod = [](const std::string& name, const std::string& sub) {
    return "---\n{apiVersion: v1, kind: Pod, metadata: {name: " + name +
           ", namespace: ml, annotations: {pod-group-name: g}, labels: "
           "{kai.scheduler/subgroup-name: " +
           sub + "}}, spec: {containers: [{name: c}]}}\n";
  };
  const Inputs in = read_clean(
      base +
      group("topologyConstraint: {preferredTopologyLevel: x.io/block}, subGroups: [{name: a, "
            "minMember: 1, topologyConstraint: {requiredTopologyLevel: x.io/rack}}, {name: b, "
            "minMember: 1}]") +
      pod("p0", "a") + pod("p1", "a") + pod("p2", "b"));
  const model::WorkloadSpec& w = only(in);
  ASSERT_EQ(w.pod_sets.size(), 2u);
  using Mode = model::TopologyAsk::Mode;
  EXPECT_EQ(w.pod_sets[0].topology,
            (model::TopologyAsk{Mode::kPreferred, "x.io/block", "g", {{"x.io/rack", 2}}}));
  EXPECT_EQ(w.pod_sets[1].topology, (model::TopologyAsk{Mode::kPreferred, "x.io/block", "g", {}}));
  const Inputs alone = read_clean(base +
                                  group("subGroups: [{name: a, minMember: 2, topologyConstraint: "
                                        "{requiredTopologyLevel: x.io/rack}}]") +
                                  pod("p0", "a") + pod("p1", "a"));
  EXPECT_EQ(only(alone).pod_sets.at(0).topology,
            (model::TopologyAsk{Mode::kRequired, "x.io/rack", "", {}}));
}

TEST(OtherGroups, IncompleteOnesStay) {
  const Inputs in =
      read_clean(gpu_node("n1", 8) + volcano_queue("q", "weight: 1") +
                 volcano_group("minMember: 3, queue: q") + grouped("a", "g") + grouped("b", "g"));
  EXPECT_TRUE(in.queues.workloads.empty());
  EXPECT_EQ(in.gangs.size(), 1u);
  EXPECT_FALSE(in.pods.at(0).queued);
  EXPECT_NE(
      all(in.notes).find("PodGroup ml/g: : it does not wait in queue \"q\" yet: 2 of 3 pods of "
                         "the group exist"),
      std::string::npos)
      << all(in.notes);
  const Inputs task = read_clean(gpu_node("n1", 8) + volcano_queue("q", "weight: 1") +
                                 volcano_group("minMember: 1, minTaskMember: {w: 1}, queue: q") +
                                 grouped("a", "g"));
  EXPECT_NE(all(task.notes).find("0 of 1 pods of subgroup \"w\" exist"), std::string::npos);
}

const model::WorkloadSpec& named(const Inputs& in, const std::string& name) {
  static const model::WorkloadSpec kNone;
  for (const model::WorkloadSpec& w : in.queues.workloads) {
    if (w.name == name) return w;
  }
  ADD_FAILURE() << "no workload " << name;
  return kNone;
}

TEST(OtherGroups, RunningOnesHoldQuota) {
  const Inputs in =
      read_clean(gpu_node("n1", 8) + volcano_queue("q", "weight: 1") +
                 volcano_group("minMember: 1, queue: q") + grouped("a", "g", "nodeName: n1,") +
                 grouped("b", "g", "nodeName: n1,") + grouped("c", "g"));
  ASSERT_EQ(in.queues.workloads.size(), 2u);
  const model::WorkloadSpec& w = named(in, "g");
  ASSERT_TRUE(w.admission.has_value());
  EXPECT_TRUE(w.admitted);
  EXPECT_EQ(w.admission->queue, "q");
  const model::PodSetAdmission& set = w.admission->pod_sets.at(0);
  EXPECT_EQ(set.count, 2);
  EXPECT_EQ(set.usage, (model::Amounts{{"nvidia.com/gpu", 2}}));
  EXPECT_EQ(set.flavors.at("nvidia.com/gpu"), "default");
  EXPECT_EQ(w.pod_sets.at(0).pods, (Names{"ml/a", "ml/b"}));
  EXPECT_EQ(in.gangs.size(), 1u) << "as without queues";
  // Beyond the minimum each pod waits for quota of its own.
  const model::WorkloadSpec& more = named(in, "c");
  EXPECT_FALSE(more.admission.has_value());
  EXPECT_EQ(more.queue, w.queue);
  EXPECT_EQ(more.pod_sets.at(0).pods, (Names{"ml/c"}));
  EXPECT_TRUE(in.pods.at(2).queued);
  EXPECT_NE(all(in.notes).find("2 of its pods hold quota of queue \"q\", the others wait there "
                               "one by one"),
            std::string::npos)
      << all(in.notes);
}

// Whoever makes them may make them larger than those that are gone.
TEST(OtherGroups, OfARunningGroupTheRestOfTheMinimumWaitsForQuotaToo) {
  const Inputs in =
      read_clean(gpu_node("n1", 8) + volcano_queue("q", "weight: 1") +
                 volcano_group("minMember: 3, queue: q") + grouped("a", "g", "nodeName: n1,") +
                 grouped("b", "g") + grouped("c", "g"));
  ASSERT_EQ(in.queues.workloads.size(), 3u);
  EXPECT_EQ(named(in, "g").admission->pod_sets.at(0).count, 1);
  for (const char* pod : {"b", "c"}) EXPECT_FALSE(named(in, pod).admission.has_value()) << pod;
  EXPECT_TRUE(in.pods.at(1).queued && in.pods.at(2).queued);
}

TEST(OtherGroups, OnlyWithAQueueOfTheInput) {
  const Inputs in = read_clean(volcano_group("minMember: 1, queue: q") + grouped("a", "g") +
                               volcano_queue("other", "weight: 1"));
  EXPECT_TRUE(in.queues.workloads.empty());
  EXPECT_EQ(in.gangs.size(), 1u);
  EXPECT_FALSE(in.pods.at(0).queued);
  EXPECT_TRUE(read_clean(volcano_group("minMember: 1, queue: q") + grouped("a", "g"))
                  .queues.queues.empty());
}

TEST(OtherGroups, PodsOfNoGroup) {
  const auto pod = [](const std::string& name, const std::string& spec) {
    return "---\n{apiVersion: v1, kind: Pod, metadata: {name: " + name +
           ", labels: {kai.scheduler/queue: q}}, spec: {" + spec +
           " containers: [{name: c, resources: {requests: {x.io/nic: 1}, limits: {x.io/nic: "
           "1}}}]}}\n";
  };
  const Inputs in = read_clean(gpu_node("n1", 8) + kai_queue("q", "resources: {gpu: {quota: 1}}") +
                               pod("a", "") + pod("b", "nodeName: n1,"));
  ASSERT_EQ(in.queues.workloads.size(), 2u);
  EXPECT_EQ(in.queues.workloads[0].owner, "Pod/a");
  EXPECT_TRUE(in.pods.at(0).queued && !in.pods.at(1).queued);
  EXPECT_FALSE(in.queues.workloads[0].admission.has_value());
  EXPECT_TRUE(in.queues.workloads[1].admission.has_value());
  EXPECT_EQ(quota(in, "q", "x.io/nic").nominal, kAll) << "asked for, limited by nobody";
}

// ---- Volcano Jobs ----

std::string volcano_job(const std::string& spec, const std::string& status = "") {
  return "---\n{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: j, namespace: "
         "ml}, spec: {" +
         spec + "}, status: {" + status + "}}\n";
}
std::string task(const std::string& fields) {
  return "{" + fields +
         ", template: {spec: {containers: [{name: c, resources: {limits: "
         "{nvidia.com/gpu: 1}}}]}}}";
}
const std::string kTasks = "tasks: [" + task("name: ps, replicas: 1") + "," +
                           task("name: worker, replicas: 2, minAvailable: 1") + "]";

TEST(VolcanoJobs, PodsAndGang) {
  const Inputs in = read_clean(volcano_job("minAvailable: 2, queue: q, " + kTasks));
  Names names;
  for (const auto& pod : in.pods) names.push_back(pod.name + ":" + pod.subgroup);
  EXPECT_EQ(names, (Names{"j-ps-0:ps", "j-worker-0:worker", "j-worker-1:worker"}));
  ASSERT_EQ(in.gangs.size(), 1u);
  EXPECT_EQ(in.gangs[0].name, "j");
  EXPECT_EQ(in.gangs[0].min_member, 2);
  EXPECT_EQ(in.gangs[0].queue, "q");
  EXPECT_EQ(in.gangs[0].subgroups.at(1).min_member, 1);
  EXPECT_EQ(in.pods[0].gang, "j");
  EXPECT_EQ(in.pods[0].owner, "Job.batch.volcano.sh/j");
  EXPECT_EQ(in.counts.job_pods, 3u);
  EXPECT_EQ(read_clean(volcano_job(kTasks)).gangs.at(0).min_member, 3) << "all by default";
  EXPECT_TRUE(read_clean(volcano_job(kTasks, "state: {phase: Completed}")).pods.empty());
  EXPECT_EQ(read_clean(volcano_job(kTasks, "state: {phase: Pending}")).pods.size(), 3u);
}

TEST(VolcanoJobs, ExistingPods) {
  const std::string owner = "ownerReferences: [{kind: Job, name: j, controller: true}]";
  const Inputs in = read_clean(
      gpu_node("n1", 8) + volcano_job(kTasks) +
      "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: j-uid, "
      "namespace: ml, " +
      owner + "}, spec: {minMember: 3, queue: x}}\n" +
      "---\n{apiVersion: v1, kind: Pod, metadata: {name: j-worker-1, namespace: ml, " + owner +
      ", annotations: {scheduling.k8s.io/group-name: j-uid}}, spec: {nodeName: n1, containers: "
      "[{name: c}]}}\n");
  EXPECT_EQ(in.pods.size(), 3u);
  ASSERT_EQ(in.gangs.size(), 1u);
  EXPECT_EQ(in.gangs[0].name, "j-uid");
  for (const auto& pod : in.pods) EXPECT_EQ(pod.gang, "j-uid") << pod.name;
}

// A Job of Kubernetes of the same name has its own pods, and neither is of one that was before it.
TEST(VolcanoJobs, AreNotTheJobsOfKubernetes) {
  const auto pod = [](const std::string& name, const std::string& api, const std::string& uid) {
    return "---\n{apiVersion: v1, kind: Pod, metadata: {name: " + name +
           ", namespace: ml, ownerReferences: [{apiVersion: " + api +
           ", kind: Job, name: j, controller: true, uid: " + uid +
           "}]}, spec: {nodeName: n1, containers: [{name: c}]}}\n";
  };
  const Inputs in = read_clean(
      gpu_node("n1", 8) + volcano_job(kTasks) +
      "---\n{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ml, uid: u2, "
      "annotations: {}}, spec: {parallelism: 2, template: {spec: {restartPolicy: Never, "
      "containers: "
      "[{name: c}]}}}}\n" +
      pod("j-ps-0", "batch.volcano.sh/v1alpha1", "v") + pod("j-old", "batch/v1", "u1"));
  std::map<std::string, int> owners;
  for (const auto& each : in.pods) owners[each.owner + ' ' + each.gang]++;
  EXPECT_EQ(owners, (std::map<std::string, int>{{"Job/j ", 3}, {"Job.batch.volcano.sh/j j", 3}}))
      << "two to come and the one that is left of the Job before";
}

TEST(VolcanoJobs, WaitInTheirQueue) {
  const Inputs in = read_clean(gpu_node("n1", 8) + volcano_queue("q", "weight: 1") +
                               volcano_job("minAvailable: 2, queue: q, " + kTasks));
  const model::WorkloadSpec& w = only(in);
  EXPECT_EQ(w.ns + "/" + w.name, "ml/j");
  ASSERT_EQ(w.pod_sets.size(), 2u);
  EXPECT_EQ(w.pod_sets[0].name + w.pod_sets[1].name, "psworker");
  EXPECT_EQ(w.pod_sets[1].pods, (Names{"ml/j-worker-0", "ml/j-worker-1"}));
  EXPECT_EQ(w.pod_sets[1].min_count, 1);
  for (const auto& pod : in.pods) EXPECT_TRUE(pod.queued);
}

TEST(VolcanoJobs, Errors) {
  refuses(volcano_job("minAvailable: 4, " + kTasks),
          "spec.minAvailable: found 4 pods, want at most "
          "3");
  refuses(volcano_job("tasks: []"), "spec.tasks: found no tasks, want at least one");
  refuses(volcano_job("tasks: [" + task("name: a") + "," + task("name: a") + "]"),
          "spec.tasks[1]: found task \"a\" twice");
  refuses(volcano_job("tasks: [" + task("name: a, replicas: 1, minAvailable: 2") + "]"),
          "spec.tasks[0]: found minAvailable 2, want at most the replicas 1");
  refuses(volcano_job("tasks: [{name: a}]"), "spec.tasks[0].template: found nothing");
  refuses(volcano_job("priorityClassName: none, " + kTasks),
          "Job ml/j: spec.priorityClassName: found \"none\", want a PriorityClass of the input");
  refuses(volcano_job(kTasks) + volcano_group("minMember: 1", "j"),
          "Job ml/j: metadata.name: found a PodGroup of the same name");
  ManifestReader reader(ManifestOptions{.max_job_pods = 2});
  add_yaml(reader, volcano_job(kTasks));
  EXPECT_NE(all(reader.finish().invalid).find("spec.tasks: found 3 pods, want at most 2 more"),
            std::string::npos);
}

TEST(UpstreamWorkloads, AreChecked) {
  const auto upstream = [](const std::string& templates) {
    return "{apiVersion: scheduling.k8s.io/v1beta1, kind: Workload, metadata: {name: w}, spec: "
           "{controllerRef: {kind: Job, name: j}, podGroupTemplates: [" +
           templates + "]}}";
  };
  read_clean(
      upstream("{name: a, schedulingPolicy: {gang: {minCount: 2}}}, {name: b, "
               "schedulingPolicy: {basic: {}}}"));
  refuses(upstream("{name: a, schedulingPolicy: {gang: {minCount: 0}}}"),
          "spec.podGroupTemplates[0].schedulingPolicy.gang.minCount: found number 0");
  refuses(upstream("{name: a, schedulingPolicy: {}}, {name: a, schedulingPolicy: {}}"),
          "podGroupTemplates[1]: found template \"a\" twice");
}

// ---- who may use a queue ----

std::string bound_queue(const std::string& api, const std::string& name, const std::string& value,
                        const std::string& spec = "") {
  return "---\n{apiVersion: " + api + ", kind: Queue, metadata: {name: " + name +
         (value.empty() ? "" : ", annotations: {berth.dev/namespaces: '" + value + "'}") +
         "}, spec: {" + spec + "}}\n";
}
const std::string kKai = "scheduling.run.ai/v2", kVolcano = "scheduling.volcano.sh/v1beta1";
const std::string kMlRequires =
    "---\n{apiVersion: v1, kind: Namespace, metadata: {name: ml, labels: "
    "{berth.dev/queue-required: "
    "'true'}}}\n";
const std::string kKaiPod =
    "---\n{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ml, labels: "
    "{kai.scheduler/queue: red}}, spec: {containers: [{name: c, resources: {limits: "
    "{nvidia.com/gpu: 1}}}]}}\n";

// Why the only workload of the input may not use its queue; "" when it may.
std::string shut(const std::string& yaml) {
  const Inputs in = read(gpu_node("n0", 8) + yaml);
  const model::WorkloadSpec& w = only(in);
  for (const model::PodSpec& pod : in.pods) EXPECT_TRUE(pod.queued || !pod.node_name.empty());
  if (w.incomplete.empty()) return "";
  EXPECT_EQ(w.incomplete_reason, model::Reason::kQueueNotAllowed);
  for (const auto& local : in.queues.local_queues) EXPECT_NE(local.ns, "ml") << "a way in";
  return w.incomplete;
}

// Row 37 of the faults: somebody names another team's queue.
TEST(OtherQueues, AQueueTakesTheNamespacesItNames) {
  const std::string group = volcano_group("minMember: 1, queue: red") + grouped("p", "g");
  for (const auto& [api, waits] : {std::pair(kKai, kKaiPod), std::pair(kVolcano, group)}) {
    EXPECT_EQ(shut(bound_queue(api, "red", "") + waits), "") << "anybody";
    EXPECT_EQ(shut(bound_queue(api, "red", "ml") + waits), "");
    EXPECT_EQ(shut(bound_queue(api, "red", "lab, ml") + waits), "");
    EXPECT_EQ(shut(bound_queue(api, "red", "*") + waits), "");
    EXPECT_EQ(shut(bound_queue(api, "red", "lab,web") + waits),
              "queue \"red\" does not take namespace \"ml\": its annotation berth.dev/namespaces "
              "does not name it");
    // Where a namespace requires a queue, one that names nobody is nobody's.
    EXPECT_NE(shut(kMlRequires + bound_queue(api, "red", "") + waits).find("requires a queue"),
              std::string::npos);
    EXPECT_EQ(shut(kMlRequires + bound_queue(api, "red", "ml") + waits), "");
    EXPECT_EQ(shut(kMlRequires + bound_queue(api, "red", "*") + waits), "");
  }
}

TEST(OtherQueues, AnAnnotationThatCannotBeReadTakesNobody) {
  for (const char* bad : {"Team_A", "ml,", "ml lab", ",", "ml,*", " "}) {
    const std::string yaml = bound_queue(kKai, "red", bad) + kKaiPod;
    EXPECT_NE(shut(yaml).find("takes nobody"), std::string::npos) << bad;
    EXPECT_NE(all(read(gpu_node("n0", 8) + yaml).warnings).find("berth.dev/namespaces"),
              std::string::npos)
        << bad;
  }
}

TEST(OtherQueues, AQueueWithoutTheAnnotationFollowsThoseAboveIt) {
  const std::string child = "parentQueue: dept";
  EXPECT_NE(shut(bound_queue(kKai, "dept", "lab") + bound_queue(kKai, "red", "", child) + kKaiPod),
            "");
  EXPECT_EQ(
      shut(bound_queue(kKai, "dept", "lab") + bound_queue(kKai, "red", "ml", child) + kKaiPod), "")
      << "its own counts first";
}

// What runs counts; nobody comes in beside it.
TEST(OtherQueues, AGroupThatRunsOpensNoQueue) {
  const std::string yaml = gpu_node("n0", 8) + bound_queue(kVolcano, "red", "lab") +
                           volcano_group("minMember: 2, queue: red") +
                           grouped("a", "g", "nodeName: n0,") + grouped("b", "g");
  const Inputs in = read(yaml);
  ASSERT_EQ(in.queues.workloads.size(), 2u);
  for (const model::WorkloadSpec& w : in.queues.workloads) {
    EXPECT_EQ(w.admission.has_value(), w.incomplete.empty()) << w.name;
  }
  for (const model::PodSpec& pod : in.pods) EXPECT_EQ(pod.queued, pod.name == "b");
}

TEST(OtherQueues, PodsOfNoQueueOfARequiringNamespaceWait) {
  const std::string free =
      gpu_node("n0", 8) + bound_queue(kKai, "red", "ml") +
      "---\n{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ml, "
      "labels: {kai.scheduler/queue: blue}}, spec: {containers: [{name: c}]}}\n";
  EXPECT_FALSE(read(free).pods.at(0).needs_queue);
  EXPECT_TRUE(read(kMlRequires + free).pods.at(0).needs_queue) << "its queue does not exist";
}

}  // namespace
}  // namespace berth::kinds::other_queues_test
