// A Loop in real time: run() works on the calling thread until stop().
//
// The thread that calls run() is the loop's thread. Work posted before run() waits for it; what is
// left when run() returns is dropped by the destructor, on the thread that destroys the loop.
// Thread-safe: post(), stop(). Cost: a lock per post; a batch of posted work is taken at once.
#pragma once

#include <memory>

#include "base/loop.h"

namespace berth {

class RunLoop final : public Loop {
 public:
  RunLoop(const MonotonicClock& monotonic, const WallClock& wall);
  ~RunLoop() override;

  void run();   // returns after stop(); may be called again
  void stop();  // from any thread, also from work
  // Runs what is ready and returns at once: for a program whose own loop is another one.
  bool run_ready();

  void post(Work work) override;
  Timer after(std::int64_t delay_ns, Work work) override;
  void cancel(Timer timer) override;
  const MonotonicClock& monotonic() const override;
  const WallClock& wall() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth
