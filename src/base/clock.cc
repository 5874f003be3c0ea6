#include "base/clock.h"

#include "base/check.h"

namespace berth {

void FakeClock::advance(std::int64_t by_ns) {
  BERTH_ASSERT(by_ns >= 0, "a monotonic clock never goes back; use step_wall()");
  ticks_ns_.fetch_add(by_ns, std::memory_order_acq_rel);
  wall_ns_.fetch_add(by_ns, std::memory_order_acq_rel);
}

void FakeClock::step_wall(std::int64_t by_ns) {
  wall_ns_.fetch_add(by_ns, std::memory_order_acq_rel);
}

}  // namespace berth
