#include "app/cluster/demo.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/cluster/job_manifest.h"
#include "app/words.h"
#include "text/escape.h"

namespace berth::app {

namespace {

constexpr std::int64_t kDemoSecond = 1'000'000'000;
// Far beyond what it takes; a demo that hangs is one that failed.
constexpr std::int64_t kDemoLimit = 300 * kDemoSecond;

struct DemoJob {
  const char* name;
  int pods, gpus, seconds;
};

// For 32 GPUs: 46 are asked for at once, so some wait for others to end.
constexpr DemoJob kDemoJobs[] = {
    {"llama-7b", 2, 8, 2},  {"bert-ft", 1, 4, 1}, {"resnet", 1, 2, 1},  {"embed-a", 1, 1, 1},
    {"embed-b", 1, 1, 1},   {"sweep-1", 1, 2, 1}, {"sweep-2", 1, 2, 1}, {"sweep-3", 1, 2, 1},
    {"diffusion", 1, 8, 1}, {"eval-0", 1, 1, 1},  {"eval-1", 1, 1, 1},  {"tokenize", 1, 0, 1},
};
// It needs more than there is: the demo shows why it waits, and ends without it.
constexpr const char* kTooBig = "gpt-huge";

}  // namespace

struct Demo::State {
  State(kube::Client& with, Random random, int total, std::ostream& to,
        std::function<void(bool)> then)
      : client(with),
        gpus(total),
        out(to),
        done(std::move(then)),
        follower(client, random.split("demo"), "default",
                 [this](const FollowedJob& job, const std::string& line) { said(job, line); }) {}

  kube::Client& client;
  int gpus;
  std::ostream& out;
  std::function<void(bool)> done;
  JobFollower follower;
  Loop::Timer limit = 0;
  bool over = false;
  bool big_said = false;

  void said(const FollowedJob& job, const std::string& line) {
    if (over) return;
    const std::string name = job.name.substr(job.name.find('/') + 1);
    out << "  " << padded(name, 10) << ' ' << text::terminal_safe(line) << std::endl;
    if (name == kTooBig && line.starts_with("waits")) big_said = true;
    if (finished()) client.loop().post([this] { finish(); });
  }

  bool finished() const {
    if (!big_said) return false;
    for (const FollowedJob& job : follower.jobs()) {
      if (!job.ended() && !job.name.ends_with(kTooBig)) return false;
    }
    return true;
  }

  void submit(const DemoJob& job) {
    JobAsk ask;
    ask.name = job.name;
    ask.pods = job.pods;
    ask.gpus = job.gpus;
    ask.seconds = job.seconds;
    ask.queue = "default";
    follower.follow(ask.name);
    client.create(kube::resources::jobs(), ask.ns, job_manifest(ask), {},
                  [this, name = ask.name](const kube::Answer& answer) {
                    if (answer.ok()) return;
                    out << "  " << name << " was refused: " << text::terminal_safe(answer.message)
                        << std::endl;
                    give_up();
                  });
  }

  void give_up() {
    if (over) return;
    over = true;
    client.loop().cancel(limit);
    done(false);
  }

  void finish() {
    if (over) return;
    over = true;
    client.loop().cancel(limit);
    int well = 0, total = 0;
    std::int64_t gpu_count = 0;
    for (const FollowedJob& job : follower.jobs()) {
      if (job.name.ends_with(kTooBig)) continue;
      ++total;
      well += job.state == "succeeded";
      gpu_count += job.gpus;
    }
    out << fmt::format("{} of {} jobs ran to their end; they held {} GPUs of {} in turn.\n", well,
                       total, gpu_count, gpus);
    done(well == total);
  }
};

Demo::Demo(kube::Client& client, Random random, int gpus, std::ostream& out,
           std::function<void(bool)> done)
    : state_(std::make_shared<State>(client, random, gpus, out, std::move(done))) {}

Demo::~Demo() = default;

void Demo::start() {
  State* state = state_.get();
  state->limit = state->client.loop().after(kDemoLimit, [state] {
    state->out << "the jobs did not end within five minutes\n";
    state->give_up();
  });
  for (const DemoJob& job : kDemoJobs) state->submit(job);
  state->submit({kTooBig, state->gpus / 8 + 1, 8, 1});
  state->follower.start();
}

}  // namespace berth::app
