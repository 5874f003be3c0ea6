// How a decision is written down: a line of the log, its id, a digest. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/world.h"
#include "model/decision.h"
#include "text/value.h"

namespace berth::control {

// A line of the decision log (controller.h), without its newline. At most max_outcomes are told.
struct DecisionLine {
  std::uint64_t cycle = 0;
  std::int64_t now_ns = 0;
  std::uint64_t inputs = 0;
  std::size_t max_outcomes = 5'000;
};
std::string decision_id(const DecisionLine& line, const model::Decision& decision);
std::string decision_line(const DecisionLine& line, const model::Decision& decision);
// Of what was decided, whenever and on whatever it was.
std::uint64_t decision_digest(const model::Decision& decision);
std::string hex(std::uint64_t number);

}  // namespace berth::control
