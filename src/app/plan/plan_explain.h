// berth plan --explain: where one workload of the plan goes, or why it waits (people/why/why.h).
#pragma once

#include <string>
#include <string_view>

#include "app/plan/plan.h"
#include "base/result.h"

namespace berth::app {

// name: "ns/name", or a name that only one workload (or pod) has. replay: the command that says the
// same again. Not found, or found twice, is an error that names the candidates. Cost: as a plan,
// and one more for each fix that is tried.
Result<std::string> explain_in_plan(const PlanResult& plan, const kinds::Inputs& inputs,
                                    const PlanOptions& options, std::string_view name,
                                    const std::string& replay);

}  // namespace berth::app
