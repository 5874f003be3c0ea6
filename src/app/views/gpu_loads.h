// How busy the GPUs of a cluster are and how full their memory is, as their agents say now.
//
// Asked through the API server, so that it works wherever kubectl does: the agent's pod on each
// node (berth's in the namespace where it is installed, or dcgm-exporter's in a namespace of
// NVIDIA's or the cluster's own: a tenant's pod with such labels is neither asked nor believed), at
// its port "metrics", else port 9400 of the node itself. All at once, and no longer than kLoadsNs
// together: who has not answered by then, or may not be asked, is not known.
#pragma once

#include <cstdint>

#include "app/views/cluster_view.h"
#include "people/view/fleet.h"

namespace berth::app {

inline constexpr std::int64_t kLoadsNs = 1'500'000'000;
inline constexpr std::uint16_t kMetricsPort = 9400;

// Fills in what the GPUs of the fleet do. Nothing for files and snapshots. Blocks.
void ask_loads(const ViewOptions& options, const ClusterView& view, Terminal& terminal,
               people::Fleet& fleet);

// Where each node's metrics are asked, by node. agents: the namespace of berth's own.
std::map<std::string, std::string> load_targets(const ClusterView& view, const people::Fleet& fleet,
                                                const std::string& agents);

// A page of metrics, taken into the GPUs of a node.
void take_loads(std::string_view page, people::FleetNode& node);

}  // namespace berth::app
