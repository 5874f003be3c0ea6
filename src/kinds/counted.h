// What an object holds is held whatever else of it cannot be read.
//
// An object with an error is refused when it only asks for something: nobody may start it by a
// guess. One that holds something counts with what could be read and errs to the side of holding
// more; its errors are warnings, or, of a queue that lets nothing in until it is corrected, errors:
// - a pod that is bound and has not ended: what its resources say, and its agent (resolve_pods.cc);
// - a Node and a GpuNode: amounts that cannot be read are not there, taints and verdicts stand;
// - a ClusterQueue, LocalQueue and Queue: who is in stays in, nothing new is let in; a Cohort;
// - a Workload that holds quota.
// Names are the exception: what has no name of its own cannot be counted.
//
// To add a kind: an overload here, and a reader that leaves a valid object behind after errors.
// For this folder, and whoever looks for kPodCounts among the warnings.
#pragma once

#include <string>
#include <string_view>

#include "kinds/kueue_workload.h"
#include "kinds/names.h"
#include "kinds/node.h"
#include "kinds/other_queues.h"
#include "kinds/pod.h"
#include "kinds/queued_maker.h"

namespace berth::kinds {

template <class T>
const std::string& ns_of(const T& object) {
  static const std::string kNone;
  if constexpr (requires { object.meta; }) {
    return object.meta.ns;
  } else if constexpr (requires { object.ns; }) {
    return object.ns;
  } else {
    return kNone;
  }
}
template <class T>
const std::string& name_of(const T& object) {
  if constexpr (requires { object.meta; }) {
    return object.meta.name;
  } else {
    return object.name;
  }
}

inline constexpr std::string_view kPodCounts = "it runs, so it counts with what can be read";

struct Counted {
  std::string_view as;   // for people; empty: it is refused
  bool invalid = false;  // all the same: nothing new gets anything of it
};

// What an object counts as that cannot be read in full.
template <class T>
Counted counted(const T&) {
  return {};
}
inline Counted counted(const PodObject& pod) {
  if (pod.spec.node_name.empty() || pod.finished()) return {};
  return {kPodCounts};
}
inline Counted counted(const NodeObject&) { return {"the node counts with what can be read"}; }
inline Counted counted(const GpuNode&) { return {"the node counts with what can be read"}; }
inline Counted counted(const WorkloadObject& workload) {
  const model::WorkloadSpec& spec = workload.spec;
  if (!spec.admission || spec.finished || spec.pod_sets.empty()) return {};
  return {"it holds quota, so it counts with what can be read"};
}
inline Counted counted(const QueuedMaker&) { return {"its pods wait until it is corrected", true}; }
inline constexpr Counted kClosed{"who is in it stays, and nothing new is let in", true};
inline Counted counted(const model::QueueSpec&) { return kClosed; }
inline Counted counted(const VolcanoQueue&) { return kClosed; }
inline Counted counted(const KaiQueue&) { return kClosed; }
inline Counted counted(const model::LocalQueueSpec& queue) {
  const bool open = queue.stop == model::StopPolicy::kNone;  // its status is wrong, not its spec
  return open ? Counted{"the rest of it counts"} : kClosed;
}
inline Counted counted(const model::CohortSpec&) {
  return {"the cohort counts with what can be read", true};
}

template <class T>
Counted counted_by_name(const T& object) {
  if constexpr (requires { object.meta.name; } || requires { object.name; }) {
    const std::string& ns = ns_of(object);
    const std::string_view name = name_of_owner(name_of(object));  // some are kept by their kind
    const bool named = is_dns_subdomain(name) && (ns.empty() || is_dns_label(ns));
    if (named) return counted(object);
  }
  return {};
}

}  // namespace berth::kinds
