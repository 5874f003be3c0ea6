// Which constraints keep a pod off which nodes, and which of them are to blame.
//
// Nodes that could take the pod one day (their labels, taints, GPUs and size would do) are those
// that count: what keeps it off those is the cause. Where there is none, the cause is the rule that
// keeps it off the nodes that are large enough. Nodes that could never take it are never blamed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "decide/schedule/placer.h"
#include "model/cluster_state.h"
#include "model/reason.h"

namespace berth::people {

struct NodeView {
  std::uint32_t slot = 0;
  schedule::Blockers blockers = 0;  // all constraints that reject it now
  schedule::Blockers lasting = 0;   // of those that would with no pod on it and everything healed
  bool small = false;               // too small even empty
  int free_milli = 0;               // of usable GPUs; whole ones only for a pod that asks for such
  int gpus = 0;
};

struct NodePicture {
  std::vector<NodeView> nodes;  // by slot
  int eligible = 0;             // nothing but room, health or other pods is in the way
  int with_room = 0;
  std::int64_t free_milli = 0;    // on eligible nodes
  std::int64_t room_milli = 0;    // on those of them that are large enough
  int room_largest = 0;           // of it on one node
  std::int64_t once_largest = 0;  // the most of that on one node
  std::int64_t once_milli =
      0;  // on all that are blamed, also where something else is in the way now
  int largest_milli = 0;
  bool never = false;  // no node could take it one day
  // The cause, and what would still hold the pod on the same nodes when it is gone.
  model::Constraint binding = model::Constraint::kCount;
  std::vector<model::Constraint> also;
  int blamed = 0;       // nodes that count
  int blamed_only = 0;  // of those: nothing but the cause is in the way

  bool counts(const NodeView& view) const;  // a node that could take the pod one day
};

NodePicture picture_of(schedule::Placer& placer, const model::ClusterState& state,
                       model::ShapeRef shape);

// The reason for a binding constraint: Fragmented where enough is free in total.
model::Reason reason_of(const NodePicture& picture, model::Constraint binding,
                        const model::Demand& demand);

}  // namespace berth::people
