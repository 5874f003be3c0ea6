// Kinds that wait as a whole in a plan: their workloads, whose pods are whose, what is refused.
#include "kinds/read_for_test.h"

namespace berth::kinds {
namespace {

constexpr const char* kMakerQueues =
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: cq}, spec: "
    "{namespaceSelector: {}, resourceGroups: [{coveredResources: [nvidia.com/gpu], flavors: "
    "[{name: f, resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}]}]}}\n---\n"
    "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}, spec: {}}\n"
    "---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq}, spec: "
    "{clusterQueue: cq}}\n---\n";

std::string pods_of(int gpus, const std::string& more = "") {
  return "{spec: {" + more +
         "containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: " +
         std::to_string(gpus) + "}}}]}}";
}

// Two Jobs of three pods, and a driver.
std::string job_set(const std::string& meta, const std::string& spec = "",
                    const std::string& worker_pods = pods_of(2)) {
  return "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: train, uid: u1" +
         meta + "}, spec: {" + spec +
         "replicatedJobs: [{name: driver, template: {spec: {template: " + pods_of(0) +
         "}}}, {name: Workers, replicas: 2, template: {spec: {parallelism: 3, completions: 9, "
         "template: " +
         worker_pods + "}}}]}}\n---\n";
}
constexpr const char* kQueued = ", labels: {kueue.x-k8s.io/queue-name: lq}";

TEST(ResolveMakers, AJobSetIsOneWorkload) {
  const Inputs in = read_clean(kMakerQueues + job_set(kQueued, "suspend: true, "));
  ASSERT_EQ(in.queues.workloads.size(), 1u);
  const model::WorkloadSpec& workload = in.queues.workloads[0];
  EXPECT_EQ(workload.owner, "JobSet/train");
  EXPECT_EQ(workload.queue, "lq");
  ASSERT_EQ(workload.pod_sets.size(), 2u);
  EXPECT_EQ(workload.pod_sets[0].name, "driver");
  EXPECT_EQ(workload.pod_sets[0].count, 1);
  EXPECT_EQ(workload.pod_sets[1].name, "workers");
  EXPECT_EQ(workload.pod_sets[1].count, 6) << "replicas x min(parallelism, completions)";
  EXPECT_EQ(workload.pod_sets[1].requests.at("nvidia.com/gpu"), 2);
  EXPECT_TRUE(in.pods.empty()) << "its operator makes them";
}

TEST(ResolveMakers, WithoutAQueueItIsItsOperatorsAffair) {
  const Inputs in = read_clean(kMakerQueues + job_set(""));
  EXPECT_TRUE(in.queues.workloads.empty());
  EXPECT_EQ(in.notes.size(), 1u) << all(in.notes);
  // And where there is no Kueue a label of it says so once.
  const Inputs no_queues = read_clean(job_set(kQueued));
  EXPECT_TRUE(no_queues.queues.workloads.empty());
  EXPECT_NE(all(no_queues.notes).find("no ClusterQueue"), std::string::npos);
}

TEST(ResolveMakers, WhatItMadeWaitsForIt) {
  const std::string made =
      "{apiVersion: batch/v1, kind: Job, metadata: {name: train-workers-0, labels: "
      "{kueue.x-k8s.io/queue-name: lq}, ownerReferences: [{apiVersion: "
      "jobset.x-k8s.io/v1alpha2, kind: JobSet, name: train, uid: u1, controller: true}]}, spec: "
      "{parallelism: 1, template: " +
      pods_of(2, "restartPolicy: Never, ") + "}}\n---\n";
  const std::string labelled =
      "{apiVersion: v1, kind: Pod, metadata: {name: by-label, labels: "
      "{jobset.sigs.k8s.io/jobset-name: train}}, spec: {containers: [{name: c, image: i}]}}\n";
  const Inputs in = read_clean(kMakerQueues + job_set(kQueued) + made + labelled);
  ASSERT_EQ(in.queues.workloads.size(), 1u) << "the Job is none of its own";
  ASSERT_EQ(in.pods.size(), 2u);
  for (const model::PodSpec& pod : in.pods) EXPECT_TRUE(pod.queued) << pod.name;
  // Its own Workload stands for it: no second one is made.
  const std::string workload =
      "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w, "
      "ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: train, uid: "
      "u1, controller: true}]}, spec: {queueName: lq, podSets: [{name: driver, count: 1, "
      "template: " +
      pods_of(0) + "}, {name: workers, count: 6, template: " + pods_of(2) + "}]}}\n---\n";
  EXPECT_EQ(read_clean(kMakerQueues + workload + job_set(kQueued)).queues.workloads.size(), 1u);
}

TEST(ResolveMakers, AnAppWrapperHasTheSetsOfWhatItWraps) {
  const std::string wrapper =
      "{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: Wrap, "
      "labels: {kueue.x-k8s.io/queue-name: lq}}, spec: {components: [{template: {apiVersion: v1, "
      "kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}}, {template: "
      "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 2, template: " +
      pods_of(1) + "}}}, {podSets: [{path: 'template.spec.roles[1].pods', replicas: 3}], " +
      "template: {apiVersion: example.com/v1, kind: Thing, spec: {roles: [{}, {pods: " +
      pods_of(1) + "}]}}}, {template: {apiVersion: v1, kind: ConfigMap, data: {}}}]}}\n";
  std::string lower = wrapper;
  lower.replace(lower.find("Wrap, "), 4, "wrap");
  const Inputs in = read_clean(kMakerQueues + lower);
  ASSERT_EQ(in.queues.workloads.size(), 1u);
  const auto& sets = in.queues.workloads[0].pod_sets;
  ASSERT_EQ(sets.size(), 3u);
  EXPECT_EQ(sets[0].name, "wrap-0");
  EXPECT_EQ(sets[0].count, 1);
  EXPECT_EQ(sets[1].count, 2);
  EXPECT_EQ(sets[2].name, "wrap-2");
  EXPECT_EQ(sets[2].count, 3);
}

// One that an AppWrapper made is the AppWrapper's, in whatever order they come.
TEST(ResolveMakers, WhoeverMakesTheOtherWaits) {
  const std::string wrapper =
      "{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: zz, uid: "
      "u2, labels: {kueue.x-k8s.io/queue-name: lq}}, spec: {components: [{podSets: [{path: "
      "template.pods}], template: {apiVersion: example.com/v1, kind: T, pods: " +
      pods_of(1) + "}}]}}\n---\n";
  const std::string set = job_set(
      ", labels: {kueue.x-k8s.io/queue-name: lq}, ownerReferences: [{apiVersion: "
      "workload.codeflare.dev/v1beta2, kind: AppWrapper, name: zz, uid: u2, controller: true}]");
  for (const std::string& both : {wrapper + set, set + wrapper}) {
    const Inputs in = read_clean(kMakerQueues + both);
    ASSERT_EQ(in.queues.workloads.size(), 1u);
    EXPECT_EQ(in.queues.workloads[0].owner, "AppWrapper/zz");
  }
  // Two that say that they made each other are waited for all the same.
  const std::string circle =
      "ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: "
      "JobSet, name: train, uid: u1, controller: true}]";
  EXPECT_EQ(read_clean(kMakerQueues + job_set(std::string(kQueued) + ", " + circle))
                .queues.workloads.size(),
            1u);
}

TEST(ResolveMakers, ErrorsNameTheirPath) {
  const auto invalid = [](const std::string& yaml) {
    return all(read(kMakerQueues + yaml).invalid);
  };
  EXPECT_NE(invalid(job_set(kQueued, "", pods_of(2, "priorityClassName: gone, ")))
                .find("spec.replicatedJobs[1].template.spec.template.spec.priorityClassName"),
            std::string::npos)
      << invalid(job_set(kQueued, "", pods_of(2, "priorityClassName: gone, ")));
  EXPECT_NE(invalid(job_set(kQueued, "",
                            "{spec: {containers: [{name: c, resources: {limits: "
                            "{nvidia.com/gpu: x}}}]}}"))
                .find("spec.replicatedJobs[1].template.spec.template.spec.containers[0]"),
            std::string::npos);
  EXPECT_NE(invalid("{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: big" +
                    std::string(kQueued) +
                    "}, spec: {replicatedJobs: [{name: a, replicas: 200000, template: {spec: "
                    "{template: " +
                    pods_of(1) + "}}}]}}\n")
                .find("at most 100000"),
            std::string::npos);
  EXPECT_NE(invalid(job_set(", labels: {kueue.x-k8s.io/queue-name: lq, "
                            "kueue.x-k8s.io/priority-class: gone}"))
                .find("WorkloadPriorityClass"),
            std::string::npos);
}

// What cannot be a Workload is refused as a whole, and what it makes waits.
TEST(ResolveMakers, WhatCannotBeAWorkloadIsRefusedAndWaits) {
  const std::string labelled =
      "{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {jobset.sigs.k8s.io/jobset-name: "
      "bad}}, spec: {containers: [{name: c, image: i}]}}\n";
  const auto set_of = [](const std::string& jobs) {
    return "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: bad" +
           std::string(kQueued) + "}, spec: {replicatedJobs: [" + jobs + "]}}\n---\n";
  };
  const auto job_of = [](const std::string& name) {
    return "{name: " + name + ", template: {spec: {template: " + pods_of(1) + "}}}";
  };
  std::string many = job_of("s0");
  for (int i = 1; i < 19; ++i) many += ", " + job_of("s" + std::to_string(i));
  const std::pair<std::string, std::string> cases[] = {
      {set_of(many), "at most 18"},
      {set_of(job_of("w_1")), "DNS label"},
      {set_of(job_of("w") + ", " + job_of("W")), "each name once"},
      {"{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: bad" +
           std::string(kQueued) +
           "}, spec: {components: [{podSets: [{path: template.gone}], template: {apiVersion: "
           "example.com/v1, kind: T, pods: " +
           pods_of(1) + "}}]}}\n---\n",
       "no template of pod set"}};
  for (const auto& [yaml, words] : cases) {
    const Inputs in = read(kMakerQueues + yaml + labelled);
    EXPECT_NE(all(in.invalid).find(words), std::string::npos) << all(in.invalid);
    EXPECT_TRUE(in.queues.workloads.empty());
    ASSERT_EQ(in.pods.size(), 1u);
    const bool of_set = yaml.find("JobSet") != std::string::npos;
    EXPECT_EQ(in.pods[0].queued, of_set) << yaml;
  }
}

// An AppWrapper around a JobSet: its Jobs and pods are the wrapper's, by whichever label or owner.
TEST(ResolveMakers, WhatIsMadeOfWhatIsMade) {
  const std::string wrapper =
      "{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: wrap, uid: "
      "u2, labels: {kueue.x-k8s.io/queue-name: lq}}, spec: {components: [{podSets: [{path: "
      "template.pods}], template: {apiVersion: example.com/v1, kind: T, pods: " +
      pods_of(1) + "}}]}}\n---\n";
  const std::string inner = job_set(
      ", ownerReferences: [{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, name: "
      "wrap, uid: u2, controller: true}]");
  const std::string job =
      "{apiVersion: batch/v1, kind: Job, metadata: {name: j, labels: {kueue.x-k8s.io/queue-name: "
      "lq}, ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: train, "
      "uid: u1, controller: true}]}, spec: {parallelism: 1, template: " +
      pods_of(1, "restartPolicy: Never, ") + "}}\n---\n";
  const std::string pod =
      "{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {jobset.sigs.k8s.io/jobset-name: "
      "train, workload.codeflare.dev/appwrapper: wrap}}, spec: {containers: [{name: c, image: "
      "i}]}}\n";
  const Inputs in = read_clean(kMakerQueues + wrapper + inner + job + pod);
  ASSERT_EQ(in.queues.workloads.size(), 1u);
  EXPECT_EQ(in.queues.workloads[0].owner, "AppWrapper/wrap");
  ASSERT_EQ(in.pods.size(), 2u);
  for (const model::PodSpec& each : in.pods) EXPECT_TRUE(each.queued) << each.name;
}

// A default LocalQueue is for what nobody made, as the webhook has it.
TEST(ResolveMakers, ADefaultQueueIsNotForWhatSomethingMade) {
  std::string queues = kMakerQueues;
  queues.replace(queues.find("{name: lq}"), 10, "{name: default}");
  EXPECT_EQ(read_clean(queues + job_set("", "suspend: true, ")).queues.workloads.size(), 1u);
  const std::string made =
      ", ownerReferences: [{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, name: t, "
      "uid: x, controller: true}]";
  EXPECT_TRUE(read(queues + job_set(made, "suspend: true, ")).queues.workloads.empty());
}

TEST(ResolveMakers, ThePriorityIsThatOfTheFirstSetThatHasAClass) {
  const std::string high =
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: "
      "7}\n---\n";
  const Inputs in = read_clean(kMakerQueues + high +
                               job_set(kQueued, "", pods_of(1, "priorityClassName: high, ")));
  ASSERT_EQ(in.queues.workloads.size(), 1u);
  EXPECT_EQ(in.queues.workloads[0].priority, 7);
}

TEST(ResolveMakers, WhatHasEndedWaitsForNothing) {
  std::string done = job_set(kQueued);
  done.insert(done.rfind("}\n---"), ", status: {conditions: [{type: Completed, status: 'True'}]}");
  EXPECT_TRUE(read_clean(kMakerQueues + done).queues.workloads.empty());
}

}  // namespace
}  // namespace berth::kinds
