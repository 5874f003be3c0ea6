#include "edge/kube/informer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "edge/kube/answer.h"
#include "edge/kube/copy_store.h"
#include "edge/kube/reflector.h"
#include "edge/kube/watch_line.h"
#include "text/json.h"
#include "text/rfc3339.h"

namespace berth::kube {

struct InformerMetrics {
  Gauge objects, last_heard;
  Counter events, bytes, lists;
  Histogram lag;
  CounterFamily& restarts;

  InformerMetrics(MetricsRegistry& registry, const std::string& resource)
      : objects(registry
                    .gauge({.name = "berth_kube_objects",
                            .help = "Objects in the local copy.",
                            .labels = {"resource"}})
                    .with({resource})),
        last_heard(registry
                       .gauge({.name = "berth_kube_last_heard_seconds",
                               .help = "When list or watch last brought something, Unix time.",
                               .labels = {"resource"}})
                       .with({resource})),
        events(registry
                   .counter({.name = "berth_kube_watch_events_total",
                             .help = "Events of the watch, bookmarks included.",
                             .labels = {"resource"}})
                   .with({resource})),
        bytes(registry
                  .counter({.name = "berth_kube_watch_bytes_total",
                            .help = "Bytes of the watch, after decompression.",
                            .labels = {"resource"}})
                  .with({resource})),
        lists(registry
                  .counter({.name = "berth_kube_lists_total",
                            .help = "Times the whole collection was read.",
                            .labels = {"resource"}})
                  .with({resource})),
        lag(registry
                .histogram({.name = "berth_kube_watch_lag_seconds",
                            .help = "From an object's creation to the event that told of it; "
                                    "the server's clock counts whole seconds.",
                            .labels = {"resource"},
                            .buckets = {1, 2, 5, 15, 60, 300}})
                .with({resource})),
        restarts(registry.counter({.name = "berth_kube_watch_restarts_total",
                                   .help = "Lists and watches that were begun again, by reason.",
                                   .labels = {"resource", "reason"}})) {}
};

namespace {

constexpr std::size_t kMaxLine = 256 * 1024 * 1024;  // of one event
constexpr std::size_t kMaxErrorBody = 64 * 1024;
constexpr std::size_t kTellEvery = 64;  // items of a list: what waits to be told is held

std::string resource_label(const Resource& resource) {
  return resource.group.empty() ? resource.plural : resource.plural + "." + resource.group;
}

std::string_view member_text(const text::Value& object, std::string_view outer,
                             std::string_view key) {
  const text::Value* at = object.find(outer);
  const text::Value* found = at ? at->find(key) : nullptr;
  return found ? found->string() : std::string_view{};
}

WireFailure failure_of(const Answer& answer) {
  WireFailure failure;
  failure.status = answer.status;
  failure.retry_after_ns = answer.retry_after_ns;
  failure.too_large = too_large_version(answer.body.root());
  return failure;
}

WireFailure failure_of_status(const text::Value& status) {
  Answer answer = read_status(status);
  WireFailure failure;
  failure.status = answer.status;
  if (answer.reason == "Expired" || answer.reason == "Gone") failure.status = 410;
  failure.retry_after_ns = answer.retry_after_ns;
  failure.too_large = too_large_version(status);
  return failure;
}

ReflectorOptions reflector_options(const InformerOptions& options) {
  ReflectorOptions out;
  out.watch_list = options.watch_list;
  out.absent_retry_ns = options.absent_retry_ns;
  return out;
}

}  // namespace

struct Informer::State : std::enable_shared_from_this<Informer::State> {
  State(Client& client_in, Random random, InformerOptions options_in, MetricsRegistry* registry)
      : client(client_in),
        loop(client_in.loop()),
        options(std::move(options_in)),
        store(options),
        reflector(reflector_options(options), random.split(resource_label(options.resource))) {
    if (registry) metrics.emplace(*registry, resource_label(options.resource));
  }

  std::int64_t now() const { return loop.monotonic().ticks_ns(); }
  void heard();
  void deliver();
  void close();
  void follow(const NextStep& next);
  void change(const CopyChange& change);  // begin, replace, absent
  void list(const NextStep& next);
  void listed(Answer answer);
  void watch(const NextStep& next);
  void feed(std::string_view bytes, std::uint64_t of_epoch);
  void line(std::string_view text);
  void watch_ended(const TransportError* error);
  void check_later(std::int64_t ns);
  void observe_lag(const text::Value& object);

  Client& client;
  Loop& loop;
  const InformerOptions options;
  CopyStore store;
  Reflector reflector;
  std::optional<InformerMetrics> metrics;
  bool started = false, stopped = false, absent = false;
  std::int64_t last_heard = 0;
  Call call = 0;            // the list or the stream
  Loop::Timer timer = 0;    // of a wait
  Loop::Timer checker = 0;  // of the first events
  std::uint64_t epoch = 0;  // which list or stream is the present one
  int stream_status = 0;
  std::string buffer;  // of an unfinished line, or of an error's body
};

void Informer::State::heard() {
  last_heard = std::max<std::int64_t>(now(), 1);
  if (metrics) metrics->last_heard.set(static_cast<double>(loop.wall().now_ns()) * 1e-9);
}

void Informer::State::deliver() {
  if (metrics) metrics->objects.set(static_cast<double>(store.size()));
  auto self = shared_from_this();  // a handler may destroy the Informer
  store.deliver([this] { return stopped; });
}

void Informer::State::close() {
  ++epoch;
  if (call != 0) client.cancel(std::exchange(call, 0));
  if (timer != 0) loop.cancel(std::exchange(timer, 0));
  if (checker != 0) loop.cancel(std::exchange(checker, 0));
  buffer.clear();
  stream_status = 0;
}

void Informer::State::follow(const NextStep& next) {
  if (next.kind == NextStep::kGoOn) {
    if (next.check_ns > 0) check_later(next.check_ns);
    return;
  }
  close();
  const bool counts = next.kind != NextStep::kWait || std::string_view(next.why) == "absent";
  if (metrics && counts) {
    metrics->restarts.with({resource_label(options.resource), next.why}).add();
  }
  switch (next.kind) {
    case NextStep::kList:
      list(next);
      break;
    case NextStep::kWatch:
      watch(next);
      break;
    default:
      timer = loop.after(next.wait_ns, [weak = weak_from_this()] {
        auto self = weak.lock();
        if (!self) return;
        self->timer = 0;
        self->follow(self->reflector.timer(self->now()).next);
      });
  }
}

void Informer::State::change(const CopyChange& change) {
  if (change.begin) store.begin();
  if (change.replace) {
    absent = false;
    store.replace(reflector.version(), now());
    if (metrics) metrics->lists.add();
  }
  if (change.absent) {
    absent = true;
    store.clear(now());
  }
}

// ---- lists ---------------------------------------------------------------------------------

void Informer::State::list(const NextStep& next) {
  ListOptions ask;
  ask.ns = options.ns;
  ask.label_selector = options.label_selector;
  ask.field_selector = options.field_selector;
  ask.version = next.version;
  ask.limit = next.limit;
  ask.next = next.next;
  call = client.list(options.resource, ask, [weak = weak_from_this()](Answer answer) {
    auto self = weak.lock();
    if (self) self->listed(std::move(answer));
  });
}

void Informer::State::listed(Answer answer) {
  auto self = shared_from_this();  // a handler may destroy the Informer
  call = 0;
  ReflectorStep step;
  if (answer.ok()) {
    heard();
    const text::Value& root = answer.body.root();
    std::string_view version = member_text(root, "metadata", "resourceVersion");
    const text::Value* items = root.find("items");
    std::string_view kind = root.find("kind") ? root.find("kind")->string() : "";
    if (kind.ends_with("List")) kind.remove_suffix(4);
    const text::Value* api = root.find("apiVersion");
    if (items && !items->is_array() && !items->is_null()) version = {};
    if (items && !version.empty()) {
      std::size_t count = 0;
      for (const text::Value& item : items->items()) {
        if (!store.collect_item(item, api ? api->string() : "", kind, now())) version = {};
        if (++count % kTellEvery == 0) deliver();
        if (stopped) return;
      }
    }
    step = reflector.listed(now(), version, member_text(root, "metadata", "continue"));
  } else {
    WireFailure failure = failure_of(answer);
    failure.refused = false;
    step = reflector.list_failed(now(), failure);
  }
  change(step.change);
  follow(step.next);
  deliver();
}

// ---- watches -------------------------------------------------------------------------------

void Informer::State::check_later(std::int64_t ns) {
  if (checker != 0) loop.cancel(checker);
  checker = loop.after(ns, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self) return;
    self->checker = 0;
    ReflectorStep step = self->reflector.check_initial(self->now());
    self->change(step.change);
    self->follow(step.next);
  });
}

void Informer::State::watch(const NextStep& next) {
  std::vector<std::pair<std::string, std::string>> query = {
      {"watch", "1"},
      {"allowWatchBookmarks", "true"},
      {"timeoutSeconds", std::to_string(next.timeout_s)},
  };
  if (!next.version.empty()) query.emplace_back("resourceVersion", next.version);
  if (next.send_initial) {
    query.emplace_back("sendInitialEvents", "true");
    query.emplace_back("resourceVersionMatch", "NotOlderThan");
  }
  if (!options.label_selector.empty()) query.emplace_back("labelSelector", options.label_selector);
  if (!options.field_selector.empty()) query.emplace_back("fieldSelector", options.field_selector);
  const std::uint64_t of_epoch = epoch;
  StreamHandler handler;
  handler.on_head = [weak = weak_from_this(), of_epoch](const text::HttpResponse& head) {
    auto self = weak.lock();
    if (!self || self->epoch != of_epoch) return;
    self->heard();
    self->stream_status = head.status;
    if (head.status >= 200 && head.status < 300) self->reflector.watch_opened(self->now());
  };
  handler.on_data = [weak = weak_from_this(), of_epoch](std::string_view bytes) {
    auto self = weak.lock();
    if (self && self->epoch == of_epoch) self->feed(bytes, of_epoch);
    return true;
  };
  handler.on_end = [weak = weak_from_this(), of_epoch](const TransportError* error) {
    auto self = weak.lock();
    if (self && self->epoch == of_epoch) self->watch_ended(error);
  };
  if (next.check_ns > 0) check_later(next.check_ns);
  call = client.stream(options.resource, options.ns, query, {.idle_ns = next.idle_ns},
                       std::move(handler));
}

void Informer::State::feed(std::string_view bytes, std::uint64_t of_epoch) {
  heard();
  if (metrics) metrics->bytes.add(bytes.size());
  if (stream_status < 200 || stream_status >= 300) {
    if (buffer.size() < kMaxErrorBody) buffer += bytes.substr(0, kMaxErrorBody - buffer.size());
    return;
  }
  while (!bytes.empty() && epoch == of_epoch && !stopped) {
    std::size_t newline = bytes.find('\n');
    if (newline == std::string_view::npos) {
      buffer += bytes;
      if (buffer.size() > kMaxLine) follow(reflector.unreadable(now()).next);
      break;
    }
    if (buffer.empty()) {
      line(bytes.substr(0, newline));
    } else {
      buffer += bytes.substr(0, newline);
      std::string whole = std::exchange(buffer, {});
      line(whole);
    }
    bytes.remove_prefix(newline + 1);
  }
  if (!stopped) deliver();
}

void Informer::State::observe_lag(const text::Value& object) {
  if (!metrics || !store.synced()) return;
  auto created = text::parse_rfc3339(member_text(object, "metadata", "creationTimestamp"));
  if (!created.ok()) return;
  std::int64_t lag = loop.wall().now_ns() - *created;
  metrics->lag.observe(static_cast<double>(std::max<std::int64_t>(lag, 0)) * 1e-9);
}

void Informer::State::line(std::string_view text) {
  if (text.empty() || text == "\r") return;
  auto event = read_watch_line(text);
  if (metrics) metrics->events.add();
  if (!event.ok()) {
    ReflectorStep step = reflector.unreadable(now());
    change(step.change);
    follow(step.next);
    return;
  }
  const text::Value& object = event->object.root();
  WireFailure failure;
  if (event->type == WatchType::kError) failure = failure_of_status(object);
  ReflectorStep step = reflector.event(now(), event->type, object, failure);
  const bool deleted = event->type == WatchType::kDeleted;
  if (step.change.collect) {
    if (deleted) {
      store.uncollect(object);
    } else {
      store.collect(std::move(event->object), now());
    }
  }
  change(step.change);
  if (step.change.apply) {
    if (event->type == WatchType::kAdded) observe_lag(object);
    if (deleted) {
      store.remove(std::move(event->object));
    } else {
      store.put(std::move(event->object), now());
    }
  }
  follow(step.next);
}

void Informer::State::watch_ended(const TransportError* error) {
  call = 0;
  ReflectorStep step;
  if (stream_status == 0) {
    WireFailure failure;
    failure.refused = error && error->refused;
    step = reflector.watch_failed(now(), failure);
  } else if (stream_status < 200 || stream_status >= 300) {
    WireFailure failure;
    if (auto status = text::parse_json(buffer); status.ok()) {
      failure = failure_of_status(status->root());
    }
    failure.status = stream_status;
    step = reflector.watch_failed(now(), failure);
  } else {
    step = reflector.watch_ended(now(), error != nullptr || !buffer.empty());
  }
  change(step.change);
  follow(step.next);
  deliver();
}

// ---- the outside ---------------------------------------------------------------------------

Informer::Informer(Client& client, Random random, InformerOptions options, MetricsRegistry* metrics)
    : state_(std::make_shared<State>(client, random, std::move(options), metrics)) {}

Informer::~Informer() {
  state_->stopped = true;
  state_->close();
}

int Informer::add_index(IndexOf index_of) { return state_->store.add_index(std::move(index_of)); }

void Informer::add_handler(Handler handler) {
  state_->store.add_handler(std::move(handler));
  state_->deliver();
}

void Informer::on_synced(const std::function<void()>& synced) {
  const bool already = state_->store.synced();
  state_->store.add_synced(synced);
  if (already) synced();
}

void Informer::start() {
  if (std::exchange(state_->started, true)) return;
  ReflectorStep step = state_->reflector.start();
  state_->change(step.change);
  state_->follow(step.next);
}

bool Informer::synced() const { return state_->store.synced(); }
bool Informer::absent() const { return state_->absent; }
std::size_t Informer::size() const { return state_->store.size(); }
ObjectPtr Informer::find(const Key& key) const { return state_->store.find(key); }
std::vector<ObjectPtr> Informer::all() const { return state_->store.all(); }
std::vector<ObjectPtr> Informer::by_index(int index, std::string_view name) const {
  return state_->store.by_index(index, name);
}
const std::string& Informer::version() const { return state_->reflector.version(); }
std::int64_t Informer::last_heard_ticks() const { return state_->last_heard; }

void Informer::absorb(text::Document written) {
  state_->store.absorb(std::move(written), state_->reflector.version(), state_->now());
  state_->deliver();
}

void Informer::absorb_removed(const Key& key, std::string_view uid) {
  state_->store.absorb_removed(key, uid);
  state_->deliver();
}

const InformerOptions& Informer::options() const { return state_->options; }

}  // namespace berth::kube
