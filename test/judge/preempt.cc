#include "judge/preempt.h"

#include <algorithm>
#include <climits>
#include <optional>
#include <tuple>

#include "judge/match.h"

namespace berth::judging {

using model::BudgetSpec;
using model::PodSpec;

namespace {

bool covers(const BudgetSpec& budget, const PodSpec& pod) {
  return !budget.match_nothing && budget.ns == pod.ns && matches(budget.selector, pod.labels);
}

void evict(State& state, const Job& job) {
  for (std::size_t pod : job.pods) release(state, pod);
}

void bring_back(State& state, const Job& job) {
  for (std::size_t pod : job.pods) restore(state, pod);
}

bool gone(const State& state, const Job& job) { return !state.bound[job.pods.front()].present; }

bool runs_on(const State& state, const Job& job, int node) {
  return std::any_of(job.pods.begin(), job.pods.end(), [&](std::size_t pod) {
    return state.bound[pod].present && state.bound[pod].node == node;
  });
}

std::int64_t milli_on(const State& state, const Job& job, int node) {
  std::int64_t sum = 0;
  for (std::size_t pod : job.pods) {
    if (node < 0 || state.bound[pod].node == node) sum += gpu_milli(state.bound[pod]);
  }
  return sum;
}

// The devices of a bound pod that is not in the state are free for it.
bool devices_free(const State& state, const Bound& bound) {
  NodeState node = state.nodes[static_cast<std::size_t>(bound.node)];
  take(node, *bound.pod, bound.taken);
  return std::all_of(bound.taken.begin(), bound.taken.end(), [&](const Taken& part) {
    auto device = static_cast<std::size_t>(part.device);
    return part.profile < 0 ? node.gpu_free[device] >= 0
                            : node.mig_free[device][static_cast<std::size_t>(part.profile)] >= 0;
  });
}

}  // namespace

Preemptor::Preemptor(const Workload& workload, const JudgePolicy& policy,
                     const std::vector<BudgetSpec>& budgets, std::vector<Job> jobs)
    : workload_(workload), policy_(policy), budgets_(budgets), jobs_(std::move(jobs)) {
  std::erase_if(jobs_, [&](const Job& job) {
    bool itself = job.is_gang == workload.is_gang && job.name == workload.name;
    return itself || job.priority >= workload.priority;
  });
  std::sort(jobs_.begin(), jobs_.end(), [](const Job& a, const Job& b) {
    return std::tuple(a.priority, a.name, !a.is_gang) < std::tuple(b.priority, b.name, !b.is_gang);
  });
}

bool Preemptor::run(State& state) const {
  if (jobs_.empty()) return false;
  Walk walk(workload_, policy_, {.ignored = 0, .preempting = true, .required_topology = true},
            [this](State& trial, const PodSpec& pod, const NodeSet& nodes) {
              return place(trial, pod, nodes, policy_) || place_evicting(trial, pod, nodes);
            });
  State after = state;
  if (!walk.run(after)) return false;
  give_back(state, after);
  state = std::move(after);
  return true;
}

bool Preemptor::place_evicting(State& state, const PodSpec& pod, const NodeSet& nodes) const {
  auto cost = [](const Option& option) {
    return std::tuple(option.against_budget, option.highest, option.victims.size(), option.lost,
                      option.milli, option.node);
  };
  std::optional<Option> best;
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    if (!nodes[i]) continue;
    Option option = option_on(state, pod, static_cast<int>(i));
    if (option.node >= 0 && (!best || cost(option) < cost(*best))) best = option;
  }
  if (!best) return false;
  for (const Job* job : best->victims) evict(state, *job);
  NodeSet only(state.nodes.size(), false);
  only[static_cast<std::size_t>(best->node)] = true;
  return place(state, pod, only, policy_);
}

// Leaves the state as it was.
Preemptor::Option Preemptor::option_on(State& state, const PodSpec& pod, int node) const {
  std::vector<const Job*> out;
  for (const Job& job : jobs_) {
    if (!gone(state, job) && runs_on(state, job, node)) out.push_back(&job);
  }
  if (out.empty()) return {};
  order_for_return(state, out, node);
  for (const Job* job : out) evict(state, *job);
  Option option;
  if (View(state, pod, policy_).fits(node)) {
    option.node = node;
    for (const Job* job : out) {
      bring_back(state, *job);
      if (View(state, pod, policy_).fits(node)) continue;
      evict(state, *job);
      option.victims.push_back(job);
    }
  }
  for (const Job* job : out) {
    if (gone(state, *job)) bring_back(state, *job);
  }
  std::vector<const Job*> victims = option.victims;
  std::sort(victims.begin(), victims.end());  // jobs_ is by priority, then name
  std::vector<model::Preemption> list = listed(state, victims);
  option.highest = victims.empty() ? INT_MIN : victims.back()->priority;
  for (const Job* job : victims) {
    option.lost += job->lost;
    option.milli += milli_on(state, *job, -1);
    bool breaks = std::any_of(job->pods.begin(), job->pods.end(), [&](std::size_t index) {
      std::string name = full_name(*state.bound[index].pod);
      return std::any_of(list.begin(), list.end(), [&](const model::Preemption& each) {
        return each.breaks_budget && each.pod == name;
      });
    });
    option.against_budget += breaks ? 1 : 0;
  }
  return option;
}

void Preemptor::order_for_return(const State& state, std::vector<const Job*>& jobs,
                                 int node) const {
  auto key = [&](const Job* job) {
    return std::tuple(!forbidden(state, *job), -job->priority, milli_on(state, *job, node),
                      -job->lost, job->name, !job->is_gang);
  };
  std::sort(jobs.begin(), jobs.end(), [&](const Job* a, const Job* b) { return key(a) < key(b); });
}

// Pods evicted so far, by budget.
std::vector<int> Preemptor::used_budgets(const State& state) const {
  std::vector<int> used(budgets_.size());
  for (const Bound& bound : state.bound) {
    if (bound.present) continue;
    for (std::size_t i = 0; i < budgets_.size(); ++i) used[i] += covers(budgets_[i], *bound.pod);
  }
  return used;
}

bool Preemptor::forbidden(const State& state, const Job& job) const {
  std::vector<int> used = used_budgets(state);
  for (std::size_t i = 0; i < budgets_.size(); ++i) {
    int mine = 0;
    for (std::size_t pod : job.pods) mine += covers(budgets_[i], *state.bound[pod].pod);
    if (mine > 0 && used[i] + mine > budgets_[i].disruptions_allowed) return true;
  }
  return false;
}

std::vector<const Job*> Preemptor::victims(const State& before, const State& after) const {
  std::vector<const Job*> found;
  for (const Job& job : jobs_) {
    if (!gone(before, job) && gone(after, job)) found.push_back(&job);
  }
  return found;
}

std::vector<model::Preemption> Preemptor::listed(const State& before,
                                                 const std::vector<const Job*>& victims) const {
  std::vector<int> used = used_budgets(before);
  std::vector<model::Preemption> list;
  for (const Job* job : victims) {
    for (std::size_t index : job->pods) {
      const PodSpec& pod = *before.bound[index].pod;
      bool breaks = false;
      for (std::size_t i = 0; i < budgets_.size(); ++i) {
        if (covers(budgets_[i], pod)) breaks |= ++used[i] > budgets_[i].disruptions_allowed;
      }
      list.push_back({.pod = full_name(pod),
                      .node = pod.node_name,
                      .by = workload_.name,
                      .breaks_budget = breaks});
    }
  }
  return list;
}

// Evictions that later ones made needless are taken back.
void Preemptor::give_back(const State& before, State& after) const {
  std::vector<const Job*> list = victims(before, after);
  order_for_return(before, list, -1);
  for (const Job* job : list) {
    bring_back(after, *job);
    if (!replays(after, before.bound.size())) evict(after, *job);
  }
}

// Whether the pods bound from `first` on pass again, one after the other, where they are.
bool Preemptor::replays(State state, std::size_t first) const {
  for (std::size_t i = first; i < state.bound.size(); ++i) release(state, i);
  constexpr Constraints kDevices = bit(model::Constraint::kGpus) |
                                   bit(model::Constraint::kGpuHealth) |
                                   bit(model::Constraint::kNumaPolicy);
  for (std::size_t i = first; i < state.bound.size(); ++i) {
    const Bound& bound = state.bound[i];
    if (!devices_free(state, bound)) return false;
    if (!View(state, *bound.pod, policy_, kDevices).fits(bound.node)) return false;
    restore(state, i);
  }
  return true;
}

}  // namespace berth::judging
