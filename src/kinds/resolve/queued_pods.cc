#include <algorithm>

#include "kinds/quota_requests.h"
#include "kinds/resolve/stages.h"

namespace berth::kinds {

namespace {

constexpr std::string_view kGroupTotal = "kueue.x-k8s.io/pod-group-total-count";

constexpr std::string_view kRoleHash = "kueue.x-k8s.io/role-hash";

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

// Pods of one Kueue pod group.
struct PodGroupOf {
  struct Member {
    const Found<PodObject>* found;
    model::PodSpec* pod;  // null: finished
  };
  std::string ns, name;
  std::vector<Member> members;  // by name
};

class PodQueue : private Part {
 public:
  PodQueue(Resolution& all, KnownQueues& queues, const PodGroups& groups, Workloads& workloads,
           Members& members, PodMarks& marks)
      : Part(all),
        queues_(queues),
        groups_(groups),
        workloads_(workloads),
        members_(members),
        marks_(marks) {}

  void run() {
    std::map<std::string, PodGroupOf, std::less<>> groups;
    for (const Found<PodObject>& found : in_.pods) {
      const Meta& meta = found.object.meta;
      std::string queue = label_value(meta, kQueueLabel);
      if (queue.empty()) queue = queues_.default_queue(meta);
      if (queue.empty()) continue;
      const Owner* owner = meta.controller();
      const bool owned =
          workloads_.has(qualified(meta.ns, "Pod/" + meta.name), meta.uid) ||
          (owner != nullptr && workloads_.has(qualified(meta.ns, owner->text()), owner->uid));
      if (owned || (queues_.decide() && !queues_.managed(meta.ns))) continue;
      const auto at = marks_.at.find(qualified(meta.ns, meta.name));
      model::PodSpec* pod = at == marks_.at.end() ? nullptr : &out_.pods[at->second];
      const std::string name = label_or_annotation(meta, kGroupName);
      if (!queues_.decide()) {
        const bool starts = pod != nullptr && pod->node_name.empty() && !pod->gated;
        if (starts) queues_.say_no_queues(found.origin, found.shown);
      } else if (!name.empty() && pod != nullptr && members_.take_room_of_group(*pod, name)) {
        continue;
      } else if (options_.live && pod != nullptr &&
                 members_.hold_for_group(qualified(meta.ns, name))) {
        // More than its group was let in with.
        if (pod->node_name.empty() && !pod->queued) {
          queue_alone(*pod, queue, out_.queues.config, workloads_, marks_);
        }
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

 private:
  void warn_two_queues(const Found<PodObject>& found, const model::PodSpec& pod) {
    const Meta& meta = found.object.meta;
    std::string other = label_value(meta, "kai.scheduler/queue");
    if (const std::string* volcano = meta.annotation("scheduling.volcano.sh/queue-name")) {
      if (other.empty()) other = *volcano;
    }
    const model::GangSpec* gang = groups_.find(qualified(pod.ns, pod.gang));
    const std::string queue = label_value(meta, kQueueLabel);
    if (other.empty() && gang != nullptr && gang->queue != queue) {
      other = gang->queue;
    }
    if (other.empty()) return;
    in_.warn(found, mark_path("labels", kQueueLabel),
             "found Kueue's queue " + quoted(queue) + " and queue " + quoted(other) +
                 " of another system; Kueue's holds");
  }

  void drop_pod(const Found<PodObject>& found, const BadMark& bad) {
    in_.refuse(found, bad.path, bad.message);
    marks_.dropped.insert(qualified(found.object.meta.ns, found.object.meta.name));
  }

  void queue_pod(const Found<PodObject>& found, model::PodSpec& pod, const std::string& queue) {
    const Meta& meta = found.object.meta;
    model::WorkloadSpec spec = workload_of(pod, queue);
    spec.unmade = options_.live;
    if (!label_value(meta, kQueueLabel).empty()) warn_two_queues(found, pod);
    pod.queue = spec.queue;
    model::PodSetSpec set;
    auto bad = read_number_label(meta, kMaxExecution, kMostSeconds, spec.max_execution_s);
    if (!bad) bad = read_topology_ask(meta, found.object.member.topology, 1, set.topology);
    if (bad) return drop_pod(found, *bad);
    if (!workloads_.class_priority(found, meta, spec.priority)) {
      marks_.dropped.insert(qualified(pod.ns, pod.name));
      return;
    }
    marks_.hold(pod);
    if (pod.gated) {
      spec.incomplete = "pod " + quoted(pod.name) + " has other scheduling gates";
      spec.incomplete_reason = model::Reason::kGated;
    }
    set.requests = quota_requests(pod, out_.queues.config);
    set.pods = {qualified(pod.ns, pod.name)};
    set.pod = std::make_shared<const model::PodSpec>(as_template(pod));
    spec.pod_sets.push_back(std::move(set));
    workloads_.add(std::move(spec));
  }

  // A group of which something ran before: no Workload says what quota it holds. True: it is one.
  bool runs_already(const PodGroupOf& group) {
    const auto started = [](const PodGroupOf::Member& m) {
      return m.pod == nullptr || !m.pod->node_name.empty();
    };
    if (std::none_of(group.members.begin(), group.members.end(), started)) return false;
    const Found<PodObject>& first = *group.members.front().found;
    if (!options_.live) {
      in_.notes.add(
          Gathered::note(first.origin, first.shown, "",
                         "pod group " + quoted(group.name) +
                             " runs already, and no Workload of the input says what quota "
                             "it holds: it counts towards none"));
      return true;
    }
    for (const PodGroupOf::Member& m :
         group.members) {  // what runs counts by itself, and so do they
      if (started(m)) continue;
      queue_alone(*m.pod, label_value(m.found->object.meta, kQueueLabel), out_.queues.config,
                  workloads_, marks_);
    }
    return true;
  }

  void queue_pod_group(PodGroupOf& group) {
    if (runs_already(group)) return;
    const Found<PodObject>& first = *group.members.front().found;
    model::WorkloadSpec spec;
    spec.ns = group.ns;
    spec.name = group.name;
    spec.queue = label_value(first.object.meta, kQueueLabel);
    spec.unmade = options_.live;
    spec.priority = group.members.front().pod->priority;
    spec.created_ns = group.members.front().pod->created_ns;
    const bool has_class = workloads_.class_priority(first, first.object.meta, spec.priority);
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
      if (!has_class) marks_.dropped.insert(qualified(pod->ns, pod->name));
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
      marks_.hold(*pod);
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
      in_.notes.add(
          Gathered::note(first.origin, first.shown, "",
                         "pod group " + quoted(group.name) + " waits: " + spec.incomplete));
    }
    workloads_.add(std::move(spec));
  }

  KnownQueues& queues_;
  const PodGroups& groups_;
  Workloads& workloads_;
  Members& members_;
  PodMarks& marks_;
};

}  // namespace

void queue_pods(Resolution& all, KnownQueues& queues, const PodGroups& groups, Workloads& workloads,
                Members& members, PodMarks& marks) {
  PodQueue(all, queues, groups, workloads, members, marks).run();
}

void hold_outsiders(Resolution& all, const KnownQueues& queues, const PodMarks& marks) {
  if (!queues.some_require()) return;
  for (model::PodSpec& pod : all.out.pods) {
    if (!pod.node_name.empty() || pod.queued || !queues.requires_queue(pod)) continue;
    const std::string name = qualified(pod.ns, pod.name);
    if (marks.let_in.contains(name)) continue;
    pod.needs_queue = true;
    if (marks.kueue_gated.contains(name)) pod.gated = false;  // its gate is for want of a queue
  }
}

}  // namespace berth::kinds
