#include "schedule/scorer.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::schedule {
namespace {

// Nodes whose CPU differs by what the system reserves are of one class.
constexpr std::int64_t kCpuBucketMilli = 8000;
constexpr std::size_t kMostRules = 4096;

}  // namespace

std::uint16_t Scorer::class_id(const model::NodeInfo& info) {
  auto key = fmt::format("{}|{}|{}", info.gpu_model, info.gpus.size(), info.cpu / kCpuBucketMilli);
  auto fresh = static_cast<std::uint16_t>(std::min(class_ids_.size(), kMostClasses - 1));
  return class_ids_.emplace(std::move(key), fresh).first->second;
}

void Scorer::follow(const model::Inventory& inventory) {
  if (inventory.version() == inventory_) return;
  inventory_ = inventory.version();
  class_of_.resize(inventory.size());
  valued_.assign(inventory.size(), {});
  allowed_.clear();
  supply_.assign(supply_.size(), {});
  for (std::size_t i = 0; i < inventory.size(); ++i) {
    const model::NodeInfo& info = inventory.node(i);
    std::uint16_t c = class_of_[i] = class_id(info);
    if (c >= supply_.size()) supply_.resize(c + 1u);
    supply_[c].gpus = std::max(supply_[c].gpus, static_cast<std::int16_t>(info.gpus.size()));
    supply_[c].cpu_milli =
        std::max(supply_[c].cpu_milli,
                 static_cast<std::int32_t>(std::min<std::int64_t>(info.cpu, INT32_MAX)));
    ++supply_[c].nodes;
  }
  mix_.set_supply(supply_);
  renew();
}

void Scorer::renew() {
  scale_ = WorthScale(mix_.snapshot());
  memo_.clear();
  valued_.assign(valued_.size(), {});
  ++epoch_;
}

void Scorer::observe(const model::Inventory& inventory, const model::Shape& shape,
                     const RuleResult& rules) {
  using Kind = model::GpuDemandSpec::Kind;
  if (packing_ != Policy::Packing::kFragmentation) return;
  follow(inventory);
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
  mix_.observe(seen);
  if (mix_.refresh()) renew();
}

void Scorer::settle() {
  mix_.settle();
  renew();
}

std::int32_t Scorer::score(std::size_t slot, const model::NodeInfo& info,
                           const model::NodeState& state, const model::Demand& core) {
  std::int32_t asked = core.count * score_milli(info, core);
  if (packing_ != Policy::Packing::kFragmentation) {
    int after = model::free_milli(state, info.devices) - asked;
    return packing_ == Policy::Packing::kLeastAllocated ? after : -after;
  }
  Valued& node = valued_[slot];
  if (node.version != state.version) {
    node.version = state.version;
    node.room = room_of(info, state);
    node.worth = memo_.worth(scale_, node.room);
  }
  std::int32_t after = memo_.worth(scale_, room_after(node.room, info, core));
  return scale_.score(node.worth, after, class_of_[slot], asked);
}

}  // namespace berth::schedule
