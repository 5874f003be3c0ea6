// Trees of queues of other schedulers as ClusterQueues and Cohorts.
//
// A queue without children becomes a ClusterQueue, one with children a Cohort; all hang under one
// root cohort. There is one flavor, which is any node. Per resource:
//   nominal   what the queue states; else, for a queue shared by weight, its part of what its
//   parent
//             has (at the top: of the cluster) by weight among its siblings, rounded down; else
//             unlimited, as nobody limits it. Never above the cap.
//   borrowing cap - nominal where there is a cap, else no limit
//   lending   nominal - guarantee where there is a guarantee, else all
// A cohort has as nominal what it states above the sum of its children, the root what the cluster
// has above the sum of the top queues: so that nothing of the cluster is out of reach.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/workload.h"

namespace berth::kinds {

struct ForestQueue {
  std::string name;
  std::string parent;  // the name of another of the same forest, or empty
  double weight = 1;
  bool by_weight = false;
  bool fifo = false, closed = false;
  model::Amounts nominal, cap, guarantee;  // as far as stated; INT64_MAX is unlimited
};

// cpu, memory and nvidia.com/gpu of all nodes.
model::Amounts cluster_totals(const std::vector<model::NodeSpec>& nodes);

// resources: all that the queues count. Names must be free in out, parents without a cycle and at
// most kMaxQueueDepth levels deep.
inline constexpr int kMaxQueueDepth = 16;
void plant(const std::string& root, std::vector<ForestQueue> queues, const model::Amounts& totals,
           const std::set<std::string>& resources, const std::string& flavor,
           model::QueueInputs& out);

}  // namespace berth::kinds
