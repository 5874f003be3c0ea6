#include "explain/anew.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace berth::explain {

namespace {

std::string key_of(const model::PodSpec& pod) { return pod.ns + '/' + pod.name; }

bool has_queues(const objects::Inputs& inputs) {
  return !inputs.queues.queues.empty() || !inputs.queues.workloads.empty();
}

}  // namespace

bool concern_few(const std::vector<ObjectChange>& changes, const objects::Inputs& inputs) {
  constexpr std::string_view kOfPods[] = {"Pod",
                                          "PriorityClass",
                                          "PersistentVolume",
                                          "PersistentVolumeClaim",
                                          "ResourceQuota",
                                          "LimitRange",
                                          "ServiceAccount",
                                          "RuntimeClass",
                                          "StorageClass",
                                          "Deployment",
                                          "ReplicaSet",
                                          "StatefulSet",
                                          "CronJob",
                                          "JobSet",
                                          "DeviceClass",
                                          "ResourceClaim",
                                          "Namespace",
                                          "ResourceClaimTemplate",
                                          "Job"};
  return std::all_of(changes.begin(), changes.end(), [&](const ObjectChange& change) {
    if (change.kind == "Job" && change.api_version != "batch/v1") return false;
    if (change.kind == "Namespace" && has_queues(inputs)) return false;  // queues select by labels
    return std::find(std::begin(kOfPods), std::end(kOfPods), change.kind) != std::end(kOfPods);
  });
}

objects::Bound beside(const Unit& unit, const std::vector<ObjectChange>& changes,
                      const objects::Inputs& inputs) {
  objects::Bound out;
  for (const model::PodSpec* pod : unit.running) {
    out.pods.insert(key_of(*pod));
    out.nodes.insert(pod->node_name);
  }
  std::set<std::string> changed;
  for (const ObjectChange& change : changes) {
    if (change.kind == "Pod" && change.after) changed.insert(change.ns + '/' + change.name);
  }
  for (const model::PodSpec& pod : inputs.pods) {
    if (changed.empty()) break;
    if (pod.node_name.empty() || !changed.contains(key_of(pod))) continue;
    out.pods.insert(key_of(pod));
    out.nodes.insert(pod.node_name);
  }
  return out;
}

Result<Anew> compare(const Trials& trials, objects::Inputs part, const objects::Bound& read,
                     const std::vector<ObjectChange>& changes, const ObjectSource* source,
                     const Subject& subject) {
  const objects::Inputs& inputs = trials.inputs();
  Anew out;
  out.on = &trials;
  out.part = std::make_unique<const objects::Inputs>(std::move(part));
  BERTH_TRY(out.unit, find_unit(*out.part, source, subject));
  std::map<std::string, const model::PodSpec*> before;
  for (const model::PodSpec& pod : inputs.pods) {
    std::string key = pod.node_name.empty() || !read.pods.empty() ? key_of(pod) : std::string();
    if (pod.node_name.empty() || read.pods.contains(key)) before.emplace(std::move(key), &pod);
  }
  for (const model::PodSpec& pod : out.part->pods) {
    const std::string key = key_of(pod);
    const auto old = before.find(key);
    if (old == before.end() || !(*old->second == pod)) out.draft.pods.emplace(key, pod);
    if (old != before.end()) before.erase(old);
  }
  for (const auto& [key, pod] : before) {
    if (pod->node_name.empty()) out.draft.gone_pods.insert(key);
  }
  for (const ObjectChange& change : changes) {
    if (change.kind == "Pod" && !change.after) {
      out.draft.gone_pods.insert(change.ns + '/' + change.name);
    }
  }
  std::set<std::string> groups;
  for (const model::GangSpec& gang : inputs.gangs) groups.insert(gang.ns + '/' + gang.name);
  for (const model::GangSpec& gang : out.part->gangs) {
    const std::string key = gang.ns + '/' + gang.name;
    if (&gang == out.unit.gang || !groups.contains(key)) out.draft.gangs.emplace(key, gang);
  }
  if (out.unit.queued != nullptr) {
    out.draft.workloads.emplace(out.unit.decided, *out.unit.queued);
  }
  return out;
}

bool starts(const Anew& anew) {
  if (anew.unit.state != Unit::State::kPending) return anew.unit.state == Unit::State::kRunning;
  return anew.on->run(anew.draft, anew.unit, false).starts;
}

}  // namespace berth::explain
