// The packing score: level 5 of the node choice (docs/placement.md, "Packing score").
//
// An integer per (node, demand), higher is better. It depends on the node's state, the demand and
// the mix of demands learned so far; the mix changes only in observe() and settle(), and then
// epoch() does too. A demand is scored once per standing, not per node, and keeps its scores in a
// Column. One per loop: it keeps memos.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "decide/schedule/policy.h"
#include "decide/schedule/rule_memo.h"
#include "decide/schedule/standings.h"
#include "decide/schedule/worth.h"
#include "model/cluster_state.h"

namespace berth::schedule {

// Scores are small: hundreds of milli-GPU or milli-GPU of a node of at most 16.
using Score = std::int16_t;
inline constexpr Score kInfeasible = INT16_MIN;

class Scorer {
 public:
  explicit Scorer(PlacementPolicy::Packing packing) : packing_(packing) {}

  // The scores of one core, by standing.
  struct Column {
    std::uint64_t round = 0, epoch = 0;
    std::vector<Score> scores;
  };

  // Must be called before score() when the state may have changed or be another.
  void follow(const model::ClusterState& state);

  // A pod arrived; rules says where its rules let it go. O(1) but at epochs.
  void observe(const model::Inventory& inventory, const model::Shape& shape,
               const RuleResult& rules);
  void settle();  // all arrivals are known: derive the mix now
  void forget() { mix_.forget(); }

  // In place of what was learned: these arrivals, all known at once, each shape with how many and
  // where its rules let it go. The epoch stays where the mix that they make is the one there is.
  struct Arrivals {
    const model::Shape* shape = nullptr;
    std::uint64_t times = 0;
  };
  void relearn(const model::Inventory& inventory, const std::vector<Arrivals>& arrivals,
               const std::function<const RuleResult&(const model::Shape&)>& rules);

  // Of a demand of the core on the node; kInfeasible where none of the core fits.
  Score score(const model::ClusterState& state, std::size_t slot, const model::Demand& core,
              Column& column) {
    if (packing_ == PlacementPolicy::Packing::kFragmentation && !by_slots(core)) {
      const Standings::Node& node = standings_.node(slot);
      if (core.cpu > node.cpu) return kInfeasible;
      if (column.round == standings_.round() && column.epoch == epoch_ &&
          node.standing < column.scores.size() && node.beyond == 0) {
        Score known = column.scores[node.standing];
        if (known != kUnknown) return known;
      }
    }
    return score_anew(state, slot, core, column);
  }
  std::uint64_t epoch() const { return epoch_; }
  const MixSnapshot& mix() const { return mix_.snapshot(); }
  std::uint16_t node_class(std::size_t slot) const { return class_of_[slot]; }

 private:
  static constexpr std::size_t kMostClasses = 64;
  static constexpr Score kUnknown = kInfeasible + 1;

  static bool by_slots(const model::Demand& core) {
    return core.kind == model::GpuDemandSpec::Kind::kMig;
  }

  std::uint16_t class_id(const model::NodeInfo& info);
  MixShape mix_shape(const model::Shape& shape, const RuleResult& rules);
  Score score_anew(const model::ClusterState& state, std::size_t slot, const model::Demand& core,
                   Column& column);
  Score evaluate(const Room& room, const model::NodeInfo& info, std::uint16_t node_class,
                 const model::Demand& core);
  void take_stock(const model::Inventory& inventory);
  void renew();

  PlacementPolicy::Packing packing_;
  WorkloadMix mix_;
  WorthScale scale_ = WorthScale(mix_.snapshot());
  WorthMemo memo_;
  std::uint64_t epoch_ = 1;
  std::uint64_t inventory_ = 0;
  boost::unordered_flat_map<std::string, std::uint16_t> class_ids_;  // never renumbered
  std::vector<std::uint16_t> class_of_;                              // by slot
  std::vector<ClassSupply> supply_;
  Standings standings_;
  boost::unordered_flat_map<std::uint64_t, std::uint64_t> allowed_;  // by rules: classes
};

}  // namespace berth::schedule
