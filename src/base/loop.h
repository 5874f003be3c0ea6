// One thread's order of things: work that is posted runs there, one piece after another, and so do
// timers. Whoever holds a Loop is called by it and by nobody else, and therefore needs no lock.
//
// Two implementations: base/run_loop.h waits for real time on the thread that calls run();
// SteppedLoop, below, moves a FakeClock and is the same in every run.
//
// Order: posted work runs in the order of post(); timers by due time, equal ones in the order they
// were set; a timer that is due runs before work that was posted after it came due. Work may post,
// set and cancel. Cost: O(log timers).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "base/clock.h"

namespace berth {

class Loop {
 public:
  using Work = std::function<void()>;
  using Timer = std::uint64_t;  // 0 is no timer

  virtual ~Loop() = default;
  // From any thread. Never runs the work inside the call.
  virtual void post(Work work) = 0;
  // The rest on the loop's thread alone. A negative delay counts as 0.
  virtual Timer after(std::int64_t delay_ns, Work work) = 0;
  virtual void cancel(Timer timer) = 0;  // one that ran, or none: nothing happens
  virtual const MonotonicClock& monotonic() const = 0;
  virtual const WallClock& wall() const = 0;
};

// Driven by its caller in virtual time. Not thread-safe: post() too is for one thread.
class SteppedLoop final : public Loop {
 public:
  explicit SteppedLoop(FakeClock& clock) : clock_(clock) {}

  void post(Work work) override { posted_.push_back(std::move(work)); }
  Timer after(std::int64_t delay_ns, Work work) override;
  void cancel(Timer timer) override;
  const MonotonicClock& monotonic() const override { return clock_; }
  const WallClock& wall() const override { return clock_; }

  // What is posted or due now, and what that posts; time stands still. False: there was nothing.
  bool run_ready();
  // Runs everything up to that many nanoseconds from now, jumping from timer to timer; the clock
  // stands at the end of it afterwards.
  void run_for(std::int64_t ns);
  // Until done() holds, tested after each piece of work, or so much time has passed. True: it
  // holds.
  bool run_until(const std::function<bool()>& done, std::int64_t at_most_ns);

  bool idle() const { return posted_.empty() && timers_.empty(); }

 private:
  bool run_one();  // false: nothing is due now

  FakeClock& clock_;
  std::deque<Work> posted_;
  std::map<std::pair<std::int64_t, Timer>, Work> timers_;  // by due time
  std::map<Timer, std::int64_t> due_;
  Timer last_timer_ = 0;
};

}  // namespace berth
