// The names of a recording's numbers, for its writer and its reader.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "model/gpu_reading.h"

namespace berth::nvml {

using Counters = model::GpuCounters;

struct RealField {
  std::string_view name;
  std::optional<double> Counters::* member;
};
inline constexpr RealField kRealFields[] = {
    {"smClockMhz", &Counters::sm_clock_mhz},
    {"memoryClockMhz", &Counters::memory_clock_mhz},
    {"gpuTemperature", &Counters::gpu_temperature},
    {"memoryTemperature", &Counters::memory_temperature},
    {"powerW", &Counters::power_w},
    {"gpuUtilization", &Counters::gpu_utilization},
    {"memoryUtilization", &Counters::memory_utilization},
    {"encoderUtilization", &Counters::encoder_utilization},
    {"decoderUtilization", &Counters::decoder_utilization},
    {"graphicsActive", &Counters::graphics_active},
    {"smActive", &Counters::sm_active},
    {"smOccupancy", &Counters::sm_occupancy},
    {"tensorActive", &Counters::tensor_active},
    {"dramActive", &Counters::dram_active},
    {"fp64Active", &Counters::fp64_active},
    {"fp32Active", &Counters::fp32_active},
    {"fp16Active", &Counters::fp16_active},
    {"pcieTxBytes", &Counters::pcie_tx_bytes},
    {"pcieRxBytes", &Counters::pcie_rx_bytes},
    {"nvlinkTxBytes", &Counters::nvlink_tx_bytes},
    {"nvlinkRxBytes", &Counters::nvlink_rx_bytes},
};

struct CountField {
  std::string_view name;
  std::optional<std::uint64_t> Counters::* member;
};
inline constexpr CountField kCountFields[] = {
    {"energyMj", &Counters::energy_mj},
    {"memoryFreeMiB", &Counters::memory_free_mib},
    {"memoryUsedMiB", &Counters::memory_used_mib},
    {"memoryReservedMiB", &Counters::memory_reserved_mib},
    {"pcieReplays", &Counters::pcie_replays},
    {"nvlinkBandwidth", &Counters::nvlink_bandwidth},
    {"remappedCorrectable", &Counters::remapped_correctable},
    {"remappedUncorrectable", &Counters::remapped_uncorrectable},
    {"eccSingleVolatile", &Counters::ecc_single_volatile},
    {"eccDoubleVolatile", &Counters::ecc_double_volatile},
    {"eccSingleAggregate", &Counters::ecc_single_aggregate},
    {"eccDoubleAggregate", &Counters::ecc_double_aggregate},
    {"throttleReasons", &Counters::throttle_reasons},
};

inline constexpr std::pair<std::string_view, model::GpuAnswer> kAnswerWords[] = {
    {"fine", model::GpuAnswer::kFine},
    {"silent", model::GpuAnswer::kSilent},
    {"lost", model::GpuAnswer::kLost},
    {"error", model::GpuAnswer::kError},
};

}  // namespace berth::nvml
