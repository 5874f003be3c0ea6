#include "judge/state.h"

#include <algorithm>
#include <map>

#include "judge/gpus.h"
#include "judge/match.h"

namespace berth::judging {

using model::GpuSpec;
using model::NodeSpec;
using model::PodSpec;
using Kind = model::GpuDemandSpec::Kind;

namespace {

std::int64_t amount(const model::Amounts& amounts, std::string_view resource) {
  auto found = amounts.find(resource);
  return found == amounts.end() ? 0 : found->second;
}

bool standard(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource == "ephemeral-storage" ||
         resource == "pods";
}

NodeState empty_node(const NodeSpec& spec) {
  NodeState node;
  node.spec = &spec;
  node.cpu = amount(spec.allocatable, "cpu");
  node.memory = amount(spec.allocatable, "memory");
  node.ephemeral = amount(spec.allocatable, "ephemeral-storage");
  node.pods = amount(spec.allocatable, "pods");
  for (const auto& [resource, value] : spec.allocatable) {
    if (!standard(resource)) node.extended[resource] = value;
  }
  bool partitioned = false;
  for (const GpuSpec& gpu : spec.gpus) {
    node.gpu_free.push_back(gpu.mig.empty() ? model::kMilliPerGpu : 0);
    partitioned |= !gpu.mig.empty();
  }
  if (!partitioned) return node;
  for (const GpuSpec& gpu : spec.gpus) {
    std::vector<int>& slots = node.mig_free.emplace_back();
    for (const model::MigSlots& mig : gpu.mig) slots.push_back(mig.count);
  }
  return node;
}

// sign -1 takes, +1 gives back; exact inverses of one another.
void change(NodeState& node, const PodSpec& pod, const std::vector<Taken>& taken, int sign) {
  node.pods += sign;
  for (const auto& [resource, value] : pod.requests) {
    if (resource == "cpu") {
      node.cpu += sign * value;
    } else if (resource == "memory") {
      node.memory += sign * value;
    } else if (resource == "ephemeral-storage") {
      node.ephemeral += sign * value;
    } else if (resource != "pods") {
      node.extended[resource] += sign * value;
    }
  }
  for (const Taken& part : taken) {
    auto device = static_cast<std::size_t>(part.device);
    if (part.profile < 0) {
      node.gpu_free[device] += sign * part.milli;
    } else {
      node.mig_free[device][static_cast<std::size_t>(part.profile)] += sign;
    }
  }
}

int position(const NodeSpec& node, int index) {
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    if (node.gpus[i].index == index) return static_cast<int>(i);
  }
  return -1;
}

int part_milli(const PodSpec& pod, const NodeSpec& node) {
  int unit = unit_milli(pod.gpu, node);
  return unit > 0 ? unit : model::kMilliPerGpu;
}

// One part of the demand on one device, whatever is free there; a slot only where one is.
void take_part(NodeState& node, const PodSpec& pod, int device, std::vector<Taken>& taken) {
  auto at = static_cast<std::size_t>(device);
  const GpuSpec& gpu = node.spec->gpus[at];
  if (pod.gpu.kind != Kind::kMig) {
    int milli = part_milli(pod, *node.spec);
    node.gpu_free[at] -= milli;
    taken.push_back({.device = device, .milli = milli});
    return;
  }
  for (std::size_t i = 0; i < gpu.mig.size(); ++i) {
    if (gpu.mig[i].resource != pod.gpu.mig || node.mig_free[at][i] < 1) continue;
    --node.mig_free[at][i];
    taken.push_back({.device = device, .milli = 0, .profile = static_cast<int>(i)});
    return;
  }
}

bool one_per_device(const PodSpec& pod, const NodeSpec& node) {
  return pod.gpu.kind == Kind::kFraction || pod.gpu.kind == Kind::kMemory ||
         (pod.gpu.kind == Kind::kWhole && node.shares_per_gpu <= 1);
}

std::vector<Taken> known_devices(const NodeState& node, const PodSpec& pod) {
  std::vector<Taken> taken;
  NodeState scratch = node;
  std::size_t listed = pod.gpu_indices.size();
  std::size_t parts = one_per_device(pod, *node.spec)
                          ? listed
                          : std::max(listed, static_cast<std::size_t>(pod.gpu.count));
  for (std::size_t i = 0; i < parts; ++i) {
    int device = position(*node.spec, pod.gpu_indices[i % listed]);
    if (device >= 0) take_part(scratch, pod, device, taken);
  }
  return taken;
}

std::vector<Taken> assumed_devices(const NodeState& node, const PodSpec& pod) {
  if (auto chosen = choose_devices(node, pod)) return *chosen;
  if (auto chosen = choose_devices(node, pod, Devices::kAll, false)) return *chosen;
  std::vector<Taken> taken;
  if (pod.gpu.kind == Kind::kMig) return taken;
  NodeState scratch = node;
  std::vector<bool> used(node.spec->gpus.size());
  for (int n = 0; n < pod.gpu.count; ++n) {
    int most = -1;
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!node.spec->gpus[i].mig.empty() || used[i]) continue;
      if (most < 0 || scratch.gpu_free[i] > scratch.gpu_free[static_cast<std::size_t>(most)]) {
        most = static_cast<int>(i);
      }
    }
    if (most < 0) break;
    take_part(scratch, pod, most, taken);
    used[static_cast<std::size_t>(most)] = one_per_device(pod, *node.spec);
  }
  return taken;
}

}  // namespace

bool usable(const GpuSpec& gpu) { return gpu.health == model::Health::kHealthy && !gpu.reserved; }

bool asks_gpus(const PodSpec& pod) { return pod.gpu.kind != Kind::kNone && pod.gpu.count > 0; }

std::int64_t request(const PodSpec& pod, std::string_view resource) {
  return amount(pod.requests, resource);
}

State without_pods(const JudgeCluster& cluster) {
  State state;
  for (const NodeSpec& node : cluster.nodes) state.nodes.push_back(empty_node(node));
  std::sort(state.nodes.begin(), state.nodes.end(),
            [](const NodeState& a, const NodeState& b) { return a.spec->name < b.spec->name; });
  return state;
}

State state_of(const JudgeCluster& cluster) {
  State state = without_pods(cluster);
  std::map<std::string_view, int> by_name;
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    by_name[state.nodes[i].spec->name] = static_cast<int>(i);
  }
  std::vector<const PodSpec*> running;
  for (const PodSpec& pod : cluster.pods) {
    if (!pod.node_name.empty()) running.push_back(&pod);
  }
  // Pods whose devices are known first, then the others; each in name order.
  auto key = [](const PodSpec* pod) {
    return std::tuple(asks_gpus(*pod) && pod->gpu_indices.empty(), std::string_view(pod->ns),
                      std::string_view(pod->name));
  };
  std::sort(running.begin(), running.end(),
            [&](const PodSpec* a, const PodSpec* b) { return key(a) < key(b); });
  for (const PodSpec* pod : running) {
    auto found = by_name.find(pod->node_name);
    int node = found == by_name.end() ? -1 : found->second;
    std::vector<Taken> taken;
    if (node >= 0 && asks_gpus(*pod)) {
      const NodeState& at = state.nodes[static_cast<std::size_t>(node)];
      taken = pod->gpu_indices.empty() ? assumed_devices(at, *pod) : known_devices(at, *pod);
    }
    bind(state, *pod, node, std::move(taken));
  }
  return state;
}

void take(NodeState& node, const PodSpec& pod, const std::vector<Taken>& taken) {
  change(node, pod, taken, -1);
}

std::size_t bind(State& state, const PodSpec& pod, int node, std::vector<Taken> taken) {
  if (node >= 0) change(state.nodes[static_cast<std::size_t>(node)], pod, taken, -1);
  state.bound.push_back({.pod = &pod, .node = node, .taken = std::move(taken), .present = true});
  return state.bound.size() - 1;
}

void release(State& state, std::size_t index) {
  Bound& bound = state.bound[index];
  bound.present = false;
  if (bound.node < 0) return;
  change(state.nodes[static_cast<std::size_t>(bound.node)], *bound.pod, bound.taken, +1);
}

void restore(State& state, std::size_t index) {
  Bound& bound = state.bound[index];
  bound.present = true;
  if (bound.node < 0) return;
  change(state.nodes[static_cast<std::size_t>(bound.node)], *bound.pod, bound.taken, -1);
}

const std::string* domain_of(const State& state, int node, std::string_view key) {
  if (node < 0) return nullptr;
  return find_label(state.nodes[static_cast<std::size_t>(node)].spec->labels, key);
}

std::int64_t gpu_milli(const Bound& bound) {
  std::int64_t milli = 0;
  for (const Taken& part : bound.taken) milli += part.milli;
  return milli;
}

}  // namespace berth::judging
