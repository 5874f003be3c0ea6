#include "app/cluster/run_job.h"

#include <fmt/format.h>

#include <memory>
#include <ostream>

#include "app/cluster/follow.h"
#include "app/next_step.h"
#include "app/signals.h"
#include "app/words.h"
#include "base/run_loop.h"
#include "edge/kube/config.h"
#include "edge/kube/curl_transport.h"
#include "text/escape.h"

namespace berth::app {

namespace {

// "python train.py" at noon: "python-43200"; names of Kubernetes are lower case and short.
std::string job_name(const std::vector<std::string>& command, std::int64_t now_ns) {
  std::string base = command.empty() ? "job" : command.front();
  base = base.substr(base.rfind('/') == std::string::npos ? 0 : base.rfind('/') + 1);
  std::string out;
  for (const char c : base) {
    const char small = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool plain = (small >= 'a' && small <= 'z') || (small >= '0' && small <= '9');
    if (plain) {
      out += small;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
    if (out.size() == 40) break;
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  if (out.empty() || (out[0] >= '0' && out[0] <= '9')) out.insert(0, "job-");
  constexpr std::int64_t kMillion = 1'000'000, kDay = 86'400'000;
  return fmt::format("{}-{}", out, now_ns / kMillion % kDay);
}

class JobRun {
 public:
  JobRun(const RunOptions& options, const kube::Config& config, Terminal& terminal)
      : options_(options),
        server_(config.server),
        terminal_(terminal),
        loop_(terminal.monotonic, terminal.wall),
        signals_([this] {
          loop_.post([this] {
            code_ = 130;
            loop_.stop();
          });
        }),
        transport_(loop_, config, terminal.environment),
        client_(transport_, loop_, Random(static_cast<std::uint64_t>(terminal.wall.now_ns())),
                kube::ClientOptions{.manager = "berth-run"}) {}

  int run() {
    follower_ = std::make_unique<JobFollower>(
        client_, Random(1), options_.job.ns,
        [this](const FollowedJob& job, const std::string& line) { said(job, line); });
    client_.create(kube::resources::jobs(), options_.job.ns, job_manifest(options_.job), {},
                   [this](const kube::Answer& answer) { submitted(answer); });
    loop_.run();
    if (code_ == 130) {
      terminal_.err << "berth: the Job goes on; kubectl -n " << options_.job.ns << " delete job "
                    << options_.job.name << " ends it\n";
    }
    follower_.reset();
    return code_;
  }

 private:
  void submitted(const kube::Answer& answer) {
    if (!answer.ok()) {
      terminal_.err << "berth: " << text::terminal_safe(refusal(answer).to_string()) << '\n';
      code_ = 1;
      return loop_.stop();
    }
    terminal_.out << options_.job.ns << '/' << options_.job.name
                  << " submitted: " << show_count(options_.job.pods, "pod") << " x "
                  << show_count(options_.job.gpus, "GPU") << std::endl;
    if (options_.detach) return loop_.stop();
    follower_->follow(options_.job.name);
    follower_->start();
  }

  Error refusal(const kube::Answer& answer) const {
    if (answer.status == 404) {
      return {Code::kNotFound,
              answer.error().to_string() + "; kubectl create namespace " + options_.job.ns};
    }
    if (answer.status == 409) {
      return {Code::kConflict, answer.error().to_string() + "; --name gives it another name"};
    }
    if (answer.status != 0 && answer.status != 401 && answer.status != 403) return answer.error();
    return no_answer(answer.error().context(server_), InputKind::kCluster);
  }

  void said(const FollowedJob& job, const std::string& line) {
    terminal_.out << job.name << ' ' << text::terminal_safe(line) << std::endl;
    if (!job.ended()) return;
    code_ = job.state == "succeeded" ? 0 : 1;
    loop_.post([this] { loop_.stop(); });
  }

  const RunOptions& options_;
  const std::string server_;
  Terminal& terminal_;
  RunLoop loop_;
  StopSignals signals_;
  kube::CurlTransport transport_;
  kube::Client client_;
  std::unique_ptr<JobFollower> follower_;
  int code_ = 0;
};

}  // namespace

int run_job_command(const RunOptions& given, Terminal& terminal) {
  RunOptions options = given;
  if (options.job.command.empty() && options.job.image == JobAsk{}.image &&
      options.job.seconds < 0) {
    terminal.err << "berth: found no command, want one after --, or an --image that has its own\n"
                 << "berth: for example " << terminal.program << " run --gpus 1 -- nvidia-smi\n";
    return kExitUsage;
  }
  if (options.job.name.empty()) {
    options.job.name = job_name(options.job.command, terminal.wall.now_ns());
  }
  const Result<kube::Config> config = kube::find_config(options.cluster, terminal.environment);
  if (!config.ok()) {
    terminal.err << "berth: "
                 << text::terminal_safe(no_config(config.error(), InputKind::kCluster).to_string())
                 << '\n';
    return 1;
  }
  if (options.job.ns.empty()) options.job.ns = config->ns;
  return JobRun(options, *config, terminal).run();
}

}  // namespace berth::app
