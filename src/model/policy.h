// What a site may choose: how pods are placed and whom queues send away. Everything has a default.
//
// The object BerthPolicy says it (kinds/policy.h), flags of a command go before it. docs/policy.md
// explains each choice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/selector.h"

namespace berth::model {

struct PlacementPolicy {
  // Level 5 of the node choice.
  enum class Packing : std::uint8_t {
    kFragmentation,   // keep the free GPUs usable for the pods that come (the default)
    kMostAllocated,   // fill nodes up
    kLeastAllocated,  // keep nodes even
  };
  Packing packing = Packing::kFragmentation;

  // Of workloads, the first that matches says whether their replicas keep apart; where none does,
  // those of a service do, by node, and everything else packs.
  struct Class {
    std::string name;
    std::vector<std::string> namespaces, queues, priority_classes;  // one of each; empty: any
    text::Selector selector;                                        // of the pods' labels
    bool spread = false;
    std::string over;  // the label of nodes that they spread over first; empty: none but the node
    friend bool operator==(const Class&, const Class&) = default;
  };
  std::vector<Class> classes;

  // Level 4: a node scores the sum of the weights of the labels it has.
  struct Locality {
    std::string key, value;
    int weight = 1;
    friend bool operator==(const Locality&, const Locality&) = default;
  };
  std::vector<Locality> locality;

  bool preemption = true;
  friend bool operator==(const PlacementPolicy&, const PlacementPolicy&) = default;
};

// Preemption by queues beyond Kueue's rules. All of it is off by default; then, with quota alone
// deciding, decisions are Kueue's.
struct QueuePolicy {
  bool preemption = true;
  // A holder is nobody's victim before it has run so long.
  std::int64_t min_runtime_ns = 0;
  // A holder whose pods a PodDisruptionBudget protects is nobody's victim.
  bool budgets = false;
  // Whoever borrows waits until those are served who borrow less, not only the first of each queue:
  // what the second of its owner's line would take back at once is not lent.
  bool owners_first = false;
  // Whoever was preempted by another does not preempt that one in turn.
  bool no_ping_pong = false;
  // So often an hour a workload may be preempted; 0: without end.
  int max_evictions_per_hour = 0;
  // Which of several holders goes first, once Kueue's first two rules (those that leave already,
  // then those of other queues) say nothing.
  enum class Victims : std::uint8_t {
    kLowestPriority,  // Kueue: lower priority, then the newest
    kFewestJobs,      // those that free the most, so that few are needed
    kLeastLostWork,   // those that have done the least: amount x time
  };
  Victims victims = Victims::kLowestPriority;
  friend bool operator==(const QueuePolicy&, const QueuePolicy&) = default;
};

inline constexpr int kMostEvictionsPerHour = 64;

struct Policy {
  PlacementPolicy placement;
  QueuePolicy queues;

  void set_preemption(bool on) { placement.preemption = queues.preemption = on; }
  friend bool operator==(const Policy&, const Policy&) = default;
};

// What whoever started a command wants whatever the object says.
struct PolicyFlags {
  std::optional<PlacementPolicy> placement;
  std::optional<QueuePolicy> queues;
  bool no_preemption = false;
  std::vector<std::string> words;  // as they were given: "--policy=pack"
};

// Each flag goes before the part of the object that it speaks of.
inline Policy in_force(const std::optional<Policy>& object, const PolicyFlags& flags) {
  Policy out = object.value_or(Policy());
  const bool preemption = out.placement.preemption && !flags.no_preemption;
  if (flags.placement) out.placement = *flags.placement;
  if (flags.queues) out.queues = *flags.queues;
  out.set_preemption(preemption);
  return out;
}

}  // namespace berth::model
