// NvmlSource's events: those of the driver, and what is noticed by looking.
#include <utility>

#include "nvml/source_state.h"

namespace berth::nvml {

namespace {

constexpr std::int64_t kReopenEvents = 5'000'000'000;

}  // namespace

void NvmlSource::State::watch(std::function<void(const model::GpuEvent&)> handler) {
  handler_ = std::move(handler);
  check_ = loop_.after(options_.check_every_ns, [this] { start_check(); });
  if (up_) start_events();
}

void NvmlSource::State::tell(const model::GpuEvent& event) {
  if (handler_) handler_(event);
}

// ---- looking ----

void NvmlSource::State::start_check() {
  check_ = loop_.after(options_.check_every_ns, [this] { start_check(); });
  if (!up_ || taking_ || !main_.idle()) return;
  main_.call<Result<Basics>>(
      options_.inventory_deadline_ns,
      [api = api_, options = options_] { return ask_basics(api, true, options); },
      [this](std::optional<Result<Basics>> basics) { got_count(std::move(basics)); });
}

void NvmlSource::State::got_count(std::optional<Result<Basics>> basics) {
  if (taking_) return;  // it will know better
  model::GpuEvent event;
  event.kind = model::GpuEvent::Kind::kInventory;
  if (!basics || !basics->ok()) {
    failed(basics ? basics->error()
                  : Error(Code::kUnavailable, "the NVIDIA driver does not answer"));
    return tell(event);
  }
  if ((*basics)->count != count_) {
    count_ = (*basics)->count;
    return tell(event);
  }
  for (int index = 0; index < count_; ++index) {
    Gpu& gpu = *gpus_[static_cast<std::size_t>(index)];
    if (!gpu.lane.idle()) continue;
    gpu.lane.call<Result<GpuPresence>>(
        options_.reading_deadline_ns, [probe = probe_of(index)] { return probe->presence(); },
        [this, index](const std::optional<Result<GpuPresence>>& presence) {
          got_presence(index, presence);
        });
  }
}

void NvmlSource::State::got_presence(int index,
                                     const std::optional<Result<GpuPresence>>& presence) {
  if (!presence || !presence->ok() || taking_) return;
  Gpu& gpu = *gpus_[static_cast<std::size_t>(index)];
  if (gpu.presence == **presence) return;
  const bool same_gpu = gpu.presence && gpu.presence->uuid == (*presence)->uuid;
  gpu.presence = **presence;
  model::GpuEvent event;
  event.kind =
      same_gpu ? model::GpuEvent::Kind::kMigChanged : model::GpuEvent::Kind::kInventory;
  if (same_gpu) event.uuid = gpu.presence->uuid;
  tell(event);
}

// ---- the driver's own ----

void NvmlSource::State::start_events() {
  loop_.cancel(session_retry_);
  session_retry_ = 0;
  if (session_ != nullptr) {
    session_->close();
    // Its last wait lets it go on its own thread.
    events_.call<bool>(
        options_.reading_deadline_ns,
        [old = std::move(session_)] { return old->wait(0).code == kSuccess; },
        [](std::optional<bool>) {});
  }
  session_ = nullptr;
  session_count_ = count_;
  if (api_ == nullptr || count_ == 0) return;
  session_ = std::make_shared<EventSession>(api_, count_);
  wait_for_event();
}

void NvmlSource::State::wait_for_event() {
  const std::int64_t wait_ns = std::int64_t{options_.event_wait_ms} * 1'000'000;
  events_.call<EventSession::Answer>(
      wait_ns + options_.inventory_deadline_ns,
      [session = session_, ms = options_.event_wait_ms] { return session->wait(ms); },
      [this, session = session_](std::optional<EventSession::Answer> answer) {
        got_event(session, answer);
      });
}

void NvmlSource::State::got_event(const std::shared_ptr<EventSession>& session,
                                  const std::optional<EventSession::Answer>& answer) {
  if (session != session_) return;
  if (answer && (answer->code == kSuccess || answer->code == kTimeout)) {
    wait_for_event();
    if (answer->event) tell(*answer->event);
    return;
  }
  // The set is of no use any more, or its thread hangs: another one, later.
  session_->close();
  session_ = nullptr;
  session_retry_ = loop_.after(kReopenEvents, [this] {
    session_retry_ = 0;
    if (up_) start_events();
  });
  if (answer && answer->code == kGpuLost) {
    model::GpuEvent event;
    event.kind = model::GpuEvent::Kind::kRecoveryAction;
    event.detail = "the driver says that a GPU is lost";
    tell(event);
  }
}

}  // namespace berth::nvml
