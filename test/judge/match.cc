#include "judge/match.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace berth::judging {

using model::NodeSpec;
using model::PodSpec;
using model::TaintEffect;

namespace {

std::optional<std::int64_t> integer(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

bool compares(const text::Requirement& requirement, const std::string& value) {
  if (requirement.values.size() != 1) return false;
  auto left = integer(value);
  auto right = integer(requirement.values.front());
  if (!left || !right) return false;
  return requirement.op == text::Operator::kGt ? *left > *right : *left < *right;
}

// value is null when the key is not there.
bool holds(const text::Requirement& requirement, const std::string* value) {
  auto among = [&] {
    return std::find(requirement.values.begin(), requirement.values.end(), *value) !=
           requirement.values.end();
  };
  switch (requirement.op) {
    case text::Operator::kIn:
      return value != nullptr && among();
    case text::Operator::kNotIn:
      return value == nullptr || !among();
    case text::Operator::kExists:
      return value != nullptr;
    case text::Operator::kDoesNotExist:
      return value == nullptr;
    case text::Operator::kGt:
    case text::Operator::kLt:
      return value != nullptr && compares(requirement, *value);
  }
  return false;
}

}  // namespace

const std::string* find_label(const model::Labels& labels, std::string_view key) {
  auto found = labels.find(key);
  return found == labels.end() ? nullptr : &found->second;
}

std::string full_name(const PodSpec& pod) { return pod.ns + "/" + pod.name; }

bool matches(const text::Selector& selector, const model::Labels& labels) {
  return std::all_of(selector.begin(), selector.end(), [&](const text::Requirement& requirement) {
    return holds(requirement, find_label(labels, requirement.key));
  });
}

bool matches(const model::NodeSelectorTerm& term, const NodeSpec& node) {
  if (term.labels.empty() && term.fields.empty()) return false;
  if (!matches(term.labels, node.labels)) return false;
  return std::all_of(term.fields.begin(), term.fields.end(), [&](const text::Requirement& field) {
    return holds(field, field.key == "metadata.name" ? &node.name : nullptr);
  });
}

bool matches(const model::PodSet& set, const PodSpec& pod) {
  if (set.match_nothing) return false;
  bool in_namespace = set.all_namespaces || std::find(set.namespaces.begin(), set.namespaces.end(),
                                                      pod.ns) != set.namespaces.end();
  return in_namespace && matches(set.selector, pod.labels);
}

bool selected(const PodSpec& pod, const NodeSpec& node) {
  return std::all_of(pod.node_selector.begin(), pod.node_selector.end(), [&](const auto& wanted) {
    const std::string* value = find_label(node.labels, wanted.first);
    return value != nullptr && *value == wanted.second;
  });
}

bool affine(const PodSpec& pod, const NodeSpec& node) {
  return pod.required_nodes.empty() ||
         std::any_of(pod.required_nodes.begin(), pod.required_nodes.end(),
                     [&](const auto& term) { return matches(term, node); });
}

bool tolerated(const PodSpec& pod, const model::Taint& taint) {
  return std::any_of(
      pod.tolerations.begin(), pod.tolerations.end(), [&](const model::Toleration& toleration) {
        if (toleration.effect && *toleration.effect != taint.effect) return false;
        if (!toleration.key.empty() && toleration.key != taint.key) return false;
        return toleration.op == model::Toleration::Op::kExists || toleration.value == taint.value;
      });
}

bool taints_tolerated(const PodSpec& pod, const NodeSpec& node, std::string_view but) {
  return std::all_of(node.taints.begin(), node.taints.end(), [&](const model::Taint& taint) {
    return taint.effect == TaintEffect::kPreferNoSchedule ||
           (!but.empty() && taint.key.starts_with(but)) || tolerated(pod, taint);
  });
}

}  // namespace berth::judging
