#include "judge/gpus.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <tuple>

namespace berth::judging {

using model::GpuDemandSpec;
using model::GpuSpec;
using model::NodeSpec;
using model::NumaPolicy;
using model::PodSpec;
using Kind = model::GpuDemandSpec::Kind;

namespace {

bool shares(const GpuDemandSpec& demand, const NodeSpec& node) {
  return demand.kind == Kind::kShared || (demand.kind == Kind::kWhole && node.shares_per_gpu > 1);
}

bool counts(const GpuSpec& gpu, Devices devices) { return devices == Devices::kAll || usable(gpu); }

int profile_of(const GpuSpec& gpu, const std::string& resource) {
  for (std::size_t i = 0; i < gpu.mig.size(); ++i) {
    if (gpu.mig[i].resource == resource) return static_cast<int>(i);
  }
  return -1;
}

int free_slots(const NodeState& node, std::size_t device, const std::string& resource) {
  int profile = profile_of(node.spec->gpus[device], resource);
  return profile < 0 ? 0 : node.mig_free[device][static_cast<std::size_t>(profile)];
}

bool has_room(const NodeState& node, std::size_t device, int milli, Devices devices) {
  const GpuSpec& gpu = node.spec->gpus[device];
  return node.gpu_free[device] >= milli && gpu.mig.empty() && counts(gpu, devices);
}

// Positions of the devices, in ascending order, that have so many milli free.
std::vector<int> fitting(const NodeState& node, int milli, Devices devices) {
  std::vector<int> found;
  for (std::size_t i = 0; i < node.spec->gpus.size(); ++i) {
    if (has_room(node, i, milli, devices)) found.push_back(static_cast<int>(i));
  }
  return found;
}

// ---- NUMA ----

// Devices by NUMA node id, ascending.
using ByNuma = std::map<int, int>;

bool numa_rules(const PodSpec& pod, const NodeSpec& node) {
  if (pod.gpu.kind != Kind::kWhole || pod.gpu.count <= 0 || node.shares_per_gpu > 1) return false;
  if (node.numa_policy != NumaPolicy::kRestricted &&
      node.numa_policy != NumaPolicy::kSingleNumaNode) {
    return false;
  }
  return !node.gpus.empty() && std::all_of(node.gpus.begin(), node.gpus.end(),
                                           [](const GpuSpec& gpu) { return gpu.numa >= 0; });
}

// How many NUMA nodes `count` devices need on the empty machine; 0 when it has too few.
int width(const NodeSpec& node, int count) {
  ByNuma all;
  for (const GpuSpec& gpu : node.gpus) {
    if (gpu.mig.empty()) ++all[gpu.numa];
  }
  std::vector<int> sizes;
  for (auto [numa, size] : all) sizes.push_back(size);
  std::sort(sizes.rbegin(), sizes.rend());
  int reached = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    reached += sizes[i];
    if (reached >= count) return static_cast<int>(i) + 1;
  }
  return 0;
}

int allowed_width(const NodeSpec& node, int count) {
  return node.numa_policy == NumaPolicy::kSingleNumaNode ? 1 : width(node, count);
}

// Takes `count` from the lowest set of exactly `wide` NUMA nodes that has them, the lowest node of
// the set first. False, and nothing taken, when there is none.
bool take_lowest(ByNuma& free, int count, int wide) {
  std::vector<int> ids;
  for (auto [numa, size] : free) ids.push_back(numa);
  for (unsigned mask = 1; mask < (1U << ids.size()); ++mask) {
    if (std::popcount(mask) != wide) continue;
    int have = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if ((mask >> i) & 1U) have += free[ids[i]];
    }
    if (have < count) continue;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (((mask >> i) & 1U) == 0) continue;
      int here = std::min(count, free[ids[i]]);
      free[ids[i]] -= here;
      count -= here;
    }
    return true;
  }
  return false;
}

std::vector<int> requests_of(const PodSpec& pod, const NodeSpec& node) {
  std::vector<int> containers;
  int sum = 0;
  for (int count : pod.gpus_by_container) {
    sum += count;
    if (count > 0) containers.push_back(count);
  }
  bool as_one = node.numa_scope == model::NumaScope::kPod || sum != pod.gpu.count;
  return as_one ? std::vector<int>{pod.gpu.count} : containers;
}

// What each NUMA node gives when the requests are served in order; nothing when one is refused.
std::optional<ByNuma> served_by_numa(const NodeState& node, const PodSpec& pod, Devices devices) {
  ByNuma free;
  for (const GpuSpec& gpu : node.spec->gpus) free[gpu.numa] += 0;
  for (int device : fitting(node, model::kMilliPerGpu, devices)) {
    ++free[node.spec->gpus[static_cast<std::size_t>(device)].numa];
  }
  ByNuma left = free;
  for (int count : requests_of(pod, *node.spec)) {
    int wide = allowed_width(*node.spec, count);
    if (wide == 0 || !take_lowest(left, count, wide)) return std::nullopt;
  }
  for (auto& [numa, size] : free) size -= left[numa];
  return free;
}

bool numa_admits_subset(const NodeState& node, const PodSpec& pod, const std::vector<int>& subset,
                        const ByNuma& served) {
  ByNuma taken;
  for (int device : subset) ++taken[node.spec->gpus[static_cast<std::size_t>(device)].numa];
  if (requests_of(pod, *node.spec).size() == 1) {
    return static_cast<int>(taken.size()) == allowed_width(*node.spec, pod.gpu.count);
  }
  return std::all_of(served.begin(), served.end(), [&](const auto& entry) {
    auto found = taken.find(entry.first);
    return entry.second == (found == taken.end() ? 0 : found->second);
  });
}

// ---- whole devices ----

// Numbers the positions 0.. so that sets of them are bit masks; an unknown one is its own.
std::vector<int> numbered(const NodeSpec& node, int GpuSpec::* position) {
  std::map<int, int> seen;
  std::vector<int> numbers;
  int next = 0;
  for (const GpuSpec& gpu : node.gpus) {
    int value = gpu.*position;
    if (value < 0) {
      numbers.push_back(next++);
    } else {
      auto [entry, fresh] = seen.try_emplace(value, next);
      if (fresh) ++next;
      numbers.push_back(entry->second);
    }
  }
  return numbers;
}

struct Positions {
  explicit Positions(const NodeSpec& node)
      : clique(numbered(node, &GpuSpec::nvlink_clique)),
        numa(numbered(node, &GpuSpec::numa)),
        pcie(numbered(node, &GpuSpec::pcie_switch)) {}
  std::vector<int> clique, numa, pcie;
};

int distinct(const std::vector<int>& numbers, const std::vector<int>& subset) {
  unsigned mask = 0;
  for (int device : subset) mask |= 1U << numbers[static_cast<std::size_t>(device)];
  return std::popcount(mask);
}

int left_in_cliques(const Positions& at, const std::vector<int>& free,
                    const std::vector<int>& subset) {
  unsigned touched = 0;
  for (int device : subset) touched |= 1U << at.clique[static_cast<std::size_t>(device)];
  int left = -static_cast<int>(subset.size());
  for (int device : free) {
    left += static_cast<int>((touched >> at.clique[static_cast<std::size_t>(device)]) & 1U);
  }
  return left;
}

std::optional<std::vector<Taken>> choose_whole(const NodeState& node, const PodSpec& pod,
                                               Devices devices, bool obey_numa) {
  std::vector<int> free = fitting(node, model::kMilliPerGpu, devices);
  auto count = static_cast<std::size_t>(pod.gpu.count);
  if (free.size() < count) return std::nullopt;
  std::optional<ByNuma> served;
  if (obey_numa && numa_rules(pod, *node.spec)) {
    served = served_by_numa(node, pod, devices);
    if (!served) return std::nullopt;
  }
  const Positions at(*node.spec);
  std::optional<std::tuple<int, int, int, int>> best;
  std::vector<int> best_subset;
  // Every subset of that size, in ascending order of indices, so that the first of equals is best.
  std::vector<bool> chosen(free.size(), false);
  std::fill_n(chosen.begin(), count, true);
  do {
    std::vector<int> subset;
    for (std::size_t i = 0; i < free.size(); ++i) {
      if (chosen[i]) subset.push_back(free[i]);
    }
    if (served && !numa_admits_subset(node, pod, subset, *served)) continue;
    std::tuple<int, int, int, int> cost{distinct(at.clique, subset), distinct(at.numa, subset),
                                        distinct(at.pcie, subset),
                                        left_in_cliques(at, free, subset)};
    if (!best || cost < *best) {
      best = cost;
      best_subset = subset;
    }
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  if (!best) return std::nullopt;
  std::vector<Taken> taken;
  for (int device : best_subset) taken.push_back({.device = device, .milli = model::kMilliPerGpu});
  return taken;
}

// ---- shares, fractions, MIG ----

std::optional<std::vector<Taken>> choose_shares(const NodeState& node, int count, int milli,
                                                Devices devices) {
  std::vector<Taken> taken;
  NodeState after = node;
  for (int i = 0; i < count; ++i) {
    std::vector<int> room = fitting(after, milli, devices);
    if (room.empty()) return std::nullopt;
    int fullest = *std::min_element(room.begin(), room.end(), [&](int a, int b) {
      return after.gpu_free[static_cast<std::size_t>(a)] <
             after.gpu_free[static_cast<std::size_t>(b)];
    });
    after.gpu_free[static_cast<std::size_t>(fullest)] -= milli;
    taken.push_back({.device = fullest, .milli = milli});
  }
  return taken;
}

std::optional<std::vector<Taken>> choose_fractions(const NodeState& node, int count, int milli,
                                                   Devices devices) {
  std::vector<int> room = fitting(node, milli, devices);
  if (static_cast<int>(room.size()) < count) return std::nullopt;
  std::sort(room.begin(), room.end(), [&](int a, int b) {
    return std::pair(node.gpu_free[static_cast<std::size_t>(a)], a) <
           std::pair(node.gpu_free[static_cast<std::size_t>(b)], b);
  });
  std::vector<Taken> taken;
  for (int i = 0; i < count; ++i) {
    taken.push_back({.device = room[static_cast<std::size_t>(i)], .milli = milli});
  }
  return taken;
}

std::optional<std::vector<Taken>> choose_slots(const NodeState& node, const GpuDemandSpec& demand,
                                               Devices devices) {
  std::vector<Taken> taken;
  NodeState after = node;
  for (int i = 0; i < demand.count; ++i) {
    int fullest = -1;
    int fewest = 0;
    for (std::size_t d = 0; d < node.spec->gpus.size(); ++d) {
      if (!counts(node.spec->gpus[d], devices)) continue;
      int slots = free_slots(after, d, demand.mig);
      if (slots < 1 || (fullest >= 0 && slots >= fewest)) continue;
      fullest = static_cast<int>(d);
      fewest = slots;
    }
    if (fullest < 0) return std::nullopt;
    auto device = static_cast<std::size_t>(fullest);
    int profile = profile_of(node.spec->gpus[device], demand.mig);
    --after.mig_free[device][static_cast<std::size_t>(profile)];
    taken.push_back({.device = fullest, .milli = 0, .profile = profile});
  }
  return taken;
}

}  // namespace

int unit_milli(const GpuDemandSpec& demand, const NodeSpec& node) {
  switch (demand.kind) {
    case Kind::kNone:
    case Kind::kMig:
      return 0;
    case Kind::kFraction:
      return demand.milli;
    case Kind::kMemory: {
      if (node.gpus.empty() || node.gpus.front().memory_mib <= 0) return 0;
      std::int64_t memory = node.gpus.front().memory_mib;
      return static_cast<int>(
          std::min<std::int64_t>((1000 * demand.memory_mib + memory - 1) / memory, 1'000'000));
    }
    case Kind::kShared:
      if (node.gpu_names == model::GpuNames::kGpu) return 0;
      if (node.gpu_names == model::GpuNames::kBoth && node.shares_per_gpu <= 1) return 0;
      return model::kMilliPerGpu / std::max(node.shares_per_gpu, 1);
    case Kind::kWhole:
      if (node.gpu_names == model::GpuNames::kShared) return 0;
      return model::kMilliPerGpu / std::max(node.shares_per_gpu, 1);
  }
  return 0;
}

int free_units(const NodeState& node, const GpuDemandSpec& demand, Devices devices) {
  int units = 0;
  if (demand.kind == Kind::kMig) {
    for (std::size_t i = 0; i < node.spec->gpus.size(); ++i) {
      if (counts(node.spec->gpus[i], devices)) units += free_slots(node, i, demand.mig);
    }
    return units;
  }
  int milli = unit_milli(demand, *node.spec);
  if (milli <= 0) return 0;
  for (std::size_t i = 0; i < node.spec->gpus.size(); ++i) {
    if (!has_room(node, i, milli, devices)) continue;
    units += shares(demand, *node.spec) ? node.gpu_free[i] / milli : 1;
  }
  return units;
}

bool serves(const NodeState& node, const PodSpec& pod, Devices devices) {
  return !asks_gpus(pod) || free_units(node, pod.gpu, devices) >= pod.gpu.count;
}

bool numa_admits(const NodeState& node, const PodSpec& pod) {
  return !numa_rules(pod, *node.spec) || served_by_numa(node, pod, Devices::kUsable).has_value();
}

std::optional<std::vector<Taken>> choose_devices(const NodeState& node, const PodSpec& pod,
                                                 Devices devices, bool obey_numa) {
  if (!asks_gpus(pod)) return std::vector<Taken>{};
  if (!serves(node, pod, devices)) return std::nullopt;
  int milli = unit_milli(pod.gpu, *node.spec);
  if (pod.gpu.kind == Kind::kMig) return choose_slots(node, pod.gpu, devices);
  if (shares(pod.gpu, *node.spec)) return choose_shares(node, pod.gpu.count, milli, devices);
  if (pod.gpu.kind == Kind::kWhole) return choose_whole(node, pod, devices, obey_numa);
  return choose_fractions(node, pod.gpu.count, milli, devices);
}

}  // namespace berth::judging
