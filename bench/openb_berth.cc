#include "openb_berth.h"

#include "openb_policy.h"

namespace berth::openb {
namespace {

std::vector<placement::ClassSupply> supply_of(const Inventory& inventory) {
  std::vector<placement::ClassSupply> supply;
  for (const NodeClass& known : inventory.classes) {
    supply.push_back({known.model, known.gpus, known.cpu_milli, known.nodes});
  }
  return supply;
}

placement::MixShape demand_of(const Shape& shape) {
  return {shape.cpu_milli, shape.gpu_milli, shape.num_gpu, shape.model_mask, 0};
}

std::span<const int16_t> rooms(const NodeState& node) {
  return std::span(node.gpu_free).first(static_cast<size_t>(node.gpus));
}

class BerthPolicy {
 public:
  static constexpr Choice kChoice = Choice::kBest;

  BerthPolicy(const Inventory& inventory, const PodList& list)
      : shapes_(list.shapes), mix_(supply_of(inventory)), scorer_(mix_.snapshot()) {}

  bool arrived(uint32_t shape) {
    mix_.observe(demand_of(shapes_[shape]));
    if (!mix_.refresh()) return false;
    scorer_ = placement::PlacementScorer(mix_.snapshot());
    memo_.clear();
    return true;
  }

  int32_t score(const NodeState& node, uint32_t, uint32_t at) {
    ++scores_;
    const Shape& shape = shapes_[at];
    NodeState after = node;
    place(after, shape, is_fractional(shape) ? pick_gpu(node, at) : -1);
    return scorer_.score(memo_.worth(scorer_, node.cpu_free, rooms(node)),
                         memo_.worth(scorer_, after.cpu_free, rooms(after)), node.class_id,
                         demand_of(shape));
  }

  int pick_gpu(const NodeState& node, uint32_t shape) const {
    return placement::PlacementScorer::tightest_gpu(rooms(node), shapes_[shape].gpu_milli);
  }

  uint64_t epoch() const { return mix_.epoch(); }
  uint64_t scores() const { return scores_; }

 private:
  const std::vector<Shape>& shapes_;
  placement::WorkloadMix mix_;
  placement::PlacementScorer scorer_;
  placement::WorthMemo memo_;
  uint64_t scores_ = 0;
};

}  // namespace

BerthFill run_berth(const Inventory& inventory, const PodList& list, const Arrivals& arrivals) {
  BerthPolicy policy(inventory, list);
  BerthFill result;
  result.fill = Filler<BerthPolicy>(inventory, list, arrivals, policy).run();
  result.epochs = policy.epoch();
  result.scores = policy.scores();
  return result;
}

}  // namespace berth::openb
