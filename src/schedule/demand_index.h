// For one demand: which nodes have room for it, and their packing scores, kept up to date.
//
// Nodes whose version is unchanged since the last sync keep their score, so a decision pays only
// for the nodes that changed; any copy of the state family may be synced against. Groups of 64
// nodes carry their best score and who has it, so the best allowed node is found in O(nodes / 64).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model/cluster_state.h"
#include "schedule/scorer.h"

namespace berth::schedule {

class DemandIndex {
 public:
  explicit DemandIndex(std::shared_ptr<const model::Demand> demand) : demand_(std::move(demand)) {}

  void sync(const model::ClusterState& state, Scorer& scorer);

  // The allowed node with the highest score, ties to the lowest slot.
  std::optional<std::uint32_t> best(const model::NodeSet& allowed) const;
  const model::NodeSet& feasible() const { return feasible_; }
  std::int32_t score(std::size_t slot) const { return scores_[slot]; }

 private:
  void reset(const model::ClusterState& state);
  void update(std::size_t slot, std::int32_t score);
  void regroup(std::size_t group);

  std::shared_ptr<const model::Demand> demand_;
  std::uint64_t inventory_ = 0, epoch_ = 0;
  std::vector<std::uint64_t> stamps_;    // by page
  std::vector<std::uint64_t> versions_;  // by slot
  std::vector<std::int32_t> scores_;     // by slot; kInfeasible: no room
  std::vector<std::int32_t> best_;       // by group of 64
  std::vector<std::uint64_t> holders_;   // by group: who has the best score
  model::NodeSet feasible_;
};

}  // namespace berth::schedule
