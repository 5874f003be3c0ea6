// What one question to a TopologyTree is made of. Internal to the topology files.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "decide/schedule/topology_tree.h"

namespace berth::schedule {

struct TopologyTree::Rules {
  model::Labels selector;
  std::vector<model::NodeSelectorTerm> terms;
  std::vector<model::Toleration> tolerations;

  const model::Taint* untolerated(const TopologyHost& host) const;  // the first, or null
  Verdict judge(const TopologyHost& host) const;
  friend bool operator==(const Rules&, const Rules&) = default;
};

struct TopologyTree::Judged {
  Rules rules;
  std::vector<Verdict> verdicts;  // by leaf
};

struct TopologyTree::Need {
  std::vector<std::pair<std::size_t, std::int64_t>> items;  // resource and amount, above 0
  friend bool operator==(const Need&, const Need&) = default;

  std::int64_t copies_in(const std::int64_t* free) const {
    std::int64_t copies = INT32_MAX;
    for (const auto& [resource, amount] : items) {
      if (free[resource] < amount) return 0;
      copies = std::min(copies, free[resource] / amount);
    }
    return copies;
  }
};

struct TopologyTree::Task {
  Need workers, leader;
  std::shared_ptr<const Judged> worker_rules, leader_rules;  // null: every node
  bool has_leader = false;
  bool empty = false;
  Leaf begin = 0, end = 0;  // the leaves that may be used
  Leaf without = kNoLeaf;   // and this one not

  static Verdict verdict(const std::shared_ptr<const Judged>& judged, std::size_t leaf) {
    return judged == nullptr ? Verdict::kAllowed : judged->verdicts[leaf];
  }
  bool inside(std::size_t leaf) const {
    const auto at = static_cast<Leaf>(leaf);
    return at >= begin && at < end && at != without;
  }
};

// Of one kind of pods; valid for leaves that did not change since.
struct TopologyTree::Counts {
  Need workers, leader;
  std::shared_ptr<const Judged> worker_rules, leader_rules;
  bool has_leader = false;
  bool empty = false;
  std::uint64_t change = 0;  // up to which they hold; 0: nothing counted yet
  std::vector<TopologyRoom> rooms;

  bool serves(const Task& task) const {
    return empty == task.empty && has_leader == task.has_leader && workers == task.workers &&
           leader == task.leader && worker_rules == task.worker_rules &&
           leader_rules == task.leader_rules;
  }
};

}  // namespace berth::schedule
