// What runs and that no workload holds quota for: who pays for it.
#include <algorithm>

#include "kinds/quota_requests.h"
#include "kinds/resolver.h"

namespace berth::kinds {

// The LocalQueue that a pod's devices count in where nothing says who let it in: the one it was
// started from, the one that it or its group names, or the first of a namespace that requires one;
// "": none. One that leads to a queue that is not for its namespace lets nobody in, so it is not.
std::string Resolver::leftover_local(const model::PodSpec& pod) const {
  const auto own = own_locals_.find(pod.ns);
  if (own == own_locals_.end()) return "";
  const auto is_one = [&](const std::string& local) {
    const auto known = own->second.find(local);
    return known != own->second.end() && is_open_to(known->second, pod.ns);
  };
  for (const std::string_view key : {kLocalQueueLabel, std::string_view(kQueueLabel)}) {
    const auto label = pod.labels.find(std::string(key));
    if (label != pod.labels.end() && is_one(label->second)) return label->second;
  }
  const auto group = group_queues_.find(qualified(pod.ns, pod.gang));
  if (group != group_queues_.end() && is_one(group->second)) return group->second;
  if (!requires_queue(pod)) return "";
  const auto first = std::find_if(own->second.begin(), own->second.end(),
                                  [&](const auto& local) { return is_one(local.first); });
  return first == own->second.end() ? "" : first->first;
}

// One of the namespace that leads to the queue; "": none does.
std::string Resolver::local_to(const std::string& queue, const std::string& ns) const {
  const auto own = own_locals_.find(ns);
  if (own == own_locals_.end()) return "";
  for (const auto& [local, target] : own->second) {
    if (target == queue) return local;
  }
  return "";
}

std::optional<Resolver::Payer> Resolver::payer_of(const model::PodSpec& pod) {
  const std::size_t slash = pod.charged.find('/');
  const std::string by = pod.charged.substr(0, slash);
  const std::string queue = slash == std::string::npos ? "" : pod.charged.substr(slash + 1);
  for (OtherSystem* system : {&volcano_, &kai_}) {
    const auto known = system->cluster_queue.find(queue);
    // Whose author wrote it may not use what his namespace may not.
    if (by == system->root && known != system->cluster_queue.end() &&
        shut_to(pod.ns, queue, *system).empty()) {
      return Payer{known->second, "", system};
    }
  }
  // What stands in its metadata is believed where a LocalQueue leads there; what it was bound with
  // wherever its namespace might be let in by that queue, since a LocalQueue may be taken away by
  // whoever it is to pay for.
  if (pod.charged.starts_with(kKueueCharge)) {
    const std::string by_local = local_to(queue, pod.ns);
    if (!by_local.empty() || (pod.charge_seen && is_open_to(queue, pod.ns))) {
      return Payer{queue, by_local};
    }
  }
  const std::string local = leftover_local(pod);
  if (local.empty()) return std::nullopt;
  return Payer{own_locals_.find(pod.ns)->second.at(local), local};
}

// Of its queue's flavors the ones of the node that it is on.
void Resolver::flavors_of_node(const std::string& name, model::WorkloadSpec& spec) const {
  const model::NodeSpec* node = node_known(name);
  const model::QueueSpec* queue = queue_named(spec.admission->queue);
  if (node == nullptr || queue == nullptr) return;
  const auto is_of = [&](const std::string& named) {
    const model::FlavorSpec* flavor = flavor_named(named);
    if (flavor == nullptr) return false;
    const auto& wanted = flavor->node_labels;
    return std::all_of(wanted.begin(), wanted.end(), [&](const auto& want) {
      const auto has = node->labels.find(want.first);
      return has != node->labels.end() && has->second == want.second;
    });
  };
  for (const model::ResourceGroup& group : queue->groups) {
    const auto flavor = std::find_if(group.flavors.begin(), group.flavors.end(),
                                     [&](const auto& f) { return is_of(f.flavor); });
    if (flavor == group.flavors.end()) continue;
    for (const std::string& resource : group.covered) {
      if (!spec.pod_sets.front().requests.contains(resource)) continue;
      spec.admission->pod_sets.front().flavors[resource] = flavor->flavor;
    }
  }
}

// What runs and is more than its workload holds quota for, or whose workload is gone, counts until
// it is gone as well: quota that is given back before its GPUs are would be given twice.
void Resolver::count_leftovers() {
  if (!options_.live) return;
  for (model::PodSpec& pod : out_.pods) {
    if (pod.node_name.empty()) continue;
    const std::string name = qualified(pod.ns, pod.name);
    if (counted_.contains(name) || let_in_.contains(name)) continue;
    if (pod.terminating && !node_answers(pod.node_name)) continue;
    if (!node_known(pod.node_name)) continue;  // nobody runs it
    if (const auto payer = payer_of(pod)) count_leftover(pod, *payer);
  }
}

void Resolver::count_leftover(model::PodSpec& pod, const Payer& payer) {
  model::Amounts requests = quota_requests(pod, out_.queues.config);
  if (!model::has_devices(requests)) return;
  pod.leftover = true;
  model::WorkloadSpec spec = workload_of(pod, payer.local);
  spec.leftover = true;
  spec.charge = pod.charged;
  if (const auto named = pod.labels.find(kClassLabel); named != pod.labels.end()) {
    spec.priority = workload_class(named->second).value_or(spec.priority);
  }
  model::PodSetSpec set;
  set.name = "main";
  set.pods = {qualified(pod.ns, pod.name)};
  set.pod = std::make_shared<const model::PodSpec>(as_template(pod));
  set.requests = std::move(requests);
  spec.pod_sets.push_back(std::move(set));
  spec.admission.emplace();
  spec.admission->pod_sets.push_back({.name = "main", .count = 1});
  spec.admitted = true;
  spec.reserved_ns = spec.admitted_ns = std::max(pod.created_ns, pod.started_ns);
  if (pod.terminating) {  // it is on its way: nobody need be told to leave for that room
    spec.evicted = "Deleted";
    spec.evicted_ns = spec.reserved_ns;
  }
  spec.admission->queue = payer.queue;
  if (payer.system != nullptr) {
    for (const auto& [resource, amount] : spec.pod_sets.front().requests) {
      payer.system->resources.insert(resource);
      spec.admission->pod_sets.front().flavors[resource] = any_flavor_;
    }
  } else {
    flavors_of_node(pod.node_name, spec);
  }
  mend_admission(spec);
  add_workload(std::move(spec));
}

}  // namespace berth::kinds
