#include "decide/schedule/mix.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/spec.h"

namespace berth::schedule {
namespace {

// Half of the pressure is charged. The full pressure overrules the packing term.
constexpr double kPriceShare = 0.5;
constexpr double kMostPressure = 4.0;
constexpr std::int32_t kStrandWeightQ8 = 128;
// The CPU term fades between these levels of expected CPU use at full GPU demand.
constexpr double kCpuSpare = 0.9;
constexpr double kCpuShort = 1.0;
constexpr std::int32_t kWholeGpuMilli = model::kMilliPerGpu;

bool can_host(const ClassSupply& supply, std::size_t at, const MixShape& shape) {
  return ((shape.classes >> at) & 1U) != 0 && shape.num_gpu <= supply.gpus &&
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

std::uint64_t packed(std::int32_t high, std::int32_t low) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32U) |
         static_cast<std::uint32_t>(low);
}

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31U);
}

}  // namespace

std::size_t WorkloadMix::KeyHash::operator()(const std::array<std::uint64_t, 3>& key) const {
  return static_cast<std::size_t>(mixed(key[0] ^ mixed(key[1] ^ mixed(key[2]))));
}

std::array<std::uint64_t, 3> WorkloadMix::key_of(const MixShape& shape) {
  return {packed(shape.cpu_milli, shape.gpu_milli), packed(shape.num_gpu, 0), shape.classes};
}

void WorkloadMix::observe(const MixShape& arrived, std::uint64_t times) {
  counts_[key_of(arrived)] += times;
  remembered_ += times;
  since_refresh_ += times;
}

void WorkloadMix::observe(const MixShape& arrived) {
  const std::array<std::uint64_t, 3> key = key_of(arrived);
  if (remembered_ >= kMemoryArrivals) halve_counts();
  if (counts_.size() >= kMostShapes && !counts_.contains(key)) halve_counts();
  ++since_refresh_;
  // Still full when every shape is frequent: the newcomer must return to be counted.
  if (counts_.size() >= kMostShapes && !counts_.contains(key)) return;
  ++counts_[key];
  ++remembered_;
}

bool WorkloadMix::refresh() {
  // Early on, when a quarter more is known; a settled mix changes slowly, and each epoch makes all
  // scores anew.
  const std::uint64_t due = remembered_ < kSettled ? remembered_ / 5 : remembered_ / 2;
  if (since_refresh_ < std::max(kFirstRefresh, due)) return false;
  rebuild();
  return true;
}

void WorkloadMix::set_supply(std::vector<ClassSupply> supply) {
  supply_ = std::move(supply);
  rebuild();
}

void WorkloadMix::rebuild() {
  ++epoch_;
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
  std::vector<std::pair<std::array<std::uint64_t, 3>, std::uint64_t>> rows(counts_.begin(),
                                                                           counts_.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<Counted> counts;
  counts.reserve(rows.size());
  for (const auto& [key, count] : rows) {
    Counted row;
    row.shape.cpu_milli = static_cast<std::int32_t>(key[0] >> 32U);
    row.shape.gpu_milli = static_cast<std::int32_t>(key[0] & 0xFFFFFFFFU);
    row.shape.num_gpu = static_cast<std::int32_t>(key[1] >> 32U);
    row.shape.classes = key[2];
    row.count = count;
    counts.push_back(row);
  }
  return counts;
}

// The heaviest GPU shapes, models set aside (prices answer for those). CPU-only arrivals keep their
// share of the weight: nothing on a GPU is usable for them, before or after a placement.
void WorkloadMix::pick_typical(const std::vector<Counted>& counts) {
  std::vector<Counted> merged;
  std::uint64_t covered = 0;
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
      merged.back().shape.classes = ~std::uint64_t{0};
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
    shape.weight = static_cast<std::int32_t>(row.count * kWeightOne / covered);
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
    for (std::size_t at = 0; at < supply_.size(); ++at) {
      if (can_host(supply_[at], at, row.shape)) usable += gpu_of(supply_[at]);
    }
    if (usable <= 0) continue;
    for (std::size_t at = 0; at < supply_.size(); ++at) {
      if (can_host(supply_[at], at, row.shape)) pressure[at] += demand / usable;
    }
  }
  snapshot_.class_price.assign(supply_.size(), 0);
  if (gpu_demand <= 0 || pressure.empty()) return;
  // Only differences steer, so the cheapest class is free; demand is taken to fill the supply once.
  double least = std::numeric_limits<double>::max();
  for (std::size_t at = 0; at < supply_.size(); ++at) {
    if (supply_[at].gpus > 0 && supply_[at].nodes > 0) least = std::min(least, pressure[at]);
  }
  for (std::size_t at = 0; at < supply_.size(); ++at) {
    if (supply_[at].gpus == 0 || supply_[at].nodes == 0) continue;
    const double relative = (pressure[at] - least) * gpu_supply / gpu_demand;
    snapshot_.class_price[at] = static_cast<std::int32_t>(
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
  snapshot_.cpu_per_gpu_q8 = static_cast<std::int32_t>(std::lround(per_gpu * 256.0));
  const double cpu_use = cpu_all / gpu * gpu_supply / cpu_supply;
  const double spare = std::clamp((kCpuShort - cpu_use) / (kCpuShort - kCpuSpare), 0.0, 1.0);
  snapshot_.strand_weight_q8 = static_cast<std::int32_t>(std::lround(spare * kStrandWeightQ8));
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
  const auto add = [&](std::int32_t gpu_milli, std::int32_t num_gpu, std::int32_t weight) {
    MixShape shape;
    shape.gpu_milli = gpu_milli;
    shape.num_gpu = num_gpu;
    shape.cpu_milli = static_cast<std::int32_t>(std::lround(per_gpu * gpu_milli * num_gpu));
    shape.weight = weight;
    snapshot_.typical.push_back(shape);
  };
  add(kWholeGpuMilli, 1, kWeightOne / 2);
  add(kWholeGpuMilli / 2, 1, kWeightOne / 4);
  for (const std::int32_t num_gpu : {2, 4, 8}) add(kWholeGpuMilli, num_gpu, kWeightOne / 16);
  snapshot_.class_price.assign(supply_.size(), 0);
  snapshot_.cpu_per_gpu_q8 = static_cast<std::int32_t>(std::lround(per_gpu * 256.0));
  snapshot_.strand_weight_q8 = gpu_supply > 0 ? kStrandWeightQ8 : 0;
}

}  // namespace berth::schedule
