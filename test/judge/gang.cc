#include "judge/gang.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "judge/match.h"

namespace berth::judging {

using model::PodSpec;
using model::SubgroupSpec;

namespace {

const SubgroupSpec* find_subgroup(const Workload& workload, const std::string& name) {
  if (workload.gang == nullptr) return nullptr;
  for (const SubgroupSpec& subgroup : workload.gang->subgroups) {
    if (subgroup.name == name) return &subgroup;
  }
  return nullptr;
}

// One demand, one set of node rules.
bool alike(const std::vector<const PodSpec*>& pods) {
  auto part = [](const PodSpec* pod) {
    return std::tie(pod->requests, pod->gpu, pod->gpus_by_container, pod->gpu_models,
                    pod->gpu_min_memory_mib, pod->node_selector, pod->required_nodes,
                    pod->preferred_nodes, pod->tolerations, pod->volumes);
  };
  return std::all_of(pods.begin(), pods.end(),
                     [&](const PodSpec* pod) { return part(pod) == part(pods.front()); });
}

int at(const std::map<std::string, int>& counts, const std::string& key) {
  auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

int Workload::running_total() const {
  int sum = 0;
  for (const auto& [subgroup, count] : running) sum += count;
  return sum;
}

int Workload::subgroup_min(const std::string& subgroup) const {
  const SubgroupSpec* spec = find_subgroup(*this, subgroup);
  return spec == nullptr ? 0 : spec->min_member;
}

int Workload::needed() const {
  if (gang == nullptr) return 1;
  int by_subgroups = 0;
  for (const SubgroupSpec& subgroup : gang->subgroups) {
    by_subgroups += std::max(0, subgroup.min_member - at(running, subgroup.name));
  }
  return std::max({1, gang->min_member - running_total(), by_subgroups});
}

NodeSet every_node(const State& state) { return NodeSet(state.nodes.size(), true); }

Walk::Walk(const Workload& workload, const JudgePolicy& policy, Options options)
    : Walk(workload, policy, options,
           [&policy, options](State& state, const PodSpec& pod, const NodeSet& nodes) {
             return place(state, pod, nodes, policy, options.ignored);
           }) {}

Walk::Walk(const Workload& workload, const JudgePolicy& policy, Options options, Placer placer)
    : workload_(workload), policy_(policy), options_(options), placer_(std::move(placer)) {}

bool Walk::run(State& state) const { return place_unit(gang_unit(), state, every_node(state)); }

int Walk::most_in(const State& state, const NodeSet& nodes) const {
  State trial = state;
  place_preferring(gang_unit(), trial, nodes);
  return placed(trial);
}

// ---- units ----

Walk::Unit Walk::gang_unit() const {
  Unit unit{
      .members = workload_.members, .required = "", .preferred = "", .whole = true, .subgroup = ""};
  if (workload_.gang == nullptr) return unit;
  if (options_.required_topology) unit.required = workload_.gang->required_topology;
  if (!options_.preempting) unit.preferred = workload_.gang->preferred_topology;
  return unit;
}

Walk::Unit Walk::subgroup_unit(const std::string& subgroup,
                               std::vector<const PodSpec*> members) const {
  Unit unit{.members = std::move(members),
            .required = "",
            .preferred = "",
            .whole = false,
            .subgroup = subgroup};
  const SubgroupSpec* spec = find_subgroup(workload_, subgroup);
  if (spec == nullptr) return unit;
  if (options_.required_topology) unit.required = spec->required_topology;
  if (!options_.preempting) unit.preferred = spec->preferred_topology;
  return unit;
}

bool Walk::is_placed(const State& state, const PodSpec& pod) const {
  return std::any_of(state.bound.rbegin(), state.bound.rend(),
                     [&](const Bound& bound) { return bound.pod == &pod && bound.present; });
}

int Walk::placed(const State& state) const { return placed_of(gang_unit(), state); }

int Walk::placed_of(const Unit& unit, const State& state) const {
  return static_cast<int>(
      std::count_if(workload_.members.begin(), workload_.members.end(), [&](const PodSpec* pod) {
        return (unit.whole || pod->subgroup == unit.subgroup) && is_placed(state, *pod);
      }));
}

std::vector<const PodSpec*> Walk::remaining(const Unit& unit, const State& state) const {
  std::vector<const PodSpec*> left;
  for (const PodSpec* pod : unit.members) {
    if (!is_placed(state, *pod)) left.push_back(pod);
  }
  return left;
}

int Walk::still_needed(const Unit& unit, const State& state) const {
  if (unit.whole) return workload_.needed();
  return std::max(1, workload_.subgroup_min(unit.subgroup) - at(workload_.running, unit.subgroup) -
                         placed_of(unit, state));
}

bool Walk::enough(const Unit& unit, const State& state) const {
  if (!unit.whole)
    return placed_of(unit, state) >= 1 &&
           placed_of(unit, state) + at(workload_.running, unit.subgroup) >=
               workload_.subgroup_min(unit.subgroup);
  if (placed_of(unit, state) < 1) return false;
  if (workload_.gang == nullptr) return true;
  if (placed_of(unit, state) + workload_.running_total() < workload_.gang->min_member) return false;
  return std::all_of(workload_.gang->subgroups.begin(), workload_.gang->subgroups.end(),
                     [&](const SubgroupSpec& subgroup) {
                       Unit of{.members = {},
                               .required = "",
                               .preferred = "",
                               .whole = false,
                               .subgroup = subgroup.name};
                       return placed_of(of, state) + at(workload_.running, subgroup.name) >=
                              subgroup.min_member;
                     });
}

// ---- domains ----

std::vector<Domain> Walk::domains(const State& state, const PodSpec& pod, const NodeSet& nodes,
                                  const std::string& key) const {
  std::map<std::string, Domain> found;
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    const std::string* value = domain_of(state, static_cast<int>(i), key);
    if (!nodes[i] || value == nullptr) continue;
    Domain& domain = found[*value];
    domain.value = *value;
    domain.nodes.resize(state.nodes.size());
    domain.nodes[i] = true;
    domain.capacity += copies(state, pod, static_cast<int>(i), policy_, options_.ignored);
  }
  std::vector<Domain> list;
  for (auto& [value, domain] : found) list.push_back(std::move(domain));
  return list;
}

bool Walk::belongs(const Unit& unit, const PodSpec& pod) const {
  if (workload_.gang == nullptr || pod.ns != workload_.gang->ns) return false;
  return pod.gang == workload_.gang->name && (unit.whole || pod.subgroup == unit.subgroup);
}

std::vector<Domain> Walk::in_order(const Unit& unit, const State& state, const NodeSet& nodes,
                                   const std::string& key) const {
  std::vector<const PodSpec*> left = remaining(unit, state);
  if (left.empty()) return {};
  std::set<std::string> inhabited;  // domains of members that run, or were placed before
  for (const Bound& bound : state.bound) {
    if (!bound.present || !belongs(unit, *bound.pod)) continue;
    const std::string* value = domain_of(state, bound.node, key);
    if (value != nullptr) inhabited.insert(*value);
  }
  std::vector<Domain> list = domains(state, *left.front(), nodes, key);
  int all = static_cast<int>(left.size());
  int needed = still_needed(unit, state);
  std::erase_if(list, [&](const Domain& domain) {
    return (!inhabited.empty() && !inhabited.contains(domain.value)) ||
           (domain.capacity < needed && !options_.preempting && alike(left));
  });
  auto order = [&](const Domain& domain) {
    int tier = domain.capacity >= all ? 0 : domain.capacity >= needed ? 1 : 2;
    return std::tuple(tier, tier == 0 ? domain.capacity : -domain.capacity,
                      std::string_view(domain.value));
  };
  std::sort(list.begin(), list.end(),
            [&](const Domain& a, const Domain& b) { return order(a) < order(b); });
  return list;
}

// ---- the walk ----

bool Walk::place_unit(const Unit& unit, State& state, const NodeSet& nodes) const {
  if (unit.required.empty()) return place_preferring(unit, state, nodes);
  for (const Domain& domain : in_order(unit, state, nodes, unit.required)) {
    State trial = state;
    if (!place_preferring(unit, trial, domain.nodes)) continue;
    state = std::move(trial);
    return true;
  }
  return false;
}

bool Walk::place_preferring(const Unit& unit, State& state, const NodeSet& nodes) const {
  if (unit.preferred.empty()) {
    place_all(unit, state, nodes);
    return enough(unit, state);
  }
  for (const Domain& domain : in_order(unit, state, nodes, unit.preferred)) {
    State trial = state;
    place_all(unit, trial, domain.nodes);
    if (!remaining(unit, trial).empty()) continue;
    state = std::move(trial);
    return enough(unit, state);
  }
  place_in_few(unit, state, nodes);
  return enough(unit, state);
}

void Walk::place_in_few(const Unit& unit, State& state, const NodeSet& nodes) const {
  std::set<std::string> used;
  for (;;) {
    std::vector<const PodSpec*> left = remaining(unit, state);
    if (left.empty()) return;
    std::vector<Domain> list = domains(state, *left.front(), nodes, unit.preferred);
    std::erase_if(list, [&](const Domain& domain) {
      return domain.capacity == 0 || used.contains(domain.value);
    });
    if (list.empty()) break;
    int all = static_cast<int>(left.size());
    auto order = [&](const Domain& domain) {
      bool covers = domain.capacity >= all;
      return std::tuple(!covers, covers ? domain.capacity : -domain.capacity);
    };
    const Domain& next =
        *std::min_element(list.begin(), list.end(),
                          [&](const Domain& a, const Domain& b) { return order(a) < order(b); });
    used.insert(next.value);
    place_all(unit, state, next.nodes);
  }
  place_all(unit, state, nodes);
}

void Walk::place_all(const Unit& unit, State& state, const NodeSet& nodes) const {
  std::vector<const PodSpec*> left = remaining(unit, state);
  for (std::size_t i = 0; i < left.size();) {
    std::size_t end = i + 1;
    while (end < left.size() && left[end]->subgroup == left[i]->subgroup) ++end;
    auto from = left.begin() + static_cast<std::ptrdiff_t>(i);
    auto to = left.begin() + static_cast<std::ptrdiff_t>(end);
    Unit inner = subgroup_unit(left[i]->subgroup, {from, to});
    if (unit.whole && !(inner.required.empty() && inner.preferred.empty())) {
      State trial = state;
      if (place_unit(inner, trial, nodes)) state = std::move(trial);
    } else {
      for (const PodSpec* pod : inner.members) placer_(state, *pod, nodes);
    }
    i = end;
  }
}

}  // namespace berth::judging
