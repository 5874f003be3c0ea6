// What kube-controller-manager does for the kinds that GPU users need, as a client of any API
// server: Jobs, ReplicaSets, ReplicationControllers, Deployments, PodDisruptionBudgets, the life of
// nodes (NotReady nodes are tainted, their pods evicted after a grace), and the pods of nodes that
// are gone. Namespaces and owner garbage belong to the API server itself (the embedded one) or to
// the real kube-controller-manager. docs/jobs.md says what each of them does.
//
// State comes from the API alone; killed at any moment and started again it goes on. On the loop's
// thread. Memory: Jobs, ReplicaSets, Deployments and budgets whole, of pods about 500 bytes each.
#pragma once

#include <cstdint>
#include <memory>

#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/random.h"
#include "edge/kube/client.h"

namespace berth::sim {

struct WorkOptions {
  std::int64_t node_grace_ns = 40'000'000'000;   // without a heartbeat: NotReady
  std::int64_t pod_grace_ns = 300'000'000'000;   // on a NotReady node: evicted
  std::int64_t job_backoff_ns = 10'000'000'000;  // doubled per failure, at most 10 min
  std::int64_t batch_ns = 100'000'000;           // changes of pods are gathered so long
  std::int64_t node_check_ns = 5'000'000'000;
  std::size_t max_writes_at_once = 64;
};

class WorkControllers {
 public:
  WorkControllers(kube::Client& client, Random random, WorkOptions options = {},
                  const Logger* log = nullptr, MetricsRegistry* metrics = nullptr);
  ~WorkControllers();
  void start();
  bool synced() const;  // everything was read once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::sim
