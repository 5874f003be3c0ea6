// The decision on a copy of the cluster: as it is, and with changes.
//
// The snapshot is built once; a trial copies it, which costs a pointer a page, applies a Draft and
// runs the whole decision, so that what it says is what a plan of the changed objects says. What
// was worked out about nodes serves all trials that leave the nodes alone. Pure: the same inputs,
// options and draft give the same outcome. Not thread-safe.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "decide/decide.h"
#include "people/view/plan.h"
#include "people/why/draft.h"
#include "people/why/holders.h"
#include "people/why/unit.h"

namespace berth::people {

struct TrialOutcome {
  bool starts = false;  // everything of the unit that waits is placed
  int placed = 0;
  int victims = 0;    // running pods that are evicted for it
  model::Outcome no;  // of the first that is not placed
  std::string node;   // of the first placement
};

class Trials {
 public:
  Trials(const kinds::Inputs& inputs, const PlanOptions& options);
  // The same cluster with a draft that leaves nodes and queues alone and outlives it; inputs() is
  // as it was.
  Trials(const Trials& other, const Draft& draft);

  const kinds::Inputs& inputs() const { return inputs_; }
  const PlanOptions& options() const { return options_; }
  const model::Policy& policy() const { return policy_; }
  const model::Decision& decision() const { return run_.decision; }
  const model::ClusterState& before() { return base_.state(); }  // nothing pending is placed
  model::SnapshotBuilder& after() { return after_; }             // once the decision is carried out

  // why: with the reason of a no.
  TrialOutcome run(const Draft& draft, const Unit& unit, bool why = true) const;
  // A first look: nobody else waits. Of units outside of queues everybody else stays where the
  // decision left him; for those of queues what runs, and is not sent away by the decision, holds
  // its quota and its room, and nobody who waits takes any. Its "yes" wants run(); its "no" stands,
  // though a change that helps because it lets others send somebody away goes unseen. Call focus()
  // once before; the same unit again costs nothing.
  void focus(const Unit& unit);
  bool quick(const Draft& draft, const Unit& unit) const;
  // The first look with what is said of the unit; after: the cluster once that is carried out.
  TrialOutcome alone(const Draft& draft, const Unit& unit, model::SnapshotBuilder& after) const;
  int count() const { return count_; }     // trials so far
  const model::Amounts& capacity() const;  // of all nodes together, as quota counts it

 private:
  std::optional<bool> by_new_nodes(const Draft& draft, const Unit& unit) const;
  void decide();
  std::optional<decide::QueueSetting> queues_with(
      const Draft& draft, std::vector<const model::WorkloadSpec*> workloads) const;
  TrialOutcome look(const Draft& draft, const Unit& unit, bool why,
                    model::SnapshotBuilder& builder) const;

  const kinds::Inputs& inputs_;
  PlanOptions options_;
  model::Policy policy_;  // in force
  model::SnapshotBuilder base_, after_;
  std::string focused_;               // focus(): what the decision calls the unit
  model::SnapshotBuilder alone_;      // focus(): nothing else is pending
  std::set<std::string_view> nodes_;  // names
  bool keeps_away_ = false;           // some pod has required anti-affinity
  bool waits_ = false;                // focus(): the decision is final and does not start it
  decide::Run run_;
  std::vector<const model::WorkloadSpec*> workloads_;  // by name
  std::optional<decide::InputIndex> index_;            // where there are queues
  bool marked_ = false;                                // QueueSetting::marked
  std::shared_ptr<const admit::Book> book_;            // of the rules as they are
  std::shared_ptr<admit::Forms> forms_;
  std::optional<Holders> holders_;  // focus(): of quota
  std::set<std::string> evicted_;   // focus(): workloads that the decision sends away
  // They know the nodes as they are; a draft that changes nodes gets one of its own.
  mutable schedule::Placer placer_, alone_placer_;
  mutable int count_ = 0;
  mutable std::optional<model::Amounts> capacity_;
};

// What of a decision concerns the unit. names: of its pods that are to be placed ("ns/name").
TrialOutcome outcome_of(const model::Decision& decision, const Unit& unit,
                        const std::set<std::string>& names);

}  // namespace berth::people
