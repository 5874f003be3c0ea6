// What waits in queues: workloads of pod sets, where they were admitted, and what governs queues.
//
// Kueue's Workload, Topology, WorkloadPriorityClass, AdmissionCheck and Configuration, both
// versions as one; Jobs, pod groups and the groups of other schedulers become the same
// WorkloadSpec. Names, not ids; amounts as in Amounts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/queue.h"
#include "model/reason.h"

namespace berth::model {

// How the pods of a pod set are kept together. Levels are node label keys.
struct TopologyAsk {
  enum class Mode : std::uint8_t { kNone, kRequired, kPreferred, kUnconstrained };
  struct Slice {
    std::string level;
    int size = 1;
    friend auto operator<=>(const Slice&, const Slice&) = default;
  };
  Mode mode = Mode::kNone;
  std::string level;          // of kRequired and kPreferred
  std::string group;          // podSetGroupName: placed together with the others of that name
  std::vector<Slice> slices;  // outermost first, at most 3, each divides the one before
  bool asks() const { return mode != Mode::kNone || !slices.empty(); }
  friend auto operator<=>(const TopologyAsk&, const TopologyAsk&) = default;
};

struct PodSetSpec {
  std::string name = "main";
  int count = 1;
  std::optional<int> min_count;  // partial admission, at least 1
  std::shared_ptr<const PodSpec> pod = std::make_shared<PodSpec>();  // the template
  Amounts requests;  // of one pod as quota counts them: pod->requests and GPUs by resource name
  TopologyAsk topology;
  std::vector<std::string> pods;  // that exist already, bound or not, as "ns/name"; sorted
  friend bool operator==(const PodSetSpec& a, const PodSetSpec& b) {
    return a.name == b.name && a.count == b.count && a.min_count == b.min_count &&
           (a.pod == b.pod || *a.pod == *b.pod) && a.requests == b.requests &&
           a.topology == b.topology && a.pods == b.pods;
  }
};

// Pods of a pod set per domain. levels: node label keys; values: one per level.
struct TopologyAssignment {
  struct Domain {
    std::vector<std::string> values;
    int count = 0;
    friend auto operator<=>(const Domain&, const Domain&) = default;
  };
  std::vector<std::string> levels;
  std::vector<Domain> domains;  // sorted by values
  friend bool operator==(const TopologyAssignment&, const TopologyAssignment&) = default;
};

struct PodSetAdmission {
  std::string name;
  int count = 0;
  std::map<std::string, std::string> flavors;  // by resource
  Amounts usage;                               // of all pods of the set
  std::optional<TopologyAssignment> topology;
  bool topology_pending = false;  // delayedTopologyRequest: Pending
  friend bool operator==(const PodSetAdmission&, const PodSetAdmission&) = default;
};

struct AdmissionSpec {
  std::string queue;  // the ClusterQueue
  std::vector<PodSetAdmission> pod_sets;
  friend bool operator==(const AdmissionSpec&, const AdmissionSpec&) = default;
};

enum class CheckState : std::uint8_t { kAwaited, kReady, kRetry, kRejected };

// What took away the ground that a workload runs on.
struct Loss {
  std::string reason;   // of the condition Evicted: "GpuFailure", "NodeReclaimed"
  std::string message;  // a sentence
  friend bool operator==(const Loss&, const Loss&) = default;
};

struct WorkloadSpec {
  std::string ns, name, uid;
  std::string queue;        // the LocalQueue, in ns
  std::string charge = {};  // who pays for its pods: "kueue/cq", "volcano/q"; live alone
  std::string owner;        // "Job/train", or empty
  int priority = 0;         // effective: class and boost
  std::int64_t created_ns = 0;
  bool active = true;
  bool leftover =
      false;  // a pod that no workload holds quota for: it counts, and is nobody's object
  std::vector<PodSetSpec> pod_sets;
  std::string held_by;            // admission-gated-by: who must let it go first, or empty
  bool preemption_gated = false;  // a preemption gate is closed
  std::string incomplete;         // why it cannot be looked at yet, or empty
  bool unmade = false;            // live: its Workload object is yet to be made, nothing is let in
  Reason incomplete_reason = Reason::kMisconfigured;  // of it
  int max_execution_s = 0;                            // 0: no limit
  // Elastic: the slice ("ns/name") whose place this larger one takes, or empty.
  std::string replaces = {};
  // Concurrent admission: a variant may use these flavors alone (empty: all) and stands for its
  // parent ("ns/name"); a parent with variants is not decided itself.
  std::vector<std::string> allowed_flavors = {};
  std::string variant_of = {};
  bool has_variants = false;

  // Status.
  std::optional<AdmissionSpec> admission;  // holds quota
  bool admitted = false;
  bool finished = false;
  bool pods_ready = true;
  bool recovering = false;       // they were ready once
  std::int64_t unready_ns = 0;   // since when they are not
  std::int64_t reserved_ns = 0;  // since when it holds quota
  std::int64_t admitted_ns = 0;
  std::string evicted;  // the reason of condition Evicted while it is True
  std::int64_t evicted_ns = 0;
  std::string preempted;  // the reason of condition Preempted while it is True
  // Who preempted it last (a UID, or "ns/name" where it has none), and when it was in the past hour
  // (condition berth.dev/Preemptions).
  std::string preempted_by = {};
  std::vector<std::int64_t> preemptions_ns = {};
  std::string not_requeued;  // the reason of condition Requeued while it is False
  bool makes_room = false;   // it preempted others and waits for them to leave
  std::int64_t requeue_at_ns = 0;
  int requeues = 0;
  int past_execution_s = 0;
  std::map<std::string, CheckState> checks;
  int retry_after_s = 0;                   // the longest that a check in state Retry asks for
  std::map<std::string, int> reclaimable;  // by pod set: pods that are done
  bool stale = false;  // a slice that nobody asks for any more: it is to be ended
  // Of the pods of its one set that it holds quota for: its Job shrank, the rest is to be given
  // back.
  std::optional<int> keeps = {};
  std::vector<std::string> unhealthy_nodes;
  std::optional<Loss> loss = {};  // what it ran on is lost: it has to start over
  // Where pods of a holder that are not bound yet are to run (annotation berth.dev/seats).
  struct Seat {
    std::string pod_set, node;
    std::vector<int> gpus = {};
    friend bool operator==(const Seat&, const Seat&) = default;
  };
  std::vector<Seat> seats = {};
  friend bool operator==(const WorkloadSpec&, const WorkloadSpec&) = default;
};

struct TopologySpec {
  std::string name;
  std::vector<std::string> levels;  // node label keys, widest first
  friend bool operator==(const TopologySpec&, const TopologySpec&) = default;
};

struct CheckSpec {  // AdmissionCheck
  std::string name, controller;
  bool active = true;
  friend bool operator==(const CheckSpec&, const CheckSpec&) = default;
};

// Kueue's Configuration, as far as it changes decisions, with its defaults.
struct QueueConfig {
  enum class Strategy : std::uint8_t { kLessThanOrEqualToFinalShare, kLessThanInitialShare };
  bool fair_sharing = false;
  std::vector<Strategy> strategies = {Strategy::kLessThanOrEqualToFinalShare,
                                      Strategy::kLessThanInitialShare};
  // Admission fair sharing: on where half_life_s is set.
  std::optional<double> half_life_s;
  double sampling_s = 300;
  std::map<std::string, double> resource_weights;

  bool ignore_undeclared = false;  // resources.quotaCheckStrategy: IgnoreUndeclared
  std::vector<std::string> excluded_prefixes;
  struct Transformation {
    std::string input;
    bool keep_input = true;   // strategy: Retain
    std::string multiply_by;  // a resource, or empty
    std::map<std::string, double> outputs;
    friend bool operator==(const Transformation&, const Transformation&) = default;
  };
  std::vector<Transformation> transformations;

  bool wait_for_pods_ready = true;
  bool block_admission = false;
  int pods_ready_timeout_s = 1800;
  int recovery_timeout_s = 1800;
  bool requeue_by_creation = false;  // requeuingStrategy.timestamp: Creation
  std::optional<int> backoff_limit;
  int backoff_base_s = 60, backoff_max_s = 3600;

  bool manage_without_queue = false;
  std::map<std::string, bool> gates;  // featureGates
  bool gate(std::string_view name, bool otherwise) const {
    const auto it = gates.find(std::string(name));
    return it == gates.end() ? otherwise : it->second;
  }
  friend bool operator==(const QueueConfig&, const QueueConfig&) = default;
};

// What governs queues; the lists are sorted by name.
struct QueueRules {
  QueueConfig config;
  std::vector<FlavorSpec> flavors;
  std::vector<QueueSpec> queues;
  std::vector<LocalQueueSpec> local_queues;
  std::vector<CohortSpec> cohorts;
  std::vector<TopologySpec> topologies;
  std::vector<CheckSpec> checks;
  std::map<std::string, Labels> namespaces;  // labels of namespaces that are known
};

// Everything about queues in one input.
struct QueueInputs : QueueRules {
  std::vector<WorkloadSpec> workloads;  // sorted by name
};

}  // namespace berth::model
