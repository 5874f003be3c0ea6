// A management library for tests: a shared object with NVML's symbols over GPUs that a test makes
// up, with faults. A test opens it with dlopen, as the source does, and asks for the symbol
// "fake_driver" to get at the state below.
//
// With FAKE_DRIVER_STATE in the environment its GPUs are those of that file, shared by processes:
// for tests that kill some.
//
// Everything is guarded by the mutex; change it with the methods.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "edge/nvml/nvml_api.h"

namespace berth::nvml {

struct FakeMig {
  std::string uuid;
  unsigned int gpu_instance = 0, compute_instance = 0;
  unsigned int gpu_slices = 1, compute_slices = 1;
  unsigned long long memory_mib = 0;
  unsigned int multiprocessors = 0;
  unsigned int profile = 0;  // number of the GPU instance's profile
  Placement placement{};
};

// A GPU instance without a compute instance.
struct FakeCut {
  unsigned int gpu_instance = 0;
  unsigned int profile = 0;  // its number
  Placement placement{};
};

struct FakeLink {
  bool up = true;
  unsigned int type = kRemoteSwitch;
  unsigned int far_bus = 0;  // of a GPU at the other end
};

struct FakeGpu {
  std::string uuid;
  std::string name = "NVIDIA H200";
  unsigned int bus = 0;
  unsigned long long memory_bytes = 150'754'820'096;  // 143,771 MiB
  unsigned int temperature = 30;
  unsigned int recovery = 0;
  bool remap_pending = false, remap_failed = false;
  unsigned long long reasons = 0;
  unsigned int health_mask = 0;
  unsigned char fabric_state = kFabricCompleted;
  unsigned char cluster = 0;  // every byte of the cluster's UUID
  bool mig_enabled = false;
  std::vector<FakeMig> mig;
  std::vector<FakeCut> cuts;
  std::set<std::string> busy;      // UUIDs of instances that somebody computes on
  int readers = 0;                 // so many destructions are refused: somebody reads counters
  bool mode_needs_reset = false;   // a mode that is set stays pending
  int mode_pending = -1;           // what it is to become; -1: nothing
  unsigned int next_instance = 1;  // id
  std::vector<FakeLink> links;
  std::vector<ProcessInfo> processes;
  Return broken = kSuccess;  // answered by every call
  bool hangs = false;        // in every call
  unsigned long long events = 0xff9f;
};

struct FakeEvent {
  int gpu = 0;
  unsigned long long type = 0, data = 0;
  unsigned int gpu_instance = kNoInstance, compute_instance = kNoInstance;
};

class FakeDriver {
 public:
  // Back to a driver without GPUs that answers everything; what hangs is let go.
  virtual void reset() = 0;
  virtual void set_gpus(std::vector<FakeGpu> gpus) = 0;
  // Changes one GPU under the lock; waiting calls look again.
  virtual void change(int gpu, const std::function<void(FakeGpu&)>& how) = 0;
  virtual void set_init(Return result, bool hangs) = 0;
  virtual void set_event_error(Return once) = 0;
  virtual void push(FakeEvent event) = 0;

  // A look at one GPU under the lock.
  virtual FakeGpu gpu(int gpu) = 0;
  virtual int hanging() = 0;      // calls that hang now
  virtual int inits() = 0;        // successful ones
  virtual int event_sets() = 0;   // that exist
  virtual int gpm_samples() = 0;  // that exist
  virtual unsigned long long registered(int gpu) = 0;

 protected:
  ~FakeDriver() = default;
};

}  // namespace berth::nvml
