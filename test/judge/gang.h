// All-or-nothing placement of one workload; a single pod is a gang of one without a spec.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "judge/rules.h"
#include "judge/state.h"

namespace berth::judging {

struct Workload {
  std::string name;  // "ns/name"
  bool is_gang = false;
  const model::GangSpec* gang = nullptr;       // null: a single pod, or a gang without a spec
  std::vector<const model::PodSpec*> members;  // pending and not gated, in the order of the walk
  int gated = 0;                               // pending members beside those
  std::map<std::string, int> running;          // members by subgroup
  int priority = 0;
  std::int64_t created_ns = 0;

  int running_total() const;
  int subgroup_min(const std::string& subgroup) const;
  int needed() const;  // how many of the members must start, at least 1
};

using NodeSet = std::vector<bool>;
struct Domain {
  std::string value;
  NodeSet nodes;
  int capacity = 0;
};

// Walks the members of a workload over a state.
class Walk {
 public:
  // Puts one pod on one of the nodes, or says no and changes nothing.
  using Placer = std::function<bool(State&, const model::PodSpec&, const NodeSet&)>;

  struct Options {
    Constraints ignored = 0;
    bool preempting = false;        // no preferred topologies; domains below the minimum come last
    bool required_topology = true;  // false: as if no topology were required
  };
  Walk(const Workload& workload, const JudgePolicy& policy, Options options);
  Walk(const Workload& workload, const JudgePolicy& policy, Options options, Placer placer);

  // Places what can be placed; true when that is enough. When false the state is to be dropped.
  bool run(State& state) const;

  int placed(const State& state) const;  // members of this walk in the state
  bool is_placed(const State& state, const model::PodSpec& pod) const;
  int most_in(const State& state, const NodeSet& nodes) const;  // members that fit these nodes

  std::vector<Domain> domains(const State& state, const model::PodSpec& pod, const NodeSet& nodes,
                              const std::string& key) const;  // by value

 private:
  struct Unit {
    std::vector<const model::PodSpec*> members;
    std::string required, preferred;
    bool whole = false;  // the gang; else one subgroup
    std::string subgroup;
  };
  Unit gang_unit() const;
  Unit subgroup_unit(const std::string& subgroup, std::vector<const model::PodSpec*> members) const;
  bool place_unit(const Unit& unit, State& state, const NodeSet& nodes) const;
  bool place_preferring(const Unit& unit, State& state, const NodeSet& nodes) const;
  void place_in_few(const Unit& unit, State& state, const NodeSet& nodes) const;
  void place_all(const Unit& unit, State& state, const NodeSet& nodes) const;
  bool belongs(const Unit& unit, const model::PodSpec& pod) const;
  int placed_of(const Unit& unit, const State& state) const;
  bool enough(const Unit& unit, const State& state) const;
  int still_needed(const Unit& unit, const State& state) const;
  std::vector<const model::PodSpec*> remaining(const Unit& unit, const State& state) const;
  std::vector<Domain> in_order(const Unit& unit, const State& state, const NodeSet& nodes,
                               const std::string& key) const;

  const Workload& workload_;
  const JudgePolicy& policy_;
  Options options_;
  Placer placer_;
};

NodeSet every_node(const State& state);

}  // namespace berth::judging
