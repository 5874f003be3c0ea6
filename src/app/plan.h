// The plan as the commands know it; explain/plan.h makes it.
#pragma once

#include "explain/plan.h"

namespace berth::app {

using explain::ClusterUse;
using explain::exit_code;
using explain::kExitInvalid;
using explain::kExitPlaced;
using explain::kExitUsage;
using explain::kExitWaits;
using explain::kMaxCycles;
using explain::make_plan;
using explain::NodeUse;
using explain::PlanOptions;
using explain::PlanResult;
using explain::unreadable_plan;
using explain::Workload;

}  // namespace berth::app
