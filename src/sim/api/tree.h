// Edits of immutable values: what changes is new, everything else is shared with the original.
//
// A Tree owns whatever it made or was given to keep; the Values it hands out live as long as it
// does. One request, one Tree. Cost of with() and without(): a copy of that one object's members,
// 32 bytes each.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/arena.h"
#include "text/value.h"

namespace berth::sim::api {

using text::Member;
using text::Value;
using Path = std::initializer_list<std::string_view>;

class Tree {
 public:
  Tree() = default;
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  Value str(std::string_view text) { return Value::make_string(arena_.copy(text), 0); }
  Value num(std::int64_t number);
  Value boolean(bool truth) { return Value::make_bool(truth, 0); }
  Value object(std::span<const Member> members);  // keys are copied, values shared
  Value object(std::initializer_list<Member> members) {
    return object(std::span(members.begin(), members.size()));
  }
  Value array(std::span<const Value> items);

  // The object with that member, replaced in place or added last. Not an object: counts as empty.
  Value with(const Value& object, std::string_view key, const Value& value);
  Value without(const Value& object, std::string_view key);
  Value with_path(const Value& root, Path path, const Value& value);
  Value without_path(const Value& root, Path path);
  Value append(const Value& array, const Value& item);

  Value keep(text::Document document);
  Result<Value> parse(std::string_view json);

 private:
  Value with_path(const Value& root, const std::string_view* first, std::size_t count,
                  const Value& value);

  text::Arena arena_;
  std::vector<text::Document> kept_;
};

// What stands at the end of a path of keys; nullptr: nothing there, or null.
const Value* at(const Value& root, Path path);
std::string_view string_at(const Value& root, Path path);  // "" unless a string
bool true_at(const Value& root, Path path);
std::int64_t int_at(const Value& root, Path path, std::int64_t otherwise = 0);

}  // namespace berth::sim::api
