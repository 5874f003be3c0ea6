#include "rules/pod_classes.h"

#include <fmt/format.h>

#include <algorithm>

#include "rules/amounts.h"
#include "text/path.h"

namespace berth::rules {

using text::Value;

RuntimeAdds added_by(const Value& runtime_class, const Value& spec) {
  RuntimeAdds out;
  for (const text::Member& label : at(runtime_class, "scheduling.nodeSelector").members()) {
    const Value* own = spec["nodeSelector"].find(label.key);
    if (own == nullptr) {
      out.labels.emplace_back(label.key, label.value.string());
    } else if (own->string() != label.value.string() && !out.clash) {
      out.clash = {label.key, label.value.string(), own->string()};
    }
  }
  const auto own = spec["tolerations"].items();
  for (const Value& toleration : at(runtime_class, "scheduling.tolerations").items()) {
    const bool there = std::any_of(
        own.begin(), own.end(), [&](const Value& each) { return text::equal(each, toleration); });
    if (!there) out.tolerations.push_back(&toleration);
  }
  const Value* fixed = find(runtime_class, "overhead.podFixed");
  if (fixed == nullptr) return out;
  if (spec["overhead"].size() == 0) {
    out.overhead = fixed;
  } else {
    out.other_overhead = read_sums(spec["overhead"]) != read_sums(*fixed);
  }
  return out;
}

std::string no_runtime_class(std::string_view name) {
  return fmt::format("pod rejected: RuntimeClass \"{}\" not found", name);
}

std::string words_of(const RuntimeAdds::Clash& clash) {
  return fmt::format(
      "conflict: runtimeClass.scheduling.nodeSelector[{0}] = {1}; pod.spec.nodeSelector[{0}] = {2}",
      clash.key, clash.of_class, clash.of_pod);
}

std::string wrong_overhead(const Value& runtime_class, const Value& spec) {
  const Value* fixed = find(runtime_class, "overhead.podFixed");
  const Value* own = spec.find("overhead");
  if (fixed == nullptr) {
    return own == nullptr || own->is_null() ? ""
                                            : "pod rejected: Pod Overhead set without "
                                              "corresponding RuntimeClass defined Overhead";
  }
  return own != nullptr && read_sums(*own) == read_sums(*fixed)
             ? ""
             : "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
}

Priority read_priority_class(const Value& priority_class) {
  Priority out;
  out.name = text_at(priority_class, "metadata.name");
  out.value = int_at(priority_class, "value");
  const std::string_view preemption = text_at(priority_class, "preemptionPolicy");
  if (!preemption.empty()) out.preemption = preemption;
  return out;
}

std::string no_priority_class(std::string_view name) {
  return fmt::format("no PriorityClass with name {} was found", name);
}

std::string wrong_priority(const Priority& priority, const Value& spec) {
  const Value* given = find(spec, "priority");
  if (given != nullptr && given->as_int64() != priority.value) {
    return fmt::format(
        "the integer value of priority ({}) must not be provided in pod spec; priority admission "
        "controller computed {} from the given PriorityClass name",
        given->number_text(), priority.value);
  }
  const std::string_view preemption = text_at(spec, "preemptionPolicy");
  if (preemption.empty() || preemption == priority.preemption) return {};
  return fmt::format(
      "the string value of PreemptionPolicy ({}) must not be provided in pod spec; priority "
      "admission controller computed {} from the given PriorityClass name",
      preemption, priority.preemption);
}

std::string second_default(std::string_view first) {
  return fmt::format("PriorityClass {} is already marked as default. Only one default can exist",
                     first);
}

std::string_view account_of(const Value& spec) {
  const std::string_view name = text_at(spec, "serviceAccountName");
  return name.empty() ? text_at(spec, "serviceAccount") : name;
}

std::string no_account(std::string_view ns, std::string_view name) {
  return fmt::format("error looking up service account {0}/{1}: serviceaccount \"{1}\" not found",
                     ns, name);
}

}  // namespace berth::rules
