// A workload inside the queue engine: what it asks for, where it stands, what it holds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decide/admit/form.h"

namespace berth::admit {

using WorkloadId = std::uint32_t;

// pending -> quota reserved -> admitted -> finished, with two-phase eviction: an evicting workload
// holds its quota until its pods are gone.
enum class Stage : std::uint8_t {
  kHeld,      // pending, and not to be looked at: see Hold
  kWaiting,   // in its queue; whether it is due for an attempt is the line's matter
  kReserved,  // holds quota, waits for admission checks
  kAdmitted,
  kEvicting,  // told to leave, still holds quota
  kFinished,
};
std::string_view name(Stage stage);
bool may_follow(Stage from, Stage to);
constexpr bool holds_quota(Stage stage) {
  return stage == Stage::kReserved || stage == Stage::kAdmitted || stage == Stage::kEvicting;
}

// Why a pending workload is not looked at.
enum class Hold : std::uint8_t {
  kNone,
  kNoLocalQueue,
  kNoQueue,        // the ClusterQueue of its LocalQueue does not exist
  kQueueInactive,  // see Queue::inactive_message
  kLocalStopped,
  kNamespace,       // the queue's namespaceSelector does not match
  kDeactivated,     // spec.active: false
  kAdmissionGated,  // annotation admission-gated-by
  kBackoff,         // requeueAt is to come
  kNotRequeued,     // condition Requeued is False
  kIncomplete,      // members are missing
  kCheckFailed,
  kVariants,  // its variants are decided, one for each flavor
  kReplaced,  // a larger slice of it waits
};

// Why an attempt came to nothing, most severe first where several apply (kNoMatchingFlavor ...
// kTopologyPlacementFailed); the names are those of the condition QuotaReserved.
enum class NoReason : std::uint8_t {
  kNone,
  kPendingEvaluation,  // not tried yet
  kTopologyPlacementFailed,
  kWaitingForQuota,
  kExceedsMaxQuota,
  kNoMatchingFlavor,
  kWaitingForPreemptedWorkloads,
  kPreemptionGated,
  kWaitingForPodsReady,
  kMisconfigured,
  kOnHold,
  kSuspended,
  kAdmissionGated,
  kDeactivated,
  kNodesDoNotFit,  // quota allows it, nodes do not
};
std::string_view name(NoReason reason);
// As Kueue spelt it up to 0.18: Pending, Inadmissible, Waiting.
std::string_view old_name(NoReason reason);

enum class Cause : std::uint8_t {
  kInClusterQueue,
  kInCohortReclamation,
  kInCohortFairSharing,
  kInCohortReclaimWhileBorrowing,
  kFlavorMigration,  // for a variant of the same workload on a better flavor
};
std::string_view name(Cause cause);
std::string_view in_words(Cause cause);  // "reclamation within the cohort"

// One pod set's part of an assignment.
struct Choice {
  int count = 0;
  std::vector<std::pair<ResourceId, FlavorId>> flavors;
  std::optional<model::TopologyAssignment> topology;
};

// How a request stands to quota. Values in between are only of flavors, not of assignments.
enum class Mode : std::uint8_t { kNoFit, kNoCandidates, kPreempt, kReclaim, kFit };

// How far the scan of flavors came: by unit and resource group, -1 when it reached the end.
struct Progress {
  std::vector<std::int32_t> tried;
  std::uint64_t generation = 0;  // of the queue's tree
  std::uint64_t cycle = 0;
  bool more() const;  // flavors are left to try
};

struct Assignment {
  Mode mode = Mode::kFit;  // kNoFit, kPreempt or kFit
  int borrowing = 0;       // the highest level of any cell
  std::vector<Choice> pod_sets;
  std::vector<Use> uses;           // by cell
  std::vector<CellId> preempting;  // cells that need room made
  Progress progress;
  NoReason reason = NoReason::kNone;
  std::string message;               // why not, where asked for
  std::shared_ptr<const void> site;  // the ground's placement
  bool on_ground = false;            // quota allows it, or could: nodes were asked
  // Its nodes are still to come (a ProvisioningRequest): the ground is asked when checks are done.
  bool delayed = false;
};

struct Target {
  WorkloadId id = 0;
  Cause cause = Cause::kInClusterQueue;
};

struct Workload {
  std::string name;  // "ns/name"
  std::string uid;   // or the name
  std::shared_ptr<const Form> form;
  LocalId local = kNoId;
  QueueId queue = kNoId;  // where it waits or holds quota
  Stage stage = Stage::kHeld;
  Hold hold = Hold::kNone;   // while kHeld
  Hold aside = Hold::kNone;  // while in line: why it cannot be admitted
  NoReason reason = NoReason::kPendingEvaluation;
  bool preemption_gated = false;
  bool pods_ready = true;
  bool preemptor = false;  // made room and waits for it
  bool started = false;    // admitted, not only with quota reserved; also while it leaves
  bool deactivated = false;
  bool orders_anew = false;  // its place in line counts from when it is gone
  std::int64_t created_ns = 0;
  std::int64_t order_ns = 0;  // queue order: creation, or an eviction until quota is reserved again
  std::int64_t reserved_ns = 0;
  std::int64_t requeue_at_ns = 0;
  std::uint32_t seat = 0;  // among its queue's holders
  std::vector<Use> uses;   // of quota, while it holds any
  std::vector<Choice> admission;
  Progress progress;
  std::string message;                     // of the last attempt, where messages are on
  WorkloadId preempted_by = kNoId;         // last
  std::vector<std::int64_t> evictions_ns;  // by preemption, the last few
  Cause preempted_for = Cause::kInClusterQueue;
  std::vector<std::string> checks;  // not Ready yet
  bool unplaced = false;            // holds quota, has no place on the ground yet
  WorkloadId replaces = kNoId;      // an older slice of it
  std::uint32_t family = kNoId;     // variants of one workload
  std::uint32_t rank = 0;           // of its flavor among theirs, the best is 0
  bool migrating = false;           // a variant that waits for its sibling to leave
  std::shared_ptr<const void> site;

  int priority() const { return form->priority; }
};

}  // namespace berth::admit
