// What goes wrong on purpose, between the wire and the server.
#include <utility>

#include "embedded/api/local_exchange.h"
#include "embedded/api/server.h"

namespace berth::sim::api {

namespace {

// The connection ends without a proper answer. Over HTTP a head that promises more than follows is
// the nearest thing to it.
void break_off(serve::Exchange& exchange, text::HttpResponse partial) {
  if (auto* local = dynamic_cast<LocalExchange*>(&exchange))
    return local->abort(std::move(partial));
  if (partial.status == 0) partial.status = 502;
  partial.headers.push_back({"Connection", "close"});
  exchange.begin(std::move(partial));
  exchange.end();
}

// Passes on what comes, except for the one thing that goes wrong.
class FaultyExchange final : public serve::Exchange {
 public:
  FaultyExchange(std::shared_ptr<serve::Exchange> next, ApiFault::Kind kind)
      : next_(std::move(next)), kind_(kind) {}

  void respond(text::HttpResponse response) override {
    if (kind_ == ApiFault::Kind::kTruncate) {
      response.body.resize(response.body.size() / 2);
      return break_off(*next_, std::move(response));
    }
    if (kind_ == ApiFault::Kind::kDropAfter) return break_off(*next_, {});
    next_->respond(std::move(response));
  }
  void begin(text::HttpResponse head) override {
    if (kind_ == ApiFault::Kind::kTruncate || kind_ == ApiFault::Kind::kDropAfter) {
      broken_ = true;
      return break_off(*next_, {});
    }
    next_->begin(std::move(head));
  }
  void write(std::shared_ptr<const std::string> bytes) override {
    if (!broken_) next_->write(std::move(bytes));
  }
  void end() override {
    if (!broken_) next_->end();
  }
  std::size_t backlog() const override { return next_->backlog(); }
  bool gone() const override { return next_->gone(); }
  void on_gone(std::function<void()> gone) override { next_->on_gone(std::move(gone)); }

 private:
  std::shared_ptr<serve::Exchange> next_;
  ApiFault::Kind kind_;
  bool broken_ = false;
};

// Takes the first answer of a request that is carried out twice, and says that it came.
class FirstAnswer final : public serve::Exchange {
 public:
  explicit FirstAnswer(std::function<void()> then) : then_(std::move(then)) {}
  void respond(text::HttpResponse) override { tell(); }
  void begin(text::HttpResponse) override { tell(); }
  void write(std::shared_ptr<const std::string>) override {}
  void end() override {}
  std::size_t backlog() const override { return 0; }
  bool gone() const override { return false; }
  void on_gone(std::function<void()>) override {}

 private:
  void tell() {
    if (then_) std::exchange(then_, nullptr)();
  }
  std::function<void()> then_;
};

ApiError refusal(int status) {
  switch (status) {
    case 409:
      return modified({"", "objects"}, "fault");
    case 410:
      return expired("too old resource version: injected");
    case 429:
      return too_many_requests("too many requests, please try again later", 1);
    default: {
      ApiError error = internal_error("an injected fault");
      error.code = status >= 400 ? status : 500;
      if (status == 503) error.reason = "ServiceUnavailable";
      return error;
    }
  }
}

}  // namespace

void Server::handle_with_faults(text::HttpRequest http, std::shared_ptr<serve::Exchange> exchange) {
  const ApiFault fault = fault_hook ? fault_hook(http) : ApiFault{};
  switch (fault.kind) {
    case ApiFault::Kind::kNone:
      return handle(std::move(http), exchange);
    case ApiFault::Kind::kDelay:
      loop.after(fault.delay_ns,
                 [this, weak = std::weak_ptr<Server*>(self), http = std::move(http), exchange] {
                   if (weak.lock()) handle(http, exchange);
                 });
      return;
    case ApiFault::Kind::kRefuse: {
      Request request;
      request.exchange = exchange;
      return request.fail(refusal(fault.status));
    }
    case ApiFault::Kind::kDropBefore:
      return break_off(*exchange, {});
    case ApiFault::Kind::kDropAfter:
    case ApiFault::Kind::kTruncate:
      return handle(std::move(http),
                    std::make_shared<FaultyExchange>(std::move(exchange), fault.kind));
    case ApiFault::Kind::kDuplicate: {
      if (http.method == "GET") return handle(std::move(http), exchange);
      const text::HttpRequest again = http;
      return handle(std::move(http), std::make_shared<FirstAnswer>([this, again, exchange] {
                      later([this, again, exchange] { handle(again, exchange); });
                    }));
    }
    case ApiFault::Kind::kStale: {
      auto request = std::make_shared<Request>();
      request->http = std::move(http);
      request->exchange = std::move(exchange);
      request->stale = true;
      return dispatch(request);
    }
    case ApiFault::Kind::kEndStreams:
      hub.end_all();
      return handle(std::move(http), exchange);
    case ApiFault::Kind::kCompact:
      storage.forget_history();
      return handle(std::move(http), exchange);
  }
}

}  // namespace berth::sim::api
