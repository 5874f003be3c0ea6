// A map by name that copies share: a change costs what it changes, however large the map is.
//
// What changed since a copy was made is kept beside the common part; once nobody else has that
// part, or much has changed, the two become one. Keys are owned. Copies belong to one thread.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace berth {

template <class T>
class SharedMap {
 public:
  // Null: not there. Valid until the next change.
  const T* find(std::string_view key) const {
    if (!changes_.empty()) {
      const auto changed = changes_.find(key);
      if (changed != changes_.end()) return changed->second ? &*changed->second : nullptr;
    }
    const auto it = common_->find(key);
    return it == common_->end() ? nullptr : &it->second;
  }

  void put(std::string_view key, T value) {
    if (alone()) {
      common_->insert_or_assign(std::string(key), std::move(value));
    } else {
      changes_.insert_or_assign(std::string(key), std::move(value));
    }
  }

  void erase(std::string_view key) {
    if (alone()) {
      const auto it = common_->find(key);
      if (it != common_->end()) common_->erase(it);
    } else {
      changes_.insert_or_assign(std::string(key), std::nullopt);
    }
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const {
      return std::hash<std::string_view>{}(key);
    }
  };
  template <class V>
  using Map = boost::unordered_flat_map<std::string, V, Hash, std::equal_to<>>;

  // Whether the common part is ours to change; it has all changes then.
  bool alone() {
    const bool shared = common_.use_count() > 1;
    if (shared && changes_.size() < kFew + common_->size() / 8) return false;
    if (shared) common_ = std::make_shared<Map<T>>(*common_);
    for (auto& [key, value] : changes_) {
      if (value) {
        common_->insert_or_assign(key, std::move(*value));
      } else {
        common_->erase(key);
      }
    }
    if (!changes_.empty()) changes_ = {};
    return true;
  }

  static constexpr std::size_t kFew = 64;

  std::shared_ptr<Map<T>> common_ = std::make_shared<Map<T>>();
  Map<std::optional<T>> changes_;  // nullopt: gone
};

}  // namespace berth
