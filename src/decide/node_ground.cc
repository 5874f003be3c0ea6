#include "decide/node_ground.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "model/amounts.h"

namespace berth::decide {

using admit::Assignment;
using admit::Choice;
using admit::WorkloadId;
using model::PodId;
using schedule::Reservation;
using schedule::TopologyTree;

NodeGround::NodeGround(const Setting& s)
    : builder_(s.builder),
      placer_(s.placer),
      book_(s.book),
      index_(s.index),
      topology_only_(s.topology_only),
      marked_(s.marked) {
  for (admit::FlavorId f = 0; f < book_.flavors().size(); ++f) {
    has_topologies_ |= book_.topology_of(f) != nullptr && !book_.flavor(f).topology.empty();
  }
}

NodeGround::~NodeGround() = default;

namespace {

// What is copied for each pod that is made of it.
std::size_t words_of(const model::PodSpec& pod) {
  return 1 + pod.labels.size() + pod.tolerations.size() + pod.node_selector.size() +
         pod.required_nodes.size() + pod.preferred_nodes.size() + pod.affinity.size() +
         pod.anti_affinity.size() + pod.preferred_affinity.size() +
         pod.preferred_anti_affinity.size() + pod.spread.size();
}

}  // namespace

// ---- trials ----

admit::Ground::Answer NodeGround::place(WorkloadId id, const admit::Workload& workload,
                                        Assignment& assignment, bool why) {
  if (stale_) recount();
  Known& known = known_.at(id);
  Answer answer;
  auto site = std::make_shared<Site>();
  const Known* old = old_of(known);  // its pods stay: the rest is placed
  Assignment part;
  if (old != nullptr) {
    part = assignment;
    less_old(*old, known, part);
  }
  Assignment& wanted = old != nullptr ? part : assignment;
  if (!has_slots(id, workload, wanted, false, answer)) return answer;
  answer.fits = place_topology(known, workload, wanted, false, why, *site, answer);
  if (answer.fits && !topology_only_) {
    answer.fits = place_pods(id, workload, wanted, *site, answer);
    if (!answer.fits && why) refuse_pods(id, workload, wanted, answer);
  }
  if (answer.fits && old != nullptr) plus_old(*old, known, part, assignment);
  for (std::size_t i = site->charges.size(); i-- > 0;) charge(site->charges[i], false);
  if (answer.fits) {
    site->serial = known.serial;
    assignment.site = std::move(site);
    refusals_.erase(id);
  }
  return answer;
}

bool NodeGround::ever(WorkloadId id, const admit::Workload& workload, const Assignment& assignment,
                      bool why, Answer& answer) {
  if (stale_) recount();
  Known& known = known_.at(id);
  Site site;
  Assignment trial = assignment;
  const Known* old = old_of(known);
  if (old != nullptr) less_old(*old, known, trial);
  if (!has_slots(id, workload, trial, true, answer)) return false;
  if (!place_topology(known, workload, trial, true, why, site, answer)) return false;
  if (topology_only_) return true;
  // What fits the empty nodes does so for all of the form: no pods are made to see it again.
  const std::pair form(workload.form, old == nullptr ? key_of(trial) : std::string());
  if (old == nullptr && fits_empty_.contains(form)) return true;
  make_pods(id, trial);
  const schedule::Workload rest = rest_of(known, overlay(), workload, trial);
  if (rest.pending.empty() || !schedule::never_fits(*overlay_, rest)) {
    if (old == nullptr) fits_empty_.insert(form);
    return true;
  }
  if (why) refuse_pods(id, workload, trial, answer);
  answer.never = true;
  return false;
}

// Whether the pods can be looked at one by one: nodes have as many slots for them, or have them
// left, and they are not too long. Anybody may ask for more pods than there will ever be room for:
// none is made to see that.
bool NodeGround::has_slots(WorkloadId id, const admit::Workload& workload,
                           const Assignment& assignment, bool empty, Answer& answer) {
  if (topology_only_) return true;
  std::int64_t wanted = 0, slots = 0;
  std::size_t words = 0;
  for (std::size_t i = 0; i < assignment.pod_sets.size(); ++i) {
    const int count = std::max(0, assignment.pod_sets[i].count);
    wanted += count;
    words += static_cast<std::size_t>(count) * words_of(*known_.at(id).spec->pod_sets[i].pod);
  }
  if (wanted <= kFewPods) return true;
  model::Outcome no;
  if (words > kMostWords) {
    no.verdict = model::Verdict::kNever;
    no.reason = model::Reason::kTooManyRules;
    no.message = fmt::format(
        "its {} pods have {} labels, tolerations and rules together, of which {} are looked at: "
        "shorten its template, or ask for fewer pods",
        wanted, words, kMostWords);
  } else {
    const model::ClusterState& state = empty ? builder_.state() : overlay();
    for (std::size_t i = 0; i < state.nodes(); ++i) {
      slots += empty ? state.info(i).pods : std::max(0, state.node(i).pods);
    }
    if (wanted <= slots) return true;
    no.verdict = empty ? model::Verdict::kNever : model::Verdict::kWait;
    no.reason = empty ? model::Reason::kNeverFits : model::Reason::kTooManyPods;
    no.message = fmt::format("its {} pods are more than the {} that {} nodes {}", wanted, slots,
                             state.nodes(), empty ? "take in all" : "have room for now");
  }
  no.workload = workload.name;
  no.pods = static_cast<int>(wanted);
  answer.never = no.verdict == model::Verdict::kNever;
  answer.message = no.message;
  refusals_.insert_or_assign(id, std::move(no));
  return false;
}

void NodeGround::take_away(WorkloadId id) {
  Known& known = seen(id);
  if (stale_) recount();
  away_.push_back(id);
  for (const Charge& c : known.held.charges) charge(c, false);
  if (!overlay_) return;
  for (const auto& step : known.held.pods) overlay_->unbind(step.id);
}

void NodeGround::bring_back(WorkloadId id) {
  Known& known = known_.at(id);
  std::erase(away_, id);
  for (const Charge& c : known.held.charges) charge(c, true);
  if (!overlay_) return;
  for (const auto& step : known.held.pods) overlay_->bind(step.id, step.slot, step.gpus);
}

// The builder's state, less those that are away, plus what was put for this cycle.
model::ClusterState& NodeGround::overlay() {
  if (overlay_) return *overlay_;
  overlay_.emplace(builder_.state());
  for (const WorkloadId id : away_) {
    for (const auto& step : known_.at(id).held.pods) overlay_->unbind(step.id);
  }
  for (const auto& [id, site] : lent_) {
    for (const auto& step : site.pods) overlay_->bind(step.id, step.slot, step.gpus);
  }
  return *overlay_;
}

const model::NodeSet& NodeGround::nodes_in(const std::vector<std::string>& levels,
                                           const std::vector<std::string>& values) {
  std::vector<std::string> key = levels;
  key.insert(key.end(), values.begin(), values.end());
  const auto [it, fresh] = sets_.try_emplace(std::move(key));
  if (!fresh) return it->second;
  const model::Inventory& inventory = builder_.state().inventory();
  it->second = model::NodeSet(inventory.size());
  for (const model::NodeSpec* node : index_.nodes()) {
    bool inside = true;
    for (std::size_t l = 0; l < levels.size(); ++l) {
      const auto label = node->labels.find(levels[l]);
      inside &= label != node->labels.end() && label->second == values[l];
    }
    const auto slot = inside ? inventory.slot(node->name) : std::nullopt;
    if (slot) it->second.set(*slot);
  }
  return it->second;
}

bool NodeGround::place_in_domains(const std::vector<PodId>& pods,
                                  const model::TopologyAssignment& topology, Reservation& out) {
  std::size_t next = 0;
  for (const auto& domain : topology.domains) {
    const model::NodeSet& nodes = nodes_in(topology.levels, domain.values);
    for (int k = 0; k < domain.count; ++k, ++next) {
      const PodId pod = pods[next];
      const auto target = placer_.find(*overlay_, overlay_->pod(pod).shape, &nodes);
      if (!target) return false;
      out.bind(pod, *target);
    }
  }
  return true;
}

schedule::Workload NodeGround::rest_of(const Known& known, const model::ClusterState& state,
                                       const admit::Workload& workload,
                                       const Assignment& assignment) const {
  schedule::Workload out{
      .name = workload.name, .priority = workload.priority(), .created_ns = workload.created_ns};
  for (std::size_t i = 0; i < known.pods.size(); ++i) {
    if (assignment.pod_sets[i].topology) continue;
    out.pending.insert(out.pending.end(), known.pods[i].begin(), known.pods[i].end());
  }
  schedule::sort_members(state, out.pending);
  out.min_pending = static_cast<int>(out.pending.size());
  if (out.pending.size() > 1) {
    model::GangSpec together;
    together.ns = known.spec->ns;
    together.name = known.spec->name;
    together.min_member = out.min_pending;
    out.terms = std::make_shared<const model::GangSpec>(std::move(together));
  }
  return out;
}

// A pod of it waits for a claim, or asks by what is not read, or brings too many rules, wherever
// there is room. kNone: none does.
std::pair<model::Reason, std::string> NodeGround::held_back(const Known& known) const {
  const model::ClusterState& state = builder_.state();
  for (const auto& pods : known.pods) {
    for (const PodId pod : pods) {
      const auto& info = *state.pod(pod).info;
      if (!info.volume_missing.empty()) {
        return {model::Reason::kVolumeMissing,
                fmt::format("{} needs the claim {}, which does not exist or is not bound",
                            info.name, info.volume_missing)};
      }
      if (info.unread_claims) {
        return {model::Reason::kResourceClaimNotRead,
                fmt::format("{} asks for devices by spec.resourceClaims, which are not read",
                            info.name)};
      }
      std::string excess = state.rule_excess(pod);
      if (!excess.empty()) return {model::Reason::kTooManyRules, std::move(excess)};
    }
  }
  return {model::Reason::kNone, ""};
}

bool NodeGround::place_pods(WorkloadId id, const admit::Workload& workload,
                            const Assignment& assignment, Site& site, Answer& answer) {
  make_pods(id, assignment);
  const Known& known = known_.at(id);
  answer.message = held_back(known).second;
  if (!answer.message.empty()) return false;
  model::ClusterState& state = overlay();
  Reservation in_domains(state);
  for (std::size_t i = 0; i < known.pods.size(); ++i) {
    if (!assignment.pod_sets[i].topology) continue;
    if (!place_in_domains(known.pods[i], *assignment.pod_sets[i].topology, in_domains)) {
      answer.message = fmt::format(
          "the nodes of its topology domains cannot take the pods of pod set {}: devices, ports "
          "or rules between pods are in the way",
          known.spec->pod_sets[i].name);
      return false;
    }
  }
  const schedule::Workload rest = rest_of(known, *overlay_, workload, assignment);
  if (!rest.pending.empty()) {
    const schedule::Placed placed = schedule::place(placer_, state, rest);
    if (placed.pods.empty()) return false;
    site.pods = placed.pods;
    for (std::size_t i = placed.pods.size(); i-- > 0;) state.unbind(placed.pods[i].id);
  }
  const auto steps = in_domains.placed();
  site.pods.insert(site.pods.begin(), steps.begin(), steps.end());
  return true;
}

// The proof that the nodes cannot take it now, or ever.
void NodeGround::refuse_pods(WorkloadId id, const admit::Workload& workload,
                             const Assignment& assignment, Answer& answer) {
  const Known& known = known_.at(id);
  const schedule::Workload rest = rest_of(known, overlay(), workload, assignment);
  model::Outcome no;
  if (auto [reason, message] = held_back(known); reason != model::Reason::kNone) {
    no.workload = workload.name;
    no.reason = reason;
    no.message = std::move(message);
  } else if (rest.pending.empty()) {
    no.workload = workload.name;
    no.reason = model::Reason::kTopologyPlacementFailed;
    no.message = answer.message;
  } else {
    no = schedule::explain_no(placer_, *overlay_, rest, true);
  }
  no.pods = 0;
  for (const auto& pods : known.pods) no.pods += static_cast<int>(pods.size());
  answer.never = no.verdict == model::Verdict::kNever;
  answer.message = no.message;
  refusals_.insert_or_assign(id, std::move(no));
}

// ---- for good ----

void NodeGround::record(const Known& known, std::span<const Reservation::Step> steps) {
  const model::ClusterState& state = builder_.state();
  for (const auto& step : steps) {
    placements_.push_back({.pod = state.pod(step.id).info->name,
                           .node = state.info(step.slot).name,
                           .gpus = step.gpus.indices(),
                           .gpu_milli = step.gpus.unit,
                           .gang = known.spec->ns + '/' + known.spec->name});
  }
}

void NodeGround::put(WorkloadId id, const Assignment& assignment, bool for_good) {
  Known& known = known_.at(id);
  const auto* site = static_cast<const Site*>(assignment.site.get());
  BERTH_ASSERT(site != nullptr && site->serial == known.serial,
               "a site of the pods that are there");
  for (const Charge& c : site->charges) charge(c, true);
  if (!for_good) {
    lent_.emplace_back(id, *site);
    if (!topology_only_) {
      for (const auto& step : site->pods) overlay().bind(step.id, step.slot, step.gpus);
    }
    return;
  }
  known.held = *site;
  known.holds = true;
  known.domains = domains_of(known, assignment.pod_sets);
  for (std::size_t i = 0; i < assignment.pod_sets.size(); ++i) {
    known.counts[known.spec->pod_sets[i].name] = assignment.pod_sets[i].count;
  }
  made_.erase(id);
  for (const auto& step : site->pods) {
    builder_.bind(step.id, step.slot, step.gpus);
    if (overlay_) overlay_->bind(step.id, step.slot, step.gpus);
  }
  record(known, site->pods);
  Site& before = known.inherited;
  known.held.charges.insert(known.held.charges.end(), before.charges.begin(), before.charges.end());
  known.held.pods.insert(known.held.pods.end(), before.pods.begin(), before.pods.end());
  known.names.insert(known.names.end(), known.inherited_names.begin(), known.inherited_names.end());
  if (known.made.empty() && !known.names.empty()) known.made = "inherited";
  before = {};
  known.inherited_names.clear();
}

void NodeGround::end_cycle() {
  for (const auto& [id, site] : lent_) {
    for (const Charge& c : site.charges) charge(c, false);
  }
  lent_.clear();
  for (const WorkloadId id : made_) drop_pods(known_.at(id));
  made_.clear();
  overlay_.reset();
}

void NodeGround::release(WorkloadId id) {
  Known& known = seen(id);
  for (const Charge& c : known.held.charges) charge(c, false);
  known.held = {};
  known.domains.clear();
  known.counts.clear();
  known.holds = false;
  drop_pods(known);
}

bool NodeGround::budgets_allow(std::span<const WorkloadId> going,
                               std::span<const WorkloadId> these) {
  schedule::BudgetCount budgets(builder_.state());
  const auto exceeds = [&](std::span<const WorkloadId> ids) {
    bool exceeded = false;
    for (const WorkloadId id : ids) {
      for (const auto& step : seen(id).held.pods) {
        exceeded |= budgets.evict(*builder_.state().pod(step.id).shape);
      }
    }
    return exceeded;
  };
  exceeds(going);  // that a budget is broken already stands against nobody whom it does not cover
  return !exceeds(these);
}

bool NodeGround::stays(WorkloadId id) {
  const auto& pods = seen(id).held.pods;
  return std::any_of(pods.begin(), pods.end(), [this](const auto& step) {
    return builder_.state().pod(step.id).info->stays;
  });
}

const model::Outcome* NodeGround::refusal(WorkloadId id) const {
  const auto it = refusals_.find(id);
  return it == refusals_.end() ? nullptr : &it->second;
}

std::vector<model::Placement> NodeGround::take_placements() {
  return std::exchange(placements_, {});
}

std::vector<std::pair<std::string, std::string>> NodeGround::pods_of(WorkloadId id) {
  std::vector<std::pair<std::string, std::string>> out;
  const model::ClusterState& state = builder_.state();
  for (const auto& step : seen(id).held.pods) {
    out.emplace_back(state.pod(step.id).info->name, state.info(step.slot).name);
  }
  return out;
}

}  // namespace berth::decide
