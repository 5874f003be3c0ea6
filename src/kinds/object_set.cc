#include "kinds/object_set.h"

#include <algorithm>

#include "kinds/object_set_state.h"
#include "kinds/queue_view.h"

namespace berth::kinds {

using text::Value;

ObjectSet::State::State(ObjectSetOptions options_in)
    : options(std::move(options_in)), lanes(options.seed) {}
ObjectSet::State::~State() = default;

ObjectSet::ObjectSet(ObjectSetOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
ObjectSet::~ObjectSet() = default;

Effect ObjectSet::put(std::string_view version, std::string_view kind, const Value& object) {
  if (kind == "Pod") return state_->put_pod(object);
  return state_->put_object(version, kind, object);
}

Effect ObjectSet::remove(std::string_view version, std::string_view kind, std::string_view ns,
                         std::string_view name) {
  if (kind == "Pod") return state_->remove_pod(qualified(std::string(ns), std::string(name)));
  return state_->remove_object(version, kind, ns, name);
}

Inputs ObjectSet::inputs(const PlaceOf& believed) const {
  Gathered all;
  for (const Shelf* shelf : state_->shelves.all()) shelf->give(all);
  state_->give_pods(believed, all);
  state_->give_complaints(all);
  return resolve(std::move(all), state_->live_options());
}

std::unique_ptr<ObjectSet> ObjectSet::copy(const Bound* bound) const {
  auto out =
      std::make_unique<ObjectSet>(ObjectSetOptions{.scheduler_names = {},
                                                   .seed = state_->options.seed,
                                                   .own_namespace = state_->options.own_namespace});
  State& to = *out->state_;
  to.shelves = state_->shelves;
  to.workload_owners = state_->workload_owners;
  to.queue_groups = state_->queue_groups;
  to.unread = state_->unread;
  to.revision = state_->revision;
  for (const auto& [key, pod] : state_->pods) {
    const bool taken = bound == nullptr || pod.node.empty() || bound->pods.contains(key);
    if (taken) to.pods.emplace_hint(to.pods.end(), key, pod);
  }
  if (bound == nullptr) return out;
  to.shelves.gpu_nodes.objects.clear();
  std::erase_if(to.shelves.nodes.objects, [bound](const auto& entry) {
    return !bound->nodes.contains(entry.second->object.spec.name);
  });
  return out;
}

QueueChanges ObjectSet::take_queue_changes(const PlaceOf& believed) {
  if (!state_->view) state_->view = State::QueueView::make(*state_);
  return state_->view->refresh(believed);
}

Queues ObjectSet::queues() const { return state_->view->queues(); }
const model::QueueRules* ObjectSet::queue_rules() const { return &state_->view->rules(); }

std::map<std::string, int> ObjectSet::waiting_behind() const {
  std::map<std::string, int> out;
  for (const std::string_view key : state_->lanes.behind(WaitingLanes::kMostSeen)) {
    const auto it = state_->shelves.workloads.objects.find(std::string(key));
    const model::WorkloadSpec& spec = it->second->object.spec;
    ++out[qualified(spec.ns, spec.queue)];
  }
  return out;
}

ObjectChanges ObjectSet::take_changes(std::size_t max_pods, const PlaceOf& believed) {
  State& s = *state_;
  ObjectChanges out;
  if (s.everything) {
    out.everything = true;
    s.everything = false;
    for (const auto& [key, node] : s.shelves.nodes.objects) {
      s.dirty_nodes.insert(node->object.spec.name);
    }
    for (const auto& [key, pod] : s.pods) s.dirty_pods.insert(key);
    for (const auto& [key, group] : s.shelves.groups.objects) {
      s.dirty_gangs.insert(qualified(group->object.gang.ns, group->object.gang.name));
    }
    s.budgets_dirty = true;
  }
  out.unread = s.unread.take_fresh();
  if (!s.dirty_nodes.empty()) s.resolve_nodes(out);
  s.spread_dirty_gangs(out);
  if (!s.dirty_pods.empty() || !s.dirty_gangs.empty()) s.resolve_pods(max_pods, believed, out);
  if (s.budgets_dirty) s.resolve_budgets(out, *this);
  return out;
}

void ObjectSet::touch_pod(const std::string& key) { state_->dirty_pods.insert(key); }
void ObjectSet::settle_pod(const std::string& key) { state_->dirty_pods.erase(key); }
void ObjectSet::touch_node(const std::string& name) {
  state_->dirty_nodes.insert(name);
  state_->queues_dirty = true;
}
void ObjectSet::touch_place(const std::string& pod) {
  if (state_->view) state_->view->pod_changed(pod);
}
void ObjectSet::touch_queues() { state_->queues_dirty = true; }
void ObjectSet::touch_all() {
  state_->everything = true;
  if (state_->view) state_->view->everything_changed();
}

const LivePod* ObjectSet::pod(std::string_view key) const {
  const auto it = state_->pods.find(key);
  return it == state_->pods.end() ? nullptr : &it->second;
}
std::size_t ObjectSet::pods() const { return state_->pods.size(); }
std::size_t ObjectSet::nodes() const { return state_->shelves.nodes.objects.size(); }

void ObjectSet::for_each_pod(const PodVisitor& f) const {
  for (const auto& [key, pod] : state_->pods) f(key, pod);
}
void ObjectSet::for_each_pod_on(std::string_view node, const PodVisitor& f) const {
  state_->visit(state_->pods_on, node, f);
}
void ObjectSet::for_each_member(const std::string& group, const PodVisitor& f) const {
  state_->visit(state_->members, group, f);
}
void ObjectSet::for_each_owned(const std::string& owner, const PodVisitor& f) const {
  state_->visit(state_->owned, owner, f);
}
bool ObjectSet::has_node(std::string_view name) const {
  return state_->shelves.nodes.objects.contains("|/" + std::string(name));
}

void ObjectSet::set_own_namespace(const std::string& ns) { state_->options.own_namespace = ns; }
bool ObjectSet::has_queues() const { return state_->has_queues(); }
bool ObjectSet::has_cluster_queues() const { return state_->kueue(); }
bool ObjectSet::in_queue(std::string_view key) const {
  const auto it = state_->pods.find(key);
  return it != state_->pods.end() && state_->in_queue(it->second);
}
QueueDemands ObjectSet::queue_demands() const {
  return demands_of(of_demands(state_->shelves), state_->live_options());
}
bool ObjectSet::queues_changed() const { return state_->queues_dirty; }
std::optional<model::Policy> ObjectSet::policy() const {
  const auto& objects = state_->shelves.policies.objects;
  const auto it = objects.find(key_on_shelf("berth.dev/v1alpha1", "", kPolicyInForce));
  if (it == objects.end()) return std::nullopt;
  return it->second->object.policy;
}
void ObjectSet::inputs_taken() { state_->queues_dirty = false; }
std::map<std::string, std::size_t> ObjectSet::unread() const {
  std::map<std::string, std::size_t> out{{"Pod", state_->unread_pods}};
  state_->unread.count(out);
  return out;
}
std::uint64_t ObjectSet::digest() const { return state_->digest; }
std::uint64_t ObjectSet::revision() const { return state_->revision; }

}  // namespace berth::kinds
