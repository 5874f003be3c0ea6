// The judge's picture of a cluster: what is free on each node, and who runs where on which devices.
// A plain value: a what-if is a copy. Only the judge and its generator include this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "judge/judge.h"
#include "model/spec.h"

namespace berth::judging {

// A part of one device: so many milli of it, or one MIG slot of gpus[device].mig[profile].
struct Taken {
  int device = 0;  // position in NodeSpec::gpus
  int milli = 0;
  int profile = -1;
};

struct NodeState {
  const model::NodeSpec* spec = nullptr;
  std::int64_t cpu = 0, memory = 0, ephemeral = 0, pods = 0;  // free; below 0 when overcommitted
  model::Amounts extended;
  std::vector<int> gpu_free;               // milli by position; 0 for a partitioned device
  std::vector<std::vector<int>> mig_free;  // [position][profile]; empty on nodes without MIG
};

struct Bound {
  const model::PodSpec* pod = nullptr;
  int node = -1;  // -1: a node the cluster does not have
  std::vector<Taken> taken;
  bool present = true;  // false: evicted in this cycle
};

struct State {
  std::vector<NodeState> nodes;  // by name
  std::vector<Bound> bound;      // grows only, so that an index means the same pod in every copy
};

bool usable(const model::GpuSpec& gpu);  // neither unhealthy nor reserved
bool asks_gpus(const model::PodSpec& pod);
std::int64_t request(const model::PodSpec& pod, std::string_view resource);

State state_of(const JudgeCluster& cluster);
State without_pods(const JudgeCluster& cluster);

// Appends the pod as bound; returns its index.
std::size_t bind(State& state, const model::PodSpec& pod, int node, std::vector<Taken> taken);
void release(State& state, std::size_t index);  // present -> evicted
void restore(State& state, std::size_t index);  // evicted -> present, on the same devices

// Amounts only, of one node: for counting copies.
void take(NodeState& node, const model::PodSpec& pod, const std::vector<Taken>& taken);

const std::string* domain_of(const State& state, int node, std::string_view key);
std::int64_t gpu_milli(const Bound& bound);

}  // namespace berth::judging
