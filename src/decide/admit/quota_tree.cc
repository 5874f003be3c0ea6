#include "decide/admit/quota_tree.h"

#include <limits>

#include "base/check.h"

namespace berth::admit {

double Share::value() const {
  if (weight > 0) return ratio / weight;
  return ratio > 0 ? std::numeric_limits<double>::infinity() : 0;
}

bool operator<(const Share& a, const Share& b) {
  double left = a.value(), right = b.value();
  bool both_infinite = left == right && left == std::numeric_limits<double>::infinity();
  return both_infinite ? a.ratio < b.ratio : left < right;
}

QuotaTree::QuotaTree(std::vector<std::uint32_t> resource_of)
    : resource_of_(std::move(resource_of)) {
  for (auto resource : resource_of_) resources_ = std::max(resources_, resource + 1);
}

NodeId QuotaTree::add_node(NodeId parent, bool queue, double weight) {
  BERTH_ASSERT(parent == kNoParent || (parent < nodes_.size() && !nodes_[parent].queue),
               "a parent is a cohort that was added before");
  auto id = static_cast<NodeId>(nodes_.size());
  nodes_.push_back({.parent = parent, .queue = queue, .weight = weight});
  table_.resize(nodes_.size() * resource_of_.size());
  return id;
}

void QuotaTree::set_quota(NodeId node, CellId cell, const Quota& quota) {
  at(node, cell).quota = quota;
}

// Children have higher numbers than their parents, so one pass from the end sees them first.
void QuotaTree::seal() {
  for (auto& cell : table_) cell.subtree = cell.quota.nominal;
  for (auto n = static_cast<NodeId>(nodes_.size()); n-- > 0;) {
    Node& node = nodes_[n];
    if (node.parent == kNoParent) continue;
    nodes_[node.parent].height = std::max(nodes_[node.parent].height, node.height + 1);
    for (CellId c = 0; c < cells(); ++c) at(node.parent, c).subtree += subtree(n, c) - kept(n, c);
  }
}

Amount QuotaTree::kept(NodeId n, CellId c) const {
  const Cell& cell = at(n, c);
  if (!cell.quota.lending_limit) return 0;
  return std::max(Amount(0), cell.subtree - *cell.quota.lending_limit);
}

Amount QuotaTree::kept_free(NodeId n, CellId c) const {
  return std::max(Amount(0), kept(n, c) - usage(n, c));
}

void QuotaTree::add(NodeId n, CellId c, Amount amount) {
  for (; amount > Amount(0); n = nodes_[n].parent) {
    Amount own = kept_free(n, c);
    at(n, c).usage += amount;
    if (!has_parent(n) || amount <= own) return;
    amount -= own;
  }
}

void QuotaTree::take(NodeId n, CellId c, Amount amount) {
  for (; amount > Amount(0); n = nodes_[n].parent) {
    Amount lent = usage(n, c) - kept(n, c);  // of the usage, what the parent counts
    at(n, c).usage -= amount;
    if (!has_parent(n) || lent <= Amount(0)) return;
    amount = std::min(amount, lent);
  }
}

Amount QuotaTree::room(NodeId n, CellId c) const {
  const Cell& cell = at(n, c);
  if (!has_parent(n)) return cell.subtree - cell.usage;
  Amount above = room(nodes_[n].parent, c);
  if (cell.quota.borrowing_limit) {
    Amount own = kept(n, c);
    Amount lent = std::max(Amount(0), cell.usage - own);
    above = std::min(above, cell.subtree - own - lent + *cell.quota.borrowing_limit);
  }
  return kept_free(n, c) + above;
}

Amount QuotaTree::available(NodeId queue, CellId cell) const {
  return std::max(Amount(0), room(queue, cell));
}

Amount QuotaTree::potential(NodeId n, CellId c) const {
  const Cell& cell = at(n, c);
  if (!has_parent(n)) return cell.subtree;
  Amount most = kept(n, c) + potential(nodes_[n].parent, c);
  if (!cell.quota.borrowing_limit) return most;
  return std::min(most, cell.subtree + *cell.quota.borrowing_limit);
}

bool QuotaTree::borrows(NodeId n, CellId c, Amount more) const {
  const Cell& cell = at(n, c);
  return (nodes_[n].queue ? cell.quota.nominal : cell.subtree) < cell.usage + more;
}

bool QuotaTree::borrows_any(NodeId n) const {
  for (CellId c = 0; c < cells(); ++c) {
    if (borrows(n, c)) return true;
  }
  return false;
}

Reach QuotaTree::reach(NodeId queue, CellId cell, Amount amount) const {
  if (!borrows(queue, cell, amount) || !has_parent(queue)) return {};
  Amount left = amount - kept_free(queue, cell);
  NodeId n = nodes_[queue].parent;
  for (;; n = nodes_[n].parent) {
    if (!has_parent(n) || !borrows(n, cell, left)) break;
    left -= kept_free(n, cell);
  }
  return {.level = nodes_[n].height, .inside = has_parent(n)};
}

Share QuotaTree::share(NodeId n, std::span<const Use> more) const {
  Share out{.weight = nodes_[n].weight};
  if (!has_parent(n)) return out;
  std::vector<double> borrowed(resources_), lendable(resources_);
  std::vector<bool> endless(resources_);
  for (CellId c = 0; c < cells(); ++c) {
    Amount used = usage(n, c);
    for (const Use& use : more) {
      if (use.cell == c) used += use.amount;
    }
    auto r = resource_of_[c];
    borrowed[r] += static_cast<double>(std::max(Amount(0), used - subtree(n, c)).value());
    const Amount most = potential(nodes_[n].parent, c);
    endless[r] = endless[r] || most.is_unlimited();
    lendable[r] += static_cast<double>(most.value());
  }
  for (std::uint32_t r = 0; r < resources_; ++r) {
    if (lendable[r] <= 0 || endless[r]) continue;  // of what has no end any part is nothing
    double ratio = borrowed[r] * 1000 / lendable[r];
    if (ratio > out.ratio) {
      out.ratio = ratio;
      out.resource = r;
    }
  }
  return out;
}

}  // namespace berth::admit
