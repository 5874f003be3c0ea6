#include <algorithm>
#include <tuple>

#include "kinds/resolve/kin_inputs.h"
#include "kinds/resolve/stages.h"

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

void drop_duplicates(Gathered& in) {
  keep_first(in.nodes, in);
  keep_first(in.gpu_nodes, in);
  keep_first(in.pods, in);
  keep_first(in.jobs, in);
  keep_first(in.makers, in);
  keep_first(in.groups, in);
  keep_first(in.budgets, in);
  keep_first(in.volumes, in);
  keep_first(in.claims, in);
  keep_first(in.priority_classes, in);
  keep_first(in.policies, in);
  keep_first(in.flavors, in);
  keep_first(in.cluster_queues, in);
  keep_first(in.local_queues, in);
  keep_first(in.cohorts, in);
  keep_first(in.topologies, in);
  keep_first(in.checks, in);
  keep_first(in.workload_classes, in);
  keep_first(in.namespaces, in);
  keep_first(in.workloads, in);
  keep_first(in.volcano_queues, in);
  keep_first(in.kai_queues, in);
  keep_first(in.volcano_jobs, in);
  keep_first(in.upstream_workloads, in);
}

void finish(Resolution& all, const PodMarks& marks) {
  Gathered& in = all.in;
  Inputs& out = all.out;
  std::erase_if(out.pods, [&marks](const model::PodSpec& pod) {
    return marks.dropped.contains(qualified(pod.ns, pod.name));
  });
  const auto by_name = [](const auto& a, const auto& b) {
    return std::tie(a.ns, a.name) < std::tie(b.ns, b.name);
  };
  std::sort(out.pods.begin(), out.pods.end(), by_name);
  std::sort(out.gangs.begin(), out.gangs.end(), by_name);
  model::QueueInputs& queues = out.queues;
  const auto by_one_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::sort(queues.flavors.begin(), queues.flavors.end(), by_one_name);
  std::sort(queues.queues.begin(), queues.queues.end(), by_one_name);
  std::sort(queues.cohorts.begin(), queues.cohorts.end(), by_one_name);
  std::sort(queues.local_queues.begin(), queues.local_queues.end(), by_name);
  std::sort(queues.workloads.begin(), queues.workloads.end(), by_name);
  out.counts = in.counts;
  out.counts.ignored = in.ignored.total();
  out.counts.warnings = in.warnings.total();
  out.counts.invalid = in.invalid.total();
  out.counts.notes = in.notes.total();
  out.ignored = in.ignored.take();
  out.warnings = in.warnings.take();
  out.invalid = in.invalid.take();
  out.notes = in.notes.take();
}

void take_policy(Resolution& all) {
  for (const Found<PolicyObject>& found : all.in.policies) {
    if (found.object.meta.name == kPolicyInForce) {
      all.out.policy = found.object.policy;
    } else {
      all.in.warn(found, "metadata.name",
                  "only the BerthPolicy named default is in force: this one is not");
    }
  }
}

void run_stages(Resolution& all, const KnownNodes& nodes, const PodReferences& references,
                KnownQueues& queues, PodMarks& marks) {
  PodGroups groups(all, references);
  Workloads workloads(all, nodes, queues, references);
  queue_makers(all, queues, references, workloads);
  resolve_jobs(all, queues, references, groups, workloads);
  resolve_volcano_jobs(all, references, groups);
  resolve_pods(all, nodes, queues, references, groups, marks);
  Members members(all, nodes, queues, workloads, marks);
  workloads.keep_priorities();
  queue_kueue_gangs(all, queues, groups, workloads, members, marks);
  queue_pods(all, queues, groups, workloads, members, marks);
  workloads.make_variants();
  OtherSystems systems(all, queues);
  queue_in_other_systems(all, nodes, groups, workloads, systems, marks);
  count_leftovers(all, nodes, queues, groups, workloads, systems, marks);
  systems.plant_queues();
  hold_outsiders(all, queues, marks);
  groups.finish(nodes);
  workloads.finish();
}

}  // namespace

Inputs resolve(Gathered&& gathered, const ManifestOptions& options) {
  drop_duplicates(gathered);
  Resolution all{gathered, options};
  take_policy(all);
  const NodesOfInput nodes(all);
  const PodReferences references(all);
  KnownQueues queues(all);
  PodMarks marks;
  run_stages(all, nodes, references, queues, marks);
  for (const Found<BudgetObject>& budget : gathered.budgets) {
    all.out.budgets.push_back(resolve_budget(budget.object, all.out.pods));
  }
  finish(all, marks);
  return std::move(all.out);
}

KinInputs resolve_kin(Gathered&& objects, const KnownNodes& nodes, CommonFacts& facts,
                      const NameSet& granted) {
  drop_duplicates(objects);
  KinInputs out;
  Resolution all{objects, facts.options, {}, &out.asks, &granted};
  all.out.queues.config = facts.rules().config;
  PodMarks marks;
  run_stages(all, nodes, facts.references, facts.queues, marks);
  finish(all, marks);
  out.workloads = std::move(all.out.queues.workloads);
  out.pods = std::move(all.out.pods);
  out.beyond = std::move(all.out.beyond);
  return out;
}

QueueDemands demands_of(Gathered&& gathered, const ManifestOptions& options) {
  Resolution all{gathered, options};
  return KnownQueues(all).demands();
}

}  // namespace berth::kinds
