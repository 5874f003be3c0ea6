// agent: the node agent as a process of its own, with simulated GPUs, under a fake kubelet.
//
//   agent PATH-TO-BERTH [--gpus 8] [--mig] [--rounds 20] [--scrapes 3600] [--idle-seconds 20]
//
// Printed: start of the process to registered; a fault that is written to its file to the list that
// the kubelet sees; Allocate through gRPC; scrapes over HTTP; then an hour's worth of readings and
// scrapes in a minute, and what the process holds afterwards; and its CPU when nobody asks.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "edge/kubelet/fake_kubelet_for_test.h"

extern char** environ;

namespace berth::bench {
namespace {

using kubelet::FakeKubelet;

struct AgentBenchOptions {
  std::string berth;
  int gpus = 8, rounds = 20, scrapes = 3'600;
  int idle_seconds = 20;
  bool mig = false;
};

class Times {
 public:
  void add(std::int64_t ns) { all_.push_back(static_cast<double>(ns) / 1e6); }
  void print(const char* what) {
    std::sort(all_.begin(), all_.end());
    const auto at = [&](double part) {
      if (all_.empty()) return 0.0;
      return all_[static_cast<std::size_t>(part * static_cast<double>(all_.size() - 1))];
    };
    fmt::print("{:<40} {:>6} {:>9.2f} {:>9.2f} {:>9.2f}\n", what, all_.size(), at(0.5), at(0.99),
               at(1));
  }

 private:
  std::vector<double> all_;
};

// One agent process; killed when it goes out of scope.
class Process {
 public:
  Process(const AgentBenchOptions& options, const std::string& folder, int port, int sample_ms) {
    const std::vector<std::string> words = {options.berth,    "agent",
                                            "--source",       "sim=" + folder + "/fleet.yaml",
                                            "--node-name",    "bench-0",
                                            "--kubelet-dir",  folder,
                                            "--cdi-dir",      folder + "/cdi",
                                            "--state-dir",    folder + "/state",
                                            "--metrics",      "127.0.0.1:" + std::to_string(port),
                                            "--sim-faults",   folder + "/faults",
                                            "--sample-ms",    std::to_string(sample_ms),
                                            "--mig-strategy", "mixed",
                                            "--log-level",    "warn"};
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    if (posix_spawn(&pid_, options.berth.c_str(), nullptr, nullptr, arguments.data(), environ)) {
      std::perror("posix_spawn");
      std::exit(1);
    }
  }
  ~Process() {
    kill(pid_, SIGTERM);
    int status = 0;
    waitpid(pid_, &status, 0);
  }
  double rss_mb(const char* field) const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/status");
    std::string word;
    while (file >> word) {
      long kb = 0;
      if (word == field && file >> kb) return static_cast<double>(kb) / 1024;
    }
    return 0;
  }
  double cpu_seconds() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    std::string skip;
    long user = 0, system = 0;
    for (int i = 0; i < 13; ++i) file >> skip;
    file >> user >> system;
    return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }

 private:
  pid_t pid_ = 0;
};

// Real time is what is measured here.
void pass(int ms) { poll(nullptr, 0, ms); }

std::size_t scrape(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::size_t bytes = 0;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const char ask[] = "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    if (write(fd, ask, sizeof ask - 1) > 0) {
      char chunk[65536];
      ssize_t got = 0;
      while ((got = read(fd, chunk, sizeof chunk)) > 0) bytes += static_cast<std::size_t>(got);
    }
  }
  close(fd);
  return bytes;
}

bool wait_for(FakeKubelet& kubelet, const std::string& resource, int allocatable) {
  return kubelet.wait_until([&] { return kubelet.counts(resource).allocatable == allocatable; });
}

// Goes when it goes out of scope: after the agents that write into it.
struct Folder {
  Folder() {
    if (mkdtemp(name) == nullptr) std::exit(1);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(name, ignored);
  }
  char name[32] = "/tmp/agent-bench-XXXXXX";
};

void run(const AgentBenchOptions& options) {
  const Folder of_all;
  const std::string folder = of_all.name;
  for (const char* part : {"device-plugins", "pod-resources", "cdi", "state"}) {
    std::filesystem::create_directories(folder + '/' + part);
  }
  std::ofstream(folder + "/fleet.yaml") << fmt::format(
      "pools: [{{name: bench, count: 1, model: NVIDIA-H100-80GB-HBM3, gpus: {}{}}}]\n",
      options.gpus, options.mig ? ", mig: 1g.10gb" : "");
  std::ofstream(folder + "/faults") << "";
  FakeKubelet kubelet(folder + "/device-plugins");
  std::filesystem::create_symlink(kubelet.pod_resources_socket(),
                                  folder + "/pod-resources/kubelet.sock");
  const std::string resource = options.mig ? "nvidia.com/mig-1g.10gb" : "nvidia.com/gpu";
  const int per_gpu = options.mig ? 7 : 1;
  const int all = options.gpus * per_gpu;
  const int port = 20'000 + static_cast<int>(getpid() % 20'000);
  fmt::print("{} GPUs{}; milliseconds\n{:<40} {:>6} {:>9} {:>9} {:>9}\n", options.gpus,
             options.mig ? " x 7 MIG" : "", "", "n", "p50", "p99", "max");
  Times start, fault, allocate, scraped;
  for (int i = 0; i < options.rounds; ++i) {
    const std::size_t before = kubelet.registrations().size();
    const std::int64_t from = FakeKubelet::now_ns();
    const Process process(options, folder, port, 1'000);
    kubelet.wait_until([&] { return kubelet.registrations().size() > before; });
    start.add(kubelet.registrations().back().at_ns - from);
    wait_for(kubelet, resource, all);
  }
  start.print("start of the process to registered");
  std::size_t bytes = 0;
  {
    const auto inject = [&](const std::string& line) {  // closed: that is what the agent sees
      std::ofstream(folder + "/faults", std::ios::app) << line << "\n";
    };
    std::filesystem::remove(folder + "/state/health.json");
    const Process process(options, folder, port, 1'000);
    wait_for(kubelet, resource, all);
    for (int i = 0; i < options.gpus; ++i) {
      const std::int64_t from = FakeKubelet::now_ns();
      inject(fmt::format("xid gpu={} code=79", i));
      wait_for(kubelet, resource, all - (i + 1) * per_gpu);
      fault.add(kubelet.lists().back().at_ns - from);
    }
    fault.print("Xid to the kubelet's list");
    inject("recover");
    wait_for(kubelet, resource, all);
    const auto lists = kubelet.lists();
    for (int i = 0; i < 2'000; ++i) {
      const std::string id = lists.back().devices[static_cast<std::size_t>(i % all)].id;
      const std::int64_t from = FakeKubelet::now_ns();
      if (!kubelet.allocate(resource, {{id}}).ok()) std::exit(1);
      allocate.add(FakeKubelet::now_ns() - from);
    }
    allocate.print("Allocate through gRPC");
    for (int i = 0; i < 1'000; ++i) {
      const std::int64_t from = FakeKubelet::now_ns();
      bytes = scrape(port);
      scraped.add(FakeKubelet::now_ns() - from);
    }
    scraped.print("scrape over HTTP");
    pass(2'000);
    const double cpu = process.cpu_seconds();
    pass(options.idle_seconds * 1'000);
    fmt::print("idle CPU: {:.2f} % of a core over {} s\n",
               (process.cpu_seconds() - cpu) / options.idle_seconds * 100, options.idle_seconds);
  }
  std::ofstream(folder + "/faults", std::ios::trunc) << "";
  const Process process(options, folder, port, 10);
  wait_for(kubelet, resource, all);
  pass(2'000);
  const double early = process.rss_mb("VmRSS:");
  for (int i = 0; i < options.scrapes; ++i) {
    bytes = scrape(port);
    pass(8);
  }
  fmt::print(
      "RSS {:.1f} MB after start, {:.1f} MB after {} readings and scrapes of {} bytes; peak "
      "{:.1f} MB\n",
      early, process.rss_mb("VmRSS:"), options.scrapes, bytes, process.rss_mb("VmHWM:"));
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  berth::bench::AgentBenchOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::atoi(argv[++i]) : 0; };
    if (word == "--mig") {
      options.mig = true;
    } else if (word == "--gpus") {
      options.gpus = number();
    } else if (word == "--rounds") {
      options.rounds = number();
    } else if (word == "--idle-seconds") {
      options.idle_seconds = std::max(1, number());
    } else if (word == "--scrapes") {
      options.scrapes = number();
    } else {
      options.berth = word;
    }
  }
  if (options.berth.empty()) {
    // make bench runs every program without arguments.
    const std::string here = std::filesystem::path(argv[0]).parent_path().string();
    options.berth = here + "/../berth";
  }
  berth::bench::run(options);
  return 0;
}
