// Which nodes a pod's fixed rules allow, remembered per NodeRules and inventory.
//
// Evaluated once per node class where every label the rules name is uniform in a class, else per
// node. A memo is a cache: dropping it changes nothing but time. At most kMaxEntries, least
// recently used out.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <list>
#include <memory>
#include <string_view>
#include <vector>

#include "model/inventory.h"
#include "model/reason.h"

namespace berth::schedule {

using Blockers = std::uint32_t;  // bit per model::Constraint
constexpr Blockers bit(model::Constraint c) { return Blockers{1} << static_cast<int>(c); }

struct RuleResult {
  std::vector<Blockers> blockers;        // by slot; only the constraints that rules decide
  model::NodeSet allowed;                // no blocker
  model::NodeSet affinity;               // selector and required affinity match
  model::NodeSet tolerated;              // no hard taint in the way
  std::vector<std::int32_t> preference;  // by slot; empty: 0 everywhere
};

// Taints that controllers set and take away again: for conditions of a node (node.kubernetes.io/),
// until it is set up (agent-not-ready, uninitialized), and before it goes.
bool is_passing_taint(std::string_view key);
// Of those: the node is about to go.
bool is_parting_taint(std::string_view key);
// Of those: a cloud takes it back within minutes, whatever runs there.
bool is_notice_taint(std::string_view key);

// All rule constraints that reject the node; with lasting, only those that time does not heal: not
// readiness, cordons, and taints that pass.
Blockers rule_blockers(const model::Inventory& inventory, const model::NodeInfo& node,
                       const model::NodeRules& rules, bool lasting = false);
std::int32_t rule_preference(const model::Inventory& inventory, const model::NodeInfo& node,
                             const model::NodeRules& rules);

class RuleMemo {
 public:
  // Valid until the next call.
  const RuleResult& get(const model::Inventory& inventory,
                        const std::shared_ptr<const model::NodeRules>& rules);

  static constexpr std::size_t kMaxEntries = 1024;

 private:
  struct Entry {
    std::uint64_t serial = 0;
    RuleResult result;
  };
  RuleResult evaluate(const model::Inventory& inventory, const model::NodeRules& rules) const;

  std::uint64_t inventory_version_ = 0;
  std::list<Entry> entries_;  // most recent first
  boost::unordered_flat_map<std::uint64_t, std::list<Entry>::iterator> by_serial_;
};

}  // namespace berth::schedule
