#include "app/cluster/controller_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>

#include "app/cluster/control_plane.h"
#include "app/files.h"
#include "app/host_port.h"
#include "app/log_lines.h"
#include "app/page/agent_loads.h"
#include "app/page/page_access.h"
#include "app/plain_server.h"
#include "app/signals.h"
#include "app/webhook/webhook_conversion.h"
#include "app/webhook/webhook_server.h"
#include "base/bug_report.h"
#include "base/run_loop.h"
#include "control/controller.h"
#include "control/file_log.h"
#include "control/world_file.h"
#include "edge/kube/config.h"
#include "edge/kube/curl_transport.h"
#include "edge/kube/http_fetch.h"
#include "edge/kube/lease_thread.h"
#include "edge/serve/certificate.h"
#include "kinds/names.h"
#include "text/escape.h"

namespace berth::app {

namespace {

struct ControllerSettings {
  control::ControllerOptions control;
  std::optional<HostPort> metrics, health, webhook, page;
  std::optional<serve::TlsFiles> page_tls;
};

// What says how the webhook is served, where none is: it would be believed to be.
Status no_webhook_settings(const ControllerArguments& arguments) {
  const std::pair<bool, const char*> given[] = {
      {!arguments.webhook_url.empty(), "--webhook-url"},
      {!arguments.webhook_service.empty(), "--webhook-service"},
      {!arguments.webhook_certificate.empty(), "--webhook-cert"},
      {!arguments.webhook_key.empty(), "--webhook-key"},
      {arguments.refuse_bypasses, "--refuse-bypasses"}};
  for (const auto& [is_given, name] : given) {
    if (is_given) return invalid(std::string(name) + ": want --webhook HOST:PORT beside it");
  }
  return {};
}

Status webhook_settings(const ControllerArguments& arguments) {
  if (arguments.webhook_url.empty() == arguments.webhook_service.empty()) {
    return invalid("--webhook-url and --webhook-service: want one of them beside --webhook");
  }
  if (!arguments.webhook_url.empty() && !arguments.webhook_url.starts_with("https://")) {
    return invalid("--webhook-url: found \"" + text::terminal_safe(arguments.webhook_url) +
                   "\", want https://HOST:PORT/PATH, as the API server reaches --webhook");
  }
  if (arguments.webhook_certificate.empty() != arguments.webhook_key.empty()) {
    return invalid("--webhook-cert and --webhook-key: found one of them, want both or none");
  }
  return {};
}

Status page_settings(const ControllerArguments& arguments, ControllerSettings& out) {
  if (arguments.page_certificate.empty() != arguments.page_key.empty()) {
    return invalid("--page-cert and --page-key: found one of them, want both or none");
  }
  if (arguments.page_address.empty()) return {};
  Result<HostPort> place = parse_host_port(arguments.page_address);
  if (!place.ok()) return std::move(place).error().context("--page");
  out.page = *place;
  if (arguments.page_key.empty()) return {};
  serve::TlsFiles files;
  BERTH_TRY(files.certificate_pem, read_file(arguments.page_certificate));
  BERTH_TRY(files.key_pem, read_file(arguments.page_key));
  out.page_tls = std::move(files);
  return {};
}

// For a page without one that people trust: it lasts as long as a process may.
Result<serve::TlsFiles> own_page_certificate(std::int64_t now_ns, const std::string& host) {
  constexpr std::int64_t kDay = 86'400'000'000'000;
  serve::CertificateOptions options = {.common_name = "berth page",
                                       .hosts = {"localhost", "127.0.0.1", "::1"},
                                       .not_before_ns = now_ns - kDay,
                                       .valid_ns = 366 * kDay};
  if (!host.empty()) options.hosts.push_back(host);
  BERTH_TRY(const serve::Certificate authority, serve::make_authority(options));
  BERTH_TRY(const serve::Certificate made, serve::make_certificate(options, authority));
  return serve::TlsFiles{made.certificate_pem, made.key_pem};
}

Result<ControllerSettings> controller_settings(const ControllerArguments& arguments) {
  ControllerSettings out;
  out.control.scheduler_names = arguments.scheduler_names;
  if (out.control.scheduler_names.empty()) out.control.scheduler_names = {"berth"};
  out.control.own_namespace = arguments.lease_namespace;
  if (!kinds::is_dns_label(arguments.lease_namespace)) {
    return invalid("--lease-namespace: found \"" + text::terminal_safe(arguments.lease_namespace) +
                   "\", want the name of a namespace: a-z, 0-9 and '-', at most 63");
  }
  BERTH_TRY(out.control.policy, policy_flags(arguments.policy));
  out.control.manage_queues = !arguments.no_queues;
  out.control.heed_notices = !arguments.policy.no_preemption;
  out.control.sick_gpus.act = !arguments.keep_on_gpu_failure && !arguments.policy.no_preemption;
  if (!arguments.metrics_address.empty()) {
    Result<HostPort> place = parse_host_port(arguments.metrics_address);
    if (!place.ok()) return std::move(place).error().context("--metrics");
    out.metrics = *place;
  }
  if (!arguments.health_address.empty()) {
    Result<HostPort> place = parse_host_port(arguments.health_address);
    if (!place.ok()) return std::move(place).error().context("--health");
    out.health = *place;
  }
  if (!arguments.webhook_address.empty()) {
    Result<HostPort> place = parse_host_port(arguments.webhook_address);
    if (!place.ok()) return std::move(place).error().context("--webhook");
    out.webhook = *place;
    BERTH_CHECK(webhook_settings(arguments));
    out.control.board = std::make_shared<control::QueueBoard>();
  } else {
    BERTH_CHECK(no_webhook_settings(arguments));
  }
  BERTH_CHECK(page_settings(arguments, out));
  return out;
}

std::string own_identity() {
  char host[256] = "berth";
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return fmt::format("{}_{}", host, ::getpid());
}

class ControllerRun {
 public:
  ControllerRun(const ControllerArguments& arguments, ControllerSettings settings,
                const kube::Config& config, Terminal& terminal)
      : arguments_(arguments),
        settings_(std::move(settings)),
        config_(config),
        terminal_(terminal),
        sink_(terminal.err),
        log_(sink_, terminal.wall, log_options(arguments.log_level, arguments.log_format)),
        loop_(terminal.monotonic, terminal.wall),
        signals_([this] { loop_.post([this] { give_back(); }); }),
        transport_(loop_, config, terminal.environment, {}, &metrics_),
        client_(transport_, loop_, random_.split("client"), kube::ClientOptions{}, &metrics_) {}

  int run() {
    if (arguments_.end_conversion) return end_conversion();
    if (const Status ready = open(); !ready.ok()) {
      terminal_.err << "berth: " << text::terminal_safe(ready.error().to_string()) << '\n';
      return 1;
    }
    if (const Status page = start_plane(); !page.ok()) {
      terminal_.err << "berth: --page: " << text::terminal_safe(page.error().to_string()) << '\n';
      return 1;
    }
    elect();
    start_webhook();
    beat();
    loop_.run();
    plane_.reset();
    agent_loads_.reset();
    fetch_.reset();
    webhook_.reset();
    conversion_.reset();
    lease_.reset();
    return code_;
  }

 private:
  bool leading() const {
    return arguments_.no_election || (lease_ != nullptr && lease_->leading());
  }

  Status open() {
    if (!arguments_.decision_log.empty()) {
      decisions_ = std::make_unique<control::FileDecisionLog>(arguments_.decision_log);
      BERTH_CHECK(decisions_->open());
    }
    if (!arguments_.decision_inputs.empty()) {
      inputs_ = std::make_unique<control::FileWorldLog>(arguments_.decision_inputs);
      const Status usable = inputs_->check();
      if (!usable.ok()) return Error(usable.error()).context("--decision-inputs");
    }
    if (settings_.health) {
      BERTH_TRY(health_,
                start_plain_server(
                    serve::health_server(), *settings_.health,
                    [this](const std::string& target) { return probe(target); }, log_, metrics_));
    }
    if (settings_.metrics) {
      BERTH_TRY(server_,
                start_plain_server(
                    serve::metrics_server(), *settings_.metrics,
                    [this](const std::string& target) { return answer(target); }, log_, metrics_));
    }
    return {};
  }

  // These two on the servers' threads.
  text::HttpResponse answer(const std::string& target) {
    if (target != "/metrics") return probe(target);
    return {.status = 200,
            .headers = {{"Content-Type", std::string(content_type(MetricFormat::kPrometheusText))}},
            .body = metrics_.render(MetricFormat::kPrometheusText)};
  }

  text::HttpResponse probe(const std::string& target) const {
    text::HttpResponse out{
        .status = 200, .headers = {{"Content-Type", "text/plain"}}, .body = "ok"};
    if (target == "/healthz") {
      constexpr std::int64_t kStill = 60'000'000'000;
      if (terminal_.monotonic.ticks_ns() > moved_ns_ + kStill) {
        out.status = 503, out.body = "the controller's loop does not move\n";
      }
    } else if (target == "/readyz") {
      // A standby is ready too: it answers the webhook.
      if (settings_.webhook && !ready_) {
        out.status = 503, out.body = "the webhook is not served yet\n";
      }
    } else {
      out.status = 404;
      out.body = "there are /metrics (not on the port for health), /healthz and /readyz\n";
    }
    return out;
  }

  // For /healthz: the loop still does things.
  void beat() {
    moved_ns_ = terminal_.monotonic.ticks_ns();
    ready_ = webhook_ != nullptr && webhook_->serving();
    loop_.after(1'000'000'000, [this] { beat(); });
  }

  void elect() {
    if (arguments_.no_election) return;
    kube::ElectorOptions options;
    options.ns = arguments_.lease_namespace;
    options.name = "berth-controller";
    options.identity = arguments_.identity.empty() ? own_identity() : arguments_.identity;
    log_.info("asking to lead", {{"identity", options.identity}, {"lease", options.ns}});
    kube::ElectorCalls calls;
    calls.started = [this] {
      log_.info("leading");
      if (plane_) plane_->controller().wake();
    };
    // What is under way cannot be called back: ending is the fence.
    calls.stopped = [this](const std::string& why) {
      log_.error("the lease is lost", {{"why", why}});
      code_ = 1;
      loop_.stop();
    };
    calls.observed = [this](const std::string& holder) {
      log_.info("leader", {{"holder", holder}});
    };
    lease_ = std::make_unique<kube::LeaseThread>(
        loop_,
        [this](Loop& loop) {
          return std::make_unique<kube::CurlTransport>(loop, config_, terminal_.environment);
        },
        random_.split("elector"), options, std::move(calls), &metrics_);
    need_namespace([this] { lease_->start(); });
  }

  // The lease and the webhook's Secret live there; it may be ours to make.
  void need_namespace(std::function<void()> then) {
    client_.create(
        kube::resources::namespaces(), "",
        fmt::format(R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}})",
                    arguments_.lease_namespace),
        {}, [next = std::move(then)](const kube::Answer&) { next(); });
  }

  // The Service is that of the manifests.
  void keep_conversion() {
    conversion_ = std::make_unique<WebhookConversion>(
        client_,
        ConversionPlace{
            .url = "", .service = "berth-webhook", .service_namespace = arguments_.lease_namespace},
        log_);
  }

  int end_conversion() {
    keep_conversion();
    loop_.post([this] {
      conversion_->end([this](const Status& ended) {
        if (!ended.ok()) code_ = 1;  // the log has said why
        loop_.stop();
      });
    });
    loop_.run();
    conversion_.reset();
    return code_;
  }

  void start_webhook() {
    if (!settings_.webhook) {
      // An earlier one with a webhook may have left kinds that ask for it.
      keep_conversion();
      return conversion_->settle("", false, nullptr);
    }
    WebhookServerOptions options;
    options.address = settings_.webhook->host;
    options.port = settings_.webhook->port;
    options.url = arguments_.webhook_url;
    options.service = arguments_.webhook_service;
    options.certificate_file = arguments_.webhook_certificate;
    options.key_file = arguments_.webhook_key;
    options.authority_ns = arguments_.webhook_authority_seconds * 1'000'000'000;
    options.secret_namespace = arguments_.lease_namespace;
    options.refuse_bypasses = arguments_.refuse_bypasses;
    options.scheduler_name = settings_.control.scheduler_names.front();
    options.board = settings_.control.board;
    webhook_ = std::make_unique<WebhookServer>(client_, options, log_, metrics_);
    need_namespace([this] {
      webhook_->start([this](const Status& started) {
        if (started.ok()) {
          log_.info("serving the webhook", {{"port", webhook_->port()}});
        } else {
          log_.error("no webhook: schedulerName must be written by hand",
                     {{"error", started.error().to_string()}});
        }
      });
    });
  }

  Status start_plane() {
    ControlPlaneOptions with;
    with.control = settings_.control;
    with.cluster = "cluster";
    with.leading = [this] { return leading(); };
    with.decisions = decisions_.get();
    with.inputs = inputs_.get();
    if (settings_.page) {
      BERTH_TRY(with.page, page_options());
      start_readings();
      with.readings = [this]() -> PageFactsKeeper::Readings {
        return agent_loads_ ? agent_loads_->readings() : PageFactsKeeper::Readings();
      };
    }
    plane_ =
        std::make_unique<ControlPlane>(loop_, client_, random_, std::move(with), log_, metrics_);
    BERTH_CHECK(plane_->start());
    if (const PageServer* page = plane_->page()) {
      const std::string& address = settings_.page->host;
      log_.info("serving the page",
                {{"address", address.empty() ? "all" : address}, {"port", page->port()}});
    }
    return {};
  }

  Result<PageOptions> page_options() {
    PageOptions options;
    options.address = settings_.page->host;
    options.port = settings_.page->port;
    options.decision_inputs = arguments_.decision_inputs;
    options.tls = settings_.page_tls;
    if (!options.tls) {
      BERTH_TRY(options.tls, own_page_certificate(terminal_.wall.now_ns(), options.address));
    }
    options.allow = [this](const std::string& token, PageOptions::Allowed answer) {
      page_access_.ask(token, std::move(answer));
    };
    options.allow_why = [this](const std::string& token, const people::Subject& subject,
                               PageOptions::Rights answer) {
      page_access_.ask_visibility(token, subject, std::move(answer));
    };
    return options;
  }

  // How busy GPUs are, from the agents themselves.
  void start_readings() {
    if (arguments_.agent_port == 0) return;
    fetch_ = std::make_unique<kube::HttpFetch>(loop_);
    agent_loads_ = std::make_unique<AgentLoads>(
        client_,
        [this](std::string url, kube::HttpFetch::Done done) {
          fetch_->get(std::move(url), std::move(done));
        },
        AgentLoadsOptions{.ns = arguments_.lease_namespace, .port = arguments_.agent_port});
    agent_loads_->start();
  }

  void give_back() {
    if (stopping_) return;
    stopping_ = true;
    log_.info("stopping");
    plane_.reset();
    agent_loads_.reset();
    fetch_.reset();
    if (lease_ == nullptr) return loop_.stop();
    lease_->stop([this] { loop_.stop(); });
  }

  const ControllerArguments& arguments_;
  const ControllerSettings settings_;
  const kube::Config config_;
  Terminal& terminal_;
  StreamSink sink_;
  Logger log_;
  MetricsRegistry metrics_;
  BugReporter bugs_{log_, metrics_};
  Random random_{static_cast<std::uint64_t>(::getpid())};
  RunLoop loop_;
  StopSignals signals_;
  kube::CurlTransport transport_;
  kube::Client client_;
  std::unique_ptr<control::FileDecisionLog> decisions_;
  std::unique_ptr<control::FileWorldLog> inputs_;
  std::unique_ptr<kube::LeaseThread> lease_;
  std::unique_ptr<WebhookServer> webhook_;
  std::unique_ptr<WebhookConversion> conversion_;
  std::unique_ptr<serve::HttpServer> server_, health_;
  PageAccess page_access_{client_, &metrics_};
  std::unique_ptr<kube::HttpFetch> fetch_;
  std::unique_ptr<AgentLoads> agent_loads_;
  std::unique_ptr<ControlPlane> plane_;                 // the last: its page asks the others
  std::atomic<std::int64_t> moved_ns_ = INT64_MAX / 2;  // before the loop runs
  std::atomic<bool> ready_ = false;
  bool stopping_ = false;
  int code_ = 0;
};

}  // namespace

int controller_command(const ControllerArguments& arguments, Terminal& terminal) {
  Result<ControllerSettings> settings = controller_settings(arguments);
  if (!settings.ok()) {
    terminal.err << "berth: " << text::terminal_safe(settings.error().to_string()) << '\n';
    return 2;
  }
  const Result<kube::Config> config =
      kube::find_config(arguments.kubeconfig, arguments.context, terminal.environment);
  if (!config.ok()) {
    terminal.err << "berth: " << text::terminal_safe(config.error().to_string()) << '\n';
    return 2;
  }
  return ControllerRun(arguments, std::move(*settings), *config, terminal).run();
}

}  // namespace berth::app
