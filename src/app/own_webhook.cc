#include "app/own_webhook.h"

#include <fmt/format.h>

#include <set>

#include "control/webhook.h"

namespace berth::app {

namespace {

// A name that can never be somebody's: the API server hands the call to us before it looks it up.
constexpr std::string_view kOwnUrl = "https://webhook.berth.invalid/mutate";

}  // namespace

struct OwnWebhook::State {
  State(Loop& on, OwnWebhookOptions with) : loop(on), options(std::move(with)) {}

  Loop& loop;
  OwnWebhookOptions options;
  kube::Call last = 0;
  std::set<kube::Call> open;
};

OwnWebhook::OwnWebhook(Loop& loop, OwnWebhookOptions options)
    : state_(std::make_shared<State>(loop, std::move(options))) {}

OwnWebhook::~OwnWebhook() = default;

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
  return fmt::format(
      R"({{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration",)"
      R"("metadata":{{"name":"berth"}},"webhooks":[{{"name":"pods.berth.dev",)"
      R"("admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Ignore",)"
      R"("timeoutSeconds":5,"clientConfig":{{"url":"{}"{}}},"namespaceSelector":{},)"
      R"("rules":[{},{},{}]}}]}})",
      place.url,
      place.ca_bundle_base64.empty() ? std::string()
                                     : fmt::format(R"(,"caBundle":"{}")", place.ca_bundle_base64),
      selector, rule("", "v1", R"("pods")", R"("CREATE")"),
      rule("batch", "v1", R"("jobs","cronjobs")", R"("CREATE","UPDATE")"),
      rule("apps", "v1", R"("deployments","replicasets","statefulsets","daemonsets")",
           R"("CREATE","UPDATE")"));
}

std::string OwnWebhook::configuration() const {
  return webhook_configuration({.url = std::string(kOwnUrl),
                                .ca_bundle_base64 = "",
                                .manage_all = state_->options.manage_all});
}

kube::Call OwnWebhook::send(text::HttpRequest request, const kube::SendOptions&,
                            Answered answered) {
  const kube::Call call = ++state_->last;
  state_->open.insert(call);
  state_->loop.post([state = state_, call, asked = std::move(request),
                     answer = std::move(answered)] {
    if (state->open.erase(call) == 0) return;
    if (asked.target != kOwnUrl) {
      const kube::TransportError error{
          .message = "berth up calls its own webhook only, and not " + asked.target,
          .refused = true};
      return answer({}, &error);
    }
    control::WebhookOptions options;
    options.scheduler_name = state->options.scheduler_name;
    Result<std::string> review = control::review(asked.body, options);
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
void OwnWebhook::cancel(kube::Call call) { state_->open.erase(call); }

}  // namespace berth::app
