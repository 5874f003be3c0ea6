#include "app/webhook/webhook_conversion.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "text/path.h"

namespace berth::app {

namespace {

constexpr std::array<const char*, 4> kConvertedKinds = {
    "clusterqueues.kueue.x-k8s.io", "localqueues.kueue.x-k8s.io", "workloads.kueue.x-k8s.io",
    "multikueueclusters.kueue.x-k8s.io"};
constexpr std::string_view kConversionLabel = "berth.dev/conversion";
// What the generator of Kueue's own definitions leaves on them.
constexpr std::string_view kGeneratorMark = "controller-gen.kubebuilder.io/version";
constexpr std::string_view kConvertPath = "/convert";
constexpr int kMostFailures = 2;
constexpr std::int64_t kHoldOff = 3'600'000'000'000;

// In the version that is never stored: reading them takes a conversion.
const kube::Resource& converted_queues() {
  static const kube::Resource resource = {"kueue.x-k8s.io", "v1beta1", "clusterqueues",
                                          "ClusterQueue", false};
  return resource;
}

// One definition, and what is to be done about it.
struct Definition {
  bool ours = false;       // it may be converted by us
  bool converted = false;  // by somebody
  bool by_us = false;
  std::string_view bundle, version;
};

Definition read_definition(const text::Value& crd, const ConversionPlace& place) {
  Definition out;
  const text::Value& label = at(crd, "metadata.labels")[kConversionLabel];
  const text::Value& mark = at(crd, "metadata.annotations")[kGeneratorMark];
  out.ours = label.string() == "webhook" && mark.is_null();
  out.version = at(crd, "metadata.resourceVersion").string();
  const text::Value& conversion = at(crd, "spec.conversion");
  out.converted = at(conversion, "strategy").string() == "Webhook";
  const text::Value& client = at(conversion, "webhook.clientConfig");
  const text::Value& service = at(client, "service");
  out.by_us = out.converted && at(service, "path").string() == kConvertPath &&
              at(service, "name").string() == place.service &&
              at(service, "namespace").string() == place.service_namespace;
  if (!place.url.empty()) out.by_us = out.converted && at(client, "url").string() == place.url;
  // Ours from before, at another place.
  if (out.ours && !out.by_us && out.converted) {
    const bool url = !at(client, "url").string().empty();
    out.converted = !url && at(service, "name").string() != place.service;
  }
  out.bundle = at(client, "caBundle").string();
  return out;
}

std::string conversion_by(const ConversionPlace& place, const std::string& bundle,
                          std::string_view version) {
  const std::string client =
      place.url.empty()
          ? fmt::format(
                R"("url":null,"service":{{"namespace":"{}","name":"{}","path":"{}","port":443}})",
                place.service_namespace, place.service, kConvertPath)
          : fmt::format(R"("url":"{}","service":null)", place.url);
  return fmt::format(
      R"({{"metadata":{{"resourceVersion":"{}"}},"spec":{{"conversion":{{"strategy":"Webhook",)"
      R"("webhook":{{"conversionReviewVersions":["v1"],)"
      R"("clientConfig":{{{},"caBundle":"{}"}}}}}}}}}})",
      version, client, bundle);
}

std::string no_conversion(std::string_view version, bool for_good) {
  return fmt::format(R"({{"metadata":{{"resourceVersion":"{}"{}}},)"
                     R"("spec":{{"conversion":{{"strategy":"None","webhook":null}}}}}})",
                     version,
                     for_good ? fmt::format(R"(,"labels":{{"{}":null}})", kConversionLabel) : "");
}

}  // namespace

struct WebhookConversion::State : std::enable_shared_from_this<State> {
  State(kube::Client& with, ConversionPlace where, const Logger& to)
      : client(with), place(std::move(where)), log(to) {}

  struct Look {
    std::string bundle;
    bool begin = false, end = false;
    std::size_t next = 0;  // of kConvertedKinds
    bool as_before = true;
    bool asked = false;  // some kind is converted by us
    std::string trouble;
    Settled settled;
  };
  using LookPtr = std::shared_ptr<Look>;

  kube::Client& client;
  ConversionPlace place;
  const Logger& log;
  std::string trouble;  // what was logged last
  int failures = 0;
  std::int64_t held_until = 0;

  template <typename Next>
  kube::Client::Done then(Next next) {
    return [self = weak_from_this(), go = std::move(next)](const kube::Answer& answer) {
      if (const auto state = self.lock()) go(*state, answer);
    };
  }

  std::int64_t now() const { return client.loop().monotonic().ticks_ns(); }

  void step(const LookPtr& look) {
    if (look->next == kConvertedKinds.size()) return try_it(look);
    const char* name = kConvertedKinds[look->next++];
    client.get(kube::resources::custom_resource_definitions(), {"", name},
               then([look, name](State& state, const kube::Answer& answer) {
                 state.got(look, name, answer);
               }));
  }

  void got(const LookPtr& look, const char* name, const kube::Answer& answer) {
    if (answer.not_found()) return step(look);
    if (!answer.ok()) return missed(look, name, answer);
    const Definition there = read_definition(answer.body.root(), place);
    const bool wanted = there.ours && !look->bundle.empty() && now() >= held_until;
    std::string patch;
    if (look->end) {
      if (there.by_us || (there.ours && !there.converted))
        patch = no_conversion(there.version, true);
    } else if (wanted && there.by_us) {
      look->asked = true;
      if (there.bundle != look->bundle) patch = conversion_by(place, look->bundle, there.version);
    } else if (wanted && !there.converted && look->begin) {
      patch = conversion_by(place, look->bundle, there.version);
    } else if (!wanted && there.by_us) {
      patch = no_conversion(there.version, false);
    }
    if (patch.empty()) return step(look);
    look->as_before = false;
    const bool on = !look->end && wanted;
    client.patch(kube::resources::custom_resource_definitions(), {"", name},
                 kube::PatchType::kMerge, patch, {},
                 then([look, name, on](State& state, const kube::Answer& written) {
                   // Another replica was first: the next look sees what it did.
                   if (!written.ok() && !(written.conflict() && !look->end)) {
                     return state.missed(look, name, written);
                   }
                   state.log.info("conversion", {{"kind", name}, {"by", on ? "webhook" : "none"}});
                   state.step(look);
                 }));
  }

  void missed(const LookPtr& look, const char* name, const kube::Answer& answer) {
    if (look->trouble.empty()) {
      look->trouble = std::string(name) + ": " + answer.error().to_string();
    }
    step(look);
  }

  void try_it(const LookPtr& look) {
    if (!look->asked || look->end) return done(look);
    kube::ListOptions one;
    one.limit = 1;
    client.list(converted_queues(), one, then([look](State& state, const kube::Answer& answer) {
                  state.tried(look, answer);
                }));
  }

  void tried(const LookPtr& look, const kube::Answer& answer) {
    const bool failed = answer.message.find("conversion webhook") != std::string::npos;
    failures = failed ? failures + 1 : 0;
    if (failed) look->trouble = answer.error().to_string();
    if (failures >= kMostFailures) {
      failures = 0;
      held_until = now() + kHoldOff;
      look->trouble += "; the API server does not reach the webhook: no conversion for an hour";
      look->next = 0;
      look->asked = false;
      return step(look);
    }
    done(look);
  }

  void done(const LookPtr& look) {
    if (look->trouble != trouble && !look->trouble.empty()) {
      log.error("conversion of Kueue's kinds", {{"error", look->trouble}});
    }
    trouble = look->trouble;
    if (look->settled) look->settled(look->as_before);
  }
};

WebhookConversion::WebhookConversion(kube::Client& client, ConversionPlace place, const Logger& log)
    : state_(std::make_shared<State>(client, std::move(place), log)) {}

WebhookConversion::~WebhookConversion() = default;

void WebhookConversion::settle(const std::string& bundle_base64, bool begin, Settled settled) {
  const auto look = std::make_shared<State::Look>();
  look->bundle = bundle_base64;
  look->begin = begin;
  look->settled = std::move(settled);
  state_->step(look);
}

void WebhookConversion::end(std::function<void(Status)> done) {
  const auto look = std::make_shared<State::Look>();
  look->end = true;
  look->settled = [state = std::weak_ptr<State>(state_), told = std::move(done)](bool) {
    const auto held = state.lock();
    told(held == nullptr || held->trouble.empty()
             ? Status()
             : Status(Error(Code::kUnavailable, held->trouble)));
  };
  state_->step(look);
}

}  // namespace berth::app
