#include "node/advertise/labels.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "text/selector.h"

namespace berth::advertise {
namespace {

model::GpuInventory h200s(int count) {
  model::GpuInventory inventory;
  inventory.driver_version = "580.159.04";
  inventory.cuda_major = 13;
  for (int i = 0; i < count; ++i) {
    model::GpuDevice gpu;
    gpu.index = gpu.minor = i;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.name = "NVIDIA H200";
    gpu.pci_bus_id = "0000:18:00." + std::to_string(i);
    gpu.memory_mib = 143'771;
    gpu.compute_major = 9;
    gpu.mig_capable = true;
    inventory.gpus.push_back(gpu);
  }
  return inventory;
}

model::MigInstance slice(const std::string& profile, int number) {
  return {.uuid = "MIG-" + profile + std::to_string(number),
          .profile = profile,
          .gpu_instance = number,
          .memory_mib = 16'384,
          .multiprocessors = 16,
          .gpu_slices = 1,
          .compute_slices = 1,
          .engines = {.copy = 1, .decoder = 2, .encoder = 3, .jpeg = 4, .ofa = 5}};
}

void cut_up(model::GpuDevice& gpu, const std::vector<std::string>& profiles) {
  gpu.mig_enabled = true;
  for (const std::string& profile : profiles) {
    gpu.mig.push_back(slice(profile, gpu.index * 10 + static_cast<int>(gpu.mig.size())));
  }
}

PluginConfig shared_config(const std::string& resource, int replicas) {
  PluginConfig config;
  config.sharing = Sharing::kTimeSlicing;
  config.shared.push_back({.name = resource, .replicas = replicas});
  return config;
}

std::string at(const Labels& labels, const std::string& key) {
  const auto found = labels.find(key);
  return found == labels.end() ? "(none)" : found->second;
}

// The labels with that prefix, without it.
Labels below(const Labels& labels, const std::string& prefix) {
  Labels out;
  for (const auto& [key, value] : labels) {
    if (key.starts_with(prefix)) out[key.substr(prefix.size())] = value;
  }
  return out;
}

TEST(Labels, HasTheWholeSetOfFeatureDiscovery) {
  model::HostFacts host;
  host.machine = "DGX H200 (Rev. #2)";
  host.pci = {{.bus_id = "0000:18:00.0", .class_code = 0x030200, .vendor = 0x10de}};
  model::GpuInventory inventory = h200s(2);
  for (auto& gpu : inventory.gpus) {
    gpu.fabric_cluster = "1b2c3d4e-0001-4002-8003-aabbccddeeff";
    gpu.fabric_clique = 7;
    gpu.nvlinks = {18, 18};
  }
  const Labels want = {
      {"gpu.nvidia.com/nvlink-enabled", "true"},
      {"gpu.nvidia.com/nvlink-gpus-per-island", "2"},
      {"nvidia.com/cuda.driver-version.full", "580.159.04"},
      {"nvidia.com/cuda.driver-version.major", "580"},
      {"nvidia.com/cuda.driver-version.minor", "159"},
      {"nvidia.com/cuda.driver-version.revision", "04"},
      {"nvidia.com/cuda.driver.major", "580"},
      {"nvidia.com/cuda.driver.minor", "159"},
      {"nvidia.com/cuda.driver.rev", "04"},
      {"nvidia.com/cuda.runtime-version.full", "13.0"},
      {"nvidia.com/cuda.runtime-version.major", "13"},
      {"nvidia.com/cuda.runtime-version.minor", "0"},
      {"nvidia.com/cuda.runtime.major", "13"},
      {"nvidia.com/cuda.runtime.minor", "0"},
      {"nvidia.com/gfd.timestamp", "1700000000"},
      {"nvidia.com/gpu.clique", "1b2c3d4e-0001-4002-8003-aabbccddeeff.7"},
      {"nvidia.com/gpu.compute.major", "9"},
      {"nvidia.com/gpu.compute.minor", "0"},
      {"nvidia.com/gpu.count", "2"},
      {"nvidia.com/gpu.family", "hopper"},
      {"nvidia.com/gpu.machine", "DGX-H200-Rev.-2"},
      {"nvidia.com/gpu.memory", "143771"},
      {"nvidia.com/gpu.mode", "compute"},
      {"nvidia.com/gpu.present", "true"},
      {"nvidia.com/gpu.product", "NVIDIA-H200"},
      {"nvidia.com/gpu.replicas", "1"},
      {"nvidia.com/gpu.sharing-strategy", "none"},
      {"nvidia.com/mig.capable", "true"},
      {"nvidia.com/mps.capable", "false"},
  };
  EXPECT_EQ(gpu_labels(inventory, host, {}, 1'700'000'000), want);
  EXPECT_EQ(gpu_labels({}, host, {}, 1'700'000'000), Labels());
}

TEST(Labels, WhatIsNotKnownIsNotSaid) {
  model::GpuInventory inventory = h200s(2);
  inventory.driver_version = "580.10";
  inventory.cuda_major = 0;
  inventory.gpus[0].memory_mib = 0;
  inventory.gpus[0].compute_major = 0;
  inventory.gpus[0].fabric_cluster = "only-here";
  inventory.gpus[0].fabric_clique = 1;
  PluginConfig config;
  config.no_timestamp = true;
  const Labels labels = gpu_labels(inventory, {}, config, 5);
  for (const char* key :
       {"nvidia.com/gfd.timestamp", "nvidia.com/cuda.runtime.major", "nvidia.com/gpu.memory",
        "nvidia.com/gpu.family", "nvidia.com/gpu.clique", "nvidia.com/mig.strategy",
        "nvidia.com/vgpu.present", "gpu.nvidia.com/nvlink-gpus-per-island"}) {
    EXPECT_EQ(at(labels, key), "(none)") << key;
  }
  EXPECT_EQ(at(labels, "nvidia.com/cuda.driver.rev"), "");
  EXPECT_EQ(at(labels, "nvidia.com/cuda.driver-version.full"), "580.10");
  EXPECT_EQ(at(labels, "nvidia.com/gpu.machine"), "unknown");
  EXPECT_EQ(at(labels, "nvidia.com/gpu.mode"), "unknown");
  EXPECT_EQ(at(labels, "gpu.nvidia.com/nvlink-enabled"), "false");
}

TEST(Labels, KnowsFamilies) {
  const struct {
    int major, minor;
    const char* family;
  } cases[] = {{1, 3, "tesla"},      {2, 0, "fermi"},        {3, 7, "kepler"},
               {5, 2, "maxwell"},    {6, 1, "pascal"},       {7, 0, "volta"},
               {7, 2, "volta"},      {7, 5, "turing"},       {8, 0, "ampere"},
               {8, 6, "ampere"},     {8, 9, "ada-lovelace"}, {9, 0, "hopper"},
               {10, 0, "blackwell"}, {12, 0, "blackwell"},   {13, 0, "rubin"},
               {4, 0, "undefined"},  {99, 0, "undefined"}};
  for (const auto& c : cases) {
    model::GpuInventory inventory = h200s(1);
    inventory.gpus[0].compute_major = c.major;
    inventory.gpus[0].compute_minor = c.minor;
    EXPECT_EQ(at(gpu_labels(inventory, {}, {}, 0), "nvidia.com/gpu.family"), c.family)
        << c.major << "." << c.minor;
  }
}

TEST(Labels, ModeIsTheClassOnTheBus) {
  for (const auto& [code, mode] :
       {std::pair(0x030200U, "compute"), std::pair(0x030000U, "graphics"),
        std::pair(0x120000U, "unknown")}) {
    model::HostFacts host;
    host.pci = {{.bus_id = "0000:00:00.0", .class_code = 0x030000},
                {.bus_id = "0000:18:00.0", .class_code = code}};
    EXPECT_EQ(at(gpu_labels(h200s(1), host, {}, 0), "nvidia.com/gpu.mode"), mode);
  }
}

TEST(Labels, SaysHowGpusAreShared) {
  PluginConfig config = shared_config("nvidia.com/gpu", 4);
  const auto sharing = [&] {
    const Labels labels = gpu_labels(h200s(2), {}, config, 0);
    return at(labels, "nvidia.com/gpu.product") + " " + at(labels, "nvidia.com/gpu.replicas") +
           " " + at(labels, "nvidia.com/gpu.sharing-strategy") + " " +
           at(labels, "nvidia.com/mps.capable") + " " + at(labels, "nvidia.com/gpu.count");
  };
  EXPECT_EQ(sharing(), "NVIDIA-H200-SHARED 4 time-slicing false 2");
  config.rename_by_default = true;
  EXPECT_EQ(sharing(), "NVIDIA-H200 4 time-slicing false 2");
  config.rename_by_default = false;
  config.shared[0].rename = "nvidia.com/slice";
  EXPECT_EQ(sharing(), "NVIDIA-H200 4 time-slicing false 2");
  config.shared[0].rename = "";
  config.sharing = Sharing::kMps;
  EXPECT_EQ(sharing(), "NVIDIA-H200-SHARED 4 mps true 2");
  config.shared[0].name = "nvidia.com/other";
  EXPECT_EQ(sharing(), "NVIDIA-H200 1 none true 2");
  config.shared.clear();
  config.sharing = Sharing::kNone;
  EXPECT_EQ(sharing(), "NVIDIA-H200 1 none false 2");
}

TEST(Labels, MigNone) {
  model::GpuInventory inventory = h200s(1);
  cut_up(inventory.gpus[0], {"1g.18gb"});
  PluginConfig config;
  config.sharing = Sharing::kMps;
  const Labels labels = gpu_labels(inventory, {}, config, 0);
  EXPECT_EQ(at(labels, "nvidia.com/gpu.product"), "NVIDIA-H200");
  EXPECT_EQ(at(labels, "nvidia.com/gpu.replicas"), "0");
  EXPECT_EQ(at(labels, "nvidia.com/mps.capable"), "false");
  EXPECT_EQ(at(labels, "nvidia.com/mig.strategy"), "(none)");
  EXPECT_EQ(below(labels, "nvidia.com/mig-"), Labels());
}

TEST(Labels, MigSingle) {
  model::GpuInventory inventory = h200s(2);
  cut_up(inventory.gpus[0], {"1g.18gb+me", "1g.18gb+me"});
  cut_up(inventory.gpus[1], {"1g.18gb+me"});
  PluginConfig config = shared_config("nvidia.com/gpu", 3);
  config.mig = MigStrategy::kSingle;
  const Labels labels = gpu_labels(inventory, {}, config, 0);
  EXPECT_EQ(at(labels, "nvidia.com/mig.strategy"), "single");
  const Labels want = {{"compute.major", "9"},
                       {"compute.minor", "0"},
                       {"count", "3"},
                       {"engines.copy", "1"},
                       {"engines.decoder", "2"},
                       {"engines.encoder", "3"},
                       {"engines.jpeg", "4"},
                       {"engines.ofa", "5"},
                       {"family", "hopper"},
                       {"machine", "unknown"},
                       {"memory", "16384"},
                       {"mode", "unknown"},
                       {"multiprocessors", "16"},
                       {"present", "true"},
                       {"product", "NVIDIA-H200-MIG-1g.18gb.me-SHARED"},
                       {"replicas", "3"},
                       {"sharing-strategy", "time-slicing"},
                       {"slices.ci", "1"},
                       {"slices.gi", "1"}};
  EXPECT_EQ(below(labels, "nvidia.com/gpu."), want);
}

TEST(Labels, MigSingleThatIsBroken) {
  PluginConfig config;
  config.mig = MigStrategy::kSingle;
  const std::vector<std::vector<std::vector<std::string>>> cases = {
      {{"1g.18gb"}, {"2g.35gb"}},             // unequal
      {{"1g.18gb", "2g.35gb"}, {"1g.18gb"}},  // unequal on one
      {{"1g.18gb"}, {}},                      // one without instances
  };
  for (const auto& profiles : cases) {
    model::GpuInventory inventory = h200s(2);
    cut_up(inventory.gpus[0], profiles[0]);
    cut_up(inventory.gpus[1], profiles[1]);
    const Labels labels = gpu_labels(inventory, {}, config, 0);
    EXPECT_EQ(at(labels, "nvidia.com/gpu.product"), "NVIDIA-H200-MIG-INVALID");
    for (const char* what : {"count", "replicas", "memory"}) {
      EXPECT_EQ(at(labels, std::string("nvidia.com/gpu.") + what), "0");
    }
    EXPECT_EQ(at(labels, "nvidia.com/gpu.family"), "hopper");
  }
  model::GpuInventory half = h200s(2);
  cut_up(half.gpus[1], {"1g.18gb"});
  EXPECT_EQ(at(gpu_labels(half, {}, config, 0), "nvidia.com/gpu.product"),
            "NVIDIA-H200-MIG-INVALID");
  const Labels whole = gpu_labels(h200s(2), {}, config, 0);
  EXPECT_EQ(at(whole, "nvidia.com/gpu.product"), "NVIDIA-H200") << "without MIG nothing is broken";
  EXPECT_EQ(at(whole, "nvidia.com/mig.strategy"), "single");
}

TEST(Labels, MigMixed) {
  model::GpuInventory inventory = h200s(3);
  cut_up(inventory.gpus[1], {"1g.18gb", "1g.18gb", "3g.71gb"});
  cut_up(inventory.gpus[2], {});
  PluginConfig config = shared_config("nvidia.com/mig-1g.18gb", 2);
  config.mig = MigStrategy::kMixed;
  const Labels labels = gpu_labels(inventory, {}, config, 0);
  EXPECT_EQ(at(labels, "nvidia.com/mig.strategy"), "mixed");
  EXPECT_EQ(at(labels, "nvidia.com/gpu.count"), "3");
  EXPECT_EQ(at(labels, "nvidia.com/gpu.product"), "NVIDIA-H200");
  EXPECT_EQ(at(labels, "nvidia.com/gpu.replicas"), "1");
  const Labels want = {{"count", "2"},
                       {"engines.copy", "1"},
                       {"engines.decoder", "2"},
                       {"engines.encoder", "3"},
                       {"engines.jpeg", "4"},
                       {"engines.ofa", "5"},
                       {"memory", "16384"},
                       {"multiprocessors", "16"},
                       {"product", "NVIDIA-H200-MIG-1g.18gb-SHARED"},
                       {"replicas", "2"},
                       {"sharing-strategy", "time-slicing"},
                       {"slices.ci", "1"},
                       {"slices.gi", "1"}};
  EXPECT_EQ(below(labels, "nvidia.com/mig-1g.18gb."), want);
  EXPECT_EQ(at(labels, "nvidia.com/mig-3g.71gb.count"), "1");
  EXPECT_EQ(at(labels, "nvidia.com/mig-3g.71gb.replicas"), "1");
  EXPECT_EQ(at(labels, "nvidia.com/mig-3g.71gb.product"), "NVIDIA-H200-MIG-3g.71gb");
}

TEST(Labels, EachOfSeveralModelsHasItsOwn) {
  model::GpuInventory inventory = h200s(4);
  inventory.gpus[1].name = inventory.gpus[3].name = "NVIDIA L4";
  for (const std::size_t i : {1U, 3U}) {
    inventory.gpus[i].memory_mib = 23'034;
    inventory.gpus[i].compute_major = 8;
    inventory.gpus[i].compute_minor = 9;
  }
  inventory.gpus[2].name = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition";
  PluginConfig config = shared_config("nvidia.com/l4", 5);
  config.gpus = {{.pattern = "*L4", .name = "nvidia.com/l4"}};
  const Labels labels = gpu_labels(inventory, {}, config, 0);
  EXPECT_EQ(at(labels, "nvidia.com/gpu.product"), "NVIDIA-H200");
  EXPECT_EQ(at(labels, "nvidia.com/gpu.count"), "1");
  const Labels models = below(labels, "nvidia.com/gpu.model.");
  const Labels want = {{"compute.major", "8"}, {"compute.minor", "9"},
                       {"count", "2"},         {"family", "ada-lovelace"},
                       {"memory", "23034"},    {"product", "NVIDIA-L4-SHARED"},
                       {"replicas", "5"}};
  EXPECT_EQ(below(models, "NVIDIA-L4."), want);
  EXPECT_EQ(at(models, "NVIDIA-H200.count"), "1");
  EXPECT_EQ(at(models, "NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Wor.product"),
            "NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition");
  EXPECT_EQ(models.size(), 21U);
  EXPECT_EQ(below(gpu_labels(h200s(2), {}, {}, 0), "nvidia.com/gpu.model."), Labels());
}

TEST(Labels, ModelsThatLookAlikeAreNumbered) {
  model::GpuInventory inventory = h200s(3);
  const std::string longest(60, 'x');
  inventory.gpus[0].name = longest + "a";
  inventory.gpus[1].name = longest + "b";
  inventory.gpus[2].name = "!";
  const Labels labels = gpu_labels(inventory, {}, {}, 0);
  const std::string key = "nvidia.com/gpu.model.";
  EXPECT_EQ(at(labels, key + std::string(39, 'x') + ".count"), "1");
  EXPECT_EQ(at(labels, key + std::string(37, 'x') + "-2.product"), longest + "b");
  EXPECT_EQ(at(labels, key + "unknown.count"), "1");
  EXPECT_EQ(at(labels, key + "unknown.product"), "(none)");
}

TEST(Labels, IslandsAreGpusThatReachOneAnother) {
  const struct {
    const char* what;
    std::vector<std::vector<int>> links;
    const char *enabled, *size;
  } cases[] = {
      {"all", {{0, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, 0}}, "true", "4"},
      {"pairs", {{0, 4, 0, 0}, {4, 0, 0, 0}, {0, 0, 0, 4}, {0, 0, 4, 0}}, "true", "2"},
      {"a chain", {{0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}, {0, 0, 0, 0}}, "true", "4"},
      {"three and one", {{0, 1, 1, 0}, {1, 0, 1, 0}, {1, 1, 0, 0}, {0, 0, 0, 0}}, "true", "3"},
      {"none", {{}, {}, {}, {}}, "false", "(none)"},
      {"itself", {{1}, {0, 1}, {0, 0, 1}, {0, 0, 0, 1}}, "false", "(none)"},
  };
  for (const auto& c : cases) {
    model::GpuInventory inventory = h200s(4);
    for (std::size_t i = 0; i < 4; ++i) inventory.gpus[i].nvlinks = c.links[i];
    const Labels labels = gpu_labels(inventory, {}, {}, 0);
    EXPECT_EQ(at(labels, "gpu.nvidia.com/nvlink-enabled"), c.enabled) << c.what;
    EXPECT_EQ(at(labels, "gpu.nvidia.com/nvlink-gpus-per-island"), c.size) << c.what;
  }
  model::GpuInventory inventory = h200s(2);
  inventory.gpus[0].nvlinks = {0, 18};
  inventory.gpus[1].nvlinks = {18, 0};
  cut_up(inventory.gpus[1], {"1g.18gb"});
  EXPECT_EQ(at(gpu_labels(inventory, {}, {}, 0), "gpu.nvidia.com/nvlink-enabled"), "false");
}

TEST(Labels, TellsOfTheBusWithoutADriver) {
  model::HostFacts host;
  host.kernel = "6.1.0-13-amd64";
  host.os_release = {{"ID", "debian"}, {"VERSION_ID", "12"}, {"NAME", "Debian"}};
  host.pci = {{.class_code = 0x030200, .vendor = 0x10de, .sriov = true},
              {.class_code = 0x020700, .vendor = 0x15b3},
              {.class_code = 0x030000, .vendor = 0x1a03},
              {.class_code = 0x060400, .vendor = 0x8086},
              {.class_code = 0x0b4000, .vendor = 0x0042}};
  const Labels labels = host_labels(host);
  EXPECT_EQ(at(labels, "nvidia.com/gpu.present"), "true");
  const Labels want = {{"kernel-version.full", "6.1.0-13-amd64"},
                       {"pci-0042.present", "true"},
                       {"pci-0300_1a03.present", "true"},
                       {"pci-0302_10de.present", "true"},
                       {"pci-0302_10de.sriov.capable", "true"},
                       {"pci-0b40_0042.present", "true"},
                       {"pci-10de.present", "true"},
                       {"pci-10de.sriov.capable", "true"},
                       {"pci-15b3.present", "true"},
                       {"pci-1a03.present", "true"},
                       {"system-os_release.ID", "debian"},
                       {"system-os_release.VERSION_ID", "12"}};
  EXPECT_EQ(below(labels, "feature.node.kubernetes.io/"), want);
  host.pci = {{.class_code = 0x020000, .vendor = 0x10de},
              {.class_code = 0x068000, .vendor = 0x10de}};
  EXPECT_EQ(at(host_labels(host), "nvidia.com/gpu.present"), "(none)") << "no GPU";
  EXPECT_EQ(host_labels({}), Labels());
}

TEST(Labels, AreValidWhateverTheProbesSay) {
  Random random(6);
  const auto any_text = [&] {
    static const std::string kOdd[] = {"",
                                       "-",
                                       "...",
                                       "NVIDIA H200",
                                       std::string(200, '.'),
                                       std::string(200, 'a'),
                                       "\xff\xfe",
                                       "a\nb",
                                       "+gfx",
                                       "a/b",
                                       "😀",
                                       std::string("a\0b", 3),
                                       "-x-",
                                       "_",
                                       "1g.18gb+me"};
    std::string text;
    for (std::uint64_t n = random.below(4); n > 0; --n) {
      text += random.chance(1, 2)
                  ? kOdd[random.below(std::size(kOdd))]
                  : std::string(random.below(70), static_cast<char>(random.between(-128, 127)));
    }
    return text;
  };
  for (int round = 0; round < 500; ++round) {
    model::GpuInventory inventory = h200s(static_cast<int>(1 + random.below(5)));
    inventory.driver_version = any_text();
    inventory.cuda_major = static_cast<int>(random.between(-5, 20));
    inventory.cuda_minor = static_cast<int>(random.between(-5, 20));
    for (auto& gpu : inventory.gpus) {
      gpu.name = any_text();
      gpu.memory_mib = random.between(-5, 5);
      gpu.compute_major = static_cast<int>(random.between(-1, 14));
      gpu.compute_minor = static_cast<int>(random.between(-1, 9));
      gpu.fabric_cluster = inventory.gpus[0].fabric_cluster.empty() ? any_text() : "x";
      gpu.fabric_clique = static_cast<int>(random.between(-2, 2));
      gpu.nvlinks.assign(random.below(6), static_cast<int>(random.between(-1, 1)));
      if (random.chance(1, 2)) cut_up(gpu, {any_text(), any_text()});
      for (auto& instance : gpu.mig) instance.multiprocessors = -1;
    }
    model::HostFacts host;
    host.machine = any_text();
    host.kernel = any_text();
    host.os_release = {{"ID", any_text()}, {"VERSION_ID", any_text()}};
    host.pci = {{.class_code = 0xFFFFFFFF, .vendor = 0xFFFF},
                {.class_code = 0x030000, .vendor = 0xFFFF}};
    PluginConfig config = shared_config("nvidia.com/gpu", 3);
    config.mig = static_cast<MigStrategy>(random.below(3));
    for (const Labels& labels :
         {host_labels(host), gpu_labels(inventory, host, config, random.between(-5, 5))}) {
      for (const auto& [key, value] : labels) {
        EXPECT_TRUE(text::validate_label_key(key).ok()) << key;
        EXPECT_TRUE(text::validate_label_value(value).ok()) << key << "=" << value;
      }
    }
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

}  // namespace
}  // namespace berth::advertise
