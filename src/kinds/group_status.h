// The status of PodGroups: Volcano's and coscheduling's have a phase and counts; Kubernetes' own
// get the condition that they were scheduled once, which stays; KAI's get counts, what they ask for
// and hold, and why they cannot be scheduled. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/spec.h"
#include "text/value.h"

namespace berth::kinds {

struct GroupCounts {
  int min_member = 1;
  int pods = 0, bound = 0, running = 0, succeeded = 0, failed = 0;
  model::Amounts requested, allocated;  // of pods that have not ended; of those that are bound
  std::string reason, message;          // why it waits, or empty
};
// A merge patch, or empty: it says so already, or the kind has no such status.
std::string group_status_patch(std::string_view api_group, const text::Value& group,
                               const GroupCounts& counts, std::int64_t now_ns);

}  // namespace berth::kinds
