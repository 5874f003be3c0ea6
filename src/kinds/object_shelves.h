// The objects of an ObjectSet other than pods, one shelf for each kind. Private to this folder.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "kinds/gathered.h"
#include "kinds/kind_table.h"
#include "kinds/pod_body.h"

namespace berth::kinds {

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
inline bool same_object(const NamespaceObject& a, const NamespaceObject& b) {
  return a.meta.labels == b.meta.labels;  // all that is read of it
}
inline bool same_object(const GpuNode& a, const GpuNode& b) { return a == b; }
inline bool same_object(const PolicyObject& a, const PolicyObject& b) {
  return a.policy == b.policy;
}
inline bool same_object(const GroupObject& a, const GroupObject& b) {
  return a.gang == b.gang && a.priority_class == b.priority_class && a.kai == b.kai &&
         a.meta.labels == b.meta.labels && a.meta.owners == b.meta.owners &&
         a.workload == b.workload && a.workload_template == b.workload_template;
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
  ShelfOf<&Gathered::makers> makers;
  ShelfOf<&Gathered::groups> groups;
  ShelfOf<&Gathered::budgets> budgets;
  ShelfOf<&Gathered::volumes> volumes;
  ShelfOf<&Gathered::claims> claims;
  ShelfOf<&Gathered::priority_classes> priority_classes;
  ShelfOf<&Gathered::policies> policies;
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

  std::array<const Shelf*, 24> all() const {
    return {&nodes,        &gpu_nodes,        &jobs,
            &makers,       &groups,           &budgets,
            &volumes,      &claims,           &priority_classes,
            &policies,     &flavors,          &cluster_queues,
            &local_queues, &cohorts,          &topologies,
            &checks,       &workload_classes, &namespaces,
            &workloads,    &queue_configs,    &volcano_queues,
            &kai_queues,   &volcano_jobs,     &upstream_workloads};
  }
};

// What is left of a workload that is not decided: whose pods it stands for.
inline Found<WorkloadObject> slim(const Found<WorkloadObject>& found) {
  Found<WorkloadObject> out{.origin = found.origin, .shown = found.shown, .object = {}};
  out.object.meta.ns = found.object.meta.ns;
  out.object.meta.name = found.object.meta.name;
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

// Null: what is of this kind is not kept.
inline Shelf* shelf_for(Shelves& s, std::string_view version, std::string_view kind) {
  const KindRow* row = find_kind_of(version, kind);
  return row == nullptr || row->shelf == nullptr ? nullptr : row->shelf(s);
}

inline std::string key_on_shelf(std::string_view version, std::string_view ns,
                                std::string_view name) {
  std::string key(api_group(version));
  return key.append("|").append(ns).append("/").append(name);
}

}  // namespace berth::kinds
