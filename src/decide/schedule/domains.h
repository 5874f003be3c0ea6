// Room for copies of a pod in the domains of a topology key: counting, ordering, pinning.
#pragma once

#include <cstdint>
#include <vector>

#include "decide/schedule/placer.h"
#include "model/cluster_state.h"

namespace berth::schedule {

struct DomainRoom {
  std::int32_t domain = 0;  // number of the domain in the inventory
  int fits = 0;  // copies of the pod, by the constraints that do not depend on other pods
};

// Per domain of the key (all nodes as one domain 0 when key < 0), inside within where given.
std::vector<DomainRoom> domain_rooms(Placer& placer, const model::ClusterState& state,
                                     model::ShapeRef shape, int key, const model::NodeSet* within);

// Those that reach all first, smallest first; then those that reach min, largest first; then the
// rest, largest first. Ties by domain number, which is the order of the values.
void order_rooms(std::vector<DomainRoom>& rooms, int all, int min);

model::NodeSet domain_nodes(const model::ClusterState& state, int key, std::int32_t domain,
                            const model::NodeSet* within);

// Where one of them does not fit, neither does the other: equal demands and rules, and neither
// looks at other pods. Labels may differ, as the index labels of a job's pods do.
bool same_needs(const model::Shape& a, const model::Shape& b);

// Equal demands and rules: a domain whose count is below the minimum cannot take them.
bool equal_members(const model::ClusterState& state, const std::vector<model::PodId>& members);

}  // namespace berth::schedule
