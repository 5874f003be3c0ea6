// Jobs and pods that wait in Kueue's queues: the workloads they make, and who holds their pods.
#include <algorithm>
#include <numeric>

#include "objects/quota_requests.h"
#include "objects/resolver.h"

namespace berth::objects {

namespace {

constexpr std::string_view kGroupName = "kueue.x-k8s.io/pod-group-name";
constexpr std::string_view kGroupTotal = "kueue.x-k8s.io/pod-group-total-count";
constexpr std::string_view kRoleHash = "kueue.x-k8s.io/role-hash";
constexpr std::string_view kMinParallelism = "kueue.x-k8s.io/job-min-parallelism";
constexpr std::string_view kMaxExecution = "kueue.x-k8s.io/max-exec-time-seconds";
constexpr std::int64_t kMostSeconds = 2'147'483'647;
// What each pod may have of CPU (milli) and memory beyond what its workload was let in with.
constexpr std::int64_t kSidecarCpu = 500;
constexpr std::int64_t kSidecarBytes = 1LL << 30;

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

// It has quota, and its pods are a group's: those of a Job or of another maker are that one's,
// whatever group they name.
bool stands_for_group(const model::WorkloadSpec& workload) {
  const std::string& owner = workload.owner;
  const bool of_pods = owner.empty() || owner.starts_with("Pod/") || owner.starts_with("PodGroup/");
  return of_pods && workload.admission.has_value();
}

std::vector<std::string> groups_of(const model::PodSpec& pod) {  // ns/group
  std::vector<std::string> out;
  if (!pod.gang.empty()) out.push_back(qualified(pod.ns, pod.gang));
  const auto label = pod.labels.find(std::string(kGroupName));
  if (label != pod.labels.end()) out.push_back(qualified(pod.ns, label->second));
  return out;
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

std::optional<std::string> Resolver::queue_of(const JobObject& job) const {
  std::string label = label_value(job.meta, kQueueLabel);
  if (!label.empty()) return label;
  if (!kueue_decides_ || !managed(job.meta.ns)) return std::nullopt;
  if (default_queues_.contains(job.meta.ns)) return "default";
  // In a group or queue of another scheduler its pods wait there.
  const Meta& pods = job.pod.meta;
  const bool elsewhere = !job.pod.member.group.empty() ||
                         pods.labels.contains("kai.scheduler/queue") ||
                         pods.annotation("scheduling.volcano.sh/queue-name") != nullptr;
  if (requires_queue(job.meta.ns) && !elsewhere && !made_by_admitted(job)) return "";
  return std::nullopt;
}

bool Resolver::made_by_admitted(const JobObject& job) const {
  const Owner* owner = job.meta.controller();
  if (owner == nullptr) return false;
  const auto owned = workloads_of_.find(qualified(job.meta.ns, owner->text()));
  return owned != workloads_of_.end() &&
         std::any_of(owned->second.begin(), owned->second.end(),
                     [this](std::size_t at) { return out_.queues.workloads[at].admitted; });
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
  std::size_t& waiting = waiting_pods_[spec.ns];
  const std::size_t room = options_.max_job_pods - waiting;
  if (static_cast<std::size_t>(set.count) > room) {
    return in_.refuse(job, "spec.parallelism",
                      "found " + std::to_string(set.count) + " pods, want at most " +
                          std::to_string(room) + " more over all that waits in namespace " +
                          spec.ns);
  }
  waiting += static_cast<std::size_t>(set.count);
  model::PodSpec pod = object.pod.spec;
  std::vector<std::string> warnings;
  volumes_.resolve(object.pod.claims, pod, warnings);
  for (std::string& w : warnings) in_.warn(job, "spec.template.spec.volumes", std::move(w));
  pod.owner = spec.owner;
  pod.queue = queue;
  pod.gated = object.pod.other_gates;
  pod.created_ns = object.meta.created_ns;
  pod.labels["job-name"] = pod.labels["batch.kubernetes.io/job-name"] = object.meta.name;
  set.requests = quota_requests(pod, out_.queues.config);
  set.pod = std::make_shared<const model::PodSpec>(std::move(pod));
  spec.pod_sets.push_back(std::move(set));
  places.push_back(add_workload(std::move(spec)));
  if (!object.meta.uid.empty()) owner_uids_[places.back()].insert(object.meta.uid);
}

// ---- pods ----

void Resolver::hold(model::PodSpec& pod) {
  pod.queued = true;
  pod.gang.clear();
  pod.subgroup.clear();
  if (kueue_gated_.contains(qualified(pod.ns, pod.name))) pod.gated = false;
}

namespace {

// What each pod of the set may have: of a holder what its status says, whatever its spec does.
std::int64_t share_of(const model::PodSetSpec& set, const model::PodSetAdmission* admitted,
                      const std::string& resource) {
  const model::Amounts& from = admitted == nullptr ? set.requests : admitted->usage;
  const auto known = from.find(resource);
  if (known == from.end()) return 0;
  if (admitted == nullptr) return known->second;
  return admitted->count > 0 ? known->second / admitted->count : 0;
}

}  // namespace

// Whether the pod asks for no more of what a queue counts by devices than the pods that the set is
// made of, or was admitted for. Other resources may differ: sidecars and defaults come later.
bool Resolver::asks_no_more(const model::PodSpec& pod, const model::PodSetSpec& set,
                            const std::optional<model::AdmissionSpec>& admission) const {
  const model::PodSetAdmission none;
  const model::PodSetAdmission* admitted = admission ? &none : nullptr;
  if (admission) {
    for (const model::PodSetAdmission& a : admission->pod_sets) {
      if (a.name == set.name) admitted = &a;
    }
  }
  for (const auto& [resource, amount] : quota_requests(pod, out_.queues.config)) {
    if (resource.find('/') == std::string::npos) continue;
    if (amount > share_of(set, admitted, resource)) return false;
  }
  return true;
}

// What its queue has left of the flavor that the pod's workload was let in with.
std::int64_t& Resolver::left_in_queue(const std::string& queue, const std::string& flavor,
                                      const std::string& resource) {
  if (left_.empty()) {
    for (const model::QueueSpec& each : out_.queues.queues) {
      for (const model::ResourceGroup& group : each.groups) {
        for (const auto& quotas : group.flavors) {
          for (const auto& quota : quotas.resources) {
            left_[{each.name, quotas.flavor, quota.resource}] = quota.nominal;
          }
        }
      }
    }
    for (const model::WorkloadSpec& holder : out_.queues.workloads) {
      if (!holder.admission) continue;
      for (const model::PodSetAdmission& set : holder.admission->pod_sets) {
        for (const auto& [name, amount] : set.usage) {
          const auto used = set.flavors.find(name);
          if (used == set.flavors.end()) continue;
          std::int64_t& rest = left_[{holder.admission->queue, used->second, name}];
          if (__builtin_sub_overflow(rest, amount, &rest)) rest = -kMaxAmount;
        }
      }
    }
  }
  return left_[{queue, flavor, resource}];
}

// CPU and memory that came on top since it was let in, by sidecars and defaults. More than a little
// of it needs room in the queue, which it then has.
bool Resolver::rest_fits(const model::PodSpec& pod, const model::AdmissionSpec& admission,
                         const model::PodSetSpec& set) {
  if (!options_.live) return true;
  const auto held = std::find_if(admission.pod_sets.begin(), admission.pod_sets.end(),
                                 [&](const auto& each) { return each.name == set.name; });
  if (held == admission.pod_sets.end()) return true;
  std::vector<std::pair<std::int64_t*, std::int64_t>> more;
  for (const auto& [resource, amount] : quota_requests(pod, out_.queues.config)) {
    const auto flavor = held->flavors.find(resource);
    if (flavor == held->flavors.end() || resource.find('/') != std::string::npos) continue;
    const std::int64_t beyond = amount - share_of(set, &*held, resource);
    if (beyond <= (resource == "cpu" ? kSidecarCpu : kSidecarBytes)) continue;
    std::int64_t& left = left_in_queue(admission.queue, flavor->second, resource);
    if (left < beyond) return false;
    more.emplace_back(&left, beyond);
  }
  for (const auto& [left, amount] : more) *left -= amount;
  return true;
}

namespace {

bool same_devices(const model::Amounts& a, const model::Amounts& b) {
  const auto in = [](const model::Amounts& of, const model::Amounts& other) {
    return std::all_of(of.begin(), of.end(), [&](const auto& entry) {
      if (entry.second == 0 || entry.first.find('/') == std::string::npos) return true;
      const auto it = other.find(entry.first);
      return it != other.end() && it->second == entry.second;
    });
  };
  return in(a, b) && in(b, a);
}

}  // namespace

const model::NodeSpec* Resolver::node_known(const std::string& name) const {
  const auto node = std::lower_bound(
      out_.nodes.begin(), out_.nodes.end(), name,
      [](const model::NodeSpec& n, const std::string& wanted) { return n.name < wanted; });
  return node != out_.nodes.end() && node->name == name ? &*node : nullptr;
}

// Whether its node is there to end it. On one that is lost a pod may be leaving for ever.
bool Resolver::node_answers(const std::string& name) const {
  const model::NodeSpec* node = node_known(name);
  return node != nullptr && node->ready;
}

// The set that the pod is of: the one it names, else the only one, else the first with room for it.
// Null: there is none. Counts the pod. One that runs is of some set in any case; where it is more
// than its workload holds quota for, it counts by itself (count_leftovers).
model::PodSetSpec* Resolver::take_room(const model::PodSpec& pod, std::size_t at) {
  model::WorkloadSpec& workload = out_.queues.workloads[at];
  const auto label = pod.labels.find(kPodSetLabel);
  const bool names = label != pod.labels.end();
  const bool bound = !pod.node_name.empty();
  // What another queue let in is not paid for here.
  const bool elsewhere =
      bound && !pod.charged.empty() && workload.admission && pod.charged != kueue_charge(workload);
  std::vector<std::size_t> order(workload.pod_sets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!names && order.size() > 1) {  // first those of its own size
    const model::Amounts asks = quota_requests(pod, out_.queues.config);
    std::stable_partition(order.begin(), order.end(), [&](std::size_t i) {
      return same_devices(asks, workload.pod_sets[i].requests);
    });
  }
  for (const std::size_t i : order) {
    model::PodSetSpec& set = workload.pod_sets[i];
    if (names && workload.pod_sets.size() > 1 && label->second != set.name) continue;
    if (!workload.admission) {
      const bool one = names || workload.pod_sets.size() == 1;
      return one && (bound || asks_no_more(pod, set, workload.admission)) ? &set : nullptr;
    }
    int count = set.count;
    for (const model::PodSetAdmission& a : workload.admission->pod_sets) {
      if (a.name == set.name) count = std::min(count, a.count);  // as quota counts it
    }
    int& taken = taken_[{at, i}];
    const auto done = workload.reclaimable.find(set.name);
    if (options_.live && done != workload.reclaimable.end()) count -= done->second;
    const bool fits = !elsewhere && taken < count && asks_no_more(pod, set, workload.admission) &&
                      (bound || rest_fits(pod, *workload.admission, set));
    if (!fits && !(bound && (names || workload.pod_sets.size() == 1))) continue;
    if (!elsewhere && (!pod.terminating || (bound && node_answers(pod.node_name)))) ++taken;
    if (fits) counted_.insert(qualified(pod.ns, pod.name));
    if (fits) count_actual(pod, at, i);
    return &set;
  }
  const bool somewhere = bound && !workload.pod_sets.empty();
  return somewhere ? &workload.pod_sets.front() : nullptr;
}

// CPU and memory may be more than was asked for: sidecars and defaults come later. What its pods
// have counts then.
void Resolver::count_actual(const model::PodSpec& pod, std::size_t at, std::size_t set) {
  if (!options_.live) return;
  model::Amounts& sum = actual_[{at, set}];
  for (const auto& [resource, amount] : quota_requests(pod, out_.queues.config)) {
    if (resource.find('/') != std::string::npos) continue;
    std::int64_t& so_far = sum[resource];
    if (__builtin_add_overflow(so_far, amount, &so_far)) so_far = kMaxAmount;
    for (model::PodSetAdmission& held : out_.queues.workloads[at].admission->pod_sets) {
      if (held.name != out_.queues.workloads[at].pod_sets[set].name) continue;
      const auto used = held.usage.find(resource);
      if (used != held.usage.end()) used->second = std::max(used->second, so_far);
    }
  }
}

// Of several workloads (slices of an elastic Job) the one that holds quota has the pods, as many of
// them as it holds quota for.
void Resolver::attach(model::PodSpec& pod, const std::vector<std::size_t>& places) {
  const bool bound = !pod.node_name.empty();
  if (places.empty()) {
    if (!bound) hold(pod);
    return;
  }
  const std::size_t at = place_for(places, bound);
  if (options_.live && stands_for_group(out_.queues.workloads[at])) {
    for (const std::string& group : groups_of(pod)) group_holders_.emplace(group, at);
  }
  model::PodSetSpec* set = take_room(pod, at);
  const std::string name = qualified(pod.ns, pod.name);
  const model::WorkloadSpec& workload = out_.queues.workloads[at];
  if (set != nullptr) set->pods.push_back(name);
  if (bound) return;
  if (set == nullptr && workload.admitted) {
    out_.beyond.emplace_back(name, "its workload " + workload.name +
                                       " was let in without it: this pod is one more, or asks for "
                                       "more than was asked for");
  }
  if (set == nullptr || !workload.admission || !workload.admitted) return hold(pod);
  let_in_.insert(name);
  if (kueue_gated_.contains(name)) pod.gated = false;
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

void Resolver::queue_pod_group(PodGroupOf& group) {
  const auto started = [](const PodGroupOf::Member& m) {
    return m.pod == nullptr || !m.pod->node_name.empty();
  };
  const Found<PodObject>& first = *group.members.front().found;
  if (std::any_of(group.members.begin(), group.members.end(), started)) {
    in_.notes.add(Gathered::note(first.origin, first.shown, "",
                                 "pod group " + quoted(group.name) +
                                     " runs already, and no Workload of the input says what quota "
                                     "it holds: it counts towards none"));
    return;
  }
  model::WorkloadSpec spec;
  spec.ns = group.ns;
  spec.name = group.name;
  spec.queue = label_value(first.object.meta, kQueueLabel);
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

// In a cluster that lives a pod is of the owner that it names by its UID: another one of that name
// is not the one that was let in.
std::vector<std::size_t> Resolver::of_owner(const std::vector<std::size_t>& places,
                                            const std::string& uid) const {
  if (!options_.live || uid.empty()) return places;
  std::vector<std::size_t> out;
  for (const std::size_t at : places) {
    const auto known = owner_uids_.find(at);
    if (known == owner_uids_.end() || known->second.contains(uid)) out.push_back(at);
  }
  return out;
}

// A pod that comes for one that is gone, to a group whose Workload holds quota: it has that one's
// room. False: there is none.
bool Resolver::take_room_of_group(model::PodSpec& pod, const std::string& group) {
  const auto holder = group_holders_.find(qualified(pod.ns, group));
  if (holder == group_holders_.end() || !pod.node_name.empty() || pod.queued) return false;
  const model::WorkloadSpec& workload = out_.queues.workloads[holder->second];
  if (!workload.admitted) return false;
  model::PodSetSpec* set = take_room(pod, holder->second);
  if (set == nullptr) return false;
  const std::string name = qualified(pod.ns, pod.name);
  set->pods.push_back(name);
  let_in_.insert(name);
  if (kueue_gated_.contains(name)) pod.gated = false;
  return true;
}

// What runs and has no owner that a workload stands for is of the one that it was started by, which
// its annotation says, where that holds quota.
void Resolver::attach_started(model::PodSpec& pod, const std::string& workload) {
  if (holder_at_.empty()) {
    for (std::size_t at = 0; at < out_.queues.workloads.size(); ++at) {
      const model::WorkloadSpec& spec = out_.queues.workloads[at];
      if (spec.admission) holder_at_.emplace(qualified(spec.ns, spec.name), at);
    }
  }
  const auto at = holder_at_.find(qualified(pod.ns, workload));
  if (at != holder_at_.end()) attach(pod, {at->second});
}

// Pods to the workloads that stand for them, or for what made the Job that made them. Those that
// run come first: they have their room already.
void Resolver::attach_pods() {
  struct Told {
    std::string owner_uid, workload;
  };
  std::map<std::string, Told, std::less<>> told;  // by pod
  for (const Found<PodObject>& found : in_.pods) {
    const Meta& meta = found.object.meta;
    Told one;
    if (const Owner* owner = meta.controller()) one.owner_uid = owner->uid;
    if (const std::string* by = meta.annotation(kWorkloadAnnotation)) one.workload = *by;
    if (!one.owner_uid.empty() || !one.workload.empty()) {
      told.emplace(qualified(meta.ns, meta.name), std::move(one));
    }
  }
  for (const auto& local : out_.queues.local_queues)
    own_locals_[local.ns][local.name] = local.queue;
  std::map<std::string, std::string, std::less<>> makers;  // of Jobs: ns/Kind/name by ns/Job/name
  for (const Found<JobObject>& job : in_.jobs) {
    const Meta& meta = job.object.meta;
    const Owner* owner = meta.controller();
    if (owner == nullptr || !made_by_admitted(job.object)) continue;
    makers.emplace(qualified(meta.ns, "Job/" + meta.name), qualified(meta.ns, owner->text()));
  }
  std::vector<model::PodSpec*> strays;  // run, and no workload says that they are its own
  for (const bool bound : {true, false}) {
    for (model::PodSpec& pod : out_.pods) {
      if (bound == pod.node_name.empty()) continue;
      const auto says = told.find(qualified(pod.ns, pod.name));
      std::string uid = pod.uid;
      auto owned = workloads_of_.find(qualified(pod.ns, "Pod/" + pod.name));
      const std::string owner = qualified(pod.ns, pod.owner);
      if (owned == workloads_of_.end()) {
        owned = workloads_of_.find(owner);
        uid = says == told.end() ? std::string() : says->second.owner_uid;
      }
      if (owned == workloads_of_.end()) {
        const auto maker = makers.find(owner);
        if (maker != makers.end()) owned = workloads_of_.find(maker->second);
        uid.clear();
      }
      if (owned != workloads_of_.end()) {
        const std::vector<std::size_t> places = of_owner(owned->second, uid);
        if (!places.empty() || owned->second.empty()) {
          attach(pod, places);
          continue;
        }
      }
      if (!bound || !options_.live) continue;
      if (says != told.end() && !says->second.workload.empty()) {
        attach_started(pod, says->second.workload);
      } else {
        strays.push_back(&pod);
      }
    }
    for (model::PodSpec* pod : std::exchange(strays, {})) attach_replacement(*pod);
  }
}

// What came to a group for a member that was gone, and runs, has the room that it was let into.
void Resolver::attach_replacement(model::PodSpec& pod) {
  for (const std::string& group : groups_of(pod)) {
    const auto holder = group_holders_.find(group);
    if (holder != group_holders_.end()) return attach(pod, {holder->second});
  }
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
        workloads_of_.contains(qualified(meta.ns, "Pod/" + meta.name)) ||
        (owner != nullptr && workloads_of_.contains(qualified(meta.ns, owner->text())));
    if (owned || (kueue_decides_ && !managed(meta.ns))) continue;
    const auto at = pod_at_.find(qualified(meta.ns, meta.name));
    model::PodSpec* pod = at == pod_at_.end() ? nullptr : &out_.pods[at->second];
    const std::string name = label_or_annotation(meta, kGroupName);
    if (!kueue_decides_) {
      const bool starts = pod != nullptr && pod->node_name.empty() && !pod->gated;
      if (starts) say_no_queues(found);
    } else if (!name.empty() && pod != nullptr && take_room_of_group(*pod, name)) {
      continue;
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

}  // namespace berth::objects
