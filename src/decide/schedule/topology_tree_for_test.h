// Short ways to write trees and pod sets in the tests of topology_tree.h.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "decide/schedule/topology_tree.h"

namespace berth::schedule {

inline TopologyPodSet pods(int count, model::TopologyAsk ask, std::int64_t per_pod = 1) {
  return {.count = count, .per_pod = {per_pod}, .ask = std::move(ask)};
}

// "block rack host" and free amounts of one resource, "gpu".
struct At {
  std::string block, rack, host;
  std::int64_t free = 0;
};

inline TopologyTree tree_of(const std::vector<At>& hosts) {
  TopologyTree tree("t", {"block", "rack", model::kHostnameLabel}, {"gpu"});
  for (const At& at : hosts)
    tree.add_host({.name = at.host, .values = {at.block, at.rack, at.host}, .free = {at.free}});
  tree.seal();
  return tree;
}

}  // namespace berth::schedule
