// --watch: a command again and again until Ctrl-C.
//
// On a terminal the screen is drawn anew in place; elsewhere a block is printed when it differs
// from the one before, so that a log or a pipe holds changes alone. A look that fails is told and
// tried again, but for the first one: then what was asked for is wrong.
#pragma once

#include <functional>
#include <string>

#include "app/cli/cli.h"

namespace berth::app {

struct WatchOptions {
  bool on = false;
  int every_s = 2;
  std::string between = "\n";  // two blocks, where it is no terminal; of YAML "---\n"
};

// A command that prints once, to the terminal it is given.
using WatchedCommand = std::function<int(Terminal&)>;

// once alone where the options do not say on. Blocks; returns the last exit code.
int watched(const WatchOptions& options, Terminal& terminal, const WatchedCommand& once);

// The same with a pause of the caller's: false ends it.
int watch_until(const WatchOptions& options, Terminal& terminal, const WatchedCommand& once,
                const std::function<bool()>& pause);

}  // namespace berth::app
