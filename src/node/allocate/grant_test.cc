#include "node/allocate/grant.h"

#include <gtest/gtest.h>

namespace berth::allocate {
namespace {

using Words = std::vector<std::string>;
using Map = std::map<std::string, std::string>;

model::GpuInventory grant_machine() {
  model::GpuInventory out;
  for (int i : {0, 2}) {
    model::GpuDevice gpu;
    gpu.index = i;
    gpu.uuid = "GPU-" + std::to_string(i);
    out.gpus.push_back(gpu);
  }
  out.gpus[1].mig_enabled = true;
  for (int j = 0; j < 2; ++j) {
    model::MigInstance mig;
    mig.uuid = "MIG-" + std::to_string(j);
    mig.profile = "3g.71gb";
    out.gpus[1].mig.push_back(mig);
  }
  return out;
}

model::OfferedResource whole_gpu() {
  return {.name = "nvidia.com/gpu", .devices = {{.id = "GPU-0", .uuid = "GPU-0", .gpu = 0}}};
}

model::OfferedResource instances() {
  return {.name = "nvidia.com/mig-3g.71gb",
          .profile = "3g.71gb",
          .devices = {{.id = "MIG-0", .uuid = "MIG-0", .gpu = 2, .mig = 0},
                      {.id = "MIG-1", .uuid = "MIG-1", .gpu = 2, .mig = 1}}};
}

model::OfferedResource shares() {
  return {.name = "nvidia.com/gpu",
          .replicas = 3,
          .devices = {{.id = "GPU-0::0", .uuid = "GPU-0", .gpu = 0, .replica = 0},
                      {.id = "GPU-0::1", .uuid = "GPU-0", .gpu = 0, .replica = 1},
                      {.id = "GPU-0::2", .uuid = "GPU-0", .gpu = 0, .replica = 2}}};
}

GrantRules no_strategy() {
  return {
      .env_var = false,
      .cdi_kind = "k8s.device-plugin.nvidia.com/gpu",
      .control_nodes = {"/dev/nvidiactl", "/dev/nvidia-uvm"},
      .gpu_nodes = {{"/dev/nvidia0"}, {"/dev/nvidia2"}},
      .mig_nodes = {{}, {{"/dev/nvidia-caps/nvidia-cap21"}, {"/dev/nvidia-caps/nvidia-cap30"}}}};
}

constexpr const char* kAnswer = "11111111-2222-3333-4444-555555555555";

TEST(Grant, EnvVar) {
  GrantRules rules = no_strategy();
  rules.env_var = true;
  auto granted = grant(grant_machine(), instances(), {"MIG-1", "MIG-0"}, rules, kAnswer);
  ASSERT_TRUE(granted.ok());
  EXPECT_EQ(granted->environment, (Map{{"NVIDIA_VISIBLE_DEVICES", "MIG-0,MIG-1"}}));
  EXPECT_TRUE(granted->annotations.empty() && granted->mounts.empty() && granted->nodes.empty() &&
              granted->cdi.empty());
}

TEST(Grant, EnvVarByIndexWithTheExtras) {
  GrantRules rules = no_strategy();
  rules.env_var = rules.by_index = rules.gds = rules.mofed = rules.gdrcopy = true;
  rules.imex_channels = {0};
  auto granted = grant(grant_machine(), instances(), {"MIG-1"}, rules, kAnswer);
  ASSERT_TRUE(granted.ok());
  EXPECT_EQ(granted->environment, (Map{{"NVIDIA_VISIBLE_DEVICES", "2:1"},
                                       {"NVIDIA_IMEX_CHANNELS", "0"},
                                       {"NVIDIA_GDRCOPY", "enabled"},
                                       {"NVIDIA_GDS", "enabled"},
                                       {"NVIDIA_MOFED", "enabled"}}));
  auto whole = grant(grant_machine(), whole_gpu(), {"GPU-0"}, rules, kAnswer);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->environment["NVIDIA_VISIBLE_DEVICES"], "0");
}

TEST(Grant, VolumeMounts) {
  GrantRules rules = no_strategy();
  rules.env_var = rules.volume_mounts = true;  // the mounts win
  rules.imex_channels = {0};
  auto granted = grant(grant_machine(), whole_gpu(), {"GPU-0"}, rules, kAnswer);
  ASSERT_TRUE(granted.ok());
  EXPECT_EQ(granted->environment["NVIDIA_VISIBLE_DEVICES"], "/var/run/nvidia-container-devices");
  ASSERT_EQ(granted->mounts.size(), 2u);
  EXPECT_EQ(granted->mounts[0].container, "/var/run/nvidia-container-devices/GPU-0");
  EXPECT_EQ(granted->mounts[0].host, "/dev/null");
  EXPECT_EQ(granted->mounts[1].container, "/var/run/nvidia-container-devices/imex/0");
}

TEST(Grant, Cdi) {
  GrantRules rules = no_strategy();
  rules.cdi_cri = rules.cdi_annotations = true;
  rules.pass_device_specs = rules.gds = rules.mofed = rules.gdrcopy = true;
  rules.imex_channels = {0};
  rules.cdi_extras = {"k8s.device-plugin.nvidia.com/imex-channel=0",
                      "k8s.device-plugin.nvidia.com/gds=all"};
  rules.cdi_annotation_prefix = "example.com/";
  auto granted = grant(grant_machine(), whole_gpu(), {"GPU-0"}, rules, kAnswer);
  ASSERT_TRUE(granted.ok());
  EXPECT_EQ(granted->cdi, (Words{"k8s.device-plugin.nvidia.com/gpu=GPU-0",
                                 "k8s.device-plugin.nvidia.com/imex-channel=0",
                                 "k8s.device-plugin.nvidia.com/gds=all"}));
  EXPECT_EQ(granted->annotations,
            (Map{{"example.com/nvidia-device-plugin_11111111-2222-3333-4444-555555555555",
                  "k8s.device-plugin.nvidia.com/gpu=GPU-0,"
                  "k8s.device-plugin.nvidia.com/imex-channel=0,"
                  "k8s.device-plugin.nvidia.com/gds=all"}}));
  EXPECT_TRUE(granted->environment.empty() && granted->nodes.empty()) << "the CDI spec has them";
}

TEST(Grant, CdiByIndexBesideTheEnvironment) {
  GrantRules rules = no_strategy();
  rules.cdi_cri = rules.env_var = rules.by_index = true;
  auto granted = grant(grant_machine(), instances(), {"MIG-0"}, rules, kAnswer);
  ASSERT_TRUE(granted.ok());
  EXPECT_EQ(granted->cdi, (Words{"k8s.device-plugin.nvidia.com/gpu=2:0"}));
  EXPECT_EQ(granted->environment["NVIDIA_VISIBLE_DEVICES"], "2:0");
}

TEST(Grant, DeviceSpecs) {
  GrantRules rules = no_strategy();
  rules.env_var = rules.pass_device_specs = true;
  rules.imex_channels = {0};
  rules.host_paths = {{"/dev/nvidia2", "/driver/dev/nvidia2"}};
  auto granted = grant(grant_machine(), instances(), {"MIG-0", "MIG-1"}, rules, kAnswer);
  ASSERT_TRUE(granted.ok());
  Words paths;
  for (const auto& node : granted->nodes) {
    paths.push_back(node.container);
    EXPECT_EQ(node.permissions, "rw");
    EXPECT_EQ(node.host, node.container == "/dev/nvidia2" ? "/driver/dev/nvidia2" : node.container);
  }
  EXPECT_EQ(paths, (Words{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia2",
                          "/dev/nvidia-caps/nvidia-cap21", "/dev/nvidia-caps/nvidia-cap30",
                          "/dev/nvidia-caps-imex-channels/channel0"}));
}

TEST(Grant, ReplicasOfOneGpuNameItOnce) {
  GrantRules rules = no_strategy();
  rules.env_var = rules.cdi_cri = true;
  auto granted = grant(grant_machine(), shares(), {"GPU-0::2", "GPU-0::0"}, rules, kAnswer);
  ASSERT_TRUE(granted.ok());
  EXPECT_EQ(granted->environment["NVIDIA_VISIBLE_DEVICES"], "GPU-0");
  EXPECT_EQ(granted->cdi.size(), 1u);
}

TEST(Grant, AtMostOneOfASharedResource) {
  GrantRules rules = no_strategy();
  rules.env_var = true;
  model::OfferedResource resource = shares();
  resource.at_most_one = true;
  EXPECT_TRUE(grant(grant_machine(), resource, {"GPU-0::2"}, rules, kAnswer).ok());
  auto refused = grant(grant_machine(), resource, {"GPU-0::2", "GPU-0::0"}, rules, kAnswer);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message(),
            "nvidia.com/gpu: found 2 devices, want at most 1 of a shared resource "
            "(failRequestsGreaterThanOne)");
}

TEST(Grant, Refused) {
  GrantRules rules = no_strategy();
  rules.env_var = true;
  EXPECT_FALSE(grant(grant_machine(), whole_gpu(), {}, rules, kAnswer).ok());
  EXPECT_FALSE(grant(grant_machine(), whole_gpu(), {"GPU-0", "GPU-0"}, rules, kAnswer).ok());
  auto unknown = grant(grant_machine(), whole_gpu(), {"GPU-0", "GPU-9"}, rules, kAnswer);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message(), "nvidia.com/gpu: there is no device \"GPU-9\"");
  model::GpuInventory changed = grant_machine();
  changed.gpus[1].mig.pop_back();
  auto gone = grant(changed, instances(), {"MIG-1"}, rules, kAnswer);
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().message(), "device MIG-1 is no longer there");
}

}  // namespace
}  // namespace berth::allocate
