// PodGroups of the schedulers that users come from, and which group a pod belongs to.
//
// Read: scheduling.volcano.sh/v1beta1, scheduling.x-k8s.io/v1alpha1 (coscheduling),
// scheduling.run.ai/v2alpha2 (KAI) and scheduling.k8s.io/v1beta1 and v1alpha2 (upstream).
// A pod names its group by one of: the annotations scheduling.k8s.io/group-name,
// scheduling.volcano.sh/group-name, pod-group-name; the label scheduling.x-k8s.io/pod-group;
// spec.schedulingGroup.podGroupName. Several that disagree are an error. Its subgroup is the
// annotation volcano.sh/task-spec or the label kai.scheduler/subgroup-name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kinds/topology.h"

namespace berth::kinds {

struct GroupObject {
  Meta meta;
  model::GangSpec gang;  // topologies as written, priority only where the object has it
  std::string priority_class;
  bool kai = false;                         // names a queue of KAI, not of Volcano
  std::string workload, workload_template;  // upstream: the Workload that it was made from
};

void decode_volcano_group(const text::Value& v, GroupObject& out, text::Decoder& d);
void decode_coscheduling_group(const text::Value& v, GroupObject& out, text::Decoder& d);
void decode_kai_group(const text::Value& v, GroupObject& out, text::Decoder& d);
void decode_upstream_group(const text::Value& v, GroupObject& out, text::Decoder& d);

struct Membership {
  std::string group, subgroup, queue;
  std::optional<int> group_min;  // scheduling.volcano.sh/group-min-member
  TopologyRequest topology;
};
void read_membership(const text::Value& object, const Meta& meta,
                     const std::string& scheduling_group, Membership& out, text::Decoder& d);

}  // namespace berth::kinds
