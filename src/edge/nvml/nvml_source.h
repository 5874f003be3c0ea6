// GPUs as NVIDIA's driver tells of them.
//
// The driver is loaded and initialised once; where that fails it is tried again with back-off, and
// kInventory is told when it works. Every call into the driver is made on threads of the source's
// own (driver_lane.h), one lane for each GPU, one for the inventory and one for events, so that a
// GPU that hangs is silent and nothing else. Besides the driver's events, MIG instances and the
// number of GPUs are looked at every second, once watch() was called.
//
// The loop's thread alone may call. The destructor waits for threads that are about to end, and
// leaves those that hang. Cost of a reading: tens of calls of microseconds each, on the lanes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/random.h"
#include "edge/nvml/driver_lane.h"
#include "node/discover/gpu_source.h"

namespace berth::nvml {

struct NvmlOptions {
  std::string library = "libnvidia-ml.so.1";            // a name, or a path
  std::string driver_root;                              // looked for below it; empty: anywhere
  std::int64_t inventory_deadline_ns = 30'000'000'000;  // GPUs without persistence start slowly
  std::int64_t reading_deadline_ns = 5'000'000'000;
  std::int64_t check_every_ns = 1'000'000'000;
  std::int64_t first_retry_ns = 1'000'000'000;
  std::int64_t longest_retry_ns = 30'000'000'000;
  unsigned int event_wait_ms = 500;
  int most_hanging_threads = 16;
  std::int64_t exit_grace_ns = 2'000'000'000;
};

class NvmlSource final : public discover::GpuSource {
 public:
  NvmlSource(Loop& loop, NvmlOptions options, Random random);
  ~NvmlSource() override;

  void take_inventory(std::function<void(Result<model::GpuInventory>)> done) override;
  void read(std::function<void(std::vector<model::GpuReading>)> done) override;
  void watch(std::function<void(const model::GpuEvent&)> handler) override;

  // For a metric, and for tests that must see every thread end.
  std::shared_ptr<DriverThreads> threads() const;
  // The driver's mask of event types that GPUs are registered for; 0 before that.
  unsigned long long registered_events() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::nvml
