#include "people/view/reasons.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace berth::people {

using model::Reason;

namespace {

// In the order of the enumeration.
constexpr ReasonFacts kRegistry[] = {
    {Reason::kNone, Stage::kBind, Standing::kWaiting, "nothing is in the way", ""},
    {Reason::kNodeNotReady, Stage::kHealth, Standing::kFault,
     "the nodes that could take it are not Ready", "bring the nodes back, or add nodes"},
    {Reason::kNodeNameNotFound, Stage::kConstraints, Standing::kMisconfigured,
     "the pod names a node that does not exist", "correct or remove spec.nodeName"},
    {Reason::kNodeUnschedulable, Stage::kConstraints, Standing::kWaiting,
     "the nodes that could take it are cordoned", "kubectl uncordon one of them"},
    {Reason::kTaintNotTolerated, Stage::kConstraints, Standing::kWaiting,
     "the nodes that could take it have a taint that it does not tolerate",
     "add the toleration, or remove the taint"},
    {Reason::kNodeSelectorMismatch, Stage::kConstraints, Standing::kWaiting,
     "no node that could take it has every label of spec.nodeSelector",
     "label a node, or correct the selector"},
    {Reason::kNodeAffinityMismatch, Stage::kConstraints, Standing::kWaiting,
     "no required node affinity term matches a node that could take it",
     "label a node, or loosen the affinity"},
    {Reason::kVolumeUnreachable, Stage::kConstraints, Standing::kWaiting,
     "a volume can only be reached from nodes that cannot take it",
     "free one of those nodes, or move the volume"},
    {Reason::kGpuModelMismatch, Stage::kConstraints, Standing::kWaiting,
     "the GPUs that are there are not of a model that it accepts",
     "accept another model, or add nodes with that one"},
    {Reason::kGpuMemoryTooSmall, Stage::kConstraints, Standing::kWaiting,
     "the GPUs have less memory than it asks for",
     "ask for less memory, or add nodes with larger GPUs"},
    {Reason::kPodAffinityUnmet, Stage::kConstraints, Standing::kWaiting,
     "no pod that it must be near runs where it could run",
     "start that pod first, or loosen the affinity"},
    {Reason::kPodAntiAffinityViolated, Stage::kConstraints, Standing::kWaiting,
     "a pod that it must keep apart from runs in every domain that could take it",
     "add nodes or domains, or loosen the anti-affinity"},
    {Reason::kTopologySpreadViolated, Stage::kConstraints, Standing::kWaiting,
     "every domain that could take it would exceed maxSkew",
     "make room in the domains with the fewest pods, or raise maxSkew"},
    {Reason::kHostPortTaken, Stage::kConstraints, Standing::kWaiting,
     "a host port that it needs is taken on every node that could take it",
     "use another port, or a Service instead"},
    {Reason::kInsufficientCpu, Stage::kCapacity, Standing::kWaiting,
     "too little cpu is free on the nodes that could take it", "ask for less cpu, or free some"},
    {Reason::kInsufficientMemory, Stage::kCapacity, Standing::kWaiting,
     "too little memory is free on the nodes that could take it",
     "ask for less memory, or free some"},
    {Reason::kInsufficientEphemeralStorage, Stage::kCapacity, Standing::kWaiting,
     "too little ephemeral storage is free on the nodes that could take it",
     "ask for less, or free some"},
    {Reason::kTooManyPods, Stage::kCapacity, Standing::kWaiting,
     "the nodes that could take it run as many pods as they may",
     "raise maxPods of the kubelet, or free a slot"},
    {Reason::kInsufficientResource, Stage::kCapacity, Standing::kWaiting,
     "too little of an extended resource is free, or no node has it",
     "ask for less, or install what provides the resource"},
    {Reason::kInsufficientGpus, Stage::kCapacity, Standing::kWaiting,
     "fewer GPUs are free than it asks for", "free GPUs, add nodes, or raise its priority"},
    {Reason::kGpuUnhealthy, Stage::kHealth, Standing::kFault,
     "it would fit if unhealthy or reserved GPUs could be used",
     "repair the GPUs, or lift the reservation"},
    {Reason::kNumaMisaligned, Stage::kConstraints, Standing::kWaiting,
     "the kubelet's Topology Manager would refuse it: the free GPUs span NUMA nodes",
     "free GPUs on one NUMA node, or ask for fewer in a container"},
    {Reason::kNoNodes, Stage::kCapacity, Standing::kWaiting, "there is no node at all",
     "add the nodes to the input: kubectl get nodes -o yaml"},
    {Reason::kFragmented, Stage::kCapacity, Standing::kWaiting,
     "enough GPUs are free in total, but too few on any one node",
     "ask for smaller pods, or move a pod away"},
    {Reason::kNeverFits, Stage::kCapacity, Standing::kNever,
     "it would not fit the cluster with no pod on it", "ask for less, or add larger or more nodes"},
    {Reason::kGangIncomplete, Stage::kGang, Standing::kWaiting,
     "fewer members exist than must start together",
     "create the missing members, or lower minMember"},
    {Reason::kGangDoesNotFit, Stage::kGang, Standing::kWaiting,
     "some members fit, but not enough of them at once",
     "free room for the rest, or lower minMember"},
    {Reason::kTopologyDomainTooSmall, Stage::kGang, Standing::kWaiting,
     "it fits the cluster, but no single domain of the required level",
     "free room in one domain, or prefer the level instead of requiring it"},
    {Reason::kVolumeMissing, Stage::kConstraints, Standing::kWaiting,
     "a claim is not in the input, or not bound",
     "add pvc and pv to the input, or create or bind the claim"},
    {Reason::kResourceClaimNotRead, Stage::kConstraints, Standing::kMisconfigured,
     "it asks for devices by a ResourceClaim, which is not read",
     "ask for nvidia.com/gpu instead, or place it by hand"},
    {Reason::kTooManyRules, Stage::kConstraints, Standing::kMisconfigured,
     "it, or its namespace, brings more affinity and spread rules than are looked at",
     "write fewer rules, with selectors that match more pods"},
    {Reason::kGated, Stage::kGate, Standing::kWaiting, "it has scheduling gates",
     "remove the gates, or wait for who set them"},
    {Reason::kQueueRequired, Stage::kGate, Standing::kMisconfigured,
     "its namespace requires a queue, and it waits in none",
     "name a queue of the namespace: the label kueue.x-k8s.io/queue-name"},
    {Reason::kPreempted, Stage::kCapacity, Standing::kWaiting,
     "it was evicted for a workload of higher priority", "nothing: it waits for its turn again"},
    {Reason::kPendingEvaluation, Stage::kQuota, Standing::kWaiting,
     "it is in its queue and was not looked at yet", "nothing: its turn comes; run more cycles"},
    {Reason::kWaitingForQuota, Stage::kQuota, Standing::kWaiting,
     "others use the quota that it needs",
     "wait for them to finish, raise the quota, or its priority where the queue preempts"},
    {Reason::kExceedsMaxQuota, Stage::kQuota, Standing::kNever,
     "it asks for more than its queue could ever get, borrowing included",
     "ask for less, or raise nominalQuota or borrowingLimit"},
    {Reason::kNoMatchingFlavor, Stage::kQuota, Standing::kMisconfigured,
     "no flavor of its queue takes its pods, or no quota covers a resource",
     "add the toleration or selector that the flavor wants, or cover the resource"},
    {Reason::kTopologyPlacementFailed, Stage::kGang, Standing::kWaiting,
     "quota would allow it, but no domain of its topology has room",
     "free room in one domain, or prefer the level instead of requiring it"},
    {Reason::kWaitingForPreemptedWorkloads, Stage::kCapacity, Standing::kWaiting,
     "the workloads that make room for it have not left yet",
     "nothing: it starts when they are gone"},
    {Reason::kPreemptionGated, Stage::kQuota, Standing::kWaiting,
     "it would have to make room, and a preemption gate is closed", "open the gate"},
    {Reason::kWaitingForPodsReady, Stage::kGate, Standing::kWaiting,
     "admission is blocked until the pods of all admitted workloads are ready",
     "bring those pods up, or set blockAdmission false"},
    {Reason::kMisconfigured, Stage::kGate, Standing::kMisconfigured,
     "its queue does not exist or cannot admit it",
     "correct what the message names: a field, a queue, a flavor or a selector"},
    {Reason::kQueueNotAllowed, Stage::kGate, Standing::kMisconfigured,
     "the queue that it names does not take its namespace",
     "name a queue of its own, or add the namespace to berth.dev/namespaces of the queue"},
    {Reason::kOnHold, Stage::kGate, Standing::kWaiting,
     "its queue is stopped, or it backs off after an eviction",
     "set stopPolicy None, or wait for its requeueAt"},
    {Reason::kAdmissionGated, Stage::kGate, Standing::kWaiting,
     "somebody else holds it back by an annotation", "remove the annotation when it may go"},
    {Reason::kDeactivated, Stage::kGate, Standing::kWaiting, "its spec.active is false",
     "set spec.active true"},
    {Reason::kUnsatisfiedAdmissionChecks, Stage::kQuota, Standing::kWaiting,
     "it holds quota; an admission check is not ready", "wait for the controller of the check"},
    {Reason::kSuspended, Stage::kGate, Standing::kWaiting,
     "the Job is suspended, so it has no pods", "set spec.suspend false, or let its queue do it"},
    {Reason::kNodeRefused, Stage::kNodeAdmission, Standing::kFault,
     "it was bound, and the kubelet of its node refused it",
     "read the pod's status.message, mend the node, and start the pod again"},
    {Reason::kContainersNotStarted, Stage::kNodeAdmission, Standing::kWaiting,
     "it is bound, and its containers have not started",
     "read the state of its containers: image, volumes, runtime"},
};
static_assert(std::size(kRegistry) == static_cast<std::size_t>(Reason::kCount));

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kRegistry); ++i) {
    if (kRegistry[i].reason != static_cast<Reason>(i)) return false;
  }
  return true;
}
static_assert(in_order(), "the registry lists the reasons in the order of model/reason.h");

constexpr std::array<std::string_view, static_cast<std::size_t>(Stage::kCount)> kStageNames = {
    "gate",   "quota",     "gang", "capacity",       "constraints",
    "health", "autoscale", "bind", "node-admission",
};
constexpr std::array<std::string_view, static_cast<std::size_t>(Standing::kCount)> kStandingNames =
    {"running", "waiting", "misconfigured", "never", "fault"};

}  // namespace

std::string_view name(Stage stage) { return kStageNames[static_cast<std::size_t>(stage)]; }
std::string_view name(Standing standing) {
  return kStandingNames[static_cast<std::size_t>(standing)];
}

int exit_code(Standing standing) { return static_cast<int>(standing) * 10; }

const ReasonFacts& facts_of(Reason reason) {
  const auto index = static_cast<std::size_t>(reason);
  return kRegistry[index < std::size(kRegistry) ? index : 0];
}

Standing standing_of(Reason reason, bool never) {
  const Standing usual = facts_of(reason).standing;
  if (!never || usual != Standing::kWaiting) return usual;
  switch (reason) {
    case Reason::kTaintNotTolerated:
    case Reason::kNodeSelectorMismatch:
    case Reason::kNodeAffinityMismatch:
    case Reason::kVolumeUnreachable:
    case Reason::kGpuModelMismatch:
      return Standing::kMisconfigured;
    default:
      return Standing::kNever;
  }
}

std::string anchor_of(Reason reason) {
  std::string out = "docs/reasons.md#";
  for (const char c : model::name(reason)) {
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

}  // namespace berth::people
