#include "decide/admit/workload.h"

#include <algorithm>

namespace berth::admit {

std::string_view name(Stage stage) {
  switch (stage) {
    case Stage::kHeld:
      return "held";
    case Stage::kWaiting:
      return "waiting";
    case Stage::kReserved:
      return "quota reserved";
    case Stage::kAdmitted:
      return "admitted";
    case Stage::kEvicting:
      return "evicting";
    case Stage::kFinished:
      return "finished";
  }
  return "?";
}

bool may_follow(Stage from, Stage to) {
  if (from == to) return false;
  const bool pending_to = to == Stage::kHeld || to == Stage::kWaiting;
  switch (from) {
    case Stage::kHeld:
    case Stage::kWaiting:
      return to != Stage::kEvicting;
    case Stage::kReserved:
      return to == Stage::kAdmitted || to == Stage::kEvicting || to == Stage::kFinished;
    case Stage::kAdmitted:
      return to == Stage::kEvicting || to == Stage::kFinished;
    case Stage::kEvicting:
      return pending_to || to == Stage::kFinished;
    case Stage::kFinished:
      return false;
  }
  return false;
}

std::string_view name(NoReason reason) {
  switch (reason) {
    case NoReason::kNone:
      return "";
    case NoReason::kPendingEvaluation:
      return "PendingEvaluation";
    case NoReason::kTopologyPlacementFailed:
      return "TopologyPlacementFailed";
    case NoReason::kWaitingForQuota:
      return "WaitingForQuota";
    case NoReason::kExceedsMaxQuota:
      return "ExceedsMaxQuota";
    case NoReason::kNoMatchingFlavor:
      return "NoMatchingFlavor";
    case NoReason::kWaitingForPreemptedWorkloads:
      return "WaitingForPreemptedWorkloads";
    case NoReason::kPreemptionGated:
      return "PreemptionGated";
    case NoReason::kWaitingForPodsReady:
      return "WaitingForPodsReady";
    case NoReason::kMisconfigured:
      return "Misconfigured";
    case NoReason::kOnHold:
      return "OnHold";
    case NoReason::kSuspended:
      return "Suspended";
    case NoReason::kAdmissionGated:
      return "AdmissionGated";
    case NoReason::kDeactivated:
      return "Deactivated";
    case NoReason::kNodesDoNotFit:
      return "NodesDoNotFit";
  }
  return "";
}

std::string_view old_name(NoReason reason) {
  switch (reason) {
    case NoReason::kNone:
      return "";
    case NoReason::kMisconfigured:
    case NoReason::kOnHold:
    case NoReason::kSuspended:
    case NoReason::kDeactivated:
      return "Inadmissible";
    case NoReason::kWaitingForPodsReady:
      return "Waiting";
    default:
      return "Pending";
  }
}

std::string_view name(Cause cause) {
  switch (cause) {
    case Cause::kInClusterQueue:
      return "InClusterQueue";
    case Cause::kInCohortReclamation:
      return "InCohortReclamation";
    case Cause::kInCohortFairSharing:
      return "InCohortFairSharing";
    case Cause::kInCohortReclaimWhileBorrowing:
      return "InCohortReclaimWhileBorrowing";
    case Cause::kFlavorMigration:
      return "FlavorMigration";
  }
  return "";
}

std::string_view in_words(Cause cause) {
  switch (cause) {
    case Cause::kInClusterQueue:
      return "prioritization in the ClusterQueue";
    case Cause::kInCohortReclamation:
      return "reclamation within the cohort";
    case Cause::kInCohortFairSharing:
      return "Fair Sharing within the cohort";
    case Cause::kInCohortReclaimWhileBorrowing:
      return "reclamation within the cohort while borrowing";
    case Cause::kFlavorMigration:
      return "migration to a better flavor";
  }
  return "";
}

bool Progress::more() const {
  return std::any_of(tried.begin(), tried.end(), [](auto index) { return index >= 0; });
}

}  // namespace berth::admit
