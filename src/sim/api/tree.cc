#include "sim/api/tree.h"

#include <algorithm>
#include <memory>

#include "text/json.h"

namespace berth::sim::api {

Value Tree::num(std::int64_t number) {
  return Value::make_number(arena_.copy(std::to_string(number)), 0);
}

Value Tree::object(std::span<const Member> members) {
  Member* to = arena_.allocate<Member>(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    std::construct_at(to + i, Member{arena_.copy(members[i].key), members[i].value});
  }
  return Value::make_object({to, members.size()}, 0);
}

Value Tree::array(std::span<const Value> items) {
  Value* to = arena_.allocate<Value>(items.size());
  std::uninitialized_copy(items.begin(), items.end(), to);
  return Value::make_array({to, items.size()}, 0);
}

Value Tree::with(const Value& object, std::string_view key, const Value& value) {
  const auto members = object.members();
  std::size_t found = 0;
  while (found < members.size() && members[found].key != key) ++found;
  const std::size_t size = std::max(members.size(), found + 1);
  Member* to = arena_.allocate<Member>(size);
  std::uninitialized_copy(members.begin(), members.end(), to);
  if (found == members.size()) {
    std::construct_at(to + found, Member{arena_.copy(key), value});
  } else {
    to[found].value = value;
  }
  return Value::make_object({to, size}, object.line());
}

Value Tree::without(const Value& object, std::string_view key) {
  if (object.find(key) == nullptr) return object;
  const auto members = object.members();
  Member* to = arena_.allocate<Member>(members.size());
  std::size_t size = 0;
  for (const Member& member : members) {
    if (member.key != key) std::construct_at(to + size++, member);
  }
  return Value::make_object({to, size}, object.line());
}

Value Tree::with_path(const Value& root, const std::string_view* first, std::size_t count,
                      const Value& value) {
  if (count == 0) return value;
  const Value* child = root.find(*first);
  return with(root, *first, with_path(child ? *child : Value(), first + 1, count - 1, value));
}

Value Tree::with_path(const Value& root, Path path, const Value& value) {
  return with_path(root, path.begin(), path.size(), value);
}

Value Tree::without_path(const Value& root, Path path) {
  if (path.size() == 0) return root;
  std::vector<Value> chain{root};
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    const Value* child = chain.back().find(path.begin()[i]);
    if (child == nullptr) return root;
    chain.push_back(*child);
  }
  if (chain.back().find(path.begin()[path.size() - 1]) == nullptr) return root;
  Value made = without(chain.back(), path.begin()[path.size() - 1]);
  for (std::size_t i = path.size() - 1; i-- > 0;) made = with(chain[i], path.begin()[i], made);
  return made;
}

Value Tree::append(const Value& array, const Value& item) {
  const auto items = array.items();
  Value* to = arena_.allocate<Value>(items.size() + 1);
  std::uninitialized_copy(items.begin(), items.end(), to);
  std::construct_at(to + items.size(), item);
  return Value::make_array({to, items.size() + 1}, array.line());
}

Value Tree::keep(text::Document document) {
  const Value root = document.root();
  kept_.push_back(std::move(document));
  return root;
}

Result<Value> Tree::parse(std::string_view json) {
  BERTH_TRY(text::Document document, text::parse_json(json));
  return keep(std::move(document));
}

const Value* at(const Value& root, Path path) {
  const Value* value = &root;
  for (const std::string_view key : path) {
    value = value->find(key);
    if (value == nullptr) return nullptr;
  }
  return value->is_null() ? nullptr : value;
}

std::string_view string_at(const Value& root, Path path) {
  const Value* value = at(root, path);
  return value ? value->string() : std::string_view{};
}

bool true_at(const Value& root, Path path) {
  const Value* value = at(root, path);
  return value != nullptr && value->as_bool();
}

std::int64_t int_at(const Value& root, Path path, std::int64_t otherwise) {
  const Value* value = at(root, path);
  if (value == nullptr) return otherwise;
  return value->as_int64().value_or(otherwise);
}

}  // namespace berth::sim::api
