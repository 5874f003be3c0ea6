// What a new pod names and the API server looks up: its RuntimeClass, its PriorityClass, its
// ServiceAccount. What they add to the pod, and the words of the refusals.
//
// Like everything here it is told about objects and looks nothing up itself. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/value.h"

namespace berth::rules {

// ---- RuntimeClass ----

// What a class adds to a pod with that spec. Values point into the class.
struct RuntimeAdds {
  std::vector<std::pair<std::string_view, std::string_view>> labels;  // to its nodeSelector
  std::vector<const text::Value*> tolerations;
  const text::Value* overhead = nullptr;  // null: it has none, or the pod has one
  // A label of which the pod wants another value: key, the class's, the pod's.
  struct Clash {
    std::string_view key, of_class, of_pod;
  };
  std::optional<Clash> clash;
  bool other_overhead = false;  // the pod brings one that is not the class's
};
RuntimeAdds added_by(const text::Value& runtime_class, const text::Value& spec);

std::string no_runtime_class(std::string_view name);
std::string words_of(const RuntimeAdds::Clash& clash);
// runtime_class: null where the pod names none. "" when the pod's overhead is as it must be.
std::string wrong_overhead(const text::Value& runtime_class, const text::Value& spec);

// ---- PriorityClass ----

struct Priority {
  std::string name;  // of the class; "" where there is none
  std::int64_t value = 0;
  std::string preemption = "PreemptLowerPriority";
};
Priority read_priority_class(const text::Value& priority_class);
std::string no_priority_class(std::string_view name);
// A pod that says itself what only its class may; "" when it does not.
std::string wrong_priority(const Priority& priority, const text::Value& spec);
std::string second_default(std::string_view first);  // of a class that would be the default too

// ---- ServiceAccount ----

inline constexpr std::string_view kDefaultAccount = "default";
std::string_view account_of(const text::Value& spec);
std::string no_account(std::string_view ns, std::string_view name);

}  // namespace berth::rules
