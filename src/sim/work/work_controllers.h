// What kube-controller-manager does for the kinds that GPU users need, as a client of any API
// server: Jobs, ReplicaSets, Deployments, PodDisruptionBudgets, the life of nodes (NotReady nodes
// are tainted, their pods evicted after a grace), terminated namespaces' contents, claims bound.
//
// State comes from the API alone; killed at any moment and started again it goes on. On the loop's
// thread.
#pragma once

#include <cstdint>
#include <memory>

#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/random.h"
#include "kube/client.h"

namespace berth::sim {

struct WorkOptions {
  std::int64_t node_grace_ns = 40'000'000'000;   // without a heartbeat: NotReady
  std::int64_t pod_grace_ns = 300'000'000'000;   // on a NotReady node: evicted
  std::int64_t job_backoff_ns = 10'000'000'000;  // doubled per failure, at most 10 min
};

class WorkControllers {
 public:
  WorkControllers(kube::Client& client, Random random, WorkOptions options = {},
                  const Logger* log = nullptr, MetricsRegistry* metrics = nullptr);
  ~WorkControllers();
  void start();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::sim
