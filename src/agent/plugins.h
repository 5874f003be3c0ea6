// The device plugins of a node, one for each resource, and their registration with the kubelet.
//
// A kubelet forgets its plugins when it restarts, never asks again after a stream ended, and
// removes sockets it does not know. So each plugin is served anew, on a socket of a new name, and
// registered again when kubelet.sock is another one than before, when the last ListAndWatch stream
// ends, and when its own socket is gone; with back-off from 200 ms to 10 s. The folder is watched
// and looked at every few seconds besides.
//
// Another vendor's plugin that serves in the same folder ("nvidia-*.sock", "nvidiaGPU-*.sock")
// would advertise the same devices twice: as long as it answers nothing is registered, and what was
// is taken back when it comes later, unless take_over says so. Instances of berth stand beside one
// another: that is a rolling update.
//
// On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/result.h"
#include "edge/kubelet/device_plugin.h"
#include "model/allocation.h"

namespace berth::agent {

struct PluginOptions {
  std::string folder;    // "/var/lib/kubelet/device-plugins"
  std::string instance;  // in the names of sockets: letters and digits, at most 12
  bool take_over = false;
  std::int64_t register_deadline_ns = 15'000'000'000;
  std::int64_t first_retry_ns = 200'000'000, last_retry_ns = 10'000'000'000;
  std::int64_t check_ns = 5'000'000'000;
};

struct PluginCalls {
  std::function<Result<std::vector<std::string>>(
      const std::string& resource, const std::vector<std::string>& available,
      const std::vector<std::string>& must_include, int size)>
      prefer;
  std::function<Result<model::ContainerGrant>(const std::string& resource,
                                              const std::vector<std::string>& ids)>
      allocate;
  std::function<void()> changed;  // states() may differ
};

struct PluginState {
  std::string resource;
  int devices = 0, healthy = 0;
  bool registered = false;  // and the kubelet listens
  std::string problem;      // why not; empty while it is under way
};

class Plugins {
 public:
  Plugins(Loop& loop, PluginOptions options, PluginCalls calls, const Logger& log,
          MetricsRegistry& metrics);
  ~Plugins();  // sockets are removed; the kubelet sees the streams end

  struct Wanted {
    std::string resource;
    std::vector<kubelet::PluginDevice> devices;
  };
  // All of them. New ones are served and registered, lists are sent where they changed, one that is
  // not wanted any more tells the kubelet that it has no devices, and goes.
  void set(const std::vector<Wanted>& wanted);
  std::vector<PluginState> states() const;  // by resource
  bool kubelet_there() const;               // its socket is

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::agent
