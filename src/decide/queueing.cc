#include "decide/queueing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "decide/admit/departure.h"

namespace berth::decide {

using admit::NoReason;
using admit::Stage;
using admit::WorkloadId;
using model::Reason;

namespace {

Reason reason_of(NoReason reason) {
  switch (reason) {
    case NoReason::kNone:
      return Reason::kNone;
    case NoReason::kPendingEvaluation:
      return Reason::kPendingEvaluation;
    case NoReason::kTopologyPlacementFailed:
    case NoReason::kNodesDoNotFit:
      return Reason::kTopologyPlacementFailed;
    case NoReason::kWaitingForQuota:
      return Reason::kWaitingForQuota;
    case NoReason::kExceedsMaxQuota:
      return Reason::kExceedsMaxQuota;
    case NoReason::kNoMatchingFlavor:
      return Reason::kNoMatchingFlavor;
    case NoReason::kWaitingForPreemptedWorkloads:
      return Reason::kWaitingForPreemptedWorkloads;
    case NoReason::kPreemptionGated:
      return Reason::kPreemptionGated;
    case NoReason::kWaitingForPodsReady:
      return Reason::kWaitingForPodsReady;
    case NoReason::kMisconfigured:
      return Reason::kMisconfigured;
    case NoReason::kOnHold:
    case NoReason::kSuspended:
      return Reason::kOnHold;
    case NoReason::kAdmissionGated:
      return Reason::kAdmissionGated;
    case NoReason::kDeactivated:
      return Reason::kDeactivated;
  }
  return Reason::kNone;
}

bool has_topology(const model::QueueRules& rules) {
  return std::any_of(rules.flavors.begin(), rules.flavors.end(),
                     [](const auto& flavor) { return !flavor.topology.empty(); });
}

}  // namespace

QueueSetting::QueueSetting(const model::QueueInputs& inputs,
                           const std::vector<model::NodeSpec>& nodes,
                           const std::vector<model::PodSpec>& pods)
    : rules(inputs), index(nodes, pods) {
  workloads.reserve(inputs.workloads.size());
  for (const model::WorkloadSpec& spec : inputs.workloads) workloads.push_back(&spec);
}

Queueing::Queueing(const QueueSetting& s, model::SnapshotBuilder& builder, schedule::Placer& placer,
                   std::int64_t now_ns, Options options)
    : setting_(s),
      book_(s.book ? s.book : std::make_shared<const admit::Book>(s.rules)),
      options_(options) {
  if (!s.index.nodes().empty() && (!s.quota_only || has_topology(s.rules))) {
    ground_ = std::make_unique<NodeGround>(NodeGround::Setting{.builder = builder,
                                                               .placer = placer,
                                                               .book = *book_,
                                                               .index = s.index,
                                                               .topology_only = s.quota_only,
                                                               .marked = s.marked});
  }
  engine_ = std::make_unique<admit::Engine>(*book_, ground_.get(),
                                            admit::Engine::Options{.why = !options.verdicts_only,
                                                                   .policy = s.policy,
                                                                   .start_ns = now_ns,
                                                                   .told = options.told,
                                                                   .forms = s.forms});
  engine_->expect(s.workloads.size());
  specs_.reserve(s.workloads.size());
  in_order_.reserve(s.workloads.size());
  for (const model::WorkloadSpec* each : s.workloads) {
    const WorkloadId id = engine_->add(*each, now_ns);
    specs_.emplace_back(std::shared_ptr<void>(), each);  // the setting's
    in_order_.push_back(id);
    know(id, now_ns);
  }
  link();
  if (ground_) ground_->recount();
  if (options_.live) release_gone(now_ns);
  evict_departing(now_ns);
}

bool Queueing::is_told(WorkloadId id) const {
  return options_.told == nullptr || options_.told->contains(engine_->workload(id).name);
}

// ---- workloads ----

// What of it is looked at beside the engine.
void Queueing::know(WorkloadId id, std::int64_t now_ns) {
  const model::WorkloadSpec& w = spec(id);
  const admit::Workload& known = engine_->workload(id);
  if (ground_) ground_->know(id, w, holds_quota(known.stage));
  if (w.has_variants) parents_.insert(id);
  if (!w.replaces.empty()) slices_.insert(id);
  if (!w.preempted_by.empty()) preempted_.insert(id);
  if (w.unhealthy_nodes.size() == 1) unhealthy_.insert(id);
  if (known.stage == Stage::kEvicting) evicting_.insert(id);
  if (known.stage != Stage::kReserved && known.stage != Stage::kAdmitted) return;
  if (admit::departure_of(*book_, w, known.queue, now_ns)) {
    departing_.insert(id);
  } else if (const std::int64_t at = admit::departs_at(*book_, w); at > 0) {
    times_.emplace(at, id);
  }
}

void Queueing::forget(WorkloadId id) {
  if (ground_) ground_->forget(id);
  for (auto* set : {&parents_, &slices_, &preempted_, &unhealthy_, &evicting_, &departing_}) {
    set->erase(id);
  }
  if (const std::int64_t at = admit::departs_at(*book_, spec(id)); at > 0) times_.erase({at, id});
}

void Queueing::put(WorkloadId id, Spec spec, std::int64_t now_ns) {
  forget(id);
  specs_[id] = std::move(spec);
  engine_->put(id, *specs_[id], now_ns);
  know(id, now_ns);
}

void Queueing::follow(const std::vector<Spec>& workloads, std::int64_t now_ns, Since since) {
  leaving_.clear();
  preemptors_.clear();
  decided_.clear();
  replaced_.clear();
  departures_.clear();
  released_.clear();
  leaving_nodes_.clear();
  // What the last decision did to them, and what slices did to the ones before them.
  std::set<WorkloadId> anew;
  for (const WorkloadId id : engine_->take_touched(now_ns)) anew.insert(id);
  for (const WorkloadId id : slices_) {
    anew.insert(id);
    const WorkloadId old = engine_->workload(id).replaces;
    if (old != admit::kNoId) anew.insert(old);
  }
  if (ground_) ground_->begin(since.nodes);
  std::vector<WorkloadId> order;
  order.reserve(workloads.size());
  std::vector<const Spec*> fresh;
  std::size_t at = 0;
  const auto before = [](const Spec& x, const Spec& y) {
    return std::tie(x->ns, x->name) < std::tie(y->ns, y->name);
  };
  const auto drop = [&](WorkloadId id) {
    anew.erase(id);
    forget(id);
    engine_->remove(id);
    specs_[id].reset();
  };
  for (const Spec& each : workloads) {
    while (at < in_order_.size() && specs_[in_order_[at]] != each &&
           before(specs_[in_order_[at]], each)) {
      drop(in_order_[at++]);
    }
    if (at < in_order_.size() && !before(each, specs_[in_order_[at]])) {
      const WorkloadId id = in_order_[at++];
      if (specs_[id] != each) {
        anew.erase(id);
        put(id, each, now_ns);
      }
      order.push_back(id);
    } else {
      order.push_back(admit::kNoId);  // once the numbers of those that left are free
      fresh.push_back(&each);
    }
  }
  while (at < in_order_.size()) drop(in_order_[at++]);
  for (const WorkloadId id : anew) {
    if (specs_[id] != nullptr) put(id, specs_[id], now_ns);
  }
  auto next = fresh.begin();
  for (WorkloadId& id : order) {
    if (id != admit::kNoId) continue;
    const Spec& each = **next++;
    id = engine_->add(*each, now_ns);
    if (id >= specs_.size()) specs_.resize(id + 1);
    specs_[id] = each;
    know(id, now_ns);
  }
  in_order_ = std::move(order);
  if (ground_) ground_->look(in_order_);
  link();
  engine_->begin(now_ns);
  if (since.room && ground_) engine_->flush_ground();
  evict_departing(now_ns);
}

std::int64_t Queueing::next_ns() const {
  if (book_->config().half_life_s) return 0;  // usage fades all the time
  const std::int64_t departs =
      times_.empty() ? std::numeric_limits<std::int64_t>::max() : times_.begin()->first;
  return std::min(departs, engine_->backoff_ends_ns());
}

std::optional<WorkloadId> Queueing::find(const std::unordered_map<std::string, WorkloadId>& by,
                                         const std::string& key) const {
  const auto it = by.find(key);
  return it == by.end() ? std::nullopt : std::optional(it->second);
}

// Slices and what they grow out of, and whoever took a place.
void Queueing::link() {
  if (slices_.empty() && preempted_.empty()) return;
  by_name_.clear();
  by_uid_.clear();
  for (const WorkloadId id : in_order_) {
    if (!slices_.empty()) by_name_.emplace(engine_->workload(id).name, id);
    if (!preempted_.empty()) by_uid_.emplace(engine_->workload(id).uid, id);
  }
  for (const WorkloadId id : in_order_) {
    if (slices_.contains(id) && !holds_quota(engine_->workload(id).stage)) {
      if (const auto old = find(by_name_, spec(id).replaces)) {
        engine_->grows(id, *old);
        if (ground_) ground_->grows(id, *old);
      }
    }
    if (preempted_.contains(id)) {
      engine_->preempted_before(id, find(by_uid_, spec(id).preempted_by).value_or(admit::kNoId));
    }
  }
}

// Evicted ones none of whose pods is on a node any more give back what they hold.
void Queueing::release_gone(std::int64_t now_ns) {
  const auto bound = [this](const std::string& name) {
    const model::PodSpec* pod = setting_.index.pod(name);
    return pod != nullptr && !pod->node_name.empty();
  };
  for (const WorkloadId id : in_order_) {
    if (engine_->workload(id).stage != Stage::kEvicting) continue;
    const model::WorkloadSpec& spec = this->spec(id);
    bool runs =
        !spec.owner.empty() && !setting_.index.running_of(spec.ns + '/' + spec.owner).empty();
    for (const auto& set : spec.pod_sets) {
      runs |= std::any_of(set.pods.begin(), set.pods.end(), bound);
    }
    if (runs) continue;
    engine_->gone(id, now_ns);
    released_.push_back(engine_->workload(id).name);
  }
}

std::int64_t Queueing::due_ns(std::int64_t now_ns) const {
  std::int64_t out = std::numeric_limits<std::int64_t>::max();
  for (const WorkloadId id : in_order_) {
    const admit::Workload& w = engine_->workload(id);
    std::int64_t at = 0;
    if (w.stage == Stage::kHeld && w.hold == admit::Hold::kBackoff) {
      at = w.requeue_at_ns;
    } else if (w.stage == Stage::kAdmitted || w.stage == Stage::kReserved) {
      if (decided_.contains(id)) {
        model::WorkloadSpec spec = this->spec(id);
        spec.admitted = w.stage == Stage::kAdmitted;
        spec.admitted_ns = now_ns;
        at = admit::departs_at(*book_, spec);
      } else {
        at = admit::departs_at(*book_, spec(id));
      }
    }
    if (at > now_ns) out = std::min(out, at);
  }
  return out;
}

void Queueing::recount(std::set<std::string> leaving) {
  leaving_nodes_ = std::move(leaving);
  if (ground_) {
    ground_->recount();
    engine_->flush();
  }
}

// Holders that must leave whoever asks: stopped queues, failed checks, timeouts.
void Queueing::evict_departing(std::int64_t now_ns) {
  std::vector<WorkloadId> due(departing_.begin(), departing_.end());
  for (const auto& [at, id] : times_) {
    if (at > now_ns) break;
    due.push_back(id);
  }
  std::sort(due.begin(), due.end(), [this](WorkloadId a, WorkloadId b) {
    return std::tie(spec(a).ns, spec(a).name) < std::tie(spec(b).ns, spec(b).name);
  });
  for (const WorkloadId id : due) {
    const admit::Workload& w = engine_->workload(id);
    if (w.stage != Stage::kReserved && w.stage != Stage::kAdmitted) continue;
    const auto departure = admit::departure_of(*book_, spec(id), w.queue, now_ns);
    if (departure) send_away(id, *departure);
  }
  if (ground_) replace_failed_nodes();
}

void Queueing::send_away(WorkloadId id, const admit::Departure& departure) {
  const admit::Workload& w = engine_->workload(id);
  model::Eviction out{.workload = w.name,
                      .by = "",
                      .queue = book_->queue(w.queue).spec.name,
                      .reason = departure.reason,
                      .message = departure.message};
  if (ground_) out.pods = ground_->pods_of(id);
  departures_.push_back(std::move(out));
  engine_->depart(id, departure);
  leaving_.push_back(id);
}

// One node at a time: the lost pods move inside their domain, or the whole workload leaves.
void Queueing::replace_failed_nodes() {
  if (!book_->config().gate("TASFailedNodeReplacement", true)) return;
  for (const WorkloadId id : unhealthy_) {
    const model::WorkloadSpec& spec = this->spec(id);
    const admit::Workload& w = engine_->workload(id);
    if (w.stage != Stage::kAdmitted) continue;
    model::Admission now{.workload = w.name,
                         .queue = book_->queue(w.queue).spec.name,
                         .pod_sets = spec.admission->pod_sets,
                         .checks = {},
                         .after_preemption = false,
                         .replaced_node = spec.unhealthy_nodes.front()};
    const std::string why = ground_->replace(id, spec.unhealthy_nodes.front(), now.pod_sets);
    if (why.empty()) {
      replaced_.push_back(std::move(now));
    } else {
      send_away(id, {.reason = "NodeFailures",
                     .message = "node " + spec.unhealthy_nodes.front() +
                                " failed and its pods find no other: " + why});
    }
  }
}

bool Queueing::cycle(std::int64_t now_ns, model::Decision& out) {
  bool changed = !departures_.empty();
  std::move(departures_.begin(), departures_.end(), std::back_inserter(out.evictions));
  departures_.clear();
  changed |= !replaced_.empty();
  std::move(replaced_.begin(), replaced_.end(), std::back_inserter(out.admissions));
  replaced_.clear();
  changed |= !released_.empty();
  std::move(released_.begin(), released_.end(), std::back_inserter(out.released));
  released_.clear();
  const admit::CycleResult result = engine_->cycle(now_ns);
  for (const admit::Eviction& eviction : result.evicted) {
    preemptors_.insert(eviction.by);
    out.evictions.push_back(eviction_of(eviction));
    decided_.erase(eviction.id);
    leaving_.push_back(eviction.id);
  }
  std::vector<WorkloadId> admitted = result.settled;
  admitted.insert(admitted.end(), result.admitted.begin(), result.admitted.end());
  for (const WorkloadId id : admitted) {
    out.admissions.push_back(admission_of(id));
    for (const auto& [old, fresh] : result.replaced) {
      if (fresh == id) out.admissions.back().replaces = engine_->workload(old).name;
    }
    decided_.insert(id);
  }
  if (ground_) take_placements(admitted, out);
  if (!options_.live) finish_evictions(now_ns);
  return changed || result.changed;
}

// Live, an admission stands as soon as it is made, unless somebody has yet to leave its nodes.
void Queueing::take_placements(const std::vector<WorkloadId>& admitted, model::Decision& out) {
  std::vector<model::Placement> placements = ground_->take_placements();
  std::map<std::string, bool> after;
  for (const WorkloadId id : admitted) {
    after[engine_->workload(id).name] = !options_.live && preemptors_.contains(id);
  }
  for (const model::Placement& placement : placements) {
    if (leaving_nodes_.contains(placement.node)) after[placement.gang] = true;
  }
  for (model::Placement& placement : placements) {
    placement.after_preemption = after[placement.gang];
    out.placements.push_back(std::move(placement));
  }
  for (model::Admission& admission : out.admissions) {
    if (after.contains(admission.workload)) {
      admission.after_preemption = after[admission.workload];
    }
  }
}

void Queueing::finish_evictions(std::int64_t now_ns) {
  for (const WorkloadId id : leaving_) engine_->gone(id, now_ns);
  leaving_.clear();
}

std::vector<std::string> Queueing::clear_leaving(std::int64_t now_ns) {
  std::vector<std::string> out;
  std::set<WorkloadId> told = evicting_;
  told.insert(leaving_.begin(), leaving_.end());
  for (const WorkloadId id : told) {
    if (engine_->workload(id).stage != Stage::kEvicting) continue;
    engine_->gone(id, now_ns);
    out.push_back(engine_->workload(id).name);
  }
  leaving_.clear();
  return out;
}

model::Admission Queueing::admission_of(WorkloadId id) const {
  const admit::Workload& w = engine_->workload(id);
  model::Admission out{.workload = w.name,
                       .queue = book_->queue(w.queue).spec.name,
                       .pod_sets = {},
                       .checks = w.checks,
                       .after_preemption = preemptors_.contains(id)};
  for (std::size_t i = 0; i < w.admission.size(); ++i) {
    const admit::Choice& choice = w.admission[i];
    const admit::PodSet& set = w.form->pod_sets[i];
    model::PodSetAdmission one;
    one.name = set.name;
    one.count = choice.count;
    one.topology = choice.topology;
    one.topology_pending = false;
    for (const auto& [resource, flavor] : choice.flavors) {
      one.flavors[book_->resource(resource)] = book_->flavor(flavor).name;
      one.topology_pending |= w.unplaced && !book_->flavor(flavor).topology.empty();
      std::int64_t amount = choice.count;  // of the resource pods
      for (const admit::Ask& ask : set.asks) {
        if (ask.resource == resource) amount = ask.amount * choice.count;
      }
      one.usage[book_->resource(resource)] = amount;
    }
    out.pod_sets.push_back(std::move(one));
  }
  return out;
}

model::Eviction Queueing::eviction_of(const admit::Eviction& eviction) {
  const admit::Workload& victim = engine_->workload(eviction.id);
  const admit::Workload& by = engine_->workload(eviction.by);
  const bool migrates = eviction.cause == admit::Cause::kFlavorMigration;
  model::Eviction out{
      .workload = victim.name,
      .by = by.name,
      .queue = book_->queue(victim.queue).spec.name,
      .reason = std::string(name(eviction.cause)),
      .message =
          fmt::format("Preempted to accommodate a workload (UID: {}) due to {}; preemptor "
                      "path: {}; preemptee path: {}",
                      by.uid, in_words(eviction.cause), book_->path_of(book_->queue(by.queue).node),
                      book_->path_of(book_->queue(victim.queue).node))};
  if (migrates) out.message = "it moves to a better flavor: " + by.name;
  if (ground_) out.pods = ground_->pods_of(eviction.id);
  return out;
}

// ---- what is left ----

model::Outcome Queueing::outcome_of(WorkloadId id) const {
  const admit::Workload& w = engine_->workload(id);
  model::Outcome out{.workload = w.name, .gang = true};
  for (const admit::PodSet& set : w.form->pod_sets) out.pods += set.count;
  if (w.queue != admit::kNoId) out.queue = book_->queue(w.queue).spec.name;
  out.queued = true;
  if (w.stage == Stage::kAdmitted) {
    out.verdict = model::Verdict::kPlaced;
    out.pods = 0;
    for (const admit::Choice& choice : w.admission) out.pods += choice.count;
    out.placed = out.pods;
    return out;
  }
  if (w.stage == Stage::kReserved && w.checks.empty()) {  // the second pass found no place
    out.reason = Reason::kTopologyPlacementFailed;
    out.message = fmt::format("quota is reserved in {} and its admission checks are ready; {}",
                              out.queue, w.message);
    return out;
  }
  if (w.stage == Stage::kReserved) {
    out.reason = Reason::kUnsatisfiedAdmissionChecks;
    out.message = fmt::format(
        "quota is reserved in {}; the admission check{} {} not ready", out.queue,
        w.checks.size() == 1 ? "" : "s",
        fmt::format("{} {}", fmt::join(w.checks, ", "), w.checks.size() == 1 ? "is" : "are"));
    return out;
  }
  out.reason = reason_of(w.reason);
  out.message = w.message;
  const model::WorkloadSpec& spec = this->spec(id);
  const bool outside = spec.incomplete_reason == Reason::kQueueNotAllowed ||
                       spec.incomplete_reason == Reason::kQueueRequired;
  const bool held = w.hold == admit::Hold::kNoLocalQueue || w.hold == admit::Hold::kIncomplete;
  if (outside && held && !spec.incomplete.empty()) {  // of no queue that it may use
    out.reason = spec.incomplete_reason;
    out.message = spec.incomplete;
    return out;
  }
  const bool final_no = w.reason == NoReason::kExceedsMaxQuota ||
                        w.reason == NoReason::kNoMatchingFlavor ||
                        w.reason == NoReason::kMisconfigured;
  if (final_no) out.verdict = model::Verdict::kNever;
  const model::Outcome* nodes = ground_ ? ground_->refusal(id) : nullptr;
  if (w.reason == NoReason::kNodesDoNotFit && nodes != nullptr) {
    out.reason = nodes->reason;
    out.message = nodes->message;
    out.verdict = nodes->verdict;
    out.certificate = nodes->certificate;
  }
  return out;
}

model::QueueUse Queueing::use_of(admit::QueueId id) const {
  const admit::Queue& queue = book_->queue(id);
  const admit::QuotaTree& tree = engine_->ledger().tree;
  model::QueueUse out{.name = queue.spec.name, .cohort = queue.spec.cohort, .cells = {}};
  for (const admit::Group& group : queue.groups) {
    for (const admit::GroupFlavor& flavor : group.flavors) {
      for (std::size_t r = 0; r < group.resources.size(); ++r) {
        const admit::CellId cell = flavor.cells[r];
        out.cells.push_back({.flavor = book_->flavor(flavor.flavor).name,
                             .resource = book_->resource(group.resources[r]),
                             .nominal = tree.nominal(queue.node, cell).value(),
                             .used = tree.usage(queue.node, cell).value(),
                             .available = tree.available(queue.node, cell).value(),
                             .potential = tree.potential(queue.node, cell).value()});
        out.borrowing |= tree.borrows(queue.node, cell);
      }
    }
  }
  const double share = tree.share(queue.node).value();
  out.weighted_share = std::isinf(share) ? std::numeric_limits<std::int64_t>::max()
                                         : static_cast<std::int64_t>(std::ceil(share));
  out.pending = static_cast<int>(engine_->pending_count(id));
  for (const WorkloadId holder : engine_->ledger().holders[id]) {
    out.admitted += engine_->workload(holder).stage == Stage::kAdmitted ? 1 : 0;
  }
  if (queue.inactive != admit::Inactive::kNo) {
    out.inactive = fmt::format("{}: {}", name(queue.inactive), queue.inactive_message);
  }
  return out;
}

bool Queueing::variant_runs(const std::string& parent) const {
  for (const WorkloadId id : in_order_) {
    if (spec(id).variant_of != parent) continue;
    const Stage stage = engine_->workload(id).stage;
    if (stage == Stage::kReserved || stage == Stage::kAdmitted) return true;
  }
  return false;
}

void Queueing::report(model::Decision& out) const {
  for (const WorkloadId id : in_order_) {
    const admit::Workload& w = engine_->workload(id);
    if (w.stage == Stage::kFinished || w.stage == Stage::kEvicting) continue;
    if (w.stage == Stage::kWaiting) continue;  // below, in order
    // Checks of those that hold quota from before are somebody else's matter.
    const bool settled = w.stage == Stage::kReserved && w.checks.empty();
    const bool before = holds_quota(w.stage) && !decided_.contains(id) && !settled;
    if (parents_.contains(id) && variant_runs(w.name)) continue;
    if (!before && is_told(id)) out.outcomes.push_back(outcome_of(id));
  }
  for (admit::QueueId q = 0; q < book_->queues().size(); ++q) {
    int position = 0;
    for (const WorkloadId id : engine_->pending(q)) {
      ++position;
      if (!is_told(id)) continue;
      out.outcomes.push_back(outcome_of(id));
      out.outcomes.back().position = position;
    }
    if (!options_.verdicts_only) out.queues.push_back(use_of(q));
  }
  std::sort(out.queues.begin(), out.queues.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

}  // namespace berth::decide
