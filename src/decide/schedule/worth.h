// What a node is worth to the pods still to come, and what a placement takes from it.
//
// Worth is in milli-GPU: for each typical shape the GPU it could still take on the node (whole
// copies per device, and no more than the free CPU serves twice over), weighted by how often it
// arrives; less the idle GPU that lack of CPU will strand. A placement scores by how little worth
// it destroys beyond the GPU it uses, less the price of the node's class (cf. FGD, ATC 2023, and LP
// shadow prices).
//
// Scores are rounded to 100 milli-GPU on purpose: among nodes that differ less, the fixed node
// order decides, which fills nodes one after the other. An exact score spreads, and does worse.
// Integers only: the same on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "decide/schedule/mix.h"
#include "model/fit.h"

namespace berth::schedule {

// The part of a node's state that worth depends on. Partly used devices are sorted by free milli;
// used up, unusable and partitioned ones are left out. CPU is rounded down to 1/32 of the power of
// two below it, so that nodes in like states are alike; a full node has none.
struct Room {
  std::int32_t cpu_milli = 0;
  std::int16_t whole = 0;
  std::int16_t partials = 0;
  std::array<std::int16_t, model::kMaxGpusPerNode> partial{};
  friend bool operator==(const Room&, const Room&) = default;
};

Room room_of(const model::NodeInfo& info, const model::NodeState& state);
std::uint64_t hash_of(const Room& room);
// Do the devices of the room serve a demand of the core? Not for MIG slots and NUMA alignment,
// which a room does not know.
bool room_serves(const Room& room, const model::NodeInfo& info, const model::Demand& core);
// After a demand of the core has taken its devices as choose_gpus() would.
Room room_after(Room room, const model::NodeInfo& info, const model::Demand& core);
// Milli of one device that demands of the core take there.
int score_milli(const model::NodeInfo& info, const model::Demand& core);

class WorthScale {
 public:
  WorthScale() = default;
  explicit WorthScale(const MixSnapshot& mix);

  std::int32_t worth(const Room& room) const;
  // Of taking asked milli-GPU onto a node of the class whose worth falls from before to after.
  std::int32_t score(std::int32_t before, std::int32_t after, std::size_t node_class,
                     std::int32_t asked) const {
    std::int32_t price = node_class < class_price_.size() ? class_price_[node_class] : 0;
    return rounded(asked - (before - after) - price * asked / model::kMilliPerGpu);
  }

 private:
  static constexpr std::int32_t kStep = 100;

  struct Item {
    std::int32_t gpu_milli = 0;
    std::int32_t num_gpu = 0;
    std::int32_t cpu_milli = 0;
    std::int32_t weight = 0;
    std::uint32_t reciprocal = 0;      // floor(room * reciprocal >> 21) == room / gpu_milli
    std::int64_t gpu_per_cpu_q16 = 0;  // GPU milli that one CPU milli can serve, with headroom
  };

  static std::int32_t rounded(std::int32_t milli) {
    const std::int32_t shifted = milli + kStep / 2;
    return shifted >= 0 ? shifted / kStep : -((kStep - 1 - shifted) / kStep);
  }

  std::vector<Item> items_;  // by gpu_milli, so that the scan ends at the first that fits nowhere
  std::vector<std::int32_t> class_price_;
  std::int32_t cpu_per_gpu_q8_ = 0;
  std::int32_t strand_weight_q8_ = 0;
};

// Nodes in like states are valued once per epoch. Direct-mapped: an entry may be lost, never wrong.
class WorthMemo {
 public:
  void clear() { ++generation_; }
  std::int32_t worth(const WorthScale& scale, const Room& room);

 private:
  struct Slot {
    Room room;
    std::uint32_t generation = 0;
    std::int32_t worth = 0;
  };
  std::vector<Slot> slots_ = std::vector<Slot>(std::size_t{1} << 15);
  std::uint32_t generation_ = 1;
};

}  // namespace berth::schedule
