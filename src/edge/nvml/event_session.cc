#include "edge/nvml/event_session.h"

#include <algorithm>
#include <array>

namespace berth::nvml {

namespace {

using Kind = model::GpuEvent::Kind;

struct EventKind {
  unsigned long long type;
  Kind kind;
};
constexpr EventKind kEventKinds[] = {
    {kEventXid, Kind::kXid},
    {kEventEccDouble, Kind::kEccDouble},
    {kEventEccStorm, Kind::kEccStorm},
    {kEventRemapped, Kind::kRemapped},
    {kEventRemapFailed, Kind::kRemapFailed},
    {kEventPoison, Kind::kPoison},
    {kEventFatalPoison, Kind::kFatalPoison},
    {kEventUnavailable, Kind::kUnavailable},
    {kEventRecovery, Kind::kRecoveryAction},
    {kEventMig, Kind::kMigChanged},
};

constexpr unsigned long long wanted_types() {
  unsigned long long mask = 0;
  for (const EventKind& kind : kEventKinds) mask |= kind.type;
  return mask;
}

int instance_of(unsigned int id) { return id == kNoInstance ? -1 : static_cast<int>(id); }

}  // namespace

std::optional<model::GpuEvent> translate(const EventData& data) {
  for (const EventKind& kind : kEventKinds) {
    if (data.type != kind.type) continue;
    model::GpuEvent event;
    event.kind = kind.kind;
    event.code = static_cast<int>(std::min<unsigned long long>(data.data, 1'000'000));
    event.gpu_instance = instance_of(data.gpu_instance);
    event.compute_instance = instance_of(data.compute_instance);
    return event;
  }
  return std::nullopt;
}

Return EventSession::open() {
  Return code = call(api_->event_set_create, &set_);
  if (code != kSuccess) return code;
  // A GPU that is lost cannot be registered; the others are.
  for (int index = 0; index < gpus_; ++index) {
    Device device = nullptr;
    unsigned long long types = 0;
    if (call(api_->device_by_index, static_cast<unsigned int>(index), &device) != kSuccess ||
        call(api_->supported_events, device, &types) != kSuccess) {
      continue;
    }
    types &= wanted_types();
    if (types == 0) continue;
    code = call(api_->register_events, device, types, set_);
    if (code == kSuccess) registered_ |= types;
  }
  return registered_ == 0 ? kNotSupported : kSuccess;
}

EventSession::Answer EventSession::wait(unsigned int at_most_ms) {
  if (set_ == nullptr && !closed_) {
    const Return code = open();
    if (code != kSuccess) {
      closed_ = true;
      if (set_ != nullptr) call(api_->event_set_free, set_);
      set_ = nullptr;
      return {code, std::nullopt};
    }
  }
  Answer answer{kTimeout, std::nullopt};
  if (!closed_) {
    EventData data{};
    data.gpu_instance = data.compute_instance = kNoInstance;
    answer.code = call(api_->event_wait, set_, &data, at_most_ms);
    if (answer.code == kSuccess) answer.event = translate(data);
    std::array<char, 96> uuid{};
    if (answer.event && call(api_->uuid, data.device, uuid.data(),
                             static_cast<unsigned int>(uuid.size())) == kSuccess) {
      answer.event->uuid.assign(uuid.begin(), std::find(uuid.begin(), uuid.end(), '\0'));
    }
  }
  if (closed_ && set_ != nullptr) {
    call(api_->event_set_free, set_);
    set_ = nullptr;
  }
  return answer;
}

}  // namespace berth::nvml
