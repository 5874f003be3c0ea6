#include "control/group_status.h"

#include <utility>
#include <vector>

#include "objects/readers.h"
#include "text/json_writer.h"
#include "text/rfc3339.h"

namespace berth::control {

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
  const text::Value* old = objects::find_in(group, {"status", "conditions"});
  text::JsonWriter out;
  out.begin_object();
  out.key("status");
  out.begin_object();
  out.key("conditions");
  out.begin_array();
  if (old != nullptr) {
    for (const text::Value& condition : old->items()) {
      const text::Value* type = condition.find("type");
      if (type != nullptr && type->string() == kInitiallyScheduled) return {};
      out.value(condition);
    }
  }
  out.begin_object();
  out.field("type", kInitiallyScheduled);
  out.field("status", "True");
  out.field("reason", "Scheduled");
  out.field("message", std::to_string(counts.bound) + " pods are bound, " +
                           std::to_string(counts.min_member) + " are needed");
  out.field("lastTransitionTime", text::format_rfc3339(now_ns / 1'000'000'000 * 1'000'000'000));
  out.end_object();
  out.end_array();
  out.end_object();
  out.end_object();
  return std::move(out).take();
}

}  // namespace

std::string group_status_patch(std::string_view api_group, const text::Value& group,
                               const GroupCounts& counts, std::int64_t now_ns) {
  if (api_group == "scheduling.k8s.io") return upstream_patch(group, counts, now_ns);
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
  out.begin_object();
  out.key("status");
  out.begin_object();
  out.field("phase", phase);
  for (const auto& [key, number] : numbers) out.field(key, number);
  out.end_object();
  out.end_object();
  return std::move(out).take();
}

}  // namespace berth::control
