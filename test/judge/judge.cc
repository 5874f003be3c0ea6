#include "judge/judge.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "judge/explain.h"
#include "judge/gang.h"
#include "judge/gpus.h"
#include "judge/match.h"
#include "judge/preempt.h"

namespace berth::judging {

using model::GangSpec;
using model::Outcome;
using model::PodSpec;
using model::Reason;
using model::Verdict;
using Kind = model::GpuDemandSpec::Kind;

namespace {

std::int64_t demand_milli(const PodSpec& pod) {
  if (!asks_gpus(pod)) return 0;
  std::int64_t each = pod.gpu.kind == Kind::kFraction ? pod.gpu.milli : model::kMilliPerGpu;
  return pod.gpu.count * each;
}

bool pending(const PodSpec& pod) { return pod.node_name.empty() && !pod.terminating; }

void order_members(std::vector<const PodSpec*>& members) {
  auto key = [](const PodSpec* pod) {
    return std::tuple(std::string_view(pod->subgroup), -demand_milli(*pod), -request(*pod, "cpu"),
                      std::string_view(pod->name));
  };
  std::sort(members.begin(), members.end(),
            [&](const PodSpec* a, const PodSpec* b) { return key(a) < key(b); });
}

Workload lone(const PodSpec& pod) {
  Workload workload;
  workload.name = full_name(pod);
  workload.priority = pod.priority;
  workload.created_ns = pod.created_ns;
  workload.gated = pod.gated ? 1 : 0;
  if (!pod.gated) workload.members.push_back(&pod);
  return workload;
}

const GangSpec* find_gang(const JudgeCluster& cluster, const std::string& ns,
                          const std::string& name) {
  for (const GangSpec& gang : cluster.gangs) {
    if (gang.ns == ns && gang.name == name) return &gang;
  }
  return nullptr;
}

// All the pods that name the gang.
Workload ganged(const JudgeCluster& cluster, const std::string& ns, const std::string& name) {
  Workload workload;
  workload.name = ns + "/" + name;
  workload.is_gang = true;
  workload.gang = find_gang(cluster, ns, name);
  std::optional<int> highest;
  std::optional<std::int64_t> oldest;
  for (const PodSpec& pod : cluster.pods) {
    if (pod.ns != ns || pod.gang != name || (pod.node_name.empty() && pod.terminating)) continue;
    highest = std::max(highest.value_or(pod.priority), pod.priority);
    oldest = std::min(oldest.value_or(pod.created_ns), pod.created_ns);
    if (!pod.node_name.empty()) {
      ++workload.running[pod.subgroup];
    } else if (pod.gated) {
      ++workload.gated;
    } else {
      workload.members.push_back(&pod);
    }
  }
  workload.priority = highest.value_or(0);
  workload.created_ns = oldest.value_or(0);
  if (workload.gang != nullptr) {
    workload.priority = workload.gang->priority.value_or(workload.priority);
    if (workload.gang->created_ns != 0) workload.created_ns = workload.gang->created_ns;
  }
  order_members(workload.members);
  return workload;
}

std::vector<Workload> in_queue_order(const JudgeCluster& cluster) {
  std::vector<Workload> queue;
  std::set<std::pair<std::string, std::string>> seen;
  for (const PodSpec& pod : cluster.pods) {
    if (!pending(pod)) continue;
    if (pod.gang.empty()) {
      queue.push_back(lone(pod));
    } else if (seen.emplace(pod.ns, pod.gang).second) {
      queue.push_back(ganged(cluster, pod.ns, pod.gang));
    }
  }
  std::sort(queue.begin(), queue.end(), [](const Workload& a, const Workload& b) {
    return std::tuple(-a.priority, a.created_ns, std::string_view(a.name), !a.is_gang) <
           std::tuple(-b.priority, b.created_ns, std::string_view(b.name), !b.is_gang);
  });
  return queue;
}

// The cluster as it would be with everything that passes gone: cordons, conditions, broken devices.
JudgeCluster repaired(JudgeCluster cluster) {
  for (model::NodeSpec& node : cluster.nodes) {
    node.ready = true;
    node.unschedulable = false;
    std::erase_if(node.taints,
                  [](const auto& taint) { return taint.key.starts_with("node.kubernetes.io/"); });
    for (model::GpuSpec& gpu : node.gpus) {
      gpu.health = model::Health::kHealthy;
      gpu.reserved = false;
    }
  }
  return cluster;
}

// One cycle.
class Cycle {
 public:
  Cycle(const JudgeCluster& cluster, const JudgePolicy& policy, std::int64_t now_ns,
        bool certificates)
      : cluster_(cluster),
        policy_(policy),
        now_ns_(now_ns),
        certificates_(certificates),
        state_(state_of(cluster)),
        repaired_(repaired(cluster)),
        empty_(without_pods(repaired_)) {}

  model::Decision run() {
    for (const Workload& workload : in_queue_order(cluster_)) {
      if (evicted_.contains({workload.is_gang, workload.name})) continue;
      decide(workload);
    }
    return std::move(decision_);
  }

 private:
  void decide(const Workload& workload) {
    Outcome outcome;
    outcome.workload = workload.name;
    outcome.gang = workload.is_gang;
    outcome.pods = static_cast<int>(workload.members.size()) + workload.gated;
    outcome.reason = left_out(workload);
    if (outcome.reason != Reason::kNone) {
      decision_.outcomes.push_back(outcome);
      return;
    }
    State after = state_;
    if (Walk(workload, policy_, {}).run(after)) {
      conclude(workload, after, {}, outcome);
      return;
    }
    Explained why = explain(workload, state_, empty_, nullptr, policy_, certificates_);
    if (why.verdict == Verdict::kWait && preempt(workload, outcome)) return;
    outcome.verdict = why.verdict;
    outcome.reason = why.reason;
    if (certificates_) outcome.certificate = why.certificate;
    decision_.outcomes.push_back(outcome);
  }

  Reason left_out(const Workload& workload) const {
    if (workload.members.empty()) return Reason::kGated;
    if (complete(workload, workload.gated > 0) && !complete(workload, false)) return Reason::kGated;
    for (const PodSpec* pod : workload.members) {
      if (!pod->volume_missing.empty()) return Reason::kVolumeMissing;
    }
    for (const PodSpec* pod : workload.members) {
      if (pod->unread_claims) return Reason::kResourceClaimNotRead;
    }
    for (const PodSpec* pod : workload.members) {
      if (too_many_rules(*pod)) return Reason::kTooManyRules;
    }
    if (!complete(workload, false)) return Reason::kGangIncomplete;
    for (const PodSpec* pod : workload.members) {
      if (pod->needs_queue) return Reason::kQueueRequired;
    }
    return cluster_.nodes.empty() ? Reason::kNoNodes : Reason::kNone;
  }

  // More rules about other pods than are looked at, by itself or by its namespace, whose equal
  // lists of rules count once.
  bool too_many_rules(const PodSpec& pod) const {
    const auto rules = [](const PodSpec& p) {
      std::vector<std::pair<int, model::PodAffinityTerm>> out;
      for (const auto& t : p.affinity) out.emplace_back(0, t);
      for (const auto& t : p.anti_affinity) out.emplace_back(1, t);
      for (const auto& t : p.preferred_affinity) out.emplace_back(2, t);
      for (const auto& t : p.preferred_anti_affinity) out.emplace_back(3, t);
      for (const auto& t : p.spread)
        out.emplace_back(4, model::PodAffinityTerm{t.topology_key, t.pods});
      for (auto& [kind, term] : out) term.weight = 0;
      return out;
    };
    const auto own = rules(pod);
    if (own.size() > 128) return true;
    if (own.empty()) return false;
    std::vector<std::vector<std::pair<int, model::PodAffinityTerm>>> known;
    std::size_t all = 0, foreign = 0;
    for (const PodSpec& other : cluster_.pods) {
      if (other.ns != pod.ns) continue;
      auto list = rules(other);
      if (list.empty() || std::find(known.begin(), known.end(), list) != known.end()) continue;
      all += list.size();
      for (const auto& [kind, term] : list) {
        const auto& names = term.pods.namespaces;
        const bool others = std::any_of(names.begin(), names.end(),
                                        [&](const std::string& ns) { return ns != pod.ns; });
        foreign += (others || term.pods.all_namespaces) && !term.pods.match_nothing ? 1 : 0;
      }
      known.push_back(std::move(list));
    }
    return all > 4'096 || foreign > 256;
  }

  // Whether there are enough members for every minimum, gated ones counted or not.
  bool complete(const Workload& workload, bool with_gated) const {
    if (!workload.is_gang) return true;
    if (workload.gang == nullptr) return false;
    std::map<std::string, int> have = workload.running;
    int all = workload.running_total();
    for (const PodSpec& pod : cluster_.pods) {
      if (!pending(pod) || pod.ns != workload.gang->ns || pod.gang != workload.gang->name) continue;
      if (pod.gated && !with_gated) continue;
      ++have[pod.subgroup];
      ++all;
    }
    return all >= workload.gang->min_member &&
           std::all_of(workload.gang->subgroups.begin(), workload.gang->subgroups.end(),
                       [&](const auto& each) { return have[each.name] >= each.min_member; });
  }

  bool preempt(const Workload& workload, Outcome outcome) {
    if (!std::all_of(workload.members.begin(), workload.members.end(),
                     [](const PodSpec* pod) { return pod->preempts; })) {
      return false;
    }
    Preemptor preemptor(workload, policy_, cluster_.budgets, jobs());
    State after = state_;
    if (!preemptor.run(after)) return false;
    std::vector<const Job*> victims = preemptor.victims(state_, after);
    auto list = preemptor.listed(state_, victims);
    decision_.preemptions.insert(decision_.preemptions.end(), list.begin(), list.end());
    for (const Job* job : victims) {
      for (std::size_t pod : job->pods) left_.insert(state_.bound[pod].node);
    }
    conclude(workload, after, victims, outcome);
    return true;
  }

  // Commits `after`, which has some or all of the members in place.
  void conclude(const Workload& workload, State& after, const std::vector<const Job*>& victims,
                Outcome outcome) {
    for (std::size_t i = state_.bound.size(); i < after.bound.size(); ++i) {
      report(after.bound[i], after, workload, !victims.empty());
      ++outcome.placed;
    }
    outcome.verdict = Verdict::kPlaced;
    if (outcome.placed < outcome.pods) {
      outcome.verdict = Verdict::kPartial;
      outcome.reason = Reason::kGated;
    }
    if (outcome.placed < static_cast<int>(workload.members.size())) {
      Explained why = explain(workload, state_, empty_, &after, policy_, certificates_);
      outcome.reason = why.reason;
      if (certificates_) outcome.certificate = why.certificate;
    }
    state_ = std::move(after);
    decision_.outcomes.push_back(outcome);
    for (const Job* job : victims) report_victim(*job);
  }

  void report(const Bound& bound, const State& after, const Workload& workload, bool preempting) {
    const model::NodeSpec& node = *after.nodes[static_cast<std::size_t>(bound.node)].spec;
    model::Placement placement;
    placement.pod = full_name(*bound.pod);
    placement.node = node.name;
    for (const Taken& part : bound.taken) {
      placement.gpus.push_back(node.gpus[static_cast<std::size_t>(part.device)].index);
      placement.gpu_milli = part.milli;
    }
    std::sort(placement.gpus.begin(), placement.gpus.end());
    if (workload.is_gang) placement.gang = workload.name;
    placement.after_preemption = preempting || left_.contains(bound.node);
    decision_.placements.push_back(placement);
  }

  void report_victim(const Job& job) {
    Outcome outcome;
    outcome.workload = job.name;
    outcome.gang = job.is_gang;
    outcome.pods = static_cast<int>(job.pods.size());
    for (const PodSpec& pod : cluster_.pods) {
      bool member = job.is_gang && pod.ns + "/" + pod.gang == job.name;
      outcome.pods += member && pending(pod) ? 1 : 0;
    }
    outcome.reason = Reason::kPreempted;
    decision_.outcomes.push_back(outcome);
    evicted_.emplace(job.is_gang, job.name);
  }

  // All that runs now, as whole jobs.
  std::vector<Job> jobs() const {
    std::map<std::pair<bool, std::string>, Job> found;
    for (std::size_t i = 0; i < state_.bound.size(); ++i) {
      if (!state_.bound[i].present) continue;
      const PodSpec& pod = *state_.bound[i].pod;
      if (pod.terminating) continue;
      bool is_gang = !pod.gang.empty();
      std::string name = is_gang ? pod.ns + "/" + pod.gang : full_name(pod);
      Job& job = found[{is_gang, name}];
      if (job.pods.empty()) {
        job.name = name;
        job.is_gang = is_gang;
        job.priority = is_gang ? ganged(cluster_, pod.ns, pod.gang).priority : pod.priority;
      }
      job.pods.push_back(i);
      std::int64_t ran = pod.started_ns == 0 ? 0 : now_ns_ - pod.started_ns;
      job.lost += Work{gpu_milli(state_.bound[i])} * std::max<std::int64_t>(ran, 0);
    }
    std::vector<Job> list;
    for (auto& [key, job] : found) {
      std::sort(job.pods.begin(), job.pods.end(), [&](std::size_t a, std::size_t b) {
        return state_.bound[a].pod->name < state_.bound[b].pod->name;
      });
      list.push_back(std::move(job));
    }
    return list;
  }

  const JudgeCluster& cluster_;
  const JudgePolicy& policy_;
  std::int64_t now_ns_;
  bool certificates_;
  State state_;
  JudgeCluster repaired_;
  State empty_;
  std::set<int> left_;                              // nodes that victims left
  std::set<std::pair<bool, std::string>> evicted_;  // (gang, name)
  model::Decision decision_;
};

}  // namespace

std::int64_t pack_score(const JudgeNodeView& before, const PodSpec& pod) {
  std::int64_t free = 0;
  for (int milli : before.gpu_free_milli) free += std::max(milli, 0);
  return std::int64_t{unit_milli(pod.gpu, before.node)} * pod.gpu.count - free;
}

model::Decision judge(const JudgeCluster& cluster, const JudgePolicy& policy, std::int64_t now_ns,
                      bool certificates) {
  return Cycle(cluster, policy, now_ns, certificates).run();
}

std::vector<model::Constraint> rejections(const JudgeCluster& cluster, const PodSpec& pod,
                                          const std::string& node) {
  State state = state_of(cluster);
  JudgePolicy policy;
  View view(state, pod, policy);
  std::vector<model::Constraint> list;
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    if (state.nodes[i].spec->name != node) continue;
    Constraints rejects = view.rejects(static_cast<int>(i));
    for (int c = 0; c < model::kConstraints; ++c) {
      auto constraint = static_cast<model::Constraint>(c);
      if (rejects & bit(constraint)) list.push_back(constraint);
    }
  }
  return list;
}

}  // namespace berth::judging
