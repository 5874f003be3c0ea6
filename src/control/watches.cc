#include "control/watches.h"

#include <algorithm>
#include <utility>

#include "control/kueue_lease.h"

namespace berth::control {

using kube::Keep;
using kube::Resource;

Watches::Watches(kube::Client& client, Random random, MetricsRegistry& metrics, Change change,
                 std::function<void()> synced)
    : client_(client),
      random_(random),
      metrics_(metrics),
      change_(std::move(change)),
      synced_(std::move(synced)) {
  namespace r = kube::resources;
  add(r::nodes(), Keep::kKeys);
  add(r::gpu_nodes(), Keep::kKeys);
  add(r::priority_classes(), Keep::kKeys);
  add(r::budgets(), Keep::kKeys);
  add(r::volumes(), Keep::kKeys);
  add(r::volume_claims(), Keep::kKeys);
  add(r::namespaces(), Keep::kKeys);
  jobs_ = &add(r::jobs(), Keep::kWhole);
  add(r::resource_flavors(), Keep::kKeys);
  cluster_queues_ = &add(r::cluster_queues(), Keep::kWhole);
  local_queues_ = &add(r::local_queues(), Keep::kWhole);
  add(r::cohorts(), Keep::kKeys);
  workloads_ = &add(r::workloads(), Keep::kWhole);
  add(r::topologies(), Keep::kKeys);
  add(r::admission_checks(), Keep::kKeys);
  add(r::workload_priority_classes(), Keep::kKeys);
  const Resource kGroups[] = {
      // kai_groups() is the third
      {"scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"},
      {"scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"},
      {"scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup"},
      {"scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup"},
      {"scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup"},
  };
  for (const Resource& group : kGroups) groups_.push_back(&add(group, Keep::kWhole));
  add({"scheduling.k8s.io", "v1beta1", "workloads", "Workload"}, Keep::kKeys);
  add({"scheduling.volcano.sh", "v1beta1", "queues", "Queue", false}, Keep::kKeys);
  add({"scheduling.run.ai", "v2", "queues", "Queue", false}, Keep::kKeys);
  add({"batch.volcano.sh", "v1alpha1", "jobs", "Job"}, Keep::kKeys);
  add(r::config_maps(), Keep::kKeys, kKueueNamespace,
      std::string("metadata.name=") + kKueueConfigMap);
  add(r::leases(), Keep::kKeys, kKueueNamespace, std::string("metadata.name=") + kKueueLease);
  pods_ = &add(r::pods(), Keep::kKeys);  // last: what they refer to is there by then
}

kube::Informer& Watches::add(const Resource& resource, Keep keep, std::string ns,
                             std::string field_selector) {
  kube::InformerOptions options;
  options.resource = resource;
  options.ns = std::move(ns);
  options.field_selector = std::move(field_selector);
  options.keep = keep;
  all_.push_back(std::make_unique<kube::Informer>(client_, random_, std::move(options), &metrics_));
  kube::Informer& informer = *all_.back();
  informer.add_handler(
      [this, &informer](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
        change_(informer.options().resource, before, after);
      });
  informer.on_synced([this] { synced_(); });
  return informer;
}

void Watches::start() {
  for (const auto& informer : all_) informer->start();
}

bool Watches::synced() const {
  return std::all_of(all_.begin(), all_.end(), [](const auto& i) { return i->synced(); });
}

std::vector<std::string> Watches::missing() const {
  std::vector<std::string> out;
  for (const auto& i : all_) {
    const Resource& r = i->options().resource;
    if (!i->synced()) out.push_back(r.group.empty() ? r.plural : r.plural + '.' + r.group);
  }
  return out;
}

// As numbers, which they are on every server that we know; without leading zeros.
std::string Watches::version() const {
  std::string_view newest;
  for (const auto& i : all_) {
    const std::string_view each = i->version();
    if (std::pair(each.size(), each) > std::pair(newest.size(), newest)) newest = each;
  }
  return std::string(newest);
}

}  // namespace berth::control
