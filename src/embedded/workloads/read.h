// Times as the API's objects have them.
#pragma once

#include <cstdint>
#include <string>

#include "kinds/readers.h"
#include "text/json_writer.h"
#include "text/rfc3339.h"
#include "text/value.h"

namespace berth::sim {

// As metav1.Time is written: whole seconds.
inline std::string seconds_text(std::int64_t wall_ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t s = wall_ns / kSecond;
  if (wall_ns < 0 && wall_ns % kSecond != 0) --s;
  return text::format_rfc3339(s * kSecond);
}
// As metav1.MicroTime is written: always six digits.
inline std::string micro_text(std::int64_t wall_ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t rest = wall_ns % kSecond;
  if (rest < 0) rest += kSecond;
  std::string out = text::format_rfc3339(wall_ns - rest);
  std::string digits = std::to_string(1'000'000 + rest / 1000);
  if (!out.empty()) out.pop_back();
  return out + '.' + digits.substr(1) + 'Z';
}

}  // namespace berth::sim
