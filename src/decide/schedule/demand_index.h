// For one demand: which nodes have room for it, and their packing scores, kept up to date.
//
// The state's journal names the nodes that changed since the last sync, so a decision pays only for
// those; any copy of the state family may be synced against. Groups of 64 nodes carry their best
// score and who has it, so the best allowed node is found in O(nodes / 64).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "decide/schedule/scorer.h"
#include "model/cluster_state.h"

namespace berth::schedule {

class DemandIndex {
 public:
  explicit DemandIndex(std::shared_ptr<const model::Demand> demand) : demand_(std::move(demand)) {}

  void sync(const model::ClusterState& state, Scorer& scorer);

  // The allowed node with the highest score, ties to the lowest slot.
  std::optional<std::uint32_t> best(const model::NodeSet& allowed) const;
  const model::NodeSet& feasible() const { return feasible_; }

 private:
  void rescore(const model::ClusterState& state, Scorer& scorer, std::size_t slot);
  void reset(const model::ClusterState& state, Scorer& scorer);
  void update(std::size_t slot, Score score);
  void regroup(std::size_t group);

  std::shared_ptr<const model::Demand> demand_;
  std::uint64_t inventory_ = 0, epoch_ = 0;
  model::Journal::Mark seen_;
  std::vector<std::uint32_t> changed_;
  Scorer::Column column_;
  std::vector<Score> scores_;           // by slot; kInfeasible: no room
  std::vector<Score> best_;             // by group of 64
  std::vector<std::uint64_t> holders_;  // by group: who has the best score
  model::NodeSet feasible_;
};

}  // namespace berth::schedule
