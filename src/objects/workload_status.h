// What a controller writes into Workload.status, from what a decision says of the workload.
//
// Pure: the object as it is and one change give the whole new status as JSON, fields that nobody
// here knows kept as they are; "" when nothing changes. Conditions keep their lastTransitionTime
// while their status stays. The reasons are Kueue's: those of 0.19 and later, or with old_reasons
// those up to 0.18 (Pending, Inadmissible, Waiting, UnsatisfiedChecks). Never fails: what cannot be
// read of an old status is written anew.
//
// Life: waits -> admission (quota reserved; admitted once checks are empty) -> eviction (told to
// leave, holds quota) -> released (pods are gone, pending again) or finished. Beside the status a
// controller writes spec.active: false where deactivates() says so.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/decision.h"
#include "objects/kueue.h"

namespace berth::objects {

struct StatusOptions {
  KueueVersion version = KueueVersion::kV1beta2;
  bool old_reasons = false;
  bool wait_for_pods_ready = true;  // Configuration: writes PodsReady when it is admitted
  int backoff_base_s = 60, backoff_max_s = 3600;
};

// One change; give what applies. Several at once are taken in this order.
struct WorkloadChange {
  const model::Outcome* waits = nullptr;        // it is pending, and why
  const model::Admission* admission = nullptr;  // a queue let it in, or completed its admission
  const model::Eviction* eviction = nullptr;    // a queue sends it away
  bool released = false;                        // evicted, and its pods are gone
  std::optional<bool> pods_ready;
  struct Finish {
    std::string reason;  // Succeeded, Failed, WorkloadSliceReplaced, ...
    std::string message;
  };
  std::optional<Finish> finished;
};

std::string workload_status(const text::Value& workload, const WorkloadChange& change,
                            std::int64_t now_ns, const StatusOptions& options = {});

// The reason of the condition QuotaReserved while a workload waits.
std::string_view waiting_reason(model::Reason reason, bool old_reasons);

// Annotations that a controller writes beside the status. The seats of a workload that was
// admitted: its placements, as the value of berth.dev/seats. pod_set_of: the pod set of a placed
// pod ("ns/name").
std::string seats_annotation(const std::vector<model::Placement>& placements,
                             std::string_view workload,
                             const std::function<std::string(std::string_view)>& pod_set_of);
// The value of berth.dev/preemptions after one more: times of the past hour, at most 64.
std::string preemptions_annotation(const text::Value& workload, std::int64_t now_ns);

// The workload does not come back by itself: spec.active becomes false.
bool deactivates(const model::Eviction& eviction);

// status of a ClusterQueue or LocalQueue: the condition Active, counts, usage by flavor; "" when
// nothing changes. local: the LocalQueue's own counts, the usage is left out.
struct QueueCounts {
  int pending = 0, reserving = 0, admitted = 0;
};
std::string cluster_queue_status(const text::Value& queue, const model::QueueUse& use,
                                 const QueueCounts& counts, std::int64_t now_ns);
// trouble: why it is not active ("ClusterQueueDoesNotExist", ...), or empty.
std::string local_queue_status(const text::Value& queue, std::string_view trouble,
                               const QueueCounts& counts, std::int64_t now_ns);

}  // namespace berth::objects
