// The GPUs of one machine of a fleet as an agent sees them: discover::GpuSource without a driver.
//
// Faults come from the fleet's script (its times count from watch()) and from inject(). A fault of
// a GPU is what a driver would tell: events, a recovery action, a lost device, links that are down;
// `gpu-silent` makes its driver calls hang. `recover` ends them all. MIG layouts can be changed as
// on a machine with a driver; they last as long as the source. Deterministic. On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/result.h"
#include "embedded/nodes/fleet.h"
#include "node/discover/gpu_source.h"
#include "node/partition/mig_gpu.h"

namespace berth::sim {

class SimGpuSource final : public discover::GpuSource, public partition::MigDriver {
 public:
  // node: one of the fleet. A fleet of one machine may have any name.
  static Result<std::unique_ptr<SimGpuSource>> make(Loop& loop, const Fleet& fleet,
                                                    const std::string& node);
  ~SimGpuSource() override;

  void take_inventory(std::function<void(Result<model::GpuInventory>)> done) override;
  void read(std::function<void(std::vector<model::GpuReading>)> done) override;
  void watch(std::function<void(const model::GpuEvent&)> handler) override;

  void look(std::function<void(Result<std::vector<partition::MigGpu>>)> done) override;
  void carry_out(const partition::MigStep& step, std::function<void(Status)> done) override;

  void inject(const Fault& fault);  // now; its node and `at` are not looked at
  int gpus() const;
  int shares() const;  // of the pool

 private:
  struct State;
  explicit SimGpuSource(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace berth::sim
