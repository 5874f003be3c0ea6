// What simulated components read out of API objects: total, never failing, with a default.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "objects/readers.h"
#include "text/json_writer.h"
#include "text/rfc3339.h"
#include "text/value.h"

namespace berth::sim {

using Keys = std::initializer_list<std::string_view>;

inline std::string_view text_at(const text::Value& v, Keys path) {
  const text::Value* found = objects::find_in(v, path);
  return found == nullptr ? std::string_view{} : found->string();
}
inline std::int64_t int_at(const text::Value& v, Keys path, std::int64_t otherwise = 0) {
  const text::Value* found = objects::find_in(v, path);
  return found == nullptr ? otherwise : found->as_int64().value_or(otherwise);
}
inline bool bool_at(const text::Value& v, Keys path) {
  const text::Value* found = objects::find_in(v, path);
  return found != nullptr && found->as_bool();
}
// 0 when it is not there or not a time.
inline std::int64_t time_at(const text::Value& v, Keys path) {
  const std::string_view text = text_at(v, path);
  if (text.empty()) return 0;
  const auto ns = text::parse_rfc3339(text);
  return ns.ok() ? *ns : 0;
}
inline const text::Value& value_at(const text::Value& v, Keys path) {
  static const text::Value kNull;
  const text::Value* found = objects::find_in(v, path);
  return found == nullptr ? kNull : *found;
}

// The element of a list of conditions, or nullptr.
inline const text::Value* find_condition(const text::Value& conditions, std::string_view type) {
  for (const text::Value& c : conditions.items()) {
    if (text_at(c, {"type"}) == type) return &c;
  }
  return nullptr;
}

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
