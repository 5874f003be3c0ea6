// One set of GPU events that the driver reports. Belongs to one thread (a lane's) and blocks in the
// driver; close() alone may come from another.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "edge/nvml/nvml_api.h"
#include "model/gpu_reading.h"

namespace berth::nvml {

class EventSession {
 public:
  struct Answer {
    Return code = kSuccess;  // kTimeout: nothing happened
    std::optional<model::GpuEvent> event;
  };

  EventSession(std::shared_ptr<const Api> api, int gpus) : api_(std::move(api)), gpus_(gpus) {}

  // Registers for all that the GPUs can tell on the first call; then waits for one event.
  Answer wait(unsigned int at_most_ms);
  // The next wait() lets the set go. (A destructor could not: it may run on the loop.)
  void close() { closed_ = true; }
  unsigned long long registered() const { return registered_; }

 private:
  Return open();

  const std::shared_ptr<const Api> api_;
  const int gpus_;
  std::atomic<bool> closed_{false};
  std::atomic<unsigned long long> registered_{0};  // types that any GPU is registered for
  EventSet set_ = nullptr;
};

// Nothing for types that say nothing about health.
std::optional<model::GpuEvent> translate(const EventData& data);

}  // namespace berth::nvml
