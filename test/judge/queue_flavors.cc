#include "judge/queue_flavors.h"

#include <algorithm>

#include "judge/match.h"

namespace berth::judging::quota {

using model::FlavorSpec;
using model::PodSetSpec;

AssignmentMode Assignment::mode() const {
  if (!no_fit.empty()) return AssignmentMode::kNoFit;
  return needing().empty() ? AssignmentMode::kFit : AssignmentMode::kPreempt;
}

Usage Assignment::usage() const {
  Usage sum;
  if (!no_fit.empty()) return sum;
  for (const PodSetChoice& set : pod_sets) {
    for (const auto& [resource, choice] : set.flavors) {
      std::int64_t& amount = sum[{choice.flavor, resource}];
      amount = plus(amount, set.requests.at(resource));
    }
  }
  return sum;
}

FlavorResources Assignment::needing() const {
  FlavorResources all;
  for (const PodSetChoice& set : pod_sets) {
    for (const auto& [resource, choice] : set.flavors) {
      if (choice.mode != FlavorMode::kFit) all.insert({choice.flavor, resource});
    }
  }
  return all;
}

int Assignment::level() const {
  int highest = 0;
  for (const PodSetChoice& set : pod_sets) {
    for (const auto& [resource, choice] : set.flavors) highest = std::max(highest, choice.level);
  }
  return highest;
}

bool Assignment::untried() const {
  return std::any_of(tried.begin(), tried.end(), [](const auto& one) { return one.second >= 0; });
}

model::AdmissionSpec Assignment::admission(const std::string& queue) const {
  model::AdmissionSpec admission{.queue = queue, .pod_sets = {}};
  for (const PodSetChoice& set : pod_sets) {
    model::PodSetAdmission& out = admission.pod_sets.emplace_back();
    out.name = set.name;
    out.count = set.count;
    for (const auto& [resource, choice] : set.flavors) {
      out.flavors[resource] = choice.flavor;
      out.usage[resource] = set.requests.at(resource);
    }
  }
  return admission;
}

std::vector<int> counts_of(const model::WorkloadSpec& workload) {
  std::vector<int> counts;
  for (const PodSetSpec& set : workload.pod_sets) {
    auto done = workload.reclaimable.find(set.name);
    counts.push_back(
        std::max(0, set.count - (done == workload.reclaimable.end() ? 0 : done->second)));
  }
  return counts;
}

namespace {

// ---- which flavors are for the pods at all ----

bool levels_known(const model::TopologyAsk& ask, const model::TopologySpec& topology) {
  auto known = [&](const std::string& level) {
    return level.empty() || std::find(topology.levels.begin(), topology.levels.end(), level) !=
                                topology.levels.end();
  };
  return known(ask.level) && std::all_of(ask.slices.begin(), ask.slices.end(),
                                         [&](const auto& slice) { return known(slice.level); });
}

bool nodes_match(const model::PodSpec& pod, const FlavorSpec& flavor) {
  for (const auto& [key, value] : pod.node_selector) {
    const std::string* label = find_label(flavor.node_labels, key);
    if (label != nullptr && *label != value) return false;
  }
  if (pod.required_nodes.empty()) return true;
  for (const model::NodeSelectorTerm& term : pod.required_nodes) {
    text::Selector kept;
    for (const text::Requirement& requirement : term.labels) {
      if (find_label(flavor.node_labels, requirement.key) != nullptr) kept.push_back(requirement);
    }
    if (kept.empty() || matches(kept, flavor.node_labels)) return true;
  }
  return false;
}

bool taints_allowed(const model::PodSpec& pod, const FlavorSpec& flavor) {
  model::PodSpec both;
  both.tolerations = pod.tolerations;
  both.tolerations.insert(both.tolerations.end(), flavor.tolerations.begin(),
                          flavor.tolerations.end());
  return std::all_of(flavor.node_taints.begin(), flavor.node_taints.end(), [&](const auto& taint) {
    return taint.effect == model::TaintEffect::kPreferNoSchedule || tolerated(both, taint);
  });
}

int severity(const std::string& reason) {
  if (reason == "NoMatchingFlavor") return 3;
  if (reason == "ExceedsMaxQuota") return 2;
  return reason == "WaitingForQuota" ? 1 : 0;
}

// ---- the scan ----

class FlavorScan {
 public:
  FlavorScan(const model::QueueInputs& inputs, const QuotaState& state, const Asker& asker,
             const model::WorkloadSpec& workload, const std::vector<int>& counts, const Tried& last,
             const Assignment* pinned)
      : inputs_(inputs),
        state_(state),
        asker_(asker),
        workload_(workload),
        counts_(counts),
        last_(last),
        pinned_(pinned) {}

  Assignment run() {
    for (std::size_t i = 0; i < workload_.pod_sets.size(); ++i) {
      const PodSetSpec& set = workload_.pod_sets[i];
      PodSetChoice& choice = out_.pod_sets.emplace_back();
      choice.name = set.name;
      choice.count = counts_[i];
      for (const auto& [resource, amount] : set.requests) {
        choice.requests[resource] = amount * counts_[i];
      }
      if (group_of("pods") != nullptr) choice.requests["pods"] = counts_[i];
    }
    std::vector<bool> seen(workload_.pod_sets.size(), false);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i]) continue;
      std::vector<std::size_t> together;
      const std::string& group = workload_.pod_sets[i].topology.group;
      for (std::size_t j = i; j < seen.size(); ++j) {
        if (j != i && (group.empty() || workload_.pod_sets[j].topology.group != group)) continue;
        together.push_back(j);
        seen[j] = true;
      }
      assign_together(together);
      if (!out_.no_fit.empty()) break;
    }
    return out_;
  }

 private:
  struct Outcome {  // of one flavor
    FlavorMode mode = FlavorMode::kNoFit;
    int level = 0;
  };

  const model::ResourceGroup* group_of(const std::string& resource) const {
    for (const model::ResourceGroup& group : asker_.queue->groups) {
      if (std::find(group.covered.begin(), group.covered.end(), resource) != group.covered.end()) {
        return &group;
      }
    }
    return nullptr;
  }

  void fail(const std::string& reason) {
    if (severity(reason) > severity(out_.no_fit)) out_.no_fit = reason;
  }

  void assign_together(const std::vector<std::size_t>& sets) {
    model::Amounts sum;
    for (std::size_t i : sets) {
      for (const auto& [resource, amount] : out_.pod_sets[i].requests) {
        sum[resource] = plus(sum[resource], amount);
      }
    }
    for (const auto& [resource, amount] : sum) {
      if (group_of(resource) != nullptr || amount == 0) continue;
      if (!inputs_.config.ignore_undeclared) return fail("NoMatchingFlavor");
    }
    Usage added;
    for (const model::ResourceGroup& group : asker_.queue->groups) {
      if (!out_.no_fit.empty()) return;
      model::Amounts wanted;
      for (const auto& [resource, amount] : sum) {
        if (group_of(resource) == &group) wanted[resource] = amount;
      }
      if (!wanted.empty()) scan(group, sets, wanted, added);
    }
    for (const auto& [fr, amount] : added) assumed_[fr] = plus(assumed_[fr], amount);
  }

  const FlavorSpec* flavor(const std::string& name) const {
    for (const FlavorSpec& spec : inputs_.flavors) {
      if (spec.name == name) return &spec;
    }
    return nullptr;
  }

  bool only_topology_flavors() const {
    for (const model::ResourceGroup& group : asker_.queue->groups) {
      for (const model::FlavorQuota& quota : group.flavors) {
        const FlavorSpec* spec = flavor(quota.flavor);
        if (spec == nullptr || spec->topology.empty()) return false;
      }
    }
    return true;
  }

  bool topology_matches(const PodSetSpec& set, const FlavorSpec& spec) const {
    if (!set.topology.asks()) return spec.topology.empty() || only_topology_flavors();
    return std::any_of(inputs_.topologies.begin(), inputs_.topologies.end(), [&](const auto& one) {
      return one.name == spec.topology && levels_known(set.topology, one);
    });
  }

  bool eligible(const std::string& name, const std::vector<std::size_t>& sets) const {
    const FlavorSpec* spec = flavor(name);
    return spec != nullptr && std::all_of(sets.begin(), sets.end(), [&](std::size_t i) {
             const PodSetSpec& set = workload_.pod_sets[i];
             return topology_matches(set, *spec) && taints_allowed(*set.pod, *spec) &&
                    nodes_match(*set.pod, *spec);
           });
  }

  // Better in the order that the queue prefers (trap 1).
  bool better(const Outcome& a, const Outcome& b) const {
    const bool a_no_fit = a.mode == FlavorMode::kNoFit, b_no_fit = b.mode == FlavorMode::kNoFit;
    if (a_no_fit || b_no_fit) return !a_no_fit;
    const bool a_viable = a.mode != FlavorMode::kNoCandidates;
    const bool b_viable = b.mode != FlavorMode::kNoCandidates;
    if (a_viable != b_viable) return a_viable;
    if (asker_.queue->prefer_less_borrowing) {
      return a.level != b.level ? a.level < b.level : a.mode > b.mode;
    }
    return a.mode != b.mode ? a.mode > b.mode : a.level < b.level;
  }

  bool stops(const Outcome& outcome) const {
    if (outcome.mode <= FlavorMode::kNoCandidates) return false;
    if (outcome.mode != FlavorMode::kFit && !asker_.queue->preempt_stops_search) return false;
    return outcome.level == 0 || asker_.queue->borrow_stops_search;
  }

  void scan(const model::ResourceGroup& group, const std::vector<std::size_t>& sets,
            const model::Amounts& wanted, Usage& added) {
    const std::string& first_set = workload_.pod_sets[sets.front()].name;
    const std::string& first_resource = wanted.begin()->first;
    auto last = last_.find({first_set, first_resource});
    const int size = static_cast<int>(group.flavors.size());
    int tried = -1;
    std::string reason;
    Outcome best;
    std::map<std::string, FlavorChoice> chosen;
    for (int i = last == last_.end() ? 0 : last->second + 1; i < size; ++i) {
      const std::string& name = group.flavors[static_cast<std::size_t>(i)].flavor;
      if (pinned_ != nullptr && !is_pinned(sets, first_resource, name)) continue;
      tried = i;
      std::map<std::string, FlavorChoice> choices;
      std::string why = "NoMatchingFlavor";
      Outcome outcome;
      if (eligible(name, sets)) outcome = try_flavor(name, wanted, choices, why);
      if (outcome.mode == FlavorMode::kNoFit &&
          (reason.empty() || severity(why) < severity(reason))) {
        reason = why;
      }
      const bool stop = stops(outcome);
      if (stop || better(outcome, best)) {
        best = outcome;
        chosen = choices;
      }
      if (stop) break;
    }
    if (best.mode == FlavorMode::kNoFit) fail(reason.empty() ? "NoMatchingFlavor" : reason);
    record(sets, wanted, best.mode == FlavorMode::kNoFit ? decltype(chosen){} : chosen,
           tried == size - 1 ? -1 : tried, added);
  }

  bool is_pinned(const std::vector<std::size_t>& sets, const std::string& resource,
                 const std::string& name) const {
    for (std::size_t i : sets) {
      auto found = pinned_->pod_sets[i].flavors.find(resource);
      if (found != pinned_->pod_sets[i].flavors.end()) return found->second.flavor == name;
    }
    return false;
  }

  void record(const std::vector<std::size_t>& sets, const model::Amounts& wanted,
              const std::map<std::string, FlavorChoice>& chosen, int tried, Usage& added) {
    for (std::size_t i : sets) {
      PodSetChoice& set = out_.pod_sets[i];
      for (const auto& [resource, amount] : wanted) {
        if (!set.requests.contains(resource)) continue;
        out_.tried[{set.name, resource}] = tried;
        auto choice = chosen.find(resource);
        if (choice == chosen.end()) continue;
        set.flavors[resource] = choice->second;
        std::int64_t& sum = added[{choice->second.flavor, resource}];
        sum = plus(sum, set.requests.at(resource));
      }
    }
  }

  // The worst over the resources; `why` when one of them does not fit.
  Outcome try_flavor(const std::string& name, const model::Amounts& wanted,
                     std::map<std::string, FlavorChoice>& choices, std::string& why) const {
    Outcome worst{.mode = FlavorMode::kFit, .level = 0};
    bool first = true;
    why.clear();
    for (const auto& [resource, amount] : wanted) {
      FlavorResource fr{name, resource};
      auto before = assumed_.find(fr);
      std::string reason;
      Outcome outcome =
          try_amount(fr, plus(before == assumed_.end() ? 0 : before->second, amount), reason);
      if (severity(reason) > severity(why)) why = reason;
      choices[resource] = {name, outcome.mode, outcome.level};
      if (first || better(worst, outcome)) worst = outcome;
      first = false;
    }
    return worst;
  }

  Outcome try_amount(const FlavorResource& fr, std::int64_t value, std::string& why) const {
    NodeName queue = queue_node(asker_.queue->name);
    QuotaState::Level level = state_.borrowing_level(queue.name, fr, value);
    if (value > state_.potential(queue, fr)) {
      why = "ExceedsMaxQuota";
      return {FlavorMode::kNoFit, 0};
    }
    if (value <= state_.available(queue, fr)) return {FlavorMode::kFit, level.height};
    const bool could_preempt =
        state_.tree().quota(queue, fr).nominal >= value || level.proper ||
        asker_.queue->borrow_by_preemption ||
        (asker_.config->fair_sharing && asker_.queue->reclaim != model::Reclaim::kNever);
    if (!could_preempt) {
      why = "WaitingForQuota";
      return {FlavorMode::kNoFit, 0};
    }
    return ask_oracle(fr, value, level.height);
  }

  Outcome ask_oracle(const FlavorResource& fr, std::int64_t value, int level) const {
    std::vector<Target> targets = find_targets(state_, asker_, {{fr, value}}, {fr});
    if (targets.empty()) return {FlavorMode::kNoCandidates, level};
    QuotaState without = state_;
    bool own = false;
    for (const Target& target : targets) {
      own = own || state_.holders().at(target.workload).queue == asker_.queue->name;
      without.remove(target.workload);
    }
    return {own ? FlavorMode::kPreempt : FlavorMode::kReclaim,
            without.borrowing_level(asker_.queue->name, fr, value).height};
  }

  const model::QueueInputs& inputs_;
  const QuotaState& state_;
  const Asker& asker_;
  const model::WorkloadSpec& workload_;
  const std::vector<int>& counts_;
  const Tried& last_;
  const Assignment* pinned_;
  Assignment out_;
  Usage assumed_;  // by the pod sets before
};

}  // namespace

Assignment assign(const model::QueueInputs& inputs, const QuotaState& state, const Asker& asker,
                  const model::WorkloadSpec& workload, const std::vector<int>& counts,
                  const Tried& last, const Assignment* pinned) {
  return FlavorScan(inputs, state, asker, workload, counts, last, pinned).run();
}

}  // namespace berth::judging::quota
