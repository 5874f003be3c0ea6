// A few words on what would let a waiting workload start, from the numbers of its certificate.
#pragma once

#include <string>

#include "people/view/plan.h"

namespace berth::people {

// About 30 characters, true for the state in which the outcome was decided.
std::string what_helps(const Workload& workload, const model::Outcome& outcome,
                       const kinds::Inputs& inputs);

}  // namespace berth::people
