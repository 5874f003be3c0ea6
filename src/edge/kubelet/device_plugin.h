// One resource as a device plugin: a gRPC server (v1beta1) on a unix socket of its own.
//
// The kubelet calls in on gRPC's threads; calls are answered from the loop: the handler is called
// there and answers there, now or later. update() sends the whole list to every open ListAndWatch
// at once. The socket's path is at most 107 bytes; the name is unique to the instance, so that a
// new version can stand beside an old one. Destroyed: the server is shut down, the socket is
// removed if it is still ours, and nothing is called any more. Destroy it on the loop, or when the
// loop does not run.
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

struct PluginDevice {
  std::string id;
  bool healthy = true;
  int numa = -1;
  friend bool operator==(const PluginDevice&, const PluginDevice&) = default;
};

// All on the loop. An error reaches the kubelet as its text.
struct PluginHandler {
  std::function<void(std::vector<std::string> available, std::vector<std::string> must_include,
                     int size, std::function<void(Result<std::vector<std::string>>)> done)>
      prefer;
  std::function<void(std::vector<std::string> ids,
                     std::function<void(Result<model::ContainerGrant>)> done)>
      allocate;
  std::function<void(std::vector<std::string> ids, std::function<void(Status)> done)>
      pre_start;  // empty: not required
  std::function<void(int open)>
      streams;  // how many ListAndWatch streams are open now; told when it changes
};

class DevicePlugin {
 public:
  // Serves when it returns: kubelets dial back while Register is under way. Refused: ids that are
  // empty, longer than 63 bytes, not UTF-8 or there twice; a path that is taken by something else
  // than a socket.
  static Result<std::unique_ptr<DevicePlugin>> start(Loop& loop, const std::string& socket_path,
                                                     std::vector<PluginDevice> devices,
                                                     PluginHandler handler);
  virtual ~DevicePlugin() = default;
  // On the loop; equal lists are not sent. Devices that start() would refuse are left out.
  virtual void update(std::vector<PluginDevice> devices) = 0;
  virtual bool socket_is_ours() const = 0;  // the file at the path is the one that was bound
  virtual const std::string& socket_path() const = 0;
};

// "endpoint" is the name of the socket within the kubelet's folder: no '/', not "..". Answers on
// the loop, within the deadline.
void register_plugin(Loop& loop, const std::string& kubelet_socket, const std::string& endpoint,
                     const std::string& resource, bool pre_start, std::int64_t deadline_ns,
                     std::function<void(Status)> done);

}  // namespace berth::kubelet
