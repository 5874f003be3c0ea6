#include "control/binder.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "control/decision_line.h"
#include "kinds/pod_writes.h"

namespace berth::control {

namespace {

constexpr std::int64_t kBinderSecond = 1'000'000'000;
constexpr std::int64_t kFirstWait = kBinderSecond;
constexpr std::int64_t kLongestWait = 600 * kBinderSecond;
constexpr std::int64_t kForgiven = 1800 * kBinderSecond;  // so long without trouble
constexpr std::int64_t kStuckLeaving = 900 * kBinderSecond;

kube::Key pod_key(const std::string& pod) {
  const std::size_t slash = pod.find('/');
  return {pod.substr(0, slash), pod.substr(slash + 1)};
}

Counter binder_counter(MetricsRegistry& metrics, const char* name, const char* help) {
  return metrics.counter({.name = name, .help = help}).get();
}

}  // namespace

Binder::Binder(const Common& common, kube::Informer& pods, std::int64_t bind_timeout_ns,
               std::function<void()> want_cycle)
    : common_(common),
      world_(common.world),
      pods_(pods),
      bind_timeout_ns_(bind_timeout_ns),
      want_cycle_(std::move(want_cycle)),
      bound_metric_(
          binder_counter(common.metrics, "berth_controller_bound_total", "Pods bound to nodes.")),
      evicted_metric_(binder_counter(common.metrics, "berth_controller_evicted_total",
                                     "Pods deleted to make room, or with their gang.")),
      lost_metric_(binder_counter(common.metrics, "berth_controller_bind_failures_total",
                                  "Bindings that were refused or not answered.")),
      refused_metric_(binder_counter(common.metrics, "berth_controller_refused_evictions_total",
                                     "Pods that the API server refused to delete.")) {}

int Binder::failures_of(const std::string& name) const {
  const auto it = troubles_.find(name);
  return it == troubles_.end() ? 0 : it->second.count;
}

void Binder::clear() {
  troubles_.clear();
  refused_.clear();
}

// Room that it held is free: whoever waited for it may be written.
bool Binder::changed(const Change& change) {
  if (!change.is("Pod") || !change.before.bound) return false;
  const kinds::LivePod* live = world_.objects().pod(change.name());
  const bool holds_room = live != nullptr && !live->node.empty() && !live->finished();
  if (!holds_room && world_.sweep_leaving()) flush();
  return false;
}

void Binder::carry_out(const model::Decision& decision) {
  for (const model::Preemption& victim : decision.preemptions) {
    send_away(victim.pod, "PreemptionByScheduler", "preempted to make room for " + victim.by);
  }
  std::map<std::string, std::pair<int, std::set<std::string>>> gangs;
  for (const model::Placement& p : decision.placements) {
    const kinds::LivePod* live = world_.objects().pod(p.pod);
    if (live == nullptr || !live->node.empty()) continue;
    place(p.pod, {.uid = live->uid, .node = p.node, .gang = p.gang, .gpus = p.gpus});
    if (p.gang.empty()) continue;
    auto& [pods, nodes] = gangs[p.gang];
    ++pods;
    nodes.insert(p.node);
  }
  for (const auto& [gang, what] : gangs) {
    common_.notices.event(
        of_gang(gang), "Normal", "Scheduled", "Binding",
        fmt::format("{} pods placed on {} nodes", what.first, what.second.size()));
  }
}

void Binder::place(const std::string& pod, Assumed where) {
  where.stage = Assumed::Stage::kWaiting;
  where.since = common_.now();
  world_.assume(pod, std::move(where));
}

// Others are still on its node, or its scheduling gates on the pod: the server would refuse it.
bool Binder::not_yet(const std::string& pod, const Assumed& where) const {
  if (world_.node_has_leaving(where.node)) return true;
  const kinds::LivePod* live = world_.objects().pod(pod);
  return live != nullptr && live->body->object.spec.gated;
}

void Binder::flush() {
  std::set<std::string_view> blocked;
  std::vector<std::string> ready;
  for (const auto& [pod, where] : world_.all_assumed()) {
    if (where.stage != Assumed::Stage::kWaiting || where.gang.empty()) continue;
    if (not_yet(pod, where)) blocked.insert(where.gang);
  }
  for (const auto& [pod, where] : world_.all_assumed()) {
    if (where.stage != Assumed::Stage::kWaiting || not_yet(pod, where)) continue;
    if (where.gang.empty() || !blocked.contains(where.gang)) ready.push_back(pod);
  }
  for (const std::string& pod : ready) write(pod);
}

void Binder::write(const std::string& pod) {
  Assumed* where = world_.assumed(pod);
  if (where == nullptr) return;
  where->stage = Assumed::Stage::kWriting;
  where->since = common_.now();
  const kube::Key key = pod_key(pod);
  Write write =
      write_post(kube::resources::pods(), key, "binding",
                 kinds::binding_body(key.ns, key.name,
                                     {where->uid, where->node, where->charged, where->gpus}));
  write.kind = WriteClass::kBind;
  write.done = [this, pod, uid = where->uid](const kube::Answer& answer) {
    answered(pod, uid, answer);
  };
  common_.writer.add(std::move(write));
}

void Binder::answered(const std::string& pod, const std::string& uid, const kube::Answer& answer) {
  if (answer.ok()) {
    ++bound_;
    bound_metric_.add();
    common_.notices.placed(pod);
  }
  Assumed* where = world_.assumed(pod);
  if (where == nullptr || where->uid != uid) return;  // the watch was faster
  if (answer.ok()) {
    where->stage = Assumed::Stage::kWritten;
    where->since = common_.now();
    return;
  }
  lost_metric_.add();
  common_.log.debug("binding failed", {{"pod", pod},
                                       {"node", where->node},
                                       {"status", answer.status},
                                       {"message", answer.message}});
  where->stage = Assumed::Stage::kDoubtful;
  where->since = common_.now();
  look_again(pod, uid);
}

void Binder::look_again(const std::string& pod, const std::string& uid) {
  const kube::Key key = pod_key(pod);
  Write write = write_get(kube::resources::pods(), key);
  write.done = [this, pod, uid, key](kube::Answer answer) {
    if (answer.not_found()) {
      pods_.absorb_removed(key, uid);
    } else if (answer.ok()) {
      pods_.absorb(std::move(answer.body));
    } else {
      return;  // tick() asks again
    }
    const Assumed* still = world_.assumed(pod);
    if (still == nullptr || still->uid != uid || still->stage != Assumed::Stage::kDoubtful) return;
    const std::string name = still->gang.empty() ? pod : still->gang;
    world_.drop(pod);
    back_off(name);
    want_cycle_();
  };
  common_.writer.add(std::move(write));
}

void Binder::back_off(const std::string& name) {
  const std::int64_t now = common_.now();
  Trouble& trouble = troubles_[name];
  if (now - trouble.last > kForgiven) trouble.count = 0;
  const int doublings = std::min(trouble.count, 12);
  ++trouble.count;
  trouble.last = now;
  world_.hold(name, now + std::min(kLongestWait, kFirstWait << doublings));
  if (troubles_.size() > 10'000) {
    std::erase_if(troubles_, [&](const auto& e) { return now - e.second.last > kForgiven; });
  }
}

bool Binder::send_away(const std::string& pod, std::string_view reason,
                       const std::string& message) {
  const kinds::LivePod* live = world_.objects().pod(pod);
  if (live == nullptr || world_.is_leaving(pod) || live->finished()) return false;
  if (const auto it = refused_.find(pod);
      it != refused_.end() && it->second.uid == live->uid && it->second.until > common_.now()) {
    return false;
  }
  const std::string uid = live->uid;
  const bool bound = !live->node.empty();
  const bool terminating = live->terminating;
  common_.notices.event({"v1", "Pod", live->ns, live->name, uid}, "Normal", "Preempted",
                        "Preempting", message);
  if (bound) world_.leave(pod, uid, live->node, common_.now());
  if (terminating) {
    count_eviction();
    return true;
  }
  if (!bound) {
    remove(pod, uid);
    return true;
  }
  Write write = write_patch(
      kube::resources::pods(), pod_key(pod), kube::PatchType::kStrategic,
      kinds::pod_condition_patch("DisruptionTarget", "True",
                                 reason == "PreemptionByScheduler" ? reason : "TerminationByBerth",
                                 message, common_.loop.wall().now_ns()),
      "status");
  write.done = [this, pod, uid](const kube::Answer&) { remove(pod, uid); };
  common_.writer.add(std::move(write));
  return true;
}

void Binder::remove(const std::string& pod, const std::string& uid) {
  const kube::Key key = pod_key(pod);
  Write write = write_remove(kube::resources::pods(), key, uid);
  write.done = [this, pod, uid, key](const kube::Answer& answer) {
    const bool gone = answer.not_found() || answer.conflict();
    if (!answer.ok() && !gone) return refused(pod, uid, answer);
    count_eviction();
    refused_.erase(pod);
    if (gone) pods_.absorb_removed(key, uid);
  };
  common_.writer.add(std::move(write));
}

void Binder::count_eviction() {
  ++evicted_;
  evicted_metric_.add();
}

// It stays where it is, whoever was to get its place does not, and the next decision looks for
// other victims. It is asked again later, each time after a longer while.
void Binder::refused(const std::string& pod, const std::string& uid, const kube::Answer& answer) {
  refused_metric_.add();
  Refused& r = refused_[pod];
  if (r.uid != uid) r = {.uid = uid};
  const std::int64_t wait = std::min(kLongestWait, kFirstWait << std::min(r.count, 12));
  r.until = common_.now() + wait;
  ++r.count;
  common_.log.warn("a pod could not be told to leave", {{"pod", pod},
                                                        {"status", answer.status},
                                                        {"message", answer.message},
                                                        {"again_in_s", wait / kBinderSecond}});
  world_.keep(pod);
  stays(pod);
  want_cycle_();
}

// A pod that was to leave its node does not: the places of those that waited for it are theirs no
// more, nor those of their gangs' other members.
void Binder::stays(const std::string& pod) {
  const kinds::LivePod* live = world_.objects().pod(pod);
  if (world_.is_leaving(pod) && live != nullptr) {
    std::set<std::string> gangs;
    std::vector<std::string> dropped;
    for (const auto& [name, where] : world_.all_assumed()) {
      if (where.stage != Assumed::Stage::kWaiting || where.node != live->node) continue;
      dropped.push_back(name);
      if (!where.gang.empty()) gangs.insert(where.gang);
    }
    for (const auto& [name, where] : world_.all_assumed()) {
      const bool waits = where.stage == Assumed::Stage::kWaiting && where.node != live->node;
      if (waits && gangs.contains(where.gang)) dropped.push_back(name);
    }
    for (const std::string& name : dropped) world_.drop(name);
  }
  world_.stays(pod);
}

bool Binder::tick(std::int64_t now) {
  std::vector<std::pair<std::string, std::string>> doubts;
  std::vector<std::string> late;
  for (const auto& [pod, where] : world_.all_assumed()) {
    const std::int64_t age = now - where.since;
    if (where.stage == Assumed::Stage::kDoubtful && age > 2 * kBinderSecond) {
      doubts.emplace_back(pod, where.uid);
    } else if (where.stage == Assumed::Stage::kWritten && age > bind_timeout_ns_) {
      doubts.emplace_back(pod, where.uid);
    } else if (where.stage == Assumed::Stage::kWaiting && age > kStuckLeaving) {
      late.push_back(pod);
    }
  }
  for (const auto& [pod, uid] : doubts) {
    Assumed* where = world_.assumed(pod);
    where->stage = Assumed::Stage::kDoubtful;
    where->since = now;
    look_again(pod, uid);
  }
  for (const std::string& pod : late) {
    common_.log.warn("a pod waited too long for others to leave its node", {{"pod", pod}});
    world_.drop(pod);
  }
  for (const std::string& pod : world_.stuck_leaving(now - kStuckLeaving)) stays(pod);
  bool more = !late.empty();
  std::erase_if(refused_, [&](const auto& e) {
    const kinds::LivePod* live = world_.objects().pod(e.first);
    const bool is_same = live != nullptr && live->uid == e.second.uid;
    if (!is_same || e.second.until <= now) more |= world_.let_go(e.first);
    return !is_same || now - e.second.until > kForgiven;
  });
  return more;
}

}  // namespace berth::control
