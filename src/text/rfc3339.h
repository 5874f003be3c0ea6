// Points in time as RFC 3339 text, and Go durations.
//
// Times are int64 nanoseconds since 1970-01-01T00:00:00Z, which reaches from 1677-09-21 to
// 2262-04-11; other years are refused. A leap second (:60) is refused: neither Go nor Kubernetes
// reads it. Digits past the ninth of a fraction are dropped, as Go does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::text {

// "2024-02-29T12:30:00.5+02:00"; 'T' and 'Z' may be lower case.
Result<std::int64_t> parse_rfc3339(std::string_view text);

// "2024-02-29T10:30:00Z"; a fraction only when there is one, without trailing zeros.
std::string format_rfc3339(std::int64_t unix_ns);
// Of the second that has begun, as Kubernetes writes times.
std::string format_whole_second(std::int64_t unix_ns);

// "1h30m", "-1.5s", "300ms"; units ns, us (also with a micro sign), ms, s, m, h; "0" needs none.
// To nanoseconds.
Result<std::int64_t> parse_go_duration(std::string_view text);

// As Go prints it: "1h30m0s", "300ms", "0s".
std::string format_go_duration(std::int64_t ns);

}  // namespace berth::text
