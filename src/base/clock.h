// The two clocks, as ports, and the fake that tests and simulations use.
//
// Whatever needs time takes one of these by reference; nobody reads the system's clock from inside
// an algorithm, so that a run can be repeated. The wall clock is for what people and other machines
// read (timestamps), and may jump. The monotonic clock is for durations and deadlines, and never
// goes back; its zero means nothing. The real ones are in base/system_clock.h, for app/ alone.
//
// Thread-safety: all implementations may be read from any thread. Cost: one virtual call.
#pragma once

#include <atomic>
#include <cstdint>

namespace berth {

class WallClock {
 public:
  virtual ~WallClock() = default;
  virtual std::int64_t now_ns() const = 0;  // since 1970-01-01T00:00:00Z
};

class MonotonicClock {
 public:
  virtual ~MonotonicClock() = default;
  virtual std::int64_t ticks_ns() const = 0;  // only differences mean something
};

// Both clocks; they move only when told. advance() moves the two together; step_wall() moves the
// wall clock alone, in either direction, as a time server does.
class FakeClock final : public WallClock, public MonotonicClock {
 public:
  explicit FakeClock(std::int64_t now_ns = 0) : wall_ns_(now_ns) {}

  std::int64_t now_ns() const override { return wall_ns_.load(std::memory_order_acquire); }
  std::int64_t ticks_ns() const override { return ticks_ns_.load(std::memory_order_acquire); }

  void advance(std::int64_t by_ns);  // by_ns >= 0
  void step_wall(std::int64_t by_ns);

 private:
  std::atomic<std::int64_t> wall_ns_;
  std::atomic<std::int64_t> ticks_ns_{0};
};

}  // namespace berth
