#include "embedded/api/local_transport.h"

#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "embedded/api/local_exchange.h"

namespace berth::sim {

namespace api {

// One call, shared by the transport and the exchange that the server holds.
struct LocalCall {
  Loop* loop = nullptr;
  bool is_stream = false;
  kube::Transport::Answered answered;
  kube::StreamHandler handler;
  Loop::Timer timer = 0;
  std::int64_t idle_ns = 0;

  // What the server has said and the client has not heard.
  std::optional<text::HttpResponse> head;
  std::deque<std::shared_ptr<const std::string>> pieces;
  std::size_t backlog = 0;
  std::optional<kube::TransportError> error;
  bool begun = false;
  bool ended = false;     // by the server
  bool finished = false;  // the client heard the end, or cancelled
  bool paused = false;
  bool posted = false;
  std::function<void()> forget;  // takes it out of the transport
  std::function<void()> gone;

  void leave() {  // the client goes
    if (std::exchange(finished, true)) return;
    loop->cancel(std::exchange(timer, 0));
    pieces.clear();
    backlog = 0;
    if (!ended && gone) std::exchange(gone, nullptr)();
    gone = nullptr;
  }
};

namespace {

using LocalCallPtr = std::shared_ptr<LocalCall>;

void pump_local(const LocalCallPtr& call);

void wake_local(const LocalCallPtr& call) {
  if (call->finished || std::exchange(call->posted, true)) return;
  call->loop->post([call] {
    call->posted = false;
    pump_local(call);
  });
}

void arm_idle(const LocalCallPtr& call) {
  if (!call->is_stream || call->idle_ns <= 0) return;
  call->loop->cancel(call->timer);
  call->timer = call->loop->after(call->idle_ns, [weak = std::weak_ptr<LocalCall>(call)] {
    const LocalCallPtr late = weak.lock();
    if (!late || late->finished) return;
    late->timer = 0;
    const kube::TransportError error{"no byte came for too long", false, true};
    const auto on_end = late->handler.on_end;
    late->leave();
    if (late->forget) late->forget();
    if (on_end) on_end(&error);
  });
}

void finish_local(const LocalCallPtr& call) {
  call->finished = true;
  call->gone = nullptr;
  call->loop->cancel(std::exchange(call->timer, 0));
  if (call->forget) call->forget();
}

void pump_answer(const LocalCallPtr& call) {
  if (!call->ended) return;
  text::HttpResponse response;
  if (!call->error && call->head) {
    response = std::move(*call->head);
    for (const auto& piece : call->pieces) response.body += *piece;
  }
  call->pieces.clear();
  finish_local(call);
  if (call->answered) {
    call->answered(std::move(response), call->error ? &*call->error : nullptr);
  }
}

void pump_local(const LocalCallPtr& call) {
  if (call->finished) return;
  if (!call->is_stream) return pump_answer(call);
  if (call->head) {
    const text::HttpResponse head = std::move(*call->head);
    call->head.reset();
    arm_idle(call);
    if (call->handler.on_head) call->handler.on_head(head);
  }
  while (!call->finished && !call->paused && !call->pieces.empty()) {
    const std::shared_ptr<const std::string> piece = std::move(call->pieces.front());
    call->pieces.pop_front();
    call->backlog -= piece->size();
    arm_idle(call);
    if (!piece->empty() && call->handler.on_data && !call->handler.on_data(*piece)) {
      call->paused = true;
    }
  }
  if (call->finished || call->paused || !call->pieces.empty() || !call->ended) return;
  finish_local(call);
  if (call->handler.on_end) call->handler.on_end(call->error ? &*call->error : nullptr);
}

}  // namespace

LocalExchange::~LocalExchange() {
  if (call_->ended || call_->finished) return;
  if (call_->begun) {
    LocalExchange::end();
  } else {
    LocalExchange::respond({500, {}, "the server dropped the request"});
  }
}

void LocalExchange::respond(text::HttpResponse response) {
  if (call_->begun || call_->ended || call_->finished) return;
  begin(std::move(response));
  end();
}

void LocalExchange::begin(text::HttpResponse head) {
  if (std::exchange(call_->begun, true) || call_->finished) return;
  std::string body = std::exchange(head.body, {});
  call_->head = std::move(head);
  if (!body.empty()) {
    if (call_->is_stream) call_->backlog += body.size();  // else it is taken as it comes
    call_->pieces.push_back(std::make_shared<const std::string>(std::move(body)));
  }
  wake_local(call_);
}

void LocalExchange::write(std::shared_ptr<const std::string> bytes) {
  if (call_->ended || call_->finished) return;
  if (call_->is_stream) call_->backlog += bytes->size();
  call_->pieces.push_back(std::move(bytes));
  wake_local(call_);
}

void LocalExchange::end() {
  if (std::exchange(call_->ended, true)) return;
  wake_local(call_);
}

std::size_t LocalExchange::backlog() const { return call_->backlog; }
bool LocalExchange::gone() const { return call_->finished; }

void LocalExchange::on_gone(std::function<void()> gone) {
  if (call_->finished) {
    gone();
  } else {
    call_->gone = std::move(gone);
  }
}

void LocalExchange::abort(text::HttpResponse partial) {
  if (call_->ended || call_->finished) return;
  call_->error = kube::TransportError{"the connection was closed", false, true};
  if (partial.status != 0 && call_->is_stream) begin(std::move(partial));
  end();
}

}  // namespace api

struct LocalTransport::State {
  State(Loop& the_loop, ApiServer& the_server, std::string the_token)
      : loop(the_loop), server(the_server), token(std::move(the_token)) {}
  Loop& loop;
  ApiServer& server;
  std::string token;
  std::map<kube::Call, std::shared_ptr<api::LocalCall>> calls;
  kube::Call last = 0;

  static kube::Call start(const std::shared_ptr<State>& state, text::HttpRequest request,
                          const std::shared_ptr<api::LocalCall>& call) {
    const kube::Call id = ++state->last;
    state->calls[id] = call;
    call->loop = &state->loop;
    const std::weak_ptr<State> weak = state;
    call->forget = [weak, id] {
      if (const auto alive = weak.lock()) alive->calls.erase(id);
    };
    if (!state->token.empty()) {
      request.headers.push_back({"Authorization", "Bearer " + state->token});
    }
    state->loop.post([weak, call, request = std::move(request)]() mutable {
      const auto alive = weak.lock();
      if (!alive || call->finished) return;
      alive->server.handle(std::move(request), std::make_shared<api::LocalExchange>(call));
    });
    return id;
  }
};

LocalTransport::LocalTransport(Loop& loop, ApiServer& server, std::string token)
    : state_(std::make_shared<State>(loop, server, std::move(token))) {}

LocalTransport::~LocalTransport() {
  const auto calls = std::move(state_->calls);
  for (const auto& [id, call] : calls) call->leave();
}

kube::Call LocalTransport::send(text::HttpRequest request, const kube::SendOptions& options,
                                Answered answered) {
  auto call = std::make_shared<api::LocalCall>();
  call->answered = std::move(answered);
  const kube::Call id = State::start(state_, std::move(request), call);
  if (options.timeout_ns > 0) {
    call->timer =
        state_->loop.after(options.timeout_ns, [weak = std::weak_ptr<api::LocalCall>(call)] {
          const auto late = weak.lock();
          if (!late || late->finished) return;
          late->timer = 0;
          const kube::TransportError error{"timed out", false, true};
          const auto tell = late->answered;
          late->leave();
          if (late->forget) late->forget();
          if (tell) tell({}, &error);
        });
  }
  return id;
}

kube::Call LocalTransport::stream(text::HttpRequest request, const kube::StreamOptions& options,
                                  kube::StreamHandler handler) {
  auto call = std::make_shared<api::LocalCall>();
  call->is_stream = true;
  call->handler = std::move(handler);
  call->idle_ns = options.idle_ns;
  const kube::Call id = State::start(state_, std::move(request), call);
  api::arm_idle(call);
  return id;
}

void LocalTransport::resume(kube::Call stream) {
  const auto found = state_->calls.find(stream);
  if (found == state_->calls.end()) return;
  found->second->paused = false;
  api::wake_local(found->second);
}

void LocalTransport::cancel(kube::Call call) {
  const auto found = state_->calls.find(call);
  if (found == state_->calls.end()) return;
  const auto leaving = found->second;
  state_->calls.erase(found);
  leaving->leave();
}

}  // namespace berth::sim
