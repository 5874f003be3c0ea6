// The lowest priority that runs: below it nobody can be evicted.
//
// The lowest on each node is kept up to date from the state's journal, so that asking costs the
// nodes that changed and one pass over nodes and gangs; any copy of the state family may be asked
// about. A cache: forgetting changes nothing but time. One per Placer.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cluster_state.h"

namespace berth::schedule {

class LowestRunning {
 public:
  int get(const model::ClusterState& state);  // INT32_MAX: nothing runs

 private:
  void sync(const model::ClusterState& state);
  void look(const model::ClusterState& state, std::size_t slot);

  std::uint64_t inventory_ = 0;
  bool known_ = false;
  model::Journal::Mark seen_;
  std::vector<std::uint32_t> changed_;
  std::vector<std::int32_t> lowest_;  // by slot, of pods of no gang
};

}  // namespace berth::schedule
