// Which flavors a workload gets, and whether quota is there, could be reclaimed, or never will be.
//
// Pod sets in order; the resources of one group get one flavor; flavors in the queue's order until
// one satisfies the queue's policy. docs/queues.md, "Flavors".
#pragma once

#include <span>
#include <string>
#include <vector>

#include "decide/admit/preemptor.h"

namespace berth::admit {

class Assigner {
 public:
  struct Options {
    std::span<const int> counts;         // of the pod sets; empty: all of them
    const Progress* from = nullptr;      // go on after these flavors
    const Assignment* pinned = nullptr;  // these flavors or none
    bool why = false;                    // say why not
  };

  Assigner(Ledger& ledger, Preemptor& preemptor) : ledger_(ledger), preemptor_(preemptor) {}

  Assignment assign(WorkloadId id, const Options& options);

 private:
  struct Need {
    ResourceId resource = 0;
    Amount amount;
  };
  // A flavor for one group of resources.
  struct Standing {
    Mode mode = Mode::kNoFit;
    int borrowing = 0;
  };
  struct Pick {
    const GroupFlavor* flavor = nullptr;
    Standing standing;
    std::vector<Standing> by_need;
  };
  // Why flavors did not do; of several the least severe is the group's reason.
  struct Notes {
    bool on = false;
    NoReason reason = NoReason::kNone;
    std::vector<std::string> texts;
    void add(NoReason why, std::string text);
  };
  struct Unit {
    const Workload& workload;
    const Queue& queue;
    std::uint32_t number = 0;
    const Options& options;
    const std::vector<Use>& assumed;  // of earlier pod sets
  };

  std::vector<Need> needs_of(const Workload& w, std::uint32_t unit, std::span<const int> counts,
                             std::string& undeclared) const;
  bool assign_unit(const Unit& unit, Assignment& out);
  Pick find_flavor(const Unit& unit, const Group& group, std::span<const Need> needs, int& last,
                   Notes& notes);
  Standing judge(const Unit& unit, const Group& group, const GroupFlavor& flavor, const Need& need,
                 Notes& notes);
  void take(const Unit& unit, const Group& group, std::span<const Need> needs, const Pick& pick,
            Assignment& out) const;
  bool pinned_elsewhere(const Unit& unit, const Group& group, const GroupFlavor& flavor) const;

  Ledger& ledger_;
  Preemptor& preemptor_;
};

}  // namespace berth::admit
