// Pods that belong together as the pod sets of one workload.
#pragma once

#include <string>
#include <vector>

#include "kinds/resolve/resolution.h"

namespace berth::kinds {

// What a group lacks of its minimum, or "".
std::string lacking(const model::GangSpec& gang, const std::vector<model::PodSpec*>& pods);
// One pod set for each subgroup, and for each shape in it; none when there are too many.
std::vector<model::PodSetSpec> sets_of(const model::GangSpec& gang,
                                       const std::vector<model::PodSpec*>& pods,
                                       const model::QueueConfig& config);
void say_gated(const model::PodSpec& pod, model::WorkloadSpec& spec);

}  // namespace berth::kinds
