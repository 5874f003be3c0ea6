#include "decide/schedule/placement.h"

#include <algorithm>
#include <tuple>

#include "decide/schedule/walk.h"

namespace berth::schedule {

using model::ClusterState;
using model::PodId;

void Reservation::bind(PodId id, const Target& target) {
  state_.bind(id, target.slot, target.gpus);
  steps_.push_back({.id = id, .evicted = false, .slot = target.slot, .gpus = target.gpus});
}

void Reservation::evict(PodId id) {
  const model::PodEntry& pod = state_.pod(id);
  Step step{
      .id = id, .evicted = true, .slot = static_cast<std::uint32_t>(pod.slot), .gpus = pod.gpus};
  state_.unbind(id);
  steps_.push_back(step);
}

void Reservation::give_back(std::size_t victim) {
  Step step = steps_[victim];
  state_.bind(step.id, step.slot, step.gpus);
  steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(victim));
}

void Reservation::rollback(std::size_t mark) {
  while (steps_.size() > mark) {
    const Step& step = steps_.back();
    if (step.evicted) {
      state_.bind(step.id, step.slot, step.gpus);
    } else {
      state_.unbind(step.id);
    }
    steps_.pop_back();
  }
}

std::vector<Reservation::Step> Reservation::placed() const {
  std::vector<Step> out;
  std::copy_if(steps_.begin(), steps_.end(), std::back_inserter(out),
               [](const Step& s) { return !s.evicted; });
  return out;
}

void sort_members(const ClusterState& state, std::vector<PodId>& pods) {
  auto key = [&](PodId id) {
    const model::PodEntry& pod = state.pod(id);
    const model::Demand& d = *pod.shape->demand;
    int milli = d.kind == model::GpuDemandSpec::Kind::kFraction ? d.milli : model::kMilliPerGpu;
    return std::tuple(std::string_view(pod.info->subgroup), -std::int64_t{d.count} * milli, -d.cpu,
                      std::string_view(pod.info->name));
  };
  std::sort(pods.begin(), pods.end(), [&](PodId a, PodId b) { return key(a) < key(b); });
}

Placed place(Placer& placer, ClusterState& state, const Workload& workload) {
  Reservation out(state);
  Walk walk(placer, state, workload, out, {.required_topology = !workload.ignore_topology});
  if (!walk.run()) return {};
  Placed placed{.pods = out.placed()};
  out.keep();
  return placed;
}

}  // namespace berth::schedule
