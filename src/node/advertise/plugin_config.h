// The configuration of NVIDIA's device plugin, read as it is: its config file (version v1), its
// flags and its environment variables, with their precedence (flag, then environment, then file).
//
// What NVIDIA's plugin parses and then ignores works here: resources.* (names by GPU model), rename
// and devices of shared resources. Bad input is refused with the field's path. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::advertise {

enum class MigStrategy : std::uint8_t { kNone, kSingle, kMixed };
enum class DeviceList : std::uint8_t { kEnvVar, kVolumeMounts, kCdiAnnotations, kCdiCri };
enum class DeviceId : std::uint8_t { kUuid, kIndex };
enum class SharedPolicy : std::uint8_t { kDistributed, kPacked };
enum class Sharing : std::uint8_t { kNone, kTimeSlicing, kMps };
std::string_view name(MigStrategy strategy);  // "none", "single", "mixed"
std::string_view name(Sharing sharing);       // "none", "time-slicing", "mps"

struct NamedResource {
  std::string pattern, name;  // "*H100*" -> "nvidia.com/h100"
  friend bool operator==(const NamedResource&, const NamedResource&) = default;
};

struct SharedResource {
  std::string name;                  // "nvidia.com/gpu"
  std::string rename;                // empty: see PluginConfig::rename_by_default
  std::vector<std::string> devices;  // index, uuid or "gpu:mig"; empty: all
  int first = 0;                     // > 0: so many devices, the lowest indices
  int replicas = 2;
  friend bool operator==(const SharedResource&, const SharedResource&) = default;
};

struct PluginConfig {
  MigStrategy mig = MigStrategy::kNone;
  std::string driver_root = "/", dev_root;  // dev_root empty: the driver root
  bool gdrcopy = false, gds = false, mofed = false;
  bool pass_device_specs = false;
  std::vector<DeviceList> device_list = {DeviceList::kEnvVar};
  DeviceId device_id = DeviceId::kUuid;
  std::string cdi_annotation_prefix = "cdi.k8s.io/";
  std::string container_driver_root = "/driver-root";
  SharedPolicy shared_policy = SharedPolicy::kDistributed;
  std::vector<int> imex_channels;
  bool imex_required = false;
  bool no_timestamp = false;  // label nvidia.com/gfd.timestamp
  std::vector<NamedResource> gpus, migs;
  Sharing sharing = Sharing::kNone;
  bool rename_by_default = false, fail_requests_over_one = false;
  std::vector<SharedResource> shared;
  std::vector<std::string> warnings;  // fields that have no effect here, for the log
  friend bool operator==(const PluginConfig&, const PluginConfig&) = default;
};

// file: the YAML or JSON text; empty: no file. flags: as given, "--mig-strategy" -> "single".
// environment: the variables, as they are.
Result<PluginConfig> read_plugin_config(std::string_view file,
                                        const std::map<std::string, std::string>& flags,
                                        const std::map<std::string, std::string>& environment);

// The names that flags may have, for --help and for refusing others.
struct PluginFlag {
  std::string_view flag, environment, what;
};
const std::vector<PluginFlag>& plugin_flags();

}  // namespace berth::advertise
