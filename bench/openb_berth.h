// berth's default policy on the compact array model.
#pragma once

#include "openb_cluster.h"

namespace berth::openb {

struct BerthFill {
  Fill fill;
  uint64_t epochs = 0;
  uint64_t scores = 0;  // (node, demand) pairs scored
};

BerthFill run_berth(const Inventory& inventory, const PodList& list, const Arrivals& arrivals);

}  // namespace berth::openb
