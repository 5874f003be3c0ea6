#include "people/view/fleet.h"

#include <algorithm>
#include <map>
#include <set>

#include "decide/decide.h"
#include "kinds/topology.h"
#include "people/view/words.h"

namespace berth::people {

namespace {

using model::NodeSpec;
using model::PodSpec;

constexpr const char* kPoolKeys[] = {"berth.dev/pool",
                                     "karpenter.sh/nodepool",
                                     "cloud.google.com/gke-nodepool",
                                     "eks.amazonaws.com/nodegroup",
                                     "kubernetes.azure.com/agentpool",
                                     "node-pool"};

std::set<std::string, std::less<>> label_keys(const std::vector<NodeSpec>& nodes) {
  std::set<std::string, std::less<>> keys;
  for (const NodeSpec& node : nodes) {
    for (const auto& [key, value] : node.labels) keys.insert(key);
  }
  return keys;
}

// The label that says where a node stands: a rack, else a zone; empty: none.
std::string rack_key_of(const std::set<std::string, std::less<>>& keys) {
  for (const char* level : {"rack", "zone"}) {
    std::string key = kinds::topology_key(level, keys);
    if (keys.contains(key)) return key;
  }
  return "";
}

std::string pool_key_of(const std::set<std::string, std::less<>>& keys) {
  for (const char* key : kPoolKeys) {
    if (keys.contains(key)) return key;
  }
  return "";
}

std::string label_at(const NodeSpec& node, const std::string& key) {
  const auto it = key.empty() ? node.labels.end() : node.labels.find(key);
  return it == node.labels.end() ? std::string() : it->second;
}

std::string show_taint(const model::Taint& taint) {
  std::string out = taint.key;
  if (!taint.value.empty()) out += '=' + taint.value;
  return out + (taint.effect == model::TaintEffect::kNoSchedule ? ":NoSchedule" : ":NoExecute");
}

// One node as the state has it, with what its pods hold.
class NodeViewer {
 public:
  NodeViewer(const model::ClusterState& state, std::size_t slot, const NodeSpec& spec)
      : state_(state), slot_(slot), spec_(spec), info_(state.info(slot)) {}

  FleetNode run(Fleet& fleet) {
    FleetNode out;
    out.name = spec_.name;
    out.model = info_.gpu_model;
    out.pool = label_at(spec_, fleet.pool_key);
    out.rack = label_at(spec_, fleet.rack_key);
    out.ready = spec_.ready;
    out.cordoned = spec_.unschedulable;
    out.shares_per_gpu = spec_.shares_per_gpu;
    out.assumed = spec_.gpus_assumed;
    for (const model::Taint& taint : spec_.taints) {
      if (taint.effect != model::TaintEffect::kPreferNoSchedule) {
        out.taints.push_back(show_taint(taint));
      }
    }
    for (const model::GpuSpec& gpu : info_.gpus) {
      FleetGpu view;
      view.index = gpu.index;
      view.model = gpu.model;
      view.uuid = gpu.uuid;
      view.nvlink_clique = gpu.nvlink_clique;
      for (const model::MigSlots& mig : gpu.mig) view.mig_slots += mig.count;
      out.gpus.push_back(std::move(view));
    }
    state_.for_each_pod_on(slot_, [&](model::PodId id) { take_pod(state_.pod(id), out, fleet); });
    std::sort(out.holders.begin(), out.holders.end(), [](const auto& a, const auto& b) {
      return a.milli != b.milli ? a.milli > b.milli : a.pod < b.pod;
    });
    for (std::size_t g = 0; g < out.gpus.size(); ++g) settle(info_.gpus[g], out.gpus[g], out);
    out.tally.nodes = 1;
    return out;
  }

 private:
  void take_pod(const model::PodEntry& pod, FleetNode& out, Fleet& fleet) const {
    ++fleet.running_pods;
    FleetHolder holder;
    holder.pod = pod.info->name;
    holder.priority = pod.info->priority;
    for (std::size_t g = 0; g < out.gpus.size(); ++g) {
      const int taken = pod.gpus.take[g];
      if (taken == 0) continue;
      FleetGpu& gpu = out.gpus[g];
      const bool mig = pod.gpus.unit == 0;
      const int milli =
          mig ? model::kMilliPerGpu * taken / std::max(1, gpu.mig_slots) : taken * pod.gpus.unit;
      if (mig) gpu.mig_used += taken;
      gpu.used_milli += milli;
      gpu.pods.push_back(pod.info->name);
      holder.milli += milli;
      holder.gpus.push_back(gpu.index);
    }
    if (holder.gpus.empty()) return;
    ++fleet.gpu_pods;
    out.holders.push_back(std::move(holder));
  }

  void settle(const model::GpuSpec& spec, FleetGpu& gpu, FleetNode& node) const {
    std::sort(gpu.pods.begin(), gpu.pods.end());
    gpu.used_milli = std::min(gpu.used_milli, model::kMilliPerGpu);
    GpuTally& tally = node.tally;
    if (spec.health == model::Health::kUnhealthy) {
      gpu.state = GpuState::kUnhealthy;
      gpu.why = spec.health_reason;
      ++tally.unhealthy;
      tally.unhealthy_held += gpu.pods.empty() ? 0 : 1;
    } else if (!gpu.pods.empty()) {
      gpu.state = GpuState::kUsed;
      ++tally.used;
    } else if (spec.reserved || node.cordoned) {
      gpu.state = GpuState::kReserved;
      gpu.why = spec.reserved ? "reserved by an operator" : "the node is cordoned";
      ++tally.reserved;
    } else if (spec.health == model::Health::kUnknown || !node.ready) {
      gpu.state = GpuState::kUnknown;
      gpu.why = node.ready ? spec.health_reason : "the node is not ready";
      ++tally.unknown;
    } else {
      gpu.state = GpuState::kFree;
      ++tally.free;
    }
    tally.used_milli += gpu.used_milli;
    const bool open =
        node.ready && !node.cordoned && !spec.reserved && spec.health == model::Health::kHealthy;
    if (open) tally.free_milli += model::kMilliPerGpu - gpu.used_milli;
    tally.mig_slots += gpu.mig_slots;
    tally.mig_used += gpu.mig_used;
  }

  const model::ClusterState& state_;
  std::size_t slot_;
  const NodeSpec& spec_;
  const model::NodeInfo& info_;
};

void take_nodes(const kinds::Inputs& inputs, Fleet& fleet) {
  model::SnapshotBuilder builder;
  std::map<std::string_view, const NodeSpec*> specs;
  for (const NodeSpec& node : inputs.nodes) {
    builder.upsert_node(node);
    specs.emplace(node.name, &node);
  }
  for (const PodSpec& pod : inputs.pods) {
    if (!pod.node_name.empty()) builder.upsert_pod(pod);
  }
  const model::ClusterState& state = builder.state();
  for (std::size_t slot = 0; slot < state.nodes(); ++slot) {
    const NodeSpec& spec = *specs.at(state.info(slot).name);
    fleet.nodes.push_back(NodeViewer(state, slot, spec).run(fleet));
  }
}

std::vector<FleetGroup> listed(const std::map<std::string, GpuTally>& groups) {
  std::vector<FleetGroup> out;
  for (const auto& [name, tally] : groups) out.push_back({name, tally});
  return out;
}

void group_nodes(Fleet& fleet) {
  std::map<std::string, GpuTally> models, pools, racks;
  for (const FleetNode& node : fleet.nodes) {
    GpuTally tally = node.tally;
    fleet.total.add(tally);
    if (node.gpus.empty()) continue;
    models[node.model].add(tally);
    if (!fleet.pool_key.empty()) pools[node.pool].add(tally);
    if (!fleet.rack_key.empty()) racks[node.rack].add(tally);
  }
  fleet.models = listed(models);
  fleet.pools = listed(pools);
  fleet.racks = listed(racks);
}

// Whole GPUs that a new pod could get there.
int open_gpus(const FleetNode& node) {
  if (!node.ready || node.cordoned) return 0;
  return static_cast<int>(std::count_if(node.gpus.begin(), node.gpus.end(), [](const auto& gpu) {
    return gpu.state == GpuState::kFree && gpu.mig_slots == 0;
  }));
}

void find_rooms(Fleet& fleet) {
  constexpr int kSizes[] = {8, 4, 2, 1};
  std::map<std::string, FleetRoom> rooms;
  std::map<std::pair<std::string, std::string>, int> by_rack;
  for (const FleetNode& node : fleet.nodes) {
    if (node.gpus.empty()) continue;
    FleetRoom& room = rooms[node.model];
    if (room.gangs.empty()) {
      for (const int size : kSizes) room.gangs.push_back({size, 0});
    }
    const int open = open_gpus(node);
    room.free += open;
    room.largest_node = std::max(room.largest_node, open);
    by_rack[{node.model, node.rack}] += open;
    for (FleetRoom::Gang& gang : room.gangs) gang.pods += open / gang.gpus_per_pod;
  }
  for (const auto& [where, open] : by_rack) {
    FleetRoom& room = rooms[where.first];
    if (open <= room.largest_rack) continue;
    room.largest_rack = open;
    room.rack = where.second;
  }
  for (auto& [name, room] : rooms) {
    room.model = name;
    fleet.rooms.push_back(std::move(room));
  }
}

// When the first of a workload's pods was made.
class Ages {
 public:
  explicit Ages(const kinds::Inputs& inputs) {
    for (const PodSpec& pod : inputs.pods) {
      note("pod " + pod.ns + '/' + pod.name, pod.created_ns);
      if (!pod.owner.empty()) {
        note("pod " + pod.ns + '/' + pod.owner.substr(pod.owner.find('/') + 1), pod.created_ns);
      }
    }
    for (const model::GangSpec& gang : inputs.gangs) {
      note("gang " + gang.ns + '/' + gang.name, gang.created_ns);
    }
    for (const model::WorkloadSpec& workload : inputs.queues.workloads) {
      note("queued " + workload.ns + '/' + workload.name, workload.created_ns);
    }
  }
  std::int64_t of(const Workload& workload) const {
    if (workload.kind == Workload::Kind::kQueued) return at("queued " + workload.name);
    const std::int64_t gang = at("gang " + workload.name);
    return workload.kind == Workload::Kind::kGang && gang != 0 ? gang : at("pod " + workload.name);
  }

 private:
  void note(const std::string& key, std::int64_t created_ns) {
    if (created_ns == 0) return;
    const auto [it, fresh] = since_.emplace(key, created_ns);
    if (!fresh) it->second = std::min(it->second, created_ns);
  }
  std::int64_t at(const std::string& key) const {
    const auto it = since_.find(key);
    return it == since_.end() ? 0 : it->second;
  }
  std::map<std::string, std::int64_t> since_;
};

void take_waiting(const kinds::Inputs& inputs, const PlanResult& plan, Fleet& fleet) {
  const Ages ages(inputs);
  std::map<model::Reason, FleetReason> reasons;
  for (const Workload& workload : plan.workloads) {
    if (workload.was_running) continue;  // it runs; the plan would have it make room
    if (workload.placed()) {
      ++fleet.startable;
      continue;
    }
    const model::Outcome& outcome = plan.decision.outcomes[workload.waiting.front()];
    FleetWaiting waiting;
    waiting.workload = workload.name;
    waiting.queue = workload.queue;
    waiting.reason = outcome.reason;
    waiting.message = outcome.message;
    waiting.never = outcome.verdict == model::Verdict::kNever;
    waiting.pods = workload.pods;
    waiting.priority = workload.priority;
    waiting.position = outcome.position;
    waiting.gpus_milli = workload.asked_milli;
    waiting.since_ns = ages.of(workload);
    FleetReason& reason = reasons[waiting.reason];
    reason.reason = waiting.reason;
    ++reason.workloads;
    reason.pods += waiting.pods;
    reason.gpus_milli += waiting.gpus_milli;
    const bool older =
        waiting.since_ns != 0 && (reason.oldest_ns == 0 || waiting.since_ns < reason.oldest_ns);
    if (older) reason.oldest_ns = waiting.since_ns;
    fleet.waiting.push_back(std::move(waiting));
  }
  const auto age = [](std::int64_t since) { return since == 0 ? INT64_MAX : since; };
  std::sort(fleet.waiting.begin(), fleet.waiting.end(), [&](const auto& a, const auto& b) {
    return std::pair(age(a.since_ns), a.workload) < std::pair(age(b.since_ns), b.workload);
  });
  for (const auto& [key, reason] : reasons) fleet.reasons.push_back(reason);
  std::sort(fleet.reasons.begin(), fleet.reasons.end(), [](const auto& a, const auto& b) {
    if (a.gpus_milli != b.gpus_milli) return a.gpus_milli > b.gpus_milli;
    return model::name(a.reason) < model::name(b.reason);
  });
}

}  // namespace

std::string_view name(GpuState state) {
  switch (state) {
    case GpuState::kUsed:
      return "used";
    case GpuState::kFree:
      return "free";
    case GpuState::kUnhealthy:
      return "unhealthy";
    case GpuState::kReserved:
      return "reserved";
    case GpuState::kUnknown:
      return "unknown";
  }
  return "";
}

void GpuTally::add(const GpuTally& other) {
  nodes += other.nodes;
  used += other.used;
  free += other.free;
  unhealthy += other.unhealthy;
  reserved += other.reserved;
  unknown += other.unknown;
  unhealthy_held += other.unhealthy_held;
  used_milli += other.used_milli;
  free_milli += other.free_milli;
  mig_slots += other.mig_slots;
  mig_used += other.mig_used;
}

int FleetRoom::largest_gang() const {
  for (const Gang& gang : gangs) {
    if (gang.pods > 0) return gang.pods * gang.gpus_per_pod;
  }
  return 0;
}

Fleet make_fleet(const kinds::Inputs& inputs, const PlanResult& plan, std::int64_t now_ns) {
  Fleet fleet;
  fleet.now_ns = now_ns;
  const std::set<std::string, std::less<>> keys = label_keys(inputs.nodes);
  fleet.rack_key = rack_key_of(keys);
  fleet.pool_key = pool_key_of(keys);
  take_nodes(inputs, fleet);
  group_nodes(fleet);
  find_rooms(fleet);
  take_waiting(inputs, plan, fleet);
  return fleet;
}

}  // namespace berth::people
