#include "embedded/api/autoscaler_forms.h"

#include <string>
#include <vector>

#include "text/json.h"
#include "text/path.h"

namespace berth::sim::api {

using text::at;
using text::Editor;
using text::Member;
using text::text_at;
using text::Value;

namespace {

constexpr std::string_view kMetrics = "autoscaling.alpha.kubernetes.io/metrics";
constexpr std::string_view kCurrentMetrics = "autoscaling.alpha.kubernetes.io/current-metrics";
constexpr std::string_view kConditions = "autoscaling.alpha.kubernetes.io/conditions";
constexpr std::string_view kBehavior = "autoscaling.alpha.kubernetes.io/behavior";

// Where a field of a metric stands in v1, and where in v2. One that Go always writes is "0" in v1
// when it is not set.
struct Moved {
  const char* source;  // of the metric: "pods"
  const char* v1;
  text::Path v2;
  bool always = false;
};
constexpr Moved kTargets[] = {
    {"object", "target", "describedObject"},
    {"object", "metricName", "metric.name"},
    {"object", "targetValue", "target.value", true},
    {"object", "selector", "metric.selector"},
    {"object", "averageValue", "target.averageValue"},
    {"pods", "metricName", "metric.name"},
    {"pods", "targetAverageValue", "target.averageValue", true},
    {"pods", "selector", "metric.selector"},
    {"resource", "name", "name"},
    {"resource", "targetAverageUtilization", "target.averageUtilization"},
    {"resource", "targetAverageValue", "target.averageValue"},
    {"containerResource", "name", "name"},
    {"containerResource", "targetAverageUtilization", "target.averageUtilization"},
    {"containerResource", "targetAverageValue", "target.averageValue"},
    {"containerResource", "container", "container"},
    {"external", "metricName", "metric.name"},
    {"external", "metricSelector", "metric.selector"},
    {"external", "targetValue", "target.value"},
    {"external", "targetAverageValue", "target.averageValue"},
};
constexpr Moved kSeen[] = {
    {"object", "target", "describedObject"},
    {"object", "metricName", "metric.name"},
    {"object", "currentValue", "current.value", true},
    {"object", "selector", "metric.selector"},
    {"object", "averageValue", "current.averageValue"},
    {"pods", "metricName", "metric.name"},
    {"pods", "currentAverageValue", "current.averageValue", true},
    {"pods", "selector", "metric.selector"},
    {"resource", "name", "name"},
    {"resource", "currentAverageUtilization", "current.averageUtilization"},
    {"resource", "currentAverageValue", "current.averageValue", true},
    {"containerResource", "name", "name"},
    {"containerResource", "currentAverageUtilization", "current.averageUtilization"},
    {"containerResource", "currentAverageValue", "current.averageValue", true},
    {"containerResource", "container", "container"},
    {"external", "metricName", "metric.name"},
    {"external", "metricSelector", "metric.selector"},
    {"external", "currentValue", "current.value", true},
    {"external", "currentAverageValue", "current.averageValue"},
};
using Moves = std::span<const Moved>;

constexpr const char* kSources[] = {"object", "pods", "resource", "containerResource", "external"};

std::string_view target_type(std::string_view source, const Value& target) {
  if (source == "pods") return "AverageValue";
  if (source == "object") return target.find("averageValue") == nullptr ? "Value" : "AverageValue";
  if (source == "external") return target.find("value") == nullptr ? "AverageValue" : "Value";
  return target.find("averageUtilization") == nullptr ? "AverageValue" : "Utilization";
}

Value metric_to_v1(Editor& edit, Moves moves, const Value& metric) {
  Value out = edit.object({{"type", at(metric, "type")}});
  for (const char* source : kSources) {
    const Value* from = metric.find(source);
    if (from == nullptr) continue;
    Value to = edit.object({});
    for (const Moved& move : moves) {
      if (std::string_view(move.source) != source) continue;
      const Value* field = text::find(*from, move.v2);
      if (field == nullptr && !move.always) continue;
      to = edit.with(to, move.v1, field == nullptr ? edit.string("0") : *field);
    }
    out = edit.with(out, source, to);
  }
  return out;
}

Value metric_to_v2(Editor& edit, Moves moves, const Value& metric) {
  Value out = edit.object({{"type", at(metric, "type")}});
  for (const char* source : kSources) {
    const Value* from = metric.find(source);
    if (from == nullptr) continue;
    Value to = edit.object({});
    for (const Moved& move : moves) {
      if (std::string_view(move.source) != source) continue;
      const Value* field = from->find(move.v1);
      // What v1 cannot leave out beside an average.
      const bool filler = move.always && std::string_view(source) == "object" && field &&
                          field->string() == "0" && from->find("averageValue") != nullptr;
      if (field != nullptr && !filler) to = edit.with_at(to, move.v2, *field);
    }
    if (moves.data() == kTargets) {
      to = edit.with_at(to, "target.type", edit.string(target_type(source, at(to, "target"))));
    }
    out = edit.with(out, source, to);
  }
  return out;
}

bool is_cpu(const Value& metric, std::string_view what) {
  return text_at(metric, "type") == "Resource" && text_at(metric, "resource.name") == "cpu" &&
         at(metric, "resource")[what].find("averageUtilization") != nullptr;
}

// Behaviour stands in its annotation under Go's names: {"ScaleUp": {"SelectPolicy": "Max"}}.
Value with_case(Editor& edit, const Value& value, bool upper) {
  const char from = upper ? 'a' : 'A';
  if (value.is_object()) {
    std::vector<Member> members;
    for (const Member& member : value.members()) {
      if (member.value.is_null()) continue;
      std::string key(member.key);
      if (!key.empty() && key[0] >= from && key[0] < from + 26) key[0] ^= ' ';
      members.push_back({edit.copy(key), with_case(edit, member.value, upper)});
    }
    return edit.object(members);
  }
  if (!value.is_array()) return value;
  std::vector<Value> items;
  for (const Value& item : value.items()) items.push_back(with_case(edit, item, upper));
  return edit.array(items);
}

// Without the annotations that conversion writes; no map where there are no others.
Value bare(Editor& edit, Value object) {
  const Value* annotations = text::find(object, "metadata.annotations");
  if (annotations == nullptr) return object;
  std::vector<Member> kept;
  for (const Member& member : annotations->members()) {
    if (!member.key.starts_with("autoscaling.alpha.kubernetes.io/")) kept.push_back(member);
  }
  if (kept.size() == annotations->size()) return object;
  if (kept.empty()) return edit.without_at(object, "metadata.annotations");
  return edit.with_at(object, "metadata.annotations", edit.object(kept));
}

Value noted(Editor& edit, const Value& object, std::string_view name, const Value& value) {
  return edit.with_at(object, "metadata.annotations", name, edit.string(text::to_json(value)));
}

// What the annotation holds; null where it is not there or cannot be read.
Value read_note(Editor& edit, const Value& object, std::string_view name) {
  const Value* note = at(object, "metadata.annotations").find(name);
  if (note == nullptr) return {};
  const auto read = edit.parse(note->string());
  return read.ok() ? read.value() : Value();
}

Value converted(Editor& edit, Moves moves, const Value& metrics, bool to_v1) {
  std::vector<Value> out;
  for (const Value& metric : metrics.items()) {
    out.push_back(to_v1 ? metric_to_v1(edit, moves, metric) : metric_to_v2(edit, moves, metric));
  }
  return edit.array(out);
}

Value cpu_metric(Editor& edit, std::string_view what, const Value& percent) {
  Value resource = edit.object({{"name", edit.string("cpu")}});
  Value amount = edit.object({{"averageUtilization", percent}});
  if (what == "target") amount = edit.with(amount, "type", edit.string("Utilization"));
  resource = edit.with(resource, what, amount);
  return edit.object({{"type", edit.string("Resource")}, {"resource", resource}});
}

}  // namespace

Value autoscaler_to_v1(Editor& edit, const Value& autoscaler) {
  Value out = bare(edit, autoscaler);
  out = edit.with(out, "apiVersion", edit.string("autoscaling/v1"));
  const Value& metrics = at(autoscaler, "spec.metrics");
  std::vector<Value> others;
  const Value* percent = nullptr;
  for (const Value& metric : metrics.items()) {
    if (!is_cpu(metric, "target")) {
      others.push_back(metric_to_v1(edit, kTargets, metric));
    } else if (percent == nullptr) {
      percent = text::find(metric, "resource.target.averageUtilization");
    }
  }
  out = edit.without_at(edit.without_at(out, "spec.metrics"), "spec.behavior");
  if (percent != nullptr) {
    out = edit.with_at(out, "spec.targetCPUUtilizationPercentage", *percent);
  }
  if (!others.empty()) out = noted(edit, out, kMetrics, edit.array(others));
  const Value& seen = at(autoscaler, "status.currentMetrics");
  for (const Value& metric : seen.items()) {
    if (!is_cpu(metric, "current")) continue;
    out = edit.with_at(out, "status.currentCPUUtilizationPercentage",
                       at(metric, "resource.current.averageUtilization"));
  }
  if (seen.size() > 0) out = noted(edit, out, kCurrentMetrics, converted(edit, kSeen, seen, true));
  const Value& behavior = at(autoscaler, "spec.behavior");
  if (behavior.is_object()) out = noted(edit, out, kBehavior, with_case(edit, behavior, true));
  const Value& conditions = at(autoscaler, "status.conditions");
  if (conditions.size() > 0) out = noted(edit, out, kConditions, conditions);
  if (at(out, "status").is_object()) {
    out = edit.without_at(edit.without_at(out, "status.currentMetrics"), "status.conditions");
    if (text::find(out, "status.currentReplicas") == nullptr) {
      out = edit.with_at(out, "status.currentReplicas", edit.number(0));
    }
  }
  return out;
}

Value autoscaler_to_v2(Editor& edit, const Value& autoscaler) {
  Value out = bare(edit, autoscaler);
  out = edit.with(out, "apiVersion", edit.string("autoscaling/v2"));
  std::vector<Value> metrics;
  const Value others = read_note(edit, autoscaler, kMetrics);
  for (const Value& metric : others.items())
    metrics.push_back(metric_to_v2(edit, kTargets, metric));
  const Value* percent = text::find(autoscaler, "spec.targetCPUUtilizationPercentage");
  if (percent != nullptr) metrics.push_back(cpu_metric(edit, "target", *percent));
  if (metrics.empty()) metrics.push_back(cpu_metric(edit, "target", edit.number(80)));
  out = edit.without_at(out, "spec.targetCPUUtilizationPercentage");
  out = edit.with_at(out, "spec.metrics", edit.array(metrics));
  const Value behavior = read_note(edit, autoscaler, kBehavior);
  if (behavior.size() > 0)
    out = edit.with_at(out, "spec.behavior", with_case(edit, behavior, false));
  if (!at(autoscaler, "status").is_object()) return out;

  const Value seen = read_note(edit, autoscaler, kCurrentMetrics);
  const Value* now = text::find(autoscaler, "status.currentCPUUtilizationPercentage");
  Value current;
  if (seen.is_array()) {
    current = converted(edit, kSeen, seen, false);
  } else if (now != nullptr) {
    const Value one[] = {cpu_metric(edit, "current", *now)};
    current = edit.array(one);
  }
  out = edit.without_at(out, "status.currentCPUUtilizationPercentage");
  out = edit.with_at(out, "status.currentMetrics", current);
  const Value conditions = read_note(edit, autoscaler, kConditions);
  if (conditions.size() > 0) out = edit.with_at(out, "status.conditions", conditions);
  return out;
}

}  // namespace berth::sim::api
