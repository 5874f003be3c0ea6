#include "kinds/resolve/members.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "kinds/kind_table.h"
#include "kinds/quota_requests.h"

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

Members::Members(Resolution& all, const KnownNodes& nodes, const KnownQueues& queues,
                 const Workloads& workloads, PodMarks& marks)
    : Part(all),
      asks_(all.asks),
      granted_(all.granted),
      nodes_(nodes),
      queues_(queues),
      workloads_(workloads),
      marks_(marks) {
  if (!queues_.decide()) return;
  for (std::size_t at = 0; options_.live && at < out_.queues.workloads.size(); ++at) {
    const model::WorkloadSpec& workload = out_.queues.workloads[at];
    if (!stands_for_group(workload)) continue;
    group_holders_.emplace(qualified(workload.ns, workload.name), at);
  }
  attach_all();
  turn_ = QuotaAsks::Turn::kOfGroup;
}

std::map<std::string, Members::Told, std::less<>> Members::what_pods_tell() const {
  std::map<std::string, Told, std::less<>> out;
  for (const Found<PodObject>& found : in_.pods) {
    const Meta& meta = found.object.meta;
    Told told;
    if (const Owner* owner = meta.controller()) told.owner_uid = owner->uid;
    if (const std::string* by = meta.annotation(kWorkloadAnnotation)) told.workload = *by;
    if (!told.owner_uid.empty() || !told.workload.empty()) {
      out.emplace(qualified(meta.ns, meta.name), std::move(told));
    }
  }
  return out;
}

Members::Names Members::makers_of_jobs() const {
  Names out;
  for (const Found<JobObject>& job : in_.jobs) {
    const Meta& meta = job.object.meta;
    if (!workloads_.made_by_queued(meta)) continue;
    out.emplace(qualified(meta.ns, "Job/" + meta.name),
                qualified(meta.ns, meta.controller()->text()));
  }
  return out;
}

void Members::attach_all() {
  const auto told = what_pods_tell();
  const Told nothing;
  const Names makers = makers_of_jobs();
  std::vector<model::PodSpec*> strays;  // run, and no workload says that they are its own
  for (const bool bound : {true, false}) {
    turn_ = bound ? QuotaAsks::Turn::kRuns : QuotaAsks::Turn::kWaits;
    for (model::PodSpec& pod : out_.pods) {
      if (bound == pod.node_name.empty()) continue;
      const auto at = told.find(qualified(pod.ns, pod.name));
      const Told& says = at == told.end() ? nothing : at->second;
      if (attach_to_owner(pod, says, makers) || !bound || !options_.live) continue;
      const std::string& by = pod.let_in_by.empty() ? says.workload : pod.let_in_by;
      if (const auto holder = holder_named(pod.ns, by)) {
        attach(pod, {*holder});  // which it was started by
      } else if (says.workload.empty()) {
        strays.push_back(&pod);
      }
    }
    turn_ = QuotaAsks::Turn::kReplaces;
    for (model::PodSpec* pod : std::exchange(strays, {})) attach_replacement(*pod);
  }
}

// By itself, by its owner, by what made the Job that is its owner, or by whom its labels name.
// False: no workload stands for these, or it was started by another.
bool Members::attach_to_owner(model::PodSpec& pod, const Told& told, const Names& makers) {
  std::string uid = pod.uid;
  const Workloads::Places* owned = workloads_.of(qualified(pod.ns, "Pod/" + pod.name));
  const std::string owner = qualified(pod.ns, pod.owner);
  if (owned == nullptr) {
    owned = workloads_.of(owner);
    uid = told.owner_uid;
  }
  if (owned == nullptr) {
    if (const auto maker = makers.find(owner); maker != makers.end()) {
      owned = workloads_.of(maker->second);
    }
    uid.clear();
  }
  if (owned == nullptr) {
    for (const std::string& maker : makers_named_by(pod.labels)) {
      owned = workloads_.of(qualified(pod.ns, maker));
      if (owned != nullptr) break;
    }
  }
  if (owned == nullptr) return false;
  const Workloads::Places places = workloads_.of_uid(*owned, uid);
  if (was_started_by_another(pod, told, places)) return false;
  if (places.empty() && !owned->empty()) return false;
  attach(pod, places);
  return true;
}

// Of several workloads (slices of an elastic Job) the one that holds quota has the pods, as many of
// them as it holds quota for.
void Members::attach(model::PodSpec& pod, const Workloads::Places& places) {
  const bool bound = !pod.node_name.empty();
  if (places.empty()) {
    if (!bound) marks_.hold(pod);
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
  if (set == nullptr || !workload.admission || !workload.admitted) return marks_.hold(pod);
  keep_to_flavors(pod, workload, *set);
  marks_.let(pod);
}

// What came to a group for a member that was gone, and runs, has the room that it was let into.
void Members::attach_replacement(model::PodSpec& pod) {
  for (const std::string& group : groups_of(pod)) {
    const auto holder = group_holders_.find(group);
    if (holder != group_holders_.end()) return attach(pod, {holder->second});
  }
}

// What runs was started by a workload that holds quota. Whom it names as its owner since does not
// change that: its room would be free for another. Where its binding does not say which one it was,
// only an owner whose workloads hold nothing is not believed.
bool Members::was_started_by_another(const model::PodSpec& pod, const Told& told,
                                     const Workloads::Places& of_owner_now) {
  if (!options_.live || pod.node_name.empty()) return false;
  if (pod.let_in_by.empty()) {
    return !workloads_.hold_quota(of_owner_now) && holder_named(pod.ns, told.workload).has_value();
  }
  const auto holder = holder_named(pod.ns, pod.let_in_by);
  return holder &&
         std::find(of_owner_now.begin(), of_owner_now.end(), *holder) == of_owner_now.end();
}

std::optional<std::size_t> Members::holder_named(const std::string& ns,
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

bool Members::take_room_of_group(model::PodSpec& pod, const std::string& group) {
  const auto holder = group_holders_.find(qualified(pod.ns, group));
  if (holder == group_holders_.end() || !pod.node_name.empty() || pod.queued) return false;
  const model::WorkloadSpec& workload = out_.queues.workloads[holder->second];
  if (!workload.admitted) return false;
  model::PodSetSpec* set = take_room(pod, holder->second);
  if (set == nullptr) return false;
  set->pods.push_back(qualified(pod.ns, pod.name));
  keep_to_flavors(pod, workload, *set);
  marks_.let(pod);
  return true;
}

// The set that the pod is of: the one it names, else the only one, else the first with room for it.
// Null: there is none. Counts the pod. One that runs is of some set in any case; where it is more
// than its workload holds quota for, it counts by itself (count_leftovers).
model::PodSetSpec* Members::take_room(const model::PodSpec& pod, std::size_t at) {
  model::WorkloadSpec& workload = out_.queues.workloads[at];
  const auto label = pod.labels.find(kPodSetLabel);
  const bool names = label != pod.labels.end();
  const bool bound = !pod.node_name.empty();
  // What another queue let in is not paid for here.
  const bool elsewhere = bound && !pod.charged.empty() && workload.admission &&
                         pod.charged != queues_.kueue_charge(workload);
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
    if (!elsewhere && (!pod.terminating || (bound && nodes_.answers(pod.node_name)))) ++taken.pods;
    if (fits) {
      marks_.counted.insert(qualified(pod.ns, pod.name));
      count_actual(pod, set, taken, workload);
    }
    return &set;
  }
  const bool somewhere = bound && !workload.pod_sets.empty();
  return somewhere ? &workload.pod_sets.front() : nullptr;
}

Members::Taken& Members::taken_of(std::size_t workload, std::size_t set) {
  const auto [it, is_new] = taken_.try_emplace({workload, set});
  if (is_new) {
    const model::WorkloadSpec& spec = out_.queues.workloads[workload];
    const model::PodSetAdmission* held = admission_of(*spec.admission, spec.pod_sets[set].name);
    if (held != nullptr) it->second.let_in = held->usage;
  }
  return it->second;
}

// Whether the pod asks for no more of what a queue counts by devices than the pods that the set is
// made of, or was admitted for. Other resources may differ: sidecars and defaults come later.
bool Members::asks_no_more(const model::PodSpec& pod, const model::PodSetSpec& set,
                           const std::optional<model::AdmissionSpec>& admission) const {
  const model::PodSetAdmission* held = admission ? admission_of(*admission, set.name) : nullptr;
  for (const auto& [resource, amount] : quota_requests(pod, out_.queues.config)) {
    if (!model::is_device(resource)) continue;
    if (!admission) {
      const auto asked = set.requests.find(resource);
      if (asked == set.requests.end() || amount > asked->second) return false;
      continue;
    }
    if (out_.queues.config.ignore_undeclared && !queues_.covers(admission->queue, resource))
      continue;
    if (held == nullptr || amount > share_of(held->usage, held->count, resource)) return false;
  }
  return true;
}

// CPU and memory that came on top since it was let in, by sidecars and defaults. More than a little
// of it needs room in the queue, which it then has.
bool Members::rest_fits(const model::PodSpec& pod, const model::AdmissionSpec& admission,
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
  return more.empty() || take_rest(pod, set.name, admission.queue, std::move(more));
}

bool Members::take_rest(const model::PodSpec& pod, const std::string& set, const std::string& queue,
                        std::vector<QuotaLeft::Ask> more) {
  if (asks_ == nullptr) return quota_left().take(queue, more);
  std::string key = qualified(pod.ns, pod.name) + ' ' + set;
  const bool granted = granted_ != nullptr && granted_->contains(key);
  asks_->more.push_back(
      {{turn_, pod.ns, pod.name}, std::move(key), queue, std::move(more), granted});
  return granted;
}

// CPU and memory may be more than was asked for: sidecars and defaults come later, and pods are
// resized. What its pods have counts then, as far as its queue could have had it by asking: what it
// has beyond that is not taken from what others are given.
void Members::count_actual(const model::PodSpec& pod, const model::PodSetSpec& set, Taken& taken,
                           model::WorkloadSpec& workload) {
  if (!options_.live) return;
  model::AdmissionSpec& admission = *workload.admission;
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
      if (asks_ != nullptr) {
        asks_->actual.push_back({{turn_, pod.ns, pod.name},
                                 qualified(workload.ns, workload.name),
                                 set.name,
                                 resource,
                                 so_far});
        continue;
      }
      used->second += quota_left().take_most(admission.queue, {flavor->second, resource, beyond});
    }
  }
}

// Whether no flavor that the set was let in with is one that the pod, which waits, refuses.
bool Members::may_run_in(const model::PodSpec& pod, const model::AdmissionSpec& admission,
                         const model::PodSetSpec& set) const {
  if (!options_.live || !pod.node_name.empty()) return true;
  for (const model::PodSetAdmission& held : admission.pod_sets) {
    if (held.name != set.name) continue;
    for (const auto& [resource, name] : held.flavors) {
      const model::FlavorSpec* flavor = queues_.flavor_named(name);
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
void Members::keep_to_flavors(model::PodSpec& pod, const model::WorkloadSpec& workload,
                              const model::PodSetSpec& set) const {
  if (!options_.live) return;
  for (const model::PodSetAdmission& held : workload.admission->pod_sets) {
    if (held.name != set.name) continue;
    std::set<std::string> names;
    for (const auto& [resource, name] : held.flavors) names.insert(name);
    for (const std::string& name : names) {
      const model::FlavorSpec* flavor = queues_.flavor_named(name);
      if (flavor == nullptr) continue;
      for (const auto& [key, value] : flavor->node_labels) pod.node_selector.emplace(key, value);
      pod.tolerations.insert(pod.tolerations.end(), flavor->tolerations.begin(),
                             flavor->tolerations.end());
    }
  }
}

QuotaLeft& Members::quota_left() {
  if (!quota_left_) quota_left_.emplace(out_.queues);
  return *quota_left_;
}

// Of several workloads of one owner the one that holds quota has the pods; those that are not bound
// and that a larger slice waits for are the slice's.
std::size_t Members::place_for(const Workloads::Places& places, bool bound) const {
  const auto& workloads = out_.queues.workloads;
  std::size_t at = places.front();
  for (const std::size_t place : places) {
    if (workloads[place].admission) at = place;
  }
  const auto taken = taken_.find({at, 0});
  const auto& held = workloads[at].admission;
  const bool room = held && held->pod_sets.size() == 1 &&
                    (taken == taken_.end() || taken->second.pods < held->pod_sets.front().count);
  for (const std::size_t place : places) {
    const model::WorkloadSpec& slice = workloads[place];
    if (bound || (options_.live && room)) continue;
    if (!slice.admission && !slice.replaces.empty() && !slice.stale) at = place;
  }
  if (!workloads[at].has_variants) return at;
  const std::string parent = qualified(workloads[at].ns, workloads[at].name);
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    if (workloads[i].variant_of == parent && workloads[i].admission) return i;
  }
  return at;
}

}  // namespace berth::kinds
