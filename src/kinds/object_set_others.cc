#include <algorithm>

#include "kinds/object_set_state.h"
#include "kinds/queue_view.h"
#include "text/path.h"

namespace berth::kinds {

void ObjectSet::State::count_label_keys(const NodeObject& node, int by) {
  for (const auto& [label, value] : node.spec.labels) {
    int& count = label_keys[label];
    const bool was = count > 0;
    count += by;
    if (was == (count > 0)) continue;
    if (count <= 0) label_keys.erase(label);
    if (view) view->everything_changed();
    // What a short name of a topology means may have changed.
    for (const auto& [key, group] : shelves.groups.objects) {
      const model::GangSpec& gang = group->object.gang;
      const bool asks = !gang.required_topology.empty() || !gang.preferred_topology.empty() ||
                        !gang.subgroups.empty();
      if (asks) dirty_gangs.insert(qualified(gang.ns, gang.name));
    }
  }
}

void ObjectSet::State::count_queue_group(const GroupObject& group, int by) {
  if (!group.meta.labels.contains(kQueueLabel) && group.workload.empty()) return;
  const std::string name = qualified(group.meta.ns, group.meta.name);
  int& count = queue_groups[name];
  count += by;
  if (count <= 0) queue_groups.erase(name);
}

void ObjectSet::State::owners_of_workload(const Found<WorkloadObject>& found, int by) {
  const WorkloadObject& object = found.object;
  for (const Owner& owner : object.meta.owners) {
    const std::string key = qualified(object.spec.ns, owner.text());
    int& count = workload_owners[key];
    count += by;
    if (count <= 0) workload_owners.erase(key);
    const auto pods_of = owned.find(key);
    if (pods_of != owned.end()) dirty_pods.insert(pods_of->second.begin(), pods_of->second.end());
  }
}

void ObjectSet::State::take_holders(const std::string& node, const GpuNode* agent) {
  std::map<std::string, Holding, std::less<>> now;
  if (agent != nullptr) {
    for (const GpuNodeGpu& gpu : agent->gpus) {
      for (const std::string& uid : gpu.holders) {
        now[uid].node = node;
        now[uid].indices.push_back(gpu.gpu.index);
      }
    }
  }
  const auto on = pods_on.find(node);
  if (on != pods_on.end()) {
    for (const std::string& key : on->second) {
      const LivePod& pod = pods.at(key);
      std::vector<int> before, after;
      indices_of(pod.gpus, before);
      after = before;
      if (const auto it = holders.find(pod.uid); it != holders.end()) before = it->second.indices;
      if (const auto it = now.find(pod.uid); it != now.end()) after = it->second.indices;
      if (before != after) note_pod(key, pod);
    }
  }
  std::erase_if(holders, [&](const auto& entry) { return entry.second.node == node; });
  for (auto& [uid, holding] : now) holders.insert_or_assign(uid, std::move(holding));
}

Effect ObjectSet::State::changed(std::string_view version, std::string_view kind,
                                 std::string_view ns, std::string_view name) {
  const std::string group(api_group(version));
  if (view) tell_view(version, kind, ns, name);
  if (kind == "Node" || kind == "GpuNode") {
    dirty_nodes.emplace(name);
    // Whether the devices that its pods name are there.
    const auto on = pods_on.find(name);
    if (on != pods_on.end()) dirty_pods.insert(on->second.begin(), on->second.end());
    queues_dirty = queues_dirty || has_queues();
    return Effect::kNow;
  }
  if (kind == "PodDisruptionBudget") {
    budgets_dirty = true;
    return Effect::kLater;
  }
  if (kind == "BerthPolicy" && name != kPolicyInForce) return Effect::kNone;
  if (kind == "PriorityClass" || kind == "BerthPolicy") {
    everything = true;
  } else if (kind == "PersistentVolume" || kind == "PersistentVolumeClaim") {
    for (const auto& [key, pod] : pods) {
      if (pod.node.empty() && !pod.body->object.claims.empty()) note_pod(key, pod);
    }
  } else if (kind == "PodGroup") {
    dirty_gangs.insert(qualified(std::string(ns), std::string(name)));
  } else if (kind == "Job" && group == "batch") {
    return job_changed(ns, name);
  } else if (shelf_for(shelves, version, kind) == &shelves.makers) {
    const auto made = owned.find(key_of(&shelves.makers, version, kind, ns, name));
    if (made != owned.end()) dirty_pods.insert(made->second.begin(), made->second.end());
    if (!kueue()) return Effect::kNone;
  }
  const bool of_queues = kind != "PersistentVolume" && kind != "PersistentVolumeClaim";
  if (of_queues) queues_dirty = true;
  if (kind == "ClusterQueue" || kind == "LocalQueue" || kind == "Queue" ||
      kind == "Configuration") {
    for (const auto& [key, pod] : pods) {  // who belongs to a queue may be different now
      if (in_queue(pod)) dirty_pods.insert(key);
    }
  }
  if (kind == "Namespace" || kind == "Configuration") touch_waiting(name);
  return Effect::kNow;
}

// What the change of an object is to queues.
void ObjectSet::State::tell_view(std::string_view version, std::string_view kind,
                                 std::string_view ns, std::string_view name) {
  const Shelf* shelf = shelf_for(shelves, version, kind);
  if (shelf == &shelves.nodes || shelf == &shelves.gpu_nodes) {
    view->node_changed(std::string(name));
  } else if (shelf == &shelves.volumes || shelf == &shelves.claims) {
    view->volumes_changed();
  } else if (shelf == &shelves.namespaces || shelf == &shelves.local_queues) {
    view->namespace_changed(std::string(shelf == &shelves.namespaces ? name : ns));
  } else if (shelf == &shelves.budgets || shelf == &shelves.policies) {
    return;
  } else if (!view->object_changed(shelf, key_of(shelf, version, kind, ns, name))) {
    view->everything_changed();
  }
}

void ObjectSet::State::touch_waiting(std::string_view ns) {
  const std::string from = ns.empty() ? "" : std::string(ns) + '/';
  for (auto it = pods.lower_bound(from); it != pods.end() && it->first.starts_with(from); ++it) {
    if (it->second.node.empty()) dirty_pods.insert(it->first);
  }
}

Effect ObjectSet::State::job_changed(std::string_view ns, std::string_view name) {
  const auto job = shelves.jobs.objects.find(key_on_shelf("batch/v1", ns, name));
  const std::string owner = qualified(std::string(ns), "Job/" + std::string(name));
  const bool gang = job == shelves.jobs.objects.end() || job->second->object.is_gang();
  if (const auto it = owned.find(owner); gang && it != owned.end()) {
    dirty_pods.insert(it->second.begin(), it->second.end());
  }
  if (kueue()) queues_dirty = true;
  return kueue() || gang ? Effect::kNow : Effect::kNone;
}

std::string ObjectSet::State::key_of(const Shelf* shelf, std::string_view version,
                                     std::string_view kind, std::string_view ns,
                                     std::string_view name) const {
  if (shelf != &shelves.makers) return key_on_shelf(version, ns, name);
  const Owner as_owner{.api_version = std::string(version),
                       .kind = std::string(kind),
                       .name = std::string(name),
                       .uid = {}};
  return qualified(std::string(ns), as_owner.text());
}

Effect ObjectSet::State::put_object(std::string_view version, std::string_view kind,
                                    const Value& v) {
  Shelf* shelf = shelf_for(shelves, version, kind);
  if (shelf == nullptr) return Effect::kNone;
  const std::string ns(text_at(v, "metadata.namespace"));
  const std::string name(text_at(v, "metadata.name"));
  const std::string key = key_of(shelf, version, kind, ns, name);
  const std::string digest_key = std::string(kind) + '|' + key;
  std::uint64_t& mine = digests[digest_key];
  digest -= mine;
  mine = object_digest(kind, key, v);
  digest += mine;
  if (shelf == &shelves.workloads || shelf == &shelves.cluster_queues ||
      shelf == &shelves.local_queues) {
    const BodyHash hash = hash_of_decided(kind, v, options.seed);
    const auto [it, fresh] = decided.try_emplace(digest_key, hash);
    if (!fresh && it->second == hash) return Effect::kNone;
    it->second = hash;
  }
  Gathered one;
  read_object(v, version, kind, {.source = "cluster"}, one);
  const bool invalid = one.counts.invalid_objects > 0;
  if (unread.put(kind, key, std::move(one.unread), invalid)) ++revision;
  before_change(kind, key, name, one);
  const bool differs = shelf->take(key, one);
  after_change(kind, key, name);
  if (!differs) return Effect::kNone;
  ++revision;
  if (shelf == &shelves.workloads) enter_lane(key, v);
  if (kind == "GpuNode" && gpu_facts_same) return Effect::kLater;
  return changed(version, kind, ns, name);
}

void ObjectSet::State::enter_lane(const std::string& key, const Value& v) {
  const auto it = shelves.workloads.objects.find(key);
  if (it == shelves.workloads.objects.end()) return lanes.erase(key);
  lanes.put(key, it->second->object, v);
}

void ObjectSet::State::before_change(std::string_view kind, const std::string& key,
                                     const std::string& name, const Gathered& one) {
  if (kind == "Node") {
    const auto it = shelves.nodes.objects.find(key);
    if (it != shelves.nodes.objects.end()) {
      const bool same = !one.nodes.empty() &&
                        one.nodes.front().object.spec.labels == it->second->object.spec.labels;
      if (!same) count_label_keys(it->second->object, -1);
      labels_counted = same;
    } else {
      labels_counted = false;
    }
  } else if (kind == "Workload") {
    const auto it = shelves.workloads.objects.find(key);
    if (it != shelves.workloads.objects.end()) owners_of_workload(*it->second, -1);
  } else if (kind == "PodGroup") {
    const auto it = shelves.groups.objects.find(key);
    if (it != shelves.groups.objects.end()) count_queue_group(it->second->object, -1);
  } else if (kind == "GpuNode") {
    const auto it = shelves.gpu_nodes.objects.find(key);
    gpu_facts_same = it != shelves.gpu_nodes.objects.end() && !one.gpu_nodes.empty() &&
                     same_but_holders(it->second->object, one.gpu_nodes.front().object);
    take_holders(name, one.gpu_nodes.empty() ? nullptr : &one.gpu_nodes.front().object);
  }
}

void ObjectSet::State::after_change(std::string_view kind, const std::string& key,
                                    const std::string&) {
  if (kind == "Node") {
    const auto it = shelves.nodes.objects.find(key);
    if (it != shelves.nodes.objects.end() && !labels_counted) {
      count_label_keys(it->second->object, +1);
    }
  } else if (kind == "Workload") {
    const auto it = shelves.workloads.objects.find(key);
    if (it != shelves.workloads.objects.end()) owners_of_workload(*it->second, +1);
  } else if (kind == "PodGroup") {
    const auto it = shelves.groups.objects.find(key);
    if (it != shelves.groups.objects.end()) count_queue_group(it->second->object, +1);
  }
}

Effect ObjectSet::State::remove_object(std::string_view version, std::string_view kind,
                                       std::string_view ns, std::string_view name) {
  Shelf* shelf = shelf_for(shelves, version, kind);
  if (shelf == nullptr) return Effect::kNone;
  const std::string key = key_of(shelf, version, kind, ns, name);
  const auto mine = digests.find(std::string(kind) + '|' + key);
  if (mine != digests.end()) {
    digest -= mine->second;
    decided.erase(mine->first);
    digests.erase(mine);
  }
  if (shelf == &shelves.workloads) lanes.erase(key);
  unread.put(kind, key, {}, false);
  gpu_facts_same = false;
  before_change(kind, key, std::string(name), Gathered());
  if (!shelf->erase(key)) return Effect::kNone;
  ++revision;
  return changed(version, kind, ns, name);
}

}  // namespace berth::kinds
