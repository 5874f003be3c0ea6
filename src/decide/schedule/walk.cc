#include "decide/schedule/walk.h"

#include <algorithm>

namespace berth::schedule {

using model::ClusterState;
using model::NodeSet;
using model::PodId;

Walk::Walk(Placer& placer, ClusterState& state, const Workload& workload, Reservation& out,
           Options options)
    : Walk(placer, state, workload, out, options,
           [&placer, &state, &out](PodId id, const NodeSet* nodes) {
             auto target = placer.find(state, state.pod(id).shape, nodes);
             if (target) out.bind(id, *target);
             return target.has_value();
           }) {}

Walk::Walk(Placer& placer, ClusterState& state, const Workload& workload, Reservation& out,
           Options options, PlaceOne place_one)
    : placer_(placer),
      state_(state),
      workload_(workload),
      gang_(gang_of(state, workload)),
      out_(out),
      options_(options),
      place_one_(std::move(place_one)) {}

bool Walk::run() { return place_unit(whole_unit(), nullptr); }

int Walk::most_in(const NodeSet* nodes) {
  Unit unit = whole_unit();
  place_preferring(unit, nodes);
  return placed_of(unit);
}

// ---- units ----

int Walk::key_of(const std::string& label) const {
  return label.empty() ? -1 : state_.inventory().topology_key(label);
}

Walk::Unit Walk::whole_unit() const {
  Unit unit{.members = workload_.pending, .whole = true};
  if (gang_ == nullptr) return unit;
  if (options_.required_topology) unit.required = key_of(gang_->required_topology);
  if (!options_.preempting) unit.preferred = key_of(gang_->preferred_topology);
  return unit;
}

Walk::Unit Walk::subgroup_unit(const std::string& name, std::vector<PodId> members) const {
  Unit unit{.members = std::move(members), .name = name};
  if (gang_ == nullptr) return unit;
  for (const auto& subgroup : gang_->subgroups) {
    if (subgroup.name == name) unit.subgroup = &subgroup;
  }
  if (unit.subgroup == nullptr) return unit;
  if (options_.required_topology) unit.required = key_of(unit.subgroup->required_topology);
  if (!options_.preempting) unit.preferred = key_of(unit.subgroup->preferred_topology);
  return unit;
}

std::vector<PodId> Walk::remaining(const Unit& unit) const {
  std::vector<PodId> left;
  for (PodId id : unit.members) {
    if (state_.pod(id).slot < 0) left.push_back(id);
  }
  return left;
}

int Walk::placed_of(const Unit& unit) const {
  return static_cast<int>(
      std::count_if(workload_.pending.begin(), workload_.pending.end(), [&](PodId id) {
        return state_.pod(id).slot >= 0 &&
               (unit.whole || state_.pod(id).info->subgroup == unit.name);
      }));
}

int Walk::have(const Unit& unit) const {
  int running = 0;
  for (PodId id : workload_.running) {
    running += unit.whole || state_.pod(id).info->subgroup == unit.name ? 1 : 0;
  }
  return running + placed_of(unit);
}

int Walk::needed(const Unit& unit) const {
  if (unit.whole) return workload_.min_pending;
  return std::max(1, (unit.subgroup == nullptr ? 0 : unit.subgroup->min_member) - have(unit));
}

bool Walk::enough(const Unit& unit) const {
  if (placed_of(unit) < 1) return false;
  if (!unit.whole) return unit.subgroup == nullptr || have(unit) >= unit.subgroup->min_member;
  if (gang_ == nullptr) return true;
  if (have(unit) < gang_->min_member) return false;
  return std::all_of(gang_->subgroups.begin(), gang_->subgroups.end(), [&](const auto& subgroup) {
    return have(Unit{.name = subgroup.name}) >= subgroup.min_member;
  });
}

// ---- domains ----

std::vector<DomainRoom> Walk::in_order(const Unit& unit, const NodeSet* nodes, int key) {
  auto left = remaining(unit);
  if (left.empty()) return {};
  auto rooms = domain_rooms(placer_, state_, state_.pod(left.front()).shape, key, nodes);
  // Members that run, or were placed before, bind the others to their domains.
  std::set<std::int32_t> inhabited;
  const model::Domains& domains = state_.inventory().domains(key);
  auto visit = [&](PodId id) {
    const model::PodEntry& pod = state_.pod(id);
    if (pod.slot < 0 || (!unit.whole && pod.info->subgroup != unit.name)) return;
    auto d = domains.of[static_cast<std::size_t>(pod.slot)];
    if (d >= 0) inhabited.insert(d);
  };
  for (PodId id : workload_.running) visit(id);
  for (PodId id : workload_.pending) visit(id);
  int min = needed(unit);
  // For equal members a count below the minimum is a proof; otherwise the walk has to tell.
  bool proof = !options_.preempting && equal_members(state_, left);
  std::erase_if(rooms, [&](const DomainRoom& room) {
    return (!inhabited.empty() && !inhabited.contains(room.domain)) || (proof && room.fits < min);
  });
  order_rooms(rooms, static_cast<int>(left.size()), min);
  return rooms;
}

// ---- the walk ----

bool Walk::place_unit(const Unit& unit, const NodeSet* nodes) {
  if (unit.required < 0) return place_preferring(unit, nodes);
  for (const auto& room : in_order(unit, nodes, unit.required)) {
    auto mark = out_.mark();
    NodeSet inside = domain_nodes(state_, unit.required, room.domain, nodes);
    if (place_preferring(unit, &inside)) return true;
    out_.rollback(mark);
  }
  return false;
}

bool Walk::place_preferring(const Unit& unit, const NodeSet* nodes) {
  if (unit.preferred < 0) {
    place_all(unit, nodes);
    return enough(unit);
  }
  for (const auto& room : in_order(unit, nodes, unit.preferred)) {
    auto mark = out_.mark();
    NodeSet inside = domain_nodes(state_, unit.preferred, room.domain, nodes);
    place_all(unit, &inside);
    if (remaining(unit).empty()) return enough(unit);
    out_.rollback(mark);
  }
  place_in_few(unit, nodes);
  return enough(unit);
}

void Walk::place_in_few(const Unit& unit, const NodeSet* nodes) {
  std::set<std::int32_t> used;
  for (;;) {
    auto left = remaining(unit);
    if (left.empty()) return;
    auto rooms =
        domain_rooms(placer_, state_, state_.pod(left.front()).shape, unit.preferred, nodes);
    std::erase_if(rooms, [&](const DomainRoom& room) {
      return room.fits == 0 || used.contains(room.domain);
    });
    if (rooms.empty()) break;
    order_rooms(rooms, static_cast<int>(left.size()), 0);
    used.insert(rooms.front().domain);
    NodeSet inside = domain_nodes(state_, unit.preferred, rooms.front().domain, nodes);
    place_all(unit, &inside);
  }
  place_all(unit, nodes);
}

void Walk::place_all(const Unit& unit, const NodeSet* nodes) {
  auto left = remaining(unit);
  for (std::size_t i = 0; i < left.size();) {
    const std::string& name = state_.pod(left[i]).info->subgroup;
    std::size_t end = i + 1;
    while (end < left.size() && state_.pod(left[end]).info->subgroup == name) ++end;
    Unit inner = subgroup_unit(name, {left.begin() + static_cast<std::ptrdiff_t>(i),
                                      left.begin() + static_cast<std::ptrdiff_t>(end)});
    if (unit.whole && (inner.required >= 0 || inner.preferred >= 0)) {
      auto mark = out_.mark();
      if (!place_unit(inner, nodes)) out_.rollback(mark);
    } else {
      place_each(inner.members, nodes);
    }
    i = end;
  }
}

void Walk::place_each(const std::vector<PodId>& members, const NodeSet* nodes) {
  model::ShapeRef refused = nullptr;  // and nothing was bound since
  for (PodId id : members) {
    const auto& shape = state_.pod(id).shape;
    if (refused && (shape == refused || same_needs(*shape, *refused))) continue;
    refused = place_one_(id, nodes) ? nullptr : shape;
  }
}

}  // namespace berth::schedule
