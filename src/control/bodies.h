// JSON bodies of the small writes. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/world.h"
#include "model/decision.h"
#include "text/value.h"

namespace berth::control {

struct Regarding {
  std::string version, kind, ns, name, uid;
};
Regarding of_gang(const std::string& name);  // "ns/name"
// An Event of events.k8s.io/v1.
std::string event_body(const Regarding& regarding, std::string_view name, std::string_view type,
                       std::string_view reason, std::string_view action, std::string_view note,
                       std::int64_t now_ns);

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
