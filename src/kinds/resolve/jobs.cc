#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "kinds/quota_requests.h"
#include "kinds/resolve/stages.h"

namespace berth::kinds {

namespace {

constexpr std::string_view kMinParallelism = "kueue.x-k8s.io/job-min-parallelism";

constexpr std::string_view kElastic = "kueue.x-k8s.io/elastic-job";

class JobStage : private Part {
 public:
  JobStage(Resolution& all, KnownQueues& queues, const PodReferences& references, PodGroups& groups,
           Workloads& workloads)
      : Part(all),
        queues_(queues),
        references_(references),
        groups_(groups),
        workloads_(workloads) {}

  void run() {
    std::map<std::string, std::vector<PodObject*>, std::less<>> owned;  // by ns/job
    std::map<std::string, NameSet, std::less<>> names;                  // by namespace
    if (in_.jobs.empty()) return;
    for (Found<PodObject>& pod : in_.pods) {
      names[pod.object.meta.ns].insert(pod.object.meta.name);
      const Owner* owner = pod.object.meta.controller();
      if (owner == nullptr || !owner->is("batch", "Job")) continue;
      owned[qualified(pod.object.meta.ns, owner->name)].push_back(&pod.object);
    }
    for (Found<JobObject>& job : in_.jobs) {
      std::vector<PodObject*>& pods = owned[qualified(job.object.meta.ns, job.object.meta.name)];
      std::erase_if(pods, [&](const PodObject* pod) {
        return !is_uid_of(*pod->meta.controller(), job.object.meta);
      });
      expand(job, pods, names[job.object.meta.ns]);
      // Names made for one Job are taken for the next ("a-1" with index 0, "a" with index 10).
      NameSet& taken = names[job.object.meta.ns];
      for (auto it = out_.pods.rbegin(); it != out_.pods.rend(); ++it) {
        if (it->ns != job.object.meta.ns || it->owner != "Job/" + job.object.meta.name) break;
        taken.insert(it->name);
      }
    }
  }

 private:
  std::optional<std::string> queue_of(const JobObject& job) const {
    if (workloads_.made_by_queued(job.meta)) return std::nullopt;
    if (const auto named = queues_.default_queue_of(job.meta)) return named;
    if (!queues_.decide() || !queues_.managed(job.meta.ns)) return std::nullopt;
    // In a group or queue of another scheduler its pods wait there.
    const Meta& pods = job.pod.meta;
    const bool elsewhere = !job.pod.member.group.empty() ||
                           pods.labels.contains("kai.scheduler/queue") ||
                           pods.annotation("scheduling.volcano.sh/queue-name") != nullptr;
    if (queues_.requires_queue(job.meta.ns) && !elsewhere) return "";
    return std::nullopt;
  }

  bool waits_in_queue(Found<JobObject>& job, const std::vector<PodObject*>& existing) {
    JobObject& object = job.object;
    if (object.finished) return false;
    const std::optional<std::string> queue = queue_of(object);
    const Workloads::Places* owned =
        workloads_.of(qualified(object.meta.ns, "Job/" + object.meta.name));
    if (!queue && owned == nullptr) {
      if (queues_.decide() && object.pod.meta.labels.contains(kQueueLabel)) {
        in_.warn(job, "spec.template." + mark_path("labels", kQueueLabel),
                 "found a queue on the template only, want it on the Job: the Job waits in none");
      }
      return false;
    }
    if (!queues_.decide()) {
      if (!object.suspend) queues_.say_no_queues(job.origin, job.shown);
      return false;
    }
    if (owned != nullptr && options_.live && workloads_.made_by_queued(object.meta)) {
      for (const std::size_t at : *owned) {  // of a time when it waited by itself
        out_.queues.workloads[at].stale = true;
        out_.queues.workloads[at].incomplete = "what made its Job waits in a queue as a whole";
      }
      return true;
    }
    if (owned != nullptr) {
      scale_job(job, *owned, existing);
      ask_as_now(object, *owned);
      return !workloads_.hold_quota(*owned) || object.suspend;
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

  // A suspended Job may be changed: what waits asks for what its pods would ask for now, not for
  // what it was when its Workload was made.
  void ask_as_now(const JobObject& job, const Workloads::Places& places) {
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

  void queue_job(Found<JobObject>& job, const std::string& queue,
                 const std::string& replaces = {}) {
    JobObject& object = job.object;
    Workloads::Places& places =
        workloads_.claim(qualified(object.meta.ns, "Job/" + object.meta.name));
    if (object.parallel() == 0 || !references_.settle_priority(job, "spec.template.", object.pod))
      return;
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
    if (!workloads_.class_priority(job, object.meta, spec.priority)) return;
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
    if (!workloads_.take_waiting(spec.ns, static_cast<std::size_t>(set.count), room)) {
      return in_.refuse(job, "spec.parallelism",
                        "found " + std::to_string(set.count) + " pods, want at most " +
                            std::to_string(room) + " more over all that waits in namespace " +
                            spec.ns);
    }
    model::PodSpec pod = workloads_.made_pod(job, "spec.template.", object.pod, queue, spec.owner);
    pod.created_ns = object.meta.created_ns;
    pod.labels["job-name"] = pod.labels["batch.kubernetes.io/job-name"] = object.meta.name;
    set.requests = quota_requests(pod, out_.queues.config);
    set.pod = std::make_shared<const model::PodSpec>(std::move(pod));
    spec.pod_sets.push_back(std::move(set));
    places.push_back(workloads_.add(std::move(spec)));
    workloads_.know_uid(places.back(), object.meta.uid);
  }

  // A slice that waits for another number of pods than its Job has now, beside another that waits,
  // or for one that holds nothing while another does, is no use to anybody. True: there was one.
  bool end_stale_slices(const JobObject& job, const Workloads::Places& places) {
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
  void scale_job(Found<JobObject>& job, const Workloads::Places& places,
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

  bool make_job_gang(Found<JobObject>& job, std::vector<PodObject*>& existing) {
    JobObject& object = job.object;
    if (!object.is_gang()) return true;
    model::GangSpec gang;
    gang.ns = object.meta.ns;
    gang.name = object.meta.name;
    gang.min_member = std::max(1, object.wanted());
    gang.queue = object.pod.spec.queue;
    gang.created_ns = object.meta.created_ns;
    gang.required_topology = object.topology.required;
    gang.preferred_topology = object.topology.preferred;
    if (!groups_.add(std::move(gang), job.origin, job.shown)) {
      in_.refuse(job, "metadata.name",
                 "found a PodGroup of the same name, want another name for the gang of this Job");
      return false;
    }
    object.pod.member.group = object.meta.name;
    for (PodObject* pod : existing) {
      if (pod->member.group.empty()) pod->member.group = object.meta.name;
    }
    return true;
  }

  void expand(Found<JobObject>& job, std::vector<PodObject*>& existing, const NameSet& taken) {
    JobObject& object = job.object;
    if (waits_in_queue(job, existing)) return;
    if (object.suspend && !object.finished) {
      ++in_.counts.suspended_jobs;
      in_.notes.add(Gathered::note(job.origin, job.shown, "spec.suspend",
                                   "the Job is suspended; it has no pods"));
    }
    if (object.wanted() == 0 || !make_job_gang(job, existing)) return;
    if (!groups_.settle(job, "spec.template.", object.pod) || options_.live) return;
    const std::size_t room = options_.max_job_pods - in_.counts.job_pods;
    if (static_cast<std::size_t>(object.wanted()) > room) {
      return in_.refuse(job, "spec.parallelism",
                        "found " + std::to_string(object.wanted()) + " pods, want at most " +
                            std::to_string(room) + " more over all Jobs of the input");
    }
    const std::vector<const PodObject*> owned(existing.begin(), existing.end());
    bool first = true;
    for (PodObject& pod : missing_pods(object, owned, taken)) {
      if (pod.spec.node_name.empty()) {  // what is said of the others is the same
        references_.settle_volumes(job, "spec.template.", pod, pod.spec, first);
      }
      first = false;
      ++in_.counts.job_pods;
      out_.pods.push_back(std::move(pod.spec));
    }
  }

  KnownQueues& queues_;
  const PodReferences& references_;
  PodGroups& groups_;
  Workloads& workloads_;
};

}  // namespace

void resolve_jobs(Resolution& all, KnownQueues& queues, const PodReferences& references,
                  PodGroups& groups, Workloads& workloads) {
  JobStage(all, queues, references, groups, workloads).run();
}

}  // namespace berth::kinds
