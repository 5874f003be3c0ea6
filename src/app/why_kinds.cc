#include "app/why_kinds.h"

namespace berth::app {

const std::vector<kube::Resource>& rule_kinds() {
  static const std::vector<kube::Resource> all = {
      {"", "v1", "resourcequotas", "ResourceQuota", true},
      {"", "v1", "limitranges", "LimitRange", true},
      {"", "v1", "serviceaccounts", "ServiceAccount", true},
      {"node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", false},
      {"storage.k8s.io", "v1", "storageclasses", "StorageClass", false}};
  return all;
}

const std::vector<kube::Resource>& maker_kinds() {
  static const std::vector<kube::Resource> all = {
      {"apps", "v1", "deployments", "Deployment", true},
      {"apps", "v1", "replicasets", "ReplicaSet", true},
      {"apps", "v1", "statefulsets", "StatefulSet", true},
      {"batch", "v1", "cronjobs", "CronJob", true},
      {"jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", true},
      {"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", true},
      {"resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", true},
      {"resource.k8s.io", "v1", "deviceclasses", "DeviceClass", false}};
  return all;
}

const std::vector<kube::Resource>& autoscaler_kinds() {
  static const std::vector<kube::Resource> all = {
      {"karpenter.sh", "v1", "nodepools", "NodePool", false},
      {"karpenter.sh", "v1", "nodeclaims", "NodeClaim", false},
      {"autoscaling.x-k8s.io", "v1", "provisioningrequests", "ProvisioningRequest", true}};
  return all;
}

}  // namespace berth::app
