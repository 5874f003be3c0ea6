// MIG on one GPU: what it can be cut into, what it is cut into now, and the changes that a driver
// makes one at a time. Plain values; the port to whoever makes the changes.
//
// A GPU instance takes a stretch of the memory grid and some compute slices; a compute instance in
// it is what containers use (model::MigInstance). Here GPU instances are listed whether they have
// compute instances or not: a change that was cut off leaves such ones behind.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/device.h"

namespace berth::partition {

// A kind of GPU instance.
struct MigProfile {
  std::string name;         // "1g.18gb", "1g.18gb+me"
  int slices = 0;           // of compute
  int slots = 0;            // of the memory grid
  std::vector<int> starts;  // slots where one may begin, ascending
  int most = 0;             // on an empty GPU
  std::int64_t memory_mib = 0;
  int multiprocessors = 0;
  model::MigEngines engines;
  friend bool operator==(const MigProfile&, const MigProfile&) = default;
};

struct MigGeometry {
  int slices = 0, slots = 0;         // of the whole GPU
  std::vector<MigProfile> profiles;  // in the driver's order; empty: no MIG, or not told
  friend bool operator==(const MigGeometry&, const MigGeometry&) = default;
};

const MigProfile* find_profile(const MigGeometry& geometry, std::string_view name);

// The geometry of GPUs with so many compute slices (7 or 4; others have none), as it was seen on
// A100, H100 and H200: for sources without a driver.
MigGeometry usual_geometry(int slices, std::int64_t gpu_memory_mib);

struct MigCut {
  struct Compute {
    int id = 0;
    int slices = 0;
    std::string uuid;  // empty: the driver did not tell
    friend bool operator==(const Compute&, const Compute&) = default;
  };
  int id = 0;  // of the GPU instance; ids are reused in no order
  std::string profile;
  int start = 0, slots = 0;
  std::vector<Compute> compute;
  friend bool operator==(const MigCut&, const MigCut&) = default;
};

struct MigGpu {
  std::string uuid;
  int index = 0;
  std::string name;
  std::uint32_t pci_device = 0;
  bool capable = false, enabled = false;
  bool mode_pending = false;  // the mode was set and takes effect after a reset
  MigGeometry geometry;
  std::vector<MigCut> cuts;  // by start
  friend bool operator==(const MigGpu&, const MigGpu&) = default;
};

// One change. Each is checked again by whoever carries it out, against the GPU as it is then: a
// step that does not fit any more is refused and changes nothing.
struct MigStep {
  enum class Kind : std::uint8_t {
    kModeOn,
    kModeOff,
    kDestroy,  // the compute instances named, then their GPU instance
    kCreate,   // a GPU instance at a place, and a compute instance of all of it
    kFill,     // a compute instance of all of a GPU instance that has none
  };
  Kind kind = Kind::kCreate;
  std::string gpu;                   // UUID
  std::string profile;               // not of modes
  int start = 0;                     // not of modes
  int instance = 0;                  // kDestroy, kFill: the id of the GPU instance
  std::vector<std::string> compute;  // kDestroy: UUIDs of all it has, sorted
  friend bool operator==(const MigStep&, const MigStep&) = default;
};
std::string_view name(MigStep::Kind kind);  // "mig-mode-on", "mig-create"
std::string describe(const MigStep& step);  // "mig-create 1g.18gb at 6 on GPU-..."

// Who changes layouts: the helper process (agent/mig_helper.h), a simulated machine or a recorded
// one. Answers come on the loop, once, never inside the call, and not after it is gone.
class MigDriver {
 public:
  virtual ~MigDriver() = default;
  virtual void look(std::function<void(Result<std::vector<MigGpu>>)> done) = 0;
  // kConflict: the instance is in use, or the GPU is not as the step expects; nothing was changed.
  virtual void carry_out(const MigStep& step, std::function<void(Status)> done) = 0;
};

// ---- a GPU without a driver ----

// What look() would tell of a GPU of an inventory.
MigGpu mig_gpu_of(const model::GpuDevice& gpu, const MigGeometry& geometry);
// The step on it, as a driver would: checks, then changes. new_uuid: of the instance that a step
// makes. `half`: a step of two parts stops after the first, as when it is cut off.
Status apply_step(MigGpu& gpu, const MigStep& step, const std::string& new_uuid, bool half = false);
// The instances of the inventory from it; those that were there keep what they had.
void write_back(const MigGpu& from, model::GpuDevice& to);

}  // namespace berth::partition
