// Places that were chosen for the pods of a workload before there are pods: kept over a restart,
// and handed out as the pods come.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "control/decision_line.h"
#include "control/queue_keeper.h"
#include "kinds/pod_writes.h"

namespace berth::control {

// After a start: places of workloads that were admitted before it and have pods to come. Those
// whose pods were ready once need none.
void QueueKeeper::restore_places() {
  if (std::exchange(restored_, true)) return;
  for (const auto& each : world_.queues().workloads) {
    const model::WorkloadSpec& spec = *each;
    if (!spec.admission || spec.seats.empty()) continue;
    const auto object = views_.workloads.find({spec.ns, spec.name});
    if (!object) continue;
    const kinds::WorkloadStatus status(object->root(), 0);
    if (status.is_true("PodsReady") || status.is_true("Evicted") || status.is_true("Finished") ||
        status.reason("PodsReady") == "WaitForRecovery") {
      continue;
    }
    std::vector<KnownPlace> places;
    for (const model::WorkloadSpec::Seat& seat : spec.seats) {
      places.push_back({seat.pod_set, fmt::format("{}-seat-{}", spec.name, places.size()),
                        seat.node, seat.gpus});
    }
    const auto sits = [&](const kinds::LivePod& pod) {
      if (pod.node.empty()) return;
      const auto it = std::find_if(places.begin(), places.end(), [&](const KnownPlace& place) {
        return place.node == pod.node &&
               (pod.gpus.empty() || kinds::gpus_text(place.gpus) == pod.gpus);
      });
      if (it != places.end()) places.erase(it);
    };
    for (const std::string& key : world_.pods_of(spec.ns + '/' + spec.name)) {
      if (const kinds::LivePod* live = world_.objects().pod(key)) sits(*live);
    }
    std::erase_if(
        places, [this](const KnownPlace& place) { return !world_.objects().has_node(place.node); });
    if (!places.empty()) world_.restore(spec, places, common_.now());
  }
}

namespace {

// A place has the devices for what its workload's pods ask for. Whoever names the workload's owner
// and asks for other ones has none here.
bool is_for(const Reservation::Place& place, const model::PodSpec& pod) {
  if (pod.gpu != place.pod.gpu) return false;
  return std::all_of(pod.requests.begin(), pod.requests.end(), [&](const auto& asked) {
    if (!model::is_device(asked.first)) return true;
    const auto held = place.pod.requests.find(asked.first);
    return held != place.pod.requests.end() && asked.second <= held->second;
  });
}

// Sidecars, defaults and overheads come after the place was chosen.
bool is_larger(const Reservation::Place& place, const model::PodSpec& pod) {
  return std::any_of(pod.requests.begin(), pod.requests.end(), [&](const auto& asked) {
    const auto held = place.pod.requests.find(asked.first);
    return asked.second > (held == place.pod.requests.end() ? 0 : held->second);
  });
}

struct Chosen {
  const Reservation::Place* place = nullptr;  // null: it has one, or there is none
  bool fits = false;
};

// A pod of the workload has the quota of a place in any case. Where it does not fit there, or may
// not any more, the place is given up for it, and it is placed like others.
Chosen choose_place(const Reservation& reservation, const std::string& key,
                    const kinds::PodObject& pod) {
  const auto label = pod.meta.labels.find("kueue.x-k8s.io/podset");
  const Reservation::Place* best = nullptr;
  const Reservation::Place* other = nullptr;  // not for what it asks
  for (const Reservation::Place& place : reservation.places) {
    if (place.taken_by == key) return {};  // once
    if (!place.taken_by.empty()) continue;
    const bool set = label == pod.meta.labels.end() || label->second == place.pod_set;
    if (!is_for(place, pod.spec)) {
      if (other == nullptr && set) other = &place;
      continue;
    }
    if (place.pod.ns + '/' + place.pod.name == key) return {&place, !is_larger(place, pod.spec)};
    if (best == nullptr && set) best = &place;
  }
  if (best == nullptr) return {other, false};
  return {best, !is_larger(*best, pod.spec)};
}

}  // namespace

std::vector<std::pair<std::string, Assumed>> QueueKeeper::take_places(std::int64_t expire_ns) {
  std::vector<std::pair<std::string, Assumed>> out;
  const std::int64_t now = common_.now();
  std::vector<std::string> over;
  for (const auto& [name, known] : world_.reservations()) {
    Reservation& reservation = *world_.reservation(name);
    const std::size_t slash = name.find('/');
    const auto object = views_.workloads.find({name.substr(0, slash), name.substr(slash + 1)});
    if (!object) {
      over.push_back(name);
      continue;
    }
    const kinds::WorkloadStatus status(object->root(), 0);
    if (status.is_true("Finished")) {
      over.push_back(name);
      continue;
    }
    if (!status.is_true("Admitted") || status.is_true("Evicted")) {
      // While its admission is being written, the status still tells of the eviction before it.
      const bool ended = status.is_true("Evicted") || !status.is_true("QuotaReserved");
      const bool writing =
          common_.writer.is_under_way(status_key({name.substr(0, slash), name.substr(slash + 1)}));
      if (ended && !writing) over.push_back(name);
      reservation.since = now;  // checks are to come
      continue;
    }
    // Whatever it is called and whoever it names as its owner: only what the workload holds quota
    // for takes a place of it.
    const auto take = [&](const std::string& key, const kinds::LivePod& pod) {
      if (!world_.is_of(key, name)) return;
      if (!pod.node.empty() || pod.terminating || pod.finished() || !pod.body->valid) return;
      if (pod.body->object.spec.gated || pod.foreign || world_.assumed(key) != nullptr) return;
      const auto [best, fits] = choose_place(reservation, key, pod.body->object);
      if (best == nullptr) return;
      world_.take_place(name, static_cast<std::size_t>(best - reservation.places.data()), key);
      if (!fits || !world_.may_be_on(key, best->pod.node_name)) return;
      out.emplace_back(key, Assumed{.uid = pod.uid,
                                    .node = best->pod.node_name,
                                    .gang = name,
                                    .gpus = best->pod.gpu_indices});
    };
    for (const Reservation::Place& place : known.places) {
      const std::string key = place.pod.ns + '/' + place.pod.name;
      if (const kinds::LivePod* live = world_.objects().pod(key)) take(key, *live);
    }
    for (const std::string& key : world_.pods_of(name)) {
      if (const kinds::LivePod* live = world_.objects().pod(key)) take(key, *live);
    }
    const bool full = std::all_of(reservation.places.begin(), reservation.places.end(),
                                  [](const auto& place) { return !place.taken_by.empty(); });
    if (full || now - reservation.since > expire_ns) over.push_back(name);
  }
  for (const std::string& name : over) world_.end_reservation(name);
  return out;
}

}  // namespace berth::control
