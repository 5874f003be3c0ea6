// A round of the keeper: who is looked at, and what all of them come to in their queues.
#include <algorithm>
#include <utility>

#include "control/queue_keeper_subject.h"
#include "kinds/meta.h"
#include "text/path.h"

namespace berth::control {

namespace {

constexpr std::int64_t kLookAtAll = 10 * kKeeperSecond;  // whatever we have seen

// A Workload that was made for one of that name that was before it.
bool is_of_another(const std::string& uid, const kube::ObjectPtr& workload) {
  if (!workload) return false;
  const Value& owners = at(workload->root(), "metadata.ownerReferences");
  return std::any_of(owners.items().begin(), owners.items().end(), [&](const Value& owner) {
    return true_at(owner, "controller") && text_at(owner, "uid") != uid;
  });
}

std::string owner_key(const model::WorkloadSpec& spec) { return spec.ns + '/' + spec.owner; }

}  // namespace

// ---- who is due ----

bool QueueKeeper::changed(const Change& change) {
  if (seen_.empty()) return false;  // whom we have not met is looked at in any case
  const std::string name = change.name();
  if (change.is("Pod")) {
    if (const std::string* workload = world_.workload_of(name)) due_.insert(*workload);
    const kinds::LivePod* live = world_.objects().pod(name);
    if (live != nullptr && !live->owner().empty()) due_.insert(live->ns + '/' + live->owner());
  } else if (change.is("Workload")) {
    due_.insert(name);
  } else if (kinds::find_kind_of(change.resource.api_version(), change.resource.kind) != nullptr) {
    const kinds::Owner as_owner{.api_version = change.resource.api_version(),
                                .kind = change.resource.kind,
                                .name = change.key.name,
                                .uid = {}};
    due_.insert(change.key.ns + '/' + as_owner.text());
  }
  return false;
}

// By what changed since the last round and what was decided in this one.
std::unordered_set<const model::WorkloadSpec*> QueueKeeper::who_is_due(
    const model::Decision& decision, bool same) {
  std::unordered_set<const model::WorkloadSpec*> out;
  const auto take = [&](std::string_view name) {
    if (const model::WorkloadSpec* spec = world_.workload(name)) out.insert(spec);
  };
  for (const std::string& name : std::exchange(due_, {})) {
    take(name);
    const auto owned = of_owner_.find(name);
    if (owned != of_owner_.end()) out.insert(owned->second.begin(), owned->second.end());
  }
  for (const auto& a : decision.admissions) take(a.workload);
  for (const auto& e : decision.evictions) take(e.workload);
  for (const auto& p : decision.placements) take(p.gang);
  for (const auto& [old, fresh] : replaced_) take(old);
  if (same) return out;
  std::unordered_map<std::string, std::size_t> told;
  for (const auto& o : decision.outcomes) {
    if (!o.queued) continue;
    const std::size_t hash =
        std::hash<std::string>()(o.message) * 31 + static_cast<std::size_t>(o.reason);
    const auto before = told_outcomes_.find(o.workload);
    if (before == told_outcomes_.end() || before->second != hash) take(o.workload);
    told.emplace(o.workload, hash);
  }
  for (const auto& [name, hash] : told_outcomes_) {
    if (!told.contains(name)) take(name);
  }
  told_outcomes_ = std::move(told);
  return out;
}

// ---- a round ----

std::vector<model::Placement> QueueKeeper::keep(const model::Decision& decision, Round round) {
  const auto& workloads = world_.queues().workloads;
  const std::int64_t now = common_.now();
  const bool other_rules = std::exchange(rules_, world_.rules_read()) != rules_;
  const bool all = round.all || other_rules || now - looked_at_all_ >= kLookAtAll;
  if (all) looked_at_all_ = now;
  if (other_rules) count_anew();
  InDecision decided;
  for (const auto& a : decision.admissions) decided.admissions[a.workload] = &a;
  for (const auto& e : decision.evictions) decided.evictions[e.workload] = &e;
  for (const auto& o : decision.outcomes) {
    if (o.queued) decided.outcomes[o.workload] = &o;
  }
  for (const auto& p : decision.placements) decided.placements[p.gang].push_back(&p);
  replaced_.clear();
  ++round_;
  pending_ = 0;
  std::vector<const Spec*> fresh;
  for (const Spec& spec : workloads) {
    if (!spec->admission) ++pending_;
    if (spec->admission && !spec->replaces.empty()) {
      replaced_[spec->replaces] = spec->ns + '/' + spec->name;
    }
    const auto [it, is_new] = seen_.try_emplace(spec);
    it->second.round = round_;
    if (is_new) fresh.push_back(&spec);
  }
  if (seen_.size() > workloads.size()) {
    std::erase_if(seen_, [this](const auto& entry) {
      if (entry.second.round == round_) return false;
      forget(*entry.first);
      return true;
    });
  }
  for (const Spec* spec : fresh) meet(**spec);
  const auto due = who_is_due(decision, round.same);
  std::vector<model::Placement> direct;
  withheld_until_ = INT64_MAX;
  for (const Spec& spec : workloads) {
    Seen& seen = seen_.find(spec)->second;
    if (!seen.settled || seen.due <= now || all || due.contains(spec.get())) {
      acted_ = false;
      due_at_ = INT64_MAX;
      look_at(*spec, decided, direct);
      seen.settled = !acted_;
      seen.due = due_at_;
    }
    withheld_until_ = std::min(withheld_until_, seen.due);
  }
  if (all) forget_old();
  if (retry_at_ <= now) retry_at_ = INT64_MAX;
  keep_queues(decision);
  return direct;
}

void QueueKeeper::look_at(const model::WorkloadSpec& spec, const InDecision& decided,
                          std::vector<model::Placement>& direct) {
  Subject s{.spec = spec, .name = spec.ns + '/' + spec.name};
  s.object = views_.workloads.find({spec.ns, spec.name});
  if (s.object && s.object->uid != spec.uid) s.object = nullptr;
  const auto of = [&s](const auto& all, auto& to) {
    if (const auto it = all.find(s.name); it != all.end()) to = it->second;
  };
  of(decided.admissions, s.admission);
  of(decided.evictions, s.eviction);
  of(decided.outcomes, s.outcome);
  of(decided.placements, s.placements);
  if (s.admission != nullptr || s.eviction != nullptr) unsettled();
  s.row = kinds::find_queued(spec.owner);
  if (s.row != nullptr) {
    s.maker = views_.makers(*s.row).find({spec.ns, std::string(kinds::name_of_owner(spec.owner))});
    if (s.maker && is_of_another(s.maker->uid, s.object)) s.maker = nullptr;
    if (s.maker) s.ended = s.row->maker->ended(s.maker->root());
  }
  if (s.object) {
    const kinds::WorkloadStatus now(s.object->root(), 0);
    s.runs = spec.admission && now.is_true("Admitted") && !now.is_true("Evicted") &&
             s.eviction == nullptr;
    keep_status(s);
    keep_pods(s);
  } else if (of_kueue(s)) {
    make_object(s);
  } else {
    for (const model::Placement* p : s.placements) direct.push_back(*p);
    if (s.eviction != nullptr) {
      for (const auto& [pod, node] : s.eviction->pods) {
        binder_.send_away(pod, s.eviction->reason, s.eviction->message);
      }
    }
  }
  if (s.maker && spec.queue.empty() && s.outcome != nullptr) {
    common_.notices.event(s.about_maker(), "Warning", model::name(s.outcome->reason), "Admitting",
                          s.outcome->message);
  }
  // A slice that waits says nothing of the Job that another one runs.
  const auto kin = of_owner_.find(owner_key(spec));
  const bool other_runs = !spec.admission && kin != of_owner_.end() &&
                          std::any_of(kin->second.begin(), kin->second.end(),
                                      [](const auto* each) { return each->admission.has_value(); });
  if (s.maker && !other_runs) keep_maker(s);
}

// What no workload of this round stands for any more, and what has had its time.
void QueueKeeper::forget_old() {
  std::erase_if(waits_, [this](const auto& entry) { return entry.second.round != round_; });
  std::erase_if(leaving_since_, [this](const auto& entry) { return entry.second.round != round_; });
  const auto is_gone = [this](const std::string& name) {
    const std::size_t slash = name.find('/');
    return !views_.workloads.find({name.substr(0, slash), name.substr(slash + 1)});
  };
  std::erase_if(orphan_since_, [&](const auto& entry) { return is_gone(entry.first); });
  std::erase_if(full_, is_gone);
  const std::int64_t now = common_.now();
  std::erase_if(turns_,
                [now](const auto& entry) { return now - entry.second.last > 90 * kKeeperSecond; });
}

void QueueKeeper::send(Write write) {
  unsettled();
  common_.writer.add(std::move(write));
}

void QueueKeeper::withhold(std::int64_t until) { due_at_ = std::min(due_at_, until); }

// ---- what they come to ----

void QueueKeeper::meet(const model::WorkloadSpec& spec) {
  if (!spec.owner.empty()) of_owner_[owner_key(spec)].push_back(&spec);
  count(spec, +1);
}

void QueueKeeper::forget(const model::WorkloadSpec& spec) {
  if (const auto it = of_owner_.find(owner_key(spec)); it != of_owner_.end()) {
    std::erase(it->second, &spec);
    if (it->second.empty()) of_owner_.erase(it);
  }
  count(spec, -1);
}

void QueueKeeper::count_anew() {
  of_queue_.clear();
  of_local_.clear();
  queues_seen_.clear();
  queue_of_local_.clear();
  for (const auto& local : rules().local_queues) {
    queue_of_local_[local.ns + '/' + local.name] = local.queue;
  }
  for (const auto& [spec, seen] : seen_) count(*spec, +1);
}

void QueueKeeper::count(const model::WorkloadSpec& spec, int by) {
  const auto* sets = spec.admission ? &spec.admission->pod_sets : nullptr;
  count(spec, sets, spec.admission ? spec.admission->queue : "", spec.admitted, by);
}

void QueueKeeper::count(const model::WorkloadSpec& spec,
                        const std::vector<model::PodSetAdmission>* sets, const std::string& queue,
                        bool admitted, int by) {
  const std::string local = spec.ns + '/' + spec.queue;
  const auto leads_to = queue_of_local_.find(local);
  const std::string target = sets != nullptr                     ? queue
                             : leads_to == queue_of_local_.end() ? ""
                                                                 : leads_to->second;
  for (const auto& [all, key] : {std::pair(&of_queue_, &target), std::pair(&of_local_, &local)}) {
    kinds::QueueCounts* counts = &(*all)[*key];
    counts->pending += sets == nullptr ? by : 0;
    if (sets == nullptr) continue;
    counts->reserving += by;
    counts->admitted += admitted ? by : 0;
    for (const model::PodSetAdmission& set : *sets) {
      for (const auto& [resource, amount] : set.usage) {
        const auto flavor = set.flavors.find(resource);
        if (flavor == set.flavors.end()) continue;
        auto& [reserved, used] = counts->use[flavor->second][resource];
        reserved += by * amount;
        if (admitted) used += by * amount;
      }
    }
  }
  for (const auto& [all, key] : {std::pair(&of_queue_, &target), std::pair(&of_local_, &local)}) {
    const auto it = all->find(*key);
    if (it->second.pending == 0 && it->second.reserving == 0) all->erase(it);
  }
}

}  // namespace berth::control
