#include <algorithm>
#include <tuple>

#include "kinds/object_set_state.h"

namespace berth::kinds {

bool ObjectSet::State::left_for_good(const WorkloadObject& workload) const {
  const std::vector<Owner>& owners = workload.meta.owners;
  if (workload.spec.evicted.empty() || owners.size() != 1 || !owners.front().is("", "Pod")) {
    return false;
  }
  const auto pod = pods.find(qualified(workload.spec.ns, owners.front().name));
  return pod == pods.end() || pod->second.uid != owners.front().uid;
}

void ObjectSet::State::give_pods(const PlaceOf& believed, Gathered& all) const {
  all.pods.reserve(pods.size());
  for (const auto& [key, pod] : pods) {
    if (pod.foreign && pod.node.empty() && !in_queue(pod)) continue;
    give_pod(key, pod, believed, all);
  }
}

void ObjectSet::State::give_complaints(Gathered& all) const {
  for (const auto& [key, pod] : pods) {
    if (pod.body->valid) continue;
    if (pod.unread()) {
      all.count_in_part(complaints(key, pod), {kPodCounts});
      continue;
    }
    ++all.counts.invalid_objects;
    for (Note& note : complaints(key, pod)) all.invalid.add(std::move(note));
  }
  unread.give(all);
}

void ObjectSet::State::add_node(const std::string& name, Gathered& to) const {
  const auto node = shelves.nodes.objects.find("|/" + name);
  if (node != shelves.nodes.objects.end()) to.nodes.push_back(*node->second);
  const auto agent = shelves.gpu_nodes.objects.find("berth.dev|/" + name);
  if (agent != shelves.gpu_nodes.objects.end()) to.gpu_nodes.push_back(*agent->second);
}

void ObjectSet::State::resolve_nodes(ObjectChanges& out) {
  Gathered some;
  for (const std::string& name : dirty_nodes) add_node(name, some);
  Inputs inputs = resolve(std::move(some), live_options());
  Names there;
  for (const model::NodeSpec& node : inputs.nodes) there.insert(node.name);
  for (const std::string& name : dirty_nodes) {
    if (!there.contains(name)) out.gone_nodes.push_back(name);
  }
  out.nodes = std::move(inputs.nodes);
  dirty_nodes.clear();
}

void ObjectSet::State::spread_dirty_gangs(ObjectChanges& out) {
  Names groups;
  for (const auto& [key, group] : shelves.groups.objects) {
    groups.insert(qualified(group->object.gang.ns, group->object.gang.name));
  }
  for (const std::string& gang : dirty_gangs) {
    if (!groups.contains(gang)) out.gone_gangs.push_back(gang);
    const auto it = members.find(gang);
    if (it != members.end()) dirty_pods.insert(it->second.begin(), it->second.end());
  }
}

bool ObjectSet::State::decides_for_mates(const std::string& gang) const {
  const auto mates = members.find(gang);
  if (mates == members.end()) return false;
  return std::any_of(mates->second.begin(), mates->second.end(), [&](const std::string& mate) {
    const Membership& member = pods.at(mate).body->object.member;
    return !member.topology.empty() || member.group_min.has_value();
  });
}

void ObjectSet::State::add_claims(const LivePod& pod, Names& seen, Gathered& to) const {
  for (const ClaimRef& ref : pod.body->object.claims) {
    const std::string name = ref.ephemeral ? pod.name + '-' + ref.volume : ref.claim;
    const std::string key = "|" + qualified(pod.ns, name);
    if (!seen.insert(key).second) continue;
    const auto claim = shelves.claims.objects.find(key);
    if (claim == shelves.claims.objects.end()) continue;
    to.claims.push_back(*claim->second);
    for (const auto& [volume_key, volume] : shelves.volumes.objects) {
      const VolumeObject& v = volume->object;
      const bool named = v.meta.name == claim->second->object.volume_name ||
                         (v.claim_ns == pod.ns && v.claim_name == name);
      if (named && seen.insert("v" + volume_key).second) to.volumes.push_back(*volume);
    }
  }
}

Gathered ObjectSet::State::gather(const std::vector<const LivePod*>& batch, const Names& gangs,
                                  const PlaceOf& believed) const {
  Gathered some;
  Names nodes, jobs, groups = gangs, claims, spaces;
  for (const LivePod* pod : batch) {
    give_pod(qualified(pod->ns, pod->name), *pod, believed, some);
    const auto space = shelves.namespaces.objects.find("|/" + pod->ns);
    if (space != shelves.namespaces.objects.end() && spaces.insert(pod->ns).second) {
      some.namespaces.push_back(*space->second);
    }
    const std::string& node = some.pods.back().object.spec.node_name;
    if (!node.empty() && nodes.insert(node).second) add_node(node, some);
    if (!pod->group().empty()) groups.insert(qualified(pod->ns, pod->group()));
    if (pod->node.empty()) add_claims(*pod, claims, some);
    if (!pod->owner().starts_with("Job/")) continue;
    const std::string key = "batch|" + qualified(pod->ns, pod->owner().substr(4));
    const auto job = shelves.jobs.objects.find(key);
    if (job == shelves.jobs.objects.end() || !job->second->object.is_gang()) continue;
    if (jobs.insert(key).second) some.jobs.push_back(*job->second);
  }
  for (const auto& [key, group] : shelves.groups.objects) {
    if (groups.empty()) break;
    const model::GangSpec& gang = group->object.gang;
    if (groups.contains(qualified(gang.ns, gang.name))) some.groups.push_back(*group);
  }
  shelves.priority_classes.give(some);
  shelves.queue_configs.give(some);
  return some;
}

void ObjectSet::State::look_at(const std::string& key, const PlaceOf& believed,
                               std::vector<const LivePod*>& batch, ObjectChanges& out) {
  const auto it = pods.find(key);
  if (it == pods.end() || it->second.finished()) {
    out.gone_pods.push_back(key);
    return;
  }
  const bool bound =
      !it->second.node.empty() || (believed && !believed(key, it->second).node.empty());
  if (!it->second.body->valid) {
    auto& told = bound ? out.unread : out.refused;
    for (Note& note : complaints(key, it->second)) told.push_back(std::move(note));
  }
  if (!it->second.body->valid && !bound) {
    out.gone_pods.push_back(key);
  } else if (in_queue(it->second)) {
    queues_dirty = true;
  } else if (it->second.foreign && it->second.node.empty()) {
    out.gone_pods.push_back(key);
  } else {
    batch.push_back(&it->second);
  }
}

void ObjectSet::State::resolve_pods(std::size_t max_pods, const PlaceOf& believed,
                                    ObjectChanges& out) {
  std::vector<const LivePod*> batch;
  Names taken, gangs;
  for (const std::string& key : dirty_pods) {
    if (taken.size() >= max_pods) break;
    if (!taken.insert(key).second) continue;
    look_at(key, believed, batch, out);
    const auto pod = pods.find(key);
    if (pod == pods.end() || pod->second.group().empty()) continue;
    const std::string gang = qualified(pod->second.ns, pod->second.group());
    if (!gangs.insert(gang).second || !decides_for_mates(gang)) continue;
    for (const std::string& mate : members.at(gang)) {
      if (taken.insert(mate).second) look_at(mate, believed, batch, out);
    }
  }
  std::sort(batch.begin(), batch.end(), [](const LivePod* a, const LivePod* b) {
    return std::tie(a->node, a->ns, a->name) < std::tie(b->node, b->ns, b->name);
  });
  for (const std::string& key : taken) dirty_pods.erase(key);
  out.more = !dirty_pods.empty();
  if (batch.empty() && dirty_gangs.empty()) return;
  Inputs inputs = resolve(gather(batch, dirty_gangs, believed), live_options());
  dirty_gangs.clear();
  Names there;
  for (const model::PodSpec& pod : inputs.pods) there.insert(qualified(pod.ns, pod.name));
  for (const LivePod* pod : batch) {
    std::string key = qualified(pod->ns, pod->name);
    if (!there.contains(key)) out.gone_pods.push_back(std::move(key));
  }
  out.pods = std::move(inputs.pods);
  std::move(inputs.invalid.begin(), inputs.invalid.end(), std::back_inserter(out.refused));
  Names keys;
  for (const auto& [label, count] : label_keys) keys.insert(label);
  for (model::GangSpec& gang : inputs.gangs) {
    const auto meaning = [&keys](std::string& topology) {
      if (!topology.empty()) topology = topology_key(topology, keys);
    };
    meaning(gang.required_topology);
    meaning(gang.preferred_topology);
    for (model::SubgroupSpec& sub : gang.subgroups) {
      meaning(sub.required_topology);
      meaning(sub.preferred_topology);
    }
    out.gangs.push_back(std::move(gang));
  }
}

void ObjectSet::State::resolve_budgets(ObjectChanges& out, const ObjectSet& set) {
  out.budgets_changed = true;
  budgets_dirty = false;
  const auto& all = shelves.budgets.objects;
  const bool counts_pods = std::any_of(all.begin(), all.end(), [](const auto& entry) {
    return !entry.second->object.status_allowed;
  });
  if (counts_pods) {
    out.budgets = set.inputs().budgets;
    return;
  }
  for (const auto& [key, budget] : all) {
    out.budgets.push_back(resolve_budget(budget->object, {}));
  }
}

}  // namespace berth::kinds
