#include "node/allocate/preferred.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/random.h"

namespace berth::allocate {
namespace {

using Ids = std::vector<std::string>;

std::string gpu_id(int index) { return "GPU-" + std::to_string(index); }

// clique: GPUs with the same number are linked to one another; -1: no links.
struct Spot {
  int clique = -1, numa = -1, pcie = -1;
};

model::GpuInventory machine_of(const std::vector<Spot>& spots) {
  model::GpuInventory out;
  for (std::size_t i = 0; i < spots.size(); ++i) {
    model::GpuDevice gpu;
    gpu.index = static_cast<int>(i);
    gpu.uuid = gpu_id(gpu.index);
    gpu.numa = spots[i].numa;
    gpu.pcie_switch = spots[i].pcie;
    gpu.nvlinks.assign(spots.size(), 0);
    for (std::size_t j = 0; j < spots.size(); ++j) {
      if (i != j && spots[i].clique >= 0 && spots[i].clique == spots[j].clique) gpu.nvlinks[j] = 4;
    }
    out.gpus.push_back(std::move(gpu));
  }
  return out;
}

model::OfferedResource whole_of(const model::GpuInventory& machine) {
  model::OfferedResource out{.name = "nvidia.com/gpu"};
  for (const auto& gpu : machine.gpus) {
    out.devices.push_back({.id = gpu.uuid, .uuid = gpu.uuid, .gpu = gpu.index, .numa = gpu.numa});
  }
  return out;
}

model::OfferedResource shared_of(const model::GpuInventory& machine, int replicas) {
  model::OfferedResource out{.name = "nvidia.com/gpu", .replicas = replicas};
  for (const auto& gpu : machine.gpus) {
    for (int n = 0; n < replicas; ++n) {
      out.devices.push_back({.id = gpu.uuid + "::" + std::to_string(n),
                             .uuid = gpu.uuid,
                             .gpu = gpu.index,
                             .replica = n});
    }
  }
  return out;
}

Ids ids_of(const std::vector<int>& gpus) {
  Ids out;
  for (int gpu : gpus) out.push_back(gpu_id(gpu));
  return out;
}

Ids all_of(const model::OfferedResource& resource) {
  Ids out;
  for (const auto& device : resource.devices) out.push_back(device.id);
  return out;
}

Ids chosen(const Chooser& chooser, const Ask& ask, const std::vector<Hint>& hints = {}) {
  auto result = chooser.choose(ask, hints);
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  return result.ok() ? result->ids : Ids{};
}

// Two NUMA nodes of four, each with pairs under one switch; NVLink within a NUMA node.
std::vector<Spot> two_islands() {
  std::vector<Spot> out;
  for (int i = 0; i < 8; ++i) out.push_back({i / 4, i / 4, i / 2});
  return out;
}

TEST(Preferred, WholeGpusKeepIslandsWhole) {
  const auto machine = machine_of(two_islands());
  const Chooser chooser(machine, whole_of(machine), false);
  EXPECT_EQ(chosen(chooser, {all_of(whole_of(machine)), {}, 4}), ids_of({0, 1, 2, 3}));
  EXPECT_EQ(chosen(chooser, {ids_of({7, 0, 6, 1, 5, 4, 3}), {}, 4}), ids_of({4, 5, 6, 7}));
  EXPECT_EQ(chosen(chooser, {ids_of({1, 2, 6, 7}), {}, 2}), ids_of({6, 7})) << "one switch";
  EXPECT_EQ(chosen(chooser, {ids_of({0, 1, 2, 3, 5, 6, 7}), {}, 1}), ids_of({5}))
      << "from the island that is broken already";
}

TEST(Preferred, MustIncludeComesFirstAndIsCompletedBest) {
  const auto machine = machine_of(two_islands());
  const Chooser chooser(machine, whole_of(machine), false);
  const Ids all = all_of(whole_of(machine));
  EXPECT_EQ(chosen(chooser, {all, {gpu_id(6)}, 2}), ids_of({6, 7}));
  EXPECT_EQ(chosen(chooser, {all, {gpu_id(6)}, 1}), ids_of({6}));
  EXPECT_EQ(chosen(chooser, {all, ids_of({5, 2}), 4}), ids_of({2, 5, 3, 4}));
  EXPECT_EQ(chosen(chooser, {ids_of({1}), {gpu_id(6)}, 2}), ids_of({6, 1}))
      << "what must be included counts as on offer";
}

TEST(Preferred, UnknownTopologyGivesTheLowestIndices) {
  const auto machine = machine_of(std::vector<Spot>(6));
  const Chooser chooser(machine, whole_of(machine), false);
  EXPECT_EQ(chosen(chooser, {ids_of({5, 4, 2, 1}), {}, 2}), ids_of({1, 2}));
}

TEST(Preferred, Refused) {
  const auto machine = machine_of(two_islands());
  const Chooser chooser(machine, whole_of(machine), false);
  EXPECT_TRUE(chosen(chooser, {ids_of({1}), {}, 0}).empty());
  EXPECT_FALSE(chooser.choose({ids_of({1}), {}, 2}, {}).ok());
  EXPECT_FALSE(chooser.choose({ids_of({1}), {}, -1}, {}).ok());
  EXPECT_FALSE(chooser.choose({ids_of({1, 2}), ids_of({1, 2}), 1}, {}).ok());
  auto unknown = chooser.choose({{"GPU-99"}, {}, 1}, {});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message(), "nvidia.com/gpu: there is no device \"GPU-99\"");
}

// ---- against exhaustive search, with a score of the test's own ----

struct Score {
  int cliques, numas, switches, left;
  std::vector<int> gpus;
  friend auto operator<=>(const Score&, const Score&) = default;
};

template <auto Member>
int distinct(const std::vector<Spot>& spots, const std::vector<int>& gpus) {
  std::set<int> seen;
  int unknown = 0;
  for (int gpu : gpus) {
    const int at = spots[static_cast<std::size_t>(gpu)].*Member;
    if (at < 0) {
      ++unknown;
    } else {
      seen.insert(at);
    }
  }
  return unknown + static_cast<int>(seen.size());
}

// docs/placement.md, "Which GPUs", word by word.
Score score(const std::vector<Spot>& spots, const std::set<int>& open, std::vector<int> gpus) {
  std::sort(gpus.begin(), gpus.end());
  std::set<int> touched;
  for (int gpu : gpus) touched.insert(spots[static_cast<std::size_t>(gpu)].clique);
  touched.erase(-1);
  int left = 0;
  for (int gpu : open) {
    if (touched.contains(spots[static_cast<std::size_t>(gpu)].clique) &&
        !std::binary_search(gpus.begin(), gpus.end(), gpu)) {
      ++left;
    }
  }
  const int cliques = distinct<&Spot::clique>(spots, gpus);
  const int numas = distinct<&Spot::numa>(spots, gpus);
  const int switches = distinct<&Spot::pcie>(spots, gpus);
  return {cliques, numas, switches, left, std::move(gpus)};
}

std::vector<int> indices_in(unsigned mask) {
  std::vector<int> out;
  for (int i = 0; i < 32; ++i) {
    if ((mask >> i & 1) != 0) out.push_back(i);
  }
  return out;
}

void compare_with_exhaustive(Random& random, int gpus) {
  // A clique of one is none: links need two ends.
  std::vector<Spot> spots(static_cast<std::size_t>(gpus));
  for (Spot& spot : spots) {
    spot.clique = random.chance(1, 6) ? -1 : static_cast<int>(random.below(4));
    spot.numa = random.chance(1, 8) ? -1 : static_cast<int>(random.below(3));
    spot.pcie = random.chance(1, 8) ? -1 : static_cast<int>(random.below(6));
  }
  for (Spot& spot : spots) {
    const auto same = [&](const Spot& o) { return o.clique == spot.clique; };
    if (std::count_if(spots.begin(), spots.end(), same) == 1) spot.clique = -1;
  }
  unsigned open = 0, must = 0;
  for (int i = 0; i < gpus; ++i) {
    if (random.chance(3, 4)) open |= 1u << i;
  }
  for (int i : indices_in(open)) {
    if (random.chance(1, 5)) must |= 1u << i;
  }
  const int least = std::max(1, std::popcount(must));
  if (std::popcount(open) < least) return;
  const int size = static_cast<int>(random.between(least, std::popcount(open)));

  const auto machine = machine_of(spots);
  Ids offered = ids_of(indices_in(open));
  random.shuffle(offered);
  const Ids got =
      chosen(Chooser(machine, whole_of(machine), false), {offered, ids_of(indices_in(must)), size});
  unsigned mask = 0;
  for (const std::string& id : got) mask |= 1u << std::stoi(id.substr(4));
  ASSERT_EQ(std::popcount(mask), size);
  ASSERT_EQ(got.size(), static_cast<std::size_t>(size));
  ASSERT_EQ(mask & ~open, 0u);
  ASSERT_EQ(must & ~mask, 0u);

  const std::vector<int> open_list = indices_in(open);
  const std::set<int> open_set(open_list.begin(), open_list.end());
  const Score own = score(spots, open_set, indices_in(mask));
  for (unsigned other = 0; other < 1u << gpus; ++other) {
    if ((other & ~open) != 0 || (must & ~other) != 0 || std::popcount(other) != size) continue;
    ASSERT_LE(own, score(spots, open_set, indices_in(other)))
        << "seed " << random.seed() << ": " << mask << " is worse than " << other;
  }
}

TEST(PreferredProperty, AsGoodAsExhaustiveSearch) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    compare_with_exhaustive(random, static_cast<int>(random.between(1, 9)));
    if (HasFatalFailure()) return;
  }
}

TEST(PreferredProperty, AsGoodAsExhaustiveSearchOf16) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Random random(1000 + seed);
    compare_with_exhaustive(random, static_cast<int>(random.between(13, 16)));
    if (HasFatalFailure()) return;
  }
}

// ---- more than 16 ----

TEST(Preferred, MoreThan16OnOfferAreChosenCliqueByClique) {
  std::vector<Spot> spots;
  for (int i = 0; i < 24; ++i) spots.push_back({i / 8, i / 8, i / 4});
  const auto machine = machine_of(spots);
  const auto resource = whole_of(machine);
  const Chooser chooser(machine, resource, false);
  Ids offered = all_of(resource);
  EXPECT_EQ(chosen(chooser, {offered, {}, 8}), ids_of({0, 1, 2, 3, 4, 5, 6, 7}));
  offered.erase(std::find(offered.begin(), offered.end(), gpu_id(9)));
  EXPECT_EQ(chosen(chooser, {offered, {}, 1}), ids_of({8})) << "from the smallest that covers it";
  EXPECT_EQ(chosen(chooser, {offered, {gpu_id(20)}, 3}), ids_of({20, 16, 17}));
  EXPECT_EQ(chosen(chooser, {offered, {}, 23}).size(), 23u);
  const Ids many = chosen(chooser, {offered, {}, 15});
  EXPECT_EQ(many.size(), 15u);
  EXPECT_EQ(std::set<std::string>(many.begin(), many.end()).size(), 15u);
}

TEST(Preferred, A24GpuNodeWith16OnOfferIsExact) {
  std::vector<Spot> spots;
  for (int i = 0; i < 24; ++i) spots.push_back({i / 8, i / 8, i / 4});
  const auto machine = machine_of(spots);
  const Chooser chooser(machine, whole_of(machine), false);
  EXPECT_EQ(chosen(chooser, {ids_of({1, 2, 3, 17, 18, 20, 21, 22, 23}), {}, 4}),
            ids_of({20, 21, 22, 23}));
}

// ---- shares and MIG ----

TEST(Preferred, SharesAreDistributed) {
  const auto machine = machine_of(std::vector<Spot>(3));
  const Chooser chooser(machine, shared_of(machine, 4), false);
  EXPECT_EQ(chosen(chooser, {all_of(shared_of(machine, 4)), {}, 4}),
            (Ids{"GPU-0::0", "GPU-0::1", "GPU-1::0", "GPU-2::0"}));
  // GPU 0 has one left of four, GPU 1 three, GPU 2 two.
  const Ids open = {"GPU-0::3", "GPU-1::0", "GPU-1::1", "GPU-1::3", "GPU-2::1", "GPU-2::2"};
  EXPECT_EQ(chosen(chooser, {open, {}, 1}), (Ids{"GPU-1::0"}));
  EXPECT_EQ(chosen(chooser, {open, {}, 2}), (Ids{"GPU-1::0", "GPU-2::1"}))
      << "after one, two are handed out on both: the one not touched yet";
  EXPECT_EQ(chosen(chooser, {open, {"GPU-2::1"}, 2}), (Ids{"GPU-2::1", "GPU-1::0"}));
}

TEST(Preferred, SharesArePacked) {
  const auto machine = machine_of(std::vector<Spot>(3));
  const Chooser chooser(machine, shared_of(machine, 4), true);
  EXPECT_EQ(chosen(chooser, {all_of(shared_of(machine, 4)), {}, 3}),
            (Ids{"GPU-0::0", "GPU-0::1", "GPU-0::2"}));
  const Ids open = {"GPU-0::3", "GPU-1::0", "GPU-1::1", "GPU-1::3", "GPU-2::1", "GPU-2::2"};
  EXPECT_EQ(chosen(chooser, {open, {}, 3}), (Ids{"GPU-0::3", "GPU-2::1", "GPU-2::2"}));
}

TEST(Preferred, InstancesCountByTheirGpu) {
  const auto machine = machine_of(std::vector<Spot>(2));
  model::OfferedResource resource{.name = "nvidia.com/mig-1g.18gb", .profile = "1g.18gb"};
  for (int gpu = 0; gpu < 2; ++gpu) {
    for (int j = 0; j < 3; ++j) {
      const std::string id = "MIG-" + std::to_string(gpu) + "-" + std::to_string(j);
      resource.devices.push_back({.id = id, .uuid = id, .gpu = gpu, .mig = j});
    }
  }
  const Ids open = {"MIG-0-0", "MIG-0-2", "MIG-1-0", "MIG-1-1", "MIG-1-2"};
  EXPECT_EQ(chosen(Chooser(machine, resource, false), {open, {}, 2}), (Ids{"MIG-0-0", "MIG-1-0"}));
  EXPECT_EQ(chosen(Chooser(machine, resource, true), {open, {}, 2}), (Ids{"MIG-0-0", "MIG-0-2"}));
}

TEST(Preferred, TenThousandSharesAreNotSlow) {
  const auto machine = machine_of(std::vector<Spot>(10));
  const auto resource = shared_of(machine, 1000);
  EXPECT_EQ(chosen(Chooser(machine, resource, false), {all_of(resource), {}, 9999}).size(), 9999u);
}

// ---- hints ----

Hint hint(const std::string& uid, std::vector<int> gpus, int size) {
  return {uid, std::move(gpus), "nvidia.com/gpu", size};
}

TEST(Hints, FollowedWhereTheyAreOnOffer) {
  const auto machine = machine_of(two_islands());
  const Chooser chooser(machine, whole_of(machine), false);
  const Ids all = all_of(whole_of(machine));
  auto got = chooser.choose({all, {}, 2}, {hint("a", {7, 5}, 2)});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->ids, ids_of({5, 7}));
  EXPECT_EQ(got->followed, "a");
  got = chooser.choose({all, {gpu_id(7)}, 2}, {hint("a", {7, 5}, 2)});
  EXPECT_EQ(got->ids, ids_of({7, 5}));
  EXPECT_EQ(got->followed, "a");
}

TEST(Hints, LeftAsideWhereTheyDoNotFit) {
  const auto machine = machine_of(two_islands());
  const Chooser chooser(machine, whole_of(machine), false);
  const Ids all = all_of(whole_of(machine));
  const auto not_followed = [&](const Ask& ask, const std::vector<Hint>& hints) {
    auto got = chooser.choose(ask, hints);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(got->followed, "");
    EXPECT_EQ(got->ids, chosen(chooser, ask));
  };
  not_followed({all, {}, 2}, {hint("a", {7, 5, 3}, 3)});                    // another size
  not_followed({ids_of({0, 1, 5}), {}, 2}, {hint("a", {7, 5}, 2)});         // not on offer
  not_followed({all, {gpu_id(1)}, 2}, {hint("a", {7, 5}, 2)});              // must have another
  not_followed({all, {}, 2}, {{"a", {7, 5}, "nvidia.com/gpu.shared", 2}});  // another resource
  not_followed({all, {}, 2}, {hint("a", {7, 99}, 2)});                      // no such GPU
  not_followed({all, {}, 2}, {hint("a", {7, 7}, 2)});                       // one GPU twice
  not_followed({all, {}, 2}, {hint("a", {7}, 2)});                          // too few
  not_followed({all, {}, 0}, {hint("a", {}, 0)});
}

TEST(Hints, SeveralMustAgree) {
  const auto machine = machine_of(two_islands());
  const Chooser chooser(machine, whole_of(machine), false);
  const Ids all = all_of(whole_of(machine));
  auto got = chooser.choose({all, {}, 2}, {hint("a", {7, 5}, 2), hint("b", {0, 1}, 2)});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->followed, "") << "the kubelet does not say whose container asks";
  got = chooser.choose({all, {}, 2},
                       {hint("x", {0, 1, 2}, 3), hint("a", {7, 5}, 2), hint("b", {5, 7}, 2)});
  EXPECT_EQ(got->ids, ids_of({5, 7}));
  EXPECT_EQ(got->followed, "a");
  got = chooser.choose({ids_of({2, 3, 5, 7}), {}, 2}, {hint("a", {7, 5}, 2), hint("b", {0, 1}, 2)});
  EXPECT_EQ(got->followed, "a") << "b's GPUs are gone already";
}

TEST(Hints, OfSeveralContainersTheBestPartIsTaken) {
  const auto machine = machine_of(two_islands());
  const Chooser chooser(machine, whole_of(machine), false);
  auto got = chooser.choose({all_of(whole_of(machine)), {}, 2}, {hint("a", {1, 4, 6, 7}, 2)});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->ids, ids_of({6, 7}));
  got = chooser.choose({ids_of({0, 1, 2, 4, 5}), {}, 2}, {hint("a", {1, 4, 6, 7}, 2)});
  EXPECT_EQ(got->ids, ids_of({1, 4})) << "the second container gets the rest";
}

TEST(Hints, SharesByGpu) {
  const auto machine = machine_of(std::vector<Spot>(3));
  const Chooser chooser(machine, shared_of(machine, 3), false);
  const Ids all = all_of(shared_of(machine, 3));
  auto got = chooser.choose({all, {}, 3}, {hint("a", {2, 1, 2}, 3)});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->ids, (Ids{"GPU-1::0", "GPU-2::0", "GPU-2::1"}));
  EXPECT_EQ(got->followed, "a");
  got = chooser.choose({{"GPU-0::0", "GPU-0::1", "GPU-1::1", "GPU-2::2"}, {}, 3},
                       {hint("a", {2, 1, 2}, 3)});
  EXPECT_EQ(got->followed, "") << "GPU 2 has one share left, not two";
}

}  // namespace
}  // namespace berth::allocate
