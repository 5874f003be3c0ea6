#include "model/cluster_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "model/fit.h"

namespace berth::model {

ClusterState::ClusterState()
    : inventory_(std::make_shared<const Inventory>(std::vector<NodeInfoRef>{}, ShapeBook{}, 0)),
      budgets_(std::make_shared<const std::vector<BudgetSpec>>()),
      crowded_(std::make_shared<const Crowded>()),
      versions_(std::make_shared<std::atomic<std::uint64_t>>(0)) {}

std::uint64_t ClusterState::next_version() {
  return versions_->fetch_add(1, std::memory_order_relaxed) + 1;
}

NodeState& ClusterState::write_node(std::size_t slot) {
  journal_.add(static_cast<std::uint32_t>(slot));
  return nodes_.write(slot, 0);
}

MigFree ClusterState::mig_free(std::size_t slot, const Demand& demand) const {
  MigFree free{};
  if (demand.kind != GpuDemandSpec::Kind::kMig) return free;
  auto resource = inventory_->strings().text(demand.mig);
  for (const auto& gpu : info(slot).gpus) {
    for (const auto& slots : gpu.mig) {
      if (slots.resource == resource) {
        free[static_cast<std::size_t>(gpu.index)] = static_cast<std::uint8_t>(slots.count);
      }
    }
  }
  for_each_pod_on(slot, [&](PodId id) {
    const PodEntry& pod = pods_[id];
    const Demand& other = *pod.shape->demand;
    if (other.kind != GpuDemandSpec::Kind::kMig || other.mig != demand.mig) return;
    for (std::size_t g = 0; g < kMaxGpusPerNode; ++g) {
      free[g] = static_cast<std::uint8_t>(free[g] - std::min(free[g], pod.gpus.take[g]));
    }
  });
  return free;
}

void ClusterState::bump(std::uint32_t counter, std::size_t slot, int by) {
  if (!owner_.owns(counts_[counter]->owner)) {
    auto mine = std::make_shared<Counts>(*counts_[counter]);
    mine->owner = owner_.id();
    counts_.write(counter, 0) = std::move(mine);
  }
  Counts& counts = *counts_[counter];
  const std::uint64_t version = next_version();
  if (counts.pages.size() == 0) counts.pages.resize(nodes(), version);
  auto& count = counts.pages.write(slot, version);
  count = by > 0 ? count + 1 : count - 1;
  counts.total = by > 0 ? counts.total + 1 : counts.total - 1;
}

void ClusterState::raise(const Shape& shape, std::size_t slot, int by) {
  for (const ShapeLinks::Link& link : links_[shape.index].raises) {
    if (live(link) != nullptr) bump(link.index, slot, by);
  }
}

void ClusterState::link_node(PodId id, std::int32_t slot) {
  auto at = static_cast<std::size_t>(slot);
  std::int32_t head = node_heads_[at];
  PodEntry& entry = pods_.write(id, 0);
  entry.slot = slot;
  entry.node_prev = -1;
  entry.node_next = head;
  if (head >= 0)
    pods_.write(static_cast<std::size_t>(head), 0).node_prev = static_cast<std::int32_t>(id);
  node_heads_.write(at, 0) = static_cast<std::int32_t>(id);
}

void ClusterState::unlink_node(PodId id) {
  PodEntry& entry = pods_.write(id, 0);
  if (entry.node_prev >= 0) {
    pods_.write(static_cast<std::size_t>(entry.node_prev), 0).node_next = entry.node_next;
  } else {
    node_heads_.write(static_cast<std::size_t>(entry.slot), 0) = entry.node_next;
  }
  if (entry.node_next >= 0) {
    pods_.write(static_cast<std::size_t>(entry.node_next), 0).node_prev = entry.node_prev;
  }
  entry.node_prev = entry.node_next = -1;
  entry.slot = kPending;
}

void ClusterState::link_gang(PodId id, std::int32_t gang) {
  auto at = static_cast<std::size_t>(gang);
  std::int32_t head = gang_heads_[at];
  PodEntry& entry = pods_.write(id, 0);
  entry.gang_prev = -1;
  entry.gang_next = head;
  if (head >= 0)
    pods_.write(static_cast<std::size_t>(head), 0).gang_prev = static_cast<std::int32_t>(id);
  gang_heads_.write(at, 0) = static_cast<std::int32_t>(id);
}

void ClusterState::unlink_gang(PodId id) {
  PodEntry& entry = pods_.write(id, 0);
  if (entry.gang_prev >= 0) {
    pods_.write(static_cast<std::size_t>(entry.gang_prev), 0).gang_next = entry.gang_next;
  } else {
    gang_heads_.write(static_cast<std::size_t>(entry.info->gang), 0) = entry.gang_next;
  }
  if (entry.gang_next >= 0) {
    pods_.write(static_cast<std::size_t>(entry.gang_next), 0).gang_prev = entry.gang_prev;
  }
  entry.gang_prev = entry.gang_next = -1;
}

void ClusterState::bind(PodId id, std::uint32_t slot, const GpuTake& gpus) {
  if (pods_[id].slot >= 0) unbind(id);  // it moves: no node has it twice
  link_node(id, static_cast<std::int32_t>(slot));
  PodEntry& entry = pods_.write(id, 0);
  entry.gpus = gpus;
  take(info(slot), write_node(slot), *entry.shape->demand, gpus);
  raise(*entry.shape, slot, +1);
}

void ClusterState::unbind(PodId id) {
  const PodEntry& entry = pods_[id];
  if (entry.slot < 0) return BERTH_BUG("only a pod that is bound is unbound");
  auto slot = static_cast<std::size_t>(entry.slot);
  give(info(slot), write_node(slot), *entry.shape->demand, entry.gpus);
  raise(*entry.shape, slot, -1);
  unlink_node(id);
  pods_.write(id, 0).gpus = {};
}

std::string ClusterState::rule_excess(PodId id) const {
  const PodInfo& pod = *pods_[id].info;
  std::string excess = pod_excess(pod.rules.count);
  if (!excess.empty() || pod.rules.set == 0 || crowded_->empty()) return excess;
  const auto it = crowded_->find(pod.shape->ns);
  return it == crowded_->end() ? "" : namespace_excess(it->first, it->second);
}

std::string ClusterState::dump() const {
  std::string out;
  for (std::size_t i = 0; i < nodes(); ++i) {
    const NodeState& n = nodes_[i];
    out += fmt::format("node {} cpu {} memory {} ephemeral {} pods {} whole {} gpu", info(i).name,
                       n.cpu, n.memory, n.ephemeral, n.pods, n.whole);
    for (auto g : n.gpu) out += fmt::format(" {}", g);
    for (std::size_t e = 0; e < info(i).extended.size(); ++e) {
      out += fmt::format(" {}={}", inventory_->strings().text(info(i).extended[e].first),
                         n.extended[e]);
    }
    out += '\n';
  }
  std::vector<std::string> lines;
  for (PodId id = 0; id < pods_.size(); ++id) {
    const PodEntry& p = pods_[id];
    if (!p.info) continue;
    lines.push_back(fmt::format(
        "pod {} priority {} gang {} node {} unit {} take {} assumed {}\n", p.info->name,
        p.info->priority, p.info->gang < 0 ? "-" : gang(p.info->gang).name,
        p.slot >= 0 ? info(static_cast<std::size_t>(p.slot)).name : std::to_string(p.slot),
        p.gpus.unit, fmt::join(p.gpus.indices(), ","), p.assumed));
  }
  std::set<std::uint32_t> asked;  // counters that some pod's constraints need
  for (PodId id = 0; id < pods_.size(); ++id) {
    if (!pods_[id].info) continue;
    for_each_counter(*pods_[id].shape, [&](const Counter& c) { asked.insert(c.index); });
  }
  for (auto index : asked) {
    const auto& counts = counts_[index];
    std::string line = fmt::format("counter {}:", static_cast<int>(counts->counter->kind));
    for (std::size_t i = 0; i < counts->pages.size(); ++i) {
      line += fmt::format(" {}", counts->pages[i]);
    }
    if (counts->total > 0) lines.push_back(line + '\n');
  }
  std::sort(lines.begin(), lines.end());
  for (const auto& line : lines) out += line;
  return out;
}

}  // namespace berth::model
