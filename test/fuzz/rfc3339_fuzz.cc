// Times and durations: what is taken prints as text that gives the same number.
#include <cstring>

#include "fuzz.h"
#include "text/rfc3339.h"

BERTH_FUZZ_TARGET(rfc3339) {
  using namespace berth;
  const std::string_view input = fuzz::text_of(data, size);
  if (const auto time = text::parse_rfc3339(input); time.ok()) {
    const auto again = text::parse_rfc3339(text::format_rfc3339(*time));
    fuzz::check(again.ok() && *again == *time, "a time comes back");
  }
  if (const auto duration = text::parse_go_duration(input); duration.ok()) {
    const auto again = text::parse_go_duration(text::format_go_duration(*duration));
    fuzz::check(again.ok() && *again == *duration, "a duration comes back");
  }
  std::int64_t any = 0;
  if (size < sizeof(any)) return 0;
  std::memcpy(&any, data, sizeof(any));
  const auto time = text::parse_rfc3339(text::format_rfc3339(any));
  fuzz::check(time.ok() && *time == any, "every number is a time");
  const auto duration = text::parse_go_duration(text::format_go_duration(any));
  fuzz::check(duration.ok() && *duration == any, "every number is a duration");
  return 0;
}
