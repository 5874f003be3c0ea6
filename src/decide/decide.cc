#include "decide/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "schedule/placement.h"

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
  int priority = INT32_MIN;
  std::int64_t oldest = INT64_MAX;
  state.for_each_in_gang(index, [&](PodId id) {
    const model::PodEntry& pod = state.pod(id);
    (pod.slot == model::kPending ? out.pending : out.running).push_back(id);
    priority = std::max(priority, pod.info->priority);
    oldest = std::min(oldest, pod.info->created_ns);
    out.preempts = out.preempts && pod.info->preempts;
  });
  out.priority = gang.priority.value_or(priority);
  if (out.created_ns == 0) out.created_ns = oldest;
  schedule::sort_members(state, out.pending);
  std::sort(out.running.begin(), out.running.end());
  out.min_pending = std::max(0, gang.min_member - static_cast<int>(out.running.size()));
  // Members beyond the minimum start one by one once the gang runs.
  if (out.min_pending == 0) out.min_pending = 1;
  return out;
}

std::vector<Workload> pending_workloads(const ClusterState& state) {
  std::vector<Workload> out;
  std::vector<bool> seen(state.gangs());
  for (PodId id = 0; id < state.pod_ids(); ++id) {
    const model::PodEntry& pod = state.pod(id);
    if (!pod.info || pod.slot != model::kPending) continue;
    auto gang = pod.info->gang;
    if (gang < 0) {
      out.push_back({.name = pod.info->name,
                     .priority = pod.info->priority,
                     .preempts = pod.info->preempts,
                     .created_ns = pod.info->created_ns,
                     .pending = {id}});
    } else if (!seen[static_cast<std::size_t>(gang)]) {
      seen[static_cast<std::size_t>(gang)] = true;
      out.push_back(gang_workload(state, gang));
    }
  }
  std::sort(out.begin(), out.end(), [](const Workload& a, const Workload& b) {
    return std::tuple(-std::int64_t{a.priority}, a.created_ns, std::string_view(a.name)) <
           std::tuple(-std::int64_t{b.priority}, b.created_ns, std::string_view(b.name));
  });
  return out;
}

// What keeps a workload from being looked at in the first place; kNone when nothing does.
std::pair<Reason, std::string> held_back(const ClusterState& state, const Workload& w) {
  for (PodId id : w.pending) {
    const auto& info = *state.pod(id).info;
    if (info.gated) return {Reason::kGated, fmt::format("{} has scheduling gates", info.name)};
  }
  for (PodId id : w.pending) {
    const auto& info = *state.pod(id).info;
    if (!info.volume_missing.empty()) {
      return {Reason::kVolumeMissing,
              fmt::format("{} needs the claim {}, which does not exist or is not bound", info.name,
                          info.volume_missing)};
    }
  }
  if (w.gang < 0) return {Reason::kNone, ""};
  const model::GangSpec& gang = state.gang(w.gang);
  int members = static_cast<int>(w.pending.size() + w.running.size());
  if (members < gang.min_member) {
    return {Reason::kGangIncomplete,
            fmt::format("{} members exist, {} must start together", members, gang.min_member)};
  }
  for (const auto& sub : gang.subgroups) {
    int count = 0;
    state.for_each_in_gang(w.gang, [&](PodId id) {
      count += state.pod(id).info->subgroup == sub.name ? 1 : 0;
    });
    if (count < sub.min_member) {
      return {Reason::kGangIncomplete,
              fmt::format("{} members of {} exist, {} must start together", count, sub.name,
                          sub.min_member)};
    }
  }
  return {Reason::kNone, ""};
}

class Cycle {
 public:
  Cycle(const model::ClusterSnapshot& snapshot, std::int64_t now_ns, schedule::Placer& placer,
        Options options)
      : state_(*snapshot), now_ns_(now_ns), placer_(placer), options_(options) {
    for (PodId id = 0; id < state_.pod_ids(); ++id) {
      const model::PodEntry& pod = state_.pod(id);
      if (pod.info && pod.slot >= 0) lowest_ = std::min(lowest_, pod.info->priority);
    }
  }

  Decision run() {
    for (const auto& workload : pending_workloads(state_)) decide_one(workload);
    return std::move(decision_);
  }

 private:
  void decide_one(const Workload& w) {
    auto [reason, message] = held_back(state_, w);
    if (reason != Reason::kNone) {
      decision_.outcomes.push_back({.workload = w.name,
                                    .gang = w.gang >= 0,
                                    .pods = static_cast<int>(w.pending.size()),
                                    .verdict = Verdict::kWait,
                                    .reason = reason,
                                    .message = std::move(message)});
      return;
    }
    auto placed = schedule::place(placer_, state_, w);
    if (!placed.pods.empty()) return record(w, placed);
    Outcome no = explain_no(placer_, state_, w, options_.certificates);
    if (no.verdict == Verdict::kWait && w.preempts && placer_.policy().preemption &&
        lowest_ < w.priority) {
      placed = schedule::place_preempting(placer_, state_, w, now_ns_);
      if (!placed.pods.empty()) return record(w, placed);
    }
    decision_.outcomes.push_back(std::move(no));
  }

  void record(const Workload& w, const schedule::Placed& placed) {
    for (const auto& victim : placed.victims) {
      decision_.preemptions.push_back({.pod = state_.pod(victim.id).info->name,
                                       .node = state_.info(victim.slot).name,
                                       .by = w.name,
                                       .breaks_budget = victim.breaks_budget});
      preempted_.push_back(victim.id);
    }
    for (const auto& step : placed.pods) {
      decision_.placements.push_back({.pod = state_.pod(step.id).info->name,
                                      .node = state_.info(step.slot).name,
                                      .gpus = step.gpus.indices(),
                                      .gpu_milli = step.gpus.unit,
                                      .gang = w.gang >= 0 ? w.name : "",
                                      .after_preemption = !placed.victims.empty()});
      lowest_ = std::min(lowest_, state_.pod(step.id).info->priority);
    }
    auto count = static_cast<int>(placed.pods.size());
    Outcome out{.workload = w.name,
                .gang = w.gang >= 0,
                .pods = static_cast<int>(w.pending.size()),
                .placed = count,
                .verdict = Verdict::kPlaced};
    if (count < out.pods) {
      Workload rest = w;
      std::erase_if(rest.pending, [&](PodId id) { return state_.pod(id).slot >= 0; });
      rest.min_pending = 1;
      Outcome no = explain_no(placer_, state_, rest, options_.certificates);
      out.verdict = Verdict::kPartial;
      out.reason = no.reason;
      out.message = fmt::format("{} of {} pods placed; the rest: {}", count, out.pods, no.message);
      out.certificate = std::move(no.certificate);
    }
    decision_.outcomes.push_back(std::move(out));
  }

  ClusterState state_;  // the cycle's overlay
  std::int64_t now_ns_;
  schedule::Placer& placer_;
  Options options_;
  int lowest_ = INT32_MAX;  // priority that runs
  std::vector<PodId> preempted_;
  Decision decision_;
};

}  // namespace

Decision decide(const model::ClusterSnapshot& snapshot, std::int64_t now_ns, schedule::Placer& placer,
                Options options) {
  return Cycle(snapshot, now_ns, placer, options).run();
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

Run run(model::SnapshotBuilder& builder, const schedule::Policy& policy, std::int64_t now_ns,
        int max_cycles, Options options) {
  Run out;
  schedule::Placer placer(policy);
  std::map<std::string, Outcome> last;
  std::vector<std::string> order;
  std::map<std::string, std::string> victims;  // pod -> preemptor
  while (out.cycles < max_cycles && !out.stable) {
    Decision d = decide(builder.publish(), now_ns, placer, options);
    ++out.cycles;
    apply(d, builder);
    for (auto& o : d.outcomes) {
      if (!last.contains(o.workload)) order.push_back(o.workload);
      last.insert_or_assign(o.workload, std::move(o));
    }
    out.stable = d.placements.empty() && d.preemptions.empty();
    auto& all = out.decision;
    std::move(d.placements.begin(), d.placements.end(), std::back_inserter(all.placements));
    std::move(d.preemptions.begin(), d.preemptions.end(), std::back_inserter(all.preemptions));
  }
  for (const auto& name : order) out.decision.outcomes.push_back(std::move(last.at(name)));
  return out;
}

}  // namespace berth::decide
