#include "sim/schema/edit.h"

#include <string>
#include <utility>

#include "sim/schema/node.h"

namespace berth::sim {

Value Draft::number(std::int64_t number) {
  return Value::make_number(arena_.copy(std::to_string(number)), 0);
}

Value Draft::object(std::span<const Member> members) {
  Member* to = arena_.allocate<Member>(members.size());
  std::uninitialized_copy(members.begin(), members.end(), to);
  return Value::make_object({to, members.size()}, 0);
}

Value Draft::array(std::span<const Value> items) {
  Value* to = arena_.allocate<Value>(items.size());
  std::uninitialized_copy(items.begin(), items.end(), to);
  return Value::make_array({to, items.size()}, 0);
}

Value Draft::copy(const Value& value) {
  switch (value.kind()) {
    case text::Kind::kNull:
      return Value::make_null(0);
    case text::Kind::kBool:
      return boolean(value.as_bool());
    case text::Kind::kNumber:
      return Value::make_number(arena_.copy(value.number_text()), 0);
    case text::Kind::kString:
      return Value::make_string(arena_.copy(value.string()), 0);
    case text::Kind::kArray: {
      Value* to = arena_.allocate<Value>(value.size());
      std::size_t i = 0;
      for (const Value& item : value.items()) new (to + i++) Value(copy(item));
      return Value::make_array({to, value.size()}, 0);
    }
    case text::Kind::kObject: {
      Member* to = arena_.allocate<Member>(value.size());
      std::size_t i = 0;
      for (const Member& member : value.members()) {
        new (to + i++) Member{arena_.copy(member.key), copy(member.value)};
      }
      return Value::make_object({to, value.size()}, 0);
    }
  }
  return {};
}

Value Draft::set(const Value& object, std::string_view key, const Value& value) {
  const auto members = object.members();
  std::size_t place = 0;
  while (place < members.size() && members[place].key != key) ++place;
  const std::size_t size = std::max(members.size(), place + 1);
  Member* to = arena_.allocate<Member>(size);
  std::uninitialized_copy(members.begin(), members.end(), to);
  if (place == members.size()) {
    new (to + place) Member{arena_.copy(key), value};
  } else {
    to[place].value = value;
  }
  return Value::make_object({to, size}, 0);
}

Value Draft::unset(const Value& object, std::string_view key) {
  if (object.find(key) == nullptr) return object;
  std::vector<Member> kept;
  for (const Member& member : object.members()) {
    if (member.key != key) kept.push_back(member);
  }
  return this->object(kept);
}

Value Draft::set_in(const Value& object, std::span<const std::string_view> path,
                    const Value& value) {
  if (path.empty()) return value;
  const Value* inner = object.find(path.front());
  return set(object, path.front(),
             set_in(inner == nullptr ? Value() : *inner, path.subspan(1), value));
}

Value Draft::set_in(const Value& object, std::initializer_list<std::string_view> path,
                    const Value& value) {
  return set_in(object, std::span(path.begin(), path.size()), value);
}

Value Draft::unset_in(const Value& object, std::string_view outer, std::string_view key) {
  const Value* inner = object.find(outer);
  if (inner == nullptr || inner->find(key) == nullptr) return object;
  return set(object, outer, unset(*inner, key));
}

text::Document Draft::finish(const Value& root) {
  Draft fresh;
  const Value copied = fresh.copy(root);
  return fresh.own(copied);
}

std::string_view text_at(const text::Value& object, std::string_view key) {
  const Value* found = object.find(key);
  return found == nullptr ? std::string_view{} : found->string();
}

const text::Value& at(const text::Value& object, std::string_view key) {
  static const Value null;
  const Value* found = object.find(key);
  return found == nullptr ? null : *found;
}

std::optional<std::int64_t> int_at(const text::Value& object, std::string_view key) {
  const Value* found = object.find(key);
  return found == nullptr ? std::nullopt : found->as_int64();
}

}  // namespace berth::sim
