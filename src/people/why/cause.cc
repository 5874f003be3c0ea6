#include "people/why/cause.h"

#include <algorithm>
#include <bit>
#include <map>

#include "decide/schedule/rule_memo.h"
#include "model/fit.h"

namespace berth::people {

using model::Constraint;
using schedule::bit;
using schedule::Blockers;

namespace {

constexpr Blockers between(Constraint first, Constraint last) {
  Blockers out = 0;
  for (int c = static_cast<int>(first); c <= static_cast<int>(last); ++c) out |= Blockers{1} << c;
  return out;
}
constexpr Blockers kRoom = between(Constraint::kCpu, Constraint::kNumaPolicy);
constexpr Blockers kRules = between(Constraint::kTaints, Constraint::kGpuMemory);

// A node as it would be with no pod on it and every device healthy.
bool too_small(const model::NodeInfo& info, const model::Demand& demand) {
  model::NodeState empty = model::empty_state(info);
  if (info.usable == info.devices && info.mig_usable == info.mig) {
    return schedule::capacity_blockers(info, empty, demand) != 0;
  }
  const int slots = info.extended_column(demand.mig);
  const int lost = info.extended_column(demand.mig_unusable);
  if (demand.kind == model::GpuDemandSpec::Kind::kMig && slots >= 0 && lost >= 0) {
    auto& broken = empty.extended[static_cast<std::size_t>(lost)];
    empty.extended[static_cast<std::size_t>(slots)] += broken;
    broken = 0;
  }
  model::NodeInfo repaired = info;
  repaired.usable = info.devices;
  repaired.mig_usable = info.mig;
  return schedule::capacity_blockers(repaired, empty, demand) != 0;
}

int free_on(const model::NodeInfo& info, const model::NodeState& state,
            const model::Demand& demand) {
  const bool whole = demand.kind == model::GpuDemandSpec::Kind::kWhole && info.shares_per_gpu == 1;
  if (!whole) return std::max(0, model::free_milli(state, info.usable));
  return std::popcount(static_cast<unsigned>(state.whole & info.usable)) * model::kMilliPerGpu;
}

// Nodes alike in what blocks them, and the GPUs that are free there.
struct Alike {
  int nodes = 0;
  std::int64_t free_milli = 0;
};
using Patterns = std::map<Blockers, Alike>;

// Of constraints that block equally many nodes: rules in the order people read them; of what may
// pass with time room first, then what other pods and operators say, then what is broken.
constexpr std::array kOrder = {
    Constraint::kTaints,
    Constraint::kNodeSelector,
    Constraint::kNodeAffinity,
    Constraint::kVolumes,
    Constraint::kGpuModel,
    Constraint::kGpuMemory,
    Constraint::kGpus,
    Constraint::kCpu,
    Constraint::kMemory,
    Constraint::kEphemeralStorage,
    Constraint::kPods,
    Constraint::kExtended,
    Constraint::kNumaPolicy,
    Constraint::kPodAffinity,
    Constraint::kPodAntiAffinity,
    Constraint::kTopologySpread,
    Constraint::kHostPorts,
    Constraint::kUnschedulable,
    Constraint::kNodeName,
    Constraint::kGpuHealth,
    Constraint::kNodeReady,
};
static_assert(kOrder.size() == static_cast<std::size_t>(model::kConstraints));

Constraint binding_of(const Patterns& patterns, int& only_count) {
  std::array<int, model::kConstraints> only{}, removed{};
  for (const auto& [mask, alike] : patterns) {
    for (std::size_t c = 0; c < removed.size(); ++c) {
      if ((mask >> c & 1) != 0) removed[c] += alike.nodes;
    }
    if (std::has_single_bit(mask)) {
      only[static_cast<std::size_t>(std::countr_zero(mask))] += alike.nodes;
    }
  }
  const auto largest = [](const auto& counts) {
    Constraint best = kOrder.front();
    for (const Constraint c : kOrder) {
      if (counts[static_cast<std::size_t>(c)] > counts[static_cast<std::size_t>(best)]) best = c;
    }
    return best;
  };
  const Constraint by_only = largest(only);
  only_count = only[static_cast<std::size_t>(by_only)];
  if (only_count > 0) return by_only;
  const Constraint by_removed = largest(removed);
  return removed[static_cast<std::size_t>(by_removed)] > 0 ? by_removed : Constraint::kCount;
}

// The fewest constraints beside the binding one that keep some node away: where most GPUs are free,
// then of most nodes.
std::vector<Constraint> others_of(const Patterns& patterns, Constraint binding) {
  Blockers best = 0;
  Alike most;
  for (const auto& [mask, alike] : patterns) {
    if ((mask & bit(binding)) == 0) continue;
    const int bits = std::popcount(mask), least = std::popcount(best);
    const bool more =
        std::pair(alike.free_milli, alike.nodes) > std::pair(most.free_milli, most.nodes);
    if (best == 0 || bits < least || (bits == least && more)) {
      best = mask;
      most = alike;
    }
  }
  std::vector<Constraint> out;
  for (int c = 0; c < model::kConstraints; ++c) {
    const auto constraint = static_cast<Constraint>(c);
    if ((best & bit(constraint)) != 0 && constraint != binding) out.push_back(constraint);
  }
  return out;
}

}  // namespace

bool NodePicture::counts(const NodeView& view) const {
  return !view.small && (never || view.lasting == 0);
}

NodePicture picture_of(schedule::Placer& placer, const model::ClusterState& state,
                       model::ShapeRef shape) {
  NodePicture out;
  const std::vector<Blockers> blockers = placer.blockers(state, shape);
  const model::Demand& demand = *shape->demand;
  out.never = true;
  for (std::size_t slot = 0; slot < blockers.size(); ++slot) {
    const model::NodeInfo& info = state.info(slot);
    NodeView view{.slot = static_cast<std::uint32_t>(slot), .blockers = blockers[slot]};
    view.lasting = schedule::rule_blockers(state.inventory(), info, *shape->rules, true) & kRules;
    view.small = too_small(info, demand);
    view.free_milli = free_on(info, state.node(slot), demand);
    view.gpus = static_cast<int>(info.gpus.size());
    if ((view.blockers & ~kRoom) == 0) {
      ++out.eligible;
      out.free_milli += view.free_milli;
      out.largest_milli = std::max(out.largest_milli, view.free_milli);
      if (!view.small) {
        out.room_milli += view.free_milli;
        out.room_largest = std::max(out.room_largest, view.free_milli);
      }
    }
    out.with_room += view.blockers == 0 ? 1 : 0;
    out.never &= view.small || view.lasting != 0;
    out.nodes.push_back(view);
  }
  Patterns patterns, now;
  int too_small_alone = 0;
  for (const NodeView& view : out.nodes) {
    const bool has_gpus = !demand.asks_gpu() || view.gpus > 0;
    too_small_alone += view.small && view.lasting == 0 && has_gpus ? 1 : 0;
    if (!out.counts(view)) continue;
    ++out.blamed;
    out.once_milli += view.free_milli;
    out.once_largest = std::max<std::int64_t>(out.once_largest, view.free_milli);
    for (Alike* alike :
         {&patterns[out.never ? view.lasting : view.blockers], &now[view.blockers]}) {
      ++alike->nodes;
      alike->free_milli += view.free_milli;
    }
  }
  out.binding = binding_of(patterns, out.blamed_only);
  // A wish that some node meets is not to blame: what keeps the pod off that node is.
  const bool wish =
      out.binding == Constraint::kNodeSelector || out.binding == Constraint::kNodeAffinity;
  const auto tainted = patterns.find(bit(Constraint::kTaints));
  if (out.never && wish && tainted != patterns.end()) {
    out.binding = Constraint::kTaints;
    out.blamed_only = tainted->second.nodes;
  }
  // The right kind of node, and too small: size is the cause, not the rules of others.
  if (out.never && too_small_alone > out.blamed_only) out.binding = Constraint::kCount;
  if (out.binding != Constraint::kCount) out.also = others_of(now, out.binding);
  return out;
}

model::Reason reason_of(const NodePicture& picture, Constraint binding,
                        const model::Demand& demand) {
  if (binding != Constraint::kGpus) return model::reason_of(binding);
  std::int64_t asked = std::int64_t{demand.count} * model::kMilliPerGpu;
  if (demand.kind == model::GpuDemandSpec::Kind::kFraction) {
    asked = std::int64_t{demand.count} * demand.milli;
  }
  if (asked > 0 && picture.room_milli >= asked) return model::Reason::kFragmented;
  // Nodes that something else keeps it off for now count: once that is mended, this is what holds.
  const bool whole = demand.kind == model::GpuDemandSpec::Kind::kWhole;
  const bool scattered = picture.once_milli >= asked && picture.once_largest < asked;
  return whole && scattered ? model::Reason::kFragmented : model::Reason::kInsufficientGpus;
}

}  // namespace berth::people
