// Says on a terminal that something takes its time: what, and for how long already.
//
// For work that cannot say how far it is; what can uses app/progress.h, and never both at once.
// Nothing appears in the first second, and the end wipes the line. A thread of its own while it
// lives, where standard error is a terminal; else nothing at all.
#pragma once

#include <memory>
#include <string>

#include "app/cli/cli.h"

namespace berth::app {

class Busy {
 public:
  Busy(std::string doing, Terminal& terminal);
  ~Busy();
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::app
