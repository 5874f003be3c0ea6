// Queues, cohorts and flavors as their objects describe them (Kueue's kinds, both versions as one).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/spec.h"

namespace berth::model {

// A kind of nodes that quota is counted for.
struct FlavorSpec {
  std::string name;
  Labels node_labels;
  std::vector<Taint> node_taints;
  std::vector<Toleration> tolerations;  // given to the pods
  std::string topology;                 // name of a Topology, or empty
  friend bool operator==(const FlavorSpec&, const FlavorSpec&) = default;
};

// Amounts as in Amounts: cpu in milli, others whole; INT64_MAX is unlimited.
struct ResourceQuota {
  std::string resource;
  std::int64_t nominal = 0;
  std::optional<std::int64_t> borrowing_limit, lending_limit;
  friend bool operator==(const ResourceQuota&, const ResourceQuota&) = default;
};
struct FlavorQuota {
  std::string flavor;
  std::vector<ResourceQuota> resources;
  friend bool operator==(const FlavorQuota&, const FlavorQuota&) = default;
};
struct ResourceGroup {
  std::vector<std::string> covered;
  std::vector<FlavorQuota> flavors;  // in order of preference
  friend bool operator==(const ResourceGroup&, const ResourceGroup&) = default;
};

enum class StopPolicy : std::uint8_t { kNone, kHold, kHoldAndDrain };
enum class PreemptWithin : std::uint8_t { kNever, kLowerPriority, kLowerOrNewerEqualPriority };
enum class Reclaim : std::uint8_t { kNever, kLowerPriority, kAny };

// A ClusterQueue.
struct QueueSpec {
  std::string name;
  std::string cohort;  // empty: on its own
  std::vector<ResourceGroup> groups;
  bool strict_fifo = false;
  std::optional<text::Selector> namespaces;  // absent: none; empty: all
  bool borrow_stops_search = true;           // whenCanBorrow: MayStopSearch
  bool preempt_stops_search = false;         // whenCanPreempt: MayStopSearch
  bool prefer_less_borrowing = false;        // preference: PreemptionOverBorrowing
  PreemptWithin within = PreemptWithin::kNever;
  Reclaim reclaim = Reclaim::kNever;
  bool borrow_by_preemption = false;  // borrowWithinCohort.policy: LowerPriority
  std::optional<int> max_priority_threshold;
  struct Check {
    std::string name;
    std::vector<std::string> flavors;  // empty: all
    friend bool operator==(const Check&, const Check&) = default;
  };
  std::vector<Check> checks;
  StopPolicy stop = StopPolicy::kNone;
  double weight = 1;                    // of fair sharing
  bool admission_fair_sharing = false;  // by usage of the local queues
  // concurrentAdmissionPolicy: a variant of a workload for each flavor; whether one that runs moves
  // to a better flavor (TryPreferredFlavors), and the last flavor it moves to (empty: any).
  bool concurrent = false;
  bool retain_first = false;
  std::string last_acceptable = {};
  friend bool operator==(const QueueSpec&, const QueueSpec&) = default;
};

struct LocalQueueSpec {
  std::string ns, name;
  std::string queue;  // the ClusterQueue
  StopPolicy stop = StopPolicy::kNone;
  double weight = 1;
  Amounts consumed;  // status: what admission fair sharing counted, and when
  std::int64_t consumed_at_ns = 0;
  friend bool operator==(const LocalQueueSpec&, const LocalQueueSpec&) = default;
};

struct CohortSpec {
  std::string name;
  std::string parent;  // empty: a root
  std::vector<ResourceGroup> groups;
  double weight = 1;
  friend bool operator==(const CohortSpec&, const CohortSpec&) = default;
};

}  // namespace berth::model
