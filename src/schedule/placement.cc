#include "schedule/placement.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "model/fit.h"
#include "schedule/domains.h"

namespace berth::schedule {

using model::ClusterState;
using model::NodeSet;
using model::PodId;

void Reservation::bind(PodId id, const Target& target) {
  state_.bind(id, target.slot, target.gpus);
  steps_.push_back({.id = id, .evicted = false, .slot = target.slot, .gpus = target.gpus});
}

void Reservation::evict(PodId id, bool breaks_budget) {
  const model::PodEntry& pod = state_.pod(id);
  Step step{.id = id,
            .evicted = true,
            .slot = static_cast<std::uint32_t>(pod.slot),
            .gpus = pod.gpus,
            .breaks_budget = breaks_budget};
  state_.unbind(id);
  steps_.push_back(step);
}

void Reservation::give_back(std::size_t victim) {
  Step step = steps_[victim];
  state_.bind(step.id, step.slot, step.gpus);
  steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(victim));
}

void Reservation::rollback(std::size_t mark) {
  while (steps_.size() > mark) {
    const Step& step = steps_.back();
    if (step.evicted) {
      state_.bind(step.id, step.slot, step.gpus);
    } else {
      state_.unbind(step.id);
    }
    steps_.pop_back();
  }
}

std::vector<Reservation::Step> Reservation::placed() const {
  std::vector<Step> out;
  std::copy_if(steps_.begin(), steps_.end(), std::back_inserter(out),
               [](const Step& s) { return !s.evicted; });
  return out;
}

void sort_members(const ClusterState& state, std::vector<PodId>& pods) {
  auto key = [&](PodId id) {
    const model::PodEntry& pod = state.pod(id);
    const model::Demand& d = *pod.shape->demand;
    int milli = d.kind == model::GpuDemandSpec::Kind::kWhole ? model::kMilliPerGpu : d.milli;
    return std::tuple(std::string_view(pod.info->subgroup), -std::int64_t{d.count} * milli, -d.cpu,
                      std::string_view(pod.info->name));
  };
  std::sort(pods.begin(), pods.end(), [&](PodId a, PodId b) { return key(a) < key(b); });
}

namespace {

// Places members one after another inside within; returns how many. Stops at the first that does not
// fit unless others may still reach the minimum (different shapes).
int place_each(Placer& placer, ClusterState& state, const std::vector<PodId>& members,
               const NodeSet* within, Reservation& out) {
  int placed = 0;
  const model::Shape* failed = nullptr;
  for (PodId id : members) {
    const auto& shape = state.pod(id).shape;
    if (failed != nullptr && same_needs(*shape, *failed)) continue;  // an equal pod was just refused
    if (auto target = placer.find(state, shape, within)) {
      out.bind(id, *target);
      failed = nullptr;
      ++placed;
    } else {
      failed = shape.get();
    }
  }
  return placed;
}

struct Ask {  // a part of a gang with one topology request
  std::vector<PodId> members;
  std::vector<PodId> running;
  int min = 0;
  int required = -1, preferred = -1;  // topology keys
};

int key_of(const ClusterState& state, const std::string& label) {
  return label.empty() ? -1 : state.inventory().topology_key(label);
}

// Members over as few domains of the preferred key as counts allow, then wherever they fit.
int place_preferred(Placer& placer, ClusterState& state, const Ask& ask, const NodeSet* within,
                    Reservation& out) {
  auto rooms = domain_rooms(placer, state, state.pod(ask.members.front()).shape, ask.preferred,
                            within, static_cast<int>(ask.members.size()));
  int all = static_cast<int>(ask.members.size());
  order_rooms(rooms, all, all);
  for (const auto& room : rooms) {
    if (room.fits < all) break;
    auto mark = out.mark();
    NodeSet nodes = domain_nodes(state, ask.preferred, room.domain, within);
    if (place_each(placer, state, ask.members, &nodes, out) == all) return all;
    out.rollback(mark);
  }
  std::vector<PodId> left = ask.members;
  int placed = 0;
  while (!left.empty() && !rooms.empty()) {
    order_rooms(rooms, static_cast<int>(left.size()), static_cast<int>(left.size()));
    DomainRoom room = rooms.front();
    rooms.erase(rooms.begin());
    if (room.fits == 0) break;
    NodeSet nodes = domain_nodes(state, ask.preferred, room.domain, within);
    auto before = out.mark();
    placed += place_each(placer, state, left, &nodes, out);
    for (std::size_t i = before; i < out.steps().size(); ++i) std::erase(left, out.steps()[i].id);
  }
  return placed + place_each(placer, state, left, within, out);
}

int place_inside(Placer& placer, ClusterState& state, const Ask& ask, const NodeSet* within,
                 Reservation& out) {
  if (ask.members.empty()) return 0;
  if (ask.preferred >= 0) return place_preferred(placer, state, ask, within, out);
  return place_each(placer, state, ask.members, within, out);
}

// Tries fill(nodes) in the domains of a required key, best first; true when it placed the minimum.
template <class Fill>
bool in_some_domain(Placer& placer, ClusterState& state, const Ask& ask, const NodeSet* within,
                    Reservation& out, Fill&& fill) {
  auto rooms = domain_rooms(placer, state, state.pod(ask.members.front()).shape, ask.required, within,
                            static_cast<int>(ask.members.size()));
  if (auto pinned = running_domain(state, ask.running, ask.required)) {
    std::erase_if(rooms, [&](const DomainRoom& room) { return room.domain != *pinned; });
  }
  order_rooms(rooms, static_cast<int>(ask.members.size()), ask.min);
  bool equal = equal_members(state, ask.members);
  for (const auto& room : rooms) {
    if (equal && room.fits < ask.min) continue;  // the count proves it
    auto mark = out.mark();
    NodeSet nodes = domain_nodes(state, ask.required, room.domain, within);
    if (fill(&nodes)) return true;
    out.rollback(mark);
  }
  return false;
}

bool place_ask(Placer& placer, ClusterState& state, const Ask& ask, const NodeSet* within,
               Reservation& out) {
  if (ask.members.empty()) return ask.min <= 0;
  auto fill = [&](const NodeSet* nodes) {
    return place_inside(placer, state, ask, nodes, out) >= ask.min;
  };
  if (ask.required < 0) return fill(within);
  return in_some_domain(placer, state, ask, within, out, fill);
}

// The gang's parts: one per subgroup that asks something of its own, the rest together.
std::vector<Ask> split(const ClusterState& state, const Workload& workload) {
  std::vector<Ask> parts;
  const model::GangSpec& gang = state.gang(workload.gang);
  for (const auto& sub : gang.subgroups) {
    Ask part{.required = key_of(state, sub.required_topology),
             .preferred = key_of(state, sub.preferred_topology)};
    for (PodId id : workload.pending) {
      if (state.pod(id).info->subgroup == sub.name) part.members.push_back(id);
    }
    for (PodId id : workload.running) {
      if (state.pod(id).info->subgroup == sub.name) part.running.push_back(id);
    }
    part.min = std::max(0, sub.min_member - static_cast<int>(part.running.size()));
    parts.push_back(std::move(part));
  }
  Ask rest;
  for (PodId id : workload.pending) {
    const auto& name = state.pod(id).info->subgroup;
    if (std::none_of(gang.subgroups.begin(), gang.subgroups.end(),
                     [&](const auto& sub) { return sub.name == name; })) {
      rest.members.push_back(id);
    }
  }
  if (!rest.members.empty()) parts.push_back(std::move(rest));
  return parts;
}

bool place_gang(Placer& placer, ClusterState& state, const Workload& workload, Reservation& out) {
  const model::GangSpec& gang = state.gang(workload.gang);
  Ask whole{.members = workload.pending,
            .running = workload.running,
            .min = workload.min_pending,
            .required = workload.ignore_topology ? -1 : key_of(state, gang.required_topology),
            .preferred = key_of(state, gang.preferred_topology)};
  if (gang.subgroups.empty()) return place_ask(placer, state, whole, nullptr, out);
  auto parts = split(state, workload);
  auto fill = [&](const NodeSet* nodes) {
    auto mark = out.mark();
    for (auto part : parts) {
      if (part.preferred < 0) part.preferred = whole.preferred;
      if (!place_ask(placer, state, part, nodes, out)) return false;
    }
    return static_cast<int>(out.mark() - mark) >= whole.min;
  };
  if (whole.required < 0) return fill(nullptr);
  return in_some_domain(placer, state, whole, nullptr, out, fill);
}

}  // namespace

Placed place(Placer& placer, ClusterState& state, const Workload& workload) {
  Reservation out(state);
  bool ok;
  if (workload.gang < 0) {
    ok = place_each(placer, state, workload.pending, nullptr, out) == 1;
  } else {
    ok = place_gang(placer, state, workload, out);
  }
  if (!ok) return {};
  Placed placed{.pods = out.placed()};
  out.keep();
  return placed;
}

}  // namespace berth::schedule
