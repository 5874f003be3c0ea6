// berth.dev/v1alpha1 GpuNode: what the agent of a node knows of its GPUs.
//
// Cluster-scoped, named like the Node and owned by it. status is written by the agent alone; spec
// holds the wishes of operators. The schema is deploy/crds/gpunodes.yaml; a test holds the two
// together. Positions (NUMA node, switch, clique) are small numbers local to the node.
#pragma once

#include <string>
#include <vector>

#include "kinds/meta.h"
#include "text/json_writer.h"

namespace berth::kinds {

struct GpuNodeGpu {
  model::GpuSpec gpu;                // reserved comes from GpuNode::reserved_gpus
  int shares = 1;                    // pods that may share it (time-slicing, MPS)
  std::vector<std::string> holders;  // UIDs of the pods that hold it
  friend bool operator==(const GpuNodeGpu&, const GpuNodeGpu&) = default;
};

struct GpuNode {
  std::string name, uid;
  std::vector<int> reserved_gpus;  // spec: indices kept from new pods
  std::vector<GpuNodeGpu> gpus;    // status, by index
  std::vector<model::NicSpec> nics;
  std::string driver_version, cuda_version;
  model::NumaPolicy numa_policy = model::NumaPolicy::kNone;
  model::NumaScope numa_scope = model::NumaScope::kContainer;
  friend bool operator==(const GpuNode&, const GpuNode&) = default;
};

void decode(const text::Value& v, GpuNode& out, text::Decoder& d);

// The object as it is sent to the API server. decode() of it gives the same GpuNode.
void encode(const GpuNode& node, text::JsonWriter& out);
// Its status alone, as the status subresource is patched: {"status": ...}.
std::string status_patch(const GpuNode& node);
// The object that is there before there is a status, owned by its Node.
std::string bare_gpu_node(const std::string& node, const std::string& node_uid);

}  // namespace berth::kinds
