// The mix of demands that arrive, learned, and what it makes scarce.
//
// The packing score asks what a placement takes from the pods still to come. The best guess of
// those is the pods that came: WorkloadMix counts their demands and at epochs derives the typical
// shapes, a price per class of nodes (scarce models and sizes get dear, so that demands that can go
// elsewhere do), and how short of CPU the cluster will be. It never sees the future. Everything is
// deterministic; doubles appear only at epochs, and what leaves is integers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace berth::schedule {

inline constexpr std::size_t kMostTypical = 32;
inline constexpr std::int32_t kWeightOne = 4096;

struct MixShape {
  std::int32_t cpu_milli = 0;
  std::int32_t gpu_milli = 0;  // per device, 1000 = whole
  std::int32_t num_gpu = 0;
  std::uint64_t classes = ~std::uint64_t{0};  // bit per node class that its rules allow
  std::int32_t weight = 0;                    // of kWeightOne; set in typical shapes only
  friend bool operator==(const MixShape&, const MixShape&) = default;
};

// Nodes alike in GPU model, GPU count and CPU.
struct ClassSupply {
  std::int16_t gpus = 0;
  std::int32_t cpu_milli = 0;
  std::int32_t nodes = 0;
};

// What the score needs of a mix: a value, safe to share between threads.
struct MixSnapshot {
  std::vector<MixShape> typical;          // GPU shapes, any class, heaviest first
  std::vector<std::int32_t> class_price;  // milli-GPU charged per GPU, by class
  std::int32_t cpu_per_gpu_q8 = 0;        // CPU milli per GPU milli of the GPU demands, times 256
  std::int32_t strand_weight_q8 = 0;      // 0 (CPU is the bottleneck) to 128
  friend bool operator==(const MixSnapshot&, const MixSnapshot&) = default;
};

// Learns the mix from arrivals. One writer. Memory is bounded: at most kMostShapes distinct shapes
// are counted; when the table is full or old all counts are halved, which forgets rare and past
// shapes first. The mix changes only in refresh(), so scores may be cached per epoch.
class WorkloadMix {
 public:
  static constexpr std::size_t kMostShapes = 1024;
  static constexpr std::uint64_t kMemoryArrivals = 65'536;
  static constexpr std::uint64_t kFirstRefresh = 32;
  static constexpr std::uint64_t kSettled = 16'384;

  // Until kFirstRefresh arrivals are known, an uninformed mix of common GPU sizes.
  WorkloadMix() { assume_common_sizes(); }

  void observe(const MixShape& arrived);

  // So many of a shape at once: the same as one by one where nothing is forgotten on the way, that
  // is with at most kMemoryArrivals arrivals and kMostShapes shapes in all.
  void observe(const MixShape& arrived, std::uint64_t times);

  void forget() {  // the arrivals; what was derived of them stays until the next epoch
    counts_.clear();
    remembered_ = since_refresh_ = 0;
  }

  // Starts a new epoch when a fifth of the arrivals remembered are new (half, once kSettled are
  // known). O(1) when not due; else O(shapes * classes).
  bool refresh();

  // Starts one now, for those who know all arrivals at once.
  void settle() { rebuild(); }

  // For nodes that came or went: the prices follow at once, as a new epoch.
  void set_supply(std::vector<ClassSupply> supply);

  const MixSnapshot& snapshot() const { return snapshot_; }
  std::uint64_t epoch() const { return epoch_; }

 private:
  struct Counted {
    MixShape shape;
    std::uint64_t count = 0;
  };

  void rebuild();
  void halve_counts();
  std::vector<Counted> ordered_counts() const;
  void pick_typical(const std::vector<Counted>& counts);
  void price_classes(const std::vector<Counted>& counts);
  void weigh_cpu(const std::vector<Counted>& counts);
  void assume_common_sizes();

  static std::array<std::uint64_t, 3> key_of(const MixShape& shape);
  struct KeyHash {
    std::size_t operator()(const std::array<std::uint64_t, 3>& key) const;
  };

  std::vector<ClassSupply> supply_;
  std::unordered_map<std::array<std::uint64_t, 3>, std::uint64_t, KeyHash> counts_;
  std::uint64_t remembered_ = 0;
  std::uint64_t since_refresh_ = 0;
  std::uint64_t epoch_ = 0;
  MixSnapshot snapshot_;
};

}  // namespace berth::schedule
