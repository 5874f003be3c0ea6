// What an ObjectSet holds, and how a change of one object spreads to others. Private to this
// folder; object_set.cc is its outside.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "kinds/counted.h"
#include "kinds/object_set.h"
#include "kinds/object_shelves.h"
#include "kinds/queue_marks.h"
#include "kinds/resolver.h"
#include "kinds/unread_book.h"
#include "kinds/waiting_lanes.h"
#include "text/path.h"

namespace berth::kinds {

struct ObjectSet::State {
  using Names = std::set<std::string, std::less<>>;
  using Value = text::Value;

  struct Holding {
    std::string node;
    std::vector<int> indices;
    friend bool operator==(const Holding&, const Holding&) = default;
  };

  explicit State(ObjectSetOptions options_in)
      : options(std::move(options_in)), lanes(options.seed) {}

  ObjectSetOptions options;
  Shelves shelves;
  WaitingLanes lanes;
  std::unordered_map<std::string, BodyHash> decided;  // hash_of_decided() by kind|key
  std::map<std::string, LivePod, std::less<>> pods;   // by ns/name
  std::map<std::string, Names, std::less<>> pods_on;  // by node
  std::map<std::string, Names, std::less<>> members;  // by ns/group
  std::map<std::string, Names, std::less<>> owned;  // by ns/Kind/name: owners, and makers of those
  std::unordered_map<BodyHash, std::weak_ptr<const PodBody>, BodyHashHash> bodies;
  std::map<std::string, int, std::less<>> label_keys;       // of nodes, how many have it
  std::map<std::string, Holding, std::less<>> holders;      // by pod UID
  std::map<std::string, int, std::less<>> workload_owners;  // by ns/Kind/name
  std::map<std::string, int, std::less<>> queue_groups;     // count_queue_group()
  std::unordered_map<std::string, std::uint64_t> digests;   // by kind|key
  std::uint64_t digest = 0;
  std::uint64_t revision = 0;
  std::size_t unread_pods = 0;  // that count, and cannot be read in full
  UnreadBook unread;            // other objects

  Names dirty_pods, dirty_nodes, dirty_gangs;
  bool everything = false, budgets_dirty = false, queues_dirty = false;

  // ---- pods ----

  void visit(const std::map<std::string, Names, std::less<>>& index, std::string_view at,
             const PodVisitor& f) const {
    const auto it = index.find(at);
    if (it == index.end()) return;
    for (const std::string& key : it->second) f(key, pods.at(key));
  }

  std::shared_ptr<const PodBody> body_of(const Value& v) {
    const BodyHash hash = hash_of_body(v, options.seed);
    if (const auto it = bodies.find(hash); it != bodies.end()) {
      if (auto held = it->second.lock()) return held;
    }
    auto body = read_pod_body(v, ours(v));
    if (bodies.size() > 2 * pods.size() + 1000) {
      std::erase_if(bodies, [](const auto& entry) { return entry.second.expired(); });
    }
    bodies[hash] = body;
    return body;
  }

  ManifestOptions live_options() const {
    return {.live = true, .own_namespace = options.own_namespace};
  }

  Found<PodObject> found_pod(const LivePod& live) const {
    return {{.source = "cluster"}, "Pod " + live.ns + '/' + live.name, live_object(live)};
  }

  // As it is believed to be: bound, where the API does not show it yet. False: it is left out.
  bool give_pod(const std::string& key, const LivePod& pod, const PlaceOf& believed,
                Gathered& to) const {
    Place place;
    if (believed && pod.node.empty()) place = believed(key, pod);
    if (!pod.body->valid && pod.node.empty() && place.node.empty()) return false;
    to.pods.push_back(found_pod(pod));
    if (place.node.empty()) return true;
    model::PodSpec& spec = to.pods.back().object.spec;
    spec.node_name = std::move(place.node);
    spec.gpu_indices = std::move(place.gpus);
    spec.charged = std::move(place.charged);
    spec.gated = false;
    return true;
  }

  bool ours(const Value& v) const {
    if (options.scheduler_names.empty()) return true;
    std::string_view name = text_at(v, "spec.schedulerName");
    if (name.empty()) name = "default-scheduler";
    return std::find(options.scheduler_names.begin(), options.scheduler_names.end(), name) !=
           options.scheduler_names.end();
  }

  void unlink(const std::string& key, const LivePod& pod) {
    if (pod.unread()) --unread_pods;
    const auto drop = [&key](auto& index, const std::string& name) {
      const auto it = index.find(name);
      if (it == index.end()) return;
      it->second.erase(key);
      if (it->second.empty()) index.erase(it);
    };
    if (!pod.node.empty()) drop(pods_on, pod.node);
    if (!pod.group().empty()) drop(members, qualified(pod.ns, pod.group()));
    if (!pod.owner().empty()) drop(owned, qualified(pod.ns, pod.owner()));
    for (const std::string& maker : makers_named_by(pod.body->object.meta.labels)) {
      drop(owned, qualified(pod.ns, maker));
    }
  }
  void link(const std::string& key, const LivePod& pod) {
    if (pod.unread()) ++unread_pods;
    if (!pod.node.empty()) pods_on[pod.node].insert(key);
    if (!pod.group().empty()) members[qualified(pod.ns, pod.group())].insert(key);
    if (!pod.owner().empty()) owned[qualified(pod.ns, pod.owner())].insert(key);
    for (const std::string& maker : makers_named_by(pod.body->object.meta.labels)) {
      owned[qualified(pod.ns, maker)].insert(key);
    }
  }

  Effect put_pod(const Value& v) {
    LivePod live = read_live_pod(v);
    if (live.ns.empty()) live.ns = "default";
    const std::string key = qualified(live.ns, live.name);
    live.foreign = !ours(v);
    const bool for_queues = !at(v, "metadata.labels")[kQueueLabel].string().empty();
    if ((live.finished() && !for_queues) || (live.foreign && live.node.empty() && !for_queues)) {
      return remove_pod(key);
    }
    live.body = body_of(v);
    live.digest = object_digest("Pod", key, v);
    const auto it = pods.find(key);
    if (it == pods.end()) {
      digest += live.digest;
      ++revision;
      link(key, live);
      note_pod(key, live);
      pods.emplace(key, std::move(live));
      return Effect::kNow;
    }
    LivePod& old = it->second;
    digest += live.digest - old.digest;
    if (!old.node.empty() && old.uid == live.uid) hold_as_bound(old, live);
    const bool same = old.uid == live.uid && old.node == live.node && old.body == live.body &&
                      old.gpus == live.gpus && old.terminating == live.terminating &&
                      old.created_ns == live.created_ns && old.finished() == live.finished();
    const bool minor = old.started_ns != live.started_ns || old.phase != live.phase;
    const bool ready = old.ready != live.ready;
    // One that others bound may be the one that somebody must be near.
    const bool lets_start = old.uid != live.uid || old.finished() != live.finished() ||
                            old.node != live.node ||
                            (live.node.empty() && (old.body != live.body || !old.node.empty())) ||
                            old.body != live.body || old.terminating != live.terminating;
    if (same && !minor && !ready) {
      old.digest = live.digest;
      return Effect::kNone;
    }
    ++revision;
    unlink(key, old);
    old = std::move(live);
    link(key, old);
    if (!same || minor) note_pod(key, old);
    if (ready && in_queue(old)) queues_dirty = true;
    return lets_start ? Effect::kNow : Effect::kLater;
  }

  void note_pod(const std::string& key, const LivePod& live) {
    dirty_pods.insert(key);
    if (in_queue(live)) queues_dirty = true;
  }

  Effect remove_pod(std::string_view name) {
    const auto it = pods.find(name);
    if (it == pods.end()) return Effect::kNone;
    const std::string key = it->first;
    digest -= it->second.digest;
    ++revision;
    unlink(key, it->second);
    if (in_queue(it->second)) queues_dirty = true;
    pods.erase(it);
    dirty_pods.insert(key);
    return Effect::kNow;
  }

  bool has_other_queues() const {
    return !shelves.volcano_queues.objects.empty() || !shelves.kai_queues.objects.empty();
  }
  bool kueue() const { return !shelves.cluster_queues.objects.empty(); }

  bool in_queue(const LivePod& pod) const {
    const PodObject& object = pod.body->object;
    if (pod.is_charged() && (kueue() || has_other_queues())) return true;
    if (has_other_queues() && (!pod.group().empty() || !object.member.queue.empty())) return true;
    if (!kueue()) return false;
    if (object.meta.labels.contains(kQueueLabel)) return true;
    if (!pod.group().empty() && queue_groups.contains(qualified(pod.ns, pod.group()))) return true;
    if (workload_owners.contains(qualified(pod.ns, "Pod/" + pod.name))) return true;
    for (const std::string& maker : makers_named_by(object.meta.labels)) {
      if (waits_as_one(pod.ns, maker)) return true;
    }
    if (pod.owner().empty()) return false;
    if (workload_owners.contains(qualified(pod.ns, pod.owner()))) return true;
    if (!pod.owner().starts_with("Job/")) return false;
    const auto job = shelves.jobs.objects.find("batch|" + qualified(pod.ns, pod.owner().substr(4)));
    if (job == shelves.jobs.objects.end()) return false;
    const Meta& meta = job->second->object.meta;
    if (meta.labels.contains(kQueueLabel) || queues_by_default(pod.ns)) return true;
    const Owner* owner = meta.controller();
    return owner != nullptr && waits_as_one(pod.ns, owner->text());
  }
  // Whether a workload stands for it, or is to be made for it.
  bool waits_as_one(const std::string& ns, const std::string& owner, int deepest = 4) const {
    if (workload_owners.contains(qualified(ns, owner))) return true;
    const auto all = shelves.makers.objects.find(qualified(ns, owner));
    if (all == shelves.makers.objects.end()) return false;
    const Meta& meta = all->second->object.meta;
    if (meta.labels.contains(kQueueLabel) || queues_by_default(ns)) return true;
    const Owner* maker = meta.controller();
    return deepest > 0 && maker != nullptr && waits_as_one(ns, maker->text(), deepest - 1);
  }
  bool queues_idle() const {
    const bool none = shelves.workloads.objects.empty() && shelves.jobs.objects.empty() &&
                      shelves.makers.objects.empty() && shelves.groups.objects.empty() &&
                      shelves.volcano_jobs.objects.empty() &&
                      shelves.upstream_workloads.objects.empty();
    return none && !has_other_queues() &&
           std::none_of(pods.begin(), pods.end(),
                        [this](const auto& entry) { return in_queue(entry.second); });
  }
  bool queues_by_default(const std::string& ns) const {
    const auto& locals = shelves.local_queues.objects;
    if (locals.contains("kueue.x-k8s.io|" + ns + "/default")) return true;
    const auto space = shelves.namespaces.objects.find("|/" + ns);
    const bool known = space != shelves.namespaces.objects.end();
    if (known && space->second->object.meta.labels.contains(kQueueRequiredLabel)) return true;
    const auto& configs = shelves.queue_configs.objects;
    return !configs.empty() && configs.begin()->second->object.config.manage_without_queue;
  }

  // ---- others ----

  void count_label_keys(const NodeObject& node, int by) {
    for (const auto& [label, value] : node.spec.labels) {
      int& count = label_keys[label];
      const bool was = count > 0;
      count += by;
      if (was == (count > 0)) continue;
      if (count <= 0) label_keys.erase(label);
      // What a short name of a topology means may have changed.
      for (const auto& [key, group] : shelves.groups.objects) {
        const model::GangSpec& gang = group->object.gang;
        const bool asks = !gang.required_topology.empty() || !gang.preferred_topology.empty() ||
                          !gang.subgroups.empty();
        if (asks) dirty_gangs.insert(qualified(gang.ns, gang.name));
      }
    }
  }

  // PodGroups that name a queue of Kueue's, or whose Workload may.
  void count_queue_group(const GroupObject& group, int by) {
    if (!group.meta.labels.contains(kQueueLabel) && group.workload.empty()) return;
    const std::string name = qualified(group.meta.ns, group.meta.name);
    int& count = queue_groups[name];
    count += by;
    if (count <= 0) queue_groups.erase(name);
  }

  void owners_of_workload(const Found<WorkloadObject>& found, int by) {
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

  // Which devices the pods of a node hold, as its agent says.
  void take_holders(const std::string& node, const GpuNode* agent) {
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

  Effect changed(std::string_view version, std::string_view kind, std::string_view ns,
                 std::string_view name) {
    const std::string group(api_group(version));
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
    if (kind == "PriorityClass") {
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

  // Pods that wait in a namespace ("": in all): whether they need a queue may be different now.
  void touch_waiting(std::string_view ns) {
    const std::string from = ns.empty() ? "" : std::string(ns) + '/';
    for (auto it = pods.lower_bound(from); it != pods.end() && it->first.starts_with(from); ++it) {
      if (it->second.node.empty()) dirty_pods.insert(it->first);
    }
  }

  Effect job_changed(std::string_view ns, std::string_view name) {
    const auto job = shelves.jobs.objects.find(key_on_shelf("batch/v1", ns, name));
    const std::string owner = qualified(std::string(ns), "Job/" + std::string(name));
    const bool gang = job == shelves.jobs.objects.end() || job->second->object.is_gang();
    if (const auto it = owned.find(owner); gang && it != owned.end()) {
      dirty_pods.insert(it->second.begin(), it->second.end());
    }
    if (kueue()) queues_dirty = true;
    return kueue() || gang ? Effect::kNow : Effect::kNone;
  }

  bool has_queues() const { return kueue() || has_other_queues(); }

  // What waits as one is found by those that it makes, which name its kind.
  std::string key_of(const Shelf* shelf, std::string_view version, std::string_view kind,
                     std::string_view ns, std::string_view name) const {
    if (shelf != &shelves.makers) return key_on_shelf(version, ns, name);
    const Owner as_owner{.api_version = std::string(version),
                         .kind = std::string(kind),
                         .name = std::string(name),
                         .uid = {}};
    return qualified(std::string(ns), as_owner.text());
  }

  Effect put_object(std::string_view version, std::string_view kind, const Value& v) {
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
    if (!shelf->take(key, one)) return Effect::kNone;
    ++revision;
    after_change(kind, key, name);
    if (shelf == &shelves.workloads) enter_lane(key, v);
    if (kind == "GpuNode" && gpu_facts_same) return Effect::kLater;
    return changed(version, kind, ns, name);
  }

  void enter_lane(const std::string& key, const Value& v) {
    const auto it = shelves.workloads.objects.find(key);
    if (it == shelves.workloads.objects.end()) return lanes.erase(key);
    lanes.put(key, it->second->object, v);
  }

  bool gpu_facts_same = false;

  void before_change(std::string_view kind, const std::string& key, const std::string& name,
                     const Gathered& one) {
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
  bool labels_counted = false;

  void after_change(std::string_view kind, const std::string& key, const std::string&) {
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

  Effect remove_object(std::string_view version, std::string_view kind, std::string_view ns,
                       std::string_view name) {
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

  // ---- resolving ----

  // Evicted, and the pod that it was made for is deleted: nothing of it will come back, so it holds
  // nothing, and its object goes the way of its pod.
  bool left_for_good(const WorkloadObject& workload) const {
    const std::vector<Owner>& owners = workload.meta.owners;
    if (workload.spec.evicted.empty() || owners.size() != 1 || !owners.front().is("", "Pod")) {
      return false;
    }
    const auto pod = pods.find(qualified(workload.spec.ns, owners.front().name));
    return pod == pods.end() || pod->second.uid != owners.front().uid;
  }

  void give_pods(const PlaceOf& believed, Gathered& all) const {
    all.pods.reserve(pods.size());
    for (const auto& [key, pod] : pods) {
      if (pod.foreign && pod.node.empty() && !in_queue(pod)) continue;
      give_pod(key, pod, believed, all);
    }
  }

  // What is wrong with objects, each under its own name.
  void give_complaints(Gathered& all) const {
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

  void add_node(const std::string& name, Gathered& to) const {
    const auto node = shelves.nodes.objects.find("|/" + name);
    if (node != shelves.nodes.objects.end()) to.nodes.push_back(*node->second);
    const auto agent = shelves.gpu_nodes.objects.find("berth.dev|/" + name);
    if (agent != shelves.gpu_nodes.objects.end()) to.gpu_nodes.push_back(*agent->second);
  }

  void resolve_nodes(ObjectChanges& out) {
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

  void spread_dirty_gangs(ObjectChanges& out) {
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

  // A member that asks for a topology, or says how many belong together, decides for its whole
  // gang: then all of them are read at once.
  bool decides_for_mates(const std::string& gang) const {
    const auto mates = members.find(gang);
    if (mates == members.end()) return false;
    return std::any_of(mates->second.begin(), mates->second.end(), [&](const std::string& mate) {
      const Membership& member = pods.at(mate).body->object.member;
      return !member.topology.empty() || member.group_min.has_value();
    });
  }

  void add_claims(const LivePod& pod, Names& seen, Gathered& to) const {
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

  // One batch of pods with all that they refer to.
  Gathered gather(const std::vector<const LivePod*>& batch, const Names& gangs,
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

  // One pod of a batch, or why it is none.
  void look_at(const std::string& key, const PlaceOf& believed, std::vector<const LivePod*>& batch,
               ObjectChanges& out) {
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

  void resolve_pods(std::size_t max_pods, const PlaceOf& believed, ObjectChanges& out) {
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

  void resolve_budgets(ObjectChanges& out, const ObjectSet& set) {
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
};

}  // namespace berth::kinds
