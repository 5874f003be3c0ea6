// The pods that workloads of queues have or would have.
#include <fmt/format.h>

#include <algorithm>

#include "decide/node_ground.h"

namespace berth::decide {

using admit::Assignment;
using admit::Choice;
using admit::WorkloadId;
using model::PodId;
using schedule::Reservation;
using schedule::TopologyTree;

std::vector<std::string> NodeGround::pod_names(const Known& known, std::size_t set,
                                               int count) const {
  const model::PodSetSpec& spec = known.spec->pod_sets[set];
  std::vector<std::string> out;
  for (const auto& name : spec.pods) {
    if (static_cast<int>(out.size()) >= count) break;
    if (may_have(known, name)) out.push_back(name.substr(name.find('/') + 1));
  }
  // A Job's pods are named after it; those of other workloads after the pod set too.
  const bool job = known.spec->owner.starts_with("Job/");
  const std::string stem = job ? known.spec->owner.substr(4) : known.spec->name + '-' + spec.name;
  for (int i = static_cast<int>(out.size()); static_cast<int>(out.size()) < count; ++i) {
    std::string name = fmt::format("{}-{}", stem, i);
    const std::string key = known.spec->ns + '/' + name;
    if (!may_have(known, key) || index_.pod(key) != nullptr) continue;  // others have that name
    out.push_back(std::move(name));
  }
  return out;
}

model::PodSpec NodeGround::pod_for(const Known& known, std::size_t set, const std::string& name,
                                   const Choice& choice) const {
  const model::PodSpec* existing = index_.pod(known.spec->ns + '/' + name);
  model::PodSpec pod = existing != nullptr ? *existing : *known.spec->pod_sets[set].pod;
  pod.ns = known.spec->ns;
  pod.name = name;
  if (pod.owner.empty()) pod.owner = known.spec->owner;
  pod.node_name.clear();
  pod.gpu_indices.clear();
  pod.queued = true;
  pod.gated = false;
  pod.gang.clear();
  pod.subgroup.clear();
  pod.created_ns = known.spec->created_ns;
  std::set<admit::FlavorId> flavors;
  for (const auto& [resource, flavor] : choice.flavors) flavors.insert(flavor);
  for (const admit::FlavorId f : flavors) {
    const model::FlavorSpec& flavor = book_.flavor(f);
    for (const auto& [key, value] : flavor.node_labels) pod.node_selector[key] = value;
    pod.tolerations.insert(pod.tolerations.end(), flavor.tolerations.begin(),
                           flavor.tolerations.end());
  }
  return pod;
}

std::string NodeGround::key_of(const Assignment& assignment) {
  std::string key;
  for (const Choice& choice : assignment.pod_sets) {
    key += std::to_string(choice.count) + ':';
    for (const auto& [resource, flavor] : choice.flavors) key += std::to_string(flavor) + ',';
    key += ';';
  }
  return key;
}

void NodeGround::make_pods(WorkloadId id, const Assignment& assignment) {
  Known& known = known_.at(id);
  std::string key = key_of(assignment);
  if (known.made == key) return;
  drop_pods(known);
  known.made = std::move(key);
  known.serial = ++serial_;
  known.pods.assign(assignment.pod_sets.size(), {});
  for (std::size_t i = 0; i < known.pods.size(); ++i) {
    const Choice& choice = assignment.pod_sets[i];
    for (const std::string& name : pod_names(known, i, choice.count)) {
      const model::PodSpec pod = pod_for(known, i, name, choice);
      known.names.push_back(pod.ns + '/' + pod.name);
      has_.emplace(known.names.back(), &known);
      known.pods[i].push_back(builder_.upsert_pod(pod));
    }
  }
  made_.insert(id);
  overlay_.reset();
}

void NodeGround::drop_pods(Known& known) {
  if (known.made.empty()) return;
  for (const auto& name : known.names) {
    builder_.remove_pod(name);
    const model::PodSpec* input = index_.pod(name);
    if (input == nullptr) continue;
    model::PodSpec pod = *input;  // waits for its workload
    pod.queued = true;
    pod.node_name.clear();
    pod.gpu_indices.clear();
    builder_.upsert_pod(pod);
  }
  give_up(known, known.names);
  known.names.clear();
  known.pods.clear();
  known.made.clear();
  overlay_.reset();
}

// No other has it; and what runs after its workload let it go is held by what was left of that.
bool NodeGround::may_have(const Known& known, const std::string& name) const {
  const auto it = has_.find(name);
  if (it != has_.end() && it->second != &known) return false;
  const model::PodSpec* pod = index_.pod(name);
  return pod == nullptr || !pod->leftover || known.spec->leftover;
}

void NodeGround::give_up(const Known& known, const std::vector<std::string>& names) {
  for (const auto& name : names) {
    const auto it = has_.find(name);
    if (it != has_.end() && it->second == &known) has_.erase(it);
  }
}

}  // namespace berth::decide
