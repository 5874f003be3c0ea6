// v1 Node, and what is known of its GPUs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kinds/gpu_node.h"

namespace berth::kinds {

struct NodeObject {
  Meta meta;
  model::NodeSpec spec;  // GPUs not filled in; allocatable as the node reports it
};

void decode(const text::Value& v, NodeObject& out, text::Decoder& d);

// Fills GPUs, shares, NICs and NUMA policy, and takes nvidia.com/gpu(.shared) out of allocatable.
//
// From the GpuNode of the same name where there is one; where it and allocatable disagree, a
// warning says so and the GpuNode holds. Else from labels, allocatable and the product table
// (gpus_assumed):
// - devices: the label gpu.count, else what allocatable implies. Those that allocatable does not
//   cover are the highest indices, unhealthy ("not advertised by the node"). Of a shared GPU all
//   shares must be there.
// - gpu.replicas with a sharing strategy, or gpu.shared in allocatable: shares per GPU.
// - MIG strategy single (product "...-MIG-1g.10gb"): the slices are shares of as many GPUs as they
//   need, with the memory of a slice.
// - mig-* in allocatable: as many devices as the slots need carry them, spread evenly; they are the
//   highest indices.
// A label that is not a number is an error and says nothing. Of more than 16 GPUs none is usable,
// which is one too.
struct GpuFacts {
  std::vector<std::string> warnings;
  std::vector<std::string> errors;
};
GpuFacts fill_gpus(const GpuNode* agent, model::NodeSpec& node);

}  // namespace berth::kinds
