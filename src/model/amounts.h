// Amounts by resource name, GPUs among them: what a pod takes and a node has, as quota counts it.
//
//   whole devices    nvidia.com/gpu: count (also where nodes share their GPUs: shares are devices)
//   fractions        nvidia.com/gpu: count x milli / 1000 of the pod, rounded up
//   GPU memory       nvidia.com/gpu: count, each a whole device (its size is not known before)
//   shares           nvidia.com/gpu.shared: count
//   slices           nvidia.com/mig-<profile>: count
#pragma once

#include <string>
#include <string_view>

#include "model/spec.h"

namespace berth::model {

inline constexpr const char* kGpuResource = "nvidia.com/gpu";
inline constexpr const char* kSharedGpuResource = "nvidia.com/gpu.shared";
inline constexpr std::int64_t kUnlimited = INT64_MAX;

// Whether GPUs of this node, or shares of them, go by the one name or the other.
bool offers_gpus(const NodeSpec& node);
bool offers_shares(const NodeSpec& node);

Amounts amounts_of(const PodSpec& pod);
Amounts amounts_of(const NodeSpec& node);  // healthy devices that are not reserved

// "4", "500m", "16Gi", "unlimited": an amount as Kubernetes would print it.
std::string show_amount(std::string_view resource, std::int64_t amount);

}  // namespace berth::model
