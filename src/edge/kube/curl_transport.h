// The Transport to a server far away: libcurl in one thread of its own, answers on the loop.
//
// Unary calls share kept-alive connections; a stream has a connection of its own, so that one which
// nobody reads for a while holds up no other. TLS is verified, names included, unless the config
// says insecure. Files of the config are read again every minute, and connections made with other
// certificates are not used again. A 401 leads to one attempt with renewed credentials. The body of
// a write is never sent twice: where a kept connection turns out to be dead after it was sent, the
// call ends with maybe_carried_out.
//
// Dead peers: TCP keep-alive after 30 s of silence, given up after 45 s; the deadline of each call;
// idle_ns of a stream.
//
// At most max_at_once unary calls are on the wire, the others wait for their turn in order: servers
// limit the streams of a connection, and libcurl 7.88 forgets calls that had to wait for one.
// Urgent calls do not wait.
//
// Back-pressure: at most about stream_window bytes of a stream wait on our side; then the socket is
// not read until the handler has taken them.
//
// The loop must run in real time on one thread and outlive the transport. On the loop's thread
// alone, the destructor too; it waits for the thread, which never waits for the loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/metrics.h"
#include "edge/kube/config.h"
#include "edge/kube/transport.h"

namespace berth::kube {

struct CurlOptions {
  std::int64_t connect_timeout_ns = 10'000'000'000;
  std::size_t max_answer_bytes = 256 * 1024 * 1024;  // of a unary call
  std::size_t stream_window = 1024 * 1024;
  // Off: with libcurl 7.88 bodies that share a connection stop being sent (seen against
  // kube-apiserver 1.37: of 200 bindings at once one was answered). Bodiless calls would work.
  bool http2 = false;
  std::size_t max_at_once = 64;
  std::vector<std::string> plugins_allowed = {};  // by path or name; empty: any
  std::int64_t plugin_timeout_ns = 60'000'000'000;
};

class CurlTransport final : public Transport {
 public:
  // environment: HTTPS_PROXY, HTTP_PROXY and NO_PROXY where the config names no proxy; what
  // credential plugins inherit.
  CurlTransport(Loop& loop, Config config, Environment environment = {}, CurlOptions options = {},
                MetricsRegistry* metrics = nullptr);
  ~CurlTransport() override;
  CurlTransport(const CurlTransport&) = delete;
  CurlTransport& operator=(const CurlTransport&) = delete;

  Call send(text::HttpRequest request, const SendOptions& options, Answered answered) override;
  Call stream(text::HttpRequest request, const StreamOptions& options,
              StreamHandler handler) override;
  void resume(Call stream) override;
  void cancel(Call call) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::kube
