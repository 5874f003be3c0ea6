// From the objects of a cluster to its plan: what goes where, what is evicted for it, what waits
// and why.
//
// make_plan() is pure: the same inputs and options give the same PlanResult. It holds everything
// that the printers need, by name, so that they only choose words and columns.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kinds/manifest.h"
#include "model/decision.h"
#include "model/policy.h"

namespace berth::people {

// Far above any cascade of preemptions; a plan that is not stable by then says so.
inline constexpr int kMaxCycles = 1000;

struct PlanOptions {
  model::PolicyFlags flags;   // beside the BerthPolicy of the inputs
  std::optional<int> cycles;  // absent: until nothing changes any more
  std::int64_t now_ns = 0;    // orders victims by lost work; timeouts and backoffs of queues
  bool quota_only = false;    // queues admit by quota alone; another scheduler binds

  model::Policy policy(const kinds::Inputs& inputs) const {
    return model::in_force(inputs.policy, flags);
  }
};

// A node's GPUs after the plan: used + free + unusable = gpus.
struct NodeUse {
  std::string name, model;  // model: of the first GPU, as the product label spells it
  int gpus = 0;
  int used = 0;      // devices with a pod on them
  int free = 0;      // healthy devices with nothing on them
  int unusable = 0;  // unhealthy or reserved, with nothing on them
  int used_milli = 0;
  int free_milli = 0;  // of healthy devices, parts of used ones too
  struct Holder {
    std::string pod;  // "ns/name"
    int milli = 0;
    int priority = 0;
    friend bool operator==(const Holder&, const Holder&) = default;
  };
  std::vector<Holder> holders;  // pods with GPUs, most first, then by name
  friend bool operator==(const NodeUse&, const NodeUse&) = default;
};

struct ClusterUse {
  int nodes = 0, gpus = 0;
  int pods = 0;      // running
  int gpu_pods = 0;  // of those: with GPUs
  std::int64_t used_milli = 0;
  std::map<std::string, int> gpus_by_model;
};

// What people call one thing: a gang, the pods of one owner (a Job's), a pod of its own, or a
// workload of a queue.
struct Workload {
  enum class Kind { kPod, kOwner, kGang, kQueued };
  Kind kind = Kind::kPod;
  std::string name;                     // "ns/name"
  int pods = 0;                         // to be placed
  int running = 0;                      // members that run already
  int priority = 0;                     // the highest of its pods
  bool was_running = false;             // a victim: its pods were not pending in the input
  std::vector<std::size_t> placements;  // into decision.placements
  std::vector<std::size_t> waiting;     // into decision.outcomes: not (wholly) placed
  std::vector<std::string> help;        // what would help each of those, in a few words
  std::set<std::string> names;          // other names it is found by: its pods', their owners'
  model::PodSpec sample;                // the first of its pods by name
  bool mixed = false;                   // they ask for different GPUs
  std::int64_t asked_milli = 0;         // of all its pods; 0 where that depends on the node
  std::int64_t placed_milli = 0;
  std::string required_topology;  // node label key, of a gang
  std::string domain;             // where all its placed pods are, of that key
  bool one_clique = false;        // each pod's GPUs (two or more) reach one another over NVLink
  bool apart = false;             // two pods or more, each on a node of its own
  bool after_preemption = false;
  int victims = 0;          // pods evicted for it
  std::string queue;        // the ClusterQueue that admitted it or lets it wait
  bool quota_only = false;  // admitted, not placed
  std::string flavors;      // it was admitted on

  bool placed() const { return waiting.empty(); }
};

struct PlanResult {
  model::Decision decision;
  int cycles = 0;
  bool stable = true;
  std::vector<Workload> workloads;   // in the order they were decided
  std::vector<int> preempted_milli;  // GPU milli of each of decision.preemptions
  std::vector<NodeUse> nodes;        // by name, after the plan
  ClusterUse before, after;
  std::vector<kinds::Note> ignored, warnings, invalid, notes;
  kinds::Counts counts;
  bool readable = true;  // false: nothing was planned, invalid says why
};

PlanResult make_plan(const kinds::Inputs& inputs, const PlanOptions& options);

// What is printed when the input cannot be read at all.
PlanResult unreadable_plan(std::vector<kinds::Note> troubles);

inline constexpr int kExitPlaced = 0, kExitUsage = 2, kExitWaits = 10, kExitInvalid = 20;
int exit_code(const PlanResult& plan);

}  // namespace berth::people
