#include "node/advertise/cdi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/random.h"
#include "text/json.h"

namespace berth::advertise {
namespace {

using text::Value;

model::GpuDevice cdi_gpu(int index) {
  model::GpuDevice gpu;
  gpu.index = index;
  gpu.minor = index;
  gpu.uuid = "GPU-0000000" + std::to_string(index);
  return gpu;
}

// The field list of the CDI specification: name -> members of what it holds.
struct Fields {
  std::set<std::string> allowed, required;
};
const std::map<std::string, Fields>& cdi_fields() {
  static const std::map<std::string, Fields> table = {
      {"spec",
       {{"cdiVersion", "kind", "annotations", "containerEdits", "devices"},
        {"cdiVersion", "kind", "devices"}}},
      {"device", {{"name", "annotations", "containerEdits"}, {"name", "containerEdits"}}},
      {"containerEdits",
       {{"env", "deviceNodes", "netDevices", "mounts", "hooks", "intelRdt", "additionalGids"}, {}}},
      {"deviceNode",
       {{"path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid"},
        {"path"}}},
      {"mount", {{"hostPath", "containerPath", "type", "options"}, {"hostPath", "containerPath"}}},
  };
  return table;
}

void check_fields(const Value& value, const std::string& kind) {
  const Fields& fields = cdi_fields().at(kind);
  for (const auto& member : value.members()) {
    EXPECT_TRUE(fields.allowed.contains(std::string(member.key))) << kind << ": " << member.key;
  }
  for (const std::string& name : fields.required) {
    EXPECT_NE(value.find(name), nullptr) << kind << ": " << name << " is missing";
  }
}

void check_edits(const Value& edits) {
  check_fields(edits, "containerEdits");
  EXPECT_GT(edits.size(), 0U) << "edits may not be empty";
  EXPECT_EQ(edits.find("hooks"), nullptr);
  for (const auto& [list, kind] :
       {std::pair("deviceNodes", "deviceNode"), std::pair("mounts", "mount")}) {
    const Value* values = edits.find(list);
    if (values == nullptr) continue;
    EXPECT_GT(values->size(), 0U);
    for (const Value& value : values->items()) check_fields(value, kind);
  }
}

// The lowest version that has all that the spec uses, from the rules of the specification.
std::string version_needed(const Value& spec) {
  bool five = false;
  const auto look = [&](const Value* edits) {
    const Value* nodes = edits == nullptr ? nullptr : edits->find("deviceNodes");
    if (nodes == nullptr) return;
    for (const Value& node : nodes->items()) five = five || node.find("hostPath") != nullptr;
  };
  look(spec.find("containerEdits"));
  for (const Value& device : spec.find("devices")->items()) {
    look(device.find("containerEdits"));
    const char first = device.find("name")->string().front();
    five = five || (first >= '0' && first <= '9');
  }
  return five ? "0.5.0" : "0.3.0";
}

// What must hold for every spec.
void check_spec(const std::string& json) {
  auto parsed = text::parse_json(json);
  ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
  const Value spec = parsed->root();
  check_fields(spec, "spec");
  EXPECT_EQ(spec.find("kind")->string(), kCdiKind);
  EXPECT_EQ(spec.find("cdiVersion")->string(), version_needed(spec));
  check_edits(*spec.find("containerEdits"));
  std::set<std::string> names;
  ASSERT_GT(spec.find("devices")->size(), 0U);
  for (const Value& device : spec.find("devices")->items()) {
    check_fields(device, "device");
    check_edits(*device.find("containerEdits"));
    EXPECT_TRUE(names.insert(std::string(device.find("name")->string())).second);
  }
  EXPECT_TRUE(names.contains("all"));
}

std::vector<std::string> names_of(const std::string& json) {
  const auto parsed = text::parse_json(json);
  std::vector<std::string> names;
  for (const Value& device : parsed.value().root().find("devices")->items()) {
    names.emplace_back(device.find("name")->string());
  }
  return names;
}

// Paths of a device's nodes, or of the common ones ("").
std::vector<std::string> nodes_of(const std::string& json, const std::string& name) {
  const auto parsed = text::parse_json(json);
  const Value root = parsed.value().root();
  std::vector<std::string> paths;
  const auto add = [&](const Value& holder) {
    const Value* nodes = holder.find("containerEdits")->find("deviceNodes");
    if (nodes == nullptr) return;
    for (const Value& node : nodes->items()) paths.emplace_back(node.find("path")->string());
  };
  if (name.empty()) add(root);
  for (const Value& device : root.find("devices")->items()) {
    if (device.find("name")->string() == name) add(device);
  }
  return paths;
}

TEST(Cdi, WritesASimulatedGpu) {
  model::GpuInventory inventory;
  inventory.gpus = {cdi_gpu(0)};
  DriverFiles files;
  files.gpus = {{{{"/dev/null", "/dev/nvidia0"}}, {}}};
  const std::string node = R"("containerEdits": {
        "deviceNodes": [
          {
            "path": "/dev/nvidia0",
            "hostPath": "/dev/null"
          }
        ]
      }
    })";
  EXPECT_EQ(cdi_spec(inventory, files), R"({
  "cdiVersion": "0.5.0",
  "kind": "k8s.device-plugin.nvidia.com/gpu",
  "devices": [
    {
      "name": "0",
      )" + node + R"(,
    {
      "name": "GPU-00000000",
      )" + node + R"(,
    {
      "name": "all",
      )" + node + R"(
  ],
  "containerEdits": {
    "env": [
      "NVIDIA_VISIBLE_DEVICES=void"
    ]
  }
}
)");
  check_spec(cdi_spec(inventory, files));
}

TEST(Cdi, WritesTheDriversFiles) {
  model::GpuInventory inventory;
  inventory.gpus = {cdi_gpu(0)};
  DriverFiles files;
  files.libraries = {{"/run/driver/usr/lib64/libcuda.so.580", "/usr/lib64/libcuda.so.1"}};
  files.binaries = {{"/usr/bin/nvidia-smi", "/usr/bin/nvidia-smi"}};
  files.firmware = {{"/lib/firmware/nvidia/580/gsp.bin", "/lib/firmware/nvidia/580/gsp.bin"}};
  files.sockets = {{"/run/nvidia-persistenced/socket", "/run/nvidia-persistenced/socket"}};
  files.control_nodes = {"/dev/nvidia-uvm", "/dev/nvidiactl"};
  files.dev_root = "/run/driver";
  files.gpus = {
      {{{"/run/driver/dev/nvidia0", "/dev/nvidia0"}, {"/dev/dri/card1", "/dev/dri/card1"}}, {}}};
  const std::string json = cdi_spec(inventory, files);
  check_spec(json);
  const std::size_t common = json.find("\n  \"containerEdits\"");
  ASSERT_NE(common, std::string::npos);
  const std::string options = R"("options": [
          "ro",
          "nosuid",
          "nodev",
          "rbind",
          "rprivate")";
  EXPECT_EQ(json.substr(common), R"(
  "containerEdits": {
    "env": [
      "NVIDIA_VISIBLE_DEVICES=void"
    ],
    "deviceNodes": [
      {
        "path": "/dev/nvidia-uvm",
        "hostPath": "/run/driver/dev/nvidia-uvm"
      },
      {
        "path": "/dev/nvidiactl",
        "hostPath": "/run/driver/dev/nvidiactl"
      }
    ],
    "mounts": [
      {
        "hostPath": "/lib/firmware/nvidia/580/gsp.bin",
        "containerPath": "/lib/firmware/nvidia/580/gsp.bin",
        )" + options + R"(
        ]
      },
      {
        "hostPath": "/run/nvidia-persistenced/socket",
        "containerPath": "/run/nvidia-persistenced/socket",
        )" + options + R"(,
          "noexec"
        ]
      },
      {
        "hostPath": "/usr/bin/nvidia-smi",
        "containerPath": "/usr/bin/nvidia-smi",
        )" + options + R"(
        ]
      },
      {
        "hostPath": "/run/driver/usr/lib64/libcuda.so.580",
        "containerPath": "/usr/lib64/libcuda.so.1",
        )" + options + R"(
        ]
      }
    ]
  }
}
)");
  EXPECT_EQ(nodes_of(json, "0"), (std::vector<std::string>{"/dev/nvidia0", "/dev/dri/card1"}));
  EXPECT_EQ(json.find("\"hostPath\": \"/dev/dri/card1\""), std::string::npos)
      << "a host path that is the container's is left out";
}

TEST(Cdi, NamesMigInstancesInsteadOfTheirGpu) {
  model::GpuInventory inventory;
  inventory.gpus = {cdi_gpu(0), cdi_gpu(1)};
  inventory.gpus[1].mig_enabled = true;
  inventory.gpus[1].mig = {{.uuid = "MIG-a", .profile = "1g.18gb"},
                           {.uuid = "MIG-b", .profile = "1g.18gb+gfx"}};
  DriverFiles files;
  files.gpus = {{{{"/dev/nvidia0", "/dev/nvidia0"}}, {}},
                {{{"/dev/nvidia1", "/dev/nvidia1"}, {"/dev/dri/card1", "/dev/dri/card1"}},
                 {{"/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13"},
                  {"/dev/nvidia-caps/nvidia-cap21", "/dev/nvidia-caps/nvidia-cap22"}}}};
  const std::string json = cdi_spec(inventory, files);
  check_spec(json);
  EXPECT_EQ(names_of(json),
            (std::vector<std::string>{"0", "GPU-00000000", "1:0", "MIG-a", "1:1", "MIG-b", "all"}));
  const std::vector<std::string> first = {"/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap12",
                                          "/dev/nvidia-caps/nvidia-cap13"};
  EXPECT_EQ(nodes_of(json, "1:0"), first);
  EXPECT_EQ(nodes_of(json, "MIG-a"), first);
  EXPECT_EQ(nodes_of(json, "MIG-b"), (std::vector<std::string>{"/dev/nvidia1", "/dev/dri/card1",
                                                               "/dev/nvidia-caps/nvidia-cap21",
                                                               "/dev/nvidia-caps/nvidia-cap22"}));
  EXPECT_EQ(nodes_of(json, "all").size(), 7U);
}

TEST(Cdi, WithoutGpusThereIsNothingToWrite) {
  EXPECT_EQ(cdi_spec({}, {}), "");
  EXPECT_EQ(cdi_name("GPU-1"), "k8s.device-plugin.nvidia.com/gpu=GPU-1");
}

TEST(Cdi, FilesThatWereNotLookedForAreTheUsualOnes) {
  model::GpuInventory inventory;
  inventory.gpus = {cdi_gpu(4)};
  inventory.gpus[0].minor = 7;
  const std::string json = cdi_spec(inventory, {});
  check_spec(json);
  EXPECT_EQ(nodes_of(json, "4"), std::vector<std::string>{"/dev/nvidia7"});
}

TEST(Cdi, NeedsNoLaterVersionThanItUses) {
  model::GpuInventory inventory;
  inventory.gpus = {cdi_gpu(0)};
  inventory.gpus[0].mig_enabled = true;  // and without instances
  DriverFiles files;
  const auto version = [&] {
    const std::string json = cdi_spec(inventory, files);
    check_spec(json);
    return std::string(text::parse_json(json).value().root().find("cdiVersion")->string());
  };
  EXPECT_EQ(version(), "0.3.0") << "\"all\" is its only device";
  files.control_nodes = {"/dev/nvidiactl"};
  EXPECT_EQ(version(), "0.3.0");
  files.dev_root = "/run/driver";
  EXPECT_EQ(version(), "0.5.0") << "host paths";
  files.dev_root = "";
  inventory.gpus[0].mig_enabled = false;
  EXPECT_EQ(version(), "0.5.0") << "names of digits";
}

TEST(Cdi, LeavesOutPathsAndNamesThatARuntimeWouldStumbleOver) {
  model::GpuInventory inventory;
  inventory.gpus = {cdi_gpu(0), cdi_gpu(1), cdi_gpu(2), cdi_gpu(3), cdi_gpu(4)};
  inventory.gpus[1].uuid = "GPU-00000000";  // a second time
  inventory.gpus[2].uuid = "all";
  inventory.gpus[3].uuid = "a=b";
  inventory.gpus[4].uuid = "1";
  DriverFiles files;
  for (const char* path : {"relative", "", "/a/../etc/shadow", "/a/..", "/a\nb", "/a\xff",
                           "/a\xe2\x80\xae", "/a\x1b[31m"}) {
    files.libraries.push_back({path, "/usr/lib64/libcuda.so.1"});
    files.libraries.push_back({"/usr/lib64/libcuda.so.1", path});
    files.control_nodes.push_back(path);
  }
  files.libraries.push_back({std::string("/a\0b", 4), "/b"});
  files.libraries.push_back({"/" + std::string(5'000, 'a'), "/b"});
  files.libraries.push_back({"/good \"name\\", "/good..name"});
  const std::string json = cdi_spec(inventory, files);
  check_spec(json);
  EXPECT_EQ(names_of(json),
            (std::vector<std::string>{"0", "GPU-00000000", "1", "2", "3", "4", "all"}));
  const auto parsed = text::parse_json(json);
  const Value* mounts = parsed.value().root().find("containerEdits")->find("mounts");
  ASSERT_NE(mounts, nullptr);
  ASSERT_EQ(mounts->size(), 1U);
  EXPECT_EQ(mounts->items()[0].find("hostPath")->string(), "/good \"name\\");
  EXPECT_EQ(nodes_of(json, ""), std::vector<std::string>());
  EXPECT_EQ(nodes_of(json, "1"), std::vector<std::string>{"/dev/nvidia1"});
  EXPECT_EQ(nodes_of(json, "all").size(), 5U);
}

TEST(Cdi, IsAlwaysValidAndTheSameForTheSameInput) {
  Random random(20261116);
  const auto any_text = [&] {
    std::string text = random.chance(1, 2) ? "/" : "";
    for (std::uint64_t n = random.below(12); n > 0; --n) {
      text += static_cast<char>(random.chance(3, 4) ? random.between('-', 'z')
                                                    : random.between(-128, 127));
    }
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    model::GpuInventory inventory;
    DriverFiles files;
    for (std::uint64_t n = 1 + random.below(4); n > 0; --n) {
      model::GpuDevice gpu = cdi_gpu(static_cast<int>(random.below(3)));
      if (random.chance(1, 3)) gpu.uuid = any_text();
      gpu.mig_enabled = random.chance(1, 2);
      gpu.mig.resize(random.below(3));
      for (auto& instance : gpu.mig) instance.uuid = any_text();
      inventory.gpus.push_back(gpu);
      DriverFiles::GpuNodes nodes;
      nodes.nodes = {{"/dev/nvidia0", "/dev/nvidia0"}, {any_text(), any_text()}};
      nodes.mig_caps = {{any_text(), any_text()}};
      if (random.chance(3, 4)) files.gpus.push_back(nodes);
    }
    for (auto* list : {&files.libraries, &files.configs, &files.sockets}) {
      for (std::uint64_t n = random.below(4); n > 0; --n) list->push_back({any_text(), any_text()});
    }
    files.control_nodes = {any_text(), any_text()};
    const std::string json = cdi_spec(inventory, files);
    check_spec(json);
    EXPECT_EQ(json, cdi_spec(inventory, files));
    if (HasFailure()) FAIL() << "round " << round << "\n" << json;
  }
}

TEST(Cdi, ExtrasHaveSpecsOfTheirOwn) {
  const DriverFiles::Extra storage{"gds",
                                   "all",
                                   {{"/dev/nvidia-fs0", "/dev/nvidia-fs0"}},
                                   {{"/etc/cufile.json", "/etc/cufile.json"}}};
  EXPECT_EQ(cdi_name(storage), "k8s.device-plugin.nvidia.com/gds=all");
  const auto parsed = text::parse_json(cdi_spec(storage));
  ASSERT_TRUE(parsed.ok());
  const Value spec = parsed->root();
  check_fields(spec, "spec");
  EXPECT_EQ(spec.find("kind")->string(), "k8s.device-plugin.nvidia.com/gds");
  EXPECT_EQ(spec.find("cdiVersion")->string(), "0.3.0");
  check_edits(*spec.find("devices")->items().front().find("containerEdits"));
  EXPECT_EQ(nodes_of(cdi_spec(DriverFiles::Extra{
                         "imex-channel", "0", {{"/dev/null", "/dev/channel0"}}, {}}),
                     "0"),
            std::vector<std::string>{"/dev/channel0"});
  const DriverFiles::Extra channel{"imex-channel", "0", {{"/dev/c", "/dev/c"}}, {}};
  EXPECT_NE(cdi_spec(channel).find(R"("cdiVersion": "0.5.0")"), std::string::npos);
  // Without a node that can be named there is no spec: a device without edits is not valid.
  EXPECT_EQ(cdi_spec(DriverFiles::Extra{"gds", "all", {}, {}}), "");
  EXPECT_EQ(cdi_spec(DriverFiles::Extra{"gds", "all", {{"/dev/../x", "/dev/x"}}, {}}), "");
}

TEST(Cdi, ExtrasAreServedWhereTheMachineHasThem) {
  DriverFiles files;
  PluginConfig config;
  files.extras = {{"gds", "all", {{"/dev/nvidia-fs0", "/dev/nvidia-fs0"}}, {}},
                  {"imex-channel", "0", {{"/dev/c", "/dev/c"}}, {}}};
  auto none = choose_extras(config, files);
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->served.empty() && none->warnings.empty()) << "nobody asked";
  config.gds = config.mofed = config.gdrcopy = config.imex_required = true;
  config.imex_channels = {0};
  auto some = choose_extras(config, files);
  ASSERT_TRUE(some.ok());
  ASSERT_EQ(some->served.size(), 2U);
  EXPECT_EQ(some->served[0].what, "imex-channel");
  EXPECT_EQ(some->served[1].what, "gds");
  EXPECT_EQ(some->warnings,
            (std::vector<std::string>{
                "mofedEnabled: there is no /dev/infiniband/uverbs* here; containers go without it",
                "gdrcopyEnabled: there is no /dev/gdrdrv here; containers go without it"}));
  files.extras.pop_back();
  EXPECT_EQ(choose_extras(config, files).error().to_string(),
            "imex.channelIDs: there is no /dev/nvidia-caps-imex-channels/channel0 here, and "
            "imex.required is set");
  config.imex_required = false;
  EXPECT_EQ(choose_extras(config, files)->warnings.size(), 3U);
}

}  // namespace
}  // namespace berth::advertise
