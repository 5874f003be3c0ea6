#include "decide/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "decide/schedule/no_memo.h"
#include "decide/schedule/placement.h"

namespace berth::decide {

using model::ClusterState;
using model::Decision;
using model::Outcome;
using model::PodId;
using model::Reason;
using model::Verdict;
using schedule::Workload;

namespace {

Workload gang_workload(const ClusterState& state, std::int32_t index) {
  const model::GangSpec& gang = state.gang(index);
  Workload out{.name = gang.ns + "/" + gang.name, .gang = index, .created_ns = gang.created_ns};
  std::int64_t oldest = INT64_MAX;
  state.for_each_in_gang(index, [&](PodId id) {
    const model::PodEntry& pod = state.pod(id);
    bool pending = pod.slot == model::kPending;
    if (pending && pod.info->terminating) return;
    oldest = std::min(oldest, pod.info->created_ns);
    if (!pending) {
      out.running.push_back(id);
    } else if (pod.info->gated) {
      ++out.gated;
    } else {
      out.pending.push_back(id);
      out.preempts = out.preempts && pod.info->preempts;
    }
  });
  out.priority = schedule::gang_priority(state, index);
  if (out.created_ns == 0) out.created_ns = oldest;
  schedule::sort_members(state, out.pending);
  std::sort(out.running.begin(), out.running.end());
  std::int64_t by_subgroups = 0;
  std::map<std::string_view, int> running;
  for (const PodId id : out.running) ++running[state.pod(id).info->subgroup];
  for (const auto& sub : gang.subgroups) {
    by_subgroups += std::max(0, sub.min_member - running[sub.name]);
  }
  // Members beyond the minimum start one by one once the gang runs.
  out.min_pending = std::max({1, gang.min_member - static_cast<int>(out.running.size()),
                              static_cast<int>(std::min<std::int64_t>(by_subgroups, INT32_MAX))});
  return out;
}

std::vector<Workload> pending_workloads(const ClusterState& state) {
  std::vector<Workload> out;
  std::vector<bool> seen(state.gangs());
  for (PodId id = 0; id < state.pod_ids(); ++id) {
    const model::PodEntry& pod = state.pod(id);
    if (!pod.info || pod.slot != model::kPending || pod.info->terminating) continue;
    if (pod.info->queued) continue;
    auto gang = pod.info->gang;
    if (gang < 0) {
      Workload one{.name = pod.info->name,
                   .priority = pod.info->priority,
                   .preempts = pod.info->preempts,
                   .created_ns = pod.info->created_ns};
      if (pod.info->gated) {
        one.gated = 1;
      } else {
        one.pending = {id};
      }
      out.push_back(std::move(one));
    } else if (!seen[static_cast<std::size_t>(gang)]) {
      seen[static_cast<std::size_t>(gang)] = true;
      out.push_back(gang_workload(state, gang));
    }
  }
  std::sort(out.begin(), out.end(), [](const Workload& a, const Workload& b) {
    return std::tuple(-std::int64_t{a.priority}, a.created_ns, std::string_view(a.name),
                      a.gang < 0) < std::tuple(-std::int64_t{b.priority}, b.created_ns,
                                               std::string_view(b.name), b.gang < 0);
  });
  return out;
}

std::string members(int count) { return fmt::format("{} member{}", count, count == 1 ? "" : "s"); }

// Enough members for every minimum, gated ones counted or not; else what is missing.
std::string incomplete(const ClusterState& state, const Workload& w, bool with_gated) {
  if (w.gang < 0) return "";
  const model::GangSpec& gang = state.gang(w.gang);
  std::map<std::string_view, int> have;
  int all = 0;
  state.for_each_in_gang(w.gang, [&](PodId id) {
    const model::PodEntry& pod = state.pod(id);
    if (pod.slot == model::kPending && (pod.info->terminating || (pod.info->gated && !with_gated)))
      return;
    ++all;
    ++have[pod.info->subgroup];
  });
  if (all < gang.min_member) {
    return fmt::format("{} exist{}, {} must start together", members(all), all == 1 ? "s" : "",
                       gang.min_member);
  }
  for (const auto& sub : gang.subgroups) {
    if (have[sub.name] < sub.min_member) {
      int found = have[sub.name];
      return fmt::format("{} of {} exist{}, {} must start together", members(found), sub.name,
                         found == 1 ? "s" : "", sub.min_member);
    }
  }
  return "";
}

// What keeps a workload from being looked at in the first place; kNone when nothing does.
std::pair<Reason, std::string> held_back(const ClusterState& state, const Workload& w) {
  if (w.pending.empty()) return {Reason::kGated, "it has scheduling gates"};
  std::string missing = incomplete(state, w, false);
  if (!missing.empty() && w.gated > 0 && incomplete(state, w, true).empty()) {
    return {Reason::kGated, fmt::format("{} of it {} scheduling gates", members(w.gated),
                                        w.gated == 1 ? "has" : "have")};
  }
  for (PodId id : w.pending) {
    const auto& info = *state.pod(id).info;
    if (!info.volume_missing.empty()) {
      return {Reason::kVolumeMissing,
              fmt::format("{} needs the claim {}, which does not exist or is not bound", info.name,
                          info.volume_missing)};
    }
  }
  for (PodId id : w.pending) {
    const auto& info = *state.pod(id).info;
    if (info.unread_claims) {
      return {
          Reason::kResourceClaimNotRead,
          fmt::format("{} asks for devices by spec.resourceClaims, which are not read", info.name)};
    }
  }
  for (PodId id : w.pending) {
    if (std::string excess = state.rule_excess(id); !excess.empty()) {
      return {Reason::kTooManyRules, std::move(excess)};
    }
  }
  if (!missing.empty()) return {Reason::kGangIncomplete, std::move(missing)};
  for (PodId id : w.pending) {
    const auto& info = *state.pod(id).info;
    if (info.needs_queue) {
      return {Reason::kQueueRequired,
              fmt::format("namespace {} requires a queue, and {} waits in none: name a queue that "
                          "exists with the label kueue.x-k8s.io/queue-name",
                          info.name.substr(0, info.name.find('/')), info.name)};
    }
  }
  if (state.nodes() == 0) return {Reason::kNoNodes, "the cluster has no nodes"};
  return {Reason::kNone, ""};
}

class Cycle {
 public:
  Cycle(const model::ClusterSnapshot& snapshot, std::int64_t now_ns, schedule::Placer& placer,
        Options options)
      : state_(*snapshot),
        budgets_(state_),
        now_ns_(now_ns),
        placer_(placer),
        nos_(placer.nos()),
        options_(options) {
    nos_.begin(snapshot, placer.epoch(), (options.certificates ? 1 : 0) + (options.live ? 2 : 0));
    lowest_ = placer.lowest_running(state_);
    for (PodId id = 0; options.live && id < state_.pod_ids(); ++id) {
      const model::PodEntry& pod = state_.pod(id);
      if (pod.info && pod.slot >= 0 && pod.info->terminating) terminating_.push_back(id);
    }
  }

  Decision run(const std::vector<Workload>& waiting) {
    if (options_.turns == nullptr) {
      for (const Workload& w : waiting) {
        if (!is_evicted(w)) decide_one(w, true);
      }
      return std::move(decision_);
    }
    std::vector<Turns::Item> items;
    items.reserve(waiting.size());
    for (const Workload& w : waiting) items.push_back(item_of(w));
    const bool cut = options_.turns->begin(items);
    std::vector<std::size_t> later;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (!is_evicted(waiting[i]) && !take_turn(waiting[i], items[i], cut, false)) {
        later.push_back(i);
      }
    }
    for (const std::size_t i : later) {
      if (is_evicted(waiting[i]) || take_turn(waiting[i], items[i], cut, true)) continue;
      postpone(waiting[i]);
      options_.turns->postponed(items[i]);
    }
    if (cut) options_.turns->end(decision_);
    return std::move(decision_);
  }

 private:
  int priority_of(PodId id) const {
    const auto& info = *state_.pod(id).info;
    return info.gang >= 0 ? schedule::gang_priority(state_, info.gang) : info.priority;
  }

  bool is_told(const Workload& w) const {
    if (options_.verdicts_only) return false;
    return options_.told == nullptr || options_.told->contains(w.name);
  }

  bool is_evicted(const Workload& w) const { return evicted_.contains({w.gang >= 0, w.name}); }

  Turns::Item item_of(const Workload& w) {
    Turns::Item out{.ns = std::string_view(w.name).substr(0, w.name.find('/')),
                    .key = {-std::int64_t{w.priority}, w.created_ns, w.name, w.gang < 0}};
    if (!terminating_.empty() || nos_.find(state_, w) == nullptr) out.work = work_of(w);
    return out;
  }

  // In the measure of Turns: a pod by itself, and each rule about other pods.
  std::int64_t work_of(const Workload& w) const {
    const std::int64_t per_rule = 2 + static_cast<std::int64_t>(state_.nodes() / 256);
    std::int64_t work = 4;
    for (const PodId id : w.pending) {
      const model::PodEntry& pod = state_.pod(id);
      const auto bars = static_cast<std::int64_t>(state_.bars(*pod.shape));
      work += 4 + (pod.info->rules.count.terms + bars) * per_rule;
    }
    return work;
  }

  // False: it costs work, and its turn is another one.
  bool take_turn(const Workload& w, const Turns::Item& item, bool cut, bool again) {
    searched_ = false;
    worked_ = false;
    if (!decide_one(w, !cut || options_.turns->may(item, again))) return false;
    constexpr std::int64_t kSearch = 200;  // for others that could make room
    if (cut && worked_) options_.turns->paid(item, work_of(w) + (searched_ ? kSearch : 0));
    return true;
  }

  void postpone(const Workload& w) {
    ++decision_.postponed;
    Outcome as_before = options_.turns->answer(w.name, w.gang >= 0);
    as_before.pods = static_cast<int>(w.pending.size()) + w.gated;
    decision_.outcomes.push_back(std::move(as_before));
  }

  // False: it costs work, and its turn is another one.
  bool decide_one(const Workload& w, bool turn) {
    auto [reason, message] = held_back(state_, w);
    if (reason != Reason::kNone) {
      decision_.outcomes.push_back({.workload = w.name,
                                    .gang = w.gang >= 0,
                                    .pods = static_cast<int>(w.pending.size()) + w.gated,
                                    .reason = reason,
                                    .message = std::move(message)});
      return true;
    }
    const Outcome* same = terminating_.empty() ? nos_.find(state_, w) : nullptr;
    if (same != nullptr && (same->reason != Reason::kNone || !is_told(w))) {
      decision_.outcomes.push_back(*same);
      decision_.outcomes.back().workload = w.name;
      return true;
    }
    if (turn) place_or_refuse(w);
    return turn;
  }

  void place_or_refuse(const Workload& w) {
    worked_ = true;
    auto placed = schedule::place(placer_, state_, w);
    if (!placed.pods.empty()) return record(w, placed);
    if (place_when_gone(w)) return;
    const bool preempts = w.preempts && placer_.policy().preemption && lowest_ < w.priority;
    if (!preempts && !is_told(w)) {
      Outcome untold{.workload = w.name,
                     .gang = w.gang >= 0,
                     .pods = static_cast<int>(w.pending.size()) + w.gated};
      if (terminating_.empty()) nos_.keep(state_, w, untold);
      decision_.outcomes.push_back(std::move(untold));
      return;
    }
    Outcome no = explain_no(placer_, state_, w, options_.certificates);
    if (no.verdict == Verdict::kWait && preempts) {
      searched_ = true;
      placed = schedule::place_preempting(placer_, state_, w, budgets_, now_ns_);
      if (!placed.pods.empty()) return record(w, placed);
    }
    if (terminating_.empty()) nos_.keep(state_, w, no);
    decision_.outcomes.push_back(std::move(no));
  }

  // Live: it fits once the pods that terminate are gone, so it waits for them.
  bool place_when_gone(const Workload& w) {
    if (terminating_.empty()) return false;
    ClusterState later = state_;
    for (const PodId id : terminating_) {
      if (later.pod(id).slot >= 0) later.unbind(id);
    }
    const auto placed = schedule::place(placer_, later, w);
    if (placed.pods.empty()) return false;
    for (const auto& step : placed.pods) left_.insert(step.slot);
    for (const PodId id : terminating_) {
      const auto slot = state_.pod(id).slot;
      if (slot >= 0 && left_.contains(static_cast<std::uint32_t>(slot))) state_.unbind(id);
    }
    for (const auto& step : placed.pods) state_.bind(step.id, step.slot, step.gpus);
    record(w, placed);
    return true;
  }

  // Live: somebody has yet to leave a node of it.
  bool waits_for_others(const schedule::Placed& placed) const {
    if (!options_.live) return false;
    return !placed.victims.empty() ||
           std::any_of(placed.pods.begin(), placed.pods.end(),
                       [&](const auto& step) { return left_.contains(step.slot); });
  }

  void record(const Workload& w, const schedule::Placed& placed) {
    nos_.placed();
    for (const auto& victim : placed.victims) {
      decision_.preemptions.push_back({.pod = state_.pod(victim.id).info->name,
                                       .node = state_.info(victim.slot).name,
                                       .by = w.name,
                                       .breaks_budget = victim.breaks_budget});
      left_.insert(victim.slot);
    }
    const bool waits = waits_for_others(placed);
    for (const auto& step : placed.pods) {
      decision_.placements.push_back(
          {.pod = state_.pod(step.id).info->name,
           .node = state_.info(step.slot).name,
           .gpus = step.gpus.indices(),
           .gpu_milli = step.gpus.unit,
           .gang = w.gang >= 0 ? w.name : "",
           .after_preemption = waits || !placed.victims.empty() || left_.contains(step.slot)});
      lowest_ = std::min(lowest_, priority_of(step.id));
    }
    decision_.outcomes.push_back(outcome_of(w, placed));
    record_victims(w, placed);
  }

  Outcome outcome_of(const Workload& w, const schedule::Placed& placed) {
    if (waits_for_others(placed)) {
      return {.workload = w.name,
              .gang = w.gang >= 0,
              .pods = static_cast<int>(w.pending.size()) + w.gated,
              .reason = Reason::kWaitingForPreemptedWorkloads,
              .message = "it has a place once the pods that leave its nodes are gone"};
    }
    Outcome out{.workload = w.name,
                .gang = w.gang >= 0,
                .pods = static_cast<int>(w.pending.size()) + w.gated,
                .placed = static_cast<int>(placed.pods.size()),
                .verdict = Verdict::kPlaced};
    if (out.placed == out.pods) return out;
    out.verdict = Verdict::kPartial;
    out.reason = Reason::kGated;
    out.message = fmt::format("{} of {} pods placed; {} {} scheduling gates", out.placed, out.pods,
                              w.gated, w.gated == 1 ? "has" : "have");
    if (out.placed == static_cast<int>(w.pending.size())) return out;
    // Why the rest was not placed is told on the state that the gang found.
    auto rest = *std::find_if(w.pending.begin(), w.pending.end(),
                              [&](PodId id) { return state_.pod(id).slot < 0; });
    ClusterState before = state_;
    for (const auto& step : placed.pods) before.unbind(step.id);
    for (const auto& victim : placed.victims) before.bind(victim.id, victim.slot, victim.gpus);
    Outcome no = explain_no(placer_, before, w, options_.certificates, rest);
    out.reason = no.reason;
    out.message =
        fmt::format("{} of {} pods placed; the rest: {}", out.placed, out.pods, no.message);
    out.certificate = std::move(no.certificate);
    return out;
  }

  // A victim waits for its turn again; if it was still to come in this cycle, it is dropped.
  void record_victims(const Workload& w, const schedule::Placed& placed) {
    for (const auto& victim : placed.victims) {
      const auto& info = *state_.pod(victim.id).info;
      bool gang = info.gang >= 0;
      std::string name =
          gang ? state_.gang(info.gang).ns + "/" + state_.gang(info.gang).name : info.name;
      if (!evicted_.emplace(gang, name).second) continue;
      int pods = 1;
      if (gang) {
        pods = 0;
        state_.for_each_in_gang(info.gang, [&](PodId id) {
          const model::PodEntry& pod = state_.pod(id);
          bool was_running = std::any_of(placed.victims.begin(), placed.victims.end(),
                                         [&](const auto& v) { return v.id == id; });
          pods += was_running || (pod.slot == model::kPending && !pod.info->terminating) ? 1 : 0;
        });
      }
      decision_.outcomes.push_back({.workload = std::move(name),
                                    .gang = gang,
                                    .pods = pods,
                                    .reason = Reason::kPreempted,
                                    .message = fmt::format("evicted to make room for {}", w.name)});
    }
  }

  ClusterState state_;  // the cycle's overlay
  schedule::BudgetCount budgets_;
  std::int64_t now_ns_;
  schedule::Placer& placer_;
  schedule::NoMemo& nos_;
  Options options_;
  std::vector<PodId> terminating_;                  // live: bound, on their way out
  int lowest_ = INT32_MAX;                          // the lowest priority that runs
  std::set<std::uint32_t> left_;                    // nodes that victims left
  std::set<std::pair<bool, std::string>> evicted_;  // (gang, name)
  Decision decision_;
  bool worked_ = false, searched_ = false;  // for the workload at hand
};

}  // namespace

Decision decide(const model::ClusterSnapshot& snapshot, std::int64_t now_ns,
                schedule::Placer& placer, Options options) {
  return Cycle(snapshot, now_ns, placer, options).run(pending_workloads(*snapshot));
}

void apply(const Decision& decision, model::SnapshotBuilder& builder) {
  for (const auto& victim : decision.preemptions) {
    if (auto id = builder.find_pod(victim.pod)) builder.unbind(*id);
  }
  for (const auto& p : decision.placements) {
    auto id = builder.find_pod(p.pod);
    auto slot = builder.state().inventory().slot(p.node);
    if (id && slot) builder.bind(*id, *slot, p.gpus);
  }
}

namespace {

// Live, the room of a placement that waits is its own already: in the builder those that leave are
// gone. The nodes concerned go to leaving.
void apply_live(const Decision& decision, model::SnapshotBuilder& builder,
                std::set<std::string>& leaving) {
  for (const auto& victim : decision.preemptions) leaving.insert(victim.node);
  for (const auto& p : decision.placements) {
    if (p.after_preemption) leaving.insert(p.node);
  }
  std::vector<PodId> gone;
  const ClusterState& state = builder.state();
  for (const auto& node : leaving) {
    const auto slot = state.inventory().slot(node);
    if (!slot) continue;
    state.for_each_pod_on(*slot, [&](PodId id) {
      if (state.pod(id).info->terminating) gone.push_back(id);
    });
  }
  for (const PodId id : gone) builder.unbind(id);
  apply(decision, builder);
}

}  // namespace

Run run(model::SnapshotBuilder& builder, const model::PlacementPolicy& policy, std::int64_t now_ns,
        int max_cycles, Options options, const QueueSetting* queues) {
  schedule::Placer placer(policy);
  return run(builder, placer, now_ns, max_cycles, options, queues);
}

Run run(model::SnapshotBuilder& builder, schedule::Placer& placer, std::int64_t now_ns,
        int max_cycles, Options options, const QueueSetting* queues) {
  Run out;
  placer.nos() = {};  // pods of other copies may have had the same ids
  schedule::Placer::Present present;
  const ClusterState& first = builder.state();
  builder.for_each_shape(
      [&](const model::Shape& shape, std::uint64_t pods) { present.push_back({&shape, pods}); });
  placer.learn_present(first, present);
  std::optional<Queueing> queueing;
  if (queues != nullptr)
    queueing.emplace(
        *queues, builder, placer, now_ns,
        Queueing::Options{
            .live = options.live, .verdicts_only = options.verdicts_only, .told = options.told});
  std::map<std::string, Outcome> last;
  std::vector<std::string> order;
  std::optional<std::vector<Workload>> waiting;  // outside of queues: only pods that move change it
  while (out.cycles < max_cycles && !out.stable) {
    const bool with_pods = !options.live || out.cycles == 0;
    Decision d;
    if (with_pods) {
      const model::ClusterSnapshot snapshot = builder.publish();
      if (!waiting) waiting = pending_workloads(*snapshot);
      d = Cycle(snapshot, now_ns, placer, options).run(*waiting);
    }
    ++out.cycles;
    std::set<std::string> leaving;
    if (options.live) {
      apply_live(d, builder, leaving);
    } else {
      apply(d, builder);
    }
    for (auto& o : d.outcomes) {
      if (!last.contains(o.workload)) order.push_back(o.workload);
      last.insert_or_assign(o.workload, std::move(o));
    }
    const bool pods_moved = !d.placements.empty() || !d.preemptions.empty();
    if (pods_moved) waiting.reset();
    out.stable = options.live || !pods_moved;
    if (queueing) {
      if (pods_moved) queueing->recount(std::move(leaving));
      if (queueing->cycle(now_ns, d)) out.stable = false;
    }
    auto& all = out.decision;
    std::move(d.admissions.begin(), d.admissions.end(), std::back_inserter(all.admissions));
    std::move(d.evictions.begin(), d.evictions.end(), std::back_inserter(all.evictions));
    std::move(d.released.begin(), d.released.end(), std::back_inserter(all.released));
    std::move(d.placements.begin(), d.placements.end(), std::back_inserter(all.placements));
    std::move(d.preemptions.begin(), d.preemptions.end(), std::back_inserter(all.preemptions));
  }
  for (const auto& name : order) out.decision.outcomes.push_back(std::move(last.at(name)));
  if (queueing) {
    queueing->report(out.decision);
    if (!options.verdicts_only) out.due_ns = queueing->due_ns(now_ns);
  }
  return out;
}

}  // namespace berth::decide
