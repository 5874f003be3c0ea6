// What changed between two texts, line by line, as diff -u prints it.
#pragma once

#include <string>
#include <string_view>

namespace berth::app {

// "" when they are equal. Lines are made safe for a terminal. Cost: lines times changes; where that
// is much, the middle is shown as removed and added as a whole.
std::string line_diff(std::string_view before, std::string_view after, std::string_view name);

}  // namespace berth::app
