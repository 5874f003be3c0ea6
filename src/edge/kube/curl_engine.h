// The curl thread: takes transfers, runs them all at once, reports what comes. Only for
// curl_transport.cc; curl itself stays in curl_engine.cc.
//
// start(), resume(), cancel() and the destructor are for one thread; the reports are called on the
// engine's thread and must not wait for anything.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/metrics.h"
#include "edge/kube/credentials.h"
#include "edge/kube/curl_transport.h"

namespace berth::kube {

// How much of a stream waits for its reader.
struct StreamFlow {
  std::atomic<std::size_t> waiting{0};
  std::atomic<bool> paused{false};
};

struct TransferOrder {
  Call id = 0;
  text::HttpRequest request;
  std::int64_t timeout_ns = 0;
  bool urgent = false;
  std::shared_ptr<StreamFlow> flow;  // null: unary
};

struct EngineReports {
  std::function<void(Call, text::HttpResponse)> answered;
  std::function<void(Call, text::HttpResponse)> head;
  std::function<void(Call, std::string)> data;
  std::function<void(Call)> ended;                   // well; streams
  std::function<void(Call, TransportError)> failed;  // both kinds
};

class CurlEngine {
 public:
  CurlEngine(const MonotonicClock& monotonic, const WallClock& wall, Config config,
             Environment environment, CurlOptions options, MetricsRegistry* metrics,
             EngineReports reports);
  ~CurlEngine();
  CurlEngine(const CurlEngine&) = delete;
  CurlEngine& operator=(const CurlEngine&) = delete;

  void start(TransferOrder order);
  void resume(Call id);  // of a stream whose flow was paused
  void cancel(Call id);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::kube
