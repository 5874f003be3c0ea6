// The page that Prometheus reads: DCGM's field names, HELP texts and labels (docs/metrics.md), from
// memory.
//
// Pure: values in, text out. Label values are escaped. The order is fixed, so equal input gives
// equal bytes. Cost: one pass over rows and devices; 8 GPUs with 7 MIG instances each take well
// below a millisecond (bench/exporter.cc).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/allocation.h"
#include "model/device.h"
#include "model/gpu_reading.h"
#include "model/resource.h"
#include "node/monitor/health.h"

namespace berth::monitor {

// One row of a counters file: "DCGM_FI_DEV_SM_CLOCK, gauge, SM clock frequency (in MHz)."
struct CounterRow {
  std::string field, type, help;
  friend bool operator==(const CounterRow&, const CounterRow&) = default;
};
const std::vector<CounterRow>& default_rows();
// The exporter's CSV: comments with '#', blanks around commas do not matter, unknown fields are
// refused with their line.
Result<std::vector<CounterRow>> parse_counters_csv(std::string_view text);

struct ExportOptions {
  std::vector<CounterRow> rows = default_rows();
  std::string hostname;
  bool old_hostname = false;  // the label "Hostname" too
  // The 1.x names as well: dcgm_sm_clock, labels uuid, pod_name, pod_namespace, container_name.
  bool old_names = false;
  bool pod_uid = false;
};

// Who holds a device, for labels.
struct Holder {
  std::string ns, pod, container, pod_uid;
  std::string device;  // the id that it holds: "GPU-...::1"
  friend auto operator<=>(const Holder&, const Holder&) = default;
};
// By UUID of GPU or MIG instance. Several holders of one: shared.
using Holders = std::map<std::string, std::vector<Holder>>;
// From pod-resources; resources: to know which ids are ours (".shared" and renamed ones too).
Holders holders_of(const std::vector<model::HeldDevices>& held,
                   const std::vector<model::OfferedResource>& resources);

// The holder that a process belongs to, by where it runs, innermost first: the first of these pods
// that holds a device. Of several containers of that pod the one whose name containers (by id) has;
// nullptr: none, or it cannot be told.
const Holder* holder_at(const Holders& holders, const std::vector<model::ContainerPlace>& places,
                        const std::map<std::string, std::string>& containers);

struct ExportInput {
  const model::GpuInventory* inventory = nullptr;
  const std::vector<model::GpuReading>* readings = nullptr;
  const HealthBook* health = nullptr;
  const Holders* holders = nullptr;
  // Process -> the container it runs in, where known (by cgroup): splits utilisation and memory of
  // shared GPUs.
  const std::map<int, Holder>* processes = nullptr;
  std::int64_t sampled_ns = 0, now_ns = 0;  // wall time: the age of the sample is exported
};

std::string export_metrics(const ExportInput& input, const ExportOptions& options);
// The same into a buffer that keeps its memory from scrape to scrape.
void export_metrics(const ExportInput& input, const ExportOptions& options, std::string& out);

}  // namespace berth::monitor
