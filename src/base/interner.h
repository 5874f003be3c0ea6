// Strings to small ints, once.
//
// Ids are dense, start at 0, and are given in order of first sight, so the same sequence of strings
// gives the same ids. Append-only: an id and the view behind it stay valid as long as the interner.
// Not thread-safe: one loop interns; readers on other threads use only ids they were handed.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace berth {

using SymbolId = std::uint32_t;

class Interner {
 public:
  SymbolId intern(std::string_view text) {
    if (auto it = ids_.find(text); it != ids_.end()) return it->second;
    auto id = static_cast<SymbolId>(texts_.size());
    ids_.emplace(std::string_view(texts_.emplace_back(text)), id);
    return id;
  }
  std::optional<SymbolId> find(std::string_view text) const {
    auto it = ids_.find(text);
    return it == ids_.end() ? std::nullopt : std::optional(it->second);
  }
  std::string_view text(SymbolId id) const { return texts_[id]; }
  std::size_t size() const { return texts_.size(); }

  Interner() = default;
  Interner(const Interner&) = delete;  // the views in ids_ point into texts_
  Interner& operator=(const Interner&) = delete;

 private:
  std::deque<std::string> texts_;  // a deque never moves its elements
  boost::unordered_flat_map<std::string_view, SymbolId> ids_;
};

}  // namespace berth
