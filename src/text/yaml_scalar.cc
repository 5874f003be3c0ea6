#include "text/yaml_scalar.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace berth::text {

namespace {

bool yaml_digit(char c) { return c >= '0' && c <= '9'; }

bool one_of_words(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// ^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$
bool looks_like_float(std::string_view text) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t start = i;
    while (i < text.size() && yaml_digit(text[i])) ++i;
    return i - start;
  };
  const auto at = [&](std::string_view any) {
    return i < text.size() && any.find(text[i]) != std::string_view::npos;
  };
  if (at("+-")) ++i;
  const std::size_t before = digits();
  std::size_t after = 0;
  if (at(".")) {
    ++i;
    after = digits();
  }
  if (before + after == 0) return false;
  if (at("eE")) {
    ++i;
    if (at("+-")) ++i;
    if (digits() == 0) return false;
  }
  return i == text.size();
}

// As encoding/json writes it: no exponent from 1e-6 up to 1e21.
std::string json_float(double v) {
  const double size = std::fabs(v);
  const bool plain = size == 0 || (size >= 1e-6 && size < 1e21);
  char buffer[64];
  const auto [end, code] =
      std::to_chars(buffer, buffer + sizeof(buffer), v,
                    plain ? std::chars_format::fixed : std::chars_format::scientific);
  return {buffer, end};
}

std::optional<YamlScalar> resolve_float(std::string_view text) {
  if (!looks_like_float(text)) return std::nullopt;
  if (text.front() == '+') text.remove_prefix(1);
  double v = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (code != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;  // out of range: Go leaves it a string
  }
  return YamlScalar{YamlScalar::kFloat, false, v, json_float(v)};
}

// Go's ParseInt(text, 0, 64), then ParseUint.
std::optional<YamlScalar> resolve_int(std::string_view text) {
  bool negative = false;
  bool sign = false;
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) {
    sign = true;
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
    text.remove_prefix(mark == 'x' || mark == 'b' || mark == 'o' ? 2 : 1);
  }
  if (text.empty() || text.front() == '-') return std::nullopt;
  std::uint64_t size = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, size, base);
  if (stop != end || code == std::errc::invalid_argument) return std::nullopt;
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 63;
  const bool fits = code == std::errc() && (negative ? size <= kLimit : !sign || size < kLimit);
  if (!fits) {
    if (base == 10 || base == 8) return std::nullopt;  // a float perhaps
    return YamlScalar{YamlScalar::kNotJson, false, 0, "an integer of more than 64 bits"};
  }
  std::string out = negative && size > 0 ? "-" : "";
  return YamlScalar{YamlScalar::kInt, false, 0, out + std::to_string(size)};
}

YamlScalar resolve_number(std::string_view text) {
  std::string plain(text);
  plain.erase(std::remove(plain.begin(), plain.end(), '_'), plain.end());
  if (auto v = resolve_int(plain)) return *v;
  if (auto v = resolve_float(plain)) return *v;
  return {};
}

}  // namespace

YamlScalar resolve_plain_scalar(std::string_view text) {
  if (one_of_words(text, {"", "~", "null", "Null", "NULL"}))
    return {YamlScalar::kNull, false, 0, ""};
  if (one_of_words(text,
                   {"y", "Y", "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) {
    return {YamlScalar::kBool, true, 0, ""};
  }
  if (one_of_words(text,
                   {"n", "N", "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) {
    return {YamlScalar::kBool, false, 0, ""};
  }
  if (one_of_words(text, {".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF",
                          "-.inf", "-.Inf", "-.INF"})) {
    return {YamlScalar::kNotJson, false, 0, std::string(text) + ", which JSON cannot hold"};
  }
  const char first = text.front();
  if (yaml_digit(first) || first == '+' || first == '-') return resolve_number(text);
  if (first == '.') {
    if (auto v = resolve_float(text)) return *v;
  }
  return {};
}

std::string yaml_float_key(double v) {
  const auto narrow = static_cast<float>(v);
  char buffer[64];
  const auto [end, code] =
      std::to_chars(buffer, buffer + sizeof(buffer), narrow, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = text.find('e');
  if (e == std::string_view::npos) return std::string(text);
  int exponent = 0;
  const std::size_t digits = e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(text.data() + digits, end, exponent);
  if (exponent < -4 || exponent >= 6) return std::string(text);
  const auto fixed =
      std::to_chars(buffer, buffer + sizeof(buffer), narrow, std::chars_format::fixed);
  return {buffer, fixed.ptr};
}

}  // namespace berth::text
