// What one GPU answers: facts, readings, and the cheap look for changes.
//
// A probe belongs to one thread (a lane's) and blocks in the driver. It keeps what readings need
// from one to the next: the device's handle and the last profiling samples.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "edge/nvml/nvml_api.h"
#include "model/device.h"
#include "model/gpu_reading.h"

namespace berth::nvml {

// A GPU's facts as far as it alone can tell: the links still name their far end by bus id.
struct GpuFacts {
  model::GpuDevice gpu;
  std::map<std::string, int> peer_links;  // bus id of another GPU -> links
  int switch_links = 0;
  friend bool operator==(const GpuFacts&, const GpuFacts&) = default;
};

// What changes without a new init: enough to know that an inventory is out of date.
struct GpuPresence {
  std::string uuid;
  bool mig_enabled = false;
  std::optional<std::vector<std::string>> mig;  // UUIDs, sorted; absent: not looked at
  friend bool operator==(const GpuPresence&, const GpuPresence&) = default;
};
GpuPresence presence_of(const model::GpuDevice& gpu);

// "+me" of a profile's number: numbers from 7 on are variants of the plain ones.
std::string_view mig_attribute(unsigned int profile_number);

class GpmSamples;

class GpuProbe {
 public:
  GpuProbe(std::shared_ptr<const Api> api, int index);
  ~GpuProbe();
  GpuProbe(const GpuProbe&) = delete;
  GpuProbe& operator=(const GpuProbe&) = delete;

  Result<GpuFacts> facts();
  // with_instances: listing them costs the driver 10 ms for each.
  Result<GpuPresence> presence(bool with_instances);
  model::GpuReading read();

 private:
  struct MigHandle {
    Device device = nullptr;
    std::string uuid;
    unsigned int gpu_instance = 0, compute_instance = 0;
  };

  Status find_device();
  bool mig_enabled() const;
  std::vector<MigHandle> mig_handles() const;
  std::optional<model::MigInstance> mig_facts(const MigHandle& handle,
                                              std::int64_t gpu_bytes) const;
  std::string profile_attribute(unsigned int profile_id) const;
  void add_links(GpuFacts& facts) const;
  void add_fabric(model::GpuDevice& gpu) const;

  void read_core(model::GpuReading& reading) const;
  void read_clocks_and_power(model::GpuCounters& counters) const;
  void read_errors(model::GpuReading& reading) const;
  void read_fields(model::GpuReading& reading) const;
  void read_links(model::GpuCondition& condition);
  void read_fabric(model::GpuCondition& condition) const;
  void read_processes(model::GpuReading& reading, const std::vector<MigHandle>& mig);

  const std::shared_ptr<const Api> api_;
  const int index_;
  Device device_ = nullptr;
  std::string uuid_;
  bool links_were_up_ = false;
  unsigned long long utilization_seen_ = 0;  // time stamp of the newest process sample
  std::unique_ptr<GpmSamples> gpm_;
};

}  // namespace berth::nvml
