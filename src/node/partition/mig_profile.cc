#include "node/partition/mig_profile.h"

namespace berth::partition {

std::string mig_profile_name(int compute_slices, int gpu_slices, std::int64_t instance_mib,
                             std::int64_t gpu_bytes, std::string_view attribute) {
  std::string name;
  if (compute_slices != gpu_slices) name += std::to_string(compute_slices) + "c.";
  name += std::to_string(gpu_slices) + "g.";
  std::int64_t gigabytes = 0;
  if (gpu_bytes > 0 && instance_mib > 0) {
    constexpr std::int64_t kMib = 1LL << 20, kGib = 1LL << 30;
    // The driver's figures, rounded up to whole eighths, and those to the nearest gigabyte.
    const std::int64_t eighths = (instance_mib * kMib * 8 + gpu_bytes - 1) / gpu_bytes;
    const std::int64_t whole = (gpu_bytes + kGib - 1) / kGib;
    gigabytes = (eighths * whole + 4) / 8;
  }
  name += std::to_string(gigabytes) + "gb";
  name += attribute;
  return name;
}

}  // namespace berth::partition
