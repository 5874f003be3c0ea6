// Jobs that are started and stopped, and pods of groups that are let go, sent away and adopted.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "control/bodies.h"
#include "control/queue_keeper_subject.h"
#include "text/path.h"

namespace berth::control {

namespace {

constexpr std::int64_t kLeaveFor =
    10 * kKeeperSecond;  // for a Job's own controller to end its pods

}  // namespace

std::vector<const model::FlavorSpec*> QueueKeeper::flavors_of(
    const model::PodSetAdmission& set) const {
  std::set<std::string> names;
  for (const auto& [resource, flavor] : set.flavors) names.insert(flavor);
  std::vector<const model::FlavorSpec*> out;
  for (const model::FlavorSpec& flavor : inputs_->queues.flavors) {
    if (names.contains(flavor.name)) out.push_back(&flavor);
  }
  return out;
}

void QueueKeeper::forget_start(const Subject& s) {
  const std::string key = "job|" + s.job->key.to_string();
  if (!busy_.insert(key).second) return;
  writer_.add(
      WriteClass::kAct, s.job->key.ns,
      [at = s.job->key](kube::Client& client, kube::Client::Done done) {
        return client.patch(kube::resources::jobs(), at, kube::PatchType::kMerge,
                            R"({"status":{"startTime":null}})", {.subresource = "status"},
                            std::move(done));
      },
      [this, key](kube::Answer answer) {
        busy_.erase(key);
        if (answer.ok()) views_.jobs.absorb(std::move(answer.body));
      });
}

void QueueKeeper::patch_job(const Subject& s, std::string patch, std::string_view event,
                            const std::string& note) {
  const std::string key = "job|" + s.job->key.to_string();
  if (const auto it = not_before_.find(key); it != not_before_.end()) {
    if (loop_.monotonic().ticks_ns() < it->second) return;
    not_before_.erase(it);
  }
  if (!busy_.insert(key).second) return;
  notices_.event({"batch/v1", "Job", s.job->key.ns, s.job->key.name, s.job->uid}, "Normal", event,
                 "Admitting", note);
  writer_.add(
      WriteClass::kAct, s.job->key.ns,
      [at = s.job->key, patch = std::move(patch)](kube::Client& client, kube::Client::Done done) {
        return client.patch(kube::resources::jobs(), at, kube::PatchType::kMerge, patch, {},
                            std::move(done));
      },
      [this, key](kube::Answer answer) {
        busy_.erase(key);
        if (answer.ok()) {
          views_.jobs.absorb(std::move(answer.body));
        } else {
          back_off(key, answer);
        }
      });
}

void QueueKeeper::keep_job(Subject& s) {
  if (!s.ended.empty()) return;
  const bool suspended = true_at(s.job->root(), "spec.suspend");
  if (s.runs == !suspended) return;
  if (!s.runs) {
    return patch_job(s, suspend_patch(true), s.object ? "Stopped" : "Suspended",
                     s.object ? "The workload is not admitted" : "Waits for its queue");
  }
  const Value* sets = find(s.object->root(), "spec.podSets");
  if (sets == nullptr || sets->size() == 0 || s.spec.admission->pod_sets.empty()) return;
  // The API server lets the pods' place be changed only while the Job has never started.
  if (find(s.job->root(), "status.startTime") != nullptr) return forget_start(s);
  const Value* original = sets->items()[0].find("template");
  if (original == nullptr) return;
  const model::PodSetAdmission& admitted = s.spec.admission->pod_sets.front();
  patch_job(s, job_start_patch(s.job->root(), *original, admitted, flavors_of(admitted), s.spec),
            "Started", "Admitted by clusterQueue " + s.spec.admission->queue);
}

// Of a Job that is told to leave its controller ends the pods, but for those that it no longer
// knows. It may itself be leaving, or not be Kubernetes' own: then nobody does, and we end them.
void QueueKeeper::end_left(const Subject& s) {
  const std::int64_t now = loop_.monotonic().ticks_ns();
  Leaving& leaving = leaving_since_.try_emplace(s.name, Leaving{now, 0}).first->second;
  leaving.round = round_;
  const std::int64_t until = leaving.since + kLeaveFor;
  if (now < until) withheld_until_ = std::min(withheld_until_, until);
  for (const model::PodSetSpec& set : s.spec.pod_sets) {
    for (const std::string& name : set.pods) {
      const objects::LivePod* live = world_.objects().pod(name);
      if (live == nullptr || live->finished() || (!live->strayed && now < until)) continue;
      send_away_(name, s.spec.evicted.empty() ? "Preempted" : s.spec.evicted,
                 "its workload " + s.name + " was evicted");
    }
  }
}

void QueueKeeper::keep_pods(Subject& s) {
  const bool leaves = s.eviction != nullptr || (s.spec.admission && !s.spec.evicted.empty());
  if (s.job) {
    if (leaves) end_left(s);
    return;
  }
  for (const model::PodSetSpec& set : s.spec.pod_sets) {
    for (const std::string& name : set.pods) {
      const objects::LivePod* live = world_.objects().pod(name);
      if (live == nullptr) continue;
      if (leaves && !live->finished()) {
        send_away_(name, s.spec.evicted.empty() ? "Preempted" : s.spec.evicted,
                   "its workload " + s.name + " was evicted");
        continue;
      }
      if (!s.runs || !live->body->object.spec.gated || live->body->object.other_gates) continue;
      const model::PodSetAdmission* admitted = nullptr;
      for (const auto& one : s.spec.admission->pod_sets) {
        if (one.name == set.name) admitted = &one;
      }
      const std::string key = "gate|" + name;
      if (admitted == nullptr || !busy_.insert(key).second) continue;
      writer_.add(
          WriteClass::kAct, live->ns,
          [at = kube::Key{live->ns, live->name},
           patch = pod_start_patch(*admitted, flavors_of(*admitted))](kube::Client& client,
                                                                      kube::Client::Done done) {
            return client.patch(kube::resources::pods(), at, kube::PatchType::kStrategic, patch, {},
                                std::move(done));
          },
          [this, key](kube::Answer answer) {
            busy_.erase(key);
            if (answer.ok()) views_.pods.absorb(std::move(answer.body));
          });
    }
  }
  if (!leaves) adopt_pods(s);
  finish_pods(s);
}

// Those that came for others of their group are its owners too, as the first were: it lasts as long
// as they do.
void QueueKeeper::adopt_pods(const Subject& s) {
  const Value* owners = find(s.object->root(), "metadata.ownerReferences");
  if (owners == nullptr || owners->size() == 0 || busy_.contains("status|" + s.name)) return;
  std::vector<WorkloadOwner> all;
  std::set<std::string> known;
  for (const Value& owner : owners->items()) {
    if (text_at(owner, "kind") != "Pod" || true_at(owner, "controller")) return;
    const std::string uid(text_at(owner, "uid"));
    const objects::LivePod* live =
        world_.objects().pod(s.spec.ns + '/' + std::string(text_at(owner, "name")));
    known.insert(uid);
    if (live != nullptr && live->uid == uid) all.push_back({"v1", "Pod", live->name, uid, false});
  }
  bool more = false;
  for (const model::PodSetSpec& set : s.spec.pod_sets) {
    for (const std::string& name : set.pods) {
      const objects::LivePod* live = world_.objects().pod(name);
      if (live == nullptr || !known.insert(live->uid).second) continue;
      all.push_back({"v1", "Pod", live->name, live->uid, false});
      more = true;
    }
  }
  if (more) patch_workload(s.object->key, owners_patch(all));
}

// Its pods are those that own the object; ended ones are no part of the input any more.
void QueueKeeper::finish_pods(Subject& s) {
  const Value* owners = find(s.object->root(), "metadata.ownerReferences");
  if (owners == nullptr || busy_.contains("status|" + s.name)) return;
  int ended = 0, failed = 0;
  for (const model::PodSetSpec& set : s.spec.pod_sets) {
    if (!set.pods.empty()) return;  // one runs, or is to
  }
  for (const Value& owner : owners->items()) {
    if (text_at(owner, "kind") != "Pod") return;
    const objects::LivePod* live =
        world_.objects().pod(s.spec.ns + '/' + std::string(text_at(owner, "name")));
    if (live == nullptr || live->uid != text_at(owner, "uid")) continue;
    if (!live->finished()) return;
    ++ended;
    failed += live->phase == "Failed" ? 1 : 0;
  }
  WorkloadStatus status(s.object->root(), loop_.wall().now_ns());
  if (ended == 0 || status.is_true("Finished")) return;
  status.set("Finished", true, failed > 0 ? "Failed" : "Succeeded",
             failed > 0 ? fmt::format("{} of its pods failed", failed) : "Pods succeeded");
  write_status(s.object->key, status.patch(), {});
}

}  // namespace berth::control
