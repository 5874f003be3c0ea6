// The walk over a workload's members: all or nothing, topology by topology (docs/placement.md,
// Gangs).
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "decide/schedule/domains.h"
#include "decide/schedule/placement.h"

namespace berth::schedule {

class Walk {
 public:
  // Binds one pod on one of the nodes (null: any), or says no and changes nothing.
  using PlaceOne = std::function<bool(model::PodId, const model::NodeSet*)>;

  struct Options {
    bool preempting = false;        // no preferred topologies
    bool required_topology = true;  // false: as if no topology were required
  };
  Walk(Placer& placer, model::ClusterState& state, const Workload& workload, Reservation& out,
       Options options);
  Walk(Placer& placer, model::ClusterState& state, const Workload& workload, Reservation& out,
       Options options, PlaceOne place_one);

  // Places what can be placed; true when that is enough. When false, roll the reservation back.
  bool run();
  // How many members fit these nodes, required topology aside; leaves them bound.
  int most_in(const model::NodeSet* nodes);

 private:
  struct Unit {
    std::vector<model::PodId> members;
    int required = -1, preferred = -1;              // topology keys
    const model::SubgroupSpec* subgroup = nullptr;  // null: the whole workload
    std::string name;                               // of the subgroup
    bool whole = false;
  };
  Unit whole_unit() const;
  Unit subgroup_unit(const std::string& name, std::vector<model::PodId> members) const;
  bool place_unit(const Unit& unit, const model::NodeSet* nodes);
  bool place_preferring(const Unit& unit, const model::NodeSet* nodes);
  void place_in_few(const Unit& unit, const model::NodeSet* nodes);
  void place_all(const Unit& unit, const model::NodeSet* nodes);
  void place_each(const std::vector<model::PodId>& members, const model::NodeSet* nodes);
  std::vector<model::PodId> remaining(const Unit& unit) const;
  std::vector<DomainRoom> in_order(const Unit& unit, const model::NodeSet* nodes, int key);
  int have(const Unit& unit) const;  // running members and those placed
  int placed_of(const Unit& unit) const;
  int needed(const Unit& unit) const;
  bool enough(const Unit& unit) const;
  int key_of(const std::string& label) const;

  Placer& placer_;
  model::ClusterState& state_;
  const Workload& workload_;
  const model::GangSpec* gang_;
  Reservation& out_;
  Options options_;
  PlaceOne place_one_;
};

}  // namespace berth::schedule
