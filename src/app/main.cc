#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <optional>

#include "app/cli.h"
#include "base/system_clock.h"

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
                                .environment = [](const std::string& name) {
                                  const char* value = std::getenv(name.c_str());
                                  return value == nullptr ? std::nullopt
                                                          : std::optional<std::string>(value);
                                }};
  const int code = berth::app::run_command({argv + 1, argv + argc}, terminal);
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "berth: the output could not be written\n";
    return 1;
  }
  return code;
}
