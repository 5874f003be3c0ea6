// How MIG instances are named: "1g.18gb", "1g.18gb+me", "1c.3g.71gb". Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace berth::partition {

// The gigabytes of the name: the instance's share of the GPU's memory in eighths, of the GPU's size
// in whole GiB. attribute: "", "+me", "+gfx", "-me", "+me.all".
std::string mig_profile_name(int compute_slices, int gpu_slices, std::int64_t instance_mib,
                             std::int64_t gpu_bytes, std::string_view attribute);

}  // namespace berth::partition
