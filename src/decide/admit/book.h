// The queue objects of a cluster, resolved: names to numbers, cohorts to a tree, and for every
// queue whether it can admit at all.
//
// Constant once made; a changed object makes a new book. A cohort that nobody defines but somebody
// names exists without quota. Cohorts whose parents form a circle, and all below them, are off:
// their queues admit nothing. Resources are numbered in byte order of their names.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "decide/admit/quota_tree.h"
#include "model/workload.h"

namespace berth::admit {

using ResourceId = std::uint32_t;
using FlavorId = std::uint32_t;
using QueueId = std::uint32_t;
using LocalId = std::uint32_t;
inline constexpr std::uint32_t kNoId = UINT32_MAX;

// Why a queue takes nothing in; the names are those of the condition Active.
enum class Inactive : std::uint8_t {
  kNo,
  kStopped,
  kFlavorNotFound,
  kTopologyNotFound,
  kCheckNotFound,
  kCheckInactive,
  kCohortCycle,
};
std::string_view name(Inactive inactive);

struct GroupFlavor {
  FlavorId flavor = 0;
  std::vector<CellId> cells;  // by resource of the group
};
struct Group {
  std::vector<ResourceId> resources;
  std::vector<GroupFlavor> flavors;  // in order of preference
};

struct Queue {
  model::QueueSpec spec;
  NodeId node = 0;
  NodeId root = 0;
  std::vector<Group> groups;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> place;  // (group, index) by resource, kNoId
  std::vector<bool> check_delays;  // by spec.checks: nodes come with it (ProvisioningRequest)
  bool covers_pods = false;
  bool all_topology = false;  // every flavor has a topology: it is implied for all pods
  Inactive inactive = Inactive::kNo;
  std::string inactive_message;
};

struct Local {
  model::LocalQueueSpec spec;
  QueueId queue = kNoId;  // of a ClusterQueue that exists
};

struct Cell {
  FlavorId flavor = 0;
  ResourceId resource = 0;
};

class Book {
 public:
  explicit Book(const model::QueueRules& rules);

  const model::QueueConfig& config() const { return config_; }
  const std::vector<Queue>& queues() const { return queues_; }
  const Queue& queue(QueueId id) const { return queues_[id]; }
  const std::vector<Local>& locals() const { return locals_; }
  const Local& local(LocalId id) const { return locals_[id]; }
  const std::vector<model::FlavorSpec>& flavors() const { return flavors_; }
  const model::FlavorSpec& flavor(FlavorId id) const { return flavors_[id]; }
  const model::TopologySpec* topology_of(FlavorId id) const;
  const std::vector<std::string>& resources() const { return resources_; }
  const std::string& resource(ResourceId id) const { return resources_[id]; }
  const Cell& cell(CellId id) const { return cells_[id]; }

  QueueId find_queue(std::string_view name) const;  // kNoId
  LocalId find_local(std::string_view ns, std::string_view name) const;
  ResourceId find_resource(std::string_view name) const;
  FlavorId find_flavor(std::string_view name) const;
  CellId find_cell(FlavorId flavor, ResourceId resource) const;
  const model::Labels& namespace_labels(std::string_view ns) const;
  bool in_namespace(const Queue& queue, std::string_view ns) const;  // its selector

  // The quota tree, nothing used.
  const QuotaTree& tree() const { return tree_; }
  const std::vector<NodeId>& children(NodeId n) const { return children_[n]; }
  QueueId queue_at(NodeId n) const { return queue_at_[n]; }  // kNoId: a cohort
  const std::string& node_name(NodeId n) const { return node_names_[n]; }
  const std::vector<NodeId>& roots() const { return roots_; }
  std::string path_of(NodeId n) const;  // "/root/child/queue"

 private:
  void number_names(const model::QueueRules& rules);
  void add_cell(const std::string& flavor, const std::string& resource);
  void grow_tree(const model::QueueRules& rules);
  NodeId add_cohort(const std::string& name, const model::QueueRules& rules);
  void set_quotas(NodeId n, const std::vector<model::ResourceGroup>& groups);
  void make_queue(const model::QueueSpec& spec, const model::QueueRules& rules);
  void find_inactive(Queue& queue, const model::QueueRules& rules) const;

  model::QueueConfig config_;
  std::vector<model::FlavorSpec> flavors_;
  std::vector<bool> flavor_exists_;
  std::vector<model::TopologySpec> topologies_;
  std::vector<std::string> resources_;
  std::vector<Cell> cells_;
  std::map<std::pair<FlavorId, ResourceId>, CellId> cell_ids_;
  std::map<std::string, FlavorId, std::less<>> flavor_ids_;
  std::map<std::string, ResourceId, std::less<>> resource_ids_;
  std::map<std::string, QueueId, std::less<>> queue_ids_;
  std::map<std::string, LocalId, std::less<>> local_ids_;  // by ns/name
  std::map<std::string, NodeId, std::less<>> cohort_nodes_;
  std::map<std::string, bool, std::less<>> in_cycle_;  // cohorts that are off
  std::map<std::string, model::Labels, std::less<>> namespaces_;
  QuotaTree tree_;
  std::vector<std::vector<NodeId>> children_;
  std::vector<QueueId> queue_at_;
  std::vector<std::string> node_names_;
  std::vector<NodeId> roots_;
  std::vector<Queue> queues_;
  std::vector<Local> locals_;
};

}  // namespace berth::admit
