// The fixed facts of all nodes, by slot. Slots are ranks in name order, so that a state built step
// by step equals one built at once, and ties break the same way.
//
// Nodes are grouped into classes: equal in taints, cordon, readiness, GPU model and memory, and in
// the labels that some selector uses and that few values share. A rule is then evaluated once per
// class. Immutable and shared; made anew (O(nodes)) when a Node object changes or a rule names a
// new key.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/node.h"
#include "model/node_set.h"
#include "model/shape.h"

namespace berth::model {

using NodeInfoRef = std::shared_ptr<const NodeInfo>;

// The values of one topology key. Domains are numbered in the byte order of their values.
struct Domains {
  std::vector<std::int32_t> of;                   // by slot; -1: the node lacks the key
  std::vector<std::string_view> values;           // by domain
  std::vector<std::vector<std::uint32_t>> slots;  // by domain, ascending
  NodeSet with_key;
  std::vector<NodeSet> sets;  // by domain; only when there are at most kMaxSets
  static constexpr std::size_t kMaxSets = 128;
};

class Inventory {
 public:
  // nodes: sorted by name, no name twice. before: one of the same family, for what it has worked
  // out of nodes that are in both; it changes nothing but time.
  Inventory(std::vector<NodeInfoRef> nodes, const ShapeBook& book, std::uint64_t version,
            const Inventory* before = nullptr);

  std::size_t size() const { return nodes_.size(); }
  const NodeInfo& node(std::size_t slot) const { return *nodes_[slot]; }
  const std::vector<NodeInfoRef>& nodes() const { return nodes_; }
  std::optional<std::uint32_t> slot(std::string_view name) const;
  std::uint64_t version() const { return version_; }
  std::uint64_t keys_version() const { return keys_version_; }
  const Domains& domains(int key) const {
    const auto at = static_cast<std::size_t>(key);
    return at < domains_.size() ? *domains_[at] : *without_;
  }
  int topology_key(std::string_view label) const;  // -1: no rule named it when this was made
  const Interner& strings() const { return *strings_; }

  std::size_t classes() const { return class_nodes_.size(); }
  std::uint32_t class_of(std::size_t slot) const { return class_of_[slot]; }
  const NodeSet& class_nodes(std::size_t c) const { return class_nodes_[c]; }
  std::uint32_t class_first(std::size_t c) const { return class_first_[c]; }
  bool in_class(std::string_view label) const;  // the label's value is the same all over a class

  std::optional<std::string_view> label(const NodeInfo& node, std::string_view key) const;

 private:
  void build_domains(const ShapeBook& book);
  void find_class_keys(const ShapeBook& book);
  void build_classes(const Inventory* before);
  std::string class_key(const NodeInfo& node) const;

  std::vector<NodeInfoRef> nodes_;
  boost::unordered_flat_map<std::string_view, std::uint32_t, std::hash<std::string_view>> by_name_;
  std::vector<std::shared_ptr<const Domains>> domains_;
  std::shared_ptr<const Domains> without_;  // of a key that no node has
  boost::unordered_flat_map<std::string, int> topology_keys_;
  std::vector<std::uint32_t> class_of_, class_first_;
  std::vector<NodeSet> class_nodes_;
  std::vector<SymbolId> class_keys_;
  std::shared_ptr<const Interner> strings_;
  std::uint64_t version_, keys_version_;
};

// Interns a spec; extended resources beyond kMaxExtended (by name) are left out.
NodeInfo make_node_info(const NodeSpec& spec, Interner& strings);

}  // namespace berth::model
