// Making room: victims of lower priority, whole jobs only (docs/placement.md, "Preemption").
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "model/fit.h"
#include "schedule/domains.h"
#include "schedule/placement.h"

namespace berth::schedule {

using model::ClusterState;
using model::NodeSet;
using model::PodId;

namespace {

struct Job {
  std::string name;
  std::vector<PodId> pods;
  int priority = INT32_MIN;
  std::int64_t lost_work = 0;  // GPU milli x seconds
  bool breaks_budget = false;
};

bool budget_forbids(const ClusterState& state, const Job& job) {
  for (const auto& budget : state.budgets()) {
    model::PodSet set{.namespaces = {budget.ns},
                      .selector = budget.selector,
                      .match_nothing = budget.match_nothing};
    int hit = 0;
    for (PodId id : job.pods) {
      const model::Shape& shape = *state.pod(id).shape;
      hit += model::matches(set, shape.ns, shape.labels) ? 1 : 0;
    }
    if (hit > budget.disruptions_allowed) return true;
  }
  return false;
}

// All running jobs below the priority, and which of them are on each node.
class Candidates {
 public:
  Candidates(const ClusterState& state, int below, std::int64_t now_ns) {
    std::map<std::pair<std::int32_t, PodId>, Job> jobs;  // by gang, or by pod
    for (PodId id = 0; id < state.pod_ids(); ++id) {
      const model::PodEntry& pod = state.pod(id);
      if (!pod.info || pod.slot < 0) continue;
      auto gang = pod.info->gang;
      Job& job = jobs[gang >= 0 ? std::pair{gang, PodId{0}} : std::pair{-1, id}];
      job.pods.push_back(id);
      job.priority = std::max(job.priority, pod.info->priority);
      job.lost_work += pod.gpus.milli() *
                       (std::max<std::int64_t>(now_ns - pod.info->started_ns, 0) / 1'000'000'000);
      job.name = gang >= 0 ? state.gang(gang).ns + "/" + state.gang(gang).name : pod.info->name;
    }
    for (auto& [key, job] : jobs) {
      if (job.priority >= below) continue;
      job.breaks_budget = budget_forbids(state, job);
      for (PodId id : job.pods) {
        auto& on = on_node_[static_cast<std::uint32_t>(state.pod(id).slot)];
        if (on.empty() || on.back() != jobs_.size()) on.push_back(jobs_.size());
      }
      jobs_.push_back(std::move(job));
    }
  }

  bool empty() const { return jobs_.empty(); }
  const Job& job(std::size_t i) const { return jobs_[i]; }
  const std::map<std::uint32_t, std::vector<std::size_t>>& on_node() const { return on_node_; }

 private:
  std::vector<Job> jobs_;
  std::map<std::uint32_t, std::vector<std::size_t>> on_node_;
};

int milli_on(const ClusterState& state, const Job& job, std::uint32_t slot) {
  int sum = 0;
  for (PodId id : job.pods) {
    if (state.pod(id).slot == static_cast<std::int32_t>(slot)) sum += state.pod(id).gpus.milli();
  }
  return sum;
}

class Preemptor {
 public:
  Preemptor(Placer& placer, ClusterState& state, const Candidates& candidates, Reservation& out)
      : placer_(placer), state_(state), candidates_(candidates), out_(out) {}

  // Room for the pod at the least cost; false when no node has any.
  bool serve(PodId id, const NodeSet* within) {
    if (auto target = placer_.find(state_, state_.pod(id).shape, within)) {
      out_.bind(id, *target);
      return true;
    }
    const auto& shape = state_.pod(id).shape;
    std::optional<Cost> best;
    std::vector<std::size_t> victims;
    const NodeSet allowed = placer_.rules(state_, *shape).allowed;
    for (const auto& [slot, jobs] : candidates_.on_node()) {
      if (!allowed.test(slot) || (within != nullptr && !within->test(slot))) continue;
      if (!could_fit(slot, jobs, *shape->demand)) continue;
      auto set = victims_on(slot, jobs, shape);
      if (!set) continue;
      Cost cost = cost_of(*set, slot);
      if (!best || cost < *best) {
        best = cost;
        victims = std::move(*set);
      }
    }
    if (!best) return false;
    auto slot = std::get<4>(*best);
    for (auto job : victims) evict(job);
    NodeSet only(state_.nodes());
    only.set(slot);
    auto target = placer_.find(state_, shape, &only);
    if (!target) return false;
    out_.bind(id, *target);
    return true;
  }

  // Victims whose pods still fit where they were stay after all.
  void spare_victims() {
    std::vector<std::size_t> order(evicted_.begin(), evicted_.end());
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::tuple(!candidates_.job(a).breaks_budget, -candidates_.job(a).priority,
                        -candidates_.job(a).lost_work, candidates_.job(a).name) <
             std::tuple(!candidates_.job(b).breaks_budget, -candidates_.job(b).priority,
                        -candidates_.job(b).lost_work, candidates_.job(b).name);
    });
    for (auto job : order) {
      auto mark = given_.size();
      bool fits = true;
      for (PodId id : candidates_.job(job).pods) fits = fits && put_back(id);
      if (fits) {
        evicted_.erase(job);
      } else {
        while (given_.size() > mark) {
          out_.evict(given_.back());
          given_.pop_back();
        }
      }
    }
  }

 private:
  using Cost = std::tuple<int, std::size_t, int, std::int64_t, std::uint32_t>;

  Cost cost_of(const std::vector<std::size_t>& set, std::uint32_t slot) const {
    int budget = 0, priority = INT32_MIN;
    std::int64_t lost = 0;
    for (auto i : set) {
      const Job& job = candidates_.job(i);
      budget += job.breaks_budget ? 1 : 0;
      priority = std::max(priority, job.priority);
      lost += job.lost_work;
    }
    return {budget, set.size(), priority, lost, slot};
  }

  // By amounts alone, with every lower job gone: a quick "no".
  bool could_fit(std::uint32_t slot, const std::vector<std::size_t>& jobs,
                 const model::Demand& demand) const {
    model::NodeState node = state_.node(slot);
    for (auto i : jobs) {
      for (PodId id : candidates_.job(i).pods) {
        const model::PodEntry& pod = state_.pod(id);
        if (pod.slot == static_cast<std::int32_t>(slot)) {
          model::give(state_.info(slot), node, *pod.shape->demand, pod.gpus);
        }
      }
    }
    return model::fits(state_.info(slot), node, demand);
  }

  // The jobs that must go so that the shape fits the node; nothing when that is not enough.
  std::optional<std::vector<std::size_t>> victims_on(std::uint32_t slot, std::vector<std::size_t> jobs,
                                                     const model::ShapeRef& shape) {
    std::erase_if(jobs, [&](std::size_t i) { return evicted_.contains(i); });
    auto key = [&](std::size_t i) {
      const Job& job = candidates_.job(i);
      return std::tuple(!job.breaks_budget, -job.priority, milli_on(state_, job, slot), -job.lost_work,
                        std::string_view(job.name));
    };
    std::sort(jobs.begin(), jobs.end(), [&](auto a, auto b) { return key(a) < key(b); });
    Reservation trial(state_);
    for (auto i : jobs) {
      for (PodId id : candidates_.job(i).pods) {
        if (state_.pod(id).slot >= 0) trial.evict(id);
      }
    }
    if (!placer_.allows(state_, shape, slot)) return std::nullopt;
    std::vector<std::size_t> needed;
    for (auto i : jobs) {
      auto mark = returned(trial, candidates_.job(i));
      if (placer_.allows(state_, shape, slot)) continue;
      for (PodId id : mark) trial.evict(id);
      needed.push_back(i);
    }
    return needed;
  }

  // Gives all pods of the job back in the trial; returns them.
  static std::vector<PodId> returned(Reservation& trial, const Job& job) {
    std::vector<PodId> back;
    for (std::size_t s = 0; s < trial.steps().size();) {
      PodId id = trial.steps()[s].id;
      if (std::find(job.pods.begin(), job.pods.end(), id) != job.pods.end()) {
        trial.give_back(s);
        back.push_back(id);
      } else {
        ++s;
      }
    }
    return back;
  }

  void evict(std::size_t job) {
    evicted_.insert(job);
    for (PodId id : candidates_.job(job).pods) {
      if (state_.pod(id).slot >= 0) out_.evict(id, candidates_.job(job).breaks_budget);
    }
  }

  bool put_back(PodId id) {
    for (std::size_t s = 0; s < out_.steps().size(); ++s) {
      const auto& step = out_.steps()[s];
      if (step.id != id || !step.evicted) continue;
      const model::NodeInfo& info = state_.info(step.slot);
      model::NodeState node = state_.node(step.slot);
      const model::Demand& demand = *state_.pod(id).shape->demand;
      model::take(info, node, demand, step.gpus);
      bool fits = node.pods >= 0 && (node.cpu >= 0 || demand.cpu == 0) &&
                  (node.memory >= 0 || demand.memory == 0) &&
                  (node.ephemeral >= 0 || demand.ephemeral == 0);
      for (auto amount : node.extended) fits = fits && amount >= 0;
      for (std::size_t g = 0; g < model::kMaxGpusPerNode; ++g) {
        fits = fits && (step.gpus.take[g] == 0 || node.gpu[g] >= 0);
      }
      if (!fits) return false;
      out_.give_back(s);
      given_.push_back(id);
      return true;
    }
    return true;
  }

  Placer& placer_;
  ClusterState& state_;
  const Candidates& candidates_;
  Reservation& out_;
  std::set<std::size_t> evicted_;
  std::vector<PodId> given_;
};

// The members that must be placed: each subgroup's minimum, then the first ones up to the gang's.
std::vector<PodId> must_place(const ClusterState& state, const Workload& workload) {
  if (workload.gang < 0) return workload.pending;
  std::set<PodId> chosen;
  for (const auto& sub : state.gang(workload.gang).subgroups) {
    int need = sub.min_member;
    for (PodId id : workload.running) need -= state.pod(id).info->subgroup == sub.name ? 1 : 0;
    for (PodId id : workload.pending) {
      if (need > 0 && state.pod(id).info->subgroup == sub.name) {
        chosen.insert(id);
        --need;
      }
    }
  }
  for (PodId id : workload.pending) {
    if (static_cast<int>(chosen.size()) < workload.min_pending) chosen.insert(id);
  }
  std::vector<PodId> out;
  for (PodId id : workload.pending) {
    if (chosen.contains(id)) out.push_back(id);
  }
  return out;
}

bool try_in(Placer& placer, ClusterState& state, const Workload& workload, const Candidates& candidates,
            const NodeSet* within, Reservation& out) {
  Preemptor preemptor(placer, state, candidates, out);
  auto members = must_place(state, workload);
  for (PodId id : members) {
    if (!preemptor.serve(id, within)) return false;
  }
  for (PodId id : workload.pending) {
    if (std::find(members.begin(), members.end(), id) != members.end()) continue;
    if (auto target = placer.find(state, state.pod(id).shape, within)) out.bind(id, *target);
  }
  preemptor.spare_victims();
  return true;
}

bool own_topologies(const model::GangSpec& gang) {
  return std::any_of(gang.subgroups.begin(), gang.subgroups.end(),
                     [](const auto& sub) { return !sub.required_topology.empty(); });
}

}  // namespace

Placed place_preempting(Placer& placer, ClusterState& state, const Workload& workload,
                        std::int64_t now_ns) {
  if (workload.gang >= 0 && own_topologies(state.gang(workload.gang))) return {};
  Candidates candidates(state, workload.priority, now_ns);
  if (candidates.empty()) return {};
  Reservation out(state);
  bool ok = false;
  int key = workload.gang < 0 || state.gang(workload.gang).required_topology.empty()
                ? -1
                : state.inventory().topology_key(state.gang(workload.gang).required_topology);
  if (key < 0) {
    ok = try_in(placer, state, workload, candidates, nullptr, out);
  } else {
    int all = static_cast<int>(workload.pending.size());
    auto rooms = domain_rooms(placer, state, state.pod(workload.pending.front()).shape, key, nullptr, all);
    if (auto pinned = running_domain(state, workload.running, key)) {
      std::erase_if(rooms, [&](const DomainRoom& room) { return room.domain != *pinned; });
    }
    order_rooms(rooms, all, workload.min_pending);
    for (const auto& room : rooms) {
      NodeSet nodes = domain_nodes(state, key, room.domain, nullptr);
      if ((ok = try_in(placer, state, workload, candidates, &nodes, out))) break;
      out.rollback(0);
    }
  }
  if (!ok) return {};
  Placed placed;
  for (const auto& step : out.steps()) (step.evicted ? placed.victims : placed.pods).push_back(step);
  out.keep();
  return placed;
}

}  // namespace berth::schedule
