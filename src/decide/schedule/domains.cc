#include "decide/schedule/domains.h"

#include <algorithm>
#include <tuple>

#include "model/fit.h"

namespace berth::schedule {

using model::ClusterState;
using model::NodeSet;

std::vector<DomainRoom> domain_rooms(Placer& placer, const ClusterState& state,
                                     model::ShapeRef shape, int key, const NodeSet* within) {
  if (within == nullptr) {
    const std::vector<int>& sums = placer.rooms(state, *shape, key);
    std::vector<DomainRoom> all(sums.size());
    for (std::size_t d = 0; d < sums.size(); ++d) {
      all[d] = {.domain = static_cast<std::int32_t>(d), .fits = sums[d]};
    }
    return all;
  }
  const NodeSet& allowed = placer.rules(state, *shape).allowed;
  const model::Domains* domains = key < 0 ? nullptr : &state.inventory().domains(key);
  std::vector<DomainRoom> rooms(domains == nullptr ? 1 : domains->values.size());
  for (std::size_t d = 0; d < rooms.size(); ++d) rooms[d].domain = static_cast<std::int32_t>(d);
  within->for_each([&](std::size_t slot) {
    const std::int32_t d = domains == nullptr ? 0 : domains->of[slot];
    if (d < 0 || !allowed.test(slot)) return;
    rooms[static_cast<std::size_t>(d)].fits +=
        model::fit_count(state.info(slot), state.node(slot), *shape->demand, INT32_MAX);
  });
  return rooms;
}

void order_rooms(std::vector<DomainRoom>& rooms, int all, int min) {
  auto key = [&](const DomainRoom& room) {
    if (room.fits >= all) return std::tuple(0, room.fits, room.domain);
    return std::tuple(room.fits >= min ? 1 : 2, -room.fits, room.domain);
  };
  std::sort(rooms.begin(), rooms.end(),
            [&](const DomainRoom& a, const DomainRoom& b) { return key(a) < key(b); });
}

NodeSet domain_nodes(const ClusterState& state, int key, std::int32_t domain,
                     const NodeSet* within) {
  const model::Domains& domains = state.inventory().domains(key);
  NodeSet out(state.nodes());
  for (auto slot : domains.slots[static_cast<std::size_t>(domain)]) out.set(slot);
  if (within != nullptr) out &= *within;
  return out;
}

bool same_needs(const model::Shape& a, const model::Shape& b) {
  return a.demand == b.demand && a.rules == b.rules && !a.depends_on_pods() && !b.depends_on_pods();
}

bool equal_members(const ClusterState& state, const std::vector<model::PodId>& members) {
  return std::all_of(members.begin(), members.end(), [&](model::PodId id) {
    const model::Shape& first = *state.pod(members.front()).shape;
    const model::Shape& shape = *state.pod(id).shape;
    return shape.demand == first.demand && shape.rules == first.rules;
  });
}

}  // namespace berth::schedule
