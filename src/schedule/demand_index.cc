#include "schedule/demand_index.h"

#include <algorithm>
#include <bit>

namespace berth::schedule {

void DemandIndex::reset(const model::ClusterState& state) {
  std::size_t n = state.nodes();
  stamps_.assign(state.node_pages().pages(), ~std::uint64_t{0});
  versions_.assign(n, ~std::uint64_t{0});
  scores_.assign((n + 63) / 64 * 64, kInfeasible);
  best_.assign((n + 63) / 64, kInfeasible);
  holders_.assign((n + 63) / 64, 0);
  feasible_ = model::NodeSet(n);
}

void DemandIndex::regroup(std::size_t group) {
  const std::int32_t* scores = scores_.data() + group * 64;
  std::int32_t best = kInfeasible;
  for (std::size_t i = 0; i < 64; ++i) best = std::max(best, scores[i]);
  std::uint64_t holders = 0;
  for (std::size_t i = 0; i < 64; ++i) holders |= std::uint64_t{scores[i] == best} << i;
  best_[group] = best;
  holders_[group] = best == kInfeasible ? 0 : holders;
}

void DemandIndex::update(std::size_t slot, std::int32_t score) {
  std::int32_t old = scores_[slot];
  if (score == old) return;
  scores_[slot] = score;
  if (score == kInfeasible) {
    feasible_.reset(slot);
  } else {
    feasible_.set(slot);
  }
  std::size_t group = slot / 64;
  auto bit = std::uint64_t{1} << (slot % 64);
  if (score > best_[group]) {
    best_[group] = score;
    holders_[group] = bit;
  } else if (score == best_[group]) {
    holders_[group] |= bit;
  } else if (old == best_[group]) {
    holders_[group] &= ~bit;
    if (holders_[group] == 0) regroup(group);
  }
}

void DemandIndex::sync(const model::ClusterState& state, Scorer& scorer) {
  if (inventory_ != state.inventory().version() || epoch_ != scorer.epoch()) {
    reset(state);
    inventory_ = state.inventory().version();
    epoch_ = scorer.epoch();
  }
  const auto& pages = state.node_pages();
  constexpr std::size_t kPage = model::Pages<model::NodeState>::page_size();
  const model::Demand& demand = *demand_;
  for (std::size_t p = 0; p < pages.pages(); ++p) {
    if (pages.stamp(p) == stamps_[p]) continue;
    stamps_[p] = pages.stamp(p);
    const model::NodeState* nodes = pages.page_data(p);
    const std::uint64_t* versions = pages.item_stamps(p);
    std::size_t end = std::min(kPage, pages.size() - p * kPage);
    for (std::size_t i = 0; i < end; ++i) {
      std::size_t slot = p * kPage + i;
      if (versions[i] == versions_[slot]) continue;
      versions_[slot] = versions[i];
      const model::NodeInfo& info = state.info(slot);
      update(slot, model::fits(info, nodes[i], demand) ? scorer.score(slot, info, nodes[i], demand)
                                                       : kInfeasible);
    }
  }
}

std::optional<std::uint32_t> DemandIndex::best(const model::NodeSet& allowed) const {
  std::int32_t best = kInfeasible;
  std::size_t slot = 0;
  for (std::size_t g = 0; g < best_.size(); ++g) {
    if (best_[g] <= best) continue;
    std::uint64_t mask = allowed.word(g);
    if ((mask & holders_[g]) != 0) {
      best = best_[g];
      slot = g * 64 + static_cast<std::size_t>(std::countr_zero(mask & holders_[g]));
      continue;
    }
    for (mask &= feasible_.word(g); mask != 0; mask &= mask - 1) {
      std::size_t at = g * 64 + static_cast<std::size_t>(std::countr_zero(mask));
      if (scores_[at] > best) {
        best = scores_[at];
        slot = at;
      }
    }
  }
  if (best == kInfeasible) return std::nullopt;
  return static_cast<std::uint32_t>(slot);
}

}  // namespace berth::schedule
