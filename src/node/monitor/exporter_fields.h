// The fields that the exporter can serve and where their values come from. Only node/monitor/
// includes it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "model/device.h"
#include "model/gpu_reading.h"

namespace berth::monitor {

// One thing that has a row of values: a GPU or a MIG instance.
struct ExportDevice {
  const model::GpuDevice* gpu = nullptr;
  const model::MigInstance* mig = nullptr;  // nullptr: the whole GPU
  const model::GpuReading* reading = nullptr;
  const model::GpuCounters* own = nullptr;  // of the instance, or of the GPU; nullptr: not told
  int last_xid = 0;
  bool answers = true;  // false: of its numbers only the last Xid is known
};

using ExportNumber = std::variant<std::monostate, double, std::uint64_t>;  // first: not known

struct ExportField {
  std::string_view name;
  std::string_view old_name;  // of 1.x; empty: it had none
  bool whole = false;         // belongs to the GPU: repeated for its MIG instances, as DCGM does
  std::optional<double> model::GpuCounters::* real = nullptr;
  std::optional<std::uint64_t> model::GpuCounters::* count = nullptr;
  ExportNumber (*other)(const ExportDevice&) = nullptr;
  // Not a series but a label on all series.
  std::string (*label)(const model::GpuInventory&, const model::GpuDevice&) = nullptr;

  ExportNumber value(const ExportDevice& device) const;
};

constexpr std::string_view kXidField = "DCGM_FI_DEV_XID_ERRORS",
                           kUtilizationField = "DCGM_FI_DEV_GPU_UTIL",
                           kMemoryUsedField = "DCGM_FI_DEV_FB_USED";

const ExportField* find_export_field(std::string_view name);

}  // namespace berth::monitor
