// The plan for machines: one tree, as JSON or as YAML. docs/plan.md names every field.
//
// Keys stand in a fixed order and nothing in it depends on the time of the run: the same input
// gives the same bytes.
#pragma once

#include <string>

#include "app/plan/plan.h"

namespace berth::app {

inline constexpr const char* kPlanVersion = "berth.dev/plan/v1";

std::string plan_json(const PlanResult& plan);
std::string plan_yaml(const PlanResult& plan);

}  // namespace berth::app
