#include <algorithm>

#include "kinds/resolve/group_sets.h"
#include "kinds/resolve/stages.h"

namespace berth::kinds {

using model::GangSpec;
using model::PodSpec;

namespace {

class KueueGangs : private Part {
 public:
  KueueGangs(Resolution& all, const KnownQueues& queues, PodGroups& groups, Workloads& workloads,
             Members& members, PodMarks& marks)
      : Part(all),
        queues_(queues),
        groups_(groups),
        workloads_(workloads),
        members_(members),
        marks_(marks) {}

  void run() {
    for (const auto& [key, pods] : unpaid_members()) {
      const GangSpec* known = groups_.find(key);
      if (known == nullptr || !queues_.managed(known->ns)) continue;
      const GangSpec& gang = *known;
      model::WorkloadSpec spec;
      spec.queue = kueue_queue(key, pods, spec.incomplete);
      if (spec.queue.empty()) continue;
      const auto runs = [](const PodSpec* pod) { return !pod->node_name.empty(); };
      if (members_.hold_for_group(key) || std::any_of(pods.begin(), pods.end(), runs)) {
        if (options_.live) {  // what runs counts by itself, and so does what comes to it
          for (PodSpec* pod : pods) {
            if (!runs(pod)) queue_alone(*pod, spec.queue, out_.queues.config, workloads_, marks_);
          }
          continue;
        }
        groups_.note(
            key,
            "it runs already, and no Workload of the input says what quota it holds: it counts "
            "towards none");
        continue;
      }
      spec.ns = gang.ns;
      spec.name = gang.name;
      spec.owner = "PodGroup/" + gang.name;
      spec.created_ns = gang.created_ns != 0 ? gang.created_ns : pods.front()->created_ns;
      spec.priority = pods.front()->priority;
      for (const PodSpec* pod : pods) spec.priority = std::max(spec.priority, pod->priority);
      if (gang.priority) spec.priority = *gang.priority;
      if (const auto named = pods.front()->labels.find(kClassLabel);
          named != pods.front()->labels.end()) {
        const std::optional<int> value = queues_.workload_class(named->second);
        if (!value) spec.incomplete = "its class " + quoted(named->second) + " is not in the input";
        spec.priority = value.value_or(spec.priority);
      }
      spec.pod_sets = sets_of(gang, pods, out_.queues.config);
      if (spec.pod_sets.empty()) {
        groups_.note(key, "its pods are of more than " + std::to_string(kMostPodSets) + " kinds");
        continue;
      }
      if (spec.incomplete.empty()) {
        spec.incomplete = lacking(gang, pods);
        if (!spec.incomplete.empty()) spec.incomplete_reason = model::Reason::kGangIncomplete;
      }
      for (PodSpec* pod : pods) {
        pod->queue = spec.queue;
        marks_.hold(*pod);
        if (pod->gated) say_gated(*pod, spec);
      }
      if (!gang.queue.empty() && gang.queue != spec.queue) {
        groups_.warn(key, mark_path("labels", kQueueLabel),
                     "found Kueue's queue " + quoted(spec.queue) + " and queue " +
                         quoted(gang.queue) + " of another system; Kueue's holds");
      }
      if (!spec.incomplete.empty()) groups_.note(key, "it waits: " + spec.incomplete);
      workloads_.add(std::move(spec));
      groups_.replace(key);
    }
  }

 private:
  // The PodGroup's own label, its Workload's, its pods', or the default of the namespace; "": none.
  std::string kueue_queue(const std::string& gang, const std::vector<PodSpec*>& pods,
                          std::string& trouble) const {
    if (const std::string* own = groups_.kueue_queue(gang)) return *own;
    std::string queue;
    std::size_t labelled = 0;
    for (const PodSpec* pod : pods) {
      const auto label = pod->labels.find(kQueueLabel);
      if (label == pod->labels.end() || label->second.empty()) continue;
      ++labelled;
      if (!queue.empty() && queue != label->second) trouble = "its pods name different queues";
      queue = label->second;
    }
    if (labelled > 0 && labelled < pods.size()) trouble = "some of its pods name no queue";
    if (!queue.empty() || !queues_.look_after_pods() || options_.live) return queue;
    const PodSpec& first = *pods.front();
    const bool free =
        first.queue.empty() && (first.owner.empty() || first.owner.starts_with("Replica"));
    return free && queues_.has_default(first.ns) && queues_.managed(first.ns) ? "default" : "";
  }

  // By ns/group: those that no Workload holds quota for.
  std::map<std::string, std::vector<PodSpec*>, std::less<>> unpaid_members() {
    std::map<std::string, std::vector<PodSpec*>, std::less<>> members;
    for (PodSpec& pod : out_.pods) {
      const bool kueue_group = pod.labels.contains(kGroupName);
      if (pod.gang.empty() || pod.queued || kueue_group) continue;
      // A Workload stands for it, and holds quota for this one.
      const std::string name = qualified(pod.ns, pod.name);
      if (marks_.let_in.contains(name) || marks_.counted.contains(name)) continue;
      if (options_.live && members_.take_room_of_group(pod, pod.gang)) continue;
      members[qualified(pod.ns, pod.gang)].push_back(&pod);
    }
    return members;
  }

  const KnownQueues& queues_;
  PodGroups& groups_;
  Workloads& workloads_;
  Members& members_;
  PodMarks& marks_;
};

}  // namespace

void queue_alone(PodSpec& pod, const std::string& queue, const model::QueueConfig& config,
                 Workloads& workloads, const PodMarks& marks) {
  model::WorkloadSpec spec = workload_of(pod, queue);
  pod.queue = queue;
  marks.hold(pod);
  if (pod.gated) say_gated(pod, spec);
  spec.pod_sets = sets_of(GangSpec(), {&pod}, config);
  workloads.add(std::move(spec));
}

void queue_kueue_gangs(Resolution& all, const KnownQueues& queues, PodGroups& groups,
                       Workloads& workloads, Members& members, PodMarks& marks) {
  if (queues.decide()) KueueGangs(all, queues, groups, workloads, members, marks).run();
}

}  // namespace berth::kinds
