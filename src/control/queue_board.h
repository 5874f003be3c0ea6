// Where the controller tells its webhook what namespaces say about queues.
//
// Written on the loop's thread when it changed, read on the threads that answer the API server. A
// reader gets a whole value that does not change any more. Before the first one nothing is known.
#pragma once

#include <memory>
#include <utility>

#include "base/mutex.h"
#include "kinds/object_set.h"

namespace berth::control {

class QueueBoard {
 public:
  using Demands = std::shared_ptr<const kinds::QueueDemands>;
  void tell(kinds::QueueDemands now) {
    auto fresh = std::make_shared<const kinds::QueueDemands>(std::move(now));
    const MutexLock lock(mutex_);
    demands_ = std::move(fresh);
  }
  Demands read() const {
    const MutexLock lock(mutex_);
    return demands_;
  }

 private:
  mutable Mutex mutex_;
  Demands demands_ BERTH_GUARDED_BY(mutex_) =
      std::make_shared<const kinds::QueueDemands>(kinds::QueueDemands{.known = false});
};

}  // namespace berth::control
