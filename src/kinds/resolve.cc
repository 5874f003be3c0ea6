#include <algorithm>
#include <set>
#include <tuple>

#include "kinds/counted.h"
#include "kinds/resolver.h"

namespace berth::kinds {

namespace {

// Sorted by name; of two with one name the first by where it was found stays.
template <class T>
void keep_first(std::vector<Found<T>>& list, Gathered& notes) {
  std::sort(list.begin(), list.end(), [](const Found<T>& a, const Found<T>& b) {
    return std::tie(ns_of(a.object), name_of(a.object), a.origin) <
           std::tie(ns_of(b.object), name_of(b.object), b.origin);
  });
  std::vector<Found<T>> kept;
  kept.reserve(list.size());
  for (Found<T>& found : list) {
    const bool again = !kept.empty() && ns_of(kept.back().object) == ns_of(found.object) &&
                       name_of(kept.back().object) == name_of(found.object);
    if (!again) {
      kept.push_back(std::move(found));
      continue;
    }
    const Origin& first = kept.back().origin;
    notes.refuse(found, "metadata.name",
                 "found the same name as in " + quoted(first.source) + ", document " +
                     std::to_string(first.document) + ", line " + std::to_string(first.line) +
                     ", want a name of its own");
  }
  list = std::move(kept);
}

}  // namespace

std::string qualified(const std::string& ns, const std::string& name) { return ns + '/' + name; }

void Resolver::drop_duplicates() {
  keep_first(in_.nodes, in_);
  keep_first(in_.gpu_nodes, in_);
  keep_first(in_.pods, in_);
  keep_first(in_.jobs, in_);
  keep_first(in_.makers, in_);
  keep_first(in_.groups, in_);
  keep_first(in_.budgets, in_);
  keep_first(in_.volumes, in_);
  keep_first(in_.claims, in_);
  keep_first(in_.priority_classes, in_);
  keep_first(in_.flavors, in_);
  keep_first(in_.cluster_queues, in_);
  keep_first(in_.local_queues, in_);
  keep_first(in_.cohorts, in_);
  keep_first(in_.topologies, in_);
  keep_first(in_.checks, in_);
  keep_first(in_.workload_classes, in_);
  keep_first(in_.namespaces, in_);
  keep_first(in_.workloads, in_);
  keep_first(in_.volcano_queues, in_);
  keep_first(in_.kai_queues, in_);
  keep_first(in_.volcano_jobs, in_);
  keep_first(in_.upstream_workloads, in_);
}

void Resolver::nodes() {
  std::map<std::string_view, const GpuNode*> agents;
  for (const Found<GpuNode>& agent : in_.gpu_nodes) agents[agent.object.name] = &agent.object;
  for (Found<NodeObject>& node : in_.nodes) {
    const auto agent = agents.find(node.object.spec.name);
    const GpuFacts facts =
        fill_gpus(agent == agents.end() ? nullptr : agent->second, node.object.spec);
    for (const std::string& warning : facts.warnings) in_.warn(node, "status", warning);
    if (!facts.errors.empty()) {
      std::vector<Note> errors;
      for (const std::string& error : facts.errors) {
        errors.push_back(Gathered::note(node.origin, node.shown, "status", error));
      }
      in_.count_in_part(std::move(errors), counted(node.object));
    }
    for (const auto& [key, value] : node.object.spec.labels) node_label_keys_.insert(key);
    if (agent != agents.end()) {
      for (const GpuNodeGpu& gpu : agent->second->gpus) {
        for (const std::string& uid : gpu.holders) {
          Holding& holding = holders_[uid];
          holding.node = node.object.spec.name;
          holding.indices.push_back(gpu.gpu.index);
        }
      }
    }
    out_.nodes.push_back(std::move(node.object.spec));
  }
  for (const Found<GpuNode>& agent : in_.gpu_nodes) {
    const auto at = std::lower_bound(in_.nodes.begin(), in_.nodes.end(), agent.object.name,
                                     [](const Found<NodeObject>& n, const std::string& name) {
                                       return n.object.meta.name < name;
                                     });
    if (at == in_.nodes.end() || at->object.meta.name != agent.object.name) {
      in_.warn(agent, "metadata.name", "found no Node of this name in the input; it is not used");
    }
  }
}

void Resolver::indexes() {
  for (const Found<PriorityClassObject>& c : in_.priority_classes) priorities_.add(c.object);
  for (const Found<VolumeObject>& v : in_.volumes) volumes_.add(v.object);
  for (const Found<ClaimObject>& c : in_.claims) volumes_.add(c.object);
}

void Resolver::groups() {
  for (Found<GroupObject>& group : in_.groups) {
    model::GangSpec& gang = group.object.gang;
    // In a cluster that lives its author may write the number: the class says it.
    const bool numbered = gang.priority.has_value();
    if (options_.live) gang.priority.reset();
    if (!gang.priority && !group.object.priority_class.empty()) {
      const auto priority = priorities_.find(group.object.priority_class);
      if (!priority && !numbered) {
        in_.refuse(group, "spec.priorityClassName",
                   "found " + quoted(group.object.priority_class) +
                       ", want a PriorityClass of the input: add priorityclasses to what kubectl "
                       "gets");
        continue;
      }
      if (priority) gang.priority = priority->value;  // else it is gone since: its pods say it
    }
    const std::string key = qualified(gang.ns, gang.name);
    gangs_.emplace(key, gang);
    if (group.object.kai) kai_groups_.insert(key);
    gang_places_.emplace(key, std::pair(group.origin, group.shown));
    const std::string queue = label_value(group.object.meta, kQueueLabel);
    if (!queue.empty()) group_queues_.emplace(key, queue);
  }
  check_workload_refs();
}

void Resolver::budgets() {
  for (const Found<BudgetObject>& budget : in_.budgets) {
    out_.budgets.push_back(resolve_budget(budget.object, out_.pods));
  }
}

Inputs Resolver::finish() {
  std::set<std::pair<std::string_view, std::string_view>> with_pods;
  for (const model::PodSpec& pod : out_.pods) with_pods.emplace(pod.ns, pod.gang);
  for (const Found<GroupObject>& group : in_.groups) {
    const model::GangSpec& gang = group.object.gang;
    const bool queued = queued_groups_.contains(qualified(gang.ns, gang.name));
    if (!queued && !with_pods.contains({gang.ns, gang.name})) {
      in_.notes.add(
          Gathered::note(group.origin, group.shown, "", "no pod of the input belongs to it"));
    }
  }
  for (auto& [key, gang] : gangs_) {
    const auto meaning = [this](std::string& topology) {
      if (!topology.empty()) topology = topology_key(topology, node_label_keys_);
    };
    meaning(gang.required_topology);
    meaning(gang.preferred_topology);
    for (model::SubgroupSpec& subgroup : gang.subgroups) {
      meaning(subgroup.required_topology);
      meaning(subgroup.preferred_topology);
    }
    out_.gangs.push_back(std::move(gang));
  }
  finish_queues();
  const auto by_name = [](const auto& a, const auto& b) {
    return std::tie(a.ns, a.name) < std::tie(b.ns, b.name);
  };
  std::sort(out_.pods.begin(), out_.pods.end(), by_name);
  std::sort(out_.gangs.begin(), out_.gangs.end(), by_name);
  out_.counts = in_.counts;
  out_.counts.ignored = in_.ignored.total();
  out_.counts.warnings = in_.warnings.total();
  out_.counts.invalid = in_.invalid.total();
  out_.counts.notes = in_.notes.total();
  out_.ignored = in_.ignored.take();
  out_.warnings = in_.warnings.take();
  out_.invalid = in_.invalid.take();
  out_.notes = in_.notes.take();
  return std::move(out_);
}

Inputs Resolver::run() && {
  drop_duplicates();
  nodes();
  indexes();
  queues();
  groups();
  workloads();
  makers();
  jobs();
  volcano_jobs();
  pods();
  queued_pods();
  make_variants();
  other_queues();
  count_leftovers();
  plant_other_queues();
  hold_outsiders();
  budgets();
  return finish();
}

Inputs resolve(Gathered&& gathered, const ManifestOptions& options) {
  return Resolver(gathered, options).run();
}

}  // namespace berth::kinds
