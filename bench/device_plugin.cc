// device-plugin: what a kubelet waits for, through gRPC on a unix socket.
//
//   device-plugin [--calls N] [--updates N] [--devices N]
//
// A plugin on a loop of its own and a fake kubelet in the same process. Printed: the time of
// Allocate and GetPreferredAllocation as the kubelet sees it, with a handler that answers at once;
// the time from update() until the kubelet has the list; and registration. Then the kubelet is gone
// and a plugin stands alone: bytes the process holds, its threads, and the CPU it takes when idle.
#include "edge/kubelet/device_plugin.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/run_loop.h"
#include "base/system_clock.h"
#include "edge/kubelet/fake_kubelet_for_test.h"

namespace berth::bench {
namespace {

using kubelet::FakeKubelet;

constexpr const char* kResource = "nvidia.com/gpu";

struct PluginBenchOptions {
  int calls = 5'000;
  int updates = 1'000;
  int devices = 8;
};

class Samples {
 public:
  void add(std::int64_t ns) { all_.push_back(ns); }
  void print(const char* what) {
    std::sort(all_.begin(), all_.end());
    const auto at = [&](double part) {
      if (all_.empty()) return 0.0;
      const auto rank = static_cast<std::size_t>(part * static_cast<double>(all_.size() - 1));
      return static_cast<double>(all_[rank]) / 1e3;
    };
    fmt::print("{:<36} {:>8} {:>10.0f} {:>10.0f} {:>10.0f}\n", what, all_.size(), at(0.5), at(0.99),
               at(1.0));
  }

 private:
  std::vector<std::int64_t> all_;
};

// A line of /proc/self/status: its number.
long status_of(std::string_view name) {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return 0;
  char line[256];
  long value = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::string_view(line).starts_with(name)) value = std::atol(line + name.size() + 1);
  }
  std::fclose(file);
  return value;
}

double cpu_s() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

std::vector<kubelet::PluginDevice> devices_of(int count) {
  std::vector<kubelet::PluginDevice> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back(
        {fmt::format("GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a{:02x}", i), true, i / 4});
  }
  return devices;
}

kubelet::PluginHandler handler_of() {
  kubelet::PluginHandler handler;
  handler.prefer = [](std::vector<std::string> available, const auto&, int size, const auto& done) {
    available.resize(static_cast<std::size_t>(size));
    done(std::move(available));
  };
  handler.allocate = [](const std::vector<std::string>& ids, const auto& done) {
    model::ContainerGrant grant;
    for (const std::string& id : ids) {
      grant.environment["NVIDIA_VISIBLE_DEVICES"] += id + ",";
      grant.cdi.push_back("k8s.device-plugin.nvidia.com/gpu=" + id);
    }
    done(std::move(grant));
  };
  return handler;
}

class PluginBench {
 public:
  explicit PluginBench(std::string folder) : folder_(std::move(folder)), loop_(monotonic_, wall_) {
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~PluginBench() {
    on_loop([this] { plugin_.reset(); });
    loop_.stop();
    thread_.join();
  }

  bool start(int devices) {
    devices_ = devices_of(devices);
    bool good = false;
    on_loop([&] {
      auto started =
          kubelet::DevicePlugin::start(loop_, folder_ + "/gpu.sock", devices_, handler_of());
      good = started.ok();
      if (good) plugin_ = std::move(started).value();
    });
    return good;
  }
  bool enroll(const FakeKubelet& kubelet) {
    std::promise<bool> answer;
    on_loop([&] {
      kubelet::register_plugin(loop_, kubelet.socket(), "gpu.sock", kResource, false,
                               10'000'000'000,
                               [&](const Status& status) { answer.set_value(status.ok()); });
    });
    return answer.get_future().get();
  }
  // When update() was called, by the kubelet's clock.
  std::int64_t change() {
    devices_.front().healthy = !devices_.front().healthy;
    std::int64_t at = 0;
    on_loop([&] {
      at = FakeKubelet::now_ns();
      plugin_->update(devices_);
    });
    return at;
  }
  const std::vector<kubelet::PluginDevice>& devices() const { return devices_; }

 private:
  void on_loop(const std::function<void()>& work) {
    std::promise<void> ran;
    loop_.post([&] {
      work();
      ran.set_value();
    });
    ran.get_future().wait();
  }

  const std::string folder_;
  const SystemMonotonicClock monotonic_;
  const SystemWallClock wall_;
  RunLoop loop_;
  std::thread thread_;
  std::vector<kubelet::PluginDevice> devices_;
  std::unique_ptr<kubelet::DevicePlugin> plugin_;
};

int measure_calls(FakeKubelet& kubelet, PluginBench& bench, const PluginBenchOptions& options) {
  Samples allocate, prefer, update;
  std::vector<std::string> ids;
  for (const auto& device : bench.devices()) ids.push_back(device.id);
  int bad = 0;
  for (int i = 0; i < options.calls; ++i) {
    const std::int64_t begin = FakeKubelet::now_ns();
    bad += kubelet.allocate(kResource, {{ids.front()}}).ok() ? 0 : 1;
    allocate.add(FakeKubelet::now_ns() - begin);
  }
  for (int i = 0; i < options.calls; ++i) {
    const std::int64_t begin = FakeKubelet::now_ns();
    bad += kubelet.prefer(kResource, ids, {}, 1).ok() ? 0 : 1;
    prefer.add(FakeKubelet::now_ns() - begin);
  }
  std::size_t seen = kubelet.lists().size();
  for (int i = 0; i < options.updates; ++i) {
    const std::int64_t begin = bench.change();
    ++seen;
    if (!kubelet.wait_until([&] { return kubelet.last_list().number >= seen; })) ++bad;
    update.add(kubelet.last_list().at_ns - begin);
  }
  fmt::print("{:<36} {:>8} {:>10} {:>10} {:>10}\n", "through gRPC", "count", "p50 us", "p99 us",
             "most us");
  allocate.print("Allocate");
  prefer.print("GetPreferredAllocation");
  update.print("update() to the kubelet's list");
  return bad;
}

int run_device_plugin(const PluginBenchOptions& options) {
  char made[] = "/tmp/device-plugin-XXXXXX";
  if (mkdtemp(made) == nullptr) return 1;
  const std::string folder = made;
  int bad = 0;
  {
    PluginBench bench(folder);
    fmt::print("{} devices\n\nholds before gRPC: {:.1f} MB, {} threads\n", options.devices,
               static_cast<double>(status_of("VmRSS")) / 1e3, status_of("Threads"));
    if (!bench.start(options.devices)) return 1;
    fmt::print("a plugin alone:    {:.1f} MB, {} threads\n",
               static_cast<double>(status_of("VmRSS")) / 1e3, status_of("Threads"));
    const double cpu = cpu_s();
    const std::int64_t idle_from = FakeKubelet::now_ns();
    {
      std::promise<void> never;
      never.get_future().wait_for(std::chrono::seconds(5));
    }
    fmt::print(
        "idle CPU:          {:.3f} %\n\n",
        (cpu_s() - cpu) / (static_cast<double>(FakeKubelet::now_ns() - idle_from) / 1e9) * 100);
    FakeKubelet kubelet(folder);
    if (!bench.start(options.devices)) return 1;  // the kubelet removed the socket
    const std::int64_t begin = FakeKubelet::now_ns();
    if (!bench.enroll(kubelet)) return 1;
    fmt::print("registered in {:.1f} ms\n\n",
               static_cast<double>(FakeKubelet::now_ns() - begin) / 1e6);
    if (!kubelet.wait_until([&] { return !kubelet.lists().empty(); })) return 1;
    bad = measure_calls(kubelet, bench, options);
    fmt::print("\nwith the kubelet:  {:.1f} MB, {} threads\n",
               static_cast<double>(status_of("VmRSS")) / 1e3, status_of("Threads"));
  }
  std::filesystem::remove_all(folder);
  return bad == 0 ? 0 : 1;
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  berth::bench::PluginBenchOptions options;
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (std::strcmp(argv[i], "--calls") == 0 && more) {
      options.calls = std::max(1, std::atoi(argv[++i]));
    } else if (std::strcmp(argv[i], "--updates") == 0 && more) {
      options.updates = std::max(1, std::atoi(argv[++i]));
    } else if (std::strcmp(argv[i], "--devices") == 0 && more) {
      options.devices = std::clamp(std::atoi(argv[++i]), 1, 256);
    } else {
      std::fprintf(stderr, "device-plugin [--calls N] [--updates N] [--devices N]\n");
      return 2;
    }
  }
  return berth::bench::run_device_plugin(options);
}
