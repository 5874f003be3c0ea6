#include "base/check.h"
#include "edge/kube/client.h"

namespace berth::kube {

Resource resource_of(const kinds::KindRow& row, std::size_t version) {
  return {std::string(row.group), std::string(row.versions[version].version),
          std::string(row.plural), std::string(row.kind), row.namespaced};
}

namespace resources {
namespace {

Resource known(std::string_view group, std::string_view kind) {
  const kinds::KindRow* row = kinds::find_kind(group, kind);
  BERTH_ASSERT(row != nullptr, "the table has every kind that is asked for by name");
  return resource_of(*row);
}

}  // namespace

const Resource& nodes() {
  static const Resource r = known("", "Node");
  return r;
}
const Resource& pods() {
  static const Resource r = known("", "Pod");
  return r;
}
const Resource& namespaces() {
  static const Resource r = known("", "Namespace");
  return r;
}
const Resource& events() {
  static const Resource r = known("events.k8s.io", "Event");
  return r;
}
const Resource& leases() {
  static const Resource r = known("coordination.k8s.io", "Lease");
  return r;
}
const Resource& jobs() {
  static const Resource r = known("batch", "Job");
  return r;
}
const Resource& replica_sets() {
  static const Resource r = known("apps", "ReplicaSet");
  return r;
}
const Resource& deployments() {
  static const Resource r = known("apps", "Deployment");
  return r;
}
const Resource& priority_classes() {
  static const Resource r = known("scheduling.k8s.io", "PriorityClass");
  return r;
}
const Resource& budgets() {
  static const Resource r = known("policy", "PodDisruptionBudget");
  return r;
}
const Resource& volumes() {
  static const Resource r = known("", "PersistentVolume");
  return r;
}
const Resource& volume_claims() {
  static const Resource r = known("", "PersistentVolumeClaim");
  return r;
}
const Resource& config_maps() {
  static const Resource r = known("", "ConfigMap");
  return r;
}
const Resource& gpu_nodes() {
  static const Resource r = known("berth.dev", "GpuNode");
  return r;
}
const Resource& custom_resource_definitions() {
  static const Resource r = known("apiextensions.k8s.io", "CustomResourceDefinition");
  return r;
}
const Resource& resource_flavors() {
  static const Resource r = known("kueue.x-k8s.io", "ResourceFlavor");
  return r;
}
const Resource& cluster_queues() {
  static const Resource r = known("kueue.x-k8s.io", "ClusterQueue");
  return r;
}
const Resource& local_queues() {
  static const Resource r = known("kueue.x-k8s.io", "LocalQueue");
  return r;
}
const Resource& workloads() {
  static const Resource r = known("kueue.x-k8s.io", "Workload");
  return r;
}

}  // namespace resources
}  // namespace berth::kube
