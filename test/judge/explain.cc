#include "judge/explain.h"

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>

#include "judge/gpus.h"
#include "judge/match.h"

namespace berth::judging {

using model::Certificate;
using model::Constraint;
using model::PodSpec;
using model::Reason;
using model::Verdict;

namespace {

// The reasons of the constraints come first in the list of reasons, in the same order.
Reason reason_for(Constraint constraint) {
  return static_cast<Reason>(static_cast<int>(constraint) + 1);
}

bool fits_alone(const State& state, const PodSpec& pod, const JudgePolicy& policy,
                Constraints ignored) {
  View view(state, pod, policy, ignored);
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    if (view.fits(static_cast<int>(i))) return true;
  }
  return false;
}

int free_milli(const NodeState& node, const model::GpuDemandSpec& demand) {
  if (unit_milli(demand, *node.spec) <= 0) return 0;
  int sum = 0;
  for (std::size_t i = 0; i < node.gpu_free.size(); ++i) {
    if (usable(node.spec->gpus[i])) sum += std::max(node.gpu_free[i], 0);
  }
  return sum;
}

Constraint binding_of(const Certificate& certificate) {
  auto largest = [](const std::array<int, model::kConstraints>& counts) {
    auto found = std::max_element(counts.begin(), counts.end());  // the first of equals
    return *found == 0 ? Constraint::kCount : static_cast<Constraint>(found - counts.begin());
  };
  Constraint alone = largest(certificate.only);
  return alone != Constraint::kCount ? alone : largest(certificate.removed);
}

// The part of the certificate that concerns one pod.
Certificate certify(const State& state, const PodSpec& pod, const JudgePolicy& policy,
                    Constraints ignored) {
  Certificate certificate;
  certificate.nodes = static_cast<int>(state.nodes.size());
  View view(state, pod, policy, ignored);
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    Constraints rejects = view.rejects(static_cast<int>(i));
    certificate.fitting_nodes += rejects == 0 ? 1 : 0;
    for (std::size_t c = 0; c < certificate.removed.size(); ++c) {
      certificate.removed[c] += static_cast<int>((rejects >> c) & 1U);
    }
    if (std::has_single_bit(rejects)) {
      ++certificate.only[static_cast<std::size_t>(std::countr_zero(rejects))];
    }
    if ((rejects & ~kCapacity) != 0 || !asks_gpus(pod)) continue;
    int free = free_milli(state.nodes[i], pod.gpu);
    certificate.free_gpu_milli += free;
    certificate.largest_free_milli = std::max(certificate.largest_free_milli, free);
  }
  certificate.binding = binding_of(certificate);
  return certificate;
}

bool covered_in_total(const State& state, const PodSpec& pod, const JudgePolicy& policy,
                      int free_gpu_milli) {
  View view(state, pod, policy);
  int slots = 0;
  int smallest = 0;
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    if ((view.rejects(static_cast<int>(i)) & ~kCapacity) != 0) continue;
    slots += free_units(state.nodes[i], pod.gpu, Devices::kUsable);
    int unit = unit_milli(pod.gpu, *state.nodes[i].spec);
    if (unit > 0 && !state.nodes[i].spec->gpus.empty()) {
      smallest = smallest == 0 ? unit : std::min(smallest, unit);
    }
  }
  if (pod.gpu.kind == model::GpuDemandSpec::Kind::kMig) return slots >= pod.gpu.count;
  return smallest > 0 && free_gpu_milli >= pod.gpu.count * smallest;
}

// ---- gangs ----

bool equal_members(const Workload& workload) {
  // What decides how many copies a node takes, and which minimum a copy counts for.
  auto shape = [](const PodSpec* pod) {
    PodSpec same;
    same.subgroup = pod->subgroup;
    same.requests = pod->requests;
    same.gpu = pod->gpu;
    same.gpus_by_container = pod->gpus_by_container;
    same.gpu_models = pod->gpu_models;
    same.gpu_min_memory_mib = pod->gpu_min_memory_mib;
    same.node_selector = pod->node_selector;
    same.required_nodes = pod->required_nodes;
    same.tolerations = pod->tolerations;
    same.affinity = pod->affinity;
    same.anti_affinity = pod->anti_affinity;
    same.spread = pod->spread;
    same.host_ports = pod->host_ports;
    same.volumes = pod->volumes;
    return same;
  };
  PodSpec first = shape(workload.members.front());
  return std::all_of(workload.members.begin() + 1, workload.members.end(),
                     [&](const PodSpec* pod) { return shape(pod) == first; });
}

bool between_pods(const State& state, const PodSpec& pod) {
  if (!pod.affinity.empty() || !pod.anti_affinity.empty() || !pod.host_ports.empty()) return true;
  if (std::any_of(pod.spread.begin(), pod.spread.end(), [](const auto& s) { return s.hard; })) {
    return true;
  }
  return std::any_of(state.bound.begin(), state.bound.end(), [&](const Bound& bound) {
    return bound.present && bound.node >= 0 &&
           std::any_of(bound.pod->anti_affinity.begin(), bound.pod->anti_affinity.end(),
                       [&](const auto& term) { return matches(term.pods, pod); });
  });
}

// Of the required level: those of running members where there are any, else all.
std::vector<Domain> open_domains(const Walk& walk, const Workload& workload, const State& state) {
  const std::string& key = workload.gang->required_topology;
  std::set<std::string> inhabited;
  for (const Bound& bound : state.bound) {
    if (!bound.present || bound.pod->ns != workload.gang->ns ||
        bound.pod->gang != workload.gang->name) {
      continue;
    }
    const std::string* value = domain_of(state, bound.node, key);
    if (value != nullptr) inhabited.insert(*value);
  }
  auto list = walk.domains(state, *workload.members.front(), every_node(state), key);
  std::erase_if(list, [&](const Domain& domain) {
    return !inhabited.empty() && !inhabited.contains(domain.value);
  });
  return list;
}

int most_capacity(const Walk& walk, const Workload& workload, const State& state,
                  const JudgePolicy& policy, Constraints ignored) {
  const PodSpec& first = *workload.members.front();
  int most = 0;
  if (workload.gang != nullptr && !workload.gang->required_topology.empty()) {
    for (const Domain& domain : open_domains(walk, workload, state)) {
      most = std::max(most, domain.capacity);
    }
    return most;
  }
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    most += copies(state, first, static_cast<int>(i), policy, ignored);
  }
  return most;
}

bool exact_no(const Workload& workload, const State& state, const JudgePolicy& policy,
              Constraints ignored) {
  if (!workload.is_gang) return true;
  Walk walk(workload, policy, {.ignored = ignored});
  if (equal_members(workload)) {
    bool own_topology = std::any_of(
        workload.gang->subgroups.begin(), workload.gang->subgroups.end(), [](const auto& each) {
          return !each.required_topology.empty() || !each.preferred_topology.empty();
        });
    bool counted =
        (ignored & kBetweenPods) == kBetweenPods || !between_pods(state, *workload.members.front());
    if (counted && !own_topology) return true;
    if (most_capacity(walk, workload, state, policy, ignored) < workload.needed()) return true;
  }
  Constraints loose = ignored | bit(Constraint::kPodAffinity) | bit(Constraint::kTopologySpread);
  auto able =
      std::count_if(workload.members.begin(), workload.members.end(),
                    [&](const PodSpec* pod) { return fits_alone(state, *pod, policy, loose); });
  return able < workload.needed();
}

const PodSpec& explained_member(const Workload& workload, const State& state, const State* after,
                                const JudgePolicy& policy, Constraints ignored) {
  if (after != nullptr) {
    Walk walk(workload, policy, {});
    for (const PodSpec* pod : workload.members) {
      if (!walk.is_placed(*after, *pod)) return *pod;
    }
  }
  for (const PodSpec* pod : workload.members) {
    if (!fits_alone(state, *pod, policy, ignored)) return *pod;
  }
  return *workload.members.front();
}

void add_domains(const Workload& workload, const State& state, const JudgePolicy& policy,
                 Certificate& certificate) {
  certificate.needed_pods = workload.needed();
  Walk walk(workload, policy, {});
  const std::string& key = workload.gang->required_topology;
  if (key.empty()) {
    certificate.domains.push_back(
        {.name = "cluster", .fits = walk.most_in(state, every_node(state))});
  } else {
    for (const Domain& domain : open_domains(walk, workload, state)) {
      certificate.domains.push_back(
          {.name = domain.value, .fits = walk.most_in(state, domain.nodes)});
    }
  }
  std::sort(certificate.domains.begin(), certificate.domains.end(),
            [](const auto& a, const auto& b) {
              return std::tuple(-a.fits, std::string_view(a.name)) <
                     std::tuple(-b.fits, std::string_view(b.name));
            });
  certificate.domains_total = static_cast<int>(certificate.domains.size());
  if (certificate.domains_total > Certificate::kMaxDomains) {
    certificate.domains.resize(Certificate::kMaxDomains);
  }
}

bool fits_without_topology(const Workload& workload, const State& state, const JudgePolicy& policy,
                           bool all) {
  bool required = !workload.gang->required_topology.empty() ||
                  std::any_of(workload.gang->subgroups.begin(), workload.gang->subgroups.end(),
                              [](const auto& each) { return !each.required_topology.empty(); });
  if (!required) return false;
  Walk walk(workload, policy, {.ignored = 0, .preempting = false, .required_topology = false});
  State trial = state;
  return walk.run(trial) &&
         (!all || walk.placed(trial) == static_cast<int>(workload.members.size()));
}

Reason reason_to_wait(const Workload& workload, const State& state, const PodSpec& pod,
                      const Certificate& certificate, bool partial, const JudgePolicy& policy) {
  if (workload.is_gang &&
      std::any_of(workload.members.begin(), workload.members.end(),
                  [&](const PodSpec* each) { return fits_alone(state, *each, policy, 0); })) {
    return fits_without_topology(workload, state, policy, partial) ? Reason::kTopologyDomainTooSmall
                                                                   : Reason::kGangDoesNotFit;
  }
  if (certificate.binding == Constraint::kGpus &&
      covered_in_total(state, pod, policy, certificate.free_gpu_milli)) {
    return Reason::kFragmented;
  }
  return reason_for(certificate.binding);
}

// kNone: not so.
Reason reason_for_never(const Workload& workload, const State& empty, const JudgePolicy& policy) {
  State trial = empty;
  if (Walk(workload, policy, {.ignored = kNotForever}).run(trial)) return Reason::kNone;
  if (!exact_no(workload, empty, policy, kNotForever)) return Reason::kNone;
  const PodSpec& pod = explained_member(workload, empty, nullptr, policy, kNotForever);
  Certificate certificate = certify(empty, pod, policy, kNotForever);
  bool capacity = (bit(certificate.binding) & kCapacity) != 0;
  if (certificate.fitting_nodes > 0 || capacity) return Reason::kNeverFits;
  return reason_for(certificate.binding);
}

}  // namespace

Explained explain(const Workload& workload, const State& before, const State& empty,
                  const State* after, const JudgePolicy& policy, bool full) {
  Explained result;
  bool partial = after != nullptr;
  const PodSpec& pod = explained_member(workload, before, after, policy, 0);
  result.certificate = certify(before, pod, policy, 0);
  if (workload.is_gang && full) {
    add_domains(workload, before, policy, result.certificate);
    result.certificate.exact = exact_no(workload, before, policy, 0);
  }
  Reason never = partial ? Reason::kNone : reason_for_never(workload, empty, policy);
  if (never != Reason::kNone) {
    result.verdict = Verdict::kNever;
    result.reason = never;
    return result;
  }
  result.verdict = partial ? Verdict::kPartial : Verdict::kWait;
  result.reason = reason_to_wait(workload, before, pod, result.certificate, partial, policy);
  return result;
}

}  // namespace berth::judging
