// Edits of immutable values: what changes is new, everything else is shared with the original.
//
//   Editor edit;
//   object = edit.with_at(object, "metadata.uid", edit.string(uid));
//   object = edit.without_at(object, "metadata.managedFields");
//
// An Editor owns whatever it made or was given to keep; the Values that it hands out live as long
// as it and their originals do. One request, one Editor. Members stay in their order: what is
// replaced where it was, what is new last. Whatever is no object counts as an empty one.
//
// Cost of a change: the members of each object on its path are copied, 32 bytes each.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/path.h"
#include "text/value.h"

namespace berth::text {

class Editor {
 public:
  Editor() = default;
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  Value string(std::string_view text) { return Value::make_string(arena_.copy(text), 0); }
  Value number(std::int64_t number);
  static Value boolean(bool truth) { return Value::make_bool(truth, 0); }
  // Keys and values are shared.
  Value object(std::span<const Member> members);
  Value object(std::initializer_list<Member> members) {
    return object(std::span(members.begin(), members.size()));
  }
  Value array(std::span<const Value> items);
  Value copy(const Value& value);  // deep, texts included
  std::string_view copy(std::string_view text) { return arena_.copy(text); }

  Value with(const Value& object, std::string_view key, const Value& value);
  Value without(const Value& object, std::string_view key);
  // At the end of a path of keys; objects on the way are made.
  Value with_at(const Value& root, const Path& path, const Value& value);
  Value without_at(const Value& root, const Path& path);
  // A key of the object there that only the run knows.
  Value with_at(const Value& root, const Path& path, std::string_view key, const Value& value);
  Value without_at(const Value& root, const Path& path, std::string_view key);
  Value append(const Value& array, const Value& item);

  Value keep(Document document);
  Result<Value> parse(std::string_view json);

  // The result alone, copied once, so that it shares nothing.
  static Document finish(const Value& root);
  // As it is, for those who copied as they built; the Editor is not used again.
  Document own(const Value& root) { return {std::move(arena_), root}; }

 private:
  Value with_at(const Value& root, const Path& path, std::size_t step, const Value& value);

  Arena arena_;
  std::vector<Document> kept_;
};

}  // namespace berth::text
