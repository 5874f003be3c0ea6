// Fair sharing: whose entry is next. The search for victims is in queue_preempt.h.
#pragma once

#include <string>
#include <vector>

#include "judge/queue_tree.h"

namespace berth::judging::quota {

// A head in the tournament.
struct Contestant {
  std::string queue;
  Usage usage;
  int priority = 0;
  std::int64_t queue_ns = 0;
  std::string tie;
};

// The index of the winner; every contestant is of the same root. Not for an empty list.
std::size_t tournament(const QuotaState& state, const std::vector<Contestant>& contestants);

}  // namespace berth::judging::quota
