// The port to a machine's GPUs: what is there, what it measures, and what happens to it.
//
// Implementations: edge/nvml/nvml_source.h (the driver), edge/nvml/recorded_source.h (a file that
// `berth agent record` wrote) and embedded/nodes/gpu_source.h (a fleet file with faults).
// node/discover/source_suite_for_test.h is the suite that all pass.
//
// Callbacks come on the loop's thread, never inside the call, and exactly once for each ask. Every
// ask is answered within the deadline of the source, whatever the driver does: a device that does
// not answer is said to be silent, and the others are answered as always. After the source is
// destroyed nothing is called.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "model/device.h"
#include "model/gpu_reading.h"

namespace berth::discover {

class GpuSource {
 public:
  virtual ~GpuSource() = default;
  // An error says what is missing and when it is tried again: no driver, versions that differ. The
  // source goes on trying with back-off; kInventory is told when it becomes whole.
  virtual void take_inventory(std::function<void(Result<model::GpuInventory>)> done) = 0;
  // One reading for each GPU of the latest inventory, by index. Empty before the first.
  virtual void read(std::function<void(std::vector<model::GpuReading>)> done) = 0;
  // From now on; called at most once. Events of one GPU come in order.
  virtual void watch(std::function<void(const model::GpuEvent&)> handler) = 0;
};

}  // namespace berth::discover
