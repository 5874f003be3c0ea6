// Carries out what deployment_plan.h plans. Inside this folder.
#pragma once

#include "embedded/workloads/deployment_plan.h"
#include "embedded/workloads/work_context.h"

namespace berth::sim {

class DeploymentController {
 public:
  explicit DeploymentController(WorkContext& context);
  void start();

 private:
  void pass(const kube::Key& key, Passes::Finished finished);
  bool old_pods(const text::Value& deployment, const std::vector<kube::ObjectPtr>& sets) const;

  WorkContext& context_;
  Passes passes_;
  int by_owner_ = 0;  // index of ReplicaSets by the UID of their Deployment
};

}  // namespace berth::sim
