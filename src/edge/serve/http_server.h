// An HTTP/1.1 server with TLS, on one thread of its own.
//
// What a stranger may cost is bounded: connections, in all and of one address, and descriptors;
// bytes of a head and of a body; bytes of all requests that are not answered and of all answers
// that are not read; seconds in which something has to come. Over a bound somebody gives way who
// does nothing or holds the most: a connection that idles for a new one, the largest unfinished
// request of the address that holds the most (503), the reader who is furthest behind. Each is
// counted (berth_http_connections_cut_total). edge/serve/server_kinds.h has bounds for kinds of
// servers.
//
// Keep-alive and pipelining in order. Handlers are called on the server's thread and must not
// block; they post to a loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/metrics.h"
#include "base/result.h"
#include "edge/serve/exchange.h"

namespace berth::serve {

struct TlsFiles {
  std::string certificate_pem, key_pem;  // contents, not paths
};

struct HttpServerOptions {
  std::string name = "http";          // in metrics
  std::string address = "127.0.0.1";  // "": every one of the machine, IPv6 and IPv4
  std::uint16_t port = 0;             // 0: any free one
  std::optional<TlsFiles> tls;

  std::size_t max_connections = 4'096;
  std::size_t max_connections_per_peer = 4'096;  // by remote address
  std::size_t descriptor_percent = 100;  // of those the process may have, for its connections
  std::size_t spare_descriptors = 0;     // kept for connections when the process has no other left

  std::size_t max_head_bytes = 64 * 1024;
  std::size_t max_body_bytes = 16 * 1024 * 1024;
  // Of the body that belongs to this head, at most max_body_bytes. On the server's thread.
  std::function<std::size_t(const text::HttpRequest& head)> max_body_of = nullptr;
  std::size_t max_request_bytes = 64 * 1024 * 1024;  // of all connections, until they are answered
  std::size_t max_answer_bytes = SIZE_MAX;           // of all connections, not yet sent
  std::size_t max_backlog_bytes = 64 * 1024 * 1024;  // of one stream
  std::size_t max_in_work = 64;                      // requests of one connection
  std::size_t max_unsent_bytes = 4 * 1024 * 1024;    // then no more of its requests are read

  std::int64_t head_timeout_ns = 10'000'000'000;     // from connecting, or a head's first byte
  std::int64_t request_timeout_ns = 30'000'000'000;  // to send a head and body
  std::int64_t min_bytes_per_second = 4'096;         // of a body, after head_timeout_ns
  std::int64_t idle_timeout_ns = 300'000'000'000;    // between requests
  std::int64_t reader_timeout_ns = 300'000'000'000;  // without taking a byte of an answer
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
