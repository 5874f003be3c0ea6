#include "edge/kube/events.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "edge/kube/elector.h"
#include "text/json_writer.h"

namespace berth::kube {
namespace {

constexpr std::size_t kMaxNote = 1'024;
constexpr std::size_t kMaxWord = 128;
constexpr std::size_t kMaxNamePart = 220;  // a name has at most 253 bytes

std::string cut_utf8(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  text.resize(most);
  return text;
}

std::string hex_of(std::uint64_t number) {
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[(number >> shift) & 15];
  return out;
}

std::string object_id(const EventNote& note) {
  return note.kind + '\0' + note.key.ns + '\0' + note.key.name + '\0' + note.uid;
}

}  // namespace

Key event_key(const EventNote& note, std::uint64_t unique) {
  return {note.key.ns.empty() ? "default" : note.key.ns,
          cut_utf8(note.key.name, kMaxNamePart) + "." + hex_of(unique)};
}

std::string event_body(const EventNote& note, const Key& event, const EventSource& by,
                       std::int64_t wall_ns) {
  text::JsonWriter out;
  out.object([&] {
    out.field("apiVersion", "events.k8s.io/v1");
    out.field("kind", "Event");
    out.object("metadata", [&] {
      out.field("namespace", event.ns);
      out.field("name", event.name);
    });
    out.field("eventTime", micro_time(wall_ns));
    out.field("reportingController", by.controller);
    out.field("reportingInstance", by.instance);
    out.field("action", cut_utf8(note.action, kMaxWord));
    out.field("reason", cut_utf8(note.reason, kMaxWord));
    out.object("regarding", [&] {
      out.field("apiVersion", note.api_version);
      out.field("kind", note.kind);
      if (!note.key.ns.empty()) out.field("namespace", note.key.ns);
      out.field("name", note.key.name);
      if (!note.uid.empty()) out.field("uid", note.uid);
    });
    out.field("note", cut_utf8(note.note, kMaxNote));
    out.field("type", note.warning ? "Warning" : "Normal");
  });
  return std::move(out).take();
}

struct EventRecorder::State : std::enable_shared_from_this<EventRecorder::State> {
  struct Series {
    Key key;  // of the Event
    EventNote note;
    std::int64_t count = 1;
    std::int64_t written = 0;  // the count that the server knows
    std::int64_t last_ticks = 0, write_ticks = 0;
    std::int64_t last_wall = 0;
    Loop::Timer timer = 0;
    bool under_way = false;
  };
  struct Bucket {
    double tokens;
    std::int64_t refilled;
  };

  State(Client& client_in, EventOptions options_in)
      : client(client_in), loop(client_in.loop()), options(std::move(options_in)) {}

  std::int64_t now() const { return loop.monotonic().ticks_ns(); }
  void record(EventNote note);
  void create(const std::string& id);
  void update(const std::string& id);
  void later(const std::string& id);
  bool allowed(const EventNote& note);
  void drop(const char* why) {
    if (dropped) dropped->with({why}).add();
  }
  bool room() {
    if (calls.size() < options.max_under_way) return true;
    drop("busy");
    return false;
  }
  void sent(Call call) { calls.insert(call); }
  void make_room();

  Client& client;
  Loop& loop;
  const EventOptions options;
  CounterFamily* dropped = nullptr;
  std::optional<Counter> written;
  std::map<std::string, Series> series;
  std::map<std::string, Bucket> buckets;
  std::set<Call> calls;
  std::uint64_t last_name = 0;
};

bool EventRecorder::State::allowed(const EventNote& note) {
  const std::int64_t at = now();
  const double most = options.object_burst;
  auto [found, fresh] = buckets.try_emplace(object_id(note), Bucket{most, at});
  Bucket& bucket = found->second;
  bucket.tokens +=
      static_cast<double>(at - bucket.refilled) / static_cast<double>(options.object_refill_ns);
  bucket.tokens = std::min(bucket.tokens, most);
  bucket.refilled = at;
  if (bucket.tokens < 1) {
    drop("object");
    return false;
  }
  bucket.tokens -= 1;
  return true;
}

// Forgets what is over, and when that is not enough the oldest.
void EventRecorder::State::make_room() {
  const std::int64_t at = now();
  if (buckets.size() >= options.max_remembered) {
    const std::int64_t full = options.object_refill_ns * options.object_burst;
    std::erase_if(buckets, [&](const auto& entry) { return at - entry.second.refilled > full; });
    if (buckets.size() >= options.max_remembered) buckets.clear();
  }
  if (series.size() < options.max_remembered) return;
  auto forget = [&](std::map<std::string, Series>::iterator gone) {
    if (gone->second.timer != 0) loop.cancel(gone->second.timer);
    return series.erase(gone);
  };
  auto oldest = series.begin();
  for (auto it = series.begin(); it != series.end();) {
    if (at - it->second.last_ticks > options.series_ns && it->second.timer == 0) {
      it = forget(it);
      oldest = series.begin();
      continue;
    }
    if (it->second.last_ticks < oldest->second.last_ticks) oldest = it;
    ++it;
  }
  if (series.size() >= options.max_remembered) forget(oldest);
}

void EventRecorder::State::record(EventNote note) {
  note.note = cut_utf8(std::move(note.note), kMaxNote);
  note.reason = cut_utf8(std::move(note.reason), kMaxWord);
  note.action = cut_utf8(std::move(note.action), kMaxWord);
  const std::string id = object_id(note) + '\0' + (note.warning ? "w" : "n") + note.reason + '\0' +
                         note.action + '\0' + note.note;
  const std::int64_t at = now();
  auto found = series.find(id);
  if (found != series.end() && at - found->second.last_ticks <= options.series_ns) {
    Series& known = found->second;
    ++known.count;
    known.last_ticks = at;
    known.last_wall = loop.wall().now_ns();
    return later(id);
  }
  if (found != series.end()) {
    if (found->second.timer != 0) loop.cancel(found->second.timer);
    series.erase(found);
  }
  if (!room()) return;
  make_room();
  if (!allowed(note)) return;
  Series& fresh = series[id];
  fresh.key = event_key(note, static_cast<std::uint64_t>(loop.wall().now_ns()) + ++last_name);
  fresh.note = std::move(note);
  fresh.last_ticks = at;
  fresh.last_wall = loop.wall().now_ns();
  create(id);
}

void EventRecorder::State::create(const std::string& id) {
  Series& fresh = series[id];
  fresh.under_way = true;
  fresh.write_ticks = now();
  fresh.written = fresh.count;
  auto call = std::make_shared<Call>(0);
  *call = client.create(resources::events(), fresh.key.ns,
                        event_body(fresh.note, fresh.key, options.by, fresh.last_wall), {},
                        [weak = weak_from_this(), id, call](const Answer& answer) {
                          auto self = weak.lock();
                          if (!self) return;
                          self->calls.erase(*call);
                          auto found = self->series.find(id);
                          if (answer.ok()) {
                            if (self->written) self->written->add();
                          } else {
                            self->drop("refused");
                          }
                          if (found == self->series.end()) return;
                          found->second.under_way = false;
                          if (!answer.ok()) {
                            self->series.erase(found);
                          } else if (found->second.count > found->second.written) {
                            self->later(id);
                          }
                        });
  sent(*call);
}

// The second time at once, then with a gap.
void EventRecorder::State::later(const std::string& id) {
  Series& known = series[id];
  if (known.under_way || known.timer != 0) return;
  const std::int64_t wait =
      known.written <= 1 ? 0 : known.write_ticks + options.write_gap_ns - now();
  if (wait <= 0) return update(id);
  known.timer = loop.after(wait, [weak = weak_from_this(), id] {
    auto self = weak.lock();
    if (!self) return;
    auto found = self->series.find(id);
    if (found == self->series.end()) return;
    found->second.timer = 0;
    self->update(id);
  });
}

void EventRecorder::State::update(const std::string& id) {
  Series& known = series[id];
  if (known.count <= known.written || !room() || !allowed(known.note)) return;
  known.under_way = true;
  known.written = known.count;
  known.write_ticks = now();
  text::JsonWriter out;
  out.object([&] {
    out.object("series", [&] {
      out.field("count", known.count);
      out.field("lastObservedTime", micro_time(known.last_wall));
    });
  });
  auto call = std::make_shared<Call>(0);
  *call =
      client.patch(resources::events(), known.key, PatchType::kMerge, std::move(out).take(), {},
                   [weak = weak_from_this(), id, call](const Answer& answer) {
                     auto self = weak.lock();
                     if (!self) return;
                     self->calls.erase(*call);
                     if (answer.ok() && self->written) self->written->add();
                     if (!answer.ok()) self->drop("refused");
                     auto found = self->series.find(id);
                     if (found == self->series.end()) return;
                     found->second.under_way = false;
                     if (answer.not_found()) {
                       self->series.erase(found);  // too old for the server: a new one next time
                     } else if (found->second.count > found->second.written) {
                       self->later(id);
                     }
                   });
  sent(*call);
}

EventRecorder::EventRecorder(Client& client, EventOptions options, MetricsRegistry* metrics)
    : state_(std::make_shared<State>(client, std::move(options))) {
  if (!metrics) return;
  state_->dropped = &metrics->counter({.name = "berth_kube_events_dropped_total",
                                       .help = "Events that were not written, by reason.",
                                       .labels = {"reason"}});
  state_->written = metrics
                        ->counter({.name = "berth_kube_events_written_total",
                                   .help = "Events and series that were written."})
                        .get();
}

EventRecorder::~EventRecorder() {
  for (Call call : state_->calls) state_->client.cancel(call);
  for (auto& [id, series] : state_->series) {
    if (series.timer != 0) state_->loop.cancel(series.timer);
  }
}

void EventRecorder::record(EventNote note) { state_->record(std::move(note)); }

}  // namespace berth::kube
