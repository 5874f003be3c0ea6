// The control plane: client -> cache -> decide -> writes, the same on a real cluster and on the
// embedded one.
//
// Everything it knows comes from the API; started again at any moment it goes on. It decides only
// while it may: `leading` says so and is asked before each cycle and each write, so two controllers
// never both bind. It binds pods whose schedulerName is one of ours with one write each (a Binding
// that carries berth.dev/gpus), unsuspends and suspends Jobs of queues, writes status of Workloads
// and queues only when it changed, and tells people by events.
//
// On the loop's thread. A cycle is decide::decide() over what the caches hold; docs/controller.md
// says when one runs and what is written.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/random.h"
#include "control/queue_board.h"
#include "control/world_log.h"
#include "edge/kube/client.h"
#include "kinds/manifest.h"
#include "kinds/object_set.h"
#include "model/policy.h"
#include "plans/react/sick_gpus.h"

namespace berth::control {

struct ControllerOptions {
  std::vector<std::string> scheduler_names = {"berth"};
  model::PolicyFlags policy;  // beside the BerthPolicy
  bool manage_queues = true;
  std::string own_namespace = "berth-system";  // whose pods are nobody's victims
  std::size_t max_writes_at_once = 256;
  std::int64_t min_cycle_gap_ns = 5'000'000;
  std::int64_t bind_timeout_ns = 60'000'000'000;  // a gang that is partly bound so long is undone
  react::SickGpuPolicy sick_gpus;
  bool heed_notices = true;                     // of nodes that a cloud takes back
  bool name_decisions = false;                  // for last_decision(), also where nobody logs them
  std::shared_ptr<QueueBoard> board = nullptr;  // for the webhook; null: nobody reads it
};

struct ControllerSummary {
  bool synced = false, leading = false;
  std::uint64_t cycles = 0, bound = 0, evicted = 0, failed_writes = 0;
  std::size_t pending_pods = 0, running_pods = 0, nodes = 0;
  std::int64_t last_cycle_ns = 0;  // how long the last one took
  std::string trouble;             // why nothing is decided, or empty
};

// What strangers can fill, and its bound.
struct Level {
  std::string what;
  std::size_t held = 0, most = 0;
};

// The last one whose answer differs from that before it.
struct LastDecision {
  std::string id;  // as the decision log has it; empty: there is none, or nobody wants to know
  std::int64_t at_ns = 0;
  std::string version;  // the newest resourceVersion of objects that was known by then
};

// Every decision, for people and for replay: a line of JSON for each cycle whose answer differs
// from the last one's:
//   {"id":"<hex>","cycle":7,"time":"2026-...","inputs":"<hex digest>",
//    "outcomes":[{"workload":"ns/name","gang":true,"verdict":"wait","reason":"Fragmented",
//                 "message":"...","pods":2,"placed":0,"queued":false,"queue":"","position":0}],
//    "placements":[{"pod":"ns/name","node":"n0","gpus":[0,1],"gang":"ns/g",
//                   "afterPreemption":false}],
//    "preemptions":[{"pod":"ns/name","node":"n0","by":"ns/name","breaksBudget":false}],
//    "admissions":[{"workload":"ns/name","queue":"q"}],
//    "evictions":[{"workload":"ns/name","by":"ns/other","reason":"InClusterQueue"}]}
// Outcomes are those of everything that waits (also what was told before) and of what was placed in
// this cycle. The scenario engine on clusters reads it. What it was decided from goes to a
// WorldLog, where there is one: `berth replay` makes the decisions again.
class DecisionLog {
 public:
  virtual ~DecisionLog() = default;
  virtual void write(std::string_view json_line) = 0;
};

class Controller {
 public:
  Controller(kube::Client& client, Random random, ControllerOptions options,
             std::function<bool()> leading, const Logger& log, MetricsRegistry& metrics,
             DecisionLog* decisions = nullptr, WorldLog* inputs = nullptr);
  ~Controller();
  void start();
  void wake();  // leadership may have changed
  ControllerSummary summary() const;
  const LastDecision& last_decision() const;
  kinds::Inputs inputs() const;  // everything as the API has it. O(objects)
  // The same to be looked at elsewhere, and a number that is another one when it is: object_set.h.
  std::shared_ptr<const kinds::ObjectSet> copy() const;
  std::uint64_t revision() const;
  std::map<std::string, int> counted() const;  // what runs, as the model has it: world.h
  std::vector<Level> levels() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::control
