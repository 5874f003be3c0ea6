#include "kinds/kueue.h"

#include <gtest/gtest.h>

#include "text/yaml.h"

namespace berth::kinds {
namespace {

constexpr auto kV1 = KueueVersion::kV1beta1, kV2 = KueueVersion::kV1beta2;

// The spec, and every issue as text.
template <class T, class Decode>
std::pair<T, std::string> read_as(const std::string& yaml, Decode&& decode) {
  auto documents = text::parse_yaml(yaml);
  EXPECT_TRUE(documents.ok()) << documents.error().to_string();
  T out;
  text::Decoder d;
  decode(documents->at(0).root(), out, d);
  std::string issues;
  for (const auto& issue : d.issues()) issues += issue.message() + "\n";
  return {out, issues};
}
auto cluster_queue(KueueVersion version, const std::string& spec) {
  return read_as<model::QueueSpec>(
      "metadata: {name: team-a}\nspec:\n" + spec,
      [version](const auto& v, auto& out, auto& d) { decode_cluster_queue(v, version, out, d); });
}
auto cohort(const std::string& spec) {
  return read_as<model::CohortSpec>(
      "metadata: {name: all}\nspec:\n" + spec,
      [](const auto& v, auto& out, auto& d) { decode_cohort(v, kV2, out, d); });
}

constexpr const char* kGroups = R"(  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors:
    - name: h100
      resources:
      - {name: cpu, nominalQuota: 1500m, borrowingLimit: 1}
      - {name: nvidia.com/gpu, nominalQuota: 16, lendingLimit: 8}
)";

TEST(Kueue, BothVersionsAreOneSpec) {
  auto [first, issues] = cluster_queue(kV1, R"(  cohort: all
  queueingStrategy: StrictFIFO
  namespaceSelector: {}
  admissionChecks: [paid]
  flavorFungibility: {whenCanBorrow: TryNextFlavor, whenCanPreempt: Preempt}
  preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any,
    borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 100}}
  fairSharing: {weight: 500m}
)" + std::string(kGroups));
  EXPECT_EQ(issues, "");
  auto [second, issues2] = cluster_queue(kV2, R"(  cohortName: all
  queueingStrategy: StrictFIFO
  namespaceSelector: {}
  admissionChecksStrategy: {admissionChecks: [{name: paid}]}
  flavorFungibility: {whenCanBorrow: TryNextFlavor, whenCanPreempt: MayStopSearch}
  preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any,
    borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 100}}
  fairSharing: {weight: "0.5"}
)" + std::string(kGroups));
  EXPECT_EQ(issues2, "");
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.cohort, "all");
  EXPECT_TRUE(first.strict_fifo && !first.borrow_stops_search && first.preempt_stops_search);
  EXPECT_EQ(first.weight, 0.5);
  ASSERT_TRUE(first.namespaces.has_value());
  const auto& quota = first.groups.at(0).flavors.at(0).resources;
  EXPECT_EQ(quota.at(0).nominal, 1500);
  EXPECT_EQ(quota.at(0).borrowing_limit, 1000);
  EXPECT_EQ(quota.at(1).lending_limit, 8);
}

TEST(Kueue, DefaultsAndUnlimited) {
  auto [queue, issues] = cluster_queue(kV2, R"(  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: any, resources: [{name: nvidia.com/gpu, nominalQuota: 9223372036854775807}]}]
)");
  EXPECT_EQ(issues, "");
  EXPECT_EQ(queue.groups.at(0).flavors.at(0).resources.at(0).nominal, INT64_MAX);
  EXPECT_FALSE(queue.namespaces.has_value()) << "no selector: no namespace";
  EXPECT_TRUE(queue.borrow_stops_search && !queue.preempt_stops_search && !queue.strict_fifo);
}

TEST(Kueue, WhatAnApiServerRefusesIsAnError) {
  const auto says = [](const std::string& spec, const char* part) {
    auto issues = cluster_queue(kV2, spec).second;
    EXPECT_NE(issues.find(part), std::string::npos) << part << " in:\n" << issues;
  };
  const auto one = [](const std::string& quota) {
    return "  cohortName: all\n  resourceGroups:\n  - coveredResources: [cpu]\n    flavors: "
           "[{name: f, resources: [{name: cpu, " +
           quota + "}]}]\n";
  };
  says(one("nominalQuota: -1"), "nominalQuota: found number -1, want at least 0");
  says(one("nominalQuota: 1, lendingLimit: 2"), "lendingLimit: found number 2, want at most");
  says(one("nominalQuota: 1, borrowingLimit: -2"), "borrowingLimit");
  says(one("nominalquota: 1"), "nominalQuota");
  says(kGroups, "want none, or a cohortName");
  says(
      "  resourceGroups:\n  - coveredResources: [cpu, memory]\n    flavors: [{name: f, resources: "
      "[{name: cpu, nominalQuota: 1}]}]\n",
      "flavor \"f\" with other resources");
  says(
      "  resourceGroups:\n"
      "  - {coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: "
      "1}]}]}\n"
      "  - {coveredResources: [cpu], flavors: [{name: g, resources: [{name: cpu, nominalQuota: "
      "1}]}]}\n",
      "resource \"cpu\" twice");
  says("  resourceGroups: [{coveredResources: [], flavors: []}]\n", "no coveredResources");
  says("  preemption: {borrowWithinCohort: {policy: LowerPriority}}\n", "reclaimWithinCohort");
  says("  flavorFungibility: {preference: PreemptionOverBorrowing}\n", "TryNextFlavor");
  says("  queueingStrategy: LIFO\n", "one of BestEffortFIFO, StrictFIFO");
  says("  fairSharing: {weight: -1}\n", "at least 0");
  says("  cohort: all\n", "cohort");
}

TEST(Kueue, Cohorts) {
  auto [spec, issues] = cohort("  parentName: company\n" + std::string(kGroups));
  EXPECT_EQ(issues, "");
  EXPECT_EQ(spec.parent, "company");
  EXPECT_EQ(spec.groups.size(), 1u);
  EXPECT_NE(cohort("  parentName: all\n").second.find("its own parent"), std::string::npos);
  EXPECT_NE(cohort(kGroups).second.find("parentName"), std::string::npos) << "limits of a root";
}

TEST(Kueue, FlavorsAndLocalQueues) {
  auto [flavor, issues] = read_as<model::FlavorSpec>(R"(metadata: {name: spot}
spec:
  nodeLabels: {pool: spot}
  nodeTaints: [{key: spot, value: "true", effect: NoSchedule}]
  tolerations: [{key: spot, operator: Exists}]
  topologyName: dc
)",
                                                     decode_flavor);
  EXPECT_EQ(issues, "");
  EXPECT_EQ(flavor.node_labels.at("pool"), "spot");
  EXPECT_EQ(flavor.node_taints.size() + flavor.tolerations.size(), 2u);
  auto [local, issues2] = read_as<model::LocalQueueSpec>(
      "metadata: {name: q, namespace: ml}\nspec: {clusterQueue: team-a, stopPolicy: Hold}\n",
      decode_local_queue);
  EXPECT_EQ(issues2, "");
  EXPECT_EQ(local,
            (model::LocalQueueSpec{
                .ns = "ml", .name = "q", .queue = "team-a", .stop = model::StopPolicy::kHold}));
  EXPECT_NE(read_as<model::LocalQueueSpec>("metadata: {name: q}\nspec: {}\n", decode_local_queue)
                .second.find("clusterQueue"),
            std::string::npos);
}

std::string told(const std::string& yaml, auto&& decode, auto&& into) {
  return read_as<std::remove_reference_t<decltype(into)>>(yaml, decode).second;
}

TEST(Kueue, Topologies) {
  auto [spec, issues] = read_as<model::TopologySpec>(
      "metadata: {name: dc}\nspec: {levels: [{nodeLabel: x.io/block}, {nodeLabel: "
      "kubernetes.io/hostname}]}\n",
      decode_topology);
  EXPECT_EQ(issues, "");
  EXPECT_EQ(spec, (model::TopologySpec{"dc", {"x.io/block", "kubernetes.io/hostname"}}));
  const auto says = [](const std::string& levels, const char* part) {
    const std::string wrong = told("metadata: {name: dc}\nspec: {levels: [" + levels + "]}\n",
                                   decode_topology, model::TopologySpec());
    EXPECT_NE(wrong.find(part), std::string::npos) << part << " in:\n" << wrong;
  };
  says("", "spec.levels: found 0 levels, want 1 to 16");
  says("{nodeLabel: a}, {nodeLabel: a}", "spec.levels[1]: found nodeLabel \"a\" twice");
  says("{nodeLabel: kubernetes.io/hostname}, {nodeLabel: a}", "want it as the last level only");
  says("{nodeLabel: 'a b'}", "want a node label key");
  says("{label: a}", "nodeLabel: found nothing");
  std::string many = "{nodeLabel: l0}";
  for (int i = 1; i < 17; ++i) many += ", {nodeLabel: l" + std::to_string(i) + "}";
  says(many, "found 17 levels");
}

TEST(Kueue, ChecksClassesAndNamespaces) {
  auto [check, issues] = read_as<model::CheckSpec>(
      "metadata: {name: prov}\nspec: {controllerName: x.io/c, parameters: {kind: K}}\n"
      "status: {conditions: [{type: Active, status: 'False'}]}\n",
      decode_check);
  EXPECT_EQ(issues, "");
  EXPECT_EQ(check, (model::CheckSpec{"prov", "x.io/c", false}));
  EXPECT_NE(told("metadata: {name: a}\nspec: {}\n", decode_check, model::CheckSpec())
                .find("spec.controllerName: found nothing"),
            std::string::npos);

  const auto decode_class = [](const auto& v, auto& out, auto& d) { decode(v, out, d); };
  auto [gold, issues2] = read_as<WorkloadClassObject>(
      "metadata: {name: gold}\nvalue: 1000\ndescription: x\n", decode_class);
  EXPECT_EQ(issues2, "");
  EXPECT_EQ(gold.value, 1000);
  const std::string seed =
      told("metadata: {name: gold}\nspec: {value: 1000}\n", decode_class, WorkloadClassObject());
  EXPECT_NE(seed.find("value: found nothing, want this field, which is required"),
            std::string::npos)
      << seed;

  auto [ns, issues3] = read_as<NamespaceObject>(
      "metadata: {name: ml, labels: {team: a}}\nspec: {finalizers: [kubernetes]}\n", decode_class);
  EXPECT_EQ(issues3, "");
  EXPECT_EQ(ns.meta.labels.at("team"), "a");
}

}  // namespace
}  // namespace berth::kinds
