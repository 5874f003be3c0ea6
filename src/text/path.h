// The one way to ask a value for what stands at a path.
//
//   text_at(pod, "spec.nodeName")
//   at(job, "spec.template.spec.containers").items()
//   find(pod, "metadata.annotations[berth.dev/gpus]")
//   for_each(pod, "spec.containers[*].ports[*]", [&](const Value& port) { ... });
//
// Steps are keys. In brackets stands a key that has dots or slashes ('quotes' are dropped), the
// place of an item, or "*": every item, for for_each() alone. A key that only the run knows follows
// as `at(pod, "metadata.labels")[key]`. Paths in the code are checked when it is compiled, and
// those of others when they are parsed.
//
// Every call is total: what is not there is a null, and a null counts as not there, as it does to
// an API server. Cost: find() of each key; nothing is copied.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "text/value.h"

namespace berth::text {

class Path {
 public:
  static constexpr std::size_t kMostSteps = 16;

  template <std::size_t N>
  consteval Path(const char (&text)[N]) : text_(text, N - 1) {  // NOLINT: a path is its text
    if (!read()) is_no_path();
  }
  // Nothing for what is no path. The text outlives the path.
  static constexpr std::optional<Path> parse(std::string_view text) {
    Path out;
    out.text_ = text;
    return out.read() ? std::optional(out) : std::nullopt;
  }

  constexpr std::size_t size() const { return size_; }
  constexpr std::string_view operator[](std::size_t step) const {
    return text_.substr(first_[step], static_cast<std::size_t>(last_[step] - first_[step]));
  }
  constexpr std::string_view text() const { return text_; }

 private:
  constexpr Path() = default;
  constexpr bool read();
  static void is_no_path() {}  // what the compiler names where it meets one

  std::string_view text_;
  std::size_t size_ = 0;
  std::array<std::uint16_t, kMostSteps> first_{}, last_{};  // of each step, in the text
};

const Value* find(const Value& root, const Path& path);  // nullptr: nothing stands there
const Value* find(const Value* root, const Path& path);  // the same, and of nothing nothing
const Value& at(const Value& root, const Path& path);    // a null where nothing stands
const Value& at(const Value* root, const Path& path);

std::string_view text_at(const Value& root, const Path& path);  // "" unless a string
std::string_view text_at(const Value* root, const Path& path);
bool true_at(const Value& root, const Path& path);  // false unless it is true
bool true_at(const Value* root, const Path& path);
// Unless it is a whole number: otherwise.
std::int64_t int_at(const Value& root, const Path& path, std::int64_t otherwise = 0);
std::int64_t int_at(const Value* root, const Path& path, std::int64_t otherwise = 0);
std::int64_t time_at(const Value& root, const Path& path);  // unix ns; 0 unless RFC 3339

// The object of a list whose "type" is this one, as in status.conditions; nullptr: there is none.
const Value* find_type(const Value& list, std::string_view type);

// What stands at the path, for each item where it says "[*]".
template <class Visit>
void for_each(const Value& root, const Path& path, const Visit& visit, std::size_t step = 0);

// ---- implementation ----------------------------------------------------------------------------

constexpr bool Path::read() {
  if (text_.size() > UINT16_MAX) return false;
  std::size_t i = 0;
  while (i < text_.size()) {
    if (size_ == kMostSteps) return false;
    const bool bracket = text_[i] == '[';
    if (!bracket && size_ > 0 && text_[i++] != '.') return false;
    std::size_t first = i, last = i;
    if (bracket) {
      first = i + 1;
      last = text_.find(']', first);
      if (last == std::string_view::npos) return false;
      i = last + 1;
      const bool quoted = last - first >= 2 && (text_[first] == '\'' || text_[first] == '"') &&
                          text_[last - 1] == text_[first];
      if (quoted) {
        ++first;
        --last;
      }
    } else {
      while (last < text_.size() && text_[last] != '.' && text_[last] != '[') ++last;
      i = last;
    }
    if (first == last) return false;
    first_[size_] = static_cast<std::uint16_t>(first);
    last_[size_++] = static_cast<std::uint16_t>(last);
  }
  return size_ > 0;
}

// One step down: the member, or the item at that place; nullptr: nothing stands there.
const Value* step_down(const Value& from, std::string_view step);

template <class Visit>
void for_each(const Value& root, const Path& path, const Visit& visit, std::size_t step) {
  const Value* now = &root;
  for (; step < path.size(); ++step) {
    if (path[step] == "*") {
      for (const Value& item : now->items()) for_each(item, path, visit, step + 1);
      return;
    }
    now = step_down(*now, path[step]);
    if (now == nullptr) return;
  }
  visit(*now);
}

}  // namespace berth::text
