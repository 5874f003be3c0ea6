// The API server of the embedded cluster: requests in, answers out, state in a Store.
//
// It speaks the Kubernetes API as kube-apiserver 1.37 does for the kinds it serves; the suite in
// test/conformance runs on both. Handled on the loop's thread; a write is answered after the store
// has it, and watchers are told then. Reads see what is committed.
//
// It does not open sockets: app/ puts edge/serve/http_server.h in front, tests and the simulator
// talk to it through LocalTransport (embedded/api/local_transport.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/result.h"
#include "edge/kube/transport.h"
#include "edge/serve/exchange.h"
#include "edge/store/store.h"

namespace berth::sim {

struct ApiServerOptions {
  std::string version = "v1.37.1";  // of Kubernetes, as /version says
  std::string admin_token;          // empty: nobody is asked for one
  std::string root_ca_pem;          // of kube-root-ca.crt in every namespace
  std::size_t history = 20'000;     // changes kept for watches; older ones are 410 Gone
  std::int64_t bookmark_ns = 60'000'000'000;
  std::int64_t event_ttl_ns = 3'600'000'000'000;
  // As kube-apiserver's: of a request, and of an object in the store (there: etcd's bound), of
  // built-in kinds a third more.
  std::size_t max_body_bytes = 3 * 1024 * 1024;
  std::size_t max_object_bytes = 1536 * 1024;
  // How admission webhooks are called: a POST whose target is the whole URL, scheme and host
  // included. None: a configured webhook is a call that failed.
  kube::Transport* webhooks = nullptr;
};

// What goes wrong on purpose; asked once per request, before and after it is carried out.
struct ApiFault {
  enum class Kind : std::uint8_t {
    kNone,
    kDelay,       // by delay_ns
    kRefuse,      // answered with status, not carried out
    kDropBefore,  // the connection ends, not carried out
    kDropAfter,   // carried out, the connection ends without an answer
    kDuplicate,   // carried out twice; the second answer is sent
    kTruncate,    // half of the answer, then the connection ends
    kStale,       // reads: the state of some time ago
    kEndStreams,  // all watches end
    kCompact,     // history is forgotten: watches from older versions get 410
  };
  Kind kind = Kind::kNone;
  int status = 0;
  std::int64_t delay_ns = 0;
};
using FaultHook = std::function<ApiFault(const text::HttpRequest&)>;

class ApiServer {
 public:
  ApiServer(Loop& loop, store::Store& store, Random random, ApiServerOptions options = {},
            MetricsRegistry* metrics = nullptr);
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  // Reads the store; creates what every cluster has (namespaces, priority classes, the service
  // "kubernetes"). Once, before handle().
  Status start();

  void handle(text::HttpRequest request, std::shared_ptr<serve::Exchange> exchange);

  void set_fault_hook(FaultHook hook);
  // The store failed; the server answers 500 from then on.
  void on_broken(std::function<void(const Error&)> broken);
  // The store has no room: writes are answered 507, reads go on. nullptr: there is room again.
  void on_full(std::function<void(const Error*)> full);

  std::uint64_t version() const;  // the latest committed
  std::size_t objects() const;
  std::size_t streams() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::sim
