// The plan as the commands know it; people/view/plan.h makes it.
#pragma once

#include "people/view/plan.h"

namespace berth::app {

using people::ClusterUse;
using people::exit_code;
using people::kExitInvalid;
using people::kExitPlaced;
using people::kExitUsage;
using people::kExitWaits;
using people::kMaxCycles;
using people::make_plan;
using people::NodeUse;
using people::PlanOptions;
using people::PlanResult;
using people::unreadable_plan;
using people::Workload;

}  // namespace berth::app
