// New trees out of old ones: values over an arena, shared where nothing changed.
//
// Only for the files of this folder. What goes in must live until finish(); finish() copies the
// result once, so that it shares nothing. own() is for those who copy as they build.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "text/value.h"

namespace berth::sim {

using text::Member;
using text::Value;

class Draft {
 public:
  Value string(std::string_view text) { return Value::make_string(arena_.copy(text), 0); }
  Value number(std::int64_t number);
  static Value boolean(bool truth) { return Value::make_bool(truth, 0); }
  Value object(std::span<const Member> members);
  Value array(std::span<const Value> items);
  Value copy(const Value& value);  // deep, texts included
  std::string_view copy(std::string_view text) { return arena_.copy(text); }

  Value set(const Value& object, std::string_view key, const Value& value);
  Value unset(const Value& object, std::string_view key);
  // The value at a path of keys; objects on the way are made.
  Value set_in(const Value& object, std::initializer_list<std::string_view> path,
               const Value& value);
  Value set_in(const Value& object, std::span<const std::string_view> path, const Value& value);
  Value unset_in(const Value& object, std::string_view outer, std::string_view key);

  static text::Document finish(const Value& root);                             // a copy
  text::Document own(const Value& root) { return {std::move(arena_), root}; }  // as it is

 private:
  text::Arena arena_;
};

}  // namespace berth::sim
