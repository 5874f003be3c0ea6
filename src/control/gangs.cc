#include "control/gangs.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "control/rejected_pods.h"
#include "text/path.h"

namespace berth::control {

using text::Value;

namespace {

constexpr int kMostRejections = 8;  // of one gang, then it waits as long as it may

}  // namespace

Gangs::Gangs(const Common& common, Binder& binder, std::int64_t bind_timeout_ns)
    : common_(common),
      binder_(binder),
      bind_timeout_ns_(bind_timeout_ns),
      rejected_metric_(common.metrics
                           .counter({.name = "berth_controller_rejected_total",
                                     .help = "Pods that a kubelet refused."})
                           .get()) {}

bool Gangs::changed(const Change& change) {
  if (!change.is("Pod") || change.object == nullptr || !change.before.ours) return false;
  if (refused_by_node(*change.object)) rejected(change.name(), change.before.gang, *change.object);
  return false;
}

void Gangs::rejected(const std::string& pod, const std::string& gang, const Value& object) {
  rejected_metric_.add();
  const std::string reason(text_at(object, "status.reason"));
  common_.log.warn("a kubelet refused a pod", {{"pod", pod},
                                               {"gang", gang},
                                               {"reason", reason},
                                               {"node", text_at(object, "spec.nodeName")}});
  if (gang.empty() || !common_.acting()) return;
  std::vector<std::string> others;
  const model::ClusterState& state = common_.world.builder().state();
  if (const auto index = common_.world.builder().find_gang(gang)) {
    state.for_each_in_gang(*index, [&](model::PodId id) {
      const std::string& name = state.pod(id).info->name;
      const kinds::LivePod* live = common_.world.objects().pod(name);
      if (name != pod && live != nullptr && !live->node.empty() && !live->owner().empty()) {
        others.push_back(name);
      }
    });
  }
  binder_.back_off(gang);
  if (binder_.failures_of(gang) > kMostRejections) {
    common_.notices.event(of_gang(gang), "Warning", "Rejected", "Scheduling",
                          fmt::format("kubelets refused its pods {} times, the last for {}",
                                      binder_.failures_of(gang), reason));
  }
  for (const std::string& other : others) {
    binder_.send_away(other, "Rejected", "a kubelet refused " + pod + ": " + reason);
  }
}

namespace {

// Gangs of which something waits, whose pods may run in part.
std::set<std::string> waiting_gangs(const Decided& what, const World& world) {
  std::set<std::string> out;
  for (const model::Outcome& o : what.decision.outcomes) {
    // What will never fit would not fit without them either.
    if (o.verdict == model::Verdict::kPlaced || o.verdict == model::Verdict::kNever) continue;
    if (o.gang && !o.queued) out.insert(o.workload);
    const auto members = o.queued ? what.members.find(o.workload) : what.members.end();
    if (members == what.members.end()) continue;
    for (const std::string& pod : members->second) {  // one that came to a group that runs
      const kinds::LivePod* live = world.objects().pod(pod);
      if (live != nullptr && !live->group().empty()) out.insert(live->ns + '/' + live->group());
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> Gangs::bound_of(std::int32_t gang) const {
  std::vector<std::string> out;
  const model::ClusterState& state = common_.world.builder().state();
  state.for_each_in_gang(gang, [&](model::PodId id) {
    const model::PodEntry& pod = state.pod(id);
    if (pod.slot >= 0 && common_.world.assumed(pod.info->name) == nullptr) {
      out.push_back(pod.info->name);
    }
  });
  return out;
}

void Gangs::decided(const Decided& what) {
  World& world = common_.world;
  std::set<std::string> partial;
  for (const std::string& name : waiting_gangs(what, world)) {
    const auto index = world.builder().find_gang(name);
    if (!index) continue;
    const std::vector<std::string> bound = bound_of(*index);
    int done = 0;  // members that have ended well count, as they do for Volcano
    world.objects().for_each_member(name, [&](const std::string&, const kinds::LivePod& pod) {
      done += pod.phase == "Succeeded" ? 1 : 0;
    });
    const int min_member = world.builder().state().gang(*index).min_member - done;
    if (bound.empty() || static_cast<int>(bound.size()) >= min_member) continue;
    partial.insert(name);
    const std::int64_t now = common_.now();
    const auto [since, fresh] = partial_since_.emplace(name, now);
    if (fresh || now - since->second < bind_timeout_ns_) continue;
    common_.log.warn("a gang is partly bound for too long: it starts over",
                     {{"gang", name}, {"bound", bound.size()}, {"min", min_member}});
    since->second = now;
    binder_.back_off(name);
    for (const std::string& pod : bound) {
      const kinds::LivePod* live = world.objects().pod(pod);
      if (live == nullptr || live->owner().empty()) continue;
      binder_.send_away(pod, "GangIncomplete", "its gang " + name + " does not fit as a whole");
    }
  }
  std::erase_if(partial_since_, [&](const auto& entry) { return !partial.contains(entry.first); });
}

bool Gangs::tick(std::int64_t) { return !partial_since_.empty(); }

}  // namespace berth::control
