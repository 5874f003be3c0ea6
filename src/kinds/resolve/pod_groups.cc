#include "kinds/resolve/pod_groups.h"

#include <algorithm>

#include "kinds/queue_marks.h"

namespace berth::kinds {

PodGroups::PodGroups(Resolution& all, const PodReferences& references)
    : Part(all), references_(references) {
  for (Found<GroupObject>& group : in_.groups) {
    model::GangSpec& gang = group.object.gang;
    // In a cluster that lives its author may write the number: the class says it.
    const bool numbered = gang.priority.has_value();
    if (options_.live) gang.priority.reset();
    if (!gang.priority && !group.object.priority_class.empty()) {
      const auto priority = references_.priorities().find(group.object.priority_class);
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
    if (group.object.kai) kai_.insert(key);
    places_.emplace(key, std::pair(group.origin, group.shown));
    const std::string queue = label_value(group.object.meta, kQueueLabel);
    if (!queue.empty()) kueue_queues_.emplace(key, queue);
  }
  check_workload_refs();
}

// A PodGroup made from an upstream Workload waits in the queue that the Workload names.
void PodGroups::check_workload_refs() {
  for (const Found<GroupObject>& group : in_.groups) {
    const GroupObject& object = group.object;
    if (object.workload.empty() || in_.upstream_workloads.empty()) continue;
    const auto found = std::find_if(
        in_.upstream_workloads.begin(), in_.upstream_workloads.end(), [&](const auto& w) {
          return w.object.meta.ns == object.meta.ns && w.object.meta.name == object.workload;
        });
    if (found == in_.upstream_workloads.end()) {
      in_.warn(group, "spec.workloadRef.workloadName",
               "found " + quoted(object.workload) + ", want a Workload of the namespace");
      continue;
    }
    if (!object.workload_template.empty() &&
        !found->object.templates.contains(object.workload_template)) {
      in_.warn(group, "spec.workloadRef.templateName",
               "found " + quoted(object.workload_template) + ", want a template of Workload " +
                   quoted(object.workload));
    }
    const std::string queue = label_value(found->object.meta, kQueueLabel);
    if (!queue.empty()) kueue_queues_.emplace(qualified(object.meta.ns, object.meta.name), queue);
  }
}

template <class T>
void PodGroups::take_topology(const Found<T>& at, const Membership& member,
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
bool PodGroups::join(const Found<T>& at, const std::string& path, PodObject& pod) {
  const Membership& member = pod.member;
  if (member.group.empty()) return true;
  const std::string key = qualified(pod.spec.ns, member.group);
  auto it = gangs_.find(key);
  if (it == gangs_.end() && member.group_min) {
    model::GangSpec gang;
    gang.ns = pod.spec.ns;
    gang.name = member.group;
    gang.min_member = *member.group_min;
    add(std::move(gang), at.origin, at.shown);
    it = gangs_.find(key);
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
bool PodGroups::settle(const Found<T>& at, const std::string& path, PodObject& pod) {
  const bool priority = references_.settle_priority(at, path, pod);
  return join(at, path, pod) && priority;
}

template bool PodGroups::settle(const Found<PodObject>&, const std::string&, PodObject&);
template bool PodGroups::settle(const Found<JobObject>&, const std::string&, PodObject&);
template bool PodGroups::settle(const Found<VolcanoJob>&, const std::string&, PodObject&);

const model::GangSpec* PodGroups::find(const std::string& key) const {
  const auto it = gangs_.find(key);
  return it == gangs_.end() ? nullptr : &it->second;
}

bool PodGroups::add(model::GangSpec gang, const Origin& at, const std::string& shown) {
  const std::string key = qualified(gang.ns, gang.name);
  if (!gangs_.emplace(key, std::move(gang)).second) return false;
  places_.emplace(key, std::pair(at, shown));
  return true;
}

const std::string* PodGroups::kueue_queue(const std::string& key) const {
  const auto it = kueue_queues_.find(key);
  return it == kueue_queues_.end() ? nullptr : &it->second;
}

void PodGroups::note(const std::string& key, std::string message) {
  const auto& [at, shown] = places_.at(key);
  in_.notes.add(Gathered::note(at, shown, "", std::move(message)));
}

void PodGroups::warn(const std::string& key, std::string path, std::string message) {
  const auto& [at, shown] = places_.at(key);
  in_.warnings.add(Gathered::note(at, shown, std::move(path), std::move(message)));
}

void PodGroups::replace(const std::string& key) {
  replaced_.insert(key);
  gangs_.erase(key);
}

void PodGroups::finish(const KnownNodes& nodes) {
  std::set<std::pair<std::string_view, std::string_view>> with_pods;
  for (const model::PodSpec& pod : out_.pods) with_pods.emplace(pod.ns, pod.gang);
  for (const Found<GroupObject>& group : in_.groups) {
    const model::GangSpec& gang = group.object.gang;
    const bool queued = replaced_.contains(qualified(gang.ns, gang.name));
    if (!queued && !with_pods.contains({gang.ns, gang.name})) {
      in_.notes.add(
          Gathered::note(group.origin, group.shown, "", "no pod of the input belongs to it"));
    }
  }
  for (auto& [key, gang] : gangs_) {
    const auto meaning = [&nodes](std::string& topology) {
      if (!topology.empty()) topology = nodes.label_of(topology);
    };
    meaning(gang.required_topology);
    meaning(gang.preferred_topology);
    for (model::SubgroupSpec& subgroup : gang.subgroups) {
      meaning(subgroup.required_topology);
      meaning(subgroup.preferred_topology);
    }
    out_.gangs.push_back(std::move(gang));
  }
}

}  // namespace berth::kinds
