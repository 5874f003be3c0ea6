// Who holds which GPU, and what is still to come: the journal, the kubelet's pod-resources and the
// pods of the API joined into one picture of the node.
//
// The kubelet is the truth. The journal speaks only for pods that the kubelet does not list (its
// answer may be older than the allocation). A pure function of its inputs: after a restart the same
// inputs give an equal ledger. O(devices + pods), with a logarithm.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/allocation.h"
#include "model/device.h"
#include "node/allocate/journal.h"
#include "node/allocate/preferred.h"

namespace berth::allocate {

// A pod that is bound to this node, as the API tells of it.
struct NodePod {
  struct Ask {  // of one container
    std::string resource;
    int size = 0;
    friend bool operator==(const Ask&, const Ask&) = default;
  };
  std::string uid, ns, name;
  std::vector<int> gpus;                          // berth.dev/gpus; empty: no hint
  std::vector<Ask> asks;                          // for resources that the node offers
  bool finished = false;                          // phase Succeeded or Failed: it holds nothing
  std::map<std::string, std::string> containers;  // names by the runtime's id
  friend bool operator==(const NodePod&, const NodePod&) = default;
};

struct Ledger {
  std::map<int, std::vector<std::string>> holders;  // by GPU index: pod UIDs, ascending
  std::vector<Hint> open;  // of pods that hold nothing yet, by pod UID, then resource and size
  std::vector<std::string> differing;  // UIDs of pods with GPUs that their hint does not name
  friend bool operator==(const Ledger&, const Ledger&) = default;
};

// The order of the inputs does not matter. Devices that the inventory does not have, and holders
// that the API does not know (yet), are left out.
Ledger join(const model::GpuInventory& inventory, const std::vector<JournalEntry>& journal,
            const std::vector<model::HeldDevices>& held, const std::vector<NodePod>& pods);

// The UUID in a device id: "GPU-...::3" is "GPU-...".
std::string_view device_uuid(std::string_view id);

}  // namespace berth::allocate
