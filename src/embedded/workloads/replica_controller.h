// ReplicaSets and ReplicationControllers: as many pods as one asks for, and its status. Inside this
// folder.
//
// Pods are made under names drawn here; after a crash the list of pods tells which were made.
// Pods without an owner are not adopted.
#pragma once

#include "embedded/workloads/work_context.h"

namespace berth::sim {

class ReplicaController {
 public:
  // sets: of one of the two kinds.
  ReplicaController(WorkContext& context, kube::Informer& sets);
  void start();

 private:
  void pass(const kube::Key& key, Passes::Finished finished);
  void pod_changed(const PodInfo& pod);

  WorkContext& context_;
  kube::Informer& sets_;
  Passes passes_;
};

// Which pods go first when there are too many: those that lose least.
bool goes_before(const PodInfo& a, const PodInfo& b);

}  // namespace berth::sim
