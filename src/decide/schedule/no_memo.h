// Proven "no"s, so that a workload that waits is not refused anew in every cycle.
//
// An answer holds for workloads with the same needs (shapes, priority, minimum) while the cluster
// is as it was: within a cycle until something is placed, across cycles until a node, a running
// pod, a gang or a budget changes. A cache: forgetting changes nothing but time. Bounded.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string>

#include "decide/schedule/placement.h"
#include "model/cluster_state.h"
#include "model/decision.h"

namespace berth::schedule {

class NoMemo {
 public:
  // A cycle begins. epoch: of the packing score; variant: what else answers depend on.
  void begin(const model::ClusterSnapshot& snapshot, std::uint64_t epoch, int variant);
  void placed();  // the state changed: what is known from here on holds for this cycle only

  const model::Outcome* find(const model::ClusterState& state, const Workload& workload);
  void keep(const model::ClusterState& state, const Workload& workload,
            const model::Outcome& outcome);

 private:
  static constexpr std::size_t kMost = 65'536;
  std::string key_of(const model::ClusterState& state, const Workload& workload) const;

  model::ClusterSnapshot snapshot_;
  std::uint64_t epoch_ = 0;
  int variant_ = 0;
  std::uint64_t changes_ = 0;  // placements of this cycle
  struct Known {
    std::uint64_t changes = 0;
    model::Outcome no;
  };
  boost::unordered_flat_map<std::string, Known> known_;
};

}  // namespace berth::schedule
