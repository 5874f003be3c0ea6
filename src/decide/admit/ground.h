// Where admitted pods run. Quota alone decides where there is no ground.
//
// The engine asks whether an assignment has a place, on what is there, less those it has taken
// away for a trial, plus those it has put down. It brings back what it took away. A port: decide/
// implements it over nodes and topologies.
#pragma once

#include <span>
#include <string>

#include "decide/admit/workload.h"

namespace berth::admit {

class Ground {
 public:
  struct Answer {
    bool fits = false;
    bool topology = false;  // a Topology said no, not nodes
    bool never = false;     // nor would it fit if nothing ran
    std::string message;    // why not
  };

  virtual ~Ground() = default;
  // Fills in topologies and the site of the assignment when it fits. why: say why not.
  virtual Answer place(WorkloadId id, const Workload& workload, Assignment& assignment,
                       bool why) = 0;
  // Whether it would fit if nothing ran.
  virtual bool ever(WorkloadId id, const Workload& workload, const Assignment& assignment, bool why,
                    Answer& answer) = 0;
  // Trials: a holder's room is free, and taken again.
  virtual void take_away(WorkloadId id) = 0;
  virtual void bring_back(WorkloadId id) = 0;
  // A placed assignment takes its room: for good, or until the end of the cycle.
  virtual void put(WorkloadId id, const Assignment& assignment, bool for_good) = 0;
  virtual void end_cycle() = 0;
  // A holder that has no place yet gets one for good, where the assignment says flavors, counts and
  // maybe domains.
  virtual Answer settle(WorkloadId, const Workload&, Assignment&, bool) { return {.fits = true}; }
  // What the old slice has becomes the fresh one's, which was placed for the rest alone.
  virtual void inherit(WorkloadId, WorkloadId) {}
  // No PodDisruptionBudget stands against sending these holders away together, after those that go
  // in any case.
  virtual bool budgets_allow(std::span<const WorkloadId> /*going*/,
                             std::span<const WorkloadId> /*these*/) {
    return true;
  }
  // The API refuses to send one of its pods away.
  virtual bool stays(WorkloadId) { return false; }
  // A holder left.
  virtual void release(WorkloadId id) = 0;
};

}  // namespace berth::admit
