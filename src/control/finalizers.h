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

#include "control/part.h"

namespace berth::control {

class Finalizers final : public Part {
 public:
  explicit Finalizers(const Common& common) : common_(common) {}

  bool changed(const Change& change) override;
  bool tick(std::int64_t now) override;  // writes what is due, where the queues are ours

 private:
  struct Due {
    kube::Key key;
    std::string uid;
  };

  const Common& common_;
  std::map<std::string, Due> due_;  // by pod
};

}  // namespace berth::control
