#include "embedded/nodes/telemetry.h"

#include <algorithm>

namespace berth::sim {

namespace {

MetricSpec gpu_metric(const char* name, const char* help, std::size_t gpus) {
  return {.name = name, .help = help, .labels = {"node", "gpu"}, .max_series = gpus + 1'000};
}

}  // namespace

Telemetry::Telemetry(MetricsRegistry& metrics, Random random, std::size_t gpus)
    : utilization_(metrics.gauge(
          gpu_metric("berth_sim_gpu_utilization_percent", "Load of a simulated GPU.", gpus))),
      memory_used_(metrics.gauge(
          gpu_metric("berth_sim_gpu_memory_used_mib", "Memory in use on a simulated GPU.", gpus))),
      temperature_(metrics.gauge(gpu_metric("berth_sim_gpu_temperature_celsius",
                                            "Temperature of a simulated GPU.", gpus))),
      power_(metrics.gauge(
          gpu_metric("berth_sim_gpu_power_watts", "Power draw of a simulated GPU.", gpus))),
      healthy_(metrics.gauge(
          gpu_metric("berth_sim_gpu_healthy", "1 while a simulated GPU is healthy.", gpus))),
      faults_(metrics.counter({.name = "berth_sim_faults_total",
                               .help = "Faults that happened to simulated nodes.",
                               .labels = {"kind"}})),
      hints_(metrics
                 .counter({.name = "berth_sim_gpu_hint_differences_total",
                           .help = "Pods that got other GPUs than berth.dev/gpus named."})
                 .get()),
      random_(random) {}

void Telemetry::add_node(const std::string& node, int gpus) {
  std::vector<Gauges> all;
  for (int i = 0; i < gpus; ++i) {
    const LabelValues labels = {node, std::to_string(i)};
    all.push_back({utilization_.with(labels), memory_used_.with(labels), temperature_.with(labels),
                   power_.with(labels), healthy_.with(labels)});
  }
  nodes_.push_back(std::move(all));
}

void Telemetry::set(std::size_t node, std::size_t gpu, const GpuLoad& load) {
  if (node >= nodes_.size() || gpu >= nodes_[node].size()) return;
  Gauges& g = nodes_[node][gpu];
  int busy = load.healthy ? load.utilization : 0;
  if (busy > 0) busy = std::clamp(busy + static_cast<int>(random_.between(-3, 3)), 1, 100);
  g.busy = busy;
  g.utilization.set(busy);
  g.memory_used.set(static_cast<double>(load.healthy ? load.used_mib : 0));
  g.temperature.set(30 + 0.45 * busy);
  g.power.set(70 + busy * 6);
  g.healthy.set(load.healthy ? 1 : 0);
}

int Telemetry::busy(std::size_t node, std::size_t gpu) const {
  return node < nodes_.size() && gpu < nodes_[node].size() ? nodes_[node][gpu].busy : -1;
}

void Telemetry::count_fault(const std::string& kind) { faults_.with({kind}).add(); }

}  // namespace berth::sim
