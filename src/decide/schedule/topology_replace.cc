// A node is lost: its pods go elsewhere, the rest of the workload stays where it is.
#include <algorithm>
#include <map>

#include "decide/schedule/topology_search.h"
#include "decide/schedule/topology_task.h"

namespace berth::schedule {

// Narrows the task to the leaves of the domain that the lost pods must return to. The lost node may
// be gone from the tree, so the domain is known by the pods that stay: for slices it is the one
// whose pods no longer are whole slices; for a required level, the one that holds any of them.
bool TopologyTree::confine(const TopologyPlan& plan, std::span<const Layer> broken,
                           std::span<const Domain> rest, Task& task) const {
  if (broken.empty() && !plan.required) return true;
  if (rest.empty()) return true;  // nothing to stay with
  const int level = broken.empty() ? plan.level : broken.back().level;
  const std::int64_t size = broken.empty() ? 0 : broken.back().size;
  std::map<std::int32_t, std::int64_t> pods;  // by domain of the level
  for (const Domain& domain : rest) {
    std::int32_t at = leaf(domain.values);
    if (at == kNoLeaf) continue;
    for (auto l = levels_.size() - 1; l > static_cast<std::size_t>(level); --l)
      at = form_[l].parent[static_cast<std::size_t>(at)];
    pods[at] += domain.count;
  }
  const auto found = std::find_if(pods.begin(), pods.end(), [size](const auto& entry) {
    return size == 0 || entry.second % size != 0;
  });
  if (found == pods.end()) return false;
  task.begin = found->first;
  task.end = found->first + 1;
  for (auto l = static_cast<std::size_t>(level); l + 1 < levels_.size(); ++l) {
    task.begin = form_[l].first[static_cast<std::size_t>(task.begin)];
    task.end = form_[l].first[static_cast<std::size_t>(task.end)];
  }
  return true;
}

// Leaves of the tree in order of all values; nodes that are not in it follow, by name.
model::TopologyAssignment TopologyTree::merged(model::TopologyAssignment added,
                                               std::span<const Domain> rest) const {
  std::map<std::pair<Leaf, std::string>, int> counts;
  const auto count = [&](const Domain& domain) {
    const Leaf at = leaf(domain.values);
    counts[{at == kNoLeaf ? INT32_MAX : at, domain.values.back()}] += domain.count;
  };
  std::for_each(rest.begin(), rest.end(), count);
  std::for_each(added.domains.begin(), added.domains.end(), count);
  added.domains.clear();
  for (const auto& [at, pods] : counts) added.domains.push_back({{at.second}, pods});
  return added;
}

TopologyAnswer TopologyTree::replace(const TopologyPodSet& set,
                                     const model::TopologyAssignment& now, std::string_view node,
                                     Options options) const {
  const auto refused = [](std::string why) {
    return TopologyAnswer{.invalid = true, .message = std::move(why)};
  };
  if (!hostnames_) {
    return refused("topology \"" + name_ + "\" can not replace nodes: its lowest level is not " +
                   model::kHostnameLabel);
  }
  int lost = 0;
  std::vector<Domain> rest;
  for (const Domain& domain : now.domains) {
    if (domain.values.empty() || domain.count <= 0) continue;
    if (domain.values.back() == node) {
      lost += domain.count;
    } else {
      rest.push_back(domain);
    }
  }
  // Layers that the lost pods fill hold for them anew; sizes divide one another, so these are the
  // inner ones. The innermost of the others says where the gap is.
  std::vector<Layer> layers;
  if (auto error = read_layers(set.ask, layers); !error.empty()) return refused(std::move(error));
  model::TopologyAsk ask = set.ask;
  std::vector<Layer> broken;
  for (const Layer& layer : layers) {
    if (lost % layer.size == 0) continue;
    broken.push_back(layer);
    ask.slices.erase(ask.slices.begin());
  }
  TopologyPlan plan;
  if (auto error = read_ask(ask, lost, options, plan); !error.empty())
    return refused(std::move(error));
  TopologyAnswer out;
  out.ok = true;
  out.assignments = {merged(assignment({}, false), rest)};
  if (lost == 0) return out;
  Task task = task_for(set, nullptr, options);
  const std::string name(node);
  task.without = leaf({&name, 1});
  if (!confine(plan, broken, rest, task)) {
    return {.message = "topology \"" + name_ +
                       "\" has none of the domains that hold the rest of the pods"};
  }
  const TopologyFind found = find(task, plan);
  if (!found.ok) return refuse(task, plan, found, options);
  out.assignments = {merged(assignment(found.leaves, false), rest)};
  return out;
}

}  // namespace berth::schedule
