#include "node/partition/mig_config.h"

#include <gtest/gtest.h>

namespace berth::partition {
namespace {

std::vector<MigGpu> machine_of(int count) {
  std::vector<MigGpu> out;
  for (int i = 0; i < count; ++i) {
    MigGpu& gpu = out.emplace_back();
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.index = i;
    gpu.pci_device = i == 0 ? 0x233510de : 0x233010de;
    gpu.capable = true;
    gpu.geometry = usual_geometry(7, i == 0 ? 143'771 : 81'559);
  }
  return out;
}

// As mig-parted's own file is written.
constexpr const char* kFile = R"(
version: v1
mig-configs:
  all-disabled:
    - devices: all
      mig-enabled: false
  all-enabled:
    - devices: all
      mig-enabled: true
      mig-devices: {}
  # H200 and H100
  all-balanced:
    - device-filter: ["0x233510DE", "0x233B10DE"]
      devices: all
      mig-enabled: true
      mig-devices:
        "1g.18gb": 2
        "2g.35gb": 1
        "3g.71gb": 1
    - device-filter: "0x233010DE"
      devices: all
      mig-enabled: true
      mig-devices:
        "1g.10gb": 2
        "2g.20gb": 1
        "3g.40gb": 1
  custom:
    - devices: [0]
      mig-enabled: false
    - devices: [1]
      mig-enabled: true
      mig-devices: {"1g.10gb+me": 1, "1g.10gb": 0}
)";

TEST(MigConfig, ReadsTheFileThatPeopleHave) {
  const Result<MigConfig> read = read_mig_config(kFile);
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  ASSERT_EQ(read->size(), 4u);
  const auto met = wishes(read->at("all-balanced"), machine_of(2));
  ASSERT_TRUE(met.ok()) << met.error().to_string();
  EXPECT_EQ(describe(met->at("GPU-0")), "2 x 1g.18gb, 1 x 2g.35gb, 1 x 3g.71gb");
  EXPECT_EQ(describe(met->at("GPU-1")), "2 x 1g.10gb, 1 x 2g.20gb, 1 x 3g.40gb");
  const auto custom = wishes(read->at("custom"), machine_of(3));
  ASSERT_TRUE(custom.ok());
  EXPECT_EQ(describe(custom->at("GPU-0")), "off");
  EXPECT_EQ(describe(custom->at("GPU-1")), "1 x 1g.10gb+me");
  EXPECT_FALSE(custom->contains("GPU-2")) << "it is left alone";
  EXPECT_EQ(describe(wishes(read->at("all-enabled"), machine_of(1))->at("GPU-0")), "no instances");
}

TEST(MigConfig, RefusesWithThePathAndWhatIsAllowed) {
  const auto entry = [](const std::string& text) {
    return "version: v1\nmig-configs: {a: [" + text + "]}";
  };
  const std::pair<std::string, std::string> cases[] = {
      {"", "found 0 documents, want one"},
      {"[]", "want an object with version and mig-configs"},
      {"{version: v2, mig-configs: {}}", "version: found string \"v2\", want v1"},
      {"{version: v1}", "mig-configs: found nothing, want layouts by name"},
      {"{version: v1, mig-configs: {}, more: 1}",
       "more: found an unknown field, want one of version, mig-configs"},
      {entry("{devices: all, mig-enabled: true, mig-device: {}}"),
       "mig-configs.a[0].mig-device: found an unknown field, want one of device-filter, devices, "
       "mig-enabled, mig-devices"},
      {entry("{devices: some, mig-enabled: true}"),
       "mig-configs.a[0].devices: found string \"some\", want all, or a list of indices"},
      {entry("{devices: [0, 0], mig-enabled: true}"), "want each index once"},
      {entry("{devices: [-1], mig-enabled: true}"), "want an integer 0..63"},
      {entry("{devices: all}"), "mig-configs.a[0].mig-enabled: found nothing"},
      {entry("{mig-enabled: true}"), "mig-configs.a[0].devices: found nothing"},
      {entry("{devices: all, mig-enabled: \"true\"}"),
       "mig-configs.a[0].mig-enabled: found string"},
      {entry("{devices: all, mig-enabled: true, mig-devices: {\"1g.18gb\": -1}}"),
       "mig-configs.a[0].mig-devices[\"1g.18gb\"]: found number -1, want an integer 0..64"},
      {entry("{devices: all, mig-enabled: true, mig-devices: {large: 1}}"),
       "mig-configs.a[0].mig-devices.large: found \"large\", want a MIG profile such as 1g.18gb"},
      {entry("{devices: all, mig-enabled: false, mig-devices: {\"1g.18gb\": 1}}"),
       "found instances with mig-enabled: false"},
      {entry("{devices: all, mig-enabled: true, device-filter: [\"H200\"]}"),
       "want device and vendor in hex"},
      {"{version: v1, mig-configs: {a: {devices: all}}}", "want a list of at most 256 entries"},
  };
  for (const auto& [text, wanted] : cases) {
    const Result<MigConfig> read = read_mig_config(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(read.error().to_string().find(wanted), std::string::npos) << text << "\n"
                                                                        << read.error().to_string();
  }
  EXPECT_FALSE(read_mig_config(std::string(2 << 20, ' ')).ok());
}

TEST(MigConfig, EntriesThatContradictOneAnotherAreRefused) {
  const auto read = read_mig_config(
      "{version: v1, mig-configs: {a: [{devices: all, mig-enabled: false}, {devices: [1], "
      "mig-enabled: true}], b: [{devices: [7], mig-enabled: false}]}}");
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(wishes(read->at("a"), machine_of(2)).error().to_string(),
            "[1]: GPU 1 is to be no instances here and off in [0], want one entry for each GPU");
  EXPECT_EQ(wishes(read->at("b"), machine_of(2)).error().to_string(),
            "[0].devices: found 7, want indices of the 2 GPUs there are");
}

TEST(MigConfig, LayoutsThatNeedNoFile) {
  const std::vector<MigGpu> one = machine_of(1);
  const auto of = [&](const std::string& name) {
    const auto layout = usual_layout(name, one);
    if (!layout.ok()) return layout.error().to_string();
    return describe(wishes(*layout, one)->at("GPU-0"));
  };
  EXPECT_EQ(of("all-disabled"), "off");
  EXPECT_EQ(of("all-enabled"), "no instances");
  EXPECT_EQ(of("all-balanced"), "2 x 1g.18gb, 1 x 2g.35gb, 1 x 3g.71gb");
  EXPECT_EQ(of("all-1g.18gb"), "7 x 1g.18gb");
  EXPECT_EQ(of("all-1g.18gb.me"), "1 x 1g.18gb+me");
  EXPECT_EQ(of("all-3g.71gb"), "2 x 3g.71gb");
  EXPECT_EQ(of("all-1g.10gb").substr(0, 56),
            "found layout \"all-1g.10gb\", want one of all-1g.18gb, all");
  // Only GPUs that have the profile.
  const auto mixed = usual_layout("all-3g.40gb", machine_of(2));
  ASSERT_TRUE(mixed.ok());
  EXPECT_EQ(wishes(*mixed, machine_of(2))->size(), 1u);
}

}  // namespace
}  // namespace berth::partition
