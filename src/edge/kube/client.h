// Calls of the Kubernetes API: a verb, a resource, a key; the answer comes to a callback.
//
// Retries are done here, and only where they are safe: a read whose connection broke, a call that
// never left, and any call that was answered 429, or 503 or 504 with Retry-After, with back-off,
// jitter and bounds (ClientOptions; over time a fifth of all calls). Not retried: urgent calls,
// whose owner has a deadline, and the 429 of an eviction, which is its answer. Bodies are JSON
// text. An answer that is no JSON ("ok" of /healthz) is in `message`. Everything runs on the loop's
// thread; a Done never runs inside the call that asked, and not after cancel() or the Client's end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "base/metrics.h"
#include "base/random.h"
#include "edge/kube/transport.h"
#include "kinds/kind_table.h"
#include "text/value.h"

namespace berth::kube {

struct Resource {
  std::string group;  // "" is core
  std::string version;
  std::string plural;
  std::string kind;
  bool namespaced = true;

  std::string api_version() const;  // "v1", "batch/v1"
  friend bool operator==(const Resource&, const Resource&) = default;
};

struct Key {
  std::string ns;  // "" for cluster-scoped resources
  std::string name;
  std::string to_string() const;  // "ns/name" or "name"
  friend auto operator<=>(const Key&, const Key&) = default;
};

// What came of a call.
struct Answer {
  int status = 0;                  // 0: no answer came
  std::string reason;              // "NotFound", "Conflict", ...: of the Status object
  std::string message;             // for people
  text::Document body;             // the object; of a failure the Status; null: none, or no JSON
  bool maybe_carried_out = false;  // a write without an answer that may have happened
  std::int64_t retry_after_ns = 0;
  std::vector<std::string> warnings;  // Warning headers

  bool ok() const { return status >= 200 && status < 300; }
  bool not_found() const { return status == 404; }
  bool conflict() const { return status == 409; }
  bool gone() const { return status == 410; }
  Error error() const;  // only when !ok(): "409 Conflict: ..."
};

enum class PatchType : std::uint8_t { kJson, kMerge, kStrategic, kApply };

struct WriteOptions {
  std::string subresource = {};  // "status", "scale", ...
  std::string manager = {};      // empty: the client's own
  bool force = false;            // of an apply: take fields over
  bool dry_run = false;
  bool urgent = false;
  bool strict = false;  // fieldValidation=Strict
};

struct DeleteOptions {
  std::string uid = {}, version = {};  // preconditions
  std::int64_t grace_seconds = -1;     // -1: the object's own
  std::string propagation = {};        // "Background", "Foreground", "Orphan"
  bool dry_run = false;
};

struct ListOptions {
  std::string ns = {};  // "": all
  std::string label_selector = {}, field_selector = {};
  std::string version = {};        // resourceVersion
  std::string version_match = {};  // "NotOlderThan", "Exact"
  int limit = 0;
  std::string next = {};  // continue
};

struct ClientOptions {
  std::string user_agent = "berth";
  std::string manager = "berth";
  double qps = 0;  // our own limit; 0: none. Urgent calls pass it.
  int burst = 0;
  int max_tries = 5;
  std::int64_t timeout_ns = 30'000'000'000;
};

class Client {
 public:
  using Done = std::function<void(Answer)>;

  Client(Transport& transport, Loop& loop, Random random, ClientOptions options = {},
         MetricsRegistry* metrics = nullptr);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Call get(const Resource& resource, const Key& key, Done done);
  Call list(const Resource& resource, const ListOptions& options, Done done);  // one page
  Call create(const Resource& resource, const std::string& ns, std::string body,
              const WriteOptions& options, Done done);
  Call update(const Resource& resource, const Key& key, std::string body,
              const WriteOptions& options, Done done);
  Call patch(const Resource& resource, const Key& key, PatchType type, std::string body,
             const WriteOptions& options, Done done);
  Call remove(const Resource& resource, const Key& key, const DeleteOptions& options, Done done);
  // POST to a subresource: binding, eviction.
  Call post(const Resource& resource, const Key& key, const std::string& subresource,
            std::string body, Done done);
  Call raw(text::HttpRequest request, const SendOptions& options, Done done);
  // A watch as it comes; edge/kube/reflector.h gives it sense.
  Call stream(const Resource& resource, const std::string& ns,
              const std::vector<std::pair<std::string, std::string>>& query,
              const StreamOptions& options, StreamHandler handler);
  void resume(Call stream);
  void cancel(Call call);

  Loop& loop();
  const ClientOptions& options() const;

  static std::string path_of(const Resource& resource, const Key& key,
                             const std::string& subresource = {});
  static std::string collection_path(const Resource& resource, const std::string& ns);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// As a row of the table calls it, in the version of that place.
Resource resource_of(const kinds::KindRow& row, std::size_t version = 0);

// Those that are asked for by name.
namespace resources {
const Resource& nodes();
const Resource& pods();
const Resource& namespaces();
const Resource& events();
const Resource& leases();
const Resource& jobs();
const Resource& replica_sets();
const Resource& deployments();
const Resource& priority_classes();
const Resource& budgets();
const Resource& volumes();
const Resource& volume_claims();
const Resource& config_maps();
const Resource& gpu_nodes();
const Resource& custom_resource_definitions();
const Resource& resource_flavors();
const Resource& cluster_queues();
const Resource& local_queues();
const Resource& workloads();
}  // namespace resources

}  // namespace berth::kube
