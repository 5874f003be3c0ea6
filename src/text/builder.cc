#include "text/builder.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "text/escape.h"
#include "text/members.h"

namespace berth::text {

namespace {
constexpr int kDeepest = 1000;  // recursive readers of Values rely on this
constexpr std::size_t kPairwise = 16;
}  // namespace

Builder::Builder(const Limits& limits) : limits_(limits) {
  limits_.max_depth = std::clamp(limits.max_depth, 0, kDeepest);
  limits_.max_nodes = std::min<std::size_t>(limits.max_nodes, 0xffff'ffffu);
}

void Builder::open(Kind kind, int line) {
  if (failed()) return;
  if (static_cast<int>(frames_.size()) >= limits_.max_depth) {
    failure_ = Failure::kDepth;
    return;
  }
  frames_.push_back({kind, line, kind == Kind::kArray ? items_.size() : members_.size()});
}

void Builder::end() {
  if (failed()) return;
  if (frames_.empty()) std::abort();  // end() without begin: a bug of the caller
  const Frame frame = frames_.back();
  if (frame.kind == Kind::kArray) {
    frames_.pop_back();
    const std::size_t count = items_.size() - frame.first;
    Value* to = arena_.allocate<Value>(count);
    std::copy_n(items_.data() + frame.first, count, to);
    items_.resize(frame.first);
    add(Value::make_array({to, count}, frame.line));
    return;
  }
  check_duplicates(frame.first);
  if (failed()) return;
  frames_.pop_back();
  const std::size_t count = members_.size() - frame.first;
  Member* to = arena_.allocate<Member>(count);
  std::copy_n(members_.data() + frame.first, count, to);
  members_.resize(frame.first);
  places_.resize(frame.first);
  add(Value::make_object({to, count}, frame.line));
}

Member Builder::pop_member() {
  if (failed() || members_.empty()) return {};
  const Member member = members_.back();
  members_.pop_back();
  places_.pop_back();
  return member;
}

std::span<const Member> Builder::open_members() const {
  if (frames_.empty() || frames_.back().kind != Kind::kObject) return {};
  return std::span<const Member>(members_).subspan(frames_.back().first);
}

void Builder::check_duplicates(std::size_t first) {
  const std::size_t count = members_.size() - first;
  const Member* members = members_.data() + first;
  if (count <= kPairwise) {
    for (std::size_t i = 1; i < count; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (members[i].key.size() == members[j].key.size() && members[i].key == members[j].key) {
          return fail_duplicate(first + i);
        }
      }
    }
    return;
  }
  sorted_.clear();
  for (std::size_t i = 0; i < count; ++i) sorted_.emplace_back(members[i].key, first + i);
  const auto by_key = [](const auto& a, const auto& b) {
    return a.first == b.first ? a.second < b.second : shorter_first(a.first, b.first);
  };
  if (!std::is_sorted(sorted_.begin(), sorted_.end(), by_key)) {
    std::sort(sorted_.begin(), sorted_.end(), by_key);
  }
  std::size_t earliest = members_.size();
  for (std::size_t i = 1; i < count; ++i) {
    if (sorted_[i - 1].first == sorted_[i].first) earliest = std::min(earliest, sorted_[i].second);
  }
  if (earliest < members_.size()) fail_duplicate(earliest);
}

void Builder::fail_duplicate(std::size_t member) {
  failure_ = Failure::kDuplicate;
  failed_key_ = members_[member].key;
  failed_line_ = places_[member].line;
  failed_column_ = places_[member].column;
}

void Builder::over_nodes() {
  if (!failed()) failure_ = Failure::kNodes;
}

void Builder::deep_copy(const Value& value) {
  if (failed()) return;
  switch (value.kind()) {
    case Kind::kNumber:
      return number(copy(value.number_text()), value.line());
    case Kind::kString:
      return string(copy(value.string()), value.line());
    case Kind::kArray:
      begin_array(value.line());
      for (const Value& item : value.items()) {
        if (failed()) return;
        deep_copy(item);
      }
      return end();
    case Kind::kObject:
      begin_object(value.line());
      for (const Member& member : value.members()) {
        if (failed()) return;
        key(copy(member.key), member.value.line());
        deep_copy(member.value);
      }
      return end();
    case Kind::kNull:
    case Kind::kBool:
      return add(value);
  }
}

Error Builder::error() const {
  switch (failure_) {
    case Failure::kDepth:
      return {Code::kExhausted, "nested deeper than " + std::to_string(limits_.max_depth) +
                                    " levels, which is the limit"};
    case Failure::kNodes:
      return {Code::kExhausted,
              "more than " + std::to_string(limits_.max_nodes) + " values, which is the limit"};
    case Failure::kDuplicate:
      break;
    case Failure::kNone:
      return {Code::kInternal, "no failure"};
  }
  const std::string shown = elide_middle(terminal_safe(failed_key_.substr(0, 256)), 60);
  return {Code::kInvalid, "key \"" + shown + "\" occurs twice in one object"};
}

}  // namespace berth::text
