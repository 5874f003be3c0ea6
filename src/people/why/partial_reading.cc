#include "people/why/partial_reading.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "kinds/kind_table.h"

namespace berth::people {

namespace {

std::string key_of(const model::PodSpec& pod) { return pod.ns + '/' + pod.name; }

bool has_queues(const kinds::Inputs& inputs) {
  return !inputs.queues.queues.empty() || !inputs.queues.workloads.empty();
}

}  // namespace

bool concern_few(const std::vector<ObjectChange>& changes, const kinds::Inputs& inputs) {
  constexpr std::string_view kOfPods[] = {"Pod", "PriorityClass", "PersistentVolume",
                                          "Job", "Namespace",     "PersistentVolumeClaim"};
  return std::all_of(changes.begin(), changes.end(), [&](const ObjectChange& change) {
    if (change.kind == "Job" && change.api_version != "batch/v1") return false;
    if (change.kind == "Namespace" && has_queues(inputs)) return false;  // queues select by labels
    const kinds::KindRow* row = kinds::find_kind_of(change.api_version, change.kind);
    const bool of_few = row != nullptr && row->is_asked(kinds::asked::kRule | kinds::asked::kMaker);
    return of_few ||
           std::find(std::begin(kOfPods), std::end(kOfPods), change.kind) != std::end(kOfPods);
  });
}

kinds::Bound beside(const Unit& unit, const std::vector<ObjectChange>& changes,
                    const kinds::Inputs& inputs) {
  kinds::Bound out;
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

Result<PartialReading> compare(const Trials& trials, kinds::Inputs part, const kinds::Bound& read,
                               const std::vector<ObjectChange>& changes, const ObjectSource* source,
                               const Subject& subject) {
  const kinds::Inputs& inputs = trials.inputs();
  PartialReading out;
  out.on = &trials;
  out.part = std::make_unique<const kinds::Inputs>(std::move(part));
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

bool starts(const PartialReading& read) {
  if (read.unit.state != Unit::State::kPending) return read.unit.state == Unit::State::kRunning;
  return read.on->run(read.draft, read.unit, false).starts;
}

}  // namespace berth::people
