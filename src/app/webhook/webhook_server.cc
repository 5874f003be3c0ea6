#include "app/webhook/webhook_server.h"

#include <atomic>
#include <utility>

#include "app/files.h"
#include "app/webhook/own_webhook.h"
#include "app/webhook/webhook_certificate.h"
#include "app/webhook/webhook_conversion.h"
#include "control/webhook.h"
#include "edge/serve/server_kinds.h"
#include "kinds/kueue_convert_review.h"

namespace berth::app {

namespace {

constexpr std::int64_t kFilesLook = 60'000'000'000;  // a mounted Secret changes within a minute

// "https://[::1]:9443/mutate" -> "::1"
std::string host_of(const std::string& url) {
  std::string host = url.substr(url.find("://") + 3);
  host = host.substr(0, host.find('/'));
  if (const std::size_t colon = host.rfind(':');
      colon != std::string::npos && host.find(']', colon) == std::string::npos) {
    host = host.substr(0, colon);
  }
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

// "https://[::1]:9443/mutate" -> "https://[::1]:9443/convert"
std::string convert_url(const std::string& url) {
  if (url.empty()) return {};
  return url.substr(0, url.find('/', url.find("://") + 3)) + "/convert";
}

bool asks_conversion(const text::HttpRequest& request) {
  const std::string_view target = request.target;
  return target.substr(0, target.find('?')) == "/convert";
}

// Answers on the server's thread: what it asks is pure, but for the board.
class Reviewer {
 public:
  Reviewer(const WebhookServerOptions& options, MetricsRegistry& metrics)
      : how_{.scheduler_name = options.scheduler_name,
             .refuse_bypasses = options.refuse_bypasses,
             .board = options.board},
        conversions_(
            metrics.counter({.name = "berth_conversion_reviews_total",
                             .help = "Conversions of Kueue's kinds that the API server asked for.",
                             .labels = {"result"}})) {}

  text::HttpResponse answer(text::HttpRequest request) const {
    Result<std::string> body = asks_conversion(request)
                                   ? converted(request.body)
                                   : control::review(std::move(request.body), how_);
    return {.status = body.ok() ? 200 : 400,
            .headers = {{"Content-Type", "application/json"}},
            .body = body.ok() ? std::move(*body) : body.error().to_string()};
  }

 private:
  Result<std::string> converted(std::string_view body) const {
    Result<kinds::ConversionAnswer> answer = kinds::review_conversion(body);
    conversions_.with({answer.ok() && answer->converted ? "ok" : "failed"}).add();
    if (!answer.ok()) return std::move(answer).error();
    return std::move(answer->body);
  }

  control::WebhookOptions how_;
  CounterFamily& conversions_;
};

serve::Handler reviewing(const WebhookServerOptions& options, MetricsRegistry& metrics) {
  return [reviewer = Reviewer(options, metrics)](text::HttpRequest request,
                                                 const std::shared_ptr<serve::Exchange>& exchange) {
    exchange->respond(reviewer.answer(std::move(request)));
  };
}

}  // namespace

struct WebhookServer::State : std::enable_shared_from_this<State> {
  State(kube::Client& with, WebhookServerOptions how, const Logger& to, MetricsRegistry& into)
      : client(with), options(std::move(how)), log(to), metrics(into) {}

  kube::Client& client;
  WebhookServerOptions options;
  const Logger& log;
  MetricsRegistry& metrics;
  std::function<void(Status)> started;
  std::unique_ptr<WebhookCertificate> keeper;
  std::unique_ptr<WebhookConversion> no_conversion;
  std::unique_ptr<serve::HttpServer> server;
  std::atomic<bool> serving = false;
  Loop::Timer timer = 0;
  std::string files_read, files_trouble;

  void done(Status status) {
    if (started) std::exchange(started, nullptr)(std::move(status));
  }

  void begin() {
    const ConversionPlace conversion = {.url = convert_url(options.url),
                                        .service = options.service,
                                        .service_namespace = options.secret_namespace};
    if (!options.certificate_file.empty()) {
      // Who is to be trusted then is not known here, so nothing is converted.
      no_conversion = std::make_unique<WebhookConversion>(client, conversion, log);
      no_conversion->settle("", false, nullptr);
      look_at_files();
      if (options.url.empty()) return;
      // Whoever made the certificate is trusted by the API server, or is named by somebody else.
      client.patch(webhook_configurations(), {"", "berth"}, kube::PatchType::kApply,
                   configuration(""), {.force = true},
                   [self = weak_from_this()](const kube::Answer& answer) {
                     const auto state = self.lock();
                     if (state == nullptr || answer.ok()) return;
                     state->log.error("webhook", {{"error", answer.error().to_string()}});
                   });
      return;
    }
    WebhookCertificateOptions how;
    how.secret_namespace = options.secret_namespace;
    how.rotation = serve::rotation_of(options.authority_ns);
    how.host = options.service.empty() ? host_of(options.url)
                                       : options.service + "." + options.secret_namespace + ".svc";
    how.conversion = conversion;
    if (options.service.empty()) {
      how.configuration = [this](const std::string& bundle) { return configuration(bundle); };
    }
    keeper = std::make_unique<WebhookCertificate>(
        client, how, log, [this](const serve::TlsFiles& files) { return serve(files); });
    keeper->start();
  }

  std::string configuration(const std::string& bundle) const {
    return webhook_configuration(
        {.url = options.url, .ca_bundle_base64 = bundle, .manage_all = options.manage_all});
  }

  void look_at_files() {
    const Status used = use_files();
    const std::string trouble = used.ok() ? std::string() : used.error().to_string();
    if (!used.ok() && server == nullptr) return done(used);
    if (trouble != files_trouble) {
      files_trouble = trouble;
      if (!used.ok()) log.error("the webhook's new certificate", {{"error", trouble}});
    }
    timer = client.loop().after(kFilesLook, [this] { look_at_files(); });
  }

  Status use_files() {
    serve::TlsFiles files;
    BERTH_TRY(files.certificate_pem, read_file(options.certificate_file));
    BERTH_TRY(files.key_pem, read_file(options.key_file));
    if (files.certificate_pem + files.key_pem == files_read) return {};
    BERTH_CHECK(serve(files));
    files_read = files.certificate_pem + files.key_pem;
    return {};
  }

  // Connections that are open go on as they are.
  Status serve(const serve::TlsFiles& files) {
    if (server != nullptr) return server->set_tls(files);
    serve::HttpServerOptions http = serve::webhook_server();
    http.address = options.address;
    http.port = options.port;
    http.tls = files;
    http.max_body_of = [review = http.max_body_bytes](const text::HttpRequest& head) {
      return asks_conversion(head) ? kinds::kMostReviewBytes : review;
    };
    static_assert(kinds::kMostReviewBytes <= serve::kMostReviewBody);
    auto listening = serve::HttpServer::start(http, reviewing(options, metrics), &metrics);
    if (!listening.ok()) {
      const Error why = std::move(listening).error().context("webhook");
      done(why);
      return why;
    }
    server = std::move(*listening);
    serving = true;
    done({});
    return {};
  }
};

WebhookServer::WebhookServer(kube::Client& client, WebhookServerOptions options, const Logger& log,
                             MetricsRegistry& metrics)
    : state_(std::make_shared<State>(client, std::move(options), log, metrics)) {}

WebhookServer::~WebhookServer() { state_->client.loop().cancel(state_->timer); }

void WebhookServer::start(std::function<void(Status)> started) {
  state_->started = std::move(started);
  state_->begin();
}

bool WebhookServer::serving() const { return state_->serving; }

std::uint16_t WebhookServer::port() const {
  return state_->server == nullptr ? std::uint16_t{0} : state_->server->port();
}

}  // namespace berth::app
