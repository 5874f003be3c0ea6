#include "decide/schedule/scorer.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::schedule {
namespace {

// Nodes whose CPU differs by what the system reserves are of one class.
constexpr std::int64_t kCpuBucketMilli = 8000;
constexpr std::size_t kMostRules = 4096;

Score score_of(std::int32_t value) {
  return static_cast<Score>(std::clamp<std::int32_t>(value, kInfeasible + 2, INT16_MAX));
}

bool same_class(const model::NodeInfo& a, const model::NodeInfo& b) {
  return a.gpus.size() == b.gpus.size() && a.cpu / kCpuBucketMilli == b.cpu / kCpuBucketMilli &&
         a.gpu_model == b.gpu_model;
}

}  // namespace

std::uint16_t Scorer::class_id(const model::NodeInfo& info) {
  auto key = fmt::format("{}|{}|{}", info.gpu_model, info.gpus.size(), info.cpu / kCpuBucketMilli);
  auto fresh = static_cast<std::uint16_t>(std::min(class_ids_.size(), kMostClasses - 1));
  return class_ids_.emplace(std::move(key), fresh).first->second;
}

void Scorer::follow(const model::ClusterState& state) {
  take_stock(state.inventory());
  if (packing_ == PlacementPolicy::Packing::kFragmentation) standings_.sync(state);
}

void Scorer::take_stock(const model::Inventory& inventory) {
  if (inventory.version() == inventory_) return;
  inventory_ = inventory.version();
  class_of_.resize(inventory.size());
  allowed_.clear();
  supply_.assign(supply_.size(), {});
  const model::NodeInfo* last = nullptr;
  for (std::size_t i = 0; i < inventory.size(); ++i) {
    const model::NodeInfo& info = inventory.node(i);
    const bool same = last != nullptr && same_class(info, *last);  // mostly: no look-up by text
    last = &info;
    std::uint16_t c = class_of_[i] = same ? class_of_[i - 1] : class_id(info);
    if (c >= supply_.size()) supply_.resize(c + 1u);
    supply_[c].gpus = std::max(supply_[c].gpus, static_cast<std::int16_t>(info.gpus.size()));
    supply_[c].cpu_milli =
        std::max(supply_[c].cpu_milli,
                 static_cast<std::int32_t>(std::min<std::int64_t>(info.cpu, INT32_MAX)));
    ++supply_[c].nodes;
  }
  standings_.reset(inventory, class_of_);
  mix_.set_supply(supply_);
  renew();
}

void Scorer::renew() {
  scale_ = WorthScale(mix_.snapshot());
  memo_.clear();
  ++epoch_;
}

MixShape Scorer::mix_shape(const model::Shape& shape, const RuleResult& rules) {
  using Kind = model::GpuDemandSpec::Kind;
  if (allowed_.size() >= kMostRules) allowed_.clear();
  auto [it, fresh] = allowed_.emplace(shape.rules->serial, 0);
  if (fresh) {
    rules.allowed.for_each(
        [&](std::size_t slot) { it->second |= std::uint64_t{1} << class_of_[slot]; });
  }
  const model::Demand& d = *shape.demand->core;
  MixShape seen{
      .cpu_milli = static_cast<std::int32_t>(std::min<std::int64_t>(d.score_cpu, INT32_MAX)),
      .classes = it->second};
  switch (d.kind) {
    case Kind::kNone:
    case Kind::kMig:
      break;
    case Kind::kWhole:
      seen.gpu_milli = model::kMilliPerGpu;
      seen.num_gpu = d.count;
      break;
    case Kind::kFraction:
      seen.gpu_milli = d.score_milli;
      seen.num_gpu = 1;
      break;
    case Kind::kMemory:
    case Kind::kShared:  // how much of a device depends on the node; half is a fair guess
      seen.gpu_milli = model::kMilliPerGpu / 2;
      seen.num_gpu = 1;
      break;
  }
  return seen;
}

void Scorer::observe(const model::Inventory& inventory, const model::Shape& shape,
                     const RuleResult& rules) {
  if (packing_ != PlacementPolicy::Packing::kFragmentation) return;
  take_stock(inventory);
  mix_.observe(mix_shape(shape, rules));
  if (mix_.refresh()) renew();
}

void Scorer::relearn(const model::Inventory& inventory, const std::vector<Arrivals>& arrivals,
                     const std::function<const RuleResult&(const model::Shape&)>& rules) {
  if (packing_ != PlacementPolicy::Packing::kFragmentation) return;
  take_stock(inventory);
  mix_.forget();
  for (const Arrivals& each : arrivals) {
    mix_.observe(mix_shape(*each.shape, rules(*each.shape)), each.times);
  }
  const MixSnapshot before = mix_.snapshot();
  mix_.settle();
  if (mix_.snapshot() != before) renew();
}

void Scorer::settle() {
  mix_.settle();
  renew();
}

Score Scorer::evaluate(const Room& room, const model::NodeInfo& info, std::uint16_t node_class,
                       const model::Demand& core) {
  if (!by_slots(core) && !room_serves(room, info, core)) return kInfeasible;
  std::int32_t before = memo_.worth(scale_, room);
  std::int32_t after = memo_.worth(scale_, room_after(room, info, core));
  return score_of(scale_.score(before, after, node_class, core.count * score_milli(info, core)));
}

Score Scorer::score_anew(const model::ClusterState& state, std::size_t slot,
                         const model::Demand& core, Column& column) {
  const model::NodeInfo& info = state.info(slot);
  if (packing_ != PlacementPolicy::Packing::kFragmentation) {
    if (!model::fits(info, state.node(slot), core)) return kInfeasible;
    int after =
        model::free_milli(state.node(slot), info.devices) - core.count * score_milli(info, core);
    return score_of(packing_ == PlacementPolicy::Packing::kLeastAllocated ? after : -after);
  }
  const Standings::Node& node = standings_.node(slot);
  if ((node.beyond != 0 || by_slots(core)) && !model::fits(info, state.node(slot), core)) {
    return kInfeasible;
  }
  if (column.round != standings_.round() || column.epoch != epoch_) {
    column.round = standings_.round();
    column.epoch = epoch_;
    column.scores.clear();
  }
  if (node.standing >= column.scores.size()) column.scores.resize(standings_.size(), kUnknown);
  Score& score = column.scores[node.standing];
  if (score == kUnknown) {
    score = evaluate(standings_.room(node.standing), info, class_of_[slot], core);
  }
  return score;
}

}  // namespace berth::schedule
