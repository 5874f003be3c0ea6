#include "explain/namespace_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "explain/words.h"
#include "text/path.h"
#include "text/quantity.h"

namespace berth::explain {

using model::Amounts;
using model::Reason;
using text::Value;

namespace {

std::int64_t sum_of(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? std::numeric_limits<std::int64_t>::max() : out;
}

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<std::int64_t>::max() : out;
}

// cpu and memory make the class of service: a pod that asks for GPUs alone is BestEffort.
bool is_best_effort(const objects::RawPodSpec& pod) {
  const auto states = [](const objects::Resources& resources) {
    for (const Amounts* amounts : {&resources.requests, &resources.limits}) {
      for (const char* resource : {"cpu", "memory"}) {
        const auto it = amounts->find(resource);
        if (it != amounts->end() && it->second > 0) return true;
      }
    }
    return false;
  };
  if (pod.pod_level && states(*pod.pod_level)) return false;
  for (const auto* list : {&pod.containers.init, &pod.containers.app}) {
    for (const objects::Container& each : *list) {
      if (states(each.resources)) return false;
    }
  }
  return true;
}

// It wants to be near, or far from, pods of namespaces that it names.
bool reaches_other_namespaces(const Value* spec) {
  const auto names = [](const Value* term) {
    return !at(term, "namespaces").items().empty() || find(term, "namespaceSelector") != nullptr;
  };
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    const Value& terms = at(spec, "affinity")[kind];
    for (const Value& term : at(terms, "requiredDuringSchedulingIgnoredDuringExecution").items()) {
      if (names(&term)) return true;
    }
    for (const Value& each : at(terms, "preferredDuringSchedulingIgnoredDuringExecution").items()) {
      if (names(each.find("podAffinityTerm"))) return true;
    }
  }
  return false;
}

// A scope that is not known here is about something else than pods.
bool in_scope(std::string_view scope, std::string_view op, std::span<const Value> values,
              const PodTemplate& pod) {
  if (scope == "BestEffort") return is_best_effort(pod.pod);
  if (scope == "NotBestEffort") return !is_best_effort(pod.pod);
  if (scope == "Terminating" || scope == "NotTerminating") {
    const bool ends = find(pod.spec, "activeDeadlineSeconds") != nullptr;
    return ends == (scope == "Terminating");
  }
  if (scope == "CrossNamespacePodAffinity") return reaches_other_namespaces(pod.spec);
  if (scope != "PriorityClass") return false;
  const std::string& has = pod.pod.priority_class;
  if (op == "Exists" || op == "DoesNotExist") return has.empty() == (op == "DoesNotExist");
  const bool listed =
      std::any_of(values.begin(), values.end(), [&](const Value& v) { return v.string() == has; });
  return listed == (op == "In");
}

bool counts_it(const Value& quota, const PodTemplate& pod) {
  for (const Value& scope : at(quota, "spec.scopes").items()) {
    if (!in_scope(scope.string(), "Exists", {}, pod)) return false;
  }
  const auto selectors = at(quota, "spec.scopeSelector.matchExpressions").items();
  return std::all_of(selectors.begin(), selectors.end(), [&](const Value& each) {
    return in_scope(std::string(text_at(each, "scopeName")), std::string(text_at(each, "operator")),
                    at(each, "values").items(), pod);
  });
}

// What one pod takes of a line of a quota; absent: the line is not about pods.
std::optional<std::int64_t> taken_of(std::string_view line, const PodTemplate& pod) {
  const auto in = [](const Amounts& amounts, std::string_view resource) {
    const auto it = amounts.find(resource);
    return it == amounts.end() ? 0 : it->second;
  };
  if (line == "count/pods") return 1;
  if (line == "requests.storage" || line.starts_with("count/")) return std::nullopt;
  // Kubernetes accepts limits of anything, and counts them of these alone.
  if (line.starts_with("limits.") && line != "limits.cpu" && line != "limits.memory" &&
      line != "limits.ephemeral-storage") {
    return std::nullopt;
  }
  if (pod.ended) return 0;
  if (line == "pods") return 1;
  if (line.starts_with("requests.")) return in(pod.requests, line.substr(9));
  if (line.starts_with("limits.")) return in(pod.limits, line.substr(7));
  if (line == "cpu" || line == "memory" || line == "ephemeral-storage" ||
      line.starts_with("hugepages-")) {
    return in(pod.requests, line);
  }
  return std::nullopt;
}

// cpu and memory that a quota counts must be stated by every container, where the pod as a whole
// states nothing. The container that does not, or null.
const objects::Container* silent_container(std::string_view line, const objects::RawPodSpec& pod) {
  const std::string_view resource = line.substr(line.find('.') + 1);  // of none: the whole line
  const bool limits = line.starts_with("limits.");
  if ((resource != "cpu" && resource != "memory") || pod.pod_level) return nullptr;
  for (const auto* list : {&pod.containers.app, &pod.containers.init}) {
    for (const objects::Container& each : *list) {
      const Amounts& stated = limits ? each.resources.limits : each.resources.requests;
      if (!stated.contains(resource)) return &each;
    }
  }
  return nullptr;
}

Held short_of(const RawObject& quota, std::string_view line, std::int64_t hard, std::int64_t used,
              std::int64_t each, int pods) {
  Held out{.by = Held::By::kQuota,
           .reason = each > hard ? Reason::kExceedsMaxQuota : Reason::kWaitingForQuota,
           .never = each > hard,
           .object = quota.name,
           .resource = std::string(line),
           .enough = show_amount(line, sum_of(used, times(each, pods)))};
  out.too_many = pods - static_cast<int>(std::max<std::int64_t>(0, hard - used) / each);
  const std::string asks = pods == 1
                               ? "its pod asks for " + show_amount(line, each)
                               : fmt::format("{} that are yet to be made ask for {} each",
                                             show_count(pods, "pod"), show_amount(line, each));
  out.message =
      out.never ? fmt::format("the ResourceQuota {} allows {} {} in the namespace {}, and {}",
                              quota.name, show_amount(line, hard), line, quota.ns, asks)
                : fmt::format("the ResourceQuota {} allows {} {} in the namespace {}, {} used; {}",
                              quota.name, show_amount(line, hard), line, quota.ns,
                              show_amount(line, used) + (used == 1 ? " is" : " are"), asks);
  return out;
}

// Of a container, or of all of a pod.
struct Asked {
  std::string who;  // "container main", "its pod"
  const Amounts& requests;
  const Amounts& limits;
};

Held out_of_range(const Range& range, const Asked& asked, const std::string& resource,
                  std::int64_t has, std::int64_t bound, const std::string& rule) {
  return Held{.by = Held::By::kLimitRange,
              .message = fmt::format("the LimitRange {} {} {} {}, and {} asks for {}", range.name,
                                     rule, show_amount(resource, bound), resource, asked.who,
                                     show_amount(resource, has)),
              .object = range.name,
              .resource = resource,
              .enough = show_amount(resource, bound),
              .asked = show_amount(resource, has)};
}

Held unstated(const Range& range, const Asked& asked, const std::string& resource,
              std::string_view list) {
  return Held{.by = Held::By::kNoAmount,
              .message = fmt::format("the LimitRange {} bounds {}, and {} states no {} of it",
                                     range.name, resource, asked.who, list),
              .object = range.name,
              .resource = fmt::format("{}s.{}", list, resource)};
}

// Limits may be so many times the requests.
std::optional<Held> by_ratio(const Range& range, const Asked& asked) {
  for (const auto& [resource, most] : range.ratio) {
    const auto request = asked.requests.find(resource), limit = asked.limits.find(resource);
    if (request == asked.requests.end() || request->second == 0) {
      return unstated(range, asked, resource, "request");
    }
    if (limit == asked.limits.end() || limit->second == 0) {
      return unstated(range, asked, resource, "limit");
    }
    // In double as Kubernetes does it; thousandths of a large limit do not fit an int64.
    const double has = static_cast<double>(limit->second) / static_cast<double>(request->second);
    if (has * 1000 <= static_cast<double>(most)) continue;
    const auto enough = static_cast<std::int64_t>(
        std::ceil(static_cast<double>(limit->second) * 1000 / static_cast<double>(most)));
    const auto ratio = static_cast<std::int64_t>(std::min(1e15, std::ceil(has * 1000)));
    Held out{.by = Held::By::kLimitRange,
             .message = fmt::format(
                 "the LimitRange {} allows {} a limit of {} at most {} times its "
                 "request, and {} asks for {} with a limit of {}",
                 range.name, range.of_pod ? "a pod" : "a container", resource,
                 text::Quantity::from_milli(most).to_string(), asked.who,
                 show_amount(resource, request->second), show_amount(resource, limit->second)),
             .object = range.name,
             .resource = resource,
             .enough = show_amount(resource, enough),
             .asked = show_amount(resource, request->second)};
    out.name = text::Quantity::from_milli(ratio).to_string();
    return out;
  }
  return std::nullopt;
}

std::optional<Held> by_range(const Range& range, const Asked& asked) {
  const std::string one = range.of_pod ? "allows a pod " : "allows a container ";
  for (const auto& [resource, limit] : range.limit) {
    // The API server fills the limit in, and then refuses a request above it.
    const auto it = asked.requests.find(resource);
    const bool above = it != asked.requests.end() && it->second > limit;
    if (above && !asked.limits.contains(resource) && !range.most.contains(resource)) {
      return out_of_range(range, asked, resource, it->second, limit, "fills in a limit of");
    }
  }
  for (const auto& [resource, most] : range.most) {
    if (range.of_pod && !asked.limits.contains(resource)) {
      return unstated(range, asked, resource, "limit");
    }
    for (const Amounts* amounts : {&asked.limits, &asked.requests}) {
      const auto it = amounts->find(resource);
      if (it != amounts->end() && it->second > most) {
        return out_of_range(range, asked, resource, it->second, most, one + "at most");
      }
    }
  }
  for (const auto& [resource, least] : range.least) {
    const auto it = asked.requests.find(resource);
    if (range.of_pod && it == asked.requests.end()) {
      return unstated(range, asked, resource, "request");
    }
    if (it != asked.requests.end() && it->second < least) {
      return out_of_range(range, asked, resource, it->second, least, one + "at least");
    }
  }
  return by_ratio(range, asked);
}

}  // namespace

std::optional<Held> by_quotas(const ObjectSource& objects, const PodTemplate& mine,
                              PodReadings& readings) {
  const std::string& ns = mine.object->ns;
  std::vector<RawObject> quotas;
  for (RawObject& raw : objects.of_kind("ResourceQuota")) {
    if (raw.ns == ns && counts_it(*raw.value, mine)) quotas.push_back(std::move(raw));
  }
  if (quotas.empty()) return std::nullopt;
  std::vector<RawObject> pods = objects.in_namespace("Pod", ns);
  const bool shown = !pods.empty() || !objects.of_kind("Pod").empty();
  std::erase_if(pods, [&](const RawObject& raw) { return raw.value == mine.object->value; });
  for (const RawObject& quota : quotas) {
    const Amounts hard = amounts_of(at(quota.value, "spec.hard"));
    const Amounts told = amounts_of(at(quota.value, "status.used"));
    for (const auto& [line, most] : hard) {
      const auto each = taken_of(line, mine);
      if (!each) continue;
      if (const objects::Container* silent = silent_container(line, mine.pod)) {
        return Held{.by = Held::By::kNoAmount,
                    .message = fmt::format(
                        "the ResourceQuota {} counts {}, which container {} does not state",
                        quota.name, line, silent->name),
                    .object = quota.name,
                    .resource = line};
      }
      std::int64_t used = 0;
      for (const RawObject& raw : pods) {
        const PodTemplate* other = readings.get(raw);
        if (other == nullptr || !counts_it(*quota.value, *other)) continue;
        used = sum_of(used, taken_of(line, *other).value_or(0));
      }
      const auto written = told.find(line);
      if (!shown && written != told.end()) used = written->second;
      if (*each > 0 && sum_of(used, times(*each, mine.fresh)) > most) {
        return short_of(quota, line, most, used, *each, mine.fresh);
      }
    }
  }
  return std::nullopt;
}

std::optional<Held> by_ranges(const ObjectSource& objects, const PodTemplate& mine) {
  const std::vector<Range> ranges = ranges_of(objects, mine.object->ns);
  Amounts requests = mine.requests, limits = mine.limits;
  for (const auto& [resource, amount] : mine.pod.overhead) {  // is not the containers'
    for (Amounts* amounts : {&requests, &limits}) {
      const auto it = amounts->find(resource);
      if (it != amounts->end() && (it->second -= amount) <= 0) amounts->erase(it);
    }
  }
  for (const Range& range : ranges) {
    if (range.of_pod) {
      if (auto held = by_range(range, {"its pod", requests, limits})) return held;
      continue;
    }
    for (const auto* list : {&mine.pod.containers.init, &mine.pod.containers.app}) {
      for (const objects::Container& each : *list) {
        const Asked asked{"container " + each.name, each.resources.requests, each.resources.limits};
        if (auto held = by_range(range, asked)) return held;
      }
    }
  }
  return std::nullopt;
}

}  // namespace berth::explain
