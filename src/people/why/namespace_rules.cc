#include "people/why/namespace_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "people/view/words.h"
#include "text/path.h"
#include "text/quantity.h"

namespace berth::people {

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

bool counts_it(const Value& quota, const PodTemplate& pod) {
  return pod.whole != nullptr &&
         rules::in_scopes(quota, "pods", *pod.whole, pod.pod.priority_class);
}

// What one pod takes of a line of a quota; absent: the line is not about pods.
std::optional<std::int64_t> taken_of(const std::string& line, const rules::Sums& usage) {
  if (!rules::counts_on(line, "pods")) return std::nullopt;
  const auto takes = usage.find(line);
  return takes == usage.end() ? 0 : amount_of(line, takes->second);
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

using rules::Breach;
using Rule = rules::Breach::Rule;

struct Broken {
  const Range& range;
  const Breach& breach;
  std::string who;  // "container main", "its pod"

  bool of_pod() const { return breach.type == "Pod"; }
  std::string shown(const text::Quantity& amount) const {
    return show_amount(breach.resource, amount_of(breach.resource, amount));
  }
};

Held out_of_range(const Broken& at, const text::Quantity& has, const std::string& rule) {
  const std::string& resource = at.breach.resource;
  return Held{
      .by = Held::By::kLimitRange,
      .message = fmt::format("the LimitRange {} {} {} {}, and {} asks for {}", at.range.name, rule,
                             at.shown(at.breach.bound), resource, at.who, at.shown(has)),
      .object = at.range.name,
      .resource = resource,
      .enough = at.shown(at.breach.bound),
      .asked = at.shown(has)};
}

Held unstated(const Broken& at, std::string_view list) {
  const std::string& resource = at.breach.resource;
  return Held{.by = Held::By::kNoAmount,
              .message = fmt::format("the LimitRange {} bounds {}, and {} states no {} of it",
                                     at.range.name, resource, at.who, list),
              .object = at.range.name,
              .resource = fmt::format("{}s.{}", list, resource)};
}

// Limits may be so many times the requests.
Held by_ratio(const Broken& at) {
  const std::string& resource = at.breach.resource;
  const std::int64_t limit = amount_of(resource, at.breach.limit);
  const std::int64_t most = at.breach.bound.milli_value();
  // In double as Kubernetes does it; thousandths of a large limit do not fit an int64.
  const double has = at.breach.limit.to_double() / at.breach.request.to_double();
  const auto enough = static_cast<std::int64_t>(
      std::ceil(static_cast<double>(limit) * 1000 / static_cast<double>(most)));
  const auto ratio = static_cast<std::int64_t>(std::min(1e15, std::ceil(has * 1000)));
  Held out{.by = Held::By::kLimitRange,
           .message = fmt::format("the LimitRange {} allows {} a limit of {} at most {} times its "
                                  "request, and {} asks for {} with a limit of {}",
                                  at.range.name, at.of_pod() ? "a pod" : "a container", resource,
                                  at.breach.bound.to_string(), at.who, at.shown(at.breach.request),
                                  at.shown(at.breach.limit)),
           .object = at.range.name,
           .resource = resource,
           .enough = show_amount(resource, enough),
           .asked = at.shown(at.breach.request)};
  out.name = text::Quantity::from_milli(ratio).to_string();
  return out;
}

// Nothing: it is filled in, or the breach follows from what is.
std::optional<Held> by_breach(const Broken& at) {
  const std::string one = at.of_pod() ? "allows a pod " : "allows a container ";
  const Breach& breach = at.breach;
  switch (breach.rule) {
    case Rule::kMostNoLimit:
      if (at.of_pod()) return unstated(at, "limit");
      if (breach.request <= breach.bound) return std::nullopt;
      return out_of_range(at, breach.request, one + "at most");
    case Rule::kMostLimit:
      return out_of_range(at, breach.limit, one + "at most");
    case Rule::kMostRequest:
      return out_of_range(at, breach.request, one + "at most");
    case Rule::kLeastNoRequest:
      return at.of_pod() ? std::optional(unstated(at, "request")) : std::nullopt;
    case Rule::kLeastRequest:
      return out_of_range(at, breach.request, one + "at least");
    case Rule::kLeastLimit:
      return out_of_range(at, breach.limit, one + "at least");
    case Rule::kRatioNoRequest:
      return unstated(at, "request");
    case Rule::kRatioNoLimit:
      return unstated(at, "limit");
    case Rule::kRatio:
      return by_ratio(at);
    case Rule::kMostNoRequest:  // of claims
      break;
  }
  return std::nullopt;
}

// What is asked for too much, before what is too little, before what is out of proportion.
int rank_of(const Breach& breach) {
  switch (breach.rule) {
    case Rule::kMostNoLimit:
    case Rule::kMostNoRequest:
    case Rule::kMostLimit:
    case Rule::kMostRequest:
      return 0;
    case Rule::kLeastNoRequest:
    case Rule::kLeastRequest:
    case Rule::kLeastLimit:
      return 1;
    case Rule::kRatioNoRequest:
    case Rule::kRatioNoLimit:
    case Rule::kRatio:
      return 2;
  }
  return 3;
}

// The API server fills the limit in, and then refuses a request above it.
std::optional<Held> by_filled_limit(const Range& range, const rules::RangeItem& item,
                                    const Value& container, const std::string& who) {
  const rules::Sums requests = rules::requests_of(container);
  const rules::Sums limits = rules::read_sums(at(container, "resources.limits"));
  for (const auto& [resource, limit] : item.limit) {
    const auto asked = requests.find(resource);
    const bool above = asked != requests.end() && limit < asked->second;
    if (!above || limits.contains(resource) || item.most.contains(resource)) continue;
    Breach breach;
    breach.resource = resource;
    breach.bound = limit;
    return out_of_range({range, breach, who}, asked->second, "fills in a limit of");
  }
  return std::nullopt;
}

std::optional<Held> by_item(const Range& range, const rules::RangeItem& item, const Value& spec) {
  std::vector<Breach> breaches = rules::breaches_of({item}, spec);
  std::stable_sort(breaches.begin(), breaches.end(),
                   [](const Breach& a, const Breach& b) { return rank_of(a) < rank_of(b); });
  if (item.type == "Pod") {
    for (const Breach& breach : breaches) {
      if (auto held = by_breach({range, breach, "its pod"})) return held;
    }
  }
  if (item.type != "Container") return std::nullopt;
  for (const char* list : {"initContainers", "containers"}) {
    for (std::size_t i = 0; i < spec[list].size(); ++i) {
      const Value& container = spec[list].items()[i];
      const std::string who = "container " + std::string(text_at(container, "name"));
      if (auto held = by_filled_limit(range, item, container, who)) return held;
      for (const Breach& breach : breaches) {
        if (breach.list != list || breach.container != i) continue;
        if (auto held = by_breach({range, breach, who})) return held;
      }
    }
  }
  return std::nullopt;
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
  const rules::Sums usage = rules::pod_usage(*mine.spec, Value(), mine.ended);
  std::vector<RawObject> pods = objects.in_namespace("Pod", ns);
  const bool shown = !pods.empty() || !objects.of_kind("Pod").empty();
  std::erase_if(pods, [&](const RawObject& raw) { return raw.value == mine.object->value; });
  for (const RawObject& quota : quotas) {
    const Amounts hard = amounts_of(at(quota.value, "spec.hard"));
    const Amounts told = amounts_of(at(quota.value, "status.used"));
    for (const auto& [line, most] : hard) {
      const auto each = taken_of(line, usage);
      if (!each) continue;
      const std::vector<std::string> silent = rules::silent_on(line, *mine.spec);
      if (!silent.empty()) {
        return Held{.by = Held::By::kNoAmount,
                    .message = fmt::format(
                        "the ResourceQuota {} counts {}, which container {} does not state",
                        quota.name, line, silent.front()),
                    .object = quota.name,
                    .resource = line};
      }
      std::int64_t used = 0;
      for (const RawObject& raw : pods) {
        const PodTemplate* other = readings.get(raw);
        if (other == nullptr || !counts_it(*quota.value, *other)) continue;
        used = sum_of(used, taken_of(line, other->usage).value_or(0));
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
  for (const Range& range : ranges_of(objects, mine.object->ns)) {
    for (const rules::RangeItem& item : range.items) {
      if (auto held = by_item(range, item, *mine.spec)) return held;
    }
  }
  return std::nullopt;
}

}  // namespace berth::people
