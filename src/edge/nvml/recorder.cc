#include "edge/nvml/recorder.h"

#include <utility>

namespace berth::nvml {

Recorder::Recorder(Loop& loop, discover::GpuSource& source, model::HostFacts host,
                   RecorderOptions options, std::function<void(Result<Recording>)> done,
                   std::function<void(model::GpuInventory&)> finish_inventory)
    : loop_(loop),
      source_(source),
      options_(options),
      done_(std::move(done)),
      finish_inventory_(std::move(finish_inventory)) {
  recording_.host = std::move(host);
  recording_.started_ns = loop_.wall().now_ns();
  started_at_ = loop_.monotonic().ticks_ns();
  std::weak_ptr<bool> alive = alive_;
  source_.watch([this, alive](const model::GpuEvent& event) {
    if (alive.expired() || recording_.events.size() >= options_.max_events) return;
    recording_.events.push_back({passed(), event});
  });
  source_.take_inventory([this, alive](Result<model::GpuInventory> inventory) {
    if (alive.expired()) return;
    if (!inventory.ok()) {
      auto told = std::move(done_);
      return told(std::move(inventory).error());
    }
    recording_.inventory = std::move(inventory).value();
    if (finish_inventory_) finish_inventory_(recording_.inventory);
    take();
  });
}

Recorder::~Recorder() { loop_.cancel(timer_); }

std::int64_t Recorder::passed() const { return loop_.monotonic().ticks_ns() - started_at_; }

void Recorder::take() {
  timer_ = 0;
  source_.read(
      [this, alive = std::weak_ptr<bool>(alive_)](std::vector<model::GpuReading> readings) {
        if (!alive.expired()) got(std::move(readings));
      });
}

void Recorder::got(std::vector<model::GpuReading> readings) {
  // GPUs that came later are not in the recording's inventory; the recording stays readable.
  if (readings.size() == recording_.inventory.gpus.size()) {
    recording_.samples.push_back({passed(), std::move(readings)});
  }
  if (passed() + options_.interval_ns >= options_.duration_ns ||
      recording_.samples.size() >= options_.max_samples) {
    auto told = std::move(done_);
    return told(std::move(recording_));
  }
  timer_ = loop_.after(options_.interval_ns, [this] { take(); });
}

}  // namespace berth::nvml
