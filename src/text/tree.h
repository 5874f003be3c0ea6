// A JSON value that can be changed, and the JSON Patch (RFC 6902) between two of them.
//
// Fixes are told as patches of objects: an object is copied into a Tree, edited, and compared with
// what it was. Small objects only; every step copies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/json_writer.h"
#include "text/value.h"

namespace berth::text {

class Tree {
 public:
  Tree() = default;  // null
  explicit Tree(const Value& value);
  static Tree of_text(std::string_view value);
  static Tree of_number(std::int64_t value);
  static Tree of_bool(bool value);

  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_object() const { return kind_ == Kind::kObject; }
  const std::string& string() const { return scalar_; }  // of a string or a number, else empty

  // The member of that name, made where there is none; what is no object becomes one.
  Tree& operator[](std::string_view key);
  Tree* find(std::string_view key);
  const Tree* find(std::string_view key) const;
  bool erase(std::string_view key);
  const std::vector<std::pair<std::string, Tree>>& members() const { return members_; }
  std::vector<std::pair<std::string, Tree>>& members() { return members_; }

  // The items of an array; what is none becomes one.
  std::vector<Tree>& items();
  const std::vector<Tree>& items() const { return items_; }

  void write(JsonWriter& out) const;
  friend bool operator==(const Tree&, const Tree&) = default;

 private:
  Kind kind_ = Kind::kNull;
  bool truth_ = false;
  std::string scalar_;
  std::vector<Tree> items_;
  std::vector<std::pair<std::string, Tree>> members_;
};

// What stands there, numbers being places of items; nullptr: nothing does.
Tree* below(Tree* at, const std::vector<std::string>& path);

// The operations that make after of before, as an array.
void write_patch(JsonWriter& out, const Tree& before, const Tree& after);

}  // namespace berth::text
