// Which workloads keep their replicas apart, and over what.
#pragma once

#include "model/policy.h"
#include "model/shape.h"

namespace berth::schedule {

using model::PlacementPolicy;

// nullopt: they pack.
std::optional<model::ShapeBook::Apart> apart(const PlacementPolicy& policy,
                                             const model::Shape& shape);
// What a SnapshotBuilder has to know of a policy, to count the pods of those workloads.
inline model::ShapeBook::KeepsApart keeps_apart(const PlacementPolicy& policy) {
  return [policy](const model::Shape& shape) { return apart(policy, shape); };
}

}  // namespace berth::schedule
