// How the conformance server calls admission webhooks: HTTPS to the URL that a configuration names,
// trusting the authority that it gives.
//
// The API server sends a POST whose target is the whole URL; the configuration's caBundle comes in
// the header X-Berth-Ca-Bundle, which is taken off. One CurlTransport per server and authority.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/loop.h"
#include "edge/kube/curl_transport.h"

namespace berth::conformance {

class HookTransport final : public kube::Transport {
 public:
  explicit HookTransport(Loop& loop) : loop_(loop) {}

  kube::Call send(text::HttpRequest request, const kube::SendOptions& options,
                  Answered answered) override;
  // Reviews are whole answers: nobody streams or cancels them.
  kube::Call stream(text::HttpRequest, const kube::StreamOptions&, kube::StreamHandler) override {
    return 0;
  }
  void resume(kube::Call) override {}
  void cancel(kube::Call) override {}

 private:
  kube::CurlTransport& to(const std::string& server, const std::string& authority_pem);

  Loop& loop_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<kube::CurlTransport>> transports_;
};

}  // namespace berth::conformance
