// Pods and Jobs against everything else in the input.
#include <algorithm>
#include <type_traits>

#include "kinds/resolver.h"

namespace berth::kinds {

template <class T>
bool Resolver::settle_priority(const Found<T>& at, const std::string& path, PodObject& pod) {
  const auto resolved = priorities_.find(pod.spec.priority_class);
  if (!resolved && !pod.priority) {
    const std::string where = path + "spec.priorityClassName";
    const std::string message =
        "found " + quoted(pod.spec.priority_class) +
        ", want a PriorityClass of the input: add priorityclasses to what kubectl gets";
    if (pod.spec.node_name.empty()) {
      in_.refuse(at, where, message);
      return false;
    }
    in_.warn(at, where, message + "; it runs, so priority 0 is assumed");
  }
  if (resolved) {
    pod.spec.priority = resolved->value;
    pod.spec.preempts = resolved->preempts;
    pod.spec.priority_class = resolved->name;
  }
  // The numbers of a pod are the API server's own; those of a template are anybody's, and it
  // refuses pods that are made with them.
  constexpr bool kPod = std::is_same_v<T, PodObject>;
  if (pod.priority && (kPod || !resolved)) pod.spec.priority = *pod.priority;
  if (pod.preempts && (kPod || !resolved)) pod.spec.preempts = *pod.preempts;
  return true;
}

template bool Resolver::settle_priority(const Found<JobObject>&, const std::string&, PodObject&);
template bool Resolver::settle_priority(const Found<QueuedMaker>&, const std::string&, PodObject&);

template <class T>
void Resolver::take_topology(const Found<T>& at, const Membership& member,
                             const model::PodSpec& pod, model::GangSpec& gang) {
  std::string* required = &gang.required_topology;
  std::string* preferred = &gang.preferred_topology;
  for (model::SubgroupSpec& subgroup : gang.subgroups) {
    if (subgroup.name != pod.subgroup) continue;
    required = &subgroup.required_topology;
    preferred = &subgroup.preferred_topology;
  }
  const auto take = [&](const std::string& wanted, std::string& has) {
    if (wanted.empty() || wanted == has) return;
    if (has.empty()) {
      has = wanted;
    } else {
      in_.warn(at, "metadata.annotations",
               "found topology " + quoted(wanted) + "; the group " + quoted(gang.name) +
                   " already asks for " + quoted(has) + ", which holds");
    }
  };
  take(member.topology.required, *required);
  take(member.topology.preferred, *preferred);
}

template <class T>
bool Resolver::settle_group(const Found<T>& at, const std::string& path, PodObject& pod) {
  const Membership& member = pod.member;
  if (member.group.empty()) return true;
  const std::string key = qualified(pod.spec.ns, member.group);
  auto it = gangs_.find(key);
  if (it == gangs_.end() && member.group_min) {
    model::GangSpec gang;
    gang.ns = pod.spec.ns;
    gang.name = member.group;
    gang.min_member = *member.group_min;
    it = gangs_.emplace(key, std::move(gang)).first;
    gang_places_.emplace(key, std::pair(at.origin, at.shown));
  }
  if (it == gangs_.end()) {
    const std::string message = "found group " + quoted(member.group) +
                                ", want a valid PodGroup of that name in the namespace, or the "
                                "annotation scheduling.volcano.sh/group-min-member";
    if (pod.spec.node_name.empty()) {
      in_.refuse(at, path + "metadata", message);
      return false;
    }
    in_.warn(at, path + "metadata", message + "; it runs, so it counts without a group");
    return true;
  }
  model::GangSpec& gang = it->second;
  pod.spec.gang = member.group;
  const bool listed =
      std::any_of(gang.subgroups.begin(), gang.subgroups.end(),
                  [&member](const model::SubgroupSpec& s) { return s.name == member.subgroup; });
  if (listed) pod.spec.subgroup = member.subgroup;
  if (gang.queue.empty()) gang.queue = pod.spec.queue;
  take_topology(at, member, pod.spec, gang);
  return true;
}

template <class T>
bool Resolver::settle(const Found<T>& at, const std::string& path, PodObject& pod) {
  const bool priority = settle_priority(at, path, pod);
  return settle_group(at, path, pod) && priority;
}

template bool Resolver::settle(const Found<VolcanoJob>&, const std::string&, PodObject&);

namespace {

// It holds these devices at least, whatever else of it can be read.
void raise_demand(model::PodSpec& pod) {
  using Kind = model::GpuDemandSpec::Kind;
  const auto held = static_cast<int>(pod.gpu_indices.size());
  if (pod.gpu.kind == Kind::kNone) {
    pod.gpu.kind = Kind::kFraction;
    pod.gpu.milli = model::kMilliPerGpu;
  }
  if (held <= pod.gpu.count) return;
  pod.gpu.count = held;
  if (pod.gpu.kind == Kind::kWhole) pod.gpus_by_container = {held};
}

}  // namespace

// Where the pod's GPUs are known: the agent's word first. What cannot be is dropped with a warning.
void Resolver::check_indices(const Found<PodObject>& at, model::PodSpec& pod) {
  const auto held = holders_.find(pod.uid);
  const bool by_agent =
      !pod.uid.empty() && held != holders_.end() && held->second.node == pod.node_name;
  if (by_agent) {
    std::vector<int> indices = held->second.indices;
    std::sort(indices.begin(), indices.end());
    indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
    if (!pod.gpu_indices.empty() && pod.gpu_indices != indices) {
      in_.warn(at, "metadata.annotations",
               "found berth.dev/gpus other than what the GpuNode reports; the GpuNode holds");
    }
    pod.gpu_indices = std::move(indices);
  }
  if (pod.gpu_indices.empty()) return;
  const auto node = std::lower_bound(
      out_.nodes.begin(), out_.nodes.end(), pod.node_name,
      [](const model::NodeSpec& n, const std::string& name) { return n.name < name; });
  if (node == out_.nodes.end() || node->name != pod.node_name) return;
  const bool on_node =
      std::all_of(pod.gpu_indices.begin(), pod.gpu_indices.end(), [&node](int index) {
        return std::any_of(node->gpus.begin(), node->gpus.end(),
                           [index](const model::GpuSpec& g) { return g.index == index; });
      });
  if (on_node && (by_agent || !at.object.gpus_read)) raise_demand(pod);
  using Kind = model::GpuDemandSpec::Kind;
  const bool by_device = pod.gpu.kind == Kind::kFraction || pod.gpu.kind == Kind::kMemory ||
                         (pod.gpu.kind == Kind::kWhole && node->shares_per_gpu == 1);
  const auto& held_now = pod.gpu_indices;  // sorted
  const bool once = std::adjacent_find(held_now.begin(), held_now.end()) == held_now.end();
  const auto asked = static_cast<std::size_t>(pod.gpu.count);
  const bool fits = pod.gpu.kind != Kind::kNone &&
                    (by_device ? once && held_now.size() == asked : held_now.size() <= asked);
  if (on_node && fits) return;
  in_.warn(at, "metadata.annotations",
           on_node ? "found GPU indices that do not go with what the pod asks for; not used"
                   : "found GPU indices that the node does not have; not used");
  pod.gpu_indices.clear();
}

void Resolver::add_pod(Found<PodObject>& found) {
  model::PodSpec& pod = found.object.spec;
  std::vector<std::string> warnings;
  if (pod.node_name.empty()) volumes_.resolve(found.object.claims, pod, warnings);
  for (std::string& warning : warnings) in_.warn(found, "spec.volumes", std::move(warning));
  if (!pod.node_name.empty()) {
    check_indices(found, pod);
    const auto node = std::lower_bound(
        out_.nodes.begin(), out_.nodes.end(), pod.node_name,
        [](const model::NodeSpec& n, const std::string& name) { return n.name < name; });
    if (node == out_.nodes.end() || node->name != pod.node_name) {
      ++in_.counts.stray_pods;
      in_.warn(found, "spec.nodeName",
               "found node " + quoted(pod.node_name) +
                   ", which is not among the valid nodes of the input; the pod holds nothing");
    }
  }
  const std::string key = qualified(pod.ns, pod.name);
  const Meta& meta = found.object.meta;
  if (meta.labels.contains(kQueueLabel) || !default_queue(meta).empty()) {
    pod_at_.emplace(key, out_.pods.size());
  }
  if (pod.gated && !found.object.other_gates) kueue_gated_.insert(key);
  out_.pods.push_back(std::move(pod));
}

void Resolver::pods() {
  for (Found<PodObject>& found : in_.pods) {
    if (found.object.finished()) {
      ++in_.counts.finished_pods;
    } else if (settle(found, "", found.object)) {
      add_pod(found);
    }
  }
}

bool Resolver::make_job_gang(Found<JobObject>& job, std::vector<PodObject*>& existing) {
  JobObject& object = job.object;
  if (!object.is_gang()) return true;
  model::GangSpec gang;
  gang.ns = object.meta.ns;
  gang.name = object.meta.name;
  gang.min_member = std::max(1, object.wanted());
  gang.queue = object.pod.spec.queue;
  gang.created_ns = object.meta.created_ns;
  gang.required_topology = object.topology.required;
  gang.preferred_topology = object.topology.preferred;
  if (!gangs_.emplace(qualified(gang.ns, gang.name), gang).second) {
    in_.refuse(job, "metadata.name",
               "found a PodGroup of the same name, want another name for the gang of this Job");
    return false;
  }
  gang_places_.emplace(qualified(gang.ns, gang.name), std::pair(job.origin, job.shown));
  object.pod.member.group = gang.name;
  for (PodObject* pod : existing) {
    if (pod->member.group.empty()) pod->member.group = gang.name;
  }
  return true;
}

void Resolver::expand(Found<JobObject>& job, std::vector<PodObject*>& existing,
                      const NameSet& taken) {
  JobObject& object = job.object;
  if (waits_in_queue(job, existing)) return;
  if (object.suspend && !object.finished) {
    ++in_.counts.suspended_jobs;
    in_.notes.add(Gathered::note(job.origin, job.shown, "spec.suspend",
                                 "the Job is suspended; it has no pods"));
  }
  if (object.wanted() == 0 || !make_job_gang(job, existing)) return;
  if (!settle(job, "spec.template.", object.pod) || options_.live) return;
  const std::size_t room = options_.max_job_pods - in_.counts.job_pods;
  if (static_cast<std::size_t>(object.wanted()) > room) {
    return in_.refuse(job, "spec.parallelism",
                      "found " + std::to_string(object.wanted()) + " pods, want at most " +
                          std::to_string(room) + " more over all Jobs of the input");
  }
  const std::vector<const PodObject*> owned(existing.begin(), existing.end());
  bool first = true;
  for (PodObject& pod : missing_pods(object, owned, taken)) {
    std::vector<std::string> warnings;
    if (pod.spec.node_name.empty()) volumes_.resolve(pod.claims, pod.spec, warnings);
    for (std::string& warning : warnings) {  // those of the others are the same
      if (first) in_.warn(job, "spec.template.spec.volumes", std::move(warning));
    }
    first = false;
    ++in_.counts.job_pods;
    out_.pods.push_back(std::move(pod.spec));
  }
}

void Resolver::jobs() {
  std::map<std::string, std::vector<PodObject*>, std::less<>> owned;  // by ns/job
  std::map<std::string, NameSet, std::less<>> names;                  // by namespace
  if (in_.jobs.empty()) return;
  for (Found<PodObject>& pod : in_.pods) {
    names[pod.object.meta.ns].insert(pod.object.meta.name);
    const Owner* owner = pod.object.meta.controller();
    if (owner == nullptr || !owner->is("batch", "Job")) continue;
    owned[qualified(pod.object.meta.ns, owner->name)].push_back(&pod.object);
  }
  for (Found<JobObject>& job : in_.jobs) {
    std::vector<PodObject*>& pods = owned[qualified(job.object.meta.ns, job.object.meta.name)];
    std::erase_if(pods, [&](const PodObject* pod) {
      return !is_uid_of(*pod->meta.controller(), job.object.meta);
    });
    expand(job, pods, names[job.object.meta.ns]);
    // Names made for one Job are taken for the next ("a-1" with index 0, "a" with index 10).
    NameSet& taken = names[job.object.meta.ns];
    for (auto it = out_.pods.rbegin(); it != out_.pods.rend(); ++it) {
      if (it->ns != job.object.meta.ns || it->owner != "Job/" + job.object.meta.name) break;
      taken.insert(it->name);
    }
  }
}

}  // namespace berth::kinds
