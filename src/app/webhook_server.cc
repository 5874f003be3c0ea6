#include "app/webhook_server.h"

#include <fmt/format.h>

#include <charconv>

#include "app/own_webhook.h"
#include "control/webhook.h"
#include "serve/certificate.h"
#include "serve/http_server.h"
#include "text/base64.h"
#include "text/json_writer.h"

namespace berth::app {

namespace {

constexpr std::int64_t kWebhookHour = 3'600'000'000'000, kWebhookDay = 24 * kWebhookHour;
constexpr const char* kSecretName = "berth-webhook";

const kube::Resource& secrets() {
  static const kube::Resource resource = {"", "v1", "secrets", "Secret", true};
  return resource;
}

std::string secret_json(const serve::Certificate& authority, const std::string& ns) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Secret","type":"Opaque","metadata":{{"name":"{}",)"
      R"("namespace":"{}"}},"data":{{"ca.crt":"{}","ca.key":"{}"}}}})",
      kSecretName, ns, text::base64_encode(authority.certificate_pem),
      text::base64_encode(authority.key_pem));
}

Result<serve::Certificate> authority_of(const text::Value& secret) {
  serve::Certificate out;
  const text::Value* data = secret.find("data");
  for (const auto& [key, target] :
       {std::pair("ca.crt", &out.certificate_pem), std::pair("ca.key", &out.key_pem)}) {
    const text::Value* value = data == nullptr ? nullptr : data->find(key);
    if (value == nullptr) return invalid(fmt::format("the Secret {} has no {}", kSecretName, key));
    BERTH_TRY(*target, text::base64_decode(value->string()));
  }
  return out;
}

}  // namespace

Result<HostPort> parse_host_port(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  HostPort out;
  if (colon == std::string::npos) return invalid("found \"" + text + "\", want HOST:PORT");
  out.host = text.substr(0, colon);
  if (out.host.size() >= 2 && out.host.front() == '[' && out.host.back() == ']') {
    out.host = out.host.substr(1, out.host.size() - 2);
  }
  if (out.host.empty()) out.host = "0.0.0.0";
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data() + colon + 1, end, out.port);
  if (code != std::errc() || stop != end) {
    return invalid("found \"" + text + "\", want HOST:PORT with a port of 0..65535");
  }
  return out;
}

struct WebhookServer::State : std::enable_shared_from_this<State> {
  State(kube::Client& with, WebhookServerOptions how, const Logger& to, MetricsRegistry& into)
      : client(with), options(std::move(how)), log(to), metrics(into) {}

  kube::Client& client;
  WebhookServerOptions options;
  const Logger& log;
  MetricsRegistry& metrics;
  std::function<void(Status)> started;
  serve::Certificate authority;
  std::unique_ptr<serve::HttpServer> server;
  Loop::Timer renewal = 0;

  void done(Status status) {
    if (started) std::exchange(started, nullptr)(std::move(status));
  }

  void read_secret(int tries) {
    client.get(secrets(), {options.secret_namespace, kSecretName},
               [self = weak_from_this(), tries](const kube::Answer& answer) {
                 if (const auto state = self.lock()) state->got_secret(answer, tries);
               });
  }

  void got_secret(const kube::Answer& answer, int tries) {
    if (answer.ok()) {
      Result<serve::Certificate> found = authority_of(answer.body.root());
      if (!found.ok()) return done(found.error());
      authority = std::move(*found);
      return serve();
    }
    if (!answer.not_found() || tries == 0) return done(answer.error().context("webhook secret"));
    Result<serve::Certificate> made =
        serve::make_authority({.common_name = "berth webhook",
                               .hosts = {},
                               .not_before_ns = client.loop().wall().now_ns() - kWebhookHour,
                               .valid_ns = 3650 * kWebhookDay});
    if (!made.ok()) return done(made.error());
    client.create(secrets(), options.secret_namespace, secret_json(*made, options.secret_namespace),
                  {}, [self = weak_from_this(), tries](const kube::Answer&) {
                    // Ours, or another replica's that came first.
                    if (const auto state = self.lock()) state->read_secret(tries - 1);
                  });
  }

  Result<serve::TlsFiles> sign() const {
    std::string host = options.url.substr(options.url.find("://") + 3);
    host = host.substr(0, host.find('/'));
    if (const std::size_t colon = host.rfind(':');
        colon != std::string::npos && host.find(']', colon) == std::string::npos) {
      host = host.substr(0, colon);
    }
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    BERTH_TRY(
        const serve::Certificate certificate,
        serve::make_certificate({.common_name = "berth-webhook",
                                 .hosts = {host},
                                 .not_before_ns = client.loop().wall().now_ns() - kWebhookHour,
                                 .valid_ns = 90 * kWebhookDay},
                                authority));
    return serve::TlsFiles{certificate.certificate_pem, certificate.key_pem};
  }

  void serve() {
    Result<serve::TlsFiles> files = sign();
    if (!files.ok()) return done(files.error());
    serve::HttpServerOptions http;
    http.address = options.address;
    http.port = options.port;
    http.tls = *files;
    auto listening = serve::HttpServer::start(
        http,
        [how = control::WebhookOptions{.scheduler_name = options.scheduler_name}](
            const text::HttpRequest& request, const std::shared_ptr<serve::Exchange>& exchange) {
          Result<std::string> review = control::review(request.body, how);
          exchange->respond(
              {.status = review.ok() ? 200 : 400,
               .headers = {{"Content-Type", "application/json"}},
               .body = review.ok() ? std::move(*review) : review.error().to_string()});
        },
        &metrics);
    if (!listening.ok()) return done(std::move(listening).error().context("webhook"));
    server = std::move(*listening);
    renew_later();
    client.patch(
        webhook_configurations(), {"", "berth"}, kube::PatchType::kApply,
        webhook_configuration({.url = options.url,
                               .ca_bundle_base64 = text::base64_encode(authority.certificate_pem),
                               .manage_all = options.manage_all}),
        {.force = true}, [self = weak_from_this()](const kube::Answer& answer) {
          const auto state = self.lock();
          if (!state) return;
          state->done(answer.ok() ? Status() : Status(answer.error().context("webhook")));
        });
  }

  void renew_later() {
    renewal = client.loop().after(60 * kWebhookDay, [this] {
      const Result<serve::TlsFiles> files = sign();
      const Status renewed = files.ok() ? server->set_tls(*files) : Status(files.error());
      if (!renewed.ok()) {
        log.error("the webhook's certificate could not be renewed",
                  {{"error", renewed.error().to_string()}});
      }
      renew_later();
    });
  }
};

WebhookServer::WebhookServer(kube::Client& client, WebhookServerOptions options, const Logger& log,
                             MetricsRegistry& metrics)
    : state_(std::make_shared<State>(client, std::move(options), log, metrics)) {}

WebhookServer::~WebhookServer() { state_->client.loop().cancel(state_->renewal); }

void WebhookServer::start(std::function<void(Status)> started) {
  state_->started = std::move(started);
  state_->read_secret(2);
}

std::uint16_t WebhookServer::port() const {
  return state_->server == nullptr ? std::uint16_t{0} : state_->server->port();
}

}  // namespace berth::app
