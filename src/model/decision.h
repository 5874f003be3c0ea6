// What a decision cycle answers, by name; what plan prints, the controller carries out and the
// scenario runner compares. Free of ids and slots, so that it outlives the snapshot.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/reason.h"

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
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

struct Decision {
  std::vector<Placement> placements;  // in the order they were made
  std::vector<Preemption> preemptions;
  std::vector<Outcome> outcomes;  // in the order they were decided
  friend bool operator==(const Decision&, const Decision&) = default;
};

}  // namespace berth::model
