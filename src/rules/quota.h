// What ResourceQuotas count, and what they refuse: the arithmetic and the sentences of the API
// server's ResourceQuota admission and of the controller that keeps a quota's status.
//
// A resource here is what a collection is called: "pods", "jobs.batch". A line is a name in
// spec.hard: "pods", "requests.nvidia.com/gpu", "count/jobs.batch". Pure. Cost: a pass over the
// object; counts_on() a few comparisons.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rules/amounts.h"

namespace berth::rules {

// Whether the line counts objects of that resource.
bool counts_on(std::string_view line, std::string_view resource);
// Whether what an object takes depends on what it holds; of others it is enough that there is one.
bool takes_by_content(std::string_view resource);
// Whether its objects are counted at all: events never are.
bool is_counted(std::string_view resource);

// Whether the quota's scopes take the object in. A scope is about pods (or claims): a quota that
// has one counts nothing else. priority_class: of a pod; what the class of those that name none
// would be is the caller's to say.
bool in_scopes(const text::Value& quota, std::string_view resource, const text::Value& object,
               std::string_view priority_class);
inline bool in_scopes(const text::Value& quota, std::string_view resource,
                      const text::Value& object) {
  return in_scopes(quota, resource, object, object["spec"]["priorityClassName"].string());
}

// What one object takes, on every line that counts it. now_ns: a pod that should have been gone by
// now is counted as an object alone, as one that has ended is.
Sums usage_of(std::string_view resource, const text::Value& object, std::int64_t now_ns);
// The same of a pod that has nothing but a spec, or has ended.
Sums pod_usage(const text::Value& spec, const text::Value& status, bool over);
bool is_over(const text::Value& pod, std::int64_t now_ns);
std::int64_t over_at(const text::Value& pod);  // after which one that is to go is; far if it is not

// cpu and memory that a quota counts have to be stated by every container, where the pod as a whole
// states nothing: those that do not state what the line counts, app containers first.
std::vector<std::string> silent_on(std::string_view line, const text::Value& spec);

// The words of the refusals; empty: the quota lets it be. hard: the lines that count the object.
// "failed quota: q: must specify cpu for: main"
std::string unstated(std::string_view quota, const Sums& hard, const text::Value& spec);
// "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"; more: what comes on top.
std::string exceeded(std::string_view quota, const Sums& hard, const Sums& used, const Sums& more);

}  // namespace berth::rules
