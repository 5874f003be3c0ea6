// Makes a recording of any GpuSource: an inventory, then readings at an interval and every event,
// for a time. On the loop's thread alone.
//
//   Recorder recorder(loop, source, host_facts, {}, [&](Result<Recording> made) {
//     if (made.ok()) save(write_recording(*made));
//   });
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/loop.h"
#include "base/result.h"
#include "edge/nvml/recording.h"
#include "node/discover/gpu_source.h"

namespace berth::nvml {

struct RecorderOptions {
  std::int64_t duration_ns = 10'000'000'000;
  std::int64_t interval_ns = 1'000'000'000;
  std::size_t max_samples = 10'000, max_events = 10'000;  // then it ends, or keeps the first ones
};

class Recorder {
 public:
  // Calls source.watch(), which a source allows once. finish_inventory, when given, adds to the
  // inventory what the source does not know (NUMA nodes, switches). done comes once, on the loop,
  // unless the recorder is destroyed before: with the recording, or with the source's error.
  Recorder(Loop& loop, discover::GpuSource& source, model::HostFacts host, RecorderOptions options,
           std::function<void(Result<Recording>)> done,
           std::function<void(model::GpuInventory&)> finish_inventory = nullptr);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

 private:
  void take();
  void got(std::vector<model::GpuReading> readings);
  std::int64_t passed() const;

  Loop& loop_;
  discover::GpuSource& source_;
  const RecorderOptions options_;
  std::function<void(Result<Recording>)> done_;
  std::function<void(model::GpuInventory&)> finish_inventory_;
  Recording recording_;
  std::int64_t started_at_ = 0;
  Loop::Timer timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace berth::nvml
