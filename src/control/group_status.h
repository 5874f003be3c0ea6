// The status of PodGroups: Volcano's and coscheduling's have a phase and counts; Kubernetes' own
// get the condition that they were scheduled once, which stays. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/value.h"

namespace berth::control {

struct GroupCounts {
  int min_member = 1;
  int pods = 0, bound = 0, running = 0, succeeded = 0;
};
// A merge patch, or empty: it says so already, or the kind has no such status.
std::string group_status_patch(std::string_view api_group, const text::Value& group,
                               const GroupCounts& counts, std::int64_t now_ns);

}  // namespace berth::control
