// Writes JSON by appending to a string.
//
// The caller says what comes next; commas, colons, indentation and escapes are ours. The output is
// valid JSON and valid UTF-8 whatever the strings hold: invalid bytes become U+FFFD. Calls in a
// wrong order (a value without a key, an end too many) and a double that is not finite are
// programmer errors and abort.
//
//   JsonWriter out;
//   out.object([&] {
//     out.field("name", pod.name);
//     out.array("ports", [&] { out.value(std::int64_t{80}); });
//     out.list("args", pod.args);
//   });
//   send(std::move(out).take());
//
// What is written inside an object or an array stands in its scope, so that none is left open.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/value.h"

namespace berth::text {

struct JsonStyle {
  int indent = 0;  // spaces a level; 0 writes everything on one line
};

class JsonWriter {
 public:
  explicit JsonWriter(JsonStyle style = {}) : style_(style) {}

  // What inside() writes, as an object or an array; with a name: as that member. Where inside()
  // returns a Status that is no success, so does the call, and what was written is of no use.
  template <std::invocable Inside>
  auto object(Inside&& inside) {
    return scope('{', inside, '}');
  }
  template <std::invocable Inside>
  auto object(std::string_view name, Inside&& inside) {
    key(name);
    return scope('{', inside, '}');
  }
  template <std::invocable Inside>
  auto array(Inside&& inside) {
    return scope('[', inside, ']');
  }
  template <std::invocable Inside>
  auto array(std::string_view name, Inside&& inside) {
    key(name);
    return scope('[', inside, ']');
  }
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

  // An array of values.
  template <class Range>
  void list(const Range& values) {
    array([&] {
      for (const auto& each : values) value(each);
    });
  }
  template <class Range>
  void list(std::string_view name, const Range& values) {
    key(name);
    list(values);
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

  template <class Inside>
  auto scope(char first, Inside& inside, char last) {
    open(first);
    if constexpr (std::is_same_v<std::invoke_result_t<Inside&>, Status>) {
      Status status = inside();
      if (status.ok()) close(last);
      return status;
    } else {
      inside();
      close(last);
    }
  }

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
