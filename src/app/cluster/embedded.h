// The embedded cluster, wired: API server over HTTPS, its controllers, simulated nodes, and berth's
// own control plane, in one process and on one loop.
//
// The data folder holds all state: the database, the authority that signs the server's certificate,
// the admin token and a kubeconfig. A second start on the same folder continues; two at once are
// refused. Without a folder the state is gone at the end, and only the kubeconfig is a file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/metrics.h"
#include "base/run_loop.h"
#include "control/controller.h"
#include "edge/kube/client.h"
#include "embedded/nodes/nodes.h"

namespace berth::app {

struct EmbeddedOptions {
  sim::Fleet fleet;
  std::string data;        // a folder; empty: in memory
  std::string kubeconfig;  // where to write it; empty: DATA/kubeconfig
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
  bool controller = true;
  bool default_queue = true;
  bool manage_all = true;  // the webhook looks after every namespace but kube-*
  // The web page, on loopback and without a token: absent none, else that port. page_or_any:
  // another one where it is taken.
  std::optional<std::uint16_t> page;
  bool page_or_any = false;
  std::uint64_t seed = 1;
  control::ControllerOptions control;
  sim::NodesOptions nodes;
};

class EmbeddedCluster {
 public:
  // Serves before it returns; ready() is called on the loop when kubectl finds the nodes and kinds.
  static Result<std::unique_ptr<EmbeddedCluster>> start(RunLoop& loop, EmbeddedOptions options,
                                                        const Logger& log, MetricsRegistry& metrics,
                                                        std::function<void(Status)> ready);
  ~EmbeddedCluster();

  std::string url() const;
  std::string page_url() const;  // empty: there is no page
  const std::string& kubeconfig() const;
  bool continued() const;  // the data folder held a cluster
  kube::Client& client();
  sim::NodesSummary nodes() const;
  control::ControllerSummary control() const;
  // Answers under way are finished; nothing new is begun.
  void stop();

 private:
  struct State;
  explicit EmbeddedCluster(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth::app
