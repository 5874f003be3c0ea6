// What an object holds is held whatever else of it cannot be read.
//
// An object with an error is refused when it only asks for something: nobody may start it by a
// guess. One that holds something counts with what could be read, errs to the side of holding more,
// and its errors are warnings:
// - a pod that is bound and has not ended: what its resources say, and its agent (resolve_pods.cc);
// - a Node and a GpuNode: amounts that cannot be read are not there, taints and verdicts stand;
// - a ClusterQueue, LocalQueue and Queue: who is in stays in, nothing new is let in; a Cohort;
// - a Workload that holds quota.
// Names are the exception: what has no name of its own cannot be counted.
//
// To add a kind: an overload here, and a reader that leaves a valid object behind after errors.
// Private to this folder.
#pragma once

#include <string>
#include <string_view>

#include "objects/kueue_workload.h"
#include "objects/names.h"
#include "objects/node.h"
#include "objects/other_queues.h"
#include "objects/pod.h"

namespace berth::objects {

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

// What an object counts as that cannot be read in full. Empty: it is refused.
template <class T>
std::string_view counted(const T&) {
  return {};
}
inline std::string_view counted(const PodObject& pod) {
  return pod.spec.node_name.empty() || pod.finished() ? std::string_view{} : kPodCounts;
}
inline std::string_view counted(const NodeObject&) {
  return "the node counts with what can be read";
}
inline std::string_view counted(const GpuNode&) { return "the node counts with what can be read"; }
inline std::string_view counted(const model::QueueSpec&) {
  return "who is in it stays, and nothing new is let in";
}
inline std::string_view counted(const model::LocalQueueSpec& queue) {
  return queue.stop == model::StopPolicy::kNone ? "the rest of it counts"
                                                : "who is in it stays, and nothing new is let in";
}
inline std::string_view counted(const VolcanoQueue&) {
  return "who is in it stays, and nothing new is let in";
}
inline std::string_view counted(const KaiQueue&) {
  return "who is in it stays, and nothing new is let in";
}
inline std::string_view counted(const model::CohortSpec&) {
  return "the cohort counts with what can be read";
}
inline std::string_view counted(const WorkloadObject& workload) {
  const bool holds =
      workload.spec.admission && !workload.spec.finished && !workload.spec.pod_sets.empty();
  return holds ? "it holds quota, so it counts with what can be read" : std::string_view{};
}

template <class T>
std::string_view counted_by_name(const T& object) {
  if constexpr (requires { object.meta.name; } || requires { object.name; }) {
    const std::string& ns = ns_of(object);
    const bool named = is_dns_subdomain(name_of(object)) && (ns.empty() || is_dns_label(ns));
    if (named) return counted(object);
  }
  return {};
}

}  // namespace berth::objects
