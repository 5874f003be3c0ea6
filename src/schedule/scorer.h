// The packing score: level 5 of the node choice (docs/placement.md, "Packing score").
//
// An integer per (node, demand), higher is better, of the node's state before the placement alone.
// epoch() changes when the same arguments may give another score; caches key on it.
#pragma once

#include <cstdint>

#include "model/fit.h"
#include "schedule/policy.h"

namespace berth::schedule {

inline constexpr std::int32_t kInfeasible = INT32_MIN;

class Scorer {
 public:
  explicit Scorer(Policy::Packing packing) : packing_(packing) {}

  // The demand fits the node.
  std::int32_t score(const model::NodeInfo& info, const model::NodeState& state,
                     const model::Demand& demand) const {
    int after = model::free_milli(state, info.devices) - taken_milli(info, demand);
    return packing_ == Policy::Packing::kLeastAllocated ? after : -after;
  }
  std::uint64_t epoch() const { return 1; }

  static int taken_milli(const model::NodeInfo& info, const model::Demand& demand) {
    return demand.count * model::device_milli(info, demand);
  }

 private:
  Policy::Packing packing_;
};

}  // namespace berth::schedule
