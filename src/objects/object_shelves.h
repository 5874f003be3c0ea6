// The objects of an ObjectSet other than pods, one shelf for each kind. Private to this folder.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "objects/gathered.h"
#include "objects/pod_body.h"

namespace berth::objects {

class Shelf {
 public:
  virtual ~Shelf() = default;
  // The one object of the list, if it was valid; true when it is not what was there.
  virtual bool take(const std::string& key, Gathered& from) = 0;
  virtual bool erase(const std::string& key) = 0;
  virtual void give(Gathered& to) const = 0;
};

template <class T>
bool same_object(const T&, const T&) {
  return false;
}
inline bool same_object(const NodeObject& a, const NodeObject& b) { return a.spec == b.spec; }
inline bool same_object(const GpuNode& a, const GpuNode& b) { return a == b; }
inline bool same_object(const GroupObject& a, const GroupObject& b) {
  return a.gang == b.gang && a.priority_class == b.priority_class && a.kai == b.kai;
}

template <auto Member>
class ShelfOf final : public Shelf {
 public:
  using FoundT =
      typename std::remove_reference_t<decltype(std::declval<Gathered&>().*Member)>::value_type;
  bool take(const std::string& key, Gathered& from) override {
    auto& list = from.*Member;
    if (list.empty()) return erase(key);  // it was valid before, or it never was
    auto fresh = std::make_shared<const FoundT>(std::move(list.front()));
    auto& place = objects[key];
    const bool same = place && same_object(place->object, fresh->object);
    place = std::move(fresh);
    return !same;
  }
  bool erase(const std::string& key) override { return objects.erase(key) > 0; }
  void give(Gathered& to) const override {
    for (const auto& [key, found] : objects) (to.*Member).push_back(*found);
  }

  // By group|ns/name. Never changed in place: copies of the set share them.
  std::map<std::string, std::shared_ptr<const FoundT>> objects;
};

struct Shelves {
  ShelfOf<&Gathered::nodes> nodes;
  ShelfOf<&Gathered::gpu_nodes> gpu_nodes;
  ShelfOf<&Gathered::jobs> jobs;
  ShelfOf<&Gathered::groups> groups;
  ShelfOf<&Gathered::budgets> budgets;
  ShelfOf<&Gathered::volumes> volumes;
  ShelfOf<&Gathered::claims> claims;
  ShelfOf<&Gathered::priority_classes> priority_classes;
  ShelfOf<&Gathered::flavors> flavors;
  ShelfOf<&Gathered::cluster_queues> cluster_queues;
  ShelfOf<&Gathered::local_queues> local_queues;
  ShelfOf<&Gathered::cohorts> cohorts;
  ShelfOf<&Gathered::topologies> topologies;
  ShelfOf<&Gathered::checks> checks;
  ShelfOf<&Gathered::workload_classes> workload_classes;
  ShelfOf<&Gathered::namespaces> namespaces;
  ShelfOf<&Gathered::workloads> workloads;
  ShelfOf<&Gathered::queue_configs> queue_configs;
  ShelfOf<&Gathered::volcano_queues> volcano_queues;
  ShelfOf<&Gathered::kai_queues> kai_queues;
  ShelfOf<&Gathered::volcano_jobs> volcano_jobs;
  ShelfOf<&Gathered::upstream_workloads> upstream_workloads;

  std::array<const Shelf*, 22> all() const {
    return {&nodes,
            &gpu_nodes,
            &jobs,
            &groups,
            &budgets,
            &volumes,
            &claims,
            &priority_classes,
            &flavors,
            &cluster_queues,
            &local_queues,
            &cohorts,
            &topologies,
            &checks,
            &workload_classes,
            &namespaces,
            &workloads,
            &queue_configs,
            &volcano_queues,
            &kai_queues,
            &volcano_jobs,
            &upstream_workloads};
  }
};

// What is left of a workload that is not decided: whose pods it stands for.
inline Found<WorkloadObject> slim(const Found<WorkloadObject>& found) {
  Found<WorkloadObject> out{.origin = found.origin, .shown = found.shown, .object = {}};
  out.object.meta.owners = found.object.meta.owners;
  out.object.spec.ns = found.object.spec.ns;
  out.object.spec.name = found.object.spec.name;
  out.object.spec.finished = true;
  return out;
}

inline bool same_but_holders(const GpuNode& a, const GpuNode& b) {
  GpuNode x = a, y = b;
  for (auto& gpu : x.gpus) gpu.holders.clear();
  for (auto& gpu : y.gpus) gpu.holders.clear();
  return x == y;
}

// What says whether a namespace requires a queue, or has one for what names none.
inline Gathered of_demands(const Shelves& s) {
  Gathered out;
  s.namespaces.give(out);
  s.queue_configs.give(out);
  s.local_queues.give(out);
  s.cluster_queues.give(out);
  return out;
}

inline constexpr std::string_view kGroupOfKueue = "kueue.x-k8s.io";
inline constexpr std::string_view kVolcanoGroup = "scheduling.volcano.sh";

inline Shelf* queue_shelf(Shelves& s, std::string_view group, std::string_view kind) {
  if (group == kGroupOfKueue) {
    if (kind == "ResourceFlavor") return &s.flavors;
    if (kind == "ClusterQueue") return &s.cluster_queues;
    if (kind == "LocalQueue") return &s.local_queues;
    if (kind == "Cohort") return &s.cohorts;
    if (kind == "Topology") return &s.topologies;
    if (kind == "AdmissionCheck") return &s.checks;
    if (kind == "WorkloadPriorityClass") return &s.workload_classes;
    if (kind == "Workload") return &s.workloads;
  }
  if (kind == "Configuration") return &s.queue_configs;
  if (kind == "Queue") {
    return group == kVolcanoGroup ? static_cast<Shelf*>(&s.volcano_queues) : &s.kai_queues;
  }
  if (kind == "Workload") return &s.upstream_workloads;
  if (kind == "Namespace") return &s.namespaces;
  return nullptr;
}

inline Shelf* shelf_for(Shelves& s, std::string_view version, std::string_view kind) {
  const std::string_view group = api_group(version);
  if (kind == "Node") return &s.nodes;
  if (kind == "GpuNode") return &s.gpu_nodes;
  if (kind == "Job") return group == "batch" ? static_cast<Shelf*>(&s.jobs) : &s.volcano_jobs;
  if (kind == "PodGroup") return &s.groups;
  if (kind == "PodDisruptionBudget") return &s.budgets;
  if (kind == "PersistentVolume") return &s.volumes;
  if (kind == "PersistentVolumeClaim") return &s.claims;
  if (kind == "PriorityClass") return &s.priority_classes;
  return queue_shelf(s, group, kind);
}

inline std::string key_on_shelf(std::string_view version, std::string_view ns,
                                std::string_view name) {
  std::string key(api_group(version));
  return key.append("|").append(ns).append("/").append(name);
}

}  // namespace berth::objects
