// An HTTP/1.1 server with TLS, on one thread of its own.
//
// Bounded: connections, bytes of a head and of a body, seconds to send a request, bytes that wait
// for a slow reader (a stream over it is ended: its reader comes back). Keep-alive and pipelining
// in order. Handlers are called on the server's thread and must not block; they post to a loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/metrics.h"
#include "base/result.h"
#include "serve/exchange.h"

namespace berth::serve {

struct TlsFiles {
  std::string certificate_pem, key_pem;  // contents, not paths
};

struct HttpServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free one
  std::optional<TlsFiles> tls;
  std::size_t max_connections = 4'096;
  std::size_t max_head_bytes = 64 * 1024;
  std::size_t max_body_bytes = 16 * 1024 * 1024;
  std::size_t max_backlog_bytes = 64 * 1024 * 1024;  // of one stream
  std::int64_t request_timeout_ns = 30'000'000'000;  // to send a head and body
  std::int64_t idle_timeout_ns = 300'000'000'000;    // between requests
};

class HttpServer {
 public:
  // Listens before it returns; an address in use is an error that says so.
  static Result<std::unique_ptr<HttpServer>> start(HttpServerOptions options, Handler handler,
                                                   MetricsRegistry* metrics = nullptr);
  virtual ~HttpServer() = default;  // stops: connections are closed, the thread is joined

  virtual std::uint16_t port() const = 0;
  // For connections from now on.
  virtual Status set_tls(const TlsFiles& files) = 0;
  // Takes no new connections, ends streams, and waits at most so long for answers under way.
  virtual void drain(std::int64_t at_most_ns) = 0;
};

}  // namespace berth::serve
