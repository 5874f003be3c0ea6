// The tree of queues and cohorts and every figure of it, by definition.
//
// Nothing is kept but the list of what holds quota: usage of a queue is the sum of its holders,
// counted anew after every change, and all other figures are computed when asked for.
// Unlimited is INT64_MAX and absorbs addition.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/workload.h"

namespace berth::judging::quota {

inline constexpr std::int64_t kUnlimited = INT64_MAX;
inline constexpr std::int64_t kLess = INT64_MIN;  // below everything: bounded - unlimited

std::int64_t plus(std::int64_t a, std::int64_t b);
std::int64_t minus(std::int64_t a, std::int64_t b);

struct FlavorResource {
  std::string flavor, resource;
  friend auto operator<=>(const FlavorResource&, const FlavorResource&) = default;
};
using Usage = std::map<FlavorResource, std::int64_t>;
using FlavorResources = std::set<FlavorResource>;

struct NodeName {
  bool cohort = false;
  std::string name;
  friend auto operator<=>(const NodeName&, const NodeName&) = default;
};

struct Quota {
  std::int64_t nominal = 0;
  std::optional<std::int64_t> borrowing_limit, lending_limit;
};

struct TreeNode {
  std::optional<NodeName> parent;
  std::vector<NodeName> children;  // in name order
  std::map<FlavorResource, Quota> quotas;
  double weight = 1;
};

// Queues, cohorts and the cohorts that are only named. Nodes on or below a cycle have no root.
class QuotaTree {
 public:
  explicit QuotaTree(const model::QueueInputs& inputs);

  bool has(const NodeName& node) const { return nodes_.contains(node); }
  const TreeNode& at(const NodeName& node) const { return nodes_.at(node); }
  const std::map<NodeName, TreeNode>& nodes() const { return nodes_; }
  const FlavorResources& known() const { return known_; }  // all that any node has a quota for

  bool cyclic(const NodeName& node) const;
  std::vector<NodeName> ancestors(const NodeName& node) const;  // parent first; not of cyclic ones
  NodeName root(const NodeName& node) const;
  int height(const NodeName& node) const;  // steps to the furthest leaf
  std::vector<NodeName> queues_below(const NodeName& node) const;
  Quota quota(const NodeName& node, const FlavorResource& fr) const;

 private:
  void add_quotas(const NodeName& node, const std::vector<model::ResourceGroup>& groups);
  std::map<NodeName, TreeNode> nodes_;
  FlavorResources known_;
};

// A workload that holds quota.
struct Holding {
  std::string workload, queue;  // the ClusterQueue
  std::string local_queue;      // "ns/name"
  Usage usage;
  FlavorResources assigned;
  int priority = 0;
  std::int64_t queue_ns = 0;     // its place in the queue, were it waiting
  std::int64_t reserved_ns = 0;  // since when it holds
  std::string tie;
  bool evicted = false;
};

// Dominant resource share.
struct Share {
  double ratio = 0, weight = 1;
  bool infinite() const { return weight == 0 && ratio > 0; }
  double value() const;                   // +infinity for infinite ones
  int compare(const Share& other) const;  // < 0, 0, > 0
};

// Who holds what: the snapshot of a cycle, changed and copied freely.
class QuotaState {
 public:
  explicit QuotaState(const QuotaTree& tree) : tree_(&tree) {}

  const QuotaTree& tree() const { return *tree_; }
  const std::map<std::string, Holding>& holders() const { return holders_; }
  void put(Holding holding);
  void remove(const std::string& workload);
  void remove(const std::set<std::string>& workloads);
  void reserve(const std::string& queue, const Usage& usage);  // taken by nobody in particular
  void release(const std::string& queue, const Usage& usage);  // undoes reserve

  std::int64_t subtree(const NodeName& node, const FlavorResource& fr) const;  // S
  std::int64_t local(const NodeName& node, const FlavorResource& fr) const;    // kept from others
  std::int64_t used(const NodeName& node, const FlavorResource& fr) const;     // U
  std::int64_t local_free(const NodeName& node, const FlavorResource& fr) const;  // localAvail
  std::int64_t avail(const NodeName& node, const FlavorResource& fr) const;       // may be negative
  std::int64_t available(const NodeName& node, const FlavorResource& fr) const;   // at least 0
  std::int64_t potential(const NodeName& node, const FlavorResource& fr) const;   // at no usage
  bool borrowing(const NodeName& node, const FlavorResource& fr, std::int64_t more) const;
  bool within(const NodeName& node, const FlavorResources& frs) const;  // U <= S in all of them
  // v <= available for all; without borrowing also U + v <= N.
  bool fits(const std::string& queue, const Usage& request, bool borrow) const;

  struct Level {
    int height = 0;
    bool proper = false;  // smaller than the whole tree
  };
  Level borrowing_level(const std::string& queue, const FlavorResource& fr,
                        std::int64_t value) const;

  Share share(const NodeName& node) const;
  bool borrows(const NodeName& node) const;  // U > S in anything

 private:
  void count();
  FlavorResources named() const;  // with a quota or in use

  const QuotaTree* tree_;
  std::map<std::string, Holding> holders_;
  std::map<std::string, Usage> reserved_;
  std::map<std::string, Usage> used_;  // by queue: the sums of the two above
};

inline NodeName queue_node(const std::string& name) { return {.cohort = false, .name = name}; }
inline NodeName cohort_node(const std::string& name) { return {.cohort = true, .name = name}; }

}  // namespace berth::judging::quota
