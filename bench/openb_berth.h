// berth's own engine on the trace: SnapshotBuilder, Placer and the default policy, as plan uses
// them.
#pragma once

#include "openb_cluster.h"

namespace berth::openb {

Fill run_berth(const Inventory& inventory, const PodList& list, const Arrivals& arrivals);

}  // namespace berth::openb
