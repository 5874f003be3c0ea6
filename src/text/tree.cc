#include "text/tree.h"

#include <algorithm>

#include "text/patch.h"

namespace berth::text {

Tree::Tree(const Value& value) : kind_(value.kind()), truth_(value.as_bool()) {
  if (value.is_string()) scalar_ = value.string();
  if (value.is_number()) scalar_ = value.number_text();
  for (const Value& item : value.items()) items_.emplace_back(item);
  for (const Member& member : value.members()) {
    members_.emplace_back(std::string(member.key), Tree(member.value));
  }
}

Tree Tree::of_text(std::string_view value) {
  Tree out;
  out.kind_ = Kind::kString;
  out.scalar_ = value;
  return out;
}

Tree Tree::of_number(std::int64_t value) {
  Tree out;
  out.kind_ = Kind::kNumber;
  out.scalar_ = std::to_string(value);
  return out;
}

Tree Tree::of_bool(bool value) {
  Tree out;
  out.kind_ = Kind::kBool;
  out.truth_ = value;
  return out;
}

Tree& Tree::operator[](std::string_view key) {
  if (!is_object()) {
    *this = Tree();
    kind_ = Kind::kObject;
  }
  if (Tree* found = find(key)) return *found;
  return members_.emplace_back(std::string(key), Tree()).second;
}

Tree* Tree::find(std::string_view key) {
  const auto it = std::find_if(members_.begin(), members_.end(),
                               [key](const auto& member) { return member.first == key; });
  return it == members_.end() ? nullptr : &it->second;
}

const Tree* Tree::find(std::string_view key) const { return const_cast<Tree*>(this)->find(key); }

bool Tree::erase(std::string_view key) {
  return std::erase_if(members_, [key](const auto& member) { return member.first == key; }) > 0;
}

std::vector<Tree>& Tree::items() {
  if (kind_ != Kind::kArray) {
    *this = Tree();
    kind_ = Kind::kArray;
  }
  return items_;
}

void Tree::write(JsonWriter& out) const {
  switch (kind_) {
    case Kind::kNull:
      return out.null();
    case Kind::kBool:
      return out.value(truth_);
    case Kind::kNumber:
      return out.raw(scalar_);
    case Kind::kString:
      return out.value(scalar_);
    case Kind::kArray:
      return out.array([&] {
        for (const Tree& item : items_) item.write(out);
      });
    case Kind::kObject:
      return out.object([&] {
        for (const auto& [key, value] : members_) {
          out.key(key);
          value.write(out);
        }
      });
  }
}

namespace {

std::string below(const std::string& path, std::string_view token) {
  return path + print_pointer({std::string(token)});
}

void operation(JsonWriter& out, const char* op, const std::string& path, const Tree* value) {
  out.object([&] {
    out.field("op", op);
    out.field("path", path);
    if (value != nullptr) {
      out.key("value");
      value->write(out);
    }
  });
}

void compare(JsonWriter& out, const std::string& path, const Tree& before, const Tree& after);

// Items that went, or were added at the end, are told one by one; anything else as a whole.
void compare_items(JsonWriter& out, const std::string& path, const Tree& before,
                   const Tree& after) {
  const std::vector<Tree>& was = before.items();
  const std::vector<Tree>& is = after.items();
  if (was.size() == is.size()) {
    for (std::size_t i = 0; i < is.size(); ++i) {
      compare(out, below(path, std::to_string(i)), was[i], is[i]);
    }
    return;
  }
  if (is.size() > was.size() && std::equal(was.begin(), was.end(), is.begin())) {
    for (std::size_t i = was.size(); i < is.size(); ++i) operation(out, "add", path + "/-", &is[i]);
    return;
  }
  std::vector<std::size_t> gone;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < was.size(); ++i) {
    if (kept < is.size() && was[i] == is[kept]) {
      ++kept;
    } else {
      gone.push_back(i);
    }
  }
  if (kept != is.size() || is.empty()) return operation(out, "replace", path, &after);
  for (auto it = gone.rbegin(); it != gone.rend(); ++it) {
    operation(out, "remove", below(path, std::to_string(*it)), nullptr);
  }
}

void compare(JsonWriter& out, const std::string& path, const Tree& before, const Tree& after) {
  if (before == after) return;
  if (before.is_object() && after.is_object()) {
    for (const auto& [key, value] : before.members()) {
      if (after.find(key) == nullptr) operation(out, "remove", below(path, key), nullptr);
    }
    for (const auto& [key, value] : after.members()) {
      const Tree* was = before.find(key);
      if (was == nullptr) {
        operation(out, "add", below(path, key), &value);
      } else {
        compare(out, below(path, key), *was, value);
      }
    }
    return;
  }
  if (!before.items().empty() && !after.items().empty()) {
    return compare_items(out, path, before, after);
  }
  operation(out, "replace", path, &after);
}

}  // namespace

void write_patch(JsonWriter& out, const Tree& before, const Tree& after) {
  out.array([&] { compare(out, "", before, after); });
}

Tree* below(Tree* at, const std::vector<std::string>& path) {
  for (const std::string& token : path) {
    if (at == nullptr) return nullptr;
    const bool index = !token.empty() && token.find_first_not_of("0123456789") == std::string::npos;
    if (!index) {
      at = at->find(token);
      continue;
    }
    std::vector<Tree>& items = at->items();
    const std::size_t place = token.size() < 6 ? std::stoul(token) : items.size();
    at = place < items.size() ? &items[place] : nullptr;
  }
  return at;
}

}  // namespace berth::text
