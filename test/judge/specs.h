// Short ways to write specs in the judge's tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "judge/judge.h"
#include "model/spec.h"

namespace berth::judging {

inline model::NodeSpec cpu_node(const std::string& name) {
  model::NodeSpec node;
  node.name = name;
  node.labels[model::kHostnameLabel] = name;
  node.allocatable = {{"cpu", 8000}, {"memory", 1000}, {"ephemeral-storage", 1000}, {"pods", 10}};
  return node;
}

inline model::NodeSpec gpu_node(const std::string& name, int count) {
  model::NodeSpec node = cpu_node(name);
  for (int i = 0; i < count; ++i) {
    model::GpuSpec& gpu = node.gpus.emplace_back();
    gpu.index = i;
    gpu.model = "H100";
    gpu.memory_mib = 80000;
  }
  return node;
}

inline model::NodeSpec in_zone(model::NodeSpec node, const std::string& zone) {
  node.labels[model::kZoneLabel] = zone;
  return node;
}

inline model::PodSpec a_pod(const std::string& name) {
  model::PodSpec pod;
  pod.ns = "d";
  pod.name = name;
  pod.labels["app"] = name;
  return pod;
}

inline model::PodSpec whole(const std::string& name, int count) {
  model::PodSpec pod = a_pod(name);
  pod.gpu.kind = model::GpuDemandSpec::Kind::kWhole;
  pod.gpu.count = count;
  pod.gpus_by_container = {count};
  return pod;
}

inline model::PodSpec fraction(const std::string& name, int milli, int count = 1) {
  model::PodSpec pod = a_pod(name);
  pod.gpu.kind = model::GpuDemandSpec::Kind::kFraction;
  pod.gpu.count = count;
  pod.gpu.milli = milli;
  return pod;
}

inline model::PodSpec asking(const std::string& name, const std::string& resource,
                             std::int64_t amount) {
  model::PodSpec pod = a_pod(name);
  pod.requests[resource] = amount;
  return pod;
}

inline model::PodSpec running(model::PodSpec pod, const std::string& node,
                              std::vector<int> gpus = {}) {
  pod.node_name = node;
  pod.gpu_indices = std::move(gpus);
  return pod;
}

inline model::PodSpec with_priority(model::PodSpec pod, int priority) {
  pod.priority = priority;
  return pod;
}

inline model::PodSpec member(model::PodSpec pod, const std::string& gang,
                             const std::string& subgroup = "") {
  pod.gang = gang;
  pod.subgroup = subgroup;
  return pod;
}

inline model::GangSpec a_gang(const std::string& name, int min_member,
                              const std::string& required = "", const std::string& preferred = "") {
  model::GangSpec gang;
  gang.ns = "d";
  gang.name = name;
  gang.min_member = min_member;
  gang.required_topology = required;
  gang.preferred_topology = preferred;
  return gang;
}

// Pods of this namespace with app=name.
inline model::PodSet pods_of(const std::string& app) {
  model::PodSet set;
  set.namespaces = {"d"};
  set.selector.push_back({"app", text::Operator::kIn, {app}});
  return set;
}

inline model::NodeSelectorTerm label_term(const std::string& key, const std::string& value) {
  model::NodeSelectorTerm term;
  term.labels.push_back({key, text::Operator::kIn, {value}});
  return term;
}

inline model::Decision decide(const JudgeCluster& cluster, std::int64_t now_ns = 0) {
  return judge(cluster, JudgePolicy{}, now_ns, true);
}

// "d/p@n1[0,1]", "+" for a placement after preemption.
std::string text_of(const model::Placement& placement);
// All placements, then all victims ("-d/v"), separated by blanks.
std::string text_of(const model::Decision& decision);
const model::Outcome& outcome_of(const model::Decision& decision, const std::string& workload);

}  // namespace berth::judging
