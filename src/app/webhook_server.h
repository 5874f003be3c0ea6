// The admission webhook over HTTPS, for a real API server: certificates made and renewed by itself,
// and the configuration that points the API server here.
//
// The authority is kept in the Secret berth-webhook, so that all replicas share it; whoever comes
// first makes it. A serving certificate is signed at the start and renewed long before it ends. On
// the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "kube/client.h"

namespace berth::app {

struct WebhookServerOptions {
  std::string address = "0.0.0.0";
  std::uint16_t port = 9443;
  std::string url;  // "https://berth-webhook.berth-system.svc:9443/mutate"
  std::string secret_namespace = "berth-system";
  std::string scheduler_name = "berth";
  bool manage_all = false;
};

// "host:port", "[::1]:9443", ":9443".
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};
Result<HostPort> parse_host_port(const std::string& text);

class WebhookServer {
 public:
  WebhookServer(kube::Client& client, WebhookServerOptions options, const Logger& log,
                MetricsRegistry& metrics);
  ~WebhookServer();
  // started(Status) once: it listens and the API server knows of it, or why not.
  void start(std::function<void(Status)> started);
  std::uint16_t port() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::app
