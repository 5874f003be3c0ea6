// The cycle, every hard constraint and every reason, on clusters small enough to check by hand.
#include "judge/judge.h"

#include <gtest/gtest.h>

#include "judge/specs.h"

namespace berth::judging {
namespace {

using model::Constraint;
using model::NodeSpec;
using model::PodSpec;
using model::Reason;
using model::TaintEffect;
using model::Verdict;
using Kind = model::GpuDemandSpec::Kind;

// The pod is alone with the nodes; it is left waiting for the reason.
void expect_reason(const std::vector<NodeSpec>& nodes, const std::vector<PodSpec>& pods,
                   Verdict verdict, Reason reason) {
  JudgeCluster cluster{.nodes = nodes, .pods = pods, .gangs = {}, .budgets = {}};
  model::Decision decision = decide(cluster);
  const model::Outcome& outcome = decision.outcomes.back();
  EXPECT_EQ(static_cast<int>(outcome.verdict), static_cast<int>(verdict)) << outcome.workload;
  EXPECT_EQ(static_cast<int>(outcome.reason), static_cast<int>(reason)) << outcome.workload;
}

std::string places(const std::vector<NodeSpec>& nodes, const std::vector<PodSpec>& pods) {
  return text_of(decide({.nodes = nodes, .pods = pods, .gangs = {}, .budgets = {}}));
}

// ---- the cycle ----

TEST(Cycle, PriorityThenAgeThenName) {
  NodeSpec node = cpu_node("n");
  node.allocatable["pods"] = 3;
  PodSpec old = a_pod("z-old"), young = a_pod("a-young"), high = with_priority(a_pod("high"), 5);
  PodSpec same = a_pod("b-young");
  old.created_ns = 1;
  young.created_ns = same.created_ns = 2;
  high.created_ns = 9;
  EXPECT_EQ(places({node}, {same, young, old, high}), "d/high@n d/z-old@n d/a-young@n");
}

TEST(Cycle, LeftOutWithoutASearch) {
  PodSpec gated = a_pod("p"), volume = a_pod("p");
  gated.gated = true;
  volume.volume_missing = "data";
  expect_reason({cpu_node("n")}, {gated}, Verdict::kWait, Reason::kGated);
  expect_reason({cpu_node("n")}, {volume}, Verdict::kWait, Reason::kVolumeMissing);
  expect_reason({}, {a_pod("p")}, Verdict::kWait, Reason::kNoNodes);
}

TEST(Cycle, GangIncompleteAndHeldByOneMember) {
  JudgeCluster cluster{.nodes = {cpu_node("n")},
                       .pods = {member(a_pod("a"), "g"), member(a_pod("b"), "g")},
                       .gangs = {a_gang("g", 3)},
                       .budgets = {}};
  EXPECT_EQ(decide(cluster).outcomes[0].reason, Reason::kGangIncomplete);
  cluster.gangs[0].min_member = 2;
  EXPECT_EQ(text_of(decide(cluster)), "d/a@n d/b@n");
  cluster.pods[1].volume_missing = "data";
  EXPECT_EQ(decide(cluster).outcomes[0].reason, Reason::kVolumeMissing);
  cluster.pods[1].volume_missing = "";
  cluster.pods[1].gated = true;
  EXPECT_EQ(decide(cluster).outcomes[0].reason, Reason::kGated);
  cluster.gangs[0].min_member = 1;
  EXPECT_EQ(decide(cluster).outcomes[0].verdict, Verdict::kPartial);
  EXPECT_EQ(decide(cluster).outcomes[0].reason, Reason::kGated);
}

// ---- hard constraints that look at the node ----

TEST(Constraints, ReadyAndCordon) {
  NodeSpec down = cpu_node("n"), cordoned = cpu_node("n");
  down.ready = false;
  cordoned.unschedulable = true;
  expect_reason({down}, {a_pod("p")}, Verdict::kWait, Reason::kNodeNotReady);
  expect_reason({cordoned}, {a_pod("p")}, Verdict::kWait, Reason::kNodeUnschedulable);
  // The taints that come with it are no reason of their own.
  NodeSpec lost = down, drained = cordoned;
  lost.taints = {{"node.kubernetes.io/not-ready", "", TaintEffect::kNoSchedule},
                 {"node.kubernetes.io/unreachable", "", TaintEffect::kNoExecute}};
  drained.name = "o";
  drained.taints = {{"node.kubernetes.io/unschedulable", "", TaintEffect::kNoSchedule}};
  expect_reason({lost, drained}, {a_pod("p")}, Verdict::kWait, Reason::kNodeNotReady);
  expect_reason({drained}, {a_pod("p")}, Verdict::kWait, Reason::kNodeUnschedulable);
  PodSpec tolerant = a_pod("p");
  tolerant.tolerations = {{"node.kubernetes.io/unschedulable", model::Toleration::Op::kExists, "",
                           TaintEffect::kNoSchedule}};
  EXPECT_EQ(places({cordoned}, {tolerant}), "d/p@n");
}

TEST(Constraints, Taints) {
  NodeSpec node = cpu_node("n");
  for (TaintEffect effect : {TaintEffect::kNoSchedule, TaintEffect::kNoExecute}) {
    node.taints = {{"team", "red", effect}};
    expect_reason({node}, {a_pod("p")}, Verdict::kNever, Reason::kTaintNotTolerated);
    PodSpec blue = a_pod("p"), red = a_pod("p"), all = a_pod("p");
    blue.tolerations = {{"team", model::Toleration::Op::kEqual, "blue", {}}};
    red.tolerations = {{"team", model::Toleration::Op::kEqual, "red", effect}};
    all.tolerations = {{"", model::Toleration::Op::kExists, "", {}}};
    expect_reason({node}, {blue}, Verdict::kNever, Reason::kTaintNotTolerated);
    EXPECT_EQ(places({node}, {red}), "d/p@n");
    EXPECT_EQ(places({node}, {all}), "d/p@n");
  }
  node.taints = {{"team", "red", TaintEffect::kPreferNoSchedule}};
  EXPECT_EQ(places({node}, {a_pod("p")}), "d/p@n");
}

TEST(Constraints, SelectorAffinityVolumes) {
  NodeSpec node = in_zone(cpu_node("n"), "z1");
  PodSpec selector = a_pod("p"), affinity = a_pod("p"), empty = a_pod("p"), volume = a_pod("p");
  selector.node_selector[model::kZoneLabel] = "z2";
  expect_reason({node}, {selector}, Verdict::kNever, Reason::kNodeSelectorMismatch);
  affinity.required_nodes = {label_term(model::kZoneLabel, "z2")};
  expect_reason({node}, {affinity}, Verdict::kNever, Reason::kNodeAffinityMismatch);
  affinity.required_nodes.push_back(label_term(model::kZoneLabel, "z1"));
  EXPECT_EQ(places({node}, {affinity}), "d/p@n");
  empty.required_nodes.emplace_back();
  expect_reason({node}, {empty}, Verdict::kNever, Reason::kNodeAffinityMismatch);
  empty.required_nodes[0].fields = {{"metadata.name", text::Operator::kIn, {"n"}}};
  EXPECT_EQ(places({node}, {empty}), "d/p@n");
  volume.volumes = {{"data", {label_term(model::kZoneLabel, "z2")}}};
  expect_reason({node}, {volume}, Verdict::kNever, Reason::kVolumeUnreachable);
  volume.volumes[0].node_terms.clear();
  EXPECT_EQ(places({node}, {volume}), "d/p@n");
}

TEST(Constraints, GpuModelAndMemory) {
  NodeSpec node = gpu_node("n", 1);
  PodSpec model = whole("p", 1), memory = whole("p", 1), part = whole("p", 1);
  model.gpu_models = {"A100"};
  expect_reason({node}, {model}, Verdict::kNever, Reason::kGpuModelMismatch);
  model.gpu_models.push_back("H100");
  EXPECT_EQ(places({node}, {model}), "d/p@n[0]");
  memory.gpu_min_memory_mib = 80001;
  expect_reason({node}, {memory}, Verdict::kNever, Reason::kGpuMemoryTooSmall);
  part.gpu = {.kind = Kind::kMemory, .count = 1, .milli = 0, .memory_mib = 80001, .mig = ""};
  JudgeCluster cluster{.nodes = {node}, .pods = {}, .gangs = {}, .budgets = {}};
  EXPECT_EQ(rejections(cluster, part, "n"),
            (std::vector{Constraint::kGpuMemory, Constraint::kGpus}));
  part.gpu.memory_mib = 20001;  // 251 milli
  EXPECT_EQ(
      decide({.nodes = {node}, .pods = {part}, .gangs = {}, .budgets = {}}).placements[0].gpu_milli,
      251);
  PodSpec no_gpus = a_pod("p");
  no_gpus.gpu_models = {"A100"};
  no_gpus.gpu_min_memory_mib = 1;
  EXPECT_EQ(places({cpu_node("n")}, {no_gpus}), "d/p@n");
}

// ---- hard constraints between pods ----

TEST(Constraints, PodAffinity) {
  std::vector<NodeSpec> nodes{in_zone(cpu_node("a"), "z1"), in_zone(cpu_node("b"), "z2"),
                              cpu_node("c")};
  PodSpec pod = a_pod("p");
  pod.affinity = {{model::kZoneLabel, pods_of("web"), 0}};
  expect_reason(nodes, {pod}, Verdict::kWait, Reason::kPodAffinityUnmet);
  EXPECT_EQ(places(nodes, {pod, running(a_pod("web"), "b")}), "d/p@b");
  // A match on a node without the key is no match.
  expect_reason(nodes, {running(a_pod("web"), "c"), pod}, Verdict::kWait,
                Reason::kPodAffinityUnmet);
  // The first of its kind goes where the key is.
  pod.affinity[0].pods = pods_of("p");
  EXPECT_EQ(places({nodes[2], nodes[1]}, {pod}), "d/p@b");
  expect_reason({nodes[2]}, {pod}, Verdict::kWait, Reason::kPodAffinityUnmet);
}

TEST(Constraints, PodAntiAffinityBothWays) {
  std::vector<NodeSpec> nodes{in_zone(cpu_node("a"), "z1"), in_zone(cpu_node("b"), "z2")};
  PodSpec pod = a_pod("p"), web = a_pod("web");
  pod.anti_affinity = {{model::kZoneLabel, pods_of("web"), 0}};
  EXPECT_EQ(places(nodes, {pod, running(web, "a")}), "d/p@b");
  EXPECT_EQ(places(nodes, {running(pod, "a"), web}), "d/web@b");
  expect_reason({nodes[0]}, {running(pod, "a"), web}, Verdict::kWait,
                Reason::kPodAntiAffinityViolated);
  EXPECT_EQ(places({nodes[0], cpu_node("c")}, {running(pod, "a"), web}), "d/web@c");
}

TEST(Constraints, TopologySpread) {
  std::vector<NodeSpec> nodes{in_zone(cpu_node("a"), "z1"), in_zone(cpu_node("b"), "z2")};
  PodSpec pod = a_pod("p");
  pod.spread.push_back({.max_skew = 1,
                        .topology_key = model::kZoneLabel,
                        .hard = true,
                        .pods = pods_of("p"),
                        .min_domains = 1,
                        .honor_affinity = true,
                        .honor_taints = false});
  PodSpec first = running(pod, "a");
  first.name = "first";
  EXPECT_EQ(places(nodes, {first, pod}), "d/p@b");
  nodes[1].allocatable["pods"] = 0;  // a domain all the same
  expect_reason(nodes, {first, pod}, Verdict::kWait, Reason::kTopologySpreadViolated);
  nodes[1].taints = {{"team", "red", TaintEffect::kNoSchedule}};
  pod.spread[0].honor_taints = true;  // now z2 is no domain of the pod
  EXPECT_EQ(places(nodes, {first, pod}), "d/p@a");
  pod.spread[0].min_domains = 2;  // too few domains: the least is 0
  expect_reason(nodes, {first, pod}, Verdict::kWait, Reason::kTopologySpreadViolated);
  first.terminating = true;
  EXPECT_EQ(places(nodes, {first, pod}), "d/p@a");
}

TEST(Constraints, SpreadCountsEligibleNodesOnly) {
  std::vector<NodeSpec> nodes{in_zone(cpu_node("a"), "z1"), in_zone(cpu_node("b"), "z2")};
  nodes[0].labels["disk"] = "ssd";
  PodSpec pod = a_pod("p");
  pod.node_selector["disk"] = "ssd";
  pod.spread.push_back({.max_skew = 1,
                        .topology_key = model::kZoneLabel,
                        .hard = true,
                        .pods = pods_of("p"),
                        .min_domains = 1,
                        .honor_affinity = true,
                        .honor_taints = false});
  PodSpec first = running(pod, "a");
  first.name = "first";
  EXPECT_EQ(places(nodes, {first, pod}), "d/p@a");
  pod.spread[0].honor_affinity = false;
  JudgeCluster cluster{.nodes = nodes, .pods = {first}, .gangs = {}, .budgets = {}};
  EXPECT_EQ(rejections(cluster, pod, "a"), std::vector{Constraint::kTopologySpread});
}

TEST(Constraints, HostPorts) {
  PodSpec pod = a_pod("p"), other = a_pod("q");
  pod.host_ports = {{"TCP", "10.0.0.1", 80}};
  other.host_ports = {{"TCP", "0.0.0.0", 80}};
  expect_reason({cpu_node("n")}, {running(other, "n"), pod}, Verdict::kWait,
                Reason::kHostPortTaken);
  other.host_ports = {{"TCP", "10.0.0.2", 80}, {"UDP", "0.0.0.0", 80}};
  EXPECT_EQ(places({cpu_node("n")}, {running(other, "n"), pod}), "d/p@n");
}

// ---- amounts ----

TEST(Constraints, Amounts) {
  NodeSpec node = cpu_node("n");
  node.allocatable["rdma/hca"] = 2;
  struct Case {
    const char* resource;
    std::int64_t half;
    Reason reason;
  };
  for (const Case& each :
       std::vector<Case>{{"cpu", 5000, Reason::kInsufficientCpu},
                         {"memory", 600, Reason::kInsufficientMemory},
                         {"ephemeral-storage", 600, Reason::kInsufficientEphemeralStorage},
                         {"rdma/hca", 2, Reason::kInsufficientResource}}) {
    PodSpec pod = asking("p", each.resource, each.half);
    PodSpec rival = running(asking("q", each.resource, each.half), "n");
    EXPECT_EQ(places({node}, {pod}), "d/p@n");
    expect_reason({node}, {rival, pod}, Verdict::kWait, each.reason);
    expect_reason({node}, {asking("p", each.resource, 1 << 20)}, Verdict::kNever,
                  Reason::kNeverFits);
    EXPECT_EQ(places({node}, {rival, rival, asking("p", each.resource, 0)}), "d/p@n");
  }
  expect_reason({node}, {asking("p", "unheard/of", 1)}, Verdict::kNever, Reason::kNeverFits);
  node.allocatable["pods"] = 1;
  expect_reason({node}, {running(a_pod("q"), "n"), a_pod("p")}, Verdict::kWait,
                Reason::kTooManyPods);
}

TEST(Constraints, GpusHealthAndNuma) {
  NodeSpec node = gpu_node("n", 4);
  expect_reason({node}, {whole("p", 5)}, Verdict::kNever, Reason::kNeverFits);
  expect_reason({node}, {running(whole("q", 4), "n"), whole("p", 2)}, Verdict::kWait,
                Reason::kInsufficientGpus);
  node.gpus[1].health = model::Health::kUnhealthy;
  node.gpus[2].reserved = true;
  JudgeCluster cluster{.nodes = {node}, .pods = {}, .gangs = {}, .budgets = {}};
  EXPECT_EQ(rejections(cluster, whole("p", 3), "n"), std::vector{Constraint::kGpuHealth});
  EXPECT_EQ(rejections(cluster, whole("p", 5), "n"), std::vector{Constraint::kGpus});
  expect_reason({node}, {running(whole("q", 1), "n", {0}), whole("p", 2)}, Verdict::kWait,
                Reason::kGpuUnhealthy);
  EXPECT_EQ(places({node}, {whole("p", 2)}), "d/p@n[0,3]");
  NodeSpec aligned = gpu_node("n", 4);
  for (model::GpuSpec& gpu : aligned.gpus) gpu.numa = gpu.index / 2;
  aligned.numa_policy = model::NumaPolicy::kSingleNumaNode;
  PodSpec one = running(whole("q", 1), "n", {0}), two = running(whole("r", 1), "n", {2});
  expect_reason({aligned}, {one, two, whole("p", 2)}, Verdict::kWait, Reason::kNumaMisaligned);
  EXPECT_EQ(places({aligned}, {one, whole("p", 2)}), "d/p@n[2,3]");
}

// ---- reasons of the whole request ----

TEST(Reasons, Fragmented) {
  PodSpec one = running(whole("q", 1), "a", {0}), two = running(whole("r", 1), "b", {0});
  expect_reason({gpu_node("a", 2), gpu_node("b", 2)}, {one, two, whole("p", 2)}, Verdict::kWait,
                Reason::kFragmented);
  expect_reason({gpu_node("a", 2), gpu_node("b", 1)}, {one, two, whole("p", 2)}, Verdict::kWait,
                Reason::kInsufficientGpus);
}

TEST(Reasons, CertificateCountsAllBlockers) {
  NodeSpec down = gpu_node("a", 1), full = gpu_node("b", 1), other = gpu_node("c", 1);
  down.ready = false;
  down.taints = {{"t", "", TaintEffect::kNoSchedule}};
  other.gpus[0].model = "A100";
  PodSpec pod = whole("p", 1);
  pod.gpu_models = {"H100"};
  model::Decision decision = decide({.nodes = {down, full, other},
                                     .pods = {running(fraction("q", 500), "b", {0}), pod},
                                     .gangs = {},
                                     .budgets = {}});
  const model::Certificate& certificate = decision.outcomes[0].certificate;
  auto at = [](Constraint constraint) { return static_cast<std::size_t>(constraint); };
  EXPECT_EQ(certificate.nodes, 3);
  EXPECT_EQ(certificate.fitting_nodes, 0);
  EXPECT_EQ(certificate.removed[at(Constraint::kNodeReady)], 1);
  EXPECT_EQ(certificate.removed[at(Constraint::kTaints)], 1);
  EXPECT_EQ(certificate.only[at(Constraint::kTaints)], 0);
  EXPECT_EQ(certificate.only[at(Constraint::kGpuModel)], 1);
  EXPECT_EQ(certificate.only[at(Constraint::kGpus)], 1);
  EXPECT_EQ(certificate.binding, Constraint::kGpuModel);  // the first of equals
  EXPECT_EQ(certificate.free_gpu_milli, 500);
  EXPECT_EQ(certificate.largest_free_milli, 500);
  EXPECT_EQ(decision.outcomes[0].reason, Reason::kGpuModelMismatch);
  EXPECT_EQ(decision.outcomes[0].verdict, Verdict::kWait);
}

// ---- which node ----

TEST(Levels, PreferenceBeforeAllElse) {
  std::vector<NodeSpec> nodes{in_zone(gpu_node("a", 1), "z1"), in_zone(gpu_node("b", 8), "z2")};
  PodSpec pod = whole("p", 1);
  EXPECT_EQ(places(nodes, {pod}), "d/p@a[0]");
  pod.preferred_nodes = {{.weight = 1, .term = label_term(model::kZoneLabel, "z2")}};
  EXPECT_EQ(places(nodes, {pod}), "d/p@b[0]");
  nodes[1].taints = {{"spot", "", TaintEffect::kPreferNoSchedule}};
  EXPECT_EQ(places(nodes, {pod}), "d/p@a[0]");
  pod.preferred_nodes[0].weight = 100;
  EXPECT_EQ(places(nodes, {pod}), "d/p@a[0]");  // 0 each: packing decides
  pod.preferred_affinity = {{model::kZoneLabel, pods_of("web"), 10}};
  EXPECT_EQ(places(nodes, {pod, running(a_pod("web"), "b")}), "d/p@b[0]");
  pod.preferred_anti_affinity = {{model::kZoneLabel, pods_of("web"), 11}};
  EXPECT_EQ(places(nodes, {pod, running(a_pod("web"), "b")}), "d/p@a[0]");
}

TEST(Levels, SoftSpreadReplicasLocalityRank) {
  std::vector<NodeSpec> nodes{cpu_node("a"), in_zone(cpu_node("b"), "z1"),
                              in_zone(cpu_node("c"), "z2")};
  PodSpec pod = a_pod("p"), peer = a_pod("p");
  peer.name = "peer";
  EXPECT_EQ(places(nodes, {pod, running(peer, "a")}), "d/p@a");
  pod.spread.push_back({.max_skew = 1,
                        .topology_key = model::kZoneLabel,
                        .hard = false,
                        .pods = pods_of("p"),
                        .min_domains = 1,
                        .honor_affinity = true,
                        .honor_taints = false});
  EXPECT_EQ(places(nodes, {pod, running(peer, "b")}), "d/p@c");
  pod.spread.clear();
  pod.owner = peer.owner = "ReplicaSet/p";
  EXPECT_EQ(places(nodes, {pod, running(peer, "a")}), "d/p@a");
  pod.service = true;
  EXPECT_EQ(places(nodes, {pod, running(peer, "a")}), "d/p@b");
  JudgePolicy policy;
  policy.locality = {{model::kZoneLabel, "z2", 5}};
  JudgeCluster cluster{.nodes = nodes, .pods = {a_pod("x")}, .gangs = {}, .budgets = {}};
  EXPECT_EQ(text_of(judge(cluster, policy, 0, false)), "d/x@c");
}

}  // namespace
}  // namespace berth::judging
