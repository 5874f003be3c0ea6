#include <algorithm>
#include <limits>

#include "kinds/resolve/group_sets.h"
#include "kinds/resolve/stages.h"

namespace berth::kinds {

using model::GangSpec;
using model::PodSetSpec;
using model::PodSpec;

namespace {

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

class OtherGroups : private Part {
 public:
  OtherGroups(Resolution& all, const KnownNodes& nodes, PodGroups& groups, Workloads& workloads,
              OtherSystems& systems, PodMarks& marks)
      : Part(all),
        nodes_(nodes),
        groups_(groups),
        workloads_(workloads),
        systems_(systems),
        marks_(marks) {}

  void run() {
    queue_gangs();
    queue_other_pods();
  }

 private:
  void add_other_workload(model::WorkloadSpec spec, const std::vector<PodSpec*>& pods,
                          OtherSystem& system, bool runs) {
    for (const PodSetSpec& set : spec.pod_sets) {
      for (const auto& [resource, amount] : set.requests) system.resources.insert(resource);
    }
    const std::string target = system.cluster_queue.at(spec.queue);
    if (options_.live) spec.charge = system.charge_in(spec.queue);
    const std::string shut = runs ? "" : systems_.shut_to(spec.ns, spec.queue, system);
    // Whom a queue does not take gets no LocalQueue either: with Kueue's label it could be used.
    if (shut.empty()) spec.queue = systems_.local_queue(spec.ns, spec.queue, system);
    if (runs) {
      admit_as_running(spec, pods, target, systems_.flavor());
      for (const PodSpec* pod : pods) marks_.let_in.insert(qualified(pod->ns, pod->name));
    } else {
      for (PodSpec* pod : pods) {
        marks_.hold(*pod);
        if (pod->gated) say_gated(*pod, spec);
      }
    }
    if (!shut.empty()) {
      spec.incomplete = shut;
      spec.incomplete_reason = model::Reason::kQueueNotAllowed;
    }
    workloads_.add(std::move(spec));
  }

  // A pod that comes to a group that runs, for one that is gone or beyond its minimum: a workload
  // of its own, behind the group, and its queue has to have room for it. A required topology is the
  // domain that the group is in.
  void queue_surplus(const GangSpec& gang, PodSpec& pod, const PodSpec* beside,
                     std::int64_t since_ns, OtherSystem& system) {
    const std::string level = nodes_.label_of(gang.required_topology);
    const std::string at = beside == nullptr ? "" : beside->node_name;
    const model::NodeSpec* node = nodes_.find(at);
    if (!level.empty() && node != nullptr) {
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

  void queue_gang(const GangSpec& gang, const std::vector<PodSpec*>& pods, OtherSystem& system) {
    const std::string key = qualified(gang.ns, gang.name);
    const auto say = [&](const std::string& message) { groups_.note(key, message); };
    // Those that another queue let in count there.
    const std::string charge = system.charge_in(gang.queue);
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
    if (runs && systems_.shut_to(gang.ns, gang.queue, system).empty() && !surplus.empty()) {
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
      return say("it does not wait in queue " + quoted(gang.queue) +
                 ": its pods are of more than " + std::to_string(kMostPodSets) + " kinds");
    }
    add_other_workload(std::move(spec), taken, system, runs);
    if (!runs) groups_.replace(key);
  }

  void queue_gangs() {
    std::map<std::string, std::vector<PodSpec*>, std::less<>> members;
    for (PodSpec& pod : out_.pods) {
      if (!pod.gang.empty() && !pod.queued) members[qualified(pod.ns, pod.gang)].push_back(&pod);
    }
    for (const auto& [key, pods] : members) {
      const GangSpec* gang = groups_.find(key);
      if (gang == nullptr) continue;
      OtherSystem* system = systems_.system_of(gang->queue, groups_.is_kai(key));
      if (system != nullptr) queue_gang(*gang, pods, *system);
    }
  }

  // Pods of no group: one workload each. Kueue's label is not theirs.
  void queue_other_pods() {
    for (PodSpec& pod : out_.pods) {
      if (!pod.gang.empty() || pod.queued || pod.labels.contains(kQueueLabel)) continue;
      OtherSystem* system =
          systems_.system_of(pod.queue, pod.labels.contains("kai.scheduler/queue"));
      if (system == nullptr) continue;
      const std::string charge = system->charge_in(pod.queue);
      if (!pod.node_name.empty() && !pod.charged.empty() && pod.charged != charge) continue;
      model::WorkloadSpec spec = workload_of(pod, pod.queue);
      spec.pod_sets = sets_of(GangSpec(), {&pod}, out_.queues.config);
      add_other_workload(std::move(spec), {&pod}, *system, !pod.node_name.empty());
    }
  }

  const KnownNodes& nodes_;
  PodGroups& groups_;
  Workloads& workloads_;
  OtherSystems& systems_;
  PodMarks& marks_;
};

}  // namespace

void queue_in_other_systems(Resolution& all, const KnownNodes& nodes, PodGroups& groups,
                            Workloads& workloads, OtherSystems& systems, PodMarks& marks) {
  if (systems.any()) OtherGroups(all, nodes, groups, workloads, systems, marks).run();
}

}  // namespace berth::kinds
