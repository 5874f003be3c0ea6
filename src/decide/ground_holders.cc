// Holders on the ground: the pods they have, the seats of those to come, slices that grow.
#include <algorithm>

#include "decide/node_ground.h"

namespace berth::decide {

using admit::Assignment;
using admit::Choice;
using admit::WorkloadId;
using model::PodId;
using Seat = model::WorkloadSpec::Seat;

namespace {

model::PodSpec as_queued(model::PodSpec pod) {
  pod.queued = true;
  return pod;
}

}  // namespace

// ---- pods and seats ----

// Where the pods of a set are to run: its seats, or the nodes that its domains name.
std::vector<Seat> NodeGround::seats_of(const Known& known, std::size_t set) const {
  const std::string& name = known.spec->pod_sets[set].name;
  std::vector<Seat> out;
  for (const Seat& seat : known.spec->seats) {
    const bool there = builder_.state().inventory().slot(seat.node).has_value();
    if (seat.pod_set == name && there) out.push_back(seat);
  }
  if (!out.empty()) return out;
  for (const auto& admitted : known.spec->admission->pod_sets) {
    if (admitted.name != name || !admitted.topology) continue;
    if (admitted.topology->levels.back() != model::kHostnameLabel) continue;
    for (const auto& domain : admitted.topology->domains) {
      const std::string* node = index_.node_of(domain.values.back());
      if (node == nullptr) continue;
      for (int k = 0; k < domain.count; ++k) {
        out.push_back({.pod_set = name, .node = *node, .gpus = {}});
      }
    }
  }
  return out;
}

// Seats that no pod has taken yet: the pods that wait for them get them, others keep them free.
std::vector<model::PodSpec> NodeGround::seats_taken(
    Known& known, const std::vector<const model::PodSpec*>& there) {
  std::vector<model::PodSpec> out;
  for (std::size_t s = 0; s < known.spec->pod_sets.size(); ++s) {
    const model::PodSetSpec& set = known.spec->pod_sets[s];
    std::vector<Seat> seats = seats_of(known, s);
    if (seats.empty()) continue;
    std::set<std::string> sitting;
    for (const model::PodSpec* pod : there) {
      const std::string name = pod->ns + '/' + pod->name;
      const bool of_set = known.spec->pod_sets.size() == 1 ||
                          std::binary_search(set.pods.begin(), set.pods.end(), name);
      if (!of_set) continue;
      sitting.insert(pod->name);
      const auto seat = std::find_if(seats.begin(), seats.end(),
                                     [&](const Seat& one) { return one.node == pod->node_name; });
      if (seat != seats.end()) seats.erase(seat);
    }
    const auto done = known.spec->reclaimable.find(set.name);
    const int total =
        known.counts[set.name] - (done == known.spec->reclaimable.end() ? 0 : done->second);
    // Of a set that runs in part, pods that are not there may be done: only seats keep their room.
    const bool only_existing = known.spec->seats.empty() && !sitting.empty();
    for (const std::string& name : pod_names(known, s, total + static_cast<int>(sitting.size()))) {
      if (seats.empty() || static_cast<int>(sitting.size()) >= total) break;
      const model::PodSpec* input = index_.pod(known.spec->ns + '/' + name);
      if (only_existing && input == nullptr) continue;
      if (!sitting.insert(name).second) continue;
      model::PodSpec pod = input != nullptr ? *input : *set.pod;
      pod.ns = known.spec->ns;
      pod.name = name;
      pod.node_name = seats.front().node;
      pod.gpu_indices = seats.front().gpus;
      if (input != nullptr && !pod.gated) {
        known.seated.push_back(known.spec->ns + '/' + name);
      }
      seats.erase(seats.begin());
      out.push_back(std::move(pod));
    }
  }
  return out;
}

void NodeGround::take_in_pods(Known& known) {
  std::vector<const model::PodSpec*> there;
  std::set<std::string_view> seen;
  const auto take = [&](const model::PodSpec& pod) {
    if (!may_have(known, pod.ns + '/' + pod.name)) return;
    if (!pod.node_name.empty() && seen.insert(pod.name).second) there.push_back(&pod);
  };
  for (const auto& set : known.spec->pod_sets) {
    for (const auto& name : set.pods) {
      if (const model::PodSpec* pod = index_.pod(name)) take(*pod);
    }
  }
  if (!known.spec->owner.empty()) {
    for (const model::PodSpec* pod : index_.running_of(known.spec->ns + '/' + known.spec->owner)) {
      take(*pod);
    }
  }
  known.pods.resize(1);
  const auto hold = [&](std::string name, PodId id) {
    has_.emplace(name, &known);
    known.names.push_back(std::move(name));
    known.pods[0].push_back(id);
    known.made = "held";
  };
  for (const model::PodSpec* pod : there) {
    std::string name = pod->ns + '/' + pod->name;
    const auto id = pod->queued ? builder_.find_pod(name) : std::nullopt;  // as the input has it
    if (!id) overlay_.reset();                                             // made without it
    hold(std::move(name), id ? *id : builder_.upsert_pod(as_queued(*pod)));
  }
  for (const model::PodSpec& pod : seats_taken(known, there)) {
    overlay_.reset();
    hold(pod.ns + '/' + pod.name, builder_.upsert_pod(as_queued(pod)));
  }
}

admit::Ground::Answer NodeGround::settle(WorkloadId id, const admit::Workload& workload,
                                         Assignment& assignment, bool why) {
  if (stale_) recount();
  Known& known = seen(id);
  const bool sits = topology_only_ ? !known.domains.empty() : !known.held.pods.empty();
  if (sits) return {.fits = true, .message = {}};
  const std::vector<Charge> charges = std::exchange(known.held.charges, {});
  for (const Charge& c : charges) charge(c, false);
  Answer answer = place(id, workload, assignment, why);
  if (answer.fits) {
    put(id, assignment, true);
    return answer;
  }
  for (const Charge& c : charges) charge(c, true);
  known.held.charges = charges;
  return answer;
}

// ---- slices ----

void NodeGround::grows(WorkloadId fresh, WorkloadId old) {
  seen(old);
  known_.at(fresh).old = old;
}

const NodeGround::Known* NodeGround::old_of(const Known& known) const {
  if (known.old == admit::kNoId) return nullptr;
  const auto it = known_.find(known.old);
  return it == known_.end() || !it->second.holds ? nullptr : &it->second;
}

// The pods that a slice asks for beyond the old one's.
void NodeGround::less_old(const Known& old, const Known& known, Assignment& assignment) const {
  for (std::size_t i = 0; i < assignment.pod_sets.size(); ++i) {
    const auto had = old.counts.find(known.spec->pod_sets[i].name);
    Choice& choice = assignment.pod_sets[i];
    if (had != old.counts.end()) choice.count = std::max(0, choice.count - had->second);
  }
}

// The domains of both.
void NodeGround::plus_old(const Known& old, const Known& known, const Assignment& part,
                          Assignment& assignment) const {
  for (std::size_t i = 0; i < assignment.pod_sets.size(); ++i) {
    std::optional<model::TopologyAssignment> all = part.pod_sets[i].topology;
    for (const Domains& had : old.domains) {
      if (had.pod_set != known.spec->pod_sets[i].name) continue;
      if (!all) {
        all = had.assignment;
        continue;
      }
      for (const auto& domain : had.assignment.domains) {
        const auto same = std::find_if(all->domains.begin(), all->domains.end(),
                                       [&](const auto& d) { return d.values == domain.values; });
        if (same == all->domains.end()) {
          all->domains.push_back(domain);
        } else {
          same->count += domain.count;
        }
      }
      std::sort(all->domains.begin(), all->domains.end());
    }
    assignment.pod_sets[i].topology = std::move(all);
  }
}

void NodeGround::inherit(WorkloadId fresh, WorkloadId old) {
  Known& from = known_.at(old);
  Known& to = known_.at(fresh);
  to.inherited = std::exchange(from.held, {});
  to.inherited_names = std::exchange(from.names, {});
  for (const auto& name : to.inherited_names) has_.insert_or_assign(name, &to);
  from.pods.clear();
  from.made.clear();
  from.domains.clear();
  from.counts.clear();
  from.holds = false;
  to.old = admit::kNoId;
}

}  // namespace berth::decide
