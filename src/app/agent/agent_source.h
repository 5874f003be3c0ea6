// The GPU source that `berth agent --source` names. Inside this folder.
#pragma once

#include <memory>
#include <string>

#include "base/loop.h"
#include "base/random.h"
#include "base/result.h"
#include "embedded/nodes/gpu_source.h"
#include "node/discover/gpu_source.h"

namespace berth::app {

struct OpenSource {
  std::unique_ptr<discover::GpuSource> source;
  sim::SimGpuSource* simulated = nullptr;  // the same, when it is one
  partition::MigDriver* mig = nullptr;     // the same, where it changes layouts itself
  bool real = false;                       // the devices are this machine's
};

// text: "nvml", "sim=FILE" or "recorded=FILE". driver_root: where NVML's library is looked for.
Result<OpenSource> open_source(Loop& loop, Random random, const std::string& text,
                               const std::string& node, const std::string& driver_root);

}  // namespace berth::app
