// v1 Pod, and the pod template of a Job.
//
// service: the controlling owner is a ReplicaSet, StatefulSet, Deployment or ReplicationController.
// A pod without an owner has no replicas to keep apart, so it is none, whatever its restartPolicy.
//
// Every part is read apart from the others: one that cannot be read is an error and leaves its
// field as it was. For a pod that runs what was read counts all the same (counted.h), so each field
// errs to the side of holding more.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kinds/group.h"
#include "kinds/volume.h"

namespace berth::kinds {

struct PodObject {
  Meta meta;
  model::PodSpec spec;  // all that the object itself says; see resolve.h for the rest
  std::string phase;
  std::string restart_policy = "Always";
  std::optional<int> priority;   // spec.priority
  std::optional<bool> preempts;  // spec.preemptionPolicy
  Membership member;
  std::vector<ClaimRef> claims;
  bool other_gates = false;  // scheduling gates that are not Kueue's
  bool gpus_read = true;     // false: spec.gpu is the least that it holds (gpu_demand.h)

  bool finished() const { return phase == "Succeeded" || phase == "Failed"; }
};

void decode(const text::Value& v, PodObject& out, text::Decoder& d);

// {metadata, spec} inside another object; ns is that object's namespace. The name may be missing.
void decode_template(const text::Value& v, const std::string& ns, PodObject& out, text::Decoder& d);

}  // namespace berth::kinds
