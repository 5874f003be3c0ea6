#include "kube/client.h"

namespace berth::kube::resources {
namespace {

constexpr const char* kKueueGroup = "kueue.x-k8s.io";
constexpr const char* kKueueVersion = "v1beta2";

Resource kueue(const char* plural, const char* kind, bool namespaced) {
  return {kKueueGroup, kKueueVersion, plural, kind, namespaced};
}

}  // namespace

const Resource& nodes() {
  static const Resource r{"", "v1", "nodes", "Node", false};
  return r;
}
const Resource& pods() {
  static const Resource r{"", "v1", "pods", "Pod", true};
  return r;
}
const Resource& namespaces() {
  static const Resource r{"", "v1", "namespaces", "Namespace", false};
  return r;
}
const Resource& events() {
  static const Resource r{"events.k8s.io", "v1", "events", "Event", true};
  return r;
}
const Resource& leases() {
  static const Resource r{"coordination.k8s.io", "v1", "leases", "Lease", true};
  return r;
}
const Resource& jobs() {
  static const Resource r{"batch", "v1", "jobs", "Job", true};
  return r;
}
const Resource& replica_sets() {
  static const Resource r{"apps", "v1", "replicasets", "ReplicaSet", true};
  return r;
}
const Resource& deployments() {
  static const Resource r{"apps", "v1", "deployments", "Deployment", true};
  return r;
}
const Resource& priority_classes() {
  static const Resource r{"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false};
  return r;
}
const Resource& budgets() {
  static const Resource r{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true};
  return r;
}
const Resource& volumes() {
  static const Resource r{"", "v1", "persistentvolumes", "PersistentVolume", false};
  return r;
}
const Resource& volume_claims() {
  static const Resource r{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true};
  return r;
}
const Resource& config_maps() {
  static const Resource r{"", "v1", "configmaps", "ConfigMap", true};
  return r;
}
const Resource& gpu_nodes() {
  static const Resource r{"berth.dev", "v1alpha1", "gpunodes", "GpuNode", false};
  return r;
}
const Resource& custom_resource_definitions() {
  static const Resource r{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                          "CustomResourceDefinition", false};
  return r;
}
const Resource& resource_flavors() {
  static const Resource r = kueue("resourceflavors", "ResourceFlavor", false);
  return r;
}
const Resource& cluster_queues() {
  static const Resource r = kueue("clusterqueues", "ClusterQueue", false);
  return r;
}
const Resource& local_queues() {
  static const Resource r = kueue("localqueues", "LocalQueue", true);
  return r;
}
const Resource& cohorts() {
  static const Resource r = kueue("cohorts", "Cohort", false);
  return r;
}
const Resource& workloads() {
  static const Resource r = kueue("workloads", "Workload", true);
  return r;
}
const Resource& topologies() {
  static const Resource r = kueue("topologies", "Topology", false);
  return r;
}
const Resource& admission_checks() {
  static const Resource r = kueue("admissionchecks", "AdmissionCheck", false);
  return r;
}
const Resource& workload_priority_classes() {
  static const Resource r = kueue("workloadpriorityclasses", "WorkloadPriorityClass", false);
  return r;
}

}  // namespace berth::kube::resources
