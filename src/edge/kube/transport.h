// The port between the client and the wire: whole answers and streams, by callbacks on the loop.
//
// Implementations: CurlTransport (edge/kube/curl_transport.h) for a server far away, sim/api's
// LocalTransport for the embedded one in the same process. One suite of tests runs on both
// (edge/kube/transport_suite_for_test.h).
//
// Promises of every implementation: callbacks run on the loop's thread and never inside the call
// that asked; each send() is answered exactly once unless it is cancelled; after cancel() nothing
// is heard of the call any more; a stream ends with exactly one on_end. A callback may start and
// cancel calls, its own too.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"
#include "text/http.h"

namespace berth::kube {

using Call = std::uint64_t;  // 0 is none

// What went wrong before there was an answer.
struct TransportError {
  std::string message;             // "connection refused", for people
  bool refused = false;            // nobody listened
  bool maybe_carried_out = false;  // the request may have reached the server
};

struct SendOptions {
  std::int64_t timeout_ns = 30'000'000'000;
  bool urgent = false;  // leases: not held back by our own rate limit
};

struct StreamHandler {
  // The head, with an empty body; when the status is not 2xx the body follows by on_data too.
  std::function<void(const text::HttpResponse&)> on_head;
  // Bytes in order, cut anywhere. False: take no more for now, until resume().
  std::function<bool(std::string_view)> on_data;
  // nullptr: the server ended the stream well.
  std::function<void(const TransportError*)> on_end;
};

struct StreamOptions {
  std::int64_t idle_ns = 0;  // ends with an error after so long without a byte; 0: never
};

class Transport {
 public:
  // Exactly one of the two is meaningful: error == nullptr, or the answer is empty.
  using Answered = std::function<void(text::HttpResponse, const TransportError* error)>;

  virtual ~Transport() = default;
  virtual Call send(text::HttpRequest request, const SendOptions& options, Answered answered) = 0;
  virtual Call stream(text::HttpRequest request, const StreamOptions& options,
                      StreamHandler handler) = 0;
  virtual void resume(Call stream) = 0;
  virtual void cancel(Call call) = 0;
};

}  // namespace berth::kube
