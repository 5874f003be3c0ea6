// Time as benchmarks count it.
#pragma once

#include <chrono>

namespace berth::bench {

using Clock = std::chrono::steady_clock;

inline double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

}  // namespace berth::bench
