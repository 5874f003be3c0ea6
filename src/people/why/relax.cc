// Takes a cause away in the model, to see what would hold a workload next.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "decide/schedule/rule_memo.h"
#include "model/amounts.h"
#include "people/why/details.h"

namespace berth::people {

using model::GpuDemandSpec;
using model::PodSpec;
using model::Reason;

namespace {

void no_edit(Tree&, Tree&) {}

bool relax_own(const Situation& s, Draft& draft,
               const std::function<void(model::WorkloadSpec&)>& edit) {
  model::WorkloadSpec* spec = edit_queued(s, draft);
  if (spec != nullptr) edit(*spec);
  return spec != nullptr;
}

// The members that are missing come, or the minimum goes.
bool relax_gang(const Situation& s, Draft& draft) {
  if (s.unit.gang == nullptr) {
    return relax_own(s, draft, [](model::WorkloadSpec& spec) { spec.incomplete.clear(); });
  }
  const int exist = static_cast<int>(s.unit.pending.size() + s.unit.running.size());
  if (!s.unit.gang->subgroups.empty() || s.unit.pending.empty()) {
    model::GangSpec gang = *s.unit.gang;
    gang.min_member = 1;
    gang.subgroups.clear();
    draft.gangs[s.unit.decided] = gang;
    return true;
  }
  for (int i = exist; i < s.unit.gang->min_member && i < exist + 1000; ++i) {
    PodSpec pod = *s.unit.pending.back();
    pod.name += fmt::format("-missing-{}", i);
    const std::string name = pod.ns + '/' + pod.name;
    draft.own_pods.insert(name);
    draft.pods.emplace(name, std::move(pod));
  }
  return true;
}

// Keys of the taints in the way on the nodes with the least else in the way: where most GPUs are
// free, then that it seems to be meant for, then of most nodes. All keys where nodes were not
// looked at.
std::set<std::string> taints_to_relax(const Situation& s) {
  const auto tolerated = [&s](const model::Taint& taint) {
    return schedule::is_passing_taint(taint.key) ||
           std::any_of(s.sample.tolerations.begin(), s.sample.tolerations.end(),
                       [&](const auto& t) { return tolerates(t, taint); });
  };
  struct Group {
    std::int64_t free_milli = 0;
    int meant = 0;  // taints of a node that it tolerates already
    int nodes = 0;
    auto operator<=>(const Group&) const = default;
  };
  std::map<std::set<std::string>, Group> nearest_groups;
  int least = model::kConstraints + 1;
  for (const NodeView& view : s.picture == nullptr ? std::vector<NodeView>() : s.picture->nodes) {
    const schedule::Blockers all = view.blockers | view.lasting;
    const int bits = std::popcount(all);
    if (view.small || (all & schedule::bit(model::Constraint::kTaints)) == 0 || bits > least) {
      continue;
    }
    if (bits < least) nearest_groups.clear();
    least = bits;
    std::set<std::string> keys;
    int meant = 0;
    for (const model::Taint& taint : s.state->info(view.slot).taints) {
      if (tolerated(taint)) {
        ++meant;
      } else {
        keys.insert(taint.key);
      }
    }
    Group& group = nearest_groups[std::move(keys)];
    group.free_milli += view.free_milli;
    group.meant = std::max(group.meant, meant);
    ++group.nodes;
  }
  const auto most =
      std::max_element(nearest_groups.begin(), nearest_groups.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != nearest_groups.end() && !most->first.empty()) return most->first;
  std::set<std::string> keys;
  for (const model::NodeSpec& node : s.inputs().nodes) {
    for (const model::Taint& taint : node.taints) {
      if (!tolerated(taint)) keys.insert(taint.key);
    }
  }
  return keys;
}

bool relax_taints(const Situation& s, Draft& draft) {
  const std::set<std::string> keys = taints_to_relax(s);
  return edit_pods(
      s, draft,
      [&](PodSpec& pod) {
        for (const std::string& key : keys) {
          pod.tolerations.push_back({.key = key, .op = model::Toleration::Op::kExists});
        }
      },
      no_edit);
}

// What no node has is not asked for, and of more GPUs than any node has one will do, to see what
// else is in the way.
bool relax_size(const Situation& s, Draft& draft) {
  std::map<std::string, std::int64_t> most;
  int gpus = 0, shares = 0;
  for (const model::NodeSpec& node : s.inputs().nodes) {
    const int here = static_cast<int>(node.gpus.size()) * node.shares_per_gpu;
    if (model::offers_gpus(node)) gpus = std::max(gpus, here);
    if (model::offers_shares(node)) shares = std::max(shares, here);
    for (const auto& [resource, amount] : node.allocatable) {
      most[resource] = std::max(most[resource], amount);
    }
  }
  const auto too_many = [&](const PodSpec& pod) {
    const auto& demand = pod.gpu;
    if (demand.kind == GpuDemandSpec::Kind::kMig) {
      const auto it = most.find(demand.mig);
      return it == most.end() || it->second < demand.count;
    }
    if (demand.kind == GpuDemandSpec::Kind::kShared) return demand.count > shares;
    return demand.kind == GpuDemandSpec::Kind::kWhole && demand.count > std::max(1, gpus);
  };
  const auto lacking = [&](const PodSpec& pod) {
    return std::any_of(pod.requests.begin(), pod.requests.end(), [&](const auto& each) {
      const auto it = most.find(each.first);
      return each.second > (it == most.end() ? 0 : it->second);
    });
  };
  if (!too_many(s.sample) && !lacking(s.sample)) return false;
  return edit_pods(
      s, draft,
      [&](PodSpec& pod) {
        std::erase_if(pod.requests, [&](const auto& each) {
          const auto it = most.find(each.first);
          return each.second > (it == most.end() ? 0 : it->second);
        });
        if (!too_many(pod)) return;
        if (pod.gpu.kind != GpuDemandSpec::Kind::kWhole) {
          pod.gpu = {};
          return;
        }
        pod.gpu.count = 1;
        pod.gpus_by_container = {1};
      },
      no_edit);
}

bool relax_quota(const Situation& s, Draft& draft) {
  if (s.unit.queued == nullptr) return false;
  for (model::QueueSpec& queue : edit_rules(s, draft).queues) {
    for (model::ResourceGroup& group : queue.groups) {
      for (model::FlavorQuota& flavor : group.flavors) {
        for (model::ResourceQuota& cell : flavor.resources) {
          cell.nominal = std::numeric_limits<std::int64_t>::max() / 4;
          cell.lending_limit.reset();
        }
      }
    }
  }
  return true;
}

constexpr std::int64_t kPlenty = std::numeric_limits<std::int64_t>::max() / 4;

// Every resource that it asks for has quota without end.
void cover_all(const Situation& s, model::QueueSpec& queue) {
  std::set<std::string> resources;
  for (const model::PodSetSpec& set : s.unit.queued->pod_sets) {
    for (const auto& [resource, amount] : set.requests) resources.insert(resource);
  }
  for (const model::ResourceGroup& group : queue.groups) {
    for (const std::string& covered : group.covered) resources.erase(covered);
  }
  if (queue.groups.empty()) queue.groups.push_back({.flavors = {{.flavor = "\x01flavor"}}});
  model::ResourceGroup& group = queue.groups.front();
  for (const std::string& resource : resources) {
    group.covered.push_back(resource);
    for (model::FlavorQuota& flavor : group.flavors) {
      flavor.resources.push_back({.resource = resource, .nominal = kPlenty});
    }
  }
}

// Flavors that queues name and nobody defined.
void make_flavors(model::QueueRules& queues) {
  std::set<std::string> wanted;
  for (const model::QueueSpec& queue : queues.queues) {
    for (const model::ResourceGroup& group : queue.groups) {
      for (const model::FlavorQuota& quota : group.flavors) wanted.insert(quota.flavor);
    }
  }
  for (const model::FlavorSpec& flavor : queues.flavors) wanted.erase(flavor.name);
  for (const std::string& name : wanted) queues.flavors.push_back({.name = name});
  std::sort(queues.flavors.begin(), queues.flavors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

// Its queue does not exist: another one of the namespace, or one that takes everything. One that
// cannot admit it can.
bool relax_queue(const Situation& s, Draft& draft) {
  if (s.unit.queued == nullptr) return false;
  relax_own(s, draft, [](model::WorkloadSpec& spec) { spec.incomplete.clear(); });
  model::QueueRules& queues = edit_rules(s, draft);
  const auto in_namespace = [&](const auto& local) { return local.ns == s.unit.queued->ns; };
  auto local = std::find_if(
      queues.local_queues.begin(), queues.local_queues.end(),
      [&](const auto& each) { return in_namespace(each) && each.name == s.unit.queued->queue; });
  if (local == queues.local_queues.end()) {
    local = std::find_if(queues.local_queues.begin(), queues.local_queues.end(), in_namespace);
    if (local == queues.local_queues.end()) return false;
    relax_own(s, draft, [&](model::WorkloadSpec& spec) { spec.queue = local->name; });
    return true;
  }
  const auto queue = std::find_if(queues.queues.begin(), queues.queues.end(),
                                  [&](const auto& each) { return each.name == local->queue; });
  if (queue == queues.queues.end()) {
    model::QueueSpec made{.name = local->queue, .namespaces = text::Selector()};
    cover_all(s, made);
    queues.queues.push_back(std::move(made));
    std::sort(queues.queues.begin(), queues.queues.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
  } else {
    queue->namespaces = text::Selector();
    queue->checks.clear();
  }
  make_flavors(queues);
  return true;
}

// Its queue takes its namespace.
bool relax_door(const Situation& s, Draft& draft) {
  if (s.unit.queued == nullptr) return false;
  const std::string ns = s.unit.queued->ns, name = s.unit.queued->queue;
  relax_own(s, draft, [](model::WorkloadSpec& spec) { spec.incomplete.clear(); });
  model::QueueRules& queues = edit_rules(s, draft);
  const bool known = std::any_of(queues.queues.begin(), queues.queues.end(),
                                 [&](const auto& queue) { return queue.name == name; });
  if (!known) return false;
  queues.local_queues.push_back({.ns = ns, .name = name, .queue = name, .consumed = {}});
  std::sort(
      queues.local_queues.begin(), queues.local_queues.end(),
      [](const auto& a, const auto& b) { return std::tie(a.ns, a.name) < std::tie(b.ns, b.name); });
  return true;
}

bool relax_hold(const Situation& s, Draft& draft) {
  model::QueueRules& queues = edit_rules(s, draft);
  for (model::QueueSpec& queue : queues.queues) queue.stop = model::StopPolicy::kNone;
  for (model::LocalQueueSpec& queue : queues.local_queues) queue.stop = model::StopPolicy::kNone;
  return relax_own(s, draft, [](model::WorkloadSpec& spec) {
    spec.requeue_at_ns = std::min<std::int64_t>(spec.requeue_at_ns, 1);
  });
}

// Its own selector goes, and labels of flavors that no node has.
bool relax_selector(const Situation& s, Draft& draft) {
  const auto on_a_node = [&](const auto& label) {
    return std::any_of(s.inputs().nodes.begin(), s.inputs().nodes.end(), [&](const auto& node) {
      const auto it = node.labels.find(label.first);
      return it != node.labels.end() && it->second == label.second;
    });
  };
  if (s.unit.queued != nullptr) {
    for (model::FlavorSpec& flavor : edit_rules(s, draft).flavors) {
      std::erase_if(flavor.node_labels, [&](const auto& label) { return !on_a_node(label); });
    }
  }
  return edit_pods(s, draft, [](PodSpec& pod) { pod.node_selector.clear(); }, no_edit);
}

// Rules of a pod that no flavor goes with: of its selector the labels that flavors have otherwise,
// else its affinity.
void fit_flavors(const std::vector<model::FlavorSpec>& flavors, PodSpec& pod) {
  const std::size_t dropped = std::erase_if(pod.node_selector, [&](const auto& label) {
    return std::any_of(flavors.begin(), flavors.end(), [&](const model::FlavorSpec& flavor) {
      const auto it = flavor.node_labels.find(label.first);
      return it != flavor.node_labels.end() && it->second != label.second;
    });
  });
  if (dropped == 0) pod.required_nodes.clear();
}

// Taints of flavors go and every resource is covered; where neither is the matter, rules of the
// pod go.
bool relax_flavor(const Situation& s, Draft& draft) {
  if (s.unit.queued == nullptr) return false;
  model::QueueRules& queues = edit_rules(s, draft);
  bool changed = false;
  for (model::QueueSpec& queue : queues.queues) {
    const model::QueueSpec before = queue;
    cover_all(s, queue);
    changed |= !(before == queue);
  }
  const auto tolerated = [&s](const model::Taint& taint) {
    return std::any_of(s.sample.tolerations.begin(), s.sample.tolerations.end(),
                       [&](const auto& t) { return tolerates(t, taint); });
  };
  for (model::FlavorSpec& flavor : queues.flavors) {
    changed |= std::erase_if(flavor.node_taints, [&](const auto& t) { return !tolerated(t); }) > 0;
  }
  if (changed) return true;
  const std::vector<model::FlavorSpec> flavors = queues.flavors;
  return edit_pods(s, draft, [&](PodSpec& pod) { fit_flavors(flavors, pod); }, no_edit);
}

void drop_rules(PodSpec& pod) {
  pod.affinity.clear();
  pod.anti_affinity.clear();
  pod.preferred_affinity.clear();
  pod.preferred_anti_affinity.clear();
  pod.spread.clear();
  pod.required_nodes.clear();
  pod.preferred_nodes.clear();
}

}  // namespace

bool relax(const Situation& s, Reason reason, Draft& draft) {
  switch (reason) {
    case Reason::kGated:
      relax_own(s, draft, [](model::WorkloadSpec& spec) { spec.incomplete.clear(); });
      return edit_pods(s, draft, [](PodSpec& pod) { pod.gated = false; }, no_edit);
    case Reason::kVolumeMissing:
      return edit_pods(s, draft, [](PodSpec& pod) { pod.volume_missing.clear(); }, no_edit);
    case Reason::kResourceClaimNotRead:
      return edit_pods(s, draft, [](PodSpec& pod) { pod.unread_claims = false; }, no_edit);
    case Reason::kTooManyRules:
      return edit_pods(s, draft, drop_rules, no_edit);
    case Reason::kGangIncomplete:
      return relax_gang(s, draft);
    case Reason::kNeverFits:
      return relax_size(s, draft);
    case Reason::kTaintNotTolerated:
      return relax_taints(s, draft);
    case Reason::kNodeSelectorMismatch:
      return relax_selector(s, draft);
    case Reason::kNodeAffinityMismatch:
      return edit_pods(s, draft, [](PodSpec& pod) { pod.required_nodes.clear(); }, no_edit);
    case Reason::kVolumeUnreachable:
      return edit_pods(s, draft, [](PodSpec& pod) { pod.volumes.clear(); }, no_edit);
    case Reason::kGpuModelMismatch:
      return edit_pods(s, draft, [](PodSpec& pod) { pod.gpu_models.clear(); }, no_edit);
    case Reason::kGpuMemoryTooSmall:
      return edit_pods(s, draft, [](PodSpec& pod) { pod.gpu_min_memory_mib = 0; }, no_edit);
    case Reason::kNoMatchingFlavor:
      return relax_flavor(s, draft);
    case Reason::kMisconfigured:
      return relax_queue(s, draft);
    case Reason::kQueueRequired:
      if (s.unit.queued != nullptr) return relax_queue(s, draft);
      return edit_pods(s, draft, [](PodSpec& pod) { pod.needs_queue = false; }, no_edit);
    case Reason::kQueueNotAllowed:
      return relax_door(s, draft);
    case Reason::kDeactivated:
      return relax_own(s, draft, [](model::WorkloadSpec& spec) { spec.active = true; });
    case Reason::kAdmissionGated:
      return relax_own(s, draft, [](model::WorkloadSpec& spec) { spec.held_by.clear(); });
    case Reason::kOnHold:
      return relax_hold(s, draft);
    case Reason::kWaitingForQuota:
    case Reason::kExceedsMaxQuota:
      return relax_quota(s, draft);
    default:
      return false;
  }
}

}  // namespace berth::people
