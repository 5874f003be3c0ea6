#include "kinds/resolve/known_queues.h"

#include <algorithm>
#include <utility>

namespace berth::kinds {

namespace {

template <class T>
void take_specs(std::vector<Found<T>>& from, std::vector<T>& to) {
  for (Found<T>& found : from) to.push_back(std::move(found.object));
}

constexpr std::string_view kNamespaceName = "kubernetes.io/metadata.name";

}  // namespace

KnownQueues::KnownQueues(Resolution& all) : Part(all) {
  read_configuration();
  take_over();
  read_namespaces();
}

void KnownQueues::read_configuration() {
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
    managed_ = std::move(config.object.managed_namespaces);
    of_pods_ = config.object.manages("pod");
  }
}

void KnownQueues::take_over() {
  model::QueueInputs& queues = out_.queues;
  decide_ = !in_.cluster_queues.empty();
  for (const auto& local : in_.local_queues) {
    if (local.object.name == "default") defaults_.insert(local.object.ns);
  }
  take_specs(in_.flavors, queues.flavors);
  take_specs(in_.cluster_queues, queues.queues);
  take_specs(in_.local_queues, queues.local_queues);
  take_specs(in_.cohorts, queues.cohorts);
  take_specs(in_.topologies, queues.topologies);
  take_specs(in_.checks, queues.checks);
  for (std::size_t i = 0; i < queues.queues.size(); ++i) queue_at_[queues.queues[i].name] = i;
  for (std::size_t i = 0; i < queues.flavors.size(); ++i) flavor_at_[queues.flavors[i].name] = i;
  for (const auto& c : in_.workload_classes) classes_[c.object.meta.name] = c.object.value;
  for (const auto& local : queues.local_queues) {
    if (decide_) locals_[local.ns][local.name] = local.queue;
  }
}

void KnownQueues::read_namespaces() {
  for (auto& ns : in_.namespaces) {
    const bool has_label = ns.object.meta.labels.contains(kQueueRequiredLabel);
    const std::string required = label_value(ns.object.meta, kQueueRequiredLabel);
    if (has_label && required != "false") required_.insert(ns.object.meta.name);
    if (has_label && required != "true" && required != "false") {
      in_.warn(ns, mark_path("labels", kQueueRequiredLabel),
               "found " + quoted(required) + ", want \"true\" or \"false\"; it counts as true");
    }
    model::Labels labels = std::move(ns.object.meta.labels);
    labels.try_emplace(std::string(kNamespaceName), ns.object.meta.name);
    out_.queues.namespaces[ns.object.meta.name] = std::move(labels);
  }
}

const model::FlavorSpec* KnownQueues::flavor_named(const std::string& name) const {
  const auto it = flavor_at_.find(name);
  return it == flavor_at_.end() ? nullptr : &out_.queues.flavors[it->second];
}

const model::QueueSpec* KnownQueues::queue_named(const std::string& name) const {
  const auto it = queue_at_.find(name);
  return it == queue_at_.end() ? nullptr : &out_.queues.queues[it->second];
}

// By its labels; each has its own name, known or not.
bool KnownQueues::selects(const text::Selector& selector, const std::string& ns) const {
  const auto known = out_.queues.namespaces.find(ns);
  return text::matches(selector, [&](std::string_view key) -> std::optional<std::string_view> {
    if (known == out_.queues.namespaces.end()) {
      if (key == kNamespaceName) return ns;
      return std::nullopt;
    }
    const auto it = known->second.find(key);
    if (it == known->second.end()) return std::nullopt;
    return it->second;
  });
}

bool KnownQueues::managed(const std::string& ns) const {
  if (required_.contains(ns)) return true;
  if (managed_) return selects(*managed_, ns);
  return ns != "kube-system" && ns != "kueue-system" && ns != options_.own_namespace;
}

bool KnownQueues::is_open_to(const std::string& queue, const std::string& ns) const {
  const model::QueueSpec* known = queue_named(queue);
  return known != nullptr && known->namespaces && selects(*known->namespaces, ns);
}

bool KnownQueues::requires_queue(const std::string& ns) const {
  if (required_.contains(ns)) return true;
  return out_.queues.config.manage_without_queue && managed(ns);
}

// Kueue's Configuration speaks of pods only where their integration is on.
bool KnownQueues::requires_queue(const model::PodSpec& pod) const {
  if (required_.contains(pod.ns)) return true;
  return (of_pods_ || pod.owner.starts_with("Job/")) && requires_queue(pod.ns);
}

QueueDemands KnownQueues::demands() const {
  QueueDemands out{.kueue = decide_, .pods = of_pods_, .required = {}, .defaulted = {}};
  for (const auto& [ns, labels] : out_.queues.namespaces) {
    if (requires_queue(ns)) out.required.insert(ns);
  }
  for (const std::string& ns : defaults_) {
    if (decide_ && managed(ns)) out.defaulted.insert(ns);
  }
  return out;
}

std::optional<int> KnownQueues::workload_class(const std::string& name) const {
  const auto it = classes_.find(name);
  if (it == classes_.end()) return std::nullopt;
  return it->second;
}

void KnownQueues::fill_admission(model::WorkloadSpec& spec) const {
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

const KnownQueues::Locals* KnownQueues::locals(const std::string& ns) const {
  const auto own = locals_.find(ns);
  return own == locals_.end() ? nullptr : &own->second;
}

std::string KnownQueues::kueue_charge(const model::WorkloadSpec& workload) const {
  if (workload.admission && !workload.admission->queue.empty()) {
    return std::string(kKueueCharge) + workload.admission->queue;
  }
  const Locals* own = locals(workload.ns);
  if (own == nullptr) return "";
  const auto local = own->find(workload.queue);
  return local == own->end() ? "" : std::string(kKueueCharge) + local->second;
}

std::optional<std::string> KnownQueues::default_queue_of(const Meta& meta) const {
  std::string label = label_value(meta, kQueueLabel);
  if (!label.empty()) return label;
  // As the webhook has it: what something else made is that one's.
  const Owner* owner = meta.controller();
  const bool own = owner == nullptr || owner->is("batch", "CronJob");
  if (own && decide_ && managed(meta.ns) && defaults_.contains(meta.ns)) {
    return "default";
  }
  return std::nullopt;
}

// Kueue's webhook gives the label to pods of such a namespace when they are made. In a cluster that
// lives those without it are of no queue.
std::string KnownQueues::default_queue(const Meta& meta) const {
  if (options_.live) return "";
  const Owner* owner = meta.controller();
  const bool alone = owner == nullptr || owner->is("apps", "ReplicaSet");
  const bool waits =
      decide_ && of_pods_ && alone && defaults_.contains(meta.ns) && managed(meta.ns);
  return waits ? "default" : "";
}

bool KnownQueues::covers(const std::string& queue, const std::string& resource) const {
  const model::QueueSpec* known = queue_named(queue);
  if (known == nullptr) return true;  // nobody knows
  return std::any_of(known->groups.begin(), known->groups.end(), [&](const auto& group) {
    return std::find(group.covered.begin(), group.covered.end(), resource) != group.covered.end();
  });
}

std::string KnownQueues::local_to(const std::string& queue, const std::string& ns) const {
  const Locals* own = locals(ns);
  if (own == nullptr) return "";
  for (const auto& [local, target] : *own) {
    if (target == queue) return local;
  }
  return "";
}

bool KnownQueues::some_require() const {
  return !required_.empty() || out_.queues.config.manage_without_queue;
}

void KnownQueues::say_no_queues(const Origin& at, const std::string& shown,
                                std::string_view message) {
  if (std::exchange(said_no_queues_, true)) return;
  in_.notes.add(Gathered::note(at, shown, "", std::string(message)));
}

}  // namespace berth::kinds
