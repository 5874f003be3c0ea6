#include "model/device_choice.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "model/fit.h"

namespace berth::model {
namespace {

// Devices grouped by a position (NVLink clique, NUMA node, PCIe switch) as masks; an unknown
// position is a group of its own.
class Groups {
 public:
  template <class Position>
  Groups(const NodeInfo& info, Position&& position) {
    std::array<int, kMaxGpusPerNode> ids{};
    for (const auto& gpu : info.gpus) {
      int id = position(gpu);
      auto bit = static_cast<std::uint16_t>(1u << gpu.index);
      std::size_t at = 0;
      while (at < count_ && (id < 0 || ids[at] != id)) ++at;
      if (at == count_) ids[count_++] = id;
      masks_[at] = static_cast<std::uint16_t>(masks_[at] | bit);
    }
  }
  int touched(unsigned set) const {
    int n = 0;
    for (std::size_t i = 0; i < count_; ++i) n += (masks_[i] & set) != 0 ? 1 : 0;
    return n;
  }
  int left(unsigned set, unsigned free) const {
    int n = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if ((masks_[i] & set) != 0) n += std::popcount(masks_[i] & free & ~set);
    }
    return n;
  }

 private:
  std::array<std::uint16_t, kMaxGpusPerNode> masks_{};
  std::size_t count_ = 0;
};

// Spreads the low bits of choice over the set bits of free, lowest to lowest.
unsigned deposit(unsigned choice, unsigned free) {
  unsigned out = 0;
  for (; choice != 0 && free != 0; choice >>= 1, free &= free - 1) {
    if ((choice & 1) != 0) out |= free & (~free + 1);
  }
  return out;
}

// The next larger number with as many bits set.
unsigned next_choice(unsigned choice) {
  int zeros = std::countr_zero(choice);
  unsigned ripple = choice + (1u << zeros);
  return ripple | ((choice ^ ripple) >> 2 >> zeros);
}

// The set with the lowest differing device comes first: {0,3} before {1,2}.
bool indices_before(unsigned a, unsigned b) {
  unsigned differ = a ^ b;
  return (a & differ & (~differ + 1)) != 0;
}

std::optional<GpuTake> choose_shares(const NodeInfo& info, const NodeState& state,
                                     const Demand& demand) {
  GpuTake out{.unit = static_cast<std::int16_t>(device_milli(info, demand))};
  if (out.unit <= 0) return std::nullopt;
  auto free = state.gpu;
  for (int n = 0; n < demand.count; ++n) {
    int best = -1;
    for (int g = 0; g < kMaxGpusPerNode; ++g) {
      auto at = static_cast<std::size_t>(g);
      if ((info.usable >> g & 1) == 0 || free[at] < out.unit) continue;
      if (best < 0 || free[at] < free[static_cast<std::size_t>(best)]) best = g;
    }
    if (best < 0) return std::nullopt;
    auto at = static_cast<std::size_t>(best);
    free[at] = static_cast<std::int16_t>(free[at] - out.unit);
    ++out.take[at];
  }
  return out;
}

std::optional<GpuTake> choose_fraction(const NodeInfo& info, const NodeState& state,
                                       const Demand& demand) {
  GpuTake out{.unit = static_cast<std::int16_t>(device_milli(info, demand))};
  if (out.unit <= 0) return std::nullopt;
  for (int n = 0; n < demand.count; ++n) {
    int best = -1;
    for (int g = 0; g < kMaxGpusPerNode; ++g) {
      auto at = static_cast<std::size_t>(g);
      if ((info.usable >> g & 1) == 0 || out.take[at] != 0 || state.gpu[at] < out.unit) continue;
      if (best < 0 || state.gpu[at] < state.gpu[static_cast<std::size_t>(best)]) best = g;
    }
    if (best < 0) return std::nullopt;
    out.take[static_cast<std::size_t>(best)] = 1;
  }
  return out;
}

std::optional<GpuTake> choose_mig(const NodeInfo& info, const NodeState& state,
                                  const Demand& demand, MigFree free) {
  if (!fits_gpus(info, state, demand, Devices::kUsable)) return std::nullopt;
  GpuTake out;
  for (int n = 0; n < demand.count; ++n) {
    int best = -1;
    for (int g = 0; g < kMaxGpusPerNode; ++g) {
      auto at = static_cast<std::size_t>(g);
      if ((info.mig_usable >> g & 1) == 0 || free[at] == 0) continue;
      if (best < 0 || free[at] < free[static_cast<std::size_t>(best)]) best = g;
    }
    if (best < 0) return GpuTake{};  // counted by the node, but on no device we know
    --free[static_cast<std::size_t>(best)];
    ++out.take[static_cast<std::size_t>(best)];
  }
  return out;
}

}  // namespace

std::uint16_t choose_whole(const NodeInfo& info, std::uint16_t free, const Demand& demand,
                           std::uint16_t must) {
  unsigned open = free & ~unsigned{must};
  int devices = std::popcount(open);
  int count = demand.count - std::popcount(must);
  if (demand.count <= 0 || count < 0 || count > devices || (must & ~free) != 0) return 0;
  bool numa = numa_applies(info, demand);
  NumaServed served;
  if (numa && !(served = numa_serve(info, free, demand)).ok) return 0;
  if (count == devices) return free;
  if (count == 0) return !numa || served.admits(must) ? must : std::uint16_t{0};
  Groups cliques(info, [](const GpuSpec& g) { return g.nvlink_clique; });
  Groups numas(info, [](const GpuSpec& g) { return g.numa; });
  Groups switches(info, [](const GpuSpec& g) { return g.pcie_switch; });
  unsigned best = 0;
  std::array<int, 4> best_cost{INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
  bool dense = open == (1u << devices) - 1;  // the choice itself is the set
  unsigned end = 1u << devices;
  for (unsigned choice = (1u << count) - 1; choice < end; choice = next_choice(choice)) {
    unsigned set = must | (dense ? choice : deposit(choice, open));
    // Most subsets lose on the first measure, so the others are asked for only when it ties or
    // wins.
    int touched = cliques.touched(set);
    if (touched > best_cost[0]) continue;
    std::array<int, 4> cost{touched, numas.touched(set), 0, 0};
    if (touched == best_cost[0] && cost[1] > best_cost[1]) continue;
    cost[2] = switches.touched(set);
    cost[3] = cliques.left(set, free);
    if (cost > best_cost || (cost == best_cost && !indices_before(set, best))) continue;
    if (numa && !served.admits(static_cast<std::uint16_t>(set))) continue;
    best = set;
    best_cost = cost;
  }
  return static_cast<std::uint16_t>(best);
}

std::optional<GpuTake> choose_gpus(const NodeInfo& info, const NodeState& state,
                                   const Demand& demand, const MigFree& mig_free) {
  using Kind = GpuDemandSpec::Kind;
  if (demand.kind == Kind::kNone) return GpuTake{};
  if (demand.kind == Kind::kMig) return choose_mig(info, state, demand, mig_free);
  if (takes_shares(info, demand)) return choose_shares(info, state, demand);
  if (demand.kind != Kind::kWhole) return choose_fraction(info, state, demand);
  auto mask = choose_whole(info, static_cast<std::uint16_t>(state.whole & info.usable), demand);
  if (mask == 0) return std::nullopt;
  GpuTake out{.unit = kMilliPerGpu};
  for (std::size_t g = 0; g < kMaxGpusPerNode; ++g) out.take[g] = mask >> g & 1;
  return out;
}

std::vector<int> nvlink_cliques(const GpuInventory& inventory) {
  std::vector<std::vector<const GpuDevice*>> cliques;
  const auto linked = [](const GpuDevice& a, const GpuDevice& b) {
    auto to = static_cast<std::size_t>(b.index);
    return b.index >= 0 && to < a.nvlinks.size() && a.nvlinks[to] > 0;
  };
  std::vector<int> out;
  for (const GpuDevice& gpu : inventory.gpus) {
    bool any = std::any_of(inventory.gpus.begin(), inventory.gpus.end(), [&](const GpuDevice& o) {
      return &o != &gpu && (linked(gpu, o) || linked(o, gpu));
    });
    if (!any) {
      out.push_back(-1);
      continue;
    }
    std::size_t at = 0;
    while (at < cliques.size() &&
           !std::all_of(
               cliques[at].begin(), cliques[at].end(),
               [&](const GpuDevice* o) { return linked(gpu, *o) || linked(*o, gpu); })) {
      ++at;
    }
    if (at == cliques.size()) cliques.emplace_back();
    cliques[at].push_back(&gpu);
    out.push_back(static_cast<int>(at));
  }
  return out;
}

}  // namespace berth::model
