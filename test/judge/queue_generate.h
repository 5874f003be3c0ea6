// Random small worlds of queues and what happens in them, the same for the same seed everywhere.
//
// Valid in the sense of model/workload.h, lists sorted by name. Quotas and requests are small whole
// numbers, so that ties, exact fits and contention are common; about half of what is tried fits.
// Most holders fit the tree as it is; some are beyond what is available, as after a quota was cut.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "model/workload.h"

namespace berth::judging {

struct QueueMix {
  std::optional<bool> fair_sharing;  // absent: one world in two
  int max_roots = 3;
  int max_levels = 3;  // of cohorts
  int max_queues = 6;
  int max_flavors = 3;  // of a resource group
  int max_groups = 2;
  int holders = 16;  // tried; those that do not fit are mostly left out
  int pending = 10;  // at the start
  int limits_percent = 30;
  int unlimited_percent = 4;
  int over_percent = 8;     // holders beyond what is available
  int evicted_percent = 6;  // of the holders; they stay so
  int several_sets_percent = 20;
  int min_count_percent = 15;
  int choosy_percent = 20;  // workloads that select or tolerate nodes; flavors with taints
  int twins_percent = 25;   // workloads like another of the same queue
  int odd_percent = 6;      // stopped, missing, mismatched, held, gated, backing off, partly done
  bool admission_fair_sharing = false;
  bool block_admission = false;
};

// Worlds are made as of this time; nothing in them is newer.
inline constexpr std::int64_t kQueuesAt = 1'000'000'000'000'000;

model::QueueInputs generate_queues(Random& random, const QueueMix& mix);

// One more pending workload. `serial` makes its name; each number once in a world, from 1000 on.
model::WorkloadSpec random_workload(Random& random, const QueueMix& mix,
                                    const model::QueueInputs& world, int serial,
                                    std::int64_t now_ns);

struct QueueOperation {
  enum class Kind : std::uint8_t { kCycle, kEvictionsDone, kFinish, kAdd };
  Kind kind = Kind::kCycle;
  std::string workload;      // kFinish: a holder
  model::WorkloadSpec spec;  // kAdd
};

// What happens next; about half are cycles. `holders`: who holds quota now, in any fixed order.
QueueOperation random_operation(Random& random, const QueueMix& mix,
                                const model::QueueInputs& world,
                                const std::vector<std::string>& holders, int serial,
                                std::int64_t now_ns);

}  // namespace berth::judging
