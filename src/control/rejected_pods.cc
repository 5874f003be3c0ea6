#include "control/rejected_pods.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "kinds/pod_body.h"
#include "kinds/readers.h"
#include "text/json_writer.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::control {

using text::Value;

namespace {

// FNV-1a; parts are told apart by a byte that no text has.
void mix(std::uint64_t& sum, std::string_view part) {
  for (const char c : part) {
    sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  sum = (sum ^ 0xff) * 0x100000001b3;
}
constexpr std::uint64_t kMixStart = 0xcbf29ce484222325;

// Of what may end a node's trouble: a boot, what it advertises, whether it is ready. Heartbeats and
// amounts of other things are no news.
std::uint64_t node_facts(const Value& node) {
  std::uint64_t sum = kMixStart;
  mix(sum, text_at(node, "status.nodeInfo.bootID"));
  if (const Value* amounts = find(node, "status.allocatable")) {
    for (const text::Member& amount : amounts->members()) {
      if (!model::is_device(amount.key)) continue;
      mix(sum, amount.key);
      mix(sum, amount.value.string());
    }
  }
  if (const Value* conditions = find(node, "status.conditions")) {
    for (const Value& condition : conditions->items()) {
      if (text_at(condition, "type") == "Ready") mix(sum, text_at(condition, "status"));
    }
  }
  return sum;
}

std::uint64_t agent_facts(const Value& gpu_node) {
  std::uint64_t sum = kMixStart;
  if (const Value* gpus = find(gpu_node, "status.gpus")) {
    for (const Value& gpu : gpus->items()) {
      mix(sum, text_at(gpu, "uuid"));
      mix(sum, text_at(gpu, "health.state"));
    }
  }
  mix(sum, text_at(gpu_node, "status.driverVersion"));
  return sum;
}

bool has_gpus(const Value& node) {
  for (const std::string_view list : {"capacity", "allocatable"}) {
    const Value* amounts = at(node, "status").find(list);
    if (amounts == nullptr) continue;
    for (const text::Member& amount : amounts->members()) {
      if (amount.key.starts_with("nvidia.com/") && amount.value.string() != "0") return true;
    }
  }
  return false;
}

const Value* rejecting_taint(const Value& node) {
  const Value* taints = find(node, "spec.taints");
  if (taints == nullptr) return nullptr;
  for (const Value& taint : taints->items()) {
    if (text_at(taint, "key") == react::kRejectingTaint) return &taint;
  }
  return nullptr;
}

// Whether a pod that waited has a node now.
bool got_node(const std::string& uid, const Value& pod) {
  return text_at(pod, "metadata.uid") == uid && !text_at(pod, "spec.nodeName").empty();
}

std::int64_t age_of(std::string_view time, std::int64_t wall_now) {
  const auto at = text::parse_rfc3339(time);
  return at.ok() ? std::max<std::int64_t>(0, wall_now - *at) : 0;
}

}  // namespace

bool refused_by_node(const Value& pod) {
  return text_at(pod, "status.phase") == "Failed" && !text_at(pod, "spec.nodeName").empty() &&
         react::rejection_reason(text_at(pod, "status.reason"));
}

RejectedPods::RejectedPods(const Common& common, Binder& binder)
    : common_(common),
      binder_(binder),
      deleted_metric_(common.metrics
                          .counter({.name = "berth_controller_rejected_deleted_total",
                                    .help = "Refused pods that were deleted."})
                          .get()),
      avoided_metric_(common.metrics
                          .counter({.name = "berth_controller_nodes_avoided_total",
                                    .help = "Times that a node was tainted for refusing pods."})
                          .get()),
      kept_metric_(common.metrics
                       .gauge({.name = "berth_controller_rejected_pods",
                               .help = "Pods of ours that a kubelet refused and that are there."})
                       .get()),
      spared_metric_(
          common.metrics
              .gauge({.name = "berth_controller_nodes_spared",
                      .help = "Nodes that keep refusing pods and are not tainted, because so large "
                              "a share of the fleet is."})
              .get()) {}

// ---- what the API shows ----

bool RejectedPods::changed(const Change& change) {
  if (change.is("Pod")) return pod_changed(change);
  if (change.is("Node")) node_changed(change.key.name, change.object);
  if (change.is("GpuNode") && change.object != nullptr) {
    react_.facts(change.key.name, react::RejectedPods::Source::kAgent, agent_facts(*change.object));
  }
  return false;
}

bool RejectedPods::pod_changed(const Change& change) {
  const std::string name = change.name();
  if (change.object == nullptr) {
    placed_.erase(name);
    react_.gone(name);
    return false;
  }
  const Change::PodBefore& before = change.before;
  if (before.ours && !before.bound && before.wants_gpus && got_node(before.uid, *change.object)) {
    pod_placed(name, *change.object);
  }
  const kinds::LivePod* live = common_.world.objects().pod(name);
  bool news = false;
  if (change.ours && refused_by_node(*change.object)) {
    pod_refused(name, *change.object, before.ours);
    news = believe();
  }
  if (!before.running && live != nullptr && live->phase == "Running" && placed_.contains(name)) {
    react_.started(live->node, common_.now());
  }
  return news;
}

void RejectedPods::pod_placed(const std::string& name, const Value& pod) {
  // Without GPUs that were chosen for it a pod says nothing about the node's.
  if (at(pod, "metadata.annotations")[kinds::kGpusAnnotation].string().empty()) return;
  placed_.insert_or_assign(name, std::string(text_at(pod, "metadata.uid")));
}

void RejectedPods::pod_refused(const std::string& name, const Value& pod, bool seen) {
  react::RejectedPod out{.name = name,
                         .uid = std::string(text_at(pod, "metadata.uid")),
                         .node = std::string(text_at(pod, "spec.nodeName")),
                         .reason = std::string(text_at(pod, "status.reason")),
                         .at = common_.now()};
  const std::string ns = name.substr(0, name.find('/'));
  if (const Value* owners = find(pod, "metadata.ownerReferences")) {
    for (const Value& owner : owners->items()) {
      const Value* controls = owner.find("controller");
      if (controls == nullptr || !controls->as_bool()) continue;
      const kinds::Owner by{.api_version = std::string(text_at(owner, "apiVersion")),
                            .kind = std::string(text_at(owner, "kind")),
                            .name = std::string(text_at(owner, "name")),
                            .uid = {}};
      out.owner = ns + '/' + by.text();
      out.replaced_beside = by.is("apps", "ReplicaSet") || by.is("batch", "Job") ||
                            by.is("", "ReplicationController");
    }
  }
  // The clock of a node is trusted only for what happened before we looked.
  if (!seen) out.at -= age_of(text_at(pod, "status.startTime"), common_.loop.wall().now_ns());
  if (seen) {
    const std::string again =
        out.owner.empty() ? std::string("nobody makes it again: delete it and create it anew")
                          : out.owner.substr(ns.size() + 1) + " makes another";
    common_.notices.event({"v1", "Pod", ns, name.substr(ns.size() + 1), out.uid}, "Warning",
                          "Refused", "Scheduling",
                          fmt::format("node {} refused it ({}): {}", out.node, out.reason, again));
  }
  const auto placed = placed_.find(name);
  out.placed = placed != placed_.end() && placed->second == out.uid;
  react_.rejected(out, common_.now());
  // Refused wherever they go, they have to wait.
  if (out.placed && react_.wanders(out.owner)) binder_.back_off(out.owner);
}

void RejectedPods::node_changed(const std::string& name, const Value* node) {
  if (node == nullptr) return react_.node_gone(name);
  react_.facts(name, react::RejectedPods::Source::kNode, node_facts(*node));
  react_.in_fleet(name, has_gpus(*node));
  const Value* taint = rejecting_taint(*node);
  std::optional<react::RejectedPods::Mark> mark;
  if (taint != nullptr) {
    std::int64_t level = 0;
    if (!kinds::parse_int(text_at(*taint, "value"), level)) level = 0;
    mark = {static_cast<int>(std::clamp<std::int64_t>(level, 0, 99)),
            age_of(text_at(*taint, "timeAdded"), common_.loop.wall().now_ns())};
  }
  react_.marked(name, mark, common_.now());
}

void RejectedPods::clear() {
  react_.none_deleted();
  common_.world.avoid({});
}

// ---- what is done ----

bool RejectedPods::believe() { return common_.world.avoid(react_.avoided()); }

bool RejectedPods::tick(std::int64_t now) {
  const react::Reaction what = react_.due(now);
  for (const react::PodToDelete& pod : what.deletes) remove(pod);
  for (const react::NodeToAvoid& one : what.avoid) {
    if (!common_.writer.claim("node|" + one.node)) continue;
    avoided_metric_.add();
    const std::string note = fmt::format(
        "it refused {} pods, the last for {}: it gets no new ones for {} s, or until "
        "something of it changes",
        one.refused, one.reason, one.for_ns / 1'000'000'000);
    common_.log.warn("a node keeps refusing pods", {{"node", one.node}, {"reason", one.reason}});
    common_.notices.event({"v1", "Node", "", one.node, one.node}, "Warning", "RefusesPods",
                          "Avoiding", note);
    taint(one.node, true, one.level);
  }
  for (const react::NodeToRelease& one : what.release) {
    if (!common_.writer.claim("node|" + one.node)) continue;
    common_.notices.event({"v1", "Node", "", one.node, one.node}, "Normal", "TriedAgain",
                          "Releasing",
                          one.changed ? "something of it changed: it is tried again"
                                      : "its time is over: it is tried again");
    taint(one.node, false, 0);
  }
  spared_metric_.set(static_cast<double>(what.spared.size()));
  if (what.spared.empty()) {
    said_spared_ = false;
  } else if (!std::exchange(said_spared_, true)) {
    common_.log.warn(
        "nodes keep refusing pods, and too many are tainted for it already: they are not",
        {{"nodes", what.spared.size()},
         {"first", what.spared.front()},
         {"most", react_.most_avoided()}});
  }
  for (const std::string& node : what.spared) {
    common_.notices.event(
        {"v1", "Node", "", node, node}, "Warning", "RefusesPods", "Sparing",
        "it keeps refusing pods and is not tainted: that many nodes of the fleet are");
  }
  kept_metric_.set(static_cast<double>(react_.kept()));
  return believe();
}

void RejectedPods::remove(const react::PodToDelete& pod) {
  const std::size_t slash = pod.name.find('/');
  Write write = write_remove(kube::resources::pods(),
                             {pod.name.substr(0, slash), pod.name.substr(slash + 1)}, pod.uid);
  write.done = [this, name = pod.name](const kube::Answer& answer) {
    if (answer.ok()) {
      deleted_metric_.add();
    } else if (!answer.not_found() && !answer.conflict()) {
      react_.not_deleted(name);
    }
  };
  common_.writer.add(std::move(write));
}

void RejectedPods::taint(const std::string& node, bool on, int level) {
  Write write = write_get(kube::resources::nodes(), {"", node});
  write.done = [this, node, on, level](const kube::Answer& answer) {
    if (!answer.ok()) return common_.writer.release("node|" + node);  // due() says it again
    write_taints(node, answer.body.root(), on, level);
  };
  common_.writer.add(std::move(write));
}

// The list of taints is replaced as a whole, so the write carries the version that was read.
void RejectedPods::write_taints(const std::string& node, const Value& object, bool on, int level) {
  text::JsonWriter out;
  out.object([&] {
    out.object("metadata",
               [&] { out.field("resourceVersion", text_at(object, "metadata.resourceVersion")); });
    out.object("spec", [&] {
      out.array("taints", [&] {
        if (const Value* taints = find(object, "spec.taints")) {
          for (const Value& taint : taints->items()) {
            if (text_at(taint, "key") != react::kRejectingTaint) out.value(taint);
          }
        }
        if (on) {
          out.object([&] {
            out.field("key", react::kRejectingTaint);
            out.field("value", std::to_string(level));
            out.field("effect", "NoSchedule");
            out.field("timeAdded", text::format_whole_second(common_.loop.wall().now_ns()));
          });
        }
      });
    });
  });
  Write write = write_patch(kube::resources::nodes(), {"", node}, kube::PatchType::kMerge,
                            std::move(out).take());
  write.done = [this, node](const kube::Answer& answer) {
    common_.writer.release("node|" + node);
    if (answer.ok()) node_changed(node, &answer.body.root());
  };
  common_.writer.add(std::move(write));
}

}  // namespace berth::control
