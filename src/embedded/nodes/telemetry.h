// What the GPUs of a simulated fleet would measure, as metrics berth_sim_gpu_*{node,gpu}.
//
// Load follows the pods that hold a device; a little chance makes the curves look alive and is the
// same for a seed. Inside this folder. Cost: five gauges for each GPU.
#pragma once

#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/random.h"

namespace berth::sim {

struct GpuLoad {
  int utilization = 0;  // percent
  std::int64_t memory_mib = 0, used_mib = 0;
  bool healthy = true;
};

class Telemetry {
 public:
  Telemetry(MetricsRegistry& metrics, Random random, std::size_t gpus);

  void add_node(const std::string& node, int gpus);  // in the order of the numbers that set() takes
  void set(std::size_t node, std::size_t gpu, const GpuLoad& load);
  int busy(std::size_t node, std::size_t gpu) const;  // per cent, as last set; -1: no such GPU
  void count_fault(const std::string& kind);
  void count_hint_difference() { hints_.add(); }

 private:
  struct Gauges {
    Gauge utilization, memory_used, temperature, power, healthy;
    int busy = 0;
  };
  GaugeFamily &utilization_, &memory_used_, &temperature_, &power_, &healthy_;
  CounterFamily& faults_;
  Counter hints_;
  Random random_;
  std::vector<std::vector<Gauges>> nodes_;
};

}  // namespace berth::sim
