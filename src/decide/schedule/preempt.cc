// Making room: victims of lower priority, whole jobs only (docs/placement.md, "Preemption").
#include <algorithm>
#include <climits>
#include <map>
#include <tuple>

#include "decide/schedule/jobs.h"
#include "decide/schedule/walk.h"
#include "model/fit.h"

namespace berth::schedule {

using model::ClusterState;
using model::NodeSet;
using model::PodId;

namespace {

int milli_on(const ClusterState& state, const Job& job, std::int32_t slot) {
  int sum = 0;
  for (PodId id : job.pods) {
    if (state.pod(id).slot == slot) sum += state.pod(id).gpus.milli();
  }
  return sum;
}

class Preemptor {
 public:
  Preemptor(Placer& placer, ClusterState& state, const Workload& workload,
            const BudgetCount& budgets, std::int64_t now_ns, Reservation& out)
      : placer_(placer),
        state_(state),
        budgets_(budgets),
        out_(out),
        jobs_(jobs_below(state, workload.priority, workload.gang, now_ns)) {
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      milli_.push_back(0);
      for (PodId id : jobs_[j].pods) {
        milli_[j] += state.pod(id).gpus.milli();
        auto& on = on_node_[static_cast<std::uint32_t>(state.pod(id).slot)];
        if (on.empty() || on.back() != j) on.push_back(j);
      }
    }
  }

  bool any() const { return !jobs_.empty(); }

  // Room for the pod at the least cost; false when no node has any.
  bool serve(PodId id, const NodeSet* within) {
    const auto shape = state_.pod(id).shape;
    auto target = placer_.find(state_, shape, within);
    if (!target) {
      auto best = cheapest(shape, within);
      if (!best) return false;
      for (auto job : best->victims) evict(jobs_[job]);
      NodeSet only(state_.nodes());
      only.set(best->slot);
      target = placer_.find(state_, shape, &only);
      if (!target) return false;
    }
    out_.bind(id, *target);
    return true;
  }

  // Evictions that later ones made needless are taken back.
  void spare_victims() {
    std::vector<std::size_t> victims;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (gone(jobs_[j])) victims.push_back(j);
    }
    order_for_return(victims, budgets_, [&](std::size_t j) { return milli_[j]; });
    for (auto j : victims) {
      bring_back(jobs_[j], out_);
      if (!members_stand()) evict(jobs_[j]);
    }
  }

  // Victims in the order they are listed, with what budgets say of each.
  std::vector<Reservation::Step> victims(BudgetCount& budgets) const {
    std::vector<Reservation::Step> out;
    for (const auto& job : jobs_) {
      if (!gone(job)) continue;
      for (PodId id : job.pods) {
        auto step = *std::find_if(out_.steps().begin(), out_.steps().end(),
                                  [&](const auto& s) { return s.id == id && s.evicted; });
        step.breaks_budget = budgets.evict(*state_.pod(id).shape);
        out.push_back(step);
      }
    }
    return out;
  }

 private:
  struct Option {
    std::uint32_t slot = 0;
    std::vector<std::size_t> victims;
  };

  bool gone(const Job& job) const { return state_.pod(job.pods.front()).slot < 0; }

  void evict(const Job& job) {
    for (PodId id : job.pods) out_.evict(id);
  }

  static void bring_back(const Job& job, Reservation& from) {
    for (PodId id : job.pods) {
      for (std::size_t s = 0; s < from.steps().size(); ++s) {
        if (from.steps()[s].id == id && from.steps()[s].evicted) {
          from.give_back(s);
          break;
        }
      }
    }
  }

  // Pods evicted so far count against the budgets too.
  BudgetCount budgets_now() const {
    BudgetCount count = budgets_;
    for (const auto& step : out_.steps()) {
      if (step.evicted) count.evict(*state_.pod(step.id).shape);
    }
    return count;
  }

  template <class Milli>
  void order_for_return(std::vector<std::size_t>& jobs, const BudgetCount& budgets,
                        Milli&& milli) const {
    std::map<std::size_t, std::tuple<bool, int, int, Work, std::string_view, bool>> keys;
    for (auto j : jobs) {
      keys[j] = {!budgets.forbids(state_, jobs_[j]),
                 -jobs_[j].priority,
                 milli(j),
                 -jobs_[j].lost,
                 jobs_[j].name,
                 jobs_[j].gang < 0};
    }
    std::sort(jobs.begin(), jobs.end(), [&](auto a, auto b) { return keys[a] < keys[b]; });
  }

  std::optional<Option> cheapest(model::ShapeRef shape, const NodeSet* within) {
    using Cost = std::tuple<int, int, std::size_t, Work, std::int64_t, std::uint32_t>;
    std::optional<std::pair<Cost, Option>> best;
    const NodeSet allowed = placer_.rules(state_, *shape).allowed;
    const BudgetCount budgets = budgets_now();
    for (const auto& [slot, jobs] : on_node_) {
      if (!allowed.test(slot) || (within != nullptr && !within->test(slot))) continue;
      if (!could_fit(slot, jobs, *shape->demand)) continue;
      auto victims = victims_on(slot, jobs, budgets, shape);
      if (!victims) continue;
      std::sort(victims->begin(), victims->end());
      BudgetCount count = budgets;
      int against = 0;
      Work lost = 0;
      std::int64_t milli = 0;
      for (auto j : *victims) {
        bool breaks = false;
        for (PodId id : jobs_[j].pods) breaks |= count.evict(*state_.pod(id).shape);
        against += breaks ? 1 : 0;
        lost += jobs_[j].lost;
        milli += milli_[j];
      }
      // Nobody, or the highest of them: jobs are by priority.
      const int highest = victims->empty() ? INT_MIN : jobs_[victims->back()].priority;
      Cost cost{against, highest, victims->size(), lost, milli, slot};
      if (!best || cost < best->first) best = {cost, Option{slot, std::move(*victims)}};
    }
    if (!best) return std::nullopt;
    return std::move(best->second);
  }

  // By amounts alone, with every lower job gone: a quick "no".
  bool could_fit(std::uint32_t slot, const std::vector<std::size_t>& jobs,
                 const model::Demand& demand) const {
    model::NodeState node = state_.node(slot);
    for (auto j : jobs) {
      for (PodId id : jobs_[j].pods) {
        const model::PodEntry& pod = state_.pod(id);
        if (pod.slot == static_cast<std::int32_t>(slot)) {
          model::give(state_.info(slot), node, *pod.shape->demand, pod.gpus);
        }
      }
    }
    return model::fits(state_.info(slot), node, demand);
  }

  // The jobs that must go so that the shape fits the node; nothing when all going is not enough.
  std::optional<std::vector<std::size_t>> victims_on(std::uint32_t slot,
                                                     std::vector<std::size_t> jobs,
                                                     const BudgetCount& budgets,
                                                     model::ShapeRef shape) {
    std::erase_if(jobs, [&](std::size_t j) { return gone(jobs_[j]); });
    if (jobs.empty()) return std::nullopt;
    order_for_return(jobs, budgets, [&](std::size_t j) {
      return milli_on(state_, jobs_[j], static_cast<std::int32_t>(slot));
    });
    Reservation trial(state_);
    for (auto j : jobs) {
      for (PodId id : jobs_[j].pods) trial.evict(id);
    }
    if (placer_.blockers_on(state_, shape, slot) != 0) return std::nullopt;
    std::vector<std::size_t> needed;
    for (auto j : jobs) {
      bring_back(jobs_[j], trial);
      if (placer_.blockers_on(state_, shape, slot) == 0) continue;
      for (PodId id : jobs_[j].pods) trial.evict(id);
      needed.push_back(j);
    }
    return needed;
  }

  // The members pass again, one after the other, on their nodes and devices.
  bool members_stand() {
    constexpr Blockers kDevices = bit(model::Constraint::kGpus) |
                                  bit(model::Constraint::kGpuHealth) |
                                  bit(model::Constraint::kNumaPolicy);
    auto members = out_.placed();
    for (const auto& m : members) state_.unbind(m.id);
    bool stand = true;
    for (const auto& m : members) {
      const auto& shape = state_.pod(m.id).shape;
      model::NodeState node = state_.node(m.slot);
      model::take(state_.info(m.slot), node, *shape->demand, m.gpus);
      for (std::size_t g = 0; g < model::kMaxGpusPerNode; ++g) {
        stand = stand && (m.gpus.take[g] == 0 || node.gpu[g] >= 0);
      }
      if (shape->demand->kind == model::GpuDemandSpec::Kind::kMig) {
        auto free = state_.mig_free(m.slot, *shape->demand);
        for (std::size_t g = 0; g < model::kMaxGpusPerNode; ++g) {
          stand = stand && m.gpus.take[g] <= free[g];
        }
      }
      stand = stand && (placer_.blockers_on(state_, shape, m.slot) & ~kDevices) == 0;
      state_.bind(m.id, m.slot, m.gpus);
    }
    return stand;
  }

  Placer& placer_;
  ClusterState& state_;
  const BudgetCount& budgets_;
  Reservation& out_;
  std::vector<Job> jobs_;
  std::vector<int> milli_;  // by job, on all nodes
  std::map<std::uint32_t, std::vector<std::size_t>> on_node_;
};

}  // namespace

Placed place_preempting(Placer& placer, ClusterState& state, const Workload& workload,
                        BudgetCount& budgets, std::int64_t now_ns) {
  Reservation out(state);
  Preemptor preemptor(placer, state, workload, budgets, now_ns, out);
  if (!preemptor.any()) return {};
  Walk walk(placer, state, workload, out, {.preempting = true},
            [&](PodId id, const NodeSet* nodes) { return preemptor.serve(id, nodes); });
  if (!walk.run()) return {};
  preemptor.spare_victims();
  Placed placed{.pods = out.placed(), .victims = preemptor.victims(budgets)};
  out.keep();
  return placed;
}

}  // namespace berth::schedule
