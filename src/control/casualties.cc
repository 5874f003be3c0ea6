#include "control/casualties.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "objects/readers.h"

namespace berth::control {

using objects::find_in;
using text::Value;

namespace {

std::string_view text_of(const Value& v, std::initializer_list<std::string_view> keys) {
  const Value* found = find_in(v, keys);
  return found == nullptr ? std::string_view{} : found->string();
}

std::vector<react::SickGpu> sick_gpus_of(const Value& gpu_node) {
  std::vector<react::SickGpu> out;
  const Value* gpus = find_in(gpu_node, {"status", "gpus"});
  if (gpus == nullptr) return out;
  for (const Value& gpu : gpus->items()) {
    const std::string_view state = text_of(gpu, {"health", "state"});
    if (state.empty() || state == "Healthy") continue;
    const Value* index = gpu.find("index");
    react::SickGpu one{
        .index = index == nullptr ? 0 : static_cast<int>(index->as_int64().value_or(0)),
        .reason = std::string(text_of(gpu, {"health", "reason"})),
        .holders = {}};
    if (state == "Unknown" && one.reason.empty()) one.reason = "DriverSilent";
    if (const Value* holders = gpu.find("holders")) {
      for (const Value& uid : holders->items()) one.holders.emplace_back(uid.string());
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

Casualties::Casualties(Loop& loop, World& world, Notices& notices, const Logger& log,
                       MetricsRegistry& metrics, react::SickGpuPolicy policy, SendAway send_away,
                       std::function<bool()> queues_are_ours)
    : loop_(loop),
      world_(world),
      notices_(notices),
      log_(log),
      react_(policy),
      send_away_(std::move(send_away)),
      queues_are_ours_(std::move(queues_are_ours)),
      ended_metric_(
          metrics
              .counter({.name = "berth_controller_gpu_failures_total",
                        .help = "Workloads that were ended because a GPU of theirs broke."})
              .get()),
      affected_metric_(metrics
                           .gauge({.name = "berth_controller_pods_on_broken_gpus",
                                   .help = "Pods of ours that run on a GPU that broke."})
                           .get()) {}

void Casualties::agent_changed(const std::string& node, const Value* gpu_node) {
  if (gpu_node == nullptr) return react_.node_gone(node);
  react_.told(node, sick_gpus_of(*gpu_node), loop_.monotonic().ticks_ns());
}

void Casualties::clear() { react_.keep({}); }

bool Casualties::tick() {
  std::map<std::string, react::Casualty> by_uid;
  std::set<std::string> nodes;
  for (react::Casualty& one : react_.due(loop_.monotonic().ticks_ns())) {
    nodes.insert(one.node);
    std::string uid = one.uid;
    by_uid.emplace(std::move(uid), std::move(one));
  }
  std::vector<std::pair<std::string, const react::Casualty*>> found;
  for (const std::string& node : nodes) {
    world_.objects().for_each_pod_on(node,
                                     [&](const std::string& key, const objects::LivePod& pod) {
                                       const auto it = by_uid.find(pod.uid);
                                       if (it == by_uid.end() || pod.finished() || pod.foreign)
                                         return;
                                       found.emplace_back(key, &it->second);
                                     });
  }
  affected_metric_.set(static_cast<double>(found.size()));
  std::set<std::string> wanted;
  std::map<std::string, std::string> of_queues;
  for (const auto& [pod, why] : found) {
    const objects::LivePod* live = world_.objects().pod(pod);
    if (live == nullptr || live->terminating || world_.is_leaving(pod)) continue;
    if (!ends(pod, *live, *why, wanted)) continue;
    of_queues.emplace(pod, fmt::format("GPU {} of node {} failed ({}) under its pod {}", why->gpu,
                                       why->node, why->reason, live->name));
  }
  react_.keep(wanted);
  return world_.fail(of_queues);
}

// True: its queue has to end it. Whatever is to be ended is named in wanted.
bool Casualties::ends(const std::string& pod, const objects::LivePod& live,
                      const react::Casualty& why, std::set<std::string>& wanted) {
  const std::string* wish = live.body->object.meta.annotation(kOnGpuFailure);
  if (wish != nullptr && *wish == "keep") return false;
  const bool queued = world_.objects().in_queue(pod) && queues_are_ours_();
  const std::string gang = queued ? std::string() : world_.gang_of(pod);
  if (live.owner().empty()) {
    notices_.event({"v1", "Pod", live.ns, live.name, live.uid}, "Warning", "GpuFailed", "Evicting",
                   fmt::format("GPU {} of node {} failed ({}), and nobody would make this pod "
                               "again: delete it and create it anew",
                               why.gpu, why.node, why.reason));
    return false;
  }
  std::string unit = gang.empty() ? live.ns + '/' + live.owner() : "gang " + gang;
  if (gang.empty() && !queued) unit = "pod " + pod;
  const bool fresh = wanted.insert(unit).second;
  if (!react_.may_end(unit, loop_.monotonic().ticks_ns())) return false;
  if (!fresh || world_.is_failed(pod)) return queued;  // told already
  const std::string message =
      fmt::format("GPU {} of node {} failed ({}) under {}", why.gpu, why.node, why.reason, pod);
  log_.warn("a GPU failed under a pod: its workload starts over",
            {{"pod", pod}, {"gang", gang}, {"node", why.node}, {"reason", why.reason}});
  ended_metric_.add();
  if (queued) return true;
  if (gang.empty()) {
    send_away_(pod, "GpuFailure", message);
  } else {
    end_gang(gang, message);
  }
  return false;
}

void Casualties::end_gang(const std::string& gang, const std::string& message) {
  const auto index = world_.builder().find_gang(gang);
  if (!index) return;
  std::vector<std::string> members;
  const model::ClusterState& state = world_.builder().state();
  state.for_each_in_gang(*index, [&](model::PodId id) {
    const std::string& name = state.pod(id).info->name;
    const objects::LivePod* live = world_.objects().pod(name);
    if (live != nullptr && !live->node.empty() && !live->owner().empty()) members.push_back(name);
  });
  for (const std::string& pod : members) send_away_(pod, "GpuFailure", message);
}

}  // namespace berth::control
