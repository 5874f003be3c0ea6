#include "decide/schedule/demand_index.h"

#include <algorithm>
#include <bit>

namespace berth::schedule {

void DemandIndex::regroup(std::size_t group) {
  const Score* scores = scores_.data() + group * 64;
  Score best = kInfeasible;
  std::uint64_t holders = 0;
  for (std::uint64_t bits = feasible_.word(group); bits != 0; bits &= bits - 1) {
    Score score = scores[std::countr_zero(bits)];
    std::uint64_t bit = bits & -bits;
    holders = score > best ? bit : score == best ? holders | bit : holders;
    best = std::max(best, score);
  }
  best_[group] = best;
  holders_[group] = holders;
}

void DemandIndex::update(std::size_t slot, Score score) {
  Score old = scores_[slot];
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

void DemandIndex::rescore(const model::ClusterState& state, Scorer& scorer, std::size_t slot) {
  update(slot, scorer.score(state, slot, *demand_, column_));
}

void DemandIndex::reset(const model::ClusterState& state, Scorer& scorer) {
  std::size_t n = state.nodes(), groups = (n + 63) / 64;
  scores_.assign(groups * 64, kInfeasible);
  best_.assign(groups, kInfeasible);
  holders_.assign(groups, 0);
  feasible_ = model::NodeSet(n);
  inventory_ = state.inventory().version();
  epoch_ = scorer.epoch();
  for (std::size_t slot = 0; slot < n; ++slot) rescore(state, scorer, slot);
}

void DemandIndex::sync(const model::ClusterState& state, Scorer& scorer) {
  changed_.clear();
  if (inventory_ != state.inventory().version() || epoch_ != scorer.epoch() ||
      !model::Journal::between(seen_, state.history(), state.nodes(), changed_)) {
    reset(state, scorer);
  } else {
    for (auto slot : changed_) rescore(state, scorer, slot);
  }
  seen_ = state.history();
}

std::optional<std::uint32_t> DemandIndex::best(const model::NodeSet& allowed) const {
  Score best = kInfeasible;
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
