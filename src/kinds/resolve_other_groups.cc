// Groups, pods and Jobs of Volcano and KAI that name a queue of theirs.
#include <algorithm>
#include <limits>

#include "kinds/quota_requests.h"
#include "kinds/resolver.h"

namespace berth::kinds {

namespace {

using model::GangSpec;
using model::PodSetSpec;
using model::PodSpec;
using model::TopologyAsk;

constexpr std::string_view kVolcanoJobs = "batch.volcano.sh";  // the group of its Jobs

// What a group lacks of its minimum, or "".
std::string lacking(const GangSpec& gang, const std::vector<PodSpec*>& pods) {
  const auto text = [](const std::string& what, std::size_t has, int wants) {
    return std::to_string(has) + " of " + std::to_string(wants) + " pods of " + what + " exist";
  };
  if (pods.size() < static_cast<std::size_t>(gang.min_member)) {
    return text("the group", pods.size(), gang.min_member);
  }
  for (const model::SubgroupSpec& sub : gang.subgroups) {
    const auto has = std::count_if(pods.begin(), pods.end(),
                                   [&](const PodSpec* pod) { return pod->subgroup == sub.name; });
    if (has < sub.min_member) {
      return text("subgroup " + quoted(sub.name), static_cast<std::size_t>(has), sub.min_member);
    }
  }
  return {};
}

const model::SubgroupSpec* subgroup_of(const GangSpec& gang, const std::string& name) {
  for (const model::SubgroupSpec& sub : gang.subgroups) {
    if (sub.name == name) return &sub;
  }
  return nullptr;
}

// The group's own topology; a subgroup's beside it is a slice of the size of the pod set.
TopologyAsk ask_of(const GangSpec& gang, const model::SubgroupSpec* sub, int count, bool several) {
  using Mode = TopologyAsk::Mode;
  TopologyAsk out;
  const auto set_mode = [&out](const std::string& required, const std::string& preferred) {
    if (required.empty() && preferred.empty()) return false;
    out.mode = required.empty() ? Mode::kPreferred : Mode::kRequired;
    out.level = required.empty() ? preferred : required;
    return true;
  };
  if (set_mode(gang.required_topology, gang.preferred_topology)) {
    if (several) out.group = gang.name;
    if (sub != nullptr && !sub->required_topology.empty()) {
      out.slices = {{sub->required_topology, count}};
    }
  } else if (sub != nullptr) {
    set_mode(sub->required_topology, sub->preferred_topology);
  }
  return out;
}

// How few pods of each set may start. Together they are the group's own minimum at least: the first
// sets make up for subgroups that state less.
void set_minimums(const GangSpec& gang, std::vector<PodSetSpec>& sets) {
  std::vector<std::int64_t> least;
  std::int64_t lacks = gang.min_member;
  for (const PodSetSpec& set : sets) {
    const model::SubgroupSpec* sub = subgroup_of(gang, set.pod->subgroup);
    const bool alone = std::count_if(sets.begin(), sets.end(), [&](const PodSetSpec& other) {
                         return other.pod->subgroup == set.pod->subgroup;
                       }) == 1;
    const std::int64_t own = sub == nullptr ? 1 : std::max(1, sub->min_member);
    least.push_back(alone ? std::min<std::int64_t>(own, set.count) : set.count);
    lacks -= least.back();
  }
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const std::int64_t more = std::clamp<std::int64_t>(lacks, 0, sets[i].count - least[i]);
    lacks -= more;
    least[i] += more;
    if (least[i] < sets[i].count) sets[i].min_count = static_cast<int>(least[i]);
  }
}

// One pod set for each subgroup, and for each shape in it; none when there are too many.
std::vector<PodSetSpec> sets_of(const GangSpec& gang, const std::vector<PodSpec*>& pods,
                                const model::QueueConfig& config) {
  std::vector<PodSetSpec> sets;
  for (const PodSpec* pod : pods) {
    const std::string base = pod->subgroup.empty() ? "main" : pod->subgroup;
    PodSetSpec* set = nullptr;
    int of_base = 0;
    for (PodSetSpec& known : sets) {
      if (known.pod->subgroup != pod->subgroup) continue;
      ++of_base;
      if (same_role(*known.pod, *pod)) set = &known;
    }
    if (set == nullptr) {
      if (sets.size() == kMostPodSets) return {};
      set = &sets.emplace_back();
      set->name = of_base == 0 ? base : base + '-' + std::to_string(of_base);
      set->count = 0;
      set->pod = std::make_shared<const PodSpec>(as_template(*pod));
      set->requests = quota_requests(*pod, config);
    }
    ++set->count;
    set->pods.push_back(qualified(pod->ns, pod->name));
  }
  set_minimums(gang, sets);
  for (PodSetSpec& set : sets) {
    const model::SubgroupSpec* sub = subgroup_of(gang, set.pod->subgroup);
    set.topology = ask_of(gang, sub, set.count, sets.size() > 1);
    PodSpec bare = *set.pod;
    bare.gang.clear();
    bare.subgroup.clear();
    set.pod = std::make_shared<const PodSpec>(std::move(bare));
  }
  return sets;
}

// Pods that run hold what they take.
void admit_as_running(model::WorkloadSpec& spec, const std::vector<PodSpec*>& pods,
                      const std::string& queue, const std::string& flavor) {
  model::AdmissionSpec admission;
  admission.queue = queue;
  for (PodSetSpec& set : spec.pod_sets) {
    set.min_count.reset();
    model::PodSetAdmission admitted;
    admitted.name = set.name;
    admitted.count = set.count;
    for (const auto& [resource, amount] : set.requests) {
      admitted.flavors[resource] = flavor;
      const std::int64_t most = std::numeric_limits<std::int64_t>::max() / std::max(1, set.count);
      admitted.usage[resource] = std::min(amount, most) * set.count;
    }
    admission.pod_sets.push_back(std::move(admitted));
  }
  spec.admission = std::move(admission);
  spec.admitted = true;
  spec.reserved_ns = spec.created_ns;
  for (const PodSpec* pod : pods) {
    const std::int64_t since = pod->started_ns != 0 ? pod->started_ns : pod->created_ns;
    spec.reserved_ns = std::max(spec.reserved_ns, since);
  }
  spec.admitted_ns = spec.reserved_ns;
}

void say_gated(const PodSpec& pod, model::WorkloadSpec& spec) {
  spec.incomplete = "pod " + quoted(pod.name) + " has scheduling gates";
  spec.incomplete_reason = model::Reason::kGated;
}

}  // namespace

void Resolver::add_other_workload(model::WorkloadSpec spec, const std::vector<PodSpec*>& pods,
                                  OtherSystem& system, bool runs) {
  for (const PodSetSpec& set : spec.pod_sets) {
    for (const auto& [resource, amount] : set.requests) system.resources.insert(resource);
  }
  const std::string target = system.cluster_queue.at(spec.queue);
  if (options_.live) spec.charge = charge_in(system, spec.queue);
  const std::string shut = runs ? "" : shut_to(spec.ns, spec.queue, system);
  // Whom a queue does not take gets no LocalQueue either: with Kueue's label it could be used.
  if (shut.empty()) spec.queue = local_queue(spec.ns, spec.queue, system);
  if (runs) {
    admit_as_running(spec, pods, target, any_flavor_);
    for (const PodSpec* pod : pods) let_in_.insert(qualified(pod->ns, pod->name));
  } else {
    for (PodSpec* pod : pods) {
      hold(*pod);
      if (pod->gated) say_gated(*pod, spec);
    }
  }
  if (!shut.empty()) {
    spec.incomplete = shut;
    spec.incomplete_reason = model::Reason::kQueueNotAllowed;
  }
  add_workload(std::move(spec));
}

// A pod that comes to a group that runs, for one that is gone or beyond its minimum: a workload of
// its own, behind the group, and its queue has to have room for it. A required topology is the
// domain that the group is in.
void Resolver::queue_surplus(const GangSpec& gang, PodSpec& pod, const PodSpec* beside,
                             std::int64_t since_ns, OtherSystem& system) {
  const std::string level = topology_key(gang.required_topology, node_label_keys_);
  const std::string at = beside == nullptr ? "" : beside->node_name;
  const auto node = std::lower_bound(
      out_.nodes.begin(), out_.nodes.end(), at,
      [](const model::NodeSpec& n, const std::string& name) { return n.name < name; });
  if (!level.empty() && node != out_.nodes.end() && node->name == at) {
    const auto label = node->labels.find(level);
    if (label != node->labels.end()) pod.node_selector[level] = label->second;
  }
  model::WorkloadSpec spec;
  spec.ns = pod.ns;
  spec.name = pod.name;
  spec.uid = pod.uid;
  spec.queue = gang.queue;
  spec.owner = "Pod/" + pod.name;
  spec.created_ns = since_ns == 0 ? pod.created_ns : since_ns;
  spec.priority = gang.priority.value_or(pod.priority);
  spec.pod_sets = sets_of(GangSpec(), {&pod}, out_.queues.config);
  add_other_workload(std::move(spec), {&pod}, system, false);
}

void Resolver::queue_gang(const GangSpec& gang, const std::vector<PodSpec*>& pods,
                          OtherSystem& system) {
  const std::string key = qualified(gang.ns, gang.name);
  const auto say = [&](const std::string& message) {
    const auto place = gang_places_.find(key);
    if (place == gang_places_.end()) return;
    in_.notes.add(Gathered::note(place->second.first, place->second.second, "", message));
  };
  // Those that another queue let in count there.
  const std::string charge = charge_in(system, gang.queue);
  std::vector<PodSpec*> running, surplus;
  bool runs = false;
  for (PodSpec* pod : pods) {
    const bool bound = !pod->node_name.empty();
    runs = runs || bound;
    if (bound && !pod->charged.empty() && pod->charged != charge) continue;
    (bound ? running : surplus).push_back(pod);
  }
  const std::string missing = runs ? "" : lacking(gang, pods);
  if (!missing.empty()) {
    return say("it does not wait in queue " + quoted(gang.queue) + " yet: " + missing);
  }
  std::int64_t since = gang.created_ns;
  for (const PodSpec* pod : running) since = std::max(since, pod->started_ns);
  // Whom the queue does not take brings in nobody by what runs already.
  if (runs && shut_to(gang.ns, gang.queue, system).empty() && !surplus.empty()) {
    say("it runs: " + std::to_string(running.size()) + " of its pods hold quota of queue " +
        quoted(gang.queue) + ", the others wait there one by one");
  }
  if (runs) {
    const PodSpec* beside = running.empty() ? nullptr : running.front();
    int needed = gang.min_member - static_cast<int>(running.size());
    for (PodSpec* pod : surplus) {  // for those that it cannot do without it has waited already
      queue_surplus(gang, *pod, beside, needed-- > 0 ? gang.created_ns : since, system);
    }
  }
  const std::vector<PodSpec*>& taken = runs ? running : pods;
  if (taken.empty()) return;
  model::WorkloadSpec spec;
  spec.ns = gang.ns;
  spec.name = gang.name;
  spec.queue = gang.queue;
  spec.owner = "PodGroup/" + gang.name;
  spec.created_ns = gang.created_ns != 0 ? gang.created_ns : taken.front()->created_ns;
  spec.priority = taken.front()->priority;
  for (const PodSpec* pod : taken) spec.priority = std::max(spec.priority, pod->priority);
  if (gang.priority) spec.priority = *gang.priority;
  spec.pod_sets = sets_of(gang, taken, out_.queues.config);
  if (spec.pod_sets.empty()) {
    return say("it does not wait in queue " + quoted(gang.queue) + ": its pods are of more than " +
               std::to_string(kMostPodSets) + " kinds");
  }
  add_other_workload(std::move(spec), taken, system, runs);
  if (!runs) queued_groups_.insert(key);
}

void Resolver::queue_gangs() {
  std::map<std::string, std::vector<PodSpec*>, std::less<>> members;
  for (PodSpec& pod : out_.pods) {
    if (!pod.gang.empty() && !pod.queued) members[qualified(pod.ns, pod.gang)].push_back(&pod);
  }
  for (const auto& [key, pods] : members) {
    const auto gang = gangs_.find(key);
    if (gang == gangs_.end()) continue;
    OtherSystem* system = system_of(gang->second.queue, kai_groups_.contains(key));
    if (system == nullptr) continue;
    queue_gang(gang->second, pods, *system);
    if (queued_groups_.contains(key)) gangs_.erase(gang);
  }
}

// ---- in Kueue's queues ----

// A PodGroup made from an upstream Workload waits in the queue that the Workload names.
void Resolver::check_workload_refs() {
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
    if (!queue.empty()) group_queues_.emplace(qualified(object.meta.ns, object.meta.name), queue);
  }
}

// The PodGroup's own label, its Workload's, its pods', or the default of the namespace; "": none.
std::string Resolver::kueue_queue(const std::string& gang, const std::vector<PodSpec*>& pods,
                                  std::string& trouble) const {
  if (const auto own = group_queues_.find(gang); own != group_queues_.end()) return own->second;
  std::string queue;
  std::size_t labelled = 0;
  for (const PodSpec* pod : pods) {
    const auto label = pod->labels.find(kQueueLabel);
    if (label == pod->labels.end() || label->second.empty()) continue;
    ++labelled;
    if (!queue.empty() && queue != label->second) trouble = "its pods name different queues";
    queue = label->second;
  }
  if (labelled > 0 && labelled < pods.size()) trouble = "some of its pods name no queue";
  if (!queue.empty() || !default_pods_ || options_.live) return queue;
  const PodSpec& first = *pods.front();
  const bool free =
      first.queue.empty() && (first.owner.empty() || first.owner.starts_with("Replica"));
  return free && default_queues_.contains(first.ns) && managed(first.ns) ? "default" : "";
}

void Resolver::queue_alone(PodSpec& pod, const std::string& queue) {
  model::WorkloadSpec spec = workload_of(pod, queue);
  pod.queue = queue;
  hold(pod);
  if (pod.gated) say_gated(pod, spec);
  spec.pod_sets = sets_of(GangSpec(), {&pod}, out_.queues.config);
  add_workload(std::move(spec));
}

// By ns/group: those that no Workload holds quota for.
std::map<std::string, std::vector<PodSpec*>, std::less<>> Resolver::unpaid_members() {
  std::map<std::string, std::vector<PodSpec*>, std::less<>> members;
  for (PodSpec& pod : out_.pods) {
    const bool kueue_group = pod.labels.contains(kGroupName);
    if (pod.gang.empty() || pod.queued || kueue_group) continue;
    // A Workload stands for it, and holds quota for this one.
    const std::string name = qualified(pod.ns, pod.name);
    if (let_in_.contains(name) || counted_.contains(name)) continue;
    if (options_.live && take_room_of_group(pod, pod.gang)) continue;
    members[qualified(pod.ns, pod.gang)].push_back(&pod);
  }
  return members;
}

void Resolver::queue_kueue_gangs() {
  for (const auto& [key, pods] : unpaid_members()) {
    const auto at = gangs_.find(key);
    if (at == gangs_.end() || !managed(at->second.ns)) continue;
    const GangSpec& gang = at->second;
    model::WorkloadSpec spec;
    spec.queue = kueue_queue(key, pods, spec.incomplete);
    if (spec.queue.empty()) continue;
    const auto& place = gang_places_.at(key);
    const auto say = [&, this](const std::string& message) {
      in_.notes.add(Gathered::note(place.first, place.second, "", message));
    };
    const auto runs = [](const PodSpec* pod) { return !pod->node_name.empty(); };
    if (group_holders_.contains(key) || std::any_of(pods.begin(), pods.end(), runs)) {
      if (options_.live) {  // what runs counts by itself, and so does what comes to it
        for (PodSpec* pod : pods) {
          if (!runs(pod)) queue_alone(*pod, spec.queue);
        }
        continue;
      }
      say("it runs already, and no Workload of the input says what quota it holds: it counts "
          "towards none");
      continue;
    }
    spec.ns = gang.ns;
    spec.name = gang.name;
    spec.owner = "PodGroup/" + gang.name;
    spec.created_ns = gang.created_ns != 0 ? gang.created_ns : pods.front()->created_ns;
    spec.priority = pods.front()->priority;
    for (const PodSpec* pod : pods) spec.priority = std::max(spec.priority, pod->priority);
    if (gang.priority) spec.priority = *gang.priority;
    if (const auto named = pods.front()->labels.find(kClassLabel);
        named != pods.front()->labels.end()) {
      const std::optional<int> value = workload_class(named->second);
      if (!value) spec.incomplete = "its class " + quoted(named->second) + " is not in the input";
      spec.priority = value.value_or(spec.priority);
    }
    spec.pod_sets = sets_of(gang, pods, out_.queues.config);
    if (spec.pod_sets.empty()) {
      say("its pods are of more than " + std::to_string(kMostPodSets) + " kinds");
      continue;
    }
    if (spec.incomplete.empty()) {
      spec.incomplete = lacking(gang, pods);
      if (!spec.incomplete.empty()) spec.incomplete_reason = model::Reason::kGangIncomplete;
    }
    for (PodSpec* pod : pods) {
      pod->queue = spec.queue;
      hold(*pod);
      if (pod->gated) say_gated(*pod, spec);
    }
    if (!gang.queue.empty() && gang.queue != spec.queue) {
      in_.warnings.add(Gathered::note(place.first, place.second, mark_path("labels", kQueueLabel),
                                      "found Kueue's queue " + quoted(spec.queue) + " and queue " +
                                          quoted(gang.queue) +
                                          " of another system; Kueue's holds"));
    }
    if (!spec.incomplete.empty()) say("it waits: " + spec.incomplete);
    queued_groups_.insert(key);
    add_workload(std::move(spec));
    gangs_.erase(at);
  }
}

// Pods of no group: one workload each. Kueue's label is not theirs.
void Resolver::queue_other_pods() {
  for (PodSpec& pod : out_.pods) {
    if (!pod.gang.empty() || pod.queued || pod.labels.contains(kQueueLabel)) continue;
    OtherSystem* system = system_of(pod.queue, pod.labels.contains("kai.scheduler/queue"));
    if (system == nullptr) continue;
    const std::string charge = charge_in(*system, pod.queue);
    if (!pod.node_name.empty() && !pod.charged.empty() && pod.charged != charge) continue;
    model::WorkloadSpec spec = workload_of(pod, pod.queue);
    spec.pod_sets = sets_of(GangSpec(), {&pod}, out_.queues.config);
    add_other_workload(std::move(spec), {&pod}, *system, !pod.node_name.empty());
  }
}

// ---- Volcano Jobs ----

// The group of a Job's pods, made where there is none; "" when the Job is refused. name: of the
// PodGroup that the Job owns, or empty.
std::string Resolver::volcano_gang(const Found<VolcanoJob>& job, std::string name,
                                   std::vector<PodObject*>& existing) {
  const VolcanoJob& object = job.object;
  for (const PodObject* pod : existing) {
    if (name.empty()) name = pod->member.group;
  }
  const bool own = name.empty();
  if (own) name = object.meta.name;
  const std::string key = qualified(object.meta.ns, name);
  if (own && gangs_.contains(key)) {
    in_.refuse(job, "metadata.name",
               "found a PodGroup of the same name, want another name for the gang of this Job");
    return {};
  }
  GangSpec gang;
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
    const auto priority = priorities_.find(object.priority_class);
    if (!priority) {
      in_.refuse(
          job, "spec.priorityClassName",
          "found " + quoted(object.priority_class) +
              ", want a PriorityClass of the input: add priorityclasses to what kubectl gets");
      return {};
    }
    gang.priority = priority->value;
  }
  if (gangs_.emplace(key, std::move(gang)).second) {
    gang_places_.emplace(key, std::pair(job.origin, job.shown));
  }
  for (PodObject* pod : existing) {
    if (pod->member.group.empty()) pod->member.group = name;
  }
  return name;
}

void Resolver::expand_task(const Found<VolcanoJob>& job, std::size_t at, const std::string& gang,
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
  if (!settle(job, path, pod) || options_.live) return;
  std::vector<std::string> warnings;
  volumes_.resolve(pod.claims, pod.spec, warnings);
  for (std::string& warning : warnings) in_.warn(job, path + "spec.volumes", std::move(warning));
  for (int i = 0; i < task.replicas; ++i) {
    const std::string name = job.object.meta.name + '-' + task.name + '-' + std::to_string(i);
    if (taken.contains(name)) continue;
    out_.pods.push_back(pod.spec);
    out_.pods.back().name = name;
    ++in_.counts.job_pods;
  }
}

void Resolver::volcano_jobs() {
  if (in_.volcano_jobs.empty()) return;
  std::map<std::string, std::vector<PodObject*>, std::less<>> owned;  // by ns/job
  std::map<std::string, NameSet, std::less<>> names;                  // by namespace
  for (Found<PodObject>& pod : in_.pods) {
    names[pod.object.meta.ns].insert(pod.object.meta.name);
    const Owner* owner = pod.object.meta.controller();
    if (owner == nullptr || !owner->is(kVolcanoJobs, "Job")) continue;
    owned[qualified(pod.object.meta.ns, owner->name)].push_back(&pod.object);
  }
  for (const PodSpec& pod : out_.pods) names[pod.ns].insert(pod.name);  // of other Jobs
  std::map<std::string, std::string, std::less<>> groups;               // by ns/job
  for (const Found<GroupObject>& group : in_.groups) {
    const Meta& meta = group.object.meta;
    for (const Owner& owner : meta.owners) {
      if (owner.is(kVolcanoJobs, "Job")) groups.emplace(qualified(meta.ns, owner.name), meta.name);
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

}  // namespace berth::kinds
