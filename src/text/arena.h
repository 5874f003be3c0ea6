// A bump allocator: memory is handed out from growing blocks and freed all at once.
//
// Only for types that need no destructor. Not thread-safe while allocating. Pointers stay valid
// while the Arena lives, also when it is moved.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace berth::text {

class Arena {
 public:
  Arena() = default;
  Arena(Arena&& other) noexcept
      : blocks_(std::move(other.blocks_)),
        next_(std::exchange(other.next_, nullptr)),
        left_(std::exchange(other.left_, 0)),
        block_size_(other.block_size_),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Arena& operator=(Arena&& other) noexcept {
    blocks_ = std::move(other.blocks_);
    next_ = std::exchange(other.next_, nullptr);
    left_ = std::exchange(other.left_, 0);
    block_size_ = other.block_size_;
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  // Uninitialised room for count Ts (count may be 0).
  template <class T>
  T* allocate(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlign);
    return static_cast<T*>(raw(count * sizeof(T), alignof(T)));
  }

  std::string_view copy(std::string_view text) {
    if (text.empty()) return {};
    char* to = allocate<char>(text.size());
    std::memcpy(to, text.data(), text.size());
    return {to, text.size()};
  }

  std::size_t bytes() const { return bytes_; }  // taken from the heap

 private:
  static constexpr std::size_t kAlign = alignof(std::max_align_t);
  static constexpr std::size_t kFirstBlock = 1024;
  static constexpr std::size_t kLargestBlock = 1024 * 1024;

  void* raw(std::size_t size, std::size_t align) {
    const std::size_t skip = (~reinterpret_cast<std::uintptr_t>(next_) + 1) & (align - 1);
    if (left_ < skip || left_ - skip < size) return fresh(size);
    std::byte* at = next_ + skip;
    next_ = at + size;
    left_ -= skip + size;
    return at;
  }

  // A new block; what was left of the current one is given up, unless the request is large.
  void* fresh(std::size_t size) {
    if (size > kLargestBlock / 4) {
      bytes_ += size;
      return blocks_.emplace_back(new std::byte[size]).get();
    }
    const std::size_t want = std::max(block_size_, size);
    block_size_ = std::min(kLargestBlock, block_size_ * 2);
    bytes_ += want;
    std::byte* at = blocks_.emplace_back(new std::byte[want]).get();
    next_ = at + size;
    left_ = want - size;
    return at;
  }

  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
  std::size_t block_size_ = kFirstBlock;
  std::size_t bytes_ = 0;
};

}  // namespace berth::text
