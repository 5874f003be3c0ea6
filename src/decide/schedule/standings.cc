#include "decide/schedule/standings.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace berth::schedule {

void Standings::reset(const model::Inventory& inventory,
                      const std::vector<std::uint16_t>& class_of) {
  using Kind = std::tuple<std::uint16_t, std::int16_t, std::int16_t, int, std::int64_t>;
  std::map<Kind, std::uint32_t> kinds;
  kind_of_.resize(inventory.size());
  for (std::size_t i = 0; i < inventory.size(); ++i) {
    const model::NodeInfo& info = inventory.node(i);
    const Kind kind{class_of[i], info.gpu_milli, info.shared_milli, info.shares_per_gpu,
                    info.gpu_memory_mib};
    kind_of_[i] = kinds.emplace(kind, static_cast<std::uint32_t>(kinds.size())).first->second;
  }
  nodes_.assign(inventory.size(), {});
  known_ = false;
}

void Standings::look(const model::ClusterState& state, std::size_t slot) {
  const model::NodeInfo& info = state.info(slot);
  const model::NodeState& node = state.node(slot);
  auto fresh = static_cast<std::uint32_t>(rooms_.size());
  auto [it, added] = numbers_.emplace(Key{room_of(info, node), kind_of_[slot]}, fresh);
  if (added) rooms_.push_back(it->first.room);
  bool huge = node.cpu > INT32_MAX;
  nodes_[slot] = {.cpu = node.pods < 1 ? -1
                                       : static_cast<std::int32_t>(
                                             std::clamp<std::int64_t>(node.cpu, 0, INT32_MAX)),
                  .standing = it->second & 0x7FFFFFFF,
                  .beyond = huge || model::numa_policy_applies(info)};
}

void Standings::look_at_all(const model::ClusterState& state) {
  numbers_.clear();
  rooms_.clear();
  ++round_;
  for (std::size_t slot = 0; slot < state.nodes(); ++slot) look(state, slot);
  known_ = true;
}

void Standings::sync(const model::ClusterState& state) {
  changed_.clear();
  if (!known_ || rooms_.size() >= kMost ||
      !model::Journal::between(seen_, state.history(), state.nodes(), changed_)) {
    look_at_all(state);
  } else {
    for (auto slot : changed_) look(state, slot);
  }
  seen_ = state.history();
}

}  // namespace berth::schedule
