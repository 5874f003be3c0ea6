// How many copies of a pod each domain of a topology key takes, kept up to date.
//
// The state's journal names the nodes that changed since the last look, so a gang that waits pays
// for those; any copy of the state family may be looked at. A cache: forgetting changes nothing but
// time. At most kMost entries of 4 bytes a node, least recently used out.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cluster_state.h"

namespace berth::schedule {

class RoomMemo {
 public:
  // By domain, or of all nodes as one where key < 0; by the constraints that do not depend on
  // other pods. allowed: by the shape's rules. Valid until the next call.
  const std::vector<int>& get(const model::ClusterState& state, const model::Shape& shape, int key,
                              const model::NodeSet& allowed);

  static constexpr std::size_t kMost = 32;

 private:
  struct Entry {
    std::uint64_t demand = 0, rules = 0, inventory = 0;
    int key = -1;
    std::uint64_t used = 0;  // when
    model::Journal::Mark seen;
    std::vector<int> fits;  // by slot
    std::vector<int> sums;  // by domain
  };
  Entry& entry_for(const model::ClusterState& state, const model::Shape& shape, int key);

  std::uint64_t now_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> changed_;
};

}  // namespace berth::schedule
