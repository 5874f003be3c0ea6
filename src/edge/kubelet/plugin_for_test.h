// A folder of its own, a loop on a thread of its own, and a plugin with eight devices on it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/run_loop.h"
#include "base/system_clock.h"
#include "edge/kubelet/device_plugin.h"
#include "edge/kubelet/fake_kubelet_for_test.h"

namespace berth::kubelet {

constexpr std::int64_t kLong = 120'000'000'000;
inline const std::string kGpu = "nvidia.com/gpu";

class TestFolder {
 public:
  TestFolder() {
    char path[] = "/tmp/kubelet-XXXXXX";
    if (mkdtemp(path) != nullptr) path_ = path;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class LoopThread {
 public:
  LoopThread() : loop_(monotonic_, wall_), thread_([this] { loop_.run(); }) {}
  ~LoopThread() { stop(); }

  Loop& loop() { return loop_; }
  // Runs it on the loop and waits for it.
  void on_loop(const std::function<void()>& work) {
    std::promise<void> ran;
    loop_.post([&] {
      work();
      ran.set_value();
    });
    ran.get_future().wait();
  }
  void stop() {
    if (!thread_.joinable()) return;
    loop_.post([this] { loop_.stop(); });
    thread_.join();
  }

 private:
  const SystemMonotonicClock monotonic_;
  const SystemWallClock wall_;
  RunLoop loop_;
  std::thread thread_;
};

inline std::vector<PluginDevice> eight_devices() {
  std::vector<PluginDevice> devices;
  for (int i = 0; i < 8; ++i) devices.push_back({"GPU-" + std::to_string(i), true, i / 4});
  return devices;
}

inline PluginHandler plain_handler() {
  PluginHandler handler;
  handler.prefer = [](std::vector<std::string> available, const std::vector<std::string>&, int size,
                      const std::function<void(Result<std::vector<std::string>>)>& done) {
    available.erase(available.begin(), available.end() - size);  // the last ones
    done(std::move(available));
  };
  handler.allocate = [](const std::vector<std::string>& ids,
                        const std::function<void(Result<model::ContainerGrant>)>& done) {
    model::ContainerGrant grant;
    for (const std::string& id : ids) grant.cdi.push_back("nvidia.com/gpu=" + id);
    done(std::move(grant));
  };
  return handler;
}

// A plugin that lives on the loop.
class TestPlugin {
 public:
  TestPlugin(LoopThread& thread, const std::string& path, PluginHandler handler = plain_handler(),
             std::vector<PluginDevice> devices = eight_devices())
      : thread_(thread) {
    thread_.on_loop([&] {
      auto started =
          DevicePlugin::start(thread_.loop(), path, std::move(devices), std::move(handler));
      if (started.ok()) {
        plugin_ = std::move(started).value();
      } else {
        ADD_FAILURE() << started.error().to_string();
      }
    });
  }
  ~TestPlugin() { end(); }
  void end() {
    thread_.on_loop([&] { plugin_.reset(); });
  }
  void update(std::vector<PluginDevice> devices) {
    thread_.on_loop([&] { plugin_->update(std::move(devices)); });
  }
  bool socket_is_ours() {
    bool ours = false;
    thread_.on_loop([&] { ours = plugin_->socket_is_ours(); });
    return ours;
  }

 private:
  LoopThread& thread_;
  std::unique_ptr<DevicePlugin> plugin_;
};

inline Status register_now(LoopThread& thread, const std::string& kubelet_socket,
                           const std::string& endpoint, std::int64_t deadline_ns = kLong,
                           const std::string& resource = kGpu) {
  std::promise<Status> answer;
  thread.on_loop([&] {
    register_plugin(thread.loop(), kubelet_socket, endpoint, resource, false, deadline_ns,
                    [&](Status status) { answer.set_value(std::move(status)); });
  });
  return answer.get_future().get();
}

inline std::string text_of(const Status& status) {
  return status.ok() ? "" : status.error().to_string();
}

}  // namespace berth::kubelet
