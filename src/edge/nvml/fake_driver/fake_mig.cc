// MIG of the fake driver: modes, GPU instances and compute instances as an H200 has them. See
// fake_driver.h.
#ifndef BERTH_OLD_DRIVER
#include <algorithm>
#include <iterator>

#include "edge/nvml/fake_driver/fake_calls.h"

namespace berth::nvml {
namespace {

// The kinds of GPU instances of an H200, by number.
struct Kind {
  unsigned int number, slices, slots;
  std::vector<unsigned int> starts;
  unsigned int most;
  unsigned long long memory_mib;
};
const Kind* kind_of(unsigned int id) {
  static const std::vector<Kind> kKinds = {{0, 1, 1, {0, 1, 2, 3, 4, 5, 6}, 7, 16'384},
                                           {1, 2, 2, {0, 2, 4}, 3, 33'280},
                                           {2, 3, 4, {0, 4}, 2, 71'424},
                                           {3, 4, 4, {0}, 1, 71'424},
                                           {4, 7, 8, {0}, 1, 143'360},
                                           {7, 1, 1, {0, 1, 2, 3, 4, 5, 6}, 1, 16'384},
                                           {9, 1, 2, {0, 2, 4, 6}, 4, 33'280}};
  for (const Kind& kind : kKinds) {
    if (kind.number + 100 == id) return &kind;
  }
  return nullptr;
}

GpuInstance instance_handle(Device device, unsigned int id) {
  return handle_of<GpuInstance>((reinterpret_cast<std::uintptr_t>(device) & 0xff) |
                                std::uintptr_t{id + 1} << kMigShift);
}
// The GPU of an instance's handle, and the instance's id.
Return with_instance(const void* instance,
                     const std::function<Return(FakeGpu&, unsigned)>& answer) {
  const auto handle = reinterpret_cast<std::uintptr_t>(instance);
  const auto id = static_cast<unsigned int>(handle >> kMigShift & 0xffff) - 1;
  return with_gpu(handle_of<Device>(handle & 0xff),
                  [&](FakeGpu& gpu, FakeMig*) { return answer(gpu, id); });
}
constexpr std::uintptr_t kComputeShift = 24;

// Where every GPU instance lies, whether it has a compute instance or not.
std::vector<FakeCut> all_cuts(const FakeGpu& gpu) {
  std::vector<FakeCut> out = gpu.cuts;
  for (const FakeMig& mig : gpu.mig) {
    const bool known = std::any_of(out.begin(), out.end(), [&](const FakeCut& cut) {
      return cut.gpu_instance == mig.gpu_instance;
    });
    if (!known) out.push_back({mig.gpu_instance, mig.profile, mig.placement});
  }
  return out;
}

}  // namespace
}  // namespace berth::nvml

using namespace berth::nvml;  // NOLINT: the names below are the library's own

extern "C" {

BERTH_FAKE Return nvmlDeviceGetMigMode(Device device, unsigned int* current,
                                       unsigned int* pending) {
  return with_gpu(device, [&](FakeGpu& gpu, FakeMig*) {
    *current = *pending = gpu.mig_enabled ? 1 : 0;
    if (gpu.mode_pending >= 0) *pending = static_cast<unsigned int>(gpu.mode_pending);
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned int* out) {
  return put_number(device, out, 7);
}
BERTH_FAKE Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned int slot,
                                                      Device* out) {
  *out = handle_of<Device>(reinterpret_cast<std::uintptr_t>(device) | std::uintptr_t{slot + 1}
                                                                          << kMigShift);
  return with_gpu(
      device, [&](FakeGpu& gpu, FakeMig*) { return slot < gpu.mig.size() ? kSuccess : kNotFound; });
}
BERTH_FAKE Return nvmlDeviceGetGpuInstanceId(Device device, unsigned int* out) {
  return with_gpu(device, [&](FakeGpu&, FakeMig* mig) {
    if (mig == nullptr) return kInvalidArgument;
    *out = mig->gpu_instance;
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetComputeInstanceId(Device device, unsigned int* out) {
  return with_gpu(device, [&](FakeGpu&, FakeMig* mig) {
    if (mig == nullptr) return kInvalidArgument;
    *out = mig->compute_instance;
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetAttributes_v2(Device device, DeviceAttributes* out) {
  return with_gpu(device, [&](FakeGpu&, FakeMig* mig) {
    if (mig == nullptr) return kNotSupported;
    *out = {mig->multiprocessors, mig->gpu_slices, 1, 0, 1, 0, mig->gpu_slices,
            mig->compute_slices,  mig->memory_mib};
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetGpuInstanceById(Device device, unsigned int id, GpuInstance* out) {
  return with_gpu(device, [&](FakeGpu& gpu, FakeMig*) {
    for (const FakeMig& mig : gpu.mig) {
      if (mig.gpu_instance != id) continue;
      *out = instance_handle(device, id);
      return kSuccess;
    }
    for (const FakeCut& cut : gpu.cuts) {
      if (cut.gpu_instance != id) continue;
      *out = instance_handle(device, id);
      return kSuccess;
    }
    return kNotFound;
  });
}
BERTH_FAKE Return nvmlGpuInstanceGetInfo(GpuInstance instance, GpuInstanceInfo* out) {
  const auto handle = reinterpret_cast<std::uintptr_t>(instance);
  return with_gpu(handle_of<Device>(handle & 0xff), [&](FakeGpu& gpu, FakeMig*) {
    for (const FakeMig& mig : gpu.mig) {
      if (mig.gpu_instance + 1 != handle >> kMigShift) continue;
      *out = {nullptr, mig.gpu_instance, mig.profile + 100, mig.placement};
      return kSuccess;
    }
    for (const FakeCut& cut : gpu.cuts) {
      if (cut.gpu_instance + 1 != handle >> kMigShift) continue;
      *out = {nullptr, cut.gpu_instance, cut.profile + 100, cut.placement};
      return kSuccess;
    }
    return kNotFound;
  });
}
BERTH_FAKE Return nvmlDeviceGetGpuInstanceProfileInfo(Device device, unsigned int number,
                                                      GpuInstanceProfile* out) {
  *out = {};
  out->id = number + 100;
  if (const Kind* kind = kind_of(number + 100)) {
    out->slices = kind->slices;
    out->instances = kind->most;
    out->multiprocessors = 16 * kind->slices;
    out->memory_mib = kind->memory_mib;
  }
  return with_gpu(device, [](FakeGpu&, FakeMig*) { return kSuccess; });
}
BERTH_FAKE Return nvmlDeviceSetMigMode(Device device, unsigned int mode, Return* activation) {
  *activation = kSuccess;
  return with_gpu(device, [&](FakeGpu& gpu, FakeMig*) {
    if (!gpu.cuts.empty() || !gpu.mig.empty() || !gpu.busy.empty()) return kInUse;
    if (gpu.mode_needs_reset) {
      gpu.mode_pending = static_cast<int>(mode);
    } else {
      gpu.mig_enabled = mode == 1;
    }
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceGetGpuInstancePossiblePlacements_v2(Device device, unsigned int profile,
                                                                Placement* out,
                                                                unsigned int* count) {
  return with_gpu(device, [&](FakeGpu&, FakeMig*) {
    const Kind* kind = kind_of(profile);
    if (kind == nullptr) return kNotSupported;
    const unsigned int room = *count;
    *count = static_cast<unsigned int>(kind->starts.size());
    if (out == nullptr) return kSuccess;
    if (room < *count) return kInsufficientSize;
    for (const unsigned int start : kind->starts) *out++ = {start, kind->slots};
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlDeviceCreateGpuInstanceWithPlacement(Device device, unsigned int profile,
                                                           const Placement* place,
                                                           GpuInstance* out) {
  return with_gpu(device, [&](FakeGpu& gpu, FakeMig*) {
    const Kind* kind = kind_of(profile);
    if (kind == nullptr || !gpu.mig_enabled || place->size != kind->slots) return kInvalidArgument;
    for (const FakeCut& cut : all_cuts(gpu)) {
      if (place->start < cut.placement.start + cut.placement.size &&
          cut.placement.start < place->start + place->size) {
        return kInsufficientSize;
      }
    }
    const unsigned int id = gpu.next_instance++;
    gpu.cuts.push_back({id, kind->number, *place});
    *out = instance_handle(device, id);
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlGpuInstanceDestroy(GpuInstance instance) {
  return with_instance(instance, [](FakeGpu& gpu, unsigned id) {
    if (gpu.readers > 0) {
      --gpu.readers;
      return kInUse;
    }
    for (const FakeMig& mig : gpu.mig) {
      if (mig.gpu_instance == id) return kInUse;
    }
    const auto gone =
        std::erase_if(gpu.cuts, [&](const FakeCut& cut) { return cut.gpu_instance == id; });
    return gone == 1 ? kSuccess : kNotFound;
  });
}
BERTH_FAKE Return nvmlDeviceGetGpuInstances(Device device, unsigned int profile, GpuInstance* out,
                                            unsigned int* count) {
  return with_gpu(device, [&](FakeGpu& gpu, FakeMig*) {
    if (!gpu.mig_enabled) return kNotSupported;
    *count = 0;
    for (const FakeCut& cut : all_cuts(gpu)) {
      if (cut.profile + 100 != profile) continue;
      out[(*count)++] = instance_handle(device, cut.gpu_instance);
    }
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlGpuInstanceGetComputeInstanceProfileInfo(GpuInstance instance,
                                                               unsigned int number, unsigned int,
                                                               ComputeInstanceProfile* out) {
  return with_instance(instance, [&](FakeGpu&, unsigned) {
    constexpr unsigned int kSlices[] = {1, 2, 3, 4, 7};
    if (number >= std::size(kSlices)) return kNotSupported;
    *out = {};
    out->id = number + 50;
    out->slices = kSlices[number];
    out->instances = 1;
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlGpuInstanceCreateComputeInstance(GpuInstance instance, unsigned int profile,
                                                       ComputeInstance* out) {
  return with_instance(instance, [&](FakeGpu& gpu, unsigned id) {
    const auto cut = std::find_if(gpu.cuts.begin(), gpu.cuts.end(),
                                  [&](const FakeCut& one) { return one.gpu_instance == id; });
    if (cut == gpu.cuts.end()) return kInsufficientSize;
    const Kind* kind = kind_of(cut->profile + 100);
    constexpr unsigned int kSlices[] = {1, 2, 3, 4, 7};
    if (profile < 50 || kSlices[profile - 50] != kind->slices) return kInvalidArgument;
    FakeMig mig;
    mig.uuid = "MIG-" + gpu.uuid + "/" + std::to_string(id);
    mig.gpu_instance = id;
    mig.gpu_slices = mig.compute_slices = kind->slices;
    mig.memory_mib = kind->memory_mib;
    mig.multiprocessors = 16 * kind->slices;
    mig.profile = cut->profile;
    mig.placement = cut->placement;
    gpu.mig.push_back(std::move(mig));
    gpu.cuts.erase(cut);
    *out = handle_of<ComputeInstance>(reinterpret_cast<std::uintptr_t>(instance) |
                                      std::uintptr_t{1} << kComputeShift);
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlComputeInstanceDestroy(ComputeInstance instance) {
  const auto compute =
      static_cast<unsigned int>(reinterpret_cast<std::uintptr_t>(instance) >> kComputeShift) - 1;
  return with_instance(instance, [&](FakeGpu& gpu, unsigned id) {
    for (auto mig = gpu.mig.begin(); mig != gpu.mig.end(); ++mig) {
      if (mig->gpu_instance != id || mig->compute_instance != compute) continue;
      if (gpu.busy.contains(mig->uuid)) return kInUse;
      const FakeCut cut{id, mig->profile, mig->placement};
      gpu.mig.erase(mig);
      const bool last = std::none_of(gpu.mig.begin(), gpu.mig.end(),
                                     [&](const FakeMig& one) { return one.gpu_instance == id; });
      if (last) gpu.cuts.push_back(cut);
      return kSuccess;
    }
    return kNotFound;
  });
}
BERTH_FAKE Return nvmlGpuInstanceGetComputeInstances(GpuInstance instance, unsigned int profile,
                                                     ComputeInstance* out, unsigned int* count) {
  return with_instance(instance, [&](FakeGpu& gpu, unsigned id) {
    *count = 0;
    constexpr unsigned int kSlices[] = {1, 2, 3, 4, 7};
    for (const FakeMig& mig : gpu.mig) {
      if (mig.gpu_instance != id || kSlices[profile - 50] != mig.compute_slices) continue;
      out[(*count)++] =
          handle_of<ComputeInstance>(reinterpret_cast<std::uintptr_t>(instance) |
                                     std::uintptr_t{mig.compute_instance + 1} << kComputeShift);
    }
    return kSuccess;
  });
}
BERTH_FAKE Return nvmlComputeInstanceGetInfo_v2(ComputeInstance instance,
                                                ComputeInstanceInfo* out) {
  const auto compute =
      static_cast<unsigned int>(reinterpret_cast<std::uintptr_t>(instance) >> kComputeShift) - 1;
  return with_instance(instance, [&](FakeGpu&, unsigned) {
    *out = {};
    out->id = compute;
    return kSuccess;
  });
}

}  // extern "C"
#endif
