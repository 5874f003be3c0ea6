#include "control/sick_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "decide/schedule/rule_memo.h"
#include "kinds/readers.h"
#include "text/path.h"

namespace berth::control {

using text::Value;

namespace {

std::vector<react::SickGpu> sick_gpus_of(const Value& gpu_node) {
  std::vector<react::SickGpu> out;
  const Value* gpus = find(gpu_node, "status.gpus");
  if (gpus == nullptr) return out;
  for (const Value& gpu : gpus->items()) {
    const std::string_view state = text_at(gpu, "health.state");
    if (state.empty() || state == "Healthy") continue;
    const Value* index = gpu.find("index");
    react::SickGpu one{
        .index = index == nullptr ? 0 : static_cast<int>(index->as_int64().value_or(0)),
        .reason = std::string(text_at(gpu, "health.reason")),
        .holders = {}};
    if (state == "Unknown" && one.reason.empty()) one.reason = "DriverSilent";
    if (const Value* holders = gpu.find("holders")) {
      for (const Value& uid : holders->items()) one.holders.emplace_back(uid.string());
    }
    out.push_back(std::move(one));
  }
  return out;
}

std::optional<model::Taint> notice_of(const Value& node) {
  const Value* taints = find(node, "spec.taints");
  if (taints == nullptr) return std::nullopt;
  for (const Value& taint : taints->items()) {
    const std::string_view effect = text_at(taint, "effect");
    if (!schedule::is_notice_taint(text_at(taint, "key")) || effect == "PreferNoSchedule") {
      continue;
    }
    return model::Taint{
        std::string(text_at(taint, "key")), std::string(text_at(taint, "value")),
        effect == "NoExecute" ? model::TaintEffect::kNoExecute : model::TaintEffect::kNoSchedule};
  }
  return std::nullopt;
}

// Whether somebody else brings it up elsewhere, at his own pace.
bool serves(std::string_view owner) {
  return owner.starts_with("ReplicaSet/") || owner.starts_with("StatefulSet/") ||
         owner.starts_with("DaemonSet/") || owner.starts_with("ReplicationController/") ||
         owner.starts_with("Node/");
}

}  // namespace

SickGpus::SickGpus(const Common& common, Binder& binder, Policy policy)
    : common_(common),
      binder_(binder),
      react_(policy.gpus),
      heed_notices_(policy.heed_notices),
      ended_metric_(
          common.metrics
              .counter({.name = "berth_controller_gpu_failures_total",
                        .help = "Workloads that were ended because a GPU of theirs broke."})
              .get()),
      reclaimed_metric_(
          common.metrics
              .counter(
                  {.name = "berth_controller_reclaimed_total",
                   .help = "Workloads that were ended because a node of theirs is taken back."})
              .get()),
      affected_metric_(common.metrics
                           .gauge({.name = "berth_controller_pods_on_broken_gpus",
                                   .help = "Pods of ours that run on a GPU that broke."})
                           .get()) {}

bool SickGpus::changed(const Change& change) {
  const std::string& node = change.key.name;
  if (change.is("GpuNode")) {
    if (change.object == nullptr) {
      react_.node_gone(node);
    } else {
      react_.told(node, sick_gpus_of(*change.object), common_.now());
    }
    return false;
  }
  return change.is("Node") && is_new_notice(change) && common_.acting() && tick(common_.now());
}

bool SickGpus::is_new_notice(const Change& node) {
  if (!heed_notices_) return false;
  std::optional<model::Taint> notice =
      node.object == nullptr ? std::nullopt : notice_of(*node.object);
  if (!notice) {
    leaving_.erase(node.key.name);
    return false;
  }
  return leaving_.insert_or_assign(node.key.name, *std::move(notice)).second;
}

bool SickGpus::tick(std::int64_t) {
  std::vector<Victim> victims = on_broken_gpus();
  affected_metric_.set(static_cast<double>(victims.size()));
  add_on_leaving_nodes(victims);
  std::set<std::string> wanted;
  std::map<std::string, model::Loss> of_queues;
  for (const Victim& victim : victims) {
    const kinds::LivePod* live = common_.world.objects().pod(victim.pod);
    if (live == nullptr || live->terminating || common_.world.is_leaving(victim.pod)) continue;
    if (ends(victim, *live, wanted)) of_queues.emplace(victim.pod, victim.why);
  }
  react_.keep(wanted);
  return common_.world.fail(of_queues);
}

std::vector<SickGpus::Victim> SickGpus::on_broken_gpus() {
  std::map<std::string, react::Casualty> by_uid;
  std::set<std::string> nodes;
  for (react::Casualty& one : react_.due(common_.now())) {
    nodes.insert(one.node);
    std::string uid = one.uid;
    by_uid.emplace(std::move(uid), std::move(one));
  }
  std::vector<Victim> out;
  for (const std::string& node : nodes) {
    common_.world.objects().for_each_pod_on(node, [&](const std::string& key,
                                                      const kinds::LivePod& pod) {
      const auto it = by_uid.find(pod.uid);
      if (it == by_uid.end() || pod.finished() || pod.foreign) return;
      const std::string* wish = pod.body->object.meta.annotation(kOnGpuFailure);
      if (wish != nullptr && *wish == "keep") return;
      const react::Casualty& why = it->second;
      out.push_back({key,
                     {"GpuFailure", fmt::format("GPU {} of node {} failed ({}) under its pod {}",
                                                why.gpu, why.node, why.reason, pod.name)},
                     "GpuFailed",
                     true});
    });
  }
  return out;
}

void SickGpus::add_on_leaving_nodes(std::vector<Victim>& out) const {
  for (const auto& [node, notice] : leaving_) {
    common_.world.objects().for_each_pod_on(
        node, [&](const std::string& key, const kinds::LivePod& pod) {
          if (pod.finished() || pod.foreign) return;
          if (serves(pod.owner()) && common_.world.gang_of(key).empty()) return;
          const auto& tolerations = pod.body->object.spec.tolerations;
          if (std::any_of(tolerations.begin(), tolerations.end(),
                          [&](const auto& one) { return model::tolerates(one, notice); })) {
            return;
          }
          out.push_back({key,
                         {"NodeReclaimed", fmt::format("node {} of its pod {} is taken back ({})",
                                                       node, pod.name, notice.key)},
                         "NodeReclaimed",
                         false});
        });
  }
}

// True: its queue has to end it. Whatever is to be ended is named in wanted.
bool SickGpus::ends(const Victim& victim, const kinds::LivePod& live,
                    std::set<std::string>& wanted) {
  const std::string& pod = victim.pod;
  std::string gang = common_.world.gang_of(pod);
  const bool whole = victim.bounded || !gang.empty() || !live.owner().starts_with("Job/");
  const bool queued = whole && common_.world.objects().in_queue(pod) && common_.queues_are_ours();
  if (queued) gang.clear();
  if (live.owner().empty()) {
    common_.notices.event(
        {"v1", "Pod", live.ns, live.name, live.uid}, "Warning", victim.event, "Evicting",
        victim.why.message +
            ", and nobody would make this pod again: delete it and create it anew");
    return false;
  }
  std::string unit = gang.empty() ? live.ns + '/' + live.owner() : "gang " + gang;
  if (gang.empty() && !queued) unit = "pod " + pod;
  const bool fresh = wanted.insert(unit).second;
  if (victim.bounded && !react_.may_end(unit, common_.now())) return false;
  if (!fresh || common_.world.is_failed(pod)) return queued;  // told already
  bool told = queued;
  if (!queued && gang.empty()) told = binder_.send_away(pod, victim.why.reason, victim.why.message);
  if (!queued && !gang.empty()) told = end_gang(gang, victim.why);
  if (!told) return queued;  // the server refuses it for now
  common_.log.warn("a workload loses what it runs on and starts over",
                   {{"pod", pod}, {"gang", gang}, {"why", victim.why.message}});
  (victim.bounded ? ended_metric_ : reclaimed_metric_).add();
  return queued;
}

bool SickGpus::end_gang(const std::string& gang, const model::Loss& why) {
  const auto index = common_.world.builder().find_gang(gang);
  if (!index) return false;
  std::vector<std::string> members;
  const model::ClusterState& state = common_.world.builder().state();
  state.for_each_in_gang(*index, [&](model::PodId id) {
    const std::string& name = state.pod(id).info->name;
    const kinds::LivePod* live = common_.world.objects().pod(name);
    if (live != nullptr && !live->node.empty() && !live->owner().empty()) members.push_back(name);
  });
  bool any = false;
  for (const std::string& pod : members) any |= binder_.send_away(pod, why.reason, why.message);
  return any;
}

}  // namespace berth::control
