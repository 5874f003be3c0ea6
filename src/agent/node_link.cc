#include "agent/node_link.h"

#include <algorithm>
#include <array>
#include <utility>

#include "edge/kube/events.h"
#include "edge/kube/informer.h"
#include "kinds/pod_body.h"
#include "kinds/readers.h"
#include "text/json.h"
#include "text/json_writer.h"
#include "text/path.h"
#include "text/quantity.h"
#include "text/rfc3339.h"

namespace berth::agent {

namespace {

using text::JsonWriter;
using text::Value;

constexpr std::int64_t kFirstRetry = 1'000'000'000, kLastRetry = 60'000'000'000;
constexpr std::size_t kMaxAsks = 128, kMaxHint = 128;
constexpr std::string_view kOwnConditions[] = {"GpuReady", "GpuHealthy"};

// Whole numbers of extended resources: "nvidia.com/gpu": "8".
template <class Number>
void read_extended(const Value* amounts, std::map<std::string, Number>& out) {
  if (amounts == nullptr) return;
  for (const text::Member& member : amounts->members()) {
    if (member.key.find('/') == std::string_view::npos) continue;
    const Value& v = member.value;
    std::string_view digits = v.is_number() ? v.number_text() : v.string();
    std::int64_t number = 0;
    if (digits.empty() || digits.size() > 9) continue;
    for (const char c : digits) {
      if (c < '0' || c > '9') return;
      number = number * 10 + (c - '0');
    }
    out[std::string(member.key)] = static_cast<Number>(number);
  }
}

// "0,3"; nothing where it is not such a list: a wish that nobody can read is no wish.
std::vector<int> read_hint(std::string_view text) {
  std::vector<int> out;
  int number = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9' && number < 1'000) {
      number = std::max(number, 0) * 10 + (c - '0');
    } else if (c == ',' && number >= 0 && out.size() < kMaxHint) {
      out.push_back(std::exchange(number, -1));
    } else {
      return {};
    }
  }
  if (number < 0) return {};
  out.push_back(number);
  return out;
}

allocate::NodePod read_pod(const Value& root) {
  allocate::NodePod out;
  out.uid = text_at(root, "metadata.uid");
  out.ns = text_at(root, "metadata.namespace");
  out.name = text_at(root, "metadata.name");
  out.gpus =
      read_hint(std::string(at(root, "metadata.annotations")[kinds::kGpusAnnotation].string()));
  const std::string phase(text_at(root, "status.phase"));
  out.finished = phase == "Succeeded" || phase == "Failed";
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    const Value* statuses = at(root, "status").find(list);
    if (statuses == nullptr) continue;
    for (const Value& one : statuses->items()) {
      // "containerd://<id>"
      const std::string id(text_at(one, "containerID"));
      const std::size_t start = id.find("://");
      if (start == std::string::npos || out.containers.size() >= kMaxAsks) continue;
      out.containers[id.substr(start + 3)] = text_at(one, "name");
    }
  }
  for (const char* list : {"initContainers", "containers"}) {
    const Value* containers = at(root, "spec").find(list);
    if (containers == nullptr) continue;
    for (const Value& container : containers->items()) {
      std::map<std::string, int> asks;
      read_extended(find(container, "resources.limits"), asks);
      for (const auto& [resource, size] : asks) {
        if (out.asks.size() < kMaxAsks && size > 0) out.asks.push_back({resource, size});
      }
    }
  }
  return out;
}

std::string labels_body(const std::string& node, const std::map<std::string, std::string>& labels) {
  JsonWriter out;
  out.object([&] {
    out.field("apiVersion", "v1");
    out.field("kind", "Node");
    out.object("metadata", [&] {
      out.field("name", node);
      out.object("labels", [&] {
        for (const auto& [key, value] : labels) out.field(key, value);
      });
    });
  });
  return std::move(out).take();
}

}  // namespace

struct NodeLink::State : std::enable_shared_from_this<State> {
  enum Part {
    kHostLabels,
    kGpuLabels,
    kMigLabels,
    kConditions,
    kGpuNode,
    kGpuStatus,
    kTaint,
    kParts
  };

  // One thing to write. wanted empty: nothing.
  struct Slot {
    std::string wanted, written;
    bool under_way = false;
    int failures = 0;
    Loop::Timer retry = 0;
  };

  State(kube::Client& client_in, Random random_in, std::string node_in,
        std::function<void()> changed_in, const Logger& log_in, MetricsRegistry& metrics)
      : client(client_in),
        node(std::move(node_in)),
        changed(std::move(changed_in)),
        log(log_in),
        writes(metrics.counter({.name = "berth_agent_writes_total",
                                .help = "Writes to the API server, by what and outcome.",
                                .labels = {"what", "outcome"}})),
        recorder(client, {.by = {"berth-agent", node}}, &metrics),
        nodes(client, random_in.split("node"),
              {.resource = kube::resources::nodes(), .field_selector = "metadata.name=" + node},
              &metrics),
        pods_informer(client, random_in.split("pods"),
                      {.resource = kube::resources::pods(),
                       .field_selector = "spec.nodeName=" + node,
                       .keep = kube::Keep::kKeys},
                      &metrics) {}

  kube::Client& client;
  const std::string node;
  const std::function<void()> changed;
  const Logger& log;
  CounterFamily& writes;
  kube::EventRecorder recorder;
  kube::Informer nodes, pods_informer;
  std::array<Slot, kParts> slots;
  std::string node_uid;
  std::map<std::string, std::string> node_labels, host_labels, gpu_labels, mig_labels;
  std::vector<NodeCondition> conditions;
  bool said_conditions = false;  // until then those of an agent before stay
  std::map<std::string, std::pair<std::string, std::string>> seen_conditions;  // status and since
  std::map<std::string, std::int64_t> allocatable;
  std::map<std::string, allocate::NodePod> pods;  // by uid
  std::map<kube::Key, std::string> pod_of_key;    // uid
  bool no_taint = false, telling = false;
  std::string taints_now, taints_wanted;  // JSON lists; equal or empty: nothing to take away

  void start();
  void node_changed(const kube::ObjectPtr& after);
  void read_taints(const Value& root);
  void pod_changed(const kube::ObjectPtr& before, const kube::ObjectPtr& after);
  void tell_changed();
  void make_conditions();
  void make_taints();
  void want(Part part, std::string body) {
    slots[part].wanted = std::move(body);
    pump(part);
  }
  void pump(Part part);
  void send(Part part, std::string body, kube::Client::Done done);
  void answered(Part part, const std::string& body, const kube::Answer& answer);
};

namespace {
constexpr std::array<const char*, 7> kPartNames = {"host-labels",  "gpu-labels", "mig-labels",
                                                   "conditions",   "gpunode",    "gpunode-status",
                                                   "startup-taint"};
}

void NodeLink::State::start() {
  const auto weak = weak_from_this();
  nodes.add_handler([weak](const kube::ObjectPtr&, const kube::ObjectPtr& after) {
    if (const auto self = weak.lock()) self->node_changed(after);
  });
  pods_informer.add_handler([weak](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
    if (const auto self = weak.lock()) self->pod_changed(before, after);
  });
  nodes.start();
  pods_informer.start();
}

void NodeLink::State::tell_changed() {
  if (std::exchange(telling, true)) return;
  client.loop().post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->telling = false;
    self->changed();
  });
}

void NodeLink::State::node_changed(const kube::ObjectPtr& after) {
  if (after == nullptr) {
    node_uid.clear();
    allocatable.clear();
    return tell_changed();
  }
  const Value& root = after->root();
  if (after->uid != node_uid) {
    // Another Node of the same name knows nothing of what was written.
    node_uid = after->uid;
    for (Slot& slot : slots) slot.written.clear();
    slots[kGpuNode].wanted.clear();
    if (!slots[kGpuStatus].wanted.empty()) want(kGpuNode, kinds::bare_gpu_node(node, node_uid));
  }
  allocatable.clear();
  read_extended(find(root, "status.allocatable"), allocatable);
  node_labels.clear();
  if (const Value* labels = find(root, "metadata.labels")) {
    for (const text::Member& label : labels->members()) {
      node_labels.emplace(label.key, label.value.string());
    }
  }
  const auto missing = [this](const std::map<std::string, std::string>& wanted) {
    return std::any_of(wanted.begin(), wanted.end(), [this](const auto& label) {
      const auto found = node_labels.find(label.first);
      return found == node_labels.end() || found->second != label.second;
    });
  };
  if (missing(host_labels)) slots[kHostLabels].written.clear();
  if (missing(gpu_labels)) slots[kGpuLabels].written.clear();
  if (missing(mig_labels)) slots[kMigLabels].written.clear();
  seen_conditions.clear();
  if (const Value* list = find(root, "status.conditions")) {
    for (const Value& one : list->items()) {
      seen_conditions[std::string(text_at(one, "type"))] = {
          std::string(text_at(one, "status")), std::string(text_at(one, "lastTransitionTime"))};
    }
  }
  for (const NodeCondition& one : conditions) {
    const auto seen = seen_conditions.find(one.type);
    if (seen == seen_conditions.end() || seen->second.first != one.status) {
      slots[kConditions].written.clear();
    }
  }
  read_taints(root);
  make_conditions();
  for (int part = 0; part < kParts; ++part) pump(static_cast<Part>(part));
  tell_changed();
}

void NodeLink::State::read_taints(const Value& root) {
  taints_now.clear();
  taints_wanted.clear();
  const Value* taints = find(root, "spec.taints");
  if (taints == nullptr) return;
  JsonWriter now, wanted;
  now.value(*taints);
  wanted.array([&] {
    for (const Value& taint : taints->items()) {
      if (text_at(taint, "key") != kStartupTaint) wanted.value(taint);
    }
  });
  taints_now = std::move(now).take();
  taints_wanted = std::move(wanted).take();
  make_taints();
}

void NodeLink::State::make_taints() {
  Slot& slot = slots[kTaint];
  slot.wanted.clear();
  if (!no_taint || taints_now == taints_wanted) return;
  // Only while the list is the one that was read.
  slot.wanted = R"([{"op":"test","path":"/spec/taints","value":)" + taints_now +
                R"(},{"op":"replace","path":"/spec/taints","value":)" + taints_wanted + "}]";
}

void NodeLink::State::pod_changed(const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
  const kube::Key& key = (after != nullptr ? after : before)->key;
  const auto known = pod_of_key.find(key);
  if (after == nullptr || (known != pod_of_key.end() && known->second != after->uid)) {
    if (known != pod_of_key.end()) {
      pods.erase(known->second);
      pod_of_key.erase(known);
      tell_changed();
    }
    if (after == nullptr) return;
  }
  allocate::NodePod pod = read_pod(after->root());
  if (pod.uid.empty()) return;
  pod_of_key[key] = pod.uid;
  allocate::NodePod& place = pods[pod.uid];
  if (place == pod) return;
  place = std::move(pod);
  tell_changed();
}

// Times are those of the condition that is there while its status is the same.
void NodeLink::State::make_conditions() {
  if (!said_conditions) return;
  std::vector<std::string_view> gone;  // ours, of which there is nothing to say any more
  for (const std::string_view type : kOwnConditions) {
    const bool wanted = std::any_of(conditions.begin(), conditions.end(),
                                    [&](const NodeCondition& one) { return one.type == type; });
    if (!wanted && seen_conditions.contains(std::string(type))) gone.push_back(type);
  }
  if (conditions.empty() && gone.empty()) {
    slots[kConditions].wanted.clear();
    return;
  }
  const std::string now = text::format_whole_second(client.loop().wall().now_ns());
  JsonWriter out;
  out.object([&] {
    out.object("status", [&] {
      out.array("conditions", [&] {
        for (const NodeCondition& one : conditions) {
          const auto seen = seen_conditions.find(one.type);
          const bool same = seen != seen_conditions.end() && seen->second.first == one.status &&
                            !seen->second.second.empty();
          const std::string since = same ? seen->second.second : now;
          out.object([&] {
            out.field("type", one.type);
            out.field("status", one.status);
            out.field("reason", one.reason);
            out.field("message", one.message);
            out.field("lastTransitionTime", since);
          });
          seen_conditions[one.type] = {one.status, since};
        }
        for (const std::string_view type : gone) {
          out.object([&] {
            out.field("type", type);
            out.field("$patch", "delete");
          });
        }
      });
    });
  });
  slots[kConditions].wanted = std::move(out).take();
}

void NodeLink::State::pump(Part part) {
  Slot& slot = slots[part];
  if (slot.under_way || slot.retry != 0 || slot.wanted.empty() || slot.wanted == slot.written ||
      node_uid.empty()) {
    return;
  }
  if (part == kGpuStatus && slots[kGpuNode].written.empty()) return;  // there is nothing to fill
  slot.under_way = true;
  send(part, slot.wanted,
       [weak = weak_from_this(), part, body = slot.wanted](const kube::Answer& answer) {
         if (const auto self = weak.lock()) self->answered(part, body, answer);
       });
}

void NodeLink::State::send(Part part, std::string body, kube::Client::Done done) {
  const kube::Key key{"", node};
  kube::WriteOptions options;
  options.manager = "berth-agent";
  switch (part) {
    case kHostLabels:
    case kMigLabels:
      options.manager = part == kHostLabels ? "berth-agent-host" : "berth-agent-mig";
      [[fallthrough]];
    case kGpuLabels:
      options.force = true;
      client.patch(kube::resources::nodes(), key, kube::PatchType::kApply, std::move(body), options,
                   std::move(done));
      return;
    case kConditions:
      options.subresource = "status";
      client.patch(kube::resources::nodes(), key, kube::PatchType::kStrategic, std::move(body),
                   options, std::move(done));
      return;
    case kTaint:
      client.patch(kube::resources::nodes(), key, kube::PatchType::kJson, std::move(body), options,
                   std::move(done));
      return;
    case kGpuNode:
      options.force = true;
      client.patch(kube::resources::gpu_nodes(), key, kube::PatchType::kApply, std::move(body),
                   options, std::move(done));
      return;
    case kGpuStatus:
    case kParts:
      options.subresource = "status";
      client.patch(kube::resources::gpu_nodes(), key, kube::PatchType::kMerge, std::move(body),
                   options, std::move(done));
      return;
  }
}

void NodeLink::State::answered(Part part, const std::string& body, const kube::Answer& answer) {
  Slot& slot = slots[part];
  slot.under_way = false;
  writes.with({kPartNames[part], answer.ok() ? "ok" : "failed"}).add();
  if (answer.ok()) {
    slot.failures = 0;
    slot.written = body;
    if (part == kGpuNode) pump(kGpuStatus);
    return pump(part);
  }
  if (part == kGpuStatus && answer.not_found()) {  // somebody deleted the object
    slots[kGpuNode].written.clear();
    pump(kGpuNode);
  }
  log.warn("the API server did not take what the agent wrote",
           {{"what", kPartNames[part]}, {"error", answer.error().to_string()}});
  const std::int64_t delay = std::min(kFirstRetry << std::min(slot.failures++, 10), kLastRetry);
  slot.retry = client.loop().after(delay, [weak = weak_from_this(), part] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->slots[part].retry = 0;
    self->pump(part);
  });
}

NodeLink::NodeLink(kube::Client& client, Random random, std::string node,
                   std::function<void()> changed, const Logger& log, MetricsRegistry& metrics)
    : state_(std::make_shared<State>(client, random, std::move(node), std::move(changed), log,
                                     metrics)) {
  state_->start();
}

NodeLink::~NodeLink() = default;

void NodeLink::want_host_labels(const std::map<std::string, std::string>& labels) {
  state_->host_labels = labels;
  if (!labels.empty()) state_->want(State::kHostLabels, labels_body(state_->node, labels));
}

void NodeLink::want_gpu_labels(const std::map<std::string, std::string>& labels) {
  state_->gpu_labels = labels;
  if (!labels.empty()) state_->want(State::kGpuLabels, labels_body(state_->node, labels));
}

void NodeLink::want_mig_labels(const std::map<std::string, std::string>& labels) {
  if (labels.empty() && state_->mig_labels.empty()) return;  // nothing was ever said
  state_->mig_labels = labels;
  state_->want(State::kMigLabels, labels_body(state_->node, labels));
}

void NodeLink::want_conditions(const std::vector<NodeCondition>& conditions) {
  if (state_->said_conditions && state_->conditions == conditions) return;
  state_->said_conditions = true;
  state_->conditions = conditions;
  state_->make_conditions();
  state_->pump(State::kConditions);
}

void NodeLink::want_gpu_node(const kinds::GpuNode& node) {
  State& state = *state_;
  if (!state.node_uid.empty()) {
    state.want(State::kGpuNode, kinds::bare_gpu_node(state.node, state.node_uid));
  }
  state.want(State::kGpuStatus, kinds::status_patch(node));
}

void NodeLink::want_no_startup_taint() {
  state_->no_taint = true;
  state_->make_taints();
  state_->pump(State::kTaint);
}

void NodeLink::tell(bool warning, const std::string& reason, const std::string& note) {
  kube::EventNote event;
  event.api_version = "v1";
  event.kind = "Node";
  event.key = {"", state_->node};
  event.uid = state_->node_uid;
  event.warning = warning;
  event.reason = reason;
  event.action = "Monitoring";
  event.note = note;
  state_->recorder.record(std::move(event));
}

bool NodeLink::heard() const { return !state_->node_uid.empty(); }
const std::map<std::string, std::int64_t>& NodeLink::allocatable() const {
  return state_->allocatable;
}
const std::map<std::string, std::string>& NodeLink::labels() const { return state_->node_labels; }
const std::map<std::string, allocate::NodePod>& NodeLink::pods() const { return state_->pods; }

}  // namespace berth::agent
