// Placement of one pod: which nodes can take it, which is best, which GPUs; or why not.
//
// A pure function of the state, the shape and the policy: caches (per rules, per demand, per domain
// count) make it fast and change no answer. docs/placement.md is the definition. One Placer per
// loop. Cost: a shape seen before pays for the nodes that changed since, plus O(nodes / 64); a new
// one is a scan. Memory: O(nodes) per cached demand, bounded by kIndexedNodes.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "decide/schedule/demand_index.h"
#include "decide/schedule/domain_counts.h"
#include "decide/schedule/lowest_running.h"
#include "decide/schedule/policy.h"
#include "decide/schedule/room_memo.h"
#include "decide/schedule/rule_memo.h"
#include "decide/schedule/scorer.h"
#include "model/cluster_state.h"
#include "model/reason.h"

namespace berth::schedule {

class NoMemo;

struct Target {
  std::uint32_t slot = 0;
  model::GpuTake gpus;
};

class Placer {
 public:
  explicit Placer(PlacementPolicy policy = {});
  Placer(Placer&&) noexcept;
  ~Placer();
  const PlacementPolicy& policy() const { return policy_; }

  // The mix that the packing score serves: pods as they arrive, or all that are there at once, in
  // place of what was learned before.
  // Answers depend on the state, the policy and what was learned, on nothing else.
  void observe(const model::ClusterState& state, const model::Shape& shape);
  void learn_present(const model::ClusterState& state);
  // The same where who is present is known: each shape once, with its pods.
  using Present = std::vector<Scorer::Arrivals>;
  void learn_present(const model::ClusterState& state, const Present& present);
  const MixSnapshot& mix() const { return scorer_.mix(); }
  std::uint64_t epoch() const { return scorer_.epoch(); }
  NoMemo& nos() { return *nos_; }
  int lowest_running(const model::ClusterState& state) { return lowest_running_.get(state); }
  std::uint16_t node_class(std::size_t slot) const { return scorer_.node_class(slot); }

  // The best node for one more pod of the shape, inside within where given.
  std::optional<Target> find(const model::ClusterState& state, model::ShapeRef shape,
                             const model::NodeSet* within = nullptr);

  // Every constraint that rejects each node, by slot.
  std::vector<Blockers> blockers(const model::ClusterState& state, model::ShapeRef shape);

  // The same for one node.
  Blockers blockers_on(const model::ClusterState& state, model::ShapeRef shape, std::uint32_t slot);

  const RuleResult& rules(const model::ClusterState& state, const model::Shape& shape) {
    return rules_.get(state.inventory(), shape.rules);
  }
  // See RoomMemo::get.
  const std::vector<int>& rooms(const model::ClusterState& state, const model::Shape& shape,
                                int key) {
    return rooms_.get(state, shape, key, rules(state, shape).allowed);
  }

  // Demands with an index: so many nodes in all, about 3 bytes each; at least 64 demands.
  static constexpr std::size_t kIndexedNodes = 20'000'000;

 private:
  struct PodRules {  // nodes that pods already there rule out; empty: none
    model::NodeSet affinity, anti_affinity, spread;
  };

  PodRules pod_rules(const model::ClusterState& state, const model::Shape& shape);
  static Blockers blockers_now(const model::ClusterState& state, const model::Shape& shape,
                               const PodRules& pods, std::size_t slot);
  void rule_affinity(const model::ClusterState& state, const model::Shape& shape, PodRules& out);
  void rule_spread(const model::ClusterState& state, const model::Shape& shape, PodRules& out);
  model::NodeSet eligible(const model::ClusterState& state, const model::Shape& shape,
                          const model::SpreadTerm& term);
  const DomainCounts& counts(const model::ClusterState& state, const model::TopologyTerm& term) {
    return counts_.get(state, *term.counter, term.key, nullptr, 0);
  }
  void keep_apart(const model::ClusterState& state, const model::Shape& shape,
                  model::NodeSet& nodes);
  void keep_best_levels(const model::ClusterState& state, const model::Shape& shape,
                        model::NodeSet& nodes);
  bool has_levels(const model::ClusterState& state, const model::Shape& shape);
  DemandIndex* index_for(const model::ClusterState& state,
                         const std::shared_ptr<const model::Demand>& demand);
  static std::optional<std::uint32_t> best_by_index(const model::ClusterState& state,
                                                    const DemandIndex& index,
                                                    const model::Demand& demand,
                                                    const model::NodeSet& allowed);
  std::optional<std::uint32_t> best_by_scan(const model::ClusterState& state,
                                            const model::Shape& shape, const model::NodeSet& nodes);

  PlacementPolicy policy_;
  Scorer scorer_;
  RuleMemo rules_;
  RoomMemo rooms_;
  DomainCountsMemo counts_;
  LowestRunning lowest_running_;
  std::unique_ptr<NoMemo> nos_;
  struct Indexed {
    std::uint64_t serial = 0;
    int uses = 0;
    std::unique_ptr<DemandIndex> index;
  };
  std::list<Indexed> indexes_;  // most recent first
  boost::unordered_flat_map<std::uint64_t, std::list<Indexed>::iterator> index_by_serial_;
};

// Host ports of the shape that pods on the node already hold.
bool ports_taken(const model::ClusterState& state, const model::Shape& shape, std::size_t slot);
// Constraints cpu .. NUMA policy.
Blockers capacity_blockers(const model::NodeInfo& info, const model::NodeState& state,
                           const model::Demand& demand);

}  // namespace berth::schedule
