// Cycles: nomination, processing, requeueing. The order of entries is in entry_order.cc.
#include <fmt/format.h>

#include <algorithm>

#include "decide/admit/engine.h"

namespace berth::admit {

std::vector<WorkloadId> Engine::heads_of(NodeId root) {
  std::vector<WorkloadId> out, behind;
  for (const QueueId q : of_root_[root]) {
    const auto head = lines_[q].head();
    if (!head) continue;
    const bool back =
        std::find(standing_back_.begin(), standing_back_.end(), q) != standing_back_.end();
    (back ? behind : out).push_back(*head);
  }
  if (!out.empty() || behind.empty()) return out;
  let_forward(behind);
  return behind;
}

CycleResult Engine::cycle(std::int64_t now_ns) {
  wake(now_ns);
  usage_.sample(now_ns);
  CycleResult settled;
  if (options_.settles) settle_reserved(settled);
  std::vector<WorkloadId> heads;
  for (const NodeId root : ledger_.book.roots()) {
    due_[root] = false;
    const auto more = heads_of(root);
    heads.insert(heads.end(), more.begin(), more.end());
  }
  CycleResult result = run(heads, now_ns);
  result.settled = std::move(settled.settled);
  result.changed |= settled.changed;
  result.changed = goes_on(result, fruitless_);
  return result;
}

// Heads that stay in line and try one flavor after another come round in the end.
bool Engine::goes_on(const CycleResult& result, int& fruitless) const {
  if (result.changed) {
    fruitless = 0;
    return true;
  }
  return result.moved && ++fruitless <= 2 * longest_scan_;
}

CycleResult Engine::step(std::int64_t now_ns, int max_cycles) {
  wake(now_ns);
  usage_.sample(now_ns);
  CycleResult all;
  const auto take = [&](CycleResult one) {
    all.admitted.insert(all.admitted.end(), one.admitted.begin(), one.admitted.end());
    all.evicted.insert(all.evicted.end(), one.evicted.begin(), one.evicted.end());
    all.settled.insert(all.settled.end(), one.settled.begin(), one.settled.end());
    all.replaced.insert(all.replaced.end(), one.replaced.begin(), one.replaced.end());
    all.tried += one.tried;
    --max_cycles;
  };
  if (ground_ != nullptr) {  // trees share the ground
    bool more = true;
    while (max_cycles > 0 && more) {
      CycleResult one = cycle(now_ns);
      more = one.changed;
      take(std::move(one));
    }
    all.changed = max_cycles <= 0;
    return all;
  }
  if (options_.settles) settle_reserved(all);
  for (const NodeId root : ledger_.book.roots()) {
    int fruitless = 0;
    while (due_[root] && max_cycles > 0) {
      due_[root] = false;
      CycleResult one = run(heads_of(root), now_ns);
      if (goes_on(one, fruitless)) touch(root);
      take(std::move(one));
    }
  }
  all.changed = max_cycles <= 0;
  return all;
}

CycleResult Engine::run(const std::vector<WorkloadId>& heads, std::int64_t now_ns) {
  CycleResult result;
  if (heads.empty()) return result;
  ++cycle_;
  puts_ = 0;
  now_ns_ = now_ns;
  preemptor_.at(now_ns);
  result.tried = static_cast<int>(heads.size());
  std::vector<Entry> entries;
  entries.reserve(heads.size());
  for (const WorkloadId id : heads) {
    tried_.push_back(id);
    if (!sort_out(id, result)) entries.push_back(nominate(id));
  }
  for (const Entry& entry : entries) {
    if (makes_way(entry)) serves(entry.queue, 0);
  }
  if (ledger_.book.config().fair_sharing) {
    while (!entries.empty()) {  // every decision changes the shares
      const auto next = entries.begin() + static_cast<std::ptrdiff_t>(fair_next(entries));
      process(*next, now_ns, result);
      entries.erase(next);
    }
  } else {
    sort_classical(entries);
    for (Entry& entry : entries) process(entry, now_ns, result);
  }
  for (auto it = assumed_.rbegin(); it != assumed_.rend(); ++it) {
    ledger_.drain(ledger_.book.queue(it->first).node, it->second);
  }
  assumed_.clear();
  claimed_.clear();
  if (ground_ != nullptr) ground_->end_cycle();
  result.changed |= let_forward(heads);
  served_.clear();
  return result;
}

// ---- nomination ----

// Quota says yes, or could: the nodes have the last word.
void Engine::ground_check(WorkloadId id, Assignment& assignment, bool why) {
  if (assignment.mode == Mode::kNoFit) return;
  assignment.on_ground = ground_ != nullptr;
  const Workload& w = ledger_.workloads[id];
  assignment.delayed = delays(w.queue, assignment.pod_sets);
  if (ground_ == nullptr || assignment.delayed) return;
  Ground::Answer answer;
  bool topology = false;
  for (const Choice& choice : assignment.pod_sets) {
    for (const auto& [resource, flavor] : choice.flavors) {
      topology |= !ledger_.book.flavor(flavor).topology.empty();
    }
  }
  const bool by_quota = assignment.mode == Mode::kFit;
  if (by_quota) {
    answer = ground_->place(id, w, assignment, why);
    if (answer.fits) return;
    assignment.mode = Mode::kPreempt;
  }
  Ground::Answer ever;
  if (!ground_->ever(id, w, assignment, why, ever)) {
    assignment.mode = Mode::kNoFit;
    answer = ever;
    answer.never = true;
  }
  if (by_quota || assignment.mode == Mode::kNoFit) {
    assignment.reason =
        std::max(assignment.reason,
                 answer.topology ? NoReason::kTopologyPlacementFailed : NoReason::kNodesDoNotFit);
    if (why) {
      if (!assignment.message.empty()) assignment.message += "; ";
      assignment.message += answer.message;
    }
  }
  if (by_quota || topology) {
    assignment.preempting.clear();
    for (const Use& use : assignment.uses) assignment.preempting.push_back(use.cell);
  }
}

bool Engine::try_counts(WorkloadId id, const Assigner::Options& options, Entry& entry) {
  entry.assignment = assigner_.assign(id, options);
  entry.targets.clear();
  ground_check(id, entry.assignment, options.why);
  if (entry.assignment.mode == Mode::kFit) return true;
  if (entry.assignment.mode == Mode::kNoFit) return false;
  entry.targets =
      preemptor_.targets({.id = id,
                          .cells = entry.assignment.preempting,
                          .uses = entry.assignment.uses,
                          .assignment = entry.assignment.delayed ? nullptr : &entry.assignment});
  return !entry.targets.empty();
}

// The smallest reduction, spread over the pod sets that may shrink, that can be had.
bool Engine::search_partial(WorkloadId id, const Assigner::Options& options, Entry& entry) {
  const Form& form = *ledger_.workloads[id].form;
  std::vector<int> counts(form.pod_sets.size());
  std::int64_t total = 0;
  for (const PodSet& set : form.pod_sets) {
    if (set.min_count >= 0) total += set.count - set.min_count;
  }
  const auto reduced = [&](std::int64_t by, Entry& out) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const PodSet& set = form.pod_sets[i];
      const std::int64_t delta = set.min_count >= 0 ? set.count - set.min_count : 0;
      counts[i] = set.count - static_cast<int>(total == 0 ? 0 : delta * by / total);
    }
    Assigner::Options trial = options;
    trial.counts = counts;
    return try_counts(id, trial, out);
  };
  std::int64_t low = 0, high = total + 1;  // high: not possible
  Entry trial = entry;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (reduced(middle, trial)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high <= total && reduced(high, entry);  // once more: the last one tried is what stands
}

Engine::Entry Engine::nominate(WorkloadId id) {
  Workload& w = ledger_.workloads[id];
  Entry entry{.id = id, .queue = w.queue, .assignment = {}, .targets = {}, .old = old_slice(id)};
  const OutOfTheWay aside(ledger_, entry.old);
  const NodeId root = ledger_.queue_of(w).root;
  const bool fresh = !w.progress.tried.empty() &&
                     (cycle_ - w.progress.cycle <= 1 || w.progress.generation == generation_[root]);
  Assigner::Options options{.from = fresh && w.progress.more() ? &w.progress : nullptr,
                            .why = tells(w)};
  Assignment pinned;
  if (entry.old != kNoId) {
    pinned = pinned_to(entry.old, *w.form);
    options.pinned = &pinned;
    options.from = nullptr;
    preemptor_.without({entry.old});
  }
  if (!try_counts(id, options, entry) && w.form->partial &&
      ledger_.book.config().gate("PartialAdmission", true)) {
    Entry partial = entry;
    if (search_partial(id, options, partial)) entry = std::move(partial);
  }
  if (entry.old != kNoId) {
    preemptor_.without({});
    set_beyond(entry);
  }
  entry.assignment.progress.generation = generation_[root];
  entry.assignment.progress.cycle = cycle_;
  return entry;
}

// ---- processing ----

bool Engine::overlaps(const Entry& entry) const {
  return std::any_of(entry.targets.begin(), entry.targets.end(), [&](const Target& target) {
    return std::find(claimed_.begin(), claimed_.end(), target.id) != claimed_.end();
  });
}

// With the victims claimed so far and its own gone. The site is worked out again where the ground
// changed since.
bool Engine::still_fits(Entry& entry) {
  const OutOfTheWay aside(ledger_, entry.old);
  std::vector<WorkloadId> away = claimed_;
  for (const Target& target : entry.targets) {
    if (std::find(away.begin(), away.end(), target.id) == away.end()) away.push_back(target.id);
  }
  for (const WorkloadId id : away) {
    const Workload& victim = ledger_.workloads[id];
    ledger_.drain(ledger_.queue_of(victim).node, victim.uses);
    if (ground_ != nullptr) ground_->take_away(id);
  }
  bool fits = ledger_.fits(ledger_.book.queue(entry.queue).node, entry.assignment.uses);
  if (fits && ground_ != nullptr && puts_ > 0 && !entry.assignment.delayed) {
    fits = ground_->place(entry.id, ledger_.workloads[entry.id], entry.assignment, false).fits;
  }
  for (std::size_t i = away.size(); i-- > 0;) {
    const Workload& victim = ledger_.workloads[away[i]];
    ledger_.fill(ledger_.queue_of(victim).node, victim.uses);
    if (ground_ != nullptr) ground_->bring_back(away[i]);
  }
  return fits;
}

// Once more on the nominated flavors, as if the victims of others were gone; whom this cycle
// admitted is nobody's victim in it. True: it fits then.
bool Engine::recompute(Entry& entry, const std::vector<WorkloadId>& admitted) {
  const OutOfTheWay aside(ledger_, entry.old);
  for (const WorkloadId id : claimed_) {
    const Workload& victim = ledger_.workloads[id];
    ledger_.drain(ledger_.queue_of(victim).node, victim.uses);
    if (ground_ != nullptr) ground_->take_away(id);
  }
  const Assignment nominated = entry.assignment;
  std::vector<int> counts;
  for (const Choice& choice : nominated.pod_sets) counts.push_back(choice.count);
  std::vector<WorkloadId> absent = claimed_;
  absent.insert(absent.end(), admitted.begin(), admitted.end());
  if (entry.old != kNoId) absent.push_back(entry.old);
  preemptor_.without(std::move(absent));
  try_counts(entry.id,
             {.counts = counts, .pinned = &nominated, .why = tells(ledger_.workloads[entry.id])},
             entry);
  preemptor_.without({});
  entry.assignment.progress = nominated.progress;
  if (entry.old != kNoId) set_beyond(entry);
  for (std::size_t i = claimed_.size(); i-- > 0;) {
    const Workload& victim = ledger_.workloads[claimed_[i]];
    ledger_.fill(ledger_.queue_of(victim).node, victim.uses);
    if (ground_ != nullptr) ground_->bring_back(claimed_[i]);
  }
  return entry.assignment.mode == Mode::kFit;
}

void Engine::assume(QueueId queue, std::span<const Use> uses) {
  ledger_.fill(ledger_.book.queue(queue).node, uses);
  assumed_.emplace_back(queue, std::vector<Use>(uses.begin(), uses.end()));
}

// A head that would preempt but finds nobody keeps what it could use from those behind it.
void Engine::reserve(const Entry& entry) {
  const Queue& queue = ledger_.book.queue(entry.queue);
  if (queue.spec.reclaim == model::Reclaim::kAny) return;
  std::vector<Use> uses;
  for (const Use& use : entry.charged()) {
    const Amount nominal = ledger_.tree.nominal(queue.node, use.cell);
    const Amount used = ledger_.tree.usage(queue.node, use.cell);
    Amount kept = use.amount;
    if (entry.assignment.borrowing > 0) {
      const auto limit = ledger_.tree.borrowing_limit(queue.node, use.cell);
      if (limit) kept = std::min(kept, nominal + *limit - used);
    } else {
      kept = std::min(kept, nominal - used);
    }
    if (kept > Amount(0)) uses.push_back({use.cell, kept});
  }
  assume(entry.queue, uses);
}

void Engine::process(Entry& entry, std::int64_t now_ns, CycleResult& result) {
  Workload& w = ledger_.workloads[entry.id];
  bool deferred = false;
  if (entry.assignment.mode == Mode::kPreempt && overlaps(entry) &&
      ledger_.book.config().gate("RecomputeAssignmentUponPreemptionTargetsOverlap", true)) {
    deferred = recompute(entry, result.admitted);
  }
  const auto back = [&](Requeue why, NoReason reason, std::string message) {
    requeue(entry, why, reason, std::move(message), result);
  };
  const Assignment& a = entry.assignment;
  if (entry.old != old_slice(entry.id)) {  // sent away by an entry before
    return back(Requeue::kFailedAfterNomination, NoReason::kWaitingForQuota,
                "Workload no longer fits after processing another workload");
  }
  if (a.mode == Mode::kNoFit) return back(Requeue::kNoFit, a.reason, a.message);
  if (a.mode == Mode::kPreempt && entry.targets.empty()) {
    reserve(entry);
    return back(Requeue::kNoCandidates, a.reason, a.message);
  }
  if (a.mode == Mode::kPreempt && (w.preemption_gated || !may_preempt(entry.id))) {
    return back(Requeue::kPreemptionGated, NoReason::kPreemptionGated,
                w.preemption_gated ? "a preemption gate is closed"
                                   : "the variant of a better flavor may make room, not this one");
  }
  if (deferred) {
    assume(entry.queue, entry.charged());
    return back(Requeue::kPendingPreemption, NoReason::kWaitingForPreemptedWorkloads,
                "fits once the workloads that others preempt are gone");
  }
  if (overlaps(entry)) {
    return back(Requeue::kFailedAfterNomination, NoReason::kWaitingForPreemptedWorkloads,
                "Workload has overlapping preemption targets with another workload");
  }
  if (!preemptor_.budgets_allow(claimed_, entry.targets)) {
    return back(Requeue::kFailedAfterNomination, NoReason::kWaitingForPreemptedWorkloads,
                "a PodDisruptionBudget allows no more evictions until those under way are over");
  }
  if (!still_fits(entry)) {
    return back(Requeue::kFailedAfterNomination, NoReason::kWaitingForQuota,
                "Workload no longer fits after processing another workload");
  }
  if (stands_back(entry)) {
    return back(Requeue::kFailedAfterNomination, NoReason::kWaitingForQuota,
                "Workload would borrow, and waits for those whose quota it is");
  }
  for (const Target& target : entry.targets) claimed_.push_back(target.id);
  if (a.mode == Mode::kPreempt) {
    assume(entry.queue, entry.charged());
    if (ground_ != nullptr && !a.delayed) {
      ++puts_;
      ground_->put(entry.id, a, false);
    }
    return issue(entry, result);
  }
  if (const WorkloadId sibling = running_sibling(entry.id); sibling != kNoId) {
    return migrate(entry, sibling, result);
  }
  if (blocked_by_unready()) {
    return back(Requeue::kFailedAfterNomination, NoReason::kWaitingForPodsReady,
                "waits until the pods of all admitted workloads are ready");
  }
  admit(entry, now_ns, result);
}

bool Engine::blocked_by_unready() const {
  const auto& config = ledger_.book.config();
  return config.wait_for_pods_ready && config.block_admission && unready_ > 0;
}

void Engine::admit(Entry& entry, std::int64_t now_ns, CycleResult& result) {
  Workload& w = ledger_.workloads[entry.id];
  lines_[entry.queue].unstick(entry.id);
  lines_[entry.queue].remove(entry.id);
  serves(entry.queue, entry.assignment.borrowing);
  if (entry.old != kNoId) take_over(entry, result);
  w.preemptor = w.migrating = false;
  w.uses = entry.assignment.uses;
  w.admission = std::move(entry.assignment.pod_sets);
  w.reserved_ns = now_ns;
  // It is not evicted any more: as somebody's victim it is as old as it is.
  w.order_ns = w.created_ns;
  w.preempted_for = Cause::kInClusterQueue;
  w.progress = {};
  w.reason = NoReason::kNone;
  w.message.clear();
  set_stage(entry.id, Stage::kReserved);
  ledger_.seat(entry.id);
  if (entry.old == kNoId) w.checks = checks_of(w);
  w.unplaced = entry.assignment.delayed && !w.checks.empty();
  if (w.checks.empty()) {
    set_stage(entry.id, Stage::kAdmitted);
  } else {
    reserved_.push_back(entry.id);
  }
  w.started = w.checks.empty();
  w.pods_ready = !ledger_.book.config().block_admission;
  if (!w.pods_ready && w.stage == Stage::kAdmitted) ++unready_;
  usage_.charge(entry.id);
  if (ground_ != nullptr && !entry.assignment.delayed) {
    ++puts_;
    entry.assignment.pod_sets = w.admission;
    ground_->put(entry.id, entry.assignment, true);
  }
  result.admitted.push_back(entry.id);
  result.changed = true;
}

void Engine::issue(Entry& entry, CycleResult& result) {
  int fresh = 0;
  for (const Target& target : entry.targets) {
    Workload& victim = ledger_.workloads[target.id];
    if (victim.stage == Stage::kEvicting) continue;  // leaves already
    evict(target.id);
    victim.preempted_by = entry.id;
    victim.preempted_for = target.cause;
    if (options_.policy.max_evictions_per_hour > 0) {
      if (victim.evictions_ns.size() >= 64) victim.evictions_ns.erase(victim.evictions_ns.begin());
      victim.evictions_ns.push_back(now_ns_);
    }
    result.evicted.push_back({target.id, entry.id, target.cause});
    ++fresh;
  }
  if (fresh > 0) result.changed = true;
  std::string message = entry.assignment.message;
  if (tells(ledger_.workloads[entry.id])) {
    message += fmt::format("{}Pending the preemption of {} workload(s)",
                           message.empty() ? "" : ". ", entry.targets.size());
  }
  requeue(entry, Requeue::kPendingPreemption, NoReason::kWaitingForPreemptedWorkloads,
          std::move(message), result);
}

void Engine::requeue(const Entry& entry, Requeue why, NoReason reason, std::string message,
                     CycleResult& result) {
  Workload& w = ledger_.workloads[entry.id];
  Line& line = lines_[entry.queue];
  w.reason = reason == NoReason::kNone ? NoReason::kWaitingForQuota : reason;
  if (tells(w)) w.message = std::move(message);
  const bool again = why == Requeue::kFailedAfterNomination || why == Requeue::kPendingPreemption;
  const bool moved = entry.assignment.progress.tried != w.progress.tried;
  w.progress = again ? Progress{} : entry.assignment.progress;  // then all flavors are new again
  w.preemptor = why == Requeue::kPendingPreemption;
  if (!w.preemptor) w.migrating = false;
  if (!again) line.unstick(entry.id);
  const bool strict = ledger_.queue_of(w).spec.strict_fifo;
  if (why == Requeue::kPendingPreemption && !strict) line.stick(entry.id);
  const bool at_once = strict || again || w.progress.more();
  if (at_once) {
    result.moved |= w.progress.more() && moved;
    return;
  }
  const bool whole = (why == Requeue::kNoFit || why == Requeue::kNoCandidates) &&
                     ledger_.book.config().gate("SchedulingEquivalenceHashing", true);
  // What quota alone forbids no node helps.
  if (whole) {
    line.park_lane(entry.id, entry.assignment.on_ground);
  } else {
    line.park(entry.id, entry.assignment.on_ground);
  }
  result.changed = true;
}

}  // namespace berth::admit
