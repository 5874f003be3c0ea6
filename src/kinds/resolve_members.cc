// Which pods are of which workload of Kueue's queues, and what they may have of its quota.
#include <algorithm>
#include <numeric>

#include "kinds/kind_table.h"
#include "kinds/quota_requests.h"
#include "kinds/resolver.h"

namespace berth::kinds {

namespace {

// What each pod may have of CPU (milli) and memory beyond what its workload was let in with.
constexpr std::int64_t kSidecarCpu = 500;
constexpr std::int64_t kSidecarBytes = 1LL << 30;

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
  const auto label = pod.labels.find(kGroupName);
  if (label != pod.labels.end()) out.push_back(qualified(pod.ns, label->second));
  return out;
}

const model::PodSetAdmission* admission_of(const model::AdmissionSpec& admission,
                                           const std::string& set) {
  const auto it = std::find_if(admission.pod_sets.begin(), admission.pod_sets.end(),
                               [&](const auto& each) { return each.name == set; });
  return it == admission.pod_sets.end() ? nullptr : &*it;
}

// What each pod of an admitted set may have: what the status says, whatever the spec does.
std::int64_t share_of(const model::Amounts& usage, int count, const std::string& resource) {
  const auto known = usage.find(resource);
  return known != usage.end() && count > 0 ? known->second / count : 0;
}

bool same_devices(const model::Amounts& a, const model::Amounts& b) {
  const auto in = [](const model::Amounts& of, const model::Amounts& other) {
    return std::all_of(of.begin(), of.end(), [&](const auto& entry) {
      if (entry.second == 0 || !model::is_device(entry.first)) return true;
      const auto it = other.find(entry.first);
      return it != other.end() && it->second == entry.second;
    });
  };
  return in(a, b) && in(b, a);
}

}  // namespace

// Whether the pod asks for no more of what a queue counts by devices than the pods that the set is
// made of, or was admitted for. Other resources may differ: sidecars and defaults come later.
bool Resolver::asks_no_more(const model::PodSpec& pod, const model::PodSetSpec& set,
                            const std::optional<model::AdmissionSpec>& admission) const {
  const model::PodSetAdmission* held = admission ? admission_of(*admission, set.name) : nullptr;
  for (const auto& [resource, amount] : quota_requests(pod, out_.queues.config)) {
    if (!model::is_device(resource)) continue;
    if (!admission) {
      const auto asked = set.requests.find(resource);
      if (asked == set.requests.end() || amount > asked->second) return false;
      continue;
    }
    if (out_.queues.config.ignore_undeclared && !covers(admission->queue, resource)) continue;
    if (held == nullptr || amount > share_of(held->usage, held->count, resource)) return false;
  }
  return true;
}

bool Resolver::covers(const std::string& queue, const std::string& resource) const {
  const model::QueueSpec* known = queue_named(queue);
  if (known == nullptr) return true;  // nobody knows
  return std::any_of(known->groups.begin(), known->groups.end(), [&](const auto& group) {
    return std::find(group.covered.begin(), group.covered.end(), resource) != group.covered.end();
  });
}

// CPU and memory that came on top since it was let in, by sidecars and defaults. More than a little
// of it needs room in the queue, which it then has.
bool Resolver::rest_fits(const model::PodSpec& pod, const model::AdmissionSpec& admission,
                         const model::PodSetSpec& set, const Taken& taken) {
  const model::PodSetAdmission* held = admission_of(admission, set.name);
  if (!options_.live || held == nullptr) return true;
  std::vector<QuotaLeft::Ask> more;
  for (const auto& [resource, amount] : quota_requests(pod, out_.queues.config)) {
    const auto flavor = held->flavors.find(resource);
    if (flavor == held->flavors.end() || model::is_device(resource)) continue;
    const std::int64_t beyond = amount - share_of(taken.let_in, held->count, resource);
    if (beyond <= (resource == "cpu" ? kSidecarCpu : kSidecarBytes)) continue;
    more.push_back({flavor->second, resource, beyond});
  }
  return more.empty() || quota_left().take(admission.queue, more);
}

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
    if (!may_run_in(pod, *workload.admission, set)) continue;
    int count = set.count;
    for (const model::PodSetAdmission& a : workload.admission->pod_sets) {
      if (a.name == set.name) count = std::min(count, a.count);  // as quota counts it
    }
    Taken& taken = taken_of(at, i);
    const auto done = workload.reclaimable.find(set.name);
    if (options_.live && done != workload.reclaimable.end()) count -= done->second;
    const bool fits = !elsewhere && taken.pods < count &&
                      asks_no_more(pod, set, workload.admission) &&
                      (bound || rest_fits(pod, *workload.admission, set, taken));
    if (!fits && !(bound && (names || workload.pod_sets.size() == 1))) continue;
    if (!elsewhere && (!pod.terminating || (bound && node_answers(pod.node_name)))) ++taken.pods;
    if (fits) {
      counted_.insert(qualified(pod.ns, pod.name));
      count_actual(pod, set, taken, *workload.admission);
    }
    return &set;
  }
  const bool somewhere = bound && !workload.pod_sets.empty();
  return somewhere ? &workload.pod_sets.front() : nullptr;
}

Resolver::Taken& Resolver::taken_of(std::size_t workload, std::size_t set) {
  const auto [it, is_new] = taken_.try_emplace({workload, set});
  if (is_new) {
    const model::WorkloadSpec& spec = out_.queues.workloads[workload];
    const model::PodSetAdmission* held = admission_of(*spec.admission, spec.pod_sets[set].name);
    if (held != nullptr) it->second.let_in = held->usage;
  }
  return it->second;
}

QuotaLeft& Resolver::quota_left() {
  if (!quota_left_) quota_left_.emplace(out_.queues);
  return *quota_left_;
}

// CPU and memory may be more than was asked for: sidecars and defaults come later, and pods are
// resized. What its pods have counts then, as far as its queue could have had it by asking: what it
// has beyond that is not taken from what others are given.
void Resolver::count_actual(const model::PodSpec& pod, const model::PodSetSpec& set, Taken& taken,
                            model::AdmissionSpec& admission) {
  if (!options_.live) return;
  for (const auto& [resource, amount] : quota_requests(pod, out_.queues.config)) {
    if (model::is_device(resource)) continue;
    std::int64_t& so_far = taken.actual[resource];
    if (__builtin_add_overflow(so_far, amount, &so_far)) so_far = kMaxAmount;
    for (model::PodSetAdmission& held : admission.pod_sets) {
      if (held.name != set.name) continue;
      const auto used = held.usage.find(resource);
      const auto flavor = held.flavors.find(resource);
      if (used == held.usage.end() || flavor == held.flavors.end()) continue;
      const std::int64_t beyond = so_far - used->second;
      if (beyond <= 0) continue;
      used->second += quota_left().take_most(admission.queue, {flavor->second, resource, beyond});
    }
  }
}

// Whether no flavor that the set was let in with is one that the pod, which waits, refuses.
bool Resolver::may_run_in(const model::PodSpec& pod, const model::AdmissionSpec& admission,
                          const model::PodSetSpec& set) const {
  if (!options_.live || !pod.node_name.empty()) return true;
  for (const model::PodSetAdmission& held : admission.pod_sets) {
    if (held.name != set.name) continue;
    for (const auto& [resource, name] : held.flavors) {
      const model::FlavorSpec* flavor = flavor_named(name);
      if (flavor == nullptr) continue;
      for (const auto& [key, value] : flavor->node_labels) {
        const auto own = pod.node_selector.find(key);
        if (own != pod.node_selector.end() && own->second != value) return false;
      }
    }
  }
  return true;
}

// It runs where its workload was let in: quota is of flavors, and they are of nodes.
void Resolver::keep_to_flavors(model::PodSpec& pod, const model::WorkloadSpec& workload,
                               const model::PodSetSpec& set) const {
  if (!options_.live) return;
  for (const model::PodSetAdmission& held : workload.admission->pod_sets) {
    if (held.name != set.name) continue;
    std::set<std::string> names;
    for (const auto& [resource, name] : held.flavors) names.insert(name);
    for (const std::string& name : names) {
      const model::FlavorSpec* flavor = flavor_named(name);
      if (flavor == nullptr) continue;
      for (const auto& [key, value] : flavor->node_labels) pod.node_selector.emplace(key, value);
      pod.tolerations.insert(pod.tolerations.end(), flavor->tolerations.begin(),
                             flavor->tolerations.end());
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
  model::PodSetSpec* set = take_room(pod, at);
  const std::string name = qualified(pod.ns, pod.name);
  const model::WorkloadSpec& workload = out_.queues.workloads[at];
  if (set != nullptr) set->pods.push_back(name);
  if (bound) return;
  if (set == nullptr && workload.admitted) {
    out_.beyond.emplace_back(name, "its workload " + workload.name +
                                       " was let in without it: this pod is one more, or asks for "
                                       "more, or for other nodes, than was asked for");
  }
  if (set == nullptr || !workload.admission || !workload.admitted) return hold(pod);
  keep_to_flavors(pod, workload, *set);
  let_in_.insert(name);
  if (kueue_gated_.contains(name)) pod.gated = false;
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
  keep_to_flavors(pod, workload, *set);
  let_in_.insert(name);
  if (kueue_gated_.contains(name)) pod.gated = false;
  return true;
}

// What runs and has no owner that a workload stands for is of the one that it was started by, which
// its annotation says, where that holds quota.
void Resolver::attach_started(model::PodSpec& pod, const std::string& workload) {
  if (const auto holder = holder_named(pod.ns, workload)) attach(pod, {*holder});
}

std::optional<std::size_t> Resolver::holder_named(const std::string& ns,
                                                  const std::string& workload) {
  if (holder_at_.empty()) {
    for (std::size_t at = 0; at < out_.queues.workloads.size(); ++at) {
      const model::WorkloadSpec& spec = out_.queues.workloads[at];
      if (spec.admission) holder_at_.emplace(qualified(spec.ns, spec.name), at);
    }
  }
  const auto at = holder_at_.find(qualified(ns, workload));
  return at == holder_at_.end() ? std::nullopt : std::optional(at->second);
}

// What runs was started by a workload that holds quota. Whom it names as its owner since, one whose
// workloads hold nothing, does not change that: its room would be free for another.
bool Resolver::was_started_by(const model::PodSpec& pod, const std::string& workload,
                              const std::vector<std::size_t>& of_owner_now) {
  const bool holds = std::any_of(of_owner_now.begin(), of_owner_now.end(), [this](std::size_t at) {
    return out_.queues.workloads[at].admission.has_value();
  });
  return options_.live && !holds && holder_named(pod.ns, workload).has_value();
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
    if (owner == nullptr || !made_by_queued(meta)) continue;
    makers.emplace(qualified(meta.ns, "Job/" + meta.name), qualified(meta.ns, owner->text()));
  }
  for (std::size_t at = 0; options_.live && at < out_.queues.workloads.size(); ++at) {
    const model::WorkloadSpec& workload = out_.queues.workloads[at];
    if (!stands_for_group(workload)) continue;
    group_holders_.emplace(qualified(workload.ns, workload.name), at);
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
      if (owned == workloads_of_.end()) {
        for (const std::string& maker : makers_named_by(pod.labels)) {
          owned = workloads_of_.find(qualified(pod.ns, maker));
          if (owned != workloads_of_.end()) break;
        }
      }
      if (owned != workloads_of_.end()) {
        const std::vector<std::size_t> places = of_owner(owned->second, uid);
        const bool started =
            bound && says != told.end() && was_started_by(pod, says->second.workload, places);
        if (!started && (!places.empty() || owned->second.empty())) {
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

}  // namespace berth::kinds
