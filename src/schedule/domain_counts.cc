#include "schedule/domain_counts.h"

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
  for (std::size_t p = 0; p < pages.pages(); ++p) {
    if (pages.stamp(p) == stamps_[p]) continue;
    stamps_[p] = pages.stamp(p);
    const std::uint16_t* counts = pages.page_data(p);
    std::size_t end = std::min(kPage, domain_.size() - p * kPage);
    for (std::size_t i = 0; i < end; ++i) {
      std::size_t slot = p * kPage + i;
      if (counts[i] == seen_[slot]) continue;
      std::int32_t by = counts[i] - seen_[slot];
      seen_[slot] = counts[i];
      if (domain_[slot] < 0) continue;
      sums_[static_cast<std::size_t>(domain_[slot])] += by;
      total_ += by;
    }
  }
}

void DomainCountsMemo::trim(const model::ClusterState& state) {
  if (state.inventory().version() == inventory_version_ && entries_.size() < kMaxEntries) return;
  entries_.clear();
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

const DomainCounts* DomainCountsMemo::find(const model::ClusterState& state,
                                           const model::Counter& counter, int key,
                                           std::uint64_t eligible_id) {
  auto it = entries_.find(Key{counter.serial, eligible_id, key});
  if (it == entries_.end()) return nullptr;
  it->second->sync(state);
  return it->second.get();
}

}  // namespace berth::schedule
