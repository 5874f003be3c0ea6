// Which devices the kubelet should take: GetPreferredAllocation.
//
// Whole GPUs: as a placement chooses them (model/device_choice.h), so NVLink, NUMA and
// fragmentation are weighed over every subset. Replicas and MIG: spread over physical GPUs or
// packed onto few. A hint of the controller is followed where it is one of the sets on offer. Pure;
// at most 1 ms for 16 GPUs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/device.h"
#include "model/resource.h"

namespace berth::allocate {

struct Ask {
  std::vector<std::string> available, must_include;  // device ids
  int size = 0;
};

struct Hint {
  std::string pod_uid;
  std::vector<int> gpus;  // berth.dev/gpus
  std::string resource;
  int size = 0;  // devices of this resource that one container of the pod asks for
};

struct Preference {
  std::vector<std::string> ids;  // size of them, must_include first
  std::string followed;          // the pod whose hint was followed; empty: none
};

class Chooser {
 public:
  // packed: shared devices fill one GPU before the next.
  Chooser(const model::GpuInventory& inventory, const model::OfferedResource& resource,
          bool packed);

  // Errors: ids that are not the resource's, fewer on offer than asked for. hints: of the pods that
  // are bound to the node and hold no devices yet; unambiguous when all that fit the ask name the
  // same devices.
  Result<Preference> choose(const Ask& ask, const std::vector<Hint>& hints) const;

 private:
  // The owner of this file fills it in.
};

}  // namespace berth::allocate
