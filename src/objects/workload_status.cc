#include "objects/workload_status.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "model/amounts.h"
#include "objects/kueue_workload.h"
#include "objects/status_draft.h"
#include "text/rfc3339.h"

namespace berth::objects {

namespace {

using model::Reason;
using text::JsonWriter;
using text::Value;

constexpr std::int64_t kNsInSecond = 1'000'000'000;

std::int64_t integer_at(const Value* v) {
  std::int64_t out = 0;
  if (v == nullptr) return 0;
  const std::string_view text = v->number_text();
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}
std::string_view string_of(const Value& v, std::string_view key) {
  const Value* found = v.find(key);
  return found == nullptr ? std::string_view() : found->string();
}

bool is_preemption(std::string_view reason) { return reason.starts_with("InC"); }

class WorkloadStatus {
 public:
  WorkloadStatus(const Value& workload, std::int64_t now_ns, const StatusOptions& options)
      : workload_(workload), now_ns_(now_ns), options_(options), draft_(workload, now_ns) {}

  std::string run(const WorkloadChange& change) {
    if (change.waits != nullptr) waits(*change.waits);
    if (change.admission != nullptr) admit(*change.admission);
    if (change.eviction != nullptr) evict(*change.eviction);
    if (change.released) release();
    if (change.pods_ready) pods_ready(*change.pods_ready);
    if (change.finished) {
      draft_.set("Finished", true, change.finished->reason, change.finished->message);
    }
    return draft_.write();
  }

 private:
  // ---- pending ----

  void waits(const model::Outcome& outcome) {
    if (draft_.is_true("QuotaReserved")) return waits_for_checks(outcome);
    draft_.set("QuotaReserved", false, waiting_reason(outcome.reason, options_.old_reasons),
               outcome.message);
    finish_backoff();
  }

  void waits_for_checks(const model::Outcome& outcome) {
    if (draft_.is_true("Admitted") || draft_.is_true("Evicted")) return;
    const bool checks = outcome.reason == Reason::kUnsatisfiedAdmissionChecks;
    draft_.set("Admitted", false, checks ? unsatisfied() : "PendingDelayedTopologyRequests",
               outcome.message);
  }

  const char* unsatisfied() const {
    return options_.old_reasons ? "UnsatisfiedChecks" : "UnsatisfiedAdmissionChecks";
  }

  void finish_backoff() {
    const Value* state = draft_.old("requeueState");
    const Value* at = state == nullptr ? nullptr : state->find("requeueAt");
    if (at == nullptr) return;
    const auto time = text::parse_rfc3339(at->string());
    if (time.ok() && *time > now_ns_) return;
    write_requeue(integer_at(state->find("count")), 0);
    const StatusDraft::Condition* requeued = draft_.find("Requeued");
    if (requeued != nullptr && !requeued->on) {
      draft_.set("Requeued", true, "BackoffFinished", "The workload backoff was finished");
    }
  }

  void write_requeue(std::int64_t count, std::int64_t at_ns) {
    if (count == 0 && at_ns == 0) return draft_.drop("requeueState");
    JsonWriter out;
    out.begin_object();
    if (count > 0) out.field("count", count);
    if (at_ns > 0) out.field("requeueAt", text::format_rfc3339(at_ns / kNsInSecond * kNsInSecond));
    out.end_object();
    draft_.put("requeueState", std::move(out).take());
  }

  // ---- admitted ----

  void admit(const model::Admission& admission) {
    const bool fresh = !draft_.is_true("QuotaReserved");
    draft_.put("admission", admission_json(admission));
    draft_.set("QuotaReserved", true, "QuotaReserved",
               "Quota reserved in ClusterQueue " + admission.queue);
    for (const char* type : {"Evicted", "Preempted"}) {
      const StatusDraft::Condition* condition = draft_.find(type);
      if (condition == nullptr || !condition->on) continue;
      draft_.set(type, false, "QuotaReserved", "Previously: " + condition->message);
    }
    if (const Value* state = draft_.old("requeueState")) {
      write_requeue(integer_at(state->find("count")), 0);
    }
    if (fresh) write_checks(admission.checks);
    if (!admission.replaced_node.empty()) draft_.drop("unhealthyNodes");
    const bool delayed = std::any_of(admission.pod_sets.begin(), admission.pod_sets.end(),
                                     [](const auto& set) { return set.topology_pending; });
    if (!admission.checks.empty()) {
      draft_.set("Admitted", false, unsatisfied(),
                 "The workload has failed or pending admission checks");
    } else if (delayed) {
      draft_.set("Admitted", false, "PendingDelayedTopologyRequests",
                 "There are pending delayed topology requests");
    } else {
      const bool before = draft_.is_true("Admitted");
      draft_.set("Admitted", true, "Admitted", "The workload is admitted");
      if (options_.wait_for_pods_ready && !before) {
        draft_.set("PodsReady", false, "WaitForStart", "Not all pods are ready or succeeded");
      }
    }
  }

  std::string admission_json(const model::Admission& admission) const {
    JsonWriter out;
    out.begin_object();
    out.field("clusterQueue", admission.queue);
    out.key("podSetAssignments");
    out.begin_array();
    for (const model::PodSetAdmission& set : admission.pod_sets) {
      out.begin_object();
      out.field("name", set.name);
      if (!set.flavors.empty()) {
        out.key("flavors");
        out.begin_object();
        for (const auto& [resource, flavor] : set.flavors) out.field(resource, flavor);
        out.end_object();
      }
      if (!set.usage.empty()) {
        out.key("resourceUsage");
        out.begin_object();
        for (const auto& [resource, amount] : set.usage) {
          out.field(resource, model::show_amount(resource, amount));
        }
        out.end_object();
      }
      out.field("count", set.count);
      if (set.topology) {
        out.key("topologyAssignment");
        write_topology_assignment(*set.topology, options_.version, out);
      }
      if (set.topology_pending) out.field("delayedTopologyRequest", "Pending");
      out.end_object();
    }
    out.end_array();
    out.end_object();
    return std::move(out).take();
  }

  void write_checks(const std::vector<std::string>& checks) {
    if (checks.empty() && draft_.old("admissionChecks") == nullptr) return;
    JsonWriter out;
    out.begin_array();
    for (const std::string& check : checks) {
      out.begin_object();
      out.field("name", check);
      out.field("state", "Pending");
      out.field("lastTransitionTime", draft_.now());
      out.field("message", "");
      out.end_object();
    }
    out.end_array();
    draft_.put("admissionChecks", std::move(out).take());
  }

  // ---- evicted ----

  void evict(const model::Eviction& eviction) {
    const bool preempted = is_preemption(eviction.reason);
    const std::string reason = preempted ? "Preempted" : eviction.reason;
    if (draft_.is_true("Evicted")) return;  // it leaves already
    count_time();
    draft_.set("Evicted", true, reason, eviction.message);
    if (preempted) draft_.set("Preempted", true, eviction.reason, eviction.message);
    if (reason == "PodsReadyTimeout") {
      const Value* state = draft_.old("requeueState");
      const std::int64_t count = 1 + (state == nullptr ? 0 : integer_at(state->find("count")));
      write_requeue(count, now_ns_ + backoff(count) * kNsInSecond);
      draft_.set("Requeued", false, reason, eviction.message);
    } else if (!preempted) {
      const std::int64_t after = retry_after();
      if (reason == "AdmissionCheck" && after > 0) {
        const Value* state = draft_.old("requeueState");
        write_requeue(state == nullptr ? 0 : integer_at(state->find("count")),
                      now_ns_ + after * kNsInSecond);
      }
      draft_.set("Requeued", false, reason, eviction.message);
    }
    reset_checks();
    count_eviction(reason, preempted ? eviction.reason : "");
    for (const char* field : {"unhealthyNodes", "nominatedClusterNames", "preemptionGates"}) {
      if (draft_.old(field) != nullptr) draft_.drop(field);
    }
  }

  std::int64_t backoff(std::int64_t tries) const {
    std::int64_t wait = options_.backoff_base_s;
    for (std::int64_t i = 1; i < tries && wait < options_.backoff_max_s; ++i) wait *= 2;
    return std::min<std::int64_t>(wait, options_.backoff_max_s);
  }

  std::int64_t retry_after() const {
    std::int64_t most = 0;
    const Value* checks = draft_.old("admissionChecks");
    if (checks == nullptr || !checks->is_array()) return 0;
    for (const Value& check : checks->items()) {
      if (string_of(check, "state") != "Retry") continue;
      most = std::max(most, integer_at(check.find("requeueAfterSeconds")));
    }
    return most;
  }

  // What it ran so far counts towards its limit.
  void count_time() {
    const Value* spec = workload_.find("spec");
    if (spec == nullptr || spec->find("maximumExecutionTimeSeconds") == nullptr) return;
    const StatusDraft::Condition* admitted = draft_.find("Admitted");
    if (admitted == nullptr || !admitted->on) return;
    const auto since = text::parse_rfc3339(admitted->since);
    if (!since.ok()) return;
    const char* field = options_.version == KueueVersion::kV1beta1
                            ? "accumulatedPastExexcutionTimeSeconds"
                            : "accumulatedPastExecutionTimeSeconds";
    const std::int64_t ran = std::max<std::int64_t>(0, (now_ns_ - *since) / kNsInSecond);
    draft_.put(field, std::to_string(integer_at(draft_.old(field)) + ran));
  }

  void reset_checks() {
    const Value* checks = draft_.old("admissionChecks");
    if (checks == nullptr || !checks->is_array()) return;
    JsonWriter out;
    out.begin_array();
    for (const Value& check : checks->items()) {
      const std::string state(string_of(check, "state"));
      out.begin_object();
      out.field("name", string_of(check, "name"));
      out.field("state", "Pending");
      out.field("lastTransitionTime", draft_.now());
      out.field("message", "Reset to Pending after eviction. Previously: " + state);
      const std::int64_t retries = integer_at(check.find("retryCount"));
      if (retries > 0 || state == "Retry") {
        out.field("retryCount", retries + (state == "Retry" ? 1 : 0));
      }
      out.end_object();
    }
    out.end_array();
    draft_.put("admissionChecks", std::move(out).take());
  }

  void count_eviction(const std::string& reason, const std::string& cause) {
    const Value* stats = draft_.old("schedulingStats");
    const Value* list = stats == nullptr ? nullptr : stats->find("evictions");
    JsonWriter out;
    out.begin_object();
    out.key("evictions");
    out.begin_array();
    bool counted = false;
    const auto write = [&out](std::string_view why, std::string_view under, std::int64_t count) {
      out.begin_object();
      out.field("reason", why);
      out.field("underlyingCause", under);
      out.field("count", count);
      out.end_object();
    };
    if (list != nullptr && list->is_array()) {
      for (const Value& item : list->items()) {
        const std::string_view why = string_of(item, "reason");
        const std::string_view under = string_of(item, "underlyingCause");
        const bool same = why == reason && under == cause;
        counted |= same;
        write(why, under, integer_at(item.find("count")) + (same ? 1 : 0));
      }
    }
    if (!counted) write(reason, cause, 1);
    out.end_array();
    out.end_object();
    draft_.put("schedulingStats", std::move(out).take());
  }

  // ---- gone ----

  void release() {
    const StatusDraft::Condition* evicted = draft_.find("Evicted");
    const std::string reason = evicted == nullptr ? "" : evicted->reason;
    const std::string message = evicted == nullptr ? "The workload was evicted" : evicted->message;
    Reason waits_for = Reason::kPendingEvaluation;
    const bool off = reason.starts_with("Deactivated");
    if (off) waits_for = Reason::kDeactivated;
    if (reason.ends_with("Stopped")) waits_for = Reason::kOnHold;
    draft_.drop("admission");
    draft_.set("QuotaReserved", false, waiting_reason(waits_for, options_.old_reasons), message);
    draft_.set("Admitted", false, "NoReservation", "The workload has no reservation");
    draft_.set("PodsReady", false, "WaitForStart", "Not all pods are ready or succeeded");
    const Value* state = draft_.old("requeueState");
    const bool backs_off = state != nullptr && state->find("requeueAt") != nullptr;
    if (off || backs_off || reason.ends_with("Stopped")) return;
    draft_.set("Requeued", true, reason.empty() ? "Preempted" : reason, message);
  }

  void pods_ready(bool ready) {
    const StatusDraft::Condition* before = draft_.find("PodsReady");
    const bool once = before != nullptr && (before->on || before->reason == "WaitForRecovery");
    if (ready) {
      const bool recovered = before != nullptr && before->reason == "WaitForRecovery";
      const bool stays = before != nullptr && before->on;
      draft_.set(
          "PodsReady", true,
          stays ? std::string(before->reason) : std::string(recovered ? "Recovered" : "Started"),
          "All pods reached readiness and the workload is running");
    } else {
      draft_.set("PodsReady", false, once ? "WaitForRecovery" : "WaitForStart",
                 once ? "At least one pod has failed, waiting for recovery"
                      : "Not all pods are ready or succeeded");
    }
  }

  const Value& workload_;
  std::int64_t now_ns_;
  const StatusOptions& options_;
  StatusDraft draft_;
};

void write_flavors(const model::QueueUse& use, JsonWriter& out) {
  std::vector<std::string> order;
  for (const auto& cell : use.cells) {
    if (std::find(order.begin(), order.end(), cell.flavor) == order.end()) {
      order.push_back(cell.flavor);
    }
  }
  out.begin_array();
  for (const std::string& flavor : order) {
    out.begin_object();
    out.field("name", flavor);
    out.key("resources");
    out.begin_array();
    for (const auto& cell : use.cells) {
      if (cell.flavor != flavor) continue;
      out.begin_object();
      out.field("name", cell.resource);
      out.field("total", model::show_amount(cell.resource, cell.used));
      const bool borrows = cell.nominal < cell.used;
      out.field("borrowed",
                model::show_amount(cell.resource, borrows ? cell.used - cell.nominal : 0));
      out.end_object();
    }
    out.end_array();
    out.end_object();
  }
  out.end_array();
}

void put_counts(const QueueCounts& counts, StatusDraft& draft) {
  draft.put("pendingWorkloads", std::to_string(counts.pending));
  draft.put("reservingWorkloads", std::to_string(counts.reserving));
  draft.put("admittedWorkloads", std::to_string(counts.admitted));
}

}  // namespace

std::string_view waiting_reason(Reason reason, bool old_reasons) {
  switch (reason) {
    case Reason::kMisconfigured:
    case Reason::kOnHold:
    case Reason::kDeactivated:
      return old_reasons ? "Inadmissible" : model::name(reason);
    case Reason::kWaitingForPodsReady:
      return old_reasons ? "Waiting" : model::name(reason);
    case Reason::kPendingEvaluation:
    case Reason::kWaitingForQuota:
    case Reason::kExceedsMaxQuota:
    case Reason::kNoMatchingFlavor:
    case Reason::kTopologyPlacementFailed:
    case Reason::kWaitingForPreemptedWorkloads:
    case Reason::kAdmissionGated:
      return old_reasons ? "Pending" : model::name(reason);
    case Reason::kPreemptionGated:
      return old_reasons ? "Pending" : "WaitingForQuota";
    case Reason::kNone:
    case Reason::kGangIncomplete:
      return old_reasons ? "Pending" : "PendingEvaluation";
    default:  // quota is there, nodes are not
      return old_reasons ? "Pending" : "TopologyPlacementFailed";
  }
}

std::string seats_annotation(const std::vector<model::Placement>& placements,
                             std::string_view workload,
                             const std::function<std::string(std::string_view)>& pod_set_of) {
  std::map<std::string, std::vector<const model::Placement*>> sets;
  for (const model::Placement& placement : placements) {
    if (placement.gang == workload) sets[pod_set_of(placement.pod)].push_back(&placement);
  }
  JsonWriter out;
  out.begin_object();
  for (const auto& [set, list] : sets) {
    out.key(set);
    out.begin_array();
    for (const model::Placement* placement : list) {
      out.begin_object();
      out.field("node", placement->node);
      std::vector<int> gpus = placement->gpus;  // one may stand there once per share
      gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
      if (!gpus.empty()) {
        out.key("gpus");
        out.begin_array();
        for (const int gpu : gpus) out.value(gpu);
        out.end_array();
      }
      out.end_object();
    }
    out.end_array();
  }
  out.end_object();
  return std::move(out).take();
}

std::string preemptions_annotation(const Value& workload, std::int64_t now_ns) {
  constexpr std::int64_t kHourNs = 3600 * kNsInSecond;
  std::vector<std::int64_t> times;
  const Value* before = find_in(workload, {"metadata", "annotations", kPreemptionsAnnotation});
  if (before != nullptr) {
    for (const std::string_view part : split(before->string(), ",")) {
      const auto time = text::parse_rfc3339(trim(part));
      if (time.ok() && now_ns - *time < kHourNs) times.push_back(*time);
    }
  }
  times.push_back(now_ns / kNsInSecond * kNsInSecond);
  if (times.size() > kMostPreemptions) {
    times.erase(times.begin(), times.end() - static_cast<std::ptrdiff_t>(kMostPreemptions));
  }
  std::string out;
  for (const std::int64_t time : times)
    out += (out.empty() ? "" : ",") + text::format_rfc3339(time);
  return out;
}

bool deactivates(const model::Eviction& eviction) {
  return eviction.reason.starts_with("DeactivatedDueTo");
}

std::string workload_status(const Value& workload, const WorkloadChange& change,
                            std::int64_t now_ns, const StatusOptions& options) {
  return WorkloadStatus(workload, now_ns, options).run(change);
}

std::string cluster_queue_status(const Value& queue, const model::QueueUse& use,
                                 const QueueCounts& counts, std::int64_t now_ns) {
  StatusDraft draft(queue, now_ns);
  put_counts(counts, draft);
  JsonWriter flavors;
  write_flavors(use, flavors);
  draft.put("flavorsReservation", flavors.text());
  draft.put("flavorsUsage", std::move(flavors).take());
  draft.put("fairSharing", "{\"weightedShare\":" + std::to_string(use.weighted_share) + "}");
  if (use.inactive.empty()) {
    draft.set("Active", true, "Ready", "Can admit new workloads");
  } else {
    const std::size_t colon = use.inactive.find(':');
    draft.set("Active", false, use.inactive.substr(0, colon),
              "Can't admit new workloads" +
                  (colon == std::string::npos ? std::string() : use.inactive.substr(colon)));
  }
  return draft.write();
}

std::string local_queue_status(const Value& queue, std::string_view trouble,
                               const QueueCounts& counts, std::int64_t now_ns) {
  StatusDraft draft(queue, now_ns);
  put_counts(counts, draft);
  if (trouble.empty()) {
    draft.set("Active", true, "Ready", "Can submit new workloads to ClusterQueue");
  } else {
    draft.set("Active", false, trouble, "Can't submit new workloads to ClusterQueue");
  }
  return draft.write();
}

}  // namespace berth::objects
