#include "node/monitor/exporter_fields.h"

#include <algorithm>

#include "node/monitor/exporter.h"

namespace berth::monitor {
namespace {

using model::GpuCounters;
using model::GpuDevice;
using model::GpuInventory;

constexpr ExportField real_of_gpu(std::string_view name, std::string_view old_name,
                                  std::optional<double> GpuCounters::* member) {
  return {.name = name, .old_name = old_name, .whole = true, .real = member};
}
constexpr ExportField real_of_each(std::string_view name, std::string_view old_name,
                                   std::optional<double> GpuCounters::* member) {
  return {.name = name, .old_name = old_name, .real = member};
}
constexpr ExportField count_of_gpu(std::string_view name, std::string_view old_name,
                                   std::optional<std::uint64_t> GpuCounters::* member) {
  return {.name = name, .old_name = old_name, .whole = true, .count = member};
}
constexpr ExportField count_of_each(std::string_view name, std::string_view old_name,
                                    std::optional<std::uint64_t> GpuCounters::* member) {
  return {.name = name, .old_name = old_name, .count = member};
}
constexpr ExportField computed(std::string_view name, std::string_view old_name,
                               ExportNumber (*other)(const ExportDevice&)) {
  return {.name = name, .old_name = old_name, .other = other};
}
constexpr ExportField label_of(std::string_view name,
                               std::string (*label)(const GpuInventory&, const GpuDevice&)) {
  return {.name = name, .label = label};
}

ExportNumber flag(bool value) { return std::uint64_t{value ? 1U : 0U}; }

ExportNumber memory_total(const ExportDevice& d) {
  const std::int64_t mib = d.mig != nullptr ? d.mig->memory_mib : d.gpu->memory_mib;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(mib, 0));
}

const ExportField kExportFields[] = {
    real_of_gpu("DCGM_FI_DEV_SM_CLOCK", "dcgm_sm_clock", &GpuCounters::sm_clock_mhz),
    real_of_gpu("DCGM_FI_DEV_MEM_CLOCK", "dcgm_memory_clock", &GpuCounters::memory_clock_mhz),
    real_of_gpu("DCGM_FI_DEV_MEMORY_TEMP", "dcgm_memory_temp", &GpuCounters::memory_temperature),
    real_of_gpu("DCGM_FI_DEV_GPU_TEMP", "dcgm_gpu_temp", &GpuCounters::gpu_temperature),
    real_of_gpu("DCGM_FI_DEV_POWER_USAGE", "dcgm_power_usage", &GpuCounters::power_w),
    count_of_gpu("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "dcgm_total_energy_consumption",
                 &GpuCounters::energy_mj),
    count_of_gpu("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "dcgm_pcie_replay_counter",
                 &GpuCounters::pcie_replays),
    real_of_each(kUtilizationField, "dcgm_gpu_utilization", &GpuCounters::gpu_utilization),
    real_of_each("DCGM_FI_DEV_MEM_COPY_UTIL", "dcgm_mem_copy_utilization",
                 &GpuCounters::memory_utilization),
    real_of_each("DCGM_FI_DEV_ENC_UTIL", "dcgm_enc_utilization", &GpuCounters::encoder_utilization),
    real_of_each("DCGM_FI_DEV_DEC_UTIL", "dcgm_dec_utilization", &GpuCounters::decoder_utilization),
    computed(kXidField, "dcgm_xid_errors",
             [](const ExportDevice& d) -> ExportNumber {
               return static_cast<std::uint64_t>(std::max(d.last_xid, 0));
             }),
    count_of_each("DCGM_FI_DEV_FB_FREE", "dcgm_fb_free", &GpuCounters::memory_free_mib),
    count_of_each(kMemoryUsedField, "dcgm_fb_used", &GpuCounters::memory_used_mib),
    count_of_each("DCGM_FI_DEV_FB_RESERVED", "", &GpuCounters::memory_reserved_mib),
    computed("DCGM_FI_DEV_FB_TOTAL", "dcgm_fb_total", memory_total),
    count_of_gpu("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "dcgm_nvlink_bandwidth_total",
                 &GpuCounters::nvlink_bandwidth),
    // Known, without a value: berth does not run in guests of a vGPU.
    computed("DCGM_FI_DEV_VGPU_LICENSE_STATUS", "",
             [](const ExportDevice&) -> ExportNumber { return {}; }),
    count_of_gpu("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "",
                 &GpuCounters::remapped_uncorrectable),
    count_of_gpu("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "", &GpuCounters::remapped_correctable),
    computed("DCGM_FI_DEV_ROW_REMAP_FAILURE", "",
             [](const ExportDevice& d) { return flag(d.reading->condition.remap_failed); }),
    computed("DCGM_FI_DEV_ROW_REMAP_PENDING", "",
             [](const ExportDevice& d) { return flag(d.reading->condition.remap_pending); }),
    count_of_gpu("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "dcgm_ecc_sbe_volatile_total",
                 &GpuCounters::ecc_single_volatile),
    count_of_gpu("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "dcgm_ecc_dbe_volatile_total",
                 &GpuCounters::ecc_double_volatile),
    count_of_gpu("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "dcgm_ecc_sbe_aggregate_total",
                 &GpuCounters::ecc_single_aggregate),
    count_of_gpu("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "dcgm_ecc_dbe_aggregate_total",
                 &GpuCounters::ecc_double_aggregate),
    count_of_gpu("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "", &GpuCounters::throttle_reasons),
    count_of_gpu("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "", &GpuCounters::throttle_reasons),
    real_of_each("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "", &GpuCounters::graphics_active),
    real_of_each("DCGM_FI_PROF_SM_ACTIVE", "", &GpuCounters::sm_active),
    real_of_each("DCGM_FI_PROF_SM_OCCUPANCY", "", &GpuCounters::sm_occupancy),
    real_of_each("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "", &GpuCounters::tensor_active),
    real_of_each("DCGM_FI_PROF_DRAM_ACTIVE", "", &GpuCounters::dram_active),
    real_of_each("DCGM_FI_PROF_PIPE_FP64_ACTIVE", "", &GpuCounters::fp64_active),
    real_of_each("DCGM_FI_PROF_PIPE_FP32_ACTIVE", "", &GpuCounters::fp32_active),
    real_of_each("DCGM_FI_PROF_PIPE_FP16_ACTIVE", "", &GpuCounters::fp16_active),
    real_of_each("DCGM_FI_PROF_PCIE_TX_BYTES", "", &GpuCounters::pcie_tx_bytes),
    real_of_each("DCGM_FI_PROF_PCIE_RX_BYTES", "", &GpuCounters::pcie_rx_bytes),
    real_of_each("DCGM_FI_PROF_NVLINK_TX_BYTES", "", &GpuCounters::nvlink_tx_bytes),
    real_of_each("DCGM_FI_PROF_NVLINK_RX_BYTES", "", &GpuCounters::nvlink_rx_bytes),
    label_of("DCGM_FI_DRIVER_VERSION",
             [](const GpuInventory& i, const GpuDevice&) { return i.driver_version; }),
    label_of("DCGM_FI_CUDA_DRIVER_VERSION",
             [](const GpuInventory& i, const GpuDevice&) {
               return std::to_string(i.cuda_major * 1000 + i.cuda_minor * 10);
             }),
    label_of("DCGM_FI_DEV_NAME", [](const GpuInventory&, const GpuDevice& d) { return d.name; }),
    label_of("DCGM_FI_DEV_UUID", [](const GpuInventory&, const GpuDevice& d) { return d.uuid; }),
    label_of("DCGM_FI_DEV_MINOR_NUMBER",
             [](const GpuInventory&, const GpuDevice& d) { return std::to_string(d.minor); }),
};

constexpr std::string_view kBlanks = " \t\r";
constexpr std::size_t kMaxCsvBytes = 1 << 20, kMaxCsvHelp = 1024, kMaxCsvShown = 60;

std::string_view without_blanks(std::string_view text) {
  std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

std::string_view take_cell(std::string_view& line) {
  std::size_t comma = line.find(',');
  std::string_view cell = without_blanks(line.substr(0, comma));
  line = comma == std::string_view::npos ? std::string_view() : line.substr(comma + 1);
  return cell;
}

Result<CounterRow> read_counter_row(std::string_view line) {
  auto shown = [](std::string_view text) {
    return "\"" + std::string(text.substr(0, kMaxCsvShown)) + "\"";
  };
  const std::string_view field_name = take_cell(line), type = take_cell(line);
  std::string_view help = without_blanks(line);
  if (help.size() >= 2 && help.front() == '"' && help.back() == '"') {
    help = help.substr(1, help.size() - 2);
  }
  const ExportField* field = find_export_field(field_name);
  if (field == nullptr) {
    return invalid("found " + shown(field_name) + ", want a field listed in docs/metrics.md");
  }
  const bool known_type = type == "gauge" || type == "counter" || type == "label";
  if (!known_type || (type == "label") != (field->label != nullptr)) {
    return invalid(std::string(field_name) + ": found type " + shown(type) + ", want " +
                   (field->label != nullptr ? "label" : "gauge or counter"));
  }
  if (help.empty() || help.size() > kMaxCsvHelp) {
    return invalid(std::string(field_name) + ": found a help text of " +
                   std::to_string(help.size()) + " bytes, want 1..1024");
  }
  return CounterRow{std::string(field_name), std::string(type), std::string(help)};
}

}  // namespace

ExportNumber ExportField::value(const ExportDevice& device) const {
  if (other != nullptr) return other(device);
  const GpuCounters* from = device.own;
  auto read = [&](const auto& member) -> ExportNumber {
    if (from != nullptr && (from->*member).has_value()) return *(from->*member);
    const GpuCounters& all = device.reading->counters;
    if (whole && (all.*member).has_value()) return *(all.*member);
    return {};
  };
  if (real != nullptr) return read(real);
  if (count != nullptr) return read(count);
  return {};
}

const ExportField* find_export_field(std::string_view name) {
  const auto* found = std::find_if(std::begin(kExportFields), std::end(kExportFields),
                                   [&](const ExportField& f) { return f.name == name; });
  return found == std::end(kExportFields) ? nullptr : found;
}

Result<std::vector<CounterRow>> parse_counters_csv(std::string_view text) {
  if (text.size() > kMaxCsvBytes) {
    return Error(Code::kExhausted, "found " + std::to_string(text.size()) +
                                       " bytes, want at most " + std::to_string(kMaxCsvBytes));
  }
  std::vector<CounterRow> rows;
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line = without_blanks(line);
    if (line.empty() || line.front() == '#') continue;
    const std::string where = "line " + std::to_string(number);
    auto row = read_counter_row(line);
    if (!row.ok()) return std::move(row).context(where).error();
    for (const CounterRow& before : rows) {
      if (before.field == row->field) return invalid(where + ": " + row->field + " appears twice");
    }
    rows.push_back(std::move(*row));
  }
  return rows;
}

const std::vector<CounterRow>& default_rows() {
  static const std::vector<CounterRow> rows = {
      {"DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz)."},
      {"DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz)."},
      {"DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Memory temperature (in C)."},
      {"DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C)."},
      {"DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W)."},
      {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter",
       "Total energy consumption since boot (in mJ)."},
      {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "Total number of PCIe retries."},
      {"DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %)."},
      {"DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Memory utilization (in %)."},
      {"DCGM_FI_DEV_ENC_UTIL", "gauge", "Encoder utilization (in %)."},
      {"DCGM_FI_DEV_DEC_UTIL", "gauge", "Decoder utilization (in %)."},
      {"DCGM_FI_DEV_XID_ERRORS", "gauge", "Value of the last XID error encountered."},
      {"DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB)."},
      {"DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB)."},
      {"DCGM_FI_DEV_FB_RESERVED", "gauge", "Framebuffer memory reserved (in MiB)."},
      {"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter",
       "Total number of NVLink bandwidth counters for all lanes."},
      {"DCGM_FI_DEV_VGPU_LICENSE_STATUS", "gauge", "vGPU License status"},
      {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter",
       "Number of remapped rows for uncorrectable errors"},
      {"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter",
       "Number of remapped rows for correctable errors"},
      {"DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether remapping of rows has failed"},
      {"DCGM_FI_DRIVER_VERSION", "label", "Driver Version"},
      {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Ratio of time the graphics engine is active."},
      {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge",
       "Ratio of cycles the tensor (HMMA) pipe is active."},
      {"DCGM_FI_PROF_DRAM_ACTIVE", "gauge",
       "Ratio of cycles the device memory interface is active sending or receiving data."},
      {"DCGM_FI_PROF_PCIE_TX_BYTES", "gauge",
       "The rate of data transmitted over the PCIe bus - including both protocol headers and data "
       "payloads - in bytes per second."},
      {"DCGM_FI_PROF_PCIE_RX_BYTES", "gauge",
       "The rate of data received over the PCIe bus - including both protocol headers and data "
       "payloads - in bytes per second."},
  };
  return rows;
}

}  // namespace berth::monitor
