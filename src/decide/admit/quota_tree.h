// What queues may use: their own quota, what cohorts share, what may be borrowed and lent.
//
// A forest: cohorts inside, queues as leaves. Each node has for each cell (a flavor's amount of a
// resource) a nominal quota and perhaps a borrowing and a lending limit. What a node does not lend
// is its own ("kept"); the rest is its parent's to hand out. Usage beyond what is kept counts in
// the parent, and so on up, so at every node
//
//   subtree = nominal + sum over children of (subtree - kept)
//   usage   = sum over children of max(0, usage - kept)            (of a cohort)
//
// add() and take() keep this in O(depth) and are exact inverses in any order. Nothing is refused
// here: quotas may shrink below what is used, then available() is 0.
// Not thread-safe: belongs to the decision loop.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decide/admit/amount.h"

namespace berth::admit {

using CellId = std::uint32_t;  // (flavor, resource), numbered by the caller
using NodeId = std::uint32_t;  // queue or cohort
inline constexpr NodeId kNoParent = UINT32_MAX;

struct Quota {
  Amount nominal;
  std::optional<Amount> borrowing_limit, lending_limit;
};

struct Use {
  CellId cell = 0;
  Amount amount;
};

// How far up a request has to reach: 0 inside the queue's own quota, else the height of the lowest
// cohort with room for it.
struct Reach {
  int level = 0;
  bool inside = false;  // that cohort is not the whole tree
};

// The dominant share of what a node borrows: the largest part of what its parent could lend, over
// the resources, in thousandths. Weight 0 makes any borrowing infinite.
struct Share {
  double ratio = 0;
  double weight = 1;
  std::uint32_t resource = 0;  // the dominant one
  double value() const;        // ratio / weight
  friend bool operator<(const Share& a, const Share& b);
};

class QuotaTree {
 public:
  // resource_of: by cell, for shares; resources are numbered in byte order of their names.
  explicit QuotaTree(std::vector<std::uint32_t> resource_of);

  // A parent comes before its children.
  NodeId add_node(NodeId parent, bool queue, double weight = 1);
  void set_quota(NodeId node, CellId cell, const Quota& quota);
  void seal();  // all nodes and quotas are there; nothing is used yet

  void add(NodeId queue, CellId cell, Amount amount);
  void take(NodeId queue, CellId cell, Amount amount);

  Amount nominal(NodeId n, CellId c) const { return at(n, c).quota.nominal; }
  const std::optional<Amount>& borrowing_limit(NodeId n, CellId c) const {
    return at(n, c).quota.borrowing_limit;
  }
  Amount subtree(NodeId n, CellId c) const { return at(n, c).subtree; }
  Amount usage(NodeId n, CellId c) const { return at(n, c).usage; }
  Amount kept(NodeId n, CellId c) const;
  Amount available(NodeId queue, CellId cell) const;  // not below 0
  Amount potential(NodeId n, CellId c) const;         // the most it could ever use, usage aside
  bool borrows(NodeId n, CellId c, Amount more = 0) const;
  bool borrows_any(NodeId n) const;
  bool has_parent(NodeId n) const { return nodes_[n].parent != kNoParent; }
  NodeId parent(NodeId n) const { return nodes_[n].parent; }
  std::size_t size() const { return nodes_.size(); }
  std::size_t cells() const { return resource_of_.size(); }

  Reach reach(NodeId queue, CellId cell, Amount amount) const;
  Share share(NodeId n, std::span<const Use> more = {}) const;

 private:
  struct Node {
    NodeId parent = kNoParent;
    bool queue = false;
    int height = 0;  // to the farthest queue below
    double weight = 1;
  };
  struct Cell {
    Quota quota;
    Amount subtree, usage;
  };

  const Cell& at(NodeId n, CellId c) const { return table_[n * resource_of_.size() + c]; }
  Cell& at(NodeId n, CellId c) { return table_[n * resource_of_.size() + c]; }
  Amount kept_free(NodeId n, CellId c) const;
  Amount room(NodeId n, CellId c) const;  // may be below 0

  std::vector<std::uint32_t> resource_of_;
  std::uint32_t resources_ = 0;
  std::vector<Node> nodes_;
  std::vector<Cell> table_;  // nodes x cells
};

}  // namespace berth::admit
