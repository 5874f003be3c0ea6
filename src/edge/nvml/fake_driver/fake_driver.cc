// See fake_driver.h. Built twice: BERTH_OLD_DRIVER leaves out what a driver of 2021 did not have.
#include "edge/nvml/fake_driver/fake_driver.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>

#include "edge/nvml/fake_driver/fake_calls.h"

namespace berth::nvml {
namespace {

// GPUs of a file that the environment names: processes that open this library then share one
// machine, and it survives them. One GPU a line (UUID, mode, next instance, counts), then its GPU
// instances without and with compute instances.
class SharedMachine {
 public:
  explicit SharedMachine(std::vector<FakeGpu>& gpus) : gpus_(gpus) {
    const char* path =
        std::getenv("FAKE_DRIVER_STATE");  // NOLINT(concurrency-mt-unsafe): read only
    if (path == nullptr) return;
    path_ = path;
    lock_ = ::open((path_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ::flock(lock_, LOCK_EX);
    std::ifstream file(path_);
    std::stringstream text;
    text << file.rdbuf();
    before_ = text.str();
    load(text);
  }
  ~SharedMachine() {
    if (path_.empty()) return;
    std::ostringstream now;
    save(now);
    if (now.str() != before_) {
      std::ofstream(path_ + ".new") << now.str();
      std::rename((path_ + ".new").c_str(), path_.c_str());
    }
    ::close(lock_);
  }
  SharedMachine(const SharedMachine&) = delete;
  SharedMachine& operator=(const SharedMachine&) = delete;

 private:
  void load(std::istream& in) {
    gpus_.clear();
    FakeGpu gpu;
    std::size_t cuts = 0, migs = 0;
    while (in >> gpu.uuid >> gpu.mig_enabled >> gpu.next_instance >> cuts >> migs) {
      gpu.bus = 0x18 + static_cast<unsigned int>(gpus_.size());
      gpu.cuts.assign(cuts, {});
      for (FakeCut& cut : gpu.cuts) {
        in >> cut.gpu_instance >> cut.profile >> cut.placement.start >> cut.placement.size;
      }
      gpu.mig.assign(migs, {});
      for (FakeMig& mig : gpu.mig) {
        in >> mig.uuid >> mig.gpu_instance >> mig.gpu_slices >> mig.memory_mib >> mig.profile >>
            mig.placement.start >> mig.placement.size;
        mig.compute_slices = mig.gpu_slices;
        mig.multiprocessors = 16 * mig.gpu_slices;
      }
      gpus_.push_back(gpu);
    }
  }
  void save(std::ostream& out) const {
    for (const FakeGpu& gpu : gpus_) {
      out << gpu.uuid << ' ' << gpu.mig_enabled << ' ' << gpu.next_instance << ' '
          << gpu.cuts.size() << ' ' << gpu.mig.size() << '\n';
      for (const FakeCut& cut : gpu.cuts) {
        out << cut.gpu_instance << ' ' << cut.profile << ' ' << cut.placement.start << ' '
            << cut.placement.size << '\n';
      }
      for (const FakeMig& mig : gpu.mig) {
        out << mig.uuid << ' ' << mig.gpu_instance << ' ' << mig.gpu_slices << ' ' << mig.memory_mib
            << ' ' << mig.profile << ' ' << mig.placement.start << ' ' << mig.placement.size
            << '\n';
      }
    }
  }

  std::vector<FakeGpu>& gpus_;
  std::string path_, before_;
  int lock_ = -1;
};

class Driver final : public FakeDriver {
 public:
  void reset() override {
    MutexLock lock(mutex_);
    gpus_.clear();
    init_result_ = kSuccess;
    init_hangs_ = false;
    event_error_ = kSuccess;
    events_.clear();
    inits_ = 0;
    changed_.notify_all();
  }
  void set_gpus(std::vector<FakeGpu> gpus) override {
    MutexLock lock(mutex_);
    gpus_ = std::move(gpus);
    changed_.notify_all();
  }
  void change(int gpu, const std::function<void(FakeGpu&)>& how) override {
    MutexLock lock(mutex_);
    how(gpus_.at(static_cast<std::size_t>(gpu)));
    changed_.notify_all();
  }
  void set_init(Return result, bool hangs) override {
    MutexLock lock(mutex_);
    init_result_ = result;
    init_hangs_ = hangs;
    changed_.notify_all();
  }
  void set_event_error(Return once) override {
    MutexLock lock(mutex_);
    event_error_ = once;
    changed_.notify_all();
  }
  void push(FakeEvent event) override {
    MutexLock lock(mutex_);
    events_.push_back(event);
    changed_.notify_all();
  }
  FakeGpu gpu(int gpu) override {
    MutexLock lock(mutex_);
    return gpus_.at(static_cast<std::size_t>(gpu));
  }
  int hanging() override {
    MutexLock lock(mutex_);
    return hanging_;
  }
  int inits() override {
    MutexLock lock(mutex_);
    return inits_;
  }
  int event_sets() override {
    MutexLock lock(mutex_);
    return sets_;
  }
  int gpm_samples() override {
    MutexLock lock(mutex_);
    return samples_;
  }
  unsigned long long registered(int gpu) override {
    MutexLock lock(mutex_);
    return registered_[gpu];
  }

  Return init() {
    MutexLock lock(mutex_);
    ++hanging_;
    while (init_hangs_) changed_.wait(mutex_);
    --hanging_;
    if (init_result_ == kSuccess) ++inits_;
    return init_result_;
  }
  Return count(unsigned int* out) {
    MutexLock lock(mutex_);
    if (init_result_ != kSuccess) return init_result_;
    const SharedMachine shared(gpus_);
    *out = static_cast<unsigned int>(gpus_.size());
    return kSuccess;
  }

  Return with(Device device, const std::function<Return(FakeGpu&, FakeMig*)>& answer) {
    const auto handle = reinterpret_cast<std::uintptr_t>(device);
    const std::size_t index = (handle & 0xff) - 1, slot = handle >> kMigShift;
    MutexLock lock(mutex_);
    ++hanging_;
    while (index < gpus_.size() && gpus_[index].hangs) changed_.wait(mutex_);
    --hanging_;
    const SharedMachine shared(gpus_);
    if (index >= gpus_.size()) return kInvalidArgument;
    FakeGpu& gpu = gpus_[index];
    if (gpu.broken != kSuccess) return gpu.broken;
    if (slot > gpu.mig.size()) return kInvalidArgument;
    return answer(gpu, slot == 0 ? nullptr : &gpu.mig[slot - 1]);
  }

  Return make_set(EventSet* out) {
    MutexLock lock(mutex_);
    ++sets_;
    registered_.clear();
    *out = reinterpret_cast<EventSet>(this);
    return kSuccess;
  }
  Return free_set() {
    MutexLock lock(mutex_);
    --sets_;
    return kSuccess;
  }
  void enlist(Device device, unsigned long long types) {
    MutexLock lock(mutex_);
    registered_[static_cast<int>(reinterpret_cast<std::uintptr_t>(device)) - 1] |= types;
  }
  Return wait(EventData* out, unsigned int ms) {
    MutexLock lock(mutex_);
    constexpr unsigned int kStep = 10;
    for (unsigned int waited = 0;; waited += kStep) {
      if (event_error_ != kSuccess) return std::exchange(event_error_, kSuccess);
      const auto ready = std::find_if(events_.begin(), events_.end(), [&](const FakeEvent& e) {
        return (registered_[e.gpu] & e.type) != 0;
      });
      if (ready != events_.end()) {
        *out = {handle_of<Device>(static_cast<std::uintptr_t>(ready->gpu) + 1), ready->type,
                ready->data, ready->gpu_instance, ready->compute_instance};
        events_.erase(ready);
        return kSuccess;
      }
      if (waited >= ms) return kTimeout;
      changed_.wait_for(mutex_, std::int64_t{kStep} * 1'000'000);
    }
  }
  Return make_sample(GpmSample* out) {
    MutexLock lock(mutex_);
    ++samples_;
    *out = handle_of<GpmSample>(static_cast<std::uintptr_t>(++last_sample_));
    return kSuccess;
  }
  Return free_sample() {
    MutexLock lock(mutex_);
    --samples_;
    return kSuccess;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<FakeGpu> gpus_;
  Return init_result_ = kSuccess, event_error_ = kSuccess;
  bool init_hangs_ = false;
  std::deque<FakeEvent> events_;
  std::map<int, unsigned long long> registered_;
  int hanging_ = 0, inits_ = 0, sets_ = 0, samples_ = 0, last_sample_ = 0;
};

Driver& driver() {
  static Driver* const kOne = new Driver;  // outlives every thread
  return *kOne;
}

Return put(const std::string& text, char* out, unsigned int size) {
  if (text.size() + 1 > size) return kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return kSuccess;
}

void put_pci(unsigned int bus, PciInfo* out) {
  *out = {};
  out->bus = bus;
  out->pci_device_id = 0x233510de;
}

unsigned int index_of(Device device) {
  return static_cast<unsigned int>(reinterpret_cast<std::uintptr_t>(device) & 0xff) - 1;
}

}  // namespace

Return with_gpu(Device device, const std::function<Return(FakeGpu&, FakeMig*)>& answer) {
  return driver().with(device, answer);
}

Return put_number(Device device, unsigned int* out, unsigned int number) {
  return driver().with(device, [&](FakeGpu&, FakeMig*) {
    *out = number;
    return kSuccess;
  });
}

}  // namespace berth::nvml

using namespace berth::nvml;  // NOLINT: the names below are the library's own

extern "C" {

BERTH_FAKE FakeDriver* fake_driver() { return &driver(); }

BERTH_FAKE Return nvmlInit_v2() { return driver().init(); }
BERTH_FAKE Return nvmlSystemGetDriverVersion(char* out, unsigned int size) {
  return put("580.159.04", out, size);
}
BERTH_FAKE Return nvmlSystemGetCudaDriverVersion_v2(int* out) {
  *out = 13'000;
  return kSuccess;
}
BERTH_FAKE Return nvmlDeviceGetCount_v2(unsigned int* out) { return driver().count(out); }
BERTH_FAKE Return nvmlDeviceGetHandleByIndex_v2(unsigned int index, Device* out) {
  *out = handle_of<Device>(std::uintptr_t{index} + 1);
  return driver().with(*out, [](FakeGpu&, FakeMig*) { return kSuccess; });
}
BERTH_FAKE Return nvmlDeviceGetUUID(Device device, char* out, unsigned int size) {
  return driver().with(device, [&](FakeGpu& gpu, FakeMig* mig) {
    return put(mig == nullptr ? gpu.uuid : mig->uuid, out, size);
  });
}
BERTH_FAKE Return nvmlDeviceGetName(Device device, char* out, unsigned int size) {
  return driver().with(device, [&](FakeGpu& gpu, FakeMig*) { return put(gpu.name, out, size); });
}
BERTH_FAKE Return nvmlDeviceGetMinorNumber(Device device, unsigned int* out) {
  return put_number(device, out, index_of(device));
}
BERTH_FAKE Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo* out) {
  return driver().with(device, [&](FakeGpu& gpu, FakeMig*) {
    put_pci(gpu.bus, out);
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return driver().with(device, [](FakeGpu&, FakeMig*) { return kSuccess; });
}
BERTH_FAKE Return nvmlDeviceGetMemoryInfo(Device device, Memory* out) {
  return driver().with(device, [&](FakeGpu& gpu, FakeMig* mig) {
    out->total = mig == nullptr ? gpu.memory_bytes : mig->memory_mib << 20;
    out->used = 4ULL << 20;
    out->free = out->total - out->used;
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetTemperature(Device device, int, unsigned int* out) {
  return driver().with(device, [&](FakeGpu& gpu, FakeMig*) {
    *out = gpu.temperature;
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetClockInfo(Device device, int kind, unsigned int* out) {
  return put_number(device, out, kind == kClockSm ? 1980 : 3201);
}
BERTH_FAKE Return nvmlDeviceGetPowerUsage(Device device, unsigned int* out) {
  return put_number(device, out, 76'500);
}
BERTH_FAKE Return nvmlDeviceGetUtilizationRates(Device device, Utilization* out) {
  return driver().with(device, [&](FakeGpu& gpu, FakeMig*) {
    if (gpu.mig_enabled) return kNotSupported;
    *out = {42, 7};
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlEventSetCreate(EventSet* out) { return driver().make_set(out); }
BERTH_FAKE Return nvmlEventSetFree(EventSet) { return driver().free_set(); }
BERTH_FAKE Return nvmlDeviceGetSupportedEventTypes(Device device, unsigned long long* out) {
  return driver().with(device, [&](FakeGpu& gpu, FakeMig*) {
    *out = gpu.events;
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceRegisterEvents(Device device, unsigned long long types, EventSet) {
  const Return code = driver().with(device, [](FakeGpu&, FakeMig*) { return kSuccess; });
  if (code == kSuccess) driver().enlist(device, types);
  return code;
}
BERTH_FAKE Return nvmlEventSetWait_v2(EventSet, EventData* out, unsigned int ms) {
  return driver().wait(out, ms);
}

#ifndef BERTH_OLD_DRIVER
BERTH_FAKE Return nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2* out) {
  if (out->version != struct_version<MemoryV2>(2)) return kInvalidArgument;
  return driver().with(device, [&](FakeGpu& gpu, FakeMig* mig) {
    out->total = mig == nullptr ? gpu.memory_bytes : mig->memory_mib << 20;
    out->used = 4ULL << 20;
    out->reserved = 600ULL << 20;
    out->free = out->total - out->used - out->reserved;
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetNvLinkState(Device device, unsigned int link, unsigned int* out) {
  return driver().with(device, [&](FakeGpu& gpu, FakeMig*) {
    if (link >= gpu.links.size()) return kInvalidArgument;
    *out = gpu.links[link].up ? 1 : 0;
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetNvLinkRemoteDeviceType(Device device, unsigned int link,
                                                      unsigned int* out) {
  return driver().with(device, [&](FakeGpu& gpu, FakeMig*) {
    *out = gpu.links.at(link).type;
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned int link,
                                                      PciInfo* out) {
  return driver().with(device, [&](FakeGpu& gpu, FakeMig*) {
    put_pci(gpu.links.at(link).far_bus, out);
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetGpuFabricInfoV(Device device, FabricInfoV2* out) {
  if (out->version != struct_version<FabricInfoV2>(2)) return kInvalidArgument;
  return driver().with(device, [&](FakeGpu& gpu, FakeMig*) {
    std::fill(std::begin(out->cluster_uuid), std::end(out->cluster_uuid), gpu.cluster);
    out->status = kSuccess;
    out->clique = 7;
    out->state = gpu.fabric_state;
    out->health_mask = gpu.health_mask;
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long* out) {
  *out = 123'456'789;
  return driver().with(device, [](FakeGpu&, FakeMig*) { return kSuccess; });
}
BERTH_FAKE Return nvmlDeviceGetRemappedRows(Device device, unsigned int* correctable,
                                            unsigned int* uncorrectable, unsigned int* pending,
                                            unsigned int* failed) {
  return driver().with(device, [&](FakeGpu& gpu, FakeMig*) {
    *correctable = 1;
    *uncorrectable = 2;
    *pending = gpu.remap_pending ? 1 : 0;
    *failed = gpu.remap_failed ? 1 : 0;
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetTotalEccErrors(Device device, int error, int counter,
                                              unsigned long long* out) {
  *out = static_cast<unsigned int>(error) * 10ULL + static_cast<unsigned int>(counter);
  return driver().with(device, [](FakeGpu&, FakeMig*) { return kSuccess; });
}
BERTH_FAKE Return nvmlDeviceGetCurrentClocksEventReasons(Device device, unsigned long long* out) {
  return driver().with(device, [&](FakeGpu& gpu, FakeMig*) {
    *out = gpu.reasons;
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetFieldValues(Device device, int count, FieldValue* fields) {
  return driver().with(device, [&](FakeGpu& gpu, FakeMig*) {
    for (int i = 0; i < count; ++i) {
      FieldValue& field = fields[i];
      field.result = kSuccess;
      field.type = ValueType::kUint;
      if (field.field == kFieldMemoryTemperature) {
        field.value.ui = gpu.temperature + 10;
      } else if (field.field == kFieldRecoveryAction) {
        field.value.ui = gpu.recovery;
      } else if (field.scope == kAllLinks) {
        field.type = ValueType::kUlonglong;
        field.value.ull = 5'000'000'000;
      } else {
        field.result = kNotSupported;
      }
    }
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned int* count,
                                                          ProcessInfo* out) {
  return driver().with(device, [&](FakeGpu& gpu, FakeMig*) {
    const auto have = static_cast<unsigned int>(gpu.processes.size());
    const bool fits = have <= *count;
    *count = have;
    if (!fits) return kInsufficientSize;
    std::copy(gpu.processes.begin(), gpu.processes.end(), out);
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetProcessUtilization(Device device, ProcessUtilization* out,
                                                  unsigned int* count, unsigned long long) {
  return driver().with(device, [&](FakeGpu& gpu, FakeMig*) {
    if (gpu.processes.empty()) return kNotFound;
    *out = {gpu.processes.front().pid, 1'000, 55, 0, 0, 0};
    *count = 1;
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlGpmQueryDeviceSupport(Device device, GpmSupport* out) {
  if (out->version != 1) return kInvalidArgument;
  out->supported = 1;
  return driver().with(device, [](FakeGpu&, FakeMig*) { return kSuccess; });
}
BERTH_FAKE Return nvmlGpmSampleAlloc(GpmSample* out) { return driver().make_sample(out); }
BERTH_FAKE Return nvmlGpmSampleFree(GpmSample) { return driver().free_sample(); }
BERTH_FAKE Return nvmlGpmSampleGet(Device device, GpmSample) {
  return driver().with(device, [](FakeGpu&, FakeMig*) { return kSuccess; });
}
BERTH_FAKE Return nvmlGpmMigSampleGet(Device device, unsigned int, GpmSample) {
  return driver().with(device, [](FakeGpu&, FakeMig*) { return kSuccess; });
}
BERTH_FAKE Return nvmlGpmMetricsGet(GpmMetrics* metrics) {
  if (metrics->version != 1) return kInvalidArgument;
  if (metrics->first == nullptr || metrics->second == nullptr) return kInvalidArgument;
  for (unsigned int i = 0; i < metrics->count; ++i) {
    metrics->metrics[i].result = metrics->metrics[i].id == kGpmFp16 ? kNotSupported : kSuccess;
    metrics->metrics[i].value = metrics->metrics[i].id;
  }
  return kSuccess;
}
#endif

}  // extern "C"
