// Places that are kept for the pods of workloads that were let in, until those come.
#include <algorithm>
#include <utility>

#include "control/decision_line.h"
#include "control/world.h"
#include "kinds/pod_writes.h"

namespace berth::control {

namespace {

Reservation::Place place_in(const model::WorkloadSpec& spec, const model::PodSetSpec& set,
                            const KnownPlace& known) {
  Reservation::Place place;
  place.pod = *set.pod;
  place.pod.ns = spec.ns;
  place.pod.name = known.pod;
  place.pod.uid.clear();
  place.pod.node_name = known.node;
  place.pod.gpu_indices = known.gpus;
  place.pod.owner = spec.owner;
  place.pod.queued = true;
  place.pod.gated = false;
  place.pod.gang.clear();
  place.pod.subgroup.clear();
  place.pod_set = set.name;
  place.taken_by = known.taken_by;
  return place;
}

std::string places_line(const std::string& workload, const std::vector<KnownPlace>& places) {
  text::JsonWriter out;
  out.object([&] {
    out.field("op", "places");
    out.field("workload", workload);
    out.array("places", [&] {
      for (const KnownPlace& place : places) {
        out.object([&] {
          out.field("set", place.pod_set);
          out.field("pod", place.pod);
          out.field("node", place.node);
          out.field("gpus", kinds::gpus_text(place.gpus));
          out.field("taken", place.taken_by);
        });
      }
    });
  });
  return std::move(out).take();
}

}  // namespace

namespace {

// Pods that ask for no devices are placed as they come: a place that is kept for one would cost its
// author nothing, and others a slot.
bool wants_devices(const model::PodSetSpec& set) {
  return set.pod->gpu.kind != model::GpuDemandSpec::Kind::kNone || model::has_devices(set.requests);
}

}  // namespace

void World::reserve(const model::WorkloadSpec& spec,
                    const std::vector<const model::Placement*>& placements, std::int64_t now) {
  const std::string name = spec.ns + '/' + spec.name;
  note("reserve", {{"workload", name}});
  Reservation out;
  out.workload = name;
  out.since = now;
  for (const model::Placement* p : placements) {
    const model::PodSetSpec* set = &spec.pod_sets.front();
    for (const model::PodSetSpec& one : spec.pod_sets) {
      const bool listed = std::find(one.pods.begin(), one.pods.end(), p->pod) != one.pods.end();
      if (listed || p->pod.starts_with(name + '-' + one.name + '-')) set = &one;
    }
    if (!wants_devices(*set)) continue;
    out.places.push_back(
        place_in(spec, *set, {set->name, p->pod.substr(p->pod.find('/') + 1), p->node, p->gpus}));
  }
  if (!out.places.empty()) reservations_.insert_or_assign(name, std::move(out));
}

void World::restore(const model::WorkloadSpec& spec, const std::vector<KnownPlace>& places,
                    std::int64_t now) {
  const std::string name = spec.ns + '/' + spec.name;
  if (log_ != nullptr) log_->line(places_line(name, places));
  Reservation out;
  out.workload = name;
  out.since = now;
  for (const KnownPlace& known : places) {
    for (const model::PodSetSpec& set : spec.pod_sets) {
      if (set.name == known.pod_set) out.places.push_back(place_in(spec, set, known));
    }
  }
  reservations_.insert_or_assign(name, std::move(out));
}

void World::end_reservation(const std::string& workload) {
  if (reservations_.erase(workload) == 0) return;
  room_changed_ = true;
  note("end-reservation", {{"workload", workload}});
}

void World::take_place(const std::string& workload, std::size_t place, const std::string& pod) {
  const auto it = reservations_.find(workload);
  if (it == reservations_.end() || place >= it->second.places.size()) return;
  note("take", {{"workload", workload}, {"place", static_cast<std::int64_t>(place)}, {"pod", pod}});
  it->second.places[place].taken_by = pod;
}

bool World::may_be_on(const std::string& pod, const std::string& node) {
  const model::ClusterState& state = builder_->state();
  const auto id = builder_->find_pod(pod);
  const auto slot = state.inventory().slot(node);
  return !id || (slot && placer_->rules(state, *state.pod(*id).shape).allowed.test(*slot));
}

Reservation* World::reservation(const std::string& workload) {
  const auto it = reservations_.find(workload);
  return it == reservations_.end() ? nullptr : &it->second;
}

// Nobody has come for it. A pod of that name sits in it if it is one of the workload's: anybody may
// make one of the name that a pod of a Job would have.
bool World::is_kept(const Reservation& of, const Reservation::Place& place) const {
  if (!place.taken_by.empty()) return false;
  const kinds::LivePod* live = objects_.pod(place.key());
  if (live == nullptr || (live->node.empty() && !assumed_.contains(place.key()))) return true;
  return !is_of(place.key(), of.workload);
}

// The pod that stands for it, of a name that no pod of the API has.
model::PodSpec World::stand_in(const Reservation::Place& place) const {
  model::PodSpec out = place.pod;
  if (objects_.pod(place.key()) != nullptr) out.name += " (its place)";
  return out;
}

// Places of reservations, so that nobody else takes them.
void World::feed_places() {
  if (reservations_.empty() && phantoms_.empty()) return;
  std::set<std::string> wanted;
  for (const auto& [name, reservation] : reservations_) {
    for (const Reservation::Place& place : reservation.places) {
      if (!is_kept(reservation, place)) continue;
      const model::PodSpec held = stand_in(place);
      const std::string known_as = held.ns + '/' + held.name;
      wanted.insert(known_as);
      const auto [it, is_new] = phantoms_.try_emplace(known_as, held);
      if (!is_new) continue;
      builder_->upsert_pod(held);
      index_.put(it->second);
    }
  }
  for (auto it = phantoms_.begin(); it != phantoms_.end();) {
    if (wanted.contains(it->first)) {
      ++it;
      continue;
    }
    index_.remove_pod(it->first);
    room_changed_ = true;
    if (objects_.pod(it->first) == nullptr) builder_->remove_pod(it->first);
    index_pod(it->first);
    it = phantoms_.erase(it);
  }
}

// For a decision of the queues a pod that waits for its gate sits in its place itself.
void World::believe_places(model::SnapshotBuilder& builder, decide::InputIndex& index,
                           Stands& stands) const {
  for (const auto& [name, reservation] : reservations_) {
    for (const Reservation::Place& place : reservation.places) {
      const std::string key = place.key();
      const auto pod = queue_pods_.find(key);
      if (pod == queue_pods_.end() || !is_of(key, name) || !is_kept(reservation, place)) continue;
      if (!pod->second.fed.node_name.empty() || leaving_.contains(key)) continue;
      const model::PodSpec stood = stand_in(place);
      builder.remove_pod(stood.ns + '/' + stood.name);
      index.remove_pod(stood.ns + '/' + stood.name);
      model::PodSpec& sits = stands.emplace(key, pod->second.fed).first->second;
      sits.node_name = place.pod.node_name;
      sits.gpu_indices = place.pod.gpu_indices;
      sits.gated = false;
      builder.upsert_pod(sits);
      index.put(sits);
    }
  }
}

}  // namespace berth::control
