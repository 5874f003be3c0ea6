#include "app/webhook/webhook_certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "app/webhook/own_webhook.h"
#include "text/base64.h"
#include "text/json_writer.h"

namespace berth::app {

namespace {

constexpr const char* kSecretName = "berth-webhook";
constexpr const char* kAuthorityName = "berth webhook";
constexpr int kTriesOfALook = 3;  // the Secret is ours or another replica's by then
// Before the API server is told to ask: a probe has found us ready, and our address is known.
constexpr std::int64_t kBeforeConversion = 15'000'000'000;

// Where the newest authority and the one before it are kept.
constexpr std::array<std::pair<const char*, const char*>, serve::AuthoritySet::kMost> kPlaces = {
    {{"ca.crt", "ca.key"}, {"previous.crt", "previous.key"}}};

const kube::Resource& secrets() {
  static const kube::Resource resource = {"", "v1", "secrets", "Secret", true};
  return resource;
}

// The set as the data of the Secret. A place that is not used is emptied by null.
std::string secret_data(const serve::AuthoritySet& set) {
  std::string out;
  for (std::size_t i = 0; i < kPlaces.size(); ++i) {
    const bool held = i < set.all().size();
    const auto value = [held](const std::string& pem) {
      return held ? "\"" + text::base64_encode(pem) + "\"" : std::string("null");
    };
    static const serve::Certificate kNone;
    const serve::Certificate& pair = held ? set.all()[i].pair : kNone;
    out += fmt::format(R"({}"{}":{},"{}":{})", i == 0 ? "" : ",", kPlaces[i].first,
                       value(pair.certificate_pem), kPlaces[i].second, value(pair.key_pem));
  }
  return "{" + out + "}";
}

std::string decoded(const text::Value* data, const char* key) {
  const text::Value* value = data == nullptr ? nullptr : data->find(key);
  if (value == nullptr) return {};
  Result<std::string> out = text::base64_decode(value->string());
  return out.ok() ? std::move(*out) : std::string();
}

// What cannot be read is as if it were not there: it is replaced by a new authority.
serve::AuthoritySet set_of(const text::Value& secret) {
  std::vector<serve::Authority> found;
  const text::Value* data = secret.find("data");
  for (const auto& [certificate, key] : kPlaces) {
    Result<serve::Authority> one =
        serve::read_authority({decoded(data, certificate), decoded(data, key)});
    if (one.ok()) found.push_back(std::move(*one));
  }
  return serve::AuthoritySet(std::move(found));
}

std::string version_of(const text::Value& object) {
  const text::Value* metadata = object.find("metadata");
  const text::Value* version = metadata == nullptr ? nullptr : metadata->find("resourceVersion");
  return version == nullptr ? std::string() : std::string(version->string());
}

// The bundle that the first webhook of a configuration trusts.
std::string_view bundle_of(const text::Value& configuration) {
  const text::Value* hooks = configuration.find("webhooks");
  if (hooks == nullptr || hooks->items().empty()) return {};
  const text::Value* client = hooks->items().front().find("clientConfig");
  const text::Value* bundle = client == nullptr ? nullptr : client->find("caBundle");
  return bundle == nullptr ? std::string_view() : bundle->string();
}

}  // namespace

struct WebhookCertificate::State : std::enable_shared_from_this<State> {
  State(kube::Client& with, WebhookCertificateOptions how, const Logger& to, Serve serve_with)
      : client(with),
        options(std::move(how)),
        log(to),
        serve(std::move(serve_with)),
        conversion(client, options.conversion, log) {}

  kube::Client& client;
  WebhookCertificateOptions options;
  const Logger& log;
  Serve serve;
  WebhookConversion conversion;
  Loop::Timer timer = 0;
  serve::AuthoritySet set;
  std::string trouble;                           // what was logged last
  std::string served_by;                         // the authority of what is served
  std::int64_t served_from = 0, served_end = 0;  // its life
  std::int64_t first_served = 0;

  std::int64_t now() const { return client.loop().wall().now_ns(); }

  template <typename Next>
  kube::Client::Done then(Next next) {
    return [self = weak_from_this(), go = std::move(next)](const kube::Answer& answer) {
      if (const auto state = self.lock()) go(*state, answer);
    };
  }

  void later() {
    const bool fresh = !served_by.empty() && now() - first_served < kBeforeConversion;
    timer = client.loop().after(
        fresh ? std::min(options.rotation.look_ns, kBeforeConversion) : options.rotation.look_ns,
        [this] { look(kTriesOfALook); });
  }

  void failed(const std::string& what, const Error& error) {
    const std::string text = what + ": " + error.to_string();
    if (text != trouble) log.error("the webhook's certificate", {{"error", text}});
    trouble = text;
    later();
  }

  void look(int tries) {
    client.get(secrets(), {options.secret_namespace, kSecretName},
               then([tries](State& state, const kube::Answer& answer) {
                 state.got_secret(answer, tries);
               }));
  }

  void got_secret(const kube::Answer& answer, int tries) {
    if (!answer.ok() && !answer.not_found()) return failed("the Secret", answer.error());
    set = answer.ok() ? set_of(answer.body.root()) : serve::AuthoritySet();
    if (!set.wants_new(now())) return trust();
    if (tries == 0) {
      return failed("the Secret", Error(Code::kUnavailable, "others keep changing it"));
    }
    Result<serve::Authority> made = serve::new_authority(kAuthorityName, now(), options.rotation);
    if (!made.ok()) return failed("a new authority", made.error());
    set.add(std::move(*made));
    log.info("a new authority of the webhook", {{"trusted", std::int64_t(set.all().size())}});
    // Ours, or another replica's that came first: what holds is read again.
    auto again = then([tries](State& state, const kube::Answer& written) {
      if (written.ok() || written.conflict()) return state.look(tries - 1);
      state.failed("the Secret", written.error());
    });
    if (answer.not_found()) {
      client.create(secrets(), options.secret_namespace,
                    fmt::format(R"({{"apiVersion":"v1","kind":"Secret","type":"Opaque",)"
                                R"("metadata":{{"name":"{}","namespace":"{}"}},"data":{}}})",
                                kSecretName, options.secret_namespace, secret_data(set)),
                    {}, std::move(again));
      return;
    }
    client.patch(secrets(), {options.secret_namespace, kSecretName}, kube::PatchType::kMerge,
                 fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}},"data":{}}})",
                             version_of(answer.body.root()), secret_data(set)),
                 {}, std::move(again));
  }

  void trust() {
    client.get(
        webhook_configurations(), {"", "berth"},
        then([](State& state, const kube::Answer& answer) { state.got_configuration(answer); }));
  }

  void got_configuration(const kube::Answer& answer) {
    if (!answer.ok() && !answer.not_found()) return failed("the configuration", answer.error());
    const std::string bundle = text::base64_encode(set.bundle_pem(now()));
    if (answer.ok() && bundle_of(answer.body.root()) == bundle) return convert(bundle, true);
    if (answer.not_found() && options.configuration == nullptr) {
      // Manifests will bring it, or have taken it away.
      return convert("", false);
    }
    const auto done = then([bundle](State& state, const kube::Answer& written) {
      if (!written.ok()) return state.failed("the configuration", written.error());
      state.convert(bundle, false);
    });
    if (options.configuration != nullptr) {
      client.patch(webhook_configurations(), {"", "berth"}, kube::PatchType::kApply,
                   options.configuration(bundle), {.force = true}, done);
      return;
    }
    client.patch(webhook_configurations(), {"", "berth"}, kube::PatchType::kStrategic,
                 fmt::format(R"({{"webhooks":[{{"name":"pods.berth.dev","clientConfig":)"
                             R"({{"caBundle":"{}"}}}}]}})",
                             bundle),
                 {}, done);
  }

  void convert(const std::string& bundle, bool known) {
    const bool begin = !served_by.empty() && now() - first_served >= kBeforeConversion;
    conversion.settle(bundle, begin, [self = weak_from_this(), known](bool as_before) {
      if (const auto state = self.lock()) state->sign(known && as_before);
    });
  }

  // known: the configuration and the kinds had the bundle before this look.
  void sign(bool known) {
    const serve::Authority* signer = set.signer(now(), options.rotation);
    if (signer == nullptr) return failed("signing", Error(Code::kInternal, "no valid authority"));
    const bool first = served_by.empty();
    const bool other = signer->pair.certificate_pem != served_by;
    const bool trusted = !first && set.bundle_pem(now()).find(served_by) != std::string::npos;
    // Another authority's only where it was trusted before, but at once where what is served is not
    // trusted any more.
    if (!trusted || (other ? known : serve::due(served_from, served_end, now()))) {
      if (const Status renewed = renew(*signer); !renewed.ok()) {
        return failed("signing", renewed.error());
      }
    }
    trouble.clear();
    later();
  }

  Status renew(const serve::Authority& signer) {
    const std::int64_t from = now() - options.rotation.backdate_ns;
    const std::int64_t until = std::min(now() + options.rotation.serving_ns, signer.ends_ns);
    BERTH_TRY(const serve::Certificate made, serve::make_certificate({.common_name = kSecretName,
                                                                      .hosts = {options.host},
                                                                      .not_before_ns = from,
                                                                      .valid_ns = until - from},
                                                                     signer.pair));
    BERTH_CHECK(serve(serve::TlsFiles{made.certificate_pem, made.key_pem}));
    log.info("a new certificate of the webhook",
             {{"seconds", (until - now()) / 1'000'000'000},
              {"authority", signer.pair.certificate_pem == served_by ? "the same" : "another"}});
    if (served_by.empty()) first_served = now();
    served_by = signer.pair.certificate_pem;
    served_from = now();
    served_end = until;
    return {};
  }
};

WebhookCertificate::WebhookCertificate(kube::Client& client, WebhookCertificateOptions options,
                                       const Logger& log, Serve serve)
    : state_(std::make_shared<State>(client, std::move(options), log, std::move(serve))) {}

WebhookCertificate::~WebhookCertificate() { state_->client.loop().cancel(state_->timer); }

void WebhookCertificate::start() { state_->look(kTriesOfALook); }

}  // namespace berth::app
