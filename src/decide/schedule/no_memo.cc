#include "decide/schedule/no_memo.h"

namespace berth::schedule {

void NoMemo::begin(const model::ClusterSnapshot& snapshot, std::uint64_t epoch, int variant) {
  bool same = snapshot_ && snapshot->same_running(*snapshot_) && epoch == epoch_ &&
              variant == variant_ && known_.size() < kMost;
  if (!same) known_.clear();
  boost::unordered::erase_if(known_, [](const auto& entry) { return entry.second.changes != 0; });
  snapshot_ = snapshot;
  epoch_ = epoch;
  variant_ = variant;
  changes_ = 0;
}

void NoMemo::placed() {
  ++changes_;
  if (known_.size() >= kMost) known_.clear();
}

std::string NoMemo::key_of(const model::ClusterState& state, const Workload& workload) const {
  std::string key;
  auto add = [&](std::uint64_t value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  add(static_cast<std::uint32_t>(workload.gang));
  add(static_cast<std::uint32_t>(workload.priority) | std::uint64_t{workload.preempts} << 32);
  if (workload.gang >= 0) {
    add(static_cast<std::uint32_t>(workload.min_pending));
    add(static_cast<std::uint32_t>(workload.gated));
    for (auto id : workload.pending) {
      add(id);
      key.append(state.pod(id).info->subgroup).push_back('\0');
    }
  }
  for (auto id : workload.pending) add(state.pod(id).shape->serial);
  return key;
}

const model::Outcome* NoMemo::find(const model::ClusterState& state, const Workload& workload) {
  auto it = known_.find(key_of(state, workload));
  return it != known_.end() && it->second.changes == changes_ ? &it->second.no : nullptr;
}

void NoMemo::keep(const model::ClusterState& state, const Workload& workload,
                  const model::Outcome& outcome) {
  if (known_.size() >= kMost) return;
  known_.insert_or_assign(key_of(state, workload), Known{changes_, outcome});
}

}  // namespace berth::schedule
