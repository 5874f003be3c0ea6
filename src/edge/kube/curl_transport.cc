#include "edge/kube/curl_transport.h"

#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

#include "edge/kube/curl_engine.h"

namespace berth::kube {

// What the loop's thread knows of each call. The engine's reports come here by post().
struct CurlTransport::State : std::enable_shared_from_this<CurlTransport::State> {
  struct Open {
    Answered answered;
    StreamHandler handler;
    std::shared_ptr<StreamFlow> flow;  // null: unary
    std::int64_t idle_ns = 0;
    std::int64_t heard = 0;
    Loop::Timer idle = 0;
    std::optional<text::HttpResponse> head;  // came, not told
    std::deque<std::string> bytes;           // came, not told
    bool held = false;                       // the handler wants no more for now
    bool over = false;
    std::optional<TransportError> error;  // of the end
  };

  State(Loop& loop_in, std::size_t window_in) : loop(loop_in), window(window_in) {}

  Open* find(Call id) {
    auto found = calls.find(id);
    return found == calls.end() ? nullptr : &found->second;
  }
  void answered(Call id, text::HttpResponse response, const TransportError* error) {
    auto found = calls.find(id);
    if (found == calls.end()) return;
    Answered tell = std::move(found->second.answered);
    calls.erase(found);
    tell(std::move(response), error);
  }
  void failed(Call id, const TransportError& error) {
    Open* open = find(id);
    if (!open) return;
    if (!open->flow) return answered(id, {}, &error);
    open->over = true;
    open->error = error;
    deliver(id);
  }
  void deliver(Call id);
  void watch_idle(Call id, std::int64_t delay);

  Loop& loop;
  const std::size_t window;
  std::unordered_map<Call, Open> calls;
  Call last = 0;
  std::unique_ptr<CurlEngine> engine;
  std::int64_t request_timeout_ns = 0;  // of the configuration; 0: as the caller says
};

// Tells a stream's handler what waits for it. The handler may cancel the stream or end the
// transport, so everything is looked up again after each call.
void CurlTransport::State::deliver(Call id) {
  auto self = shared_from_this();
  while (Open* open = find(id)) {
    if (open->head) {
      text::HttpResponse head = std::move(*open->head);
      open->head.reset();
      auto on_head = open->handler.on_head;
      if (on_head) on_head(head);
      continue;
    }
    if (!open->bytes.empty()) {
      if (open->held) return;
      std::string bytes = std::move(open->bytes.front());
      open->bytes.pop_front();
      auto on_data = open->handler.on_data;
      auto flow = open->flow;
      const bool more = !on_data || on_data(bytes);
      open = find(id);
      if (!open) return;
      open->held = !more;
      open->heard = loop.monotonic().ticks_ns();
      const std::size_t left = flow->waiting.fetch_sub(bytes.size()) - bytes.size();
      if (left <= window / 2 && flow->paused.exchange(false)) engine->resume(id);
      continue;
    }
    if (!open->over) return;
    auto on_end = std::move(open->handler.on_end);
    auto error = std::move(open->error);
    if (open->idle != 0) loop.cancel(open->idle);
    calls.erase(id);
    if (on_end) on_end(error ? &*error : nullptr);
    return;
  }
}

void CurlTransport::State::watch_idle(Call id, std::int64_t delay) {
  Open* open = find(id);
  open->idle = loop.after(delay, [weak = weak_from_this(), id] {
    auto self = weak.lock();
    Open* stream = self ? self->find(id) : nullptr;
    if (!stream) return;
    stream->idle = 0;
    const std::int64_t now = self->loop.monotonic().ticks_ns();
    if (stream->held || !stream->bytes.empty()) stream->heard = now;  // not the server's silence
    const std::int64_t left = stream->heard + stream->idle_ns - now;
    if (left > 0) return self->watch_idle(id, left);
    self->engine->cancel(id);
    self->failed(id, {"the server was silent for too long", false, true});
  });
}

CurlTransport::CurlTransport(Loop& loop, Config config, Environment environment,
                             CurlOptions options, MetricsRegistry* metrics)
    : state_(std::make_shared<State>(loop, options.stream_window)) {
  std::weak_ptr<State> weak = state_;
  auto on_loop = [weak, &loop](auto run) {
    loop.post([weak, run = std::move(run)]() mutable {
      if (auto state = weak.lock()) run(*state);
    });
  };
  EngineReports reports;
  reports.answered = [on_loop](Call id, text::HttpResponse response) {
    on_loop([id, response = std::move(response)](State& state) mutable {
      state.answered(id, std::move(response), nullptr);
    });
  };
  reports.head = [on_loop](Call id, text::HttpResponse head) {
    on_loop([id, head = std::move(head)](State& state) mutable {
      State::Open* open = state.find(id);
      if (!open) return;
      open->heard = state.loop.monotonic().ticks_ns();
      open->head = std::move(head);
      state.deliver(id);
    });
  };
  reports.data = [on_loop](Call id, std::string bytes) {
    on_loop([id, bytes = std::move(bytes)](State& state) mutable {
      State::Open* open = state.find(id);
      if (!open) return;
      open->heard = state.loop.monotonic().ticks_ns();
      open->bytes.push_back(std::move(bytes));
      state.deliver(id);
    });
  };
  reports.ended = [on_loop](Call id) {
    on_loop([id](State& state) {
      if (State::Open* open = state.find(id)) open->over = true;
      state.deliver(id);
    });
  };
  reports.failed = [on_loop](Call id, TransportError error) {
    on_loop([id, error = std::move(error)](State& state) { state.failed(id, error); });
  };
  state_->request_timeout_ns = config.request_timeout_ns;
  state_->engine = std::make_unique<CurlEngine>(loop.monotonic(), loop.wall(), std::move(config),
                                                std::move(environment), std::move(options), metrics,
                                                std::move(reports));
}

CurlTransport::~CurlTransport() {
  for (auto& [id, open] : state_->calls) {
    if (open.idle != 0) state_->loop.cancel(open.idle);
  }
  state_->calls.clear();
  state_->engine.reset();
}

Call CurlTransport::send(text::HttpRequest request, const SendOptions& options, Answered answered) {
  Call id = ++state_->last;
  state_->calls[id].answered = std::move(answered);
  const std::int64_t timeout_ns =
      state_->request_timeout_ns > 0 ? state_->request_timeout_ns : options.timeout_ns;
  state_->engine->start({id, std::move(request), timeout_ns, options.urgent, nullptr});
  return id;
}

Call CurlTransport::stream(text::HttpRequest request, const StreamOptions& options,
                           StreamHandler handler) {
  Call id = ++state_->last;
  State::Open& open = state_->calls[id];
  open.handler = std::move(handler);
  open.flow = std::make_shared<StreamFlow>();
  open.idle_ns = options.idle_ns;
  open.heard = state_->loop.monotonic().ticks_ns();
  state_->engine->start({id, std::move(request), 0, false, open.flow});
  if (options.idle_ns > 0) state_->watch_idle(id, options.idle_ns);
  return id;
}

void CurlTransport::resume(Call stream) {
  State::Open* open = state_->find(stream);
  if (!open || !open->held) return;
  open->held = false;
  state_->loop.post([weak = std::weak_ptr<State>(state_), stream] {
    if (auto state = weak.lock()) state->deliver(stream);
  });
}

void CurlTransport::cancel(Call call) {
  auto found = state_->calls.find(call);
  if (found == state_->calls.end()) return;
  if (found->second.idle != 0) state_->loop.cancel(found->second.idle);
  state_->calls.erase(found);
  state_->engine->cancel(call);
}

}  // namespace berth::kube
