#include "rules/limit_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "text/path.h"

namespace berth::rules {

using text::Quantity;
using text::Value;

namespace {

constexpr std::string_view kLists[] = {"containers", "initContainers"};
constexpr const char* kContainerType = "Container";

using Rule = Breach::Rule;

struct Amounts {
  const Sums& requests;
  const Sums& limits;
};

const Quantity* amount_in(const Sums& sums, const std::string& resource) {
  const auto found = sums.find(resource);
  return found == sums.end() ? nullptr : &found->second;
}

// What one statement, of a container or a pod, does not keep of an item. at: who it is.
void add_breaches(const RangeItem& item, const Amounts& has, const Breach& at,
                  std::vector<Breach>& out) {
  const auto add = [&](Rule rule, const std::string& resource, const Quantity& bound) {
    Breach breach = at;
    breach.rule = rule;
    breach.resource = resource;
    breach.bound = bound;
    if (const Quantity* request = amount_in(has.requests, resource)) breach.request = *request;
    if (const Quantity* limit = amount_in(has.limits, resource)) breach.limit = *limit;
    out.push_back(std::move(breach));
  };
  for (const auto& [resource, bound] : item.least) {
    const Quantity* request = amount_in(has.requests, resource);
    const Quantity* limit = amount_in(has.limits, resource);
    if (request == nullptr) {
      add(Rule::kLeastNoRequest, resource, bound);
    } else if (*request < bound) {
      add(Rule::kLeastRequest, resource, bound);
    } else if (limit != nullptr && *limit < bound) {
      add(Rule::kLeastLimit, resource, bound);
    }
  }
  for (const auto& [resource, bound] : item.most) {
    const Quantity* request = amount_in(has.requests, resource);
    const Quantity* limit = amount_in(has.limits, resource);
    if (limit == nullptr) {
      add(Rule::kMostNoLimit, resource, bound);
    } else if (bound < *limit) {
      add(Rule::kMostLimit, resource, bound);
    } else if (request != nullptr && bound < *request) {
      add(Rule::kMostRequest, resource, bound);
    }
  }
  for (const auto& [resource, bound] : item.ratio) {
    const Quantity* request = amount_in(has.requests, resource);
    const Quantity* limit = amount_in(has.limits, resource);
    if (request == nullptr || request->is_zero()) {
      add(Rule::kRatioNoRequest, resource, bound);
    } else if (limit == nullptr || limit->is_zero()) {
      add(Rule::kRatioNoLimit, resource, bound);
    } else if (limit->to_double() / request->to_double() * 1000 >
               static_cast<double>(bound.milli_value())) {
      add(Rule::kRatio, resource, bound);
    }
  }
}

}  // namespace

std::vector<RangeItem> read_range(const Value& range) {
  std::vector<RangeItem> out;
  for (const Value& each : at(range, "spec.limits").items()) {
    RangeItem item{std::string(text_at(each, "type")),
                   read_sums(each["max"]),
                   read_sums(each["min"]),
                   read_sums(each["default"]),
                   read_sums(each["defaultRequest"]),
                   read_sums(each["maxLimitRequestRatio"])};
    if (item.type == kContainerType) {
      item.limit.insert(item.most.begin(), item.most.end());
      item.request.insert(item.limit.begin(), item.limit.end());
      item.request.insert(item.least.begin(), item.least.end());
    }
    std::erase_if(item.ratio, [](const auto& one) { return one.second <= Quantity(); });
    out.push_back(std::move(item));
  }
  return out;
}

std::vector<Filled> filled_by(const std::vector<RangeItem>& range, const Value& spec) {
  Sums limits, requests;  // a later item has its way
  for (const RangeItem& item : range) {
    if (item.type != kContainerType) continue;
    for (const auto& [resource, amount] : item.limit) limits[resource] = amount;
    for (const auto& [resource, amount] : item.request) requests[resource] = amount;
  }
  std::vector<Filled> out;
  for (const std::string_view list : kLists) {
    for (std::size_t i = 0; i < spec[list].size(); ++i) {
      const Value& container = spec[list].items()[i];
      const Sums has_limits = read_sums(at(container, "resources.limits"));
      const Sums has_requests = requests_of(container);
      for (const auto& [resource, amount] : limits) {
        if (has_limits.contains(resource)) continue;
        out.push_back({list, i, true, resource, amount.to_string()});
      }
      for (const auto& [resource, amount] : requests) {
        if (has_requests.contains(resource)) continue;
        out.push_back({list, i, false, resource, amount.to_string()});
      }
    }
  }
  return out;
}

std::string filled_note(const std::vector<Filled>& filled, const Value& spec) {
  std::string out;
  for (const std::string_view list : kLists) {
    const bool init = list == kLists[1];
    for (std::size_t i = 0; i < spec[list].size(); ++i) {
      for (const bool limit : {false, true}) {
        std::string names;
        for (const Filled& one : filled) {
          if (one.list != list || one.container != i || one.limit != limit) continue;
          names += (names.empty() ? "" : ", ") + one.resource;
        }
        if (names.empty()) continue;
        out +=
            fmt::format("{}{} {} for {} {}", out.empty() ? "LimitRanger plugin set: " : "; ", names,
                        limit ? "limit" : "request", init ? "init container" : "container",
                        text_at(spec[list].items()[i], "name"));
      }
    }
  }
  return out;
}

std::vector<Breach> breaches_of(const std::vector<RangeItem>& range, const Value& spec) {
  std::vector<Breach> out;
  for (const RangeItem& item : range) {
    Breach at;
    at.type = item.type;
    if (item.type == "Pod") {
      const PodSums sums = sums_of_pod(spec, Value(), Overhead::kOut);
      add_breaches(item, {sums.requests, sums.limits}, at, out);
    }
    if (item.type != kContainerType) continue;
    for (const std::string_view list : kLists) {
      for (std::size_t i = 0; i < spec[list].size(); ++i) {
        const Value& container = spec[list].items()[i];
        const Sums requests = requests_of(container);
        const Sums limits = read_sums(text::at(container, "resources.limits"));
        at.list = list;
        at.container = i;
        add_breaches(item, {requests, limits}, at, out);
      }
    }
  }
  return out;
}

std::vector<Breach> claim_breaches(const std::vector<RangeItem>& range, const Value& claim) {
  std::vector<Breach> out;
  const Sums asked = read_sums(at(claim, "spec.resources.requests"));
  for (const RangeItem& item : range) {
    if (item.type != "PersistentVolumeClaim") continue;
    Breach breach;
    breach.type = item.type;
    for (const bool most : {false, true}) {
      for (const auto& [resource, bound] : most ? item.most : item.least) {
        const Quantity* has = amount_in(asked, resource);
        breach.resource = resource;
        breach.bound = bound;
        breach.request = has == nullptr ? Quantity() : *has;
        if (has == nullptr) {
          breach.rule = most ? Rule::kMostNoRequest : Rule::kLeastNoRequest;
        } else if (most ? bound < *has : *has < bound) {
          breach.rule = most ? Rule::kMostRequest : Rule::kLeastRequest;
        } else {
          continue;
        }
        out.push_back(breach);
      }
    }
  }
  return out;
}

std::string words_of(const Breach& b) {
  const std::string bound = b.bound.to_string();
  const auto usage = [&](const char* which, std::string_view has) {
    return fmt::format("{} {} usage per {} is {}{}", which, b.resource, b.type, bound, has);
  };
  const auto ratio = [&](std::string_view has) {
    return fmt::format("{} max limit to request ratio per {} is {}, but {}", b.resource, b.type,
                       bound, has);
  };
  const std::string request = ", but request is " + b.request.to_string();
  const std::string limit = ", but limit is " + b.limit.to_string();
  switch (b.rule) {
    case Rule::kMostNoLimit:
      return usage("maximum", ".  No limit is specified");
    case Rule::kMostNoRequest:
      return usage("maximum", ".  No request is specified");
    case Rule::kMostLimit:
      return usage("maximum", limit);
    case Rule::kMostRequest:
      return usage("maximum", request);
    case Rule::kLeastNoRequest:
      return usage("minimum", ".  No request is specified");
    case Rule::kLeastRequest:
      return usage("minimum", request);
    case Rule::kLeastLimit:
      return usage("minimum", limit);
    case Rule::kRatioNoRequest:
      return ratio("no request is specified or request is 0");
    case Rule::kRatioNoLimit:
      return ratio("no limit is specified or limit is 0");
    case Rule::kRatio:
      return ratio(
          fmt::format("provided ratio is {:f}", b.limit.to_double() / b.request.to_double()));
  }
  return {};
}

std::string words_of(const std::vector<Breach>& breaches) {
  std::string out;
  std::set<std::string> said;  // two containers may say the same
  for (const Breach& breach : breaches) {
    std::string words = words_of(breach);
    if (!said.insert(words).second) continue;
    out += (out.empty() ? "" : ", ") + words;
  }
  return said.size() > 1 ? "[" + out + "]" : out;
}

}  // namespace berth::rules
