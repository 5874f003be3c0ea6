// berth plan: reads manifests, prints the plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/cli.h"
#include "app/plan/policy_option.h"

namespace berth::app {

struct PlanArguments {
  std::vector<std::string> paths;
  std::string cycles = "until-stable";
  std::string output = "table";
  std::optional<std::string> explain;
  std::string max_input = "256Mi";
  std::string now;
  PolicyArguments policy;
  bool quota_only = false;
};

int plan_command(const PlanArguments& args, Terminal& terminal);

}  // namespace berth::app
