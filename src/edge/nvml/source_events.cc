// NvmlSource's events: those of the driver, and what is noticed by looking.
#include <utility>

#include "edge/nvml/source_state.h"

namespace berth::nvml {

namespace {

constexpr std::int64_t kReopenEvents = 5'000'000'000;
// Listing MIG instances takes the driver 10 ms for each, so it is left to the driver's own events
// where there are such: then every so often, and for a while after one, which may come early.
constexpr std::int64_t kListEvery = 10'000'000'000, kListAfterEvent = 3'000'000'000;

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
    std::weak_ptr<bool> alive = alive_;
    failed(basics ? basics->error()
                  : Error(Code::kUnavailable, "the NVIDIA driver does not answer"));
    if (!alive.expired()) tell(event);
    return;
  }
  if (std::exchange(seen_count_, (*basics)->count) != (*basics)->count) return tell(event);
  const std::int64_t now = loop_.monotonic().ticks_ns();
  const bool list =
      (registered_events() & kEventMig) == 0 || now >= next_list_ || now < list_until_;
  if (list) next_list_ = now + kListEvery;
  for (int index = 0; index < count_; ++index) {
    Gpu& gpu = *gpus_[static_cast<std::size_t>(index)];
    if (!gpu.lane.idle()) continue;
    gpu.lane.call<Result<GpuPresence>>(
        options_.reading_deadline_ns,
        [probe = probe_of(index), list] { return probe->presence(list); },
        [this, index](const std::optional<Result<GpuPresence>>& presence) {
          got_presence(index, presence);
        });
  }
}

void NvmlSource::State::got_presence(int index,
                                     const std::optional<Result<GpuPresence>>& presence) {
  if (!presence || !presence->ok() || taking_) return;
  Gpu& gpu = *gpus_[static_cast<std::size_t>(index)];
  GpuPresence now = **presence;
  const bool same_gpu = gpu.presence && gpu.presence->uuid == now.uuid;
  if (same_gpu && !now.mig && now.mig_enabled) now.mig = gpu.presence->mig;  // not looked at
  if (gpu.presence == now) return;
  gpu.presence = std::move(now);
  model::GpuEvent event;
  event.kind = same_gpu ? model::GpuEvent::Kind::kMigChanged : model::GpuEvent::Kind::kInventory;
  if (same_gpu) event.uuid = gpu.presence->uuid;
  tell(event);
}

// ---- the driver's own ----

void NvmlSource::State::start_events() {
  loop_.cancel(session_retry_);
  session_retry_ = 0;
  if (session_ != nullptr) drop_session();
  session_count_ = count_;
  if (api_ == nullptr || count_ == 0) return;
  session_ = std::make_shared<EventSession>(api_, count_);
  wait_for_event();
}

// Its last wait lets the set go, on the thread that it belongs to.
void NvmlSource::State::drop_session() {
  session_->close();
  events_.call<bool>(
      options_.inventory_deadline_ns,
      [old = std::move(session_)] { return old->wait(0).code == kSuccess; },
      [](std::optional<bool>) {});
  session_ = nullptr;
}

void NvmlSource::State::wait_for_event() {
  const std::int64_t wait_ns = std::int64_t{options_.event_wait_ms} * 1'000'000;
  events_.call<EventSession::Answer>(
      wait_ns + options_.inventory_deadline_ns,
      [session = session_, ms = options_.event_wait_ms] { return session->wait(ms); },
      [this, session = session_](const std::optional<EventSession::Answer>& answer) {
        got_event(session, answer);
      });
}

void NvmlSource::State::got_event(const std::shared_ptr<EventSession>& session,
                                  const std::optional<EventSession::Answer>& answer) {
  const bool fine = answer && (answer->code == kSuccess || answer->code == kTimeout);
  if (session == session_ && fine) wait_for_event();
  if (answer && answer->event) {  // also of a set that is being replaced
    if (answer->event->kind == model::GpuEvent::Kind::kMigChanged) {
      list_until_ = loop_.monotonic().ticks_ns() + kListAfterEvent;
    }
    return tell(*answer->event);
  }
  if (session != session_ || fine) return;
  // The set is of no use any more, or its thread hangs: another one, later.
  drop_session();
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
