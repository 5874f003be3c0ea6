// The status of PodGroups (Volcano's and coscheduling's): phase and how many are scheduled. Pure.
#pragma once

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
                               const GroupCounts& counts);

}  // namespace berth::control
