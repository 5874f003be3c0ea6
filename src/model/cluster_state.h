// The cluster as one value: nodes, what is free on them, pods, gangs, and counts of pods per node.
//
// One class in three roles. SnapshotBuilder owns one and changes it; ClusterSnapshot is an
// immutable one shared by pointer; an overlay ("what if") is a copy of a snapshot that is changed
// and dropped. A copy costs O(pages), the first write to a page copies that page, so a dropped
// overlay leaves the snapshot bit-identical. bind() and unbind() are the only changes an overlay
// needs.
//
// Every change of a node is noted in a journal that copies share up to where they part, so that a
// cache that has seen one copy can catch up with any other. Counts have page stamps for the same.
// Thread-safety: one writer per object; a const ClusterState may be read and copied on any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/device_choice.h"
#include "model/inventory.h"
#include "model/journal.h"
#include "model/pages.h"
#include "model/rule_ledger.h"
#include "model/shape.h"

namespace berth::model {

using PodId = std::uint32_t;
inline constexpr std::int32_t kPending = -1;
inline constexpr std::int32_t kNoNode = -2;  // bound to a node that is not in the cluster

// A pod's identity and standing; constant while the object is unchanged.
struct PodInfo {
  std::string name;  // "ns/name"
  OwnedShape shape;
  std::string uid;
  int priority = 0;
  bool preempts = true;
  bool gated = false, terminating = false, service = false, unread_claims = false;
  bool needs_queue = false;
  bool queued = false;     // starts and leaves as its queue says
  bool stays = false;      // nobody's to evict
  std::int32_t gang = -1;  // index into ClusterState::gangs()
  std::string subgroup;
  std::string volume_missing;
  RuleLedger::Entry rules;  // what it brings
  std::int64_t created_ns = 0, started_ns = 0;
};

// One cache line.
struct alignas(64) PodEntry {
  std::shared_ptr<const PodInfo> info;  // null: the id is not in use
  ShapeRef shape = nullptr;             // info's
  std::int32_t slot = kPending;
  GpuTake gpus;
  bool assumed = false;  // its devices are our guess
  std::int32_t node_prev = -1, node_next = -1;
  std::int32_t gang_prev = -1, gang_next = -1;
};

static_assert(sizeof(PodEntry) == 64);

// Which counters a pod of a shape raises on its node, and which bar it from a domain. A link to a
// counter that is gone is skipped: the serial tells.
struct ShapeLinks {
  struct Link {
    std::uint32_t index = 0;
    std::uint64_t serial = 0;
  };
  std::vector<Link> raises, barred_by;
};

class ClusterState {
 public:
  ClusterState();

  const Inventory& inventory() const { return *inventory_; }
  std::size_t nodes() const { return inventory_->size(); }
  const NodeInfo& info(std::size_t slot) const { return inventory_->node(slot); }
  const NodeState& node(std::size_t slot) const { return nodes_[slot]; }
  const Journal::Mark& history() const { return journal_.now(); }  // of changes to nodes

  std::size_t pod_ids() const { return pods_.size(); }  // ids are below this
  const PodEntry& pod(PodId id) const { return pods_[id]; }
  const GangSpec& gang(std::int32_t index) const { return gangs_[static_cast<std::size_t>(index)]; }
  std::size_t gangs() const { return gangs_.size(); }  // indices are below; no name: not in use
  const std::vector<BudgetSpec>& budgets() const { return *budgets_; }

  template <class F>
  void for_each_pod_on(std::size_t slot, F&& f) const {
    for (std::int32_t id = node_heads_[slot]; id >= 0;
         id = pods_[static_cast<PodId>(id)].node_next) {
      f(static_cast<PodId>(id));
    }
  }
  template <class F>
  void for_each_in_gang(std::int32_t gang, F&& f) const {
    for (std::int32_t id = gang_heads_[static_cast<std::size_t>(gang)]; id >= 0;
         id = pods_[static_cast<PodId>(id)].gang_next) {
      f(static_cast<PodId>(id));
    }
  }

  // Of a counter that a shape of this state needs: pods by slot. No pages: none anywhere.
  using CountPages = Pages<std::uint32_t, 64>;
  const CountPages& counts(const Counter& counter) const { return counts_[counter.index]->pages; }
  std::uint32_t count(const Counter& counter, std::size_t slot) const {
    const CountPages& pages = counts(counter);
    return pages.size() == 0 ? 0 : pages[slot];
  }
  std::uint64_t total(const Counter& counter) const { return counts_[counter.index]->total; }
  // Rules of others that may keep pods of the shape out: f(const Counter&), those with pods alone.
  template <class F>
  void for_each_bar(const Shape& shape, F&& f) const {
    for (const ShapeLinks::Link& link : links_[shape.index].barred_by) {
      const Counts* counts = live(link);
      if (counts != nullptr && counts->total > 0) f(*counts->counter);
    }
  }

  std::size_t bars(const Shape& shape) const { return links_[shape.index].barred_by.size(); }

  // Namespaces whose pods bring more rules than are looked at (rule_ledger.h).
  using Crowded = std::map<std::string, RuleCount, std::less<>>;
  const Crowded& crowded() const { return *crowded_; }
  // Why the rules of a waiting pod are not looked at; empty: they are.
  std::string rule_excess(PodId id) const;

  // Surely the same nodes, gangs, budgets and running pods; pending ones may differ.
  bool same_running(const ClusterState& other) const {
    return inventory_ == other.inventory_ && journal_.now() == other.journal_.now() &&
           gangs_version_ == other.gangs_version_ && budgets_ == other.budgets_;
  }

  MigFree mig_free(std::size_t slot, const Demand& demand) const;

  // Pending pod onto a node with these devices; bound pod off its node, pending again.
  void bind(PodId id, std::uint32_t slot, const GpuTake& gpus);
  void unbind(PodId id);

  // Equal in everything that a user could see; ids and versions may differ. Slow: for tests.
  std::string dump() const;

 private:
  friend class SnapshotBuilder;
  struct Counts {
    std::uint64_t owner = 0;
    CounterRef counter;
    std::uint64_t total = 0;
    CountPages pages;  // of no size before the first pod is counted
  };

  std::uint64_t next_version();
  NodeState& write_node(std::size_t slot);
  void raise(const Shape& shape, std::size_t slot, int by);
  void bump(std::uint32_t counter, std::size_t slot, int by);
  const Counts* live(const ShapeLinks::Link& link) const {
    const Counts* counts = link.index < counts_.size() ? counts_[link.index].get() : nullptr;
    return counts != nullptr && counts->counter->serial == link.serial ? counts : nullptr;
  }
  void link_node(PodId id, std::int32_t slot);
  void unlink_node(PodId id);
  void link_gang(PodId id, std::int32_t gang);
  void unlink_gang(PodId id);

  std::shared_ptr<const Inventory> inventory_;
  Pages<NodeState> nodes_;
  Journal journal_;
  Pages<std::int32_t, 256> node_heads_, gang_heads_;
  Pages<PodEntry> pods_;
  Pages<std::shared_ptr<Counts>, 64> counts_;  // null: the index is not in use
  Owner owner_;                                // of Counts
  Pages<ShapeLinks> links_;
  Pages<GangSpec> gangs_;
  std::uint64_t gangs_version_ = 0;  // of the family: equal ones are the same gangs
  std::shared_ptr<const std::vector<BudgetSpec>> budgets_;
  std::shared_ptr<const Crowded> crowded_;
  std::shared_ptr<std::atomic<std::uint64_t>> versions_;  // common to the family
};

using ClusterSnapshot = std::shared_ptr<const ClusterState>;

}  // namespace berth::model
