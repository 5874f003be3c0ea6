// Who carries a scenario out. One engine plans offline; others may apply the same manifests to a
// cluster and watch what becomes of them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/decision.h"
#include "scenario.h"

namespace berth::scenario {

// What is to be seen after a step.
struct Observed {
  struct Bound {
    std::string node;
    std::vector<int> gpus;
    std::string workload;  // "ns/name" of its gang or owner, or empty
    bool fresh = false;    // placed in this step
  };
  std::map<std::string, Bound> bound;             // every pod that has a node
  std::map<std::string, model::Outcome> pending;  // by workload
  std::map<std::string, std::string> help;        // by workload: what would help
  std::map<std::string, std::map<std::string, std::string>> node_labels;
  std::set<std::string> preempted, broken_budgets;      // in this step
  std::vector<std::string> invalid, warnings, ignored;  // as text
  std::vector<model::Admission> admissions;             // by queues, in this step
  std::vector<model::Eviction> evictions;               // the same
  std::vector<model::QueueUse> queues;
  std::set<std::string> silent_queues;  // of other schedulers: on a cluster nobody tells their use
  int exit_code = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual Result<Observed> run(const Step& step) = 0;
};

// Plans with the same code as berth plan. What a step places runs in the next one.
std::unique_ptr<Engine> make_plan_engine(const Scenario& scenario);

// One line for each expectation that does not hold: "file:line: expected ...: found ...".
std::vector<std::string> check_step(const Scenario& scenario, const Step& step,
                                    const Observed& observed);

}  // namespace berth::scenario
