// How many bytes strangers may make us hold, in sum. For edge/serve/ alone.
//
// A budget is shared by all connections of a server; each counts what it holds in a share. Shares
// may be given back on any thread: a request in work holds its own until its handler let it go.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace berth::serve {

class ByteBudget {
 public:
  explicit ByteBudget(std::size_t most) : most_(most) {}
  bool over() const { return held() > most_; }
  std::size_t held() const { return held_.load(std::memory_order_relaxed); }
  void change(std::size_t before, std::size_t after) {
    held_.fetch_add(after - before, std::memory_order_relaxed);  // wraps where it shrinks
  }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> held_{0};
};

class HeldBytes {
 public:
  HeldBytes() = default;
  explicit HeldBytes(std::shared_ptr<ByteBudget> of) : budget_(std::move(of)) {}
  // Whose bytes were taken goes on holding others of the same budget.
  HeldBytes(HeldBytes&& other) noexcept
      : budget_(other.budget_),  // NOLINT(performance-move-constructor-init)
        bytes_(std::exchange(other.bytes_, 0)) {}
  HeldBytes& operator=(HeldBytes&&) = delete;
  ~HeldBytes() { set(0); }

  std::size_t bytes() const { return bytes_; }
  // True: it grew, and the budget is over.
  bool set(std::size_t bytes) {
    const std::size_t before = std::exchange(bytes_, bytes);
    if (!budget_ || before == bytes) return false;
    budget_->change(before, bytes);
    return bytes > before && budget_->over();
  }

 private:
  std::shared_ptr<ByteBudget> budget_;
  std::size_t bytes_ = 0;
};

}  // namespace berth::serve
