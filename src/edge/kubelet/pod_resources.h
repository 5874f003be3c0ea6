// Who holds which device, as the kubelet knows it: pod-resources v1 over its unix socket.
//
// Answers on the loop, within the deadline. A refused call (the kubelet limits 100 a second) is an
// error like any other: the caller keeps what it knew.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "model/allocation.h"

namespace berth::kubelet {

class PodResources {
 public:
  PodResources(Loop& loop, const std::string& socket_path);
  ~PodResources();
  // One entry for each container and resource.
  void list(std::int64_t deadline_ns,
            std::function<void(Result<std::vector<model::HeldDevices>>)> done);
  void get(const std::string& ns, const std::string& pod, std::int64_t deadline_ns,
           std::function<void(Result<std::vector<model::HeldDevices>>)> done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::kubelet
