// The nouns as users state them: nodes, pods, gangs, budgets. Plain values over strings.
//
// Codecs (kinds/) make them from Kubernetes objects off the decision loop; SnapshotBuilder
// interns them into the compact forms that decisions run on. Amounts are integers in one unit per
// resource: cpu in milli, every other resource in its base unit (bytes, pieces). GPU shares are
// milli-GPU. A spec handed to the builder is valid: what cannot be is refused by the codec, with
// its path.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/selector.h"

namespace berth::model {

using Labels = std::map<std::string, std::string, std::less<>>;
using Amounts = std::map<std::string, std::int64_t, std::less<>>;

// Resources with a domain in their name are whole devices; the others are cpu, memory and the like.
inline bool is_device(std::string_view resource) {
  return resource.find('/') != std::string_view::npos;
}
inline bool has_devices(const Amounts& amounts) {
  return std::any_of(amounts.begin(), amounts.end(),
                     [](const auto& each) { return each.second > 0 && is_device(each.first); });
}

inline constexpr int kMaxGpusPerNode = 16;
inline constexpr int kMaxSharesPerGpu = 255;  // of one device; more are left aside
inline constexpr int kMilliPerGpu = 1000;

// ---- nodes ----

enum class TaintEffect : std::uint8_t { kNoSchedule, kPreferNoSchedule, kNoExecute };

struct Taint {
  std::string key, value;
  TaintEffect effect = TaintEffect::kNoSchedule;
  friend auto operator<=>(const Taint&, const Taint&) = default;
};

struct Toleration {
  enum class Op : std::uint8_t { kEqual, kExists };
  std::string key;  // empty with kExists: every key
  Op op = Op::kEqual;
  std::string value;
  std::optional<TaintEffect> effect;  // absent: every effect
  friend auto operator<=>(const Toleration&, const Toleration&) = default;
};

bool tolerates(const Toleration& toleration, const Taint& taint);

enum class Health : std::uint8_t { kHealthy, kUnhealthy, kUnknown };

struct MigSlots {
  std::string resource;  // "nvidia.com/mig-1g.10gb"
  int count = 0;
  friend auto operator<=>(const MigSlots&, const MigSlots&) = default;
};

// One physical GPU. Positions are small numbers local to the node; -1 = not known.
struct GpuSpec {
  int index = 0;
  std::string uuid;
  std::string model;  // "NVIDIA-H100-80GB-HBM3", as the product label spells it
  std::int64_t memory_mib = 0;
  int numa = -1;
  int pcie_switch = -1;
  int nvlink_clique = -1;  // GPUs with the same number reach one another over NVLink
  Health health = Health::kHealthy;
  std::string health_reason;
  bool reserved = false;      // kept from new pods by an operator
  std::vector<MigSlots> mig;  // empty: not partitioned
  friend auto operator<=>(const GpuSpec&, const GpuSpec&) = default;
};

struct NicSpec {
  std::string name;
  int numa = -1;
  int pcie_switch = -1;
  friend auto operator<=>(const NicSpec&, const NicSpec&) = default;
};

// The kubelet's Topology Manager: what it would refuse at admission.
enum class NumaPolicy : std::uint8_t { kNone, kBestEffort, kRestricted, kSingleNumaNode };
enum class NumaScope : std::uint8_t { kContainer, kPod };

// What a GPU, or a share of one, is asked for by on a node. kBoth: nvidia.com/gpu, and where GPUs
// are shared nvidia.com/gpu.shared too.
enum class GpuNames : std::uint8_t { kBoth, kGpu, kShared };

struct NodeSpec {
  std::string name;
  Labels labels;
  std::vector<Taint> taints;
  bool unschedulable = false;  // cordoned
  bool ready = true;
  Amounts allocatable;        // cpu, memory, ephemeral-storage, pods, extended; not whole GPUs
  std::vector<GpuSpec> gpus;  // by index
  bool gpus_assumed = false;  // from labels and the product table, not from the node's agent
  int shares_per_gpu = 1;     // time-slicing/MPS replicas behind nvidia.com/gpu(.shared)
  GpuNames gpu_names = GpuNames::kBoth;
  std::vector<NicSpec> nics;
  NumaPolicy numa_policy = NumaPolicy::kNone;
  NumaScope numa_scope = NumaScope::kContainer;
  friend bool operator==(const NodeSpec&, const NodeSpec&) = default;
};

// ---- pods ----

// What a pod asks of GPUs. Exactly one way of asking; count devices, each to the same degree.
struct GpuDemandSpec {
  enum class Kind : std::uint8_t {
    kNone,
    kWhole,     // nvidia.com/gpu: count whole devices (count shares where the node shares its GPUs)
    kFraction,  // milli of each of count devices
    kMemory,    // memory_mib of each of count devices
    kShared,    // nvidia.com/gpu.shared: count shares, only on nodes that offer them by this name
    kMig,       // count slots of the resource mig
  };
  Kind kind = Kind::kNone;
  int count = 0;
  int milli = 0;
  std::int64_t memory_mib = 0;
  std::string mig;
  friend auto operator<=>(const GpuDemandSpec&, const GpuDemandSpec&) = default;
};

// Terms are ORed; the requirements of one term are ANDed. A term with nothing in it matches
// nothing.
struct NodeSelectorTerm {
  text::Selector labels;
  text::Selector fields;  // metadata.name only
  friend bool operator==(const NodeSelectorTerm&, const NodeSelectorTerm&) = default;
};

struct PreferredNodeTerm {
  int weight = 1;
  NodeSelectorTerm term;
  friend bool operator==(const PreferredNodeTerm&, const PreferredNodeTerm&) = default;
};

// Pods in these namespaces that the selector matches. The codec resolves the term's namespaces:
// the pod's own when it names none. all_namespaces: an empty namespaceSelector.
struct PodSet {
  std::vector<std::string> namespaces;  // sorted
  bool all_namespaces = false;
  text::Selector selector;
  bool match_nothing = false;  // a null labelSelector
  friend bool operator==(const PodSet&, const PodSet&) = default;
};

struct PodAffinityTerm {
  std::string topology_key;
  PodSet pods;
  int weight = 0;  // preferred terms only, 1..100
  friend bool operator==(const PodAffinityTerm&, const PodAffinityTerm&) = default;
};

struct SpreadConstraint {
  int max_skew = 1;
  std::string topology_key;
  bool hard = true;  // DoNotSchedule; false: ScheduleAnyway
  PodSet pods;       // matchLabelKeys are merged in by the codec
  int min_domains = 1;
  bool honor_affinity = true;  // nodeAffinityPolicy
  bool honor_taints = false;   // nodeTaintsPolicy
  friend bool operator==(const SpreadConstraint&, const SpreadConstraint&) = default;
};

struct HostPort {
  std::string protocol;  // TCP, UDP, SCTP
  std::string ip;        // "0.0.0.0": every address
  int port = 0;
  friend auto operator<=>(const HostPort&, const HostPort&) = default;
};

// Where a bound volume can be reached from; one per claim. Terms are ORed.
struct VolumeLimit {
  std::string claim;
  std::vector<NodeSelectorTerm> node_terms;  // empty: from everywhere
  friend bool operator==(const VolumeLimit&, const VolumeLimit&) = default;
};

struct PodSpec {
  std::string ns, name, uid;
  Labels labels;
  std::string owner;     // "ReplicaSet/web-6f": the controlling owner, or empty
  bool service = false;  // a replica of a long-running service (see Policy)

  Amounts requests;  // effective: init and sidecar rules and overhead applied; no GPUs
  GpuDemandSpec gpu;
  std::vector<int> gpus_by_container;   // of kWhole, in start order: for the kubelet's NUMA policy
  std::vector<std::string> gpu_models;  // any of these products; empty: any
  std::int64_t gpu_min_memory_mib = 0;

  std::string node_name;  // set: bound (running), else pending
  Labels node_selector;
  std::vector<NodeSelectorTerm> required_nodes;  // empty: no required node affinity
  std::vector<PreferredNodeTerm> preferred_nodes;
  std::vector<Toleration> tolerations;
  std::vector<PodAffinityTerm> affinity, anti_affinity;  // required
  std::vector<PodAffinityTerm> preferred_affinity, preferred_anti_affinity;
  std::vector<SpreadConstraint> spread;
  std::vector<HostPort> host_ports;
  std::vector<VolumeLimit> volumes;
  bool unread_claims = false;  // asks for devices by resource claims: the pod waits
  bool needs_queue = false;    // its namespace requires a queue and it is in none: the pod waits
  std::string volume_missing;  // a claim that does not exist or is not bound: the pod waits

  int priority = 0;
  std::string priority_class;
  bool preempts = true;        // preemptionPolicy != Never
  std::string gang, subgroup;  // gang: name of the group in ns, or empty
  std::string queue;
  bool gated = false;     // has scheduling gates
  bool queued = false;    // its workload decides when it starts
  bool stays = false;     // nobody's to evict: the API refuses it
  bool leftover = false;  // held by itself, and by no workload that has its owner
  std::string charged;    // of a bound pod: the queue that let it in ("kueue/cq"), or empty
  std::string let_in_by;  // the workload of its namespace that did, where its binding says
  std::int64_t created_ns = 0, started_ns = 0;
  std::vector<int> gpu_indices;  // of a bound pod, where known (berth.dev/gpus or the agent)
  bool terminating = false;
  friend bool operator==(const PodSpec&, const PodSpec&) = default;
};

// ---- groups, budgets ----

struct SubgroupSpec {
  std::string name;
  int min_member = 0;
  std::string required_topology, preferred_topology;  // node label keys, or empty
  friend bool operator==(const SubgroupSpec&, const SubgroupSpec&) = default;
};

struct GangSpec {
  std::string ns, name;
  int min_member = 1;
  std::vector<SubgroupSpec> subgroups;                // by name; a pod of none belongs to ""
  std::string required_topology, preferred_topology;  // node label keys, or empty
  std::optional<int> priority;
  std::string queue;
  std::int64_t created_ns = 0;
  friend bool operator==(const GangSpec&, const GangSpec&) = default;
};

struct BudgetSpec {  // PodDisruptionBudget
  std::string ns, name;
  text::Selector selector;
  bool match_nothing = false;
  int disruptions_allowed = 0;  // resolved by the codec from status, or from spec and the pods
  friend bool operator==(const BudgetSpec&, const BudgetSpec&) = default;
};

// Well-known label keys.
inline constexpr const char* kHostnameLabel = "kubernetes.io/hostname";
inline constexpr const char* kZoneLabel = "topology.kubernetes.io/zone";

}  // namespace berth::model
