#include "judge/rules.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "judge/gpus.h"
#include "judge/match.h"

namespace berth::judging {

using model::Constraint;
using model::NodeSpec;
using model::PodSpec;
using model::TaintEffect;

namespace {

constexpr const char* kCordon = "node.kubernetes.io/unschedulable";
constexpr const char* kConditionTaints = "node.kubernetes.io/";

Constraints when(bool rejected, Constraint constraint) { return rejected ? bit(constraint) : 0; }

bool volumes_reachable(const PodSpec& pod, const NodeSpec& node) {
  return std::all_of(pod.volumes.begin(), pod.volumes.end(), [&](const model::VolumeLimit& claim) {
    return claim.node_terms.empty() ||
           std::any_of(claim.node_terms.begin(), claim.node_terms.end(),
                       [&](const auto& term) { return matches(term, node); });
  });
}

bool model_wanted(const PodSpec& pod, const NodeSpec& node) {
  if (!asks_gpus(pod) || pod.gpu_models.empty()) return true;
  return !node.gpus.empty() && std::find(pod.gpu_models.begin(), pod.gpu_models.end(),
                                         node.gpus.front().model) != pod.gpu_models.end();
}

bool memory_enough(const PodSpec& pod, const NodeSpec& node) {
  if (!asks_gpus(pod)) return true;
  std::int64_t have = node.gpus.empty() ? 0 : node.gpus.front().memory_mib;
  if (pod.gpu_min_memory_mib > have) return false;
  return pod.gpu.kind != model::GpuDemandSpec::Kind::kMemory || pod.gpu.memory_mib <= have;
}

bool overlap(const model::HostPort& a, const model::HostPort& b) {
  auto any = [](const std::string& ip) { return ip.empty() || ip == "0.0.0.0"; };
  auto protocol = [](const std::string& text) { return text.empty() ? "TCP" : text; };
  return a.port == b.port && protocol(a.protocol) == protocol(b.protocol) &&
         (any(a.ip) || any(b.ip) || a.ip == b.ip);
}

Constraints rejects_gpus(const NodeState& node, const PodSpec& pod) {
  if (!serves(node, pod, Devices::kAll)) return bit(Constraint::kGpus);
  if (!serves(node, pod, Devices::kUsable)) return bit(Constraint::kGpuHealth);
  return when(!numa_admits(node, pod), Constraint::kNumaPolicy);
}

}  // namespace

Constraints rejects_capacity(const NodeState& node, const PodSpec& pod) {
  Constraints rejected = when(node.pods < 1, Constraint::kPods);
  for (const auto& [resource, wanted] : pod.requests) {
    if (wanted <= 0 || resource == "pods") continue;
    if (resource == "cpu") {
      rejected |= when(wanted > node.cpu, Constraint::kCpu);
    } else if (resource == "memory") {
      rejected |= when(wanted > node.memory, Constraint::kMemory);
    } else if (resource == "ephemeral-storage") {
      rejected |= when(wanted > node.ephemeral, Constraint::kEphemeralStorage);
    } else {
      auto free = node.extended.find(resource);
      bool lacks = free == node.extended.end() || wanted > free->second;
      rejected |= when(lacks, Constraint::kExtended);
    }
  }
  return rejected | rejects_gpus(node, pod);
}

View::View(const State& state, const PodSpec& pod, const JudgePolicy& policy, Constraints ignored)
    : state_(state), pod_(pod), policy_(policy), ignored_(ignored) {
  if ((ignored & kBetweenPods) != kBetweenPods) look_around();
  preferred_ = terms(pod.preferred_affinity);
  preferred_anti_ = terms(pod.preferred_anti_affinity);
  for (const model::SpreadConstraint& constraint : pod.spread) {
    if (!constraint.hard) soft_.push_back(soft_spread(constraint));
  }
}

void View::look_around() {
  affinity_ = terms(pod_.affinity);
  anti_ = terms(pod_.anti_affinity);
  for (const model::SpreadConstraint& constraint : pod_.spread) {
    if (constraint.hard) hard_.push_back(hard_spread(constraint));
  }
  for (const Bound& bound : state_.bound) {
    if (!bound.present) continue;
    for (const model::PodAffinityTerm& term : bound.pod->anti_affinity) {
      const std::string* domain = domain_of(state_, bound.node, term.topology_key);
      if (domain != nullptr && matches(term.pods, pod_)) {
        kept_out_.emplace_back(term.topology_key, *domain);
      }
    }
  }
}

View::Counts View::count(const model::PodSet& pods, std::string_view key, bool terminating) const {
  Counts counts;
  for (const Bound& bound : state_.bound) {
    if (!bound.present || (bound.pod->terminating && !terminating)) continue;
    const std::string* domain = domain_of(state_, bound.node, key);
    if (domain != nullptr && matches(pods, *bound.pod)) ++counts[*domain];
  }
  return counts;
}

std::vector<View::Term> View::terms(const std::vector<model::PodAffinityTerm>& list) const {
  std::vector<Term> found;
  for (const model::PodAffinityTerm& term : list) {
    found.push_back({.term = &term,
                     .counts = count(term.pods, term.topology_key, true),
                     .self = matches(term.pods, pod_)});
  }
  return found;
}

bool View::eligible(const model::SpreadConstraint& constraint, int node) const {
  const NodeSpec& spec = *state_.nodes[static_cast<std::size_t>(node)].spec;
  for (const model::SpreadConstraint& each : pod_.spread) {
    if (each.hard && find_label(spec.labels, each.topology_key) == nullptr) return false;
  }
  if (constraint.honor_affinity && !(selected(pod_, spec) && affine(pod_, spec))) return false;
  return !constraint.honor_taints || taints_tolerated(pod_, spec);
}

View::Spread View::hard_spread(const model::SpreadConstraint& constraint) const {
  Spread spread{.constraint = &constraint, .counts = {}};
  std::vector<bool> counted(state_.nodes.size());
  for (std::size_t i = 0; i < state_.nodes.size(); ++i) {
    counted[i] = eligible(constraint, static_cast<int>(i));
    if (counted[i]) spread.counts[*domain_of(state_, static_cast<int>(i), constraint.topology_key)];
  }
  for (const Bound& bound : state_.bound) {
    if (!bound.present || bound.node < 0 || bound.pod->terminating) continue;
    if (!counted[static_cast<std::size_t>(bound.node)]) continue;
    if (!matches(constraint.pods, *bound.pod)) continue;
    ++spread.counts[*domain_of(state_, bound.node, constraint.topology_key)];
  }
  if (!spread.counts.empty() && static_cast<int>(spread.counts.size()) >= constraint.min_domains) {
    spread.least =
        std::min_element(spread.counts.begin(), spread.counts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; })
            ->second;
  }
  spread.self = matches(constraint.pods, pod_) ? 1 : 0;
  return spread;
}

View::Spread View::soft_spread(const model::SpreadConstraint& constraint) const {
  Spread spread{.constraint = &constraint,
                .counts = count(constraint.pods, constraint.topology_key, false)};
  for (const auto& [domain, pods] : spread.counts) spread.most = std::max(spread.most, pods);
  return spread;
}

Constraints View::rejects(int node) const {
  return (rejects_node(node) | rejects_between_pods(node) | rejects_amounts(node)) & ~ignored_;
}

Constraints View::rejects_node(int node) const {
  const NodeSpec& spec = *state_.nodes[static_cast<std::size_t>(node)].spec;
  static const model::Taint cordon{.key = kCordon, .value = "", .effect = TaintEffect::kNoSchedule};
  bool cordoned = spec.unschedulable && !tolerated(pod_, cordon);
  const char* but = !spec.ready || cordoned ? kConditionTaints : "";
  return when(!spec.ready, Constraint::kNodeReady) | when(cordoned, Constraint::kUnschedulable) |
         when(!taints_tolerated(pod_, spec, but), Constraint::kTaints) |
         when(!selected(pod_, spec), Constraint::kNodeSelector) |
         when(!affine(pod_, spec), Constraint::kNodeAffinity) |
         when(!volumes_reachable(pod_, spec), Constraint::kVolumes) |
         when(!model_wanted(pod_, spec), Constraint::kGpuModel) |
         when(!memory_enough(pod_, spec), Constraint::kGpuMemory);
}

Constraints View::rejects_between_pods(int node) const {
  if ((ignored_ & kBetweenPods) == kBetweenPods) return 0;
  return when(!affinity_met(node), Constraint::kPodAffinity) |
         when(!anti_affinity_met(node), Constraint::kPodAntiAffinity) |
         when(!spread_met(node), Constraint::kTopologySpread) |
         when(!ports_free(node), Constraint::kHostPorts);
}

Constraints View::rejects_amounts(int node) const {
  return rejects_capacity(state_.nodes[static_cast<std::size_t>(node)], pod_);
}

bool View::affinity_met(int node) const {
  return std::all_of(affinity_.begin(), affinity_.end(), [&](const Term& term) {
    const std::string* domain = domain_of(state_, node, term.term->topology_key);
    if (domain == nullptr) return false;
    bool first_of_its_kind = term.counts.empty() && term.self;
    return first_of_its_kind || term.counts.contains(*domain);
  });
}

bool View::anti_affinity_met(int node) const {
  bool mine = std::none_of(anti_.begin(), anti_.end(), [&](const Term& term) {
    const std::string* domain = domain_of(state_, node, term.term->topology_key);
    return domain != nullptr && term.counts.contains(*domain);
  });
  return mine && std::none_of(kept_out_.begin(), kept_out_.end(), [&](const auto& out) {
           const std::string* domain = domain_of(state_, node, out.first);
           return domain != nullptr && *domain == out.second;
         });
}

bool View::spread_met(int node) const {
  return std::all_of(hard_.begin(), hard_.end(), [&](const Spread& spread) {
    const std::string* domain = domain_of(state_, node, spread.constraint->topology_key);
    if (domain == nullptr) return false;
    auto found = spread.counts.find(*domain);
    int here = found == spread.counts.end() ? 0 : found->second;
    return here + spread.self - spread.least <= spread.constraint->max_skew;
  });
}

bool View::ports_free(int node) const {
  if (pod_.host_ports.empty()) return true;
  return std::none_of(state_.bound.begin(), state_.bound.end(), [&](const Bound& bound) {
    if (!bound.present || bound.node != node) return false;
    for (const model::HostPort& mine : pod_.host_ports) {
      for (const model::HostPort& theirs : bound.pod->host_ports) {
        if (overlap(mine, theirs)) return true;
      }
    }
    return false;
  });
}

std::int64_t View::preference(int node) const {
  const NodeSpec& spec = *state_.nodes[static_cast<std::size_t>(node)].spec;
  std::int64_t sum = 0;
  for (const model::PreferredNodeTerm& preferred : pod_.preferred_nodes) {
    if (matches(preferred.term, spec)) sum += preferred.weight;
  }
  auto weight_of = [&](const Term& term) {
    const std::string* domain = domain_of(state_, node, term.term->topology_key);
    return domain != nullptr && term.counts.contains(*domain) ? term.term->weight : 0;
  };
  for (const Term& term : preferred_) sum += weight_of(term);
  for (const Term& term : preferred_anti_) sum -= weight_of(term);
  for (const model::Taint& taint : spec.taints) {
    if (taint.effect == TaintEffect::kPreferNoSchedule && !tolerated(pod_, taint)) sum -= 100;
  }
  return sum;
}

std::int64_t View::soft(int node) const {
  std::int64_t sum = 0;
  for (const Spread& spread : soft_) {
    const std::string* domain = domain_of(state_, node, spread.constraint->topology_key);
    if (domain == nullptr) {
      sum += spread.most + 1;
    } else if (auto found = spread.counts.find(*domain); found != spread.counts.end()) {
      sum += found->second;
    }
  }
  return sum;
}

std::pair<std::int64_t, std::int64_t> View::replicas(int node) const {
  const auto over = pod_.owner.empty() ? std::nullopt : policy_.spreads(pod_);
  if (!over) return {0, 0};
  const auto running = [&](const auto& counts_there) {
    return std::count_if(state_.bound.begin(), state_.bound.end(), [&](const Bound& bound) {
      return bound.present && bound.pod->ns == pod_.ns && bound.pod->owner == pod_.owner &&
             counts_there(bound.node);
    });
  };
  const std::int64_t on_node = running([&](int at) { return at == node; });
  if (over->empty()) return {0, on_node};
  const std::string* domain = domain_of(state_, node, *over);
  if (domain == nullptr) return {INT64_MAX, on_node};
  return {running([&](int at) {
            const std::string* theirs = domain_of(state_, at, *over);
            return theirs != nullptr && *theirs == *domain;
          }),
          on_node};
}

std::int64_t View::locality(int node) const {
  const NodeSpec& spec = *state_.nodes[static_cast<std::size_t>(node)].spec;
  std::int64_t sum = 0;
  for (const LocalityWeight& wanted : policy_.locality) {
    const std::string* value = find_label(spec.labels, wanted.key);
    if (value != nullptr && *value == wanted.value) sum += wanted.weight;
  }
  return sum;
}

int View::best(const std::vector<bool>& allowed) const {
  using Levels = std::tuple<std::int64_t, std::int64_t, std::pair<std::int64_t, std::int64_t>,
                            std::int64_t, std::int64_t>;
  std::optional<Levels> lowest;
  int found = -1;
  for (std::size_t i = 0; i < state_.nodes.size(); ++i) {
    int node = static_cast<int>(i);
    if (!allowed[i] || !fits(node)) continue;
    Levels levels{-preference(node), soft(node), replicas(node), -locality(node),
                  -policy_.score(view_of(state_.nodes[i]), pod_)};
    if (lowest && !(levels < *lowest)) continue;
    lowest = levels;
    found = node;
  }
  return found;
}

JudgeNodeView view_of(const NodeState& node) {
  return {.node = *node.spec,
          .free_cpu_milli = node.cpu,
          .free_memory = node.memory,
          .free_ephemeral = node.ephemeral,
          .free_pods = node.pods,
          .free_extended = node.extended,
          .gpu_free_milli = node.gpu_free};
}

int copies(const State& state, const PodSpec& pod, int node, const JudgePolicy& policy,
           Constraints ignored) {
  View view(state, pod, policy, ignored | kBetweenPods);
  if (!view.fits(node)) return 0;
  NodeState scratch = state.nodes[static_cast<std::size_t>(node)];
  int count = 0;
  while (rejects_capacity(scratch, pod) == 0) {
    take(scratch, pod, *choose_devices(scratch, pod));
    ++count;
  }
  return count;
}

bool place(State& state, const PodSpec& pod, const std::vector<bool>& allowed,
           const JudgePolicy& policy, Constraints ignored) {
  int node = View(state, pod, policy, ignored).best(allowed);
  if (node < 0) return false;
  auto devices = choose_devices(state.nodes[static_cast<std::size_t>(node)], pod);
  bind(state, pod, node, std::move(*devices));
  return true;
}

}  // namespace berth::judging
