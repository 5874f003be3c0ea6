#include "app/webhook/own_webhook.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "control/webhook.h"
#include "edge/kube/curl_transport.h"
#include "kinds/kind_table.h"
#include "text/base64.h"

namespace berth::app {

namespace {

// A name that can never be somebody's: the API server hands the call to us before it looks it up.
constexpr std::string_view kOwnUrl = "https://webhook.berth.invalid/mutate";
// How the API server hands over the authority that a configuration names.
constexpr std::string_view kBundleHeader = "X-Berth-Ca-Bundle";

}  // namespace

struct OwnWebhook::State {
  State(Loop& on, OwnWebhookOptions with) : loop(on), options(std::move(with)) {}

  struct Foreign {
    kube::CurlTransport* transport = nullptr;
    kube::Call call = 0;
  };

  Loop& loop;
  OwnWebhookOptions options;
  kube::Call last = 0;
  std::set<kube::Call> open;                                               // to us
  std::map<kube::Call, Foreign> elsewhere;                                 // to others
  std::map<std::string, std::unique_ptr<kube::CurlTransport>> transports;  // by place and authority

  // The way to a server, kept for its next call. A server that changes its authority comes anew.
  kube::CurlTransport& way_to(const std::string& server, const std::string& ca_pem) {
    constexpr std::size_t kMostWays = 32;
    const std::string key = server + "\n" + ca_pem;
    const auto found = transports.find(key);
    if (found != transports.end()) return *found->second;
    if (transports.size() >= kMostWays && elsewhere.empty()) transports.clear();
    kube::Config config;
    config.server = server;
    config.ca_data = ca_pem;
    return *transports.emplace(key, std::make_unique<kube::CurlTransport>(loop, config))
                .first->second;
  }
};

OwnWebhook::OwnWebhook(Loop& loop, OwnWebhookOptions options)
    : state_(std::make_shared<State>(loop, std::move(options))) {}

OwnWebhook::~OwnWebhook() = default;

const kube::Resource& webhook_configurations() {
  static const kube::Resource resource = {"admissionregistration.k8s.io", "v1",
                                          "mutatingwebhookconfigurations",
                                          "MutatingWebhookConfiguration", false};
  return resource;
}

std::string webhook_configuration(const WebhookPlace& place) {
  const std::string_view selector =
      place.manage_all
          ? R"({"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn",)"
            R"("values":["kube-system","kube-public","kube-node-lease"]},)"
            R"({"key":"berth.dev/managed","operator":"NotIn","values":["false"]}]})"
          : R"({"matchLabels":{"berth.dev/managed":"true"}})";
  const auto rule = [](std::string_view group, std::string_view version, std::string_view names,
                       std::string_view verbs) {
    return fmt::format(
        R"({{"apiGroups":["{}"],"apiVersions":["{}"],"resources":[{}],"operations":[{}]}})", group,
        version, names, verbs);
  };
  std::vector<std::string> rules = {
      rule("", "v1", R"("pods")", R"("CREATE")"),
      rule("", "v1", R"("pods/ephemeralcontainers")", R"("UPDATE")"),
      rule("batch", "v1", R"("jobs","cronjobs")", R"("CREATE","UPDATE")"),
      rule("apps", "v1", R"("deployments","replicasets","statefulsets","daemonsets")",
           R"("CREATE","UPDATE")")};
  for (const kinds::KindRow& row : kinds::kind_table()) {
    if (row.maker == nullptr || !row.maker->queued() || row.group == "batch") continue;
    rules.push_back(rule(row.group, row.versions[0].version, '"' + std::string(row.plural) + '"',
                         R"("CREATE")"));
  }
  return fmt::format(
      R"({{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration",)"
      R"("metadata":{{"name":"berth"}},"webhooks":[{{"name":"pods.berth.dev",)"
      R"("admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Ignore",)"
      R"("timeoutSeconds":5,"clientConfig":{{"url":"{}"{}}},"namespaceSelector":{},)"
      R"("rules":[{}]}}]}})",
      place.url,
      place.ca_bundle_base64.empty() ? std::string()
                                     : fmt::format(R"(,"caBundle":"{}")", place.ca_bundle_base64),
      selector, fmt::join(rules, ","));
}

std::string OwnWebhook::configuration() const {
  return webhook_configuration({.url = std::string(kOwnUrl),
                                .ca_bundle_base64 = "",
                                .manage_all = state_->options.manage_all});
}

kube::Call OwnWebhook::send_elsewhere(text::HttpRequest request, const kube::SendOptions& options,
                                      Answered answered) {
  const std::size_t host = request.target.find("://") + 3;
  const std::size_t path = std::min(request.target.find('/', host), request.target.size());
  const std::string server = request.target.substr(0, path);
  request.target = path == request.target.size() ? "/" : request.target.substr(path);
  const std::string bundle(find_header(request.headers, kBundleHeader).value_or(""));
  const Result<std::string> ca = text::base64_decode(bundle);
  std::erase_if(request.headers, [](const text::HttpHeader& header) {
    return header.name == kBundleHeader || header.name == "Host";
  });
  const kube::Call call = ++state_->last;
  kube::CurlTransport& way = state_->way_to(server, ca.ok() ? *ca : std::string());
  State::Foreign& foreign = state_->elsewhere[call];
  foreign.transport = &way;
  foreign.call = way.send(std::move(request), options,
                          [watch = std::weak_ptr<State>(state_), call, to = std::move(answered)](
                              text::HttpResponse answer, const kube::TransportError* error) {
                            const auto state = watch.lock();
                            if (!state || state->elsewhere.erase(call) == 0) return;
                            to(std::move(answer), error);
                          });
  return call;
}

kube::Call OwnWebhook::send(text::HttpRequest request, const kube::SendOptions& options,
                            Answered answered) {
  if (request.target != kOwnUrl && request.target.starts_with("https://")) {
    return send_elsewhere(std::move(request), options, std::move(answered));
  }
  const kube::Call call = ++state_->last;
  state_->open.insert(call);
  state_->loop.post([state = state_, call, asked = std::move(request),
                     answer = std::move(answered)] {
    if (state->open.erase(call) == 0) return;
    if (asked.target != kOwnUrl) {
      const kube::TransportError error{
          .message = "a webhook's URL begins with https://, not " + asked.target, .refused = true};
      return answer({}, &error);
    }
    control::WebhookOptions how;
    how.scheduler_name = state->options.scheduler_name;
    how.board = state->options.board;
    Result<std::string> review = control::review(asked.body, how);
    if (!review.ok()) {
      return answer({.status = 400, .headers = {}, .body = review.error().to_string()}, nullptr);
    }
    answer({.status = 200,
            .headers = {{"Content-Type", "application/json"}},
            .body = std::move(*review)},
           nullptr);
  });
  return call;
}

kube::Call OwnWebhook::stream(text::HttpRequest, const kube::StreamOptions&,
                              kube::StreamHandler handler) {
  const kube::Call call = ++state_->last;
  state_->open.insert(call);
  state_->loop.post([state = state_, call, to = std::move(handler)] {
    if (state->open.erase(call) == 0) return;
    const kube::TransportError error{.message = "webhooks are not streams", .refused = true};
    to.on_end(&error);
  });
  return call;
}

void OwnWebhook::resume(kube::Call) {}

void OwnWebhook::cancel(kube::Call call) {
  state_->open.erase(call);
  const auto found = state_->elsewhere.find(call);
  if (found == state_->elsewhere.end()) return;
  found->second.transport->cancel(found->second.call);
  state_->elsewhere.erase(found);
}

}  // namespace berth::app
