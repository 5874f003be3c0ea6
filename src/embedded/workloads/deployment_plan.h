// What a Deployment needs next: a pure function of it, its ReplicaSets and the time.
//
// The rules are those of Kubernetes' Deployment controller: a ReplicaSet for each template, named
// by the template's hash; RollingUpdate within maxSurge and maxUnavailable; Recreate; pause; the
// history of revisions. Inside this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "edge/kube/informer.h"
#include "text/value.h"

namespace berth::sim {

struct SetView {  // a ReplicaSet of the Deployment
  const text::Value* object = nullptr;
  std::string name, uid, hash;
  int wanted = 0;                              // spec.replicas
  int replicas = 0, ready = 0, available = 0;  // status
  bool current = false;                        // it was told of its latest spec
  std::int64_t revision = 0, created_ns = 0;
};

struct DeploymentPlan {
  struct Scale {
    std::string set;
    int replicas = 0;
  };
  bool create_set = false;  // for the present template
  std::string new_set;      // its name, there or to be made
  int new_replicas = 0;
  std::int64_t revision = 0;
  bool stamp_set = false;         // the ReplicaSet's revision is to be written
  bool stamp_deployment = false;  // the Deployment's
  std::vector<Scale> scale;
  std::vector<std::pair<std::string, std::string>> remove;  // ReplicaSets: name, UID
  std::string status;                                       // a merge patch; empty: nothing changed
  std::int64_t again_ns = -1;                               // for the deadline of progress
};

// old_pods: pods of ReplicaSets of earlier templates are still there (for Recreate).
DeploymentPlan plan_deployment(const text::Value& deployment, const std::vector<SetView>& sets,
                               bool old_pods, std::int64_t wall_now);

SetView read_set(const text::Value& set);
// The object of a new ReplicaSet.
std::string new_set_object(const text::Value& deployment, const DeploymentPlan& plan);
// A merge patch of a ReplicaSet: replicas and, with a revision, the annotation.
std::string set_patch(const text::Value& deployment, std::optional<int> replicas,
                      std::int64_t revision);

}  // namespace berth::sim
