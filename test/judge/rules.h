// Hard constraints and node levels of docs/placement.md, evaluated by looking at everything.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "judge/state.h"
#include "model/reason.h"

namespace berth::judging {

// A set of model::Constraint, one bit each.
using Constraints = std::uint32_t;
constexpr Constraints bit(model::Constraint constraint) {
  return Constraints{1} << static_cast<int>(constraint);
}
// Those that depend on other pods than by their amounts.
inline constexpr Constraints kBetweenPods =
    bit(model::Constraint::kPodAffinity) | bit(model::Constraint::kPodAntiAffinity) |
    bit(model::Constraint::kTopologySpread) | bit(model::Constraint::kHostPorts);
// Set aside when the question is whether a workload could ever fit.
inline constexpr Constraints kNotForever = kBetweenPods | bit(model::Constraint::kUnschedulable);
// cpu .. NUMA policy.
inline constexpr Constraints kCapacity =
    (Constraints{1} << model::kConstraints) - bit(model::Constraint::kCpu);

// What one pod sees in a state: the terms that concern it, counted over all running pods once.
class View {
 public:
  // The pod and the state must outlive the view, and the state must not change under it.
  View(const State& state, const model::PodSpec& pod, const JudgePolicy& policy,
       Constraints ignored = 0);

  Constraints rejects(int node) const;  // all constraints that reject the node, less the ignored
  bool fits(int node) const { return rejects(node) == 0; }
  // The best node of those allowed that nothing rejects; -1 when there is none.
  int best(const std::vector<bool>& allowed) const;

 private:
  using Counts = std::map<std::string_view, int>;  // by domain
  struct Spread {
    const model::SpreadConstraint* constraint;
    Counts counts;
    int least = 0, most = 0;
    int self = 0;
  };
  struct Term {
    const model::PodAffinityTerm* term;
    Counts counts;
    bool self = false;
  };

  void look_around();  // for the constraints between pods
  Counts count(const model::PodSet& pods, std::string_view key, bool terminating) const;
  std::vector<Term> terms(const std::vector<model::PodAffinityTerm>& list) const;
  bool eligible(const model::SpreadConstraint& constraint, int node) const;
  Spread hard_spread(const model::SpreadConstraint& constraint) const;
  Spread soft_spread(const model::SpreadConstraint& constraint) const;
  Constraints rejects_node(int node) const;
  Constraints rejects_between_pods(int node) const;
  Constraints rejects_amounts(int node) const;
  bool affinity_met(int node) const;
  bool anti_affinity_met(int node) const;
  bool spread_met(int node) const;
  bool ports_free(int node) const;
  std::int64_t preference(int node) const;
  std::int64_t soft(int node) const;
  std::pair<std::int64_t, std::int64_t> replicas(int node) const;  // in its domain, on it
  std::int64_t locality(int node) const;

  const State& state_;
  const model::PodSpec& pod_;
  const JudgePolicy& policy_;
  Constraints ignored_;
  std::vector<Term> affinity_, anti_, preferred_, preferred_anti_;
  std::vector<Spread> hard_, soft_;
  // Domains that running pods keep this pod out of: (key, value).
  std::vector<std::pair<std::string_view, std::string_view>> kept_out_;
};

// How many copies of the pod the node takes by the constraints that are not ignored; those between
// pods are always left aside.
int copies(const State& state, const model::PodSpec& pod, int node, const JudgePolicy& policy,
           Constraints ignored);

// Puts the pod on the best allowed node. False, and nothing changed, when none takes it.
bool place(State& state, const model::PodSpec& pod, const std::vector<bool>& allowed,
           const JudgePolicy& policy, Constraints ignored = 0);

// The constraints cpu .. NUMA policy that reject the pod on what is free here.
Constraints rejects_capacity(const NodeState& node, const model::PodSpec& pod);

JudgeNodeView view_of(const NodeState& node);

}  // namespace berth::judging
