// berth's default placement policy: which node (and GPU) wastes least of what is still to come.
//
// It knows the inventory, the node being scored, the demand being placed and the mix of demands
// that have arrived so far; never the future. Three ideas, one integer score in units of 100
// milli-GPU:
//
//  1. Usable GPU. The worth of a node is the GPU that pods of the typical mix could still take
//     there, each shape limited by whole copies per device and by the node's free CPU. A placement
//     costs what it takes from that worth beyond the GPU it uses itself (cf. FGD, ATC 2023).
//  2. CPU balance. Idle GPU next to little CPU will strand. While the mix leaves CPU to spare, a
//     smooth term steers CPU users to nodes rich in CPU; when CPU itself is the bottleneck the term
//     fades out, since spreading a scarce resource thinly would strand more, not less.
//  3. Class prices. The pressure on a node class is the GPU demand that could go there, each shape
//     spread over all the supply it may use. Scarce models and sizes get dear, so demands that can
//     go elsewhere do, before the scarcity is felt.
//
// The score is rounded to 100 milli-GPU on purpose: among nodes that differ less, the caller's
// fixed node order decides, which fills nodes one after the other. An exact score spreads and does
// worse.
//
// Everything here is deterministic. Per-node arithmetic is integer; doubles appear only at epochs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace berth::placement {

inline constexpr int32_t kWholeGpuMilli = 1000;
inline constexpr size_t kMostTypical = 32;
inline constexpr int32_t kWeightOne = 4096;

struct MixShape {
  int32_t cpu_milli = 0;
  int32_t gpu_milli = 0;  // per device, kWholeGpuMilli = whole
  int32_t num_gpu = 0;
  uint64_t model_mask = ~uint64_t{0};  // GPU models the demand accepts
  int32_t weight = 0;                  // of kWeightOne; set in typical shapes only
};

// Nodes alike in model, GPU count and CPU. class_id of a NodeView is an index into the supply.
struct ClassSupply {
  uint8_t model = 0;
  int16_t gpus = 0;
  int32_t cpu_milli = 0;
  int32_t nodes = 0;
};

struct NodeView {
  int32_t cpu_free_milli = 0;
  std::span<const int16_t> gpu_free_milli;
  uint16_t class_id = 0;
};

// What the scorer needs of a mix: a value, safe to share between threads.
struct MixSnapshot {
  uint64_t epoch = 0;
  std::vector<MixShape> typical;     // GPU shapes, any model, heaviest first
  std::vector<int32_t> class_price;  // milli-GPU charged per GPU, by class
  int32_t cpu_per_gpu_q8 = 0;        // CPU milli per GPU milli of the GPU demands, times 256
  int32_t strand_weight_q8 = 0;      // 0 (CPU is the bottleneck) to 128
};

// Learns the mix from arrivals. One writer. Memory is bounded: at most kMostShapes distinct shapes
// are counted; when the table is full or old all counts are halved, which forgets rare and past
// shapes first. The mix changes only in refresh(), so scores may be cached per epoch.
class WorkloadMix {
 public:
  static constexpr size_t kMostShapes = 1024;
  static constexpr uint64_t kMemoryArrivals = 65'536;
  static constexpr uint64_t kFirstRefresh = 32;

  // Epoch 0 holds an uninformed mix of common GPU sizes until kFirstRefresh arrivals are known.
  explicit WorkloadMix(std::vector<ClassSupply> supply);

  void observe(const MixShape& arrived);

  // Starts a new epoch when a fifth of the arrivals remembered are new, i.e. they grew by a
  // quarter. O(1) when not due; else O(shapes * classes).
  bool refresh();

  // For nodes that came or went: the prices follow at once, as a new epoch.
  void set_supply(std::vector<ClassSupply> supply);

  const MixSnapshot& snapshot() const { return snapshot_; }
  std::span<const MixShape> typical() const { return snapshot_.typical; }
  uint64_t epoch() const { return snapshot_.epoch; }

 private:
  struct Counted {
    MixShape shape;
    uint64_t count = 0;
  };

  void rebuild();
  void halve_counts();
  std::vector<Counted> ordered_counts() const;
  void pick_typical(const std::vector<Counted>& counts);
  void price_classes(const std::vector<Counted>& counts);
  void weigh_cpu(const std::vector<Counted>& counts);
  void assume_common_sizes();

  struct KeyHash {
    size_t operator()(const std::array<uint64_t, 3>& key) const;
  };

  std::vector<ClassSupply> supply_;
  std::unordered_map<std::array<uint64_t, 3>, uint64_t, KeyHash> counts_;
  uint64_t remembered_ = 0;
  uint64_t since_refresh_ = 0;
  MixSnapshot snapshot_;
};

// Scores placements under one snapshot. Immutable after construction, so any thread may use it.
class PlacementScorer {
 public:
  explicit PlacementScorer(const MixSnapshot& snapshot);

  // Milli-GPU of the node that the mix could still use, less what lack of CPU will strand. Depends
  // on nothing but the two arguments: memoise by (CPU free, GPU free sorted).
  int32_t worth(int32_t cpu_free_milli, std::span<const int16_t> gpu_free_milli) const;

  // The score of taking `demand` onto a node whose worth was `before` and would be `after`.
  int32_t score(int32_t before, int32_t after, uint16_t class_id, const MixShape& demand) const {
    const int32_t asked = demand.gpu_milli * demand.num_gpu;
    const int32_t price = asked == 0 ? 0 : price_of(class_id) * asked / kWholeGpuMilli;
    return rounded(asked - (before - after) - price);
  }

  // The same from a node view, for callers without a memo; the demand must fit. `gpu` is the device
  // of a fractional demand (see tightest_gpu) and ignored for others.
  int32_t score(const NodeView& before, const MixShape& demand, int gpu) const;

  // The device with the least room that still fits: whole devices stay whole. -1: none fits.
  static int tightest_gpu(std::span<const int16_t> gpu_free_milli, int32_t gpu_milli);

 private:
  static constexpr int32_t kStep = 100;

  struct Item {
    int32_t gpu_milli = 0;
    int32_t num_gpu = 0;
    int32_t cpu_milli = 0;
    int32_t weight = 0;
    uint32_t reciprocal = 0;      // floor(room * reciprocal >> 21) == room / gpu_milli
    int64_t gpu_per_cpu_q16 = 0;  // GPU milli that one CPU milli can serve, with headroom
  };

  static int32_t rounded(int32_t milli) {
    const int32_t shifted = milli + kStep / 2;
    return shifted >= 0 ? shifted / kStep : -((kStep - 1 - shifted) / kStep);
  }
  int32_t price_of(uint16_t class_id) const {
    return class_id < class_price_.size() ? class_price_[class_id] : 0;
  }

  std::vector<Item> items_;  // by gpu_milli, so that the scan ends at the first that fits nowhere
  std::vector<int32_t> class_price_;
  int32_t cpu_per_gpu_q8_ = 0;
  int32_t strand_weight_q8_ = 0;
};

// A direct-mapped memo of worth(): nodes in like states are valued once per epoch. One owner
// thread.
class WorthMemo {
 public:
  static constexpr size_t kMostGpus = 8;

  explicit WorthMemo(size_t slots_log2 = 14) : slots_(size_t{1} << slots_log2) {}

  // Forgets everything; call when the scorer's epoch changes.
  void clear() { ++generation_; }

  int32_t worth(const PlacementScorer& scorer, int32_t cpu_free_milli,
                std::span<const int16_t> gpu_free_milli);

 private:
  struct Slot {
    std::array<int16_t, kMostGpus> gpu_free{};
    int32_t cpu_free = 0;
    uint32_t generation = 0;
    int32_t worth = 0;
  };
  std::vector<Slot> slots_;
  uint32_t generation_ = 1;
};

}  // namespace berth::placement
