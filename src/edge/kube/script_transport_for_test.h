// A Transport whose other side is the test: it sees every request and says what comes back.
//
// Answers are posted to the loop, as the promises of edge/kube/transport.h ask for; a cancelled
// call hears nothing. Requests are numbered from 0 in the order they were made.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "base/loop.h"
#include "edge/kube/transport.h"

namespace berth::kube {

class ScriptTransport final : public Transport {
 public:
  struct Asked {
    text::HttpRequest request;
    SendOptions send;
    StreamOptions stream;
    Answered answered;
    StreamHandler handler;
    bool is_stream = false;
    bool open = true;  // nothing final was heard yet
    bool cancelled = false;

    std::string query(std::string_view name) const {  // "-": not there
      auto target = text::parse_http_target(request.target);
      auto value = target.ok() ? target->get(name) : std::nullopt;
      return value ? std::string(*value) : "-";
    }
    std::string path() const { return request.target.substr(0, request.target.find('?')); }
  };

  explicit ScriptTransport(Loop& loop) : loop_(loop) {}

  Call send(text::HttpRequest request, const SendOptions& options, Answered answered) override {
    asked.push_back({std::move(request), options, {}, std::move(answered), {}});
    return asked.size();
  }
  Call stream(text::HttpRequest request, const StreamOptions& options,
              StreamHandler handler) override {
    asked.push_back({std::move(request), {}, options, {}, std::move(handler), true});
    return asked.size();
  }
  void resume(Call call) override { resumed.push_back(call); }
  void cancel(Call call) override {
    if (call == 0 || call > asked.size()) return;
    asked[call - 1].cancelled = true;
    asked[call - 1].open = false;
  }

  // ---- what the test says ----
  void answer(std::size_t number, int status, std::string body = {},
              text::HttpHeaders headers = {}) {
    loop_.post(
        [this, number, response = text::HttpResponse{status, std::move(headers), std::move(body)}] {
          Asked& to = asked[number];
          if (!to.open) return;
          to.open = false;
          auto answered = to.answered;  // asked may grow
          answered(response, nullptr);
        });
  }
  void fail(std::size_t number, TransportError error) {
    loop_.post([this, number, error] {
      Asked& to = asked[number];
      if (!to.open) return;
      to.open = false;
      if (to.is_stream) {
        auto handler = to.handler;
        handler.on_end(&error);
      } else {
        auto answered = to.answered;
        answered({}, &error);
      }
    });
  }
  void head(std::size_t number, int status = 200) {
    loop_.post([this, number, status] {
      if (!asked[number].open) return;
      auto on_head = asked[number].handler.on_head;
      on_head({status, {}, {}});
    });
  }
  void data(std::size_t number, std::string bytes) {
    loop_.post([this, number, bytes = std::move(bytes)] {
      if (!asked[number].open) return;
      auto on_data = asked[number].handler.on_data;
      on_data(bytes);
    });
  }
  void end(std::size_t number) {
    loop_.post([this, number] {
      Asked& to = asked[number];
      if (!to.open) return;
      to.open = false;
      auto on_end = to.handler.on_end;
      on_end(nullptr);
    });
  }

  const Asked& last() const { return asked.back(); }

  std::deque<Asked> asked;  // references stay valid
  std::vector<Call> resumed;

 private:
  Loop& loop_;
};

}  // namespace berth::kube
