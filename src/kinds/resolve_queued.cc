// Jobs and pods that wait in Kueue's queues: the workloads they make.
#include <algorithm>

#include "kinds/quota_requests.h"
#include "kinds/resolver.h"

namespace berth::kinds {

namespace {

constexpr std::string_view kGroupTotal = "kueue.x-k8s.io/pod-group-total-count";
constexpr std::string_view kRoleHash = "kueue.x-k8s.io/role-hash";
constexpr std::string_view kMinParallelism = "kueue.x-k8s.io/job-min-parallelism";

// The pod set of a pod's role, made where there is none yet; null when there are too many.
model::PodSetSpec* role_of(const model::PodSpec& pod, const Meta& meta,
                           const model::TopologyAsk& ask, std::vector<model::PodSetSpec>& sets) {
  const std::string* given = meta.annotation(kRoleHash);
  for (model::PodSetSpec& set : sets) {
    const bool same = given != nullptr ? set.name == *given : set.name.starts_with("role-");
    if (same && set.topology == ask && same_role(*set.pod, pod)) return &set;
  }
  if (sets.size() == kMostPodSets) return nullptr;
  model::PodSetSpec set;
  set.name = given != nullptr ? *given : "role-" + std::to_string(sets.size());
  while (std::any_of(sets.begin(), sets.end(), [&](const auto& s) { return s.name == set.name; })) {
    set.name += "-other";  // one hash on different pods
  }
  set.topology = ask;
  set.pod = std::make_shared<const model::PodSpec>(as_template(pod));
  return &sets.emplace_back(std::move(set));
}

}  // namespace

model::WorkloadSpec workload_of(const model::PodSpec& pod, const std::string& queue) {
  model::WorkloadSpec spec;
  spec.ns = pod.ns;
  spec.name = pod.name;
  spec.uid = pod.uid;
  spec.queue = queue;
  spec.owner = "Pod/" + pod.name;
  spec.created_ns = pod.created_ns;
  spec.priority = pod.priority;
  return spec;
}

model::PodSpec as_template(const model::PodSpec& pod) {
  model::PodSpec out = pod;
  out.name.clear();
  out.uid.clear();
  out.node_name.clear();
  out.gpu_indices.clear();
  out.queued = out.terminating = false;
  out.charged.clear();
  out.charge_seen = false;
  out.started_ns = 0;
  return out;
}

bool same_role(const model::PodSpec& a, const model::PodSpec& b) {
  const auto bare = [](const model::PodSpec& pod) {
    model::PodSpec out = as_template(pod);
    out.labels.clear();
    out.owner.clear();
    out.created_ns = 0;
    out.gated = false;
    return out;
  };
  return bare(a) == bare(b);
}

// ---- Jobs ----

std::optional<std::string> Resolver::default_queue_of(const Meta& meta) const {
  std::string label = label_value(meta, kQueueLabel);
  if (!label.empty()) return label;
  // As the webhook has it: what something else made is that one's.
  const Owner* owner = meta.controller();
  const bool own = owner == nullptr || owner->is("batch", "CronJob");
  if (own && kueue_decides_ && managed(meta.ns) && default_queues_.contains(meta.ns)) {
    return "default";
  }
  return std::nullopt;
}

std::optional<std::string> Resolver::queue_of(const JobObject& job) const {
  if (made_by_queued(job.meta)) return std::nullopt;
  if (const auto named = default_queue_of(job.meta)) return named;
  if (!kueue_decides_ || !managed(job.meta.ns)) return std::nullopt;
  // In a group or queue of another scheduler its pods wait there.
  const Meta& pods = job.pod.meta;
  const bool elsewhere = !job.pod.member.group.empty() ||
                         pods.labels.contains("kai.scheduler/queue") ||
                         pods.annotation("scheduling.volcano.sh/queue-name") != nullptr;
  if (requires_queue(job.meta.ns) && !elsewhere) return "";
  return std::nullopt;
}

bool Resolver::waits_in_queue(Found<JobObject>& job, const std::vector<PodObject*>& existing) {
  JobObject& object = job.object;
  if (object.finished) return false;
  const std::optional<std::string> queue = queue_of(object);
  const auto owned = workloads_of_.find(qualified(object.meta.ns, "Job/" + object.meta.name));
  if (!queue && owned == workloads_of_.end()) {
    if (kueue_decides_ && object.pod.meta.labels.contains(kQueueLabel)) {
      in_.warn(job, "spec.template." + mark_path("labels", kQueueLabel),
               "found a queue on the template only, want it on the Job: the Job waits in none");
    }
    return false;
  }
  if (!kueue_decides_) {
    if (!object.suspend) say_no_queues(job);
    return false;
  }
  if (owned != workloads_of_.end() && options_.live && made_by_queued(object.meta)) {
    for (const std::size_t at : owned->second) {  // of a time when it waited by itself
      out_.queues.workloads[at].stale = true;
      out_.queues.workloads[at].incomplete = "what made its Job waits in a queue as a whole";
    }
    return true;
  }
  if (owned != workloads_of_.end()) {
    scale_job(job, owned->second, existing);
    const auto& places = owned->second;
    ask_as_now(object, places);
    const bool holds = std::any_of(places.begin(), places.end(), [this](std::size_t at) {
      return out_.queues.workloads[at].admission.has_value();
    });
    return !holds || object.suspend;
  }
  const bool runs = std::any_of(existing.begin(), existing.end(), [](const PodObject* pod) {
    return !pod->finished() && !pod->spec.node_name.empty();
  });
  // In a cluster that lives it is suspended, as Kueue does, and waits like any other. One that
  // names no queue could only wait for ever: what runs of it goes on, and further pods do not
  // start.
  if (runs && !object.suspend && (!options_.live || queue->empty())) {
    const std::string where = queue->empty() ? "it names no queue, which its namespace requires,"
                                             : "it waits in queue " + quoted(*queue);
    in_.notes.add(Gathered::note(job.origin, job.shown, "",
                                 where +
                                     " and runs already, and no Workload of the input says what "
                                     "quota it holds: it counts towards none"));
    return false;
  }
  queue_job(job, *queue);
  return true;
}

// A suspended Job may be changed: what waits asks for what its pods would ask for now, not for what
// it was when its Workload was made.
void Resolver::ask_as_now(const JobObject& job, const std::vector<std::size_t>& places) {
  if (places.size() != 1 || !job.suspend || job.parallel() == 0) return;
  model::WorkloadSpec& workload = out_.queues.workloads[places.front()];
  if (workload.admission || workload.pod_sets.size() != 1) return;
  model::PodSetSpec& set = workload.pod_sets.front();
  const model::Amounts now = quota_requests(job.pod.spec, out_.queues.config);
  for (const auto& [resource, amount] : now) set.requests[resource] = amount;
  model::PodSpec pod = *set.pod;
  pod.gpu = job.pod.spec.gpu;
  set.pod = std::make_shared<const model::PodSpec>(std::move(pod));
  // One that was let in with fewer pods before asks for all of them again.
  set.count = set.min_count ? std::max(set.count, job.parallel()) : job.parallel();
}

template <class T>
bool Resolver::class_priority(const Found<T>& at, const Meta& meta, int& priority) {
  std::string name = label_value(meta, kClassLabel);
  const bool defaulting = out_.queues.config.gate("WorkloadPriorityClassDefaulting", false);
  if (name.empty() && defaulting && workload_class("default")) name = "default";
  if (name.empty()) return true;
  const std::optional<int> value = workload_class(name);
  if (!value) {
    in_.refuse(at, mark_path("labels", kClassLabel),
               "found " + quoted(name) +
                   ", want a WorkloadPriorityClass of the input: add workloadpriorityclasses to "
                   "what kubectl gets");
    return false;
  }
  priority = *value;
  return true;
}

void Resolver::queue_job(Found<JobObject>& job, const std::string& queue,
                         const std::string& replaces) {
  JobObject& object = job.object;
  // Whatever comes of it, its pods wait.
  std::vector<std::size_t>& places =
      workloads_of_[qualified(object.meta.ns, "Job/" + object.meta.name)];
  if (object.parallel() == 0 || !settle_priority(job, "spec.template.", object.pod)) return;
  model::WorkloadSpec spec;
  spec.ns = object.meta.ns;
  spec.name = object.meta.name;
  spec.uid = object.meta.uid;
  spec.queue = queue;
  spec.unmade = options_.live;
  spec.replaces = replaces;
  if (queue.empty()) {
    spec.incomplete = "namespace " + spec.ns + " requires a queue, and Job/" + spec.name +
                      " names none: add the label " + std::string(kQueueLabel);
    spec.incomplete_reason = model::Reason::kQueueRequired;
  }
  spec.owner = "Job/" + object.meta.name;
  spec.created_ns = object.meta.created_ns;
  spec.priority = object.pod.spec.priority;
  if (!class_priority(job, object.meta, spec.priority)) return;
  model::PodSetSpec set;
  set.count = object.parallel();
  int least = set.count;
  std::string at;
  auto bad = read_number_label(object.meta, kMaxExecution, kMostSeconds, spec.max_execution_s);
  if (!bad) bad = read_number_annotation(object.meta, kMinParallelism, set.count, least);
  if (!bad) {
    at = "spec.template.";
    bad = read_topology_ask(object.pod.meta, object.topology, set.count, set.topology);
  }
  if (bad) return in_.refuse(job, at + bad->path, bad->message);
  if (least < set.count) set.min_count = least;
  std::size_t room = 0;
  if (!take_waiting(spec.ns, set.count, room)) {
    return in_.refuse(job, "spec.parallelism",
                      "found " + std::to_string(set.count) + " pods, want at most " +
                          std::to_string(room) + " more over all that waits in namespace " +
                          spec.ns);
  }
  model::PodSpec pod = made_pod(job, "spec.template.", object.pod, queue, spec.owner);
  pod.created_ns = object.meta.created_ns;
  pod.labels["job-name"] = pod.labels["batch.kubernetes.io/job-name"] = object.meta.name;
  set.requests = quota_requests(pod, out_.queues.config);
  set.pod = std::make_shared<const model::PodSpec>(std::move(pod));
  spec.pod_sets.push_back(std::move(set));
  places.push_back(add_workload(std::move(spec)));
  if (!object.meta.uid.empty()) owner_uids_[places.back()].insert(object.meta.uid);
}

bool Resolver::take_waiting(const std::string& ns, int count, std::size_t& room) {
  std::size_t& waiting = waiting_pods_[ns];
  room = options_.max_job_pods - waiting;
  if (static_cast<std::size_t>(count) > room) return false;
  waiting += static_cast<std::size_t>(count);
  return true;
}

template <class T>
model::PodSpec Resolver::made_pod(const Found<T>& at, const std::string& path,
                                  const PodObject& from, const std::string& queue,
                                  const std::string& owner) {
  model::PodSpec pod = from.spec;
  std::vector<std::string> warnings;
  volumes_.resolve(from.claims, pod, warnings);
  for (std::string& w : warnings) in_.warn(at, path + "spec.volumes", std::move(w));
  pod.owner = owner;
  pod.queue = queue;
  pod.gated = from.other_gates;
  return pod;
}
template model::PodSpec Resolver::made_pod(const Found<QueuedMaker>&, const std::string&,
                                           const PodObject&, const std::string&,
                                           const std::string&);
template bool Resolver::class_priority(const Found<QueuedMaker>&, const Meta&, int&);

// ---- pods ----

void Resolver::hold(model::PodSpec& pod) {
  pod.queued = true;
  pod.gang.clear();
  pod.subgroup.clear();
  if (kueue_gated_.contains(qualified(pod.ns, pod.name))) pod.gated = false;
}

// Pods that wait, of namespaces that require a queue, and that no workload of a queue stands for.
void Resolver::hold_outsiders() {
  if (required_namespaces_.empty() && !out_.queues.config.manage_without_queue) return;
  for (model::PodSpec& pod : out_.pods) {
    if (!pod.node_name.empty() || pod.queued || !requires_queue(pod)) continue;
    const std::string name = qualified(pod.ns, pod.name);
    if (let_in_.contains(name)) continue;
    pod.needs_queue = true;
    if (kueue_gated_.contains(name)) pod.gated = false;  // its gate is for want of a queue
  }
}

void Resolver::warn_two_queues(const Found<PodObject>& found, const model::PodSpec& pod) {
  const Meta& meta = found.object.meta;
  std::string other = label_value(meta, "kai.scheduler/queue");
  if (const std::string* volcano = meta.annotation("scheduling.volcano.sh/queue-name")) {
    if (other.empty()) other = *volcano;
  }
  const auto gang = gangs_.find(qualified(pod.ns, pod.gang));
  const std::string queue = label_value(meta, kQueueLabel);
  if (other.empty() && gang != gangs_.end() && gang->second.queue != queue) {
    other = gang->second.queue;
  }
  if (other.empty()) return;
  in_.warn(found, mark_path("labels", kQueueLabel),
           "found Kueue's queue " + quoted(queue) + " and queue " + quoted(other) +
               " of another system; Kueue's holds");
}

void Resolver::drop_pod(const Found<PodObject>& found, const BadMark& bad) {
  in_.refuse(found, bad.path, bad.message);
  dropped_pods_.insert(qualified(found.object.meta.ns, found.object.meta.name));
}

// Kueue's webhook gives the label to pods of such a namespace when they are made. In a cluster that
// lives those without it are of no queue.
std::string Resolver::default_queue(const Meta& meta) const {
  if (options_.live) return "";
  const Owner* owner = meta.controller();
  const bool alone = owner == nullptr || owner->is("apps", "ReplicaSet");
  const bool waits = kueue_decides_ && default_pods_ && alone &&
                     default_queues_.contains(meta.ns) && managed(meta.ns);
  return waits ? "default" : "";
}

void Resolver::queue_pod(const Found<PodObject>& found, model::PodSpec& pod,
                         const std::string& queue) {
  const Meta& meta = found.object.meta;
  model::WorkloadSpec spec = workload_of(pod, queue);
  spec.unmade = options_.live;
  if (!label_value(meta, kQueueLabel).empty()) warn_two_queues(found, pod);
  pod.queue = spec.queue;
  model::PodSetSpec set;
  auto bad = read_number_label(meta, kMaxExecution, kMostSeconds, spec.max_execution_s);
  if (!bad) bad = read_topology_ask(meta, found.object.member.topology, 1, set.topology);
  if (bad) return drop_pod(found, *bad);
  if (!class_priority(found, meta, spec.priority)) {
    dropped_pods_.insert(qualified(pod.ns, pod.name));
    return;
  }
  hold(pod);
  if (pod.gated) {
    spec.incomplete = "pod " + quoted(pod.name) + " has other scheduling gates";
    spec.incomplete_reason = model::Reason::kGated;
  }
  set.requests = quota_requests(pod, out_.queues.config);
  set.pods = {qualified(pod.ns, pod.name)};
  set.pod = std::make_shared<const model::PodSpec>(as_template(pod));
  spec.pod_sets.push_back(std::move(set));
  add_workload(std::move(spec));
}

struct Resolver::PodGroupOf {
  struct Member {
    const Found<PodObject>* found;
    model::PodSpec* pod;  // null: finished
  };
  std::string ns, name;
  std::vector<Member> members;  // by name
};

// A group of which something ran before: no Workload says what quota it holds. True: it is one.
bool Resolver::runs_already(const PodGroupOf& group) {
  const auto started = [](const PodGroupOf::Member& m) {
    return m.pod == nullptr || !m.pod->node_name.empty();
  };
  if (std::none_of(group.members.begin(), group.members.end(), started)) return false;
  const Found<PodObject>& first = *group.members.front().found;
  if (!options_.live) {
    in_.notes.add(Gathered::note(first.origin, first.shown, "",
                                 "pod group " + quoted(group.name) +
                                     " runs already, and no Workload of the input says what quota "
                                     "it holds: it counts towards none"));
    return true;
  }
  for (const PodGroupOf::Member& m : group.members) {  // what runs counts by itself, and so do they
    if (!started(m)) queue_alone(*m.pod, label_value(m.found->object.meta, kQueueLabel));
  }
  return true;
}

void Resolver::queue_pod_group(PodGroupOf& group) {
  if (runs_already(group)) return;
  const Found<PodObject>& first = *group.members.front().found;
  model::WorkloadSpec spec;
  spec.ns = group.ns;
  spec.name = group.name;
  spec.queue = label_value(first.object.meta, kQueueLabel);
  spec.unmade = options_.live;
  spec.priority = group.members.front().pod->priority;
  spec.created_ns = group.members.front().pod->created_ns;
  const bool has_class = class_priority(first, first.object.meta, spec.priority);
  int total = 0;
  for (const auto& [found, pod] : group.members) {
    const Meta& meta = found->object.meta;
    int said = 0;
    model::TopologyAsk ask;
    auto bad = read_number_annotation(meta, kGroupTotal, kMaxJobPods, said);
    if (!bad) bad = read_number_label(meta, kMaxExecution, kMostSeconds, spec.max_execution_s);
    if (!bad) bad = read_topology_ask(meta, found->object.member.topology, kMaxJobPods, ask);
    if (bad) spec.incomplete = "pod " + quoted(pod->name) + " is invalid";
    if (bad) drop_pod(*found, *bad);
    if (!has_class) dropped_pods_.insert(qualified(pod->ns, pod->name));
    if (bad || !has_class) continue;
    warn_two_queues(*found, *pod);
    pod->queue = label_value(meta, kQueueLabel);
    if (pod->queue != spec.queue) spec.incomplete = "its pods name different queues";
    if (said == 0) {
      spec.incomplete =
          "pod " + quoted(pod->name) + " has no annotation " + std::string(kGroupTotal);
    } else if (total != 0 && said != total) {
      spec.incomplete = "its pods say different total counts";
    }
    total = said;
    hold(*pod);
    if (spec.incomplete.empty() && pod->gated) {
      spec.incomplete = "pod " + quoted(pod->name) + " has other scheduling gates";
      spec.incomplete_reason = model::Reason::kGated;
    }
    spec.created_ns = std::min(spec.created_ns, pod->created_ns);
    model::PodSetSpec* set = role_of(*pod, meta, ask, spec.pod_sets);
    if (set == nullptr) {
      spec.incomplete = "its pods are of more than 18 kinds";
      continue;
    }
    if (set->pods.empty()) set->requests = quota_requests(*pod, out_.queues.config);
    set->pods.push_back(qualified(pod->ns, pod->name));
    set->count = static_cast<int>(set->pods.size());
  }
  if (spec.pod_sets.empty()) return;
  const auto pods = static_cast<int>(group.members.size());
  if (spec.incomplete.empty() && pods != total) {
    spec.incomplete =
        std::to_string(pods) + " pods of its total count of " + std::to_string(total) + " exist";
    spec.incomplete_reason = model::Reason::kGangIncomplete;
  }
  if (!spec.incomplete.empty()) {
    in_.notes.add(Gathered::note(first.origin, first.shown, "",
                                 "pod group " + quoted(group.name) + " waits: " + spec.incomplete));
  }
  add_workload(std::move(spec));
}

// A Workload was made for it, finished or not; in a cluster that lives not for one of that name
// that was before it.
bool Resolver::has_workload(const std::string& owner, const std::string& uid) const {
  if (!workloads_of_.contains(owner)) return false;
  if (!options_.live || uid.empty()) return true;
  const auto known = uids_of_.find(owner);
  return known == uids_of_.end() || known->second.contains(uid);
}

void Resolver::queued_pods() {
  if (kueue_decides_) {
    attach_pods();
    keep_priorities();
  }
  std::map<std::string, PodGroupOf, std::less<>> groups;
  if (kueue_decides_) queue_kueue_gangs();
  for (const Found<PodObject>& found : in_.pods) {
    const Meta& meta = found.object.meta;
    std::string queue = label_value(meta, kQueueLabel);
    if (queue.empty()) queue = default_queue(meta);
    if (queue.empty()) continue;
    const Owner* owner = meta.controller();
    const bool owned =
        has_workload(qualified(meta.ns, "Pod/" + meta.name), meta.uid) ||
        (owner != nullptr && has_workload(qualified(meta.ns, owner->text()), owner->uid));
    if (owned || (kueue_decides_ && !managed(meta.ns))) continue;
    const auto at = pod_at_.find(qualified(meta.ns, meta.name));
    model::PodSpec* pod = at == pod_at_.end() ? nullptr : &out_.pods[at->second];
    const std::string name = label_or_annotation(meta, kGroupName);
    if (!kueue_decides_) {
      const bool starts = pod != nullptr && pod->node_name.empty() && !pod->gated;
      if (starts) say_no_queues(found);
    } else if (!name.empty() && pod != nullptr && take_room_of_group(*pod, name)) {
      continue;
    } else if (options_.live && pod != nullptr &&
               group_holders_.contains(qualified(meta.ns, name))) {
      // More than its group was let in with.
      if (pod->node_name.empty() && !pod->queued) queue_alone(*pod, queue);
    } else if (!name.empty() && (pod != nullptr || found.object.finished())) {
      PodGroupOf& group = groups[qualified(meta.ns, name)];
      group.ns = meta.ns;
      group.name = name;
      group.members.push_back({&found, pod});
    } else if (pod != nullptr && pod->node_name.empty() && !pod->queued && pod->gang.empty() &&
               (meta.labels.contains(kQueueLabel) || pod->queue.empty())) {
      queue_pod(found, *pod, queue);
    }
  }
  for (auto& [key, group] : groups) queue_pod_group(group);
}

}  // namespace berth::kinds
