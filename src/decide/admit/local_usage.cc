#include "decide/admit/local_usage.h"

#include <cmath>
#include <limits>

namespace berth::admit {

LocalUsage::LocalUsage(Ledger& ledger, std::int64_t now_ns)
    : ledger_(ledger), on_(ledger.book.config().half_life_s.has_value()) {
  restart(now_ns);
}

void LocalUsage::restart(std::int64_t now_ns) {
  if (!on_) return;
  consumed_.clear();
  sampled_ns_.clear();
  charges_.clear();
  const Book& book = ledger_.book;
  for (LocalId l = 0; l < book.locals().size(); ++l) {
    const model::LocalQueueSpec& spec = book.local(l).spec;
    Past past(book.resources().size(), 0.0);
    for (const auto& [resource, amount] : spec.consumed) {
      const ResourceId r = book.find_resource(resource);
      if (r != kNoId) past[r] = static_cast<double>(amount);
    }
    consumed_.push_back(std::move(past));
    sampled_ns_.push_back(spec.consumed_at_ns > 0 ? spec.consumed_at_ns : now_ns);
  }
  for (LocalId l = 0; l < consumed_.size(); ++l) refresh(l);
}

double LocalUsage::decay(double elapsed_s) const {
  const double half_life = *ledger_.book.config().half_life_s;
  return half_life <= 0 ? 0 : 1 - std::pow(0.5, elapsed_s / half_life);
}

void LocalUsage::refresh(LocalId local) {
  const Book& book = ledger_.book;
  const double weight = book.local(local).spec.weight;
  double sum = 0;
  const auto add = [&](const Past& past) {
    for (ResourceId r = 0; r < past.size(); ++r) {
      const auto it = book.config().resource_weights.find(book.resource(r));
      sum += past[r] * (it == book.config().resource_weights.end() ? 1 : it->second);
    }
  };
  add(consumed_[local]);
  for (const auto& [id, past] : charges_) {
    if (ledger_.workloads[id].local == local) add(past);
  }
  ledger_.local_usage[local] = weight <= 0 ? std::numeric_limits<double>::infinity() : sum / weight;
}

void LocalUsage::sample(std::int64_t now_ns) {
  if (!on_) return;
  std::vector<double> part(consumed_.size(), -1);  // a; below 0: not due
  for (LocalId l = 0; l < consumed_.size(); ++l) {
    const double elapsed = static_cast<double>(now_ns - sampled_ns_[l]) / 1e9;
    if (elapsed < ledger_.book.config().sampling_s) continue;
    sampled_ns_[l] = now_ns;
    part[l] = decay(elapsed);
    const bool reset = *ledger_.book.config().half_life_s <= 0;
    for (double& amount : consumed_[l]) amount = reset ? 0 : (1 - part[l]) * amount;
  }
  // Amounts are added up as whole numbers, so that the order of holders does not show.
  std::vector<std::vector<Amount>> now(consumed_.size(),
                                       std::vector<Amount>(ledger_.book.resources().size()));
  for (const auto& holders : ledger_.holders) {
    for (const WorkloadId id : holders) {
      const Workload& w = ledger_.workloads[id];
      if (!w.started || w.local == kNoId || part[w.local] < 0) continue;
      for (const Use& use : w.uses) {
        now[w.local][ledger_.book.cell(use.cell).resource] += use.amount;
      }
    }
  }
  for (LocalId l = 0; l < consumed_.size(); ++l) {
    if (part[l] < 0) continue;
    for (ResourceId r = 0; r < now[l].size(); ++r) {
      consumed_[l][r] += part[l] * static_cast<double>(now[l][r].value());
    }
    refresh(l);
  }
}

void LocalUsage::charge(WorkloadId id) {
  const Workload& w = ledger_.workloads[id];
  if (!on_ || w.local == kNoId) return;
  const double part = decay(ledger_.book.config().sampling_s);
  const bool admitted = w.stage == Stage::kAdmitted;
  Past& past = admitted
                   ? consumed_[w.local]
                   : charges_.try_emplace(id, ledger_.book.resources().size(), 0.0).first->second;
  for (const Use& use : w.uses) {
    past[ledger_.book.cell(use.cell).resource] += part * static_cast<double>(use.amount.value());
  }
  refresh(w.local);
}

void LocalUsage::settle(WorkloadId id) {
  const auto it = charges_.find(id);
  if (it == charges_.end()) return;
  const LocalId local = ledger_.workloads[id].local;
  for (ResourceId r = 0; r < it->second.size(); ++r) consumed_[local][r] += it->second[r];
  charges_.erase(it);
  refresh(local);
}

void LocalUsage::forget(WorkloadId id) {
  if (charges_.erase(id) > 0) refresh(ledger_.workloads[id].local);
}

}  // namespace berth::admit
