#include "decide/schedule/lowest_running.h"

#include <algorithm>

#include "decide/schedule/jobs.h"

namespace berth::schedule {

using model::ClusterState;

void LowestRunning::look(const ClusterState& state, std::size_t slot) {
  std::int32_t lowest = INT32_MAX;
  state.for_each_pod_on(slot, [&](model::PodId id) {
    const model::PodInfo& info = *state.pod(id).info;
    if (info.gang < 0) lowest = std::min(lowest, info.priority);
  });
  lowest_[slot] = lowest;
}

void LowestRunning::sync(const ClusterState& state) {
  changed_.clear();
  const bool same = known_ && inventory_ == state.inventory().version();
  if (same && model::Journal::between(seen_, state.history(), state.nodes(), changed_)) {
    for (const std::uint32_t slot : changed_) look(state, slot);
  } else {
    lowest_.resize(state.nodes());
    for (std::size_t slot = 0; slot < state.nodes(); ++slot) look(state, slot);
  }
  known_ = true;
  inventory_ = state.inventory().version();
  seen_ = state.history();
}

int LowestRunning::get(const ClusterState& state) {
  sync(state);
  int lowest = INT32_MAX;
  for (const std::int32_t each : lowest_) lowest = std::min(lowest, each);
  // A gang has one priority, which members that wait may raise.
  for (std::int32_t gang = 0; gang < static_cast<std::int32_t>(state.gangs()); ++gang) {
    bool runs = false;
    state.for_each_in_gang(gang, [&](model::PodId id) { runs |= state.pod(id).slot >= 0; });
    if (runs) lowest = std::min(lowest, gang_priority(state, gang));
  }
  return lowest;
}

}  // namespace berth::schedule
