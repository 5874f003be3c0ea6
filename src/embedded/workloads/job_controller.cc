#include "embedded/workloads/job_controller.h"

#include "embedded/workloads/pod_template.h"
#include "embedded/workloads/read.h"
#include "text/path.h"

namespace berth::sim {

namespace {

std::string job_pod(const kube::Object& object, const JobView& job, const JobPlan::NewPod& pod) {
  PodDetails details;
  details.ns = job.key.ns;
  details.name = pod.name;
  details.owner = {"batch/v1", "Job", job.key.name, job.uid};
  details.finalizers = {std::string(kJobFinalizer)};
  // The API server puts these into the template of a new Job; one that does not is helped out.
  details.labels = {{"batch.kubernetes.io/controller-uid", job.uid},
                    {"batch.kubernetes.io/job-name", job.key.name},
                    {"controller-uid", job.uid},
                    {"job-name", job.key.name}};
  if (pod.index >= 0) {
    details.labels[std::string(kIndexKey)] = std::to_string(pod.index);
    details.annotations[std::string(kIndexKey)] = std::to_string(pod.index);
    details.hostname = job.key.name + '-' + std::to_string(pod.index);
    if (details.hostname.size() > 63) details.hostname.clear();
    details.with_index = true;
    if (job.indexes_fail_alone()) {
      details.annotations["batch.kubernetes.io/job-index-failure-count"] =
          std::to_string(pod.failures);
      if (pod.ignored > 0) {
        details.annotations["batch.kubernetes.io/job-index-ignored-failure-count"] =
            std::to_string(pod.ignored);
      }
    }
  }
  return pod_from_template(at(object.root(), "spec.template"), details);
}

}  // namespace

JobController::JobController(WorkContext& context)
    : context_(context),
      passes_(context.client.loop(),
              [this](const kube::Key& key, Passes::Finished finished) {
                pass(key, std::move(finished));
              }),
      orphans_(context.client.loop(),
               [this](const kube::Key& key, const Passes::Finished& finished) {
                 free_orphan(key, finished);
               }) {}

void JobController::start() {
  started_ = true;
  context_.jobs.add_handler(
      context_.guarded([this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
        if (after != nullptr) return passes_.add(after->key);
        // Its pods must not be held by a finalizer that nobody takes away.
        for (const PodBook::PodPtr& pod : context_.book.of_owner(before->key.ns, before->uid)) {
          if (pod->tracked) orphans_.add(pod->key);
        }
      }));
  context_.book.watch(
      [this](const PodInfo* before, const PodInfo* after) { pod_changed(before, after); });
  for (const auto& [key, pod] : context_.book.all()) pod_changed(nullptr, pod.get());
}

void JobController::pod_changed(const PodInfo* before, const PodInfo* after) {
  const PodInfo* either = after != nullptr ? after : before;
  if (either == nullptr) return;
  const PodInfo& pod = *either;
  if (pod.owner_kind != "Job") {
    if (after != nullptr && after->tracked) orphans_.add(after->key);
    return;
  }
  const kube::Key job{pod.key.ns, pod.owner_name};
  const kube::ObjectPtr found = context_.jobs.find(job);
  if (found != nullptr && found->uid == pod.owner_uid) {
    passes_.add_after(job, context_.options.batch_ns);
  } else if (after != nullptr && after->tracked) {
    orphans_.add_after(after->key, context_.options.batch_ns);
  }
}

// A pod whose Job is gone. Looked up again: the informer of Jobs may only be late.
void JobController::free_orphan(const kube::Key& key, const Passes::Finished& finished) {
  const PodInfo* pod = context_.book.find(key);
  if (pod == nullptr || !pod->tracked) return finished(true);
  const kube::Key job{key.ns, pod->owner_name};
  const std::string owner = pod->owner_kind == "Job" ? pod->owner_uid : std::string();
  const auto free = [this, key](const Passes::Finished& done) {
    auto batch = Batch::make(context_, done);
    batch->untrack_pod(key);
    batch->seal();
  };
  if (owner.empty()) return free(finished);
  context_.client.get(
      kube::resources::jobs(), job, context_.guarded([free, owner, finished](kube::Answer answer) {
        if (!answer.ok() && !answer.not_found()) return finished(false);
        const bool there = answer.ok() && text_at(answer.body.root(), "metadata.uid") == owner;
        if (there) return finished(true);
        free(finished);
      }));
}

void JobController::pass(const kube::Key& key, Passes::Finished finished) {
  const kube::ObjectPtr object = context_.jobs.find(key);
  if (object == nullptr || !started_) return finished(true);
  const JobView job = read_job(object->root());
  if (!job.managed_here) return finished(true);
  const JobPlan plan = plan_job(job, context_.book.of_owner(job.key.ns, job.uid), context_.wall(),
                                context_.options.job_backoff_ns);
  if (plan.again_ns >= 0) passes_.add_after(key, plan.again_ns);
  carry_out(object, job, plan, std::move(finished));
}

// The status first: what it names may then be let go.
void JobController::carry_out(const kube::ObjectPtr& object, const JobView& job,
                              const JobPlan& plan, Passes::Finished finished) {
  if (!plan.status) return carry_out_pods(object, job, plan, std::move(finished));
  auto batch = Batch::make(context_, context_.guarded([this, object, job, plan, finished](bool ok) {
    if (!ok) return finished(false);
    carry_out_pods(object, job, plan, finished);
  }));
  batch->patch(context_.jobs, job.key, kube::PatchType::kMerge,
               job_status_patch(*plan.status, job.version), "status");
  batch->seal();
}

void JobController::carry_out_pods(const kube::ObjectPtr& object, const JobView& job,
                                   const JobPlan& plan, Passes::Finished finished) {
  auto batch = Batch::make(context_, std::move(finished));
  for (const kube::Key& key : plan.untrack) batch->untrack_pod(key);
  for (const JobPlan::Removal& removal : plan.remove) {
    batch->remove_pod(removal.pod, removal.uid, removal.untrack_first);
  }
  for (const JobPlan::NewPod& pod : plan.create) {
    batch->create_pod({job.key.ns, pod.name}, job_pod(*object, job, pod),
                      {"batch/v1", "Job", job.key.name, object->uid});
  }
  if (plan.remove_job) batch->remove(context_.jobs, job.key, job.uid);
  batch->seal();
}

}  // namespace berth::sim
