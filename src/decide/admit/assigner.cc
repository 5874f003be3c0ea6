#include "decide/admit/assigner.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/amounts.h"

namespace berth::admit {

namespace {

std::string show_amount(std::string_view resource, Amount amount) {
  return model::show_amount(resource, amount.value());
}

bool viable(Mode mode) { return mode >= Mode::kPreempt; }

// Whether a is the better of two standings, by the queue's preference.
template <class Standing>
bool preferred(const Standing& a, const Standing& b, bool less_borrowing) {
  if (a.mode == Mode::kNoFit) return false;
  if (b.mode == Mode::kNoFit) return true;
  if (viable(a.mode) != viable(b.mode)) return viable(a.mode);
  if (less_borrowing && a.borrowing != b.borrowing) return a.borrowing < b.borrowing;
  if (a.mode != b.mode) return a.mode > b.mode;
  return a.borrowing < b.borrowing;
}

template <class Standing>
bool try_next_flavor(const Standing& s, const model::QueueSpec& spec) {
  if (!viable(s.mode)) return true;
  if (s.mode != Mode::kFit && !spec.preempt_stops_search) return true;
  return s.borrowing > 0 && !spec.borrow_stops_search;
}

Amount used_in(const std::vector<Use>& uses, CellId cell) {
  for (const Use& use : uses) {
    if (use.cell == cell) return use.amount;
  }
  return 0;
}

}  // namespace

void Assigner::Notes::add(NoReason why, std::string text) {
  if (reason == NoReason::kNone || why < reason) reason = why;
  if (on && !text.empty()) texts.push_back(std::move(text));
}

// What the pods of a unit ask for together, by resource; undeclared: one that no quota covers.
std::vector<Assigner::Need> Assigner::needs_of(const Workload& w, std::uint32_t unit,
                                               std::span<const int> counts,
                                               std::string& undeclared) const {
  const Queue& queue = ledger_.queue_of(w);
  std::vector<Need> out;
  const auto add = [&](ResourceId resource, Amount amount) {
    for (Need& need : out) {
      if (need.resource == resource) {
        need.amount += amount;
        return;
      }
    }
    out.push_back({resource, amount});
  };
  const bool ignore = ledger_.book.config().ignore_undeclared;
  for (const std::uint32_t i : w.form->units[unit]) {
    const PodSet& set = w.form->pod_sets[i];
    const int count = counts.empty() ? set.count : counts[i];
    for (const Ask& ask : set.asks) {
      const bool known = ask.resource != kNoId && queue.place[ask.resource].first != kNoId;
      if (known) {
        std::int64_t all = 0;
        const bool over = __builtin_mul_overflow(ask.amount, std::int64_t{count}, &all);
        add(ask.resource, over ? Amount(INT64_MAX - 1) : Amount(all));
      } else if (!ignore && undeclared.empty() && count > 0 && ask.amount > 0) {
        undeclared = ask.resource == kNoId ? ask.name : ledger_.book.resource(ask.resource);
      }
    }
    if (queue.covers_pods) add(ledger_.book.find_resource("pods"), count);
  }
  std::sort(out.begin(), out.end(),
            [](const Need& a, const Need& b) { return a.resource < b.resource; });
  return out;
}

Assigner::Standing Assigner::judge(const Unit& unit, const Group& group, const GroupFlavor& flavor,
                                   const Need& need, Notes& notes) {
  const QuotaTree& tree = ledger_.tree;
  const NodeId node = unit.queue.node;
  const CellId cell = flavor.cells[unit.queue.place[need.resource].second];
  const Amount before = used_in(unit.assumed, cell);
  const Amount wanted = before + need.amount;
  const std::string& resource = ledger_.book.resource(need.resource);
  const std::string& flavor_name = ledger_.book.flavor(flavor.flavor).name;
  (void)group;
  const Amount most = tree.potential(node, cell);
  if (wanted > most) {
    notes.add(NoReason::kExceedsMaxQuota,
              !notes.on
                  ? ""
                  : fmt::format("insufficient quota for {} in flavor {}, previously "
                                "considered podsets requests ({}) + current podset request "
                                "({}) > maximum capacity ({})",
                                resource, flavor_name, show_amount(resource, before),
                                show_amount(resource, need.amount), show_amount(resource, most)));
    return {};
  }
  const Reach reach = tree.reach(node, cell, wanted);
  const Amount available = tree.available(node, cell);
  if (wanted <= available) return {Mode::kFit, reach.level};
  notes.add(NoReason::kWaitingForQuota,
            !notes.on
                ? ""
                : fmt::format("insufficient unused quota for {} in flavor {}, {} more needed",
                              resource, flavor_name, show_amount(resource, wanted - available)));
  const model::QueueSpec& spec = unit.queue.spec;
  const bool fair = ledger_.book.config().fair_sharing;
  const bool while_borrowing =
      fair ? spec.reclaim != model::Reclaim::kNever : spec.borrow_by_preemption;
  if (tree.nominal(node, cell) < wanted && !reach.inside && !while_borrowing) return {};
  Standing out{Mode::kNoFit, reach.level};
  const auto id = static_cast<WorkloadId>(&unit.workload - ledger_.workloads.data());
  out.mode = preemptor_.possible(id, cell, wanted, out.borrowing);
  return out;
}

bool Assigner::pinned_elsewhere(const Unit& unit, const Group& group,
                                const GroupFlavor& flavor) const {
  if (unit.options.pinned == nullptr) return false;
  const auto& sets = unit.options.pinned->pod_sets;
  for (const std::uint32_t i : unit.workload.form->units[unit.number]) {
    if (i >= sets.size()) return true;
    for (const auto& [resource, chosen] : sets[i].flavors) {
      if (std::find(group.resources.begin(), group.resources.end(), resource) !=
          group.resources.end()) {
        return chosen != flavor.flavor;
      }
    }
  }
  return false;
}

Assigner::Pick Assigner::find_flavor(const Unit& unit, const Group& group,
                                     std::span<const Need> needs, int& last, Notes& notes) {
  const model::QueueSpec& spec = unit.queue.spec;
  Pick best;
  int at = last + 1;
  const int size = static_cast<int>(group.flavors.size());
  last = -1;
  for (; at < size; ++at) {
    const GroupFlavor& flavor = group.flavors[static_cast<std::size_t>(at)];
    if (pinned_elsewhere(unit, group, flavor)) continue;
    const Form& form = *unit.workload.form;
    const Match found =
        match(ledger_.book, form, unit.number, flavor.flavor, unit.queue.all_topology);
    if (found != Match::kYes) {
      notes.add(NoReason::kNoMatchingFlavor,
                !notes.on
                    ? ""
                    : describe_mismatch(ledger_.book, form, unit.number, flavor.flavor, found));
      continue;
    }
    Pick pick{.flavor = &flavor, .standing = {Mode::kFit, 0}, .by_need = {}};
    Notes of_flavor{.on = notes.on, .reason = {}, .texts = {}};
    NoReason worst = NoReason::kNone;
    for (const Need& need : needs) {
      of_flavor.reason = NoReason::kNone;
      const Standing one = judge(unit, group, flavor, need, of_flavor);
      if (one.mode != Mode::kFit) worst = std::max(worst, of_flavor.reason);
      pick.by_need.push_back(one);
      if (preferred(pick.standing, one, spec.prefer_less_borrowing)) pick.standing = one;
    }
    if (worst != NoReason::kNone) notes.add(worst, "");
    for (auto& text : of_flavor.texts) notes.texts.push_back(std::move(text));
    if (!try_next_flavor(pick.standing, spec)) {
      if (at + 1 < size) last = at;
      return pick;
    }
    if (preferred(pick.standing, best.standing, spec.prefer_less_borrowing)) best = std::move(pick);
  }
  return best;
}

void Assigner::take(const Unit& unit, const Group& group, std::span<const Need> needs,
                    const Pick& pick, Assignment& out) const {
  const Form& form = *unit.workload.form;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const ResourceId resource = needs[i].resource;
    const CellId cell = pick.flavor->cells[unit.queue.place[resource].second];
    add_use(out.uses, cell, needs[i].amount);
    const Standing& standing = pick.by_need[i];
    out.borrowing = std::max(out.borrowing, standing.borrowing);
    if (standing.mode != Mode::kFit) {
      out.mode = std::min(out.mode, Mode::kPreempt);
      if (std::find(out.preempting.begin(), out.preempting.end(), cell) == out.preempting.end()) {
        out.preempting.push_back(cell);
      }
    }
    for (const std::uint32_t set : form.units[unit.number]) {
      const auto& asks = form.pod_sets[set].asks;
      const bool pods = unit.queue.covers_pods && ledger_.book.resource(resource) == "pods";
      if (pods || std::any_of(asks.begin(), asks.end(),
                              [&](const Ask& ask) { return ask.resource == resource; })) {
        out.pod_sets[set].flavors.emplace_back(resource, pick.flavor->flavor);
      }
    }
  }
  (void)group;
}

bool Assigner::assign_unit(const Unit& unit, Assignment& out) {
  const Workload& w = unit.workload;
  std::string undeclared;
  const std::vector<Need> needs = needs_of(w, unit.number, unit.options.counts, undeclared);
  const auto fail = [&](NoReason reason, const std::string& texts) {
    out.mode = Mode::kNoFit;
    out.reason = std::max(out.reason, reason);
    out.uses.clear();
    if (unit.options.why) {
      const auto& set = w.form->pod_sets[w.form->units[unit.number].front()];
      if (!out.message.empty()) out.message += "; ";
      out.message += "couldn't assign flavors to pod set " + set.name + ": " + texts;
    }
    return false;
  };
  if (!undeclared.empty()) {
    return fail(NoReason::kNoMatchingFlavor,
                "resource " + undeclared + " unavailable in ClusterQueue");
  }
  const std::size_t groups = unit.queue.groups.size();
  for (std::size_t g = 0; g < groups; ++g) {
    std::vector<Need> in_group;
    for (const Need& need : needs) {
      if (unit.queue.place[need.resource].first == g) in_group.push_back(need);
    }
    if (in_group.empty()) continue;
    Notes notes{.on = unit.options.why, .reason = {}, .texts = {}};
    const std::size_t key = unit.number * groups + g;
    int last = -1;
    if (unit.options.from != nullptr && key < unit.options.from->tried.size()) {
      last = unit.options.from->tried[key];
    }
    const Pick pick = find_flavor(unit, unit.queue.groups[g], in_group, last, notes);
    out.progress.tried[key] = last;
    std::sort(notes.texts.begin(), notes.texts.end());
    notes.texts.erase(std::unique(notes.texts.begin(), notes.texts.end()), notes.texts.end());
    if (pick.flavor == nullptr)
      return fail(notes.reason, fmt::format("{}", fmt::join(notes.texts, ", ")));
    take(unit, unit.queue.groups[g], in_group, pick, out);
    if (pick.standing.mode != Mode::kFit) {
      out.reason = std::max(out.reason, notes.reason);
      if (unit.options.why) {
        const auto& set = w.form->pod_sets[w.form->units[unit.number].front()];
        if (!out.message.empty()) out.message += "; ";
        out.message += fmt::format("couldn't assign flavors to pod set {}: {}", set.name,
                                   fmt::join(notes.texts, ", "));
      }
    }
  }
  return true;
}

Assignment Assigner::assign(WorkloadId id, const Options& options) {
  const Workload& w = ledger_.workloads[id];
  const Queue& queue = ledger_.queue_of(w);
  const Form& form = *w.form;
  Assignment out;
  out.progress.tried.assign(form.units.size() * queue.groups.size(), -1);
  out.pod_sets.resize(form.pod_sets.size());
  for (std::size_t i = 0; i < form.pod_sets.size(); ++i) {
    out.pod_sets[i].count = options.counts.empty() ? form.pod_sets[i].count : options.counts[i];
  }
  std::vector<Use> assumed;
  for (std::uint32_t unit = 0; unit < form.units.size(); ++unit) {
    assumed = out.uses;
    if (!assign_unit({w, queue, unit, options, assumed}, out)) return out;
  }
  return out;
}

}  // namespace berth::admit
