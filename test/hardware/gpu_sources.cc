// What the sources see on a machine with GPUs, for a look beside nvidia-smi:
//
//   gpu_sources FILE SECONDS [INTERVAL_MS]
//
// prints the inventory, the events as they come (MIG instances are listed again when they change)
// and how long readings took, and writes a recording to FILE. docs/evidence has runs of it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/run_loop.h"
#include "base/system_clock.h"
#include "edge/host/host.h"
#include "edge/nvml/nvml_source.h"
#include "edge/nvml/recorder.h"

namespace berth {
namespace {

void print_inventory(const model::GpuInventory& inventory) {
  std::printf("driver %s cuda %d.%d\n", inventory.driver_version.c_str(), inventory.cuda_major,
              inventory.cuda_minor);
  for (const model::GpuDevice& gpu : inventory.gpus) {
    std::printf("GPU %d minor %d %s %s %s %08x %lld MiB cc %d.%d mig %s%s\n", gpu.index, gpu.minor,
                gpu.uuid.c_str(), gpu.name.c_str(), gpu.pci_bus_id.c_str(), gpu.pci_device,
                static_cast<long long>(gpu.memory_mib), gpu.compute_major, gpu.compute_minor,
                gpu.mig_capable ? "capable " : "", gpu.mig_enabled ? "enabled" : "off");
    for (const model::MigInstance& mig : gpu.mig) {
      std::printf("  %s %s gi %d ci %d at %d:%d %lld MiB %d SMs, copy %d dec %d jpg %d ofa %d\n",
                  mig.profile.c_str(), mig.uuid.c_str(), mig.gpu_instance, mig.compute_instance,
                  mig.start, mig.slots, static_cast<long long>(mig.memory_mib), mig.multiprocessors,
                  mig.engines.copy, mig.engines.decoder, mig.engines.jpeg, mig.engines.ofa);
    }
  }
}

// Lets a recorder watch, and looks on: events are printed, readings are timed.
class Onlooker final : public discover::GpuSource {
 public:
  Onlooker(Loop& loop, discover::GpuSource& source) : loop_(loop), source_(source) {}

  void take_inventory(std::function<void(Result<model::GpuInventory>)> done) override {
    source_.take_inventory([done = std::move(done)](Result<model::GpuInventory> inventory) {
      if (inventory.ok()) print_inventory(*inventory);
      done(std::move(inventory));
    });
  }
  void read(std::function<void(std::vector<model::GpuReading>)> done) override {
    const std::int64_t asked = loop_.monotonic().ticks_ns();
    source_.read([this, asked, done = std::move(done)](std::vector<model::GpuReading> readings) {
      took_.push_back(loop_.monotonic().ticks_ns() - asked);
      done(std::move(readings));
    });
  }
  void watch(std::function<void(const model::GpuEvent&)> handler) override {
    started_ = loop_.monotonic().ticks_ns();
    source_.watch([this, handler = std::move(handler)](const model::GpuEvent& event) {
      std::printf("+%.3f s event %s code %d %s gi %d ci %d\n",
                  static_cast<double>(loop_.monotonic().ticks_ns() - started_) / 1e9,
                  std::string(name(event.kind)).c_str(), event.code, event.uuid.c_str(),
                  event.gpu_instance, event.compute_instance);
      std::fflush(stdout);
      handler(event);
      take_inventory([](const Result<model::GpuInventory>&) {});
    });
  }
  void print_times() {
    if (took_.empty()) return;
    std::sort(took_.begin(), took_.end());
    std::printf("%zu readings: median %.3f ms, longest %.3f ms\n", took_.size(),
                static_cast<double>(took_[took_.size() / 2]) / 1e6,
                static_cast<double>(took_.back()) / 1e6);
  }

 private:
  Loop& loop_;
  discover::GpuSource& source_;
  std::int64_t started_ = 0;
  std::vector<std::int64_t> took_;
};

int record(const char* path, double seconds, double interval_ms) {
  SystemMonotonicClock monotonic;
  SystemWallClock wall;
  RunLoop loop(monotonic, wall);
  nvml::NvmlSource source(loop, {}, Random(1));
  Onlooker onlooker(loop, source);
  model::HostFacts host = host::read_host("/");
  std::optional<Result<nvml::Recording>> made;
  nvml::RecorderOptions options;
  options.duration_ns = static_cast<std::int64_t>(seconds * 1e9);
  options.interval_ns = static_cast<std::int64_t>(interval_ms * 1e6);
  nvml::Recorder recorder(
      loop, onlooker, host, options,
      [&](Result<nvml::Recording> recording) {
        made = std::move(recording);
        loop.stop();
      },
      [&](model::GpuInventory& inventory) { host::place_on_bus("/", inventory, host); });
  loop.run();
  std::printf("registered events %#llx, threads left hanging %d\n", source.registered_events(),
              source.threads()->left_hanging());
  onlooker.print_times();
  if (!made->ok()) {
    std::printf("%s\n", made->error().to_string().c_str());
    return 1;
  }
  made->value().host = host;
  const std::string text = nvml::write_recording(made->value());
  std::ofstream(path) << text;
  Result<nvml::Recording> back = nvml::read_recording(text);
  std::printf("%zu bytes, reads back: %s\n", text.size(),
              back.ok() ? "yes" : back.error().to_string().c_str());
  return back.ok() && nvml::write_recording(*back) == text ? 0 : 1;
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) {
  if (argc < 3) {
    std::printf("gpu_sources FILE SECONDS [INTERVAL_MS]\n");
    return 2;
  }
  return berth::record(argv[1], std::strtod(argv[2], nullptr),
                       argc > 3 ? std::strtod(argv[3], nullptr) : 1000);
}
