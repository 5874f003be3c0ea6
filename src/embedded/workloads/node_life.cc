#include "embedded/workloads/node_life.h"

#include <algorithm>

#include "embedded/workloads/read.h"
#include "text/path.h"

namespace berth::sim {

namespace {

using text::JsonWriter;
using text::Value;

constexpr std::string_view kNotReadyTaint = "node.kubernetes.io/not-ready";
constexpr std::string_view kUnreachableTaint = "node.kubernetes.io/unreachable";
constexpr std::string_view kUnschedulableTaint = "node.kubernetes.io/unschedulable";
constexpr std::int64_t kLifeSecond = 1'000'000'000;

bool ours(std::string_view key) {
  return key == kNotReadyTaint || key == kUnreachableTaint || key == kUnschedulableTaint;
}

struct WantedTaint {
  std::string_view key, effect;
  bool timed = false;
};

std::vector<WantedTaint> taints_for(const NodeFacts& node) {
  std::vector<WantedTaint> out;
  if (node.unschedulable) out.push_back({kUnschedulableTaint, "NoSchedule"});
  std::string_view key;
  if (node.ready == "False") key = kNotReadyTaint;
  if (node.ready == "Unknown") key = kUnreachableTaint;
  if (!key.empty()) {
    out.push_back({key, "NoSchedule"});
    out.push_back({key, "NoExecute", true});
  }
  return out;
}

std::string unknown_status(const Value& node, std::int64_t now) {
  JsonWriter out;
  out.object([&] {
    out.object("status", [&] {
      out.array("conditions", [&] {
        for (const std::string_view type :
             {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}) {
          const Value* before = find_type(at(node, "status.conditions"), type);
          if (before == nullptr && type != "Ready") continue;
          const std::string heartbeat(before == nullptr ? std::string_view{}
                                                        : text_at(*before, "lastHeartbeatTime"));
          out.object([&] {
            out.field("type", type);
            out.field("status", "Unknown");
            out.field("reason", "NodeStatusUnknown");
            out.field("message", "Kubelet stopped posting node status.");
            out.field("lastHeartbeatTime", heartbeat.empty() ? seconds_text(now) : heartbeat);
            out.field("lastTransitionTime", seconds_text(now));
          });
        }
      });
    });
  });
  return std::move(out).take();
}

std::string pod_condition_patch(const PodInfo& pod, std::string_view type, std::string_view status,
                                std::string_view reason, std::string_view message, std::int64_t now,
                                bool failed) {
  JsonWriter out;
  out.object([&] {
    out.object("metadata", [&] { out.field("uid", pod.uid); });
    out.object("status", [&] {
      if (failed) out.field("phase", "Failed");
      out.array("conditions", [&] {
        out.object([&] {
          out.field("type", type);
          out.field("status", status);
          out.field("reason", reason);
          out.field("message", message);
          out.field("lastTransitionTime", seconds_text(now));
        });
      });
    });
  });
  return std::move(out).take();
}

}  // namespace

NodeFacts read_node_facts(const Value& node) {
  NodeFacts out;
  out.name = text_at(node, "metadata.name");
  out.uid = text_at(node, "metadata.uid");
  out.unschedulable = true_at(node, "spec.unschedulable");
  if (const Value* ready = find_type(at(node, "status.conditions"), "Ready")) {
    out.ready = text_at(*ready, "status");
    out.heartbeat_ns = time_at(*ready, "lastHeartbeatTime");
  }
  const Value& taints = at(node, "spec.taints");
  if (taints.size() > 0) out.taints_json = text::to_json(taints);
  for (const Value& taint : taints.items()) {
    model::Taint t;
    t.key = text_at(taint, "key");
    t.value = text_at(taint, "value");
    const std::string_view effect = text_at(taint, "effect");
    if (effect == "PreferNoSchedule") t.effect = model::TaintEffect::kPreferNoSchedule;
    if (effect == "NoExecute") {
      t.effect = model::TaintEffect::kNoExecute;
      out.taint_times[t.key] = time_at(taint, "timeAdded");
    }
    out.taints.push_back(std::move(t));
  }
  return out;
}

std::optional<std::string> wanted_taints(const NodeFacts& node, const Value& object,
                                         std::int64_t wall_now) {
  const std::vector<WantedTaint> wanted = taints_for(node);
  const Value& now = at(object, "spec.taints");
  std::vector<bool> there(wanted.size(), false);
  bool surplus = false;
  JsonWriter out;
  out.array([&] {
    for (const Value& taint : now.items()) {
      const std::string_view key = text_at(taint, "key");
      const std::string_view effect = text_at(taint, "effect");
      const auto it = std::find_if(wanted.begin(), wanted.end(), [&](const WantedTaint& w) {
        return w.key == key && w.effect == effect;
      });
      if (it != wanted.end()) there[static_cast<std::size_t>(it - wanted.begin())] = true;
      if (it == wanted.end() && ours(key)) {
        surplus = true;
      } else {
        out.value(taint);
      }
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (there[i]) continue;
      out.object([&] {
        out.field("key", wanted[i].key);
        out.field("effect", wanted[i].effect);
        if (wanted[i].timed) out.field("timeAdded", seconds_text(wall_now));
      });
    }
  });
  const bool right = !surplus && std::all_of(there.begin(), there.end(), [](bool t) { return t; });
  if (right) return std::nullopt;
  return std::move(out).take();
}

std::int64_t eviction_delay(const PodInfo& pod, const std::vector<model::Taint>& taints,
                            std::int64_t default_grace_ns) {
  std::int64_t least = -1;
  const auto lower = [&least](std::int64_t delay) {
    if (least < 0 || delay < least) least = delay;
  };
  for (const model::Taint& taint : taints) {
    if (taint.effect != model::TaintEffect::kNoExecute) continue;
    bool tolerated = false, for_ever = false;
    std::int64_t seconds = -1;
    for (const NoExecuteToleration& t : pod.tolerations) {
      if (!model::tolerates(t.rule, taint)) continue;
      tolerated = true;
      if (t.seconds < 0) {
        for_ever = seconds < 0;
      } else if (seconds < 0 || t.seconds < seconds) {
        seconds = t.seconds;  // the shortest one counts
        for_ever = false;
      }
    }
    if (!tolerated) {
      lower(ours(taint.key) ? default_grace_ns : 0);
    } else if (!for_ever) {
      lower(seconds * kLifeSecond);
    }
  }
  return least;
}

NodeLife::NodeLife(WorkContext& context)
    : context_(context),
      taint_passes_(
          context.client.loop(),
          [this](const kube::Key& key, const Passes::Finished& finished) { pass(key, finished); }),
      silence_passes_(context.client.loop(),
                      [this](const kube::Key& key, const Passes::Finished& finished) {
                        silence_pass(key, finished);
                      }),
      evict_passes_(context.client.loop(),
                    [this](const kube::Key& key, const Passes::Finished& finished) {
                      evict_pass(key, finished);
                    }),
      garbage_passes_(context.client.loop(),
                      [this](const kube::Key& key, const Passes::Finished& finished) {
                        garbage_pass(key, finished);
                      }) {}

void NodeLife::listen() {
  context_.leases.add_handler(
      context_.guarded([this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
        if (after != nullptr) return on_lease(after);
        leases_.erase(before->key.name);
      }));
  context_.nodes.add_handler(
      context_.guarded([this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
        on_node(before, after);
      }));
}

void NodeLife::start() {
  started_ = true;
  context_.book.watch([this](const PodInfo*, const PodInfo* after) {
    if (after != nullptr && !after->node.empty()) look_at_pod(*after);
  });
  for (const auto& [name, node] : nodes_) {
    if (!node.taints_right) taint_passes_.add({"", name});
  }
  for (const auto& [key, pod] : context_.book.all()) {
    if (!pod->node.empty()) look_at_pod(*pod);
  }
  check();
}

void NodeLife::on_lease(const kube::ObjectPtr& after) {
  Seen& seen = leases_[after->key.name];
  const std::string_view renew = text_at(after->root(), "spec.renewTime");
  if (seen.renew == renew && seen.ticks != 0) return;
  seen.renew = renew;
  seen.ticks = std::max<std::int64_t>(context_.ticks(), 1);
}

void NodeLife::on_node(const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
  if (after == nullptr) {
    nodes_.erase(before->key.name);
    heartbeats_.erase(before->key.name);
    gone_[before->key.name] = context_.ticks();
    if (started_) look_at_pods(before->key.name);
    return;
  }
  NodeFacts facts = read_node_facts(after->root());
  gone_.erase(facts.name);
  Seen& seen = heartbeats_[facts.name];
  const std::string heartbeat = std::to_string(facts.heartbeat_ns);
  if (seen.renew != heartbeat) seen = {heartbeat, std::max<std::int64_t>(context_.ticks(), 1)};
  const auto it = nodes_.find(facts.name);
  const bool taints = it == nodes_.end() || it->second.taints_json != facts.taints_json;
  const bool stopped = facts.ready != "True" && !facts.ready.empty() &&
                       (it == nodes_.end() || it->second.ready == "True");
  facts.taints_right = !wanted_taints(facts, after->root(), context_.wall()).has_value();
  const bool right = facts.taints_right;
  const std::string name = facts.name;
  nodes_[name] = std::move(facts);
  if (!started_) return;
  if (!right) taint_passes_.add(after->key);
  if (stopped) pods_unready(name);
  if (taints) look_at_pods(name);
}

void NodeLife::check() {
  for (const auto& [name, node] : nodes_) check_node(node);
  context_.later(context_.options.node_check_ns, [this] { check(); });
}

void NodeLife::check_node(const NodeFacts& node) {
  if (node.ready == "Unknown" || node.ready.empty()) return;
  const auto lease = leases_.find(node.name);
  std::int64_t last = lease == leases_.end() ? 0 : lease->second.ticks;
  if (node.heartbeat_ns != 0) {
    const auto beat = heartbeats_.find(node.name);
    if (beat != heartbeats_.end()) last = std::max(last, beat->second.ticks);
  }
  if (last == 0 || context_.ticks() - last <= context_.options.node_grace_ns) return;
  silence_passes_.add({"", node.name});
}

// The kubelet is silent: nobody knows how the node is.
void NodeLife::silence_pass(const kube::Key& key, const Passes::Finished& finished) {
  context_.client.get(kube::resources::nodes(), key,
                      context_.guarded([this, key, finished](kube::Answer answer) {
                        if (!answer.ok()) return finished(answer.not_found());
                        const NodeFacts facts = read_node_facts(answer.body.root());
                        if (facts.ready == "Unknown") return finished(true);
                        auto batch = Batch::make(context_, finished);
                        batch->patch(context_.nodes, key, kube::PatchType::kStrategic,
                                     unknown_status(answer.body.root(), context_.wall()), "status");
                        batch->seal();
                      }));
}

// Taints are a list without a key for patches that everyone agrees on: read, then written with the
// version that was read.
void NodeLife::pass(const kube::Key& key, const Passes::Finished& finished) {
  context_.client.get(
      kube::resources::nodes(), key, context_.guarded([this, key, finished](kube::Answer answer) {
        if (!answer.ok()) return finished(answer.not_found());
        const text::Value& node = answer.body.root();
        const auto taints = wanted_taints(read_node_facts(node), node, context_.wall());
        if (!taints) return finished(true);
        const std::string body = R"({"metadata":{"resourceVersion":")" +
                                 std::string(text_at(node, "metadata.resourceVersion")) +
                                 R"("},"spec":{"taints":)" + *taints + "}}";
        auto batch = Batch::make(context_, finished);
        batch->patch(context_.nodes, key, kube::PatchType::kMerge, body);
        batch->seal();
      }));
}

// Whoever counts ready pods must not count those.
void NodeLife::pods_unready(const std::string& node) {
  for (const PodBook::PodPtr& pod : context_.book.on_node(node)) {
    if (!pod->ready || pod->finished()) continue;
    auto batch = Batch::make(context_, [](bool) {});
    batch->patch(context_.pods, pod->key, kube::PatchType::kStrategic,
                 pod_condition_patch(*pod, "Ready", "False", "NodeNotReady",
                                     "The node is not ready", context_.wall(), false),
                 "status");
    batch->seal();
  }
}

// ---- eviction and garbage ----

void NodeLife::look_at_pods(const std::string& node) {
  for (const PodBook::PodPtr& pod : context_.book.on_node(node)) look_at_pod(*pod);
}

void NodeLife::look_at_pod(const PodInfo& pod) {
  const auto it = nodes_.find(pod.node);
  if (it == nodes_.end()) {
    if (context_.nodes.find({"", pod.node}) == nullptr) {
      garbage_passes_.add_after(pod.key, context_.options.node_grace_ns);
    }
    return;
  }
  if (pod.finished() || pod.deleting) return;
  if (eviction_delay(pod, it->second.taints, context_.options.pod_grace_ns) < 0) return;
  evict_passes_.add(pod.key);
}

void NodeLife::evict_pass(const kube::Key& key, const Passes::Finished& finished) {
  const PodInfo* pod = context_.book.find(key);
  if (pod == nullptr || pod->finished() || pod->deleting) return finished(true);
  const auto node = nodes_.find(pod->node);
  if (node == nodes_.end()) return finished(true);
  const std::int64_t delay =
      eviction_delay(*pod, node->second.taints, context_.options.pod_grace_ns);
  if (delay < 0) return finished(true);
  std::int64_t since = 0;
  for (const auto& [taint, when] : node->second.taint_times) {
    if (when != 0) since = since == 0 ? when : std::min(since, when);
  }
  const std::int64_t left = since == 0 ? delay : since + delay - context_.wall();
  if (delay > 0 && left > 0) {
    evict_passes_.add_after(key, left);
    return finished(true);
  }
  auto batch =
      Batch::make(context_, context_.guarded([this, key, uid = pod->uid, finished](bool ok) {
        if (!ok) return finished(false);
        auto removal = Batch::make(context_, finished);
        removal->remove_pod(key, uid, false);
        removal->seal();
      }));
  if (!pod->disruption_target) {
    batch->patch(context_.pods, key, kube::PatchType::kStrategic,
                 pod_condition_patch(*pod, "DisruptionTarget", "True", "DeletionByTaintManager",
                                     "Taint manager: deleting due to NoExecute taint",
                                     context_.wall(), false),
                 "status");
  }
  batch->seal();
}

// No kubelet will ever speak for this pod again.
void NodeLife::garbage_pass(const kube::Key& key, const Passes::Finished& finished) {
  const PodInfo* pod = context_.book.find(key);
  if (pod == nullptr || pod->node.empty()) return finished(true);
  if (context_.nodes.find({"", pod->node}) != nullptr) return finished(true);
  const auto left = gone_.find(pod->node);
  if (left != gone_.end()) {
    const std::int64_t wait = left->second + context_.options.node_grace_ns - context_.ticks();
    if (wait > 0) {
      garbage_passes_.add_after(key, wait);
      return finished(true);
    }
  }
  const std::string uid = pod->uid;
  const auto remove = context_.guarded([this, key, uid, finished](bool ok) {
    if (!ok) return finished(false);
    auto removal = Batch::make(context_, finished);
    removal->remove_pod(key, uid, false, 0);
    removal->seal();
  });
  auto batch = Batch::make(context_, remove);
  if (!pod->finished()) {
    batch->patch(context_.pods, key, kube::PatchType::kStrategic,
                 pod_condition_patch(*pod, "DisruptionTarget", "True", "DeletionByPodGC",
                                     "PodGC: node no longer exists", context_.wall(), true),
                 "status");
  }
  batch->seal();
}

}  // namespace berth::sim
