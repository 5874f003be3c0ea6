#include "control/queue_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "control/queue_keeper_subject.h"
#include "kinds/kueue_workload_body.h"
#include "kinds/queue_marks.h"
#include "text/path.h"

namespace berth::control {

namespace {

constexpr std::int64_t kOrphanFor = 60 * kKeeperSecond;  // owners may come late
constexpr std::string_view kOriginLabel = "kueue.x-k8s.io/multikueue-origin";
constexpr std::string_view kJobUidLabel = "kueue.x-k8s.io/job-uid";
constexpr std::string_view kQueueNameLabel = "kueue.x-k8s.io/queue-name";
constexpr std::string_view kPriorityLabel = "kueue.x-k8s.io/priority-class";

}  // namespace

QueueKeeper::QueueKeeper(const Common& common, Binder& binder, Views views)
    : common_(common), world_(common.world), binder_(binder), views_(std::move(views)) {}

void QueueKeeper::clear() {
  seen_.clear();
  due_.clear();
  of_owner_.clear();
  of_queue_.clear();
  of_local_.clear();
  queues_seen_.clear();
  told_outcomes_.clear();
  told_at_.clear();
  turns_.clear();
  waits_.clear();
  orphan_since_.clear();
  leaving_since_.clear();
  retry_at_ = INT64_MAX;
  restored_ = false;
  withheld_until_ = INT64_MAX;
}

// Whether the workload waits in a queue of Kueue, so that an object must stand for it.
bool QueueKeeper::of_kueue(const Subject& s) const {
  const model::WorkloadSpec& spec = s.spec;
  if (spec.leftover) return false;
  if (spec.queue.empty()) return false;  // until it names one: the object's could not be changed
  if (s.row != nullptr) return s.maker && s.maker->uid == spec.uid;
  for (const model::PodSetSpec& set : spec.pod_sets) {
    for (const std::string& pod : set.pods) {
      const kinds::LivePod* live = world_.objects().pod(pod);
      if (live == nullptr) continue;
      return spec.charge.starts_with(kinds::kKueueCharge) ||
             live->body->object.meta.labels.contains(kQueueNameLabel);
    }
  }
  return false;
}

// ---- the object ----

void QueueKeeper::create(const model::WorkloadSpec& spec, const std::string& name, std::string body,
                         const Regarding& about) {
  const std::string key = make_key(spec.ns, name);
  Write write = write_create(kube::resources::workloads(), spec.ns, std::move(body));
  write.copy = &views_.workloads;
  write.done = [this, key, about](const kube::Answer& answer) {
    if (answer.ok()) return common_.writer.release(key);
    common_.writer.failed(key, answer);
    common_.notices.event(about, "Warning", "WorkloadNotMade", "Admitting",
                          "its Workload cannot be made: " + answer.message);
  };
  send(std::move(write));
}

void QueueKeeper::make_object(const Subject& s) {
  const model::WorkloadSpec& spec = s.spec;
  if (s.row == nullptr) return make_object_of_pods(spec);
  const Value& maker = s.maker->root();
  std::vector<kinds::PodSetTemplate> templates;
  const std::vector<kinds::PodSetAt> all = kinds::pod_sets_of(*s.row->maker, maker);
  for (const model::PodSetSpec& set : spec.pod_sets) {
    const auto at_set = std::find_if(all.begin(), all.end(),
                                     [&set](const auto& each) { return each.name == set.name; });
    if (at_set == all.end()) return;
    const Value* made_of = kinds::value_at(maker, at_set->path);
    templates.push_back({made_of, text_at(made_of, "kind") == "Pod"});
  }
  // A larger slice of an elastic Job stands beside the one that it takes the place of.
  const std::string of = spec.replaces.empty()
                             ? s.maker->uid
                             : fmt::format("{}|{}|{}", s.maker->uid, spec.replaces,
                                           int_at(maker, "metadata.generation"));
  const std::string name = kinds::workload_name(s.row->kind, s.maker->key.name, of);
  if (views_.workloads.find({spec.ns, name})) return;
  if (!common_.writer.claim(make_key(spec.ns, name))) return unsettled();
  const std::string priority_class =
      std::string(at(maker, "metadata.labels")[kPriorityLabel].string());
  const kinds::Owner owner{.api_version = s.row->api_version(),
                           .kind = std::string(s.row->kind),
                           .name = s.maker->key.name,
                           .uid = s.maker->uid,
                           .controller = true};
  create(spec, name,
         kinds::workload_body(spec, name, std::span(&owner, 1), templates, priority_class),
         s.about_maker());
}

// One pod of each set is read for its template.
void QueueKeeper::make_object_of_pods(const model::WorkloadSpec& spec) {
  if (!spec.incomplete.empty()) return;
  const bool single = spec.owner.starts_with("Pod/");
  const std::string name = single ? kinds::workload_name("Pod", spec.name, spec.uid) : spec.name;
  const std::string key = make_key(spec.ns, name);
  if (views_.workloads.find({spec.ns, name})) return;
  if (!common_.writer.claim(key)) return unsettled();
  struct Gathering {
    model::WorkloadSpec spec;
    std::vector<kinds::Owner> owners;
    std::vector<text::Document> pods;
    std::size_t answered = 0;
    std::optional<kube::Answer> failure;
  };
  auto g = std::make_shared<Gathering>();
  g->spec = spec;
  g->pods.resize(spec.pod_sets.size());
  for (const model::PodSetSpec& set : spec.pod_sets) {
    for (const std::string& pod : set.pods) {
      const kinds::LivePod* live = world_.objects().pod(pod);
      if (live != nullptr)
        g->owners.push_back({.api_version = "v1",
                             .kind = "Pod",
                             .name = live->name,
                             .uid = live->uid,
                             .controller = single});
    }
  }
  for (std::size_t i = 0; i < spec.pod_sets.size(); ++i) {
    const std::string& first = spec.pod_sets[i].pods.front();
    const kube::Key pod{spec.ns, first.substr(first.find('/') + 1)};
    Write write = write_get(kube::resources::pods(), pod);
    write.done = [this, g, i, name, key](kube::Answer answer) {
      if (answer.ok()) {
        g->pods[i] = std::move(answer.body);
      } else {
        g->failure = std::move(answer);
      }
      if (++g->answered < g->pods.size()) return;
      if (g->failure) return common_.writer.failed(key, *g->failure);
      if (g->owners.empty()) return common_.writer.release(key);
      std::vector<kinds::PodSetTemplate> templates;
      for (const text::Document& document : g->pods) templates.push_back({&document.root(), true});
      const std::string priority_class =
          std::string(at(g->pods.front().root(), "metadata.labels")[kPriorityLabel].string());
      const kinds::Owner& of = g->owners.front();
      create(g->spec, name,
             kinds::workload_body(g->spec, name, g->owners, templates, priority_class),
             {"v1", "Pod", g->spec.ns, of.name, of.uid});
    };
    send(std::move(write));
  }
}

// ---- its status ----

namespace {
// It does not come back by itself: spec.active becomes false.
bool deactivates(const model::Eviction& eviction) {
  return eviction.reason.starts_with("DeactivatedDueTo");
}

// For the server, or for the store behind it, which says so in words alone.
bool is_too_large(const kube::Answer& answer) {
  return answer.status == 413 || answer.message.find("request is too large") != std::string::npos;
}

}  // namespace

void QueueKeeper::write_status(const kube::Key& at, std::string patch,
                               std::function<void(bool)> then, WriteClass kind) {
  Write write = write_patch(kube::resources::workloads(), at, kube::PatchType::kMerge,
                            std::move(patch), "status");
  write.kind = kind;
  write.key = status_key(at);
  write.copy = &views_.workloads;
  write.done = [this, name = at.to_string(), then = std::move(then)](const kube::Answer& a) {
    if (is_too_large(a)) full_.insert(name);
    if (a.ok()) full_.erase(name);
    if (then) then(a.ok());
  };
  send(std::move(write));
}

void QueueKeeper::keep_status(Subject& s) {
  if (!common_.writer.is_free(status_key(s.object->key))) return unsettled();
  kinds::WorkloadStatus status(s.object->root(), common_.loop.wall().now_ns());
  if (status.is_true("Finished")) return;
  if (s.spec.stale) {
    status.set("Finished", true, "OutOfSync", s.spec.incomplete);
    return write_status(s.object->key, status.patch());
  }
  if (replaced_.contains(s.name)) {
    status.set("Finished", true, "WorkloadSliceReplaced",
               "Replaced by a larger slice: " + replaced_[s.name]);
    world_.end_reservation(s.name);
    return write_status(s.object->key, status.patch());
  }
  if (s.ended != kinds::Ended::kNo) {
    const bool good = s.ended == kinds::Ended::kSucceeded;
    status.set("Finished", true, good ? "Succeeded" : "Failed",
               std::string(s.row->kind) + (good ? " finished successfully" : " failed"));
    world_.end_reservation(s.name);
    if (full_.contains(s.name)) status.shrink();
    return write_status(s.object->key, status.patch());
  }
  if (s.eviction != nullptr) return evict(s, status);
  if (s.spec.admission && status.is_true("Evicted")) return release(s, status);
  if (end_orphan(s, status)) return;
  if (s.admission != nullptr) return admit(s, status);
  if (s.spec.admission) return keep_holder(s, status);
  keep_waiting(s, status);
}

void QueueKeeper::evict(Subject& s, kinds::WorkloadStatus& status) {
  const model::Eviction& e = *s.eviction;
  const bool preempted = !e.by.empty();
  status.set("Evicted", true, preempted ? "Preempted" : std::string_view(e.reason), e.message);
  if (preempted) status.set("Preempted", true, e.reason, e.message);
  if (!status.changed()) return;
  if (e.reason == "PodsReadyTimeout") {
    const model::QueueConfig& config = rules().config;
    std::int64_t wait = config.backoff_base_s;
    for (int i = 0; i < s.spec.requeues && wait < config.backoff_max_s; ++i) wait *= 2;
    wait = std::min<std::int64_t>(wait, config.backoff_max_s);
    status.requeue_at(s.spec.requeues + 1, common_.loop.wall().now_ns() + wait * kKeeperSecond);
  }
  if (e.reason == "AdmissionCheck" && s.spec.retry_after_s > 0) {
    status.requeue_at(s.spec.requeues,
                      common_.loop.wall().now_ns() + s.spec.retry_after_s * kKeeperSecond);
  }
  const bool gone = all_gone(s);
  if (full_.contains(s.name) && !gone) return;  // one write, which makes it smaller
  if (gone) give_back(status);                  // nobody to wait for
  world_.end_reservation(s.name);
  common_.notices.event(s.about(), "Normal", preempted ? "Preempted" : "EvictedDueTo" + e.reason,
                        "Evicting", e.message);
  if (preempted && world_.policy().queues.max_evictions_per_hour > 0) {
    status.set(kinds::kPreemptionsCondition, true, "Preempted",
               kinds::preemption_times(s.spec.preemptions_ns, common_.loop.wall().now_ns()));
  }
  if (full_.contains(s.name)) status.shrink();
  const std::string mark = deactivates(e) ? R"({"spec":{"active":false}})" : "";
  write_status(s.object->key, status.patch(), [this, at = s.object->key, mark](bool ok) {
    if (ok && !mark.empty()) patch_workload(at, mark);
  });
}

void QueueKeeper::patch_workload(const kube::Key& at, std::string patch) {
  Write write =
      write_patch(kube::resources::workloads(), at, kube::PatchType::kMerge, std::move(patch));
  write.key = status_key(at);
  write.copy = &views_.workloads;
  send(std::move(write));
}

// None of its pods is on a node, or on its way to one: what waits holds nothing. Whoever makes them
// is believed for a while that there are some that we have not seen yet.
bool QueueKeeper::all_gone(const Subject& s) const {
  bool any = false;
  const auto look = [&](const std::string& key, const kinds::LivePod& pod) {
    any = any || (!pod.finished() && (!pod.node.empty() || world_.assumed(key) != nullptr));
  };
  // Those that only call themselves its own are somebody else's, or of its sets.
  const auto look_at_owned = [&](const std::string& key, const kinds::LivePod& pod) {
    if (pod.owner() == s.spec.owner) look(key, pod);
  };
  if (!s.spec.owner.empty()) {
    world_.objects().for_each_owned(s.spec.ns + '/' + s.spec.owner, look_at_owned);
  }
  for (const model::PodSetSpec& set : s.spec.pod_sets) {
    for (const std::string& pod : set.pods) {
      const kinds::LivePod* live = world_.objects().pod(pod);
      if (live != nullptr) look(pod, *live);
    }
  }
  if (any) return false;
  if (!s.maker) return true;
  const auto leaves = leaving_since_.find(s.name);
  if (leaves != leaving_since_.end() && common_.now() >= leaves->second.since + kLeaveFor) {
    return true;
  }
  const kinds::PodMaker& maker = *s.row->maker;
  return kinds::rests(maker, s.maker->root()) && maker.active(s.maker->root()) == 0;
}

void QueueKeeper::release(Subject& s, kinds::WorkloadStatus& status) {
  if (!all_gone(s)) return;
  give_back(status);
  if (full_.contains(s.name)) status.shrink();
  write_status(s.object->key, status.patch());
}

void QueueKeeper::give_back(kinds::WorkloadStatus& status) {
  const std::string reason(status.reason("Evicted"));
  status.release();
  status.set("QuotaReserved", false, "PendingEvaluation", "Evicted: " + reason);
  status.set("Admitted", false, "NoReservation", "The workload has no reservation");
  status.clear(kinds::kPlacedCondition, "NoReservation", "The workload has no reservation");
  if (status.has("PodsReady")) {
    status.set("PodsReady", false, "WaitForStart", "Not all pods are ready or succeeded");
  }
  const bool again = !reason.starts_with("Deactivated");
  status.set("Requeued", again, reason, "The workload was evicted: " + reason);
}

// Its pods may start: until they have, others may have to wait for them.
void QueueKeeper::start(kinds::WorkloadStatus& status, bool wait_for_pods_ready) {
  status.set("Admitted", true, "Admitted", "The workload is admitted");
  if (!wait_for_pods_ready || status.has("PodsReady")) return;
  status.set("PodsReady", false, "WaitForStart", "Not all pods are ready or succeeded");
}

void QueueKeeper::say_admitted(const model::Admission& a, bool wait_for_pods_ready,
                               std::string_view seats, kinds::WorkloadStatus& status) {
  status.admit(a);
  status.set("QuotaReserved", true, "QuotaReserved", "Quota reserved in ClusterQueue " + a.queue);
  for (const std::string_view type : {"Evicted", "Preempted"}) {
    status.clear(type, "QuotaReserved", "Previously: " + std::string(status.reason(type)));
  }
  if (status.has("Requeued") && !status.is_true("Requeued")) {
    status.set("Requeued", true, "Reactivated", "The workload was activated again");
  }
  status.want_checks(a.checks);
  if (a.checks.empty()) {
    start(status, wait_for_pods_ready);
  } else {
    status.set("Admitted", false, "UnsatisfiedAdmissionChecks",
               fmt::format("The workload waits for: {}", fmt::join(a.checks, ", ")));
  }
  if (!a.replaced_node.empty()) {
    status.forget_node(a.replaced_node);
  } else if (seats.empty()) {
    status.clear(kinds::kPlacedCondition, "PodsExist", "Its pods are bound at once");
  } else {
    status.set(kinds::kPlacedCondition, true, "Placed", seats);
  }
}

void QueueKeeper::admit(Subject& s, kinds::WorkloadStatus& status) {
  const model::Admission& a = *s.admission;
  const bool wait = rules().config.wait_for_pods_ready;
  std::string seats;
  if (a.replaced_node.empty() && !s.placements.empty()) {
    world_.reserve(s.spec, s.placements, common_.now());
    seats = seats_to_write(s);
  }
  common_.notices.event(
      s.about(), "Normal", a.checks.empty() ? "Admitted" : "QuotaReserved", "Admitting",
      (a.checks.empty() ? "Admitted by " : "Quota reserved in ClusterQueue ") + a.queue);
  world_.admitting(s.name, a);
  const auto then = [this, name = s.name](bool ok) {
    world_.admitted(name);
    if (!ok) world_.end_reservation(name);
  };
  if (seats.size() <= kinds::kMostConditionMessage) {
    say_admitted(a, wait, seats, status);
    return write_status(s.object->key, status.patch(), then);
  }
  // More than a status can carry goes first: without its places a restart would give them away.
  Write write = write_patch(kube::resources::workloads(), s.object->key, kube::PatchType::kMerge,
                            kinds::annotation_patch(kinds::kSeatsAnnotation, seats));
  write.key = status_key(s.object->key);
  write.done = [this, at = s.object->key, a, wait, then,
                digest = kinds::seats_digest(seats)](kube::Answer answer) {
    if (!answer.ok()) return then(false);
    kinds::WorkloadStatus fresh(answer.body.root(), common_.loop.wall().now_ns());
    say_admitted(a, wait, digest, fresh);
    views_.workloads.absorb(std::move(answer.body));
    write_status(at, fresh.patch(), then);
  };
  send(std::move(write));
}

// "" where all of its pods are there: they can be bound at once.
std::string QueueKeeper::seats_to_write(const Subject& s) const {
  std::vector<model::WorkloadSpec::Seat> seats;
  bool to_come = false;
  const auto reserved = world_.reservations().find(s.name);
  if (reserved == world_.reservations().end()) return "";
  for (const Reservation::Place& place : reserved->second.places) {
    to_come = to_come || world_.objects().pod(s.spec.ns + '/' + place.pod.name) == nullptr;
    seats.push_back({place.pod_set, place.pod.node_name, place.pod.gpu_indices});
  }
  return to_come ? kinds::seats_text(seats) : std::string();
}

// It was made for something that is gone and left it behind (deleted with its dependents orphaned),
// and no pod of it runs: nothing will come for its quota.
bool QueueKeeper::is_orphan(const Subject& s) {
  // MultiKueue makes the copies of its workers before what they are for.
  if (!std::string(at(s.object->root(), "metadata.labels")[kOriginLabel].string()).empty())
    return false;
  const Value* owners = find(s.object->root(), "metadata.ownerReferences");
  if (s.maker || (owners != nullptr && owners->size() > 0)) return false;
  if (std::string(at(s.object->root(), "metadata.labels")[kJobUidLabel].string()).empty())
    return false;
  return std::all_of(s.spec.pod_sets.begin(), s.spec.pod_sets.end(),
                     [](const model::PodSetSpec& set) { return set.pods.empty(); });
}

// Whoever holds gives back, and whoever waits is not let in for nobody.
bool QueueKeeper::end_orphan(Subject& s, kinds::WorkloadStatus& status) {
  if (!is_orphan(s)) {
    orphan_since_.erase(s.name);
    return false;
  }
  unsettled();
  const std::int64_t now = common_.now();
  if (now - orphan_since_.emplace(s.name, now).first->second < kOrphanFor) return false;
  orphan_since_.erase(s.name);
  status.set("Finished", true, "OwnerNotFound", "What it was made for is gone");
  write_status(s.object->key, status.patch());
  return true;
}

void QueueKeeper::keep_holder(Subject& s, kinds::WorkloadStatus& status) {
  if (s.spec.keeps && give_back_rest(s, status)) return;
  if (!status.is_true("Admitted")) {
    if (!status.checks_ready()) return;
    start(status, rules().config.wait_for_pods_ready);
    common_.notices.event(s.about(), "Normal", "Admitted", "Admitting",
                          "Admitted by " + s.spec.admission->queue);
    return write_status(s.object->key, status.patch());
  }
  int wanted = 0, ready = 0;
  bool pods = false;
  for (const auto& set : s.spec.pod_sets) pods = pods || !set.pods.empty();
  if (!s.maker && !pods) return;  // whoever made it says when its pods are ready
  for (const auto& set : s.spec.admission->pod_sets) wanted += set.count;
  if (s.maker) {
    ready = s.row->maker->ready(s.maker->root());
  } else {
    for (const model::PodSetSpec& set : s.spec.pod_sets) {
      for (const std::string& pod : set.pods) {
        const kinds::LivePod* live = world_.objects().pod(pod);
        if (live == nullptr || live->ready || live->phase == "Succeeded") ++ready;
      }
    }
  }
  const bool all = ready >= wanted;
  if (all) {
    const bool before = status.has("PodsReady") && !status.is_true("PodsReady") &&
                        status.reason("PodsReady") == "WaitForRecovery";
    status.set("PodsReady", true, before ? "Recovered" : "Started",
               "All pods reached readiness and the workload is running");
    world_.end_reservation(s.name);
  } else if (status.is_true("PodsReady")) {
    status.set("PodsReady", false, "WaitForRecovery", "At least one pod has failed or left");
  } else if (status.has("PodsReady") && status.reason("PodsReady") != "WaitForRecovery") {
    status.set("PodsReady", false, "WaitForStart", "Not all pods are ready or succeeded");
  }
  if (status.changed()) write_status(s.object->key, status.patch());
}

// Its Job shrank. Where its pods are is said by domains: with those it keeps what it has.
bool QueueKeeper::give_back_rest(Subject& s, kinds::WorkloadStatus& status) {
  const model::AdmissionSpec& held = *s.spec.admission;
  model::PodSetAdmission set = held.pod_sets.front();
  if (set.topology || set.count <= 0) return false;
  for (auto& [resource, amount] : set.usage) {  // no less than what each has
    amount = (amount + set.count - 1) / set.count * *s.spec.keeps;
  }
  set.count = *s.spec.keeps;
  status.admit({.workload = s.name, .queue = held.queue, .pod_sets = {std::move(set)}});
  write_status(s.object->key, status.patch());
  return true;
}

// The labels of what waits may be changed: it waits in another queue then, or in its order by
// another class.
bool QueueKeeper::follow_labels(const Subject& s) {
  if (!s.maker) return false;
  const Value& labels = at(s.maker->root(), "metadata.labels");
  const std::string queue(labels[kQueueNameLabel].string());
  const std::string wanted(labels[kPriorityLabel].string());
  const std::string has(text_at(s.object->root(), "spec.priorityClassRef.name"));
  const bool moves = !queue.empty() && queue != s.spec.queue;
  const bool rises = !wanted.empty() && wanted != has;
  if (!moves && !rises) return false;
  patch_workload(s.object->key, kinds::move_patch(moves ? queue : "", rises ? wanted : ""));
  return true;
}

void QueueKeeper::keep_waiting(Subject& s, kinds::WorkloadStatus& status) {
  if (follow_labels(s) || s.outcome == nullptr) return;
  const std::string_view reason = kinds::waiting_reason(s.outcome->reason);
  const bool same = status.has("QuotaReserved") && status.reason("QuotaReserved") == reason &&
                    !status.is_true("QuotaReserved");
  if (!tells_wait(s, same)) return;
  status.set("QuotaReserved", false, reason, s.outcome->message);
  if (!status.changed()) return;
  const std::int64_t now = common_.now();
  if (!wait_statuses_.take(now, common_.writer.answer_ns())) {
    withhold(now + kKeeperSecond);
    return;
  }
  waits_[s.name].told_at = now;
  write_status(s.object->key, status.patch(), {}, WriteClass::kStatus);
}

// Most waits are short, and most of what is said of them is the same with other numbers: only a
// wait that lasts is told, and one that will not end by itself at once.
bool QueueKeeper::tells_wait(const Subject& s, bool same) {
  const std::int64_t now = common_.now();
  Wait& wait = waits_.try_emplace(s.name, Wait{.since = now}).first->second;
  wait.round = round_;
  if (same) return wait.told_at == 0 || now - wait.told_at >= 60 * kKeeperSecond;
  const bool passes = s.outcome->reason == model::Reason::kWaitingForQuota ||
                      s.outcome->reason == model::Reason::kPendingEvaluation ||
                      s.outcome->reason == model::Reason::kWaitingForPreemptedWorkloads;
  if (!passes || now - wait.since >= kKeeperSecond) return true;
  withhold(wait.since + kKeeperSecond);
  return false;
}

}  // namespace berth::control
