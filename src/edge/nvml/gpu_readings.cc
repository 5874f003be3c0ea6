// GpuProbe's readings: what a GPU measures now.
#include <algorithm>
#include <array>
#include <set>

#include "edge/nvml/gpm_samples.h"
#include "edge/nvml/gpu_probe.h"

namespace berth::nvml {

namespace {

constexpr unsigned int kMostProcesses = 1'024;
constexpr std::uint64_t kMebibyteShift = 20;

// Codes that mean trouble with the device, not a question it does not know.
bool is_trouble(Return code) {
  return code == kUninitialized || code == kDriverNotLoaded || code == kTimeout ||
         code == kGpuLost || code == kResetRequired || code == kUnknownError;
}

void note_trouble(model::GpuReading& reading, std::string_view what, Return code) {
  if (!is_trouble(code) || reading.answer == model::GpuAnswer::kLost) return;
  reading.answer = code == kGpuLost ? model::GpuAnswer::kLost : model::GpuAnswer::kError;
  reading.error = failure(what, code);
}

template <class Into, class From>
void keep(Return code, From value, std::optional<Into>& into) {
  if (code == kSuccess) into = static_cast<Into>(value);
}

std::optional<std::uint64_t> whole_number(const FieldValue& field) {
  if (field.result != kSuccess) return std::nullopt;
  switch (field.type) {
    case ValueType::kUint:
      return field.value.ui;
    case ValueType::kUlong:
    case ValueType::kUlonglong:
      return field.value.ull;
    case ValueType::kLonglong:
      return field.value.sll < 0 ? 0 : static_cast<std::uint64_t>(field.value.sll);
    case ValueType::kInt:
      return field.value.si < 0 ? 0 : static_cast<std::uint64_t>(field.value.si);
    case ValueType::kShort:
      return field.value.us;
    case ValueType::kDouble:
      break;
  }
  return field.value.d > 0 ? static_cast<std::uint64_t>(field.value.d) : 0;
}

model::RecoveryAction recovery_of(std::uint64_t value) {
  constexpr auto kKnown = static_cast<std::uint64_t>(model::RecoveryAction::kUnknown);
  return value < kKnown ? static_cast<model::RecoveryAction>(value)
                        : model::RecoveryAction::kUnknown;
}

Return read_memory(const Api& api, Device device, model::GpuCounters& out) {
  MemoryV2 memory{};
  memory.version = struct_version<MemoryV2>(2);
  Return code = call(api.memory_v2, device, &memory);
  if (code == kSuccess) {
    out.memory_free_mib = memory.free >> kMebibyteShift;
    out.memory_used_mib = memory.used >> kMebibyteShift;
    out.memory_reserved_mib = memory.reserved >> kMebibyteShift;
    return code;
  }
  if (is_trouble(code)) return code;
  Memory old{};
  code = call(api.memory, device, &old);
  if (code == kSuccess) {
    out.memory_free_mib = old.free >> kMebibyteShift;
    out.memory_used_mib = old.used >> kMebibyteShift;
  }
  return code;
}

// The driver says how many there are when the array is too small; processes come meanwhile.
std::vector<ProcessInfo> list_processes(Return (*list)(Device, unsigned int*, ProcessInfo*),
                                        Device device) {
  std::vector<ProcessInfo> out(64);
  while (true) {
    auto count = static_cast<unsigned int>(out.size());
    const Return code = call(list, device, &count, out.data());
    if (code == kInsufficientSize && out.size() < kMostProcesses) {
      out.resize(
          std::min<std::size_t>(kMostProcesses, std::max<std::size_t>(count, out.size()) * 2));
      continue;
    }
    out.resize(code == kSuccess ? std::min<std::size_t>(count, out.size()) : 0);
    return out;
  }
}

}  // namespace

void GpuProbe::read_core(model::GpuReading& reading) const {
  unsigned int temperature = 0;
  const Return code = call(api_->temperature, device_, kTemperatureGpu, &temperature);
  keep(code, temperature, reading.counters.gpu_temperature);
  note_trouble(reading, "temperature", code);
  note_trouble(reading, "memory", read_memory(*api_, device_, reading.counters));
}

void GpuProbe::read_clocks_and_power(model::GpuCounters& counters) const {
  unsigned int value = 0, period = 0;
  Return code = call(api_->clock, device_, kClockSm, &value);
  keep(code, value, counters.sm_clock_mhz);
  code = call(api_->clock, device_, kClockMemory, &value);
  keep(code, value, counters.memory_clock_mhz);
  code = call(api_->power, device_, &value);
  keep(code, value / 1000.0, counters.power_w);
  unsigned long long energy = 0;
  code = call(api_->energy, device_, &energy);
  keep(code, energy, counters.energy_mj);
  Utilization utilization{};
  code = call(api_->utilization, device_, &utilization);
  keep(code, utilization.gpu, counters.gpu_utilization);
  keep(code, utilization.memory, counters.memory_utilization);
  code = call(api_->encoder, device_, &value, &period);
  keep(code, value, counters.encoder_utilization);
  code = call(api_->decoder, device_, &value, &period);
  keep(code, value, counters.decoder_utilization);
  code = call(api_->pcie_replays, device_, &value);
  keep(code, value, counters.pcie_replays);
}

void GpuProbe::read_errors(model::GpuReading& reading) const {
  unsigned int correctable = 0, uncorrectable = 0, pending = 0, failed = 0;
  if (call(api_->remapped_rows, device_, &correctable, &uncorrectable, &pending, &failed) ==
      kSuccess) {
    reading.counters.remapped_correctable = correctable;
    reading.counters.remapped_uncorrectable = uncorrectable;
    reading.condition.remap_pending = pending != 0;
    reading.condition.remap_failed = failed != 0;
  }
  struct Kind {
    int error, counter;
    std::optional<std::uint64_t> model::GpuCounters::* into;
  };
  constexpr Kind kKinds[] = {
      {kEccCorrected, kEccVolatile, &model::GpuCounters::ecc_single_volatile},
      {kEccUncorrected, kEccVolatile, &model::GpuCounters::ecc_double_volatile},
      {kEccCorrected, kEccAggregate, &model::GpuCounters::ecc_single_aggregate},
      {kEccUncorrected, kEccAggregate, &model::GpuCounters::ecc_double_aggregate},
  };
  for (const Kind& kind : kKinds) {
    unsigned long long count = 0;
    const Return code = call(api_->ecc_errors, device_, kind.error, kind.counter, &count);
    keep(code, count, reading.counters.*kind.into);
  }
  unsigned long long reasons = 0;
  if (call(api_->clock_reasons, device_, &reasons) == kSuccess) {
    reading.counters.throttle_reasons = reasons;
    reading.condition.thermal_slowdown = (reasons & kReasonHwThermal) != 0;
  }
}

void GpuProbe::read_fields(model::GpuReading& reading) const {
  std::array<FieldValue, 4> fields{};
  fields[0].field = kFieldMemoryTemperature;
  fields[1].field = kFieldRecoveryAction;
  fields[2].field = kFieldNvlinkDataTx;
  fields[3].field = kFieldNvlinkDataRx;
  fields[2].scope = fields[3].scope = kAllLinks;
  for (FieldValue& field : fields) field.result = kNotSupported;
  if (call(api_->fields, device_, static_cast<int>(fields.size()), fields.data()) != kSuccess) {
    return;
  }
  if (const auto degrees = whole_number(fields[0])) {
    reading.counters.memory_temperature = static_cast<double>(*degrees);
  }
  if (const auto action = whole_number(fields[1])) {
    reading.condition.recovery = recovery_of(*action);
  }
  const auto sent = whole_number(fields[2]), received = whole_number(fields[3]);
  if (sent && received) reading.counters.nvlink_bandwidth = *sent + *received;
}

// A link counts as down only on a GPU that has, or had, one that is up: boards without a bridge
// report links that never come up.
void GpuProbe::read_links(model::GpuCondition& condition) {
  int up = 0, down = 0;
  for (unsigned int link = 0; link < kMaxLinks; ++link) {
    unsigned int active = 0;
    if (call(api_->link_state, device_, link, &active) != kSuccess) continue;
    ++(active != 0 ? up : down);
  }
  links_were_up_ = links_were_up_ || up > 0;
  condition.nvlinks_up = up;
  condition.nvlinks_down = links_were_up_ ? down : 0;
}

void GpuProbe::read_fabric(model::GpuCondition& condition) const {
  FabricInfoV2 info{};
  info.version = struct_version<FabricInfoV2>(2);
  if (call(api_->fabric_v, device_, &info) != kSuccess) {
    FabricInfo old{};
    if (call(api_->fabric, device_, &old) != kSuccess) return;
    info.state = old.state;
    info.status = old.status;
  }
  if (info.state != kFabricCompleted) return;
  // Fields of two bits (1: yes, 2: no, 0: not told): bandwidth is degraded, routes are unhealthy;
  // then four bits with the kind of a wrong configuration (1: none).
  const bool degraded = (info.health_mask & 0x3) == 1;
  const bool unhealthy_routes = (info.health_mask >> 4 & 0x3) == 1;
  const bool misconfigured = (info.health_mask >> 8 & 0xf) > 1;
  condition.fabric_trouble =
      info.status != kSuccess || degraded || unhealthy_routes || misconfigured;
}

void GpuProbe::read_processes(model::GpuReading& reading, const std::vector<MigHandle>& mig) {
  std::map<unsigned int, unsigned int> utilization;  // by pid
  std::array<ProcessUtilization, 256> samples{};
  auto count = static_cast<unsigned int>(samples.size());
  if (call(api_->process_utilization, device_, samples.data(), &count, utilization_seen_) ==
      kSuccess) {
    for (std::size_t i = 0; i < std::min<std::size_t>(count, samples.size()); ++i) {
      utilization[samples[i].pid] = samples[i].sm;
      utilization_seen_ = std::max(utilization_seen_, samples[i].time_stamp);
    }
  }
  std::set<unsigned int> seen;
  for (const auto list : {api_->compute_processes, api_->graphics_processes}) {
    for (const ProcessInfo& found : list_processes(list, device_)) {
      if (!seen.insert(found.pid).second) continue;
      model::GpuProcess process;
      process.pid = static_cast<int>(found.pid);
      if (found.used_gpu_memory != kNoValue) {
        process.memory_mib = found.used_gpu_memory >> kMebibyteShift;
      }
      for (const MigHandle& handle : mig) {
        if (handle.gpu_instance == found.gpu_instance &&
            handle.compute_instance == found.compute_instance) {
          process.mig_uuid = handle.uuid;
        }
      }
      const auto sample = utilization.find(found.pid);
      if (sample != utilization.end()) process.utilization = sample->second;
      reading.processes.push_back(std::move(process));
    }
  }
  std::sort(reading.processes.begin(), reading.processes.end(),
            [](const auto& a, const auto& b) { return a.pid < b.pid; });
}

model::GpuReading GpuProbe::read() {
  model::GpuReading reading;
  reading.uuid = uuid_;
  if (Status found = find_device(); !found.ok()) {
    reading.answer = found.error().code() == Code::kNotFound ? model::GpuAnswer::kLost
                                                             : model::GpuAnswer::kError;
    reading.error = found.error().to_string();
    return reading;
  }
  reading.uuid = uuid_;
  read_core(reading);
  if (reading.answer != model::GpuAnswer::kFine) {
    device_ = nullptr;  // after a reset the handle is another one
    return reading;
  }
  read_clocks_and_power(reading.counters);
  read_errors(reading);
  read_fields(reading);
  read_links(reading.condition);
  read_fabric(reading.condition);
  const std::vector<MigHandle> mig = mig_handles();
  const bool gpm = gpm_->supported(device_);
  // Not both: to go from the whole GPU to an instance takes the driver 0.4 s, and 0.1 s from one
  // instance to the next (measured).
  if (gpm && mig.empty()) gpm_->read(device_, reading.counters);
  std::map<unsigned int, model::GpuCounters> by_instance;  // profiling is of the GPU instance
  for (const MigHandle& handle : mig) {
    const auto [at, fresh] = by_instance.try_emplace(handle.gpu_instance);
    if (fresh && gpm) gpm_->read_mig(device_, handle.gpu_instance, handle.uuid, at->second);
    model::GpuCounters counters = at->second;
    read_memory(*api_, handle.device, counters);
    reading.mig.emplace_back(handle.uuid, counters);
  }
  gpm_->end_round();
  read_processes(reading, mig);
  return reading;
}

}  // namespace berth::nvml
