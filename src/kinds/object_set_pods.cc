#include <algorithm>

#include "kinds/object_set_state.h"
#include "kinds/queue_view.h"
#include "text/path.h"

namespace berth::kinds {

void ObjectSet::State::visit(const std::map<std::string, Names, std::less<>>& index,
                             std::string_view at, const PodVisitor& f) const {
  const auto it = index.find(at);
  if (it == index.end()) return;
  for (const std::string& key : it->second) f(key, pods.at(key));
}

std::shared_ptr<const PodBody> ObjectSet::State::body_of(const Value& v) {
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

ManifestOptions ObjectSet::State::live_options() const {
  return {.live = true, .own_namespace = options.own_namespace};
}

Found<PodObject> ObjectSet::State::found_pod(const LivePod& live) const {
  return {{.source = "cluster"}, "Pod " + live.ns + '/' + live.name, live_object(live)};
}

bool ObjectSet::State::give_pod(const std::string& key, const LivePod& pod, const PlaceOf& believed,
                                Gathered& to) const {
  Place place;
  if (believed && pod.node.empty()) place = believed(key, pod);
  if (!pod.body->valid && pod.node.empty() && place.node.empty()) return false;
  to.pods.push_back(found_pod(pod));
  if (place.node.empty()) return true;
  model::PodSpec& spec = to.pods.back().object.spec;
  spec.node_name = std::move(place.node);
  spec.gpu_indices = std::move(place.gpus);
  read_charge(place.charged, spec);
  spec.gated = false;
  return true;
}

bool ObjectSet::State::ours(const Value& v) const {
  if (options.scheduler_names.empty()) return true;
  std::string_view name = text_at(v, "spec.schedulerName");
  if (name.empty()) name = "default-scheduler";
  return std::find(options.scheduler_names.begin(), options.scheduler_names.end(), name) !=
         options.scheduler_names.end();
}

void ObjectSet::State::unlink(const std::string& key, const LivePod& pod) {
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

void ObjectSet::State::link(const std::string& key, const LivePod& pod) {
  if (pod.unread()) ++unread_pods;
  if (!pod.node.empty()) pods_on[pod.node].insert(key);
  if (!pod.group().empty()) members[qualified(pod.ns, pod.group())].insert(key);
  if (!pod.owner().empty()) owned[qualified(pod.ns, pod.owner())].insert(key);
  for (const std::string& maker : makers_named_by(pod.body->object.meta.labels)) {
    owned[qualified(pod.ns, maker)].insert(key);
  }
}

Effect ObjectSet::State::put_pod(const Value& v) {
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
  if (old.uid == live.uid && !old.node.empty()) hold_as_bound(old, live);
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

void ObjectSet::State::note_pod(const std::string& key, const LivePod& live) {
  dirty_pods.insert(key);
  if (view) view->pod_changed(key);
  if (in_queue(live)) queues_dirty = true;
}

Effect ObjectSet::State::remove_pod(std::string_view name) {
  const auto it = pods.find(name);
  if (it == pods.end()) return Effect::kNone;
  const std::string key = it->first;
  digest -= it->second.digest;
  ++revision;
  unlink(key, it->second);
  if (in_queue(it->second)) queues_dirty = true;
  pods.erase(it);
  dirty_pods.insert(key);
  if (view) view->pod_changed(key);
  return Effect::kNow;
}

bool ObjectSet::State::has_other_queues() const {
  return !shelves.volcano_queues.objects.empty() || !shelves.kai_queues.objects.empty();
}

bool ObjectSet::State::in_queue(const LivePod& pod) const {
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

bool ObjectSet::State::waits_as_one(const std::string& ns, const std::string& owner,
                                    int deepest) const {
  if (workload_owners.contains(qualified(ns, owner))) return true;
  const auto all = shelves.makers.objects.find(qualified(ns, owner));
  if (all == shelves.makers.objects.end()) return false;
  const Meta& meta = all->second->object.meta;
  if (meta.labels.contains(kQueueLabel) || queues_by_default(ns)) return true;
  const Owner* maker = meta.controller();
  return deepest > 0 && maker != nullptr && waits_as_one(ns, maker->text(), deepest - 1);
}

bool ObjectSet::State::queues_by_default(const std::string& ns) const {
  const auto& locals = shelves.local_queues.objects;
  if (locals.contains("kueue.x-k8s.io|" + ns + "/default")) return true;
  const auto space = shelves.namespaces.objects.find("|/" + ns);
  const bool known = space != shelves.namespaces.objects.end();
  if (known && space->second->object.meta.labels.contains(kQueueRequiredLabel)) return true;
  const auto& configs = shelves.queue_configs.objects;
  return !configs.empty() && configs.begin()->second->object.config.manage_without_queue;
}

}  // namespace berth::kinds
