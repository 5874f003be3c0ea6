// MIG instances made and destroyed through NVIDIA's library: what the helper process does.
//
// Blocking; one thread. Every change is checked against the GPU as it is at that moment: a step
// that names an instance with another place, profile or other compute instances than the GPU has is
// refused and changes nothing. Nothing here stops a process: the driver refuses what is in use, and
// so does this, before it touches the first of several instances. Whoever reads counters of an
// instance holds it for that moment: what the driver says is in use is tried for a few seconds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "edge/nvml/nvml_api.h"
#include "node/partition/mig_gpu.h"

namespace berth::nvml {

class MigControl {
 public:
  // Loads and initialises the library. patience: with what is in use.
  static Result<MigControl> open(const std::string& library, const std::string& driver_root,
                                 std::int64_t patience_ns = 3'000'000'000);

  Result<std::vector<partition::MigGpu>> look();
  // kConflict: in use, or not as the step expects. kInvalid: no such GPU, profile or place.
  Status carry_out(const partition::MigStep& step);

 private:
  // A profile with the ids that the driver wants to hear.
  struct Kind {
    partition::MigProfile profile;
    unsigned int id = 0;
  };
  // A compute instance as containers know it.
  struct Known {
    unsigned int gpu_instance = 0, compute_instance = 0;
    Device device = nullptr;
    std::string uuid;
  };
  struct Cut {
    partition::MigCut cut;
    GpuInstance handle = nullptr;
    std::vector<ComputeInstance> compute;  // as cut.compute
  };

  MigControl(std::shared_ptr<const Api> api, std::int64_t patience_ns)
      : api_(std::move(api)), patience_ns_(patience_ns) {}
  Result<std::vector<Device>> devices() const;
  partition::MigGpu describe_gpu(Device device, int index) const;
  std::vector<Kind> kinds_of(Device device) const;
  Result<std::vector<Cut>> cuts_of(Device device, const std::vector<Kind>& kinds) const;
  std::vector<Known> known_of(Device device) const;
  void add_compute(const std::vector<Known>& known, Cut& cut) const;
  Status set_mode(Device device, bool on) const;
  Status create(Device device, const partition::MigStep& step) const;
  Status fill(GpuInstance instance, int slices) const;
  Status destroy(Device device, const Cut& cut) const;
  Status check_idle(Device device, const Cut& cut) const;

  std::shared_ptr<const Api> api_;
  std::int64_t patience_ns_;
};

}  // namespace berth::nvml
