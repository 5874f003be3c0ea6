// Every rule of lint: its name, how bad a finding is, and why it matters.
#pragma once

#include <span>
#include <string_view>

#include "people/lint/finding.h"

namespace berth::lint {

struct Rule {
  std::string_view id;
  Severity severity;
  std::string_view what;  // what the rule looks for
  std::string_view why;   // why it matters
};

std::span<const Rule> rules();               // sorted by id
const Rule* find_rule(std::string_view id);  // nullptr: no such rule

}  // namespace berth::lint
