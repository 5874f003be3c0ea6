// Why one workload is placed where it is, or waits: the verdict first, then the arithmetic, then
// the evidence, then one next step.
#pragma once

#include <string>
#include <string_view>

#include "app/plan.h"
#include "base/result.h"

namespace berth::app {

// name: "ns/name" or a name that only one workload (or pod) has. Not found, or found twice, is an
// error that names the candidates.
Result<const Workload*> find_workload(const PlanResult& plan, const objects::Inputs& inputs,
                                      std::string_view name);

std::string explain(const PlanResult& plan, const Workload& workload);

}  // namespace berth::app
