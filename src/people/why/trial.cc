#include "people/why/trial.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "model/amounts.h"

namespace berth::people {

namespace {

std::string spec_name(const model::PodSpec& pod) { return pod.ns + '/' + pod.name; }

// The workloads with the draft's changes.
std::vector<const model::WorkloadSpec*> workloads_with(
    const std::vector<const model::WorkloadSpec*>& workloads, const Draft& draft) {
  if (draft.workloads.empty() && draft.gone_workloads.empty()) return workloads;
  std::vector<const model::WorkloadSpec*> out;
  out.reserve(workloads.size() + draft.workloads.size());
  std::set<std::string_view> known;
  for (const model::WorkloadSpec* spec : workloads) {
    const std::string name = spec->ns + '/' + spec->name;
    if (draft.gone_workloads.contains(name)) continue;
    const auto changed = draft.workloads.find(name);
    out.push_back(changed == draft.workloads.end() ? spec : &changed->second);
    if (changed != draft.workloads.end()) known.insert(changed->first);
  }
  if (known.size() == draft.workloads.size()) return out;
  for (const auto& [name, spec] : draft.workloads) {
    if (!known.contains(name)) out.push_back(&spec);
  }
  std::stable_sort(out.begin(), out.end(), [](const auto* a, const auto* b) {
    return std::tie(a->ns, a->name) < std::tie(b->ns, b->name);
  });
  return out;
}

// Whether the pods of all that hold quota are said to be of queues.
bool all_marked(const std::vector<model::WorkloadSpec>& workloads,
                const decide::InputIndex& index) {
  const auto marked = [](const model::PodSpec* pod) {
    return pod == nullptr || pod->node_name.empty() || pod->queued;
  };
  return std::all_of(workloads.begin(), workloads.end(), [&](const model::WorkloadSpec& spec) {
    if (!spec.admission) return true;
    for (const model::PodSetSpec& set : spec.pod_sets) {
      for (const std::string& name : set.pods) {
        if (!marked(index.pod(name))) return false;
      }
    }
    const auto owned = index.running_of(spec.ns + '/' + spec.owner);
    return std::all_of(owned.begin(), owned.end(), marked);
  });
}

void apply_draft(const Draft& draft, model::SnapshotBuilder& builder) {
  for (const auto& [name, node] : draft.nodes) builder.upsert_node(node);
  for (const std::string& name : draft.gone_pods) builder.remove_pod(name);
  for (const std::string& name : draft.gone_gangs) builder.remove_gang(name);
  for (const auto& [name, gang] : draft.gangs) builder.upsert_gang(gang);
  for (const auto& [name, pod] : draft.pods) builder.upsert_pod(pod);
}

std::set<std::string> names_in(const Draft& draft, const Unit& unit) {
  std::set<std::string> names = draft.own_pods;
  for (const model::PodSpec* pod : unit.pending) {
    if (!draft.gone_pods.contains(spec_name(*pod))) names.insert(spec_name(*pod));
  }
  return names;
}

}  // namespace

Trials::Trials(const kinds::Inputs& inputs, const PlanOptions& options)
    : inputs_(inputs),
      options_(options),
      policy_(options.policy(inputs)),
      base_(schedule::keeps_apart(policy_.placement)),
      placer_(policy_.placement),
      alone_placer_(policy_.placement) {
  for (const model::NodeSpec& node : inputs.nodes) base_.upsert_node(node);
  for (const model::GangSpec& gang : inputs.gangs) base_.upsert_gang(gang);
  for (const model::PodSpec& pod : inputs.pods) base_.upsert_pod(pod);
  base_.set_budgets(inputs.budgets);
  base_.state();
  for (const model::NodeSpec& node : inputs.nodes) nodes_.insert(node.name);
  keeps_away_ = std::any_of(inputs.pods.begin(), inputs.pods.end(),
                            [](const model::PodSpec& pod) { return !pod.anti_affinity.empty(); });
  after_ = base_;
  if (!inputs.queues.queues.empty() || !inputs.queues.workloads.empty()) {
    index_.emplace(inputs.nodes, inputs.pods);
    marked_ = all_marked(inputs.queues.workloads, *index_);
    book_ = std::make_shared<const admit::Book>(inputs.queues);
    forms_ = std::make_shared<admit::Forms>(*book_, inputs.queues.workloads);
  }
  workloads_.reserve(inputs.queues.workloads.size());
  for (const model::WorkloadSpec& spec : inputs.queues.workloads) workloads_.push_back(&spec);
  decide();
}

Trials::Trials(const Trials& other, const Draft& draft)
    : inputs_(other.inputs_),
      options_(other.options_),
      policy_(other.policy_),
      base_(other.base_),
      nodes_(other.nodes_),
      keeps_away_(other.keeps_away_),
      workloads_(workloads_with(other.workloads_, draft)),
      index_(other.index_),
      marked_(other.marked_),
      book_(other.book_),
      forms_(other.forms_),
      placer_(policy_.placement),
      alone_placer_(policy_.placement) {
  apply_draft(draft, base_);
  base_.state();
  for (const auto& [name, pod] : draft.pods) keeps_away_ |= !pod.anti_affinity.empty();
  if (index_) {
    for (const std::string& name : draft.gone_pods) index_->remove_pod(name);
    for (const auto& [name, pod] : draft.pods) index_->put(pod);
  }
  after_ = base_;
  decide();
}

void Trials::decide() {
  const auto queues = queues_with({}, workloads_);
  run_ = decide::run(after_, placer_, options_.now_ns, options_.cycles.value_or(kMaxCycles), {},
                     queues ? &*queues : nullptr);
}

// nullopt: there are no queues.
std::optional<decide::QueueSetting> Trials::queues_with(
    const Draft& draft, std::vector<const model::WorkloadSpec*> workloads) const {
  if (!index_) return std::nullopt;
  decide::InputIndex index = *index_;
  for (const auto& [name, node] : draft.nodes) index.put(node);
  for (const std::string& name : draft.gone_pods) index.remove_pod(name);
  for (const auto& [name, pod] : draft.pods) index.put(pod);
  const model::QueueRules& rules = draft.rules(inputs_.queues);
  decide::QueueSetting out(rules, std::move(workloads), std::move(index));
  out.quota_only = options_.quota_only;
  out.policy = policy_.queues;
  out.marked = marked_;
  if (!draft.queues) {
    out.book = book_;
    out.forms = forms_;
  }
  return out;
}

TrialOutcome Trials::run(const Draft& draft, const Unit& unit, bool why) const {
  ++count_;
  model::SnapshotBuilder builder = base_;
  apply_draft(draft, builder);
  const std::set<std::string> names = names_in(draft, unit);
  const auto queues = queues_with(draft, workloads_with(workloads_, draft));
  std::set<std::string> told = names;
  told.insert(unit.decided);
  std::optional<schedule::Placer> fresh;
  if (!draft.nodes.empty()) fresh.emplace(policy_.placement);
  const decide::Run run = decide::run(
      builder, fresh ? *fresh : placer_, options_.now_ns, options_.cycles.value_or(kMaxCycles),
      {.certificates = false, .told = &told, .verdicts_only = !why}, queues ? &*queues : nullptr);
  return outcome_of(run.decision, unit, names);
}

void Trials::focus(const Unit& unit) {
  const bool queued = unit.queued != nullptr;
  const std::string whom =
      unit.kind + ' ' + unit.full() + ' ' + unit.decided + ' ' + unit.asked_pod;
  if (focused_ == whom) return;
  focused_ = whom;
  if (queued && !holders_) holders_.emplace(inputs_.queues, options_.now_ns);
  alone_ = queued ? base_ : after_;
  const std::set<std::string> names = names_in({}, unit);
  waits_ = run_.stable && !outcome_of(run_.decision, unit, names).starts;
  const model::ClusterState& state = queued ? base_.state() : after_.state();
  for (model::PodId id = 0; id < state.pod_ids(); ++id) {
    const model::PodEntry& pod = state.pod(id);
    const bool pending = pod.info && pod.slot == model::kPending && !pod.info->queued;
    if (pending && !names.contains(pod.info->name)) alone_.remove_pod(pod.info->name);
  }
  evicted_.clear();
  if (queued) {  // whom others send away makes room for it too
    for (const model::Eviction& eviction : run_.decision.evictions) {
      if (eviction.workload == unit.decided) continue;
      evicted_.insert(eviction.workload);
      for (const auto& [pod, node] : eviction.pods) alone_.remove_pod(pod);
    }
    for (const model::Preemption& victim : run_.decision.preemptions) alone_.remove_pod(victim.pod);
  }
  for (const model::PodSpec* pod : unit.pending) alone_.upsert_pod(*pod);
  alone_.state();
}

// What quick() would say of a draft that adds nodes for one pod, which it may change as well,
// without making the cluster anew: nothing else changes, so the pod starts where a new node takes
// it, or where it would without them. nullopt: not so plain.
std::optional<bool> Trials::by_new_nodes(const Draft& draft, const Unit& unit) const {
  const bool others_stay = draft.gone_pods.empty() && draft.own_pods.empty() &&
                           draft.gangs.empty() && draft.gone_gangs.empty() &&
                           draft.queues == nullptr;
  if (!waits_ || !others_stay || draft.nodes.empty() || inputs_.nodes.empty()) return std::nullopt;
  if (unit.form != Unit::Form::kPods || unit.pending.size() != 1) return std::nullopt;
  const auto changed = draft.pods.find(spec_name(*unit.pending.front()));
  if (draft.pods.size() > 1 || (!draft.pods.empty() && changed == draft.pods.end())) {
    return std::nullopt;
  }
  const model::PodSpec& pod = draft.pods.empty() ? *unit.pending.front() : changed->second;
  const bool looks_at_pods = keeps_away_ || !pod.affinity.empty() || !pod.anti_affinity.empty() ||
                             !pod.spread.empty() || !pod.gang.empty();
  if (looks_at_pods || !pod.node_name.empty()) return std::nullopt;
  model::SnapshotBuilder builder(schedule::keeps_apart(policy_.placement));
  for (const auto& [name, node] : draft.nodes) {
    if (nodes_.contains(name)) return std::nullopt;
    builder.upsert_node(node);
  }
  builder.upsert_pod(pod);
  const decide::Run run = decide::run(builder, policy_.placement, options_.now_ns, kMaxCycles,
                                      {.certificates = false}, nullptr);
  if (outcome_of(run.decision, unit, names_in(draft, unit)).starts) return true;
  if (draft.pods.empty()) return false;  // as it waits
  Draft rest;
  rest.pods = draft.pods;
  const bool starts = quick(rest, unit);
  --count_;  // one trial all the same
  return starts;
}

// builder: a copy of alone_.
TrialOutcome Trials::look(const Draft& draft, const Unit& unit, bool why,
                          model::SnapshotBuilder& builder) const {
  apply_draft(draft, builder);
  std::set<std::string> told = names_in(draft, unit);
  told.insert(unit.decided);
  std::optional<schedule::Placer> fresh;
  if (!draft.nodes.empty()) fresh.emplace(policy_.placement);
  schedule::Placer& placer = fresh ? *fresh : alone_placer_;
  const decide::Options how{.certificates = false, .told = &told, .verdicts_only = !why};
  if (unit.queued == nullptr) {
    const decide::Run run = decide::run(builder, placer, options_.now_ns, kMaxCycles, how, nullptr);
    return outcome_of(run.decision, unit, names_in(draft, unit));
  }
  const auto changed = draft.workloads.find(unit.decided);
  const model::WorkloadSpec& own =
      changed == draft.workloads.end() ? *unit.queued : changed->second;
  std::set<std::string> gone = draft.gone_workloads;
  gone.insert(evicted_.begin(), evicted_.end());
  const Holders::Few few = holders_->beside(own, draft.rules(inputs_.queues), gone);
  const auto queues = queues_with(draft, few.workloads);
  const decide::Run run =
      decide::run(builder, placer, options_.now_ns, kMaxCycles, how, queues ? &*queues : nullptr);
  return outcome_of(run.decision, unit, names_in(draft, unit));
}

bool Trials::quick(const Draft& draft, const Unit& unit) const {
  ++count_;
  if (unit.queued == nullptr) {
    if (const auto plain = by_new_nodes(draft, unit)) return *plain;
  }
  model::SnapshotBuilder builder = alone_;
  return look(draft, unit, false, builder).starts;
}

TrialOutcome Trials::alone(const Draft& draft, const Unit& unit,
                           model::SnapshotBuilder& after) const {
  ++count_;
  after = alone_;
  return look(draft, unit, true, after);
}

const model::Amounts& Trials::capacity() const {
  if (capacity_) return *capacity_;
  capacity_.emplace();
  for (const model::NodeSpec& node : inputs_.nodes) {
    for (const auto& [resource, amount] : model::amounts_of(node)) {
      std::int64_t& sum = (*capacity_)[resource];
      sum = std::min(std::numeric_limits<std::int64_t>::max() - sum, amount) + sum;
    }
  }
  return *capacity_;
}

TrialOutcome outcome_of(const model::Decision& decision, const Unit& unit,
                        const std::set<std::string>& names) {
  TrialOutcome out;
  bool seen = false, waits = false;
  const auto ours = [&unit, &names](const model::Outcome& outcome) {
    if (unit.form == Unit::Form::kQueued) return outcome.queued && outcome.workload == unit.decided;
    if (unit.form == Unit::Form::kGang) {
      return !outcome.queued && outcome.gang && outcome.workload == unit.decided;
    }
    return !outcome.queued && !outcome.gang && names.contains(outcome.workload);
  };
  for (const model::Outcome& outcome : decision.outcomes) {
    if (!ours(outcome)) continue;
    seen = true;
    if (outcome.verdict == model::Verdict::kPlaced) {
      out.placed += std::max(1, outcome.placed);
      continue;
    }
    const bool asked = !unit.asked_pod.empty() && outcome.workload == unit.asked_pod;
    if (!waits || asked) out.no = outcome;
    waits = true;
  }
  for (const model::Preemption& victim : decision.preemptions) {
    out.victims +=
        (!unit.decided.empty() && victim.by == unit.decided) || names.contains(victim.by) ? 1 : 0;
  }
  for (const model::Eviction& eviction : decision.evictions) {
    if (!unit.decided.empty() && eviction.by == unit.decided) {
      out.victims += static_cast<int>(std::max<std::size_t>(1, eviction.pods.size()));
    }
  }
  for (const model::Placement& placement : decision.placements) {
    if (!out.node.empty()) break;
    if ((!unit.decided.empty() && placement.gang == unit.decided) || names.contains(placement.pod))
      out.node = placement.node;
  }
  out.starts =
      seen && !waits &&
      (unit.form != Unit::Form::kPods || static_cast<std::size_t>(out.placed) >= names.size());
  return out;
}

}  // namespace berth::people
