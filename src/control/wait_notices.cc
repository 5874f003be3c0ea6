#include "control/wait_notices.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kinds/counted.h"

namespace berth::control {

WaitNotices::WaitNotices(const Common& common)
    : common_(common),
      unread_metric_(common.metrics.gauge(
          {.name = "berth_controller_unreadable_objects",
           .help = "Objects that count although part of them cannot be read, by kind.",
           .labels = {"kind"}})) {}

bool WaitNotices::changed(const Change& change) {
  if (change.is("Pod") && change.object == nullptr) common_.notices.forget(change.name());
  return false;
}

void WaitNotices::tell_unread(const std::vector<kinds::Note>& refused,
                              const std::vector<kinds::Note>& unread) {
  const World& world = common_.world;
  const auto pod_of = [](const kinds::Note& note) {
    constexpr std::string_view kKind = "Pod ";
    return note.object.starts_with(kKind) ? note.object.substr(kKind.size()) : std::string();
  };
  for (const kinds::Note& note : refused) {
    const std::string pod = pod_of(note);
    const kinds::LivePod* live = world.objects().pod(pod);
    if (live != nullptr && live->node.empty() && !live->foreign) {
      common_.notices.waits(pod, live->uid, {false, "Invalid", note.path + ": " + note.message});
    }
  }
  for (const kinds::Note& note : unread) {
    const std::string message = note.path + ": " + note.message;
    const kinds::LivePod* live = world.objects().pod(pod_of(note));
    if (live != nullptr) {
      common_.notices.event({"v1", "Pod", live->ns, live->name, live->uid}, "Warning", "Unreadable",
                            "Counting", fmt::format("{}; {}", message, kinds::kPodCounts));
    } else {
      common_.log.warn("part of an object cannot be read",
                       {{"object", note.object}, {"why", message}});
    }
  }
  for (auto& [kind, known] : unread_kinds_) known = 0;
  for (const auto& [kind, count] : world.objects().unread()) unread_kinds_[kind] = count;
  for (const auto& [kind, count] : unread_kinds_) {
    unread_metric_.with({kind}).set(static_cast<double>(count));
  }
}

void WaitNotices::tell(const std::string& pod, const Notices::Wait& why) {
  const kinds::LivePod* live = common_.world.objects().pod(pod);
  if (live == nullptr || !live->node.empty() || live->terminating) return;
  if (common_.world.assumed(pod) != nullptr || live->body->object.spec.gated) return;
  common_.notices.waits(pod, live->uid, why);
}

void WaitNotices::decided(const Decided& what) {
  waiting_ = 0;
  for (const auto& [pod, why] : what.beyond) {
    tell(pod, {true, model::name(model::Reason::kWaitingForQuota), why});
  }
  for (const model::Outcome& o : what.decision.outcomes) {
    if (o.verdict == model::Verdict::kPlaced) continue;
    waiting_ += static_cast<std::size_t>(std::max(0, o.pods - o.placed));
    tell_all_of(what, o);
  }
}

void WaitNotices::tell_all_of(const Decided& what, const model::Outcome& outcome) {
  // Where nodes lack, autoscalers may help, whatever it waits in.
  const bool queued = outcome.queued && !model::is_of_nodes(outcome.reason);
  const Notices::Wait why{queued, model::name(outcome.reason), outcome.message};
  if (outcome.queued) {
    const auto known = what.members.find(outcome.workload);
    if (known == what.members.end()) return;
    for (const std::string& pod : known->second) tell(pod, why);
    return;
  }
  if (!outcome.gang) return tell(outcome.workload, why);
  const auto gang = common_.world.builder().find_gang(outcome.workload);
  if (!gang) return;
  std::vector<std::string> members;
  const model::ClusterState& state = common_.world.builder().state();
  state.for_each_in_gang(*gang, [&](model::PodId id) {
    if (state.pod(id).slot == model::kPending) members.push_back(state.pod(id).info->name);
  });
  for (const std::string& pod : members) tell(pod, why);
}

}  // namespace berth::control
