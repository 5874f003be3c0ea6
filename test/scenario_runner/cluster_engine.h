// Carries a scenario out on a cluster through its API: the manifests are applied, the controller
// decides, a kubelet of the engine lets bound pods run, and what the API then holds is observed.
//
// Equal on every cluster: what is above the Transport. The embedded one runs in virtual time on a
// SteppedLoop; the real one is any API server that a kubeconfig names.
//
// What a plan assumes and a cluster does differ in places (the priority of a pod comes from a
// class, an evicted pod is gone rather than pending, creation times are the server's): scenarios
// that depend on such things are listed in test/scenarios/plan-only.txt.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/controller.h"
#include "edge/kube/client.h"
#include "edge/kube/informer.h"
#include "embedded/workloads/work_controllers.h"
#include "engine.h"

namespace berth::scenario {

// How time passes for an engine.
class Pump {
 public:
  virtual ~Pump() = default;
  // Runs the loop until done() holds; false: it did not within a generous bound.
  virtual bool until(const std::function<bool()>& done) = 0;
  // Runs the loop until nothing happens any more: changes() stands still for a while.
  virtual void settle(const std::function<std::uint64_t()>& changes) = 0;
  virtual void go_to(std::int64_t wall_ns) = 0;  // where time can be chosen
  // What is created next is younger than all before; made at that time where it can be chosen.
  virtual void creation(std::int64_t wall_ns) = 0;
  virtual void created() = 0;  // and it is there now
  // How much later than in the scenario it is, in a step of that time.
  virtual std::int64_t later_by(std::int64_t wall_ns) = 0;
};

// The part above the transport.
class ClusterEngine {
 public:
  ClusterEngine(const Scenario& scenario, kube::Client& client, Loop& loop, Pump& pump);
  ~ClusterEngine();

  Status start();  // kinds are installed, caches filled, the controller runs
  Result<Observed> run(const Step& step);
  void clean_up();  // deletes what it made, but kinds

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::unique_ptr<Engine> make_embedded_engine(const Scenario& scenario);
// The cluster must be empty; what the engine made is deleted at its end.
std::unique_ptr<Engine> make_real_engine(const Scenario& scenario, const std::string& kubeconfig);

}  // namespace berth::scenario
