#include "app/agent/agent_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <ostream>

#include "agent/agent.h"
#include "agent/mig_helper.h"
#include "agent/requests.h"
#include "app/agent/agent_source.h"
#include "app/files.h"
#include "app/host_port.h"
#include "app/log_lines.h"
#include "app/plain_server.h"
#include "app/signals.h"
#include "base/bug_report.h"
#include "base/run_loop.h"
#include "edge/host/host.h"
#include "edge/kube/config.h"
#include "edge/kube/curl_transport.h"
#include "edge/nvml/recorder.h"
#include "node/advertise/labels.h"
#include "text/escape.h"
#include "text/json.h"

namespace berth::app {

namespace {

constexpr int kExitNotReady = 10;
constexpr std::size_t kMaxConfig = 1 << 20;
constexpr std::int64_t kForgivePatience = 15'000'000'000;
constexpr const char* kNoAgent =
    "berth: does the agent run here? its folder is named by --state-dir\n";

struct AgentSettings {
  agent::AgentOptions agent;
  std::optional<HostPort> metrics, health;
  std::optional<kube::Config> cluster;
  std::string config_text, mig_text;
};

std::string host_name() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0) return {};
  return name;
}

Result<std::string> config_text_of(const AgentArguments& arguments) {
  if (arguments.config_file.empty()) return std::string();
  return read_file(arguments.config_file, kMaxConfig);
}

// The layouts, or why they cannot be read. No file: the usual names count.
Status read_mig_layouts(const std::string& path, std::string& text, agent::AgentOptions& out) {
  if (path.empty()) return {};
  BERTH_TRY(text, read_file(path, kMaxConfig));
  Result<partition::MigConfig> read = partition::read_mig_config(text);
  if (!read.ok()) return std::move(read).error().context(path);
  out.mig_config = std::make_shared<const partition::MigConfig>(std::move(*read));
  return {};
}

std::string word_of(const std::map<std::string, std::string>& words, const std::string& name) {
  const auto found = words.find(name);
  return found == words.end() ? std::string() : found->second;
}

std::string state_dir_of(const AgentArguments& arguments) {
  return arguments.state_dir.empty() ? agent::AgentOptions{}.state_dir : arguments.state_dir;
}

Status read_exporting(const AgentArguments& arguments, monitor::ExportOptions& out) {
  out.hostname = arguments.node_name;
  out.old_hostname = arguments.old_hostname;
  out.old_names = arguments.old_metric_names;
  out.pod_uid = arguments.pod_uid;
  if (arguments.counters_file.empty()) return {};
  BERTH_TRY(const std::string text, read_file(arguments.counters_file, kMaxConfig));
  Result<std::vector<monitor::CounterRow>> rows = monitor::parse_counters_csv(text);
  if (!rows.ok()) return std::move(rows).error().context(arguments.counters_file);
  out.rows = std::move(*rows);
  return {};
}

Result<AgentSettings> agent_settings(const AgentArguments& arguments, const Terminal& terminal) {
  AgentSettings out;
  agent::AgentOptions& options = out.agent;
  options.node_name = arguments.node_name;
  if (options.node_name.empty()) {
    return invalid(
        "--node-name: found nothing, want the name of this machine's Node (or NODE_NAME)");
  }
  if (!arguments.kubelet_dir.empty()) options.kubelet_dir = arguments.kubelet_dir;
  if (!arguments.cdi_dir.empty()) options.cdi_dir = arguments.cdi_dir;
  if (arguments.no_cdi) options.cdi_dir.clear();
  if (!arguments.state_dir.empty()) options.state_dir = arguments.state_dir;
  if (!arguments.host_root.empty()) options.host_root = arguments.host_root;
  options.take_over = arguments.take_over;
  options.read_ns = arguments.sample_ms * std::int64_t{1'000'000};
  // In a pod every agent is process 1: the time tells them apart.
  options.instance = fmt::format(
      "{:x}", static_cast<std::uint64_t>(terminal.wall.now_ns() / 1'000) & 0xff'ffff'ffff);
  BERTH_TRY(out.config_text, config_text_of(arguments));
  Result<advertise::PluginConfig> config =
      advertise::read_plugin_config(out.config_text, arguments.plugin_flags, terminal.environment);
  if (!config.ok()) {
    return arguments.config_file.empty() ? std::move(config).error()
                                         : std::move(config).error().context(arguments.config_file);
  }
  options.config = std::move(*config);
  BERTH_TRY(options.health,
            monitor::health_options(word_of(terminal.environment, "DP_DISABLE_HEALTHCHECKS"),
                                    word_of(terminal.environment, "DP_ENABLE_HEALTHCHECKS")));
  BERTH_CHECK(read_exporting(arguments, options.exporting));
  options.mig_layout = arguments.mig_layout;
  BERTH_CHECK(read_mig_layouts(arguments.mig_config, out.mig_text, options));
  if (arguments.metrics_address != "none") {
    Result<HostPort> place =
        parse_host_port(arguments.metrics_address.empty() ? ":9400" : arguments.metrics_address);
    if (!place.ok()) return std::move(place).error().context("--metrics");
    out.metrics = *place;
  }
  if (!arguments.health_address.empty()) {
    Result<HostPort> place = parse_host_port(arguments.health_address);
    if (!place.ok()) return std::move(place).error().context("--health");
    out.health = *place;
  }
  const bool in_cluster = !word_of(terminal.environment, "KUBERNETES_SERVICE_HOST").empty();
  if (!arguments.kubeconfig.empty() || in_cluster) {
    BERTH_TRY(out.cluster,
              kube::find_config(arguments.kubeconfig, arguments.context, terminal.environment));
  }
  return out;
}

int usage_error(Terminal& terminal, const Error& error) {
  terminal.err << "berth: " << text::terminal_safe(error.to_string()) << '\n';
  return 2;
}

class AgentRun {
 public:
  AgentRun(const AgentArguments& arguments, AgentSettings settings, Terminal& terminal)
      : arguments_(arguments),
        settings_(std::move(settings)),
        terminal_(terminal),
        sink_(terminal.err),
        log_(sink_, terminal.wall, log_options(arguments.log_level, arguments.log_format)),
        loop_(terminal.monotonic, terminal.wall),
        signals_([this] { loop_.post([this] { loop_.stop(); }); }) {}

  int run() {
    if (const Status ready = open(); !ready.ok()) {
      terminal_.err << "berth: " << text::terminal_safe(ready.error().to_string()) << '\n';
      return ready.error().code() == Code::kInvalid ? 2 : 1;
    }
    for (const std::string& warning : settings_.agent.config.warnings) {
      log_.warn("configuration", {{"what", warning}});
    }
    agent_->start();
    watch_config();
    watch_mig();
    watch_faults();
    loop_.run();
    log_.info("stopping");
    server_.reset();
    health_.reset();
    config_watch_.reset();
    mig_watch_.reset();
    fault_watch_.reset();
    agent_.reset();
    return 0;
  }

 private:
  Status open() {
    BERTH_TRY(source_, open_source(loop_, random_.split("source"), arguments_.source,
                                   arguments_.node_name, settings_.agent.config.driver_root));
    settings_.agent.simulated = !source_.real;
    if (!source_.real) settings_.agent.kernel_log.clear();
    if (!settings_.agent.state_dir.empty()) BERTH_CHECK(make_folder(settings_.agent.state_dir));
    open_mig();
    if (settings_.cluster) {
      transport_ = std::make_unique<kube::CurlTransport>(
          loop_, *settings_.cluster, terminal_.environment, kube::CurlOptions{}, &metrics_);
      client_ = std::make_unique<kube::Client>(
          *transport_, loop_, random_.split("client"),
          kube::ClientOptions{.user_agent = "berth-agent", .manager = "berth-agent"}, &metrics_);
    } else {
      log_.info("no kubeconfig: labels, conditions and GpuNode are left alone");
    }
    agent_ =
        std::make_unique<agent::Agent>(loop_, *source_.source, client_.get(),
                                       random_.split("agent"), settings_.agent, log_, metrics_);
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

  // Who changes MIG layouts: the source itself where there is no driver, else the helper.
  void open_mig() {
    agent::AgentOptions& options = settings_.agent;
    if (source_.mig != nullptr) {
      options.mig_driver = source_.mig;
      return;
    }
    agent::MigHelperOptions helper;
    helper.path = arguments_.helper_path.empty() ? "/proc/self/exe" : arguments_.helper_path;
    helper.arguments = {"agent-helper", "--driver-root", options.config.driver_root};
    if (!options.state_dir.empty()) {
      helper.arguments.insert(helper.arguments.end(),
                              {"--lock", options.state_dir + "/mig-helper.lock"});
    }
    for (const char* name : {"LD_LIBRARY_PATH", "BERTH_CRASH_AT"}) {
      const std::string value = word_of(terminal_.environment, name);
      if (!value.empty()) helper.environment.push_back(std::string(name) + "=" + value);
    }
    helper_ = std::make_unique<agent::MigHelper>(loop_, std::move(helper));
    options.mig_driver = helper_.get();
  }

  // These two on the servers' threads.
  text::HttpResponse answer(const std::string& target) {
    text::HttpResponse out{.status = 200, .headers = {}, .body = {}};
    if (target == "/metrics") {
      out.headers = {{"Content-Type", std::string(content_type(MetricFormat::kPrometheusText))}};
      out.body = agent_->page() + metrics_.render(MetricFormat::kPrometheusText);
    } else if (target == "/status") {
      out.headers = {{"Content-Type", "application/json"}};
      out.body = agent_->status();
      if (out.body.empty()) out.status = 503, out.body = "{}\n";  // it has only just started
    } else {
      return probe(target);
    }
    return out;
  }

  text::HttpResponse probe(const std::string& target) const {
    text::HttpResponse out{
        .status = 200, .headers = {{"Content-Type", "text/plain"}}, .body = "ok\n"};
    if (target == "/healthz" || target == "/health") {
      if (!agent_->live()) out.status = 503, out.body = "the agent's loop does not move\n";
    } else if (target == "/readyz") {
      if (agent_->status().empty()) out.status = 503, out.body = "it has only just started\n";
    } else {
      out.status = 404;
      out.body = "there are /metrics, /status (not on the port for health), /healthz, /readyz\n";
    }
    return out;
  }

  // A ConfigMap is replaced by a link that flips: any change in the folder is a reason to look.
  void watch_config() {
    if (arguments_.config_file.empty()) return;
    const std::size_t slash = arguments_.config_file.rfind('/');
    const std::string folder =
        slash == std::string::npos ? "." : arguments_.config_file.substr(0, slash);
    config_watch_ = host::FolderWatch::start(loop_, folder.empty() ? "/" : folder,
                                             [this](const std::string&) { read_config(); });
  }

  void read_config() {
    Result<std::string> text = config_text_of(arguments_);
    if (!text.ok()) return agent_->set_config_problem(text.error().to_string());
    if (*text == settings_.config_text) return;
    settings_.config_text = std::move(*text);
    const Result<advertise::PluginConfig> config = advertise::read_plugin_config(
        settings_.config_text, arguments_.plugin_flags, terminal_.environment);
    if (!config.ok()) return agent_->set_config_problem(config.error().to_string());
    agent_->set_config(*config);
  }

  void watch_mig() {
    if (arguments_.mig_config.empty()) return;
    const std::string path = absolute_path(arguments_.mig_config);
    mig_watch_ = host::FolderWatch::start(loop_, path.substr(0, path.rfind('/')),
                                          [this](const std::string&) { read_mig(); });
  }

  void read_mig() {
    std::string text;
    agent::AgentOptions fresh;
    const Status read = read_mig_layouts(arguments_.mig_config, text, fresh);
    if (!read.ok()) {
      mig_broken_ = true;
      return agent_->set_mig_config_problem(read.error().to_string());
    }
    if (text == settings_.mig_text && !mig_broken_) return;
    mig_broken_ = false;
    settings_.mig_text = std::move(text);
    agent_->set_mig_config(std::move(fresh.mig_config));
  }

  void watch_faults() {
    if (arguments_.sim_faults.empty() || source_.simulated == nullptr) return;
    const std::string path = absolute_path(arguments_.sim_faults);
    fault_watch_ = host::FolderWatch::start(loop_, path.substr(0, path.rfind('/')),
                                            [this](const std::string&) { read_faults(); });
    read_faults();
  }

  // Lines beyond those that were read.
  void read_faults() {
    const Result<std::string> text = read_file(arguments_.sim_faults, kMaxConfig);
    if (!text.ok() || text->size() <= faults_read_) return;
    std::size_t end = 0;
    while ((end = text->find('\n', faults_read_)) != std::string::npos) {
      const std::string line = text->substr(faults_read_, end - faults_read_);
      faults_read_ = end + 1;
      if (line.empty()) continue;
      const Result<sim::Fault> fault = sim::parse_fault(line, source_.simulated->gpus());
      if (fault.ok()) {
        source_.simulated->inject(*fault);
      } else {
        log_.warn("not a fault", {{"line", line}, {"why", fault.error().to_string()}});
      }
    }
  }

  const AgentArguments& arguments_;
  AgentSettings settings_;
  Terminal& terminal_;
  StreamSink sink_;
  Logger log_;
  MetricsRegistry metrics_;
  BugReporter bugs_{log_, metrics_};
  Random random_{static_cast<std::uint64_t>(::getpid())};
  RunLoop loop_;
  StopSignals signals_;
  OpenSource source_;
  std::unique_ptr<kube::CurlTransport> transport_;
  std::unique_ptr<kube::Client> client_;
  std::unique_ptr<agent::MigHelper> helper_;
  std::unique_ptr<agent::Agent> agent_;
  std::unique_ptr<serve::HttpServer> server_, health_;
  std::unique_ptr<host::FolderWatch> config_watch_, fault_watch_, mig_watch_;
  bool mig_broken_ = false;
  std::size_t faults_read_ = 0;
};

int print_labels(const AgentArguments& arguments, const AgentSettings& settings,
                 Terminal& terminal) {
  RunLoop loop(terminal.monotonic, terminal.wall);
  Random random(1);
  Result<OpenSource> opened = open_source(loop, random, arguments.source, arguments.node_name,
                                          settings.agent.config.driver_root);
  if (!opened.ok()) return usage_error(terminal, opened.error());
  const std::string& root = settings.agent.host_root;
  model::HostFacts facts = host::read_host(root);
  int code = 0;
  opened->source->take_inventory([&](Result<model::GpuInventory> found) {
    auto labels = advertise::host_labels(facts);
    if (found.ok()) {
      if (opened->real) host::place_on_bus(root, *found, facts);
      labels.merge(advertise::gpu_labels(*found, facts, settings.agent.config,
                                         terminal.wall.now_ns() / 1'000'000'000));
    } else {
      terminal.err << "berth: " << text::terminal_safe(found.error().to_string()) << '\n';
      code = 1;
    }
    for (const auto& [key, value] : labels) {
      terminal.out << text::terminal_safe(key) << '=' << text::terminal_safe(value) << '\n';
    }
    loop.stop();
  });
  loop.run();
  return code;
}

}  // namespace

void fill_from_environment(AgentArguments& arguments,
                           const std::map<std::string, std::string>& environment) {
  const std::pair<std::string*, const char*> places[] = {
      {&arguments.source, "BERTH_SOURCE"},           {&arguments.node_name, "NODE_NAME"},
      {&arguments.kubeconfig, "BERTH_KUBECONFIG"},   {&arguments.kubelet_dir, "BERTH_KUBELET_DIR"},
      {&arguments.cdi_dir, "BERTH_CDI_DIR"},         {&arguments.state_dir, "BERTH_STATE_DIR"},
      {&arguments.metrics_address, "BERTH_METRICS"}, {&arguments.health_address, "BERTH_HEALTH"},
      {&arguments.host_root, "BERTH_HOST_ROOT"},     {&arguments.config_file, "CONFIG_FILE"},
      {&arguments.mig_layout, "BERTH_MIG_LAYOUT"},   {&arguments.mig_config, "BERTH_MIG_CONFIG"},
      {&arguments.helper_path, "BERTH_HELPER"},
  };
  for (const auto& [place, name] : places) {
    if (place->empty()) *place = word_of(environment, name);
  }
  if (arguments.source.empty()) arguments.source = "nvml";
  if (arguments.node_name.empty()) arguments.node_name = host_name();
}

int agent_command(const AgentArguments& given, Terminal& terminal) {
  AgentArguments arguments = given;
  fill_from_environment(arguments, terminal.environment);
  Result<AgentSettings> settings = agent_settings(arguments, terminal);
  if (!settings.ok()) return usage_error(terminal, settings.error());
  if (arguments.print_labels) return print_labels(arguments, *settings, terminal);
  return AgentRun(arguments, std::move(*settings), terminal).run();
}

int agent_status_command(const AgentArguments& given, Terminal& terminal) {
  AgentArguments arguments = given;
  fill_from_environment(arguments, terminal.environment);
  const std::string folder = state_dir_of(arguments);
  const Result<std::string> json = read_file(folder + "/status.json");
  const Result<std::string> table = read_file(folder + "/status.txt");
  for (const Result<std::string>* one : {&json, &table}) {
    if (one->ok()) continue;
    terminal.err << "berth: " << text::terminal_safe(one->error().to_string()) << '\n' << kNoAgent;
    return 1;
  }
  const Result<text::Document> read = text::parse_json(*json);
  const text::Value* ready = read.ok() ? read->root().find("ready") : nullptr;
  if (ready == nullptr || !ready->is_bool()) {
    terminal.err << "berth: " << folder << "/status.json is damaged; the agent writes it anew\n";
    return 1;
  }
  terminal.out << (arguments.status_output == "json" ? *json + '\n' : *table);
  return ready->as_bool() ? 0 : kExitNotReady;
}

int agent_forgive_command(const AgentArguments& given, Terminal& terminal) {
  AgentArguments arguments = given;
  fill_from_environment(arguments, terminal.environment);
  const std::string folder = agent::requests_folder(state_dir_of(arguments));
  agent::Request request{agent::kForgive, arguments.forgive_gpu, "", arguments.forgive_why};
  for (const char* name : {"SUDO_USER", "USER", "LOGNAME"}) {
    if (request.by.empty()) request.by = word_of(terminal.environment, name);
  }
  if (request.by.empty()) request.by = "user " + std::to_string(::getuid());
  if (const Result<agent::Request> read = agent::read_request(agent::write_request(request));
      !read.ok()) {
    return usage_error(terminal, read.error());
  }
  RunLoop loop(terminal.monotonic, terminal.wall);
  const std::string id = fmt::format("{:x}p{}", terminal.wall.now_ns(), ::getpid());
  int code = 1;
  const auto asking = agent::Asking::start(
      loop, folder, id, request, kForgivePatience, [&](const Result<std::string>& said) {
        if (said.ok()) {
          terminal.out << text::terminal_safe(*said) << '\n';
          code = 0;
        } else {
          terminal.err << "berth: " << text::terminal_safe(said.error().to_string()) << '\n';
          if (said.error().code() != Code::kInvalid) terminal.err << kNoAgent;
        }
        loop.stop();
      });
  loop.run();
  return code;
}

int agent_record_command(const AgentArguments& given, Terminal& terminal) {
  AgentArguments arguments = given;
  fill_from_environment(arguments, terminal.environment);
  const std::string root = arguments.host_root.empty() ? "/" : arguments.host_root;
  RunLoop loop(terminal.monotonic, terminal.wall);
  Result<OpenSource> opened =
      open_source(loop, Random(1), arguments.source, arguments.node_name, "/");
  if (!opened.ok()) return usage_error(terminal, opened.error());
  model::HostFacts facts = host::read_host(root);
  nvml::RecorderOptions options;
  options.duration_ns = arguments.record_seconds * std::int64_t{1'000'000'000};
  terminal.err << "recording for " << arguments.record_seconds << " s\n";
  int code = 1;
  const nvml::Recorder recorder(
      loop, *opened->source, facts, options,
      [&](Result<nvml::Recording> made) {
        Status wrote = made.ok() ? write_output(arguments.record_file, nvml::write_recording(*made))
                                 : Status(std::move(made).error());
        if (wrote.ok()) {
          terminal.out << "wrote " << text::terminal_safe(arguments.record_file) << '\n';
          code = 0;
        } else {
          terminal.err << "berth: " << text::terminal_safe(wrote.error().to_string()) << '\n';
        }
        loop.stop();
      },
      [&](model::GpuInventory& inventory) {
        if (opened->real) host::place_on_bus(root, inventory, facts);
      });
  loop.run();
  return code;
}

}  // namespace berth::app
