// The six policies of the FGD experiment (Weng et al., ATC 2023), on the compact array model.
//
// Scores are integers 0..100 as in the published simulator; the quantisation and the fixed order of
// ties are part of the method (an exact FGD score does worse), so neither may be "cleaned up".
#pragma once

#include <string>
#include <vector>

#include "openb_cluster.h"

namespace berth::openb {

// "random", "dotprod", "clustering", "packing", "bestfit", "fgd".
const std::vector<std::string>& peer_names();

// The name the published result table gives the peer, e.g. "06-FGD".
std::string published_name(const std::string& peer);

// Throws std::runtime_error for an unknown name.
Fill run_peer(const std::string& name, const Inventory& inventory, const PodList& list,
              const Arrivals& arrivals);

}  // namespace berth::openb
