// Expectations about queues: reading their lines, and holding them against what is seen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine.h"

namespace berth::scenario {

// Fills e from the words of a line; false: the line is none of these. text: what is quoted in it.
Result<bool> read_queue_expectation(const std::vector<std::string>& words, const std::string& text,
                                    Expectation& e);

// Nothing when it holds, else what is found instead.
std::optional<std::string> check_queue_expectation(const Expectation& e, const Observed& seen);

}  // namespace berth::scenario
