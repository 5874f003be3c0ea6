#include "model/fit.h"

#include <algorithm>
#include <vector>

#include "model/device_choice.h"

namespace berth::model {
namespace {

// NUMA nodes of a machine as device masks, by ascending NUMA number.
std::vector<std::uint16_t> numa_masks(const NodeInfo& info) {
  std::vector<std::pair<int, std::uint16_t>> masks;
  for (const auto& gpu : info.gpus) {
    auto bit = static_cast<std::uint16_t>(1u << gpu.index);
    if ((info.devices & bit) == 0) continue;
    auto it = std::find_if(masks.begin(), masks.end(),
                           [&](const auto& m) { return m.first == gpu.numa; });
    if (it == masks.end()) {
      masks.emplace_back(gpu.numa, bit);
    } else {
      it->second = static_cast<std::uint16_t>(it->second | bit);
    }
  }
  std::sort(masks.begin(), masks.end());
  std::vector<std::uint16_t> out;
  for (const auto& [numa, mask] : masks) out.push_back(mask);
  return out;
}

// The fewest NUMA nodes that hold n devices on the empty machine.
int needed_width(const std::vector<std::uint16_t>& masks, int n) {
  std::vector<int> sizes;
  for (auto mask : masks) sizes.push_back(std::popcount(mask));
  std::sort(sizes.rbegin(), sizes.rend());
  int width = 0;
  for (int left = n; left > 0 && width < static_cast<int>(sizes.size());) {
    left -= sizes[static_cast<std::size_t>(width++)];
  }
  return std::max(width, 1);
}

// Serves n devices from the lowest set of width NUMA nodes that has enough, lowest nodes first;
// false when none has.
bool serve_from(const std::vector<std::uint16_t>& masks, int width, int n, std::uint16_t& free) {
  for (unsigned set = 1; set < (1u << masks.size()); ++set) {
    if (std::popcount(set) != width) continue;
    std::uint16_t pool = 0;
    for (std::size_t i = 0; i < masks.size(); ++i) {
      if ((set >> i & 1) != 0) pool = static_cast<std::uint16_t>(pool | (masks[i] & free));
    }
    if (std::popcount(pool) < n) continue;
    for (std::size_t i = 0; i < masks.size() && n > 0; ++i) {
      for (auto bits = static_cast<unsigned>(pool & masks[i]); bits != 0 && n > 0;
           bits &= bits - 1, --n) {
        free = static_cast<std::uint16_t>(free & ~(1u << std::countr_zero(bits)));
      }
    }
    return true;
  }
  return false;
}

std::int64_t column_amount(const NodeInfo& info, const NodeState& state, SymbolId resource) {
  int column = info.extended_column(resource);
  return column < 0 ? 0
                    : std::max<std::int64_t>(state.extended[static_cast<std::size_t>(column)], 0);
}

int share_slots(const NodeState& state, std::uint16_t mask, int milli) {
  int slots = 0;
  for (auto bits = static_cast<unsigned>(mask); bits != 0; bits &= bits - 1) {
    int free = state.gpu[static_cast<std::size_t>(std::countr_zero(bits))];
    if (free > 0) slots += free / milli;
  }
  return slots;
}

}  // namespace

bool fits_gpus(const NodeInfo& info, const NodeState& state, const Demand& demand,
               Devices devices_wanted) {
  auto mask = devices_wanted == Devices::kAll ? info.devices : info.usable;
  if (demand.kind == GpuDemandSpec::Kind::kMig) {
    auto slots = column_amount(info, state, demand.mig);
    if (devices_wanted == Devices::kAll) slots += column_amount(info, state, demand.mig_unusable);
    return slots >= demand.count;
  }
  if (demand.kind == GpuDemandSpec::Kind::kWhole && info.shares_per_gpu == 1) {
    return info.gpu_milli > 0 &&
           std::popcount(static_cast<unsigned>(state.whole & mask)) >= demand.count;
  }
  int milli = device_milli(info, demand);
  if (milli <= 0) return false;
  if (takes_shares(info, demand)) return share_slots(state, mask, milli) >= demand.count;
  int devices = 0;
  for (auto bits = static_cast<unsigned>(mask); bits != 0; bits &= bits - 1) {
    devices += state.gpu[static_cast<std::size_t>(std::countr_zero(bits))] >= milli ? 1 : 0;
  }
  return devices >= demand.count;
}

NumaServed numa_serve(const NodeInfo& info, std::uint16_t free_whole, const Demand& demand) {
  NumaServed out{.masks = numa_masks(info)};
  std::vector<int> requests = demand.gpus_by_container;
  std::erase_if(requests, [](int n) { return n <= 0; });
  if (info.numa_scope == NumaScope::kPod || requests.empty()) requests = {demand.count};
  std::uint16_t free = free_whole;
  for (int n : requests) {
    out.width = info.numa_policy == NumaPolicy::kSingleNumaNode ? 1 : needed_width(out.masks, n);
    if (!serve_from(out.masks, out.width, n, free)) return out;
  }
  out.ok = true;
  out.one_request = requests.size() == 1;
  for (auto mask : out.masks) {
    out.taken.push_back(std::popcount(static_cast<unsigned>(mask & free_whole & ~free)));
  }
  return out;
}

bool NumaServed::admits(std::uint16_t set) const {
  int touched = 0;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    int here = std::popcount(static_cast<unsigned>(masks[i] & set));
    if (!one_request && here != taken[i]) return false;
    touched += here > 0 ? 1 : 0;
  }
  return !one_request || touched <= width;
}

bool fits_extended(const NodeInfo& info, const NodeState& state, const Demand& demand) {
  for (const auto& [resource, amount] : demand.extended) {
    int column = info.extended_column(resource);
    if (column < 0 || state.extended[static_cast<std::size_t>(column)] < amount) return false;
  }
  return true;
}

int fit_count(const NodeInfo& info, const NodeState& state, const Demand& demand, int limit) {
  int count = std::min(limit, state.pods);
  const auto bound = [&count](std::int64_t free, std::int64_t need) {
    if (need <= 0) return;
    if (free < need) {
      count = 0;
    } else if (count > 1) {
      count = static_cast<int>(std::min<std::int64_t>(count, free / need));
    }
  };
  const bool whole = demand.kind == GpuDemandSpec::Kind::kWhole && info.shares_per_gpu == 1 &&
                     !numa_applies(info, demand);
  if (whole) {  // seldom many, so it comes first
    if (info.gpu_milli == 0) return 0;
    bound(std::popcount(static_cast<unsigned>(state.whole & info.usable)), demand.count);
    if (count <= 0) return 0;
  }
  bound(state.cpu, demand.cpu);
  bound(state.memory, demand.memory);
  bound(state.ephemeral, demand.ephemeral);
  for (const auto& [resource, amount] : demand.extended) {
    int column = info.extended_column(resource);
    bound(column < 0 ? 0 : state.extended[static_cast<std::size_t>(column)], amount);
  }
  if (count <= 0 || whole || !demand.asks_gpu()) return std::max(count, 0);
  if (demand.kind == GpuDemandSpec::Kind::kMig) {
    bound(column_amount(info, state, demand.mig), demand.count);
    return count;
  }
  if (takes_shares(info, demand)) {
    const int milli = device_milli(info, demand);
    if (milli == 0) return 0;
    bound(share_slots(state, info.usable, milli), demand.count);
    return count;
  }
  // Different devices per copy, or NUMA alignment: place copies one after another.
  NodeState left = state;
  for (int placed = 0; placed < count; ++placed) {
    if (!fits(info, left, demand)) return placed;
    auto gpus = choose_gpus(info, left, demand);
    if (!gpus) return placed;
    take(info, left, demand, *gpus);
  }
  return count;
}

namespace {

void apply(const NodeInfo& info, NodeState& state, const Demand& demand, const GpuTake& gpus,
           int sign) {
  state.cpu += sign * demand.cpu;
  state.memory += sign * demand.memory;
  if (demand.ephemeral != 0) state.ephemeral += sign * demand.ephemeral;  // seldom in the cache
  state.pods += sign;
  for (const auto& [resource, amount] : demand.extended) {
    int column = info.extended_column(resource);
    if (column >= 0) state.extended[static_cast<std::size_t>(column)] += sign * amount;
  }
  if (demand.kind == GpuDemandSpec::Kind::kNone) return;
  if (demand.kind == GpuDemandSpec::Kind::kMig) {
    auto add = [&](SymbolId resource, int slots) {
      int column = info.extended_column(resource);
      if (column >= 0) state.extended[static_cast<std::size_t>(column)] += sign * slots;
    };
    int out_of_use = 0;
    for (std::size_t g = 0; g < kMaxGpusPerNode; ++g) {
      if ((info.mig & ~info.mig_usable) >> g & 1) out_of_use += gpus.take[g];
    }
    add(demand.mig, demand.count - out_of_use);
    add(demand.mig_unusable, out_of_use);
    return;
  }
  for (std::size_t g = 0; g < kMaxGpusPerNode; ++g) {
    if (gpus.take[g] == 0) continue;
    state.gpu[g] = static_cast<std::int16_t>(state.gpu[g] + sign * gpus.take[g] * gpus.unit);
    auto bit = static_cast<std::uint16_t>(1u << g);
    state.whole = static_cast<std::uint16_t>(
        state.gpu[g] == kMilliPerGpu ? (state.whole | (bit & info.devices)) : (state.whole & ~bit));
  }
}

}  // namespace

void take(const NodeInfo& info, NodeState& state, const Demand& demand, const GpuTake& gpus) {
  apply(info, state, demand, gpus, -1);
}

void give(const NodeInfo& info, NodeState& state, const Demand& demand, const GpuTake& gpus) {
  apply(info, state, demand, gpus, +1);
}

NodeState empty_state(const NodeInfo& info) {
  NodeState state;
  state.cpu = info.cpu;
  state.memory = info.memory;
  state.ephemeral = info.ephemeral;
  state.pods = info.pods;
  for (std::size_t i = 0; i < info.extended.size(); ++i)
    state.extended[i] = info.extended[i].second;
  for (std::size_t g = 0; g < kMaxGpusPerNode; ++g) {
    if ((info.devices >> g & 1) != 0) state.gpu[g] = kMilliPerGpu;
  }
  state.whole = info.devices;
  return state;
}

int free_milli(const NodeState& state, std::uint16_t mask) {
  int total = 0;
  for (auto bits = static_cast<unsigned>(mask); bits != 0; bits &= bits - 1) {
    total += std::max<int>(state.gpu[static_cast<std::size_t>(std::countr_zero(bits))], 0);
  }
  return total;
}

}  // namespace berth::model
