// Applies changes of objects to the one mutable ClusterState and publishes snapshots of it.
//
// Changes may come in any order (a pod before its node); the published state depends only on the
// objects present. Node changes cost O(nodes) at the next publish, and where names come or go a
// look at every pod; pod changes O(1). Owned by the decision loop: not thread-safe; published
// snapshots are. A copy costs a pointer a page, and copies are of one loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_map.h"
#include "model/cluster_state.h"
#include "model/match_index.h"
#include "model/rule_ledger.h"

namespace berth::model {

class SnapshotBuilder {
 public:
  SnapshotBuilder() = default;
  explicit SnapshotBuilder(ShapeBook::KeepsApart keeps_apart) : book_(std::move(keeps_apart)) {}

  void upsert_node(const NodeSpec& spec);
  void remove_node(std::string_view name);
  PodId upsert_pod(const PodSpec& spec);
  void remove_pod(std::string_view name);  // "ns/name"
  void upsert_gang(const GangSpec& spec);
  void remove_gang(std::string_view name);
  void set_budgets(std::vector<BudgetSpec> budgets);

  // The outcome of our own decisions, at once. Devices are known, so no guess follows.
  void bind(PodId id, std::uint32_t slot, const GpuTake& gpus);
  void bind(PodId id, std::uint32_t slot, const std::vector<int>& indices);
  void unbind(PodId id);
  void remove_pod(PodId id);

  const ClusterState& state();  // all changes applied; valid until the next change
  ClusterSnapshot publish();
  std::optional<PodId> find_pod(std::string_view name) const;
  std::optional<std::int32_t> find_gang(std::string_view name) const;
  const ShapeBook& book() const { return book_; }
  // What pods are there, and how many of each: f(const Shape&, count).
  template <class F>
  void for_each_shape(F&& f) const {
    for (const auto& weak : book_.shapes()) {
      const OwnedShape shape = weak.lock();
      if (!shape || shape->index >= shape_refs_.size()) continue;
      if (shape_refs_[shape->index] > 0) f(*shape, std::uint64_t{shape_refs_[shape->index]});
    }
  }

 private:
  struct Wanted {
    PodId id;
    std::string node;
    std::vector<int> indices;
  };

  void flush();
  bool has_node(std::string_view name) const;
  void rebuild_inventory();
  void take_off_changed();
  void move_slots(const std::vector<std::int32_t>& to);
  using Fresh = std::map<std::uint32_t, std::vector<std::uint32_t>>;  // shape: its new counters
  void count_running(const Fresh& fresh);
  void put_on(PodId id, std::uint32_t slot, GpuTake gpus);
  void take_off(PodId id);
  void bind_wanted();
  void guess_devices();
  void part_twins(std::uint32_t slot, std::vector<PodId>& guessed);
  void note_twins(std::uint32_t slot, const GpuTake& gpus);
  void forget_guess(PodId id);
  std::vector<int> stated(PodId id) const;  // its devices; none: they are not known
  void detach_pod(PodId id);                // off its node and out of its gang
  void touch(std::int32_t slot);
  void take_in(const ShapeBook::News& news);
  void take_in_counters(const std::vector<CounterRef>& counters, const Shape& shape);
  void drop_shape(const Shape& shape);
  void note_rules(const std::string& ns);  // they are others now
  GangSpec& write_gang(std::int32_t index);
  std::int32_t gang_index(const std::string& ns, const std::string& name);
  void leave_gang(PodId id);
  void drop_gang(std::int32_t index);
  void wake_quiet();
  GpuTake take_of(const NodeInfo& info, const Demand& demand,
                  const std::vector<int>& indices) const;
  GpuTake guess(std::size_t slot, const Demand& demand) const;

  ShapeBook book_;
  ClusterState state_;
  using Nodes = std::map<std::string, NodeInfoRef, std::less<>>;

  Nodes changed_nodes_;  // since the inventory was made; null: gone
  SharedMap<PodId> pods_;
  std::vector<PodId> free_pods_;
  std::vector<std::uint32_t> shape_refs_;  // by shape index
  std::map<std::string, std::int32_t, std::less<>> gangs_;
  std::vector<bool> declared_;  // by index of gangs: their object is there
  std::vector<std::int32_t> free_gangs_;
  std::vector<Wanted> wanted_;             // bound pods not yet on their node
  std::map<PodId, Wanted> strays_;         // bound to nodes that do not exist
  std::size_t bound_ = 0;                  // pods on nodes
  std::vector<std::uint32_t> assumed_on_;  // pods with guessed devices, by slot
  std::vector<std::uint32_t> touched_;     // slots whose guesses must be made again
  // Whole devices that pods say they have, and that others have: theirs are guessed.
  std::map<PodId, std::vector<int>> displaced_;
  MatchIndex matches_;
  RuleLedger rules_;
  // By namespace and name: pods whose rules are left out while their namespace brings too many.
  std::map<std::string, std::map<std::string, PodSpec>, std::less<>> quiet_;
  std::set<std::string> relieved_;  // namespaces of them that do so no more
};

}  // namespace berth::model
