// Which flavor each pod set gets, and how it could be had.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "judge/queue_preempt.h"
#include "judge/queue_tree.h"

namespace berth::judging::quota {

enum class FlavorMode { kNoFit, kNoCandidates, kPreempt, kReclaim, kFit };  // worst first
enum class AssignmentMode { kNoFit, kPreempt, kFit };

struct FlavorChoice {
  std::string flavor;
  FlavorMode mode = FlavorMode::kNoFit;
  int level = 0;  // of borrowing
};

struct PodSetChoice {
  std::string name;
  int count = 0;
  model::Amounts requests;                      // of all its pods
  std::map<std::string, FlavorChoice> flavors;  // by resource
};

// By pod set and resource: the index of the last flavor tried, -1 once the end was reached.
using Tried = std::map<std::pair<std::string, std::string>, int>;

struct Assignment {
  std::vector<PodSetChoice> pod_sets;
  std::string no_fit;  // NoMatchingFlavor, ExceedsMaxQuota, WaitingForQuota; empty: it may fit
  Tried tried;

  AssignmentMode mode() const;
  Usage usage() const;              // nothing when it does not fit
  FlavorResources needing() const;  // preemption
  int level() const;                // the highest
  bool untried() const;             // some scan stopped before the end
  model::AdmissionSpec admission(const std::string& queue) const;
};

// Pods of each pod set that are still to run.
std::vector<int> counts_of(const model::WorkloadSpec& workload);

// `last`: where earlier scans stopped. `pinned`: only its flavors, or null.
Assignment assign(const model::QueueInputs& inputs, const QuotaState& state, const Asker& asker,
                  const model::WorkloadSpec& workload, const std::vector<int>& counts,
                  const Tried& last, const Assignment* pinned);

}  // namespace berth::judging::quota
