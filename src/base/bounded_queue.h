// A queue between threads that cannot grow without end: many producers, one consumer.
//
// A producer never waits: at the bound, or after close(), the value is refused and stays with the
// caller, who decides what to drop or whom to slow down; refused() is for the metric that shows the
// bound was hit. After close() the consumer still receives what was accepted before, then nullopt.
//
// Thread-safe. Order is the order of acceptance. Cost: one lock per call, none of them held while
// T is destroyed by the caller; pop_all() takes everything under one lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"

namespace berth {

template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t bound) : bound_(bound) {
    BERTH_ASSERT(bound > 0, "a queue without room refuses everything");
  }
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  // True when accepted. When refused, `value` is untouched and the refusal is counted.
  [[nodiscard]] bool try_push(T&& value) BERTH_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (closed_ || items_.size() >= bound_) {
        ++refused_;
        return false;
      }
      items_.push_back(std::move(value));
    }
    arrived_.notify_one();
    return true;
  }
  [[nodiscard]] bool try_push(const T& value) { return try_push(T(value)); }

  // Waits for a value; nullopt once the queue is closed and drained.
  std::optional<T> pop() BERTH_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (items_.empty() && !closed_) arrived_.wait(mutex_);
    return take_front();
  }

  // Does not wait; nullopt when there is nothing now.
  std::optional<T> try_pop() BERTH_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return take_front();
  }

  // Does not wait: all that is there, oldest first.
  std::deque<T> pop_all() BERTH_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return std::exchange(items_, {});
  }

  // Refuses from now on and wakes the consumer. May be called more than once.
  void close() BERTH_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      closed_ = true;
    }
    arrived_.notify_all();
  }

  bool closed() const BERTH_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return closed_;
  }
  std::size_t size() const BERTH_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return items_.size();
  }
  std::uint64_t refused() const BERTH_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return refused_;
  }
  std::size_t bound() const { return bound_; }

 private:
  std::optional<T> take_front() BERTH_REQUIRES(mutex_) {
    if (items_.empty()) return std::nullopt;
    std::optional<T> front(std::move(items_.front()));
    items_.pop_front();
    return front;
  }

  const std::size_t bound_;
  mutable Mutex mutex_;
  CondVar arrived_;
  std::deque<T> items_ BERTH_GUARDED_BY(mutex_);
  bool closed_ BERTH_GUARDED_BY(mutex_) = false;
  std::uint64_t refused_ BERTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace berth
