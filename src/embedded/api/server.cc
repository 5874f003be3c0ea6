// Start, routing, authentication.
#include "embedded/api/server.h"

#include <algorithm>
#include <utility>

#include "kinds/schema/protobuf.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::sim::api {

namespace {

constexpr std::size_t kHistoryBytes = 24u << 20;
constexpr std::string_view kCrdShelf = "customresourcedefinitions.apiextensions.k8s.io";

// Where answers go that nobody waits for.
class NoExchange final : public serve::Exchange {
 public:
  void respond(text::HttpResponse) override {}
  void begin(text::HttpResponse) override {}
  void write(std::shared_ptr<const std::string>) override {}
  void end() override {}
  std::size_t backlog() const override { return 0; }
  bool gone() const override { return false; }
  void on_gone(std::function<void()>) override {}
};

// Go clients write built-in kinds as protobuf; from here on the body is JSON.
MaybeError read_protobuf(Request& request) {
  for (text::HttpHeader& header : request.http.headers) {
    if (header.value.find(kProtobufMediaType) != 0) continue;
    if (text::find_header({header}, "Content-Type") == std::nullopt) continue;
    if (request.http.body.empty()) return std::nullopt;
    if (request.type->kind->custom && request.method() != "DELETE") {
      return unsupported_media_type("application/json, application/yaml");
    }
    auto json = protobuf_to_json(request.http.body);
    if (!json.ok()) return bad_request("protobuf body: " + json.error().to_string());
    request.http.body = std::move(json).value();
    header.value = "application/json";
    return std::nullopt;
  }
  return std::nullopt;
}

bool open_to_all(std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  for (const std::string_view open : {"/healthz", "/livez", "/readyz", "/version"}) {
    if (path == open || (path.starts_with(open) && path[open.size()] == '/')) return true;
  }
  return false;
}

}  // namespace

Server::Server(Loop& the_loop, store::Store& store, const Random& seed, ApiServerOptions wanted,
               MetricsRegistry*)
    : loop(the_loop),
      options(std::move(wanted)),
      random(seed),
      storage(store, options.history, kHistoryBytes),
      quotas(storage,
             {.now_ns = [this] { return loop.wall().now_ns(); },
              .later = [this](std::function<void()> work) { later(std::move(work)); },
              .after = [this](std::int64_t ns,
                              std::function<void()> work) { later_by(ns, std::move(work)); },
              .write = [this](const std::string& key, const rules::Sums& hard,
                              const rules::Sums& used) { write_quota_status(key, hard, used); }}),
      registry(storage),
      hub(the_loop, storage, options.bookmark_ns),
      garbage(*this),
      old_events(*this),
      namespaces(*this),
      definitions(*this),
      claims(*this),
      webhooks(*this),
      openapi(registry, options.version),
      self(std::make_shared<Server*>(this)) {
  registry.add_builtins();
  storage.set_listener([this](Shelf& shelf, const Change& change) { on_change(shelf, change); });
  storage.set_watcher([this](const Shelf& shelf, const std::string& key, const ObjectPtr& latest) {
    quotas.moved(shelf, key, latest);
  });
  storage.on_broken([this](const Error& error) {
    if (told_broken) told_broken(error);
  });
  storage.on_full([this](const Error* error) {
    if (told_full) told_full(error);
    // What the server itself wanted to write meanwhile was refused and is looked for again.
    if (error == nullptr) {
      later([this] {
        create_basics();
        namespaces.furnish_all();
        garbage.settle_all();
        quotas.write_again();
      });
    }
  });
}

Server::~Server() { self.reset(); }

void Server::later(std::function<void()> work) {
  loop.post([weak = std::weak_ptr<Server*>(self), work = std::move(work)] {
    if (weak.lock()) work();
  });
}

Loop::Timer Server::later_by(std::int64_t ns, std::function<void()> work) {
  return loop.after(ns, [weak = std::weak_ptr<Server*>(self), work = std::move(work)] {
    if (weak.lock()) work();
  });
}

std::string Server::now_text() const {
  const std::int64_t now_ns = loop.wall().now_ns();
  return text::format_rfc3339(now_ns - now_ns % 1'000'000'000);
}

void Server::on_change(Shelf& shelf, const Change& change) {
  hub.tell(shelf, change);
  garbage.index(shelf, change);
  garbage.changed(shelf, change);
  namespaces.changed(shelf, change);
  const TypePtr type = registry.of_shelf(shelf);
  if (!type) return;
  if (type->role == Role::kCrd) definitions.changed(change);
  if (type->role == Role::kClaim) claims.changed(change);
  if (type->role == Role::kStorageClass && change.type == Change::Type::kAdded) {
    claims.class_came(change.now->name);
  }
  if (type->role == Role::kPod) claims.release_of(*change.now);
  if (type->role == Role::kMutatingHook) webhooks.mutating_changed();
  if (type->role == Role::kValidatingHook) webhooks.validating_changed();
}

// ---- start -----------------------------------------------------------------------------------

namespace {

struct RawObject {
  std::string shelf, json;
  std::uint64_t version;
};

}  // namespace

Status Server::start() {
  Status status;
  std::vector<RawObject> raw;
  const auto loaded =
      storage.load([&](std::string_view key, std::string_view value, std::uint64_t version) {
        raw.push_back({std::string(key.substr(0, key.find('/'))), std::string(value), version});
      });
  if (!loaded.ok()) return loaded.error();
  // Definitions first: they say what the others are.
  std::stable_partition(raw.begin(), raw.end(),
                        [](const RawObject& object) { return object.shelf == kCrdShelf; });
  for (const RawObject& object : raw) {
    Shelf* shelf = storage.find_shelf(object.shelf);
    if (shelf == nullptr || !shelf->kind) continue;  // of a definition that is gone
    auto read = read_object(*shelf->kind, object.json, object.version);
    if (!read.ok()) return std::move(read.error()).context("stored object in " + object.shelf);
    storage.restore(*shelf, read.value());
    Change change;
    change.version = object.version;
    change.now = read.value();
    garbage.index(*shelf, change);
    if (object.shelf == kCrdShelf) {
      status = definitions.install(object.json, read.value()->name);
      if (!status.ok()) return status;
    }
  }
  storage.set_start(loaded.value());
  random = random.split("api server at " + std::to_string(loaded.value()));
  quotas.start();
  create_basics();
  old_events.expire();
  later([this] {
    namespaces.furnish_all();  // namespaces from before they were furnished
    garbage.settle_all();
  });
  return {};
}

void Server::create_basic(std::string_view group, std::string_view plural, std::string_view ns,
                          std::string_view json) {
  auto draft = std::make_shared<Draft>();
  draft->request = std::make_shared<Request>();
  draft->request->exchange = std::make_shared<NoExchange>();
  draft->request->manager = "kube-apiserver";
  for (const TypePtr& type : registry.types()) {
    if (type->kind->group == group && type->kind->plural == plural) draft->type = type;
  }
  const auto parsed = draft->edit.parse(json);
  if (!draft->type || !parsed.ok()) return;
  draft->request->type = draft->type;
  draft->request->ns = ns;
  draft->object = parsed.value();
  draft->ns = ns;
  draft->name = text_at(draft->object, "metadata.name");
  if (draft->type->shelf->latest(draft->key())) return;
  if (normalize_draft(*draft) || prepare_create(*draft) || admit_builtin(*draft)) return;
  commit(draft);
}

void Server::create_basics() {
  for (const std::string_view name : {"default", "kube-node-lease", "kube-public", "kube-system"}) {
    create_basic("", "namespaces", "", "{\"metadata\":{\"name\":\"" + std::string(name) + "\"}}");
  }
  create_basic("scheduling.k8s.io", "priorityclasses", "",
               R"({"metadata":{"name":"system-cluster-critical"},"value":2000000000,)"
               R"("description":"Used for system critical pods that must run in the cluster, )"
               R"(but can be moved to another node if necessary."})");
  create_basic("scheduling.k8s.io", "priorityclasses", "",
               R"({"metadata":{"name":"system-node-critical"},"value":2000001000,)"
               R"("description":"Used for system critical pods that must not be moved from )"
               R"(their current node."})");
  create_basic("", "services", "default",
               R"({"metadata":{"name":"kubernetes","labels":{"component":"apiserver",)"
               R"("provider":"kubernetes"}},"spec":{"clusterIP":"10.96.0.1","clusterIPs":)"
               R"(["10.96.0.1"],"type":"ClusterIP","ports":[{"name":"https","port":443,)"
               R"("protocol":"TCP","targetPort":6443}]}})");
}

// ---- requests --------------------------------------------------------------------------------

bool Server::authorized(const text::HttpRequest& http) const {
  if (options.admin_token.empty() || open_to_all(http.target)) return true;
  const auto header = text::find_header(http.headers, "Authorization");
  constexpr std::string_view kBearer = "Bearer ";
  if (!header || !header->starts_with(kBearer)) return false;
  const std::string_view token = header->substr(kBearer.size());
  // All bytes are looked at, so that the time taken says nothing about how many were right.
  unsigned char differs = token.size() == options.admin_token.size() ? 0 : 1;
  for (std::size_t i = 0; i < token.size(); ++i) {
    differs |=
        static_cast<unsigned char>(token[i] ^ options.admin_token[i % options.admin_token.size()]);
  }
  return differs == 0;
}

void Server::handle(text::HttpRequest http, const std::shared_ptr<serve::Exchange>& exchange) {
  auto request = std::make_shared<Request>();
  request->http = std::move(http);
  request->exchange = exchange;
  request->told = [this](const Request& answered, int status) {
    metrics.answered(answered, status);
  };
  dispatch(request);
}

void Server::dispatch(const RequestPtr& request) {
  if (!authorized(request->http)) return request->fail(unauthorized());
  auto target = text::parse_http_target(request->http.target);
  if (!target.ok()) return request->fail(bad_request(target.error().to_string()));
  request->target = std::move(target).value();
  if (storage.broken()) return request->fail(internal_error("the store failed"));
  if (auto error = check_timeout(*request)) return request->fail(*error);
  const std::vector<std::string>& path = request->target.path;
  const std::string_view first = path.empty() ? std::string_view{} : path[0];
  if (request->http.body.size() > options.max_body_bytes) {
    return request->fail(body_too_large(options.max_body_bytes));
  }
  if (first == "api" && path.size() > 2) return route_resource(request, 1, "");
  if (first == "apis" && path.size() > 3) return route_resource(request, 2, path[1]);
  discover(request);
}

void Server::route_resource(const RequestPtr& request, std::size_t first, std::string_view group) {
  const std::vector<std::string>& path = request->target.path;
  const std::string_view version = path[first];
  std::size_t next = first + 1;
  if (path[next] == "watch" && path.size() > next + 1) {  // the old way to say watch=true
    request->target.query.emplace_back("watch", "true");
    ++next;
  }
  std::string_view resource = path[next];
  const std::size_t left = path.size() - next;
  if (resource == "namespaces" && left >= 3) {
    const bool of_namespace =
        group.empty() && left == 3 && (path[next + 2] == "status" || path[next + 2] == "finalize");
    if (!of_namespace) {
      request->ns = path[next + 1];
      resource = path[next + 2];
      next += 2;
    }
  }
  if (path.size() > next + 1) request->name = path[next + 1];
  if (path.size() > next + 2) request->subresource = path[next + 2];
  if (group.empty() && resource == "bindings" && request->method() == "POST") {
    request->type = registry.find("", "v1", "pods");
    if (request->type) return bind_pod(request);
  }
  request->type = registry.find(group, version, resource);
  const bool misplaced = request->type && request->type->kind->namespaced
                             ? request->ns.empty() && !request->name.empty()
                             : !request->ns.empty();
  if (!request->type || misplaced) return request->fail(path_not_found());
  if (request->type->kind->deprecated && !request->type->kind->deprecation_warning.empty()) {
    request->warn(request->type->kind->deprecation_warning);
  }
  if (auto error = read_accept(*request)) return request->fail(*error);
  if (auto error = read_protobuf(*request)) return request->fail(*error);
  if (const auto include = request->target.get("includeObject")) {
    request->include_object = std::string(*include);
  }
  if (request->type->role == Role::kReview) return review(request);
  if (!request->subresource.empty()) return route_subresource(request);
  route_verb(request);
}

void Server::route_verb(const RequestPtr& request) {
  const std::string& method = request->method();
  const bool named = !request->name.empty();
  const bool everywhere = request->type->kind->namespaced && request->ns.empty();
  if (method == "GET") {
    if (request->query_true("watch")) return watch(request);
    return named ? get(request) : list(request);
  }
  if (method == "POST" && !named && !everywhere) return create(request);
  if (method == "PUT" && named) return update(request);
  if (method == "PATCH" && named) return patch(request);
  if (method == "DELETE" && named) return remove(request);
  if (method == "DELETE" && !everywhere && request->type->role != Role::kNamespace) {
    return remove_collection(request);
  }
  request->fail(method_not_allowed({}, ""));
}

void Server::route_subresource(const RequestPtr& request) {
  const Kind& kind = *request->type->kind;
  const std::string& method = request->method();
  const std::string& sub = request->subresource;
  const bool post = method == "POST";
  if (sub == "status" && kind.status) {
    if (method == "GET") return get(request);
    if (method == "PUT") return update(request);
    if (method == "PATCH") return patch(request);
    return request->fail(method_not_allowed({}, ""));
  }
  if (sub == "scale" && kind.has_scale()) {
    if (method == "PATCH") return patch(request);
    return scale(request);
  }
  const bool pod = request->type->role == Role::kPod;
  if (pod && sub == "binding" && post) return bind_pod(request);
  if (pod && sub == "eviction" && post) return evict_pod(request);
  if (pod && (sub == "log" || sub == "exec" || sub == "attach" || sub == "portforward" ||
              sub == "proxy")) {
    return refuse_stream(request);
  }
  const bool verdict = request->type->role == Role::kSigningRequest && sub == "approval";
  if ((pod && (sub == "ephemeralcontainers" || sub == "resize")) || verdict) {
    if (method == "GET") return get(request);
    if (method == "PUT") return update(request);
    if (method == "PATCH") return patch(request);
  }
  if (request->type->role == Role::kNamespace && sub == "finalize" && method == "PUT") {
    return update(request);
  }
  if (kind.plural == "serviceaccounts" && sub == "token" && post) return token_request(request);
  request->answer_text(404, "404 page not found\n");
}

}  // namespace berth::sim::api
