// What a machine's GPUs answered over some time, as one JSON file: facts of the host, the
// inventory, readings and events with their times. `berth agent record` writes it,
// recorded_source.h plays it, and bug reports carry it. docs: src/edge/nvml/testdata has two of a
// real H200.
//
// Writing is deterministic; reading is strict: unknown fields, wrong types and impossible
// inventories are refused with their path, and everything is bounded. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/device.h"
#include "model/gpu_reading.h"

namespace berth::nvml {

struct Recording {
  struct Sample {
    std::int64_t at_ns = 0;  // since the start
    std::vector<model::GpuReading> gpus;
  };
  struct Event {
    std::int64_t at_ns = 0;
    model::GpuEvent event;
  };
  std::int64_t started_ns = 0;  // wall time
  model::HostFacts host;
  model::GpuInventory inventory;
  std::vector<Sample> samples;  // by time
  std::vector<Event> events;    // by time
};

std::string write_recording(const Recording& recording);
Result<Recording> read_recording(std::string_view text);

}  // namespace berth::nvml
