// Takes Kueue's finalizer off pods that have ended or are being deleted.
//
// Kueue's webhook puts kueue.x-k8s.io/managed on pods of its queues, and Kueue takes it away again.
// Without Kueue such a pod would stay for ever once it is deleted, so whoever manages the queues
// in its place does it. Nothing is kept of it but what the watch tells: a restart finds the same
// pods again, and taking away what is gone already changes nothing. On the loop's thread.
// Memory: an entry for each such pod.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/loop.h"
#include "control/writer.h"
#include "text/value.h"

namespace berth::control {

class Finalizers {
 public:
  Finalizers(Loop& loop, Writer& writer) : loop_(loop), writer_(writer) {}

  void pod_changed(const kube::Key& key, const text::Value& pod);
  void pod_gone(const kube::Key& key) { due_.erase(key.to_string()); }
  void tick();   // this controller leads and manages the queues: writes what is due
  void clear();  // the lead is lost: writes under way are not heard of again

 private:
  struct Due {
    kube::Key key;
    std::string uid;
    std::int64_t not_before = 0;
    bool writing = false;
  };

  Loop& loop_;
  Writer& writer_;
  std::map<std::string, Due> due_;  // by pod
};

}  // namespace berth::control
