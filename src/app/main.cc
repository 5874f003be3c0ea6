#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/cli.h"
#include "app/cli/complete.h"
#include "app/log_lines.h"
#include "base/bug_report.h"
#include "base/crash_point.h"
#include "base/system_clock.h"

namespace {

std::map<std::string, std::string> environment_of(char** entries) {
  std::map<std::string, std::string> out;
  for (; *entries != nullptr; ++entries) {
    const std::string entry = *entries;
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos) out.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return out;
}

int window_rows() {
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

std::string program_name(const std::string& called) {
  const std::size_t slash = called.rfind('/');
  return slash == std::string::npos ? called : called.substr(slash + 1);
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  std::cin.tie(nullptr);
  const berth::SystemWallClock wall;
  const berth::SystemMonotonicClock monotonic;
  // Under the name of a kubectl plugin it is one, and kubectl asks it for completions by another.
  const std::string name = program_name(argc > 0 ? argv[0] : "");
  const bool completes = name == "kubectl_complete-berth";
  const bool plugin = completes || name == "kubectl-berth" || name == "kubectl_berth";
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (completes) arguments.insert(arguments.begin(), berth::app::kCompleteCommand);
  berth::app::Terminal terminal{.in = std::cin,
                                .out = std::cout,
                                .err = std::cerr,
                                .out_is_terminal = isatty(STDOUT_FILENO) == 1,
                                .err_is_terminal = isatty(STDERR_FILENO) == 1,
                                .wall = wall,
                                .monotonic = monotonic,
                                .environment = environment_of(environ),
                                .program = plugin ? "kubectl berth" : "berth",
                                .rows = window_rows};
  // For tests alone: where to die as of kill -9, or to meet a bug.
  for (const auto& [variable, set] : {std::pair("BERTH_CRASH_AT", &berth::set_crash_at),
                                      std::pair("BERTH_BUG_AT", &berth::set_bug_at)}) {
    const auto at = terminal.environment.find(variable);
    if (at == terminal.environment.end()) continue;
    if (const berth::Status done = set(at->second); !done.ok()) {
      std::cerr << "berth: " << variable << ": " << done.error().to_string() << "\n";
      return 2;
    }
  }
  // What this program gets wrong it survives, and says so; long-running commands count it as well.
  berth::app::StreamSink sink(std::cerr);
  const berth::Logger log(sink, wall);
  berth::MetricsRegistry metrics;
  const berth::BugReporter bugs(log, metrics);
  const int code = berth::app::run_command(arguments, terminal);
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "berth: the output could not be written\n";
    return 1;
  }
  return code;
}
