#include "node/advertise/plugin_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace berth::advertise {
namespace {

using Words = std::vector<std::string>;
using Settings = std::map<std::string, std::string>;

PluginConfig read_fine(std::string_view file, const Settings& flags = {},
                       const Settings& environment = {}) {
  auto config = read_plugin_config(file, flags, environment);
  EXPECT_TRUE(config.ok()) << config.error().to_string();
  return config.ok() ? *config : PluginConfig{};
}

std::string refused(std::string_view file, const Settings& flags = {},
                    const Settings& environment = {}) {
  auto config = read_plugin_config(file, flags, environment);
  EXPECT_FALSE(config.ok()) << file;
  return config.ok() ? "" : config.error().to_string();
}

TEST(PluginConfig, DefaultsAreNvidias) {
  const PluginConfig config = read_fine("");
  EXPECT_EQ(config, PluginConfig{});
  EXPECT_EQ(config.mig, MigStrategy::kNone);
  EXPECT_EQ(config.device_list, std::vector<DeviceList>{DeviceList::kEnvVar});
  EXPECT_EQ(read_fine("# nothing\n"), PluginConfig{});
  EXPECT_EQ(read_fine("version: v1"), PluginConfig{});
}

constexpr std::string_view kWholeFile = R"(
version: v1
flags:
  migStrategy: mixed
  failOnInitError: false
  mpsRoot: ""
  nvidiaDriverRoot: /run/nvidia/driver
  nvidiaDevRoot: /run/nvidia/dev
  gdrcopyEnabled: true
  gdsEnabled: true
  mofedEnabled: true
  useNodeFeatureAPI: false
  deviceDiscoveryStrategy: auto
  plugin:
    passDeviceSpecs: true
    deviceListStrategy: [volume-mounts, envvar, envvar]
    deviceIDStrategy: index
    cdiAnnotationPrefix: example.com/
    nvidiaCTKPath: /usr/bin/nvidia-ctk
    containerDriverRoot: /driver
    sharedDevicesAllocationPolicy: packed
  gfd:
    oneshot: false
    noTimestamp: true
    sleepInterval: infinite
    outputFile: ""
    machineTypeFile: ""
resources:
  gpus:
    - {pattern: "*H100*", name: h100}
    - {pattern: "*", name: nvidia.com/gpu}
  mig:
    - {pattern: 1g.10gb, name: mig-small}
sharing:
  timeSlicing:
    renameByDefault: true
    failRequestsGreaterThanOne: true
    resources:
      - name: nvidia.com/h100
        rename: nvidia.com/h100.half
        replicas: 2
        devices: [0, "1", "0:1", GPU-b1028956-cfa2-0990-bf4a-5da9abb51763]
      - {name: gpu, replicas: 10, devices: 3}
      - {name: mig-small, replicas: 4, devices: all}
imex: {channelIDs: [0], required: true}
)";

TEST(PluginConfig, TheWholeFile) {
  const PluginConfig config = read_fine(kWholeFile);
  EXPECT_EQ(config.mig, MigStrategy::kMixed);
  EXPECT_EQ(config.driver_root, "/run/nvidia/driver");
  EXPECT_EQ(config.dev_root, "/run/nvidia/dev");
  EXPECT_TRUE(config.gdrcopy && config.gds && config.mofed && config.pass_device_specs);
  EXPECT_EQ(config.device_list,
            (std::vector<DeviceList>{DeviceList::kVolumeMounts, DeviceList::kEnvVar}));
  EXPECT_EQ(config.device_id, DeviceId::kIndex);
  EXPECT_EQ(config.cdi_annotation_prefix, "example.com/");
  EXPECT_EQ(config.container_driver_root, "/driver");
  EXPECT_EQ(config.shared_policy, SharedPolicy::kPacked);
  EXPECT_TRUE(config.no_timestamp);
  EXPECT_EQ(config.gpus,
            (std::vector<NamedResource>{{"*H100*", "nvidia.com/h100"}, {"*", "nvidia.com/gpu"}}));
  EXPECT_EQ(config.migs, (std::vector<NamedResource>{{"1g.10gb", "nvidia.com/mig-small"}}));
  EXPECT_EQ(config.sharing, Sharing::kTimeSlicing);
  EXPECT_TRUE(config.rename_by_default && config.fail_requests_over_one);
  ASSERT_EQ(config.shared.size(), 3u);
  EXPECT_EQ(config.shared[0],
            (SharedResource{"nvidia.com/h100",
                            "nvidia.com/h100.half",
                            {"0", "1", "0:1", "GPU-b1028956-cfa2-0990-bf4a-5da9abb51763"},
                            0,
                            2}));
  EXPECT_EQ(config.shared[1], (SharedResource{"nvidia.com/gpu", "", {}, 3, 10}));
  EXPECT_EQ(config.shared[2], (SharedResource{"nvidia.com/mig-small", "", {}, 0, 4}));
  EXPECT_EQ(config.imex_channels, std::vector<int>{0});
  EXPECT_TRUE(config.imex_required);
  EXPECT_EQ(config.warnings, (Words{"flags.gfd.sleepInterval: labels follow changes at once, there "
                                    "is no interval"}));
}

TEST(PluginConfig, JsonIsReadAsWell) {
  const PluginConfig config =
      read_fine(R"({"version":"v1","flags":{"migStrategy":"single","plugin":{)"
                R"("deviceListStrategy":"volume-mounts"}}})");
  EXPECT_EQ(config.mig, MigStrategy::kSingle);
  EXPECT_EQ(config.device_list, std::vector<DeviceList>{DeviceList::kVolumeMounts});
}

TEST(PluginConfig, FilesAsPeopleHaveThem) {
  PluginConfig config = read_fine(R"(
version: v1
sharing:
  timeSlicing:
    renameByDefault: false
    resources:
      - name: nvidia.com/gpu
        replicas: 4
)");
  EXPECT_EQ(config.sharing, Sharing::kTimeSlicing);
  EXPECT_EQ(config.shared[0].replicas, 4);
  config = read_fine(R"(
version: v1
flags:
  migStrategy: single
sharing:
  timeSlicing:
    resources:
      - name: nvidia.com/gpu     # instances are offered as nvidia.com/gpu
        replicas: 4
)");
  EXPECT_EQ(config.mig, MigStrategy::kSingle);
  EXPECT_EQ(config.shared.size(), 1u);
}

struct BadFile {
  const char* file;
  const char* text;  // a part of the message
};

TEST(PluginConfig, MistakesAreNamedWithTheirPath) {
  const BadFile cases[] = {
      {"version: v2", "line 1: version: found string \"v2\", want v1"},
      {"sharing: {timeSlicing: {replicas: 4}}",
       "sharing.timeSlicing.replicas: found an unknown field, want one of renameByDefault, "
       "failRequestsGreaterThanOne, resources"},
      {"flag: {}", "flag: found an unknown field, want one of version, flags, resources, sharing"},
      {"flags: {migstrategy: none}", "flags.migstrategy: found an unknown field"},
      {"flags: {plugin: {x: 1}}", "flags.plugin.x: found an unknown field"},
      {"flags: {migStrategy: both}",
       "flags.migStrategy: found string \"both\", want one of none, single, mixed"},
      {"flags: {migStrategy: 3}", "flags.migStrategy: found number 3"},
      {"flags: {failOnInitError: maybe}", "flags.failOnInitError: found string \"maybe\""},
      {"flags: {nvidiaDriverRoot: run/nvidia}", "want an absolute path"},
      {"flags: {deviceDiscoveryStrategy: tegra}", "want auto or nvml"},
      {"flags: {plugin: {deviceListStrategy: []}}", "flags.plugin.deviceListStrategy"},
      {"flags: {plugin: {deviceListStrategy: [cdi]}}",
       "flags.plugin.deviceListStrategy[0]: found string \"cdi\", want one of envvar, "
       "volume-mounts, cdi-annotations, cdi-cri"},
      {"flags: {plugin: {deviceIDStrategy: name}}", "want one of uuid, index"},
      {"flags: {plugin: {cdiAnnotationPrefix: 'a b/'}}", "want the first part of an annotation"},
      {"flags: {plugin: {sharedDevicesAllocationPolicy: x}}", "want one of distributed, packed"},
      {"flags: {gfd: {sleepInterval: often}}", "flags.gfd.sleepInterval"},
      {"resources: {gpus: [{pattern: x}]}", "resources.gpus[0].name: found nothing"},
      {"resources: {gpus: [{name: x, pattern: ''}]}", "resources.gpus[0].pattern"},
      {"resources: {mig: [{pattern: x, name: 'A B'}]}", "resources.mig[0].name"},
      {"resources: {mig: [{pattern: x, name: example.com/gpu}]}", "resources.mig[0].name"},
      {"sharing: {timeSlicing: {}}", "sharing.timeSlicing.resources: found nothing"},
      {"sharing: {timeSlicing: {resources: [{name: gpu, replicas: 1}]}}",
       "sharing.timeSlicing.resources[0].replicas: found number 1, want an integer 2..10000"},
      {"sharing: {timeSlicing: {resources: [{name: gpu}]}}",
       "sharing.timeSlicing.resources[0].replicas: found nothing"},
      {"sharing: {timeSlicing: {resources: [{replicas: 2}]}}",
       "sharing.timeSlicing.resources[0].name: found nothing"},
      {"sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2, devices: some}]}}",
       "sharing.timeSlicing.resources[0].devices: found string \"some\", want all, a count"},
      {"sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2, devices: 0}]}}",
       "sharing.timeSlicing.resources[0].devices"},
      {"sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2, devices: []}]}}",
       "sharing.timeSlicing.resources[0].devices"},
      {"sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2, devices: [x, 1.5, -1]}]}}",
       "sharing.timeSlicing.resources[0].devices[1]"},
      {"sharing: {mps: {resources: [{name: gpu, replicas: 8}]}}",
       "sharing.mps: found MPS, which is not yet served, want timeSlicing"},
      {"sharing: {mps: {resources: [{name: gpu, replicas: 0}]}}",
       "sharing.mps.resources[0].replicas"},
      {"imex: {channelIDs: [1]}",
       "imex.channelIDs: found array of 1, want no channel or channel 0"},
      {"imex: {channelIDs: [0, 0]}", "imex.channelIDs"},
      {"imex: {channelIDs: 0}", "imex.channelIDs"},
      {"[]", "want an object"},
      {"a: b\n---\na: b", "found 2 documents, want one"},
      {"flags: {", "line"},
  };
  for (const BadFile& c : cases) {
    EXPECT_NE(refused(c.file).find(c.text), std::string::npos) << refused(c.file);
  }
}

TEST(PluginConfig, AllMistakesAtOnce) {
  const std::string text = refused("flags: {migStrategy: x, gdsEnabled: 3}\nimex: {required: 7}");
  for (const char* path : {"flags.migStrategy", "flags.gdsEnabled", "imex.required"}) {
    EXPECT_NE(text.find(path), std::string::npos) << text;
  }
}

TEST(PluginConfig, MpsAndTimeSlicingTogetherAreRefused) {
  EXPECT_NE(refused("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}, mps: "
                    "{resources: [{name: gpu, replicas: 2}]}}")
                .find("sharing.mps"),
            std::string::npos);
  EXPECT_EQ(read_fine("sharing: {mps: {resources: []}}").sharing, Sharing::kNone);
}

TEST(PluginConfig, FlagThenEnvironmentThenFile) {
  constexpr std::string_view kFile = "flags: {migStrategy: single}";
  EXPECT_EQ(read_fine(kFile).mig, MigStrategy::kSingle);
  EXPECT_EQ(read_fine(kFile, {}, {{"MIG_STRATEGY", "mixed"}}).mig, MigStrategy::kMixed);
  EXPECT_EQ(read_fine(kFile, {{"--mig-strategy", "none"}}, {{"MIG_STRATEGY", "mixed"}}).mig,
            MigStrategy::kNone);
  EXPECT_EQ(read_fine(kFile, {}, {{"MIG_STRATEGY", ""}}).mig, MigStrategy::kSingle)
      << "set to nothing is not set";
  EXPECT_EQ(read_fine(kFile, {{"--mig-strategy", "none"}}, {{"MIG_STRATEGY", "nonsense"}}).mig,
            MigStrategy::kNone)
      << "what a flag overrides is not looked at";
}

TEST(PluginConfig, ExtrasGoWithEveryStrategy) {
  for (const char* flag : {"--gds-enabled", "--gdrcopy-enabled", "--mofed-enabled"}) {
    EXPECT_TRUE(read_plugin_config("", {{flag, "true"}}, {}).ok()) << flag;
    EXPECT_TRUE(
        read_plugin_config("", {{flag, "true"}, {"--device-list-strategy", "cdi-cri"}}, {}).ok())
        << flag;
  }
}

TEST(PluginConfig, EveryFlag) {
  const Settings flags = {{"--mig-strategy", "mixed"},
                          {"--fail-on-init-error", "false"},
                          {"--driver-root", "/d"},
                          {"--dev-root", "/e"},
                          {"--pass-device-specs", "true"},
                          {"--device-list-strategy", "envvar, volume-mounts"},
                          {"--device-id-strategy", "index"},
                          {"--gdrcopy-enabled", "1"},
                          {"--gds-enabled", "T"},
                          {"--mofed-enabled", "true"},
                          {"--cdi-annotation-prefix", "example.com/"},
                          {"--nvidia-cdi-hook-path", "/x"},
                          {"--driver-root-ctr-path", "/c"},
                          {"--mps-root", "/m"},
                          {"--shared-devices-allocation-policy", "packed"},
                          {"--device-discovery-strategy", "nvml"},
                          {"--imex-channel-ids", "0"},
                          {"--imex-required", "true"},
                          {"--kubelet-socket", "/k"},
                          {"--config-file", "/f"},
                          {"--cdi-feature-flags", "x"},
                          {"--cdi-disable-hooks", "all"}};
  PluginConfig config = read_fine("", flags);
  EXPECT_EQ(config.warnings.size(), 3u);
  EXPECT_EQ(config.warnings[0], "--mps-root: MPS is not served, so its root is not used");
  PluginConfig want;
  want.mig = MigStrategy::kMixed;
  want.driver_root = "/d";
  want.dev_root = "/e";
  want.pass_device_specs = want.gdrcopy = want.gds = want.mofed = want.imex_required = true;
  want.device_list = {DeviceList::kEnvVar, DeviceList::kVolumeMounts};
  want.device_id = DeviceId::kIndex;
  want.cdi_annotation_prefix = "example.com/";
  want.container_driver_root = "/c";
  want.shared_policy = SharedPolicy::kPacked;
  want.imex_channels = {0};
  want.warnings = config.warnings;
  EXPECT_EQ(config, want);

  // The same by environment: every flag has its variable.
  std::set<std::string> names;
  Settings environment;
  for (const PluginFlag& flag : plugin_flags()) {
    EXPECT_TRUE(names.insert(std::string(flag.flag)).second) << flag.flag;
    EXPECT_FALSE(flag.what.empty());
    auto it = flags.find(std::string(flag.flag));
    if (it != flags.end()) environment[std::string(flag.environment)] = it->second;
  }
  EXPECT_EQ(environment.size(), flags.size());
  config = read_fine("", {}, environment);
  want.warnings = config.warnings;
  EXPECT_EQ(config, want);
  EXPECT_EQ(config.warnings[0], "MPS_ROOT: MPS is not served, so its root is not used");
}

TEST(PluginConfig, OlderNamesOfFlags) {
  EXPECT_EQ(read_fine("", {{"--nvidia-driver-root", "/d"}}).driver_root, "/d");
  EXPECT_EQ(read_fine("", {{"--container-driver-root", "/c"}}).container_driver_root, "/c");
  EXPECT_EQ(read_fine("", {}, {{"CONTAINER_DRIVER_ROOT", "/c"}}).container_driver_root, "/c");
}

TEST(PluginConfig, BadFlags) {
  EXPECT_NE(refused("", {{"--mig", "x"}}).find("\"--mig\" is not a flag; want one of --mig-str"),
            std::string::npos);
  EXPECT_EQ(refused("", {{"--gds-enabled", "yes"}}),
            "--gds-enabled: found \"yes\", want true or false");
  EXPECT_EQ(refused("", {}, {{"MIG_STRATEGY", "all"}}),
            "MIG_STRATEGY: found \"all\", want one of none, single, mixed");
  EXPECT_NE(refused("", {{"--device-list-strategy", "envvar,"}}), "");
  EXPECT_NE(refused("", {{"--imex-channel-ids", "0,1"}}), "");
  EXPECT_NE(refused("", {{"--imex-channel-ids", "x"}}), "");
  EXPECT_NE(refused("", {{"--driver-root", ""}}), "");
}

TEST(PluginConfig, WhatHasNoEffectIsSaid) {
  const PluginConfig config = read_fine(
      "flags: {failOnInitError: true, useNodeFeatureAPI: true, mpsRoot: /mps, gfd: {oneshot: true, "
      "outputFile: /f, "
      "machineTypeFile: /g}}\nsharing: {timeSlicing: {resources: []}}",
      {}, {{"DP_DISABLE_HEALTHCHECKS", "xids"}, {"PATH", "/bin"}});
  ASSERT_EQ(config.warnings.size(), 8u);
  const char* paths[] = {
      "flags.failOnInitError: ", "flags.useNodeFeatureAPI: ", "flags.mpsRoot: ",
      "flags.gfd.oneshot: ",     "flags.gfd.outputFile: ",    "flags.gfd.machineTypeFile: ",
      "sharing.timeSlicing: ",   "DP_DISABLE_HEALTHCHECKS: "};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(config.warnings[i].find(paths[i]), 0u) << i;
}

TEST(PluginConfig, LongAndHostileFilesAreRefused) {
  std::string many = "resources:\n  gpus:\n";
  for (int i = 0; i < 300; ++i) many += "  - {pattern: x, name: gpu}\n";
  EXPECT_NE(refused(many).find("resources.gpus: found 300 rules, want at most 256"),
            std::string::npos);
  EXPECT_NE(refused(std::string(2 * 1024 * 1024, '#')), "");
  EXPECT_NE(refused("a: &a [*a]"), "");
  EXPECT_NE(refused("version: \xff"), "");
}

TEST(PluginConfig, Names) {
  EXPECT_EQ(name(MigStrategy::kSingle), "single");
  EXPECT_EQ(name(Sharing::kTimeSlicing), "time-slicing");
}

}  // namespace
}  // namespace berth::advertise
