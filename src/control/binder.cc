#include "control/binder.h"

#include <algorithm>
#include <set>
#include <vector>

#include "control/bodies.h"
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

Binder::Binder(Loop& loop, World& world, Writer& writer, Notices& notices, kube::Informer& pods,
               const Logger& log, MetricsRegistry& metrics, std::function<void()> want_cycle)
    : loop_(loop),
      world_(world),
      writer_(writer),
      notices_(notices),
      pods_(pods),
      log_(log),
      want_cycle_(std::move(want_cycle)),
      bound_metric_(
          binder_counter(metrics, "berth_controller_bound_total", "Pods bound to nodes.")),
      evicted_metric_(binder_counter(metrics, "berth_controller_evicted_total",
                                     "Pods deleted to make room, or with their gang.")),
      lost_metric_(binder_counter(metrics, "berth_controller_bind_failures_total",
                                  "Bindings that were refused or not answered.")),
      refused_metric_(binder_counter(metrics, "berth_controller_refused_evictions_total",
                                     "Pods that the API server refused to delete.")) {}

int Binder::failures_of(const std::string& name) const {
  const auto it = troubles_.find(name);
  return it == troubles_.end() ? 0 : it->second.count;
}

void Binder::clear() {
  troubles_.clear();
  refused_.clear();
}

void Binder::place(const std::string& pod, Assumed where) {
  where.stage = Assumed::Stage::kWaiting;
  where.since = loop_.monotonic().ticks_ns();
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
  where->since = loop_.monotonic().ticks_ns();
  const kube::Key key = pod_key(pod);
  writer_.add(
      WriteClass::kBind, key.ns,
      [key, body = kinds::binding_body(key.ns, key.name,
                                       {where->uid, where->node, where->charged, where->gpus})](
          kube::Client& client, kube::Client::Done done) {
        return client.post(kube::resources::pods(), key, "binding", body, std::move(done));
      },
      [this, pod, uid = where->uid](kube::Answer answer) { answered(pod, uid, answer); });
}

void Binder::answered(const std::string& pod, const std::string& uid, const kube::Answer& answer) {
  if (answer.ok()) {
    ++bound_;
    bound_metric_.add();
    notices_.placed(pod);
  }
  Assumed* where = world_.assumed(pod);
  if (where == nullptr || where->uid != uid) return;  // the watch was faster
  if (answer.ok()) {
    where->stage = Assumed::Stage::kWritten;
    where->since = loop_.monotonic().ticks_ns();
    return;
  }
  lost_metric_.add();
  log_.debug("binding failed", {{"pod", pod},
                                {"node", where->node},
                                {"status", answer.status},
                                {"message", answer.message}});
  where->stage = Assumed::Stage::kDoubtful;
  where->since = loop_.monotonic().ticks_ns();
  look_again(pod, uid);
}

void Binder::look_again(const std::string& pod, const std::string& uid) {
  const kube::Key key = pod_key(pod);
  writer_.add(
      WriteClass::kAct, key.ns,
      [key](kube::Client& client, kube::Client::Done done) {
        return client.get(kube::resources::pods(), key, std::move(done));
      },
      [this, pod, uid, key](kube::Answer answer) {
        if (answer.not_found()) {
          pods_.absorb_removed(key, uid);
        } else if (answer.ok()) {
          pods_.absorb(std::move(answer.body));
        } else {
          return;  // tick() asks again
        }
        const Assumed* still = world_.assumed(pod);
        if (still == nullptr || still->uid != uid || still->stage != Assumed::Stage::kDoubtful) {
          return;
        }
        const std::string name = still->gang.empty() ? pod : still->gang;
        world_.drop(pod);
        back_off(name);
        want_cycle_();
      });
}

void Binder::back_off(const std::string& name) {
  const std::int64_t now = loop_.monotonic().ticks_ns();
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
  if (const auto it = refused_.find(pod); it != refused_.end() && it->second.uid == live->uid &&
                                          it->second.until > loop_.monotonic().ticks_ns()) {
    return false;
  }
  const std::string uid = live->uid;
  const bool bound = !live->node.empty();
  const bool terminating = live->terminating;
  notices_.event({"v1", "Pod", live->ns, live->name, uid}, "Normal", "Preempted", "Preempting",
                 message);
  if (bound) world_.leave(pod, uid, live->node, loop_.monotonic().ticks_ns());
  if (terminating) {
    count_eviction();
    return true;
  }
  if (!bound) {
    remove(pod, uid);
    return true;
  }
  const kube::Key key = pod_key(pod);
  std::string body = kinds::pod_condition_patch(
      "DisruptionTarget", "True", reason == "PreemptionByScheduler" ? reason : "TerminationByBerth",
      message, loop_.wall().now_ns());
  writer_.add(
      WriteClass::kAct, key.ns,
      [key, body = std::move(body)](kube::Client& client, kube::Client::Done done) {
        return client.patch(kube::resources::pods(), key, kube::PatchType::kStrategic, body,
                            {.subresource = "status"}, std::move(done));
      },
      [this, pod, uid](const kube::Answer&) { remove(pod, uid); });
  return true;
}

void Binder::remove(const std::string& pod, const std::string& uid) {
  const kube::Key key = pod_key(pod);
  writer_.add(
      WriteClass::kAct, key.ns,
      [key, uid](kube::Client& client, kube::Client::Done done) {
        return client.remove(kube::resources::pods(), key, {.uid = uid}, std::move(done));
      },
      [this, pod, uid, key](const kube::Answer& answer) {
        const bool gone = answer.not_found() || answer.conflict();
        if (!answer.ok() && !gone) return refused(pod, uid, answer);
        count_eviction();
        refused_.erase(pod);
        if (gone) pods_.absorb_removed(key, uid);
      });
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
  r.until = loop_.monotonic().ticks_ns() + wait;
  ++r.count;
  log_.warn("a pod could not be told to leave", {{"pod", pod},
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

void Binder::tick(std::int64_t bind_timeout_ns) {
  const std::int64_t now = loop_.monotonic().ticks_ns();
  std::vector<std::pair<std::string, std::string>> doubts;
  std::vector<std::string> late;
  for (const auto& [pod, where] : world_.all_assumed()) {
    const std::int64_t age = now - where.since;
    if (where.stage == Assumed::Stage::kDoubtful && age > 2 * kBinderSecond) {
      doubts.emplace_back(pod, where.uid);
    } else if (where.stage == Assumed::Stage::kWritten && age > bind_timeout_ns) {
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
    log_.warn("a pod waited too long for others to leave its node", {{"pod", pod}});
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
  if (more) want_cycle_();
}

}  // namespace berth::control
