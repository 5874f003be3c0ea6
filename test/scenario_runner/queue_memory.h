// What queues decided in earlier steps of a scenario, as the objects of a cluster would remember
// it: who holds quota and where its pods run, who was evicted and why.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/plan/plan.h"
#include "kinds/manifest.h"

namespace berth::scenario {

class QueueMemory {
 public:
  // After a step: the decision made for these inputs at now_ns.
  void remember(const model::Decision& decision, const kinds::Inputs& inputs, std::int64_t now_ns);
  // Before the next one: workloads and the pods that were made for them.
  void recall(kinds::Inputs& inputs) const;
  // The object was written anew or deleted: it says itself how it stands.
  void forget(const std::string& name) { states_.erase(name); }

  bool holds(const std::string& workload) const;

 private:
  struct Pod {
    std::string node;
    std::vector<int> gpus;
  };
  struct State {
    std::optional<model::AdmissionSpec> admission;
    bool admitted = false;
    bool finished = false;  // a larger slice took its place
    std::int64_t since_ns = 0;
    std::map<std::string, Pod> pods;  // by "ns/name"
    // Of one that was evicted.
    std::string evicted, preempted;
    std::int64_t requeue_at_ns = 0;
    int requeues = 0;
    std::string preempted_by;  // last
    std::vector<std::int64_t> preemptions_ns;
  };

  void remember_eviction(const model::Eviction& eviction, const kinds::Inputs& inputs,
                         std::int64_t now_ns);
  State state_before(const std::string& name, const kinds::Inputs& inputs) const;
  static void add_pods(const State& state, model::WorkloadSpec& workload, kinds::Inputs& inputs);

  std::map<std::string, State> states_;
};

}  // namespace berth::scenario
