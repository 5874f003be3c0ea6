#include "edge/kube/client.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "edge/kube/answer.h"
#include "text/json_writer.h"

namespace berth::kube {
namespace {

constexpr std::int64_t kFirstDelay = 500'000'000;
constexpr std::int64_t kLongestDelay = 30'000'000'000;
// A server that asks for more patience than this gets its answer passed on instead.
constexpr std::int64_t kLongestRetryAfter = 60'000'000'000;
// Retries may be at most a fifth of the calls over time, so that a server in trouble is not buried
// under them; the reserve is for bursts.
constexpr double kRetryReserve = 100;
constexpr double kRetryShare = 0.2;

using Query = std::vector<std::pair<std::string, std::string>>;

void add_query(std::string& target, const Query& query) {
  char sign = target.find('?') == std::string::npos ? '?' : '&';
  for (const auto& [name, value] : query) {
    target += sign;
    target += text::percent_encode(name) + "=" + text::percent_encode(value);
    sign = '&';
  }
}

Query write_query(const WriteOptions& options, const std::string& own_manager, bool apply) {
  Query query;
  query.emplace_back("fieldManager", options.manager.empty() ? own_manager : options.manager);
  if (apply && options.force) query.emplace_back("force", "true");
  if (options.dry_run) query.emplace_back("dryRun", "All");
  if (options.strict) query.emplace_back("fieldValidation", "Strict");
  return query;
}

const char* content_type_of(PatchType type) {
  switch (type) {
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kStrategic:
      return "application/strategic-merge-patch+json";
    case PatchType::kApply:
      return "application/apply-patch+yaml";
  }
  return "application/json";
}

std::string delete_body(const DeleteOptions& options) {
  if (options.uid.empty() && options.version.empty() && options.grace_seconds < 0 &&
      options.propagation.empty() && !options.dry_run) {
    return {};
  }
  text::JsonWriter out;
  out.object([&] {
    out.field("apiVersion", "v1");
    out.field("kind", "DeleteOptions");
    if (options.grace_seconds >= 0) out.field("gracePeriodSeconds", options.grace_seconds);
    if (!options.propagation.empty()) out.field("propagationPolicy", options.propagation);
    if (!options.uid.empty() || !options.version.empty()) {
      out.object("preconditions", [&] {
        if (!options.uid.empty()) out.field("uid", options.uid);
        if (!options.version.empty()) out.field("resourceVersion", options.version);
      });
    }
    if (options.dry_run) {
      out.array("dryRun", [&] { out.value("All"); });
    }
  });
  return std::move(out).take();
}

Query list_query(const ListOptions& options) {
  Query query;
  auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) query.emplace_back(name, value);
  };
  add("labelSelector", options.label_selector);
  add("fieldSelector", options.field_selector);
  if (options.limit > 0) add("limit", std::to_string(options.limit));
  add("continue", options.next);
  if (options.next.empty()) {  // a continue token carries its version
    add("resourceVersion", options.version);
    if (!options.version.empty()) add("resourceVersionMatch", options.version_match);
  }
  return query;
}

// "pods" of /api/v1/namespaces/a/pods/b and of /apis/g/v/pods: for a metric's label.
std::string resource_of_target(const std::string& target) {
  std::vector<std::string_view> parts;
  std::string_view path = std::string_view(target).substr(0, target.find('?'));
  while (!path.empty()) {
    std::size_t slash = path.find('/');
    if (slash != 0) parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  std::size_t at = parts.empty() ? 0 : parts[0] == "api" ? 2 : parts[0] == "apis" ? 3 : 0;
  if (at == 0 || at >= parts.size()) return parts.empty() ? "" : std::string(parts[0]);
  if (parts[at] == "namespaces" && at + 2 < parts.size()) at += 2;
  return std::string(parts[at]);
}

}  // namespace

std::string Resource::api_version() const {
  return group.empty() ? version : group + "/" + version;
}

std::string Key::to_string() const { return ns.empty() ? name : ns + "/" + name; }

std::string Client::collection_path(const Resource& resource, const std::string& ns) {
  std::string path = resource.group.empty() ? "/api/" : "/apis/" + resource.group + "/";
  path += resource.version;
  if (resource.namespaced && !ns.empty()) path += "/namespaces/" + text::percent_encode(ns);
  return path + "/" + resource.plural;
}

std::string Client::path_of(const Resource& resource, const Key& key,
                            const std::string& subresource) {
  std::string path = collection_path(resource, key.ns) + "/" + text::percent_encode(key.name);
  if (!subresource.empty()) path += "/" + subresource;
  return path;
}

struct Client::State : std::enable_shared_from_this<Client::State> {
  struct Pending {
    text::HttpRequest request;
    SendOptions send;
    Done done;
    std::string resource;
    bool busy_is_final = false;  // 429 is the answer, not a reason to wait
    int tries = 0;
    Call wire = 0;
    Loop::Timer timer = 0;
    std::int64_t began = 0;
  };
  struct Metrics {
    CounterFamily &requests, &retries, &warnings, &flows;
    HistogramFamily& seconds;
    Counter received, sent, throttled;

    explicit Metrics(MetricsRegistry& registry)
        : requests(registry.counter({.name = "berth_kube_requests_total",
                                     .help = "Calls of the API by verb, resource and status.",
                                     .labels = {"verb", "resource", "code"}})),
          retries(registry.counter({.name = "berth_kube_retries_total",
                                    .help = "Calls that were sent again, by the reason.",
                                    .labels = {"reason"}})),
          warnings(registry.counter({.name = "berth_kube_warnings_total",
                                     .help = "Warning headers in answers of the API.",
                                     .labels = {"resource"}})),
          flows(registry.counter({.name = "berth_kube_flow_total",
                                  .help = "Answers by the priority level that served them.",
                                  .labels = {"priority_level_uid"},
                                  .max_series = 50})),
          seconds(registry.histogram({.name = "berth_kube_request_seconds",
                                      .help = "From the call to its last answer, retries included.",
                                      .labels = {"verb"},
                                      .buckets = {.001, .005, .02, .1, .5, 2, 10, 60}})),
          received(registry
                       .counter({.name = "berth_kube_received_bytes_total",
                                 .help = "Bytes of answers and streams, after decompression."})
                       .get()),
          sent(registry
                   .counter(
                       {.name = "berth_kube_sent_bytes_total", .help = "Bytes of request bodies."})
                   .get()),
          throttled(registry
                        .counter({.name = "berth_kube_throttled_total",
                                  .help = "Calls that waited for our own rate limit."})
                        .get()) {}
  };

  State(Transport& transport_in, Loop& loop_in, Random random_in, ClientOptions options_in)
      : transport(transport_in),
        loop(loop_in),
        random(random_in),
        options(std::move(options_in)),
        tokens(options.burst > 0 ? options.burst : 1) {}

  Call start(text::HttpRequest request, const SendOptions& send, bool busy_is_final, Done done);
  void launch(Call id);
  void answered(Call id, const text::HttpResponse& response, const TransportError* error);
  std::optional<std::int64_t> retry_delay(const Pending& pending, const Answer& answer,
                                          const TransportError* error);
  void count(const Pending& pending, const text::HttpResponse& response, const Answer& answer);
  std::int64_t throttle();  // how long the next call has to wait
  Call open_stream(text::HttpRequest request, const StreamOptions& stream_options,
                   StreamHandler handler);
  text::HttpRequest request(const char* method, std::string target, const Query& query,
                            std::string body = {}, const char* type = "application/json") const;

  Transport& transport;
  Loop& loop;
  Random random;
  const ClientOptions options;
  std::optional<Metrics> metrics;
  std::unordered_map<Call, Pending> calls;
  std::unordered_map<Call, Call> streams;  // ours to the transport's
  Call last = 0;
  double tokens;
  std::int64_t refilled = 0;
  double retry_tokens = kRetryReserve;
};

text::HttpRequest Client::State::request(const char* method, std::string target, const Query& query,
                                         std::string body, const char* type) const {
  text::HttpRequest request{method, std::move(target), {}, std::move(body)};
  add_query(request.target, query);
  request.headers.push_back({"Accept", "application/json"});
  if (!request.body.empty()) request.headers.push_back({"Content-Type", type});
  return request;
}

Call Client::State::start(text::HttpRequest request, const SendOptions& send, bool busy_is_final,
                          Done done) {
  Call id = ++last;
  if (!text::find_header(request.headers, "User-Agent")) {
    request.headers.push_back({"User-Agent", options.user_agent});
  }
  Pending& pending = calls[id];
  pending.resource = resource_of_target(request.target);
  pending.request = std::move(request);
  pending.send = send;
  pending.done = std::move(done);
  pending.busy_is_final = busy_is_final;
  pending.began = loop.monotonic().ticks_ns();
  retry_tokens = std::min(kRetryReserve, retry_tokens + kRetryShare);
  std::int64_t wait = send.urgent ? 0 : throttle();
  if (wait <= 0) {
    launch(id);
    return id;
  }
  if (metrics) metrics->throttled.add();
  pending.timer = loop.after(wait, [weak = weak_from_this(), id] {
    if (auto self = weak.lock()) self->launch(id);
  });
  return id;
}

std::int64_t Client::State::throttle() {
  if (options.qps <= 0) return 0;
  std::int64_t now = loop.monotonic().ticks_ns();
  double burst = std::max(options.burst, 1);
  if (refilled != 0) {
    tokens = std::min(burst, tokens + static_cast<double>(now - refilled) * 1e-9 * options.qps);
  }
  refilled = now;
  tokens -= 1;
  return tokens >= 0 ? 0 : static_cast<std::int64_t>(-tokens / options.qps * 1e9);
}

void Client::State::launch(Call id) {
  auto found = calls.find(id);
  if (found == calls.end()) return;
  Pending& pending = found->second;
  pending.timer = 0;
  ++pending.tries;
  if (metrics) metrics->sent.add(pending.request.body.size());
  pending.wire = transport.send(pending.request, pending.send,
                                [weak = weak_from_this(), id](const text::HttpResponse& response,
                                                              const TransportError* error) {
                                  if (auto self = weak.lock()) self->answered(id, response, error);
                                });
}

std::optional<std::int64_t> Client::State::retry_delay(const Pending& pending, const Answer& answer,
                                                       const TransportError* error) {
  // Whoever sends urgent calls has a deadline and tries again by itself.
  if (pending.send.urgent || pending.tries >= options.max_tries || retry_tokens < 1) return {};
  const bool reads = pending.request.method == "GET" || pending.request.method == "HEAD";
  const char* reason = nullptr;
  if (error) {
    if (reads || !error->maybe_carried_out) reason = "connection";
  } else if (answer.status == 429) {
    if (!pending.busy_is_final) reason = "429";
  } else if ((answer.status == 503 || answer.status == 504) && answer.retry_after_ns > 0) {
    reason = answer.status == 503 ? "503" : "504";
  }
  if (!reason || answer.retry_after_ns > kLongestRetryAfter) return {};
  retry_tokens -= 1;
  if (metrics) metrics->retries.with({reason}).add();
  std::int64_t back_off = kFirstDelay << std::min(pending.tries - 1, 10);
  std::int64_t delay = std::max(answer.retry_after_ns, std::min(back_off, kLongestDelay));
  return delay + static_cast<std::int64_t>(random.unit() * 0.5 * static_cast<double>(delay));
}

void Client::State::count(const Pending& pending, const text::HttpResponse& response,
                          const Answer& answer) {
  if (!metrics) return;
  const std::string code = response.status == 0 ? "none" : std::to_string(response.status);
  metrics->requests.with({pending.request.method, pending.resource, code}).add();
  metrics->received.add(response.body.size());
  if (!answer.warnings.empty()) {
    metrics->warnings.with({pending.resource}).add(answer.warnings.size());
  }
  auto level = text::find_header(response.headers, "X-Kubernetes-PF-PriorityLevel-UID");
  if (level) metrics->flows.with({std::string(*level)}).add();
}

void Client::State::answered(Call id, const text::HttpResponse& response,
                             const TransportError* error) {
  auto found = calls.find(id);
  if (found == calls.end()) return;
  Pending& pending = found->second;
  pending.wire = 0;
  Answer answer = error ? read_failure(*error) : read_answer(response);
  count(pending, response, answer);
  if (auto delay = retry_delay(pending, answer, error)) {
    pending.timer = loop.after(*delay, [weak = weak_from_this(), id] {
      if (auto self = weak.lock()) self->launch(id);
    });
    return;
  }
  if (metrics) {
    double ns = static_cast<double>(loop.monotonic().ticks_ns() - pending.began);
    metrics->seconds.with({pending.request.method}).observe(ns * 1e-9);
  }
  Done done = std::move(pending.done);
  calls.erase(found);
  if (done) done(std::move(answer));
}

Call Client::State::open_stream(text::HttpRequest request, const StreamOptions& stream_options,
                                StreamHandler handler) {
  Call id = ++last;
  request.headers.push_back({"User-Agent", options.user_agent});
  auto shared = std::make_shared<StreamHandler>(std::move(handler));
  StreamHandler wire;
  wire.on_head = [weak = weak_from_this(), shared, id](const text::HttpResponse& head) {
    auto self = weak.lock();
    if (self && self->streams.contains(id) && shared->on_head) shared->on_head(head);
  };
  wire.on_data = [weak = weak_from_this(), shared, id](std::string_view bytes) {
    auto self = weak.lock();
    if (!self || !self->streams.contains(id)) return true;
    if (self->metrics) self->metrics->received.add(bytes.size());
    return !shared->on_data || shared->on_data(bytes);
  };
  wire.on_end = [weak = weak_from_this(), shared, id](const TransportError* error) {
    auto self = weak.lock();
    if (self && self->streams.erase(id) > 0 && shared->on_end) shared->on_end(error);
  };
  streams[id] = transport.stream(std::move(request), stream_options, std::move(wire));
  return id;
}

Client::Client(Transport& transport, Loop& loop, Random random, ClientOptions options,
               MetricsRegistry* metrics)
    : state_(std::make_shared<State>(transport, loop, random, std::move(options))) {
  if (metrics) state_->metrics.emplace(*metrics);
}

Client::~Client() {
  for (auto& [id, pending] : state_->calls) {
    if (pending.wire != 0) state_->transport.cancel(pending.wire);
    if (pending.timer != 0) state_->loop.cancel(pending.timer);
  }
  state_->calls.clear();
  for (auto& [id, wire] : state_->streams) state_->transport.cancel(wire);
  state_->streams.clear();
}

Call Client::get(const Resource& resource, const Key& key, Done done) {
  return raw(state_->request("GET", path_of(resource, key), {}),
             {.timeout_ns = state_->options.timeout_ns}, std::move(done));
}

Call Client::list(const Resource& resource, const ListOptions& options, Done done) {
  // Lists may be long: the server itself takes up to a minute for one.
  return raw(state_->request("GET", collection_path(resource, options.ns), list_query(options)),
             {.timeout_ns = 2 * state_->options.timeout_ns}, std::move(done));
}

Call Client::create(const Resource& resource, const std::string& ns, std::string body,
                    const WriteOptions& options, Done done) {
  return raw(state_->request("POST", collection_path(resource, ns),
                             write_query(options, state_->options.manager, false), std::move(body)),
             {.timeout_ns = state_->options.timeout_ns, .urgent = options.urgent}, std::move(done));
}

Call Client::update(const Resource& resource, const Key& key, std::string body,
                    const WriteOptions& options, Done done) {
  return raw(state_->request("PUT", path_of(resource, key, options.subresource),
                             write_query(options, state_->options.manager, false), std::move(body)),
             {.timeout_ns = state_->options.timeout_ns, .urgent = options.urgent}, std::move(done));
}

Call Client::patch(const Resource& resource, const Key& key, PatchType type, std::string body,
                   const WriteOptions& options, Done done) {
  Query query = write_query(options, state_->options.manager, type == PatchType::kApply);
  return raw(state_->request("PATCH", path_of(resource, key, options.subresource), query,
                             std::move(body), content_type_of(type)),
             {.timeout_ns = state_->options.timeout_ns, .urgent = options.urgent}, std::move(done));
}

Call Client::remove(const Resource& resource, const Key& key, const DeleteOptions& options,
                    Done done) {
  return raw(state_->request("DELETE", path_of(resource, key), {}, delete_body(options)),
             {.timeout_ns = state_->options.timeout_ns}, std::move(done));
}

Call Client::post(const Resource& resource, const Key& key, const std::string& subresource,
                  std::string body, Done done) {
  auto request = state_->request("POST", path_of(resource, key, subresource),
                                 {{"fieldManager", state_->options.manager}}, std::move(body));
  return state_->start(std::move(request), {.timeout_ns = state_->options.timeout_ns},
                       subresource == "eviction", std::move(done));
}

Call Client::raw(text::HttpRequest request, const SendOptions& options, Done done) {
  return state_->start(std::move(request), options, false, std::move(done));
}

Call Client::stream(const Resource& resource, const std::string& ns, const Query& query,
                    const StreamOptions& options, StreamHandler handler) {
  auto request = state_->request("GET", collection_path(resource, ns), query);
  return state_->open_stream(std::move(request), options, std::move(handler));
}

void Client::resume(Call stream) {
  auto found = state_->streams.find(stream);
  if (found != state_->streams.end()) state_->transport.resume(found->second);
}

void Client::cancel(Call call) {
  if (auto found = state_->calls.find(call); found != state_->calls.end()) {
    if (found->second.wire != 0) state_->transport.cancel(found->second.wire);
    if (found->second.timer != 0) state_->loop.cancel(found->second.timer);
    state_->calls.erase(found);
    return;
  }
  auto stream = state_->streams.find(call);
  if (stream == state_->streams.end()) return;
  Call wire = stream->second;
  state_->streams.erase(stream);
  state_->transport.cancel(wire);
}

Loop& Client::loop() { return state_->loop; }
const ClientOptions& Client::options() const { return state_->options; }

}  // namespace berth::kube
