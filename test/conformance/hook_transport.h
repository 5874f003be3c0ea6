// How the conformance server calls admission webhooks.
#pragma once

#include <memory>

#include "base/loop.h"
#include "kube/transport.h"

namespace berth::conformance {

class HookTransport final : public kube::Transport {
 public:
  explicit HookTransport(Loop& loop);
  ~HookTransport() override;

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

}  // namespace berth::conformance
