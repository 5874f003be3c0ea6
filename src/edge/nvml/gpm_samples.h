// Profiling values of one GPU and its MIG instances (GPM, Hopper and newer). A value is a rate
// between two samples, so the first reading of a device has none. One thread; blocks in the driver.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "edge/nvml/nvml_api.h"
#include "model/gpu_reading.h"

namespace berth::nvml {

class GpmSamples {
 public:
  explicit GpmSamples(std::shared_ptr<const Api> api) : api_(std::move(api)) {}
  ~GpmSamples();
  GpmSamples(const GpmSamples&) = delete;
  GpmSamples& operator=(const GpmSamples&) = delete;

  bool supported(Device device);
  void read(Device device, model::GpuCounters& out);
  // uuid: instance ids are used again.
  void read_mig(Device gpu, unsigned int gpu_instance, const std::string& uuid,
                model::GpuCounters& out);
  // Samples of instances that this round did not read are let go.
  void end_round();

 private:
  struct Kept {
    GpmSample sample = nullptr;
    bool seen = true;
  };
  void rates(GpmSample before, GpmSample now, model::GpuCounters& out) const;
  template <class Take>
  void advance(const std::string& key, const Take& take, model::GpuCounters& out);

  const std::shared_ptr<const Api> api_;
  int supported_ = -1;                // not asked yet
  std::map<std::string, Kept> kept_;  // by UUID of the instance; empty: the whole GPU
};

}  // namespace berth::nvml
