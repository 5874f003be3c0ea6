// Simulated kubelets and GPUs, as a client of any API server: they register their nodes, publish
// GpuNode as an agent does, start the pods that are bound to them and report what becomes of them.
//
// A pod starts after start_ns, runs as long as its annotation sim.berth.dev/run-seconds says (or
// until it is deleted) and ends as sim.berth.dev/exit-code says. Deleted pods end gracefully. A pod
// that its node cannot hold is refused as a kubelet does (UnexpectedAdmissionError,
// TopologyAffinityError, OutOfcpu). Devices follow the annotation berth.dev/gpus where it is there.
// docs/fleet.md says all of it.
//
// Writes: a pod costs one when it runs and one when it ends (or is gone); a node one for its Lease
// in each heartbeat; a GpuNode at most one in publish_ns for its holders, at once for its health.
//
// State comes from the API and the fleet alone. On the loop's thread, in real or virtual time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/random.h"
#include "edge/kube/client.h"
#include "embedded/nodes/fleet.h"

namespace berth::sim {

struct NodesOptions {
  std::int64_t start_ns = 50'000'000;
  std::int64_t heartbeat_ns = 10'000'000'000;  // node leases
  std::int64_t default_run_ns = 0;             // of pods without an annotation; 0: until deleted
  std::size_t max_writes_at_once = 64;
  std::int64_t publish_ns = 1'000'000'000;     // holders of GPUs are told that late
  std::int64_t reboot_ns = 60'000'000'000;     // of a reboot without `for`
  std::int64_t telemetry_ns = 15'000'000'000;  // metrics of GPUs
  std::int64_t backoff_ns = 10'000'000'000;    // first restart of a container; doubled, at most 5 m
};

struct NodesSummary {
  std::size_t nodes = 0, ready = 0, gpus = 0, healthy_gpus = 0, used_gpus = 0, running_pods = 0;
};

class Nodes {
 public:
  Nodes(kube::Client& client, Fleet fleet, Random random, NodesOptions options = {},
        const Logger* log = nullptr, MetricsRegistry* metrics = nullptr);
  ~Nodes();
  void start();
  bool registered() const;          // every node is there, and its GpuNode
  void inject(const Fault& fault);  // now; its `at` is not looked at. Unknown nodes: nothing
  NodesSummary summary() const;
  // How busy GPUs are, per cent, by node and index. Empty without metrics.
  std::map<std::string, std::vector<int>, std::less<>> loads() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::sim
