// Writes JSON by appending to a string.
//
// The caller says what comes next; commas, colons, indentation and escapes are ours. The output is
// valid JSON and valid UTF-8 whatever the strings hold: invalid bytes become U+FFFD. Calls in a
// wrong order (a value without a key, an end too many) and a double that is not finite are
// programmer errors and abort.
//
//   JsonWriter out;
//   out.begin_object();
//   out.field("name", pod.name);
//   out.key("ports");
//   out.begin_array();
//   out.value(std::int64_t{80});
//   out.end_array();
//   out.end_object();
//   send(std::move(out).take());
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/value.h"

namespace berth::text {

struct JsonStyle {
  int indent = 0;  // spaces a level; 0 writes everything on one line
};

class JsonWriter {
 public:
  explicit JsonWriter(JsonStyle style = {}) : style_(style) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name);

  void null();
  void value(bool v);
  void value(std::int64_t v);
  void value(std::uint64_t v);
  void value(double v);  // the shortest text that reads back as v
  void value(std::string_view v);
  void value(const char* v) { value(std::string_view(v)); }
  void value(const std::string& v) { value(std::string_view(v)); }
  void value(const Value& v);  // a tree, numbers as they were written
  template <std::integral T>
  void value(T v) {
    if constexpr (std::signed_integral<T>) {
      value(static_cast<std::int64_t>(v));
    } else {
      value(static_cast<std::uint64_t>(v));
    }
  }

  template <class T>
  void field(std::string_view name, const T& v) {
    key(name);
    value(v);
  }

  // Text that is a JSON value already, such as a number's lexeme. Not checked.
  void raw(std::string_view json);

  // True when exactly one whole value was written.
  bool complete() const { return open_.empty() && !out_.empty(); }
  const std::string& text() const { return out_; }
  std::string take() && { return std::move(out_); }

 private:
  struct Level {
    char bracket;
    bool empty = true;
    bool has_key = false;  // a key was written and waits for its value
  };

  void before_value();
  void open(char bracket);
  void close(char bracket);
  void new_line();

  JsonStyle style_;
  std::string out_;
  std::vector<Level> open_;
};

// Appends text as a JSON string with its quotes.
void append_json_string(std::string& out, std::string_view text);

}  // namespace berth::text
