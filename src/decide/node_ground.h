// The ground of admission: nodes, their GPUs and their topologies.
//
// An assignment fits when every pod set with a topology has its domains
// (decide/schedule/topology_tree.h) and, unless quota alone decides, every pod has a node and its
// devices, in those domains and on nodes of its flavors. Pods of a workload come into the snapshot
// when it is first tried, with the labels and tolerations of the chosen flavors, and leave it at
// the end of the cycle if it was not admitted. Trials run on an overlay; the builder changes only
// for good.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "decide/admit/ground.h"
#include "decide/input_index.h"
#include "decide/schedule/placement.h"
#include "decide/schedule/topology_tree.h"
#include "model/decision.h"
#include "model/snapshot_builder.h"

namespace berth::decide {

class NodeGround : public admit::Ground {
 public:
  struct Setting {
    model::SnapshotBuilder& builder;
    schedule::Placer& placer;
    const admit::Book& book;
    const InputIndex& index;     // outlives the ground
    bool topology_only = false;  // another scheduler binds
    bool marked = false;         // QueueSetting::marked
  };
  explicit NodeGround(const Setting& setting);
  ~NodeGround() override;

  // Before the engine asks about it; holders bring their pods and domains. The spec stays.
  void know(admit::WorkloadId id, const model::WorkloadSpec& spec, bool holds);
  void forget(admit::WorkloadId id);  // it is finished and released
  // The fresh one is a larger slice of the old, whose pods stay where they are.
  void grows(admit::WorkloadId fresh, admit::WorkloadId old);
  // Before a cycle, when objects came or went since: holders are found on their nodes, free amounts
  // are counted again.
  void recount();
  // Of a ground that is kept: the builder has been given another state. Until look() what is known
  // of holders may change; then their pods are taken in, in that order. nodes_changed: they, or
  // their labels, are others.
  void begin(bool nodes_changed);
  void look(std::span<const admit::WorkloadId> in_order);

  Answer place(admit::WorkloadId id, const admit::Workload& workload, admit::Assignment& assignment,
               bool why) override;
  bool ever(admit::WorkloadId id, const admit::Workload& workload,
            const admit::Assignment& assignment, bool why, Answer& answer) override;
  void take_away(admit::WorkloadId id) override;
  void bring_back(admit::WorkloadId id) override;
  void put(admit::WorkloadId id, const admit::Assignment& assignment, bool for_good) override;
  void end_cycle() override;
  void release(admit::WorkloadId id) override;
  bool budgets_allow(std::span<const admit::WorkloadId> going,
                     std::span<const admit::WorkloadId> these) override;
  bool stays(admit::WorkloadId id) override;
  Answer settle(admit::WorkloadId id, const admit::Workload& workload,
                admit::Assignment& assignment, bool why) override;
  void inherit(admit::WorkloadId fresh, admit::WorkloadId old) override;

  // The pods of a failed node find other nodes of their domain, the rest of the holder stays. Says
  // why not; empty: done, and the assignment of the holder's pod sets is the new one.
  std::string replace(admit::WorkloadId id, const std::string& node,
                      std::vector<model::PodSetAdmission>& pod_sets);

  // Why nodes refused a workload the last time; null: they were not asked, or did not.
  const model::Outcome* refusal(admit::WorkloadId id) const;
  // Placements made for good since the last call, in order.
  std::vector<model::Placement> take_placements();
  // Pods of a holder and their nodes.
  std::vector<std::pair<std::string, std::string>> pods_of(admit::WorkloadId id);

 private:
  static constexpr std::int64_t kFewPods = 64;          // of a workload: they are tried as they are
  static constexpr std::size_t kMostWords = 4'000'000;  // of all pods of a workload

  struct Charge {  // count pods on a leaf of a tree
    std::size_t tree = 0;
    schedule::TopologyTree::Leaf leaf = 0;
    int count = 0;
    std::shared_ptr<const std::vector<std::int64_t>> per_pod;
  };
  struct Site {
    std::uint64_t serial = 0;  // of the pods it speaks of
    std::vector<Charge> charges;
    std::vector<schedule::Reservation::Step> pods;
  };
  struct Domains {  // of a holder's pod set
    std::string pod_set;
    admit::FlavorId flavor = 0;
    model::TopologyAssignment assignment;
    model::Amounts per_pod;
  };
  struct Known {
    const model::WorkloadSpec* spec = nullptr;
    std::string made;  // what its pods were made for; empty: there are none
    std::uint64_t serial = 0;
    std::vector<std::vector<model::PodId>> pods;  // by pod set
    std::vector<std::string> names;               // of all of them
    bool holds = false;
    bool unseen = false;  // holds pods that nobody has asked for yet
    bool plain = false;   // they need not be looked at before that
    Site held;            // while it holds quota
    std::vector<Domains> domains;
    std::map<std::string, int> counts = {};  // by pod set, while it holds quota
    std::vector<std::string> seated = {};    // pods of the input that get their seat now
    admit::WorkloadId old = admit::kNoId;    // a slice that it grows out of
    Site inherited = {};                     // from that one, until it is put down itself
    std::vector<std::string> inherited_names = {};
  };
  struct Tree {
    admit::FlavorId flavor = 0;
    bool hostnames = false;
    std::unique_ptr<schedule::TopologyTree> tree;
  };

  void build_trees();
  Tree build_tree(admit::FlavorId flavor, const model::TopologySpec& topology,
                  const std::map<std::string_view, std::vector<std::int64_t>>& used) const;
  std::map<std::string_view, std::vector<std::int64_t>> used_outside();
  void find_holders();
  void take_in_pods(Known& known);
  void locate(Known& known);
  Known& seen(admit::WorkloadId id);  // its pods are known
  std::vector<model::WorkloadSpec::Seat> seats_of(const Known& known, std::size_t set) const;
  std::vector<model::PodSpec> seats_taken(Known& known,
                                          const std::vector<const model::PodSpec*>& there);
  const Known* old_of(const Known& known) const;
  void less_old(const Known& old, const Known& known, admit::Assignment& assignment) const;
  void plus_old(const Known& old, const Known& known, const admit::Assignment& part,
                admit::Assignment& assignment) const;
  std::vector<std::int64_t> amounts(const model::Amounts& from) const;
  void charge(const Charge& charge, bool add);
  void charge_domains(std::size_t tree, const model::TopologyAssignment& assignment,
                      const model::Amounts& per_pod, std::vector<Charge>& out);
  std::optional<std::size_t> tree_of(const admit::Choice& choice) const;
  std::vector<Domains> domains_of(const Known& known,
                                  const std::vector<admit::Choice>& pod_sets) const;
  bool place_topology(const Known& known, const admit::Workload& workload,
                      admit::Assignment& assignment, bool empty, bool why, Site& site,
                      Answer& answer);
  bool place_pods(admit::WorkloadId id, const admit::Workload& workload,
                  const admit::Assignment& assignment, Site& site, Answer& answer);
  bool has_slots(admit::WorkloadId id, const admit::Workload& workload,
                 const admit::Assignment& assignment, bool empty, Answer& answer);
  std::pair<model::Reason, std::string> held_back(const Known& known) const;
  bool place_in_domains(const std::vector<model::PodId>& pods,
                        const model::TopologyAssignment& topology, schedule::Reservation& out);
  schedule::Workload rest_of(const Known& known, const model::ClusterState& state,
                             const admit::Workload& workload,
                             const admit::Assignment& assignment) const;
  void refuse_pods(admit::WorkloadId id, const admit::Workload& workload,
                   const admit::Assignment& assignment, Answer& answer);
  static std::string key_of(const admit::Assignment& assignment);  // counts and flavors
  void make_pods(admit::WorkloadId id, const admit::Assignment& assignment);
  std::vector<std::string> pod_names(const Known& known, std::size_t set, int count) const;
  model::PodSpec pod_for(const Known& known, std::size_t set, const std::string& name,
                         const admit::Choice& choice) const;
  void drop_pods(Known& known);
  bool may_have(const Known& known, const std::string& name) const;
  void give_up(const Known& known, const std::vector<std::string>& names);
  void record(const Known& known, std::span<const schedule::Reservation::Step> steps);
  model::ClusterState& overlay();
  const model::NodeSet& nodes_in(const std::vector<std::string>& levels,
                                 const std::vector<std::string>& values);

  model::SnapshotBuilder& builder_;
  schedule::Placer& placer_;
  const admit::Book& book_;
  const InputIndex& index_;
  bool topology_only_;
  bool marked_;
  bool has_topologies_ = false;
  std::vector<std::string> resources_;  // of topologies, sorted
  std::vector<Tree> trees_;
  std::map<admit::WorkloadId, Known> known_;
  // Whose each pod is, by ns/name: whatever two workloads say, one holds it or is placed with it.
  std::unordered_map<std::string, const Known*> has_;
  std::map<admit::WorkloadId, model::Outcome> refusals_;
  std::map<std::vector<std::string>, model::NodeSet> sets_;  // by level keys and values
  // Forms, and what they were given, that the empty nodes take.
  std::set<std::pair<std::shared_ptr<const admit::Form>, std::string>> fits_empty_;
  std::uint64_t serial_ = 0;
  std::optional<model::ClusterState> overlay_;
  std::vector<admit::WorkloadId> away_;                   // taken away for a trial
  std::vector<std::pair<admit::WorkloadId, Site>> lent_;  // put until the end of the cycle
  std::set<admit::WorkloadId> made_;  // with pods in the builder that are not bound
  std::set<admit::WorkloadId> seen_;  // holders whose pods were looked at, or are at once
  std::vector<model::Placement> placements_;
  bool stale_ = false;        // trees are to be built anew
  bool looks_later_ = false;  // between begin() and look()
};

}  // namespace berth::decide
