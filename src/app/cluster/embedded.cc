#include "app/cluster/embedded.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/cluster/control_plane.h"
#include "app/cluster/user_crds.h"
#include "app/files.h"
#include "app/webhook/own_webhook.h"
#include "base/private_file.h"
#include "edge/serve/certificate.h"
#include "edge/serve/server_kinds.h"
#include "edge/store/memory_store.h"
#include "edge/store/sqlite_store.h"
#include "embedded/api/api_server.h"
#include "embedded/api/local_transport.h"
#include "embedded/workloads/work_controllers.h"
#include "text/base64.h"
#include "text/json_writer.h"
#include "text/yaml.h"

namespace berth::app {

// What outlives a run beside the database.
struct EmbeddedIdentity {
  serve::Certificate authority;
  std::string token;
  bool found = false;
};

namespace {

constexpr std::int64_t kMillisecond = 1'000'000, kHour = 3'600'000'000'000, kYear = 8'760 * kHour;

Result<EmbeddedIdentity> load_identity(const std::string& data, std::int64_t now_ns) {
  EmbeddedIdentity out;
  if (!data.empty()) {
    for (const char* secret : {"/ca.key", "/token"}) {  // from before, or out of a backup
      BERTH_CHECK(narrow_file(data + secret));
    }
    const Result<std::string> certificate = read_file(data + "/ca.crt");
    const Result<std::string> key = read_file(data + "/ca.key");
    const Result<std::string> token = read_file(data + "/token");
    if (certificate.ok() && key.ok() && token.ok()) {
      const Result<std::int64_t> ends = serve::expires_ns(*certificate);
      if (ends.ok() && *ends > now_ns + kYear / 12) {
        out = {{*certificate, *key}, *token, true};
        return out;
      }
    }
  }
  BERTH_TRY(out.authority, serve::make_authority({.common_name = "berth up",
                                                  .hosts = {},
                                                  .not_before_ns = now_ns - kHour,
                                                  .valid_ns = 10 * kYear}));
  BERTH_TRY(out.token, secret_hex(24));
  if (!data.empty()) {
    BERTH_CHECK(replace_file(data + "/ca.key", out.authority.key_pem));
    BERTH_CHECK(replace_file(data + "/token", out.token));
    BERTH_CHECK(replace_file(data + "/ca.crt", out.authority.certificate_pem));
  }
  return out;
}

std::string kubeconfig_text(const std::string& url, const EmbeddedIdentity& identity) {
  return fmt::format(
      "apiVersion: v1\n"
      "kind: Config\n"
      "clusters:\n"
      "- name: berth\n"
      "  cluster:\n"
      "    server: {}\n"
      "    certificate-authority-data: {}\n"
      "users:\n"
      "- name: admin\n"
      "  user:\n"
      "    token: {}\n"
      "contexts:\n"
      "- name: berth\n"
      "  context: {{cluster: berth, user: admin, namespace: default}}\n"
      "current-context: berth\n",
      url, text::base64_encode(identity.authority.certificate_pem), identity.token);
}

// What the machines offer, as resources of pods: GPUs or shares of them, MIG slices.
std::map<std::string, std::string> offered(const sim::Fleet& fleet) {
  std::int64_t cpu_milli = 0, memory = 0;
  std::map<std::string, std::int64_t> devices = {{"nvidia.com/gpu", 0}};
  for (const sim::Pool& pool : fleet.pools) {
    cpu_milli += pool.cpu_milli * pool.count;
    memory += pool.memory_bytes * pool.count;
    const std::int64_t gpus = std::int64_t{pool.gpus} * pool.count;
    if (pool.mig_slots > 0) {
      devices["nvidia.com/mig-" + pool.mig] += gpus * pool.mig_slots;
      continue;
    }
    devices["nvidia.com/gpu"] += gpus * pool.shares;
  }
  std::map<std::string, std::string> out = {{"cpu", std::to_string(cpu_milli) + 'm'},
                                            {"memory", std::to_string(memory)}};
  for (const auto& [name, count] : devices) out[name] = std::to_string(count);
  return out;
}

bool fleet_has_gpus(const sim::Fleet& fleet) {
  return std::any_of(fleet.pools.begin(), fleet.pools.end(),
                     [](const sim::Pool& pool) { return pool.gpus > 0 && pool.count > 0; });
}

std::string queue_group(const sim::Fleet& fleet) {
  std::string covered, quotas;
  for (const auto& [name, amount] : offered(fleet)) {
    covered += fmt::format(R"({}"{}")", covered.empty() ? "" : ",", name);
    quotas += fmt::format(R"({}{{"name":"{}","nominalQuota":"{}"}})", quotas.empty() ? "" : ",",
                          name, amount);
  }
  return R"({"coveredResources":[)" + covered + R"(],"flavors":[{"name":"default","resources":[)" +
         quotas + "]}]}";
}

struct Manifest {
  const kube::Resource* resource;
  kube::Key key;
  std::string body;
};

// One flavor, one ClusterQueue over everything, and a LocalQueue that takes what names no other.
std::vector<Manifest> default_queue(const sim::Fleet& fleet) {
  namespace r = kube::resources;
  const std::string version = r::cluster_queues().api_version();
  const auto head = [&](std::string_view kind, std::string_view meta) {
    return fmt::format(R"({{"apiVersion":"{}","kind":"{}","metadata":{{{}}})", version, kind, meta);
  };
  return {
      {&r::resource_flavors(),
       {"", "default"},
       head("ResourceFlavor", R"("name":"default")") + "}"},
      {&r::cluster_queues(),
       {"", "default"},
       head("ClusterQueue", R"("name":"default")") +
           R"(,"spec":{"namespaceSelector":{},"resourceGroups":[)" + queue_group(fleet) + "]}}"},
      {&r::local_queues(),
       {"default", "default"},
       head("LocalQueue", R"("name":"default","namespace":"default")") +
           R"(,"spec":{"clusterQueue":"default"}})"},
  };
}

}  // namespace

struct EmbeddedCluster::State {
  State(RunLoop& on, EmbeddedOptions with, const Logger& to, MetricsRegistry& into)
      : loop(on), options(std::move(with)), log(to), metrics(into) {}

  RunLoop& loop;
  EmbeddedOptions options;
  const Logger& log;
  MetricsRegistry& metrics;
  EmbeddedIdentity identity;
  std::string url, kubeconfig;
  bool continued = false, stopped = false;
  std::function<void(Status)> ready;

  std::unique_ptr<store::Store> store;
  std::unique_ptr<OwnWebhook> webhook;
  std::unique_ptr<sim::ApiServer> api;
  std::unique_ptr<sim::LocalTransport> transport;
  std::unique_ptr<kube::Client> client;
  std::unique_ptr<sim::WorkControllers> work;
  std::unique_ptr<sim::Nodes> nodes;
  std::unique_ptr<ControlPlane> plane;
  std::unique_ptr<serve::HttpServer> server;  // the last: it stops first
  // Requests come from the server's thread; what they post outlives neither of us.
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);

  int waiting = 0;  // writes of the set-up under way
  Status trouble;

  Status open() {
    const std::int64_t now_ns = loop.wall().now_ns();
    if (!options.data.empty()) {
      BERTH_CHECK(make_folder(options.data));
      BERTH_CHECK(make_private_folder(options.data));  // one from before, too
    }
    if (options.data.empty()) {
      store = std::make_unique<store::MemoryStore>(loop);
    } else {
      BERTH_TRY(store, store::open_sqlite({.path = options.data + "/state.db"}, loop, &metrics));
    }
    BERTH_TRY(identity, load_identity(options.data, now_ns));
    continued = identity.found;
    const Random random(options.seed);
    options.control.board = std::make_shared<control::QueueBoard>();
    webhook = std::make_unique<OwnWebhook>(
        loop, OwnWebhookOptions{.scheduler_name = options.control.scheduler_names.front(),
                                .manage_all = options.manage_all,
                                .board = options.control.board});
    sim::ApiServerOptions api_options;
    api_options.admin_token = identity.token;
    api_options.root_ca_pem = identity.authority.certificate_pem;
    api_options.webhooks = webhook.get();
    api =
        std::make_unique<sim::ApiServer>(loop, *store, random.split("api"), api_options, &metrics);
    api->on_broken([this](const Error& error) {
      log.error("the database failed; no write is taken any more", {{"error", error.to_string()}});
    });
    api->on_full([this](const Error* error) {
      if (error != nullptr) {
        log.error("no room for writes: they are refused until there is, reads go on",
                  {{"error", error->to_string()}});
      } else {
        log.info("there is room for writes again");
      }
    });
    BERTH_CHECK(api->start());
    transport = std::make_unique<sim::LocalTransport>(loop, *api, identity.token);
    client = std::make_unique<kube::Client>(*transport, loop, random.split("client"),
                                            kube::ClientOptions{.manager = "berth-up"}, &metrics);
    return {};
  }

  Status serve() {
    const std::int64_t now_ns = loop.wall().now_ns();
    BERTH_TRY(const serve::Certificate certificate,
              serve::make_certificate({.common_name = "berth",
                                       .hosts = {"127.0.0.1", "localhost", "::1", options.address},
                                       .not_before_ns = now_ns - kHour,
                                       .valid_ns = kYear},
                                      identity.authority));
    serve::HttpServerOptions http = serve::api_server();
    http.address = options.address;
    http.port = options.port;
    http.tls = serve::TlsFiles{certificate.certificate_pem, certificate.key_pem};
    BERTH_TRY(server, serve::HttpServer::start(
                          http,
                          [this, watch = std::weak_ptr<bool>(alive)](
                              text::HttpRequest request, std::shared_ptr<serve::Exchange> to) {
                            loop.post([this, watch, asked = std::move(request),
                                       exchange = std::move(to)]() mutable {
                              if (watch.expired()) return;
                              if (ask_controller(asked, exchange)) return;
                              if (ask_agent(asked, exchange)) return;
                              api->handle(std::move(asked), std::move(exchange));
                            });
                          },
                          &metrics));
    const bool v6 = options.address.find(':') != std::string::npos;
    url = fmt::format("https://{}{}{}:{}", v6 ? "[" : "", options.address, v6 ? "]" : "",
                      server->port());
    kubeconfig = options.kubeconfig.empty() ? options.data + "/kubeconfig" : options.kubeconfig;
    return replace_file(kubeconfig, kubeconfig_text(url, identity));
  }

  // berth why asks a controller by the proxy of its Service. Here both are one process.
  bool ask_controller(const text::HttpRequest& request,
                      const std::shared_ptr<serve::Exchange>& exchange) {
    constexpr std::string_view kProxy =
        "/api/v1/namespaces/berth-system/services/https:berth-page:443/proxy/api/why?";
    if (page() == nullptr || request.method != "GET" || !request.target.starts_with(kProxy)) {
      return false;
    }
    const auto given = text::find_header(request.headers, "Authorization");
    if (!given || *given != "Bearer " + identity.token) return false;  // the API server says no
    page()->answer_why("/api/why?" + request.target.substr(kProxy.size()), exchange);
    return true;
  }

  // berth gpus asks a node's agent by the proxy of the node. Here its readings are at hand.
  bool ask_agent(const text::HttpRequest& request,
                 const std::shared_ptr<serve::Exchange>& exchange) {
    constexpr std::string_view kNodes = "/api/v1/nodes/", kMetrics = ":9400/proxy/metrics";
    const std::string_view target = request.target;
    if (nodes == nullptr || request.method != "GET" || !target.starts_with(kNodes) ||
        !target.ends_with(kMetrics) || target.size() < kNodes.size() + kMetrics.size()) {
      return false;
    }
    const auto given = text::find_header(request.headers, "Authorization");
    if (!given || *given != "Bearer " + identity.token) return false;
    const auto loads = nodes->loads();
    const auto found =
        loads.find(target.substr(kNodes.size(), target.size() - kNodes.size() - kMetrics.size()));
    if (found == loads.end()) return false;
    std::string metrics_page;
    for (std::size_t i = 0; i < found->second.size(); ++i) {
      if (found->second[i] < 0) continue;
      metrics_page += fmt::format("DCGM_FI_DEV_GPU_UTIL{{gpu=\"{}\"}} {}\n", i, found->second[i]);
    }
    exchange->respond({200, {{"Content-Type", "text/plain"}}, std::move(metrics_page)});
    return true;
  }

  // Writes them all at once, then goes on; an object that others changed is left as it is.
  void apply(std::vector<Manifest> manifests, std::function<void()> next) {
    waiting = static_cast<int>(manifests.size());
    auto after = std::make_shared<std::function<void()>>(std::move(next));
    for (Manifest& manifest : manifests) {
      const std::string name = manifest.resource->kind + " " + manifest.key.to_string();
      client->patch(*manifest.resource, manifest.key, kube::PatchType::kApply,
                    std::move(manifest.body), {.manager = "berth-up"},
                    [this, name, after](const kube::Answer& answer) {
                      if (!answer.ok() && !answer.conflict() && trouble.ok()) {
                        trouble = answer.error().context(name);
                      }
                      if (--waiting > 0) return;
                      if (!trouble.ok()) return ready(trouble);
                      (*after)();
                    });
    }
  }

  Result<std::vector<Manifest>> crds() const {
    std::vector<Manifest> out;
    BERTH_CHECK(text::read_yaml(user_crds(), [&](text::Document document) -> Status {
      const text::Value* meta = document.root().find("metadata");
      const text::Value* name = meta == nullptr ? nullptr : meta->find("name");
      if (name == nullptr) return {};
      out.push_back({&kube::resources::custom_resource_definitions(),
                     {"", std::string(name->string())},
                     text::to_json(document.root())});
      return {};
    }));
    return out;
  }

  void set_up() {
    Result<std::vector<Manifest>> kinds = crds();
    if (!kinds.ok()) return ready(kinds.error());
    apply(std::move(*kinds), [this] {
      std::vector<Manifest> rest;
      // Of machines without GPUs no quota can be made for those that join with some.
      if (options.default_queue && fleet_has_gpus(options.fleet))
        rest = default_queue(options.fleet);
      rest.push_back({&webhook_configurations(), {"", "berth"}, webhook->configuration()});
      apply(std::move(rest), [this] { start_parts(); });
    });
  }

  void start_parts() {
    const Random random(options.seed);
    work = std::make_unique<sim::WorkControllers>(*client, random.split("work"), sim::WorkOptions{},
                                                  &log, &metrics);
    work->start();
    nodes = std::make_unique<sim::Nodes>(*client, options.fleet, random.split("nodes"),
                                         options.nodes, &log, &metrics);
    nodes->start();
    if (options.controller) start_plane(random);
    await_nodes();
  }

  void start_plane(const Random& random) {
    ControlPlaneOptions with;
    with.control = options.control;
    if (options.page) with.page.emplace().port = *options.page;
    with.page_or_any = options.page_or_any;
    with.cluster = "embedded cluster " + url;
    with.readings = [this] { return nodes->loads(); };
    with.leading = [] { return true; };
    plane = std::make_unique<ControlPlane>(loop, *client, random, std::move(with), log, metrics);
    if (const Status page = plane->start(); !page.ok()) {
      log.warn("there is no page", {{"error", page.error().to_string()}});
    }
  }

  PageServer* page() const { return plane == nullptr ? nullptr : plane->page(); }

  void await_nodes() {
    if (nodes->registered() && (plane == nullptr || plane->controller().summary().synced)) {
      return ready({});
    }
    loop.after(2 * kMillisecond, [this, watch = std::weak_ptr<bool>(alive)] {
      if (!watch.expired()) await_nodes();
    });
  }
};

EmbeddedCluster::EmbeddedCluster(std::unique_ptr<State> state) : state_(std::move(state)) {}

EmbeddedCluster::~EmbeddedCluster() {
  stop();
  state_->alive.reset();
}

Result<std::unique_ptr<EmbeddedCluster>> EmbeddedCluster::start(RunLoop& loop,
                                                                EmbeddedOptions options,
                                                                const Logger& log,
                                                                MetricsRegistry& metrics,
                                                                std::function<void(Status)> ready) {
  auto state = std::make_unique<State>(loop, std::move(options), log, metrics);
  state->ready = std::move(ready);
  BERTH_CHECK(state->open());
  BERTH_CHECK(state->serve());
  State* later = state.get();
  loop.post([later, watch = std::weak_ptr<bool>(state->alive)] {
    if (!watch.expired()) later->set_up();
  });
  return std::unique_ptr<EmbeddedCluster>(new EmbeddedCluster(std::move(state)));
}

std::string EmbeddedCluster::url() const { return state_->url; }
const std::string& EmbeddedCluster::kubeconfig() const { return state_->kubeconfig; }
bool EmbeddedCluster::continued() const { return state_->continued; }

std::string EmbeddedCluster::page_url() const {
  return state_->page() == nullptr ? std::string()
                                   : fmt::format("http://127.0.0.1:{}", state_->page()->port());
}

kube::Client& EmbeddedCluster::client() { return *state_->client; }

sim::NodesSummary EmbeddedCluster::nodes() const {
  return state_->nodes == nullptr ? sim::NodesSummary{} : state_->nodes->summary();
}

control::ControllerSummary EmbeddedCluster::control() const {
  return state_->plane == nullptr ? control::ControllerSummary{}
                                  : state_->plane->controller().summary();
}

void EmbeddedCluster::stop() {
  if (state_->stopped) return;
  state_->stopped = true;
  state_->plane.reset();
  state_->nodes.reset();
  state_->work.reset();
  state_->server.reset();
}

}  // namespace berth::app
