#include "decide/admit/preemptor.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace berth::admit {

// ---- what both families share ----

bool Preemptor::uses_cells(const Workload& w, std::span<const CellId> cells) const {
  return std::any_of(w.uses.begin(), w.uses.end(), [&](const Use& use) {
    return std::find(cells.begin(), cells.end(), use.cell) != cells.end();
  });
}

// Not above its own share in any of the cells.
bool Preemptor::within(NodeId n, std::span<const CellId> cells) const {
  return std::none_of(cells.begin(), cells.end(),
                      [&](CellId cell) { return ledger_.tree.borrows(n, cell); });
}

// Whether a goes before b: leaving already, of other queues, of the local queue that used most,
// of lower priority, the newest first.
bool Preemptor::before(const Workload& preemptor, WorkloadId left, WorkloadId right) const {
  const Workload& a = ledger_.workloads[left];
  const Workload& b = ledger_.workloads[right];
  const bool a_leaves = a.stage == Stage::kEvicting, b_leaves = b.stage == Stage::kEvicting;
  if (a_leaves != b_leaves) return a_leaves;
  const bool a_own = a.queue == preemptor.queue, b_own = b.queue == preemptor.queue;
  if (a_own != b_own) return b_own;
  if (a.queue == b.queue && a.local != b.local &&
      ledger_.queue_of(preemptor).spec.admission_fair_sharing &&
      ledger_.book.config().half_life_s) {
    const double a_used = a.local == kNoId ? 0 : ledger_.local_usage[a.local];
    const double b_used = b.local == kNoId ? 0 : ledger_.local_usage[b.local];
    if (a_used != b_used) return a_used > b_used;
  }
  if (policy_.victims != model::QueuePolicy::Victims::kLowestPriority) {
    const double a_worth = worth(a), b_worth = worth(b);
    if (a_worth != b_worth) return a_worth < b_worth;
  }
  if (a.priority() != b.priority()) return a.priority() < b.priority();
  if (a.reserved_ns != b.reserved_ns) return a.reserved_ns > b.reserved_ns;
  return a.uid < b.uid;
}

// Where local queues' usage counts, the order need not be one (it compares some pairs only): then
// by insertion, from the order of names.
template <class T, class IdOf>
void Preemptor::sort(const Workload& preemptor, std::vector<T>& list, const IdOf& id_of) const {
  const auto less = [&](const T& a, const T& b) { return before(preemptor, id_of(a), id_of(b)); };
  if (!ledger_.book.config().half_life_s) return std::sort(list.begin(), list.end(), less);
  std::sort(list.begin(), list.end(), [&](const T& a, const T& b) {
    return ledger_.workloads[id_of(a)].name < ledger_.workloads[id_of(b)].name;
  });
  for (std::size_t i = 1; i < list.size(); ++i) {
    for (std::size_t k = i; k > 0 && less(list[k], list[k - 1]); --k)
      std::swap(list[k], list[k - 1]);
  }
}

// Each queue's holders by themselves: among those of one queue the order is one.
std::vector<Preemptor::FairQueue> Preemptor::by_queue(const Workload& preemptor,
                                                      const std::vector<WorkloadId>& all) const {
  std::vector<FairQueue> out;
  for (const WorkloadId id : all) {
    const QueueId queue = ledger_.workloads[id].queue;
    auto it = std::find_if(out.begin(), out.end(), [&](const auto& q) { return q.queue == queue; });
    if (it == out.end()) it = out.insert(out.end(), FairQueue{.queue = queue, .left = {}});
    it->left.push_back(id);
  }
  for (FairQueue& queue : out) {
    std::sort(queue.left.begin(), queue.left.end(),
              [&](WorkloadId a, WorkloadId b) { return before(preemptor, a, b); });
  }
  return out;
}

bool Preemptor::may_take_own(const Workload& p, const Workload& c) const {
  switch (ledger_.queue_of(p).spec.within) {
    case model::PreemptWithin::kNever:
      return false;
    case model::PreemptWithin::kLowerPriority:
      return p.priority() > c.priority();
    case model::PreemptWithin::kLowerOrNewerEqualPriority:
      return p.priority() > c.priority() ||
             (p.priority() == c.priority() && p.order_ns < c.order_ns);
  }
  return false;
}

bool Preemptor::may_reclaim(const Workload& p, const Workload& c) const {
  switch (ledger_.queue_of(p).spec.reclaim) {
    case model::Reclaim::kNever:
      return false;
    case model::Reclaim::kLowerPriority:
      return p.priority() > c.priority();
    case model::Reclaim::kAny:
      return true;
  }
  return false;
}

bool Preemptor::eligible(const Request& request, WorkloadId holder) const {
  if (holder == request.id) return false;
  const Workload& c = ledger_.workloads[holder];
  if (!uses_cells(c, request.cells)) return false;
  if (std::find(absent_.begin(), absent_.end(), holder) != absent_.end()) return false;
  return !spared(request.id, holder);
}

bool Preemptor::spared(WorkloadId preemptor, WorkloadId holder) const {
  const Workload& h = ledger_.workloads[holder];
  if (!policy_.preemption) return true;
  if (h.stage == Stage::kEvicting) return false;  // leaves anyway
  if (policy_.min_runtime_ns > 0 && now_ns_ - h.reserved_ns < policy_.min_runtime_ns) return true;
  if (policy_.no_ping_pong && ledger_.workloads[preemptor].preempted_by == holder) return true;
  if (policy_.max_evictions_per_hour > 0) {
    constexpr std::int64_t kHour = 3'600'000'000'000;
    const auto recent = std::count_if(h.evictions_ns.begin(), h.evictions_ns.end(),
                                      [&](std::int64_t at) { return now_ns_ - at < kHour; });
    if (recent >= policy_.max_evictions_per_hour) return true;
  }
  if (ground_ != nullptr && ground_->stays(holder)) return true;
  return !budgets_allow_one_more({}, holder);
}

void Preemptor::at(std::int64_t now_ns) {
  now_ns_ = now_ns;
  leaving_.clear();
  if (!policy_.budgets || ground_ == nullptr) return;
  for (WorkloadId id = 0; id < ledger_.workloads.size(); ++id) {
    if (ledger_.workloads[id].stage == Stage::kEvicting) leaving_.push_back(id);
  }
}

bool Preemptor::budgets_allow(const std::vector<WorkloadId>& claimed,
                              const std::vector<Target>& targets) const {
  if (!policy_.budgets || ground_ == nullptr) return true;
  std::vector<WorkloadId> going = leaving_, these;
  const auto leaves = [this](WorkloadId id) {
    return ledger_.workloads[id].stage == Stage::kEvicting;
  };
  std::copy_if(claimed.begin(), claimed.end(), std::back_inserter(going),
               [&](WorkloadId id) { return !leaves(id); });
  for (const Target& target : targets) {
    if (!leaves(target.id)) these.push_back(target.id);
  }
  return these.empty() || ground_->budgets_allow(going, these);
}

// Several victims may be under one budget.
bool Preemptor::budgets_allow_one_more(const std::vector<Target>& before, WorkloadId next) const {
  std::vector<WorkloadId> claimed;
  for (const Target& target : before) claimed.push_back(target.id);
  return budgets_allow(claimed, {{next, Cause::kInClusterQueue}});
}

double Preemptor::worth(const Workload& w) const {
  double amount = 0;
  for (const Use& use : w.uses) {
    if (std::find(cells_.begin(), cells_.end(), use.cell) != cells_.end()) {
      amount += static_cast<double>(use.amount.value());
    }
  }
  if (policy_.victims == model::QueuePolicy::Victims::kFewestJobs) return -amount;
  return amount * static_cast<double>(std::max<std::int64_t>(0, now_ns_ - w.reserved_ns));
}

bool Preemptor::fits(const Request& request, bool borrowing) {
  const Workload& w = ledger_.workloads[request.id];
  if (!ledger_.fits(ledger_.queue_of(w).node, request.uses, borrowing)) return false;
  if (!on_ground_) return true;
  return ground_->place(request.id, w, *request.assignment, false).fits;
}

void Preemptor::away(WorkloadId id) {
  const Workload& w = ledger_.workloads[id];
  ledger_.drain(ledger_.queue_of(w).node, w.uses);
  if (on_ground_) ground_->take_away(id);
}

void Preemptor::back(WorkloadId id) {
  const Workload& w = ledger_.workloads[id];
  ledger_.fill(ledger_.queue_of(w).node, w.uses);
  if (on_ground_) ground_->bring_back(id);
}

// Those that turn out not to be needed stay, looked at from the last but one to the first.
void Preemptor::fill_back(const Request& request, bool borrowing, std::vector<Target>& targets) {
  for (std::size_t i = targets.size() - 1; i-- > 0;) {
    back(targets[i].id);
    if (fits(request, borrowing)) {
      targets[i] = targets.back();
      targets.pop_back();
    } else {
      away(targets[i].id);
    }
  }
}

std::vector<Target> Preemptor::targets(const Request& request) {
  on_ground_ = ground_ != nullptr && request.assignment != nullptr;
  cells_.assign(request.cells.begin(), request.cells.end());
  std::vector<Target> out = ledger_.book.config().fair_sharing ? fair(request) : classical(request);
  // The site of the final set: the trials above may have ended on another one.
  if (!out.empty() && on_ground_) {
    for (const Target& target : out) away(target.id);
    fits(request, true);
    for (std::size_t i = out.size(); i-- > 0;) back(out[i].id);
  }
  return out;
}

Mode Preemptor::possible(WorkloadId id, CellId cell, Amount amount, int& borrowing) {
  const Workload& w = ledger_.workloads[id];
  const NodeId node = ledger_.queue_of(w).node;
  const Use use{cell, amount};
  const std::vector<Target> found = targets({.id = id, .cells = {&cell, 1}, .uses = {&use, 1}});
  for (const Target& target : found) {
    const Workload& victim = ledger_.workloads[target.id];
    ledger_.drain(ledger_.queue_of(victim).node, victim.uses);
  }
  borrowing = ledger_.tree.reach(node, cell, amount).level;
  bool own = false;
  for (std::size_t i = found.size(); i-- > 0;) {
    const Workload& victim = ledger_.workloads[found[i].id];
    ledger_.fill(ledger_.queue_of(victim).node, victim.uses);
    own |= victim.queue == w.queue;
  }
  if (found.empty()) return Mode::kNoCandidates;
  return own ? Mode::kPreempt : Mode::kReclaim;
}

// ---- classical, hierarchical ----

Preemptor::Candidate Preemptor::classify(const Request& request, WorkloadId holder, NodeId below,
                                         bool advantage) const {
  const Workload& p = ledger_.workloads[request.id];
  const Workload& c = ledger_.workloads[holder];
  const model::QueueSpec& spec = ledger_.queue_of(p).spec;
  Candidate out{.id = holder, .cause = Cause::kInCohortReclamation, .below = below};
  if (advantage) return out;
  const bool above_threshold =
      spec.max_priority_threshold && c.priority() > *spec.max_priority_threshold;
  if (!spec.borrow_by_preemption || c.priority() >= p.priority() || above_threshold) {
    out.only_without_borrowing = true;
  } else {
    out.cause = Cause::kInCohortReclaimWhileBorrowing;
  }
  return out;
}

// Holders below `at`, except in the part `but`; nodes within their own share are left alone.
void Preemptor::collect_below(const Request& request, NodeId at, NodeId but, NodeId below,
                              bool advantage, Lists& lists) {
  for (const NodeId child : ledger_.book.children(at)) {
    if (child == but || within(child, request.cells)) continue;
    const NodeId side = below == kNoParent ? child : below;
    const QueueId queue = ledger_.book.queue_at(child);
    if (queue == kNoId) {
      collect_below(request, child, but, side, advantage, lists);
      continue;
    }
    const Workload& p = ledger_.workloads[request.id];
    for (const WorkloadId holder : ledger_.holders[queue]) {
      if (!may_reclaim(p, ledger_.workloads[holder]) || !eligible(request, holder)) continue;
      auto& list = advantage ? lists.hierarchy : lists.priority;
      list.push_back(classify(request, holder, side, advantage));
    }
  }
}

Preemptor::Lists Preemptor::collect(const Request& request) {
  const Workload& p = ledger_.workloads[request.id];
  const QuotaTree& tree = ledger_.tree;
  Lists lists;
  if (ledger_.queue_of(p).spec.within != model::PreemptWithin::kNever) {
    for (const WorkloadId holder : ledger_.holders[p.queue]) {
      if (may_take_own(p, ledger_.workloads[holder]) && eligible(request, holder)) {
        lists.same.push_back({.id = holder, .cause = Cause::kInClusterQueue});
      }
    }
  }
  if (ledger_.queue_of(p).spec.reclaim == model::Reclaim::kNever) return lists;
  std::vector<Use> left(request.uses.begin(), request.uses.end());
  const auto fits_in = [&](NodeId n) {  // and what is left goes up
    bool fits = true;
    for (Use& use : left) {
      fits &= tree.usage(n, use.cell) + use.amount <= tree.subtree(n, use.cell);
      const Amount own = std::max(Amount(0), tree.kept(n, use.cell) - tree.usage(n, use.cell));
      use.amount = std::max(Amount(0), use.amount - own);
    }
    return fits;
  };
  NodeId visited = ledger_.queue_of(p).node;
  bool advantage = fits_in(visited);
  while (tree.has_parent(visited)) {
    const NodeId at = tree.parent(visited);
    collect_below(request, at, visited, kNoParent, advantage, lists);
    advantage = fits_in(at) || advantage;
    visited = at;
  }
  return lists;
}

std::vector<Preemptor::Candidate> Preemptor::in_sequence(const Request& request,
                                                         Lists lists) const {
  const Workload& p = ledger_.workloads[request.id];
  std::vector<Candidate> out;
  for (auto* list : {&lists.hierarchy, &lists.priority, &lists.same}) {
    sort(p, *list, [](const Candidate& c) { return c.id; });
  }
  for (const bool leaving : {true, false}) {
    for (const auto* list : {&lists.hierarchy, &lists.priority, &lists.same}) {
      for (const Candidate& c : *list) {
        if ((ledger_.workloads[c.id].stage == Stage::kEvicting) == leaving) out.push_back(c);
      }
    }
  }
  return out;
}

// Its queue and every cohort up to the common ancestor are still above their share.
bool Preemptor::still_borrows(const Candidate& candidate, std::span<const CellId> cells) const {
  NodeId n = ledger_.queue_of(ledger_.workloads[candidate.id]).node;
  while (true) {
    if (within(n, cells)) return false;
    if (n == candidate.below) return true;
    n = ledger_.tree.parent(n);
  }
}

bool Preemptor::attempt(const Request& request, const std::vector<Candidate>& sequence,
                        bool borrowing, std::vector<Target>& targets) {
  for (const Candidate& candidate : sequence) {
    if (candidate.below != kNoParent) {
      if (candidate.only_without_borrowing && borrowing) continue;
      if (!still_borrows(candidate, request.cells)) continue;
    }
    if (!budgets_allow_one_more(targets, candidate.id)) continue;
    away(candidate.id);
    targets.push_back({candidate.id, candidate.cause});
    if (fits(request, borrowing)) {
      fill_back(request, borrowing, targets);
      for (std::size_t i = targets.size(); i-- > 0;) back(targets[i].id);
      return true;
    }
  }
  for (std::size_t i = targets.size(); i-- > 0;) back(targets[i].id);
  targets.clear();
  return false;
}

std::vector<Target> Preemptor::classical(const Request& request) {
  Lists lists = collect(request);
  const bool others = !lists.hierarchy.empty() || !lists.priority.empty();
  const bool hierarchy = !lists.hierarchy.empty();
  if (!others && lists.same.empty()) return {};
  const Workload& p = ledger_.workloads[request.id];
  const Queue& queue = ledger_.queue_of(p);
  const bool forbidden = !queue.spec.borrow_by_preemption;
  const bool under_nominal =
      std::all_of(request.cells.begin(), request.cells.end(), [&](CellId cell) {
        return ledger_.tree.usage(queue.node, cell) < ledger_.tree.nominal(queue.node, cell);
      });
  std::vector<bool> attempts;  // with borrowing or not
  if (!others || (forbidden && !under_nominal)) {
    attempts = {true};
  } else if (forbidden && !hierarchy) {
    attempts = {false, true};
  } else {
    attempts = {true, false};
  }
  if (std::find(attempts.begin(), attempts.end(), false) == attempts.end()) {
    for (auto* list : {&lists.hierarchy, &lists.priority}) {  // no attempt could take them
      std::erase_if(*list, [](const Candidate& c) { return c.only_without_borrowing; });
    }
  }
  const std::vector<Candidate> sequence = in_sequence(request, std::move(lists));
  std::vector<Target> targets;
  for (const bool borrowing : attempts) {
    if (attempt(request, sequence, borrowing, targets)) return targets;
  }
  return {};
}

}  // namespace berth::admit
