// A Transport to an ApiServer in the same process and on the same loop: no sockets, no copies of
// streams, and in virtual time the same in every run.
#pragma once

#include <memory>

#include "base/loop.h"
#include "edge/kube/transport.h"
#include "embedded/api/api_server.h"

namespace berth::sim {

class LocalTransport final : public kube::Transport {
 public:
  // The token is sent as a bearer token when it is not empty.
  LocalTransport(Loop& loop, ApiServer& server, std::string token = {});
  ~LocalTransport() override;

  kube::Call send(text::HttpRequest request, const kube::SendOptions& options,
                  Answered answered) override;
  kube::Call stream(text::HttpRequest request, const kube::StreamOptions& options,
                    kube::StreamHandler handler) override;
  void resume(kube::Call stream) override;
  void cancel(kube::Call call) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::sim
