#include "base/system_clock.h"

#include <chrono>

namespace berth {
namespace {

template <class Clock>
std::int64_t since_zero_ns() {
  using std::chrono::nanoseconds;
  return std::chrono::duration_cast<nanoseconds>(Clock::now().time_since_epoch()).count();
}

}  // namespace

std::int64_t SystemWallClock::now_ns() const { return since_zero_ns<std::chrono::system_clock>(); }

std::int64_t SystemMonotonicClock::ticks_ns() const {
  return since_zero_ns<std::chrono::steady_clock>();
}

}  // namespace berth
