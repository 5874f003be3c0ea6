#include "text/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "text/identity.h"
#include "text/json_writer.h"

namespace berth::text {

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "bool";
    case Kind::kNumber:
      return "number";
    case Kind::kString:
      return "string";
    case Kind::kArray:
      return "array";
    case Kind::kObject:
      return "object";
  }
  return "unknown";
}

const Value* Value::find(std::string_view key) const {
  for (const Member& member : members()) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

const Value& Value::operator[](std::string_view key) const {
  static constexpr Value kAbsent;
  const Value* found = find(key);
  return found == nullptr ? kAbsent : *found;
}

namespace {

// A number as +-digits * 10^exponent: no leading and no trailing zeros, so that equal numbers
// decompose alike. Zero has no digits, no sign and the exponent 0.
struct Decimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;
  friend bool operator==(const Decimal&, const Decimal&) = default;
};

std::int64_t read_exponent(std::string_view text) {
  constexpr std::int64_t kFar = 1'000'000'000'000;  // beyond any lexeme's length
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc::result_out_of_range) return text.front() == '-' ? -kFar : kFar;
  return std::clamp(value, -kFar, kFar);
}

Decimal decompose(std::string_view lexeme) {
  Decimal d;
  if (!lexeme.empty() && lexeme.front() == '-') {
    d.negative = true;
    lexeme.remove_prefix(1);
  }
  const std::size_t e = lexeme.find_first_of("eE");
  if (e != std::string_view::npos) {
    d.exponent = read_exponent(lexeme.substr(e + 1));
    lexeme = lexeme.substr(0, e);
  }
  const std::size_t dot = lexeme.find('.');
  d.digits = lexeme.substr(0, dot);
  if (dot != std::string_view::npos) {
    d.digits += lexeme.substr(dot + 1);
    d.exponent -= static_cast<std::int64_t>(lexeme.size() - dot - 1);
  }
  const std::size_t last = d.digits.find_last_not_of('0');
  if (last == std::string::npos) return {};
  d.exponent += static_cast<std::int64_t>(d.digits.size() - last - 1);
  d.digits.resize(last + 1);
  d.digits.erase(0, d.digits.find_first_not_of('0'));
  return d;
}

bool equal_numbers(std::string_view a, std::string_view b) {
  return a == b || decompose(a) == decompose(b);
}

bool equal_objects(const Value& a, const Value& b) {
  const auto left = a.members();
  const auto right = b.members();
  const auto same = [](const Member& x, const Member& y) {
    return x.key == y.key && equal(x.value, y.value);
  };
  if (left.size() != right.size()) return false;
  const bool same_order =
      std::equal(left.begin(), left.end(), right.begin(),
                 [](const Member& x, const Member& y) { return x.key == y.key; });
  if (same_order) return std::equal(left.begin(), left.end(), right.begin(), same);
  std::vector<Member> l(left.begin(), left.end());
  std::vector<Member> r(right.begin(), right.end());
  const auto by_key = [](const Member& x, const Member& y) { return x.key < y.key; };
  std::sort(l.begin(), l.end(), by_key);
  std::sort(r.begin(), r.end(), by_key);
  return std::equal(l.begin(), l.end(), r.begin(), same);
}

}  // namespace

std::optional<std::int64_t> Value::as_int64() const {
  if (!is_number()) return std::nullopt;
  const std::string_view lexeme = text();
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(lexeme.data(), lexeme.data() + lexeme.size(), value);
  if (code == std::errc() && end == lexeme.data() + lexeme.size()) return value;
  const Decimal d = decompose(lexeme);  // a fraction, an exponent, or out of range
  if (d.digits.empty()) return 0;
  if (d.exponent < 0 || d.exponent > 18) return std::nullopt;
  std::string plain = d.negative ? "-" : "";
  plain += d.digits;
  plain.append(static_cast<std::size_t>(d.exponent), '0');
  const char* stop = plain.data() + plain.size();
  const auto [whole_end, whole_code] = std::from_chars(plain.data(), stop, value);
  if (whole_code != std::errc() || whole_end != stop) return std::nullopt;
  return value;
}

double Value::as_double() const {
  if (!is_number()) return 0;
  const std::string_view lexeme = text();
  double value = 0;
  const auto [end, code] = std::from_chars(lexeme.data(), lexeme.data() + lexeme.size(), value);
  if (code != std::errc::result_out_of_range) return value;
  const Decimal d = decompose(lexeme);
  const bool tiny = d.exponent + static_cast<std::int64_t>(d.digits.size()) < 0;
  const double size = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  return d.negative ? -size : size;
}

bool equal(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kNull:
      return true;
    case Kind::kBool:
      return a.as_bool() == b.as_bool();
    case Kind::kNumber:
      return equal_numbers(a.number_text(), b.number_text());
    case Kind::kString:
      return a.string() == b.string();
    case Kind::kArray:
      return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
                        [](const Value& x, const Value& y) { return equal(x, y); });
    case Kind::kObject:
      return equal_objects(a, b);
  }
  return false;
}

namespace {

void append_identity(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Kind::kNumber: {
      const Decimal d = decompose(value.number_text());
      out.append(d.negative ? "-" : "+").append(d.digits);
      out.append("e").append(std::to_string(d.exponent)).append(";");
      return;
    }
    case Kind::kArray:
      out += '[';
      for (const Value& item : value.items()) append_identity(out, item);
      out += ']';
      return;
    case Kind::kObject: {
      std::vector<Member> members(value.members().begin(), value.members().end());
      std::sort(members.begin(), members.end(),
                [](const Member& x, const Member& y) { return x.key < y.key; });
      out += '{';
      for (const Member& member : members) {
        append_json_string(out, member.key);
        append_identity(out, member.value);
      }
      out += '}';
      return;
    }
    default:
      out += to_json(value);  // no two of these begin alike
  }
}

}  // namespace

std::string identity_of(const Value& value) {
  std::string out;
  append_identity(out, value);
  return out;
}

std::string to_json(const Value& value) {
  JsonWriter out;
  out.value(value);
  return std::move(out).take();
}

}  // namespace berth::text
