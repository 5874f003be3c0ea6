// What a decision cycle answers, by name; what plan prints, the controller carries out and the
// scenario runner compares. Free of ids and slots, so that it outlives the snapshot.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/reason.h"
#include "model/workload.h"

namespace berth::model {

struct Placement {
  std::string pod;  // "ns/name"
  std::string node;
  std::vector<int> gpus;          // indices, ascending, one per device, share or MIG slot
  int gpu_milli = 0;              // of each of them
  std::string gang;               // "ns/name" or empty
  bool after_preemption = false;  // starts when the victims are gone
  friend bool operator==(const Placement&, const Placement&) = default;
};

struct Preemption {
  std::string pod;  // the victim, "ns/name"
  std::string node;
  std::string by;              // the workload it makes room for, "ns/name"
  bool breaks_budget = false;  // a PodDisruptionBudget did not allow it
  friend bool operator==(const Preemption&, const Preemption&) = default;
};

// One workload: a gang, or a pod of its own.
struct Outcome {
  std::string workload;  // "ns/name"
  bool gang = false;
  int pods = 0;  // pending members
  int placed = 0;
  Verdict verdict = Verdict::kWait;
  Reason reason = Reason::kNone;
  std::string message;      // one sentence with the numbers
  Certificate certificate;  // of a "no", when asked for
  bool queued = false;      // a workload of a queue
  std::string queue;        // its ClusterQueue, where it has one
  int position = 0;         // in that queue, from 1; 0: not in line
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// A workload that a queue let in.
struct Admission {
  std::string workload;  // "ns/name"
  std::string queue;     // the ClusterQueue
  std::vector<PodSetAdmission> pod_sets;
  std::vector<std::string> checks;  // to come: until then it only holds quota
  bool after_preemption = false;    // others were evicted for it
  std::string replaced_node;        // it ran before; its pods on this failed node move
  std::string replaces = {};        // elastic: the slice ("ns/name") that is finished by it
  friend bool operator==(const Admission&, const Admission&) = default;
};

// A workload that a queue sent away, as a whole.
struct Eviction {
  std::string workload, by;  // "ns/name"
  std::string queue;         // the ClusterQueue it leaves
  std::string reason;        // Kueue's: InClusterQueue, InCohortReclamation, ...
  std::string message;
  std::vector<std::pair<std::string, std::string>> pods;  // that ran, and their nodes
  friend bool operator==(const Eviction&, const Eviction&) = default;
};

// How a queue stands after the decision, by flavor and resource.
struct QueueUse {
  struct Cell {
    std::string flavor, resource;
    std::int64_t nominal = 0, used = 0, available = 0, potential = 0;  // INT64_MAX: unlimited
    friend bool operator==(const Cell&, const Cell&) = default;
  };
  std::string name, cohort;
  std::vector<Cell> cells;
  std::int64_t weighted_share = 0;  // thousandths, rounded up; INT64_MAX: infinite
  bool borrowing = false;
  int pending = 0, admitted = 0;
  std::string inactive;  // why it admits nothing, or empty
  friend bool operator==(const QueueUse&, const QueueUse&) = default;
};

struct Decision {
  std::vector<Placement> placements;  // in the order they were made
  std::vector<Preemption> preemptions;
  std::vector<Outcome> outcomes;      // in the order they were decided
  std::vector<Admission> admissions;  // by queues, in order
  std::vector<Eviction> evictions;
  std::vector<QueueUse> queues;  // by name
  // Live: evicted workloads none of whose pods runs any more; their quota is free.
  std::vector<std::string> released = {};
  int postponed = 0;  // workloads that were not looked at: another cycle does (decide/turns.h)
  friend bool operator==(const Decision&, const Decision&) = default;
};

}  // namespace berth::model
