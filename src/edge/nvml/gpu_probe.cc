#include "edge/nvml/gpu_probe.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "edge/nvml/gpm_samples.h"
#include "node/partition/mig_profile.h"

namespace berth::nvml {

namespace {

constexpr unsigned int kMostMig = 64;  // more than any GPU has: a bound for a confused driver

template <std::size_t N>
std::string bounded(const std::array<char, N>& text) {
  return std::string(text.begin(), std::find(text.begin(), text.end(), '\0'));
}

std::string hex(unsigned int value, int digits) {
  std::string out;
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) {
    out += "0123456789abcdef"[value >> shift & 0xf];
  }
  return out;
}

std::string bus_id(const PciInfo& pci) {
  return hex(pci.domain, pci.domain > 0xffff ? 8 : 4) + ":" + hex(pci.bus, 2) + ":" +
         hex(pci.device, 2) + ".0";
}

std::string uuid_text(const unsigned char (&bytes)[16]) {
  std::string out;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += hex(bytes[i], 2);
  }
  return out;
}

bool is_zero(const unsigned char (&bytes)[16]) {
  return std::all_of(std::begin(bytes), std::end(bytes), [](unsigned char b) { return b == 0; });
}

std::string read_uuid(const Api& api, Device device) {
  std::array<char, 96> text{};
  if (call(api.uuid, device, text.data(), static_cast<unsigned int>(text.size())) != kSuccess) {
    return "";
  }
  return bounded(text);
}

}  // namespace

GpuPresence presence_of(const model::GpuDevice& gpu) {
  std::vector<std::string> mig;
  for (const model::MigInstance& instance : gpu.mig) mig.push_back(instance.uuid);
  std::sort(mig.begin(), mig.end());
  return {gpu.uuid, gpu.mig_enabled, std::move(mig)};
}

std::string_view mig_attribute(unsigned int profile_number) {
  if (profile_number == 7 || profile_number == 8) return "+me";
  if (profile_number >= 10 && profile_number <= 12) return "+gfx";
  if (profile_number == 13 || profile_number == 14) return "-me";
  if (profile_number == 15 || profile_number == 16) return "+me.all";
  return "";
}

GpuProbe::GpuProbe(std::shared_ptr<const Api> api, int index)
    : api_(std::move(api)), index_(index), gpm_(std::make_unique<GpmSamples>(api_)) {}

GpuProbe::~GpuProbe() = default;

Status GpuProbe::find_device() {
  if (device_ != nullptr) return {};
  Device found = nullptr;
  const Return code = call(api_->device_by_index, static_cast<unsigned int>(index_), &found);
  if (code != kSuccess) {
    return Error(code == kGpuLost ? Code::kNotFound : Code::kUnavailable,
                 failure("GPU " + std::to_string(index_), code));
  }
  std::string uuid = read_uuid(*api_, found);
  if (uuid.empty()) {
    return Error(Code::kUnavailable, "GPU " + std::to_string(index_) + ": it tells no UUID");
  }
  device_ = found;
  uuid_ = std::move(uuid);
  return {};
}

bool GpuProbe::mig_enabled() const {
  unsigned int current = 0, pending = 0;
  return call(api_->mig_mode, device_, &current, &pending) == kSuccess && current == 1;
}

std::vector<GpuProbe::MigHandle> GpuProbe::mig_handles() const {
  std::vector<MigHandle> out;
  unsigned int most = 0;
  if (!mig_enabled() || call(api_->mig_count, device_, &most) != kSuccess) return out;
  for (unsigned int i = 0; i < std::min(most, kMostMig); ++i) {
    MigHandle handle;
    if (call(api_->mig_by_index, device_, i, &handle.device) != kSuccess) continue;
    handle.uuid = read_uuid(*api_, handle.device);
    if (handle.uuid.empty() ||
        call(api_->gpu_instance_id, handle.device, &handle.gpu_instance) != kSuccess ||
        call(api_->compute_instance_id, handle.device, &handle.compute_instance) != kSuccess) {
      continue;  // it went away meanwhile
    }
    out.push_back(std::move(handle));
  }
  std::sort(out.begin(), out.end(), [](const MigHandle& a, const MigHandle& b) {
    return std::tie(a.gpu_instance, a.compute_instance) <
           std::tie(b.gpu_instance, b.compute_instance);
  });
  return out;
}

// Profiles are asked for by number and instances carry the profile's id.
std::string GpuProbe::profile_attribute(unsigned int profile_id) const {
  for (unsigned int number = 0; number < kInstanceProfiles; ++number) {
    GpuInstanceProfile profile{};
    if (call(api_->gpu_instance_profile, device_, number, &profile) != kSuccess ||
        profile.id != profile_id) {
      continue;
    }
    return std::string(mig_attribute(number));
  }
  return "";
}

// Nothing for an instance that went away since it was listed.
std::optional<model::MigInstance> GpuProbe::mig_facts(const MigHandle& handle,
                                                      std::int64_t gpu_bytes) const {
  model::MigInstance mig;
  mig.uuid = handle.uuid;
  mig.gpu_instance = static_cast<int>(handle.gpu_instance);
  mig.compute_instance = static_cast<int>(handle.compute_instance);
  DeviceAttributes attributes{};
  if (call(api_->attributes, handle.device, &attributes) != kSuccess) return std::nullopt;
  mig.memory_mib = static_cast<std::int64_t>(attributes.memory_mib);
  mig.multiprocessors = static_cast<int>(attributes.multiprocessors);
  mig.gpu_slices = static_cast<int>(attributes.gpu_slices);
  mig.compute_slices = static_cast<int>(attributes.compute_slices);
  mig.engines = {static_cast<int>(attributes.copy_engines), static_cast<int>(attributes.decoders),
                 static_cast<int>(attributes.encoders), static_cast<int>(attributes.jpegs),
                 static_cast<int>(attributes.ofas)};
  std::string attribute;
  GpuInstance instance = nullptr;
  GpuInstanceInfo info{};
  if (call(api_->gpu_instance_by_id, device_, handle.gpu_instance, &instance) == kSuccess &&
      call(api_->gpu_instance_info, instance, &info) == kSuccess) {
    mig.start = static_cast<int>(info.placement.start);
    mig.slots = static_cast<int>(info.placement.size);
    attribute = profile_attribute(info.profile);
  }
  mig.profile = partition::mig_profile_name(mig.compute_slices, mig.gpu_slices, mig.memory_mib,
                                            gpu_bytes, attribute);
  return mig;
}

void GpuProbe::add_links(GpuFacts& facts) const {
  for (unsigned int link = 0; link < kMaxLinks; ++link) {
    unsigned int active = 0;
    if (call(api_->link_state, device_, link, &active) != kSuccess || active == 0) continue;
    unsigned int type = kRemoteGpu;
    if (call(api_->link_remote_type, device_, link, &type) == kSuccess && type == kRemoteSwitch) {
      ++facts.switch_links;
      continue;
    }
    PciInfo far{};
    if (type == kRemoteGpu && call(api_->link_remote_pci, device_, link, &far) == kSuccess) {
      ++facts.peer_links[bus_id(far)];
    }
  }
}

void GpuProbe::add_fabric(model::GpuDevice& gpu) const {
  FabricInfoV2 info{};
  info.version = struct_version<FabricInfoV2>(2);
  if (call(api_->fabric_v, device_, &info) != kSuccess) {
    FabricInfo old{};
    if (call(api_->fabric, device_, &old) != kSuccess) return;
    std::copy(std::begin(old.cluster_uuid), std::end(old.cluster_uuid), info.cluster_uuid);
    info.status = old.status;
    info.clique = old.clique;
    info.state = old.state;
  }
  // A machine of its own has a fabric too, with a cluster of zeros.
  if (info.state != kFabricCompleted || info.status != kSuccess || is_zero(info.cluster_uuid)) {
    return;
  }
  gpu.fabric_cluster = uuid_text(info.cluster_uuid);
  gpu.fabric_clique = static_cast<int>(info.clique);
}

Result<GpuFacts> GpuProbe::facts() {
  BERTH_CHECK(find_device());
  GpuFacts facts;
  model::GpuDevice& gpu = facts.gpu;
  gpu.index = index_;
  gpu.uuid = uuid_;
  PciInfo pci{};
  const Return code = call(api_->pci_info, device_, &pci);
  if (code != kSuccess) {
    return Error(code == kGpuLost ? Code::kNotFound : Code::kUnavailable,
                 failure("GPU " + std::to_string(index_), code));
  }
  gpu.pci_bus_id = bus_id(pci);
  gpu.pci_device = pci.pci_device_id;
  std::array<char, 96> name{};
  if (call(api_->name, device_, name.data(), static_cast<unsigned int>(name.size())) == kSuccess) {
    gpu.name = bounded(name);
  }
  unsigned int minor = 0;
  gpu.minor = call(api_->minor, device_, &minor) == kSuccess ? static_cast<int>(minor) : index_;
  call(api_->compute_capability, device_, &gpu.compute_major, &gpu.compute_minor);
  Memory memory{};
  std::int64_t bytes = 0;
  if (call(api_->memory, device_, &memory) == kSuccess) {
    bytes = static_cast<std::int64_t>(memory.total);
    gpu.memory_mib = bytes >> 20;
  }
  unsigned int current = 0, pending = 0;
  gpu.mig_capable = call(api_->mig_mode, device_, &current, &pending) == kSuccess;
  gpu.mig_enabled = gpu.mig_capable && current == 1;
  if (gpu.mig_enabled) {
    for (const MigHandle& handle : mig_handles()) {
      if (auto mig = mig_facts(handle, bytes)) gpu.mig.push_back(std::move(*mig));
    }
  }
  add_links(facts);
  add_fabric(gpu);
  return facts;
}

Result<GpuPresence> GpuProbe::presence(bool with_instances) {
  BERTH_CHECK(find_device());
  GpuPresence out{uuid_, mig_enabled(), std::nullopt};
  if (out.mig_enabled && !with_instances) return out;
  std::vector<std::string> mig;
  if (out.mig_enabled) {
    for (const MigHandle& handle : mig_handles()) mig.push_back(handle.uuid);
    std::sort(mig.begin(), mig.end());
  }
  out.mig = std::move(mig);
  return out;
}

}  // namespace berth::nvml
