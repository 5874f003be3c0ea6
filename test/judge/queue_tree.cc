#include "judge/queue_tree.h"

#include <algorithm>
#include <limits>

namespace berth::judging::quota {

std::int64_t plus(std::int64_t a, std::int64_t b) {
  if (a == kUnlimited || b == kUnlimited) return kUnlimited;
  if (a == kLess || b == kLess) return kLess;
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return a > 0 ? kUnlimited : kLess;
  return sum;
}

std::int64_t minus(std::int64_t a, std::int64_t b) {
  if (a == kUnlimited) return b == kUnlimited ? 0 : kUnlimited;
  if (b == kUnlimited || a == kLess) return kLess;
  if (b == kLess) return kUnlimited;
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(a, b, &difference)) return a > 0 ? kUnlimited : kLess;
  return difference;
}

// ---- the tree ----

QuotaTree::QuotaTree(const model::QueueInputs& inputs) {
  for (const model::CohortSpec& cohort : inputs.cohorts) {
    NodeName node = cohort_node(cohort.name);
    nodes_[node].weight = cohort.weight;
    add_quotas(node, cohort.groups);
    if (!cohort.parent.empty()) nodes_[node].parent = cohort_node(cohort.parent);
  }
  for (const model::QueueSpec& queue : inputs.queues) {
    NodeName node = queue_node(queue.name);
    nodes_[node].weight = queue.weight;
    add_quotas(node, queue.groups);
    if (!queue.cohort.empty()) nodes_[node].parent = cohort_node(queue.cohort);
  }
  std::map<NodeName, TreeNode> given = nodes_;
  for (const auto& [name, node] : given) {  // in name order, so children are too
    if (node.parent) nodes_[*node.parent].children.push_back(name);
  }
}

void QuotaTree::add_quotas(const NodeName& node, const std::vector<model::ResourceGroup>& groups) {
  for (const model::ResourceGroup& group : groups) {
    for (const model::FlavorQuota& flavor : group.flavors) {
      for (const model::ResourceQuota& quota : flavor.resources) {
        FlavorResource fr{flavor.flavor, quota.resource};
        nodes_[node].quotas[fr] = {quota.nominal, quota.borrowing_limit, quota.lending_limit};
        known_.insert(fr);
      }
    }
  }
}

bool QuotaTree::cyclic(const NodeName& node) const {
  std::set<NodeName> seen;
  std::optional<NodeName> at = node;
  while (at) {
    if (!seen.insert(*at).second) return true;
    at = nodes_.at(*at).parent;
  }
  return false;
}

std::vector<NodeName> QuotaTree::ancestors(const NodeName& node) const {
  std::vector<NodeName> path;
  if (cyclic(node)) return path;
  for (auto at = nodes_.at(node).parent; at; at = nodes_.at(*at).parent) path.push_back(*at);
  return path;
}

NodeName QuotaTree::root(const NodeName& node) const {
  std::vector<NodeName> path = ancestors(node);
  return path.empty() ? node : path.back();
}

int QuotaTree::height(const NodeName& node) const {
  int height = 0;
  for (const NodeName& child : nodes_.at(node).children) {
    height = std::max(height, this->height(child) + 1);
  }
  return height;
}

std::vector<NodeName> QuotaTree::queues_below(const NodeName& node) const {
  if (!node.cohort) return {node};
  std::vector<NodeName> queues;
  for (const NodeName& child : nodes_.at(node).children) {
    for (NodeName& queue : queues_below(child)) queues.push_back(std::move(queue));
  }
  return queues;
}

Quota QuotaTree::quota(const NodeName& node, const FlavorResource& fr) const {
  const auto& quotas = nodes_.at(node).quotas;
  auto found = quotas.find(fr);
  return found == quotas.end() ? Quota{} : found->second;
}

// ---- who holds what ----

void QuotaState::put(Holding holding) {
  std::string name = holding.workload;
  holders_[name] = std::move(holding);
  count();
}

void QuotaState::remove(const std::string& workload) {
  holders_.erase(workload);
  count();
}

void QuotaState::remove(const std::set<std::string>& workloads) {
  for (const std::string& workload : workloads) holders_.erase(workload);
  count();
}

void QuotaState::reserve(const std::string& queue, const Usage& usage) {
  for (const auto& [fr, amount] : usage) {
    reserved_[queue][fr] = plus(reserved_[queue][fr], amount);
  }
  count();
}

void QuotaState::release(const std::string& queue, const Usage& usage) {
  for (const auto& [fr, amount] : usage) {
    reserved_[queue][fr] = minus(reserved_[queue][fr], amount);
  }
  count();
}

void QuotaState::count() {
  used_.clear();
  for (const auto& [name, holding] : holders_) {
    for (const auto& [fr, amount] : holding.usage) {
      std::int64_t& used = used_[holding.queue][fr];
      used = plus(used, amount);
    }
  }
  for (const auto& [queue, usage] : reserved_) {
    for (const auto& [fr, amount] : usage) used_[queue][fr] = plus(used_[queue][fr], amount);
  }
}

FlavorResources QuotaState::named() const {
  FlavorResources all = tree_->known();
  for (const auto& [queue, usage] : used_) {
    for (const auto& [fr, amount] : usage) all.insert(fr);
  }
  return all;
}

std::int64_t QuotaState::subtree(const NodeName& node, const FlavorResource& fr) const {
  std::int64_t sum = tree_->quota(node, fr).nominal;
  for (const NodeName& child : tree_->at(node).children) {
    sum = plus(sum, minus(subtree(child, fr), local(child, fr)));
  }
  return sum;
}

std::int64_t QuotaState::local(const NodeName& node, const FlavorResource& fr) const {
  auto limit = tree_->quota(node, fr).lending_limit;
  return limit ? std::max<std::int64_t>(0, minus(subtree(node, fr), *limit)) : 0;
}

std::int64_t QuotaState::used(const NodeName& node, const FlavorResource& fr) const {
  if (!node.cohort) {
    auto queue = used_.find(node.name);
    if (queue == used_.end()) return 0;
    auto found = queue->second.find(fr);
    return found == queue->second.end() ? 0 : found->second;
  }
  std::int64_t sum = 0;
  for (const NodeName& child : tree_->at(node).children) {
    sum = plus(sum, std::max<std::int64_t>(0, minus(used(child, fr), local(child, fr))));
  }
  return sum;
}

std::int64_t QuotaState::local_free(const NodeName& node, const FlavorResource& fr) const {
  return std::max<std::int64_t>(0, minus(local(node, fr), used(node, fr)));
}

std::int64_t QuotaState::avail(const NodeName& node, const FlavorResource& fr) const {
  const auto& parent = tree_->at(node).parent;
  if (!parent) return minus(subtree(node, fr), used(node, fr));
  std::int64_t above = avail(*parent, fr);
  if (auto limit = tree_->quota(node, fr).borrowing_limit) {
    std::int64_t lent = minus(subtree(node, fr), local(node, fr));
    std::int64_t taken = std::max<std::int64_t>(0, minus(used(node, fr), local(node, fr)));
    above = std::min(above, plus(minus(lent, taken), *limit));
  }
  return plus(local_free(node, fr), above);
}

std::int64_t QuotaState::available(const NodeName& node, const FlavorResource& fr) const {
  return std::max<std::int64_t>(0, avail(node, fr));
}

std::int64_t QuotaState::potential(const NodeName& node, const FlavorResource& fr) const {
  const auto& parent = tree_->at(node).parent;
  if (!parent) return subtree(node, fr);
  std::int64_t all = plus(local(node, fr), potential(*parent, fr));
  if (auto limit = tree_->quota(node, fr).borrowing_limit) {
    all = std::min(all, plus(subtree(node, fr), *limit));
  }
  return all;
}

bool QuotaState::borrowing(const NodeName& node, const FlavorResource& fr,
                           std::int64_t more) const {
  return subtree(node, fr) < plus(used(node, fr), more);  // S of a queue is its N
}

bool QuotaState::within(const NodeName& node, const FlavorResources& frs) const {
  return std::none_of(frs.begin(), frs.end(),
                      [&](const FlavorResource& fr) { return borrowing(node, fr, 0); });
}

bool QuotaState::fits(const std::string& queue, const Usage& request, bool borrow) const {
  NodeName node = queue_node(queue);
  return std::all_of(request.begin(), request.end(), [&](const auto& wanted) {
    if (!borrow && borrowing(node, wanted.first, wanted.second)) return false;
    return wanted.second <= available(node, wanted.first);
  });
}

QuotaState::Level QuotaState::borrowing_level(const std::string& queue, const FlavorResource& fr,
                                              std::int64_t value) const {
  NodeName node = queue_node(queue);
  std::vector<NodeName> above = tree_->ancestors(node);
  if (above.empty()) return {0, false};
  if (!borrowing(node, fr, value)) return {0, true};
  std::int64_t remaining = minus(value, local_free(node, fr));
  for (const NodeName& ancestor : above) {
    if (!borrowing(ancestor, fr, remaining)) {
      return {tree_->height(ancestor), tree_->at(ancestor).parent.has_value()};
    }
    remaining = minus(remaining, local_free(ancestor, fr));
  }
  return {tree_->height(above.back()), false};
}

// ---- shares ----

double Share::value() const {
  if (infinite()) return std::numeric_limits<double>::infinity();
  return ratio > 0 ? ratio / weight : 0;
}

int Share::compare(const Share& other) const {
  double left = value(), right = other.value();
  if (infinite() && other.infinite()) {
    left = ratio;
    right = other.ratio;
  }
  return left < right ? -1 : left > right ? 1 : 0;
}

Share QuotaState::share(const NodeName& node) const {
  Share share{.ratio = 0, .weight = tree_->at(node).weight};
  const auto& parent = tree_->at(node).parent;
  if (!parent) return share;
  std::map<std::string, std::int64_t> borrowed, lendable;
  for (const FlavorResource& fr : named()) {
    std::int64_t over = std::max<std::int64_t>(0, minus(used(node, fr), subtree(node, fr)));
    borrowed[fr.resource] = plus(borrowed[fr.resource], over);
    lendable[fr.resource] = plus(lendable[fr.resource], potential(*parent, fr));
  }
  for (const auto& [resource, amount] : borrowed) {
    std::int64_t all = lendable[resource];
    if (all <= 0 || all == kUnlimited) continue;
    share.ratio =
        std::max(share.ratio, 1000.0 * static_cast<double>(amount) / static_cast<double>(all));
  }
  return share;
}

bool QuotaState::borrows(const NodeName& node) const {
  FlavorResources all = named();
  return std::any_of(all.begin(), all.end(),
                     [&](const FlavorResource& fr) { return borrowing(node, fr, 0); });
}

}  // namespace berth::judging::quota
