#include "edge/nvml/recorded_source.h"

#include <algorithm>
#include <utility>

namespace berth::nvml {

RecordedSource::RecordedSource(Loop& loop, Recording recording)
    : loop_(loop), recording_(std::move(recording)), board_(recording_.inventory) {}

RecordedSource::~RecordedSource() { loop_.cancel(timer_); }

void RecordedSource::take_inventory(std::function<void(Result<model::GpuInventory>)> done) {
  loop_.post([this, alive = std::weak_ptr<bool>(alive_), done = std::move(done)] {
    if (alive.expired()) return;
    listed_ = true;
    done(recording_.inventory);
  });
}

void RecordedSource::read(std::function<void(std::vector<model::GpuReading>)> done) {
  loop_.post([this, alive = std::weak_ptr<bool>(alive_), done = std::move(done)] {
    if (alive.expired()) return;
    if (!listed_) return done({});
    if (!recording_.samples.empty()) {
      const std::size_t now = std::min(next_sample_, recording_.samples.size() - 1);
      next_sample_ = now + 1;
      return done(recording_.samples[now].gpus);
    }
    // Nothing was read: that is what is said of every GPU.
    std::vector<model::GpuReading> silent;
    for (const model::GpuDevice& gpu : recording_.inventory.gpus) {
      model::GpuReading& reading = silent.emplace_back();
      reading.uuid = gpu.uuid;
      reading.answer = model::GpuAnswer::kSilent;
      reading.error = "the recording has no readings";
    }
    done(std::move(silent));
  });
}

void RecordedSource::watch(std::function<void(const model::GpuEvent&)> handler) {
  handler_ = std::move(handler);
  watched_at_ = loop_.monotonic().ticks_ns();
  tell_next();
}

void RecordedSource::look(std::function<void(Result<std::vector<partition::MigGpu>>)> done) {
  loop_.post([this, alive = std::weak_ptr<bool>(alive_), done = std::move(done)] {
    if (!alive.expired()) done(board_.gpus());
  });
}

void RecordedSource::carry_out(const partition::MigStep& step, std::function<void(Status)> done) {
  loop_.post([this, alive = std::weak_ptr<bool>(alive_), step, done = std::move(done)] {
    if (alive.expired()) return;
    const Status carried = board_.carry_out(step, recording_.inventory);
    if (carried.ok() && handler_) {
      model::GpuEvent event;
      event.kind = model::GpuEvent::Kind::kMigChanged;
      event.uuid = step.gpu;
      handler_(event);
      if (alive.expired()) return;
    }
    done(carried);
  });
}

void RecordedSource::tell_next() {
  timer_ = 0;
  if (next_event_ >= recording_.events.size()) return;
  const std::int64_t passed = loop_.monotonic().ticks_ns() - watched_at_;
  timer_ = loop_.after(recording_.events[next_event_].at_ns - passed, [this] {
    timer_ = 0;
    const model::GpuEvent& event = recording_.events[next_event_++].event;
    std::weak_ptr<bool> alive = alive_;
    handler_(event);
    if (!alive.expired()) tell_next();
  });
}

}  // namespace berth::nvml
