#include "openb_policy.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace berth::placement {
namespace {

// A node's CPU may be promised to a shape twice over before it limits the GPU counted as usable:
// the pods to come are seldom all of one shape, and a tight limit makes the worth of a nearly empty
// node jump with every CPU pod.
constexpr int64_t kCpuHeadroom = 2;
// Half of the pressure is charged. The full pressure overrules the packing term.
constexpr double kPriceShare = 0.5;
constexpr double kMostPressure = 4.0;
constexpr int32_t kStrandWeightQ8 = 128;
// The CPU term fades between these levels of expected CPU use at full GPU demand.
constexpr double kCpuSpare = 0.9;
constexpr double kCpuShort = 1.0;
constexpr unsigned kReciprocalBits = 21;

bool can_host(const ClassSupply& supply, const MixShape& shape) {
  return ((shape.model_mask >> supply.model) & 1U) != 0 && shape.num_gpu <= supply.gpus &&
         shape.cpu_milli <= supply.cpu_milli;
}

double gpu_of(const MixShape& shape) {
  return static_cast<double>(shape.gpu_milli) * shape.num_gpu;
}

double gpu_of(const ClassSupply& supply) {
  return static_cast<double>(kWholeGpuMilli) * supply.gpus * supply.nodes;
}

double cpu_of(const ClassSupply& supply) {
  return static_cast<double>(supply.cpu_milli) * supply.nodes;
}

uint64_t packed(int32_t high, int32_t low) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32U) | static_cast<uint32_t>(low);
}

uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31U);
}

}  // namespace

size_t WorkloadMix::KeyHash::operator()(const std::array<uint64_t, 3>& key) const {
  return static_cast<size_t>(mixed(key[0] ^ mixed(key[1] ^ mixed(key[2]))));
}

WorkloadMix::WorkloadMix(std::vector<ClassSupply> supply) : supply_(std::move(supply)) {
  assume_common_sizes();
}

void WorkloadMix::observe(const MixShape& arrived) {
  const std::array<uint64_t, 3> key = {packed(arrived.cpu_milli, arrived.gpu_milli),
                                       packed(arrived.num_gpu, 0), arrived.model_mask};
  if (remembered_ >= kMemoryArrivals) halve_counts();
  if (counts_.size() >= kMostShapes && !counts_.contains(key)) halve_counts();
  ++since_refresh_;
  // Still full when every shape is frequent: the newcomer must return to be counted.
  if (counts_.size() >= kMostShapes && !counts_.contains(key)) return;
  ++counts_[key];
  ++remembered_;
}

bool WorkloadMix::refresh() {
  if (since_refresh_ < std::max(kFirstRefresh, remembered_ / 5)) return false;
  rebuild();
  return true;
}

void WorkloadMix::set_supply(std::vector<ClassSupply> supply) {
  supply_ = std::move(supply);
  rebuild();
}

void WorkloadMix::rebuild() {
  ++snapshot_.epoch;
  since_refresh_ = 0;
  if (remembered_ < kFirstRefresh) return assume_common_sizes();
  const std::vector<Counted> counts = ordered_counts();
  pick_typical(counts);
  price_classes(counts);
  weigh_cpu(counts);
}

void WorkloadMix::halve_counts() {
  remembered_ = 0;
  for (auto at = counts_.begin(); at != counts_.end();) {
    at->second /= 2;
    remembered_ += at->second;
    at = at->second == 0 ? counts_.erase(at) : std::next(at);
  }
}

// Heaviest first; equal counts by shape, so that the order of the hash table never shows.
std::vector<WorkloadMix::Counted> WorkloadMix::ordered_counts() const {
  std::vector<std::pair<std::array<uint64_t, 3>, uint64_t>> rows(counts_.begin(), counts_.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<Counted> counts;
  counts.reserve(rows.size());
  for (const auto& [key, count] : rows) {
    Counted row;
    row.shape.cpu_milli = static_cast<int32_t>(key[0] >> 32U);
    row.shape.gpu_milli = static_cast<int32_t>(key[0] & 0xFFFFFFFFU);
    row.shape.num_gpu = static_cast<int32_t>(key[1] >> 32U);
    row.shape.model_mask = key[2];
    row.count = count;
    counts.push_back(row);
  }
  return counts;
}

// The heaviest GPU shapes, models set aside (prices answer for those). CPU-only arrivals keep their
// share of the weight: nothing on a GPU is usable for them, before or after a placement.
void WorkloadMix::pick_typical(const std::vector<Counted>& counts) {
  std::vector<Counted> merged;
  uint64_t covered = 0;
  for (const Counted& row : counts) {
    if (row.shape.num_gpu == 0) {
      covered += row.count;
      continue;
    }
    const auto same = std::find_if(merged.begin(), merged.end(), [&row](const Counted& other) {
      return other.shape.cpu_milli == row.shape.cpu_milli &&
             other.shape.gpu_milli == row.shape.gpu_milli &&
             other.shape.num_gpu == row.shape.num_gpu;
    });
    if (same != merged.end()) {
      same->count += row.count;
    } else {
      merged.push_back(row);
      merged.back().shape.model_mask = ~uint64_t{0};
    }
  }
  const auto key_of = [](const MixShape& shape) {
    return std::array{shape.cpu_milli, shape.gpu_milli, shape.num_gpu};
  };
  std::sort(merged.begin(), merged.end(), [&key_of](const Counted& a, const Counted& b) {
    return a.count != b.count ? a.count > b.count : key_of(a.shape) < key_of(b.shape);
  });
  if (merged.size() > kMostTypical) merged.resize(kMostTypical);
  for (const Counted& row : merged) covered += row.count;
  snapshot_.typical.clear();
  for (const Counted& row : merged) {
    MixShape shape = row.shape;
    shape.weight = static_cast<int32_t>(row.count * kWeightOne / covered);
    if (shape.weight > 0) snapshot_.typical.push_back(shape);
  }
}

void WorkloadMix::price_classes(const std::vector<Counted>& counts) {
  std::vector<double> pressure(supply_.size(), 0.0);
  double gpu_demand = 0;
  double gpu_supply = 0;
  for (const ClassSupply& supply : supply_) gpu_supply += gpu_of(supply);
  for (const Counted& row : counts) {
    if (row.shape.num_gpu == 0) continue;
    const double demand = static_cast<double>(row.count) * gpu_of(row.shape);
    gpu_demand += demand;
    double usable = 0;
    for (const ClassSupply& supply : supply_) {
      if (can_host(supply, row.shape)) usable += gpu_of(supply);
    }
    if (usable <= 0) continue;
    for (size_t at = 0; at < supply_.size(); ++at) {
      if (can_host(supply_[at], row.shape)) pressure[at] += demand / usable;
    }
  }
  snapshot_.class_price.assign(supply_.size(), 0);
  if (gpu_demand <= 0 || pressure.empty()) return;
  // Only differences steer, so the cheapest class is free; demand is taken to fill the supply once.
  const double least = *std::min_element(pressure.begin(), pressure.end());
  for (size_t at = 0; at < supply_.size(); ++at) {
    const double relative = (pressure[at] - least) * gpu_supply / gpu_demand;
    snapshot_.class_price[at] = static_cast<int32_t>(
        std::lround(std::min(relative, kMostPressure) * kPriceShare * kWholeGpuMilli));
  }
}

void WorkloadMix::weigh_cpu(const std::vector<Counted>& counts) {
  double gpu = 0;
  double cpu_with_gpu = 0;
  double cpu_all = 0;
  for (const Counted& row : counts) {
    const double cpu = static_cast<double>(row.count) * row.shape.cpu_milli;
    cpu_all += cpu;
    if (row.shape.num_gpu == 0) continue;
    cpu_with_gpu += cpu;
    gpu += static_cast<double>(row.count) * gpu_of(row.shape);
  }
  double gpu_supply = 0;
  double cpu_supply = 0;
  for (const ClassSupply& supply : supply_) {
    gpu_supply += gpu_of(supply);
    cpu_supply += cpu_of(supply);
  }
  snapshot_.cpu_per_gpu_q8 = 0;
  snapshot_.strand_weight_q8 = 0;
  if (gpu <= 0 || cpu_supply <= 0) return;
  const double per_gpu = std::min(cpu_with_gpu / gpu, 4096.0);
  snapshot_.cpu_per_gpu_q8 = static_cast<int32_t>(std::lround(per_gpu * 256.0));
  const double cpu_use = cpu_all / gpu * gpu_supply / cpu_supply;
  const double spare = std::clamp((kCpuShort - cpu_use) / (kCpuShort - kCpuSpare), 0.0, 1.0);
  snapshot_.strand_weight_q8 = static_cast<int32_t>(std::lround(spare * kStrandWeightQ8));
}

// Nothing is known yet: halves, wholes and powers of two, with half the CPU that a GPU comes with.
void WorkloadMix::assume_common_sizes() {
  double gpu_supply = 0;
  double cpu_supply = 0;
  for (const ClassSupply& supply : supply_) {
    gpu_supply += gpu_of(supply);
    cpu_supply += cpu_of(supply);
  }
  const double per_gpu = gpu_supply > 0 ? std::min(cpu_supply / gpu_supply / 2.0, 4096.0) : 0.0;
  snapshot_.typical.clear();
  const auto add = [&](int32_t gpu_milli, int32_t num_gpu, int32_t weight) {
    MixShape shape;
    shape.gpu_milli = gpu_milli;
    shape.num_gpu = num_gpu;
    shape.cpu_milli = static_cast<int32_t>(std::lround(per_gpu * gpu_milli * num_gpu));
    shape.weight = weight;
    snapshot_.typical.push_back(shape);
  };
  add(kWholeGpuMilli, 1, kWeightOne / 2);
  add(kWholeGpuMilli / 2, 1, kWeightOne / 4);
  for (const int32_t num_gpu : {2, 4, 8}) add(kWholeGpuMilli, num_gpu, kWeightOne / 16);
  snapshot_.class_price.assign(supply_.size(), 0);
  snapshot_.cpu_per_gpu_q8 = static_cast<int32_t>(std::lround(per_gpu * 256.0));
  snapshot_.strand_weight_q8 = gpu_supply > 0 ? kStrandWeightQ8 : 0;
}

PlacementScorer::PlacementScorer(const MixSnapshot& snapshot)
    : class_price_(snapshot.class_price),
      cpu_per_gpu_q8_(snapshot.cpu_per_gpu_q8),
      strand_weight_q8_(snapshot.strand_weight_q8) {
  for (const MixShape& shape : snapshot.typical) {
    Item item;
    item.gpu_milli = shape.gpu_milli;
    item.num_gpu = shape.num_gpu;
    item.cpu_milli = shape.cpu_milli;
    item.weight = shape.weight;
    const auto milli = static_cast<uint32_t>(shape.gpu_milli);
    item.reciprocal = ((1U << kReciprocalBits) + milli - 1) / milli;
    const int64_t asked = int64_t{shape.gpu_milli} * shape.num_gpu;
    item.gpu_per_cpu_q16 = (kCpuHeadroom * asked << 16U) / std::max(shape.cpu_milli, 1);
    items_.push_back(item);
  }
  std::sort(items_.begin(), items_.end(),
            [](const Item& a, const Item& b) { return a.gpu_milli < b.gpu_milli; });
}

int32_t PlacementScorer::worth(int32_t cpu_free_milli,
                               std::span<const int16_t> gpu_free_milli) const {
  // Most devices are whole or used up; the few partly used ones are looked at per shape.
  std::array<uint32_t, 64> partial;
  size_t partials = 0;
  int32_t whole = 0;
  int32_t idle = 0;
  int32_t roomiest = 0;
  const int32_t smallest = items_.empty() ? kWholeGpuMilli : items_.front().gpu_milli;
  for (const int16_t room : gpu_free_milli) {
    idle += room;
    if (room >= kWholeGpuMilli) {
      ++whole;
    } else if (room >= smallest && partials < partial.size()) {
      partial[partials++] = static_cast<uint32_t>(room);
    }
    roomiest = std::max<int32_t>(roomiest, room);
  }
  int64_t weighted = 0;
  int32_t threshold = 0;
  int32_t room_sum = 0;
  for (const Item& item : items_) {
    if (item.gpu_milli > roomiest) break;
    if (item.gpu_milli != threshold) {
      threshold = item.gpu_milli;
      uint32_t copies = 0;
      for (size_t at = 0; at < partials; ++at) {
        copies += (partial[at] * item.reciprocal) >> kReciprocalBits;
      }
      copies +=
          static_cast<uint32_t>(whole) * ((kWholeGpuMilli * item.reciprocal) >> kReciprocalBits);
      room_sum = static_cast<int32_t>(copies) * threshold;
    }
    if (item.cpu_milli > cpu_free_milli) continue;
    int64_t usable = room_sum;
    if (item.num_gpu > 1) usable = whole / item.num_gpu * item.num_gpu * kWholeGpuMilli;
    usable = std::min(usable, (cpu_free_milli * item.gpu_per_cpu_q16) >> 16U);
    weighted += item.weight * usable;
  }
  const int64_t needed_cpu = (int64_t{cpu_per_gpu_q8_} * idle) >> 8U;
  const int64_t stranded =
      int64_t{strand_weight_q8_} * idle * needed_cpu / (needed_cpu + cpu_free_milli + 1);
  return static_cast<int32_t>(weighted / kWeightOne - (stranded >> 8U));
}

int PlacementScorer::tightest_gpu(std::span<const int16_t> gpu_free_milli, int32_t gpu_milli) {
  int best = -1;
  for (size_t gpu = 0; gpu < gpu_free_milli.size(); ++gpu) {
    if (gpu_free_milli[gpu] < gpu_milli) continue;
    if (best < 0 || gpu_free_milli[gpu] < gpu_free_milli[static_cast<size_t>(best)]) {
      best = static_cast<int>(gpu);
    }
  }
  return best;
}

int32_t PlacementScorer::score(const NodeView& before, const MixShape& demand, int gpu) const {
  std::array<int16_t, 64> after{};
  const size_t gpus = std::min(before.gpu_free_milli.size(), after.size());
  std::copy_n(before.gpu_free_milli.begin(), gpus, after.begin());
  if (demand.num_gpu == 1 && demand.gpu_milli < kWholeGpuMilli && gpu >= 0) {
    after[static_cast<size_t>(gpu)] =
        static_cast<int16_t>(after[static_cast<size_t>(gpu)] - demand.gpu_milli);
  } else {
    int32_t left = demand.num_gpu;
    for (size_t at = 0; at < gpus && left > 0; ++at) {
      if (after[at] < demand.gpu_milli) continue;
      after[at] = static_cast<int16_t>(after[at] - demand.gpu_milli);
      --left;
    }
  }
  const int32_t worth_before = worth(before.cpu_free_milli, before.gpu_free_milli);
  const int32_t worth_after =
      worth(before.cpu_free_milli - demand.cpu_milli, std::span(after).first(gpus));
  return score(worth_before, worth_after, before.class_id, demand);
}

int32_t WorthMemo::worth(const PlacementScorer& scorer, int32_t cpu_free_milli,
                         std::span<const int16_t> gpu_free_milli) {
  if (gpu_free_milli.size() > kMostGpus) return scorer.worth(cpu_free_milli, gpu_free_milli);
  std::array<int16_t, kMostGpus> gpu_free{};
  std::copy(gpu_free_milli.begin(), gpu_free_milli.end(), gpu_free.begin());
  std::array<uint64_t, 2> words{};
  std::memcpy(words.data(), gpu_free.data(), sizeof(gpu_free));
  const uint64_t hash =
      mixed(words[0] ^ mixed(words[1] + static_cast<uint32_t>(cpu_free_milli) * 0x9E3779B97F4AULL));
  Slot& slot = slots_[hash & (slots_.size() - 1)];
  if (slot.generation != generation_ || slot.cpu_free != cpu_free_milli ||
      slot.gpu_free != gpu_free) {
    slot = {gpu_free, cpu_free_milli, generation_, scorer.worth(cpu_free_milli, gpu_free_milli)};
  }
  return slot.worth;
}

}  // namespace berth::placement
