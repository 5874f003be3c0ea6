#include "conformance/hook_transport.h"

namespace berth::conformance {

struct HookTransport::State {
  explicit State(Loop& on) : loop(on) {}
  Loop& loop;
};

HookTransport::HookTransport(Loop& loop) : state_(std::make_shared<State>(loop)) {}
HookTransport::~HookTransport() = default;

kube::Call HookTransport::send(text::HttpRequest, const kube::SendOptions&, Answered answered) {
  state_->loop.post([answered = std::move(answered)] {
    const kube::TransportError error{.message = "webhooks are not called here yet"};
    answered({}, &error);
  });
  return 1;
}

kube::Call HookTransport::stream(text::HttpRequest, const kube::StreamOptions&,
                                 kube::StreamHandler) {
  return 0;
}
void HookTransport::resume(kube::Call) {}
void HookTransport::cancel(kube::Call) {}

}  // namespace berth::conformance
