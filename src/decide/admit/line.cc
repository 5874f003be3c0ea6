#include "decide/admit/line.h"

#include <algorithm>

namespace berth::admit {

Line::Line(const Ledger& ledger, QueueId queue)
    : ledger_(&ledger),
      by_local_(ledger.book.queue(queue).spec.admission_fair_sharing &&
                ledger.book.config().half_life_s.has_value()) {}

LocalId Line::bin_of(WorkloadId id) const {
  return by_local_ ? ledger_->workloads[id].local : kNoId;
}
Line::LaneKey Line::key_of(WorkloadId id) const {
  return {ledger_->workloads[id].form.get(), bin_of(id)};
}
Line::Bin& Line::bin(LocalId local) {
  return bins_.try_emplace(local, Sooner{Earlier{&ledger_->workloads}}).first->second;
}

void Line::drop_head(Lane& lane) {
  if (!lane.parked && !lane.waiting.empty()) {
    bin(bin_of(*lane.waiting.begin())).heads.erase(*lane.waiting.begin());
  }
}
void Line::show_head(Lane& lane) {
  if (!lane.parked && !lane.waiting.empty()) {
    bin(bin_of(*lane.waiting.begin())).heads.insert(*lane.waiting.begin());
  }
}

void Line::push(WorkloadId id) {
  const auto [it, fresh] = lanes_.try_emplace(key_of(id), Earlier{&ledger_->workloads});
  Lane& lane = it->second;
  lane.form = ledger_->workloads[id].form;
  if (fresh && parked_forms_.contains(lane.form.get())) park_lane(it->first, lane);
  drop_head(lane);
  lane.waiting.insert(id);
  show_head(lane);
  ++size_;
}

void Line::remove(WorkloadId id) {
  --size_;
  if (alone_.erase(id) > 0) return;
  const auto it = lanes_.find(key_of(id));
  drop_head(it->second);
  it->second.waiting.erase(id);
  show_head(it->second);
  // An empty lane stays while it is parked: who comes next is parked with it.
  if (it->second.waiting.empty() && !it->second.parked) lanes_.erase(it);
}

bool Line::better(WorkloadId a, WorkloadId b) const {
  if ((a == sticky_) != (b == sticky_)) return a == sticky_;
  return Sooner{Earlier{&ledger_->workloads}}(a, b);
}

void Line::stick_again(WorkloadId id) {
  if (sticky_ == kNoId || Sooner{Earlier{&ledger_->workloads}}(id, sticky_)) sticky_ = id;
}

std::optional<WorkloadId> Line::head() const {
  std::optional<WorkloadId> best;
  const bool sticky_due = sticky_ != kNoId && !is_parked(sticky_);
  for (const auto& [local, bin] : bins_) {
    const bool has_sticky = sticky_due && bin_of(sticky_) == local;
    if (bin.heads.empty() && !has_sticky) continue;
    const WorkloadId first = has_sticky ? sticky_ : *bin.heads.begin();
    if (!best) {
      best = first;
      continue;
    }
    const double mine = ledger_->local_usage[local], other = ledger_->local_usage[bin_of(*best)];
    if (mine != other ? mine < other : better(first, *best)) best = first;
  }
  return best;
}

void Line::park(WorkloadId id, bool by_ground) {
  by_ground_ = by_ground_ || by_ground;
  remove(id);
  ++size_;
  alone_.insert(id);
}

void Line::park_lane(const LaneKey& key, Lane& lane) {
  if (lane.parked) return;
  drop_head(lane);
  lane.parked = true;
  parked_lanes_.push_back(key);
}

void Line::park_lane(WorkloadId id, bool by_ground) {
  by_ground_ = by_ground_ || by_ground;
  const Form* form = ledger_->workloads[id].form.get();
  parked_forms_.insert(form);
  for (auto it = lanes_.lower_bound({form, 0}); it != lanes_.end() && it->first.first == form;
       ++it) {
    park_lane(it->first, it->second);
  }
}

bool Line::flush() {
  const bool any = !alone_.empty() || !parked_lanes_.empty();
  for (const LaneKey& key : parked_lanes_) {
    const auto it = lanes_.find(key);
    it->second.parked = false;
    if (it->second.waiting.empty()) {
      lanes_.erase(it);
    } else {
      show_head(it->second);
    }
  }
  parked_lanes_.clear();
  parked_forms_.clear();
  by_ground_ = false;
  for (const WorkloadId id : std::exchange(alone_, {})) {
    --size_;
    push(id);
  }
  return any;
}

bool Line::is_parked(WorkloadId id) const {
  if (alone_.contains(id)) return true;
  const auto it = lanes_.find(key_of(id));
  return it == lanes_.end() || it->second.parked;
}

std::vector<WorkloadId> Line::in_order() const {
  std::vector<WorkloadId> out(alone_.begin(), alone_.end());
  for (const auto& [key, lane] : lanes_) {
    out.insert(out.end(), lane.waiting.begin(), lane.waiting.end());
  }
  std::sort(out.begin(), out.end(), [&](WorkloadId a, WorkloadId b) {
    if (by_local_) {
      const double x = ledger_->local_usage[bin_of(a)], y = ledger_->local_usage[bin_of(b)];
      if (x != y) return x < y;
    }
    return better(a, b);
  });
  return out;
}

}  // namespace berth::admit
