// The inside of ApiServer: its parts, and what each file of this folder does for it.
//
// Private to this folder. Everything runs on the loop's thread. A request is a shared Request that
// is answered once; a write is a shared Draft that goes through admission, which may take a while
// when webhooks are asked, and then to the storage.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "embedded/api/api_server.h"
#include "embedded/api/claims.h"
#include "embedded/api/definitions.h"
#include "embedded/api/garbage.h"
#include "embedded/api/namespaces.h"
#include "embedded/api/old_events.h"
#include "embedded/api/openapi_documents.h"
#include "embedded/api/quota_book.h"
#include "embedded/api/registry.h"
#include "embedded/api/render.h"
#include "embedded/api/request.h"
#include "embedded/api/server_metrics.h"
#include "embedded/api/storage.h"
#include "embedded/api/watch_hub.h"
#include "embedded/api/webhooks.h"

namespace berth::sim::api {

// A write on its way to the store. Values are in the version of the request's type.
struct Draft {
  RequestPtr request;
  TypePtr type;
  text::Editor edit;
  ObjectPtr live;    // what it builds on; null: a create
  Value live_value;  // null: a create
  Value object;      // what shall be stored
  std::string ns, name;
  std::string asked_name;  // of a create: the name, or what one is to be generated from
  std::string subresource;
  bool applied = false;  // by server-side apply: managedFields are there
  Value applied_as;      // what it was before webhooks changed it; null: they did not
  bool checked = false;  // skips validation: an edit of ours
  int tries = 0;
  std::function<void()> again;  // from the start, when live changed meanwhile; empty: a conflict
  // Answers in place of the usual rendering of the object.
  std::function<void(const ObjectPtr& stored)> answer;

  bool create() const { return live == nullptr; }
  std::string key() const { return object_key(ns, name); }
};
using DraftPtr = std::shared_ptr<Draft>;
using MaybeError = std::optional<ApiError>;

struct DeleteWish {
  std::optional<std::int64_t> grace_seconds;
  std::string propagation;   // "", Background, Foreground, Orphan
  std::string uid, version;  // preconditions
  bool dry_run = false;
};

// Objects in one piece of work of those that may be many.
inline constexpr std::size_t kSlice = 100;

class Server {
 public:
  Server(Loop& loop, store::Store& store, const Random& random, ApiServerOptions options,
         MetricsRegistry* metrics);
  ~Server();

  // server.cc
  Status start();
  void handle(text::HttpRequest http, const std::shared_ptr<serve::Exchange>& exchange);
  void dispatch(const RequestPtr& request);
  std::string now_text() const;  // "2026-01-02T03:04:05Z"

  // faults.cc
  void handle_with_faults(text::HttpRequest http, std::shared_ptr<serve::Exchange> exchange);

  // rest_read.cc
  void get(const RequestPtr& request);
  void list(const RequestPtr& request);
  void watch(const RequestPtr& request);
  // list_stream.cc: at once when it is small, else as a stream that keeps the reader's pace.
  void answer_list(const RequestPtr& request, std::vector<ObjectPtr> objects,
                   const ListAnswer& meta);
  MaybeError read_selection(const Request& request, Selection& out) const;
  std::uint64_t read_version(const Request& request) const;  // of what a read sees

  // rest_write.cc
  void create(const RequestPtr& request);
  void update(const RequestPtr& request);
  // From a body that was decoded and normalized: metadata, namespace, the kind's strategy.
  MaybeError prepare_create(Draft& draft);
  MaybeError prepare_update(Draft& draft);

  // rest_patch.cc
  void patch(const RequestPtr& request);

  // draft.cc
  MaybeError decode_body(Request& request, text::Editor& edit, Value& out) const;
  MaybeError check_fields(Request& request, const std::vector<std::string>& problems) const;
  MaybeError normalize_draft(Draft& draft);
  MaybeError load_live(Draft& draft);  // 404 when it is not there
  void carry_out(const DraftPtr& draft);
  void commit(const DraftPtr& draft);
  static ApiError store_error(const Error& error);
  MaybeError check_size(const Kind& kind, const Object& object) const;
  void answer_stored(Request& request, int status, const ObjectPtr& object);
  // An edit of ours, without admission: nullopt leaves it. done is told what is there afterwards.
  using Edit = std::function<std::optional<Value>(text::Editor&, const Value&)>;
  void rewrite(Shelf& shelf, const std::string& key, const Edit& edit,
               std::function<void()> done = {});

  // pod_actions.cc
  void bind_pod(const RequestPtr& request);
  void evict_pod(const RequestPtr& request);
  void evict_now(const RequestPtr& request, const Value& eviction);

  // admission.cc, pod_admission.cc: what changes it; admission_checks.cc: what refuses it as it
  // would be stored, quotas after all others
  MaybeError admit_builtin(Draft& draft);
  MaybeError admit_pod(Draft& draft);
  MaybeError check_builtin(const Draft& draft);
  MaybeError check_quotas(const Draft& draft);
  void write_quota_status(const std::string& key, const rules::Sums& hard, const rules::Sums& used);
  std::vector<ObjectPtr> in_namespace_of(std::string_view shelf_name, std::string_view ns) const;

  // deletion.cc
  void remove(const RequestPtr& request);
  void remove_collection(const RequestPtr& request);
  MaybeError read_delete_wish(const Request& request, DeleteWish& out) const;
  // Marks, or takes away. The state afterwards: gone tells whether it left.
  struct Deleted {
    ObjectPtr object;
    bool gone = false;
  };
  using DeleteDone = std::function<void(MaybeError, const Deleted&)>;
  void delete_object(const TypePtr& type, const std::string& key, const DeleteWish& wish,
                     DeleteDone done);
  bool finished(const Type& type, const Value& object) const;  // terminating and nothing holds it

  // Each of them in turn, a few in one piece of work, then done. One object costs its size: the
  // pieces are counted and not timed, so that a run can be repeated.
  template <class One>
  void in_slices(std::vector<One> all, std::function<void(const One&)> each,
                 std::function<void()> done = {});

  // subresources.cc
  void scale(const RequestPtr& request);
  void review(const RequestPtr& request);
  void token_request(const RequestPtr& request);
  void refuse_stream(const RequestPtr& request);

  // discovery.cc
  void discover(const RequestPtr& request);

  void on_change(Shelf& shelf, const Change& change);

  Loop& loop;
  ApiServerOptions options;
  Random random;
  Storage storage;
  QuotaBook quotas;
  Registry registry;
  WatchHub hub;
  ServerMetrics metrics;
  FaultHook fault_hook;
  std::function<void(const Error&)> told_broken;
  std::function<void(const Error*)> told_full;
  // What follows from what was written.
  Garbage garbage;
  OldEvents old_events;
  Namespaces namespaces;
  Definitions definitions;
  Claims claims;
  Webhooks webhooks;
  OpenApiDocuments openapi;
  std::shared_ptr<Server*> self;  // what posted work looks at

  std::string make_uid();
  // An object of the server's own, where it is not there yet.
  void create_basic(std::string_view group, std::string_view kind, std::string_view ns,
                    std::string_view json);
  // Runs later, unless the server is gone by then.
  void later(std::function<void()> work);
  Loop::Timer later_by(std::int64_t ns, std::function<void()> work);

 private:
  void create_basics();
  void route_resource(const RequestPtr& request, std::size_t first, std::string_view group);
  void route_verb(const RequestPtr& request);
  void route_subresource(const RequestPtr& request);
  bool authorized(const text::HttpRequest& http) const;

  template <class One>
  struct Slices {
    std::vector<One> all;
    std::size_t next = 0;
    std::function<void(const One&)> each;
    std::function<void()> done;
  };
  template <class One>
  void run_slice(const std::shared_ptr<Slices<One>>& slices);
};

template <class One>
void Server::in_slices(std::vector<One> all, std::function<void(const One&)> each,
                       std::function<void()> done) {
  auto slices = std::make_shared<Slices<One>>();
  slices->all = std::move(all);
  slices->each = std::move(each);
  slices->done = std::move(done);
  run_slice(slices);
}

template <class One>
void Server::run_slice(const std::shared_ptr<Slices<One>>& slices) {
  const std::size_t end = std::min(slices->all.size(), slices->next + kSlice);
  while (slices->next < end) slices->each(slices->all[slices->next++]);
  if (slices->next < slices->all.size()) {
    return later([this, slices] { run_slice(slices); });
  }
  if (slices->done) slices->done();
}

}  // namespace berth::sim::api
