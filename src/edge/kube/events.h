// Tells people what happened, as Events of events.k8s.io/v1. Best effort: nothing waits for it, and
// what cannot be written is dropped and counted.
//
// The same thing again (object, type, reason, action, note) within six minutes becomes a series:
// its count is written at the second time and then at most every half minute. An object gets 25
// writes at once and then one every five minutes, so that one broken pod does not fill the store.
// Bounded: the series and objects remembered, the writes under way. On the loop's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "edge/kube/client.h"

namespace berth::kube {

struct EventNote {
  std::string api_version, kind;  // of the object it is about
  Key key;
  std::string uid;
  bool warning = false;
  std::string reason;  // "Scheduled": one word, at most 128 bytes
  std::string action;  // "Binding": what was tried; at most 128 bytes
  std::string note;    // for people; cut at 1024 bytes
};

struct EventSource {
  std::string controller = "berth";
  std::string instance = "berth-0";
};

// The name it has, in the namespace of its object; what is of none is told of in `default`.
Key event_key(const EventNote& note, std::uint64_t unique);
// The object, its words cut to what the API takes.
std::string event_body(const EventNote& note, const Key& event, const EventSource& by,
                       std::int64_t wall_ns);

struct EventOptions {
  EventSource by;
  std::int64_t series_ns = 360'000'000'000;
  std::int64_t write_gap_ns = 30'000'000'000;
  int object_burst = 25;
  std::int64_t object_refill_ns = 300'000'000'000;
  std::size_t max_remembered = 4'096;
  std::size_t max_under_way = 64;
};

class EventRecorder {
 public:
  EventRecorder(Client& client, EventOptions options = {}, MetricsRegistry* metrics = nullptr);
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void record(EventNote note);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::kube
