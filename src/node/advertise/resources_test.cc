#include "node/advertise/resources.h"

#include <gtest/gtest.h>

namespace berth::advertise {
namespace {

using Words = std::vector<std::string>;
using model::GpuDevice;
using model::GpuInventory;

GpuDevice offered_gpu(int index, const std::string& name = "NVIDIA H200") {
  GpuDevice gpu;
  gpu.index = index;
  gpu.uuid = "GPU-" + std::to_string(index);
  gpu.name = name;
  gpu.numa = index / 2;
  return gpu;
}

GpuDevice mig_gpu(int index, const Words& profiles) {
  GpuDevice gpu = offered_gpu(index);
  gpu.mig_capable = gpu.mig_enabled = true;
  for (std::size_t j = 0; j < profiles.size(); ++j) {
    model::MigInstance mig;
    mig.uuid = "MIG-" + std::to_string(index) + "-" + std::to_string(j);
    mig.profile = profiles[j];
    mig.start = static_cast<int>(j);
    gpu.mig.push_back(mig);
  }
  return gpu;
}

GpuInventory inventory_of(std::vector<GpuDevice> gpus) { return {.gpus = std::move(gpus)}; }

// "nvidia.com/gpu: GPU-0 GPU-1", one line for each resource.
Words offered(const GpuInventory& inventory, const PluginConfig& config) {
  auto result = offer(inventory, config);
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  Words out;
  if (!result.ok()) return out;
  for (const auto& resource : result->resources) {
    std::string line = resource.name + ":";
    for (const auto& device : resource.devices) line += " " + device.id;
    out.push_back(line);
  }
  return out;
}

Words warnings(const GpuInventory& inventory, const PluginConfig& config) {
  auto result = offer(inventory, config);
  EXPECT_TRUE(result.ok());
  return result.ok() ? result->warnings : Words{};
}

std::string refusal(const GpuInventory& inventory, const PluginConfig& config) {
  auto result = offer(inventory, config);
  EXPECT_FALSE(result.ok());
  return result.ok() ? "" : result.error().to_string();
}

PluginConfig strategy(MigStrategy mig) {
  PluginConfig out;
  out.mig = mig;
  return out;
}

PluginConfig shared_by(std::vector<SharedResource> rules) {
  PluginConfig out;
  out.sharing = Sharing::kTimeSlicing;
  out.shared = std::move(rules);
  return out;
}

TEST(Resources, NothingToOffer) {
  auto result = offer({}, {});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->resources.empty());
}

TEST(Resources, NoneOffersEveryGpuAsAWhole) {
  const auto machine = inventory_of({offered_gpu(0), mig_gpu(1, {"1g.18gb", "2g.35gb"})});
  EXPECT_EQ(offered(machine, strategy(MigStrategy::kNone)), (Words{"nvidia.com/gpu: GPU-0 GPU-1"}));
  auto result = offer(machine, {});
  const model::OfferedResource& resource = result->resources[0];
  EXPECT_EQ(resource.profile, "");
  EXPECT_EQ(resource.replicas, 1);
  EXPECT_FALSE(resource.at_most_one);
  EXPECT_EQ(resource.devices[0],
            (model::OfferedDevice{.id = "GPU-0", .uuid = "GPU-0", .gpu = 0, .numa = 0}));
}

TEST(Resources, SingleOffersInstancesAsGpus) {
  const auto machine = inventory_of({mig_gpu(0, {"3g.71gb", "3g.71gb"}), mig_gpu(2, {"3g.71gb"})});
  EXPECT_EQ(offered(machine, strategy(MigStrategy::kSingle)),
            (Words{"nvidia.com/gpu: MIG-0-0 MIG-0-1 MIG-2-0"}));
  auto result = offer(machine, strategy(MigStrategy::kSingle));
  EXPECT_EQ(result->resources[0].profile, "3g.71gb");
  EXPECT_EQ(
      result->resources[0].devices[2],
      (model::OfferedDevice{.id = "MIG-2-0", .uuid = "MIG-2-0", .gpu = 2, .mig = 0, .numa = 1}));
  EXPECT_EQ(offered(inventory_of({offered_gpu(0), offered_gpu(1)}), strategy(MigStrategy::kSingle)),
            (Words{"nvidia.com/gpu: GPU-0 GPU-1"}));
}

TEST(Resources, SingleRefusesWhatDiffers) {
  const PluginConfig single = strategy(MigStrategy::kSingle);
  EXPECT_EQ(refusal(inventory_of({offered_gpu(0), mig_gpu(1, {"1g.18gb"})}), single),
            "MIG strategy single: GPU 1 has MIG enabled and GPU 0 has not; make them equal or use "
            "the strategy mixed");
  EXPECT_EQ(refusal(inventory_of({mig_gpu(0, {"1g.18gb"}), mig_gpu(1, {"2g.35gb"})}), single),
            "MIG strategy single: instances differ, 1g.18gb and 2g.35gb on GPU 1; make them equal "
            "or use the strategy mixed");
  EXPECT_EQ(refusal(inventory_of({mig_gpu(0, {"1g.18gb"}), mig_gpu(3, {})}), single),
            "MIG strategy single: GPU 3 has MIG enabled and no instances; make some or disable "
            "MIG");
  auto uneven = inventory_of({mig_gpu(0, {"1g.18gb", "1g.18gb"})});
  uneven.gpus[0].mig[1].multiprocessors = 16;
  EXPECT_NE(refusal(uneven, single), "");
}

TEST(Resources, MixedOffersEachProfileByName) {
  const auto machine = inventory_of(
      {offered_gpu(0), mig_gpu(1, {"1g.18gb", "1g.18gb+me", "2g.35gb"}), mig_gpu(2, {"1g.18gb"})});
  EXPECT_EQ(offered(machine, strategy(MigStrategy::kMixed)),
            (Words{"nvidia.com/gpu: GPU-0", "nvidia.com/mig-1g.18gb: MIG-1-0 MIG-2-0",
                   "nvidia.com/mig-1g.18gb.me: MIG-1-1", "nvidia.com/mig-2g.35gb: MIG-1-2"}));
}

TEST(Resources, MixedWarnsAboutWhatIsNotOffered) {
  const auto machine = inventory_of({mig_gpu(0, {}), mig_gpu(1, {"1c.3g.71gb", "3g.71gb"})});
  const PluginConfig mixed = strategy(MigStrategy::kMixed);
  EXPECT_EQ(offered(machine, mixed), (Words{"nvidia.com/mig-3g.71gb: MIG-1-1"}));
  const Words found = warnings(machine, mixed);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], "GPU 0 has MIG enabled and no instances: nothing of it is offered");
  EXPECT_EQ(found[1].find("MIG instance MIG-1-0 (1c.3g.71gb)"), 0u);
  PluginConfig named = mixed;
  named.migs = {{"1c.*", "nvidia.com/slice"}};
  EXPECT_EQ(offered(machine, named),
            (Words{"nvidia.com/mig-3g.71gb: MIG-1-1", "nvidia.com/slice: MIG-1-0"}));
}

TEST(Resources, NamesByModel) {
  const auto machine =
      inventory_of({offered_gpu(0, "NVIDIA H200"), offered_gpu(1, "NVIDIA H100 80GB HBM3"),
                    offered_gpu(2, "NVIDIA L4"), offered_gpu(3, "NVIDIA A100-SXM4-40GB")});
  PluginConfig config;
  config.gpus = {{"*H100*", "nvidia.com/h100"},
                 {"NVIDIA-A100-SXM4-40GB", "nvidia.com/a100"},  // as the label spells it
                 {"*H?00*", "nvidia.com/other"},
                 {"H200", "nvidia.com/part"},
                 {"*L4", "nvidia.com/l4"}};
  EXPECT_EQ(offered(machine, config), (Words{"nvidia.com/a100: GPU-3", "nvidia.com/gpu: GPU-0",
                                             "nvidia.com/h100: GPU-1", "nvidia.com/l4: GPU-2"}));
  const Words found = warnings(machine, config);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0],
            "resources.gpus[2]: the pattern \"*H?00*\" names nothing that is not named before it");
}

TEST(Resources, PatternsOfSeveralStars) {
  const auto machine = inventory_of({offered_gpu(0, "NVIDIA H100 80GB HBM3")});
  for (const char* yes : {"*", "**", "N*3", "*H1*80*3", "NVIDIA H100 80GB HBM3*", "*IDIA*"}) {
    PluginConfig config;
    config.gpus = {{yes, "nvidia.com/x"}};
    EXPECT_EQ(offered(machine, config), (Words{"nvidia.com/x: GPU-0"})) << yes;
  }
  for (const char* no : {"H100", "N*2", "*H1*80*30", "NVIDIA", "*H100*H100*"}) {
    PluginConfig config;
    config.gpus = {{no, "nvidia.com/x"}};
    EXPECT_EQ(offered(machine, config), (Words{"nvidia.com/gpu: GPU-0"})) << no;
  }
}

TEST(Resources, OneNameForGpusAndInstancesIsRefused) {
  PluginConfig config = strategy(MigStrategy::kMixed);
  config.migs = {{"*", "nvidia.com/gpu"}};
  EXPECT_EQ(refusal(inventory_of({offered_gpu(0), mig_gpu(1, {"1g.18gb"})}), config),
            "the resource nvidia.com/gpu would hold whole GPUs and MIG instances; give them "
            "different names");
  EXPECT_EQ(warnings(inventory_of({mig_gpu(1, {"1g.18gb", "2g.35gb"})}), config),
            (Words{"the resource nvidia.com/gpu holds MIG instances of 1g.18gb and 2g.35gb"}));
}

TEST(Resources, SharesOfEveryGpu) {
  const auto machine = inventory_of({offered_gpu(0), offered_gpu(1)});
  PluginConfig config = shared_by({{.name = "nvidia.com/gpu", .replicas = 2}});
  EXPECT_EQ(offered(machine, config),
            (Words{"nvidia.com/gpu: GPU-0::0 GPU-0::1 GPU-1::0 GPU-1::1"}));
  auto result = offer(machine, config);
  EXPECT_EQ(result->resources[0].replicas, 2);
  EXPECT_EQ(
      result->resources[0].devices[1],
      (model::OfferedDevice{.id = "GPU-0::1", .uuid = "GPU-0", .gpu = 0, .replica = 1, .numa = 0}));
  config.rename_by_default = config.fail_requests_over_one = true;
  result = offer(machine, config);
  ASSERT_EQ(result->resources.size(), 1u);
  EXPECT_EQ(result->resources[0].name, "nvidia.com/gpu.shared");
  EXPECT_TRUE(result->resources[0].at_most_one);
  config.shared[0].rename = "nvidia.com/slice";
  EXPECT_EQ(offer(machine, config)->resources[0].name, "nvidia.com/slice");
}

TEST(Resources, SharesOfSomeGpus) {
  const auto machine =
      inventory_of({offered_gpu(0), offered_gpu(1), offered_gpu(2), offered_gpu(3)});
  PluginConfig config =
      shared_by({{.name = "nvidia.com/gpu", .rename = "nvidia.com/half", .devices = {"1", "GPU-3"}},
                 {.name = "nvidia.com/gpu", .first = 2, .replicas = 3}});
  config.fail_requests_over_one = true;
  EXPECT_EQ(offered(machine, config),
            (Words{"nvidia.com/gpu: GPU-0::0 GPU-0::1 GPU-0::2 GPU-2",
                   "nvidia.com/half: GPU-1::0 GPU-1::1 GPU-3::0 GPU-3::1"}));
  config.shared = {{.name = "nvidia.com/gpu", .rename = "nvidia.com/half", .devices = {"0:0", "9"}},
                   {.name = "nvidia.com/mig-1g.18gb"}};
  auto result = offer(machine, config);
  EXPECT_FALSE(result->resources[0].at_most_one) << "nothing of it is shared";
  EXPECT_EQ(result->warnings,
            (Words{"sharing.timeSlicing.resources[0]: no device of nvidia.com/gpu is shared by it",
                   "sharing.timeSlicing.resources[1]: no device of nvidia.com/mig-1g.18gb is "
                   "shared by it"}));
}

TEST(Resources, SharesOfInstances) {
  const auto machine = inventory_of({mig_gpu(0, {"1g.18gb", "1g.18gb"})});
  PluginConfig config = shared_by({{.name = "nvidia.com/mig-1g.18gb", .devices = {"0:1"}}});
  config.mig = MigStrategy::kMixed;
  EXPECT_EQ(offered(machine, config),
            (Words{"nvidia.com/mig-1g.18gb: MIG-0-0 MIG-0-1::0 MIG-0-1::1"}));
  config = shared_by({{.name = "nvidia.com/gpu", .replicas = 4}});
  config.mig = MigStrategy::kSingle;
  EXPECT_EQ(offer(machine, config)->resources[0].devices.size(), 8u);
}

TEST(Resources, Bounds) {
  const auto machine = inventory_of({offered_gpu(0), offered_gpu(1)});
  EXPECT_EQ(offer(machine, shared_by({{.name = "nvidia.com/gpu", .replicas = 5000}}))
                ->resources[0]
                .devices.size(),
            kMaxOffered);
  EXPECT_EQ(refusal(machine, shared_by({{.name = "nvidia.com/gpu", .replicas = 5001}})),
            "more than 10000 devices would be offered");
  auto twice = inventory_of({offered_gpu(0), offered_gpu(1)});
  twice.gpus[1].uuid = "GPU-0";
  EXPECT_EQ(refusal(twice, {}), "GPU 1: the id \"GPU-0\" is there twice");
  auto nameless = inventory_of({offered_gpu(0)});
  nameless.gpus[0].uuid = "";
  EXPECT_NE(refusal(nameless, {}), "");
  auto longest = inventory_of({offered_gpu(0)});
  longest.gpus[0].uuid = std::string(63, 'x');
  EXPECT_TRUE(offer(longest, {}).ok());
  EXPECT_NE(refusal(longest, shared_by({{.name = "nvidia.com/gpu"}})), "");
}

}  // namespace
}  // namespace berth::advertise
