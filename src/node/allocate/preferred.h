// Which devices the kubelet should take: GetPreferredAllocation.
//
// Whole GPUs: as a placement chooses them (model/device_choice.h), so NVLink, NUMA and
// fragmentation are weighed over every subset. Positions that are not known count as groups of
// their own; of more than 16 GPUs on offer the choice is greedy, clique by clique. Replicas and
// MIG: spread over physical GPUs or packed onto few, one after the other. A hint of the controller
// is followed where it is one of the sets on offer. Pure; at most 1 ms for 16 GPUs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/device.h"
#include "model/resource.h"
#include "model/spec.h"

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
  friend bool operator==(const Hint&, const Hint&) = default;
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

  // Errors: ids that are not the resource's, fewer on offer than asked for, more to include than
  // asked for. hints: of the pods that are bound to the node and hold no devices yet; unambiguous
  // when all that fit the ask name the same devices. A hint for several containers holds more
  // devices than one asks for: the best of them are taken.
  Result<Preference> choose(const Ask& ask, const std::vector<Hint>& hints) const;

 private:
  // Places in devices_, ascending.
  using Places = std::vector<std::size_t>;

  Result<Places> places(const std::vector<std::string>& ids) const;
  Places choose_whole(const Places& open, const Places& must, std::size_t size) const;
  Places choose_many(const Places& open, const Places& must, std::size_t size) const;
  Places choose_parts(const Places& open, const Places& must, std::size_t size) const;
  Places best(const Places& open, const Places& must, std::size_t size) const;
  // What the hint leaves of open; empty when it does not fit the ask.
  Places narrowed(const Hint& hint, const Places& open, const Places& must, std::size_t size) const;

  std::string resource_;
  std::vector<model::OfferedDevice> devices_;
  std::map<std::string, std::size_t, std::less<>> by_id_;
  std::map<int, model::GpuSpec> gpus_;  // positions, by index
  bool whole_ = true;                   // no replicas, no MIG
  bool packed_ = false;
};

}  // namespace berth::allocate
