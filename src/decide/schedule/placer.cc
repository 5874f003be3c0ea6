#include "decide/schedule/placer.h"

#include <algorithm>

#include "decide/schedule/no_memo.h"
#include "model/device_choice.h"
#include "model/fit.h"

namespace berth::schedule {

using model::ClusterState;
using model::Constraint;
using model::Domains;
using model::NodeSet;
using model::Shape;
using model::ShapeRef;

namespace {

void add_domain(const Domains& domains, std::size_t domain, NodeSet& out) {
  if (!domains.sets.empty()) {
    out |= domains.sets[domain];
    return;
  }
  for (auto slot : domains.slots[domain]) out.set(slot);
}

void add_without_key(const Domains& domains, NodeSet& out) {
  for (std::size_t w = 0; w < out.words(); ++w) out.word(w) |= ~domains.with_key.word(w);
}

template <class Key>
void keep_highest(NodeSet& nodes, Key&& key) {
  std::int64_t best = INT64_MIN;
  NodeSet kept(nodes.size());
  nodes.for_each([&](std::size_t slot) {
    std::int64_t k = key(slot);
    if (k > best) {
      best = k;
      kept = NodeSet(nodes.size());
    }
    if (k == best) kept.set(slot);
  });
  nodes = std::move(kept);
}

}  // namespace

bool ports_taken(const ClusterState& state, const Shape& shape, std::size_t slot) {
  bool taken = false;
  state.for_each_pod_on(slot, [&](model::PodId id) {
    for (const auto& theirs : state.pod(id).shape->host_ports) {
      for (const auto& ours : shape.host_ports) {
        taken |= ours.port == theirs.port && ours.protocol == theirs.protocol &&
                 (ours.ip == theirs.ip || ours.ip == "0.0.0.0" || theirs.ip == "0.0.0.0");
      }
    }
  });
  return taken;
}

Blockers capacity_blockers(const model::NodeInfo& info, const model::NodeState& state,
                           const model::Demand& demand) {
  Blockers out = 0;
  auto lacks = [&](std::int64_t need, std::int64_t free, Constraint c) {
    if (need > 0 && need > free) out |= bit(c);
  };
  lacks(demand.cpu, state.cpu, Constraint::kCpu);
  lacks(demand.memory, state.memory, Constraint::kMemory);
  lacks(demand.ephemeral, state.ephemeral, Constraint::kEphemeralStorage);
  lacks(1, state.pods, Constraint::kPods);
  if (!model::fits_extended(info, state, demand)) out |= bit(Constraint::kExtended);
  if (!demand.asks_gpu()) return out;
  if (!model::fits_gpus(info, state, demand, model::Devices::kAll))
    return out | bit(Constraint::kGpus);
  if (!model::fits_gpus(info, state, demand, model::Devices::kUsable))
    return out | bit(Constraint::kGpuHealth);
  if (model::numa_applies(info, demand) &&
      !model::numa_admits(info, static_cast<std::uint16_t>(state.whole & info.usable), demand)) {
    out |= bit(Constraint::kNumaPolicy);
  }
  return out;
}

Placer::Placer(PlacementPolicy policy)
    : policy_(std::move(policy)), scorer_(policy_.packing), nos_(std::make_unique<NoMemo>()) {}
Placer::Placer(Placer&&) noexcept = default;
Placer::~Placer() = default;

void Placer::observe(const ClusterState& state, const Shape& shape) {
  scorer_.observe(state.inventory(), shape, rules(state, shape));
}

void Placer::learn_present(const ClusterState& state) {
  std::vector<std::size_t> at;  // in present, by index of the shape
  Present present;
  for (model::PodId id = 0; id < state.pod_ids(); ++id) {
    const Shape* shape = state.pod(id).shape;
    if (!state.pod(id).info) continue;
    if (shape->index >= at.size()) at.resize(shape->index + 1u, SIZE_MAX);
    std::size_t& place = at[shape->index];
    if (place == SIZE_MAX) {
      place = present.size();
      present.push_back({shape, 0});
    }
    ++present[place].times;
  }
  learn_present(state, present);
}

void Placer::learn_present(const ClusterState& state, const Present& present) {
  std::uint64_t all = 0;
  for (const Scorer::Arrivals& each : present) all += each.times;
  if (all <= WorkloadMix::kMemoryArrivals && present.size() <= WorkloadMix::kMostShapes) {
    scorer_.relearn(state.inventory(), present,
                    [&](const Shape& shape) -> const RuleResult& { return rules(state, shape); });
    scorer_.follow(state);
    return;
  }
  // What is forgotten on the way depends on the order.
  scorer_.forget();
  std::vector<std::pair<std::string_view, model::PodId>> pods;
  pods.reserve(all);
  for (model::PodId id = 0; id < state.pod_ids(); ++id) {
    if (state.pod(id).info) pods.emplace_back(state.pod(id).info->name, id);
  }
  std::sort(pods.begin(), pods.end());
  for (const auto& [name, id] : pods) observe(state, *state.pod(id).shape);
  scorer_.follow(state);
  scorer_.settle();
}

void Placer::rule_affinity(const ClusterState& state, const Shape& shape, PodRules& out) {
  for (const auto& term : shape.affinity) {
    const Domains& domains = state.inventory().domains(term.key);
    add_without_key(domains, out.affinity);
    if (state.total(*term.counter) == 0 && term.self) continue;
    const DomainCounts& found = counts(state, term);
    if (found.total() == 0 && term.self) continue;  // the first of its kind may start anywhere
    for (std::size_t d = 0; d < found.sums().size(); ++d) {
      if (found.sums()[d] == 0) add_domain(domains, d, out.affinity);
    }
  }
  auto bar = [&](const DomainCounts& found, int key) {
    for (std::size_t d = 0; d < found.sums().size(); ++d) {
      if (found.sums()[d] > 0) add_domain(state.inventory().domains(key), d, out.anti_affinity);
    }
  };
  for (const auto& term : shape.anti_affinity) {
    if (state.total(*term.counter) > 0) bar(counts(state, term), term.key);
  }
  state.for_each_bar(shape, [&](const model::Counter& counter) {
    bar(counts_.get(state, counter, counter.key, nullptr, 0), counter.key);
  });
}

NodeSet Placer::eligible(const ClusterState& state, const Shape& shape,
                         const model::SpreadTerm& term) {
  NodeSet out(state.nodes(), true);
  for (const auto& other : shape.hard_spread) out &= state.inventory().domains(other.key).with_key;
  const RuleResult& fixed = rules(state, shape);
  if (term.honor_affinity) out &= fixed.affinity;
  if (term.honor_taints) out &= fixed.tolerated;
  return out;
}

void Placer::rule_spread(const ClusterState& state, const Shape& shape, PodRules& out) {
  // Everything that eligible() looks at.
  std::vector<std::uint64_t> asked{shape.rules->serial, 0};
  for (const auto& term : shape.hard_spread) asked.push_back(static_cast<unsigned>(term.key));
  for (const auto& term : shape.hard_spread) {
    const Domains& domains = state.inventory().domains(term.key);
    asked[1] = (term.honor_affinity ? 1u : 0u) + (term.honor_taints ? 2u : 0u);
    const std::uint64_t id = counts_.id_of(asked);
    const DomainCounts* found = counts_.find(state, *term.counter, term.key, id);
    if (found == nullptr) {
      NodeSet set = eligible(state, shape, term);
      found = &counts_.get(state, *term.counter, term.key, &set, id);
    }
    int count = 0;
    std::int32_t least = INT32_MAX;
    for (std::size_t d = 0; d < found->sums().size(); ++d) {
      if (found->nodes()[d] == 0) continue;
      ++count;
      least = std::min(least, found->sums()[d]);
    }
    if (count == 0 || count < term.min_domains) least = 0;
    add_without_key(domains, out.spread);
    for (std::size_t d = 0; d < found->sums().size(); ++d) {
      if (found->sums()[d] + (term.self ? 1 : 0) - least > term.max_skew) {
        add_domain(domains, d, out.spread);
      }
    }
  }
}

Placer::PodRules Placer::pod_rules(const ClusterState& state, const Shape& shape) {
  counts_.trim(state);
  PodRules out;
  if (!shape.affinity.empty()) out.affinity = NodeSet(state.nodes());
  bool barred = !shape.anti_affinity.empty();
  if (!barred) state.for_each_bar(shape, [&](const model::Counter&) { barred = true; });
  if (barred) out.anti_affinity = NodeSet(state.nodes());
  if (!shape.hard_spread.empty()) out.spread = NodeSet(state.nodes());
  rule_affinity(state, shape, out);
  rule_spread(state, shape, out);
  return out;
}

bool Placer::has_levels(const ClusterState& state, const Shape& shape) {
  return !rules(state, shape).preference.empty() || !shape.preferred_affinity.empty() ||
         !shape.preferred_anti_affinity.empty() || !shape.soft_spread.empty() ||
         shape.replicas != nullptr || !policy_.locality.empty();
}

// A node without the label is a domain with more of them than any other.
void Placer::keep_apart(const ClusterState& state, const Shape& shape, NodeSet& nodes) {
  if (shape.apart_over >= 0) {
    const DomainCounts& found = counts_.get(state, *shape.replicas, shape.apart_over, nullptr, 0);
    const Domains& domains = state.inventory().domains(shape.apart_over);
    keep_highest(nodes, [&](std::size_t slot) {
      const auto d = domains.of[slot];
      return d < 0 ? INT64_MIN + 1 : -std::int64_t{found.sums()[static_cast<std::size_t>(d)]};
    });
  }
  keep_highest(nodes,
               [&](std::size_t slot) { return -std::int64_t{state.count(*shape.replicas, slot)}; });
}

void Placer::keep_best_levels(const ClusterState& state, const Shape& shape, NodeSet& nodes) {
  const auto& inventory = state.inventory();
  const RuleResult& fixed = rules(state, shape);
  if (!fixed.preference.empty() || !shape.preferred_affinity.empty() ||
      !shape.preferred_anti_affinity.empty()) {
    std::vector<std::tuple<const Domains*, const DomainCounts*, int>> terms;
    for (const auto& t : shape.preferred_affinity) {
      terms.emplace_back(&inventory.domains(t.key), &counts(state, t), t.weight);
    }
    for (const auto& t : shape.preferred_anti_affinity) {
      terms.emplace_back(&inventory.domains(t.key), &counts(state, t), -t.weight);
    }
    keep_highest(nodes, [&](std::size_t slot) {
      std::int64_t sum = fixed.preference.empty() ? 0 : fixed.preference[slot];
      for (const auto& [domains, found, weight] : terms) {
        auto d = domains->of[slot];
        if (d >= 0 && found->sums()[static_cast<std::size_t>(d)] > 0) sum += weight;
      }
      return sum;
    });
  }
  if (!shape.soft_spread.empty()) {
    keep_highest(nodes, [&](std::size_t slot) {
      std::int64_t sum = 0;
      for (const auto& t : shape.soft_spread) {
        const auto& found = counts_.get(state, *t.counter, t.key, nullptr, 0);
        auto d = inventory.domains(t.key).of[slot];
        sum -= d >= 0 ? found.sums()[static_cast<std::size_t>(d)]
               : found.sums().empty()
                   ? 1
                   : *std::max_element(found.sums().begin(), found.sums().end()) + 1;
      }
      return sum;
    });
  }
  if (shape.replicas) keep_apart(state, shape, nodes);
  if (!policy_.locality.empty()) {
    keep_highest(nodes, [&](std::size_t slot) {
      std::int64_t sum = 0;
      for (const auto& l : policy_.locality) {
        if (inventory.label(inventory.node(slot), l.key) ==
            std::optional<std::string_view>(l.value)) {
          sum += l.weight;
        }
      }
      return sum;
    });
  }
}

DemandIndex* Placer::index_for(const ClusterState& state,
                               const std::shared_ptr<const model::Demand>& demand) {
  auto it = index_by_serial_.find(demand->serial);
  if (it == index_by_serial_.end()) {
    if (indexes_.size() >=
        std::max<std::size_t>(64, kIndexedNodes / std::max<std::size_t>(state.nodes(), 1))) {
      index_by_serial_.erase(indexes_.back().serial);
      indexes_.pop_back();
    }
    indexes_.push_front({.serial = demand->serial});
    it = index_by_serial_.emplace(demand->serial, indexes_.begin()).first;
  } else {
    indexes_.splice(indexes_.begin(), indexes_, it->second);
  }
  Indexed& entry = *it->second;
  if (++entry.uses < 2) return nullptr;  // a demand seen once is not worth an index
  if (!entry.index) entry.index = std::make_unique<DemandIndex>(demand);
  entry.index->sync(state, scorer_);
  return entry.index.get();
}

std::optional<std::uint32_t> Placer::best_by_scan(const ClusterState& state, const Shape& shape,
                                                  const NodeSet& nodes) {
  Scorer::Column column;
  Score best = kInfeasible;
  std::optional<std::uint32_t> at;
  nodes.for_each([&](std::size_t slot) {
    Score score = scorer_.score(state, slot, *shape.demand->core, column);
    if (!at || score > best) {
      best = score;
      at = static_cast<std::uint32_t>(slot);
    }
  });
  return at;
}

// The index knows cpu and GPUs; memory and the rest are asked of the best, which seldom lacks them.
std::optional<std::uint32_t> Placer::best_by_index(const ClusterState& state,
                                                   const DemandIndex& index,
                                                   const model::Demand& demand,
                                                   const NodeSet& allowed) {
  auto slot = index.best(allowed);
  if (!slot || model::fits(state.info(*slot), state.node(*slot), demand)) return slot;
  NodeSet left = allowed;
  left &= index.feasible();
  left.for_each([&](std::size_t i) {
    if (!model::fits(state.info(i), state.node(i), demand)) left.reset(i);
  });
  return index.best(left);
}

std::optional<Target> Placer::find(const ClusterState& state, ShapeRef shape,
                                   const NodeSet* within) {
  scorer_.follow(state);
  const RuleResult& fixed = rules(state, *shape);
  DemandIndex* index = index_for(state, shape->demand->core);
  PodRules pods = pod_rules(state, *shape);
  bool levels = has_levels(state, *shape);
  std::optional<std::uint32_t> slot;
  const NodeSet* barred[] = {&pods.affinity, &pods.anti_affinity, &pods.spread};
  bool free_of_pods = std::all_of(std::begin(barred), std::end(barred),
                                  [](const NodeSet* set) { return set->size() == 0; });
  if (index != nullptr && within == nullptr && free_of_pods && !levels &&
      shape->host_ports.empty()) {
    slot = best_by_index(state, *index, *shape->demand, fixed.allowed);
  } else {
    NodeSet nodes = fixed.allowed;
    if (within != nullptr) nodes &= *within;
    for (const NodeSet* set : barred) {
      if (set->size() != 0) nodes.subtract(*set);
    }
    if (index != nullptr) nodes &= index->feasible();
    if (index == nullptr || levels) {
      nodes.for_each([&](std::size_t i) {
        if (!model::fits(state.info(i), state.node(i), *shape->demand)) nodes.reset(i);
      });
    }
    if (!shape->host_ports.empty()) {
      nodes.for_each([&](std::size_t i) {
        if (ports_taken(state, *shape, i)) nodes.reset(i);
      });
    }
    if (levels) keep_best_levels(state, *shape, nodes);
    slot = index != nullptr ? best_by_index(state, *index, *shape->demand, nodes)
                            : best_by_scan(state, *shape, nodes);
  }
  if (!slot) return std::nullopt;
  auto gpus = model::choose_gpus(state.info(*slot), state.node(*slot), *shape->demand,
                                 state.mig_free(*slot, *shape->demand));
  if (!gpus) return std::nullopt;
  return Target{*slot, *gpus};
}

std::vector<Blockers> Placer::blockers(const ClusterState& state, ShapeRef shape) {
  std::vector<Blockers> out = rules(state, *shape).blockers;
  PodRules pods = pod_rules(state, *shape);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] |= blockers_now(state, *shape, pods, i);
  return out;
}

Blockers Placer::blockers_on(const ClusterState& state, ShapeRef shape, std::uint32_t slot) {
  PodRules pods = pod_rules(state, *shape);
  return rules(state, *shape).blockers[slot] | blockers_now(state, *shape, pods, slot);
}

Blockers Placer::blockers_now(const ClusterState& state, const Shape& shape, const PodRules& pods,
                              std::size_t slot) {
  Blockers out = capacity_blockers(state.info(slot), state.node(slot), *shape.demand);
  if (!shape.host_ports.empty() && ports_taken(state, shape, slot))
    out |= bit(Constraint::kHostPorts);
  auto add = [&](const NodeSet& set, Constraint c) {
    if (set.size() != 0 && set.test(slot)) out |= bit(c);
  };
  add(pods.affinity, Constraint::kPodAffinity);
  add(pods.anti_affinity, Constraint::kPodAntiAffinity);
  add(pods.spread, Constraint::kTopologySpread);
  return out;
}

}  // namespace berth::schedule
