#include "kinds/kueue_workload.h"

#include <gtest/gtest.h>

#include "text/yaml.h"

namespace berth::kinds::kueue_workload_test {
namespace {

constexpr auto kFirst = KueueVersion::kV1beta1, kSecond = KueueVersion::kV1beta2;

std::pair<WorkloadObject, std::string> workload(KueueVersion version, const std::string& body,
                                                const std::string& meta = "") {
  auto documents = text::parse_yaml("metadata: {name: w, namespace: ml" + meta + "}\n" + body);
  EXPECT_TRUE(documents.ok()) << documents.error().to_string();
  WorkloadObject out;
  text::Decoder d;
  decode_workload(documents->at(0).root(), version, out, d);
  std::string issues;
  for (const auto& issue : d.issues()) issues += issue.message() + "\n";
  return {std::move(out), issues};
}
std::string pod_set(const std::string& fields) {
  return "{" + fields +
         ", template: {spec: {containers: [{name: c, resources: {requests: {cpu: 500m}, limits: " +
         "{cpu: 500m, nvidia.com/gpu: 2}}}]}}}";
}
std::string spec(const std::string& sets, const std::string& more = "") {
  return "spec: {queueName: q, podSets: [" + sets + "]" + more + "}\n";
}
void says_of(const std::string& body, const std::string& part, KueueVersion version = kSecond) {
  const std::string issues = workload(version, body).second;
  EXPECT_NE(issues.find(part), std::string::npos) << part << " in:\n" << issues << body;
}
const std::string kOneSet = pod_set("name: main, count: 4");

TEST(KueueWorkload, BothVersionsAreOneSpec) {
  const std::string sets = pod_set(
      "name: main, count: 4, minCount: 2, topologyRequest: {required: x.io/rack, "
      "podSetSliceRequiredTopology: kubernetes.io/hostname, podSetSliceSize: 2}");
  const std::string rest = ", active: false, priority: 7, maximumExecutionTimeSeconds: 60";
  const auto [one, issues1] =
      workload(kFirst, spec(sets, rest + ", priorityClassName: gold, priorityClassSource: "
                                         "scheduling.k8s.io/priorityclass"));
  const auto [two, issues2] =
      workload(kSecond, spec(sets, rest + ", priorityClassRef: {group: scheduling.k8s.io, kind: "
                                          "PriorityClass, name: gold}"));
  EXPECT_EQ(issues1, "");
  EXPECT_EQ(issues2, "");
  for (const WorkloadObject* w : {&one, &two}) {
    EXPECT_EQ(w->spec.ns + "/" + w->spec.name + " in " + w->spec.queue, "ml/w in q");
    EXPECT_FALSE(w->spec.active);
    EXPECT_EQ(w->priority, 7);
    EXPECT_EQ(w->priority_class, "gold");
    EXPECT_TRUE(w->pod_class);
    EXPECT_EQ(w->spec.max_execution_s, 60);
    ASSERT_EQ(w->spec.pod_sets.size(), 1u);
    const model::PodSetSpec& set = w->spec.pod_sets[0];
    EXPECT_EQ(set.count, 4);
    EXPECT_EQ(set.min_count, 2);
    EXPECT_EQ(set.topology.mode, model::TopologyAsk::Mode::kRequired);
    EXPECT_EQ(set.topology.level, "x.io/rack");
    ASSERT_EQ(set.topology.slices.size(), 1u);
    EXPECT_EQ(set.topology.slices[0], (model::TopologyAsk::Slice{"kubernetes.io/hostname", 2}));
    EXPECT_EQ(w->templates.at(0).spec.gpu.count, 2);
    EXPECT_EQ(w->templates.at(0).spec.ns, "ml");
  }
}

TEST(KueueWorkload, Defaults) {
  const auto [w, issues] = workload(kSecond, spec("{template: {spec: {containers: [{name: c}]}}}"));
  EXPECT_EQ(issues, "");
  EXPECT_EQ(w.spec.pod_sets.at(0).name, "main");
  EXPECT_EQ(w.spec.pod_sets.at(0).count, 1);
  EXPECT_TRUE(w.spec.active && w.spec.pods_ready && !w.spec.admission && !w.spec.preemption_gated);
  EXPECT_EQ(w.spec.owner, "");
}

TEST(KueueWorkload, MetadataAndGates) {
  const auto [w, issues] = workload(
      kSecond,
      spec(kOneSet, ", preemptionGates: [{name: a}, {name: b}]") +
          "status: {preemptionGates: [{name: a, position: Open}]}\n",
      ", uid: u, creationTimestamp: 1970-01-01T00:00:03Z, ownerReferences: [{kind: Job, name: j, "
      "controller: true}], annotations: {kueue.x-k8s.io/priority-boost: '-5', "
      "kueue.x-k8s.io/admission-gated-by: 'x.io/budget'}");
  EXPECT_EQ(issues, "");
  EXPECT_EQ(w.spec.owner, "Job/j");
  EXPECT_EQ(w.spec.uid, "u");
  EXPECT_EQ(w.spec.created_ns, 3'000'000'000);
  EXPECT_EQ(w.boost, -5);
  EXPECT_EQ(w.spec.held_by, "x.io/budget");
  EXPECT_TRUE(w.spec.preemption_gated) << "b is not open";
  const auto open = workload(kSecond, spec(kOneSet, ", preemptionGates: [{name: a}]") +
                                          "status: {preemptionGates: [{name: a, position: Open}]}");
  EXPECT_FALSE(open.first.spec.preemption_gated);
  EXPECT_NE(workload(kSecond, spec(kOneSet), ", annotations: {kueue.x-k8s.io/priority-boost: 1.5}")
                .second.find("priority-boost"),
            std::string::npos);
}

TEST(KueueWorkload, WhatTheWebhookRefuses) {
  says_of("spec: {podSets: []}", "spec.podSets: found 0 pod sets, want 1 to 18");
  says_of("spec: {queueName: q}", "spec.podSets: found nothing");
  says_of(spec(pod_set("count: 0")), "spec.podSets[0].count: found number 0, want an integer 1..");
  says_of(spec(pod_set("count: -1")), "spec.podSets[0].count: found number -1");
  says_of(spec(pod_set("count: 2, minCount: 3")),
          "podSets[0].minCount: found 3, want at most the "
          "count 2");
  says_of(spec(pod_set("count: 2, minCount: 0")), "podSets[0].minCount: found number 0");
  says_of(spec(pod_set("name: a, count: 2, minCount: 1") + "," +
               pod_set("name: b, count: 2, minCount: 1")),
          "podSets[1]: found a second minCount");
  says_of(spec(kOneSet + "," + kOneSet), "podSets[1]: found pod set \"main\" twice");
  says_of(spec(pod_set("name: A.b, count: 1")), "podSets[0].name");
  std::string many = pod_set("name: p0");
  for (int i = 1; i < 19; ++i) many += "," + pod_set("name: p" + std::to_string(i));
  says_of(spec(many), "found 19 pod sets");
  says_of(spec("{name: main}"), "spec.podSets[0].template: found nothing");
  says_of(spec("{template: {spec: {}}}"),
          "podSets[0].template.spec.containers: found no containers");
}

TEST(KueueWorkload, TopologyRequests) {
  const auto ask = [](const std::string& request) {
    return spec(pod_set("count: 8, topologyRequest: {" + request + "}"));
  };
  EXPECT_EQ(workload(kSecond, ask("unconstrained: true")).first.spec.pod_sets[0].topology.mode,
            model::TopologyAsk::Mode::kUnconstrained);
  says_of(ask("required: a, preferred: b"),
          "more than one of required, preferred and unconstrained");
  says_of(ask("required: a, unconstrained: true"), "topologyRequest: found more than one");
  says_of(ask("required: 'a b'"), "topologyRequest.required: found string \"a b\"");
  says_of(ask("podSetSliceSize: 2"), "want both or neither");
  says_of(ask("podSetSliceRequiredTopology: a"), "want both or neither");
  says_of(ask("podSetSliceRequiredTopology: a, podSetSliceSize: 0"),
          "podSetSliceSize: found number 0");
  says_of(ask("podSetSliceRequiredTopology: a, podSetSliceSize: 9"), "at most the count 8");
  const auto constraints = [&](const std::string& list) {
    return ask("podsetSliceRequiredTopologyConstraints: [" + list + "]");
  };
  EXPECT_EQ(workload(kSecond, constraints("{topology: a, size: 4}, {topology: b, size: 2}")).second,
            "");
  says_of(constraints("{topology: a, size: 4}, {topology: b, size: 3}"),
          "a divisor of the one before");
  says_of(constraints("{topology: a, size: 8}, {topology: b, size: 4}, {topology: c, size: 2}, "
                      "{topology: d, size: 1}"),
          "found 4 slice constraints, want at most 3");
  says_of(ask("podSetGroupName: g"), "required or preferred beside it");
  const auto grouped = [](const std::string& first, const std::string& second) {
    return spec(
        pod_set("name: a, topologyRequest: {podSetGroupName: g, " + first + "}") + "," +
        pod_set("name: b, count: 2, topologyRequest: {podSetGroupName: g, " + second + "}"));
  };
  EXPECT_EQ(workload(kSecond, grouped("required: r", "required: r")).second, "");
  says_of(grouped("required: r", "preferred: r"), "group \"g\" with two topologies");
  says_of(ask("podSetGroupName: g, required: r"), "group \"g\" of 1 pod sets, want two pod sets");
}

TEST(KueueWorkload, PriorityClasses) {
  says_of(spec(kOneSet, ", priorityClassName: gold"), "priorityClassSource: found nothing beside",
          kFirst);
  says_of(spec(kOneSet, ", priorityClassName: g, priorityClassSource: x"),
          "one of kueue.x-k8s.io/workloadpriorityclass, scheduling.k8s.io/priorityclass", kFirst);
  says_of(spec(kOneSet, ", priorityClassRef: {group: x, kind: PriorityClass, name: g}"),
          "priorityClassRef: found kind \"PriorityClass\" of \"x\"");
  says_of(spec(kOneSet, ", priorityClassRef: {name: g}"), "priorityClassRef.group: found nothing");
  says_of(spec(kOneSet, ", priorityClassName: gold"), "an unknown field");
  says_of(spec(kOneSet, ", maximumExecutionTimeSeconds: 0"), "maximumExecutionTimeSeconds");
}

const char* const kAdmission =
    "admission: {clusterQueue: cq, podSetAssignments: [{name: main, count: 3, flavors: "
    "{nvidia.com/gpu: h100, cpu: h100}, resourceUsage: {nvidia.com/gpu: 6, cpu: 1500m}}]}";

TEST(KueueWorkload, Status) {
  const auto [w, issues] = workload(kSecond, spec(kOneSet) + "status: {" + kAdmission + R"(,
  conditions: [
    {type: QuotaReserved, status: "True", lastTransitionTime: "1970-01-01T00:00:01Z"},
    {type: Admitted, status: "True", lastTransitionTime: "1970-01-01T00:00:02Z"},
    {type: PodsReady, status: "False", reason: WaitForStart},
    {type: Evicted, status: "True", reason: Preempted, lastTransitionTime: "1970-01-01T00:00:04Z"},
    {type: Preempted, status: "True", reason: InCohortReclamation},
    {type: Requeued, status: "False", reason: PodsReadyTimeout},
    {type: Finished, status: "False"}],
  requeueState: {count: 2, requeueAt: "1970-01-01T00:00:09Z"},
  reclaimablePods: [{name: main, count: 1}],
  admissionChecks: [{name: paid, state: Ready, message: x}, {name: prov, state: Retry}],
  unhealthyNodes: [{name: n1}],
  accumulatedPastExecutionTimeSeconds: 30, resourceRequests: []})");
  EXPECT_EQ(issues, "");
  const model::WorkloadSpec& s = w.spec;
  ASSERT_TRUE(s.admission.has_value());
  EXPECT_EQ(s.admission->queue, "cq");
  const model::PodSetAdmission& set = s.admission->pod_sets.at(0);
  EXPECT_EQ(set.count, 3);
  EXPECT_EQ(set.flavors.at("nvidia.com/gpu"), "h100");
  EXPECT_EQ(set.usage, (model::Amounts{{"cpu", 1500}, {"nvidia.com/gpu", 6}}));
  EXPECT_TRUE(s.admitted && !s.finished && !s.pods_ready);
  EXPECT_EQ(s.reserved_ns, 1'000'000'000);
  EXPECT_EQ(s.admitted_ns, 2'000'000'000);
  EXPECT_EQ(s.evicted, "Preempted");
  EXPECT_EQ(s.evicted_ns, 4'000'000'000);
  EXPECT_EQ(s.preempted, "InCohortReclamation");
  EXPECT_EQ(s.not_requeued, "PodsReadyTimeout");
  EXPECT_EQ(s.requeues, 2);
  EXPECT_EQ(s.requeue_at_ns, 9'000'000'000);
  EXPECT_EQ(s.reclaimable.at("main"), 1);
  EXPECT_EQ(s.checks.at("paid"), model::CheckState::kReady);
  EXPECT_EQ(s.checks.at("prov"), model::CheckState::kRetry);
  EXPECT_EQ(s.unhealthy_nodes, (std::vector<std::string>{"n1"}));
  EXPECT_EQ(s.past_execution_s, 30);
}

TEST(KueueWorkload, QuotaThatWasGivenBack) {
  const auto [w, issues] =
      workload(kSecond, spec(kOneSet) + "status: {" + kAdmission +
                            ", conditions: [{type: Admitted, status: 'True'}, {type: "
                            "QuotaReserved, status: 'False'}]}");
  EXPECT_EQ(issues, "");
  EXPECT_FALSE(w.spec.admission.has_value());
  EXPECT_FALSE(w.spec.admitted);
  EXPECT_TRUE(workload(kSecond, spec(kOneSet) + "status: {" + kAdmission + "}")
                  .first.spec.admission.has_value())
      << "an admission without conditions holds";
}

TEST(KueueWorkload, WrongStatus) {
  const auto status = [](const std::string& text) {
    return spec(kOneSet) + "status: {" + text + "}";
  };
  const auto admission = [&](const std::string& sets) {
    return status("admission: {clusterQueue: cq, podSetAssignments: [" + sets + "]}");
  };
  says_of(admission("{name: other}"), "podSetAssignments[0]: found pod set \"other\"");
  says_of(admission(""), "podSetAssignments: found nothing for pod set \"main\"");
  says_of(admission("{name: main}, {name: main}"), "podSetAssignments[1]: found pod set \"main\"");
  says_of(admission("{name: main, resourceUsage: {cpu: -1}}"),
          "resourceUsage.cpu: found number -1, want an amount of at least 0");
  says_of(admission("{name: main, count: -1}"), "podSetAssignments[0].count: found number -1");
  says_of(admission("{name: main, delayedTopologyRequest: Later}"), "one of Pending, Ready");
  says_of(status("admission: {podSetAssignments: [{name: main}]}"), "clusterQueue: found nothing");
  says_of(status("admission: {clusterQueue: cq}"), "podSetAssignments: found nothing");
  says_of(status("conditions: [{type: QuotaReserved, status: 'True'}]"),
          "status.conditions: found QuotaReserved, want status.admission beside it");
  says_of(status("conditions: [{type: Admitted, status: 'True'}]"), "found Admitted");
  says_of(status("conditions: [{type: Evicted, status: 'True', lastTransitionTime: x}]"),
          "conditions[0].lastTransitionTime");
  says_of(status("reclaimablePods: [{name: x, count: 1}]"),
          "reclaimablePods[0]: found pod set \"x\"");
  says_of(status("reclaimablePods: [{name: main, count: 5}]"),
          "found 5 pods, want at most the count 4");
  says_of(status("admissionChecks: [{name: a, state: Fine}]"),
          "one of Pending, Ready, Retry, Rejected");
}

TEST(KueueWorkload, TopologyAssignmentsInBothEncodings) {
  const auto admitted = [](const std::string& topology) {
    return spec(kOneSet) +
           "status: {admission: {clusterQueue: cq, podSetAssignments: [{name: main, count: 4, "
           "topologyAssignment: {" +
           topology + "}}]}}";
  };
  const auto [one, issues1] = workload(
      kFirst, admitted("levels: [x.io/block, kubernetes.io/hostname], domains: [{values: [b1, "
                       "n-2.x], count: 3}, {values: [b1, n-1.x], count: 1}]"));
  const auto [two, issues2] = workload(
      kSecond,
      admitted("levels: [x.io/block, kubernetes.io/hostname], slices: [{domainCount: 2, "
               "valuesPerLevel: [{universal: b1}, {individual: {prefix: n-, suffix: .x, roots: "
               "['2', '1']}}], podCounts: {individual: [3, 1]}}]"));
  EXPECT_EQ(issues1 + issues2, "");
  const auto& first = one.spec.admission->pod_sets.at(0).topology;
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first, two.spec.admission->pod_sets.at(0).topology);
  ASSERT_EQ(first->domains.size(), 2u);
  EXPECT_EQ(first->domains[0].values, (std::vector<std::string>{"b1", "n-1.x"})) << "sorted";
  EXPECT_EQ(first->domains[1].count, 3);

  const auto slice = [&](const std::string& text) {
    return admitted("levels: [h], slices: [{" + text + "}]");
  };
  says_of(
      slice("domainCount: 2, valuesPerLevel: [{individual: {roots: [a]}}], podCounts: {universal: "
            "1}"),
      "found 1 roots, want domainCount 2");
  says_of(slice("domainCount: 1, valuesPerLevel: [{individual: {roots: [a]}, universal: b}], "
                "podCounts: {universal: 1}"),
          "not one of universal and individual");
  says_of(slice("domainCount: 1, valuesPerLevel: [], podCounts: {universal: 1}"),
          "found 0 valuesPerLevel, want one for each level");
  says_of(slice("domainCount: 2, valuesPerLevel: [{individual: {roots: [a, b]}}], podCounts: "
                "{individual: [1]}"),
          "found 1 podCounts");
  says_of(slice("domainCount: 1, valuesPerLevel: [{universal: a}], podCounts: {}"),
          "podCounts that are not one of");
  says_of(slice("domainCount: 200000, valuesPerLevel: [{universal: a}], podCounts: {universal: 1}"),
          "domainCount");
  says_of(slice("domainCount: 2, valuesPerLevel: [{universal: a}], podCounts: {universal: 2}"),
          "domain \"a\" twice");
  says_of(slice("domainCount: 1, valuesPerLevel: [{universal: a}], podCounts: {universal: 3}"),
          "found domains of 3 pods, want as many as the count 4");
  says_of(admitted("levels: [a, b], domains: [{values: [x], count: 4}]"),
          "found 1 values of a domain, want one for each level", kFirst);
  says_of(admitted("levels: [a], domains: [{values: [x], count: 0}]"), "domains[0].count", kFirst);
}

}  // namespace
}  // namespace berth::kinds::kueue_workload_test
