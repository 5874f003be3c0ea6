// std::mutex and std::condition_variable with the annotations that clang checks.
//
// For the few places where threads meet: the bounded queue, the metrics registry, the edges. The
// stages hold no locks; they are called by one loop, or work on immutable snapshots.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/thread_annotations.h"

namespace berth {

class BERTH_CAPABILITY("mutex") Mutex {
 public:
  void lock() BERTH_ACQUIRE() { mutex_.lock(); }
  void unlock() BERTH_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class BERTH_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) BERTH_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() BERTH_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  // May wake without a reason: call it in a loop that tests the condition.
  void wait(Mutex& mutex) BERTH_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    condition_.wait(held);
    held.release();  // the caller's MutexLock still owns it
  }
  // As wait(), and returns after so long at the latest.
  void wait_for(Mutex& mutex, std::int64_t ns) BERTH_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    condition_.wait_for(held, std::chrono::nanoseconds(ns));
    held.release();
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace berth
