#include "kinds/kueue_workload.h"
#include "kinds/queues_for_test.h"

namespace berth::kinds::resolve_queues_test {
namespace {

// ---- queue objects ----

TEST(Queues, AllKinds) {
  const Inputs in = read_clean(kQueues + R"(---
{apiVersion: kueue.x-k8s.io/v1alpha1, kind: Cohort, metadata: {name: all}, spec: {parent: company}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: b}, spec: {parentName: all}}
---
apiVersion: kueue.x-k8s.io/v1alpha1
kind: Topology
metadata: {name: dc}
spec: {levels: [{nodeLabel: x.io/rack}]}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: AdmissionCheck
metadata: {name: prov}
spec: {controllerName: x.io/c}
---
{apiVersion: v1, kind: Namespace, metadata: {name: ml, labels: {team: a}}}
)");
  EXPECT_EQ(in.queues.flavors.at(0).name, "f");
  EXPECT_EQ(in.queues.queues.at(0).name, "cq");
  EXPECT_EQ(in.queues.local_queues.at(0).ns + "/" + in.queues.local_queues.at(0).name, "ml/q");
  ASSERT_EQ(in.queues.cohorts.size(), 2u);
  EXPECT_EQ(in.queues.cohorts[0].parent, "company");
  EXPECT_EQ(in.queues.cohorts[1].parent, "all");
  EXPECT_EQ(in.queues.topologies.at(0).levels, (Names{"x.io/rack"}));
  EXPECT_EQ(in.queues.checks.at(0).controller, "x.io/c");
  EXPECT_EQ(in.queues.namespaces.at("ml"),
            (model::Labels{{"kubernetes.io/metadata.name", "ml"}, {"team", "a"}}));
  EXPECT_TRUE(in.queues.workloads.empty());
}

TEST(Queues, OneOfEachName) {
  const Inputs in = read(kQueues +
                         "---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, "
                         "metadata: {name: q, namespace: ml}, spec: {clusterQueue: x}}\n");
  EXPECT_EQ(in.queues.local_queues.size(), 1u);
  EXPECT_EQ(in.queues.local_queues.at(0).queue, "cq");
  EXPECT_NE(all(in.invalid).find("LocalQueue ml/q: metadata.name: found the same name"),
            std::string::npos)
      << all(in.invalid);
  EXPECT_NE(
      all(read("{apiVersion: kueue.x-k8s.io/v1beta3, kind: Workload, metadata: {name: w}}").ignored)
          .find("read in kueue.x-k8s.io/v1beta1, kueue.x-k8s.io/v1beta2"),
      std::string::npos);
}

// ---- Workload objects ----

TEST(Queues, WorkloadPriorities) {
  const auto priority = [](const std::string& spec, const std::string& more = "") {
    return only_one(
               read_clean(kQueues +
                          workload_body("annotations: {kueue.x-k8s.io/priority-boost: '7'}", spec) +
                          more))
        .priority;
  };
  const std::string ref =
      "priorityClassRef: {group: kueue.x-k8s.io, kind: WorkloadPriorityClass, "
      "name: gold},";
  EXPECT_EQ(priority(""), 0);
  EXPECT_EQ(priority(ref), 100);
  EXPECT_EQ(priority(ref + "priority: 5,"), 5) << "spec.priority is what the server stored";
  EXPECT_EQ(priority(ref, config_body("featureGates: {PriorityBoost: true}")), 107);
  EXPECT_EQ(priority("priorityClassRef: {group: scheduling.k8s.io, kind: PriorityClass, name: p},",
                     "---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: "
                     "{name: p}, value: 9}\n"),
            9);
  EXPECT_EQ(priority("priority: 2147483647,", config_body("featureGates: {PriorityBoost: true}")),
            2147483647);
}

TEST(Queues, UnknownClasses) {
  const std::string ref =
      "priorityClassRef: {group: kueue.x-k8s.io, kind: WorkloadPriorityClass, "
      "name: none},";
  invalid(workload_body("uid: u", ref),
          "Workload ml/w: spec: found class \"none\", want a WorkloadPriorityClass "
          "of the input: add workloadpriorityclasses to what kubectl gets");
  invalid(workload_body("uid: u",
                        "priorityClassRef: {group: scheduling.k8s.io, kind: PriorityClass, "
                        "name: none},"),
          "add priorityclasses to what kubectl gets");
  const Inputs in = read(kQueues + workload_body("uid: u", ref, kHolds));
  EXPECT_EQ(only_one(in).priority, 0);
  EXPECT_NE(all(in.warnings).find("until then its pods say its priority, or it is 0"),
            std::string::npos);
}

TEST(Queues, WorkloadObjects) {
  const Inputs in =
      read_clean(kQueues + workload_body("annotations: {kueue.x-k8s.io/admission-gated-by: x}",
                                         "active: false,"));
  const model::WorkloadSpec& w = only_one(in);
  EXPECT_FALSE(w.active);
  EXPECT_EQ(w.held_by, "x");
  EXPECT_EQ(w.pod_sets.at(0).requests, (model::Amounts{{"nvidia.com/gpu", 2}}));
  EXPECT_EQ(w.pod_sets.at(0).pod->gpu.count, 2);
  EXPECT_EQ(
      only_one(read_clean(kQueues + config_body("featureGates: {AdmissionGatedBy: false}") +
                          workload_body("annotations: {kueue.x-k8s.io/admission-gated-by: x}")))
          .held_by,
      "");
  EXPECT_TRUE(read_clean(kQueues + workload_body("uid: u", "",
                                                 "conditions: [{type: Finished, status: 'True'}]"))
                  .queues.workloads.empty());
  const Inputs excluded =
      read_clean(kQueues + config_body("resources: {excludeResourcePrefixes: [nvidia.com/]}") +
                 workload_body("uid: u"));
  EXPECT_TRUE(only_one(excluded).pod_sets.at(0).requests.empty());
}

// ---- Jobs ----

TEST(QueuedJobs, BecomeWorkloads) {
  for (const char* suspend : {"", "suspend: true, "}) {
    const Inputs in = read_clean(
        kQueues +
        job_body(
            "uid: u, creationTimestamp: 1970-01-01T00:00:02Z, annotations: "
            "{kueue.x-k8s.io/job-min-parallelism: '2'}, labels: {kueue.x-k8s.io/queue-name: q, "
            "kueue.x-k8s.io/priority-class: gold, kueue.x-k8s.io/max-exec-time-seconds: '90'}",
            suspend + std::string("parallelism: 6, completions: 4,"),
            "kueue.x-k8s.io/podset-preferred-topology: x.io/rack, "
            "kueue.x-k8s.io/podset-slice-required-topology: kubernetes.io/hostname, "
            "kueue.x-k8s.io/podset-slice-size: '2', kueue.x-k8s.io/podset-group-name: g"));
    EXPECT_TRUE(in.pods.empty()) << "the workload decides";
    EXPECT_TRUE(in.gangs.empty());
    EXPECT_EQ(in.counts.suspended_jobs, 0u);
    EXPECT_TRUE(in.notes.empty()) << all(in.notes);
    const model::WorkloadSpec& w = only_one(in);
    EXPECT_EQ(w.ns + "/" + w.name + " " + w.owner + " " + w.uid + " " + w.queue, "ml/j Job/j u q");
    EXPECT_EQ(w.priority, 100);
    EXPECT_EQ(w.created_ns, 2'000'000'000);
    EXPECT_EQ(w.max_execution_s, 90);
    ASSERT_EQ(w.pod_sets.size(), 1u);
    const model::PodSetSpec& set = w.pod_sets[0];
    EXPECT_EQ(set.name, "main");
    EXPECT_EQ(set.count, 4);
    EXPECT_EQ(set.min_count, 2);
    EXPECT_EQ(set.requests, (model::Amounts{{"nvidia.com/gpu", 2}}));
    EXPECT_EQ(set.topology.mode, model::TopologyAsk::Mode::kPreferred);
    EXPECT_EQ(set.topology.level, "x.io/rack");
    EXPECT_EQ(set.topology.group, "g");
    EXPECT_EQ(set.topology.slices.at(0), (model::TopologyAsk::Slice{"kubernetes.io/hostname", 2}));
    EXPECT_EQ(set.pod->owner, "Job/j");
    EXPECT_EQ(set.pod->queue, "q");
    EXPECT_EQ(set.pod->labels.at("job-name"), "j");
    EXPECT_TRUE(set.pods.empty());
  }
}

TEST(QueuedJobs, PodPriorityWithoutAClass) {
  const std::string priority =
      "---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: p}, value: 9, "
      "globalDefault: true}\n";
  EXPECT_EQ(only_one(read_clean(kQueues + job_body(kInQ) + priority)).priority, 9);
  const Inputs gated = read_clean(
      kQueues + job_body(kInQ) +
      "---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: "
      "default}, value: 4}\n" +
      config_body("featureGates: {WorkloadPriorityClassDefaulting: true}"));
  EXPECT_EQ(only_one(gated).priority, 4);
}

TEST(QueuedJobs, TheDefaultQueue) {
  const std::string local =
      "---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: default, "
      "namespace: NS}, spec: {clusterQueue: cq}}\n";
  const auto in_namespace = [&](std::string ns) {
    std::string yaml = kQueues + local + job_body("uid: u");
    for (const std::string from : {"NS", "namespace: ml, uid"}) {
      const std::string to = from == "NS" ? ns : "namespace: " + ns + ", uid";
      for (std::size_t at = yaml.find(from); at != std::string::npos; at = yaml.find(from)) {
        yaml.replace(at, from.size(), to);
        if (from != "NS") break;
      }
    }
    return read_clean(yaml);
  };
  EXPECT_EQ(only_one(in_namespace("ml")).queue, "default");
  EXPECT_TRUE(in_namespace("kube-system").queues.workloads.empty());
  EXPECT_EQ(in_namespace("kueue-system").pods.size(), 1u) << "as without queues";
  EXPECT_EQ(read_clean(kQueues + job_body("uid: u")).pods.size(), 1u)
      << "no default queue, no label";
}

TEST(QueuedJobs, ManagedNamespaces) {
  const std::string select = config_body(
      "manageJobsWithoutQueueName: true, managedJobsNamespaceSelector: {matchLabels: {team: a}}");
  const std::string ns =
      "---\n{apiVersion: v1, kind: Namespace, metadata: {name: ml, labels: "
      "{team: a}}}\n";
  EXPECT_EQ(only_one(read_clean(kQueues + select + ns + job_body("uid: u"))).queue, "");
  EXPECT_TRUE(read_clean(kQueues + select + job_body("uid: u")).queues.workloads.empty());
  EXPECT_EQ(only_one(read_clean(kQueues + select + job_body(kInQ))).queue, "q")
      << "a label always counts";
  const std::string labelled = pod("p", kInQ);
  EXPECT_FALSE(read_clean(kQueues + select + labelled).pods.at(0).queued) << "not so for pods";
  EXPECT_TRUE(read_clean(kQueues + select + ns + labelled).pods.at(0).queued);
}

TEST(QueuedJobs, FinishedOnesAndUnknownQueues) {
  EXPECT_TRUE(read_clean(kQueues + job_body(kInQ) +
                         "status: {conditions: [{type: Complete, status: 'True'}]}\n")
                  .queues.workloads.empty());
  EXPECT_EQ(
      only_one(read_clean(kQueues + job_body("labels: {kueue.x-k8s.io/queue-name: none}"))).queue,
      "none");
}

TEST(QueuedJobs, Errors) {
  const std::string in_q = "labels: {kueue.x-k8s.io/queue-name: q, ";
  invalid(job_body(in_q + "kueue.x-k8s.io/priority-class: none}"),
          "Job ml/j: metadata.labels[\"kueue.x-k8s.io/priority-class\"]: found \"none\", want a "
          "WorkloadPriorityClass of the input: add workloadpriorityclasses to what kubectl gets");
  invalid(job_body(in_q + "kueue.x-k8s.io/max-exec-time-seconds: '0'}"),
          "metadata.labels[\"kueue.x-k8s.io/max-exec-time-seconds\"]: found \"0\", want a whole "
          "number 1..2147483647");
  invalid(job_body(kInQ + ", annotations: {kueue.x-k8s.io/job-min-parallelism: '3'}",
                   "parallelism: 2,"),
          "metadata.annotations[\"kueue.x-k8s.io/job-min-parallelism\"]: found \"3\", want a whole "
          "number 1..2");
  const auto topology = [&](const std::string& annotations, const std::string& part) {
    invalid(job_body(kInQ, "parallelism: 4,", annotations),
            "Job ml/j: spec.template.metadata.annotations[\"kueue.x-k8s.io/podset-" + part);
  };
  topology("kueue.x-k8s.io/podset-slice-size: '2'",
           "slice-required-topology\"]: found nothing, want it beside "
           "kueue.x-k8s.io/podset-slice-size");
  topology("kueue.x-k8s.io/podset-slice-required-topology: r", "slice-size\"]: found nothing");
  topology(
      "kueue.x-k8s.io/podset-slice-required-topology: r, kueue.x-k8s.io/podset-slice-size: "
      "'5'",
      "slice-size\"]: found \"5\", want at most the count 4");
  topology("kueue.x-k8s.io/podset-unconstrained-topology: 'yes'",
           "unconstrained-topology\"]: found \"yes\", want \"true\" or \"false\"");
  topology(
      "kueue.x-k8s.io/podset-unconstrained-topology: 'true', "
      "kueue.x-k8s.io/podset-required-topology: r",
      "unconstrained-topology\"]: found \"true\", want no required");
  topology("kueue.x-k8s.io/podset-group-name: g", "group-name\"]: found \"g\", want a required");
  EXPECT_EQ(
      read(kQueues + job_body(kInQ, "parallelism: 2,", "kueue.x-k8s.io/podset-slice-size: '2'"))
          .pods.size(),
      0u)
      << "a refused one does not start outside of its queue";
}

TEST(QueuedJobs, MoreThanOneInputMayHold) {
  ManifestReader reader(ManifestOptions{.max_job_pods = 5});
  add_yaml(reader, kQueues + job_body(kInQ, "parallelism: 4,") +
                       job_body(kInQ, "parallelism: 2,", "", "k"));
  const Inputs in = reader.finish();
  EXPECT_EQ(workload_names(in), (Names{"ml/j"}));
  EXPECT_NE(all(in.invalid)
                .find("Job ml/k: spec.parallelism: found 2 pods, want at most 1 more "
                      "over all that waits"),
            std::string::npos)
      << all(in.invalid);
}

TEST(QueuedJobs, AWorkloadObjectStandsForItsJob) {
  const Inputs waits = read_clean(kQueues + job_body(kInQ, "parallelism: 2,") +
                                  workload_body(kOwned) + pod("j-0", kOwned));
  EXPECT_EQ(workload_names(waits), (Names{"ml/w"}));
  EXPECT_EQ(only_one(waits).owner, "Job/j");
  EXPECT_EQ(pod_names(waits), (Names{"j-0"})) << "the missing one is not made";
  EXPECT_TRUE(waits.pods.at(0).queued);
  EXPECT_EQ(only_one(waits).pod_sets.at(0).pods, (Names{"ml/j-0"}));

  const Inputs runs =
      read_clean(kQueues + job_body(kInQ, "parallelism: 2,") + workload_body(kOwned, "", kHolds) +
                 pod("j-0", kOwned, "nodeName: n1,"));
  EXPECT_EQ(workload_names(runs), (Names{"ml/w"}));
  EXPECT_EQ(pod_names(runs), (Names{"j-0", "j-1"}));
  EXPECT_FALSE(runs.pods.at(0).queued || runs.pods.at(1).queued);
  EXPECT_EQ(only_one(runs).pod_sets.at(0).pods, (Names{"ml/j-0", "ml/j-1"}));

  EXPECT_TRUE(read_clean(kQueues + job_body(kInQ, "suspend: true, parallelism: 2,") +
                         workload_body(kOwned, "", kHolds))
                  .pods.empty());
  const Inputs over =
      read_clean(kQueues + job_body(kInQ, "parallelism: 2,") +
                 workload_body(kOwned, "", "conditions: [{type: Finished, status: 'True'}]"));
  EXPECT_TRUE(over.pods.empty() && over.queues.workloads.empty());
  const Inputs refused =
      read(kQueues + job_body(kInQ) +
           workload_body(kOwned,
                         "priorityClassRef: {group: scheduling.k8s.io, kind: PriorityClass, "
                         "name: none},"));
  EXPECT_TRUE(refused.pods.empty() && refused.queues.workloads.empty());
}

TEST(QueuedJobs, RunningWithoutAWorkloadObject) {
  const Inputs in =
      read_clean(kQueues + job_body(kInQ, "parallelism: 2,") + pod("j-0", kOwned, "nodeName: n1,"));
  EXPECT_TRUE(in.queues.workloads.empty());
  EXPECT_EQ(pod_names(in), (Names{"j-0", "j-1"}));
  EXPECT_NE(all(in.notes).find("Job ml/j: : it waits in queue \"q\" and runs already"),
            std::string::npos)
      << all(in.notes);
}

TEST(QueuedJobs, RunningWithoutAWorkloadObjectInALiveCluster) {
  ManifestReader reader(ManifestOptions{.live = true});
  add_yaml(reader,
           kQueues + job_body(kInQ, "parallelism: 2,") + pod("j-0", kOwned, "nodeName: n1,"));
  const Inputs in = reader.finish();
  ASSERT_EQ(in.queues.workloads.size(), 1u);
  EXPECT_EQ(in.queues.workloads[0].owner, "Job/j");
  EXPECT_FALSE(in.queues.workloads[0].admission.has_value());  // so the controller suspends it
  EXPECT_EQ(all(in.notes).find("runs already"), std::string::npos) << all(in.notes);
}

TEST(QueuedJobs, ALabelOnTheTemplateOnly) {
  const Inputs in = read(kQueues +
                         "---\n{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: "
                         "ml}, spec: {template: {metadata: {labels: {kueue.x-k8s.io/queue-name: "
                         "q}}, spec: {restartPolicy: Never, containers: [{name: c}]}}}}\n");
  EXPECT_EQ(in.pods.size(), 1u);
  EXPECT_NE(all(in.warnings).find("found a queue on the template only, want it on the Job"),
            std::string::npos);
}

// ---- pods ----

TEST(QueuedPods, OnePodIsAWorkload) {
  const Inputs in =
      read_clean(kQueues + pod("p",
                               "uid: u, labels: {kueue.x-k8s.io/queue-name: q, "
                               "kueue.x-k8s.io/priority-class: gold}, annotations: "
                               "{kueue.x-k8s.io/podset-required-topology: kubernetes.io/hostname}",
                               "schedulingGates: [{name: kueue.x-k8s.io/admission}],"));
  ASSERT_EQ(in.pods.size(), 1u);
  EXPECT_TRUE(in.pods[0].queued);
  EXPECT_FALSE(in.pods[0].gated) << "Kueue's own gate";
  EXPECT_EQ(in.pods[0].queue, "q");
  const model::WorkloadSpec& w = only_one(in);
  EXPECT_EQ(w.ns + "/" + w.name + " " + w.owner + " " + w.uid + " " + w.queue, "ml/p Pod/p u q");
  EXPECT_EQ(w.priority, 100);
  EXPECT_EQ(w.pod_sets.at(0).count, 1);
  EXPECT_EQ(w.pod_sets.at(0).name, "main");
  EXPECT_EQ(w.pod_sets.at(0).pods, (Names{"ml/p"}));
  EXPECT_EQ(w.pod_sets.at(0).requests, (model::Amounts{{"nvidia.com/gpu", 1}}));
  EXPECT_EQ(w.pod_sets.at(0).topology.mode, model::TopologyAsk::Mode::kRequired);
  EXPECT_EQ(w.incomplete, "");
}

TEST(QueuedPods, OtherGatesStay) {
  const Inputs in = read_clean(
      kQueues +
      pod("p", kInQ, "schedulingGates: [{name: kueue.x-k8s.io/admission}, {name: x.io/g}],"));
  EXPECT_TRUE(in.pods.at(0).queued && in.pods.at(0).gated);
}

TEST(QueuedPods, BoundAndFinishedOnesAreLeft) {
  const Inputs in = read_clean(kQueues + pod("a", kInQ, "nodeName: n1,") +
                               pod("b", kInQ, "", "phase: Succeeded"));
  EXPECT_EQ(pod_names(in), (Names{"a"}));
  EXPECT_FALSE(in.pods.at(0).queued);
  EXPECT_TRUE(in.queues.workloads.empty());
}

TEST(QueuedPods, OfAWorkloadObject) {
  const std::string owned = "ownerReferences: [{kind: Pod, name: p}]";
  const std::string gate = "schedulingGates: [{name: kueue.x-k8s.io/admission}],";
  const Inputs waits = read_clean(kQueues + workload_body(owned) + pod("p", kInQ, gate));
  EXPECT_EQ(workload_names(waits), (Names{"ml/w"}));
  EXPECT_TRUE(waits.pods.at(0).queued && !waits.pods.at(0).gated);
  EXPECT_EQ(only_one(waits).pod_sets.at(0).pods, (Names{"ml/p"}));
  const Inputs starts =
      read_clean(kQueues + workload_body(owned, "", kHolds) + pod("p", kInQ, gate));
  EXPECT_FALSE(starts.pods.at(0).queued || starts.pods.at(0).gated);
  std::string reserved = kHolds;
  reserved.replace(reserved.find("Admitted"), 8, "QuotaReserved");
  const Inputs checks =
      read_clean(kQueues + workload_body(owned, "", reserved) + pod("p", kInQ, gate));
  EXPECT_TRUE(checks.pods.at(0).queued) << "checks are not done";
}

TEST(QueuedPods, NamesAreKeptApart) {
  EXPECT_EQ(workload_names(read_clean(kQueues + workload_body("uid: u") +
                                      job_body(kInQ, "", "", "w") + pod("w", kInQ))),
            (Names{"ml/job-w", "ml/pod-w", "ml/w"}));
}

TEST(QueuedPods, UnknownClass) {
  const Inputs in = read(kQueues + pod("p",
                                       "labels: {kueue.x-k8s.io/queue-name: q, "
                                       "kueue.x-k8s.io/priority-class: none}"));
  EXPECT_TRUE(in.pods.empty() && in.queues.workloads.empty());
  EXPECT_NE(all(in.invalid).find("Pod ml/p: metadata.labels[\"kueue.x-k8s.io/priority-class\"]"),
            std::string::npos);
}

std::string group_member(const std::string& name, const std::string& total,
                         const std::string& spec = "", const std::string& more = "",
                         const std::string& queue = "q") {
  return pod(name,
             "labels: {kueue.x-k8s.io/queue-name: " + queue +
                 ", kueue.x-k8s.io/pod-group-name: g, index: " + name + "}, annotations: {" +
                 (total.empty() ? "" : "kueue.x-k8s.io/pod-group-total-count: '" + total + "'") +
                 more + "}",
             spec);
}

TEST(QueuedPods, Groups) {
  const Inputs in = read_clean(kQueues + group_member("a", "3") +
                               group_member("b", "3", "priority: 5,") + group_member("c", "3"));
  const model::WorkloadSpec& w = only_one(in);
  EXPECT_EQ(w.name, "g");
  EXPECT_EQ(w.queue, "q");
  EXPECT_EQ(w.incomplete, "");
  ASSERT_EQ(w.pod_sets.size(), 2u);
  EXPECT_EQ(w.pod_sets[0].name, "role-0");
  EXPECT_EQ(w.pod_sets[0].count, 2);
  EXPECT_EQ(w.pod_sets[0].pods, (Names{"ml/a", "ml/c"}));
  EXPECT_EQ(w.pod_sets[1].pods, (Names{"ml/b"}));
  EXPECT_EQ(w.pod_sets[1].requests, (model::Amounts{{"nvidia.com/gpu", 1}}));
  for (const auto& p : in.pods) EXPECT_TRUE(p.queued) << p.name;

  const Inputs hashed =
      read_clean(kQueues + group_member("a", "2", "", ", kueue.x-k8s.io/role-hash: 1f") +
                 group_member("b", "2", "", ", kueue.x-k8s.io/role-hash: 2f"));
  ASSERT_EQ(only_one(hashed).pod_sets.size(), 2u);
  EXPECT_EQ(only_one(hashed).pod_sets[0].name + only_one(hashed).pod_sets[1].name, "1f2f");
}

TEST(QueuedPods, IncompleteGroups) {
  const auto incomplete = [](const std::string& yaml) {
    const Inputs in = read_clean(kQueues + yaml);
    EXPECT_FALSE(in.notes.empty());
    for (const auto& p : in.pods) EXPECT_TRUE(p.queued) << "nobody starts alone: " << p.name;
    return only_one(in).incomplete;
  };
  EXPECT_EQ(incomplete(group_member("a", "3") + group_member("b", "3")),
            "2 pods of its total count of 3 exist");
  EXPECT_EQ(incomplete(group_member("a", "")),
            "pod \"a\" has no annotation kueue.x-k8s.io/pod-group-total-count");
  EXPECT_EQ(incomplete(group_member("a", "2") + group_member("b", "3")),
            "its pods say different total counts");
  EXPECT_EQ(incomplete(group_member("a", "2") + group_member("b", "2", "", "", "r")),
            "its pods name different queues");
  const Inputs bad = read(kQueues + group_member("a", "2") + group_member("b", "x"));
  EXPECT_EQ(pod_names(bad), (Names{"a"}));
  EXPECT_EQ(only_one(bad).incomplete, "pod \"b\" is invalid");
  EXPECT_NE(all(bad.invalid).find("pod-group-total-count\"]: found \"x\", want a whole number"),
            std::string::npos);
}

TEST(QueuedPods, RunningGroups) {
  const Inputs in =
      read_clean(kQueues + group_member("a", "2", "nodeName: n1,") + group_member("b", "2"));
  EXPECT_TRUE(in.queues.workloads.empty());
  EXPECT_FALSE(in.pods.at(1).queued);
  EXPECT_NE(all(in.notes).find("pod group \"g\" runs already"), std::string::npos);
}

TEST(QueuedPods, KueueHoldsAgainstOthers) {
  const Inputs in =
      read(kQueues +
           "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: v, "
           "namespace: ml}, spec: {minMember: 1, queue: other}}\n" +
           pod("p", kInQ + ", annotations: {scheduling.k8s.io/group-name: v}") +
           pod("k", "labels: {kueue.x-k8s.io/queue-name: q, kai.scheduler/queue: kai}"));
  EXPECT_EQ(in.pods.at(0).queue + in.pods.at(1).queue, "qq");
  EXPECT_EQ(in.pods.at(1).gang, "") << "the workload is the gang";
  const std::string warned = all(in.warnings);
  EXPECT_NE(
      warned.find("PodGroup ml/v: metadata.labels[\"kueue.x-k8s.io/queue-name\"]: found Kueue's "
                  "queue \"q\" and queue \"other\" of another system; Kueue's holds"),
      std::string::npos)
      << warned;
  EXPECT_NE(warned.find("queue \"kai\" of another system"), std::string::npos);
}

// ---- slices and variants ----

TEST(Variants, SeatsAreTakenWholeOrNotAtAll) {
  std::vector<model::WorkloadSpec::Seat> seats;
  EXPECT_NE(seats_in(R"({"a":[{"node":"n"}],"b":[{"gpus":[0]}]})", seats), "");
  EXPECT_TRUE(seats.empty());
  EXPECT_EQ(seats_in(R"({"a":[{"node":"n"}],"b":[{"node":"m","gpus":[0]}]})", seats), "");
  EXPECT_EQ(seats.size(), 2u);
}

// Whoever may write the Workload may write the annotation, but not the status.
TEST(Variants, SeatsOfAnAnnotationNeedTheStatusToSayThatTheyAreThose) {
  const std::string seats = R"({"main":[{"node":"n","gpus":[0]}]})";
  const auto seats_with = [&](const std::string& message) {
    const std::string status =
        "conditions: [{type: berth.dev/Placed, status: 'True', reason: Placed, message: '" +
        message + "'}]";
    const Inputs in =
        read(kQueues + workload_body("annotations: {berth.dev/seats: '" + seats + "'}", "",
                                     message.empty() ? "" : status));
    EXPECT_TRUE(in.invalid.empty()) << all(in.invalid);
    return in.queues.workloads.at(0).seats.size();
  };
  EXPECT_EQ(seats_with(""), 0u);
  EXPECT_EQ(seats_with(seats_digest(seats)), 1u);
  EXPECT_EQ(seats_with(seats_digest(seats + " ")), 0u);
}

TEST(Variants, AnnotationsThatCannotBeAreRefused) {
  const auto with = [](const std::string& annotation) {
    return all(read(kQueues + workload_body("annotations: {" + annotation + "}")).invalid);
  };
  EXPECT_EQ(with("kueue.x-k8s.io/workload-slice-replacement-for: other"), "");
  EXPECT_NE(with("kueue.x-k8s.io/workload-allowed-resource-flavors: ','").find("names of flavors"),
            std::string::npos);
  for (const char* layers :
       {"'[]'", "'x'", R"('[{"topology":"rack"}]')", R"('[{"topology":"rack","size":0}]')",
        R"('[{"topology":"rack","size":2,"more":1}]')", R"('[{"topology":"rack","size":9}]')"}) {
    const std::string key = "kueue.x-k8s.io/podset-slice-required-topology-constraints";
    const std::string marked = kQueues + job_body(kInQ, "parallelism: 4,", key + ": " + layers);
    EXPECT_NE(all(read(marked).invalid).find(key), std::string::npos) << layers;
  }
}

}  // namespace
}  // namespace berth::kinds::resolve_queues_test
