// The compact array model of a cluster that only fills up, and the loop that fills it.
//
// A policy scores (node, shape) pairs. The loop keeps one score row per shape and repairs it from
// the log of placements, so a decision costs the nodes changed since the shape was last seen plus
// one pass over integers. A policy is any type with
//   int32_t score(const NodeState&, uint32_t node, uint32_t shape)   feasible pairs only
//   int pick_gpu(const NodeState&, uint32_t shape)                    fractional shapes only
//   bool arrived(uint32_t shape)       true: all scores are stale
//   static constexpr Choice kChoice
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "openb_trace.h"

namespace berth::openb {

enum class Choice { kBest, kBestNormalised, kUniform };

inline constexpr int32_t kInfeasible = std::numeric_limits<int32_t>::min();
inline constexpr int kArrivedPoints = 131;

struct NodeState {
  std::array<int16_t, kMaxGpus> gpu_free{};
  int32_t cpu_free = 0;
  int32_t gpu_total_free = 0;
  int16_t gpus = 0;
  uint16_t class_id = 0;
  uint16_t tenants = 0;  // bit 0: fractional pods, bit k: pods of k whole GPUs
  uint8_t model = 0;
};

inline uint16_t tenant_bit(const Shape& shape) {
  if (shape.num_gpu == 0) return 0;
  const int kind = shape.gpu_milli < kWholeGpu ? 0 : shape.num_gpu;
  return static_cast<uint16_t>(1U << static_cast<unsigned>(kind));
}

inline bool is_fractional(const Shape& shape) {
  return shape.num_gpu > 0 && shape.gpu_milli < kWholeGpu;
}

inline bool feasible(const NodeState& node, const Shape& shape) {
  if (node.cpu_free < shape.cpu_milli) return false;
  if (shape.num_gpu == 0) return true;
  if (((shape.model_mask >> node.model) & 1U) == 0) return false;
  int fitting = 0;
  for (int gpu = 0; gpu < node.gpus; ++gpu) {
    fitting += node.gpu_free[static_cast<size_t>(gpu)] >= shape.gpu_milli ? 1 : 0;
  }
  return fitting >= shape.num_gpu;
}

// The GPU with the least room that still fits.
inline int tightest_gpu(const NodeState& node, const Shape& shape) {
  int best = -1;
  for (int gpu = 0; gpu < node.gpus; ++gpu) {
    const int16_t room = node.gpu_free[static_cast<size_t>(gpu)];
    if (room < shape.gpu_milli) continue;
    if (best < 0 || room < node.gpu_free[static_cast<size_t>(best)]) best = gpu;
  }
  return best;
}

inline void place(NodeState& node, const Shape& shape, int gpu) {
  node.cpu_free -= shape.cpu_milli;
  node.gpu_total_free -= static_cast<int32_t>(shape.total_gpu_milli());
  node.tenants = static_cast<uint16_t>(node.tenants | tenant_bit(shape));
  if (is_fractional(shape)) {
    node.gpu_free[static_cast<size_t>(gpu)] =
        static_cast<int16_t>(node.gpu_free[static_cast<size_t>(gpu)] - shape.gpu_milli);
    return;
  }
  int left = shape.num_gpu;
  for (int at = 0; at < node.gpus && left > 0; ++at) {
    if (node.gpu_free[static_cast<size_t>(at)] < kWholeGpu) continue;
    node.gpu_free[static_cast<size_t>(at)] = 0;
    --left;
  }
}

struct Fill {
  // Mean share of allocated GPU, in %, over the events whose arrived % rounds to the index.
  std::array<double, kArrivedPoints> allocated_pct{};
  int64_t decisions = 0;
};

// Lets the pods arrive one by one; decide(pod) tries each once and returns the GPU milli in use.
template <class Decide>
Fill fill_by(const Inventory& inventory, const PodList& list, const Arrivals& arrivals,
             Decide&& decide) {
  Fill fill;
  std::array<int64_t, kArrivedPoints> events{};
  const auto capacity = static_cast<double>(inventory.gpu_milli);
  int64_t arrived = 0;
  for (const uint32_t at : arrivals.pods) {
    const Pod& pod = list.pods[at];
    arrived += list.shapes[pod.shape].total_gpu_milli();
    const int64_t used = decide(pod);
    ++fill.decisions;
    const auto point =
        static_cast<size_t>(std::llround(100.0 * static_cast<double>(arrived) / capacity));
    if (point >= events.size()) continue;
    fill.allocated_pct[point] += 100.0 * static_cast<double>(used) / capacity;
    ++events[point];
  }
  for (size_t point = 0; point < events.size(); ++point) {
    if (events[point] > 0) fill.allocated_pct[point] /= static_cast<double>(events[point]);
  }
  return fill;
}

template <class Policy>
class Filler {
 public:
  Filler(const Inventory& inventory, const PodList& list, const Arrivals& arrivals, Policy& policy)
      : inventory_(inventory),
        list_(list),
        arrivals_(arrivals),
        policy_(policy),
        rows_(list.shapes.size()),
        random_(arrivals.pods.size() + arrivals.node_order.front()) {
    for (const uint32_t at : arrivals.node_order) add_node(inventory.nodes[at]);
  }

  Fill run() {
    return fill_by(inventory_, list_, arrivals_, [this](const Pod& pod) {
      if (policy_.arrived(pod.shape)) ++generation_;
      decide(pod);
      return used_;
    });
  }

  const std::vector<NodeState>& nodes() const { return nodes_; }

 private:
  struct Row {
    std::vector<int32_t> scores;
    size_t log_seen = 0;
    uint64_t generation = 0;
  };

  void add_node(const NodeSpec& spec) {
    NodeState node;
    std::fill_n(node.gpu_free.begin(), spec.gpus, int16_t{kWholeGpu});
    node.cpu_free = spec.cpu_milli;
    node.gpu_total_free = spec.gpus * kWholeGpu;
    node.gpus = spec.gpus;
    node.class_id = spec.class_id;
    node.model = spec.model;
    nodes_.push_back(node);
    memory_free_.push_back(spec.memory_mib);
  }

  int32_t score_of(uint32_t node, uint32_t shape) {
    if (!feasible(nodes_[node], list_.shapes[shape])) return kInfeasible;
    return policy_.score(nodes_[node], node, shape);
  }

  const std::vector<int32_t>& fresh_row(uint32_t shape) {
    Row& row = rows_[shape];
    const bool rebuild = row.scores.empty() || row.generation != generation_ ||
                         log_.size() - row.log_seen > nodes_.size();
    if (rebuild) {
      row.scores.resize(nodes_.size());
      row.generation = generation_;
      for (uint32_t node = 0; node < nodes_.size(); ++node) {
        row.scores[node] = score_of(node, shape);
      }
    } else {
      for (size_t at = row.log_seen; at < log_.size(); ++at) {
        row.scores[log_[at]] = score_of(log_[at], shape);
      }
    }
    row.log_seen = log_.size();
    return row.scores;
  }

  void decide(const Pod& pod) {
    const std::vector<int32_t>& scores = fresh_row(pod.shape);
    int64_t node = -1;
    if constexpr (Policy::kChoice == Choice::kBest) node = best(scores, pod.memory_mib);
    if constexpr (Policy::kChoice == Choice::kBestNormalised) {
      node = best_normalised(scores, pod.memory_mib);
    }
    if constexpr (Policy::kChoice == Choice::kUniform) node = uniform(scores, pod.memory_mib);
    if (node < 0) return;
    const Shape& shape = list_.shapes[pod.shape];
    NodeState& chosen = nodes_[static_cast<size_t>(node)];
    place(chosen, shape, is_fractional(shape) ? policy_.pick_gpu(chosen, pod.shape) : -1);
    memory_free_[static_cast<size_t>(node)] -= pod.memory_mib;
    used_ += shape.total_gpu_milli();
    log_.push_back(static_cast<uint32_t>(node));
  }

  int64_t best(const std::vector<int32_t>& scores, int32_t memory) const {
    int64_t chosen = -1;
    int32_t top = kInfeasible;
    for (size_t node = 0; node < scores.size(); ++node) {
      if (scores[node] <= top || memory_free_[node] < memory) continue;
      top = scores[node];
      chosen = static_cast<int64_t>(node);
    }
    return chosen;
  }

  // Scores stretched to 0..100 over the feasible nodes before they are compared as integers.
  int64_t best_normalised(const std::vector<int32_t>& scores, int32_t memory) const {
    int32_t low = std::numeric_limits<int32_t>::max();
    int32_t high = kInfeasible;
    for (size_t node = 0; node < scores.size(); ++node) {
      if (scores[node] == kInfeasible || memory_free_[node] < memory) continue;
      low = std::min(low, scores[node]);
      high = std::max(high, scores[node]);
    }
    if (high == kInfeasible) return -1;
    const int32_t range = std::max(high - low, 1);
    int64_t chosen = -1;
    int32_t top = -1;
    for (size_t node = 0; node < scores.size(); ++node) {
      if (scores[node] == kInfeasible || memory_free_[node] < memory) continue;
      const int32_t stretched = (scores[node] - low) * 100 / range;
      if (stretched <= top) continue;
      top = stretched;
      chosen = static_cast<int64_t>(node);
    }
    return chosen;
  }

  int64_t uniform(const std::vector<int32_t>& scores, int32_t memory) {
    candidates_.clear();
    for (uint32_t node = 0; node < scores.size(); ++node) {
      if (scores[node] != kInfeasible && memory_free_[node] >= memory) candidates_.push_back(node);
    }
    if (candidates_.empty()) return -1;
    return candidates_[random_.below(candidates_.size())];
  }

  const Inventory& inventory_;
  const PodList& list_;
  const Arrivals& arrivals_;
  Policy& policy_;
  std::vector<NodeState> nodes_;
  std::vector<int32_t> memory_free_;
  std::vector<Row> rows_;
  std::vector<uint32_t> log_;
  std::vector<uint32_t> candidates_;
  Random random_;
  uint64_t generation_ = 0;
  int64_t used_ = 0;
};

}  // namespace berth::openb
