// Workloads that stand for one another: slices of elastic Jobs, variants for several flavors.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "kinds/resolver.h"

namespace berth::kinds {

namespace {
constexpr std::string_view kElastic = "kueue.x-k8s.io/elastic-job";
}

// A slice that waits for another number of pods than its Job has now, beside another that waits, or
// for one that holds nothing while another does, is no use to anybody. True: there was one.
bool Resolver::end_stale_slices(const JobObject& job, const std::vector<std::size_t>& places) {
  if (!options_.live) return false;
  std::set<std::string> known, holders;
  for (const std::size_t at : places) {
    const model::WorkloadSpec& each = out_.queues.workloads[at];
    known.insert(qualified(each.ns, each.name));
    if (each.admission) holders.insert(qualified(each.ns, each.name));
  }
  bool any = false, waits = false;
  for (const std::size_t at : places) {
    model::WorkloadSpec& slice = out_.queues.workloads[at];
    if (slice.replaces.empty() || slice.admission || slice.pod_sets.size() != 1) continue;
    if (holders.empty() && !known.contains(slice.replaces)) continue;  // it is all there is
    const bool right =
        holders.contains(slice.replaces) && slice.pod_sets.front().count == job.parallel();
    if (right && !std::exchange(waits, true)) continue;
    slice.stale = any = true;
    slice.incomplete = "its Job asks for another number of pods by now";
  }
  return any;
}

// An elastic Job whose parallelism is not what its Workload holds quota for: more of it is a new
// slice, less of it frees the rest.
void Resolver::scale_job(Found<JobObject>& job, const std::vector<std::size_t>& places,
                         const std::vector<PodObject*>& existing) {
  JobObject& object = job.object;
  if (end_stale_slices(object, places)) return;
  const std::string* elastic = object.meta.annotation(kElastic);
  if (elastic == nullptr || *elastic != "true" || object.suspend || places.empty()) return;
  if (!out_.queues.config.gate("ElasticJobsViaWorkloadSlices", true)) return;
  model::WorkloadSpec* holder = nullptr;
  for (const std::size_t at : places) {
    model::WorkloadSpec& workload = out_.queues.workloads[at];
    if (!workload.replaces.empty() && !workload.admission) return;  // its slice is there
    if (workload.admission && workload.pod_sets.size() == 1) holder = &workload;
  }
  if (holder == nullptr || holder->admission->pod_sets.size() != 1) return;
  const int held = holder->admission->pod_sets.front().count;
  // Those that have yet to leave hold theirs.
  const auto on_nodes = std::count_if(existing.begin(), existing.end(), [](const PodObject* pod) {
    return !pod->finished() && !pod->spec.node_name.empty();
  });
  const int kept = std::max(object.parallel(), static_cast<int>(on_nodes));
  if (kept < held) {
    // In a cluster that lives its status says so first: it would grow into what others have by
    // then.
    if (options_.live) {
      holder->keeps = kept;
      return;
    }
    holder->pod_sets.front().count = kept;
    in_.notes.add(Gathered::note(job.origin, job.shown, "spec.parallelism",
                                 "the Job shrank: its Workload holds quota for " +
                                     std::to_string(held) + " pods and keeps that of " +
                                     std::to_string(kept)));
  } else if (object.parallel() > held) {
    const std::string old = qualified(holder->ns, holder->name);
    queue_job(job, std::string(holder->queue), old);
    object.parallelism = held;  // the others start with the slice
  }
}

// Of several workloads of one owner the one that holds quota has the pods; those that are not bound
// and that a larger slice waits for are the slice's.
std::size_t Resolver::place_for(const std::vector<std::size_t>& places, bool bound) const {
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

// A parent is not decided, and what it seems to hold is what its variant holds. Where none does, it
// is held by the parent: a Workload that calls itself a variant frees nothing.
void Resolver::know_variants() {
  std::map<std::string, bool, std::less<>> parents;  // whether a variant holds quota
  for (model::WorkloadSpec& workload : out_.queues.workloads) {
    if (workload.variant_of.empty()) continue;
    bool& holds = parents[workload.variant_of];
    holds = holds || workload.admission.has_value();
  }
  for (model::WorkloadSpec& workload : out_.queues.workloads) {
    const auto parent = parents.find(qualified(workload.ns, workload.name));
    if (parent == parents.end() || (workload.admission && !parent->second)) continue;
    workload.has_variants = true;
    workload.admission.reset();
    workload.admitted = false;
  }
}

// One variant for each flavor, where the queue says so and Kueue's controller did not make them.
void Resolver::make_variants() {
  model::QueueInputs& queues = out_.queues;
  if (!queues.config.gate("ConcurrentAdmission", false)) return;
  const auto queue_of = [&queues](const model::WorkloadSpec& workload) -> const model::QueueSpec* {
    for (const auto& local : queues.local_queues) {
      if (local.ns != workload.ns || local.name != workload.queue) continue;
      for (const auto& queue : queues.queues) {
        if (queue.name == local.queue) return &queue;
      }
    }
    return nullptr;
  };
  const std::size_t count = queues.workloads.size();
  for (std::size_t i = 0; i < count; ++i) {
    const model::WorkloadSpec parent = queues.workloads[i];
    if (parent.admission || parent.has_variants || !parent.variant_of.empty() ||
        !parent.replaces.empty()) {
      continue;
    }
    const model::QueueSpec* queue = queue_of(parent);
    if (queue == nullptr || !queue->concurrent || queue->groups.size() != 1) continue;
    queues.workloads[i].has_variants = true;
    for (std::size_t f = 0; f < queue->groups.front().flavors.size(); ++f) {
      model::WorkloadSpec variant = parent;
      const std::string& flavor = queue->groups.front().flavors[f].flavor;
      variant.name = parent.name + "-variant-" + flavor;
      const std::string& uid = parent.uid.empty() ? parent.name : parent.uid;
      variant.uid = uid + '-' + std::to_string(100 + f);  // the better flavor first
      variant.variant_of = qualified(parent.ns, parent.name);
      variant.allowed_flavors = {flavor};
      add_workload(std::move(variant));
    }
  }
}

}  // namespace berth::kinds
