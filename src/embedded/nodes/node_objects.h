// The API objects of a simulated node, as JSON: Node, its status, its Lease, its GpuNode.
// Inside this folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "embedded/nodes/machine.h"

namespace berth::sim {

// What of a node's status changes.
struct NodeView {
  const Machine* machine = nullptr;
  int number = 0;  // in the fleet: its addresses
  bool ready = true;
  std::int64_t ready_since = 0, now = 0;  // wall time
  int boots = 0;
};

std::map<std::string, std::string> node_labels(const Pool& pool, int number_in_pool);

std::string node_ip(int number);
std::string pod_ip(int number, int slot);  // slot 0..252 of the node's range

std::string node_object(const Pool& pool, int number_in_pool, const NodeView& view);
std::string node_status_patch(const NodeView& view);  // strategic merge, of nodes/status
std::string node_labels_patch(const std::map<std::string, std::string>& labels);

std::string lease_object(const std::string& node, const std::string& node_uid, std::int64_t now);
std::string lease_patch(const std::string& node, std::int64_t now);

std::string gpu_node_object(const std::string& node, const std::string& node_uid);
// holders[i]: UIDs of the pods on device i.
std::string gpu_node_status_patch(const Machine& machine,
                                  const std::vector<std::vector<std::string>>& holders);

}  // namespace berth::sim
