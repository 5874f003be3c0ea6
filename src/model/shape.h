// Equal pods are one Shape: everything about a pod that decides where it can go.
//
// ShapeBook interns specs into shapes, and what shapes share into parts of their own: Demand (what
// is taken from a node), NodeRules (which nodes by their fixed facts), Counter (a question about
// running pods whose answer per node the state keeps). Each part has a serial that is never reused,
// so that a cache keyed by it can be stale but never wrong. Interned values are immutable and
// shared; the book itself belongs to the loop that owns the builder.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/interner.h"
#include "base/shared_map.h"
#include "model/spec.h"

namespace berth::model {

// The name under which slots on unhealthy or reserved devices are counted.
inline std::string mig_unusable(std::string_view resource) {
  return std::string(resource) + " (unusable)";
}

struct Demand {
  std::uint64_t serial = 0;
  std::int64_t cpu = 0, memory = 0, ephemeral = 0;
  std::vector<std::pair<SymbolId, std::int64_t>> extended;  // without GPUs and MIG slots; > 0
  GpuDemandSpec::Kind kind = GpuDemandSpec::Kind::kNone;
  int count = 0;
  int milli = 0;                       // kFraction
  std::int64_t memory_mib = 0;         // kMemory
  SymbolId mig = 0, mig_unusable = 0;  // kMig: the resource, and its slots on devices out of use
  std::vector<int> gpus_by_container;

  // What the packing score looks at: no memory, ephemeral storage or extended resources, and cpu
  // and milli rounded, so that demands that differ little share scores. In a core, cpu and milli
  // are the least that round to it (what they do not fit, no demand of the core fits), and these
  // the rounded:
  std::int64_t score_cpu = 0;
  int score_milli = 0;
  std::shared_ptr<const Demand> core;  // null in a core itself

  bool asks_gpu() const { return kind != GpuDemandSpec::Kind::kNone; }
};

// The part of a pod's constraints that only a node's fixed facts answer.
struct NodeRules {
  std::uint64_t serial = 0;
  Labels node_selector;
  std::vector<NodeSelectorTerm> required_nodes;
  std::vector<PreferredNodeTerm> preferred_nodes;
  std::vector<Toleration> tolerations;
  std::vector<VolumeLimit> volumes;
  std::vector<std::string> gpu_models;
  std::int64_t gpu_memory_mib = 0;  // the least memory per device
  bool asks_gpu = false;
};

// "How many running pods on this node ...": match a set, belong to an owner, or carry a required
// anti-affinity term (which then bars pods that match it).
struct Counter {
  enum class Kind : std::uint8_t { kSet, kOwner, kBars };
  Kind kind = Kind::kSet;
  PodSet pods;          // kSet, kBars
  std::string owner;    // kOwner: "ns/Kind/name"
  int key = -1;         // kBars: topology key, index into ShapeBook::topology_keys()
  bool living = false;  // terminating pods are not counted (topology spread)
  std::uint64_t serial = 0;
  std::uint32_t index = 0;  // in ClusterState's counts; reused when no shape needs it any more
};
using CounterRef = std::shared_ptr<const Counter>;

struct TopologyTerm {
  CounterRef counter;
  int key = -1;
  int weight = 0;     // preferred terms
  bool self = false;  // the pod itself is one of the pods counted
};

struct SpreadTerm {
  CounterRef counter;
  int key = -1;
  int max_skew = 1;
  int min_domains = 1;
  bool self = false;
  bool honor_affinity = true, honor_taints = false;
};

struct Shape {
  std::uint64_t serial = 0;
  std::uint32_t index = 0;  // dense, reused after the last pod of the shape is gone
  std::shared_ptr<const Demand> demand;
  std::shared_ptr<const NodeRules> rules;
  std::string ns;
  Labels labels;
  std::vector<TopologyTerm> affinity, anti_affinity, preferred_affinity, preferred_anti_affinity;
  std::vector<CounterRef> bars;  // one per required anti-affinity term
  std::vector<SpreadTerm> hard_spread, soft_spread;
  std::string owner;     // "ns/Kind/name", or empty
  bool service = false;  // one of the replicas of a long-running workload
  CounterRef replicas;   // its owner's pods, where they are kept apart; null otherwise
  int apart_over = -1;   // topology key that they keep apart over first; -1: nodes alone
  std::vector<HostPort> host_ports;
  std::string queue, priority_class;  // what policies choose by
  bool terminating = false;
  bool quiet = false;  // its rules about other pods are left out (rule_ledger.h)
  std::string key;     // the canonical bytes it was interned under

  bool depends_on_pods() const {
    return !affinity.empty() || !anti_affinity.empty() || !preferred_affinity.empty() ||
           !preferred_anti_affinity.empty() || !hard_spread.empty() || !soft_spread.empty() ||
           !host_ports.empty();
  }
};
using OwnedShape = std::shared_ptr<const Shape>;
using ShapeRef = const Shape*;  // alive as long as a pod has it

// The counters of its rules, one for each rule: some may come twice.
template <class F>
void for_each_counter(const Shape& shape, F&& f) {
  for (const auto* terms : {&shape.affinity, &shape.anti_affinity, &shape.preferred_affinity,
                            &shape.preferred_anti_affinity}) {
    for (const TopologyTerm& term : *terms) f(*term.counter);
  }
  for (const auto* terms : {&shape.hard_spread, &shape.soft_spread}) {
    for (const SpreadTerm& term : *terms) f(*term.counter);
  }
  for (const CounterRef& bar : shape.bars) f(*bar);
  if (shape.replicas) f(*shape.replicas);
}

bool matches(const PodSet& set, const std::string& ns, const Labels& labels);
bool counts(const Counter& counter, const Shape& shape);  // a running pod of the shape is counted

class ShapeBook {
 public:
  // Which workloads a policy keeps apart, over which label of nodes first; by default services,
  // over none.
  struct Apart {
    std::string over;
  };
  using KeepsApart = std::function<std::optional<Apart>(const Shape&)>;
  ShapeBook() : ShapeBook(services_apart) {}
  explicit ShapeBook(KeepsApart keeps_apart) : keeps_apart_(std::move(keeps_apart)) {}

  // What interning met for the first time; the builder acts on it.
  struct News {
    OwnedShape shape;
    bool new_shape = false;
    std::vector<CounterRef> counters;
    bool new_keys = false;  // label or topology keys that no shape used before
  };
  // quiet: without its rules about other pods.
  News intern(const PodSpec& pod, bool quiet = false);
  // The last pod of it is gone. Counters that no shape needs any more; their indices will be used
  // again.
  std::vector<CounterRef> release(const Shape& shape);

  // Its index. A key that no node has makes no domains: only one that a node has, or that must be
  // known by name (gangs), makes keys_version() grow.
  int topology_key(const std::string& label, bool by_name = false);
  const std::vector<std::string>& topology_keys() const { return topology_keys_; }
  const std::set<std::string, std::less<>>& label_keys() const { return label_keys_; }
  std::uint64_t keys_version() const { return keys_version_; }
  Interner& strings() { return *strings_; }
  std::shared_ptr<const Interner> shared_strings() const { return strings_; }
  const std::vector<std::weak_ptr<const Shape>>& shapes() const { return shapes_; }
  std::size_t counters() const { return counters_.size(); }  // indices in use, or free again
  // Keys and names of pods that are gone stay; whoever keeps a book for long starts over when there
  // are many.
  std::size_t words() const {
    return strings_->size() + topology_keys_.size() + label_keys_.size();
  }
  std::size_t live_shapes() const { return shapes_.size() - free_indices_.size(); }

 private:
  struct KeyHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const {
      return std::hash<std::string_view>{}(key);
    }
  };
  template <class T>
  using Table =
      boost::unordered_flat_map<std::string, std::weak_ptr<const T>, KeyHash, std::equal_to<>>;

  static std::optional<Apart> services_apart(const Shape& shape) {
    return shape.service ? std::optional(Apart()) : std::nullopt;
  }
  std::shared_ptr<const Demand> intern_demand(const PodSpec& pod, bool core = false);
  std::shared_ptr<const NodeRules> intern_rules(const PodSpec& pod);
  CounterRef intern_counter(Counter counter, News& news);
  void add_terms(const PodSpec& pod, Shape& shape, News& news);
  TopologyTerm term(const PodAffinityTerm& spec, const PodSpec& pod, News& news);
  void use_label(const std::string& key);
  void use_labels(const text::Selector& selector);

  std::shared_ptr<Interner> strings_ = std::make_shared<Interner>();
  std::vector<std::string> topology_keys_;
  boost::unordered_flat_map<std::string, int> topology_key_ids_;
  std::set<std::string, std::less<>> label_keys_;
  std::uint64_t keys_version_ = 0;
  // Common to copies: caches by serial serve all of them.
  std::shared_ptr<std::uint64_t> serial_ = std::make_shared<std::uint64_t>(0);
  KeepsApart keeps_apart_;
  std::string scratch_;                           // the key being looked up
  SharedMap<std::weak_ptr<const Shape>> by_key_;  // keys are long, and one a workload or more
  Table<Demand> demands_;
  Table<NodeRules> rules_;
  struct KeptCounter {
    CounterRef counter;       // null: the index is free
    std::uint64_t rules = 0;  // of shapes that are there, that need it
  };
  boost::unordered_flat_map<std::string, std::uint32_t, KeyHash, std::equal_to<>> counter_keys_;
  std::vector<std::weak_ptr<const Shape>> shapes_;
  std::vector<std::uint32_t> free_indices_;
  std::vector<KeptCounter> counters_;
  std::vector<std::uint32_t> free_counters_;
};

}  // namespace berth::model
