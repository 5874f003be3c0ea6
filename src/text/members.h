// Members of objects by key, for those who look up or change many of one object.
//
// Value::find is linear, which is best for the few members that objects have, and quadratic for
// whoever asks for all of a wide one. Up to 16 members these do the same; beyond that an ordered
// index is made once. Ordered and not hashed: keys come from strangers, who can make hashes meet.
//
// Keys are views: their texts outlive the table. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "text/value.h"

namespace berth::text {

inline constexpr std::size_t kFewMembers = 16;

// Whatever order is quickest to make: numbered names often stand in it already.
inline bool shorter_first(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// Looks up; the object does not change meanwhile. O(log members), and O(1) for whoever asks in the
// order in which they stand: the index is made when somebody asks out of it.
class MemberIndex {
 public:
  explicit MemberIndex(const Value& object) : object_(object) {}

  const Value* find(std::string_view key) {
    const std::span<const Member> members = object_.members();
    if (members.size() <= kFewMembers) return object_.find(key);
    if (next_ < members.size() && members[next_].key == key) return &members[next_++].value;
    if (sorted_.empty()) sort();
    const auto at = std::lower_bound(
        sorted_.begin(), sorted_.end(), key,
        [](const Member* m, std::string_view k) { return shorter_first(m->key, k); });
    if (at == sorted_.end() || (*at)->key != key) return nullptr;
    next_ = static_cast<std::size_t>(*at - members.data()) + 1;
    return &(*at)->value;
  }

 private:
  void sort() {
    sorted_.reserve(object_.size());
    for (const Member& member : object_.members()) sorted_.push_back(&member);
    const auto by_key = [](const Member* a, const Member* b) {
      return shorter_first(a->key, b->key);
    };
    if (std::is_sorted(sorted_.begin(), sorted_.end(), by_key)) return;
    std::sort(sorted_.begin(), sorted_.end(), by_key);
  }

  Value object_;
  std::size_t next_ = 0;  // after the one found last
  std::vector<const Member*> sorted_;
};

// Members that change: what is put anew stands last, what is replaced stays where it was. V is what
// a key holds. O(log members) each.
template <class V>
class MemberTable {
 public:
  struct Slot {
    std::string_view key;
    V value;
    bool gone = false;
  };

  std::size_t size() const { return live_; }
  const std::vector<Slot>& slots() const { return slots_; }  // those gone among them

  V* find(std::string_view key) {
    const std::size_t at = place(key);
    return at == slots_.size() ? nullptr : &slots_[at].value;
  }
  void put(std::string_view key, V value) {
    if (V* known = find(key)) {
      *known = std::move(value);
      return;
    }
    // An index that holds nobody is complete when nobody is left.
    if (!index_.empty() || (live_ == 0 && slots_.size() >= kFewMembers)) {
      index_[key] = slots_.size();
    }
    slots_.push_back({key, std::move(value)});
    ++live_;
  }
  bool remove(std::string_view key) {
    const std::size_t at = place(key);
    if (at == slots_.size()) return false;
    index_.erase(key);
    slots_[at].gone = true;
    --live_;
    return true;
  }

 private:
  std::size_t place(std::string_view key) {
    if (slots_.size() <= kFewMembers) {
      std::size_t at = 0;
      while (at < slots_.size() && (slots_[at].gone || slots_[at].key != key)) ++at;
      return at;
    }
    if (index_.empty() && live_ > 0) {
      for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (!slots_[i].gone) index_.emplace(slots_[i].key, i);
      }
    }
    const auto found = index_.find(key);
    return found == index_.end() ? slots_.size() : found->second;
  }

  std::vector<Slot> slots_;
  std::map<std::string_view, std::size_t> index_;  // empty: not made yet
  std::size_t live_ = 0;
};

}  // namespace berth::text
