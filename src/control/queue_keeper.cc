#include "control/queue_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "control/bodies.h"
#include "control/queue_keeper_subject.h"
#include "objects/kueue_workload.h"
#include "objects/queue_marks.h"
#include "text/path.h"

namespace berth::control {

namespace {

constexpr std::int64_t kOrphanFor = 60 * kKeeperSecond;  // owners may come late
constexpr std::string_view kOriginLabel = "kueue.x-k8s.io/multikueue-origin";
constexpr std::string_view kJobUidLabel = "kueue.x-k8s.io/job-uid";
constexpr std::string_view kQueueNameLabel = "kueue.x-k8s.io/queue-name";
constexpr std::string_view kPriorityLabel = "kueue.x-k8s.io/priority-class";

// "Complete" or "Failed" where the Job has ended.
std::string ended(const Value& job) {
  const Value* list = find(job, "status.conditions");
  if (list == nullptr) return {};
  for (const Value& c : list->items()) {
    const std::string type(text_at(c, "type"));
    if ((type == "Complete" || type == "Failed") && text_at(c, "status") == "True") return type;
  }
  return {};
}

}  // namespace

QueueKeeper::QueueKeeper(Loop& loop, World& world, Writer& writer, Notices& notices, Views views,
                         SendAway send_away)
    : loop_(loop),
      world_(world),
      writer_(writer),
      notices_(notices),
      views_(views),
      send_away_(std::move(send_away)) {}

void QueueKeeper::clear() {
  busy_.clear();
  not_before_.clear();
  told_at_.clear();
  waits_.clear();
  orphan_since_.clear();
  leaving_since_.clear();
  retry_at_ = INT64_MAX;
  restored_ = false;
  withheld_until_ = INT64_MAX;
}

std::vector<model::Placement> QueueKeeper::keep(const objects::Inputs& inputs,
                                                const model::Decision& decision) {
  inputs_ = &inputs;
  std::map<std::string_view, const model::Admission*> admissions;
  std::map<std::string_view, const model::Eviction*> evictions;
  std::map<std::string_view, const model::Outcome*> outcomes;
  std::map<std::string_view, std::vector<const model::Placement*>> placements;
  for (const auto& a : decision.admissions) admissions[a.workload] = &a;
  for (const auto& e : decision.evictions) evictions[e.workload] = &e;
  for (const auto& o : decision.outcomes) {
    if (o.queued) outcomes[o.workload] = &o;
  }
  for (const auto& p : decision.placements) placements[p.gang].push_back(&p);
  replaced_.clear();
  std::set<std::string, std::less<>> holding;  // owners, one of whose workloads holds quota
  for (const model::WorkloadSpec& spec : inputs.queues.workloads) {
    if (spec.admission) holding.insert(spec.ns + '/' + spec.owner);
    if (!spec.replaces.empty() && spec.admission) {
      replaced_[spec.replaces] = spec.ns + '/' + spec.name;
    }
  }
  std::vector<model::Placement> direct;
  pending_ = 0;
  ++round_;
  withheld_until_ = INT64_MAX;
  for (const model::WorkloadSpec& spec : inputs.queues.workloads) {
    Subject s{.spec = spec, .name = spec.ns + '/' + spec.name};
    if (!spec.admission) ++pending_;
    s.object = views_.workloads.find({spec.ns, spec.name});
    if (s.object && s.object->uid != spec.uid) s.object = nullptr;
    if (const auto it = admissions.find(s.name); it != admissions.end()) s.admission = it->second;
    if (const auto it = evictions.find(s.name); it != evictions.end()) s.eviction = it->second;
    if (const auto it = outcomes.find(s.name); it != outcomes.end()) s.outcome = it->second;
    if (const auto it = placements.find(s.name); it != placements.end()) s.placements = it->second;
    if (spec.owner.starts_with("Job/")) {
      s.job = views_.jobs.find({spec.ns, spec.owner.substr(4)});
      if (s.job) s.ended = ended(s.job->root());
    }
    if (s.object) {
      const WorkloadStatus now(s.object->root(), 0);
      s.runs = spec.admission && now.is_true("Admitted") && !now.is_true("Evicted") &&
               s.eviction == nullptr;
      keep_status(s);
      keep_pods(s);
    } else if (of_kueue(spec)) {
      make_object(spec);
    } else {
      for (const model::Placement* p : s.placements) direct.push_back(*p);
      if (s.eviction != nullptr) {
        for (const auto& [pod, node] : s.eviction->pods) {
          send_away_(pod, s.eviction->reason, s.eviction->message);
        }
      }
    }
    if (s.job && spec.queue.empty() && s.outcome != nullptr) {
      notices_.event({"batch/v1", "Job", s.job->key.ns, s.job->key.name, s.job->uid}, "Warning",
                     model::name(s.outcome->reason), "Admitting", s.outcome->message);
    }
    // A slice that waits says nothing of the Job that another one runs.
    const bool other_runs = !spec.admission && holding.contains(spec.ns + '/' + spec.owner);
    if (s.job && !other_runs) keep_job(s);
  }
  forget_old();
  keep_queues(inputs, decision);
  inputs_ = nullptr;
  return direct;
}

// What no workload of this round stands for any more, and what has had its time.
void QueueKeeper::forget_old() {
  std::erase_if(waits_, [this](const auto& entry) { return entry.second.round != round_; });
  std::erase_if(leaving_since_, [this](const auto& entry) { return entry.second.round != round_; });
  std::erase_if(orphan_since_, [&](const auto& entry) {
    const std::size_t slash = entry.first.find('/');
    return !views_.workloads.find({entry.first.substr(0, slash), entry.first.substr(slash + 1)});
  });
  const std::int64_t now = loop_.monotonic().ticks_ns();
  std::erase_if(not_before_, [now](const auto& entry) { return entry.second <= now; });
  if (retry_at_ <= now) retry_at_ = INT64_MAX;
}

// Whether the workload waits in a queue of Kueue, so that an object must stand for it.
bool QueueKeeper::of_kueue(const model::WorkloadSpec& spec) const {
  if (spec.leftover) return false;
  if (spec.queue.empty()) return false;  // until it names one: the object's could not be changed
  if (spec.owner.starts_with("Job/")) {
    const auto job = views_.jobs.find({spec.ns, spec.owner.substr(4)});
    return job && job->uid == spec.uid;
  }
  for (const model::PodSetSpec& set : spec.pod_sets) {
    for (const std::string& pod : set.pods) {
      const objects::LivePod* live = world_.objects().pod(pod);
      if (live == nullptr) continue;
      return spec.charge.starts_with(objects::kKueueCharge) ||
             live->body->object.meta.labels.contains(kQueueNameLabel);
    }
  }
  return false;
}

// Soon where what we know was old, which watches mend; later where somebody says no.
bool QueueKeeper::back_off(const std::string& key, const kube::Answer& answer) {
  const bool soon = answer.conflict() || answer.not_found();
  const std::int64_t until = loop_.monotonic().ticks_ns() + (soon ? 1 : 5) * kKeeperSecond;
  not_before_[key] = until;
  if (soon) retry_at_ = std::min(retry_at_, until);
  return true;
}

// ---- the object ----

void QueueKeeper::create(const model::WorkloadSpec& spec, const std::string& name,
                         std::string body) {
  const std::string key = "make|" + spec.ns + '/' + name;
  writer_.add(
      WriteClass::kAct, spec.ns,
      [ns = spec.ns, body = std::move(body)](kube::Client& client, kube::Client::Done done) {
        return client.create(kube::resources::workloads(), ns, body, {}, std::move(done));
      },
      [this, key](kube::Answer answer) {
        busy_.erase(key);
        if (answer.ok()) {
          views_.workloads.absorb(std::move(answer.body));
        } else {
          back_off(key, answer);
        }
      });
}

void QueueKeeper::make_object(const model::WorkloadSpec& spec) {
  if (!spec.owner.starts_with("Job/")) return make_object_of_pods(spec);
  const auto job = views_.jobs.find({spec.ns, spec.owner.substr(4)});
  const Value* pod_template = find(job->root(), "spec.template");
  if (pod_template == nullptr) return;
  // A larger slice of an elastic Job stands beside the one that it takes the place of.
  const std::string of = spec.replaces.empty()
                             ? job->uid
                             : fmt::format("{}|{}|{}", job->uid, spec.replaces,
                                           int_at(job->root(), "metadata.generation"));
  const std::string name = workload_name("Job", job->key.name, of);
  const std::string key = "make|" + spec.ns + '/' + name;
  const auto wait = not_before_.find(key);
  if (wait != not_before_.end() && loop_.monotonic().ticks_ns() < wait->second) return;
  if (views_.workloads.find({spec.ns, name}) || !busy_.insert(key).second) return;
  const std::string priority_class =
      std::string(at(job->root(), "metadata.labels")[kPriorityLabel].string());
  create(spec, name,
         workload_body(spec, name, {{"batch/v1", "Job", job->key.name, job->uid}},
                       {{pod_template, false}}, priority_class));
}

// One pod of each set is read for its template.
void QueueKeeper::make_object_of_pods(const model::WorkloadSpec& spec) {
  if (!spec.incomplete.empty()) return;
  const bool single = spec.owner.starts_with("Pod/");
  const std::string name = single ? workload_name("Pod", spec.name, spec.uid) : spec.name;
  const std::string key = "make|" + spec.ns + '/' + name;
  const auto wait = not_before_.find(key);
  if (wait != not_before_.end() && loop_.monotonic().ticks_ns() < wait->second) return;
  if (views_.workloads.find({spec.ns, name}) || !busy_.insert(key).second) return;
  struct Gathering {
    model::WorkloadSpec spec;
    std::vector<WorkloadOwner> owners;
    std::vector<text::Document> pods;
    std::size_t answered = 0;
    bool failed = false;
  };
  auto g = std::make_shared<Gathering>();
  g->spec = spec;
  g->pods.resize(spec.pod_sets.size());
  for (const model::PodSetSpec& set : spec.pod_sets) {
    for (const std::string& pod : set.pods) {
      const objects::LivePod* live = world_.objects().pod(pod);
      if (live != nullptr) g->owners.push_back({"v1", "Pod", live->name, live->uid, single});
    }
  }
  for (std::size_t i = 0; i < spec.pod_sets.size(); ++i) {
    const std::string& first = spec.pod_sets[i].pods.front();
    const kube::Key pod{spec.ns, first.substr(first.find('/') + 1)};
    writer_.add(
        WriteClass::kAct, pod.ns,
        [pod](kube::Client& client, kube::Client::Done done) {
          return client.get(kube::resources::pods(), pod, std::move(done));
        },
        [this, g, i, name, key](kube::Answer answer) {
          if (!answer.ok()) g->failed = back_off(key, answer);
          g->pods[i] = std::move(answer.body);
          if (++g->answered < g->pods.size()) return;
          if (g->failed) {
            busy_.erase(key);
            return;
          }
          std::vector<PodSetTemplate> templates;
          for (const text::Document& document : g->pods) {
            templates.push_back({&document.root(), true});
          }
          const std::string priority_class =
              std::string(at(g->pods.front().root(), "metadata.labels")[kPriorityLabel].string());
          create(g->spec, name, workload_body(g->spec, name, g->owners, templates, priority_class));
        });
  }
}

// ---- its status ----

void QueueKeeper::write_status(const kube::Key& at, std::string patch,
                               std::function<void(bool)> then, WriteClass kind) {
  const std::string key = "status|" + at.to_string();
  busy_.insert(key);
  writer_.add(
      kind, at.ns,
      [at, patch = std::move(patch)](kube::Client& client, kube::Client::Done done) {
        return client.patch(kube::resources::workloads(), at, kube::PatchType::kMerge, patch,
                            {.subresource = "status"}, std::move(done));
      },
      [this, key, then = std::move(then)](kube::Answer answer) {
        busy_.erase(key);
        const bool ok = answer.ok();
        if (ok) {
          views_.workloads.absorb(std::move(answer.body));
        } else {
          back_off(key, answer);
        }
        if (then) then(ok);
      });
}

void QueueKeeper::keep_status(Subject& s) {
  const std::string key = "status|" + s.name;
  if (busy_.contains(key)) return;
  if (const auto it = not_before_.find(key); it != not_before_.end()) {
    if (loop_.monotonic().ticks_ns() < it->second) return;
    not_before_.erase(it);
  }
  WorkloadStatus status(s.object->root(), loop_.wall().now_ns());
  if (status.is_true("Finished")) return;
  if (s.spec.stale) {
    status.set("Finished", true, "OutOfSync", s.spec.incomplete);
    return write_status(s.object->key, status.patch(), {});
  }
  if (replaced_.contains(s.name)) {
    status.set("Finished", true, "WorkloadSliceReplaced",
               "Replaced by a larger slice: " + replaced_[s.name]);
    world_.end_reservation(s.name);
    return write_status(s.object->key, status.patch(), {});
  }
  if (!s.ended.empty()) {
    const bool good = s.ended == "Complete";
    status.set("Finished", true, good ? "Succeeded" : "Failed",
               good ? "Job finished successfully" : "Job failed");
    world_.end_reservation(s.name);
    return write_status(s.object->key, status.patch(), {});
  }
  if (s.eviction != nullptr) return evict(s, status);
  if (s.spec.admission && status.is_true("Evicted")) return release(s, status);
  if (s.admission != nullptr) return admit(s, status);
  if (s.spec.admission) return keep_holder(s, status);
  keep_waiting(s, status);
}

void QueueKeeper::evict(Subject& s, WorkloadStatus& status) {
  const model::Eviction& e = *s.eviction;
  const bool preempted = !e.by.empty();
  status.set("Evicted", true, preempted ? "Preempted" : std::string_view(e.reason), e.message);
  if (preempted) status.set("Preempted", true, e.reason, e.message);
  if (!status.changed()) return;
  if (e.reason == "PodsReadyTimeout") {
    const model::QueueConfig& config = inputs_->queues.config;
    std::int64_t wait = config.backoff_base_s;
    for (int i = 0; i < s.spec.requeues && wait < config.backoff_max_s; ++i) wait *= 2;
    wait = std::min<std::int64_t>(wait, config.backoff_max_s);
    status.requeue_at(s.spec.requeues + 1, loop_.wall().now_ns() + wait * kKeeperSecond);
  }
  if (e.reason == "AdmissionCheck" && s.spec.retry_after_s > 0) {
    status.requeue_at(s.spec.requeues,
                      loop_.wall().now_ns() + s.spec.retry_after_s * kKeeperSecond);
  }
  if (all_gone(s)) give_back(status);  // nobody to wait for
  world_.end_reservation(s.name);
  notices_.event(s.about(), "Normal", preempted ? "Preempted" : "EvictedDueTo" + e.reason,
                 "Evicting", e.message);
  if (preempted && world_.queue_policy().max_evictions_per_hour > 0) {
    status.set(objects::kPreemptionsCondition, true, "Preempted",
               preemption_times(s.spec.preemptions_ns, loop_.wall().now_ns()));
  }
  const std::string mark = deactivates(e) ? R"({"spec":{"active":false}})" : "";
  write_status(s.object->key, status.patch(), [this, at = s.object->key, mark](bool ok) {
    if (ok && !mark.empty()) patch_workload(at, mark);
  });
}

void QueueKeeper::patch_workload(const kube::Key& at, std::string patch) {
  const std::string key = "status|" + at.to_string();
  const auto wait = not_before_.find(key);
  if (wait != not_before_.end() && loop_.monotonic().ticks_ns() < wait->second) return;
  if (!busy_.insert(key).second) return;
  writer_.add(
      WriteClass::kAct, at.ns,
      [at, patch = std::move(patch)](kube::Client& client, kube::Client::Done done) {
        return client.patch(kube::resources::workloads(), at, kube::PatchType::kMerge, patch, {},
                            std::move(done));
      },
      [this, key](kube::Answer answer) {
        busy_.erase(key);
        if (answer.ok()) {
          views_.workloads.absorb(std::move(answer.body));
        } else {
          back_off(key, answer);
        }
      });
}

bool QueueKeeper::all_gone(const Subject& s) const {
  bool any = false;
  const auto look = [&any](const std::string&, const objects::LivePod& pod) {
    any = any || !pod.finished();
  };
  if (!s.spec.owner.empty()) world_.objects().for_each_owned(s.spec.ns + '/' + s.spec.owner, look);
  for (const model::PodSetSpec& set : s.spec.pod_sets) {
    for (const std::string& pod : set.pods) {
      const objects::LivePod* live = world_.objects().pod(pod);
      if (live != nullptr) look(pod, *live);
    }
  }
  if (any) return false;
  if (!s.job) return true;
  return true_at(s.job->root(), "spec.suspend") && int_at(s.job->root(), "status.active") == 0;
}

void QueueKeeper::release(Subject& s, WorkloadStatus& status) {
  if (!all_gone(s)) return;
  give_back(status);
  write_status(s.object->key, status.patch(), {});
}

void QueueKeeper::give_back(WorkloadStatus& status) {
  const std::string reason(status.reason("Evicted"));
  status.release();
  status.set("QuotaReserved", false, "PendingEvaluation", "Evicted: " + reason);
  status.set("Admitted", false, "NoReservation", "The workload has no reservation");
  status.clear(objects::kPlacedCondition, "NoReservation", "The workload has no reservation");
  if (status.has("PodsReady")) {
    status.set("PodsReady", false, "WaitForStart", "Not all pods are ready or succeeded");
  }
  const bool again = !reason.starts_with("Deactivated");
  status.set("Requeued", again, reason, "The workload was evicted: " + reason);
}

// Its pods may start: until they have, others may have to wait for them.
void QueueKeeper::start(WorkloadStatus& status, bool wait_for_pods_ready) {
  status.set("Admitted", true, "Admitted", "The workload is admitted");
  if (!wait_for_pods_ready || status.has("PodsReady")) return;
  status.set("PodsReady", false, "WaitForStart", "Not all pods are ready or succeeded");
}

void QueueKeeper::say_admitted(const model::Admission& a, bool wait_for_pods_ready,
                               std::string_view seats, WorkloadStatus& status) {
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
    status.clear(objects::kPlacedCondition, "PodsExist", "Its pods are bound at once");
  } else {
    status.set(objects::kPlacedCondition, true, "Placed", seats);
  }
}

void QueueKeeper::admit(Subject& s, WorkloadStatus& status) {
  const model::Admission& a = *s.admission;
  const bool wait = inputs_->queues.config.wait_for_pods_ready;
  std::string seats;
  if (a.replaced_node.empty() && !s.placements.empty()) {
    world_.reserve(s.spec, s.placements, loop_.monotonic().ticks_ns());
    seats = seats_to_write(s);
  }
  notices_.event(s.about(), "Normal", a.checks.empty() ? "Admitted" : "QuotaReserved", "Admitting",
                 (a.checks.empty() ? "Admitted by " : "Quota reserved in ClusterQueue ") + a.queue);
  world_.admitting(s.name, a);
  const auto then = [this, name = s.name](bool ok) {
    world_.admitted(name);
    if (!ok) world_.end_reservation(name);
  };
  if (seats.size() <= kMostConditionMessage) {
    say_admitted(a, wait, seats, status);
    return write_status(s.object->key, status.patch(), then);
  }
  // More than a status can carry goes first: without its places a restart would give them away.
  busy_.insert("status|" + s.name);
  writer_.add(
      WriteClass::kAct, s.object->key.ns,
      [at = s.object->key, patch = annotation_patch(objects::kSeatsAnnotation, seats)](
          kube::Client& client, kube::Client::Done done) {
        return client.patch(kube::resources::workloads(), at, kube::PatchType::kMerge, patch, {},
                            std::move(done));
      },
      [this, at = s.object->key, a, wait, then,
       digest = objects::seats_digest(seats)](kube::Answer answer) {
        busy_.erase("status|" + at.to_string());
        if (!answer.ok()) {
          back_off("status|" + at.to_string(), answer);
          return then(false);
        }
        WorkloadStatus fresh(answer.body.root(), loop_.wall().now_ns());
        say_admitted(a, wait, digest, fresh);
        views_.workloads.absorb(std::move(answer.body));
        write_status(at, fresh.patch(), then);
      });
}

// "" where all of its pods are there: they can be bound at once.
std::string QueueKeeper::seats_to_write(const Subject& s) const {
  std::vector<KnownPlace> places;
  bool to_come = false;
  const auto reserved = world_.reservations().find(s.name);
  if (reserved == world_.reservations().end()) return "";
  for (const Reservation::Place& place : reserved->second.places) {
    to_come = to_come || world_.objects().pod(s.spec.ns + '/' + place.pod.name) == nullptr;
    places.push_back({place.pod_set, place.pod.name, place.pod.node_name, place.pod.gpu_indices});
  }
  return to_come ? seats_text(places) : std::string();
}

// It was made for something that is gone and left it behind (deleted with its dependents orphaned),
// and no pod of it runs: nothing will come for its quota.
bool QueueKeeper::is_orphan(const Subject& s) {
  // MultiKueue makes the copies of its workers before what they are for.
  if (!std::string(at(s.object->root(), "metadata.labels")[kOriginLabel].string()).empty())
    return false;
  const Value* owners = find(s.object->root(), "metadata.ownerReferences");
  if (s.job || (owners != nullptr && owners->size() > 0)) return false;
  if (std::string(at(s.object->root(), "metadata.labels")[kJobUidLabel].string()).empty())
    return false;
  return std::all_of(s.spec.pod_sets.begin(), s.spec.pod_sets.end(),
                     [](const model::PodSetSpec& set) { return set.pods.empty(); });
}

void QueueKeeper::keep_holder(Subject& s, WorkloadStatus& status) {
  if (!is_orphan(s)) {
    orphan_since_.erase(s.name);
  } else if (const std::int64_t now = loop_.monotonic().ticks_ns();
             now - orphan_since_.emplace(s.name, now).first->second >= kOrphanFor) {
    orphan_since_.erase(s.name);
    status.set("Finished", true, "OwnerNotFound", "What it was made for is gone");
    return write_status(s.object->key, status.patch(), {});
  }
  if (s.spec.keeps && give_back_rest(s, status)) return;
  if (!status.is_true("Admitted")) {
    if (!status.checks_ready()) return;
    start(status, inputs_->queues.config.wait_for_pods_ready);
    notices_.event(s.about(), "Normal", "Admitted", "Admitting",
                   "Admitted by " + s.spec.admission->queue);
    return write_status(s.object->key, status.patch(), {});
  }
  int wanted = 0, ready = 0;
  bool pods = false;
  for (const auto& set : s.spec.pod_sets) pods = pods || !set.pods.empty();
  if (!s.job && !pods) return;  // whoever made it says when its pods are ready
  for (const auto& set : s.spec.admission->pod_sets) wanted += set.count;
  if (s.job) {
    const Value* ending = find(s.job->root(), "status.uncountedTerminatedPods.succeeded");
    ready = static_cast<int>(int_at(s.job->root(), "status.ready") +
                             int_at(s.job->root(), "status.succeeded"));
    if (ending != nullptr) ready += static_cast<int>(ending->size());
  } else {
    for (const model::PodSetSpec& set : s.spec.pod_sets) {
      for (const std::string& pod : set.pods) {
        const objects::LivePod* live = world_.objects().pod(pod);
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
  if (status.changed()) write_status(s.object->key, status.patch(), {});
}

// Its Job shrank. Where its pods are is said by domains: with those it keeps what it has.
bool QueueKeeper::give_back_rest(Subject& s, WorkloadStatus& status) {
  const model::AdmissionSpec& held = *s.spec.admission;
  model::PodSetAdmission set = held.pod_sets.front();
  if (set.topology || set.count <= 0) return false;
  for (auto& [resource, amount] : set.usage) {  // no less than what each has
    amount = (amount + set.count - 1) / set.count * *s.spec.keeps;
  }
  set.count = *s.spec.keeps;
  status.admit({.workload = s.name, .queue = held.queue, .pod_sets = {std::move(set)}});
  write_status(s.object->key, status.patch(), {});
  return true;
}

// The labels of a Job that waits may be changed: it waits in another queue then, or in its order by
// another class.
bool QueueKeeper::follow_labels(const Subject& s) {
  if (!s.job) return false;
  const std::string queue =
      std::string(at(s.job->root(), "metadata.labels")[kQueueNameLabel].string());
  const std::string wanted =
      std::string(at(s.job->root(), "metadata.labels")[kPriorityLabel].string());
  const std::string has(text_at(s.object->root(), "spec.priorityClassRef.name"));
  const bool moves = !queue.empty() && queue != s.spec.queue;
  const bool rises = !wanted.empty() && wanted != has;
  if (!moves && !rises) return false;
  patch_workload(s.object->key, move_patch(moves ? queue : "", rises ? wanted : ""));
  return true;
}

void QueueKeeper::keep_waiting(Subject& s, WorkloadStatus& status) {
  if (follow_labels(s) || s.outcome == nullptr) return;
  const std::string_view reason = waiting_reason(s.outcome->reason);
  const bool same = status.has("QuotaReserved") && status.reason("QuotaReserved") == reason &&
                    !status.is_true("QuotaReserved");
  if (!tells_wait(s, same)) return;
  status.set("QuotaReserved", false, reason, s.outcome->message);
  if (!status.changed()) return;
  const std::int64_t now = loop_.monotonic().ticks_ns();
  if (!wait_statuses_.take(now, writer_.answer_ns())) {
    withheld_until_ = std::min(withheld_until_, now + kKeeperSecond);
    return;
  }
  waits_[s.name].told_at = now;
  write_status(s.object->key, status.patch(), {}, WriteClass::kStatus);
}

// Most waits are short, and most of what is said of them is the same with other numbers: only a
// wait that lasts is told, and one that will not end by itself at once.
bool QueueKeeper::tells_wait(const Subject& s, bool same) {
  const std::int64_t now = loop_.monotonic().ticks_ns();
  Wait& wait = waits_.try_emplace(s.name, Wait{.since = now}).first->second;
  wait.round = round_;
  if (same) return wait.told_at == 0 || now - wait.told_at >= 60 * kKeeperSecond;
  const bool passes = s.outcome->reason == model::Reason::kWaitingForQuota ||
                      s.outcome->reason == model::Reason::kPendingEvaluation ||
                      s.outcome->reason == model::Reason::kWaitingForPreemptedWorkloads;
  if (!passes || now - wait.since >= kKeeperSecond) return true;
  withheld_until_ = std::min(withheld_until_, wait.since + kKeeperSecond);
  return false;
}

}  // namespace berth::control
