// api-writes: what the embedded API server carries, in one process and on one loop.
//
//   api-writes [--pods N] [--memory] [--watchers N]
//
// Pods are created, bound and reported Running, as clients, a scheduler and kubelets would, through
// the same code that HTTP requests reach; the store is SQLite in a file that is thrown away, or
// memory. Then one change at a time is told to more and more watchers. Printed: writes per second,
// CPU of the loop's thread per write, bytes the process holds, and what a watcher costs.
#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/run_loop.h"
#include "base/system_clock.h"
#include "edge/store/memory_store.h"
#include "edge/store/sqlite_store.h"
#include "embedded/api/api_server.h"
#include "embedded/api/local_transport.h"

namespace berth::bench {
namespace {

struct ApiBenchOptions {
  int pods = 10'000;
  int watchers = 1'000;
  bool memory = false;
};

double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double resident_mb() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long pages = 0, resident = 0;
  if (file != nullptr) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

struct Figures {
  double wall_s = 0, cpu_s = 0;
  int good = 0, bad = 0;
};

class ApiBench {
 public:
  ApiBench(RunLoop& loop, sim::ApiServer& server) : loop_(loop), transport_(loop, server) {}

  // So many requests, at most 256 of them under way.
  Figures run(int count, const std::function<text::HttpRequest(int)>& make) {
    Figures figures;
    int sent = 0, back = 0;
    std::function<void()> next = [&] {
      while (sent < count && sent - back < 256) {
        transport_.send(make(sent++), {},
                        [&](const text::HttpResponse& answer, const kube::TransportError*) {
                          ++(answer.status < 300 && answer.status > 0 ? figures.good : figures.bad);
                          if (++back == count) return loop_.stop();
                          next();
                        });
      }
    };
    const double cpu = thread_cpu_s();
    const std::int64_t begin = loop_.monotonic().ticks_ns();
    loop_.post(next);
    loop_.run();
    figures.wall_s = static_cast<double>(loop_.monotonic().ticks_ns() - begin) / 1e9;
    figures.cpu_s = thread_cpu_s() - cpu;
    return figures;
  }

  void watch(const std::string& target) {
    transport_.stream({"GET", target, {}, {}}, {},
                      {.on_head = [](const text::HttpResponse&) {},
                       .on_data =
                           [this](std::string_view bytes) {
                             events_ += bytes.size() > 0 ? 1 : 0;
                             return true;
                           },
                       .on_end = [](const kube::TransportError*) {}});
  }
  long events() const { return events_; }

 private:
  RunLoop& loop_;
  sim::LocalTransport transport_;
  long events_ = 0;
};

text::HttpRequest bench_request(std::string method, std::string target, std::string body,
                                const char* type = "application/json") {
  return {std::move(method),
          std::move(target),
          {{"Content-Type", type}, {"User-Agent", "bench/1"}},
          std::move(body)};
}

std::string pod_target(int i) {
  return fmt::format("/api/v1/namespaces/default/pods/pod-{:05}", i);
}

text::HttpRequest create_pod(int i) {
  return bench_request(
      "POST", "/api/v1/namespaces/default/pods",
      fmt::format(
          R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"pod-{:05}","labels":)"
          R"({{"app":"train","job":"j{}"}}}},"spec":{{"schedulerName":"berth",)"
          R"("restartPolicy":"Never","containers":[{{"name":"main","image":"example/train:1",)"
          R"("command":["train"],"resources":{{"limits":{{"nvidia.com/gpu":"1"}},"requests":)"
          R"({{"cpu":"2","memory":"8Gi","nvidia.com/gpu":"1"}}}}}}]}}}})",
          i, i / 8));
}

text::HttpRequest bind_pod(int i) {
  return bench_request(
      "POST", pod_target(i) + "/binding",
      fmt::format(
          R"({{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"pod-{:05}","annotations":)"
          R"({{"berth.dev/gpus":"GPU-{}"}}}},"target":{{"kind":"Node","name":"node-{:04}"}}}})",
          i, i, i / 8));
}

text::HttpRequest report_pod(int i) {
  return bench_request(
      "PATCH", pod_target(i) + "/status",
      R"({"status":{"phase":"Running","podIP":"10.0.0.1","conditions":[)"
      R"({"type":"Ready","status":"True"},{"type":"ContainersReady","status":"True"}]}})",
      "application/strategic-merge-patch+json");
}

void print_row(const char* what, const Figures& figures) {
  const int all = figures.good + figures.bad;
  fmt::print("{:<28} {:>8} {:>6} {:>10.0f} {:>12.1f} {:>9.1f}\n", what, all, figures.bad,
             all / figures.wall_s, figures.cpu_s / all * 1e6, resident_mb());
}

// One change at a time, told to more and more watchers. How many rounds lost or invented events.
int run_fan_out(ApiBench& bench, const sim::ApiServer& server, const ApiBenchOptions& options) {
  int wrong = 0;
  fmt::print("\n{:<28} {:>8} {:>10} {:>12} {:>14}\n", "watchers of all pods", "events",
             "per second", "loop us each", "us per change");
  const int changes = 200;
  int open = 0;
  for (int watchers = 1; watchers <= options.watchers; watchers *= 10) {
    for (; open < watchers; ++open) {
      bench.watch(fmt::format("/api/v1/pods?watch=true&resourceVersion={}", server.version()));
    }
    bench.run(1, [](int) { return bench_request("GET", "/version", ""); });
    const long before = bench.events();
    const Figures figures = bench.run(changes, [&](int i) {
      return bench_request(
          "PATCH", pod_target(i),
          fmt::format(R"({{"metadata":{{"annotations":{{"round":"{}"}}}}}})", watchers),
          "application/merge-patch+json");
    });
    bench.run(1, [](int) { return bench_request("GET", "/version", ""); });
    const auto events = static_cast<double>(bench.events() - before);
    fmt::print("{:<28} {:>8.0f} {:>10.0f} {:>12.2f} {:>14.1f}\n", watchers, events,
               events / figures.wall_s, figures.cpu_s / events * 1e6,
               figures.cpu_s / changes * 1e6);
    wrong += events == static_cast<double>(changes) * watchers ? 0 : 1;
  }
  return wrong;
}

int run_api_writes(const ApiBenchOptions& options) {
  const SystemWallClock wall;
  const SystemMonotonicClock monotonic;
  RunLoop loop(monotonic, wall);
  char folder[] = "/tmp/api-writes-XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  std::unique_ptr<store::Store> store;
  if (options.memory) {
    store = std::make_unique<store::MemoryStore>(loop);
  } else {
    auto opened = store::open_sqlite({.path = std::string(folder) + "/state.db"}, loop);
    if (!opened.ok()) {
      fmt::print(stderr, "{}\n", opened.error().to_string());
      return 1;
    }
    store = std::move(opened).value();
  }
  int bad = 0;
  {
    sim::ApiServer server(loop, *store, Random(7));
    if (const Status started = server.start(); !started.ok()) {
      fmt::print(stderr, "{}\n", started.error().to_string());
      return 1;
    }
    ApiBench bench(loop, server);
    fmt::print("store: {}, {} pods, 256 requests under way\n\n",
               options.memory ? "memory" : "SQLite", options.pods);
    fmt::print("{:<28} {:>8} {:>6} {:>10} {:>12} {:>9}\n", "writes", "count", "failed",
               "per second", "loop us each", "MB held");
    const std::pair<const char*, text::HttpRequest (*)(int)> phases[] = {
        {"create a pod", create_pod}, {"bind it", bind_pod}, {"report it running", report_pod}};
    Figures sum;
    for (const auto& [name, make] : phases) {
      const Figures figures = bench.run(options.pods, make);
      print_row(name, figures);
      sum.wall_s += figures.wall_s;
      sum.cpu_s += figures.cpu_s;
      sum.good += figures.good;
      sum.bad += figures.bad;
    }
    print_row("all three", sum);
    print_row("list of all pods",
              bench.run(20, [](int) { return bench_request("GET", "/api/v1/pods", ""); }));
    bad = sum.bad;

    bad += run_fan_out(bench, server, options);
  }
  store.reset();
  std::filesystem::remove_all(folder);
  return bad == 0 ? 0 : 1;
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  berth::bench::ApiBenchOptions options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--memory") == 0) {
      options.memory = true;
    } else if (std::strcmp(argv[i], "--pods") == 0 && i + 1 < argc) {
      options.pods = std::max(200, std::atoi(argv[++i]));
    } else if (std::strcmp(argv[i], "--watchers") == 0 && i + 1 < argc) {
      options.watchers = std::max(1, std::atoi(argv[++i]));
    } else {
      std::fprintf(stderr, "api-writes [--pods N] [--memory] [--watchers N]\n");
      return 2;
    }
  }
  return berth::bench::run_api_writes(options);
}
