#include "text/decode.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "text/escape.h"
#include "text/json_writer.h"
#include "text/rfc3339.h"

namespace berth::text {

namespace {

constexpr std::size_t kShownChars = 60;

bool plain_key(std::string_view key) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '$';
  };
  return !key.empty() && key.size() <= kShownChars && std::all_of(key.begin(), key.end(), plain);
}

char lower_ascii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_but_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return lower_ascii(x) == lower_ascii(y);
         });
}

// The text cut first, so that a huge string costs nothing, then made safe.
std::string shown_text(std::string_view text) {
  return elide_middle(terminal_safe(elide_middle(text.substr(0, 4096), kShownChars)), kShownChars);
}

}  // namespace

std::string Issue::message() const {
  std::string out;
  if (line > 0) out += "line " + std::to_string(line) + ": ";
  if (!path.empty()) out += path + ": ";
  out += "found " + found;
  if (!allowed.empty()) out += ", want " + allowed;
  return out;
}

std::string describe(const Value& value) {
  switch (value.kind()) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return value.as_bool() ? "bool true" : "bool false";
    case Kind::kNumber:
      return "number " + shown_text(value.number_text());
    case Kind::kString:
      return "string \"" + shown_text(value.string()) + "\"";
    case Kind::kArray:
      return "array of " + std::to_string(value.size());
    case Kind::kObject:
      return "object of " + std::to_string(value.size());
  }
  return "unknown";
}

std::string Decoder::path() const {
  std::string out;
  for (const Part& part : path_) {
    if (part.is_index) {
      out += '[' + std::to_string(part.index) + ']';
    } else if (plain_key(part.key)) {
      if (!out.empty()) out += '.';
      out += part.key;
    } else {
      out += "[\"" + shown_text(part.key) + "\"]";
    }
  }
  return out;
}

void Decoder::add(Issue::Severity severity, int line, std::string found, std::string allowed) {
  ++(severity == Issue::kError ? errors_ : warnings_);
  const bool room = issues_.size() < options_.max_issues;
  if (!room) {  // an error is worth more than a warning
    if (severity != Issue::kError) return;
    const auto last = std::find_if(issues_.rbegin(), issues_.rend(),
                                   [](const Issue& i) { return i.severity == Issue::kWarning; });
    if (last == issues_.rend()) return;
    issues_.erase(std::next(last).base());
  }
  issues_.push_back({severity, path(), line, std::move(found), std::move(allowed)});
}

void Decoder::error(const Value& at, std::string found, std::string allowed) {
  add(Issue::kError, at.line(), std::move(found), std::move(allowed));
}

void Decoder::warning(const Value& at, std::string found, std::string allowed) {
  add(Issue::kWarning, at.line(), std::move(found), std::move(allowed));
}

void Decoder::mismatch(const Value& at, std::string allowed) {
  error(at, describe(at), std::move(allowed));
}

Error Decoder::to_error() const {
  std::string message;
  std::size_t told = 0;
  for (const Issue& issue : issues_) {
    if (issue.severity != Issue::kError) continue;
    if (told++ > 0) message += "; ";
    message += issue.message();
  }
  if (errors_ > told) message += "; and " + std::to_string(errors_ - told) + " more";
  return invalid(std::move(message));
}

void decode(const Value& v, std::string& out, Decoder& d) {
  if (!v.is_string()) return d.mismatch(v, "a string");
  out = v.string();
}

void decode(const Value& v, bool& out, Decoder& d) {
  if (!v.is_bool()) return d.mismatch(v, "true or false");
  out = v.as_bool();
}

void decode(const Value& v, double& out, Decoder& d) {
  if (!v.is_number() || !std::isfinite(v.as_double())) return d.mismatch(v, "a number");
  out = v.as_double();
}

void decode(const Value& v, Quantity& out, Decoder& d) {
  if (!v.is_string() && !v.is_number()) {
    return d.mismatch(v, "a quantity such as 2, 500m or 4Gi");
  }
  auto parsed = parse_quantity(v.is_string() ? v.string() : v.number_text());
  if (!parsed.ok()) return d.mismatch(v, "a quantity such as 2, 500m or 4Gi");
  out = *parsed;
}

bool decode_int(const Value& v, std::int64_t low, std::int64_t high, std::int64_t& out,
                Decoder& d) {
  const std::optional<std::int64_t> value = v.as_int64();
  if (value && *value >= low && *value <= high) {
    out = *value;
    return true;
  }
  d.mismatch(v, "an integer " + std::to_string(low) + ".." + std::to_string(high));
  return false;
}

void decode(const Value& v, IntOrString& out, Decoder& d) {
  if (v.is_string()) {
    out = {true, 0, std::string(v.string())};
    return;
  }
  const std::optional<std::int64_t> value = v.as_int64();
  if (!value || *value < std::numeric_limits<std::int32_t>::min() ||
      *value > std::numeric_limits<std::int32_t>::max()) {
    return d.mismatch(v, "a string or an integer of 32 bits");
  }
  out = {false, static_cast<std::int32_t>(*value), {}};
}

void read_time_ns(const Value& v, std::int64_t& out, Decoder& d) {
  constexpr std::string_view kWant = "a time such as 2026-01-31T10:00:00Z";
  if (!v.is_string()) return d.mismatch(v, std::string(kWant));
  auto parsed = parse_rfc3339(v.string());
  if (!parsed.ok()) return d.mismatch(v, std::string(kWant));
  out = *parsed;
}

void read_duration_ns(const Value& v, std::int64_t& out, Decoder& d) {
  constexpr std::string_view kWant = "a duration such as 300ms or 1h30m";
  if (!v.is_string()) return d.mismatch(v, std::string(kWant));
  auto parsed = parse_go_duration(v.string());
  if (!parsed.ok()) return d.mismatch(v, std::string(kWant));
  out = *parsed;
}

void read_quantity_value(const Value& v, std::int64_t& out, Decoder& d) {
  const std::size_t before = d.errors();
  Quantity quantity;
  decode(v, quantity, d);
  if (d.errors() == before) out = quantity.value();
}

void read_quantity_milli(const Value& v, std::int64_t& out, Decoder& d) {
  const std::size_t before = d.errors();
  Quantity quantity;
  decode(v, quantity, d);
  if (d.errors() == before) out = quantity.milli_value();
}

void read_json(const Value& v, std::string& out, Decoder&) { out = to_json(v); }

namespace internal {

void unknown_field(const Member& member, std::span<const std::string_view> names, Decoder& d) {
  Decoder::Step step(d, member.key);
  const auto near = std::find_if(names.begin(), names.end(), [&](std::string_view known) {
    return same_but_case(known, member.key);
  });
  const std::string meant(near == names.end() ? std::string_view() : *near);
  if (d.strict()) return d.error(member.value, "an unknown field", meant);
  d.warning(member.value, "an unknown field", meant);
}

void missing_field(const Value& object, std::string_view field_name, Decoder& d) {
  Decoder::Step step(d, field_name);
  d.error(object, "nothing", "this field, which is required");
}

}  // namespace internal

}  // namespace berth::text
