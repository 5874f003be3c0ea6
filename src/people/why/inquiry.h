// Why one unit does not run, or where: what the decision said of it, refined by what its nodes say,
// what would hold it next, what it shares, and what would let it start.
#pragma once

#include <optional>

#include "people/why/answer.h"
#include "people/why/server_rules.h"
#include "people/why/trial.h"
#include "people/why/unit.h"
#include "people/why/why.h"

namespace berth::people {

// unit: found in what the trials are of. held: what the API server has against it.
Answer inquire(const WhyOptions& options, Trials& trials, Unit unit, Subject subject,
               std::optional<Held> held = {});

}  // namespace berth::people
