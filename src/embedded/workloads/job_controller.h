// Carries out what job_plan.h plans, for every Job that names no other manager. Inside this folder.
#pragma once

#include "embedded/workloads/job_plan.h"
#include "embedded/workloads/work_context.h"

namespace berth::sim {

class JobController {
 public:
  explicit JobController(WorkContext& context);
  void start();  // once, when everything is synced

 private:
  void pass(const kube::Key& key, Passes::Finished finished);
  void carry_out(const kube::ObjectPtr& object, const JobView& job, const JobPlan& plan,
                 Passes::Finished finished);
  void carry_out_pods(const kube::ObjectPtr& object, const JobView& job, const JobPlan& plan,
                      Passes::Finished finished);
  void pod_changed(const PodInfo* before, const PodInfo* after);
  void free_orphan(const kube::Key& key, const Passes::Finished& finished);

  WorkContext& context_;
  Passes passes_, orphans_;
  bool started_ = false;
};

}  // namespace berth::sim
