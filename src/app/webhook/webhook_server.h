// The admission webhook over HTTPS, for a real API server; at /convert the one that converts
// Kueue's kinds (app/webhook/webhook_conversion.h).
//
// The certificate is given as files, which are read again every minute, or made and renewed by
// app/webhook/webhook_certificate.h. The configuration that points the API server here is made by
// this program (url) or comes with the manifests (service), and is then left alone but for its
// bundle. On the loop's thread, but serving(), which any thread may call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "control/queue_board.h"
#include "edge/kube/client.h"

namespace berth::app {

struct WebhookServerOptions {
  std::string address = "0.0.0.0";
  std::uint16_t port = 9443;
  std::string url;      // how the API server reaches it: "https://10.0.0.1:9443/mutate", or
  std::string service;  // the name of a Service in secret_namespace
  std::string secret_namespace = "berth-system";
  std::string certificate_file, key_file;                // empty: its own
  std::int64_t authority_ns = 365 * 86'400'000'000'000;  // how long an own authority lives
  std::string scheduler_name = "berth";
  bool manage_all = false;
  bool refuse_bypasses = false;  // control/webhook.h
  std::shared_ptr<const control::QueueBoard> board = nullptr;
};

class WebhookServer {
 public:
  WebhookServer(kube::Client& client, WebhookServerOptions options, const Logger& log,
                MetricsRegistry& metrics);
  ~WebhookServer();
  // started(Status): it listens, or why it never will. What else fails is logged and tried again.
  void start(std::function<void(Status)> started);
  std::uint16_t port() const;  // 0 before it listens
  bool serving() const;        // it listens, with a certificate

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::app
