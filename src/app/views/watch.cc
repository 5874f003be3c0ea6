#include "app/views/watch.h"

#include <atomic>
#include <ostream>
#include <sstream>

#include "app/signals.h"
#include "base/run_loop.h"

namespace berth::app {

namespace {

// From the top left, each line over what stood there; nothing flickers. What is higher than the
// window is cut: scrolling would tear it.
std::string drawn(const std::string& text, int rows) {
  std::string out = "\x1b[H";
  std::istringstream lines(text);
  std::string line;
  int shown = 0, more = 0;
  while (std::getline(lines, line)) {
    if (rows > 2 && shown >= rows - 2) {
      ++more;
      continue;
    }
    out += line + "\x1b[K\n";
    ++shown;
  }
  if (more > 0) out += "+" + std::to_string(more) + " lines below the window\x1b[K\n";
  return out + "\x1b[J";
}

}  // namespace

int watch_until(const WatchOptions& options, Terminal& terminal, const WatchedCommand& once,
                const std::function<bool()>& pause) {
  std::string last;
  for (bool first = true;; first = false) {
    std::ostringstream screen;
    Terminal inner{.in = terminal.in,
                   .out = screen,
                   .err = terminal.err,
                   .out_is_terminal = terminal.out_is_terminal,
                   .err_is_terminal = terminal.err_is_terminal,
                   .wall = terminal.wall,
                   .monotonic = terminal.monotonic,
                   .environment = terminal.environment,
                   .program = terminal.program,
                   .rows = terminal.rows};
    const int code = once(inner);
    const std::string text = screen.str();
    if (terminal.out_is_terminal) {
      if (!text.empty()) terminal.out << drawn(text, terminal.rows ? terminal.rows() : 0);
    } else if (!text.empty() && text != last) {
      terminal.out << (last.empty() ? "" : options.between) << text;
      last = text;
    }
    terminal.out << std::flush;
    const bool failed = code == kExitUsage || (first && code == kExitNothing);
    if (failed || !terminal.out || !pause()) return code;
  }
}

int watched(const WatchOptions& options, Terminal& terminal, const WatchedCommand& once) {
  if (!options.on) return once(terminal);
  std::atomic<bool> stopped = false;
  RunLoop loop(terminal.monotonic, terminal.wall);
  const StopSignals signals([&] {
    stopped = true;
    loop.post([&loop] { loop.stop(); });
  });
  return watch_until(options, terminal, once, [&] {
    if (stopped) return false;
    loop.after(std::int64_t{options.every_s} * 1'000'000'000, [&loop] { loop.stop(); });
    loop.run();
    return !stopped;
  });
}

}  // namespace berth::app
