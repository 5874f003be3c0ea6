// The plan as a screen: 80 columns, the answer first, lists cut where a screen ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/plan/plan.h"
#include "app/views/sheet.h"

namespace berth::app {

struct TableOptions {
  std::string command;  // "berth plan -f x", for the line that says what is next
  std::optional<std::int64_t> decision_ns;  // shown at the top right; absent in pipes and tests
  std::size_t max_rows = 12;                // of one list
};

std::string plan_table(const PlanResult& plan, const TableOptions& options);

// A line for each workload and, of those that wait, for each reason (docs/plan.md).
Sheet plan_sheet(const PlanResult& plan);

// "a.yaml: document 2: line 7: Pod x/y: spec.z: found ..." with only the parts that are known.
std::string note_line(const kinds::Note& note);

}  // namespace berth::app
