// A kubelet's device manager and pod-resources server, over real gRPC on unix sockets, for tests
// and benchmarks. It dials back, watches, counts capacity and allocatable, and admits containers as
// a kubelet 1.37 does; and it does on demand what a real one does not.
//
// Thread-safe. Its sockets stand in one folder: kubelet.sock and pod-resources.sock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "edge/kubelet/device_plugin.h"
#include "model/allocation.h"

namespace berth::kubelet {

struct FakeKubeletOptions {
  // Since 1.37 a resource has several endpoints, and one takes over from another. Before, the last
  // to register wins.
  bool several_endpoints = true;
  // Before 1.26 the socket's path stood there.
  bool path_as_authority = false;
  std::int64_t grace_ns = 300'000'000'000;  // how long a resource without plugin is remembered
};

class FakeKubelet {
 public:
  struct Registration {
    std::string version, endpoint, resource;
    bool pre_start = false;  // as the plugin said when it was dialled
    bool preferred = false;
    std::string error;  // empty: accepted
    std::int64_t at_ns = 0;
  };
  struct List {
    std::string resource, endpoint;
    std::vector<PluginDevice> devices;
    std::int64_t at_ns = 0;
  };
  struct Counts {
    int capacity = -1, allocatable = -1;  // -1: the resource is not known
    friend bool operator==(const Counts&, const Counts&) = default;
  };

  explicit FakeKubelet(const std::string& folder, FakeKubeletOptions options = {});
  ~FakeKubelet();
  FakeKubelet(const FakeKubelet&) = delete;
  FakeKubelet& operator=(const FakeKubelet&) = delete;

  const std::string& socket() const;
  const std::string& pod_resources_socket() const;

  // ---- what it saw ----
  std::vector<Registration> registrations() const;
  std::vector<List> lists() const;
  struct LastList {
    std::size_t number = 0;  // how many came; 0: none
    std::int64_t at_ns = 0;
  };
  LastList last_list() const;
  Counts counts(const std::string& resource) const;
  int endpoints(const std::string& resource) const;
  static std::int64_t now_ns();  // the clock of at_ns
  // Until it holds; tested whenever something happened, and now and then. False: it did not within
  // two minutes.
  bool wait_until(const std::function<bool()>& holds) const;

  // ---- what it asks the plugin that registered last ----
  Result<std::vector<std::string>> prefer(const std::string& resource,
                                          const std::vector<std::string>& available,
                                          const std::vector<std::string>& must_include, int size);
  // One answer for each container.
  Result<std::vector<model::ContainerGrant>> allocate(
      const std::string& resource, const std::vector<std::vector<std::string>>& containers);
  Status pre_start(const std::string& resource, const std::vector<std::string>& ids);
  // A container that wants so many devices: chosen from the healthy ones that nobody holds, with
  // the plugin's preference, then allocated and held.
  Result<model::ContainerGrant> admit(const std::string& ns, const std::string& pod,
                                      const std::string& container, const std::string& resource,
                                      int count);

  // ---- what pod-resources says ----
  void hold(model::HeldDevices held);
  void release(const std::string& ns, const std::string& pod);

  // ---- faults ----
  void refuse_registrations(const std::string& error);  // empty: no more
  void hang_registrations(bool hang);
  void refuse_calls(int count);  // of pod-resources: the rate limit
  void pause_reading(bool pause);
  void close_streams();  // as if every ListAndWatch broke
  void stop();           // the kubelet is gone; its sockets too
  void start();          // and back: every socket in its folder is removed, devices are forgotten
  void pass(std::int64_t ns);  // so much time, for the grace

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::kubelet
