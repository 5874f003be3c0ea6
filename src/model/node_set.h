// A set of nodes by slot: one bit each, in words of 64.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace berth::model {

class NodeSet {
 public:
  NodeSet() = default;
  explicit NodeSet(std::size_t size, bool full = false)
      : size_(size), words_((size + 63) / 64, full ? ~std::uint64_t{0} : 0) {
    if (full && size % 64 != 0) words_.back() = (std::uint64_t{1} << (size % 64)) - 1;
  }

  std::size_t size() const { return size_; }
  std::size_t words() const { return words_.size(); }
  std::uint64_t word(std::size_t w) const { return words_[w]; }
  std::uint64_t& word(std::size_t w) { return words_[w]; }
  bool test(std::size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  void set(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void reset(std::size_t i) { words_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }

  NodeSet& operator&=(const NodeSet& other) {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] &= other.words_[w];
    return *this;
  }
  NodeSet& operator|=(const NodeSet& other) {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
    return *this;
  }
  NodeSet& subtract(const NodeSet& other) {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] &= ~other.words_[w];
    return *this;
  }

  int count() const {
    int n = 0;
    for (auto w : words_) n += std::popcount(w);
    return n;
  }
  bool any() const {
    for (auto w : words_) {
      if (w != 0) return true;
    }
    return false;
  }
  template <class F>
  void for_each(F&& f) const {
    for (std::size_t w = 0; w < words_.size(); ++w) {
      for (std::uint64_t bits = words_[w]; bits != 0; bits &= bits - 1) {
        f(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
      }
    }
  }
  friend bool operator==(const NodeSet&, const NodeSet&) = default;

 private:
  std::size_t size_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace berth::model
