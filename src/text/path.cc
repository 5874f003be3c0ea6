#include "text/path.h"

#include <charconv>

#include "text/rfc3339.h"

namespace berth::text {

namespace {

constexpr Value kNothing;

}  // namespace

const Value* step_down(const Value& from, std::string_view step) {
  if (!from.is_array()) return from.find(step);
  std::size_t place = 0;
  const auto [end, code] = std::from_chars(step.data(), step.data() + step.size(), place);
  const bool is_place = code == std::errc() && end == step.data() + step.size();
  return is_place && place < from.size() ? &from.items()[place] : nullptr;
}

const Value* find(const Value& root, const Path& path) {
  const Value* now = &root;
  for (std::size_t i = 0; i < path.size() && now != nullptr; ++i) now = step_down(*now, path[i]);
  return now == nullptr || now->is_null() ? nullptr : now;
}
const Value* find(const Value* root, const Path& path) {
  return root == nullptr ? nullptr : find(*root, path);
}

const Value& at(const Value& root, const Path& path) {
  const Value* found = find(root, path);
  return found == nullptr ? kNothing : *found;
}
const Value& at(const Value* root, const Path& path) {
  return root == nullptr ? kNothing : at(*root, path);
}

std::string_view text_at(const Value& root, const Path& path) { return at(root, path).string(); }
std::string_view text_at(const Value* root, const Path& path) { return at(root, path).string(); }

bool true_at(const Value& root, const Path& path) { return at(root, path).as_bool(); }
bool true_at(const Value* root, const Path& path) { return at(root, path).as_bool(); }

std::int64_t int_at(const Value& root, const Path& path, std::int64_t otherwise) {
  return at(root, path).as_int64().value_or(otherwise);
}
std::int64_t int_at(const Value* root, const Path& path, std::int64_t otherwise) {
  return at(root, path).as_int64().value_or(otherwise);
}

std::int64_t time_at(const Value& root, const Path& path) {
  const std::string_view text = text_at(root, path);
  if (text.empty()) return 0;
  const Result<std::int64_t> time = parse_rfc3339(text);
  return time.ok() ? *time : 0;
}

const Value* find_type(const Value& list, std::string_view type) {
  for (const Value& item : list.items()) {
    if (text_at(item, "type") == type) return &item;
  }
  return nullptr;
}

}  // namespace berth::text
