#include "control/rejections.h"

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

std::int64_t age_of(std::string_view time, std::int64_t wall_now) {
  const auto at = text::parse_rfc3339(time);
  return at.ok() ? std::max<std::int64_t>(0, wall_now - *at) : 0;
}

}  // namespace

bool refused_by_node(const Value& pod) {
  return text_at(pod, "status.phase") == "Failed" && !text_at(pod, "spec.nodeName").empty() &&
         react::rejection_reason(text_at(pod, "status.reason"));
}

Rejections::Rejections(Loop& loop, World& world, Writer& writer, Notices& notices,
                       const Logger& log, MetricsRegistry& metrics)
    : loop_(loop),
      world_(world),
      writer_(writer),
      notices_(notices),
      log_(log),
      deleted_metric_(metrics
                          .counter({.name = "berth_controller_rejected_deleted_total",
                                    .help = "Refused pods that were deleted."})
                          .get()),
      avoided_metric_(metrics
                          .counter({.name = "berth_controller_nodes_avoided_total",
                                    .help = "Times that a node was tainted for refusing pods."})
                          .get()),
      kept_metric_(metrics
                       .gauge({.name = "berth_controller_rejected_pods",
                               .help = "Pods of ours that a kubelet refused and that are there."})
                       .get()),
      spared_metric_(
          metrics
              .gauge({.name = "berth_controller_nodes_spared",
                      .help = "Nodes that keep refusing pods and are not tainted, because so large "
                              "a share of the fleet is."})
              .get()) {}

// ---- what the API shows ----

void Rejections::pod_placed(const std::string& name, const Value& pod) {
  // Without GPUs that were chosen for it a pod says nothing about the node's.
  if (at(pod, "metadata.annotations")[kinds::kGpusAnnotation].string().empty()) return;
  placed_.insert_or_assign(name, std::string(text_at(pod, "metadata.uid")));
}

void Rejections::pod_gone(const std::string& name) {
  placed_.erase(name);
  react_.gone(name);
}

std::string Rejections::pod_refused(const std::string& name, const Value& pod, bool seen) {
  react::RejectedPod out{.name = name,
                         .uid = std::string(text_at(pod, "metadata.uid")),
                         .node = std::string(text_at(pod, "spec.nodeName")),
                         .reason = std::string(text_at(pod, "status.reason")),
                         .at = now()};
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
  if (!seen) out.at -= age_of(text_at(pod, "status.startTime"), loop_.wall().now_ns());
  if (seen) {
    const std::string again =
        out.owner.empty() ? std::string("nobody makes it again: delete it and create it anew")
                          : out.owner.substr(ns.size() + 1) + " makes another";
    notices_.event({"v1", "Pod", ns, name.substr(ns.size() + 1), out.uid}, "Warning", "Refused",
                   "Scheduling",
                   fmt::format("node {} refused it ({}): {}", out.node, out.reason, again));
  }
  const auto placed = placed_.find(name);
  out.placed = placed != placed_.end() && placed->second == out.uid;
  react_.rejected(out, now());
  return out.placed && react_.wanders(out.owner) ? out.owner : std::string();
}

void Rejections::pod_started(const std::string& name, const std::string& node) {
  if (placed_.contains(name)) react_.started(node, now());
}

void Rejections::node_changed(const std::string& name, const Value* node) {
  if (node == nullptr) return react_.node_gone(name);
  react_.facts(name, react::RejectedPods::Source::kNode, node_facts(*node));
  react_.in_fleet(name, has_gpus(*node));
  const Value* taint = rejecting_taint(*node);
  std::optional<react::RejectedPods::Mark> mark;
  if (taint != nullptr) {
    std::int64_t level = 0;
    if (!kinds::parse_int(text_at(*taint, "value"), level)) level = 0;
    mark = {static_cast<int>(std::clamp<std::int64_t>(level, 0, 99)),
            age_of(text_at(*taint, "timeAdded"), loop_.wall().now_ns())};
  }
  react_.marked(name, mark, now());
}

void Rejections::agent_changed(const std::string& name, const Value* gpu_node) {
  if (gpu_node == nullptr) return;
  react_.facts(name, react::RejectedPods::Source::kAgent, agent_facts(*gpu_node));
}

void Rejections::clear() {
  busy_.clear();
  react_.none_deleted();
  world_.avoid({});
}

// ---- what is done ----

bool Rejections::believe() { return world_.avoid(react_.avoided()); }

bool Rejections::tick() {
  const react::Reaction what = react_.due(now());
  for (const react::PodToDelete& pod : what.deletes) remove(pod);
  for (const react::NodeToAvoid& one : what.avoid) {
    if (!busy_.insert(one.node).second) continue;
    avoided_metric_.add();
    const std::string note = fmt::format(
        "it refused {} pods, the last for {}: it gets no new ones for {} s, or until "
        "something of it changes",
        one.refused, one.reason, one.for_ns / 1'000'000'000);
    log_.warn("a node keeps refusing pods", {{"node", one.node}, {"reason", one.reason}});
    notices_.event({"v1", "Node", "", one.node, one.node}, "Warning", "RefusesPods", "Avoiding",
                   note);
    taint(one.node, true, one.level);
  }
  for (const react::NodeToRelease& one : what.release) {
    if (!busy_.insert(one.node).second) continue;
    notices_.event({"v1", "Node", "", one.node, one.node}, "Normal", "TriedAgain", "Releasing",
                   one.changed ? "something of it changed: it is tried again"
                               : "its time is over: it is tried again");
    taint(one.node, false, 0);
  }
  spared_metric_.set(static_cast<double>(what.spared.size()));
  if (what.spared.empty()) {
    said_spared_ = false;
  } else if (!std::exchange(said_spared_, true)) {
    log_.warn("nodes keep refusing pods, and too many are tainted for it already: they are not",
              {{"nodes", what.spared.size()},
               {"first", what.spared.front()},
               {"most", react_.most_avoided()}});
  }
  for (const std::string& node : what.spared) {
    notices_.event({"v1", "Node", "", node, node}, "Warning", "RefusesPods", "Sparing",
                   "it keeps refusing pods and is not tainted: that many nodes of the fleet are");
  }
  kept_metric_.set(static_cast<double>(react_.kept()));
  return believe();
}

void Rejections::remove(const react::PodToDelete& pod) {
  const std::size_t slash = pod.name.find('/');
  const kube::Key key{pod.name.substr(0, slash), pod.name.substr(slash + 1)};
  writer_.add(
      WriteClass::kAct, key.ns,
      [key, uid = pod.uid](kube::Client& client, kube::Client::Done done) {
        return client.remove(kube::resources::pods(), key, {.uid = uid}, std::move(done));
      },
      [this, name = pod.name](const kube::Answer& answer) {
        if (answer.ok()) {
          deleted_metric_.add();
        } else if (!answer.not_found() && !answer.conflict()) {
          react_.not_deleted(name);
        }
      });
}

void Rejections::taint(const std::string& node, bool on, int level) {
  writer_.add(
      WriteClass::kAct, "",
      [node](kube::Client& client, kube::Client::Done done) {
        return client.get(kube::resources::nodes(), {"", node}, std::move(done));
      },
      [this, node, on, level](const kube::Answer& answer) {
        if (!answer.ok()) {
          busy_.erase(node);  // due() says it again
          return;
        }
        write_taints(node, answer.body.root(), on, level);
      });
}

// The list of taints is replaced as a whole, so the write carries the version that was read.
void Rejections::write_taints(const std::string& node, const Value& object, bool on, int level) {
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
            out.field("timeAdded", text::format_whole_second(loop_.wall().now_ns()));
          });
        }
      });
    });
  });
  writer_.add(
      WriteClass::kAct, "",
      [node, body = std::move(out).take()](kube::Client& client, kube::Client::Done done) {
        return client.patch(kube::resources::nodes(), {"", node}, kube::PatchType::kMerge, body, {},
                            std::move(done));
      },
      [this, node](const kube::Answer& answer) {
        busy_.erase(node);
        if (answer.ok()) node_changed(node, &answer.body.root());
      });
}

}  // namespace berth::control
