#include "kinds/group.h"

#include "kinds/read_for_test.h"

namespace berth::kinds {
namespace {

const char* const kVolcano = R"(---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g, creationTimestamp: 1970-01-01T00:00:02Z}
spec:
  minMember: 3
  minTaskMember: {worker: 2, master: 1}
  minResources: {nvidia.com/gpu: 8}
  queue: research
  priorityClassName: gold
status: {phase: Pending}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: gold}, value: 9}
)";

std::string member(const char* name, const char* annotations, const char* labels = "",
                   const char* spec = "") {
  return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + std::string(name) +
         ", annotations: {" + annotations + "}, labels: {" + labels + "}}\nspec: {" + spec +
         " containers: [{name: c}]}\n";
}

TEST(Group, Volcano) {
  const Inputs in = read_clean(
      kVolcano + member("a", "scheduling.k8s.io/group-name: g, volcano.sh/task-spec: worker") +
      member("b", "scheduling.volcano.sh/group-name: g, volcano.sh/task-spec: other"));
  ASSERT_EQ(in.gangs.size(), 1u);
  const model::GangSpec& g = in.gangs[0];
  EXPECT_EQ(g.min_member, 3);
  ASSERT_EQ(g.subgroups.size(), 2u);
  EXPECT_EQ(g.subgroups[0].name, "master");
  EXPECT_EQ(g.subgroups[1].min_member, 2);
  EXPECT_EQ(g.priority, 9);
  EXPECT_EQ(g.queue, "research");
  EXPECT_EQ(g.created_ns, 2'000'000'000);
  ASSERT_EQ(in.pods.size(), 2u);
  EXPECT_EQ(in.pods[0].gang, "g");
  EXPECT_EQ(in.pods[0].subgroup, "worker");
  EXPECT_EQ(in.pods[1].gang, "g");
  EXPECT_EQ(in.pods[1].subgroup, "");  // the group does not list it
}

TEST(Group, OtherKinds) {
  const Inputs in =
      read_clean(R"(
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: co}
spec: {minMember: 4, scheduleTimeoutSeconds: 10}
---
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: kai}
spec:
  minMember: 2
  queue: q
  topologyConstraint: {topology: t, requiredTopologyLevel: x.io/rack}
  subGroups: [{name: b, minMember: 1, topologyConstraint: {preferredTopologyLevel: x.io/host}}]
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: up}
spec:
  schedulingPolicy: {gang: {minCount: 5}}
  schedulingConstraints: {topology: [{key: x.io/block}]}
  priority: 3
)" + member("p1", "", "scheduling.x-k8s.io/pod-group: co") +
                 member("p2", "pod-group-name: kai", "kai.scheduler/subgroup-name: b") +
                 member("p3", "", "", "schedulingGroup: {podGroupName: up},"));
  ASSERT_EQ(in.gangs.size(), 3u);
  EXPECT_EQ(in.gangs[0].min_member, 4);
  EXPECT_EQ(in.gangs[1].required_topology, "x.io/rack");
  EXPECT_EQ(in.gangs[1].subgroups.at(0).preferred_topology, "x.io/host");
  EXPECT_EQ(in.gangs[2].min_member, 5);
  EXPECT_EQ(in.gangs[2].required_topology, "x.io/block");
  EXPECT_EQ(in.gangs[2].priority, 3);
  EXPECT_EQ(in.pods.at(0).gang, "co");
  EXPECT_EQ(in.pods.at(1).subgroup, "b");
  EXPECT_EQ(in.pods.at(2).gang, "up");
}

TEST(Group, NotFound) {
  const Inputs in = read(member("a", "scheduling.k8s.io/group-name: none") +
                         member("b",
                                "scheduling.k8s.io/group-name: made, "
                                "scheduling.volcano.sh/group-min-member: '2'") +
                         member("c", "scheduling.k8s.io/group-name: none", "", "nodeName: n0,") +
                         "---\n{apiVersion: v1, kind: Node, metadata: {name: n0}, status: "
                         "{allocatable: {pods: 1}}}\n");
  EXPECT_NE(all(in.invalid).find("Pod default/a: metadata: found group \"none\""),
            std::string::npos)
      << all(in.invalid);
  ASSERT_EQ(in.pods.size(), 2u);  // b, and c, which runs
  EXPECT_EQ(in.pods[0].gang, "made");
  EXPECT_EQ(in.pods[1].gang, "");
  ASSERT_EQ(in.gangs.size(), 1u);
  EXPECT_EQ(in.gangs[0].min_member, 2);
  EXPECT_EQ(in.warnings.size(), 1u);
}

TEST(Group, Errors) {
  const auto errors = [](const std::string& text) { return all(read(text).invalid); };
  EXPECT_NE(errors(member("a", "scheduling.k8s.io/group-name: x, pod-group-name: w"))
                .find("the same group"),
            std::string::npos);
  EXPECT_NE(errors(member("a", "pod-group-name: Not_A_Name")).find("name of a PodGroup"),
            std::string::npos);
  EXPECT_NE(errors("{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: "
                   "{name: g}, spec: {minMember: -1}}")
                .find("spec.minMember"),
            std::string::npos);
  EXPECT_NE(errors("{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: "
                   "{name: g}, spec: {priorityClassName: none}}")
                .find("spec.priorityClassName: found \"none\""),
            std::string::npos);
}

TEST(Group, NetworkTopologyNeedsHyperNodes) {
  const Inputs in = read(
      "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: "
      "{name: g}, spec: {networkTopology: {mode: hard, highestTierAllowed: 2}}}");
  EXPECT_EQ(in.gangs.size(), 1u);
  EXPECT_NE(all(in.warnings).find("HyperNodes"), std::string::npos);
}

TEST(Topology, AnnotationsAndShortNames) {
  const auto node = [](const char* labels) {
    return "---\n{apiVersion: v1, kind: Node, metadata: {name: n0, labels: {" +
           std::string(labels) + "}}, status: {allocatable: {pods: 1}}}\n";
  };
  const auto group = [](const char* annotations) {
    return "---\n{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g, "
           "annotations: {" +
           std::string(annotations) + "}}, spec: {minMember: 1}}\n";
  };
  EXPECT_EQ(read_clean(group("berth.dev/topology-required: zone")).gangs.at(0).required_topology,
            "topology.kubernetes.io/zone");
  EXPECT_EQ(read_clean(group("kai.scheduler/topology-preferred-placement: nvlink-domain"))
                .gangs.at(0)
                .preferred_topology,
            "nvidia.com/gpu.clique");
  EXPECT_EQ(read_clean(group("berth.dev/topology-required: rack")).gangs.at(0).required_topology,
            "topology.kubernetes.io/rack");
  EXPECT_EQ(read_clean(group("berth.dev/topology-required: rack") +
                       node("cloud.provider.com/topology-rack: r1"))
                .gangs.at(0)
                .required_topology,
            "cloud.provider.com/topology-rack");
  EXPECT_EQ(read_clean(group("berth.dev/topology-required: rack") + node("rack: r1"))
                .gangs.at(0)
                .required_topology,
            "rack");  // a label of that very name
  EXPECT_EQ(all(read(group("berth.dev/topology-required: a, "
                           "kueue.x-k8s.io/podset-required-topology: b"))
                    .invalid)
                .empty(),
            false);
  // From members: to the group, the first by name; others that differ are warned of.
  const Inputs in =
      read(group("") +
           member("a", "pod-group-name: g, kueue.x-k8s.io/podset-required-topology: x.io/rack") +
           member("b", "pod-group-name: g, kueue.x-k8s.io/podset-required-topology: x.io/block"));
  EXPECT_EQ(in.gangs.at(0).required_topology, "x.io/rack");
  EXPECT_EQ(in.warnings.size(), 1u);
}

}  // namespace
}  // namespace berth::kinds
