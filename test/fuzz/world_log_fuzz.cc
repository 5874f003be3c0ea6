// The replay of a decision log: whatever its lines say, they are refused or carried out. Each line
// gets the sum that it needs, so that the lines themselves are looked at.
#include "control/decision_line.h"
#include "control/replay.h"
#include "fuzz.h"

BERTH_FUZZ_TARGET(world_log) {
  using namespace berth;
  std::string_view rest = fuzz::text_of(data, size);
  control::Replay replay;
  std::uint64_t sum = control::kLineSumStart;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() == rest.size() ? rest.size() : line.size() + 1);
    sum = control::line_sum(sum, line);
    const auto answer = replay.line(control::hex(sum) + ' ' + std::string(line));
    if (!answer.ok()) {
      fuzz::check(!answer.error().to_string().empty(), "an error says what is wrong");
      return 0;
    }
  }
  return 0;
}
