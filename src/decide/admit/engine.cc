#include "decide/admit/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace berth::admit {

namespace {
constexpr std::int64_t kAfterReclaimNs = 1'000'000;  // behind whoever it made room for
}

Engine::Engine(const Book& book, Ground* ground, const Options& options)
    : ledger_(book),
      ground_(ground),
      options_(options),
      preemptor_(ledger_, ground, options.policy),
      assigner_(ledger_, preemptor_),
      forms_(options.forms ? options.forms : std::make_shared<Forms>(book)),
      usage_(ledger_, options.start_ns),
      of_root_(book.tree().size()),
      due_(book.tree().size()),
      generation_(book.tree().size()) {
  by_priority_ = book.config().gate("PrioritySortingWithinCohort", true);
  preemptors_first_ = book.config().gate("PrioritizePreemptorWorkloads", false);
  lines_.reserve(book.queues().size());
  for (QueueId q = 0; q < book.queues().size(); ++q) {
    lines_.emplace_back(ledger_, q);
    of_root_[book.queue(q).root].push_back(q);
    for (const Group& group : book.queue(q).groups) {
      longest_scan_ = std::max(longest_scan_, static_cast<int>(group.flavors.size()));
    }
  }
}

// ---- workloads come and go ----

void Engine::set_stage(WorkloadId id, Stage stage) {
  Workload& w = ledger_.workloads[id];
  if (w.stage == stage) return;
  BERTH_ASSERT(may_follow(w.stage, stage), "a stage that may follow");
  w.stage = stage;
  touched_.push_back(id);
}

Hold Engine::hold_of(const model::WorkloadSpec& spec, const Workload& w,
                     std::int64_t now_ns) const {
  if (!spec.active) return Hold::kDeactivated;
  if (spec.has_variants) return Hold::kVariants;
  if (!spec.held_by.empty()) return Hold::kAdmissionGated;
  if (w.local == kNoId) return Hold::kNoLocalQueue;
  if (w.queue == kNoId) return Hold::kNoQueue;
  const Queue& queue = ledger_.book.queue(w.queue);
  if (ledger_.book.local(w.local).spec.stop != model::StopPolicy::kNone) {
    return Hold::kLocalStopped;
  }
  if (queue.inactive != Inactive::kNo) return Hold::kQueueInactive;
  if (!spec.incomplete.empty() || spec.unmade) return Hold::kIncomplete;
  if (w.requeue_at_ns > now_ns) return Hold::kBackoff;
  // Who deactivated it has activated it again.
  const bool back = spec.active && spec.not_requeued.starts_with("Deactivated");
  if (!spec.not_requeued.empty() && !back && w.requeue_at_ns == 0) return Hold::kNotRequeued;
  return Hold::kNone;
}

// What puts it aside when its turn comes; it stands in line until then.
Hold Engine::aside_of(const model::WorkloadSpec& spec, const Workload& w) const {
  if (w.queue == kNoId) return Hold::kNone;
  for (const auto& [check, state] : spec.checks) {
    if (state == model::CheckState::kRejected || state == model::CheckState::kRetry) {
      return Hold::kCheckFailed;
    }
  }
  return ledger_.book.in_namespace(ledger_.queue_of(w), spec.ns) ? Hold::kNone : Hold::kNamespace;
}

void Engine::hold(WorkloadId id, Hold why, const model::WorkloadSpec& spec) {
  Workload& w = ledger_.workloads[id];
  const auto say = [&](NoReason reason, std::string message) {
    w.reason = reason;
    w.message = std::move(message);
  };
  const std::string local = spec.ns + '/' + spec.queue;
  switch (why) {
    case Hold::kNone:
      return;
    case Hold::kNoLocalQueue:
      return say(NoReason::kMisconfigured, spec.queue.empty()
                                               ? "it names no LocalQueue"
                                               : "LocalQueue " + local + " doesn't exist");
    case Hold::kNoQueue:
      return say(NoReason::kMisconfigured, "ClusterQueue " +
                                               ledger_.book.local(w.local).spec.queue +
                                               " of LocalQueue " + local + " doesn't exist");
    case Hold::kQueueInactive: {
      const Queue& queue = ledger_.queue_of(w);
      return say(
          queue.inactive == Inactive::kStopped ? NoReason::kOnHold : NoReason::kMisconfigured,
          fmt::format("ClusterQueue {} is inactive ({}): {}", queue.spec.name, name(queue.inactive),
                      queue.inactive_message));
    }
    case Hold::kLocalStopped:
      return say(NoReason::kOnHold, "LocalQueue " + local + " is stopped by its stopPolicy");
    case Hold::kNamespace:
      return say(NoReason::kMisconfigured,
                 "Workload namespace doesn't match ClusterQueue selector of " +
                     ledger_.queue_of(w).spec.name);
    case Hold::kDeactivated:
      return say(NoReason::kDeactivated, "The workload is deactivated: spec.active is false");
    case Hold::kAdmissionGated:
      return say(NoReason::kAdmissionGated, "held back by " + spec.held_by +
                                                " (annotation kueue.x-k8s.io/admission-gated-by)");
    case Hold::kBackoff:
      return say(NoReason::kOnHold, "backs off after an eviction until its requeueAt");
    case Hold::kNotRequeued:
      return say(NoReason::kOnHold, "it was evicted and is not to be queued again: " +
                                        spec.not_requeued + " (condition Requeued is False)");
    case Hold::kIncomplete:
      return say(NoReason::kPendingEvaluation, spec.unmade && spec.incomplete.empty()
                                                   ? "its Workload is yet to be made"
                                                   : spec.incomplete);
    case Hold::kCheckFailed:
      return say(NoReason::kOnHold, "an admission check rejected it or asks to try again");
    case Hold::kVariants:
      return say(NoReason::kOnHold, "its variants are decided, one for each flavor");
    case Hold::kReplaced:
      return say(NoReason::kOnHold, "a newer slice of it waits instead");
  }
}

WorkloadId Engine::add(const model::WorkloadSpec& spec, std::int64_t now_ns) {
  auto id = static_cast<WorkloadId>(ledger_.workloads.size());
  if (free_.empty()) {
    ledger_.workloads.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
    ledger_.workloads[id] = {};
  }
  take_in(id, spec, now_ns);
  return id;
}

void Engine::take_in(WorkloadId id, const model::WorkloadSpec& spec, std::int64_t now_ns) {
  Workload& w = ledger_.workloads[id];
  w.name = spec.ns + '/' + spec.name;
  w.uid = spec.uid.empty() ? w.name : spec.uid;
  w.form = forms_->get(spec);
  w.local = ledger_.book.find_local(spec.ns, spec.queue);
  if (w.local != kNoId) w.queue = ledger_.book.local(w.local).queue;
  w.preemption_gated = spec.preemption_gated;
  w.pods_ready = spec.pods_ready;
  w.created_ns = spec.created_ns;
  w.order_ns = spec.created_ns;
  const bool by_eviction =
      (spec.evicted == "PodsReadyTimeout" && !ledger_.book.config().requeue_by_creation) ||
      spec.evicted == "AdmissionCheck";
  if (by_eviction) w.order_ns = spec.evicted_ns;
  if (!by_priority_ && spec.preempted == name(Cause::kInCohortReclaimWhileBorrowing)) {
    w.order_ns = spec.evicted_ns + kAfterReclaimNs;
  }
  w.requeue_at_ns = spec.requeue_at_ns;
  w.evictions_ns = spec.preemptions_ns;
  if (spec.finished) {
    set_stage(id, Stage::kFinished);
    return;
  }
  w.aside = aside_of(spec, w);
  if (!spec.variant_of.empty()) join_family(id, spec);
  if (spec.admission) {
    take_in_holder(id, spec);
    if (holds_quota(w.stage)) return;
  }
  const Hold why = hold_of(spec, w, now_ns);
  hold(id, why, spec);
  w.hold = why;
  if (why == Hold::kBackoff) backoffs_.push_back(id);
  if (why != Hold::kNone) return;
  hold(id, w.aside, spec);
  enqueue(id);
  w.preemptor = spec.makes_room;
  if (!w.preemptor) return;
  room_makers_.insert(id);
  if (!ledger_.queue_of(w).spec.strict_fifo) lines_[w.queue].stick_again(id);
}

// ---- while it is kept ----

// Out of everything that knows it; whoever looks at it is told by the caller.
void Engine::take_out(WorkloadId id) {
  Workload& w = ledger_.workloads[id];
  if (holds_quota(w.stage)) {
    if (w.stage == Stage::kAdmitted && !w.pods_ready) --unready_;
    usage_.forget(id);
    ledger_.unseat(id);
  } else if (w.stage == Stage::kWaiting) {
    lines_[w.queue].unstick(id);
    lines_[w.queue].remove(id);
  }
  leave_family(id);
  std::erase(backoffs_, id);
  std::erase(reserved_, id);
  room_makers_.erase(id);
}

void Engine::leave_family(WorkloadId id) {
  const std::uint32_t family = ledger_.workloads[id].family;
  if (family == kNoId) return;
  std::erase(families_[family], id);
  if (!families_[family].empty()) return;
  std::erase_if(family_of_, [family](const auto& entry) { return entry.second == family; });
}

void Engine::put(WorkloadId id, const model::WorkloadSpec& spec, std::int64_t now_ns) {
  take_out(id);
  const Workload before = std::exchange(ledger_.workloads[id], {});
  take_in(id, spec, now_ns);
  const Workload& w = ledger_.workloads[id];
  if (holds_quota(before.stage)) {
    const bool keeps = holds_quota(w.stage) && w.queue == before.queue &&
                       std::all_of(before.uses.begin(), before.uses.end(), [&w](const Use& had) {
                         return std::any_of(w.uses.begin(), w.uses.end(), [&had](const Use& has) {
                           return has.cell == had.cell && has.amount >= had.amount;
                         });
                       });
    if (!keeps) left(before.queue, true);
  } else if (before.stage == Stage::kWaiting && before.form != w.form) {
    next_is_due(before.queue);
  }
  if (w.stage != Stage::kWaiting) return;
  if (!spec.replaces.empty()) return next_is_due(w.queue);  // it asks beside what another holds
  // Where it is parked with those that ask the same, it waits for what it was told.
  const bool same = before.stage == Stage::kWaiting && before.queue == w.queue &&
                    before.form == w.form && w.aside == Hold::kNone;
  if (!same) return;
  ledger_.workloads[id].reason = before.reason;
  ledger_.workloads[id].message = before.message;
}

void Engine::remove(WorkloadId id) {
  take_out(id);
  const Workload before = std::exchange(ledger_.workloads[id], {});
  ledger_.workloads[id].stage = Stage::kFinished;
  free_.push_back(id);
  const bool held = holds_quota(before.stage);
  if (held) {
    left(before.queue, true);
  } else if (before.stage == Stage::kWaiting) {
    next_is_due(before.queue);
  }
}

// It frees nothing; who is next has not been tried, and is told why it waits.
void Engine::next_is_due(QueueId queue) {
  if (lines_[queue].flush()) touch(ledger_.book.queue(queue).root);
}

std::vector<WorkloadId> Engine::take_touched(std::int64_t now_ns) {
  for (const WorkloadId id : backoffs_) {
    if (ledger_.workloads[id].requeue_at_ns <= now_ns) touched_.push_back(id);
  }
  return std::exchange(touched_, {});
}

std::int64_t Engine::backoff_ends_ns() const {
  std::int64_t out = std::numeric_limits<std::int64_t>::max();
  for (const WorkloadId id : backoffs_) out = std::min(out, ledger_.workloads[id].requeue_at_ns);
  return out;
}

void Engine::begin(std::int64_t now_ns) {
  for (const WorkloadId id : tried_) {
    Workload& w = ledger_.workloads[id];
    w.progress = {};
    w.migrating = false;
    w.preemptor = room_makers_.contains(id);
  }
  tried_.clear();
  touched_.clear();
  for (Line& line : lines_) line.unstick();
  for (const WorkloadId id : room_makers_) {
    const Workload& w = ledger_.workloads[id];
    if (w.stage == Stage::kWaiting && !ledger_.queue_of(w).spec.strict_fifo) {
      lines_[w.queue].stick_again(id);
    }
  }
  // As they come where all are added in the order of their names.
  const auto name_of = [this](WorkloadId id) {
    const std::string_view name = ledger_.workloads[id].name;
    const std::size_t slash = name.find('/');
    return std::pair(name.substr(0, slash), name.substr(slash + 1));
  };
  std::sort(reserved_.begin(), reserved_.end(),
            [&](WorkloadId a, WorkloadId b) { return name_of(a) < name_of(b); });
  standing_back_.clear();
  fruitless_ = 0;
  usage_.restart(now_ns);
}

// Its usage by the admission of its status; cells that no quota knows count nowhere.
void Engine::take_in_holder(WorkloadId id, const model::WorkloadSpec& spec) {
  Workload& w = ledger_.workloads[id];
  const QueueId queue = ledger_.book.find_queue(spec.admission->queue);
  if (queue == kNoId) return;
  w.queue = queue;
  w.reserved_ns = spec.reserved_ns;
  w.admission.resize(w.form->pod_sets.size());
  for (std::size_t i = 0; i < w.form->pod_sets.size(); ++i) {
    const auto& sets = spec.admission->pod_sets;
    const auto it = std::find_if(sets.begin(), sets.end(),
                                 [&](const auto& s) { return s.name == w.form->pod_sets[i].name; });
    if (it == sets.end()) continue;
    Choice& choice = w.admission[i];
    choice.count = it->count;
    choice.topology = it->topology;
    // Pods that are done free their part.
    const int left = std::min(it->count, w.form->pod_sets[i].count);
    for (const auto& [resource, flavor] : it->flavors) {
      const ResourceId r = ledger_.book.find_resource(resource);
      const FlavorId f = ledger_.book.find_flavor(flavor);
      if (r == kNoId || f == kNoId) continue;
      choice.flavors.emplace_back(r, f);
      const CellId cell = ledger_.book.find_cell(f, r);
      const auto used = it->usage.find(resource);
      if (cell == kNoId || used == it->usage.end()) continue;
      const std::int64_t amount =
          left == it->count || it->count == 0 ? used->second : used->second / it->count * left;
      add_use(w.uses, cell, amount);
    }
  }
  ledger_.seat(id);
  set_stage(id, spec.admitted ? Stage::kAdmitted : Stage::kReserved);
  w.started = spec.admitted;
  if (w.stage == Stage::kReserved) {
    for (std::string& check : checks_of(w)) {
      const auto state = spec.checks.find(check);
      const bool done = state != spec.checks.end() && state->second == model::CheckState::kReady;
      if (!done) w.checks.push_back(std::move(check));
    }
    w.unplaced = true;
    reserved_.push_back(id);
  }
  if (!spec.evicted.empty()) {
    set_stage(id, Stage::kEvicting);
    w.deactivated = !spec.active || spec.evicted.starts_with("Deactivated");
  }
  if (w.stage == Stage::kAdmitted && !w.pods_ready) ++unready_;
}

void Engine::enqueue(WorkloadId id) {
  Workload& w = ledger_.workloads[id];
  set_stage(id, Stage::kWaiting);
  lines_[w.queue].push(id);
  touch(ledger_.queue_of(w).root);
}

// Room appeared in the queue's tree, and on its nodes: everyone whom that may help is due again.
void Engine::left(QueueId queue, bool held) {
  const NodeId root = ledger_.book.queue(queue).root;
  if (held) ++generation_[root];
  for (const QueueId q : of_root_[root]) lines_[q].flush();
  if (ground_ != nullptr) flush_ground();
  touch(root);
}

void Engine::flush_ground() {
  for (QueueId q = 0; q < lines_.size(); ++q) {
    if (lines_[q].waits_for_ground() && lines_[q].flush()) touch(ledger_.book.queue(q).root);
  }
}

void Engine::flush() {
  for (QueueId q = 0; q < lines_.size(); ++q) {
    if (lines_[q].flush() || lines_[q].size() > 0) touch(ledger_.book.queue(q).root);
  }
}

void Engine::finish(WorkloadId id) {
  Workload& w = ledger_.workloads[id];
  if (w.stage == Stage::kFinished) return;
  const QueueId queue = w.queue;
  const bool held = holds_quota(w.stage);
  const bool known = w.queue != kNoId;
  if (w.stage == Stage::kAdmitted && !w.pods_ready) --unready_;
  if (held) {
    usage_.forget(id);
    ledger_.unseat(id);
    if (ground_ != nullptr) ground_->release(id);
  } else if (w.stage == Stage::kWaiting) {
    lines_[queue].unstick(id);
    lines_[queue].remove(id);
  }
  set_stage(id, Stage::kFinished);
  w.uses.clear();
  w.site.reset();
  w.form.reset();
  if (known) left(queue, held);
}

void Engine::evict(WorkloadId id) {
  Workload& w = ledger_.workloads[id];
  if (w.stage == Stage::kAdmitted && !w.pods_ready) --unready_;
  set_stage(id, Stage::kEvicting);
}

void Engine::depart(WorkloadId id, const Departure& departure) {
  evict(id);
  Workload& w = ledger_.workloads[id];
  w.deactivated = departure.deactivates;
  w.orders_anew = departure.orders_anew;
  w.requeue_at_ns = departure.requeue_at_ns;
  w.message = departure.reason + ": " + departure.message;
}

void Engine::gone(WorkloadId id, std::int64_t now_ns) {
  Workload& w = ledger_.workloads[id];
  BERTH_ASSERT(w.stage == Stage::kEvicting, "a workload that was told to leave");
  const QueueId queue = w.queue;
  ledger_.unseat(id);
  usage_.forget(id);
  if (ground_ != nullptr) ground_->release(id);
  w.uses.clear();
  w.admission.clear();
  w.site.reset();
  w.progress = {};
  w.checks.clear();
  w.started = w.unplaced = false;
  w.pods_ready = true;
  w.reason = NoReason::kPendingEvaluation;
  if (w.orders_anew) w.order_ns = now_ns;
  w.orders_anew = false;
  if (!by_priority_ && w.preempted_by != kNoId &&
      w.preempted_for == Cause::kInCohortReclaimWhileBorrowing) {
    w.order_ns = now_ns + kAfterReclaimNs;
  }
  w.queue = w.local == kNoId ? kNoId : ledger_.book.local(w.local).queue;
  if (w.aside == Hold::kCheckFailed) {  // an eviction asks its checks again
    const std::string_view ns = std::string_view(w.name).substr(0, w.name.find('/'));
    const bool match = w.queue == kNoId || ledger_.book.in_namespace(ledger_.queue_of(w), ns);
    w.aside = match ? Hold::kNone : Hold::kNamespace;
  }
  const auto held = [&](Hold why, NoReason reason) {
    set_stage(id, Stage::kHeld);
    w.hold = why;
    w.reason = reason;
  };
  if (w.deactivated) {
    held(Hold::kDeactivated, NoReason::kDeactivated);
  } else if (w.queue == kNoId) {
    held(w.local == kNoId ? Hold::kNoLocalQueue : Hold::kNoQueue, NoReason::kMisconfigured);
  } else if (ledger_.queue_of(w).inactive != Inactive::kNo) {
    held(Hold::kQueueInactive, NoReason::kOnHold);
  } else if (ledger_.book.local(w.local).spec.stop != model::StopPolicy::kNone) {
    held(Hold::kLocalStopped, NoReason::kOnHold);
  } else if (w.requeue_at_ns > now_ns) {
    held(Hold::kBackoff, NoReason::kOnHold);
    backoffs_.push_back(id);
  } else {
    enqueue(id);
  }
  left(queue, true);
}

// A head that may not be admitted, whatever room there is, waits aside.
bool Engine::sort_out(WorkloadId id, CycleResult& result) {
  Workload& w = ledger_.workloads[id];
  if (std::string why = outdone(id); !why.empty()) {
    w.reason = NoReason::kOnHold;
    w.message = std::move(why);
    lines_[w.queue].unstick(id);
    lines_[w.queue].park(id, false);
    result.changed = true;
    return true;
  }
  if (w.aside == Hold::kNone) return false;
  // In strict order it keeps its place, unless it is in the wrong queue altogether.
  if (ledger_.queue_of(w).spec.strict_fifo && w.aside != Hold::kNamespace) return true;
  lines_[w.queue].unstick(id);
  lines_[w.queue].park(id, false);
  result.changed = true;
  return true;
}

void Engine::ready(WorkloadId id) {
  Workload& w = ledger_.workloads[id];
  if (w.stage == Stage::kAdmitted && !w.pods_ready) --unready_;
  w.pods_ready = true;
}

void Engine::checks_done(WorkloadId id) {
  Workload& w = ledger_.workloads[id];
  w.checks.clear();
  if (w.stage != Stage::kReserved) return;
  set_stage(id, Stage::kAdmitted);
  if (!w.pods_ready) ++unready_;
  w.started = true;
  usage_.settle(id);
}

void Engine::wake(std::int64_t now_ns) {
  std::erase_if(backoffs_, [&](WorkloadId id) {
    Workload& w = ledger_.workloads[id];
    if (w.stage != Stage::kHeld || w.hold != Hold::kBackoff) return true;
    if (w.requeue_at_ns > now_ns) return false;
    w.reason = NoReason::kPendingEvaluation;
    w.message.clear();
    w.hold = Hold::kNone;
    enqueue(id);
    return true;
  });
}

std::string Engine::check() const {
  QuotaTree fresh = ledger_.book.tree();
  for (QueueId q = 0; q < ledger_.holders.size(); ++q) {
    for (const WorkloadId id : ledger_.holders[q]) {
      const Workload& w = ledger_.workloads[id];
      if (!holds_quota(w.stage)) return w.name + " is seated and holds nothing";
      for (const Use& use : w.uses) fresh.add(ledger_.book.queue(q).node, use.cell, use.amount);
    }
  }
  for (NodeId n = 0; n < fresh.size(); ++n) {
    for (CellId c = 0; c < fresh.cells(); ++c) {
      if (fresh.usage(n, c) != ledger_.tree.usage(n, c)) {
        return "usage of " + ledger_.book.node_name(n) + " does not add up";
      }
    }
  }
  return "";
}

}  // namespace berth::admit
