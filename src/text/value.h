// An immutable tree of JSON values, shared by the JSON and the YAML reader.
//
// A Document owns the bytes; a Value is a 16-byte handle into it and is valid while the Document
// lives (moving the Document keeps its Values valid). Every accessor is total: asking a string for
// its members gives an empty span, never undefined behaviour. Values may be read from many threads.
//
// Cost: 16 bytes an array element, 32 bytes an object member (key included); find() is linear.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "text/arena.h"

namespace berth::text {

enum class Kind : std::uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

std::string_view name(Kind kind);  // "null", "bool", "number", "string", "array", "object"

// Bounds on what a stranger may make us build. Over a bound is Code::kExhausted.
struct Limits {
  int max_depth = 100;                        // nested arrays and objects; never more than 1000
  std::size_t max_nodes = 16'000'000;         // values in one document
  std::size_t max_bytes = 256 * 1024 * 1024;  // input bytes; never more than 4 GiB - 1
};

struct Member;

class Value {
 public:
  constexpr Value() = default;  // null, line 0

  Kind kind() const { return static_cast<Kind>(kind_); }
  int line() const { return static_cast<int>(line_); }  // 1-based; 0 when it was built, not read
  bool is_null() const { return kind() == Kind::kNull; }
  bool is_bool() const { return kind() == Kind::kBool; }
  bool is_number() const { return kind() == Kind::kNumber; }
  bool is_string() const { return kind() == Kind::kString; }
  bool is_array() const { return kind() == Kind::kArray; }
  bool is_object() const { return kind() == Kind::kObject; }

  bool as_bool() const { return is_bool() && size_ != 0; }  // false unless a bool
  std::string_view string() const { return is_string() ? text() : std::string_view{}; }
  std::string_view number_text() const { return is_number() ? text() : std::string_view{}; }

  // The exact integer, when the number is one and fits: "3", "3.0" and "3e2" are, "3.5" is not.
  std::optional<std::int64_t> as_int64() const;
  double as_double() const;  // nearest double; beyond the range +-infinity; 0 unless a number

  std::span<const Value> items() const;                 // empty unless an array
  std::span<const Member> members() const;              // source order; empty unless an object
  const Value* find(std::string_view key) const;        // nullptr when absent or not an object
  const Value& operator[](std::string_view key) const;  // the same; a null where there is none
  std::size_t size() const { return is_array() || is_object() ? size_ : 0; }

  // Handles over memory that somebody else owns; Builder is the safe way to make a tree.
  static Value make_null(int line) { return {Kind::kNull, line, 0, nullptr}; }
  static Value make_bool(bool value, int line) { return {Kind::kBool, line, value, nullptr}; }
  static Value make_number(std::string_view lexeme, int line) {  // a valid JSON number
    return {Kind::kNumber, line, lexeme.size(), lexeme.data()};
  }
  static Value make_string(std::string_view text, int line) {
    return {Kind::kString, line, text.size(), text.data()};
  }
  static Value make_array(std::span<const Value> items, int line) {
    return {Kind::kArray, line, items.size(), items.data()};
  }
  static Value make_object(std::span<const Member> members, int line);

 private:
  static constexpr std::uint32_t kMaxLine = (1u << 28) - 1;

  Value(Kind kind, int line, std::size_t size, const void* data)
      : kind_(static_cast<std::uint32_t>(kind) & 0xf),
        line_(line < 0 ? 0 : std::min(static_cast<std::uint32_t>(line), kMaxLine) & kMaxLine),
        size_(static_cast<std::uint32_t>(size)),
        data_(data) {}
  std::string_view text() const { return {static_cast<const char*>(data_), size_}; }

  std::uint32_t kind_ : 4 = 0;
  std::uint32_t line_ : 28 = 0;
  std::uint32_t size_ = 0;  // bytes, items or members; the truth of a bool
  const void* data_ = nullptr;
};

struct Member {
  std::string_view key;
  Value value;
};

static_assert(sizeof(Value) == 16 && sizeof(Member) == 32);

class Document {
 public:
  Document() = default;  // null
  Document(Arena arena, Value root) : arena_(std::move(arena)), root_(root) {}
  Document(Document&& other) noexcept
      : arena_(std::move(other.arena_)), root_(std::exchange(other.root_, Value())) {}
  Document& operator=(Document&& other) noexcept {
    arena_ = std::move(other.arena_);
    root_ = std::exchange(other.root_, Value());
    return *this;
  }

  const Value& root() const { return root_; }
  std::size_t memory_bytes() const { return arena_.bytes(); }

 private:
  Arena arena_;
  Value root_;
};

// The same kind and content; members in any order, numbers by value (1.0 equals 1). Recursive to
// the depth of the values; O(n), or O(n log n) for wide objects in different orders.
bool equal(const Value& a, const Value& b);

// Compact JSON, members in source order, numbers as they were written.
std::string to_json(const Value& value);

inline Value Value::make_object(std::span<const Member> members, int line) {
  return {Kind::kObject, line, members.size(), members.data()};
}
inline std::span<const Value> Value::items() const {
  if (!is_array()) return {};
  return {static_cast<const Value*>(data_), size_};
}
inline std::span<const Member> Value::members() const {
  if (!is_object()) return {};
  return {static_cast<const Member*>(data_), size_};
}

}  // namespace berth::text
