// KAI: work that may not be preempted keeps to the deserved quota of its queue and of those above
// it. A decision does not know which work that is: it is read from the objects.
//
// Not to be preempted is what says so (kai.scheduler/preemptibility, spec.preemptibility of its
// PodGroup), else what has a priority of 100 or more. Pure. Costs a pass over the pods where such
// work is asked about.
#pragma once

#include <optional>
#include <vector>

#include "people/why/server_rules.h"

namespace berth::people {

inline constexpr const char* kPreemptibilityLabel = "kai.scheduler/preemptibility";

std::optional<Held> by_deserved_quota(const ObjectSource& objects,
                                      const std::vector<TemplatePlace>& places);

}  // namespace berth::people
