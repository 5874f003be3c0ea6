// Jobs that are started and stopped, and pods of groups that are let go, sent away and adopted.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "control/queue_keeper_subject.h"
#include "kinds/kueue_workload_body.h"
#include "kinds/maker_patch.h"
#include "kinds/pod_writes.h"
#include "kinds/queue_marks.h"
#include "text/path.h"

namespace berth::control {

namespace {

// Whether the object has to be told how many pods it was let in with.
bool changes_count(const kinds::PodMaker& maker, const Value& object,
                   const model::PodSetAdmission& admitted, const model::WorkloadSpec& workload) {
  if (!maker.count || admitted.count <= 0) return false;
  const std::int64_t now = int_at(object, *maker.count, 1);
  // One that may run with fewer pods has had its number lowered by an earlier start.
  const bool fewer = !workload.pod_sets.empty() && workload.pod_sets.front().min_count.has_value();
  return now > admitted.count || (fewer && now != admitted.count);
}

// Where the pods of an admitted set may run, and what they are told. The original is the caller's.
kinds::SetStart set_start(const model::PodSetAdmission& admitted,
                          const std::vector<const model::FlavorSpec*>& flavors,
                          const model::WorkloadSpec& workload) {
  const std::string& cluster_queue = workload.admission->queue;
  const std::string& local_queue = workload.queue;
  constexpr std::size_t kLongestLabel = 63;
  kinds::SetStart out;
  out.name = admitted.name;
  out.labels.emplace(kinds::kPodSetLabel, admitted.name);
  if (cluster_queue.size() <= kLongestLabel)
    out.labels.emplace("kueue.x-k8s.io/cluster-queue-name", cluster_queue);
  if (local_queue.size() <= kLongestLabel) out.labels.emplace(kinds::kLocalQueueLabel, local_queue);
  out.annotations.emplace(kinds::kWorkloadAnnotation, workload.name);
  for (const model::FlavorSpec* flavor : flavors) {
    for (const auto& [key, value] : flavor->node_labels) out.node_selector[key] = value;
    out.tolerations.insert(out.tolerations.end(), flavor->tolerations.begin(),
                           flavor->tolerations.end());
  }
  return out;
}

}  // namespace

std::vector<const model::FlavorSpec*> QueueKeeper::flavors_of(
    const model::PodSetAdmission& set) const {
  std::set<std::string> names;
  for (const auto& [resource, flavor] : set.flavors) names.insert(flavor);
  std::vector<const model::FlavorSpec*> out;
  for (const model::FlavorSpec& flavor : rules().flavors) {
    if (names.contains(flavor.name)) out.push_back(&flavor);
  }
  return out;
}

void QueueKeeper::forget_start(const Subject& s) {
  Write write = write_patch(kube::resource_of(*s.row), s.maker->key, kube::PatchType::kMerge,
                            kinds::never_started_patch(*s.row->maker, s.maker->root()), "status");
  write.key = s.maker_key();
  write.copy = &views_.makers(*s.row);
  send(std::move(write));
}

void QueueKeeper::patch_maker(const Subject& s, std::string patch, std::string_view event,
                              const std::string& note) {
  const std::string key = s.maker_key();
  if (patch.empty()) return;
  if (!common_.writer.is_free(key) || waits_its_turn(s)) return unsettled();
  Write write = write_patch(kube::resource_of(*s.row), s.maker->key, kube::PatchType::kJson,
                            std::move(patch));
  write.key = key;
  write.copy = &views_.makers(*s.row);
  write.done = [this, about = s.about_maker(), event = std::string(event),
                note](const kube::Answer& answer) {
    if (answer.ok()) return common_.notices.event(about, "Normal", event, "Admitting", note);
    if (answer.conflict()) return;
    common_.notices.event(about, "Warning", "Not" + event, "Admitting",
                          "the API server refuses the change: " + answer.message);
  };
  send(std::move(write));
}

// Somebody else starts what is to rest, or the other way round: each turn within a minute of the
// one before waits longer, up to a minute. What others wait for, that it gives its quota back, is
// told again within a second, however often its author had it start before.
bool QueueKeeper::waits_its_turn(const Subject& s) {
  constexpr int kFree = 3, kMostDoublings = 6;
  const std::int64_t now = common_.now();
  Turns& turns = turns_[s.maker_key()];
  const bool leaves = s.spec.admission && !s.runs;
  const int doublings = leaves ? 0 : std::clamp(turns.count - kFree, 0, kMostDoublings);
  const std::int64_t until = turns.count < kFree ? 0 : turns.last + (kKeeperSecond << doublings);
  if (now < until) {
    retry_at_ = std::min(retry_at_, until);
    return true;
  }
  turns.count = turns.last != 0 && now - turns.last < 90 * kKeeperSecond ? turns.count + 1 : 0;
  turns.last = now;
  return false;
}

void QueueKeeper::keep_maker(Subject& s) {
  if (s.ended != kinds::Ended::kNo) return;
  const kinds::PodMaker& maker = *s.row->maker;
  if (s.runs == !kinds::rests(maker, s.maker->root())) return;
  if (s.runs) return start_maker(s);
  patch_maker(s, kinds::rest_patch(maker, s.maker->root()), s.object ? "Stopped" : "Suspended",
              s.object ? "The workload is not admitted" : "Waits for its queue");
}

void QueueKeeper::start_maker(const Subject& s) {
  const kinds::PodMaker& maker = *s.row->maker;
  const Value& sets = at(s.object->root(), "spec.podSets");
  if (sets.size() == 0 || s.spec.admission->pod_sets.empty()) return;
  // The API server lets the pods' place be changed only while a Job has never started.
  if (!kinds::never_started_patch(maker, s.maker->root()).empty()) return forget_start(s);
  std::vector<kinds::SetStart> starts;
  for (const model::PodSetAdmission& admitted : s.spec.admission->pod_sets) {
    for (const Value& set : sets.items()) {
      if (text_at(set, "name") != admitted.name) continue;
      kinds::SetStart start = set_start(admitted, flavors_of(admitted), s.spec);
      start.original = set.find("template");
      if (changes_count(maker, s.maker->root(), admitted, s.spec)) start.count = admitted.count;
      starts.push_back(std::move(start));
    }
  }
  patch_maker(s, kinds::start_patch(maker, s.maker->root(), starts), "Started",
              "Admitted by clusterQueue " + s.spec.admission->queue);
}

// Of a Job that is told to leave its controller ends the pods, but for those that it no longer
// knows. It may itself be leaving, or not be Kubernetes' own: then nobody does, and we end them.
void QueueKeeper::end_left(const Subject& s) {
  unsettled();
  const std::int64_t now = common_.now();
  Leaving& leaving = leaving_since_.try_emplace(s.name, Leaving{now, 0}).first->second;
  leaving.round = round_;
  const std::int64_t until = leaving.since + kLeaveFor;
  if (now < until) withhold(until);
  for (const model::PodSetSpec& set : s.spec.pod_sets) {
    for (const std::string& name : set.pods) {
      const kinds::LivePod* live = world_.objects().pod(name);
      if (live == nullptr || live->finished() || (!live->strayed && now < until)) continue;
      binder_.send_away(name, s.spec.evicted.empty() ? "Preempted" : s.spec.evicted,
                        "its workload " + s.name + " was evicted");
    }
  }
}

void QueueKeeper::keep_pods(Subject& s) {
  const bool leaves = s.eviction != nullptr || (s.spec.admission && !s.spec.evicted.empty());
  if (s.maker) {
    if (leaves) end_left(s);
    return;
  }
  for (const model::PodSetSpec& set : s.spec.pod_sets) {
    for (const std::string& name : set.pods) {
      const kinds::LivePod* live = world_.objects().pod(name);
      if (live == nullptr) continue;
      if (leaves && !live->finished()) {
        binder_.send_away(name, s.spec.evicted.empty() ? "Preempted" : s.spec.evicted,
                          "its workload " + s.name + " was evicted");
        continue;
      }
      if (!s.runs || !live->body->object.spec.gated || live->body->object.other_gates) continue;
      const model::PodSetAdmission* admitted = nullptr;
      for (const auto& one : s.spec.admission->pod_sets) {
        if (one.name == set.name) admitted = &one;
      }
      if (admitted == nullptr) continue;
      Write write =
          write_patch(kube::resources::pods(), {live->ns, live->name}, kube::PatchType::kStrategic,
                      kinds::pod_start_patch(flavors_of(*admitted)));
      write.key = "gate|" + name;
      write.copy = &views_.pods;
      send(std::move(write));
    }
  }
  if (!leaves) adopt_pods(s);
  finish_pods(s);
}

// Those that came for others of their group are its owners too, as the first were: it lasts as long
// as they do.
void QueueKeeper::adopt_pods(const Subject& s) {
  const Value* owners = find(s.object->root(), "metadata.ownerReferences");
  if (owners == nullptr || owners->size() == 0) return;
  if (common_.writer.is_under_way(status_key(s.object->key))) return unsettled();
  std::vector<kinds::Owner> all;
  std::set<std::string> known;
  for (const Value& owner : owners->items()) {
    if (text_at(owner, "kind") != "Pod" || true_at(owner, "controller")) return;
    const std::string uid(text_at(owner, "uid"));
    const kinds::LivePod* live =
        world_.objects().pod(s.spec.ns + '/' + std::string(text_at(owner, "name")));
    known.insert(uid);
    if (live != nullptr && live->uid == uid)
      all.push_back({.api_version = "v1", .kind = "Pod", .name = live->name, .uid = uid});
  }
  bool more = false;
  for (const model::PodSetSpec& set : s.spec.pod_sets) {
    for (const std::string& name : set.pods) {
      const kinds::LivePod* live = world_.objects().pod(name);
      if (live == nullptr || !known.insert(live->uid).second) continue;
      all.push_back({.api_version = "v1", .kind = "Pod", .name = live->name, .uid = live->uid});
      more = true;
    }
  }
  if (more) patch_workload(s.object->key, kinds::owners_patch(all));
}

// Its pods are those that own the object; ended ones are no part of the input any more.
void QueueKeeper::finish_pods(Subject& s) {
  const Value* owners = find(s.object->root(), "metadata.ownerReferences");
  if (owners == nullptr) return;
  if (common_.writer.is_under_way(status_key(s.object->key))) return unsettled();
  int ended = 0, failed = 0;
  for (const model::PodSetSpec& set : s.spec.pod_sets) {
    if (!set.pods.empty()) return;  // one runs, or is to
  }
  for (const Value& owner : owners->items()) {
    if (text_at(owner, "kind") != "Pod") return;
    const kinds::LivePod* live =
        world_.objects().pod(s.spec.ns + '/' + std::string(text_at(owner, "name")));
    if (live == nullptr || live->uid != text_at(owner, "uid")) continue;
    if (!live->finished()) return;
    ++ended;
    failed += live->phase == "Failed" ? 1 : 0;
  }
  kinds::WorkloadStatus status(s.object->root(), common_.loop.wall().now_ns());
  if (ended == 0 || status.is_true("Finished")) return;
  status.set("Finished", true, failed > 0 ? "Failed" : "Succeeded",
             failed > 0 ? fmt::format("{} of its pods failed", failed) : "Pods succeeded");
  write_status(s.object->key, status.patch());
}

}  // namespace berth::control
