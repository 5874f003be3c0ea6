#include <algorithm>
#include <map>

#include "kinds/resolve/stages.h"

namespace berth::kinds {

namespace {

constexpr std::string_view kVolcanoJobs = "batch.volcano.sh";  // the group of its Jobs

class VolcanoStage : private Part {
 public:
  VolcanoStage(Resolution& all, const PodReferences& references, PodGroups& groups)
      : Part(all), references_(references), groups_(groups) {}

  void run() {
    if (in_.volcano_jobs.empty()) return;
    std::map<std::string, std::vector<PodObject*>, std::less<>> owned;  // by ns/job
    std::map<std::string, NameSet, std::less<>> names;                  // by namespace
    for (Found<PodObject>& pod : in_.pods) {
      names[pod.object.meta.ns].insert(pod.object.meta.name);
      const Owner* owner = pod.object.meta.controller();
      if (owner == nullptr || !owner->is(kVolcanoJobs, "Job")) continue;
      owned[qualified(pod.object.meta.ns, owner->name)].push_back(&pod.object);
    }
    for (const model::PodSpec& pod : out_.pods) names[pod.ns].insert(pod.name);  // of other Jobs
    std::map<std::string, std::string, std::less<>> groups;                      // by ns/job
    for (const Found<GroupObject>& group : in_.groups) {
      const Meta& meta = group.object.meta;
      for (const Owner& owner : meta.owners) {
        if (owner.is(kVolcanoJobs, "Job"))
          groups.emplace(qualified(meta.ns, owner.name), meta.name);
      }
    }
    for (const Found<VolcanoJob>& job : in_.volcano_jobs) {
      const VolcanoJob& object = job.object;
      if (object.finished) continue;
      std::size_t pods = 0;
      for (const VolcanoTask& task : object.tasks) pods += static_cast<std::size_t>(task.replicas);
      const std::size_t room = options_.max_job_pods - in_.counts.job_pods;
      if (pods > room) {
        in_.refuse(job, "spec.tasks",
                   "found " + std::to_string(pods) + " pods, want at most " + std::to_string(room) +
                       " more over all Jobs of the input");
        continue;
      }
      const std::string key = qualified(object.meta.ns, object.meta.name);
      const auto group = groups.find(key);
      std::erase_if(owned[key], [&](const PodObject* pod) {
        return !is_uid_of(*pod->meta.controller(), object.meta);
      });
      const std::string gang =
          volcano_gang(job, group == groups.end() ? "" : group->second, owned[key]);
      for (std::size_t i = 0; !gang.empty() && i < object.tasks.size(); ++i) {
        expand_task(job, i, gang, names[object.meta.ns]);
      }
    }
  }

 private:
  // The group of a Job's pods, made where there is none; "" when the Job is refused. name: of the
  // PodGroup that the Job owns, or empty.
  std::string volcano_gang(const Found<VolcanoJob>& job, std::string name,
                           std::vector<PodObject*>& existing) {
    const VolcanoJob& object = job.object;
    for (const PodObject* pod : existing) {
      if (name.empty()) name = pod->member.group;
    }
    const bool own = name.empty();
    if (own) name = object.meta.name;
    if (own && groups_.find(qualified(object.meta.ns, name)) != nullptr) {
      in_.refuse(job, "metadata.name",
                 "found a PodGroup of the same name, want another name for the gang of this Job");
      return {};
    }
    model::GangSpec gang;
    gang.ns = object.meta.ns;
    gang.name = name;
    gang.min_member = std::max(1, object.min_available);
    gang.queue = object.queue;
    gang.created_ns = object.meta.created_ns;
    for (const VolcanoTask& task : object.tasks) {
      model::SubgroupSpec sub;
      sub.name = task.name;
      sub.min_member = task.min_available.value_or(0);
      gang.subgroups.push_back(std::move(sub));
    }
    std::sort(gang.subgroups.begin(), gang.subgroups.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    if (!object.priority_class.empty()) {
      const auto priority = references_.priorities().find(object.priority_class);
      if (!priority) {
        in_.refuse(
            job, "spec.priorityClassName",
            "found " + quoted(object.priority_class) +
                ", want a PriorityClass of the input: add priorityclasses to what kubectl gets");
        return {};
      }
      gang.priority = priority->value;
    }
    groups_.add(std::move(gang), job.origin, job.shown);  // the Job's own may be there
    for (PodObject* pod : existing) {
      if (pod->member.group.empty()) pod->member.group = name;
    }
    return name;
  }

  void expand_task(const Found<VolcanoJob>& job, std::size_t at, const std::string& gang,
                   const NameSet& taken) {
    const VolcanoTask& task = job.object.tasks[at];
    PodObject pod = task.pod;
    const std::string path = "spec.tasks[" + std::to_string(at) + "].template.";
    pod.member.group = gang;
    pod.member.subgroup = task.name;
    pod.meta.owners = {{.api_version = "batch.volcano.sh/v1alpha1",
                        .kind = "Job",
                        .name = job.object.meta.name,
                        .uid = job.object.meta.uid,
                        .controller = true}};
    pod.spec.owner = pod.meta.owners.front().text();
    pod.spec.created_ns = job.object.meta.created_ns;
    pod.spec.labels["volcano.sh/job-name"] = job.object.meta.name;
    pod.spec.labels["volcano.sh/task-spec"] = task.name;
    if (pod.spec.queue.empty()) pod.spec.queue = job.object.queue;
    if (pod.spec.priority_class.empty() && !pod.priority) {
      pod.spec.priority_class = job.object.priority_class;
    }
    if (!groups_.settle(job, path, pod) || options_.live) return;
    references_.settle_volumes(job, path, pod, pod.spec);
    for (int i = 0; i < task.replicas; ++i) {
      const std::string name = job.object.meta.name + '-' + task.name + '-' + std::to_string(i);
      if (taken.contains(name)) continue;
      out_.pods.push_back(pod.spec);
      out_.pods.back().name = name;
      ++in_.counts.job_pods;
    }
  }

  const PodReferences& references_;
  PodGroups& groups_;
};

}  // namespace

void resolve_volcano_jobs(Resolution& all, const PodReferences& references, PodGroups& groups) {
  VolcanoStage(all, references, groups).run();
}

}  // namespace berth::kinds
