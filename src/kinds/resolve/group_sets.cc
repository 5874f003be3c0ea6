#include "kinds/resolve/group_sets.h"

#include <algorithm>

#include "kinds/quota_requests.h"
#include "kinds/resolve/workloads.h"

namespace berth::kinds {

using model::GangSpec;
using model::PodSetSpec;
using model::PodSpec;
using model::TopologyAsk;

namespace {

const model::SubgroupSpec* subgroup_of(const GangSpec& gang, const std::string& name) {
  for (const model::SubgroupSpec& sub : gang.subgroups) {
    if (sub.name == name) return &sub;
  }
  return nullptr;
}

// The group's own topology; a subgroup's beside it is a slice of the size of the pod set.
TopologyAsk ask_of(const GangSpec& gang, const model::SubgroupSpec* sub, int count, bool several) {
  using Mode = TopologyAsk::Mode;
  TopologyAsk out;
  const auto set_mode = [&out](const std::string& required, const std::string& preferred) {
    if (required.empty() && preferred.empty()) return false;
    out.mode = required.empty() ? Mode::kPreferred : Mode::kRequired;
    out.level = required.empty() ? preferred : required;
    return true;
  };
  if (set_mode(gang.required_topology, gang.preferred_topology)) {
    if (several) out.group = gang.name;
    if (sub != nullptr && !sub->required_topology.empty()) {
      out.slices = {{sub->required_topology, count}};
    }
  } else if (sub != nullptr) {
    set_mode(sub->required_topology, sub->preferred_topology);
  }
  return out;
}

// How few pods of each set may start. Together they are the group's own minimum at least: the first
// sets make up for subgroups that state less.
void set_minimums(const GangSpec& gang, std::vector<PodSetSpec>& sets) {
  std::vector<std::int64_t> least;
  std::int64_t lacks = gang.min_member;
  for (const PodSetSpec& set : sets) {
    const model::SubgroupSpec* sub = subgroup_of(gang, set.pod->subgroup);
    const bool alone = std::count_if(sets.begin(), sets.end(), [&](const PodSetSpec& other) {
                         return other.pod->subgroup == set.pod->subgroup;
                       }) == 1;
    const std::int64_t own = sub == nullptr ? 1 : std::max(1, sub->min_member);
    least.push_back(alone ? std::min<std::int64_t>(own, set.count) : set.count);
    lacks -= least.back();
  }
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const std::int64_t more = std::clamp<std::int64_t>(lacks, 0, sets[i].count - least[i]);
    lacks -= more;
    least[i] += more;
    if (least[i] < sets[i].count) sets[i].min_count = static_cast<int>(least[i]);
  }
}

}  // namespace

std::string lacking(const GangSpec& gang, const std::vector<PodSpec*>& pods) {
  const auto text = [](const std::string& what, std::size_t has, int wants) {
    return std::to_string(has) + " of " + std::to_string(wants) + " pods of " + what + " exist";
  };
  if (pods.size() < static_cast<std::size_t>(gang.min_member)) {
    return text("the group", pods.size(), gang.min_member);
  }
  for (const model::SubgroupSpec& sub : gang.subgroups) {
    const auto has = std::count_if(pods.begin(), pods.end(),
                                   [&](const PodSpec* pod) { return pod->subgroup == sub.name; });
    if (has < sub.min_member) {
      return text("subgroup " + quoted(sub.name), static_cast<std::size_t>(has), sub.min_member);
    }
  }
  return {};
}

std::vector<PodSetSpec> sets_of(const GangSpec& gang, const std::vector<PodSpec*>& pods,
                                const model::QueueConfig& config) {
  std::vector<PodSetSpec> sets;
  for (const PodSpec* pod : pods) {
    const std::string base = pod->subgroup.empty() ? "main" : pod->subgroup;
    PodSetSpec* set = nullptr;
    int of_base = 0;
    for (PodSetSpec& known : sets) {
      if (known.pod->subgroup != pod->subgroup) continue;
      ++of_base;
      if (same_role(*known.pod, *pod)) set = &known;
    }
    if (set == nullptr) {
      if (sets.size() == kMostPodSets) return {};
      set = &sets.emplace_back();
      set->name = of_base == 0 ? base : base + '-' + std::to_string(of_base);
      set->count = 0;
      set->pod = std::make_shared<const PodSpec>(as_template(*pod));
      set->requests = quota_requests(*pod, config);
    }
    ++set->count;
    set->pods.push_back(qualified(pod->ns, pod->name));
  }
  set_minimums(gang, sets);
  for (PodSetSpec& set : sets) {
    const model::SubgroupSpec* sub = subgroup_of(gang, set.pod->subgroup);
    set.topology = ask_of(gang, sub, set.count, sets.size() > 1);
    PodSpec bare = *set.pod;
    bare.gang.clear();
    bare.subgroup.clear();
    set.pod = std::make_shared<const PodSpec>(std::move(bare));
  }
  return sets;
}

void say_gated(const PodSpec& pod, model::WorkloadSpec& spec) {
  spec.incomplete = "pod " + quoted(pod.name) + " has scheduling gates";
  spec.incomplete_reason = model::Reason::kGated;
}

}  // namespace berth::kinds
