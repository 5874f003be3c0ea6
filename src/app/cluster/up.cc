#include "app/cluster/up.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <ostream>

#include "app/cluster/demo.h"
#include "app/cluster/embedded.h"
#include "app/files.h"
#include "app/log_lines.h"
#include "app/signals.h"
#include "app/words.h"
#include "base/bug_report.h"
#include "text/escape.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

constexpr std::int64_t kUpSecond = 1'000'000'000;
constexpr std::uint16_t kDefaultPagePort = 8080;

// A folder for what must be a file though nothing is to stay.
class ScratchFolder {
 public:
  Status make() {
    std::error_code trouble;
    std::string pattern = (std::filesystem::temp_directory_path(trouble) / "berth-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      return Error(Code::kUnavailable, "no temporary folder can be made").context(pattern);
    }
    path_ = pattern;
    return {};
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Result<sim::Fleet> fleet_of(const UpOptions& options) {
  if (options.fleet_file.empty()) return sim::fleet_of_gpus(options.gpus);
  BERTH_TRY(const std::string yaml, read_file(options.fleet_file));
  return sim::parse_fleet(yaml).context(options.fleet_file);
}

std::string fleet_words(const sim::Fleet& fleet) {
  std::string out = show_count(static_cast<std::int64_t>(fleet.nodes()), "node") + ", " +
                    show_count(static_cast<std::int64_t>(fleet.gpus()), "simulated GPU");
  std::string models;
  for (const sim::Pool& pool : fleet.pools) {
    const std::string model = short_model(pool.model);
    if (pool.gpus == 0 || models.find(model) != std::string::npos) continue;
    models += (models.empty() ? "" : ", ") + model;
  }
  return models.empty() ? out : out + " (" + models + ")";
}

class UpRun {
 public:
  UpRun(const UpOptions& options, Terminal& terminal)
      : options_(options),
        terminal_(terminal),
        sink_(terminal.err),
        log_(sink_, terminal.wall, log_options(options.log_level)),
        loop_(terminal.monotonic, terminal.wall),
        signals_([this] { loop_.post([this] { loop_.stop(); }); }) {}

  int run() {
    const std::int64_t started = terminal_.monotonic.ticks_ns();
    Result<sim::Fleet> fleet = fleet_of(options_);
    if (!fleet.ok()) return fail(fleet.error(), 2);
    fleet_ = *fleet;
    EmbeddedOptions embedded;
    embedded.fleet = fleet_;
    embedded.address = options_.address;
    embedded.port = options_.port;
    embedded.controller = !options_.no_controller;
    if (const Status page = choose_page(embedded); !page.ok()) return fail(page.error(), 2);
    embedded.seed = options_.seed;
    embedded.kubeconfig = options_.kubeconfig;
    if (options_.in_memory || options_.demo) {
      if (embedded.kubeconfig.empty()) {
        if (const Status made = scratch_.make(); !made.ok()) return fail(made.error(), 1);
        embedded.kubeconfig = scratch_.path() + "/kubeconfig";
      }
    } else {
      embedded.data = absolute_path(options_.data);
    }
    auto cluster = EmbeddedCluster::start(loop_, embedded, log_, metrics_, [&](Status ready) {
      if (!ready.ok()) {
        code_ = fail(ready.error(), 1);
        loop_.stop();
        return;
      }
      greet(terminal_.monotonic.ticks_ns() - started);
    });
    if (!cluster.ok()) return fail(cluster.error(), 1);
    cluster_ = std::move(*cluster);
    loop_.run();
    if (line_shown_) terminal_.out << "\n";
    demo_.reset();
    cluster_->stop();
    cluster_.reset();
    if (!options_.demo && code_ == 0) {
      terminal_.out << (embedded.data.empty()
                            ? "stopped\n"
                            : "stopped; the state stays in " + options_.data + "\n");
    }
    return code_;
  }

 private:
  int fail(const Error& error, int code) {
    terminal_.err << "berth: " << text::terminal_safe(error.to_string()) << '\n';
    return code;
  }

  Status choose_page(EmbeddedOptions& embedded) const {
    if (options_.page == "none" || options_.demo) return {};
    if (options_.page.empty()) {
      embedded.page = kDefaultPagePort;
      embedded.page_or_any = true;
      return {};
    }
    std::uint16_t port = 0;
    const char* end = options_.page.data() + options_.page.size();
    const auto [stop, code] = std::from_chars(options_.page.data(), end, port);
    if (code != std::errc() || stop != end) {
      return invalid("--page: found \"" + options_.page + "\", want a port of 0..65535, or none");
    }
    embedded.page = port;
    return {};
  }

  void greet(std::int64_t took_ns) {
    std::ostream& out = terminal_.out;
    out << "berth " << BERTH_VERSION << "  embedded cluster, " << fleet_words(fleet_);
    if (!options_.in_memory && !options_.demo) {
      out << (cluster_->continued() ? ", continued from " : ", data in ") << options_.data;
    }
    out << "\n";
    if (!options_.demo) {
      out << "  export KUBECONFIG=" << cluster_->kubeconfig() << "\n"
          << "  try     kubectl get nodes\n"
          << "          berth run --gpus 8 --seconds 5 -- train.sh\n"
          << "          kubectl get jobs,pods,clusterqueues\n";
      if (!cluster_->page_url().empty()) out << "          open " << cluster_->page_url() << "\n";
    }
    out << fmt::format("ready in {:.1f} s", static_cast<double>(took_ns) / 1e9)
        << (options_.demo ? "" : "   ^C stops, the state stays") << std::endl;
    if (options_.demo) {
      demo_ =
          std::make_unique<Demo>(cluster_->client(), Random(options_.seed),
                                 static_cast<int>(fleet_.gpus()), terminal_.out, [this](bool well) {
                                   code_ = well ? 0 : 1;
                                   loop_.stop();
                                 });
      demo_->start();
    } else if (terminal_.out_is_terminal) {
      summary();
    }
  }

  void summary() {
    const sim::NodesSummary nodes = cluster_->nodes();
    const control::ControllerSummary control = cluster_->control();
    const std::string time = text::format_rfc3339(terminal_.wall.now_ns());
    std::string line =
        fmt::format("{}  GPUs {}/{} used   running {}   waiting {}", time.substr(11, 8),
                    nodes.used_gpus, nodes.gpus, nodes.running_pods, control.pending_pods);
    if (nodes.healthy_gpus < nodes.gpus) {
      line += fmt::format("   unhealthy {}", nodes.gpus - nodes.healthy_gpus);
    }
    if (!control.trouble.empty()) line += "   " + text::terminal_safe(control.trouble);
    terminal_.out << "\r\x1b[K" << line << std::flush;
    line_shown_ = true;
    loop_.after(kUpSecond, [this] { summary(); });
  }

  const UpOptions& options_;
  Terminal& terminal_;
  StreamSink sink_;
  Logger log_;
  MetricsRegistry metrics_;
  BugReporter bugs_{log_, metrics_};
  RunLoop loop_;
  StopSignals signals_;
  ScratchFolder scratch_;
  sim::Fleet fleet_;
  std::unique_ptr<EmbeddedCluster> cluster_;
  std::unique_ptr<Demo> demo_;
  int code_ = 0;
  bool line_shown_ = false;
};

}  // namespace

int up_command(const UpOptions& options, Terminal& terminal) {
  if (options.gpus < 1 || options.gpus > 100'000) {
    terminal.err << "berth: --gpus: found " << options.gpus << ", want 1..100000\n";
    return 2;
  }
  if (options.data.empty()) {
    terminal.err << "berth: --data: found \"\", want a folder; --in-memory keeps nothing\n";
    return 2;
  }
  return UpRun(options, terminal).run();
}

}  // namespace berth::app
