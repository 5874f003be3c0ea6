#include "people/view/plan.h"

#include <algorithm>
#include <set>

#include "decide/decide.h"
#include "model/snapshot_builder.h"
#include "people/view/hints.h"

namespace berth::people {

namespace {

using model::GpuDemandSpec;
using model::PodSpec;

using PodsByName = std::map<std::string, const PodSpec*, std::less<>>;
using NodesByName = std::map<std::string, const model::NodeSpec*, std::less<>>;

// Milli-GPU that a pod holds on each device of its node; a MIG slot is its part of the device.
std::vector<int> device_milli(const model::NodeInfo& info, const model::PodEntry& pod) {
  std::vector<int> out(info.gpus.size(), 0);
  for (std::size_t g = 0; g < out.size(); ++g) {
    const int taken = pod.gpus.take[g];
    if (taken == 0) continue;
    if (pod.gpus.unit > 0) {
      out[g] = taken * pod.gpus.unit;
      continue;
    }
    int slots = 0;
    for (const model::MigSlots& mig : info.gpus[g].mig) slots += mig.count;
    out[g] = model::kMilliPerGpu * taken / std::max(1, slots);
  }
  return out;
}

NodeUse node_use(const model::ClusterState& state, std::size_t slot, int& pods) {
  const model::NodeInfo& info = state.info(slot);
  NodeUse use;
  use.name = info.name;
  use.model = info.gpu_model;
  use.gpus = static_cast<int>(info.gpus.size());
  std::vector<int> milli(info.gpus.size(), 0);
  state.for_each_pod_on(slot, [&](model::PodId id) {
    const model::PodEntry& pod = state.pod(id);
    ++pods;
    const std::vector<int> held = device_milli(info, pod);
    int sum = 0;
    for (std::size_t g = 0; g < held.size(); ++g) {
      milli[g] += held[g];
      sum += held[g];
    }
    if (sum > 0) use.holders.push_back({pod.info->name, sum, pod.info->priority});
  });
  for (std::size_t g = 0; g < milli.size(); ++g) {
    const model::GpuSpec& gpu = info.gpus[g];
    const bool usable = gpu.health == model::Health::kHealthy && !gpu.reserved;
    (milli[g] > 0 ? use.used : usable ? use.free : use.unusable) += 1;
    const int used = std::min(milli[g], model::kMilliPerGpu);
    use.used_milli += used;
    if (usable) use.free_milli += model::kMilliPerGpu - used;
  }
  std::sort(use.holders.begin(), use.holders.end(), [](const auto& a, const auto& b) {
    return a.milli != b.milli ? a.milli > b.milli : a.pod < b.pod;
  });
  return use;
}

ClusterUse sum_up(const model::ClusterState& state, std::vector<NodeUse>& nodes) {
  ClusterUse sum;
  for (std::size_t slot = 0; slot < state.nodes(); ++slot) {
    NodeUse use = node_use(state, slot, sum.pods);
    ++sum.nodes;
    sum.gpus += use.gpus;
    sum.gpu_pods += static_cast<int>(use.holders.size());
    sum.used_milli += use.used_milli;
    if (use.gpus > 0) sum.gpus_by_model[use.model] += use.gpus;
    nodes.push_back(std::move(use));
  }
  return sum;
}

// What a pod holds on a node; nodes are sorted by name.
int held_milli(const std::vector<NodeUse>& nodes, const std::string& node, const std::string& pod) {
  const auto use =
      std::lower_bound(nodes.begin(), nodes.end(), node,
                       [](const NodeUse& a, const std::string& b) { return a.name < b; });
  if (use == nodes.end() || use->name != node) return 0;
  for (const NodeUse::Holder& holder : use->holders) {
    if (holder.pod == pod) return holder.milli;
  }
  return 0;
}

std::int64_t asked_of(const GpuDemandSpec& demand) {
  switch (demand.kind) {
    case GpuDemandSpec::Kind::kWhole:
      return std::int64_t{model::kMilliPerGpu} * demand.count;
    case GpuDemandSpec::Kind::kFraction:
      return std::int64_t{demand.milli} * demand.count;
    default:
      return 0;  // depends on the node
  }
}

std::string name_of(const PodSpec& pod) { return pod.ns + '/' + pod.name; }

// Pods of nodes that the input does not have: nothing is decided for them, but they do not run.
void add_strays(const kinds::Inputs& inputs, model::Decision& decision) {
  std::set<std::string_view> nodes;
  for (const model::NodeSpec& node : inputs.nodes) nodes.insert(node.name);
  for (const PodSpec& pod : inputs.pods) {
    if (pod.node_name.empty() || nodes.contains(pod.node_name)) continue;
    decision.outcomes.push_back(
        {.workload = name_of(pod),
         .pods = 1,
         .reason = model::Reason::kNodeNameNotFound,
         .message = "its node " + pod.node_name + " is not among the valid nodes of the input"});
  }
}

// Gathers pods into what people call one workload.
class WorkloadGrouper {
 public:
  WorkloadGrouper(const kinds::Inputs& inputs, PlanResult& plan) : plan_(plan) {
    for (const PodSpec& pod : inputs.pods) pods_.emplace(name_of(pod), &pod);
    for (const model::NodeSpec& node : inputs.nodes) nodes_.emplace(node.name, &node);
    for (const model::GangSpec& gang : inputs.gangs)
      gangs_.emplace(gang.ns + '/' + gang.name, &gang);
    for (const model::WorkloadSpec& spec : inputs.queues.workloads) {
      queued_.emplace(spec.ns + '/' + spec.name, &spec);
    }
  }

  void run() {
    const model::Decision& decision = plan_.decision;
    for (std::size_t i = 0; i < decision.outcomes.size(); ++i) {
      const model::Outcome& outcome = decision.outcomes[i];
      Workload& workload = outcome.queued ? of_queue(outcome)
                           : outcome.gang ? of_gang(outcome.workload)
                                          : of_pod(outcome.workload);
      if (outcome.verdict != model::Verdict::kPlaced) workload.waiting.push_back(i);
    }
    for (std::size_t i = 0; i < decision.placements.size(); ++i) {
      const model::Placement& placement = decision.placements[i];
      const auto queued = by_key_.find("queued " + placement.gang);
      Workload& workload = queued != by_key_.end()  ? plan_.workloads[queued->second]
                           : placement.gang.empty() ? of_pod(placement.pod)
                                                    : of_gang(placement.gang);
      workload.placements.push_back(i);
      workload.after_preemption |= placement.after_preemption;
    }
    for (const auto& [name, pod] : pods_) add_pod(name, *pod);
    for (const model::Preemption& victim : decision.preemptions) {
      const auto it = by_decided_.find(victim.by);
      if (it != by_decided_.end()) ++plan_.workloads[it->second].victims;
    }
    for (const model::Admission& admission : decision.admissions) take_admission(admission);
    for (const model::Eviction& victim : decision.evictions) {
      const auto it = by_key_.find("queued " + victim.by);
      if (it != by_key_.end()) plan_.workloads[it->second].victims += count_of(victim.workload);
    }
    for (Workload& workload : plan_.workloads) find_facts(workload);
  }

 private:
  Workload& of_key(const std::string& key, Workload::Kind kind, const std::string& name) {
    const auto [it, fresh] = by_key_.emplace(key, plan_.workloads.size());
    if (fresh) {
      plan_.workloads.emplace_back();
      plan_.workloads.back().kind = kind;
      plan_.workloads.back().name = name;
      plan_.workloads.back().was_running = true;  // until a pending pod of it is seen
    }
    return plan_.workloads[it->second];
  }

  Workload& of_gang(const std::string& name) {
    Workload& workload = of_key("gang " + name, Workload::Kind::kGang, name);
    by_decided_.emplace(name, by_key_.at("gang " + name));
    const auto it = gangs_.find(name);
    if (it != gangs_.end()) workload.required_topology = it->second->required_topology;
    return workload;
  }

  Workload& of_queue(const model::Outcome& outcome) {
    Workload& workload =
        of_key("queued " + outcome.workload, Workload::Kind::kQueued, outcome.workload);
    workload.was_running = false;
    workload.queue = outcome.queue;
    workload.pods = outcome.pods;
    const auto it = queued_.find(outcome.workload);
    if (it == queued_.end()) return workload;
    const model::WorkloadSpec& spec = *it->second;
    workload.priority = spec.priority;
    workload.asked_milli = 0;
    bool first = true;
    for (const model::PodSetSpec& set : spec.pod_sets) {
      workload.asked_milli += asked_of(set.pod->gpu) * set.count;
      workload.mixed |= !first && !(workload.sample.gpu == set.pod->gpu);
      if (first) workload.sample = *set.pod;
      if (first) workload.required_topology = set.topology.level;
      first = false;
      for (const auto& pod : set.pods) workload.names.insert(pod);
    }
    if (!spec.owner.empty()) {
      workload.names.insert(spec.ns + '/' + spec.owner.substr(spec.owner.find('/') + 1));
    }
    return workload;
  }

  int count_of(const std::string& workload) const {
    const auto it = queued_.find(workload);
    int pods = 0;
    if (it == queued_.end()) return pods;
    for (const model::PodSetSpec& set : it->second->pod_sets) pods += set.count;
    return pods;
  }

  void take_admission(const model::Admission& admission) {
    const auto it = by_key_.find("queued " + admission.workload);
    if (it == by_key_.end()) return;
    Workload& workload = plan_.workloads[it->second];
    workload.after_preemption |= admission.after_preemption;
    workload.quota_only = workload.placements.empty();
    std::set<std::string> flavors;
    for (const auto& set : admission.pod_sets) {
      for (const auto& [resource, flavor] : set.flavors) flavors.insert(flavor);
    }
    workload.flavors.clear();
    for (const auto& flavor : flavors) {
      workload.flavors += (workload.flavors.empty() ? "" : ", ") + flavor;
    }
  }

  // The key of the workload a pod belongs to when it is not of a gang.
  static std::string key_of(const PodSpec& pod) {
    return pod.owner.empty() ? "pod " + name_of(pod) : "owner " + pod.ns + ' ' + pod.owner;
  }

  Workload& of_pod(const std::string& name) {
    const auto it = pods_.find(name);
    const PodSpec* pod = it == pods_.end() ? nullptr : it->second;
    Workload* workload = nullptr;
    if (pod == nullptr || pod->owner.empty()) {
      workload = &of_key("pod " + name, Workload::Kind::kPod, name);
    } else {
      const std::string owner = pod->owner.substr(pod->owner.find('/') + 1);
      workload = &of_key(key_of(*pod), Workload::Kind::kOwner, pod->ns + '/' + owner);
    }
    by_decided_.emplace(name, static_cast<std::size_t>(workload - plan_.workloads.data()));
    return *workload;
  }

  // Counts the pod in its workload, where that was decided at all.
  void add_pod(const std::string& name, const PodSpec& pod) {
    if (pod.queued) return;
    auto it = pod.gang.empty() ? by_key_.end() : by_key_.find("gang " + pod.ns + '/' + pod.gang);
    if (it == by_key_.end()) it = by_key_.find(key_of(pod));
    if (it == by_key_.end()) return;
    Workload& workload = plan_.workloads[it->second];
    const bool victim = evicted().contains(name);
    const bool runs = !pod.node_name.empty() && nodes_.contains(pod.node_name);
    if (runs && !victim) {
      ++workload.running;
      return;
    }
    if (!runs) workload.was_running = false;
    workload.names.insert(name);
    if (!pod.owner.empty()) {
      workload.names.insert(pod.ns + '/' + pod.owner.substr(pod.owner.find('/') + 1));
    }
    if (workload.pods == 0) {
      workload.sample = pod;
      workload.priority = pod.priority;
    }
    workload.mixed |= !(workload.sample.gpu == pod.gpu);
    workload.priority = std::max(workload.priority, pod.priority);
    workload.asked_milli += asked_of(pod.gpu);
    ++workload.pods;
  }

  const std::set<std::string, std::less<>>& evicted() {
    if (evicted_.empty()) {
      for (const model::Preemption& victim : plan_.decision.preemptions) {
        evicted_.insert(victim.pod);
      }
    }
    return evicted_;
  }

  void find_facts(Workload& workload) {
    std::set<std::string, std::less<>> nodes;
    std::set<std::string, std::less<>> domains;
    workload.one_clique = !workload.placements.empty();
    for (const std::size_t i : workload.placements) {
      const model::Placement& placement = plan_.decision.placements[i];
      nodes.insert(placement.node);
      const auto it = nodes_.find(placement.node);
      if (it == nodes_.end()) continue;
      workload.one_clique &= one_clique(*it->second, placement.gpus);
      const auto label = it->second->labels.find(workload.required_topology);
      if (label != it->second->labels.end()) domains.insert(label->second);
      workload.placed_milli += held_milli(plan_.nodes, placement.node, placement.pod);
    }
    workload.apart = nodes.size() > 1 && nodes.size() == workload.placements.size();
    if (domains.size() == 1) workload.domain = *domains.begin();
  }

  static bool one_clique(const model::NodeSpec& node, const std::vector<int>& gpus) {
    const std::set<int> devices(gpus.begin(), gpus.end());  // one may stand there once per share
    if (devices.size() < 2) return false;
    std::set<int> cliques;
    for (const int g : devices) {
      if (static_cast<std::size_t>(g) >= node.gpus.size()) return false;
      cliques.insert(node.gpus[static_cast<std::size_t>(g)].nvlink_clique);
    }
    return cliques.size() == 1 && *cliques.begin() >= 0;
  }

  PlanResult& plan_;
  PodsByName pods_;
  NodesByName nodes_;
  std::map<std::string, const model::GangSpec*, std::less<>> gangs_;
  std::map<std::string, const model::WorkloadSpec*, std::less<>> queued_;
  std::map<std::string, std::size_t, std::less<>> by_key_;
  std::map<std::string, std::size_t, std::less<>> by_decided_;  // outcome's name to workload
  std::set<std::string, std::less<>> evicted_;
};

}  // namespace

PlanResult make_plan(const kinds::Inputs& inputs, const PlanOptions& options) {
  const model::Policy policy = options.policy(inputs);
  model::SnapshotBuilder builder(schedule::keeps_apart(policy.placement));
  for (const model::NodeSpec& node : inputs.nodes) builder.upsert_node(node);
  for (const model::GangSpec& gang : inputs.gangs) builder.upsert_gang(gang);
  for (const PodSpec& pod : inputs.pods) builder.upsert_pod(pod);
  builder.set_budgets(inputs.budgets);

  PlanResult plan;
  std::vector<NodeUse> nodes_before;
  plan.before = sum_up(builder.state(), nodes_before);
  std::optional<decide::QueueSetting> queues;
  if (!inputs.queues.queues.empty() || !inputs.queues.workloads.empty()) {
    queues.emplace(inputs.queues, inputs.nodes, inputs.pods);
    queues->quota_only = options.quota_only;
    queues->policy = policy.queues;
  }
  decide::Run run =
      decide::run(builder, policy.placement, options.now_ns, options.cycles.value_or(kMaxCycles),
                  {}, queues ? &*queues : nullptr);
  plan.decision = std::move(run.decision);
  add_strays(inputs, plan.decision);
  for (const model::Preemption& victim : plan.decision.preemptions) {
    plan.preempted_milli.push_back(held_milli(nodes_before, victim.node, victim.pod));
  }
  plan.cycles = run.cycles;
  plan.stable = run.stable;
  plan.after = sum_up(builder.state(), plan.nodes);
  plan.ignored = inputs.ignored;
  plan.warnings = inputs.warnings;
  plan.invalid = inputs.invalid;
  plan.notes = inputs.notes;
  plan.counts = inputs.counts;
  WorkloadGrouper(inputs, plan).run();
  for (Workload& workload : plan.workloads) {
    for (const std::size_t i : workload.waiting) {
      workload.help.push_back(what_helps(workload, plan.decision.outcomes[i], inputs));
    }
  }
  return plan;
}

PlanResult unreadable_plan(std::vector<kinds::Note> troubles) {
  PlanResult plan;
  plan.readable = false;
  plan.counts.invalid = troubles.size();
  plan.invalid = std::move(troubles);
  return plan;
}

int exit_code(const PlanResult& plan) {
  if (!plan.readable || plan.counts.invalid > 0 || !plan.invalid.empty()) return kExitInvalid;
  for (const Workload& workload : plan.workloads) {
    if (!workload.placed()) return kExitWaits;
  }
  return kExitPlaced;
}

}  // namespace berth::people
