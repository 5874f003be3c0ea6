// How long one scrape takes and how large it is: 8 GPUs cut into 7 MIG instances each, every one
// held by a pod, all default fields told.
//
//   exporter [--json FILE]
#include "node/monitor/exporter.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace berth::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kGpus = 8, kInstances = 7, kScrapes = 3600;  // an hour at one a second

model::GpuCounters all_counters(int seed) {
  model::GpuCounters c;
  c.sm_clock_mhz = 1980;
  c.memory_clock_mhz = 3201;
  c.gpu_temperature = 40 + seed;
  c.memory_temperature = 45 + seed;
  c.power_w = 312.456 + seed;
  c.energy_mj = 123'456'789'012U + static_cast<std::uint64_t>(seed);
  c.gpu_utilization = c.memory_utilization = c.encoder_utilization = c.decoder_utilization = 37;
  c.memory_free_mib = 10'000;
  c.memory_used_mib = 6'384;
  c.memory_reserved_mib = 512;
  c.pcie_replays = c.remapped_correctable = c.remapped_uncorrectable = 0;
  c.nvlink_bandwidth = 9'876'543'210U;
  c.graphics_active = 0.987654;
  c.tensor_active = 0.512345;
  c.dram_active = 0.312345;
  c.pcie_tx_bytes = 1.23e9;
  c.pcie_rx_bytes = 2.34e9;
  return c;
}

struct Machine {
  model::GpuInventory inventory;
  std::vector<model::GpuReading> readings;
  monitor::Holders holders;
};

Machine make_machine() {
  Machine machine;
  machine.inventory.driver_version = "580.159.04";
  for (int i = 0; i < kGpus; ++i) {
    model::GpuDevice gpu;
    gpu.index = gpu.minor = i;
    gpu.uuid = fmt::format("GPU-6f1c2a34-0000-4000-8000-00000000000{}", i);
    gpu.name = "NVIDIA H200";
    gpu.pci_bus_id = fmt::format("0000:{:02x}:00.0", 0x18 + i);
    gpu.mig_capable = gpu.mig_enabled = true;
    model::GpuReading reading;
    reading.uuid = gpu.uuid;
    reading.counters = all_counters(i);
    for (int k = 0; k < kInstances; ++k) {
      model::MigInstance mig;
      mig.uuid = fmt::format("MIG-6f1c2a34-0000-4000-8000-0000000000{}{}", i, k);
      mig.profile = "1g.18gb";
      mig.gpu_instance = 7 + k;
      gpu.mig.push_back(mig);
      reading.mig.emplace_back(mig.uuid, all_counters(k));
      machine.holders[mig.uuid] = {
          {"team-a", fmt::format("inference-7d9c5b6f8-{}{}", i, k), "server", "", mig.uuid}};
    }
    machine.inventory.gpus.push_back(std::move(gpu));
    machine.readings.push_back(std::move(reading));
  }
  return machine;
}

// Resident memory of this process in KiB; 0: not known.
long resident_kib() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmRSS:")) return std::atol(line.c_str() + 6);
  }
  return 0;
}

// Of this thread: what a busy machine cannot disturb.
double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

double percentile(std::vector<double>& sorted, std::size_t percent) {
  return sorted[std::min(sorted.size() - 1, sorted.size() * percent / 100)];
}

}  // namespace

int main_of(int argc, char** argv) {
  std::string json;
  if (argc == 3 && std::strcmp(argv[1], "--json") == 0) {
    json = argv[2];
  } else if (argc != 1) {
    fmt::print("exporter [--json FILE]\n");
    return 2;
  }
  Machine machine = make_machine();
  monitor::HealthBook health{monitor::HealthOptions()};
  health.set_inventory(machine.inventory, 1);
  monitor::ExportOptions options;
  options.hostname = "node-1";
  monitor::ExportInput input;
  input.inventory = &machine.inventory;
  input.readings = &machine.readings;
  input.health = &health;
  input.holders = &machine.holders;
  std::string page;
  std::vector<double> wall, cpu;
  long rss_before = 0;
  for (int i = 0; i < kScrapes; ++i) {
    input.now_ns = i * std::int64_t{1'000'000'000};
    const auto start = Clock::now();
    const double cpu_start = cpu_ms();
    monitor::export_metrics(input, options, page);
    cpu.push_back(cpu_ms() - cpu_start);
    wall.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    if (i == 10) rss_before = resident_kib();
  }
  const long rss_after = resident_kib();
  std::sort(wall.begin(), wall.end());
  std::sort(cpu.begin(), cpu.end());
  fmt::print("{} GPUs x {} MIG instances: {} bytes, {} lines\n", kGpus, kInstances, page.size(),
             std::count(page.begin(), page.end(), '\n'));
  fmt::print("wall: median {:.3f} ms, p99 {:.3f} ms; CPU: median {:.3f} ms, p99 {:.3f} ms\n",
             percentile(wall, 50), percentile(wall, 99), percentile(cpu, 50), percentile(cpu, 99));
  fmt::print("resident {} KiB after 10 scrapes, {} KiB after {}\n", rss_before, rss_after,
             kScrapes);
  if (!json.empty()) {
    if (std::FILE* file = std::fopen(json.c_str(), "w")) {
      fmt::print(file,
                 "{{\"bytes\": {}, \"wall_p99_ms\": {:.4f}, \"cpu_p99_ms\": {:.4f}, "
                 "\"rss_growth_kib\": {}}}\n",
                 page.size(), percentile(wall, 99), percentile(cpu, 99), rss_after - rss_before);
      std::fclose(file);
    }
  }
  return 0;
}

}  // namespace berth::bench

int main(int argc, char** argv) { return berth::bench::main_of(argc, argv); }
