// The fleet as people look at it: every GPU in exactly one state, what is free and how large a gang
// it would take, what waits and why.
//
// For status, gpus and the page; pure, a function of the inputs, the plan made of them and the
// time. Nodes, groups and reasons are sorted, so the same inputs give the same bytes. O(nodes +
// pods + waiting).
//
// The state of a GPU, the first that holds:
//   unhealthy  its health says so, whoever holds it (unhealthy_held counts those with a pod)
//   used       a pod holds it or a part of it
//   reserved   an operator keeps it from new pods: spec.reservedGpus, or its node is cordoned
//   unknown    its health is not known, or its node is not ready
//   free       everything else
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/manifest.h"
#include "people/view/plan.h"

namespace berth::people {

enum class GpuState : std::uint8_t { kUsed, kFree, kUnhealthy, kReserved, kUnknown };
std::string_view name(GpuState state);  // "used"

struct GpuTally {
  int nodes = 0;
  int used = 0, free = 0, unhealthy = 0, reserved = 0, unknown = 0;
  int unhealthy_held = 0;           // of unhealthy: a pod is on it
  std::int64_t used_milli = 0;      // of all devices; less than 1000 for a part
  std::int64_t free_milli = 0;      // of free ones and of the rest of used ones
  int mig_slots = 0, mig_used = 0;  // of partitioned devices
  int discovered() const { return used + free + unhealthy + reserved + unknown; }
  void add(const GpuTally& other);
};

struct FleetGpu {
  int index = 0;
  std::string model, uuid;
  GpuState state = GpuState::kFree;
  std::string why;  // of unhealthy and unknown
  int used_milli = 0;
  int nvlink_clique = -1;
  int mig_slots = 0, mig_used = 0;
  std::vector<std::string> pods;  // "ns/name", by name
  // What its agent measures, for those who asked it: make_fleet() does not. -1: not known.
  int busy_percent = -1, memory_used_mib = -1, memory_mib = -1;
};

struct FleetHolder {
  std::string pod;  // "ns/name"
  int milli = 0, priority = 0;
  std::vector<int> gpus;  // indices, each once
};

struct FleetNode {
  std::string name, model, pool, rack;  // pool, rack: "" where nodes have no such label
  bool ready = true, cordoned = false;
  std::vector<std::string> taints;  // "nvidia.com/gpu=present:NoSchedule"; that keep pods away
  int shares_per_gpu = 1;
  bool assumed = false;  // from labels, no agent tells of it
  GpuTally tally;
  std::vector<FleetGpu> gpus;
  std::vector<FleetHolder> holders;  // most first, then by name
};

struct FleetGroup {
  std::string name;  // a model, a pool, a rack
  GpuTally tally;
};

// What would fit now, by free whole GPUs of ready nodes that are not cordoned; CPU, memory, taints
// and quota are not looked at: berth fit does.
struct FleetRoom {
  std::string model;
  int free = 0;
  int largest_node = 0;  // the most on one node
  int largest_rack = 0;  // the most in one rack
  std::string rack;
  struct Gang {
    int gpus_per_pod = 0, pods = 0;  // the most pods of that size at once
  };
  std::vector<Gang> gangs;   // of 8, 4, 2 and 1 GPUs a pod
  int largest_gang() const;  // GPUs of the gang of the widest pods that fits
};

struct FleetWaiting {
  std::string workload, queue;  // "ns/name"
  model::Reason reason = model::Reason::kNone;
  std::string message;
  bool never = false;
  int pods = 0, priority = 0, position = 0;
  std::int64_t gpus_milli = 0;  // of all its pods; 0: none, or it depends on the node
  std::int64_t since_ns = 0;    // 0: not known
};

struct FleetReason {
  model::Reason reason = model::Reason::kNone;
  int workloads = 0, pods = 0;
  std::int64_t gpus_milli = 0;
  std::int64_t oldest_ns = 0;
};

struct Fleet {
  std::int64_t now_ns = 0;
  GpuTally total;
  int running_pods = 0, gpu_pods = 0;
  std::string rack_key, pool_key;  // labels of nodes
  std::vector<FleetNode> nodes;    // all nodes, also without GPUs
  std::vector<FleetGroup> models, pools, racks;
  std::vector<FleetRoom> rooms;       // by model
  std::vector<FleetWaiting> waiting;  // longest first, then by name
  std::vector<FleetReason> reasons;   // most GPUs first, then by name
  int startable = 0;                  // workloads that wait and would be placed at once
};

// plan: make_plan() of the same inputs.
Fleet make_fleet(const kinds::Inputs& inputs, const PlanResult& plan, std::int64_t now_ns);

// One object, keys in a fixed order; indent as of JsonStyle.
std::string fleet_json(const Fleet& fleet, int indent);

}  // namespace berth::people
