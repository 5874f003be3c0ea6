#include "decide/schedule/domain_counts.h"

#include <algorithm>
#include <array>

namespace berth::schedule {

DomainCounts::DomainCounts(const model::ClusterState& state, const model::Counter& counter, int key,
                           const model::NodeSet* eligible)
    : counter_(counter), key_(key) {
  const model::Domains& domains = state.inventory().domains(key_);
  domain_ = domains.of;
  sums_.assign(domains.values.size(), 0);
  nodes_.assign(domains.values.size(), 0);
  for (std::size_t i = 0; i < domain_.size(); ++i) {
    if (eligible != nullptr && !eligible->test(i)) domain_[i] = -1;
    if (domain_[i] >= 0) ++nodes_[static_cast<std::size_t>(domain_[i])];
  }
  seen_.assign(domain_.size(), 0);
  stamps_.assign((domain_.size() + 63) / 64, ~std::uint64_t{0});
}

void DomainCounts::sync(const model::ClusterState& state) {
  const auto& pages = state.counts(counter_);
  constexpr std::size_t kPage = model::ClusterState::CountPages::page_size();
  static constexpr std::array<std::uint32_t, kPage> kNothing{};
  const bool empty = pages.size() == 0;
  for (std::size_t p = 0; p < stamps_.size(); ++p) {
    const std::uint64_t stamp = empty ? 0 : pages.stamp(p);  // a page's own is never 0
    if (stamp == stamps_[p]) continue;
    stamps_[p] = stamp;
    const std::uint32_t* counts = empty ? kNothing.data() : pages.page_data(p);
    std::size_t end = std::min(kPage, domain_.size() - p * kPage);
    for (std::size_t i = 0; i < end; ++i) {
      std::size_t slot = p * kPage + i;
      if (counts[i] == seen_[slot]) continue;
      const auto by = static_cast<std::int32_t>(counts[i]) - static_cast<std::int32_t>(seen_[slot]);
      seen_[slot] = counts[i];
      if (domain_[slot] < 0) continue;
      sums_[static_cast<std::size_t>(domain_[slot])] += by;
      total_ += by;
    }
  }
}

void DomainCountsMemo::trim(const model::ClusterState& state) {
  const bool same = state.inventory().version() == inventory_version_;
  const std::size_t most = std::clamp(kMaxSlots / (state.nodes() + 1), kMinEntries, kMaxEntries);
  if (same && entries_.size() < most) return;
  entries_.clear();
  ids_.clear();
  inventory_version_ = state.inventory().version();
}

const DomainCounts& DomainCountsMemo::get(const model::ClusterState& state,
                                          const model::Counter& counter, int key,
                                          const model::NodeSet* eligible,
                                          std::uint64_t eligible_id) {
  auto& entry = entries_[Key{counter.serial, eligible_id, key}];
  if (!entry) entry = std::make_unique<DomainCounts>(state, counter, key, eligible);
  entry->sync(state);
  return *entry;
}

std::uint64_t DomainCountsMemo::id_of(const std::vector<std::uint64_t>& made_of) {
  const auto [it, fresh] = ids_.try_emplace(made_of, last_id_ + 1);
  if (fresh) ++last_id_;
  return it->second;
}

const DomainCounts* DomainCountsMemo::find(const model::ClusterState& state,
                                           const model::Counter& counter, int key,
                                           std::uint64_t eligible_id) {
  auto it = entries_.find(Key{counter.serial, eligible_id, key});
  if (it == entries_.end()) return nullptr;
  it->second->sync(state);
  return it->second.get();
}

}  // namespace berth::schedule
