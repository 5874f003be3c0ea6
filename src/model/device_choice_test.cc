#include "model/device_choice.h"

#include <gtest/gtest.h>

#include <utility>

namespace berth::model {
namespace {

using Pairs = std::vector<std::pair<int, int>>;

GpuInventory linked_gpus(int gpus, const Pairs& links) {
  GpuInventory out;
  for (int i = 0; i < gpus; ++i) {
    GpuDevice gpu;
    gpu.index = i;
    gpu.nvlinks.assign(static_cast<std::size_t>(gpus), 0);
    out.gpus.push_back(std::move(gpu));
  }
  for (auto [a, b] : links) {
    out.gpus[static_cast<std::size_t>(a)].nvlinks[static_cast<std::size_t>(b)] = 2;
    out.gpus[static_cast<std::size_t>(b)].nvlinks[static_cast<std::size_t>(a)] = 2;
  }
  return out;
}

TEST(NvlinkCliques, SwitchBridgesAndMesh) {
  EXPECT_TRUE(nvlink_cliques({}).empty());
  EXPECT_EQ(nvlink_cliques(linked_gpus(3, {})), (std::vector<int>{-1, -1, -1}));
  EXPECT_EQ(nvlink_cliques(linked_gpus(3, {{0, 1}, {0, 2}, {1, 2}})), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(nvlink_cliques(linked_gpus(5, {{0, 2}, {3, 4}})), (std::vector<int>{0, -1, 0, 1, 1}));
  const Pairs mesh = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}, {4, 5}, {4, 6},
                      {4, 7}, {5, 6}, {5, 7}, {6, 7}, {0, 4}, {1, 5}, {2, 6}, {3, 7}};
  EXPECT_EQ(nvlink_cliques(linked_gpus(8, mesh)), (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1}));
}

TEST(NvlinkCliques, ShortListsAndOneSidedLinks) {
  GpuInventory two = linked_gpus(2, {});
  two.gpus[0].nvlinks = {};
  two.gpus[1].nvlinks = {4};
  EXPECT_EQ(nvlink_cliques(two), (std::vector<int>{0, 0}));
}

NodeInfo two_cliques() {
  NodeInfo info;
  for (int i = 0; i < 8; ++i) {
    GpuSpec gpu;
    gpu.index = i;
    gpu.nvlink_clique = i / 4;
    gpu.numa = i / 4;
    gpu.pcie_switch = i / 2;
    info.gpus.push_back(gpu);
  }
  return info;
}

Demand whole_devices(int count) {
  Demand out;
  out.kind = GpuDemandSpec::Kind::kWhole;
  out.count = count;
  return out;
}

TEST(ChooseWhole, HoldsWhatItMust) {
  const NodeInfo info = two_cliques();
  EXPECT_EQ(choose_whole(info, 0xff, whole_devices(2)), 0b11);
  EXPECT_EQ(choose_whole(info, 0xff, whole_devices(2), 0b1000'0000), 0b1100'0000);
  EXPECT_EQ(choose_whole(info, 0xff, whole_devices(1), 0b1000'0000), 0b1000'0000);
  EXPECT_EQ(choose_whole(info, 0xff, whole_devices(3), 0b1000'0001), 0b1000'0011);
  EXPECT_EQ(choose_whole(info, 0b1111, whole_devices(4), 0b1), 0b1111);
  EXPECT_EQ(choose_whole(info, 0xff, whole_devices(1), 0b11), 0) << "more than are asked for";
  EXPECT_EQ(choose_whole(info, 0x0f, whole_devices(2), 0b1'0000), 0) << "not free";
}

}  // namespace
}  // namespace berth::model
