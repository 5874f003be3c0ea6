// Declared MIG layouts: the configuration file of NVIDIA's mig-parted and MIG manager, read as it
// is, and the layouts that need no file. docs/mig.md is the definition. Pure.
//
//   version: v1
//   mig-configs:
//     mixed:
//       - device-filter: ["0x233510DE"]   # (device << 16 | vendor); optional, one or a list
//         devices: all                    # or [0, 1]
//         mig-enabled: true
//         mig-devices: {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1}
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/partition/mig_gpu.h"

namespace berth::partition {

// What one GPU is to be. Profiles of count 0 are left out.
struct MigWish {
  bool enabled = false;
  std::map<std::string, int> devices;  // profile -> count
  friend bool operator==(const MigWish&, const MigWish&) = default;
};
std::string describe(const MigWish& wish);  // "off", "no instances", "2 x 1g.18gb, 1 x 3g.71gb"

struct MigEntry {
  std::vector<std::uint32_t> filter;  // PCI device and vendor; empty: any
  bool all_devices = false;
  std::vector<int> devices;  // indices
  MigWish wish;
  friend bool operator==(const MigEntry&, const MigEntry&) = default;
};
using MigLayout = std::vector<MigEntry>;
using MigConfig = std::map<std::string, MigLayout>;

// Strict: unknown fields, other types and counts out of range are refused with their path. At most
// 1 MiB, 1,024 layouts, 256 entries each.
Result<MigConfig> read_mig_config(std::string_view text);

// all-disabled, all-enabled, all-balanced and all-PROFILE ('+' as '.'), by what the GPUs can be
// cut into. kNotFound where no GPU has such a profile.
Result<MigLayout> usual_layout(const std::string& name, const std::vector<MigGpu>& gpus);

// By UUID; GPUs that the layout does not name are left out and left alone. Refused: an entry for a
// GPU that is not there, and two entries that want different things of one GPU.
Result<std::map<std::string, MigWish>> wishes(const MigLayout& layout,
                                              const std::vector<MigGpu>& gpus);

}  // namespace berth::partition
