// The Exchange of LocalTransport: a request and its answer without a wire. Private to this folder.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "edge/serve/exchange.h"

namespace berth::sim::api {

struct LocalCall;

class LocalExchange final : public serve::Exchange {
 public:
  explicit LocalExchange(std::shared_ptr<LocalCall> call) : call_(std::move(call)) {}
  ~LocalExchange() override;
  LocalExchange(const LocalExchange&) = delete;
  LocalExchange& operator=(const LocalExchange&) = delete;

  void respond(text::HttpResponse response) override;
  void begin(text::HttpResponse head) override;
  void write(std::shared_ptr<const std::string> bytes) override;
  void end() override;
  std::size_t backlog() const override;
  bool gone() const override;
  void on_gone(std::function<void()> gone) override;

  // The connection breaks, after what is given of an answer (status 0: nothing).
  void abort(text::HttpResponse partial);

 private:
  std::shared_ptr<LocalCall> call_;
};

}  // namespace berth::sim::api
