// Queues: what changed of them into the builder, and a decision over a copy of it.
#include <algorithm>
#include <utility>

#include "control/decision_line.h"
#include "control/world.h"
#include "decide/schedule/no_memo.h"

namespace berth::control {

namespace {

constexpr int kMostQueueCycles = 1'000;  // in one decision of the queues
// Whoever was told no is asked again after so long also where nothing that may help was seen: by
// then somebody may have run as long as his queue lets him.
constexpr std::int64_t kRetryAllNs = 5'000'000'000;

std::string key_of_spec(const model::WorkloadSpec& spec) { return spec.ns + '/' + spec.name; }

}  // namespace

// ---- what changed ----

void World::know_workload(const std::shared_ptr<const model::WorkloadSpec>& spec) {
  const std::string name = key_of_spec(*spec);
  for (const model::PodSetSpec& set : spec->pod_sets) {
    for (const std::string& pod : set.pods) {
      const auto [it, is_new] = charges_.try_emplace(pod, Charge{name, spec->charge});
      if (!is_new && it->second.workload <= name) it->second = {name, spec->charge};
      pods_of_[name].push_back(pod);
    }
  }
  if (!spec->seats.empty()) {
    auto bare = std::make_shared<model::WorkloadSpec>(*spec);
    bare->seats.clear();
    unseated_.insert_or_assign(spec.get(), std::move(bare));
  }
  workloads_.insert_or_assign(name, spec);
}

void World::forget_workload(const std::string& name) {
  if (const auto pods = pods_of_.find(name); pods != pods_of_.end()) {
    for (const std::string& pod : pods->second) {
      const auto charge = charges_.find(pod);
      if (charge == charges_.end() || charge->second.workload != name) continue;
      charges_.erase(charge);
      uncharged_.push_back(pod);
    }
    pods_of_.erase(pods);
  }
  const auto known = workloads_.find(name);
  if (known == workloads_.end()) return;
  unseated_.erase(known->second.get());
  workloads_.erase(known);
}

// Variants of one workload have its pods too: whom one of them has let go another may have.
void World::charge_again(const kinds::QueueChanges& changes) {
  const std::vector<std::string> pods = std::exchange(uncharged_, {});
  const bool several =
      objects_.queue_rules()->config.gate("ConcurrentAdmission", false) || changes.rules;
  if (!several) return;
  for (const std::string& pod : pods) {
    if (charges_.contains(pod)) continue;
    const model::WorkloadSpec* last = nullptr;
    for (const auto& [name, spec] : workloads_) {
      for (const model::PodSetSpec& set : spec->pod_sets) {
        const bool has = std::find(set.pods.begin(), set.pods.end(), pod) != set.pods.end();
        if (has && (last == nullptr || key_of_spec(*last) < name)) last = spec.get();
      }
    }
    if (last != nullptr) charges_.emplace(pod, Charge{key_of_spec(*last), last->charge});
  }
}

void World::read_queues() {
  note("inputs");
  kinds::QueueChanges changes = objects_.take_queue_changes(believed());
  objects_.inputs_taken();
  for (const std::string& name : changes.gone) forget_workload(name);
  for (const auto& spec : changes.workloads) forget_workload(key_of_spec(*spec));
  for (const auto& spec : changes.workloads) know_workload(spec);
  charge_again(changes);
  for (const std::string& key : changes.gone_pods) {
    if (!queue_pods_.contains(key)) continue;
    index_.remove_pod(key);
    queue_pods_.erase(key);
    builder_->remove_pod(key);
    room_changed_ = true;
    objects_.touch_pod(key);
  }
  for (model::PodSpec& pod : changes.pods) feed_queue_pod(std::move(pod));
  const bool same =
      changes.gone.empty() && changes.workloads.empty() && !changes.rules && !changes.beyond;
  if (same && queues_.rules != nullptr) {
    for (const auto& [name, believed] : believed_) {
      if (const auto at = find_workload(name)) queues_.workloads[*at] = believed.first;
    }
    queues_.rules = objects_.queue_rules();
  } else {
    queues_ = objects_.queues();
  }
  if (changes.rules) queueing_.reset();
  rules_read_ += changes.rules ? 1 : 0;
}

void World::feed_queue_pod(model::PodSpec pod) {
  const std::string key = pod.ns + '/' + pod.name;
  const kinds::LivePod* live = objects_.pod(key);
  const bool theirs = live != nullptr && live->foreign;     // another scheduler's, placed by it
  if (!pod.node_name.empty() || theirs) pod.queued = true;  // it leaves as its queue says
  if (assumed_.contains(key)) {                             // overlay() says where
    pod.node_name.clear();
    pod.gpu_indices.clear();
  }
  const auto known = queue_pods_.find(key);
  const bool stood = phantoms_.contains(key);
  if (known != queue_pods_.end() && known->second.fed == pod && !stood) return;
  bool gives_room = true;
  if (known != queue_pods_.end() && !stood) {
    const QueuePod& before = known->second;
    model::PodSpec was = before.now ? *before.now : before.fed;
    gives_room = !was.node_name.empty();
    if (gives_room) {  // that it starts, and whose it is, gives none
      was.started_ns = pod.started_ns;
      was.queued = pod.queued;
      was.charged = pod.charged;
      was.let_in_by = pod.let_in_by;
      gives_room = was != pod;
    }
  }
  index_.remove_pod(key);
  phantoms_.erase(key);
  queue_pods_.insert_or_assign(key, QueuePod{pod});
  feed_pod(pod, gives_room);
  index_pod(key);
}

// As it is believed to be; what it was before is still there.
void World::index_pod(const std::string& pod) {
  const auto it = queue_pods_.find(pod);
  if (it == queue_pods_.end()) return;
  index_.remove_pod(pod);
  QueuePod& known = it->second;
  known.now.reset();
  model::PodSpec now = known.fed;
  if (!overlay(now)) return;
  if (now != known.fed) known.now = std::move(now);
  index_.put(known.now ? *known.now : known.fed);
}

std::optional<std::size_t> World::find_workload(std::string_view name) const {
  const std::size_t slash = name.find('/');
  const std::pair wanted(name.substr(0, slash), name.substr(slash + 1));
  const auto key = [](const Spec& spec) {
    return std::pair<std::string_view, std::string_view>(spec->ns, spec->name);
  };
  const auto at =
      std::lower_bound(queues_.workloads.begin(), queues_.workloads.end(), wanted,
                       [&](const Spec& spec, const auto& to) { return key(spec) < to; });
  if (at == queues_.workloads.end() || key(*at) != wanted) return std::nullopt;
  return static_cast<std::size_t>(at - queues_.workloads.begin());
}

const model::WorkloadSpec* World::workload(std::string_view name) const {
  const auto at = find_workload(name);
  return at ? queues_.workloads[*at].get() : nullptr;
}

// ---- a decision ----

// What is decided and not seen yet, over what the API says. One that is believed to be what it was
// believed to be before is the same object.
void World::believe(std::int64_t now_ns) {
  std::map<std::string, model::WorkloadSpec> now;
  const auto believed_at = [&](std::size_t at) -> model::WorkloadSpec& {
    const Spec& spec = queues_.workloads[at];
    return now.try_emplace(key_of_spec(*spec), *spec).first->second;
  };
  for (std::size_t at = 0; at < queues_.workloads.size(); ++at) {
    Spec& spec = queues_.workloads[at];
    if (const auto bare = spec->seats.empty() ? unseated_.end() : unseated_.find(spec.get());
        bare != unseated_.end()) {
      spec = bare->second;
    }
    if (room_makers_ && spec->makes_room && !room_makers_->contains(key_of_spec(*spec))) {
      believed_at(at).makes_room = false;
    }
    if (failed_.empty() || !spec->admission) continue;
    if (std::optional<model::Loss> loss = loss_of(*spec); loss != spec->loss) {
      believed_at(at).loss = std::move(loss);
    }
  }
  if (room_makers_) {
    for (const std::string& name : *room_makers_) {
      const auto at = find_workload(name);
      if (at && !queues_.workloads[*at]->makes_room) believed_at(*at).makes_room = true;
    }
  }
  for (const auto& [name, admission] : admitting_) {
    const auto at = find_workload(name);
    if (!at || queues_.workloads[*at]->admission) continue;
    model::WorkloadSpec& spec = believed_at(*at);
    spec.admission = {admission.queue, admission.pod_sets};
    spec.admitted = admission.checks.empty();
    spec.reserved_ns = spec.admitted_ns = now_ns;
  }
  std::map<std::string, std::pair<Spec, Spec>> believed;
  for (auto& [name, spec] : now) {
    Spec& shown = queues_.workloads[*find_workload(name)];
    const auto before = believed_.find(name);
    const bool same = before != believed_.end() && before->second.first == shown &&
                      *before->second.second == spec;
    Spec as =
        same ? before->second.second : std::make_shared<const model::WorkloadSpec>(std::move(spec));
    believed.emplace(name, std::pair(shown, as));
    shown = std::move(as);
  }
  believed_ = std::move(believed);
}

namespace {

// Room for the heads behind as well: in these cycles whoever was told to leave has left and whoever
// waited for that is admitted, which is believed here only. It ends where the future would touch
// itself: one of those admitted would have to leave again, or one of those that left preempts.
void look_ahead(decide::Queueing& queueing, std::int64_t now_ns, model::Decision& out) {
  std::set<std::string, std::less<>> fresh, away;
  for (std::string& name : queueing.clear_leaving(now_ns)) away.insert(std::move(name));
  for (const model::Eviction& e : out.evictions) away.insert(e.workload);
  if (away.empty()) return;
  for (const model::Admission& a : out.admissions) fresh.insert(a.workload);
  std::map<std::string, int, std::less<>> by;
  for (int i = 0; i < kMostQueueCycles; ++i) {
    model::Decision next;
    if (!queueing.cycle(now_ns, next)) break;
    const bool touches =
        std::any_of(next.evictions.begin(), next.evictions.end(), [&](const model::Eviction& e) {
          return e.by.empty() || fresh.contains(e.workload) || away.contains(e.workload) ||
                 away.contains(e.by);
        });
    if (touches) break;
    for (const model::Admission& a : next.admissions) fresh.insert(a.workload);
    for (model::Eviction& e : next.evictions) {
      away.insert(e.workload);
      ++by[e.by];
      out.evictions.push_back(std::move(e));
    }
  }
  for (model::Outcome& o : out.outcomes) {
    const auto it = by.find(o.workload);
    if (it == by.end()) continue;
    o.reason = model::Reason::kWaitingForPreemptedWorkloads;
    o.message = "Pending the preemption of " + std::to_string(it->second) + " workload(s)";
  }
}

}  // namespace

// A clock that was set back is no reason to wait for longer.
bool World::retries(std::int64_t now_ns) const {
  return now_ns < retried_ns_ || now_ns - retried_ns_ >= kRetryAllNs;
}

bool World::is_decided(std::int64_t now_ns) const {
  return queueing_ && !room_changed_ && !nodes_changed_ && !retries(now_ns) &&
         now_ns < queueing_->next_ns() && !decided_.empty() && decided_ == queues_.workloads;
}

std::optional<model::Decision> World::decide_queues(std::int64_t now_ns, bool anyhow) {
  believe(now_ns);
  if (!anyhow && is_decided(now_ns)) return std::nullopt;
  feed_places();
  learn_mix();
  const bool nodes_changed = std::exchange(nodes_changed_, false);
  if (nodes_changed) {
    std::vector<const model::NodeSpec*> nodes;
    for (const auto& [name, node] : nodes_) nodes.push_back(&node);
    index_.set_nodes(std::move(nodes));
  }
  builder_->state();
  scratch_ = *builder_;
  const bool has_nodes = !index_.nodes().empty();
  if (std::exchange(had_nodes_, has_nodes) != has_nodes) queueing_.reset();
  if (!queueing_) {
    setting_ = std::make_unique<decide::QueueSetting>(
        *queues_.rules, std::vector<const model::WorkloadSpec*>(), index_);
    setting_->policy = policy_.queues;
    setting_->marked = true;
  }
  setting_->index = index_;
  Stands stands;
  believe_places(scratch_, setting_->index, stands);
  if (!queueing_) {
    queueing_ = std::make_unique<decide::Queueing>(*setting_, scratch_, *queue_placer_, now_ns);
  }
  decide::Queueing& queueing = *queueing_;
  queue_placer_->nos() = {};  // pods of the copy before may have had the same ids
  queueing.follow(queues_.workloads, now_ns,
                  {.nodes = nodes_changed, .room = std::exchange(room_changed_, false)});
  if (retries(now_ns)) {
    retried_ns_ = now_ns;
    queueing.retry();
  }
  model::Decision out;
  // Those that are told to leave hold their quota until they have: nothing is admitted beyond that.
  for (int i = 0; i < kMostQueueCycles && out.evictions.empty(); ++i) {
    if (!queueing.cycle(now_ns, out)) break;
  }
  queueing.report(out);
  look_ahead(queueing, now_ns, out);
  room_makers_.emplace();
  for (const model::Outcome& o : out.outcomes) {
    if (o.reason == model::Reason::kWaitingForPreemptedWorkloads) room_makers_->insert(o.workload);
  }
  const bool quiet = out.admissions.empty() && out.evictions.empty() && out.placements.empty();
  decided_ = quiet ? queues_.workloads : std::vector<Spec>();
  if (log_ != nullptr) {
    note("queues", {{"now", now_ns},
                    {"objects", hex(objects_.digest())},
                    {"digest", hex(decision_digest(out))}});
  }
  // Nothing shares the builder's pages any more: what comes is written in place.
  scratch_ = model::SnapshotBuilder(schedule::keeps_apart(policy_.placement));
  setting_->index = {};
  return out;
}

}  // namespace berth::control
