// Workloads that stand for one another: slices of an elastic job, variants for several flavors, and
// holders whose admission is completed later.
#include <algorithm>

#include "decide/admit/engine.h"

namespace berth::admit {

// ---- holders that are not admitted yet ----

bool Engine::delays(QueueId queue, const std::vector<Choice>& pod_sets) const {
  const Queue& q = ledger_.book.queue(queue);
  for (std::size_t i = 0; i < q.spec.checks.size(); ++i) {
    if (!q.check_delays[i]) continue;
    const auto& flavors = q.spec.checks[i].flavors;
    if (flavors.empty()) return true;
    for (const Choice& choice : pod_sets) {
      for (const auto& [resource, flavor] : choice.flavors) {
        const std::string& chosen = ledger_.book.flavor(flavor).name;
        if (std::find(flavors.begin(), flavors.end(), chosen) != flavors.end()) return true;
      }
    }
  }
  return false;
}

std::vector<std::string> Engine::checks_of(const Workload& w) const {
  std::vector<std::string> out;
  for (const auto& check : ledger_.queue_of(w).spec.checks) {
    bool applies = check.flavors.empty();
    for (const Choice& choice : w.admission) {
      for (const auto& [resource, flavor] : choice.flavors) {
        applies |= std::find(check.flavors.begin(), check.flavors.end(),
                             ledger_.book.flavor(flavor).name) != check.flavors.end();
      }
    }
    if (applies) out.push_back(check.name);
  }
  return out;
}

// The second pass: checks are done, and what has no place yet gets one.
void Engine::settle_reserved(CycleResult& result) {
  std::erase_if(reserved_, [&](WorkloadId id) {
    Workload& w = ledger_.workloads[id];
    if (w.stage != Stage::kReserved) return true;
    if (!w.checks.empty()) return false;
    if (ground_ != nullptr && w.unplaced) {
      Assignment assignment;
      assignment.pod_sets = w.admission;
      assignment.uses = w.uses;
      Ground::Answer answer = ground_->settle(id, w, assignment, tells(w));
      if (!answer.fits) {
        w.reason = answer.topology ? NoReason::kTopologyPlacementFailed : NoReason::kNodesDoNotFit;
        w.message = std::move(answer.message);
        return false;
      }
      w.admission = std::move(assignment.pod_sets);
    }
    w.unplaced = false;
    w.reason = NoReason::kNone;
    w.message.clear();
    checks_done(id);
    result.settled.push_back(id);
    result.changed = true;
    return true;
  });
}

// ---- slices ----

Engine::OutOfTheWay::OutOfTheWay(Ledger& ledger, WorkloadId old) : ledger_(ledger), old_(old) {
  if (old_ == kNoId) return;
  const Workload& w = ledger_.workloads[old_];
  ledger_.drain(ledger_.queue_of(w).node, w.uses);
}

Engine::OutOfTheWay::~OutOfTheWay() {
  if (old_ == kNoId) return;
  const Workload& w = ledger_.workloads[old_];
  ledger_.fill(ledger_.queue_of(w).node, w.uses);
}

void Engine::grows(WorkloadId fresh, WorkloadId old) {
  Workload& w = ledger_.workloads[fresh];
  Workload& before = ledger_.workloads[old];
  if (fresh == old || before.stage == Stage::kFinished) return;
  w.replaces = old;
  if (before.stage != Stage::kWaiting || before.queue != w.queue) return;
  // It holds nothing: the new one alone is decided.
  lines_[before.queue].unstick(old);
  lines_[before.queue].remove(old);
  set_stage(old, Stage::kHeld);
  before.hold = Hold::kReplaced;
  before.reason = NoReason::kOnHold;
  before.message = "a newer slice of it, " + w.name + ", waits instead";
}

WorkloadId Engine::old_slice(WorkloadId id) const {
  const Workload& w = ledger_.workloads[id];
  if (w.replaces == kNoId) return kNoId;
  const Workload& old = ledger_.workloads[w.replaces];
  const bool holds =
      (old.stage == Stage::kReserved && !old.unplaced) || old.stage == Stage::kAdmitted;
  return holds && old.queue == w.queue ? w.replaces : kNoId;
}

// The flavors of the old slice, for the pod sets of the same names.
Assignment Engine::pinned_to(WorkloadId old, const Form& form) const {
  const Workload& before = ledger_.workloads[old];
  Assignment out;
  out.pod_sets.resize(form.pod_sets.size());
  for (std::size_t i = 0; i < form.pod_sets.size(); ++i) {
    for (std::size_t j = 0; j < before.form->pod_sets.size(); ++j) {
      if (before.form->pod_sets[j].name != form.pod_sets[i].name) continue;
      out.pod_sets[i].flavors = before.admission[j].flavors;
    }
  }
  return out;
}

void Engine::set_beyond(Entry& entry) const {
  entry.beyond.clear();
  for (const Use& use : entry.assignment.uses) {
    Amount more = use.amount;
    for (const Use& had : ledger_.workloads[entry.old].uses) {
      if (had.cell == use.cell) more -= had.amount;
    }
    if (more > Amount(0)) entry.beyond.push_back({use.cell, more});
  }
}

void Engine::take_over(const Entry& entry, CycleResult& result) {
  if (ground_ != nullptr) ground_->inherit(entry.id, entry.old);
  // It goes on where the old one was checked.
  ledger_.workloads[entry.id].checks = ledger_.workloads[entry.old].checks;
  finish(entry.old);
  result.replaced.emplace_back(entry.old, entry.id);
}

// ---- variants ----

void Engine::join_family(WorkloadId id, const model::WorkloadSpec& spec) {
  Workload& w = ledger_.workloads[id];
  const auto [it, fresh] =
      family_of_.emplace(spec.variant_of, static_cast<std::uint32_t>(families_.size()));
  if (fresh) families_.emplace_back();
  w.family = it->second;
  families_[w.family].push_back(id);
  if (w.queue == kNoId || spec.allowed_flavors.empty()) return;
  for (const Group& group : ledger_.queue_of(w).groups) {
    for (std::uint32_t i = 0; i < group.flavors.size(); ++i) {
      const std::string& flavor = ledger_.book.flavor(group.flavors[i].flavor).name;
      if (flavor == spec.allowed_flavors.front()) w.rank = i;
    }
  }
}

WorkloadId Engine::running_sibling(WorkloadId id) const {
  const Workload& w = ledger_.workloads[id];
  if (w.family == kNoId) return kNoId;
  for (const WorkloadId other : families_[w.family]) {
    if (other != id && holds_quota(ledger_.workloads[other].stage)) return other;
  }
  return kNoId;
}

std::string Engine::outdone(WorkloadId id) const {
  const Workload& w = ledger_.workloads[id];
  if (w.family == kNoId) return "";
  for (const WorkloadId other : families_[w.family]) {
    const Workload& sibling = ledger_.workloads[other];
    if (other != id && sibling.migrating && sibling.rank < w.rank) {
      return "its variant " + sibling.name + " moves to a better flavor";
    }
  }
  const WorkloadId running = running_sibling(id);
  if (running == kNoId) return "";
  const Workload& sibling = ledger_.workloads[running];
  const model::QueueSpec& spec = ledger_.queue_of(w).spec;
  const std::string it_runs = "its variant " + sibling.name + " is admitted";
  if (spec.retain_first) return it_runs + " and stays where it is (RetainFirstAdmission)";
  if (w.rank >= sibling.rank) return it_runs + " on a flavor that is as good or better";
  if (spec.last_acceptable.empty()) return "";
  for (const Group& group : ledger_.queue_of(w).groups) {
    for (std::uint32_t i = 0; i < group.flavors.size(); ++i) {
      const std::string& flavor = ledger_.book.flavor(group.flavors[i].flavor).name;
      if (flavor == spec.last_acceptable && w.rank > i) {
        return it_runs + " and moves to " + flavor + " or better only";
      }
    }
  }
  return "";
}

// Of the variants that wait only that of the best flavor makes room, and none while one runs.
bool Engine::may_preempt(WorkloadId id) const {
  const Workload& w = ledger_.workloads[id];
  if (w.family == kNoId) return true;
  if (running_sibling(id) != kNoId) return false;
  return std::none_of(families_[w.family].begin(), families_[w.family].end(), [&](WorkloadId o) {
    const Workload& other = ledger_.workloads[o];
    return other.stage == Stage::kWaiting && other.rank < w.rank &&
           other.reason != NoReason::kNoMatchingFlavor &&
           other.reason != NoReason::kExceedsMaxQuota;
  });
}

// There is room on a better flavor: the variant that runs leaves for it.
void Engine::migrate(Entry& entry, WorkloadId sibling, CycleResult& result) {
  assume(entry.queue, entry.charged());
  if (ground_ != nullptr && !entry.assignment.delayed) {
    ++puts_;
    ground_->put(entry.id, entry.assignment, false);
  }
  Workload& other = ledger_.workloads[sibling];
  if (other.stage != Stage::kEvicting) {
    evict(sibling);
    result.evicted.push_back({sibling, entry.id, Cause::kFlavorMigration});
    result.changed = true;
  }
  requeue(entry, Requeue::kPendingPreemption, NoReason::kWaitingForPreemptedWorkloads,
          "its variant " + other.name + " leaves first", result);
  ledger_.workloads[entry.id].migrating = true;
}

}  // namespace berth::admit
