#include "model/reason.h"

namespace berth::model {

namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, static_cast<std::size_t>(Reason::kCount)> kReasonNames = {
    "",
    "NodeNotReady",
    "NodeNameNotFound",
    "NodeUnschedulable",
    "TaintNotTolerated",
    "NodeSelectorMismatch",
    "NodeAffinityMismatch",
    "VolumeUnreachable",
    "GpuModelMismatch",
    "GpuMemoryTooSmall",
    "PodAffinityUnmet",
    "PodAntiAffinityViolated",
    "TopologySpreadViolated",
    "HostPortTaken",
    "InsufficientCpu",
    "InsufficientMemory",
    "InsufficientEphemeralStorage",
    "TooManyPods",
    "InsufficientResource",
    "InsufficientGpus",
    "GpuUnhealthy",
    "NumaMisaligned",
    "NoNodes",
    "Fragmented",
    "NeverFits",
    "GangIncomplete",
    "GangDoesNotFit",
    "TopologyDomainTooSmall",
    "VolumeMissing",
    "ResourceClaimNotRead",
    "TooManyRules",
    "Gated",
    "QueueRequired",
    "Preempted",
    "PendingEvaluation",
    "WaitingForQuota",
    "ExceedsMaxQuota",
    "NoMatchingFlavor",
    "TopologyPlacementFailed",
    "WaitingForPreemptedWorkloads",
    "PreemptionGated",
    "WaitingForPodsReady",
    "Misconfigured",
    "QueueNotAllowed",
    "OnHold",
    "AdmissionGated",
    "Deactivated",
    "UnsatisfiedAdmissionChecks",
    "Suspended",
    "NodeRefused",
    "ContainersNotStarted",
};
static_assert(!kReasonNames.back().empty(), "a reason without a name");

}  // namespace

std::string_view name(Constraint constraint) {
  switch (constraint) {
    case Constraint::kNodeReady:
      return "node ready";
    case Constraint::kNodeName:
      return "node name";
    case Constraint::kUnschedulable:
      return "cordon";
    case Constraint::kTaints:
      return "taints";
    case Constraint::kNodeSelector:
      return "node selector";
    case Constraint::kNodeAffinity:
      return "node affinity";
    case Constraint::kVolumes:
      return "volumes";
    case Constraint::kGpuModel:
      return "GPU model";
    case Constraint::kGpuMemory:
      return "GPU memory";
    case Constraint::kPodAffinity:
      return "pod affinity";
    case Constraint::kPodAntiAffinity:
      return "pod anti-affinity";
    case Constraint::kTopologySpread:
      return "topology spread";
    case Constraint::kHostPorts:
      return "host ports";
    case Constraint::kCpu:
      return "cpu";
    case Constraint::kMemory:
      return "memory";
    case Constraint::kEphemeralStorage:
      return "ephemeral storage";
    case Constraint::kPods:
      return "pod slots";
    case Constraint::kExtended:
      return "extended resources";
    case Constraint::kGpus:
      return "GPUs";
    case Constraint::kGpuHealth:
      return "GPU health";
    case Constraint::kNumaPolicy:
      return "NUMA policy";
    case Constraint::kCount:
      break;
  }
  return "none";
}

std::string_view sentence(Constraint constraint) {
  switch (constraint) {
    case Constraint::kNodeReady:
      return "the node is not Ready";
    case Constraint::kNodeName:
      return "the pod names another node";
    case Constraint::kUnschedulable:
      return "the node is cordoned";
    case Constraint::kTaints:
      return "a taint is not tolerated";
    case Constraint::kNodeSelector:
      return "a label of nodeSelector is missing or different";
    case Constraint::kNodeAffinity:
      return "no required node affinity term matches";
    case Constraint::kVolumes:
      return "a volume cannot be reached from the node";
    case Constraint::kGpuModel:
      return "the GPU model is not one the pod accepts";
    case Constraint::kGpuMemory:
      return "the GPUs have too little memory";
    case Constraint::kPodAffinity:
      return "the domain holds no pod that required affinity asks for";
    case Constraint::kPodAntiAffinity:
      return "the domain holds a pod that anti-affinity keeps apart";
    case Constraint::kTopologySpread:
      return "the domain would exceed maxSkew";
    case Constraint::kHostPorts:
      return "a host port is taken";
    case Constraint::kCpu:
      return "too little cpu is free";
    case Constraint::kMemory:
      return "too little memory is free";
    case Constraint::kEphemeralStorage:
      return "too little ephemeral storage is free";
    case Constraint::kPods:
      return "no pod slot is free";
    case Constraint::kExtended:
      return "too little of an extended resource is free";
    case Constraint::kGpus:
      return "too few GPUs are free";
    case Constraint::kGpuHealth:
      return "the free GPUs are unhealthy or reserved";
    case Constraint::kNumaPolicy:
      return "the kubelet's Topology Manager would refuse the pod";
    case Constraint::kCount:
      break;
  }
  return "";
}

std::string_view name(Reason reason) {
  const auto at = static_cast<std::size_t>(reason);
  return at < kReasonNames.size() ? kReasonNames[at] : std::string_view();
}

Reason reason_of(Constraint constraint) {
  // The reasons of constraints stand in the order of the constraints.
  return static_cast<Reason>(static_cast<int>(Reason::kNodeNotReady) +
                             static_cast<int>(constraint));
}

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPlaced:
      return "placed";
    case Verdict::kWait:
      return "wait";
    case Verdict::kNever:
      return "never";
    case Verdict::kPartial:
      return "partial";
  }
  return "";
}

}  // namespace berth::model
