#include <unistd.h>

#include <iostream>
#include <map>
#include <string>

#include "app/cli.h"
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

// Under the name of a kubectl plugin it is one.
std::string program_of(const std::string& called) {
  const std::size_t slash = called.rfind('/');
  const std::string name = slash == std::string::npos ? called : called.substr(slash + 1);
  return name == "kubectl-berth" || name == "kubectl_berth" ? "kubectl berth" : "berth";
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  std::cin.tie(nullptr);
  const berth::SystemWallClock wall;
  const berth::SystemMonotonicClock monotonic;
  berth::app::Terminal terminal{.in = std::cin,
                                .out = std::cout,
                                .err = std::cerr,
                                .out_is_terminal = isatty(STDOUT_FILENO) == 1,
                                .err_is_terminal = isatty(STDERR_FILENO) == 1,
                                .wall = wall,
                                .monotonic = monotonic,
                                .environment = environment_of(environ),
                                .program = program_of(argc > 0 ? argv[0] : "")};
  // For tests alone: where to die as of kill -9.
  if (const auto at = terminal.environment.find("BERTH_CRASH_AT");
      at != terminal.environment.end()) {
    if (const berth::Status set = berth::set_crash_at(at->second); !set.ok()) {
      std::cerr << "berth: BERTH_CRASH_AT: " << set.error().to_string() << "\n";
      return 2;
    }
  }
  const int code = berth::app::run_command({argv + 1, argv + argc}, terminal);
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "berth: the output could not be written\n";
    return 1;
  }
  return code;
}
