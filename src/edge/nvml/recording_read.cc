#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "edge/nvml/recording.h"
#include "edge/nvml/recording_fields.h"
#include "node/discover/inventory_check.h"
#include "text/decode.h"
#include "text/json.h"

namespace berth::nvml {

namespace {

using model::GpuCondition;
using model::GpuDevice;
using model::GpuEvent;
using model::GpuInventory;
using model::GpuProcess;
using model::GpuReading;
using model::HostFacts;
using model::MigEngines;
using model::MigInstance;
using model::NicDevice;
using model::PciDevice;
using model::RecoveryAction;
using text::Decoder;
using text::Value;

constexpr std::size_t kMaxBytes = 64 << 20;
constexpr std::size_t kMaxValues = 4'000'000;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxMs = 1'000LL * 86'400 * 365;

constexpr auto read_small = text::int_between<0, 1'000'000>;
constexpr auto read_position = text::int_between<-1, 1'000>;
constexpr auto read_mib = text::int_between<0, 1'000'000'000>;
constexpr auto read_id16 = text::int_between<0, 0xffff>;

void read_at(const Value& v, std::int64_t& out, Decoder& d) {
  std::int64_t ms = 0;
  if (text::decode_int(v, 0, kMaxMs, ms, d)) out = ms * 1'000'000;
}

// Arrays of things that have a reader of their own.
template <class T, void (*Read)(const Value&, T&, Decoder&)>
void read_list(const Value& v, std::vector<T>& out, Decoder& d) {
  if (!v.is_array()) return d.mismatch(v, "an array");
  for (std::size_t i = 0; const Value& item : v.items()) {
    Decoder::Step step(d, i++);
    Read(item, out.emplace_back(), d);
  }
}

template <class T, const auto& Table>
void read_table(const Value& v, T& out, Decoder& d) {
  decode_object(v, Table, out, d);
}

constexpr text::Field<MigEngines> kEngineFields[] = {
    text::field<&MigEngines::copy, read_small>("copy"),
    text::field<&MigEngines::decoder, read_small>("decoder"),
    text::field<&MigEngines::encoder, read_small>("encoder"),
    text::field<&MigEngines::jpeg, read_small>("jpeg"),
    text::field<&MigEngines::ofa, read_small>("ofa"),
};
constexpr text::Field<MigInstance> kMigFields[] = {
    text::required(text::field<&MigInstance::uuid>("uuid")),
    text::required(text::field<&MigInstance::profile>("profile")),
    text::required(text::field<&MigInstance::gpu_instance, read_small>("gpuInstance")),
    text::required(text::field<&MigInstance::compute_instance, read_small>("computeInstance")),
    text::field<&MigInstance::start, read_position>("start"),
    text::field<&MigInstance::slots, read_small>("slots"),
    text::field<&MigInstance::memory_mib, read_mib>("memoryMiB"),
    text::field<&MigInstance::multiprocessors, read_small>("multiprocessors"),
    text::field<&MigInstance::gpu_slices, read_small>("gpuSlices"),
    text::field<&MigInstance::compute_slices, read_small>("computeSlices"),
    text::field<&MigInstance::engines, read_table<MigEngines, kEngineFields>>("engines"),
};
constexpr auto kReadMigList = read_list<MigInstance, read_table<MigInstance, kMigFields>>;

constexpr text::Field<GpuDevice> kDeviceFields[] = {
    text::required(text::field<&GpuDevice::index, read_small>("index")),
    text::required(text::field<&GpuDevice::minor, read_small>("minor")),
    text::required(text::field<&GpuDevice::uuid>("uuid")),
    text::required(text::field<&GpuDevice::name>("name")),
    text::field<&GpuDevice::pci_bus_id>("pciBusId"),
    text::field<&GpuDevice::pci_device>("pciDevice"),
    text::field<&GpuDevice::memory_mib, read_mib>("memoryMiB"),
    text::field<&GpuDevice::compute_major, read_small>("computeMajor"),
    text::field<&GpuDevice::compute_minor, read_small>("computeMinor"),
    text::field<&GpuDevice::numa, read_position>("numa"),
    text::field<&GpuDevice::pcie_switch, read_position>("pcieSwitch"),
    text::field<&GpuDevice::nvlinks>("nvlinks"),
    text::field<&GpuDevice::fabric_cluster>("fabricCluster"),
    text::field<&GpuDevice::fabric_clique>("fabricClique"),
    text::field<&GpuDevice::mig_capable>("migCapable"),
    text::field<&GpuDevice::mig_enabled>("migEnabled"),
    text::field<&GpuDevice::mig, kReadMigList>("mig"),
};
constexpr auto kReadDevices = read_list<GpuDevice, read_table<GpuDevice, kDeviceFields>>;

constexpr text::Field<GpuInventory> kInventoryFields[] = {
    text::required(text::field<&GpuInventory::driver_version>("driverVersion")),
    text::field<&GpuInventory::cuda_major, read_small>("cudaMajor"),
    text::field<&GpuInventory::cuda_minor, read_small>("cudaMinor"),
    text::required(text::field<&GpuInventory::gpus, kReadDevices>("gpus")),
};

constexpr text::Field<PciDevice> kPciFields[] = {
    text::required(text::field<&PciDevice::bus_id>("busId")),
    text::field<&PciDevice::class_code>("class"),
    text::field<&PciDevice::vendor, read_id16>("vendor"),
    text::field<&PciDevice::device, read_id16>("device"),
    text::field<&PciDevice::subsystem_vendor, read_id16>("subsystemVendor"),
    text::field<&PciDevice::subsystem_device, read_id16>("subsystemDevice"),
    text::field<&PciDevice::numa, read_position>("numa"),
    text::field<&PciDevice::sriov>("sriov"),
};
constexpr text::Field<NicDevice> kNicFields[] = {
    text::required(text::field<&NicDevice::name>("name")),
    text::field<&NicDevice::pci_bus_id>("pciBusId"),
    text::field<&NicDevice::link_layer>("linkLayer"),
    text::field<&NicDevice::numa, read_position>("numa"),
    text::field<&NicDevice::pcie_switch, read_position>("pcieSwitch"),
};
constexpr auto kReadPci = read_list<PciDevice, read_table<PciDevice, kPciFields>>;
constexpr auto kReadNics = read_list<NicDevice, read_table<NicDevice, kNicFields>>;
constexpr text::Field<HostFacts> kHostFields[] = {
    text::field<&HostFacts::machine>("machine"),      text::field<&HostFacts::kernel>("kernel"),
    text::field<&HostFacts::os_release>("osRelease"), text::field<&HostFacts::pci, kReadPci>("pci"),
    text::field<&HostFacts::nics, kReadNics>("nics"),
};

void read_real(const Value& v, std::optional<double>& out, Decoder& d) {
  if (!v.is_number() || !std::isfinite(v.as_double())) return d.mismatch(v, "a finite number");
  out = v.as_double();
}
void read_count(const Value& v, std::optional<std::uint64_t>& out, Decoder& d) {
  std::int64_t wide = 0;
  if (text::decode_int(v, 0, kMost, wide, d)) out = static_cast<std::uint64_t>(wide);
}

void read_counters(const Value& v, Counters& out, Decoder& d) {
  if (!v.is_object()) return d.mismatch(v, "an object");
  for (const text::Member& member : v.members()) {
    Decoder::Step step(d, member.key);
    const auto same = [&](const auto& field) { return field.name == member.key; };
    const auto* real = std::find_if(std::begin(kRealFields), std::end(kRealFields), same);
    const auto* count = std::find_if(std::begin(kCountFields), std::end(kCountFields), same);
    if (real != std::end(kRealFields)) {
      read_real(member.value, out.*real->member, d);
    } else if (count != std::end(kCountFields)) {
      read_count(member.value, out.*count->member, d);
    } else {
      d.error(member.value, "an unknown counter", "a counter of GPUs");
    }
  }
}

constexpr std::pair<std::string_view, RecoveryAction> kRecoveryWords[] = {
    {"none", RecoveryAction::kNone},
    {"reset-gpu", RecoveryAction::kGpuReset},
    {"reboot-node", RecoveryAction::kNodeReboot},
    {"drain-peers", RecoveryAction::kDrainP2p},
    {"drain-and-reset", RecoveryAction::kDrainAndReset},
    {"recover-imex-domain", RecoveryAction::kRecoverImex},
    {"unknown", RecoveryAction::kUnknown},
};
constexpr text::Field<GpuCondition> kConditionFields[] = {
    text::field<&GpuCondition::recovery, text::one_of<kRecoveryWords>>("recovery"),
    text::field<&GpuCondition::remap_pending>("remapPending"),
    text::field<&GpuCondition::remap_failed>("remapFailed"),
    text::field<&GpuCondition::nvlinks_up, read_small>("nvlinksUp"),
    text::field<&GpuCondition::nvlinks_down, read_small>("nvlinksDown"),
    text::field<&GpuCondition::fabric_trouble>("fabricTrouble"),
    text::field<&GpuCondition::thermal_slowdown>("thermalSlowdown"),
};

using MigCounters = std::pair<std::string, Counters>;
constexpr text::Field<MigCounters> kMigCounterFields[] = {
    text::required(text::field<&MigCounters::first>("uuid")),
    text::field<&MigCounters::second, read_counters>("counters"),
};
constexpr text::Field<GpuProcess> kProcessFields[] = {
    text::required(text::field<&GpuProcess::pid>("pid")),
    text::field<&GpuProcess::memory_mib, read_mib>("memoryMiB"),
    text::field<&GpuProcess::utilization, read_real>("utilization"),
    text::field<&GpuProcess::mig_uuid>("migUuid"),
};
constexpr auto kReadMigCounters =
    read_list<MigCounters, read_table<MigCounters, kMigCounterFields>>;
constexpr auto kReadProcesses = read_list<GpuProcess, read_table<GpuProcess, kProcessFields>>;
constexpr text::Field<GpuReading> kReadingFields[] = {
    text::required(text::field<&GpuReading::uuid>("uuid")),
    text::field<&GpuReading::answer, text::one_of<kAnswerWords>>("answer"),
    text::field<&GpuReading::error>("error"),
    text::field<&GpuReading::condition, read_table<GpuCondition, kConditionFields>>("condition"),
    text::field<&GpuReading::counters, read_counters>("counters"),
    text::field<&GpuReading::mig, kReadMigCounters>("mig"),
    text::field<&GpuReading::processes, kReadProcesses>("processes"),
};
constexpr auto kReadReadings = read_list<GpuReading, read_table<GpuReading, kReadingFields>>;
constexpr text::Field<Recording::Sample> kSampleFields[] = {
    text::required(text::field<&Recording::Sample::at_ns, read_at>("atMs")),
    text::required(text::field<&Recording::Sample::gpus, kReadReadings>("gpus")),
};

using Kind = GpuEvent::Kind;
constexpr std::pair<std::string_view, Kind> kKindWords[] = {
    {"xid", Kind::kXid},
    {"recovery-action", Kind::kRecoveryAction},
    {"unavailable", Kind::kUnavailable},
    {"ecc-double", Kind::kEccDouble},
    {"ecc-storm", Kind::kEccStorm},
    {"remapped", Kind::kRemapped},
    {"remap-failed", Kind::kRemapFailed},
    {"poison", Kind::kPoison},
    {"fatal-poison", Kind::kFatalPoison},
    {"mig-changed", Kind::kMigChanged},
    {"inventory", Kind::kInventory},
};
template <auto Member, auto Reader = text::internal::DefaultReader{}>
void read_event_member(const Value& v, Recording::Event& out, Decoder& d) {
  Reader(v, out.event.*Member, d);
}
using E = Recording::Event;
constexpr text::Field<E> kEventFields[] = {
    text::required(text::field<&E::at_ns, read_at>("atMs")),
    text::required(
        text::custom<E>("kind", read_event_member<&GpuEvent::kind, text::one_of<kKindWords>>)),
    text::custom<E>("uuid", read_event_member<&GpuEvent::uuid>),
    text::custom<E>("pciBusId", read_event_member<&GpuEvent::pci_bus_id>),
    text::custom<E>("code", read_event_member<&GpuEvent::code, read_small>),
    text::custom<E>("gpuInstance", read_event_member<&GpuEvent::gpu_instance, read_position>),
    text::custom<E>("computeInstance",
                    read_event_member<&GpuEvent::compute_instance, read_position>),
    text::custom<E>("pid", read_event_member<&GpuEvent::pid>),
    text::custom<E>("detail", read_event_member<&GpuEvent::detail>),
    text::custom<E>("fromKernelLog", read_event_member<&GpuEvent::from_kernel_log>),
};

constexpr auto kReadSamples =
    read_list<Recording::Sample, read_table<Recording::Sample, kSampleFields>>;
constexpr auto kReadEvents = read_list<E, read_table<E, kEventFields>>;
void read_version(const Value& v, Recording&, Decoder& d) {
  std::int64_t version = 0;
  text::decode_int(v, 1, 1, version, d);
}
constexpr text::Field<Recording> kRecordingFields[] = {
    text::required(text::custom<Recording>("version", read_version)),
    text::field<&Recording::started_ns, text::read_time_ns>("started"),
    text::field<&Recording::host, read_table<HostFacts, kHostFields>>("host"),
    text::required(text::field<&Recording::inventory, read_table<GpuInventory, kInventoryFields>>(
        "inventory")),
    text::field<&Recording::samples, kReadSamples>("readings"),
    text::field<&Recording::events, kReadEvents>("events"),
};

// Times ascend; a reading names every GPU of the inventory, in its order.
Status check_times_and_gpus(const Recording& recording) {
  for (std::size_t i = 0; i < recording.samples.size(); ++i) {
    const Recording::Sample& sample = recording.samples[i];
    const std::string at = "readings[" + std::to_string(i) + "]";
    if (i > 0 && sample.at_ns < recording.samples[i - 1].at_ns) {
      return invalid(at + ".atMs: earlier than the one before, want them by time");
    }
    if (sample.gpus.size() != recording.inventory.gpus.size()) {
      return invalid(at + ".gpus: found " + std::to_string(sample.gpus.size()) + " GPUs, want " +
                     std::to_string(recording.inventory.gpus.size()) + " as in the inventory");
    }
    for (std::size_t g = 0; g < sample.gpus.size(); ++g) {
      if (sample.gpus[g].uuid != recording.inventory.gpus[g].uuid) {
        return invalid(at + ".gpus[" + std::to_string(g) +
                       "].uuid: not that of the inventory's GPU at this place");
      }
    }
  }
  for (std::size_t i = 1; i < recording.events.size(); ++i) {
    if (recording.events[i].at_ns < recording.events[i - 1].at_ns) {
      return invalid("events[" + std::to_string(i) +
                     "].atMs: earlier than the one before, want them by time");
    }
  }
  return {};
}

}  // namespace

Result<Recording> read_recording(std::string_view text) {
  text::JsonOptions options;
  options.limits = {.max_depth = 20, .max_nodes = kMaxValues, .max_bytes = kMaxBytes};
  BERTH_TRY(text::Document document, text::parse_json(text, options));
  Decoder d;
  Recording recording;
  decode_object(document.root(), kRecordingFields, recording, d);
  if (!d.ok()) return d.to_error();
  if (d.warnings() > 0) return invalid(d.issues().front().message());
  if (Status whole = discover::check_inventory(recording.inventory); !whole.ok()) {
    return std::move(whole).error().context("inventory");
  }
  BERTH_CHECK(check_times_and_gpus(recording));
  return recording;
}

}  // namespace berth::nvml
