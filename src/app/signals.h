// Ctrl-C and SIGTERM as an event: the first one asks to stop, a second one ends the program at
// once.
//
// Made before any other thread is started, so that none of them takes the signal. One at a time.
#pragma once

#include <functional>
#include <memory>

namespace berth::app {

class StopSignals {
 public:
  // asked: called on a thread of its own, once.
  explicit StopSignals(std::function<void()> asked);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::app
