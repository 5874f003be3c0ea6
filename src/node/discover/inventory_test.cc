#include <gtest/gtest.h>

#include "node/discover/gpu_node.h"
#include "node/discover/inventory_check.h"
#include "text/json.h"

namespace berth::discover {
namespace {

model::GpuInventory eight() {
  model::GpuInventory inventory;
  inventory.driver_version = "580.159.04";
  inventory.cuda_major = 13;
  for (int i = 0; i < 8; ++i) {
    model::GpuDevice& gpu = inventory.gpus.emplace_back();
    gpu.index = gpu.minor = i;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.name = "NVIDIA H200";
    gpu.pci_bus_id = "0000:1" + std::to_string(i) + ":00.0";
    gpu.memory_mib = 143'771;
    gpu.numa = i / 4;
    gpu.pcie_switch = i / 2;
  }
  return inventory;
}

model::MigInstance instance(const std::string& uuid, int gi, int start, int slots) {
  model::MigInstance mig;
  mig.uuid = uuid;
  mig.profile = "1g.18gb";
  mig.gpu_instance = gi;
  mig.start = start;
  mig.slots = slots;
  return mig;
}

TEST(InventoryCheck, SaysWhatIsWrongAndWhere) {
  EXPECT_TRUE(check_inventory({}).ok());
  EXPECT_TRUE(check_inventory(eight()).ok());
  struct Case {
    std::function<void(model::GpuInventory&)> harm;
    const char* text;
  };
  const Case cases[] = {
      {[](auto& i) { i.gpus[1].uuid = "GPU-0"; }, "gpus[1].uuid: \"GPU-0\" twice"},
      {[](auto& i) { i.gpus[3].uuid = ""; }, "gpus[3].uuid: found \"\", want 1..63"},
      {[](auto& i) { i.gpus[3].uuid = std::string(64, 'a'); }, "gpus[3].uuid: found"},
      {[](auto& i) { i.gpus[3].uuid = "a,b"; }, "gpus[3].uuid: found \"a,b\""},
      {[](auto& i) { i.gpus[2].index = 1; }, "gpus[2].index: found 1 after 1"},
      {[](auto& i) { i.gpus[7].index = 64; }, "gpus[7].index: found 64, want 0..63"},
      {[](auto& i) { i.gpus[0].index = -1; }, "gpus[0].index: found -1"},
      {[](auto& i) { i.gpus[0].name = "a\nb"; }, "gpus[0].name: found"},
      {[](auto& i) { i.gpus[1].pci_bus_id = i.gpus[0].pci_bus_id; }, "gpus[1].pciBusId:"},
      {[](auto& i) { i.gpus[0].nvlinks.assign(65, 1); }, "gpus[0].nvlinks: 65 entries"},
      {[](auto& i) { i.gpus[0].mig = {instance("MIG-0", 1, 0, 1)}; }, "MIG mode is off"},
      {[](auto& i) {
         i.gpus[0].mig_enabled = true;
         i.gpus[0].mig = {instance("MIG-0", 1, 0, 4), instance("MIG-1", 2, 3, 1)};
       },
       "gpus[0].mig[1].start: overlaps gpus[0].mig[0]"},
      {[](auto& i) {
         i.gpus[0].mig_enabled = true;
         i.gpus[0].mig = {instance("GPU-0", 1, 0, 4)};
       },
       "gpus[0].mig[0].uuid: \"GPU-0\" twice"},
  };
  for (const Case& c : cases) {
    model::GpuInventory inventory = eight();
    c.harm(inventory);
    const Status status = check_inventory(inventory);
    ASSERT_FALSE(status.ok()) << c.text;
    EXPECT_NE(status.error().to_string().find(c.text), std::string::npos)
        << status.error().to_string();
  }
  // Two compute instances of one GPU instance lie at the same place.
  model::GpuInventory shared = eight();
  shared.gpus[0].mig_enabled = true;
  shared.gpus[0].mig = {instance("MIG-0", 1, 0, 4), instance("MIG-1", 1, 0, 4)};
  shared.gpus[0].mig[1].compute_instance = 1;
  EXPECT_TRUE(check_inventory(shared).ok());
}

TEST(GpuNode, FromWhatWasFound) {
  model::GpuInventory inventory = eight();
  // Two islands of three, and two GPUs on their own; the second island has one-sided reports.
  auto link = [&](int a, int b) {
    auto& links = inventory.gpus[static_cast<std::size_t>(a)].nvlinks;
    links.resize(8, 0);
    links[static_cast<std::size_t>(b)] = 4;
  };
  link(1, 2), link(2, 1), link(2, 4), link(4, 2), link(5, 6), link(6, 7);
  inventory.gpus[3].mig_enabled = true;
  inventory.gpus[3].mig = {instance("MIG-0", 1, 0, 1), instance("MIG-1", 2, 1, 1),
                           instance("MIG-2", 3, 2, 1)};
  inventory.gpus[3].mig[2].profile = "1g.18gb+me";
  inventory.gpus[0].name = "Tesla V100-SXM2 (32GB)";
  model::HostFacts host;
  host.nics = {{"mlx5_0", "0000:20:00.0", "InfiniBand", 1, 3}};
  std::vector<GpuStanding> standing(8);
  standing[1] = {false, "Xid79", 4, {"uid-1", "uid-2"}};

  const kinds::GpuNode node = gpu_node("n1", inventory, host, standing);
  std::vector<int> cliques;
  for (const auto& gpu : node.gpus) cliques.push_back(gpu.gpu.nvlink_clique);
  EXPECT_EQ(cliques, (std::vector<int>{-1, 0, 0, -1, 0, 1, 1, 1}));
  EXPECT_EQ(node.gpus[0].gpu.model, "Tesla-V100-SXM2-32GB");
  EXPECT_EQ(node.gpus[2].gpu.model, "NVIDIA-H200");
  EXPECT_EQ(node.gpus[1].gpu.health, model::Health::kUnhealthy);
  EXPECT_EQ(node.gpus[1].gpu.health_reason, "Xid79");
  EXPECT_EQ(node.gpus[1].shares, 4);
  EXPECT_EQ(node.gpus[1].holders.size(), 2u);
  EXPECT_EQ(node.gpus[3].gpu.mig, (std::vector<model::MigSlots>{{"nvidia.com/mig-1g.18gb", 2},
                                                                {"nvidia.com/mig-1g.18gb.me", 1}}));
  EXPECT_EQ(node.driver_version, "580.159.04");
  EXPECT_EQ(node.cuda_version, "13.0");
  ASSERT_EQ(node.nics.size(), 1u);
  EXPECT_EQ(node.nics[0].pcie_switch, 3);

  // The API server takes it: what is written reads back the same.
  text::JsonWriter out;
  encode(node, out);
  Result<text::Document> document = text::parse_json(out.text());
  ASSERT_TRUE(document.ok());
  text::Decoder d;
  kinds::GpuNode back;
  decode(document->root(), back, d);
  EXPECT_TRUE(d.ok());
  EXPECT_EQ(back, node);
}

TEST(GpuNode, LeavesOutWhatTheObjectCannotHold) {
  model::GpuInventory inventory;
  for (int i = 0; i < 20; ++i) {
    inventory.gpus.push_back(eight().gpus[0]);
    inventory.gpus.back().index = i;
  }
  EXPECT_EQ(gpu_node("n1", inventory, {}, {}).gpus.size(), 16u);
}

}  // namespace
}  // namespace berth::discover
