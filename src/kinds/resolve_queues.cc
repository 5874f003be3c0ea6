// Queue objects and Workload objects against everything else in the input.
#include <algorithm>
#include <limits>
#include <tuple>

#include "kinds/quota_requests.h"
#include "kinds/resolver.h"

namespace berth::kinds {

namespace {

template <class T>
void take_specs(std::vector<Found<T>>& from, std::vector<T>& to) {
  for (Found<T>& found : from) to.push_back(std::move(found.object));
}

constexpr std::string_view kNamespaceName = "kubernetes.io/metadata.name";

int boosted(int priority, int boost) {
  const std::int64_t sum = std::int64_t{priority} + boost;
  return static_cast<int>(std::clamp<std::int64_t>(sum, std::numeric_limits<std::int32_t>::min(),
                                                   std::numeric_limits<std::int32_t>::max()));
}

}  // namespace

void Resolver::queues() {
  model::QueueInputs& queues = out_.queues;
  std::sort(in_.queue_configs.begin(), in_.queue_configs.end(),
            [](const auto& a, const auto& b) { return a.origin < b.origin; });
  for (std::size_t i = 0; i < in_.queue_configs.size(); ++i) {
    Found<QueueConfigObject>& config = in_.queue_configs[i];
    if (i > 0) {
      in_.refuse(config, "", "found a second Configuration, want one; the first is used");
      continue;
    }
    queues.config = std::move(config.object.config);
    managed_namespaces_ = std::move(config.object.managed_namespaces);
    default_pods_ = config.object.manages("pod");
  }
  kueue_decides_ = !in_.cluster_queues.empty();
  for (const auto& local : in_.local_queues) {
    if (local.object.name == "default") default_queues_.insert(local.object.ns);
  }
  take_specs(in_.flavors, queues.flavors);
  take_specs(in_.cluster_queues, queues.queues);
  take_specs(in_.local_queues, queues.local_queues);
  take_specs(in_.cohorts, queues.cohorts);
  take_specs(in_.topologies, queues.topologies);
  take_specs(in_.checks, queues.checks);
  for (std::size_t i = 0; i < queues.queues.size(); ++i) queue_at_[queues.queues[i].name] = i;
  for (std::size_t i = 0; i < queues.flavors.size(); ++i) flavor_at_[queues.flavors[i].name] = i;
  for (const auto& c : in_.workload_classes) workload_classes_[c.object.meta.name] = c.object.value;
  for (auto& ns : in_.namespaces) {
    const bool has_label = ns.object.meta.labels.contains(kQueueRequiredLabel);
    const std::string required = label_value(ns.object.meta, kQueueRequiredLabel);
    if (has_label && required != "false") required_namespaces_.insert(ns.object.meta.name);
    if (has_label && required != "true" && required != "false") {
      in_.warn(ns, mark_path("labels", kQueueRequiredLabel),
               "found " + quoted(required) + ", want \"true\" or \"false\"; it counts as true");
    }
    model::Labels labels = std::move(ns.object.meta.labels);
    labels.try_emplace(std::string(kNamespaceName), ns.object.meta.name);
    queues.namespaces[ns.object.meta.name] = std::move(labels);
  }
}

const model::FlavorSpec* Resolver::flavor_named(const std::string& name) const {
  const auto it = flavor_at_.find(name);
  return it == flavor_at_.end() ? nullptr : &out_.queues.flavors[it->second];
}

const model::QueueSpec* Resolver::queue_named(const std::string& name) const {
  const auto it = queue_at_.find(name);
  return it == queue_at_.end() ? nullptr : &out_.queues.queues[it->second];
}

// By its labels; each has its own name, known or not.
bool Resolver::selects(const text::Selector& selector, const std::string& ns) const {
  const auto known = out_.queues.namespaces.find(ns);
  return text::matches(selector,
                       [&](std::string_view key) -> std::optional<std::string_view> {
                         if (known == out_.queues.namespaces.end()) {
                           if (key == kNamespaceName) return ns;
                           return std::nullopt;
                         }
                         const auto it = known->second.find(key);
                         if (it == known->second.end()) return std::nullopt;
                         return it->second;
                       });
}

bool Resolver::managed(const std::string& ns) const {
  if (required_namespaces_.contains(ns)) return true;
  if (managed_namespaces_) return selects(*managed_namespaces_, ns);
  return ns != "kube-system" && ns != "kueue-system" && ns != options_.own_namespace;
}

bool Resolver::is_open_to(const std::string& queue, const std::string& ns) const {
  const model::QueueSpec* known = queue_named(queue);
  return known != nullptr && known->namespaces && selects(*known->namespaces, ns);
}

bool Resolver::requires_queue(const std::string& ns) const {
  if (required_namespaces_.contains(ns)) return true;
  return out_.queues.config.manage_without_queue && managed(ns);
}

// Kueue's Configuration speaks of pods only where their integration is on.
bool Resolver::requires_queue(const model::PodSpec& pod) const {
  if (required_namespaces_.contains(pod.ns)) return true;
  return (default_pods_ || pod.owner.starts_with("Job/")) && requires_queue(pod.ns);
}

QueueDemands Resolver::demands() && {
  queues();
  QueueDemands out{.kueue = kueue_decides_, .pods = default_pods_, .required = {}, .defaulted = {}};
  for (const auto& [ns, labels] : out_.queues.namespaces) {
    if (requires_queue(ns)) out.required.insert(ns);
  }
  for (const std::string& ns : default_queues_) {
    if (kueue_decides_ && managed(ns)) out.defaulted.insert(ns);
  }
  return out;
}

QueueDemands demands_of(Gathered&& gathered, const ManifestOptions& options) {
  return Resolver(gathered, options).demands();
}

std::optional<int> Resolver::workload_class(const std::string& name) const {
  const auto it = workload_classes_.find(name);
  if (it == workload_classes_.end()) return std::nullopt;
  return it->second;
}

template <class T>
void Resolver::say_no_queues(const Found<T>& at) {
  if (said_no_queues_) return;
  said_no_queues_ = true;
  in_.notes.add(
      Gathered::note(at.origin, at.shown, "",
                     "it names a Kueue queue and the input has no ClusterQueue: it and others "
                     "like it start without one"));
}
template void Resolver::say_no_queues(const Found<JobObject>&);
template void Resolver::say_no_queues(const Found<QueuedMaker>&);
template void Resolver::say_no_queues(const Found<PodObject>&);

void Resolver::meaning_of(model::TopologyAsk& ask) const {
  if (!ask.level.empty()) ask.level = topology_key(ask.level, node_label_keys_);
  for (auto& slice : ask.slices) slice.level = topology_key(slice.level, node_label_keys_);
}

std::size_t Resolver::add_workload(model::WorkloadSpec spec) {
  // Another object of that name and another kind: tell them apart as Kueue does, by the kind.
  const std::string kind = spec.owner.substr(0, spec.owner.find('/'));
  std::string prefix = kind.empty() ? "group-" : kind + '-';
  for (char& c : prefix) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  while (!workload_names_.insert(qualified(spec.ns, spec.name)).second) {
    spec.name = prefix + spec.name;
  }
  for (model::PodSetSpec& set : spec.pod_sets) meaning_of(set.topology);
  out_.queues.workloads.push_back(std::move(spec));
  return out_.queues.workloads.size() - 1;
}

// The highest that the classes of its pods allow; gone: one of them is not there any more.
int Resolver::template_priority(const WorkloadObject& object, bool& gone) const {
  int most = std::numeric_limits<int>::min();
  for (const PodObject& pod : object.templates) {
    const auto known = priorities_.find(pod.spec.priority_class);
    gone = gone || !known;
    most = std::max(most, known ? known->value : 0);
  }
  return object.templates.empty() ? 0 : most;
}

// Whose class is gone keeps the priority that his pods were made with.
void Resolver::keep_priorities() {
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
bool Resolver::settle_workload(const Found<WorkloadObject>& found, model::WorkloadSpec& spec) {
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
    std::optional<int> value = workload_class(object.priority_class);
    if (object.pod_class) {
      const auto pods = priorities_.find(object.priority_class);
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
void Resolver::settle_templates(Found<WorkloadObject>& found, model::WorkloadSpec& spec) {
  for (std::size_t i = 0; i < spec.pod_sets.size(); ++i) {
    PodObject& pod = found.object.templates[i];
    const std::string path = "spec.podSets[" + std::to_string(i) + "].template.";
    const auto resolved = priorities_.find(pod.spec.priority_class);
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
    std::vector<std::string> warnings;
    volumes_.resolve(pod.claims, pod.spec, warnings);
    for (std::string& w : warnings) in_.warn(found, path + "spec.volumes", std::move(w));
    pod.spec.owner = spec.owner;
    pod.spec.queue = spec.queue;
    pod.spec.gated = pod.other_gates;
    pod.spec.created_ns = spec.created_ns;
    model::PodSetSpec& set = spec.pod_sets[i];
    set.requests = quota_requests(pod.spec, out_.queues.config);
    set.pod = std::make_shared<const model::PodSpec>(std::move(pod.spec));
  }
}

void Resolver::mend_admission(model::WorkloadSpec& spec) const {
  model::AdmissionSpec& admission = *spec.admission;
  if (admission.queue.empty()) {
    for (const auto& local : out_.queues.local_queues) {
      if (local.ns == spec.ns && local.name == spec.queue) admission.queue = local.queue;
    }
  }
  const model::QueueSpec* queue = queue_named(admission.queue);
  for (std::size_t i = 0; i < admission.pod_sets.size(); ++i) {
    model::PodSetAdmission& set = admission.pod_sets[i];
    for (const auto& [resource, amount] : spec.pod_sets[i].requests) {
      if (!set.flavors.contains(resource) && queue != nullptr) {
        for (const model::ResourceGroup& group : queue->groups) {
          const auto& covered = group.covered;
          if (std::find(covered.begin(), covered.end(), resource) == covered.end()) continue;
          set.flavors[resource] = group.flavors.front().flavor;
        }
      }
      const bool fits = set.count == 0 || amount <= kMaxAmount / set.count;
      set.usage.try_emplace(resource, fits ? amount * set.count : kMaxAmount);
    }
  }
}

// Whatever the spec says now, of a holder there are as many pods as its status says. Those that are
// done are first of all the ones that it was let in without.
void Resolver::count_as_admitted(model::WorkloadSpec& spec) {
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

namespace {

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

}  // namespace

// A slice takes the place of one of the same owner: of anything else it would only free the quota.
void Resolver::check_slices() {
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

void Resolver::workloads() {
  for (Found<WorkloadObject>& found : in_.workloads) {
    model::WorkloadSpec& spec = found.object.spec;
    if (!kueue_decides_) {
      if (!spec.finished && !said_no_queues_) {
        said_no_queues_ = true;
        in_.notes.add(Gathered::note(found.origin, found.shown, "",
                                     "the input has no ClusterQueue: Workloads are left aside"));
      }
      continue;
    }
    std::vector<std::vector<std::size_t>*> owners;
    for (const Owner& owner : found.object.meta.owners) {
      const std::string key = qualified(spec.ns, owner.text());
      owners.push_back(&workloads_of_[key]);
      if (!owner.uid.empty()) uids_of_[key].insert(owner.uid);
    }
    if (spec.finished || !settle_workload(found, spec)) continue;
    std::size_t pods = 0;
    for (const auto& set : spec.pod_sets) pods += static_cast<std::size_t>(set.count);
    std::size_t& waiting = waiting_pods_[spec.ns];
    if (!spec.admission && pods > options_.max_job_pods - waiting) {
      in_.refuse(found, "spec.podSets",
                 "found " + std::to_string(pods) + " pods, want at most " +
                     std::to_string(options_.max_job_pods - waiting) +
                     " more over all that waits in namespace " + spec.ns);
      continue;
    }
    if (!spec.admission) waiting += pods;
    settle_templates(found, spec);
    if (!found.object.read && spec.admission) mend_admission(spec);
    if (options_.live && spec.admission) count_as_admitted(spec);
    const std::size_t at = add_workload(std::move(spec));
    for (auto* owned : owners) owned->push_back(at);
    for (const Owner& owner : found.object.meta.owners) {
      if (!owner.uid.empty()) owner_uids_[at].insert(owner.uid);
    }
  }
  check_slices();
  know_variants();
}

// "": its LocalQueue is not there.
std::string Resolver::kueue_charge(const model::WorkloadSpec& workload) const {
  if (workload.admission && !workload.admission->queue.empty()) {
    return std::string(kKueueCharge) + workload.admission->queue;
  }
  const auto own = own_locals_.find(workload.ns);
  if (own == own_locals_.end()) return "";
  const auto local = own->second.find(workload.queue);
  return local == own->second.end() ? "" : std::string(kKueueCharge) + local->second;
}

void Resolver::finish_queues() {
  std::erase_if(out_.pods, [this](const model::PodSpec& pod) {
    return dropped_pods_.contains(qualified(pod.ns, pod.name));
  });
  model::QueueInputs& queues = out_.queues;
  for (model::WorkloadSpec& workload : queues.workloads) {
    for (model::PodSetSpec& set : workload.pod_sets) std::sort(set.pods.begin(), set.pods.end());
    if (options_.live && workload.charge.empty()) workload.charge = kueue_charge(workload);
  }
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  const auto by_namespace = [](const auto& a, const auto& b) {
    return std::tie(a.ns, a.name) < std::tie(b.ns, b.name);
  };
  std::sort(queues.flavors.begin(), queues.flavors.end(), by_name);
  std::sort(queues.queues.begin(), queues.queues.end(), by_name);
  std::sort(queues.cohorts.begin(), queues.cohorts.end(), by_name);
  std::sort(queues.local_queues.begin(), queues.local_queues.end(), by_namespace);
  std::sort(queues.workloads.begin(), queues.workloads.end(), by_namespace);
}

}  // namespace berth::kinds
