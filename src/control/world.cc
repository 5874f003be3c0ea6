#include "control/world.h"

#include <algorithm>
#include <utility>

#include "control/decision_line.h"
#include "kinds/pod_writes.h"
#include "kinds/queue_marks.h"
#include "plans/react/rejected_pods.h"
#include "text/path.h"

namespace berth::control {

namespace {

constexpr std::size_t kPodsAtOnce = 512;  // resolved together: a bound on memory
// Names in the builder's book beyond those of the objects that it started with: most are of objects
// that are gone, so it starts over.
constexpr std::size_t kMostDeadWords = 100'000;

std::string key_of(const model::PodSpec& pod) { return pod.ns + '/' + pod.name; }

}  // namespace

World::World(std::vector<std::string> scheduler_names, std::uint64_t seed, model::PolicyFlags flags)
    : scheduler_names_(std::move(scheduler_names)),
      objects_({.scheduler_names = scheduler_names_, .seed = seed}),
      flags_(std::move(flags)),
      policy_(model::in_force({}, flags_)) {
  // Pods of no queue are looked at by name alone, and seldom.
  index_.set_others([this](std::string_view name) -> const model::PodSpec* {
    const kinds::LivePod* live = objects_.pod(name);
    const std::string key(name);
    if (live == nullptr || live->finished() || queue_pods_.contains(key)) return nullptr;
    return leaving_.contains(key) ? nullptr : &live->body->object.spec;
  });
  start_over();
}

kinds::Effect World::put(std::string_view version, std::string_view kind,
                         const text::Value& object) {
  if (log_ == nullptr) return objects_.put(version, kind, object);
  log_->put(version, kind, object);
  const kinds::Effect effect = objects_.put(version, kind, object);
  if (kind == "Pod") {
    const std::string_view ns = text_at(object, "metadata.namespace");
    const std::string_view name = text_at(object, "metadata.name");
    const kinds::LivePod* live = objects_.pod(std::string(ns) + '/' + std::string(name));
    if (live != nullptr && live->as_bound) log_->keep_before(version, kind, ns, name);
  }
  return effect;
}

kinds::Effect World::remove(std::string_view version, std::string_view kind, std::string_view ns,
                            std::string_view name) {
  if (log_ != nullptr) log_->remove(version, kind, ns, name);
  return objects_.remove(version, kind, ns, name);
}

void World::start_over() {
  for (const auto& [pod, known] : queue_pods_) index_.remove_pod(pod);
  for (const auto& [pod, stands] : phantoms_) index_.remove_pod(pod);
  builder_ = std::make_unique<model::SnapshotBuilder>(schedule::keeps_apart(policy_.placement));
  placer_ = std::make_unique<schedule::Placer>(policy_.placement);
  queueing_.reset();
  scratch_ = model::SnapshotBuilder(schedule::keeps_apart(policy_.placement));
  queue_placer_ = std::make_unique<schedule::Placer>(policy_.placement);
  believed_.clear();
  retried_ns_ = 0;
  learned_ = false;
  turns_ = {};
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
  pod.stays = pod.ns == own_namespace_ || kept_.contains(key);
  if (!pod.node_name.empty()) return true;
  if (const auto it = assumed_.find(key); it != assumed_.end() && it->second.uid == pod.uid) {
    pod.node_name = it->second.node;
    pod.gpu_indices = it->second.gpus;
    pod.gated = false;
    return true;
  }
  if (holds_.empty()) return true;
  if (holds_.contains(key) || (!pod.gang.empty() && holds_.contains(pod.ns + '/' + pod.gang)) ||
      (!pod.owner.empty() && holds_.contains(pod.ns + '/' + pod.owner))) {
    pod.gated = true;
  }
  return true;
}

void World::overlay(model::NodeSpec& node) const {
  if (!avoided_.contains(node.name)) return;
  for (const model::Taint& taint : node.taints) {
    if (taint.key == react::kRejectingTaint) return;
  }
  node.taints.push_back({std::string(react::kRejectingTaint), "", model::TaintEffect::kNoSchedule});
}

bool World::avoid(std::set<std::string> nodes) {
  if (nodes == avoided_) return false;
  if (log_ != nullptr) log_->note_names("avoid", nodes);
  std::vector<std::string> changed;
  std::set_symmetric_difference(nodes.begin(), nodes.end(), avoided_.begin(), avoided_.end(),
                                std::back_inserter(changed));
  avoided_ = std::move(nodes);
  for (const std::string& name : changed) objects_.touch_node(name);
  return true;
}

bool World::fail(const std::map<std::string, model::Loss>& pods) {
  std::vector<std::string> over;
  for (const auto& [pod, why] : failed_) {
    if (!pods.contains(pod)) over.push_back(pod);
  }
  for (const std::string& pod : over) fail_one(pod, {});
  bool fresh = false;
  for (const auto& [pod, why] : pods) {
    if (failed_.contains(pod)) continue;  // what was said first holds
    fail_one(pod, why);
    fresh = true;
  }
  return fresh || !over.empty();
}

void World::fail_one(const std::string& pod, const model::Loss& why) {
  note("fail", {{"pod", pod}, {"reason", why.reason}, {"why", why.message}});
  if (why.message.empty()) {
    failed_.erase(pod);
  } else {
    failed_[pod] = why;
  }
  objects_.touch_queues();
}

// The first of its pods that failed says why.
std::optional<model::Loss> World::loss_of(const model::WorkloadSpec& spec) const {
  for (const auto& [pod, why] : failed_) {
    const kinds::LivePod* live = objects_.pod(pod);
    // One on its way out says nothing about the places that its workload was given since.
    if (live == nullptr || live->ns != spec.ns || live->terminating || live->finished()) continue;
    if (!spec.owner.empty() && live->owner() == spec.owner) return why;
    for (const model::PodSetSpec& set : spec.pod_sets) {
      if (std::find(set.pods.begin(), set.pods.end(), pod) != set.pods.end()) return why;
    }
  }
  return std::nullopt;
}

// gives_room: what is known of it before may have held more than it does now.
void World::feed_pod(model::PodSpec& pod, bool gives_room) {
  if (overlay(pod)) {
    const bool fresh = !builder_->find_pod(key_of(pod));
    const model::PodId id = builder_->upsert_pod(pod);
    room_changed_ = room_changed_ || (!fresh && gives_room);
    if (!learned_ || !fresh) return;
    const model::ClusterState& state = builder_->state();
    placer_->observe(state, *state.pod(id).shape);
    queue_placer_->observe(state, *state.pod(id).shape);
  } else {
    builder_->remove_pod(key_of(pod));
    room_changed_ = true;
  }
}

kinds::ObjectSet::PlaceOf World::believed() const {
  return [this](const std::string& key, const kinds::LivePod& pod) {
    const auto it = assumed_.find(key);
    if (it == assumed_.end() || it->second.uid != pod.uid) return kinds::ObjectSet::Place{};
    return kinds::ObjectSet::Place{it->second.node, it->second.gpus, it->second.charged};
  };
}

void World::refresh(std::vector<kinds::Note>& refused, std::vector<kinds::Note>& unread) {
  note("refresh");
  if (known_words_ && builder_->book().words() > *known_words_ + kMostDeadWords) {
    objects_.touch_all();
  }
  bool more = true, anew = false;
  while (more) {
    kinds::ObjectChanges changes = objects_.take_changes(kPodsAtOnce, believed());
    if (changes.everything) {
      policy_ = model::in_force(objects_.policy(), flags_);
      std::map<std::string, model::PodSpec> pods;
      for (auto& [key, pod] : queue_pods_) pods.emplace(key, pod.fed);
      start_over();
      for (auto& [key, pod] : pods) {  // read_queues() will say how they are now
        model::PodSpec copy = pod;
        queue_pods_.emplace(key, QueuePod{std::move(pod)});
        feed_pod(copy);
        index_pod(key);
      }
    }
    for (const std::string& name : changes.gone_nodes) {
      builder_->remove_node(name);
      nodes_.erase(name);
      nodes_changed_ = room_changed_ = true;
    }
    for (model::NodeSpec& node : changes.nodes) {
      overlay(node);
      builder_->upsert_node(node);
      const auto [it, is_new] = nodes_.try_emplace(node.name);
      if (!is_new && it->second == node) continue;
      it->second = std::move(node);
      nodes_changed_ = room_changed_ = true;
    }
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
      room_changed_ = true;
      index_.remove_pod(pod);
      queue_pods_.erase(pod);
      phantoms_.erase(pod);  // a place of that name is fed again
    }
    for (model::PodSpec& pod : changes.pods) {
      const std::string key = key_of(pod);
      index_.remove_pod(key);
      queue_pods_.erase(key);
      feed_pod(pod);
    }
    if (changes.budgets_changed) {
      builder_->set_budgets(std::move(changes.budgets));
      room_changed_ = true;
    }
    std::move(changes.refused.begin(), changes.refused.end(), std::back_inserter(refused));
    std::move(changes.unread.begin(), changes.unread.end(), std::back_inserter(unread));
    more = changes.more;
    anew = anew || changes.everything;
  }
  if (anew || !known_words_) known_words_ = builder_->book().words();
  feed_places();
}

void World::learn_mix() {
  if (std::exchange(learned_, true)) return;
  placer_->learn_present(builder_->state());
  queue_placer_->learn_present(builder_->state());
}

model::Decision World::decide(std::int64_t now_ns) {
  feed_places();
  learn_mix();
  model::Decision decision = decide::decide(builder_->publish(), now_ns, *placer_,
                                            {.certificates = false, .turns = &turns_});
  decide::apply(decision, *builder_);
  for (const model::Preemption& victim : decision.preemptions) builder_->remove_pod(victim.pod);
  room_changed_ = room_changed_ || !decision.preemptions.empty();
  if (log_ != nullptr) {
    note("decide", {{"now", now_ns},
                    {"objects", hex(objects_.digest())},
                    {"digest", hex(decision_digest(decision))}});
  }
  return decision;
}

// ---- beliefs ----

void World::assume(const std::string& pod, Assumed assumed) {
  if (assumed.charged.empty()) assumed.charged = charge_of(pod);
  if (log_ != nullptr) {
    note("assume", {{"pod", pod},
                    {"uid", assumed.uid},
                    {"node", assumed.node},
                    {"gang", assumed.gang},
                    {"gpus", kinds::gpus_text(assumed.gpus)},
                    {"charged", assumed.charged}});
  }
  const auto id = builder_->find_pod(pod);
  bool known = true;
  if (id && builder_->state().pod(*id).slot == model::kPending) {
    const model::ClusterState& state = builder_->state();
    const auto slot = state.inventory().slot(assumed.node);
    known = slot && std::all_of(assumed.gpus.begin(), assumed.gpus.end(), [&](int gpu) {
              const model::NodeInfo& info = state.info(*slot);
              return gpu >= 0 && gpu < model::kMaxGpusPerNode &&
                     ((info.devices | info.mig) >> gpu & 1) != 0;
            });
    if (known) builder_->bind(*id, *slot, assumed.gpus);
  }
  assumed_.insert_or_assign(pod, std::move(assumed));
  objects_.touch_place(pod);
  index_pod(pod);
  if (!known) feed_again(pod);  // the node, or a device of it, has gone since
}

// Whoever wrote the annotation before must not be believed once the pod is bound.
std::string World::charge_of(const std::string& pod) const {
  const auto known = charges_.find(pod);
  if (known != charges_.end() && !known->second.queue.empty()) {
    const auto& [workload, queue] = known->second;
    if (!queue.starts_with(kinds::kKueueCharge)) return queue;
    return queue + workload.substr(workload.find('/'));  // its name; its namespace is the pod's
  }
  const kinds::LivePod* live = objects_.pod(pod);
  return live == nullptr || live->charged.empty() ? "" : "none";
}

const std::vector<std::string>& World::pods_of(const std::string& workload) const {
  static const std::vector<std::string> kNone;
  const auto it = pods_of_.find(workload);
  return it == pods_of_.end() ? kNone : it->second;
}

const std::string* World::workload_of(const std::string& pod) const {
  const auto known = charges_.find(pod);
  return known == charges_.end() ? nullptr : &known->second.workload;
}

bool World::is_of(const std::string& pod, const std::string& workload) const {
  const auto known = charges_.find(pod);
  return known != charges_.end() && known->second.workload == workload;
}

void World::feed_again(const std::string& pod) {
  if (const auto it = queue_pods_.find(pod); it != queue_pods_.end()) {
    model::PodSpec copy = it->second.fed;
    feed_pod(copy);
    index_pod(pod);
  }
  objects_.touch_pod(pod);
}

void World::drop(const std::string& pod) {
  if (assumed_.erase(pod) == 0) return;
  note("drop", {{"pod", pod}});
  objects_.touch_place(pod);
  if (objects_.in_queue(pod)) objects_.touch_queues();
  feed_again(pod);
}

Assumed* World::assumed(const std::string& pod) {
  const auto it = assumed_.find(pod);
  return it == assumed_.end() ? nullptr : &it->second;
}

bool World::confirm(const std::string& pod) {
  const auto it = assumed_.find(pod);
  if (it == assumed_.end()) return false;
  const kinds::LivePod* live = objects_.pod(pod);
  if (live == nullptr || live->uid != it->second.uid) {
    drop(pod);
    return false;
  }
  note("confirm", {{"pod", pod}});
  if (live->node.empty()) return false;  // not yet
  const bool as_we_put_it = live->node == it->second.node;
  assumed_.erase(it);
  objects_.touch_place(pod);
  if (!as_we_put_it || live->terminating || live->started_ns != 0) return false;
  if (objects_.in_queue(pod)) return false;
  objects_.settle_pod(pod);
  return true;
}

void World::leave(const std::string& pod, const std::string& uid, const std::string& node,
                  std::int64_t now) {
  if (!leaving_.emplace(pod, Leaving{uid, node, now}).second) return;
  note("leave", {{"pod", pod}, {"uid", uid}, {"node", node}});
  ++leaving_on_[node];
  builder_->remove_pod(pod);
  room_changed_ = true;
  index_pod(pod);
}

void World::stays(const std::string& pod) {
  const auto it = leaving_.find(pod);
  if (it == leaving_.end()) return;
  note("stays", {{"pod", pod}});
  const auto on = leaving_on_.find(it->second.node);
  if (--on->second == 0) leaving_on_.erase(on);
  leaving_.erase(it);
  feed_again(pod);
}

void World::keep(const std::string& pod) {
  if (!kept_.insert(pod).second) return;
  note("keep", {{"pod", pod}});
  feed_again(pod);
  objects_.touch_queues();
}

bool World::let_go(const std::string& pod) {
  if (kept_.erase(pod) == 0) return false;
  note("let-go", {{"pod", pod}});
  feed_again(pod);
  objects_.touch_queues();
  return true;
}

void World::protect(const std::string& ns) {
  own_namespace_ = ns;
  objects_.set_own_namespace(ns);
  note("protect", {{"namespace", ns}});
  objects_.touch_all();
  objects_.touch_queues();
}

bool World::node_has_leaving(const std::string& node) const { return leaving_on_.contains(node); }

bool World::sweep_leaving() {
  std::vector<std::string> gone;
  for (const auto& [pod, leaving] : leaving_) {
    const kinds::LivePod* live = objects_.pod(pod);
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
  objects_.for_each_owned(
      name, [this](const std::string& key, const kinds::LivePod&) { objects_.touch_pod(key); });
  objects_.for_each_member(
      name, [this](const std::string& key, const kinds::LivePod&) { objects_.touch_pod(key); });
  // Members of a Job's gang are known to the builder alone.
  if (const auto gang = builder_->find_gang(name)) {
    const model::ClusterState& state = builder_->state();
    state.for_each_in_gang(*gang,
                           [&](model::PodId id) { objects_.touch_pod(state.pod(id).info->name); });
  }
}

void World::hold(const std::string& name, std::int64_t until) {
  note("hold", {{"name", name}, {"until", until}});
  holds_[name] = until;
  touch_gang(name);
}

bool World::end_holds(std::int64_t now) {
  std::vector<std::string> over;
  for (const auto& [name, until] : holds_) {
    if (until <= now) over.push_back(name);
  }
  if (!over.empty()) note("end-holds", {{"now", now}});
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

void World::admitting(const std::string& workload, const model::Admission& admission) {
  note("admitting", {{"workload", workload}});
  admitting_[workload] = admission;
}

void World::admitted(const std::string& workload) {
  if (admitting_.erase(workload) > 0) note("admitted", {{"workload", workload}});
}

std::string World::gang_of(const std::string& pod) const {
  const auto id = builder_->find_pod(pod);
  if (!id) return {};
  const model::ClusterState& state = builder_->state();
  const std::int32_t gang = state.pod(*id).info->gang;
  return gang < 0 ? std::string() : state.gang(gang).ns + '/' + state.gang(gang).name;
}

std::map<std::string, int> World::counted() const {
  std::map<std::string, int> out;
  const model::ClusterState& state = builder_->state();
  objects_.for_each_pod([&](const std::string& key, const kinds::LivePod&) {
    const auto id = builder_->find_pod(key);
    if (!id || state.pod(*id).slot == model::kPending) return;
    out[key] = state.pod(*id).shape->demand->count;
  });
  for (const auto& [pod, leaving] : leaving_) out[pod] = INT32_MAX;
  return out;
}

void World::record(WorldLog* log) {
  log_ = log;
  if (log_ != nullptr) begin_log();
}

void World::begin_cycle(std::uint64_t number) {
  if (log_ == nullptr) return;
  if (log_->full()) begin_log();
  note("cycle", {{"n", static_cast<std::int64_t>(number)}});
}

// The file stands alone, so the builder starts over too: what it learned from calls before is not
// there. Admissions that are being written cannot be told: the log waits until there are none.
void World::begin_log() {
  if (!admitting_.empty()) return;
  log_->begin(scheduler_names_, flags_);
  start_over();
  objects_.touch_all();
  objects_.touch_queues();
  for (const auto& [pod, where] : assumed_) {
    note("assume", {{"pod", pod},
                    {"uid", where.uid},
                    {"node", where.node},
                    {"gang", where.gang},
                    {"gpus", kinds::gpus_text(where.gpus)},
                    {"charged", where.charged}});
  }
  for (const auto& [pod, going] : leaving_) {
    note("leave", {{"pod", pod}, {"uid", going.uid}, {"node", going.node}});
  }
  for (const auto& [name, until] : holds_) note("hold", {{"name", name}, {"until", until}});
  if (!avoided_.empty()) log_->note_names("avoid", avoided_);
  for (const auto& [pod, why] : failed_) {
    note("fail", {{"pod", pod}, {"reason", why.reason}, {"why", why.message}});
  }
  if (!own_namespace_.empty()) note("protect", {{"namespace", own_namespace_}});
  for (const std::string& pod : kept_) note("keep", {{"pod", pod}});
  if (room_makers_) log_->note_names("room-makers", *room_makers_);
  if (reservations_.empty()) return;
  const kinds::Inputs inputs = objects_.inputs();
  const auto before = std::exchange(reservations_, {});
  for (const model::WorkloadSpec& spec : inputs.queues.workloads) {
    const auto it = before.find(spec.ns + '/' + spec.name);
    if (it == before.end()) continue;
    std::vector<KnownPlace> places;
    for (const Reservation::Place& place : it->second.places) {
      places.push_back({place.pod_set, place.pod.name, place.pod.node_name, place.pod.gpu_indices,
                        place.taken_by});
    }
    restore(spec, places, it->second.since);
  }
}

void World::forget_everything() {
  note("forget");
  admitting_.clear();
  assumed_.clear();
  leaving_.clear();
  leaving_on_.clear();
  holds_.clear();
  failed_.clear();
  kept_.clear();
  room_makers_.reset();
  reservations_.clear();
  objects_.touch_all();
}

}  // namespace berth::control
