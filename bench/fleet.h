// Made-up fleets for benchmarks: the same for the same numbers on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.h"
#include "model/snapshot_builder.h"
#include "model/spec.h"

namespace berth::bench {

struct FleetOptions {
  int nodes = 5000;
  int gpus = 8;
  int labels = 45;  // on each node, as real nodes have them
  int zones = 3;
  int nodes_per_rack = 16;
};

// Nodes of two GPU models, a few taints, racks and zones; cpu, memory and NVLink as such machines
// have.
model::NodeSpec fleet_node(const FleetOptions& options, int number);

// 64 shapes: 16 demands (whole GPUs, fractions, CPU only) x 4 sets of rules (none, node selector,
// required affinity with a toleration, spread over zones).
inline constexpr int kShapes = 64;
model::PodSpec shaped_pod(int shape, std::uint64_t serial);

// A pod like no other: its own requests and labels, rules as above.
model::PodSpec unique_pod(Random& random, std::uint64_t serial);

// Resident set of this process in MB.
double rss_mb();

}  // namespace berth::bench
