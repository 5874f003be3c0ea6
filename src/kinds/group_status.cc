#include "kinds/group_status.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kinds/readers.h"
#include "kinds/resources.h"
#include "text/json.h"
#include "text/json_writer.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::kinds {

namespace {

std::string_view volcano_phase(const GroupCounts& c) {
  if (c.bound >= c.min_member && c.bound > 0) return "Running";
  return c.bound > 0 ? "Unknown" : c.pods >= c.min_member ? "Inqueue" : "Pending";
}
std::string_view coscheduling_phase(const GroupCounts& c) {
  if (c.running >= c.min_member && c.running > 0) return "Running";
  if (c.bound >= c.min_member && c.bound > 0) return "Scheduled";
  return c.bound > 0 ? "Scheduling" : c.pods >= c.min_member ? "PreScheduling" : "Pending";
}

constexpr std::string_view kInitiallyScheduled = "PodGroupInitiallyScheduled";

// Its other conditions stay: a merge patch replaces the list.
std::string upstream_patch(const text::Value& group, const GroupCounts& counts,
                           std::int64_t now_ns) {
  if (counts.bound == 0 || counts.bound < counts.min_member) return {};
  const text::Value* old = find(group, "status.conditions");
  if (old != nullptr && find_type(*old, kInitiallyScheduled) != nullptr) return {};
  text::JsonWriter out;
  out.object([&] {
    out.object("status", [&] {
      out.array("conditions", [&] {
        if (old != nullptr) {
          for (const text::Value& condition : old->items()) {
            out.value(condition);
          }
        }
        out.object([&] {
          out.field("type", kInitiallyScheduled);
          out.field("status", "True");
          out.field("reason", "Scheduled");
          out.field("message", std::to_string(counts.bound) + " pods are bound, " +
                                   std::to_string(counts.min_member) + " are needed");
          out.field("lastTransitionTime", text::format_whole_second(now_ns));
        });
      });
    });
  });
  return std::move(out).take();
}

// ---- KAI ----

constexpr std::string_view kUnschedulable = "UnschedulableOnNodePool";

void put_amounts(text::JsonWriter& out, std::string_view key, const model::Amounts& amounts) {
  out.object(key, [&] {
    for (const auto& [resource, amount] : amounts)
      out.field(resource, amount_text(resource, amount));
  });
}

bool same_amounts(const text::Value* was, const model::Amounts& amounts) {
  if (was == nullptr) return amounts.empty();
  if (was->size() != amounts.size()) return false;
  for (const auto& [resource, amount] : amounts) {
    const text::Value* old = was->find(resource);
    if (old == nullptr || old->string() != amount_text(resource, amount)) return false;
  }
  return true;
}

// KAI's own reasons, where one means the same.
std::string_view kai_reason(std::string_view reason) {
  if (reason == "ExceedsMaxQuota") return "OverLimit";
  if (reason == "Misconfigured") return "QueueDoesNotExist";
  return reason;
}

const text::Value* unschedulable_in(const text::Value* conditions) {
  if (conditions == nullptr) return nullptr;
  for (const text::Value& condition : conditions->items()) {
    const text::Value* type = condition.find("type");
    if (type != nullptr && type->string() == kUnschedulable) return &condition;
  }
  return nullptr;
}

// Conditions of other types stay. The number of a condition grows, as KAI's does.
void put_unschedulable(text::JsonWriter& out, const text::Value* conditions,
                       const GroupCounts& counts, std::int64_t now_ns) {
  std::int64_t last = -1;
  out.array("schedulingConditions", [&] {
    if (conditions != nullptr) {
      for (const text::Value& condition : conditions->items()) {
        const text::Value* number = condition.find("transitionID");
        std::int64_t id = 0;
        if (number != nullptr && parse_int(number->string(), id)) last = std::max(last, id);
        const text::Value* type = condition.find("type");
        if (type == nullptr || type->string() != kUnschedulable) out.value(condition);
      }
    }
    if (!counts.reason.empty()) {
      out.object([&] {
        out.field("type", kUnschedulable);
        out.field("nodePool", "default");
        out.field("status", "True");
        out.field("reason", "Unschedulable");
        out.field("message", counts.message);
        out.array("reasons", [&] {
          out.object([&] {
            out.field("reason", kai_reason(counts.reason));
            out.field("message", counts.message);
          });
        });
        out.field("transitionID", std::to_string(last + 1));
        out.field("lastTransitionTime", text::format_whole_second(now_ns));
      });
    }
  });
}

std::string kai_patch(const text::Value& group, const GroupCounts& counts, std::int64_t now_ns) {
  const std::pair<std::string_view, int> numbers[] = {
      {"running", counts.running},
      {"pending", counts.pods - counts.running - counts.succeeded - counts.failed},
      {"succeeded", counts.succeeded},
      {"failed", counts.failed}};
  const text::Value* conditions = find(group, "status.schedulingConditions");
  const text::Value* told = unschedulable_in(conditions);
  std::string_view why;
  if (told != nullptr) {
    const text::Value* reasons = told->find("reasons");
    const text::Value* first =
        reasons == nullptr || reasons->size() == 0 ? nullptr : reasons->items()[0].find("reason");
    why = first == nullptr ? "Unschedulable" : first->string();
  }
  const bool same_reason = why == kai_reason(counts.reason);
  bool same = same_reason;
  for (const auto& [key, number] : numbers) {
    const text::Value* was = at(group, "status").find(key);
    same = same && (was == nullptr ? 0 : was->as_int64().value_or(0)) == number;
  }
  const text::Value* held = find(group, "status.resourcesStatus");
  for (const auto& [key, amounts] :
       {std::pair{"requested", &counts.requested}, {"allocated", &counts.allocated}}) {
    same = same && same_amounts(held == nullptr ? nullptr : held->find(key), *amounts);
  }
  if (same) return {};
  text::JsonWriter out;
  out.object([&] {
    out.object("status", [&] {
      for (const auto& [key, number] : numbers) out.field(key, number);
      if (!same_reason) put_unschedulable(out, conditions, counts, now_ns);
      out.object("resourcesStatus", [&] {
        put_amounts(out, "requested", counts.requested);
        put_amounts(out, "allocated", counts.allocated);
      });
    });
  });
  return std::move(out).take();
}

}  // namespace

std::string group_status_patch(std::string_view api_group, const text::Value& group,
                               const GroupCounts& counts, std::int64_t now_ns) {
  if (api_group == "scheduling.k8s.io") return upstream_patch(group, counts, now_ns);
  if (api_group == "scheduling.run.ai") return kai_patch(group, counts, now_ns);
  const bool volcano = api_group == "scheduling.volcano.sh";
  if (!volcano && api_group != "scheduling.x-k8s.io") return {};
  const std::string_view phase = volcano ? volcano_phase(counts) : coscheduling_phase(counts);
  std::vector<std::pair<std::string_view, int>> numbers = {{"running", counts.running}};
  if (!volcano) numbers.emplace_back("scheduled", counts.bound);
  const text::Value* status = group.find("status");
  const auto has = [&](std::string_view key) {
    return status == nullptr ? nullptr : status->find(key);
  };
  const text::Value* old = has("phase");
  bool same = old != nullptr && old->string() == phase;
  for (const auto& [key, number] : numbers) {
    const text::Value* was = has(key);
    same = same && (was == nullptr ? 0 : was->as_int64().value_or(0)) == number;
  }
  if (same) return {};
  text::JsonWriter out;
  out.object([&] {
    out.object("status", [&] {
      out.field("phase", phase);
      for (const auto& [key, number] : numbers) out.field(key, number);
    });
  });
  return std::move(out).take();
}

}  // namespace berth::kinds
