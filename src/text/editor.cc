#include "text/editor.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "text/json.h"

namespace berth::text {

Value Editor::number(std::int64_t number) {
  return Value::make_number(arena_.copy(std::to_string(number)), 0);
}

Value Editor::object(std::span<const Member> members) {
  Member* to = arena_.allocate<Member>(members.size());
  std::uninitialized_copy(members.begin(), members.end(), to);
  return Value::make_object({to, members.size()}, 0);
}

Value Editor::array(std::span<const Value> items) {
  Value* to = arena_.allocate<Value>(items.size());
  std::uninitialized_copy(items.begin(), items.end(), to);
  return Value::make_array({to, items.size()}, 0);
}

Value Editor::copy(const Value& value) {
  switch (value.kind()) {
    case Kind::kNull:
      return Value::make_null(0);
    case Kind::kBool:
      return boolean(value.as_bool());
    case Kind::kNumber:
      return Value::make_number(arena_.copy(value.number_text()), 0);
    case Kind::kString:
      return Value::make_string(arena_.copy(value.string()), 0);
    case Kind::kArray: {
      Value* to = arena_.allocate<Value>(value.size());
      std::size_t i = 0;
      for (const Value& item : value.items()) std::construct_at(to + i++, copy(item));
      return Value::make_array({to, value.size()}, 0);
    }
    case Kind::kObject: {
      Member* to = arena_.allocate<Member>(value.size());
      std::size_t i = 0;
      for (const Member& member : value.members()) {
        std::construct_at(to + i++, Member{arena_.copy(member.key), copy(member.value)});
      }
      return Value::make_object({to, value.size()}, 0);
    }
  }
  return {};
}

Value Editor::with(const Value& object, std::string_view key, const Value& value) {
  const auto members = object.members();
  std::size_t place = 0;
  while (place < members.size() && members[place].key != key) ++place;
  const std::size_t size = std::max(members.size(), place + 1);
  Member* to = arena_.allocate<Member>(size);
  std::uninitialized_copy(members.begin(), members.end(), to);
  if (place == members.size()) {
    std::construct_at(to + place, Member{arena_.copy(key), value});
  } else {
    to[place].value = value;
  }
  return Value::make_object({to, size}, object.line());
}

Value Editor::without(const Value& object, std::string_view key) {
  if (object.find(key) == nullptr) return object;
  Member* to = arena_.allocate<Member>(object.size());
  std::size_t size = 0;
  for (const Member& member : object.members()) {
    if (member.key != key) std::construct_at(to + size++, member);
  }
  return Value::make_object({to, size}, object.line());
}

Value Editor::with_at(const Value& root, const Path& path, std::size_t step, const Value& value) {
  if (step == path.size()) return value;
  return with(root, path[step], with_at(root[path[step]], path, step + 1, value));
}

Value Editor::with_at(const Value& root, const Path& path, const Value& value) {
  return with_at(root, path, 0, value);
}

Value Editor::with_at(const Value& root, const Path& path, std::string_view key,
                      const Value& value) {
  return with_at(root, path, with(at(root, path), key, value));
}

Value Editor::without_at(const Value& root, const Path& path) {
  std::vector<Value> chain{root};
  for (std::size_t i = 0; i + 1 < path.size(); ++i) chain.push_back(chain.back()[path[i]]);
  const std::string_view last = path[path.size() - 1];
  if (chain.back().find(last) == nullptr) return root;
  Value made = without(chain.back(), last);
  for (std::size_t i = path.size() - 1; i-- > 0;) made = with(chain[i], path[i], made);
  return made;
}

Value Editor::without_at(const Value& root, const Path& path, std::string_view key) {
  const Value& object = at(root, path);
  if (object.find(key) == nullptr) return root;
  return with_at(root, path, without(object, key));
}

Value Editor::append(const Value& array, const Value& item) {
  const auto items = array.items();
  Value* to = arena_.allocate<Value>(items.size() + 1);
  std::uninitialized_copy(items.begin(), items.end(), to);
  std::construct_at(to + items.size(), item);
  return Value::make_array({to, items.size() + 1}, array.line());
}

Value Editor::keep(Document document) {
  const Value root = document.root();
  kept_.push_back(std::move(document));
  return root;
}

Result<Value> Editor::parse(std::string_view json) {
  BERTH_TRY(Document document, parse_json(json));
  return keep(std::move(document));
}

Document Editor::finish(const Value& root) {
  Editor fresh;
  const Value copied = fresh.copy(root);
  return fresh.own(copied);
}

}  // namespace berth::text
