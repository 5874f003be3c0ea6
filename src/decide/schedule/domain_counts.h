// How many pods a counter counts in each domain of a topology key, kept up to date by page stamps.
//
// For a spread constraint only pods on eligible nodes count; for affinity all nodes with the key
// do. Syncing reads only the pages that changed since the last call, whichever copy of the state it
// was.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "model/cluster_state.h"

namespace berth::schedule {

class DomainCounts {
 public:
  // eligible: null for every node with the key.
  DomainCounts(const model::ClusterState& state, const model::Counter& counter, int key,
               const model::NodeSet* eligible);

  void sync(const model::ClusterState& state);
  const std::vector<std::int32_t>& sums() const { return sums_; }    // by domain
  const std::vector<std::int32_t>& nodes() const { return nodes_; }  // eligible nodes, by domain
  std::int64_t total() const { return total_; }

 private:
  const model::Counter counter_;
  int key_;
  std::vector<std::int32_t> domain_;  // by slot; -1: not eligible or without the key
  std::vector<std::uint32_t> seen_;   // by slot
  std::vector<std::uint64_t> stamps_;
  std::vector<std::int32_t> sums_, nodes_;
  std::int64_t total_ = 0;
};

class DomainCountsMemo {
 public:
  // Forgets entries of another inventory, and all of them when there are too many. References that
  // get() and find() gave are valid until then.
  void trim(const model::ClusterState& state);

  // eligible_id: names the set (0 for none), so that equal sets share an entry.
  const DomainCounts& get(const model::ClusterState& state, const model::Counter& counter, int key,
                          const model::NodeSet* eligible, std::uint64_t eligible_id);

  // A number for what an eligible set is made of: equal ones have the same, no others do.
  std::uint64_t id_of(const std::vector<std::uint64_t>& made_of);

  // The entry of that name, up to date; null when get() has not made it yet.
  const DomainCounts* find(const model::ClusterState& state, const model::Counter& counter, int key,
                           std::uint64_t eligible_id);

  // An entry costs some bytes for each node.
  static constexpr std::size_t kMinEntries = 256, kMaxEntries = 4096, kMaxSlots = 1 << 23;

 private:
  struct Key {
    std::uint64_t counter, eligible;
    int key;
    friend bool operator==(const Key&, const Key&) = default;
    friend std::size_t hash_value(const Key& k) {
      return (k.counter * 0x9E3779B97F4A7C15u) ^ (k.eligible * 0xC2B2AE3D27D4EB4Fu) ^
             static_cast<std::size_t>(k.key);
    }
  };
  std::uint64_t inventory_version_ = 0;
  std::uint64_t last_id_ = 0;  // 0: every node
  std::map<std::vector<std::uint64_t>, std::uint64_t> ids_;
  boost::unordered_flat_map<Key, std::unique_ptr<DomainCounts>> entries_;
};

}  // namespace berth::schedule
