// Requests to keep a group within one domain of the cluster, as annotations.
//
//   required   berth.dev/topology-required   kueue.x-k8s.io/podset-required-topology
//              kai.scheduler/topology-required-placement
//   preferred  the same with "preferred"
//
// The value is a node label key or one of a few short names. A short name means the first of its
// keys that some node carries, and the first of all when none does:
//   zone           topology.kubernetes.io/zone
//   region         topology.kubernetes.io/region
//   block          topology.kubernetes.io/block, cloud.provider.com/topology-block,
//                  network.topology.nvidia.com/block
//   rack           topology.kubernetes.io/rack, cloud.provider.com/topology-rack
//   host           kubernetes.io/hostname
//   nvlink-domain  nvidia.com/gpu.clique, network.topology.nvidia.com/accelerator
#pragma once

#include <set>
#include <string>

#include "kinds/meta.h"

namespace berth::kinds {

struct TopologyRequest {
  std::string required, preferred;  // as written
  bool empty() const { return required.empty() && preferred.empty(); }
  friend bool operator==(const TopologyRequest&, const TopologyRequest&) = default;
};

// object carries metadata.annotations; two annotations that disagree are an error.
void read_topology(const text::Value& object, const Meta& meta, TopologyRequest& out,
                   text::Decoder& d);
// A value outside of annotations (a field of a PodGroup).
bool is_topology_value(std::string_view text);

// The label key that a value means on nodes with these label keys.
std::string topology_key(std::string_view value,
                         const std::set<std::string, std::less<>>& node_label_keys);

}  // namespace berth::kinds
