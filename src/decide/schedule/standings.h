// Where each node stands, as far as scores can tell: nodes alike in kind and room are one standing.
//
// Kept up to date from the state's journal: a change costs one look at the node, whatever the
// number of demands that are scored on it later. Standings are numbered as they are met; when there
// are too many the numbering starts again, which round() tells. One per Scorer.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "decide/schedule/worth.h"
#include "model/cluster_state.h"

namespace berth::schedule {

class Standings {
 public:
  struct Node {
    std::int32_t cpu = -1;            // free, not below 0; -1: no room for one more pod
    std::uint32_t standing : 31 = 0;  // its number
    std::uint32_t beyond : 1 = 0;     // whether a demand fits takes more than this tells
  };

  // Nodes of another inventory: class_of by slot. Nothing is known of the state yet.
  void reset(const model::Inventory& inventory, const std::vector<std::uint16_t>& class_of);
  void sync(const model::ClusterState& state);

  const Node& node(std::size_t slot) const { return nodes_[slot]; }
  const Room& room(std::uint32_t standing) const { return rooms_[standing]; }
  std::size_t size() const { return rooms_.size(); }
  std::uint64_t round() const { return round_; }

 private:
  static constexpr std::size_t kMost = 16'384;

  struct Key {
    Room room;
    std::uint32_t kind = 0;
    friend bool operator==(const Key&, const Key&) = default;
    friend std::size_t hash_value(const Key& key) {
      return static_cast<std::size_t>(hash_of(key.room) ^ (key.kind * 0x9E3779B97F4A7C15ULL));
    }
  };

  void look(const model::ClusterState& state, std::size_t slot);
  void look_at_all(const model::ClusterState& state);

  std::vector<std::uint32_t> kind_of_;  // by slot: class, and what of a device a demand takes
  std::vector<Node> nodes_;             // by slot
  std::vector<Room> rooms_;             // by standing
  boost::unordered_flat_map<Key, std::uint32_t> numbers_;
  std::uint64_t round_ = 1;
  bool known_ = false;
  model::Journal::Mark seen_;
  std::vector<std::uint32_t> changed_;
};

}  // namespace berth::schedule
