// Where the pods of topology-aware workloads go: counts of pods per domain of a topology.
//
// A topology is a tree: levels are node label keys, widest first; a domain is a tuple of values.
// Leaves are the domains of the lowest level: single nodes when that level is
// kubernetes.io/hostname, else groups of nodes whose free amounts are summed. An answer is found in
// two phases. First every leaf counts the pods it has room for and the counts are summed up the
// tree. Then the level is sought at which one domain takes all (or, at the widest level, several
// do), and the pods are handed down level by level to few domains. The rules:
//
//   required L     one domain of level L takes all, or nothing is placed
//   preferred L    one domain of level L, else of the next wider level, ..., else several of the
//                  widest
//   unconstrained  one leaf where one suffices, else several; also when nothing is asked
//   slices         pods come in groups of a size, each group inside one domain of its level; inner
//                  layers divide these groups again. Slices alone (or with unconstrained) start at
//                  the widest level.
//   leader         the smaller set of a group of two: one pod, in a domain with its workers
//
// Among domains of one level the order is: most slices first, then fewest pods, then values; the
// last domain taken is the smallest that suffices. Unconstrained asks take the domain with the
// fewest slices first (unless options.mixed is off), so that fragments are used up. Ties go to
// values, so an answer does not depend on the order in which hosts were added. Every answer
// respects the free amounts, the slices and the required domain; a "no" for a required level is
// exact, as is one for unconstrained and preferred asks.
//
// Balanced placement (options.balanced; preferred only) spreads evenly instead: under one parent
// of level L, it takes the fewest domains one level below L (at L, where slices belong to L) such
// that the least of them gets as many slices as can be (the threshold). Of the sets with the
// fewest domains that reach it, the one with the least room is taken, then the one whose rooms
// below are most even (smallest sum of squares), then the one found first in order of values.
// Every domain gets the threshold, the rest goes round in order of values. Where no parent has room
// for all, or the set can not keep the threshold, the usual rules apply. Finding the tightest set
// takes time with the number of domains times pods; beyond a bound the roomiest are taken.
//
// Usage is exact: add() and take() are inverses in any order, for domains that are not in the tree
// too (both do nothing). Free amounts may fall below zero; such a leaf has room for nothing.
// Invariants: the caller adds hosts, then seals, then asks; resources are indexed as given to the
// constructor; missing trailing amounts are 0; of "pods" every pod takes 1, whatever is stated.
//
// Cost: place() is O(domains) plus a heap over the domains of one level, and O(resources) for each
// leaf whose usage changed since the same pods were last asked for (all leaves at first): what
// leaves have room for, and the verdicts of nodes, are remembered for the last few pod templates.
// add() and take() are O(resources), plus a binary search when the leaf is named by values.
// Integers only.
// Not thread-safe, place() included (it reuses buffers): belongs to the decision loop.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/workload.h"

namespace berth::schedule {

struct TopologyHost {  // one node
  std::string name;
  std::vector<std::string> values;  // one per level
  std::vector<std::int64_t> free;   // by resource, less what pods of other workloads hold
  // Judged only when the lowest level is kubernetes.io/hostname; taints of effect NoSchedule and
  // NoExecute.
  model::Labels labels;
  std::vector<model::Taint> taints;
};

struct TopologyPodSet {  // what is to be placed
  int count = 0;
  std::vector<std::int64_t> per_pod;               // by resource
  model::TopologyAsk ask;                          // of a group: that of the workers is followed
  const model::PodSpec* pod = nullptr;             // nodeSelector, required affinity, tolerations
  std::span<const model::Toleration> tolerations;  // of the flavor, beside the pod's own
};

struct TopologyAnswer {
  bool ok = false;
  bool invalid = false;  // the ask itself can not be met by this topology, however empty
  std::vector<model::TopologyAssignment> assignments;  // one per pod set, in their order
  std::string message;                                 // why not
  int fits = 0;  // of a "no": slices (pods where slices have size 1) that would have fit
};

struct TopologyOptions {
  bool empty = false;     // as if no topology-aware workload were there
  bool balanced = false;  // TASBalancedPlacement
  bool mixed = true;      // TASProfileMixed: unconstrained takes the least free domain first
  bool explain = true;    // false: no message for what does not fit, which saves its cost
};

// The tree's form: a domain's parent one level up, and its children, a range of the level below.
struct TopologyLevel {
  std::vector<std::int32_t> parent;
  std::vector<std::int32_t> first;  // of domain d: first[d] to first[d + 1]; leaves: empty
  std::size_t size() const { return parent.size(); }
};

struct TopologyPlan;
struct TopologyChoice;
struct TopologyFind;

// What one domain has room for; led: beside the leader.
struct TopologyRoom {
  std::int64_t pods = 0, slices = 0;
  std::int64_t pods_led = 0, slices_led = 0;
  bool leads = false;  // has room for the leader
};

class TopologyTree {
 public:
  using Options = TopologyOptions;
  using Leaf = std::int32_t;
  static constexpr Leaf kNoLeaf = -1;

  TopologyTree(std::string name, std::vector<std::string> levels,
               std::vector<std::string> resources);
  ~TopologyTree();
  TopologyTree(const TopologyTree& other);  // for what-if: the copy's usage is its own
  TopologyTree(TopologyTree&& other) noexcept;
  TopologyTree& operator=(const TopologyTree& other);
  TopologyTree& operator=(TopologyTree&& other) noexcept;

  // In any order. Of hosts with the same hostname value (where that is the lowest level) only the
  // first by values counts.
  void add_host(TopologyHost host);
  void seal();

  const std::string& name() const { return name_; }
  const std::vector<std::string>& levels() const { return levels_; }
  bool has_level(std::string_view level) const;
  std::size_t leaves() const { return form_.empty() ? 0 : form_.back().size(); }

  // The leaf that values of an assignment name: the hostname alone, or one value per level.
  Leaf leaf(std::span<const std::string> values) const;

  // Usage of admitted workloads: count pods on the leaf.
  void add(Leaf leaf, int count, std::span<const std::int64_t> per_pod);
  void take(Leaf leaf, int count, std::span<const std::int64_t> per_pod);
  void add(std::span<const std::string> values, int count, std::span<const std::int64_t> per_pod);
  void take(std::span<const std::string> values, int count, std::span<const std::int64_t> per_pod);

  // One pod set, or a leader and its workers in either order. Assignments are sorted by the values
  // of all levels, also where only the hostname is stated.
  TopologyAnswer place(std::span<const TopologyPodSet> group, Options options = {}) const;

  // The pods on the node are placed anew, the rest stays: inside the required domain, or inside the
  // domain of the innermost slice that the loss breaks. The usage of the rest is expected to be
  // counted; the node itself is never chosen. Only where the lowest level is the hostname.
  TopologyAnswer replace(const TopologyPodSet& set, const model::TopologyAssignment& now,
                         std::string_view node, Options options = {}) const;

 private:
  enum class Verdict : std::uint8_t { kAllowed, kTaint, kSelector, kAffinity };
  struct Rules;   // what judges nodes
  struct Judged;  // rules and the verdict on every leaf
  struct Counts;  // what every leaf has room for
  struct Need;    // the amounts of a pod
  struct Task;    // one question to the tree
  struct Layer {
    int level = 0;
    std::int64_t size = 1;
  };
  using Domain = model::TopologyAssignment::Domain;

  int level_of(std::string_view level) const;  // -1: none
  void build_form();
  void shift(Leaf leaf, std::int64_t count, std::span<const std::int64_t> per_pod);
  std::span<const std::string> values_of(Leaf leaf) const;  // as an assignment states them

  // Reading the ask; a message where it can not be met.
  std::string level_error(std::string_view what, const std::string& level) const;
  std::string read_layers(const model::TopologyAsk& ask, std::vector<Layer>& out) const;
  std::string read_ask(const model::TopologyAsk& ask, int count, const Options& options,
                       TopologyPlan& plan) const;

  // Which nodes the pods may use; null: every node.
  std::shared_ptr<const Judged> judged(const TopologyPodSet& set) const;

  Need need_of(const TopologyPodSet& set) const;
  Task task_for(const TopologyPodSet& workers, const TopologyPodSet* leader,
                const Options& options) const;
  const std::int64_t* free_row(const Task& task, std::size_t leaf) const;
  void count_leaves(const Task& task) const;
  TopologyRoom leaf_room(const Task& task, std::size_t leaf,
                         std::vector<std::int64_t>& scratch) const;
  Counts& counts_for(const Task& task) const;
  TopologyFind find(const Task& task, const TopologyPlan& plan) const;
  TopologyAnswer refuse(const Task& task, const TopologyPlan& plan, const TopologyFind& find,
                        const Options& options) const;
  model::TopologyAssignment assignment(std::span<const TopologyChoice> leaves, bool leader) const;
  std::string layers_text(const TopologyPlan& plan, int level) const;
  std::string excluded_text(const Task& task) const;
  std::size_t shortest_resource(const Task& task, std::size_t leaf) const;
  model::TopologyAssignment merged(model::TopologyAssignment added,
                                   std::span<const Domain> rest) const;
  bool confine(const TopologyPlan& plan, std::span<const Layer> broken,
               std::span<const Domain> rest, Task& task) const;

  std::string name_;
  std::vector<std::string> levels_, resources_;
  bool hostnames_ = false;
  bool sealed_ = false;
  bool any_taint_ = false;
  int pods_resource_ = -1;
  std::vector<TopologyHost> hosts_;       // once sealed: sorted by values, then name
  std::vector<std::int32_t> host_of_;     // by leaf: its (first) host
  std::vector<Leaf> by_hostname_;         // leaves by their last value
  std::vector<TopologyLevel> form_;       // by level
  std::vector<std::int64_t> base_, now_;  // leaves x resources
  std::uint64_t change_ = 1;              // counts add() and take()
  std::vector<std::uint64_t> changed_;    // by leaf: the last of them
  // Memory of the last few questions.
  mutable std::vector<std::shared_ptr<const Judged>> judged_;
  mutable std::size_t next_judged_ = 0;
  mutable std::vector<Counts> counts_;
  mutable std::size_t next_counts_ = 0;
  mutable std::vector<std::vector<TopologyRoom>> rooms_;  // by level, of the last question
};

}  // namespace berth::schedule
