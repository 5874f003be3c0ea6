// Who holds which GPU of this node: the kubelet's word (pod-resources) joined with the pods that
// the API has bound here.
//
// A pure function of its last inputs, but for differences(), which counts a pod once however often
// it is seen. So a ledger after a restart equals the one before. O(pods + devices).
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "allocate/preferred.h"
#include "model/allocation.h"
#include "model/resource.h"

namespace berth::allocate {

// A pod that is bound to this node, as the API has it.
struct BoundPod {
  std::string uid, ns, name;
  bool ended = false;  // Succeeded or Failed
  std::string gpus;    // the annotation berth.dev/gpus; may be nonsense
  std::vector<std::map<std::string, int>> containers;  // what each asks for: resource -> count
};

class Ledger {
 public:
  void join(const std::vector<model::OfferedResource>& resources,
            const std::vector<model::HeldDevices>& held, const std::vector<BoundPod>& bound);

  // UIDs of the pods on each GPU, by index, sorted. Pods that the API does not show are left out.
  const std::map<int, std::vector<std::string>>& holders() const { return holders_; }
  // Of pods that are bound here, have not ended and hold no devices yet. By pod UID.
  const std::vector<Hint>& hints() const { return hints_; }
  // Pods whose GPUs are others than their hint named, since this ledger was made.
  std::size_t differences() const { return differ_.size(); }

 private:
  std::map<int, std::vector<std::string>> holders_;
  std::vector<Hint> hints_;
  std::set<std::string>
      differ_;  // pod UIDs; those of pods that are gone are dropped when there are many
};

}  // namespace berth::allocate
