// What one pod takes of quota.
//
// PodSpec.requests and the GPUs by their resource name:
//   whole devices    nvidia.com/gpu: count (also where nodes share their GPUs: shares are devices)
//   fractions        nvidia.com/gpu: count x milli / 1000 of the pod, rounded up
//   GPU memory       nvidia.com/gpu: count, each a whole device (its size is not known before)
//   shares           nvidia.com/gpu.shared: count
//   slices           nvidia.com/mig-<profile>: count
// Then, as Kueue does: resources with an excluded prefix are dropped; a transformation adds
// input x output to each of its outputs (summed over inputs; the input in whole units rounded up,
// times the multiplyBy resource where the pod asks for it) and takes the input away when it
// replaces. Sums below 0 are 0; amounts are as in Amounts, rounded up.
#pragma once

#include "model/workload.h"

namespace berth::kinds {

model::Amounts quota_requests(const model::PodSpec& pod, const model::QueueConfig& config);

}  // namespace berth::kinds
