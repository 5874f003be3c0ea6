// What the ResourceQuotas and LimitRanges of a namespace hold a template of pods by.
//
// The rules are the API server's: which pods a scope counts, which amounts, what every container
// has to state, how far a limit may be from a request. Pure. by_quotas costs a pass over the pods
// of the namespace where one of its quotas counts the template.
#pragma once

#include <optional>

#include "people/why/pod_template.h"
#include "people/why/server_rules.h"

namespace berth::people {

std::optional<Held> by_quotas(const ObjectSource& objects, const PodTemplate& mine,
                              PodReadings& readings);
std::optional<Held> by_ranges(const ObjectSource& objects, const PodTemplate& mine);

}  // namespace berth::people
