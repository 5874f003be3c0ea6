// The command line: reads arguments, calls the commands, returns the exit code.
//
// Everything it touches is passed in, so that tests run whole commands. Exit codes: docs/cli.md.
#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "app/plan/plan.h"
#include "base/clock.h"
#include "base/result.h"

namespace berth::app {

struct Terminal {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  const WallClock& wall;
  const MonotonicClock& monotonic;
  std::map<std::string, std::string> environment = {};  // kubeconfig paths and the like
  std::string program = "berth";   // how people call it; "kubectl berth" as a plugin
  std::function<int()> rows = {};  // of the window that out is shown in; 0: not known
};

// Exit codes that all commands share; the rest: docs/cli.md.
inline constexpr int kExitNothing = 1;  // not reached, not readable, not there

// arguments: without the program's name.
int run_command(const std::vector<std::string>& arguments, Terminal& terminal);

}  // namespace berth::app
