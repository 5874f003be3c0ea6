// The way from gRPC's threads to the loop, which can be shut. For edge/kubelet/ alone.
//
// After shut() nothing is posted any more, so that the loop may be destroyed while a call is under
// way. What is posted too late is dropped on the thread that posts it.
#pragma once

#include <utility>

#include "base/loop.h"
#include "base/mutex.h"

namespace berth::kubelet {

class LoopGate {
 public:
  explicit LoopGate(Loop& loop) : loop_(&loop) {}

  bool post(Loop::Work work) {
    MutexLock lock(mutex_);
    if (loop_ != nullptr) loop_->post(std::move(work));
    return loop_ != nullptr;
  }
  void shut() {
    MutexLock lock(mutex_);
    loop_ = nullptr;
  }

 private:
  Mutex mutex_;
  Loop* loop_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::kubelet
