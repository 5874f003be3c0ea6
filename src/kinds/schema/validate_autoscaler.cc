// Rules of HorizontalPodAutoscalers, in either version.
#include <algorithm>

#include "kinds/schema/rules.h"
#include "text/path.h"
#include "text/quantity.h"

namespace berth::sim {

using text::Value;

namespace {

constexpr std::string_view kNoGroup = "apiVersion must specify API group";

struct SourceRow {
  std::string_view type;  // in the order in which they are said to be supported
  std::string_view field;
};
constexpr SourceRow kSources[] = {{"ContainerResource", "containerResource"},
                                  {"External", "external"},
                                  {"Object", "object"},
                                  {"Pods", "pods"},
                                  {"Resource", "resource"}};

void rules_of_reference(const Value& ref, bool group, Path& path, Causes& out) {
  for (const std::string_view field : {"kind", "name"}) {
    const std::string_view text = ref[field].string();
    if (text.empty()) {
      out.add(required_value(path.with(field)));
    } else if (const std::string wrong = check_path_segment(text); !wrong.empty()) {
      out.add(invalid_text(path.with(field), text, wrong));
    }
  }
  const std::string_view version = text_at(ref, "apiVersion");
  const auto slashes = std::count(version.begin(), version.end(), '/');
  if (slashes > 1) {
    out.add(invalid_text(path.with("apiVersion"), version,
                         "unexpected GroupVersion string: " + std::string(version)));
  } else if (group && (slashes == 0 || version.starts_with('/'))) {
    out.add(invalid_text(path.with("apiVersion"), version, kNoGroup));
  }
}

void rules_of_target(const Value& target, bool utilization, Path& path, Causes& out) {
  const Path::Mark mark = path.mark();
  path.child("target");
  const std::string_view type = text_at(target, "type");
  if (type.empty()) out.add(required_value(path.with("type"), "must specify a metric target type"));
  if (type != "Utilization" && type != "Value" && type != "AverageValue") {
    out.add(invalid_text(path.with("type"), type,
                         "must be either Utilization, Value, or AverageValue"));
  }
  for (const std::string_view field : {"value", "averageValue"}) {
    const auto amount = text::parse_quantity(target[field].string());
    if (target.find(field) == nullptr || !amount.ok()) continue;
    if (*amount <= text::Quantity()) {
      out.add(invalid_value(path.with(field), target[field], "must be positive"));
    }
  }
  const auto percent = target["averageUtilization"].as_int64();
  if (percent && *percent < 1) {
    out.add(invalid_value(path.with("averageUtilization"), target["averageUtilization"],
                          "must be greater than 0"));
  }
  const bool average = target.find("averageValue") != nullptr;
  if (utilization && !average && !percent) {
    out.add(required_value(path.with("averageUtilization"),
                           "must set either a target raw value or a target utilization"));
  } else if (utilization && average && percent) {
    out.add(forbidden_value(path.with("averageValue"),
                            "may not set both a target raw value and a target utilization"));
  } else if (!utilization && !average && target.find("value") == nullptr) {
    out.add(required_value(path.with("averageValue"),
                           "must set either a target value or averageValue"));
  }
  path.back(mark);
}

void rules_of_source(std::string_view field, const Value& source, Path& path, Causes& out) {
  const Path::Mark mark = path.mark();
  path.child(field);
  const bool of_resource = field == "resource" || field == "containerResource";
  if (of_resource && text_at(source, "name").empty()) {
    out.add(required_value(path.with("name"), "must specify a resource name"));
  } else if (!of_resource && text_at(source, "metric.name").empty()) {
    out.add(required_value(path.with("metric.name"), "must specify a metric name"));
  }
  if (field == "containerResource" && text_at(source, "container").empty()) {
    out.add(required_value(path.with("container"), "must specify a container"));
  }
  if (field == "object") {
    at_field(source, "describedObject", path,
             [&](const Value& ref) { rules_of_reference(ref, false, path, out); });
  }
  rules_of_target(at(source, "target"), of_resource, path, out);
  path.back(mark);
}

void rules_of_metric(const Value& metric, Path& path, Causes& out) {
  const std::string_view type = text_at(metric, "type");
  if (type.empty()) out.add(required_value(path.with("type"), "must specify a metric source type"));
  std::string_view wanted;
  std::vector<std::string> known;
  for (const SourceRow& row : kSources) {
    if (row.type == type) wanted = row.field;
    known.emplace_back(row.type);
  }
  if (wanted.empty()) out.add(not_supported(path.with("type"), at(metric, "type"), known));
  if (!wanted.empty() && metric.find(wanted) == nullptr) {
    out.add(
        required_value(path.with(wanted), "must populate information for the given metric source"));
  }
  for (const SourceRow& row : kSources) {
    const Value* source = metric.find(row.field);
    if (source == nullptr) continue;
    if (row.field == wanted) {
      rules_of_source(row.field, *source, path, out);
    } else {
      out.add(forbidden_value(path.with(row.field), "must populate the given metric source only"));
    }
  }
}

}  // namespace

void rules_of_autoscaler(const Value& spec, Path& path, Causes& out) {
  const auto least = at(spec, "minReplicas").as_int64();
  const std::int64_t most = int_at(spec, "maxReplicas", 0);
  if (least && *least < 0) {
    out.add(invalid_value(path.with("minReplicas"), at(spec, "minReplicas"),
                          "must be greater than or equal to 0"));
  }
  if (most < 0) {
    out.add(invalid_value(path.with("maxReplicas"), at(spec, "maxReplicas"),
                          "must be greater than or equal to 1"));
  }
  if (least && most < *least) {
    out.add(invalid_value(path.with("maxReplicas"), at(spec, "maxReplicas"),
                          "must be greater than or equal to `minReplicas`"));
  }
  if (most == 0) out.add(required_value(path.with("maxReplicas")));
  const Value& ref = at(spec, "scaleTargetRef");
  at_field(spec, "scaleTargetRef", path, [&](const Value& target) {
    // The one kind of the core group that can be scaled may leave its group out.
    rules_of_reference(target, text_at(ref, "kind") != "ReplicationController", path, out);
  });
  bool outside = false;
  each_item(spec, "metrics", path, [&](const Value& metric) {
    const std::string_view type = text_at(metric, "type");
    outside = outside || type == "Object" || type == "External";
    rules_of_metric(metric, path, out);
  });
  if (least == 0 && !outside) {
    out.add(forbidden_value(path.with("metrics"),
                            "must specify at least one Object or External metric to support "
                            "scaling to zero replicas"));
  }
}

}  // namespace berth::sim
