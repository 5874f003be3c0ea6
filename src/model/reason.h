// Every "no" as a value: the named constraints, the closed list of reasons, and the certificate.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::model {

// The hard constraints, in the order in which people read them. docs/placement.md defines each.
enum class Constraint : std::uint8_t {
  kNodeReady,
  kNodeName,
  kUnschedulable,
  kTaints,
  kNodeSelector,
  kNodeAffinity,
  kVolumes,
  kGpuModel,
  kGpuMemory,
  kPodAffinity,
  kPodAntiAffinity,
  kTopologySpread,
  kHostPorts,
  kCpu,
  kMemory,
  kEphemeralStorage,
  kPods,
  kExtended,
  kGpus,        // enough free GPU: devices, shares or MIG slots
  kGpuHealth,   // would fit if unhealthy or reserved devices were usable
  kNumaPolicy,  // the kubelet's Topology Manager would refuse
  kCount,
};
inline constexpr int kConstraints = static_cast<int>(Constraint::kCount);

std::string_view name(Constraint constraint);      // "node selector", for people
std::string_view sentence(Constraint constraint);  // "labels match spec.nodeSelector"

enum class Reason : std::uint8_t {
  kNone,
  // one per constraint
  kNodeNotReady,
  kNodeNameNotFound,
  kNodeUnschedulable,
  kTaintNotTolerated,
  kNodeSelectorMismatch,
  kNodeAffinityMismatch,
  kVolumeUnreachable,
  kGpuModelMismatch,
  kGpuMemoryTooSmall,
  kPodAffinityUnmet,
  kPodAntiAffinityViolated,
  kTopologySpreadViolated,
  kHostPortTaken,
  kInsufficientCpu,
  kInsufficientMemory,
  kInsufficientEphemeralStorage,
  kTooManyPods,
  kInsufficientResource,
  kInsufficientGpus,
  kGpuUnhealthy,
  kNumaMisaligned,
  // of the whole request
  kNoNodes,                 // the cluster has no node at all
  kFragmented,              // enough free GPUs in total, on no single node (or domain) enough
  kNeverFits,               // would not fit the empty cluster
  kGangIncomplete,          // fewer members exist than must start together
  kGangDoesNotFit,          // some members fit, not enough of them at once
  kTopologyDomainTooSmall,  // fits the cluster, but no single domain of the required level
  kVolumeMissing,           // a claim does not exist or is not bound
  kResourceClaimNotRead,    // asks for devices by a ResourceClaim, which is not read
  kTooManyRules,            // it, or its namespace, brings more rules than are looked at
  kGated,                   // has scheduling gates
  kQueueRequired,           // its namespace requires a queue, and it waits in none
  kPreempted,               // evicted in this plan; waits for its turn again
  // of queues; the names are Kueue's
  kPendingEvaluation,             // in its queue, not looked at yet
  kWaitingForQuota,               // the quota is used by others
  kExceedsMaxQuota,               // more than the queue could ever get
  kNoMatchingFlavor,              // no flavor of the queue takes its pods
  kTopologyPlacementFailed,       // no domain of its topology has room
  kWaitingForPreemptedWorkloads,  // those that make room for it have not left yet
  kPreemptionGated,               // it may not make room: a preemption gate is closed
  kWaitingForPodsReady,           // admission is blocked until admitted pods are ready
  kMisconfigured,                 // its queue does not exist or cannot admit
  kQueueNotAllowed,               // its queue does not take its namespace
  kOnHold,                        // its queue is stopped, or it backs off
  kAdmissionGated,                // somebody else holds it back
  kDeactivated,                   // spec.active is false
  kUnsatisfiedAdmissionChecks,    // holds quota; admission checks are to come
  // before and after the decision; only an explanation gives these
  kSuspended,             // a Job that is suspended makes no pods
  kNodeRefused,           // bound, and the kubelet refused it
  kContainersNotStarted,  // bound, and its containers do not start
  kCount,
};

std::string_view name(Reason reason);  // "Fragmented": stable, machine-readable
Reason reason_of(Constraint constraint);
// Nodes lack what is asked for: other or more of them would help.
constexpr bool is_of_nodes(Reason reason) {
  return (reason > Reason::kNone && reason < Reason::kGangIncomplete) ||
         reason == Reason::kGangDoesNotFit || reason == Reason::kTopologyDomainTooSmall ||
         reason == Reason::kTopologyPlacementFailed;
}

enum class Verdict : std::uint8_t { kPlaced, kWait, kNever, kPartial };
std::string_view name(Verdict verdict);

// The proof of a "no": enough to check it by hand.
struct Certificate {
  int nodes = 0;                            // in the cluster
  std::array<int, kConstraints> removed{};  // nodes each constraint rejects; all blockers count
  std::array<int, kConstraints> only{};     // nodes that nothing but this constraint rejects
  Constraint binding = Constraint::kCount;  // see docs/placement.md
  int fitting_nodes = 0;                    // nodes that nothing rejects
  int free_gpu_milli = 0;                   // free and usable on nodes that pass all but capacity
  int largest_free_milli = 0;               // the most of it on one node
  int needed_pods = 0;                      // a gang's: at least so many at once
  struct Domain {
    std::string name;  // the level's label value, or "cluster"
    int fits = 0;      // the most members that fit there
    friend bool operator==(const Domain&, const Domain&) = default;
  };
  std::vector<Domain> domains;  // best first, then by name; at most kMaxDomains
  int domains_total = 0;
  bool exact = true;  // false: the search ended at its bound, not by proof
  static constexpr int kMaxDomains = 8;
  friend bool operator==(const Certificate&, const Certificate&) = default;
};

}  // namespace berth::model
