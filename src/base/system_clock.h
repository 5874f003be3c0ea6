// The machine's clocks. Only app/ (and the edges' tests) may include this header; base, text,
// model, objects and the stages take a WallClock or a MonotonicClock instead, and test/tidy keeps
// it so.
//
// Thread-safe. Cost: one clock read of the system, tens of nanoseconds.
#pragma once

#include "base/clock.h"

namespace berth {

class SystemWallClock final : public WallClock {
 public:
  std::int64_t now_ns() const override;
};

class SystemMonotonicClock final : public MonotonicClock {
 public:
  std::int64_t ticks_ns() const override;
};

}  // namespace berth
