#include "kinds/resolve/workloads.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "kinds/quota_requests.h"

namespace berth::kinds {

namespace {

int boosted(int priority, int boost) {
  const std::int64_t sum = std::int64_t{priority} + boost;
  return static_cast<int>(std::clamp<std::int64_t>(sum, std::numeric_limits<std::int32_t>::min(),
                                                   std::numeric_limits<std::int32_t>::max()));
}

// A slice is the old one with more of the same pods: those that run are its own. One that asks for
// less would free what runs, and one of other pods would hold room beside it for the same quota.
bool has_pods_of(const model::WorkloadSpec& slice, const model::WorkloadSpec& old) {
  if (!old.admission) return true;
  const auto find_set = [](const model::WorkloadSpec& of, const std::string& name) {
    return std::find_if(of.pod_sets.begin(), of.pod_sets.end(),
                        [&name](const model::PodSetSpec& set) { return set.name == name; });
  };
  const auto& held = old.admission->pod_sets;
  return std::all_of(held.begin(), held.end(), [&](const model::PodSetAdmission& set) {
    const auto asks = find_set(slice, set.name), asked = find_set(old, set.name);
    if (asks == slice.pod_sets.end() || asked == old.pod_sets.end()) return false;
    if (asks->count < set.count || asks->requests != asked->requests) return false;
    // What it says may have changed since; what it holds has not.
    return std::all_of(set.usage.begin(), set.usage.end(), [&](const auto& entry) {
      const auto each = asks->requests.find(entry.first);
      if (!model::is_device(entry.first) || each == asks->requests.end()) return true;
      std::int64_t all = 0;
      return !__builtin_mul_overflow(each->second, set.count, &all) && all == entry.second;
    });
  });
}

// Whatever the spec says now, of a holder there are as many pods as its status says. Those that are
// done are first of all the ones that it was let in without.
void count_as_admitted(model::WorkloadSpec& spec) {
  for (model::PodSetSpec& set : spec.pod_sets) {
    for (const model::PodSetAdmission& held : spec.admission->pod_sets) {
      if (held.name != set.name) continue;
      const auto done = spec.reclaimable.find(set.name);
      if (done != spec.reclaimable.end()) {
        done->second =
            std::clamp(done->second - std::max(0, set.count - held.count), 0, held.count);
      }
      set.count = held.count;
    }
  }
}

// Short names of levels.
void settle_topology(const KnownNodes& nodes, model::TopologyAsk& ask) {
  if (!ask.level.empty()) ask.level = nodes.label_of(ask.level);
  for (auto& slice : ask.slices) slice.level = nodes.label_of(slice.level);
}

}  // namespace

Workloads::Workloads(Resolution& all, const KnownNodes& nodes, KnownQueues& queues,
                     const PodReferences& references)
    : Part(all), nodes_(nodes), queues_(queues), references_(references) {
  for (Found<WorkloadObject>& found : in_.workloads) read(found);
  check_slices();
  know_variants();
}

std::size_t Workloads::add(model::WorkloadSpec spec) {
  // Another object of that name and another kind: tell them apart as Kueue does, by the kind.
  const std::string kind = spec.owner.substr(0, spec.owner.find('/'));
  std::string prefix = kind.empty() ? "group-" : kind + '-';
  for (char& c : prefix) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  while (!names_.insert(qualified(spec.ns, spec.name)).second) {
    spec.name = prefix + spec.name;
  }
  for (model::PodSetSpec& set : spec.pod_sets) settle_topology(nodes_, set.topology);
  out_.queues.workloads.push_back(std::move(spec));
  return out_.queues.workloads.size() - 1;
}

// The highest that the classes of its pods allow; gone: one of them is not there any more.
int Workloads::template_priority(const WorkloadObject& object, bool& gone) const {
  int most = std::numeric_limits<int>::min();
  for (const PodObject& pod : object.templates) {
    const auto known = references_.priorities().find(pod.spec.priority_class);
    gone = gone || !known;
    most = std::max(most, known ? known->value : 0);
  }
  return object.templates.empty() ? 0 : most;
}

void Workloads::keep_priorities() {
  if (classless_.empty()) return;
  std::map<std::string, int, std::less<>> bound;
  for (const model::PodSpec& pod : out_.pods) {
    if (!pod.node_name.empty()) bound.emplace(qualified(pod.ns, pod.name), pod.priority);
  }
  for (model::WorkloadSpec& workload : out_.queues.workloads) {
    const auto number = classless_.find(qualified(workload.ns, workload.name));
    if (number == classless_.end() || !workload.admission) continue;
    for (const model::PodSetSpec& set : workload.pod_sets) {
      for (const std::string& name : set.pods) {
        const auto pod = bound.find(name);
        if (pod == bound.end()) continue;
        workload.priority = std::max(workload.priority, std::min(number->second, pod->second));
      }
    }
  }
}

// Its priority; false when it is refused.
bool Workloads::settle(const Found<WorkloadObject>& found, model::WorkloadSpec& spec) {
  const WorkloadObject& object = found.object;
  const model::QueueConfig& config = out_.queues.config;
  if (object.priority && (!options_.live || object.priority_class.empty())) {
    spec.priority = *object.priority;
    // In a cluster that lives its author may write the number: it is what the classes of its pods
    // allow.
    if (options_.live) {
      bool gone = false;
      spec.priority = std::min(spec.priority, template_priority(object, gone));
      if (gone) classless_.emplace(qualified(spec.ns, spec.name), *object.priority);
    }
  } else if (!object.priority_class.empty()) {
    std::optional<int> value = queues_.workload_class(object.priority_class);
    if (object.pod_class) {
      const auto pods = references_.priorities().find(object.priority_class);
      value = pods ? std::optional<int>(pods->value) : std::nullopt;
    }
    if (!value) {
      const std::string message =
          "found class " + quoted(object.priority_class) + ", want a " +
          (object.pod_class ? "PriorityClass of the input: add priorityclasses"
                            : "WorkloadPriorityClass of the input: add workloadpriorityclasses") +
          " to what kubectl gets";
      if (!spec.admission && !object.priority) {
        in_.refuse(found, "spec", message);
        return false;
      }
      in_.warn(found, "spec", message + "; until then its pods say its priority, or it is 0");
    }
    spec.priority = value.value_or(std::min(object.priority.value_or(0), 0));
    if (!value && object.priority) {
      classless_.emplace(qualified(spec.ns, spec.name), *object.priority);
    }
  }
  if (config.gate("PriorityBoost", false)) spec.priority = boosted(spec.priority, object.boost);
  if (!config.gate("AdmissionGatedBy", true)) spec.held_by.clear();
  if (!config.gate("ReclaimablePods", true)) spec.reclaimable.clear();
  if (!config.gate("ElasticJobsViaWorkloadSlices", true)) spec.replaces.clear();
  return true;
}

// The pods of a workload as they would be made.
void Workloads::settle_templates(Found<WorkloadObject>& found, model::WorkloadSpec& spec) const {
  for (std::size_t i = 0; i < spec.pod_sets.size(); ++i) {
    PodObject& pod = found.object.templates[i];
    const std::string path = "spec.podSets[" + std::to_string(i) + "].template.";
    const auto resolved = references_.priorities().find(pod.spec.priority_class);
    if (resolved) {
      pod.spec.priority = resolved->value;
      pod.spec.preempts = resolved->preempts;
    } else if (!pod.priority) {
      in_.warn(found, path + "spec.priorityClassName",
               "found " + quoted(pod.spec.priority_class) +
                   ", want a PriorityClass of the input; the workload's priority is taken");
      pod.spec.priority = spec.priority;
    }
    if (pod.priority && !resolved) pod.spec.priority = *pod.priority;
    if (pod.preempts && !resolved) pod.spec.preempts = *pod.preempts;
    references_.settle_volumes(found, path, pod, pod.spec);
    pod.spec.owner = spec.owner;
    pod.spec.queue = spec.queue;
    pod.spec.gated = pod.other_gates;
    pod.spec.created_ns = spec.created_ns;
    model::PodSetSpec& set = spec.pod_sets[i];
    set.requests = quota_requests(pod.spec, out_.queues.config);
    set.pod = std::make_shared<const model::PodSpec>(std::move(pod.spec));
  }
}

// A slice takes the place of one of the same owner: of anything else it would only free the quota.
void Workloads::check_slices() {
  std::map<std::string, const model::WorkloadSpec*, std::less<>> by_name;
  for (const model::WorkloadSpec& spec : out_.queues.workloads) {
    by_name.emplace(qualified(spec.ns, spec.name), &spec);
  }
  for (model::WorkloadSpec& spec : out_.queues.workloads) {
    if (spec.replaces.empty()) continue;
    const auto old = by_name.find(spec.replaces);
    if (old == by_name.end()) continue;
    if (old->second->owner == spec.owner) {
      if (options_.live && !has_pods_of(spec, *old->second)) spec.replaces.clear();
      continue;
    }
    in_.warnings.add(Gathered::note(
        {}, "Workload " + qualified(spec.ns, spec.name),
        "metadata.annotations[kueue.x-k8s.io/workload-slice-replacement-for]",
        "found " + quoted(spec.replaces) + " of another owner, want a slice of " +
            (spec.owner.empty() ? "its own" : spec.owner) + ": it replaces nothing"));
    spec.replaces.clear();
  }
}

void Workloads::read(Found<WorkloadObject>& found) {
  model::WorkloadSpec& spec = found.object.spec;
  if (!queues_.decide()) {
    if (spec.finished) return;
    return queues_.say_no_queues(found.origin, found.shown,
                                 "the input has no ClusterQueue: Workloads are left aside");
  }
  std::vector<Places*> owners;
  for (const Owner& owner : found.object.meta.owners) {
    const std::string key = qualified(spec.ns, owner.text());
    owners.push_back(&claim(key));
    if (!owner.uid.empty()) uids_of_owner_[key].insert(owner.uid);
  }
  if (spec.finished || !settle(found, spec)) return;
  std::size_t pods = 0;
  for (const auto& set : spec.pod_sets) pods += static_cast<std::size_t>(set.count);
  std::size_t room = 0;
  if (!spec.admission && !take_waiting(spec.ns, pods, room)) {
    return in_.refuse(found, "spec.podSets",
                      "found " + std::to_string(pods) + " pods, want at most " +
                          std::to_string(room) + " more over all that waits in namespace " +
                          spec.ns);
  }
  settle_templates(found, spec);
  if (!found.object.read && spec.admission) queues_.fill_admission(spec);
  if (options_.live && spec.admission) count_as_admitted(spec);
  const std::size_t at = add(std::move(spec));
  for (Places* owned : owners) owned->push_back(at);
  for (const Owner& owner : found.object.meta.owners) know_uid(at, owner.uid);
}

void Workloads::finish() {
  for (model::WorkloadSpec& workload : out_.queues.workloads) {
    for (model::PodSetSpec& set : workload.pod_sets) std::sort(set.pods.begin(), set.pods.end());
    if (options_.live && workload.charge.empty()) workload.charge = queues_.kueue_charge(workload);
  }
}

const Workloads::Places* Workloads::of(const std::string& owner) const {
  const auto it = of_owner_.find(owner);
  return it == of_owner_.end() ? nullptr : &it->second;
}

Workloads::Places& Workloads::claim(const std::string& owner) { return of_owner_[owner]; }

void Workloads::know_uid(std::size_t place, const std::string& uid) {
  if (!uid.empty()) uids_[place].insert(uid);
}

bool Workloads::hold_quota(const Places& places) const {
  return std::any_of(places.begin(), places.end(), [this](std::size_t at) {
    return out_.queues.workloads[at].admission.has_value();
  });
}

// In a cluster that lives no pods are made here, and who came first is not known: one workload is
// as large as it may be, whatever else waits.
bool Workloads::take_waiting(const std::string& ns, std::size_t count, std::size_t& room) {
  std::size_t& waiting = waiting_[ns];
  room = options_.max_job_pods - waiting;
  if (count > room) return false;
  if (!options_.live) waiting += count;
  return true;
}

template <class T>
model::PodSpec Workloads::made_pod(const Found<T>& at, const std::string& path,
                                   const PodObject& from, const std::string& queue,
                                   const std::string& owner) const {
  model::PodSpec pod = from.spec;
  references_.settle_volumes(at, path, from, pod);
  pod.owner = owner;
  pod.queue = queue;
  pod.gated = from.other_gates;
  return pod;
}
template model::PodSpec Workloads::made_pod(const Found<JobObject>&, const std::string&,
                                            const PodObject&, const std::string&,
                                            const std::string&) const;
template model::PodSpec Workloads::made_pod(const Found<QueuedMaker>&, const std::string&,
                                            const PodObject&, const std::string&,
                                            const std::string&) const;

template <class T>
bool Workloads::class_priority(const Found<T>& at, const Meta& meta, int& priority) const {
  std::string name = label_value(meta, kClassLabel);
  const bool defaulting = out_.queues.config.gate("WorkloadPriorityClassDefaulting", false);
  if (name.empty() && defaulting && queues_.workload_class("default")) name = "default";
  if (name.empty()) return true;
  const std::optional<int> value = queues_.workload_class(name);
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
template bool Workloads::class_priority(const Found<JobObject>&, const Meta&, int&) const;
template bool Workloads::class_priority(const Found<QueuedMaker>&, const Meta&, int&) const;
template bool Workloads::class_priority(const Found<PodObject>&, const Meta&, int&) const;

bool Workloads::has(const std::string& owner, const std::string& uid) const {
  if (!of_owner_.contains(owner)) return false;
  if (!options_.live || uid.empty()) return true;
  const auto known = uids_of_owner_.find(owner);
  return known == uids_of_owner_.end() || known->second.contains(uid);
}

Workloads::Places Workloads::of_uid(const Places& places, const std::string& uid) const {
  if (!options_.live || uid.empty()) return places;
  Places out;
  for (const std::size_t at : places) {
    const auto known = uids_.find(at);
    if (known == uids_.end() || known->second.contains(uid)) out.push_back(at);
  }
  return out;
}

bool Workloads::made_by_queued(const Meta& meta) const {
  const Owner* owner = meta.controller();
  return owner != nullptr && of_owner_.contains(qualified(meta.ns, owner->text()));
}

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
  out.let_in_by.clear();
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

}  // namespace berth::kinds
