// Bodies of what is written about workloads of queues: Kueue's Workload (v1beta2) and its status,
// the start of a Job, the status of queues. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/world.h"
#include "model/decision.h"
#include "model/reason.h"
#include "model/workload.h"
#include "text/json_writer.h"
#include "text/value.h"

namespace berth::control {

// "job-train-5f2a1": as Kueue names it, by kind, name and a hash of the UID.
std::string workload_name(std::string_view kind, std::string_view name, std::string_view uid);

struct WorkloadOwner {
  std::string version, kind, name, uid;
  bool controller = true;
};
struct PodSetTemplate {
  const text::Value* pod_template = nullptr;  // {metadata, spec}, or a whole pod
  bool whole_pod = false;
};
// The object that stands for a workload of the queue. templates: one for each pod set.
std::string workload_body(const model::WorkloadSpec& spec, const std::string& name,
                          const std::vector<WorkloadOwner>& owners,
                          const std::vector<PodSetTemplate>& templates,
                          const std::string& priority_class);

// Its owners are these, as a merge patch.
std::string owners_patch(const std::vector<WorkloadOwner>& owners);

// The next status of a Workload, from the one it has.
class WorkloadStatus {
 public:
  WorkloadStatus(const text::Value& workload, std::int64_t now_ns);

  bool is_true(std::string_view type) const;
  bool has(std::string_view type) const;
  std::string_view reason(std::string_view type) const;
  void set(std::string_view type, bool status, std::string_view reason, std::string_view message);
  // Sets it to False where it is True.
  void clear(std::string_view type, std::string_view reason, std::string_view message);

  void admit(const model::Admission& admission);
  void release();  // it holds nothing any more; checks start over
  // Every check of the list has an entry; new ones are Pending.
  void want_checks(const std::vector<std::string>& checks);
  bool checks_ready() const;
  void requeue_at(int count, std::int64_t at_ns);
  // Its pods left this failed node for another; "": whatever failed does not matter any more.
  void forget_node(std::string_view node);

  bool changed() const { return changed_; }
  std::string patch() const;  // a merge patch of status, for this version of the object

 private:
  struct Condition {
    std::string type, status, reason, message, since;
    std::int64_t generation = 0;
  };
  struct Check {
    std::string name, state, message, since;
    std::int64_t retries = 0;
  };
  Condition* find(std::string_view type);
  const Condition* find(std::string_view type) const;

  std::string version_, now_;
  std::int64_t generation_ = 0;
  std::vector<Condition> conditions_;
  std::vector<Check> checks_;
  std::vector<std::string> unhealthy_;  // nodes
  bool nodes_changed_ = false;
  std::string admission_;  // JSON; empty: as it is; "null": none
  std::string requeue_;
  bool checks_changed_ = false, changed_ = false;
};

// The reason of the condition QuotaReserved while a workload waits: one that Kueue's users know.
std::string_view waiting_reason(model::Reason reason);

// Where the pods of an admitted workload are to run, by pod set: the message of the condition
// berth.dev/Placed, or the annotation berth.dev/seats where it is longer than a message may be.
inline constexpr std::size_t kMostConditionMessage = 32'768;
std::string seats_text(const std::vector<KnownPlace>& places);
// The message of berth.dev/Preemptions after one more: times of the past hour, at most 64.
std::string preemption_times(const std::vector<std::int64_t>& before, std::int64_t now_ns);
// One annotation of an object, as a merge patch.
std::string annotation_patch(std::string_view key, std::string_view value);
// It waits in that LocalQueue, or with that WorkloadPriorityClass; "": as before.
std::string move_patch(std::string_view queue, std::string_view priority_class);
// The workload does not come back by itself: spec.active becomes false.
bool deactivates(const model::Eviction& eviction);

// Starts a Job: not suspended, its pods on the flavors they were admitted to. original: the pod
// template that its Workload keeps.
std::string job_start_patch(const text::Value& job, const text::Value& original,
                            const model::PodSetAdmission& admitted,
                            const std::vector<const model::FlavorSpec*>& flavors,
                            const model::WorkloadSpec& workload);

// Lets a gated pod go to the flavors it was admitted to, as a strategic merge patch.
std::string pod_start_patch(const model::PodSetAdmission& admitted,
                            const std::vector<const model::FlavorSpec*>& flavors);

struct QueueCounts {
  int pending = 0, reserving = 0, admitted = 0;
  std::optional<std::int64_t> weighted_share;  // where queues share fairly
  // flavor -> resource -> {reserved, used}
  std::map<std::string, std::map<std::string, std::pair<std::int64_t, std::int64_t>>> use;
};
// A merge patch of a ClusterQueue's or LocalQueue's status; empty: it says so already. groups: the
// flavors of the ClusterQueue.
std::string queue_status_patch(const text::Value& queue, const QueueCounts& counts,
                               const std::vector<model::ResourceGroup>& groups, bool cluster_queue,
                               std::string_view inactive, std::int64_t now_ns);

std::string amount_text(std::string_view resource, std::int64_t amount);

}  // namespace berth::control
