#include "control/world.h"

#include <algorithm>
#include <utility>

namespace berth::control {

namespace {

constexpr std::size_t kPodsAtOnce = 512;  // resolved together: a bound on memory

std::string key_of(const model::PodSpec& pod) { return pod.ns + '/' + pod.name; }

}  // namespace

World::World(std::vector<std::string> scheduler_names, std::uint64_t seed, schedule::Policy policy)
    : objects_({.scheduler_names = std::move(scheduler_names), .seed = seed}),
      policy_(std::move(policy)) {
  start_over();
}

void World::start_over() {
  builder_ = std::make_unique<model::SnapshotBuilder>(schedule::keeps_apart(policy_));
  placer_ = std::make_unique<schedule::Placer>(policy_);
  learned_ = false;
  phantoms_.clear();
  queue_pods_.clear();
  gangs_.clear();
  ++rebuilds_;
}

bool World::overlay(model::PodSpec& pod) const {
  const std::string key = key_of(pod);
  if (const auto it = leaving_.find(key); it != leaving_.end() && it->second.uid == pod.uid) {
    return false;
  }
  if (!pod.node_name.empty()) return true;
  if (const auto it = assumed_.find(key); it != assumed_.end() && it->second.uid == pod.uid) {
    pod.node_name = it->second.node;
    pod.gpu_indices = it->second.gpus;
    pod.gated = false;
    return true;
  }
  if (holds_.empty()) return true;
  if (holds_.contains(key) || (!pod.gang.empty() && holds_.contains(pod.ns + '/' + pod.gang))) {
    pod.gated = true;
  }
  return true;
}

void World::feed_pod(model::PodSpec& pod) {
  if (overlay(pod)) {
    const bool fresh = !builder_->find_pod(key_of(pod));
    const model::PodId id = builder_->upsert_pod(pod);
    if (learned_ && fresh) placer_->observe(builder_->state(), *builder_->state().pod(id).shape);
  } else {
    builder_->remove_pod(key_of(pod));
  }
}

void World::refresh(std::vector<objects::Note>& refused) {
  bool more = true;
  while (more) {
    objects::ObjectChanges changes = objects_.take_changes(kPodsAtOnce);
    if (changes.everything) {
      const auto queue_pods = std::move(queue_pods_);
      start_over();
      for (const auto& [key, pod] : queue_pods) {  // inputs() will say how they are now
        model::PodSpec copy = pod;
        queue_pods_.emplace(key, pod);
        feed_pod(copy);
      }
    }
    for (const std::string& name : changes.gone_nodes) builder_->remove_node(name);
    for (const model::NodeSpec& node : changes.nodes) builder_->upsert_node(node);
    for (const std::string& gang : changes.gone_gangs) {
      builder_->remove_gang(gang);
      gangs_.erase(gang);
    }
    for (model::GangSpec& gang : changes.gangs) {
      model::GangSpec& known = gangs_[gang.ns + '/' + gang.name];
      if (known == gang) continue;
      builder_->upsert_gang(gang);
      known = std::move(gang);
    }
    for (const std::string& pod : changes.gone_pods) {
      builder_->remove_pod(pod);
      queue_pods_.erase(pod);
    }
    for (model::PodSpec& pod : changes.pods) {
      queue_pods_.erase(key_of(pod));
      feed_pod(pod);
    }
    if (changes.budgets_changed) builder_->set_budgets(std::move(changes.budgets));
    std::move(changes.refused.begin(), changes.refused.end(), std::back_inserter(refused));
    more = changes.more;
  }
  // Places of reservations, so that nobody else takes them.
  std::set<std::string> wanted;
  for (const auto& [name, reservation] : reservations_) {
    for (const Reservation::Place& place : reservation.places) {
      const std::string key = key_of(place.pod);
      if (!place.taken_by.empty() || objects_.pod(key) != nullptr) continue;
      wanted.insert(key);
      if (phantoms_.insert(key).second) builder_->upsert_pod(place.pod);
    }
  }
  for (auto it = phantoms_.begin(); it != phantoms_.end();) {
    if (wanted.contains(*it)) {
      ++it;
      continue;
    }
    if (objects_.pod(*it) == nullptr) builder_->remove_pod(*it);
    it = phantoms_.erase(it);
  }
}

model::Decision World::decide(std::int64_t now_ns) {
  if (!learned_) {
    placer_->learn_present(builder_->state());
    learned_ = true;
  }
  model::Decision decision =
      decide::decide(builder_->publish(), now_ns, *placer_, {.certificates = false});
  decide::apply(decision, *builder_);
  for (const model::Preemption& victim : decision.preemptions) builder_->remove_pod(victim.pod);
  return decision;
}

objects::Inputs World::inputs() {
  objects::Inputs inputs = reservations_.empty() ? objects_.queue_inputs() : objects_.inputs();
  objects_.inputs_taken();
  std::set<std::string> related;
  for (model::PodSpec& pod : inputs.pods) {
    const std::string key = key_of(pod);
    if (!objects_.in_queue(key)) continue;
    related.insert(key);
    if (!pod.node_name.empty()) pod.queued = true;  // it leaves as its queue says
    const auto known = queue_pods_.find(key);
    if (known != queue_pods_.end() && known->second == pod && !phantoms_.contains(key)) continue;
    phantoms_.erase(key);
    queue_pods_.insert_or_assign(key, pod);
    model::PodSpec copy = pod;
    feed_pod(copy);
  }
  for (auto it = queue_pods_.begin(); it != queue_pods_.end();) {
    if (related.contains(it->first)) {
      ++it;
      continue;
    }
    builder_->remove_pod(it->first);
    objects_.touch_pod(it->first);
    it = queue_pods_.erase(it);
  }
  return inputs;
}

void World::believe(objects::Inputs& inputs) const {
  std::erase_if(inputs.pods, [this](model::PodSpec& pod) { return !overlay(pod); });
  for (const auto& [name, reservation] : reservations_) {
    for (const Reservation::Place& place : reservation.places) {
      const bool exists = objects_.pod(key_of(place.pod)) != nullptr;
      if (place.taken_by.empty() && !exists) inputs.pods.push_back(place.pod);
    }
  }
}

// ---- beliefs ----

void World::assume(const std::string& pod, Assumed assumed) {
  const auto id = builder_->find_pod(pod);
  if (id && builder_->state().pod(*id).slot == model::kPending) {
    const auto slot = builder_->state().inventory().slot(assumed.node);
    if (slot) builder_->bind(*id, *slot, assumed.gpus);
  }
  assumed_.insert_or_assign(pod, std::move(assumed));
}

void World::drop(const std::string& pod) {
  if (assumed_.erase(pod) == 0) return;
  if (const auto it = queue_pods_.find(pod); it != queue_pods_.end()) {
    model::PodSpec copy = it->second;
    feed_pod(copy);
  }
  objects_.touch_pod(pod);
}

Assumed* World::assumed(const std::string& pod) {
  const auto it = assumed_.find(pod);
  return it == assumed_.end() ? nullptr : &it->second;
}

bool World::confirm(const std::string& pod) {
  const auto it = assumed_.find(pod);
  if (it == assumed_.end()) return false;
  const objects::LivePod* live = objects_.pod(pod);
  if (live == nullptr || live->uid != it->second.uid) {
    drop(pod);
    return false;
  }
  if (live->node.empty()) return false;  // not yet
  const bool as_we_put_it = live->node == it->second.node;
  assumed_.erase(it);
  if (!as_we_put_it || live->terminating || live->started_ns != 0) return false;
  if (objects_.in_queue(pod)) return false;
  objects_.settle_pod(pod);
  return true;
}

void World::leave(const std::string& pod, const std::string& uid, const std::string& node,
                  std::int64_t now) {
  if (!leaving_.emplace(pod, Leaving{uid, node, now}).second) return;
  ++leaving_on_[node];
  builder_->remove_pod(pod);
}

void World::stays(const std::string& pod) {
  const auto it = leaving_.find(pod);
  if (it == leaving_.end()) return;
  const auto on = leaving_on_.find(it->second.node);
  if (--on->second == 0) leaving_on_.erase(on);
  leaving_.erase(it);
  if (const auto known = queue_pods_.find(pod); known != queue_pods_.end()) {
    model::PodSpec copy = known->second;
    feed_pod(copy);
  }
  objects_.touch_pod(pod);
}

bool World::node_has_leaving(const std::string& node) const { return leaving_on_.contains(node); }

bool World::sweep_leaving() {
  std::vector<std::string> gone;
  for (const auto& [pod, leaving] : leaving_) {
    const objects::LivePod* live = objects_.pod(pod);
    if (live == nullptr || live->uid != leaving.uid || live->finished()) gone.push_back(pod);
  }
  for (const std::string& pod : gone) stays(pod);
  return !gone.empty();
}

std::vector<std::string> World::stuck_leaving(std::int64_t since_before) const {
  std::vector<std::string> out;
  for (const auto& [pod, leaving] : leaving_) {
    if (leaving.since < since_before) out.push_back(pod);
  }
  return out;
}

void World::touch_gang(const std::string& name) {
  objects_.touch_pod(name);
  objects_.for_each_member(
      name, [this](const std::string& key, const objects::LivePod&) { objects_.touch_pod(key); });
  // Members of a Job's gang are known to the builder alone.
  if (const auto gang = builder_->find_gang(name)) {
    const model::ClusterState& state = builder_->state();
    state.for_each_in_gang(*gang,
                           [&](model::PodId id) { objects_.touch_pod(state.pod(id).info->name); });
  }
}

void World::hold(const std::string& name, std::int64_t until) {
  holds_[name] = until;
  touch_gang(name);
}

bool World::end_holds(std::int64_t now) {
  std::vector<std::string> over;
  for (const auto& [name, until] : holds_) {
    if (until <= now) over.push_back(name);
  }
  for (const std::string& name : over) {
    holds_.erase(name);
    touch_gang(name);
  }
  return !over.empty();
}

std::int64_t World::next_hold_end() const {
  std::int64_t next = INT64_MAX;
  for (const auto& [name, until] : holds_) next = std::min(next, until);
  return next;
}

std::optional<std::int64_t> World::held_until(const std::string& name) const {
  const auto it = holds_.find(name);
  return it == holds_.end() ? std::nullopt : std::optional(it->second);
}

void World::reserve(Reservation reservation) {
  const std::string name = reservation.workload;
  reservations_.insert_or_assign(name, std::move(reservation));
}
void World::end_reservation(const std::string& workload) { reservations_.erase(workload); }
Reservation* World::reservation(const std::string& workload) {
  const auto it = reservations_.find(workload);
  return it == reservations_.end() ? nullptr : &it->second;
}

std::string World::gang_of(const std::string& pod) const {
  const auto id = builder_->find_pod(pod);
  if (!id) return {};
  const model::ClusterState& state = builder_->state();
  const std::int32_t gang = state.pod(*id).info->gang;
  return gang < 0 ? std::string() : state.gang(gang).ns + '/' + state.gang(gang).name;
}

void World::forget_everything() {
  assumed_.clear();
  leaving_.clear();
  leaving_on_.clear();
  holds_.clear();
  reservations_.clear();
  objects_.touch_all();
}

}  // namespace berth::control
