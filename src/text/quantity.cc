#include "text/quantity.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "text/escape.h"

namespace berth::text {

namespace {

constexpr Int128 kMaxNano = static_cast<Int128>(~static_cast<Uint128>(0) >> 1);
constexpr Int128 kNanoPerUnit = 1'000'000'000;
constexpr Int128 kNanoPerMilli = 1'000'000;
constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMinInt64 = std::numeric_limits<std::int64_t>::min();
constexpr Int128 kMaxBinaryNano = static_cast<Int128>(kMaxInt64) * kNanoPerUnit;

constexpr std::string_view kDecimalSuffixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
constexpr std::string_view kBinarySuffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

struct Suffix {
  Format format = Format::kDecimalSI;
  std::int64_t exponent = 0;  // of ten, or of two for kBinarySI
};

std::optional<Suffix> read_suffix(std::string_view text) {
  for (std::size_t i = 0; i < std::size(kDecimalSuffixes); ++i) {
    if (text == kDecimalSuffixes[i]) {
      return Suffix{Format::kDecimalSI, 3 * static_cast<std::int64_t>(i) - 9};
    }
  }
  for (std::size_t i = 1; i < std::size(kBinarySuffixes); ++i) {
    if (text == kBinarySuffixes[i]) {
      return Suffix{Format::kBinarySI, 10 * static_cast<std::int64_t>(i)};
    }
  }
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  const bool plus = text[1] == '+';
  text.remove_prefix(plus ? 2 : 1);
  if (text.empty() || (plus && text[0] == '-')) return std::nullopt;
  std::int32_t exponent = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, exponent);
  if (code != std::errc() || stop != end) return std::nullopt;
  return Suffix{Format::kDecimalExponent, exponent};
}

// The number without its suffix: the digits before and after the point.
struct Digits {
  std::string_view whole;
  std::string_view fraction;
};

bool take_digit(std::string_view& text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return false;
  text.remove_prefix(1);
  return true;
}

std::string_view take_digits(std::string_view& text) {
  const std::string_view all = text;
  while (take_digit(text)) continue;
  return all.substr(0, all.size() - text.size());
}

// value * 10 + digit, held at kMaxNano.
Int128 push_digit(Int128 value, int digit) {
  Int128 out = 0;
  if (__builtin_mul_overflow(value, 10, &out) || __builtin_add_overflow(out, digit, &out)) {
    return kMaxNano;
  }
  return out;
}

// number * 10^exponent in nano, rounded up; held at kMaxNano. Linear in the text.
Int128 decimal_nano(const Digits& number, std::int64_t exponent) {
  std::string digits(number.whole);
  digits += number.fraction;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return 0;
  const std::int64_t shift = exponent + 9 - static_cast<std::int64_t>(number.fraction.size());
  const std::int64_t places = static_cast<std::int64_t>(digits.size()) + shift;
  if (places > 39) return kMaxNano;  // at least 10^39
  Int128 nano = 0;
  for (std::int64_t i = 0; i < places; ++i) {
    const auto at = static_cast<std::size_t>(i);
    nano = push_digit(nano, at < digits.size() ? digits[at] - '0' : 0);
  }
  const std::size_t kept = static_cast<std::size_t>(std::max<std::int64_t>(places, 0));
  const bool dropped = digits.find_first_not_of('0', kept) != std::string::npos;
  return dropped && nano < kMaxNano ? nano + 1 : nano;
}

// number * 2^exponent in nano, rounded up; held at 2^63-1 units. Linear in the text.
Int128 binary_nano(const Digits& number, std::int64_t exponent) {
  const Int128 factor = static_cast<Int128>(1) << exponent;
  Int128 whole = 0;
  for (const char c : number.whole) {
    whole = whole * 10 + (c - '0');
    if (whole * factor > kMaxInt64) return kMaxBinaryNano;
  }
  // From the last digit: floor((digit * factor + rest) / 10), and whether anything was lost.
  Int128 part = 0;
  bool inexact = false;
  for (auto digit = number.fraction.rbegin(); digit != number.fraction.rend(); ++digit) {
    const Int128 sum = (*digit - '0') * factor * kNanoPerUnit + part;
    inexact = inexact || sum % 10 != 0;
    part = sum / 10;
  }
  const Int128 nano = whole * factor * kNanoPerUnit + part + (inexact ? 1 : 0);
  return std::min(nano, kMaxBinaryNano);
}

Int128 divide_away_from_zero(Int128 value, Int128 by) {
  const Int128 quotient = value / by;
  if (value % by == 0) return quotient;
  return value < 0 ? quotient - 1 : quotient + 1;
}

std::int64_t hold_to_int64(Int128 value) {
  if (value > kMaxInt64) return kMaxInt64;
  if (value < kMinInt64) return kMinInt64;
  return static_cast<std::int64_t>(value);
}

std::string print_int128(Int128 value) {
  const bool negative = value < 0;
  std::string out;
  for (Int128 rest = negative ? -value : value; rest > 0; rest /= 10) {
    out += static_cast<char>('0' + static_cast<int>(rest % 10));
  }
  if (out.empty()) out = "0";
  if (negative) out += '-';
  std::reverse(out.begin(), out.end());
  return out;
}

std::string print_decimal(Int128 amount, Format format) {
  int exponent = -9;
  const int highest = format == Format::kDecimalSI ? 18 : 30;
  while (amount % 1000 == 0 && exponent < highest) {
    amount /= 1000;
    exponent += 3;
  }
  std::string out = print_int128(amount);
  if (format == Format::kDecimalSI) {
    out += kDecimalSuffixes[static_cast<std::size_t>((exponent + 9) / 3)];
  } else if (exponent != 0) {
    out += 'e' + std::to_string(exponent);
  }
  return out;
}

std::string print_binary(Int128 units) {
  std::size_t suffix = 0;
  while (units % 1024 == 0 && suffix + 1 < std::size(kBinarySuffixes)) {
    units /= 1024;
    ++suffix;
  }
  return print_int128(units) + std::string(kBinarySuffixes[suffix]);
}

}  // namespace

Quantity Quantity::from_units(std::int64_t units, Format format) {
  return from_nano(static_cast<Int128>(units) * kNanoPerUnit, format);
}

Quantity Quantity::from_milli(std::int64_t milli, Format format) {
  return from_nano(static_cast<Int128>(milli) * kNanoPerMilli, format);
}

Quantity Quantity::from_nano(Int128 nano, Format format) {
  Quantity out;
  out.nano_ = std::max(nano, -kMaxNano);
  out.format_ = format;
  return out;
}

std::int64_t Quantity::value() const {
  return hold_to_int64(divide_away_from_zero(nano_, kNanoPerUnit));
}

std::int64_t Quantity::milli_value() const {
  return hold_to_int64(divide_away_from_zero(nano_, kNanoPerMilli));
}

bool Quantity::is_integer() const { return nano_ % kNanoPerUnit == 0; }

Quantity& Quantity::operator+=(const Quantity& other) {
  if (is_zero()) format_ = other.format_;
  Int128 sum = 0;
  if (__builtin_add_overflow(nano_, other.nano_, &sum)) sum = nano_ < 0 ? -kMaxNano : kMaxNano;
  nano_ = std::max(sum, -kMaxNano);
  return *this;
}

Quantity& Quantity::operator-=(const Quantity& other) {
  return *this += from_nano(-other.nano_, other.format_);
}

std::string Quantity::to_string() const {
  if (is_zero()) return "0";
  const bool small = nano_ > -1024 * kNanoPerUnit && nano_ < 1024 * kNanoPerUnit;
  if (format_ == Format::kBinarySI) {
    if (small || !is_integer()) return print_decimal(nano_, Format::kDecimalSI);
    return print_binary(nano_ / kNanoPerUnit);
  }
  return print_decimal(nano_, format_);
}

Result<Quantity> parse_quantity(std::string_view text) {
  constexpr std::string_view kWant =
      ", want a number with an optional suffix: n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or e3";
  const auto refuse = [&] {
    return invalid("found quantity \"" + elide_middle(terminal_safe(text.substr(0, 256)), 60) +
                   "\"" + std::string(kWant));
  };
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) {
    negative = rest.front() == '-';
    rest.remove_prefix(1);
  }
  Digits number;
  number.whole = take_digits(rest);
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    number.fraction = take_digits(rest);
  }
  if (number.whole.empty() && number.fraction.empty()) return refuse();
  const std::optional<Suffix> suffix = read_suffix(rest);
  if (!suffix) return refuse();
  Format format = suffix->format;
  Int128 nano = 0;
  if (format == Format::kBinarySI) {
    nano = binary_nano(number, suffix->exponent);
    if (nano > 0 && nano < kNanoPerUnit) format = Format::kDecimalSI;
  } else {
    nano = decimal_nano(number, suffix->exponent);
  }
  return Quantity::from_nano(negative ? -nano : nano, format);
}

}  // namespace berth::text
