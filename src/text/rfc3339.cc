#include "text/rfc3339.h"

#include <limits>
#include <optional>

#include "text/escape.h"
#include "text/quantity.h"

namespace berth::text {

namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr std::int64_t kSecondsPerDay = 86'400;

// Days since 1970-01-01 of a date of the proleptic Gregorian calendar. Years start in March, so
// that the leap day is the last; an era is 400 years.
std::int64_t days_from_civil(std::int64_t year, int month, int day) {
  const std::int64_t y = month <= 2 ? year - 1 : year;
  const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
  const std::int64_t year_of_era = y - era * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const std::int64_t day_of_era =
      year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146'097 + day_of_era - 719'468;
}

struct Civil {
  std::int64_t year = 0;
  std::int64_t month = 0;
  std::int64_t day = 0;
};

Civil civil_from_days(std::int64_t days) {
  const std::int64_t z = days + 719'468;
  const std::int64_t era = (z >= 0 ? z : z - 146'096) / 146'097;
  const std::int64_t doe = z - era * 146'097;
  const std::int64_t yoe = (doe - doe / 1460 + doe / 36'524 - doe / 146'096) / 365;
  const std::int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  const std::int64_t mp = (5 * doy + 2) / 153;
  const std::int64_t month = mp < 10 ? mp + 3 : mp - 9;
  return {yoe + era * 400 + (month <= 2 ? 1 : 0), month, doy - (153 * mp + 2) / 5 + 1};
}

int days_in_month(int year, int month) {
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12) return 0;
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29 : kDays[month - 1];
}

bool ascii_digit(char c) { return c >= '0' && c <= '9'; }

// Takes pieces off the front of a time; the first thing that is wrong stays as the reason.
class TimeText {
 public:
  explicit TimeText(std::string_view text) : rest_(text) {}

  int number(std::size_t digits, int low, int high, const char* what) {
    int value = 0;
    if (rest_.size() < digits) return fail(std::string("the ") + what + " is missing");
    for (std::size_t i = 0; i < digits; ++i) {
      if (!ascii_digit(rest_[i])) {
        return fail(std::string("the ") + what + " is not " + std::to_string(digits) + " digits");
      }
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(digits);
    if (value < low || value > high) {
      return fail(std::string("the ") + what + " is not " + std::to_string(low) + ".." +
                  std::to_string(high));
    }
    return value;
  }

  void expect(std::string_view any_of, const char* what) {
    if (rest_.empty() || any_of.find(rest_.front()) == std::string_view::npos) {
      fail(std::string("want ") + what);
      return;
    }
    rest_.remove_prefix(1);
  }

  std::int64_t fraction_ns() {
    if (rest_.empty() || rest_.front() != '.') return 0;
    rest_.remove_prefix(1);
    if (rest_.empty() || !ascii_digit(rest_.front())) return fail("want a digit after the point");
    std::int64_t value = 0;
    std::int64_t unit = kNsPerSecond / 10;
    for (; !rest_.empty() && ascii_digit(rest_.front()); rest_.remove_prefix(1)) {
      value += (rest_.front() - '0') * unit;
      unit /= 10;
    }
    return value;
  }

  std::int64_t offset_seconds() {
    const char sign = rest_.empty() ? '\0' : rest_.front();
    expect("Zz+-", "Z or an offset such as +02:00");
    if (sign != '+' && sign != '-') return 0;
    const int hours = number(2, 0, 23, "hour of the offset");
    expect(":", "':' in the offset");
    const int minutes = number(2, 0, 59, "minute of the offset");
    return (sign == '-' ? -60 : 60) * (hours * 60 + minutes);
  }

  bool at_end() const { return rest_.empty(); }
  bool failed() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }
  int fail(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
    rest_ = {};
    return 0;
  }

 private:
  std::string_view rest_;
  std::string reason_;
};

Error bad_time(std::string_view text, const std::string& reason) {
  return invalid("found time \"" + elide_middle(terminal_safe(text.substr(0, 256)), 60) +
                 "\", want one such as 2026-01-31T10:00:00Z: " + reason);
}

void append_padded(std::string& out, std::int64_t value, std::size_t width) {
  const std::string digits = std::to_string(value);
  if (digits.size() < width) out.append(width - digits.size(), '0');
  out += digits;
}

// ".5" for 500000000 of nine digits; nothing for 0.
void append_fraction(std::string& out, std::int64_t value, std::size_t digits) {
  if (value == 0) return;
  std::string text;
  append_padded(text, value, digits);
  text.resize(text.find_last_not_of('0') + 1);
  out += '.' + text;
}

struct DurationUnit {
  std::string_view name;
  std::int64_t ns;
};
constexpr DurationUnit kDurationUnits[] = {
    {"ns", 1},         {"us", 1'000},       {"\u00b5s", 1'000},       {"\u03bcs", 1'000},
    {"ms", 1'000'000}, {"s", kNsPerSecond}, {"m", 60 * kNsPerSecond}, {"h", 3600 * kNsPerSecond},
};

// One "1.5h" off the front; nothing when it is not one or beyond 64 bits.
std::optional<Uint128> take_duration_part(std::string_view& text) {
  constexpr Uint128 kFar = static_cast<Uint128>(1) << 64;
  Uint128 whole = 0;
  bool any = false;
  for (; !text.empty() && ascii_digit(text.front()); text.remove_prefix(1)) {
    whole = whole * 10 + static_cast<unsigned>(text.front() - '0');
    if (whole > kFar) return std::nullopt;
    any = true;
  }
  Uint128 part = 0;
  Uint128 scale = 1;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    for (; !text.empty() && ascii_digit(text.front()); text.remove_prefix(1)) {
      any = true;
      if (scale >= kFar / 16) continue;  // digits past the eighteenth are below a nanosecond
      part = part * 10 + static_cast<unsigned>(text.front() - '0');
      scale *= 10;
    }
  }
  const std::size_t length = text.find_first_of(".0123456789");
  const std::string_view unit = text.substr(0, length);
  for (const DurationUnit& known : kDurationUnits) {
    if (!any || unit != known.name) continue;
    text.remove_prefix(unit.size());
    const auto ns = static_cast<Uint128>(known.ns);
    return whole * ns + part * ns / scale;
  }
  return std::nullopt;
}

}  // namespace

Result<std::int64_t> parse_rfc3339(std::string_view text) {
  TimeText in(text);
  const int year = in.number(4, 0, 9999, "year");
  in.expect("-", "'-' after the year");
  const int month = in.number(2, 1, 12, "month");
  in.expect("-", "'-' after the month");
  const int last = in.failed() ? 31 : days_in_month(year, month);
  const int day = in.number(2, 1, last, "day");
  in.expect("Tt", "'T' after the date");
  const int hour = in.number(2, 0, 23, "hour");
  in.expect(":", "':' after the hour");
  const int minute = in.number(2, 0, 59, "minute");
  in.expect(":", "':' after the minute");
  const int second = in.number(2, 0, 60, "second");
  if (second == 60) in.fail("leap seconds are not supported, the second is not 0..59");
  const std::int64_t fraction = in.fraction_ns();
  const std::int64_t offset = in.offset_seconds();
  if (!in.failed() && !in.at_end()) in.fail("there is more text after it");
  if (in.failed()) return bad_time(text, in.reason());
  const std::int64_t seconds = days_from_civil(year, month, day) * kSecondsPerDay + hour * 3600 +
                               minute * 60 + second - offset;
  const Int128 ns = static_cast<Int128>(seconds) * kNsPerSecond + fraction;
  if (ns < std::numeric_limits<std::int64_t>::min() ||
      ns > std::numeric_limits<std::int64_t>::max()) {
    return bad_time(text, "only times from 1677-09-21 to 2262-04-11 can be held");
  }
  return static_cast<std::int64_t>(ns);
}

std::string format_rfc3339(std::int64_t unix_ns) {
  std::int64_t seconds = unix_ns / kNsPerSecond;
  std::int64_t ns = unix_ns % kNsPerSecond;
  if (ns < 0) {
    ns += kNsPerSecond;
    --seconds;
  }
  std::int64_t days = seconds / kSecondsPerDay;
  std::int64_t rest = seconds % kSecondsPerDay;
  if (rest < 0) {
    rest += kSecondsPerDay;
    --days;
  }
  const Civil date = civil_from_days(days);
  std::string out;
  append_padded(out, date.year, 4);
  out += '-';
  append_padded(out, date.month, 2);
  out += '-';
  append_padded(out, date.day, 2);
  out += 'T';
  append_padded(out, rest / 3600, 2);
  out += ':';
  append_padded(out, rest / 60 % 60, 2);
  out += ':';
  append_padded(out, rest % 60, 2);
  append_fraction(out, ns, 9);
  out += 'Z';
  return out;
}

std::string format_whole_second(std::int64_t unix_ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return format_rfc3339(unix_ns / kSecond * kSecond);
}

Result<std::int64_t> parse_go_duration(std::string_view text) {
  const auto refuse = [&](const std::string& reason) {
    return invalid("found duration \"" + elide_middle(terminal_safe(text.substr(0, 256)), 60) +
                   "\", want one such as 300ms or 1h30m" + reason);
  };
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) {
    negative = rest.front() == '-';
    rest.remove_prefix(1);
  }
  if (rest == "0") return std::int64_t{0};
  if (rest.empty()) return refuse("");
  constexpr Uint128 kLimit = static_cast<Uint128>(1) << 63;
  Uint128 total = 0;
  while (!rest.empty()) {
    const std::optional<Uint128> part = take_duration_part(rest);
    if (!part) return refuse("");
    total += *part;
    if (total > kLimit) return refuse(" of at most 292 years");
  }
  if (total == kLimit && !negative) return refuse(" of at most 292 years");
  const auto magnitude = static_cast<std::uint64_t>(total);
  return static_cast<std::int64_t>(negative ? ~magnitude + 1 : magnitude);
}

std::string format_go_duration(std::int64_t ns) {
  if (ns == 0) return "0s";
  const auto bits = static_cast<std::uint64_t>(ns);
  const std::uint64_t size = ns < 0 ? ~bits + 1 : bits;
  std::string out = ns < 0 ? "-" : "";
  const auto scaled = [&out, size](std::uint64_t unit, std::size_t digits, const char* unit_name) {
    out += std::to_string(size / unit);
    append_fraction(out, static_cast<std::int64_t>(size % unit), digits);
    out += unit_name;
  };
  if (size < 1'000) {
    scaled(1, 1, "ns");
  } else if (size < 1'000'000) {
    scaled(1'000, 3, "\u00b5s");
  } else if (size < 1'000'000'000) {
    scaled(1'000'000, 6, "ms");
  } else {
    const std::uint64_t seconds = size / 1'000'000'000;
    if (seconds >= 3600) out += std::to_string(seconds / 3600) + "h";
    if (seconds >= 60) out += std::to_string(seconds / 60 % 60) + "m";
    out += std::to_string(seconds % 60);
    append_fraction(out, static_cast<std::int64_t>(size % 1'000'000'000), 9);
    out += "s";
  }
  return out;
}

}  // namespace berth::text
