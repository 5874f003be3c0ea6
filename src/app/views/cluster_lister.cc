#include "app/views/cluster_lister.h"

#include <algorithm>
#include <optional>
#include <set>

#include "app/progress.h"
#include "app/why/why_kinds.h"
#include "base/run_loop.h"
#include "control/kueue_lease.h"
#include "edge/kube/curl_transport.h"

namespace berth::app {

namespace {

constexpr int kPage = 500;
constexpr std::int64_t kTick = 250'000'000;

struct Wanted {
  kube::Resource resource;
  std::string ns = {}, field_selector = {};
  bool extra = false;  // no answer depends on it: who may not list it is not told
};

// What only why reads; makers: of that namespace, or of all where it is empty.
std::vector<Wanted> kinds_of_why(const std::string& makers) {
  std::vector<Wanted> out;
  for (const kube::Resource& each : kinds_asked(kinds::asked::kScaler)) {
    out.push_back({each, {}, {}, true});
  }
  out.push_back({kube::resources::config_maps(), kScalerNamespace, kScalerSelector, true});
  for (const kube::Resource& each : kinds_asked(kinds::asked::kMaker)) {
    out.push_back({each, each.namespaced ? makers : "", {}, true});
  }
  return out;
}

std::vector<Wanted> wanted_kinds() {
  std::vector<Wanted> out;
  for (const std::uint16_t by :
       {kinds::asked::kDecided, kinds::asked::kBeside, kinds::asked::kRule}) {
    for (const kube::Resource& each : kinds_asked(by)) out.push_back({each});
  }
  out.push_back({kube::resources::config_maps(), control::kKueueNamespace,
                 std::string("metadata.name=") + control::kKueueConfigMap});
  return out;
}

std::string name_of(const kube::Resource& resource) {
  return resource.group.empty() ? resource.plural : resource.plural + '.' + resource.group;
}

// Who says how long he waits is not kept waiting again.
kube::ClientOptions reading(const kube::Config& config) {
  return {.user_agent = "berth-cli",
          .max_tries = config.request_timeout_ns > 0 ? 1 : 3,
          .timeout_ns = 60'000'000'000};
}

class ClusterLister {
 public:
  ClusterLister(const kube::Config& config, std::string ns, Terminal& terminal,
                ListExtent extent = ListExtent::kDecided)
      : ns_(std::move(ns)),
        server_(config.server),
        extent_(extent),
        progress_(terminal.err_is_terminal ? &terminal.err : nullptr, terminal.monotonic),
        loop_(terminal.monotonic, terminal.wall),
        transport_(loop_, config, terminal.environment),
        client_(transport_, loop_, Random(static_cast<std::uint64_t>(terminal.wall.now_ns())),
                reading(config)) {}

  Result<Listed> run() {
    kube::ask_version(client_, [this](Result<kube::ServerVersion> version) {
      if (!version.ok()) return fail(std::move(version).error());
      listed_.version = std::move(*version);
      for (const Wanted& wanted : wanted_kinds()) start(wanted);
      if (extent_ == ListExtent::kDecided) return;
      for (const Wanted& wanted : kinds_of_why(extent_ == ListExtent::kWhy ? ns_ : "")) {
        start(wanted);
      }
    });
    tick();
    loop_.run();
    progress_.finish();
    if (failure_) return std::move(*failure_);
    for (auto& [name, pages] : pages_) {
      for (ListedPage& page : pages) listed_.pages.push_back(std::move(page));
    }
    const auto settle = [](std::vector<std::string>& names) {
      std::sort(names.begin(), names.end());
      names.erase(std::unique(names.begin(), names.end()), names.end());
    };
    settle(listed_.unseen);
    settle(listed_.absent);
    return std::move(listed_);
  }

  Result<kube::ServerVersion> ask_version_only() {
    kube::ask_version(client_, [this](Result<kube::ServerVersion> version) {
      if (!version.ok()) return fail(std::move(version).error());
      listed_.version = std::move(*version);
      loop_.stop();
    });
    tick();
    loop_.run();
    progress_.finish();
    if (failure_) return std::move(*failure_);
    return listed_.version;
  }

 private:
  struct Listing {
    Wanted wanted;
    std::size_t objects = 0;
    bool narrowed = false;   // to our namespace
    bool restarted = false;  // a continue token expired: once, without pages
    bool whole = false;
  };

  void fail(Error error) {
    if (!failure_) failure_ = std::move(error).context(server_);
    loop_.stop();
  }

  void tick() {
    progress_.update("asking " + server_ + ": " + std::to_string(objects_) + " objects", done_,
                     done_ + open_);
    loop_.after(kTick, [this] { tick(); });
  }

  void start(Wanted wanted) {
    ++open_;
    auto listing = std::make_shared<Listing>();
    listing->wanted = std::move(wanted);
    ask(listing, {});
  }

  void ask(const std::shared_ptr<Listing>& listing, const std::string& next) {
    kube::ListOptions options;
    options.ns = listing->wanted.ns;
    options.field_selector = listing->wanted.field_selector;
    options.limit = listing->whole ? 0 : kPage;
    options.next = next;
    client_.list(listing->wanted.resource, options,
                 [this, listing](kube::Answer answer) { answered(listing, std::move(answer)); });
  }

  void answered(const std::shared_ptr<Listing>& listing, kube::Answer answer) {
    if (answer.ok()) return page(listing, std::move(answer));
    const kube::Resource& resource = listing->wanted.resource;
    if (answer.status == 0 || answer.status == 401) return fail(answer.error());
    if (answer.not_found()) {
      listed_.absent.push_back(name_of(resource));
    } else if (answer.gone() && !listing->restarted) {
      listing->restarted = listing->whole = true;
      pages_[key_of(listing->wanted)].clear();
      return ask(listing, {});
    } else if (answer.status == 403 && resource.namespaced && listing->wanted.ns.empty()) {
      listing->wanted.ns = ns_;
      listing->narrowed = true;
      return ask(listing, {});
    } else if (answer.status == 403) {
      if (!listing->wanted.extra) listed_.unseen.push_back(name_of(resource));
    } else {
      listed_.unseen.push_back(name_of(resource) + " (" + answer.error().to_string() + ')');
    }
    close();
  }

  void page(const std::shared_ptr<Listing>& listing, kube::Answer answer) {
    const kube::Resource& resource = listing->wanted.resource;
    auto document = std::make_shared<const text::Document>(std::move(answer.body));
    const text::Value* items = document->root().find("items");
    listing->objects += items == nullptr ? 0 : items->size();
    objects_ += items == nullptr ? 0 : items->size();
    bytes_ += document->memory_bytes();
    std::string next;
    if (const text::Value* metadata = document->root().find("metadata")) {
      if (const text::Value* token = metadata->find("continue")) next = token->string();
    }
    if (resource.plural.ends_with("webhookconfigurations")) want_services(document->root());
    pages_[key_of(listing->wanted)].push_back({resource, std::move(document)});
    const bool enough =
        resource.kind == "Event" && listing->objects >= kMaxListedEvents && !next.empty();
    const bool full = bytes_ > kMaxListedBytes && !next.empty();
    if (enough || full) {
      listed_.unseen.push_back(name_of(resource) + " beyond the first " +
                               std::to_string(listing->objects));
    } else if (!next.empty()) {
      return ask(listing, next);
    }
    if (listing->narrowed && !listing->wanted.extra) {
      listed_.unseen.push_back(name_of(resource) + " in other namespaces");
    }
    close();
  }

  // Who answers a webhook: its Service, and what stands behind that.
  void want_services(const text::Value& list) {
    const text::Value* items = list.find("items");
    if (items == nullptr) return;
    for (const text::Value& item : items->items()) {
      const text::Value* webhooks = item.find("webhooks");
      if (webhooks == nullptr) continue;
      for (const text::Value& webhook : webhooks->items()) {
        const text::Value* client = webhook.find("clientConfig");
        const text::Value* service = client == nullptr ? nullptr : client->find("service");
        const text::Value* ns = service == nullptr ? nullptr : service->find("namespace");
        if (ns == nullptr || ns->string().empty()) continue;
        const std::string name(ns->string());
        constexpr std::size_t kMostNamespaces = 100;
        if (service_namespaces_.size() >= kMostNamespaces) return;
        if (!service_namespaces_.insert(name).second) continue;
        start({{"", "v1", "services", "Service", true}, name});
        start({{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true}, name});
      }
    }
  }

  static std::string key_of(const Wanted& wanted) {
    return wanted.resource.api_version() + '|' + wanted.resource.plural + '|' + wanted.ns;
  }

  void close() {
    ++done_;
    if (--open_ == 0) loop_.stop();
  }

  std::string ns_, server_;
  ListExtent extent_;
  Progress progress_;
  RunLoop loop_;
  kube::CurlTransport transport_;
  kube::Client client_;
  Listed listed_;
  std::map<std::string, std::vector<ListedPage>> pages_;
  std::set<std::string> service_namespaces_;
  std::optional<Error> failure_;
  std::size_t open_ = 0, done_ = 0, objects_ = 0, bytes_ = 0;
};

}  // namespace

Result<Listed> list_cluster(const kube::Config& config, const std::string& ns, Terminal& terminal,
                            ListExtent extent) {
  return ClusterLister(config, ns, terminal, extent).run();
}

Result<kube::ServerVersion> version_of_server(const kube::Config& config, Terminal& terminal) {
  return ClusterLister(config, config.ns, terminal).ask_version_only();
}

}  // namespace berth::app
