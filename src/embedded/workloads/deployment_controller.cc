#include "embedded/workloads/deployment_controller.h"

#include <algorithm>

#include "embedded/workloads/read.h"
#include "text/path.h"

namespace berth::sim {

namespace {

struct SetOwner {
  std::string name, uid;
};

SetOwner deployment_of(const text::Value& set) {
  for (const text::Value& owner : at(set, "metadata.ownerReferences").items()) {
    if (true_at(owner, "controller") && text_at(owner, "kind") == "Deployment") {
      return {std::string(text_at(owner, "name")), std::string(text_at(owner, "uid"))};
    }
  }
  return {};
}

std::string revision_patch(std::int64_t revision) {
  return R"({"metadata":{"annotations":{"deployment.kubernetes.io/revision":")" +
         std::to_string(revision) + R"("}}})";
}

}  // namespace

DeploymentController::DeploymentController(WorkContext& context)
    : context_(context),
      passes_(context.client.loop(), [this](const kube::Key& key, Passes::Finished finished) {
        pass(key, std::move(finished));
      }) {
  by_owner_ = context_.replica_sets.add_index([](const kube::Object& object) {
    const SetOwner owner = deployment_of(object.root());
    return owner.uid.empty() ? std::vector<std::string>{}
                             : std::vector<std::string>{object.key.ns + '/' + owner.uid};
  });
}

void DeploymentController::start() {
  context_.deployments.add_handler(
      context_.guarded([this](const kube::ObjectPtr&, const kube::ObjectPtr& after) {
        if (after != nullptr) passes_.add(after->key);
      }));
  context_.replica_sets.add_handler(
      context_.guarded([this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
        const kube::ObjectPtr& set = after != nullptr ? after : before;
        const SetOwner owner = deployment_of(set->root());
        if (!owner.uid.empty()) passes_.add({set->key.ns, owner.name});
      }));
  // Recreate waits for the last pod, of which the ReplicaSet's status does not tell.
  context_.book.watch([this](const PodInfo* before, const PodInfo* after) {
    if (after != nullptr || before->owner_kind != "ReplicaSet") return;
    const kube::ObjectPtr set = context_.replica_sets.find({before->key.ns, before->owner_name});
    if (set == nullptr) return;
    const SetOwner owner = deployment_of(set->root());
    if (!owner.uid.empty()) passes_.add({set->key.ns, owner.name});
  });
}

// Pods of other templates than the present one that are still there.
bool DeploymentController::old_pods(const text::Value& deployment,
                                    const std::vector<kube::ObjectPtr>& sets) const {
  std::vector<SetView> views;
  for (const kube::ObjectPtr& set : sets) views.push_back(read_set(set->root()));
  const DeploymentPlan plan = plan_deployment(deployment, views, true, context_.wall());
  for (const kube::ObjectPtr& set : sets) {
    if (set->key.name == plan.new_set) continue;
    const auto pods = context_.book.of_owner(set->key.ns, set->uid);
    if (std::any_of(pods.begin(), pods.end(),
                    [](const PodBook::PodPtr& pod) { return !pod->finished(); })) {
      return true;
    }
  }
  return false;
}

void DeploymentController::pass(const kube::Key& key, Passes::Finished finished) {
  const kube::ObjectPtr object = context_.deployments.find(key);
  if (object == nullptr) return finished(true);
  const text::Value& deployment = object->root();
  const std::vector<kube::ObjectPtr> sets =
      context_.replica_sets.by_index(by_owner_, object->key.ns + '/' + object->uid);
  std::vector<SetView> views;
  for (const kube::ObjectPtr& set : sets) views.push_back(read_set(set->root()));
  const bool recreate = text_at(deployment, "spec.strategy.type") == "Recreate";
  const bool waits = recreate && old_pods(deployment, sets);
  const DeploymentPlan plan = plan_deployment(deployment, views, waits, context_.wall());
  if (plan.again_ns > 0) passes_.add_after(key, plan.again_ns);
  auto batch = Batch::make(context_, std::move(finished));
  if (plan.create_set) {
    batch->create(context_.replica_sets, {key.ns, plan.new_set}, new_set_object(deployment, plan));
  }
  for (const DeploymentPlan::Scale& scale : plan.scale) {
    const bool stamp = plan.stamp_set && scale.set == plan.new_set;
    batch->patch(context_.replica_sets, {key.ns, scale.set}, kube::PatchType::kMerge,
                 set_patch(deployment, scale.replicas, stamp ? plan.revision : 0));
  }
  const bool scaled = std::any_of(plan.scale.begin(), plan.scale.end(),
                                  [&plan](const auto& s) { return s.set == plan.new_set; });
  if (plan.stamp_set && !scaled) {
    batch->patch(context_.replica_sets, {key.ns, plan.new_set}, kube::PatchType::kMerge,
                 set_patch(deployment, std::nullopt, plan.revision));
  }
  for (const auto& [name, uid] : plan.remove) {
    batch->remove(context_.replica_sets, {key.ns, name}, uid);
  }
  // The status carries the version that was read: it is written before the annotation.
  if (!plan.status.empty()) {
    batch->patch(context_.deployments, key, kube::PatchType::kMerge, plan.status, "status");
  } else if (plan.stamp_deployment) {
    batch->patch(context_.deployments, key, kube::PatchType::kMerge, revision_patch(plan.revision));
  }
  batch->seal();
}

}  // namespace berth::sim
