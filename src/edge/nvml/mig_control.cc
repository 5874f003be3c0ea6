#include "edge/nvml/mig_control.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/crash_point.h"
#include "base/mutex.h"
#include "edge/nvml/gpu_probe.h"
#include "kinds/readers.h"
#include "node/partition/mig_profile.h"

namespace berth::nvml {

namespace {

// Bounds for a confused driver.
constexpr unsigned int kMostMigGpus = 64, kMostPlaces = 64, kMostInstances = 64;
constexpr unsigned int kSharedEngines = 0;

std::string text_from(const Api& api, Device device,
                      Return (*Api::*function)(Device, char*, unsigned int)) {
  std::array<char, 96> text{};
  if (call(api.*function, device, text.data(), static_cast<unsigned int>(text.size())) !=
      kSuccess) {
    return "";
  }
  return {text.begin(), std::find(text.begin(), text.end(), '\0')};
}

Error driver_error(std::string_view what, Return code) {
  const Code kind = code == kInUse || code == kInsufficientSize ? Code::kConflict
                    : code == kInvalidArgument                  ? Code::kInvalid
                                                                : Code::kUnavailable;
  return {kind, failure(what, code)};
}

// Readers of counters come and go: a few seconds of them are waited for.
template <class Try>
Return while_in_use(std::int64_t patience_ns, Try attempt) {
  constexpr std::int64_t kPause = 50'000'000;
  Mutex mutex;
  CondVar nobody;
  MutexLock lock(mutex);
  Return code = attempt();
  for (; code == kInUse && patience_ns > 0; patience_ns -= kPause) {
    nobody.wait_for(mutex, kPause);
    code = attempt();
  }
  return code;
}

}  // namespace

Result<MigControl> MigControl::open(const std::string& library, const std::string& driver_root,
                                    std::int64_t patience_ns) {
  BERTH_TRY(std::shared_ptr<const Api> api, load_nvml(library, driver_root));
  const Return code = call(api->init);
  if (code != kSuccess) return Error(Code::kUnavailable, failure("nvmlInit", code));
  return MigControl(std::move(api), patience_ns);
}

Result<std::vector<Device>> MigControl::devices() const {
  unsigned int count = 0;
  const Return code = call(api_->device_count, &count);
  if (code != kSuccess) return driver_error("nvmlDeviceGetCount", code);
  std::vector<Device> out;
  for (unsigned int i = 0; i < std::min(count, kMostMigGpus); ++i) {
    Device device = nullptr;
    // One that does not answer keeps its place in the numbering.
    out.push_back(call(api_->device_by_index, i, &device) == kSuccess ? device : nullptr);
  }
  return out;
}

std::vector<MigControl::Kind> MigControl::kinds_of(Device device) const {
  std::vector<Kind> out;
  Memory memory{};
  if (call(api_->memory, device, &memory) != kSuccess) return out;
  for (unsigned int number = 0; number < kInstanceProfiles; ++number) {
    GpuInstanceProfile info{};
    if (call(api_->gpu_instance_profile, device, number, &info) != kSuccess || info.slices == 0) {
      continue;
    }
    std::array<Placement, kMostPlaces> places{};
    auto count = static_cast<unsigned int>(places.size());
    if (call(api_->possible_placements, device, info.id, places.data(), &count) != kSuccess ||
        count == 0) {
      continue;
    }
    Kind kind;
    kind.id = info.id;
    partition::MigProfile& profile = kind.profile;
    profile.slices = static_cast<int>(info.slices);
    profile.slots = static_cast<int>(places.front().size);
    profile.most = static_cast<int>(info.instances);
    profile.memory_mib = static_cast<std::int64_t>(info.memory_mib);
    profile.multiprocessors = static_cast<int>(info.multiprocessors);
    for (unsigned int i = 0; i < std::min(count, kMostPlaces); ++i) {
      profile.starts.push_back(static_cast<int>(places.at(i).start));
    }
    std::sort(profile.starts.begin(), profile.starts.end());
    profile.name =
        partition::mig_profile_name(profile.slices, profile.slices, profile.memory_mib,
                                    static_cast<std::int64_t>(memory.total), mig_attribute(number));
    out.push_back(std::move(kind));
  }
  return out;
}

// Listing them costs the driver 10 ms for each: once for all.
std::vector<MigControl::Known> MigControl::known_of(Device device) const {
  std::vector<Known> out;
  unsigned int most = 0;
  if (call(api_->mig_count, device, &most) != kSuccess) return out;
  for (unsigned int i = 0; i < std::min(most, kMostInstances); ++i) {
    Known one;
    if (call(api_->mig_by_index, device, i, &one.device) != kSuccess ||
        call(api_->gpu_instance_id, one.device, &one.gpu_instance) != kSuccess ||
        call(api_->compute_instance_id, one.device, &one.compute_instance) != kSuccess) {
      continue;
    }
    one.uuid = text_from(*api_, one.device, &Api::uuid);
    out.push_back(std::move(one));
  }
  return out;
}

void MigControl::add_compute(const std::vector<Known>& known, Cut& cut) const {
  for (unsigned int number = 0; number < kComputeProfiles; ++number) {
    ComputeInstanceProfile info{};
    if (call(api_->compute_profile, cut.handle, number, kSharedEngines, &info) != kSuccess) {
      continue;
    }
    std::array<ComputeInstance, kMostInstances> found{};
    auto count = static_cast<unsigned int>(found.size());
    if (call(api_->compute_instances, cut.handle, info.id, found.data(), &count) != kSuccess) {
      continue;
    }
    for (unsigned int i = 0; i < std::min(count, kMostInstances); ++i) {
      ComputeInstanceInfo about{};
      if (call(api_->compute_instance_info, found.at(i), &about) != kSuccess) continue;
      std::string uuid;
      for (const Known& one : known) {
        const bool same =
            static_cast<int>(one.gpu_instance) == cut.cut.id && one.compute_instance == about.id;
        if (same) uuid = one.uuid;
      }
      cut.cut.compute.push_back(
          {static_cast<int>(about.id), static_cast<int>(info.slices), std::move(uuid)});
      cut.compute.push_back(found.at(i));
    }
  }
}

Result<std::vector<MigControl::Cut>> MigControl::cuts_of(Device device,
                                                         const std::vector<Kind>& kinds) const {
  std::vector<Cut> out;
  const std::vector<Known> known = known_of(device);
  for (const Kind& kind : kinds) {
    std::array<GpuInstance, kMostInstances> found{};
    auto count = static_cast<unsigned int>(found.size());
    const Return code = call(api_->gpu_instances, device, kind.id, found.data(), &count);
    if (code == kNotSupported) continue;
    if (code != kSuccess) return driver_error("nvmlDeviceGetGpuInstances", code);
    for (unsigned int i = 0; i < std::min(count, kMostInstances); ++i) {
      GpuInstanceInfo info{};
      if (call(api_->gpu_instance_info, found.at(i), &info) != kSuccess) continue;
      Cut cut;
      cut.handle = found.at(i);
      cut.cut.id = static_cast<int>(info.id);
      cut.cut.profile = kind.profile.name;
      cut.cut.start = static_cast<int>(info.placement.start);
      cut.cut.slots = static_cast<int>(info.placement.size);
      add_compute(known, cut);
      out.push_back(std::move(cut));
    }
  }
  std::sort(out.begin(), out.end(),
            [](const Cut& a, const Cut& b) { return a.cut.start < b.cut.start; });
  return out;
}

partition::MigGpu MigControl::describe_gpu(Device device, int index) const {
  partition::MigGpu gpu;
  gpu.index = index;
  gpu.uuid = text_from(*api_, device, &Api::uuid);
  gpu.name = text_from(*api_, device, &Api::name);
  PciInfo pci{};
  if (call(api_->pci_info, device, &pci) == kSuccess) gpu.pci_device = pci.pci_device_id;
  unsigned int current = 0, pending = 0;
  gpu.capable = call(api_->mig_mode, device, &current, &pending) == kSuccess;
  gpu.enabled = gpu.capable && current == 1;
  gpu.mode_pending = gpu.capable && current != pending;
  if (!gpu.capable) return gpu;
  for (Kind& kind : kinds_of(device)) {
    gpu.geometry.slices = std::max(gpu.geometry.slices, kind.profile.slices);
    gpu.geometry.slots =
        std::max(gpu.geometry.slots, kind.profile.starts.back() + kind.profile.slots);
    gpu.geometry.profiles.push_back(std::move(kind.profile));
  }
  return gpu;
}

Result<std::vector<partition::MigGpu>> MigControl::look() {
  BERTH_TRY(const std::vector<Device> all, devices());
  std::vector<partition::MigGpu> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] == nullptr) continue;
    partition::MigGpu gpu = describe_gpu(all[i], static_cast<int>(i));
    if (gpu.enabled) {
      BERTH_TRY(const std::vector<Cut> cuts, cuts_of(all[i], kinds_of(all[i])));
      for (const Cut& cut : cuts) gpu.cuts.push_back(cut.cut);
    }
    out.push_back(std::move(gpu));
  }
  return out;
}

Status MigControl::carry_out(const partition::MigStep& step) {
  using Step = partition::MigStep::Kind;
  BERTH_TRY(const std::vector<Device> all, devices());
  const auto device = std::find_if(all.begin(), all.end(), [&](Device one) {
    return one != nullptr && text_from(*api_, one, &Api::uuid) == step.gpu;
  });
  if (device == all.end()) return invalid("there is no GPU " + kinds::quoted(step.gpu));
  if (step.kind == Step::kModeOn || step.kind == Step::kModeOff) {
    return set_mode(*device, step.kind == Step::kModeOn);
  }
  if (step.kind == Step::kCreate) return create(*device, step);
  BERTH_TRY(const std::vector<Cut> cuts, cuts_of(*device, kinds_of(*device)));
  const auto cut = std::find_if(cuts.begin(), cuts.end(),
                                [&](const Cut& one) { return one.cut.id == step.instance; });
  if (cut == cuts.end() || cut->cut.profile != step.profile || cut->cut.start != step.start) {
    return Error(Code::kConflict, "GPU instance " + std::to_string(step.instance) + " is not the " +
                                      step.profile + " at " + std::to_string(step.start) +
                                      " any more");
  }
  std::vector<std::string> have;
  for (const partition::MigCut::Compute& one : cut->cut.compute) have.push_back(one.uuid);
  std::sort(have.begin(), have.end());
  if (have != step.compute) {
    return Error(Code::kConflict, "the GPU instance has other compute instances than were named");
  }
  if (step.kind == Step::kDestroy) return destroy(*device, *cut);
  for (const Kind& kind : kinds_of(*device)) {
    if (kind.profile.name == step.profile) return fill(cut->handle, kind.profile.slices);
  }
  return invalid("no profile " + kinds::quoted(step.profile));
}

Status MigControl::set_mode(Device device, bool on) const {
  Return activation = kSuccess;
  const Return code = while_in_use(
      patience_ns_, [&] { return call(api_->set_mig_mode, device, on ? 1U : 0U, &activation); });
  if (code != kSuccess) return driver_error("nvmlDeviceSetMigMode", code);
  unsigned int current = 0, pending = 0;
  if (call(api_->mig_mode, device, &current, &pending) == kSuccess && current != (on ? 1U : 0U)) {
    return Error(Code::kUnavailable,
                 activation == kSuccess
                     ? "the mode is set and takes effect after a reset of the GPU"
                     : failure("the mode is set and takes effect after a reset", activation));
  }
  return {};
}

Status MigControl::create(Device device, const partition::MigStep& step) const {
  for (const Kind& kind : kinds_of(device)) {
    if (kind.profile.name != step.profile) continue;
    const std::vector<int>& starts = kind.profile.starts;
    if (std::find(starts.begin(), starts.end(), step.start) == starts.end()) {
      return invalid(step.profile + " cannot begin at " + std::to_string(step.start));
    }
    const Placement place{static_cast<unsigned int>(step.start),
                          static_cast<unsigned int>(kind.profile.slots)};
    GpuInstance made = nullptr;
    const Return code = call(api_->create_gpu_instance, device, kind.id, &place, &made);
    if (code != kSuccess) return driver_error("nvmlDeviceCreateGpuInstanceWithPlacement", code);
    BERTH_CRASH_POINT("mig-helper-between");
    return fill(made, kind.profile.slices);
  }
  return invalid("no profile " + kinds::quoted(step.profile));
}

Status MigControl::fill(GpuInstance instance, int slices) const {
  for (unsigned int number = 0; number < kComputeProfiles; ++number) {
    ComputeInstanceProfile info{};
    if (call(api_->compute_profile, instance, number, kSharedEngines, &info) != kSuccess ||
        static_cast<int>(info.slices) != slices) {
      continue;
    }
    ComputeInstance made = nullptr;
    const Return code = call(api_->create_compute_instance, instance, info.id, &made);
    if (code == kSuccess) return {};
    return driver_error("nvmlGpuInstanceCreateComputeInstance", code);
  }
  return Error(Code::kUnavailable, "the GPU instance tells no compute profile of its size");
}

// The driver refuses an instance in use by itself; where there are several, the first would be
// gone.
Status MigControl::check_idle(Device device, const Cut& cut) const {
  for (const Known& one : known_of(device)) {
    unsigned int count = 0;
    if (static_cast<int>(one.gpu_instance) != cut.cut.id) continue;
    if (call(api_->compute_processes, one.device, &count, nullptr) == kInsufficientSize &&
        count > 0) {
      return Error(Code::kConflict, one.uuid + " is in use by " + std::to_string(count) +
                                        (count == 1 ? " process" : " processes"));
    }
  }
  return {};
}

Status MigControl::destroy(Device device, const Cut& cut) const {
  BERTH_CHECK(check_idle(device, cut));
  for (const ComputeInstance one : cut.compute) {
    const Return code =
        while_in_use(patience_ns_, [&] { return call(api_->destroy_compute_instance, one); });
    if (code != kSuccess) return driver_error("nvmlComputeInstanceDestroy", code);
  }
  BERTH_CRASH_POINT("mig-helper-between");
  const Return code =
      while_in_use(patience_ns_, [&] { return call(api_->destroy_gpu_instance, cut.handle); });
  if (code != kSuccess) return driver_error("nvmlGpuInstanceDestroy", code);
  return {};
}

}  // namespace berth::nvml
