// The pending workloads of one queue: who is next, who was tried and waits for a change.
//
// Order: the workload that has asked for room first (where it is sticky), then higher priority,
// then earlier, then by uid; with admission fair sharing the local queue that used least comes
// before all that. Workloads of one form (and local queue) stand in one lane; a "no" for the head
// of a lane parks the whole lane, so parking and flushing cost O(lanes), not O(workloads).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "decide/admit/ledger.h"

namespace berth::admit {

class Line {
 public:
  Line(const Ledger& ledger, QueueId queue);
  Line(Line&&) = default;

  void push(WorkloadId id);  // waiting, or parked with its lane
  void remove(WorkloadId id);
  std::optional<WorkloadId> head() const;
  // by_ground: room on nodes alone may help it.
  void park(WorkloadId id, bool by_ground = true);       // this one alone
  void park_lane(WorkloadId id, bool by_ground = true);  // all of its form
  bool waits_for_ground() const { return by_ground_; }   // some that are parked do
  bool flush();  // all parked ones are due again; whether there were any
  bool is_parked(WorkloadId id) const;

  void stick(WorkloadId id) { sticky_ = id; }
  void stick_again(WorkloadId id);  // from before; the first in order, where several did
  void unstick(WorkloadId id) {
    if (sticky_ == id) sticky_ = kNoId;
  }
  void unstick() { sticky_ = kNoId; }
  std::size_t size() const { return size_; }
  std::vector<WorkloadId> in_order() const;  // all of them, parked or not

 private:
  struct Earlier {
    const std::vector<Workload>* workloads;
    bool operator()(WorkloadId a, WorkloadId b) const {
      const Workload& x = (*workloads)[a];
      const Workload& y = (*workloads)[b];
      if (x.order_ns != y.order_ns) return x.order_ns < y.order_ns;
      const int order = x.uid.compare(y.uid);
      return order != 0 ? order < 0 : a < b;
    }
  };
  struct Sooner {  // across forms
    Earlier earlier;
    bool operator()(WorkloadId a, WorkloadId b) const {
      const int x = (*earlier.workloads)[a].priority(), y = (*earlier.workloads)[b].priority();
      return x != y ? x > y : earlier(a, b);
    }
  };
  struct Lane {
    explicit Lane(Earlier earlier) : waiting(earlier) {}
    std::set<WorkloadId, Earlier> waiting;
    bool parked = false;
    std::shared_ptr<const Form> form;  // the key stays true while the lane is there
  };
  // One per local queue with admission fair sharing, else one for all: heads of lanes that are due.
  struct Bin {
    explicit Bin(Sooner sooner) : heads(sooner) {}
    std::set<WorkloadId, Sooner> heads;
  };
  using LaneKey = std::pair<const Form*, LocalId>;

  LocalId bin_of(WorkloadId id) const;
  LaneKey key_of(WorkloadId id) const;
  Bin& bin(LocalId local);
  void park_lane(const LaneKey& key, Lane& lane);
  void drop_head(Lane& lane);
  void show_head(Lane& lane);
  bool better(WorkloadId a, WorkloadId b) const;

  const Ledger* ledger_;
  bool by_local_;
  bool by_ground_ = false;
  std::map<LaneKey, Lane> lanes_;
  std::map<LocalId, Bin> bins_;
  std::set<WorkloadId> alone_;  // parked one by one
  std::vector<LaneKey> parked_lanes_;
  std::set<const Form*> parked_forms_;  // of those lanes; whoever comes with one is parked too
  WorkloadId sticky_ = kNoId;
  std::size_t size_ = 0;
};

}  // namespace berth::admit
