// The packing score: level 5 of the node choice (docs/placement.md, "Packing score").
//
// An integer per (node, demand), higher is better. It depends on the node's state, the demand and
// the mix of demands learned so far; the mix changes only in observe() and settle(), and then
// epoch() does too. One per loop: it keeps memos.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "model/cluster_state.h"
#include "schedule/policy.h"
#include "schedule/rule_memo.h"
#include "schedule/worth.h"

namespace berth::schedule {

inline constexpr std::int32_t kInfeasible = INT32_MIN;

class Scorer {
 public:
  explicit Scorer(Policy::Packing packing) : packing_(packing) {}

  // Must be called before score() when the state may have another inventory.
  void follow(const model::Inventory& inventory);

  // A pod arrived; rules says where its rules let it go. O(1) but at epochs.
  void observe(const model::Inventory& inventory, const model::Shape& shape,
               const RuleResult& rules);
  void settle();  // all arrivals are known: derive the mix now

  // Of a demand of the core that fits the node.
  std::int32_t score(std::size_t slot, const model::NodeInfo& info, const model::NodeState& state,
                     const model::Demand& core);
  std::uint64_t epoch() const { return epoch_; }
  const MixSnapshot& mix() const { return mix_.snapshot(); }
  std::uint16_t node_class(std::size_t slot) const { return class_of_[slot]; }

 private:
  static constexpr std::size_t kMostClasses = 64;

  struct alignas(64) Valued {  // a node's worth, for the version it was computed for
    std::uint64_t version = ~std::uint64_t{0};
    Room room;
    std::int32_t worth = 0;
  };

  std::uint16_t class_id(const model::NodeInfo& info);
  void renew();

  Policy::Packing packing_;
  WorkloadMix mix_;
  WorthScale scale_ = WorthScale(mix_.snapshot());
  WorthMemo memo_;
  std::uint64_t epoch_ = 1;
  std::uint64_t inventory_ = 0;
  boost::unordered_flat_map<std::string, std::uint16_t> class_ids_;  // never renumbered
  std::vector<std::uint16_t> class_of_;                              // by slot
  std::vector<ClassSupply> supply_;
  std::vector<Valued> valued_;                                       // by slot
  boost::unordered_flat_map<std::uint64_t, std::uint64_t> allowed_;  // by rules: classes
};

}  // namespace berth::schedule
