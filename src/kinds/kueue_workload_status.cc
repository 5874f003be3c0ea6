#include "kinds/kueue_workload_status.h"

#include <fmt/format.h>

#include <algorithm>

#include "kinds/kueue_workload_body.h"
#include "text/json_writer.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::kinds {

using text::JsonWriter;
using text::Value;

std::string_view waiting_reason(model::Reason reason) {
  using R = model::Reason;
  switch (reason) {
    case R::kPendingEvaluation:
    case R::kWaitingForQuota:
    case R::kExceedsMaxQuota:
    case R::kNoMatchingFlavor:
    case R::kTopologyPlacementFailed:
    case R::kWaitingForPreemptedWorkloads:
    case R::kWaitingForPodsReady:
    case R::kMisconfigured:
    case R::kOnHold:
    case R::kAdmissionGated:
    case R::kDeactivated:
      return model::name(reason);
    case R::kQueueRequired:
    case R::kQueueNotAllowed:
      return "Misconfigured";
    case R::kPreemptionGated:
      return "WaitingForQuota";
    case R::kNone:
    case R::kGangIncomplete:
      return "PendingEvaluation";
    default:
      return "TopologyPlacementFailed";  // quota would do, nodes do not
  }
}

std::string preemption_times(const std::vector<std::int64_t>& before, std::int64_t now_ns) {
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  constexpr std::int64_t kHourNs = 3600 * kSecondNs;
  constexpr std::size_t kMost = kMostPreemptions;
  std::vector<std::int64_t> times;
  for (const std::int64_t time : before) {
    if (now_ns - time < kHourNs) times.push_back(time);
  }
  times.push_back(now_ns / kSecondNs * kSecondNs);
  if (times.size() > kMost) {
    times.erase(times.begin(), times.end() - static_cast<std::ptrdiff_t>(kMost));
  }
  std::string out;
  for (const std::int64_t time : times) {
    out += (out.empty() ? "" : ",") + text::format_rfc3339(time);
  }
  return out;
}

// ---- WorkloadStatus ----

WorkloadStatus::WorkloadStatus(const Value& workload, std::int64_t now_ns)
    : now_(text::format_whole_second(now_ns)) {
  version_ = text_at(workload, "metadata.resourceVersion");
  uid_ = text_at(workload, "metadata.uid");
  generation_ = int_at(workload, "metadata.generation", generation_);
  if (const Value* list = text::find(workload, "status.conditions")) {
    for (const Value& c : list->items()) {
      Condition one{std::string(text_at(c, "type")), std::string(text_at(c, "status")),
                    std::string(text_at(c, "reason")), std::string(text_at(c, "message")),
                    std::string(text_at(c, "lastTransitionTime"))};
      if (const Value* g = c.find("observedGeneration")) one.generation = g->as_int64().value_or(0);
      conditions_.push_back(std::move(one));
    }
  }
  if (const Value* list = text::find(workload, "status.unhealthyNodes")) {
    for (const Value& node : list->items()) unhealthy_.emplace_back(text_at(node, "name"));
  }
  if (const Value* list = text::find(workload, "status.admissionChecks")) {
    for (const Value& c : list->items()) {
      Check one{std::string(text_at(c, "name")), std::string(text_at(c, "state")),
                std::string(text_at(c, "message")), std::string(text_at(c, "lastTransitionTime"))};
      if (const Value* r = c.find("retryCount")) one.retries = r->as_int64().value_or(0);
      checks_.push_back(std::move(one));
    }
  }
}

void WorkloadStatus::forget_node(std::string_view node) {
  const auto gone = std::erase_if(
      unhealthy_, [&](const std::string& one) { return node.empty() || one == node; });
  if (gone > 0) nodes_changed_ = changed_ = true;
}

WorkloadStatus::Condition* WorkloadStatus::find(std::string_view type) {
  for (Condition& c : conditions_) {
    if (c.type == type) return &c;
  }
  return nullptr;
}
const WorkloadStatus::Condition* WorkloadStatus::find(std::string_view type) const {
  return const_cast<WorkloadStatus*>(this)->find(type);
}
bool WorkloadStatus::has(std::string_view type) const { return find(type) != nullptr; }
bool WorkloadStatus::is_true(std::string_view type) const {
  const Condition* c = find(type);
  return c != nullptr && c->status == "True";
}
std::string_view WorkloadStatus::reason(std::string_view type) const {
  const Condition* c = find(type);
  return c == nullptr ? std::string_view{} : c->reason;
}

void WorkloadStatus::set(std::string_view type, bool status, std::string_view reason,
                         std::string_view message) {
  const std::string_view word = status ? "True" : "False";
  Condition* c = find(type);
  if (c != nullptr && c->status == word && c->reason == reason && c->message == message) return;
  if (c == nullptr) {
    conditions_.push_back({.type = std::string(type)});
    c = &conditions_.back();
  }
  if (c->status != word) {
    c->since = now_;
    takes_ = takes_ || (status && (type == "Evicted" || type == "Finished"));
  }
  c->status = word;
  c->reason = reason;
  c->message = message.substr(0, 32 * 1024);
  c->generation = generation_;
  changed_ = true;
}

void WorkloadStatus::clear(std::string_view type, std::string_view reason,
                           std::string_view message) {
  if (is_true(type)) set(type, false, reason, message);
}

void WorkloadStatus::admit(const model::Admission& admission) {
  JsonWriter out;
  write_admission(out, admission);
  admission_ = std::move(out).take();
  changed_ = true;
}

void WorkloadStatus::release() {
  takes_ = true;
  admission_ = "null";
  forget_node("");
  for (Check& check : checks_) {
    check.message = "Reset to Pending after eviction. Previously: " + check.state;
    if (check.state == "Retry") ++check.retries;
    check.state = "Pending";
    check.since = now_;
    checks_changed_ = true;
  }
  changed_ = true;
}

void WorkloadStatus::shrink() {
  std::erase_if(conditions_, [](const Condition& c) {
    return c.type != "Evicted" && c.type != "Finished" && c.type != "QuotaReserved" &&
           c.type != "Requeued";
  });
  for (Condition& c : conditions_) c.message.clear();
  changed_ = true;
}

void WorkloadStatus::want_checks(const std::vector<std::string>& checks) {
  for (const std::string& name : checks) {
    const bool there = std::any_of(checks_.begin(), checks_.end(),
                                   [&](const Check& check) { return check.name == name; });
    if (there) continue;
    checks_.push_back({name, "Pending", "", now_});
    checks_changed_ = changed_ = true;
  }
}

bool WorkloadStatus::checks_ready() const {
  return std::all_of(checks_.begin(), checks_.end(),
                     [](const Check& check) { return check.state == "Ready"; });
}

void WorkloadStatus::requeue_at(int count, std::int64_t at_ns) {
  requeue_ =
      fmt::format(R"({{"count":{},"requeueAt":"{}"}})", count, text::format_whole_second(at_ns));
  changed_ = true;
}

std::string WorkloadStatus::patch() const {
  // Who lets in must have seen what he lets in. Who takes back takes back: an author who writes
  // onto his Workload without end shall not be able to keep its quota by that.
  const bool gives = !admission_.empty() && admission_ != "null";
  const bool pinned = gives || !takes_;
  JsonWriter out;
  out.object([&] {
    out.object("metadata", [&] {
      if (!uid_.empty()) out.field("uid", uid_);
      if (pinned) out.field("resourceVersion", version_);
    });
    out.object("status", [&] {
      out.array("conditions", [&] {
        for (const Condition& c : conditions_) {
          out.object([&] {
            out.field("type", c.type);
            out.field("status", c.status);
            out.field("reason", c.reason);
            out.field("message", c.message);
            out.field("lastTransitionTime", c.since.empty() ? now_ : c.since);
            if (c.generation > 0) out.field("observedGeneration", c.generation);
          });
        }
      });
      if (!admission_.empty()) {
        out.key("admission");
        out.raw(admission_);
      }
      if (!requeue_.empty()) {
        out.key("requeueState");
        out.raw(requeue_);
      }
      if (nodes_changed_) {
        out.array("unhealthyNodes", [&] {
          for (const std::string& node : unhealthy_) {
            out.object([&] { out.field("name", node); });
          }
        });
      }
      if (checks_changed_) {
        out.array("admissionChecks", [&] {
          for (const Check& c : checks_) {
            out.object([&] {
              out.field("name", c.name);
              out.field("state", c.state);
              out.field("message", c.message);
              out.field("lastTransitionTime", c.since.empty() ? now_ : c.since);
              if (c.retries > 0) out.field("retryCount", c.retries);
            });
          }
        });
      }
    });
  });
  return std::move(out).take();
}

}  // namespace berth::kinds
