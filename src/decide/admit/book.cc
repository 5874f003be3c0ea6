#include "decide/admit/book.h"

#include <algorithm>
#include <set>

namespace berth::admit {

std::string_view name(Inactive inactive) {
  switch (inactive) {
    case Inactive::kNo:
      return "Ready";
    case Inactive::kStopped:
      return "Stopped";
    case Inactive::kFlavorNotFound:
      return "FlavorNotFound";
    case Inactive::kTopologyNotFound:
      return "TopologyNotFound";
    case Inactive::kCheckNotFound:
      return "AdmissionCheckNotFound";
    case Inactive::kCheckInactive:
      return "AdmissionCheckInactive";
    case Inactive::kCohortCycle:
      return "CohortCycle";
  }
  return "Unknown";
}

namespace {

template <class Map, class Key>
std::uint32_t id_in(const Map& map, const Key& key) {
  const auto it = map.find(key);
  return it == map.end() ? kNoId : it->second;
}

template <class F>
void for_each_quota(const std::vector<model::ResourceGroup>& groups, F&& f) {
  for (const auto& group : groups) {
    for (const auto& flavor : group.flavors) {
      for (const auto& quota : flavor.resources) f(flavor.flavor, quota);
    }
  }
}

// Cohorts on a circle of parents, and those that lead into one.
std::map<std::string, bool, std::less<>> circles(const std::vector<model::CohortSpec>& cohorts) {
  std::map<std::string_view, std::string_view> parent;
  for (const auto& cohort : cohorts) parent[cohort.name] = cohort.parent;
  std::map<std::string, bool, std::less<>> out;
  for (const auto& cohort : cohorts) {
    std::set<std::string_view> seen;
    std::string_view at = cohort.name;
    while (!at.empty() && seen.insert(at).second) {
      const auto it = parent.find(at);
      at = it == parent.end() ? std::string_view{} : it->second;
    }
    if (!at.empty()) out[cohort.name] = true;
  }
  return out;
}

}  // namespace

Book::Book(const model::QueueRules& rules)
    : config_(rules.config),
      topologies_(rules.topologies),
      namespaces_(rules.namespaces.begin(), rules.namespaces.end()),
      tree_({}) {
  number_names(rules);
  std::vector<std::uint32_t> resource_of;
  for (const Cell& cell : cells_) resource_of.push_back(cell.resource);
  tree_ = QuotaTree(std::move(resource_of));
  grow_tree(rules);
  for (const auto& spec : rules.local_queues) {
    local_ids_.emplace(spec.ns + '/' + spec.name, static_cast<LocalId>(locals_.size()));
    locals_.push_back({spec, find_queue(spec.queue)});
  }
}

void Book::number_names(const model::QueueRules& rules) {
  std::set<std::string> resources;
  std::map<std::string, const model::FlavorSpec*> flavors;
  for (const auto& flavor : rules.flavors) flavors[flavor.name] = &flavor;
  const auto names_of = [&](const std::vector<model::ResourceGroup>& groups) {
    for_each_quota(groups, [&](const std::string& flavor, const model::ResourceQuota& quota) {
      resources.insert(quota.resource);
      flavors.try_emplace(flavor, nullptr);
    });
  };
  for (const auto& queue : rules.queues) names_of(queue.groups);
  for (const auto& cohort : rules.cohorts) names_of(cohort.groups);
  for (const auto& resource : resources) {
    resource_ids_.emplace(resource, static_cast<ResourceId>(resources_.size()));
    resources_.push_back(resource);
  }
  for (const auto& [flavor_name, spec] : flavors) {
    flavor_ids_.emplace(flavor_name, static_cast<FlavorId>(flavors_.size()));
    flavors_.push_back(spec == nullptr ? model::FlavorSpec{} : *spec);
    flavors_.back().name = flavor_name;
    flavor_exists_.push_back(spec != nullptr);
  }
  const auto cells_of = [&](const std::vector<model::ResourceGroup>& groups) {
    for_each_quota(groups, [&](const std::string& flavor, const model::ResourceQuota& quota) {
      add_cell(flavor, quota.resource);
    });
  };
  for (const auto& queue : rules.queues) cells_of(queue.groups);
  for (const auto& cohort : rules.cohorts) cells_of(cohort.groups);
}

void Book::add_cell(const std::string& flavor, const std::string& resource) {
  const Cell cell{find_flavor(flavor), find_resource(resource)};
  const auto id = static_cast<CellId>(cells_.size());
  if (cell_ids_.emplace(std::pair(cell.flavor, cell.resource), id).second) cells_.push_back(cell);
}

void Book::grow_tree(const model::QueueRules& rules) {
  in_cycle_ = circles(rules.cohorts);
  for (const auto& cohort : rules.cohorts) add_cohort(cohort.name, rules);
  for (const auto& queue : rules.queues) make_queue(queue, rules);
  tree_.seal();
  const auto by_name = [&](NodeId a, NodeId b) { return node_names_[a] < node_names_[b]; };
  for (NodeId n = 0; n < tree_.size(); ++n) {
    if (!tree_.has_parent(n)) roots_.push_back(n);
    std::sort(children_[n].begin(), children_[n].end(), by_name);
  }
  std::sort(roots_.begin(), roots_.end(), by_name);
}

// The node of a cohort, its parents first. A cohort of a circle is a root of its own without quota.
NodeId Book::add_cohort(const std::string& cohort_name, const model::QueueRules& rules) {
  if (const auto it = cohort_nodes_.find(cohort_name); it != cohort_nodes_.end()) return it->second;
  const auto spec = std::find_if(rules.cohorts.begin(), rules.cohorts.end(),
                                 [&](const auto& c) { return c.name == cohort_name; });
  const bool defined = spec != rules.cohorts.end() && !in_cycle_.contains(cohort_name);
  NodeId parent = kNoParent;
  if (defined && !spec->parent.empty()) parent = add_cohort(spec->parent, rules);
  const NodeId node = tree_.add_node(parent, false, defined ? spec->weight : 1);
  cohort_nodes_.emplace(cohort_name, node);
  children_.emplace_back();
  queue_at_.push_back(kNoId);
  node_names_.push_back(cohort_name);
  if (parent != kNoParent) children_[parent].push_back(node);
  if (defined) set_quotas(node, spec->groups);
  return node;
}

void Book::set_quotas(NodeId n, const std::vector<model::ResourceGroup>& groups) {
  for_each_quota(groups, [&](const std::string& flavor, const model::ResourceQuota& quota) {
    Quota out{.nominal = quota.nominal, .borrowing_limit = {}, .lending_limit = {}};
    if (quota.borrowing_limit) out.borrowing_limit = Amount(*quota.borrowing_limit);
    if (quota.lending_limit) out.lending_limit = Amount(*quota.lending_limit);
    tree_.set_quota(n, find_cell(find_flavor(flavor), find_resource(quota.resource)), out);
  });
}

void Book::make_queue(const model::QueueSpec& spec, const model::QueueRules& rules) {
  Queue queue;
  queue.spec = spec;
  const NodeId parent = spec.cohort.empty() ? kNoParent : add_cohort(spec.cohort, rules);
  queue.node = tree_.add_node(parent, true, spec.weight);
  queue.root = queue.node;
  while (tree_.has_parent(queue.root)) queue.root = tree_.parent(queue.root);
  children_.emplace_back();
  const auto id = static_cast<QueueId>(queues_.size());
  queue_at_.push_back(id);
  node_names_.push_back(spec.name);
  if (parent != kNoParent) children_[parent].push_back(queue.node);
  set_quotas(queue.node, spec.groups);
  queue.place.assign(resources_.size(), {kNoId, kNoId});
  queue.all_topology = !spec.groups.empty();
  for (const auto& from : spec.groups) {
    Group group;
    for (const auto& resource : from.covered) {
      queue.place[find_resource(resource)] = {static_cast<std::uint32_t>(queue.groups.size()),
                                              static_cast<std::uint32_t>(group.resources.size())};
      queue.covers_pods |= resource == "pods";
      group.resources.push_back(find_resource(resource));
    }
    for (const auto& flavor : from.flavors) {
      GroupFlavor one{.flavor = find_flavor(flavor.flavor), .cells = {}};
      for (const ResourceId r : group.resources) one.cells.push_back(find_cell(one.flavor, r));
      queue.all_topology &= !flavors_[one.flavor].topology.empty();
      group.flavors.push_back(std::move(one));
    }
    queue.groups.push_back(std::move(group));
  }
  for (const auto& check : spec.checks) {
    const auto it = std::find_if(rules.checks.begin(), rules.checks.end(),
                                 [&](const auto& c) { return c.name == check.name; });
    const bool known = it != rules.checks.end();
    queue.check_delays.push_back(known &&
                                 (it->controller == "kueue.x-k8s.io/provisioning-request" ||
                                  it->controller == "kueue.x-k8s.io/multikueue"));
  }
  find_inactive(queue, rules);
  queue_ids_.emplace(spec.name, id);
  queues_.push_back(std::move(queue));
}

void Book::find_inactive(Queue& queue, const model::QueueRules& rules) const {
  const auto because = [&](Inactive why, std::string message) {
    if (queue.inactive == Inactive::kNo) {
      queue.inactive = why;
      queue.inactive_message = std::move(message);
    }
  };
  if (in_cycle_.contains(queue.spec.cohort)) {
    because(Inactive::kCohortCycle, "the parents of cohort " + queue.spec.cohort +
                                        " form a circle; break it at one parent");
  }
  if (queue.spec.stop != model::StopPolicy::kNone) {
    because(Inactive::kStopped, "its stopPolicy holds it; set stopPolicy None to go on");
  }
  for (const Group& group : queue.groups) {
    for (const GroupFlavor& flavor : group.flavors) {
      const model::FlavorSpec& spec = flavors_[flavor.flavor];
      if (!flavor_exists_[flavor.flavor]) {
        because(Inactive::kFlavorNotFound, "the ResourceFlavor " + spec.name + " does not exist");
      }
      if (!spec.topology.empty() && topology_of(flavor.flavor) == nullptr) {
        because(Inactive::kTopologyNotFound,
                "the Topology " + spec.topology + " of flavor " + spec.name + " does not exist");
      }
    }
  }
  for (const auto& check : queue.spec.checks) {
    const auto it = std::find_if(rules.checks.begin(), rules.checks.end(),
                                 [&](const auto& c) { return c.name == check.name; });
    if (it == rules.checks.end()) {
      because(Inactive::kCheckNotFound, "the AdmissionCheck " + check.name + " does not exist");
    } else if (!it->active) {
      because(Inactive::kCheckInactive, "the AdmissionCheck " + check.name + " is not active");
    }
  }
}

const model::TopologySpec* Book::topology_of(FlavorId id) const {
  for (const auto& topology : topologies_) {
    if (topology.name == flavors_[id].topology) return &topology;
  }
  return nullptr;
}

QueueId Book::find_queue(std::string_view queue) const { return id_in(queue_ids_, queue); }
LocalId Book::find_local(std::string_view ns, std::string_view local) const {
  return id_in(local_ids_, std::string(ns) + '/' + std::string(local));
}
ResourceId Book::find_resource(std::string_view resource) const {
  return id_in(resource_ids_, resource);
}
FlavorId Book::find_flavor(std::string_view flavor) const { return id_in(flavor_ids_, flavor); }
CellId Book::find_cell(FlavorId flavor, ResourceId resource) const {
  return id_in(cell_ids_, std::pair(flavor, resource));
}

const model::Labels& Book::namespace_labels(std::string_view ns) const {
  static const model::Labels kEmpty;
  const auto it = namespaces_.find(ns);
  return it == namespaces_.end() ? kEmpty : it->second;
}

bool Book::in_namespace(const Queue& queue, std::string_view ns) const {
  if (!queue.spec.namespaces) return false;
  const model::Labels& labels = namespace_labels(ns);
  return text::matches(*queue.spec.namespaces,
                       [&](std::string_view key) -> std::optional<std::string_view> {
                         if (const auto it = labels.find(key); it != labels.end())
                           return it->second;
                         // Every namespace carries its own name.
                         if (key == "kubernetes.io/metadata.name") return ns;
                         return std::nullopt;
                       });
}

std::string Book::path_of(NodeId n) const {
  std::string path = '/' + node_names_[n];
  while (tree_.has_parent(n)) {
    n = tree_.parent(n);
    path = '/' + node_names_[n] + path;
  }
  return path;
}

}  // namespace berth::admit
