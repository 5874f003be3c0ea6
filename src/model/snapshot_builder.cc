#include "model/snapshot_builder.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include "model/fit.h"

namespace berth::model {
namespace {

// Pods may claim a device many times over. Claims beyond this change nothing: it is full.
constexpr int kLeastFree = -30 * kMilliPerGpu;
constexpr std::size_t kMostParts = std::size_t{kMaxGpusPerNode} * kMaxSharesPerGpu;

}  // namespace

bool SnapshotBuilder::has_node(std::string_view name) const {
  const auto changed = changed_nodes_.find(name);
  if (changed != changed_nodes_.end()) return changed->second != nullptr;
  return state_.inventory_->slot(name).has_value();
}

void SnapshotBuilder::upsert_node(const NodeSpec& spec) {
  changed_nodes_.insert_or_assign(
      spec.name, std::make_shared<const NodeInfo>(make_node_info(spec, book_.strings())));
}

void SnapshotBuilder::remove_node(std::string_view name) {
  if (has_node(name)) changed_nodes_.insert_or_assign(std::string(name), nullptr);
}

PodId SnapshotBuilder::upsert_pod(const PodSpec& spec) {
  auto info = std::make_shared<PodInfo>();
  info->name.reserve(spec.ns.size() + 1 + spec.name.size());
  info->name.append(spec.ns).append("/").append(spec.name);
  if (const auto old = find_pod(info->name)) remove_pod(*old);
  info->rules = RuleLedger::entry_of(spec);
  rules_.add(spec.ns, info->rules);
  note_rules(spec.ns);
  const bool crowded = info->rules.set != 0 && rules_.over(spec.ns);
  if (crowded) quiet_[spec.ns].insert_or_assign(spec.name, spec);
  auto news = book_.intern(spec, crowded || !pod_excess(info->rules.count).empty());
  PodId id;
  if (free_pods_.empty()) {
    id = static_cast<PodId>(state_.pods_.size());
    state_.pods_.push_back({}, 0);
  } else {
    id = free_pods_.back();
    free_pods_.pop_back();
  }
  info->shape = news.shape;
  info->uid = spec.uid;
  info->priority = spec.priority;
  info->preempts = spec.preempts;
  info->gated = spec.gated;
  info->queued = spec.queued;
  info->stays = spec.stays;
  info->terminating = spec.terminating;
  info->service = spec.service;
  info->subgroup = spec.subgroup;
  info->unread_claims = spec.unread_claims;
  info->needs_queue = spec.needs_queue;
  info->volume_missing = spec.volume_missing;
  info->created_ns = spec.created_ns;
  info->started_ns = spec.started_ns;
  if (!spec.gang.empty()) info->gang = gang_index(spec.ns, spec.gang);
  pods_.put(info->name, id);
  PodEntry& entry = state_.pods_.write(id, 0);
  entry = {.info = info, .shape = news.shape.get()};
  if (info->gang >= 0) state_.link_gang(id, info->gang);
  if (news.shape->index >= shape_refs_.size()) shape_refs_.resize(news.shape->index + 1);
  ++shape_refs_[news.shape->index];
  take_in(news);
  if (!spec.node_name.empty()) wanted_.push_back({id, spec.node_name, spec.gpu_indices});
  return id;
}

void SnapshotBuilder::take_in(const ShapeBook::News& news) {
  if (!news.new_shape) return;
  const Shape& shape = *news.shape;
  if (shape.index >= state_.links_.size()) state_.links_.resize(shape.index + 1, 0);
  take_in_counters(news.counters, shape);
  ShapeLinks links;
  for (const std::uint32_t index : matches_.counters_for(shape)) {
    const Counter& counter = *state_.counts_[index]->counter;
    if (counter.kind == Counter::Kind::kBars) {
      if (matches(counter.pods, shape.ns, shape.labels)) {
        links.barred_by.push_back({index, counter.serial});
      }
    } else if (counts(counter, shape)) {
      links.raises.push_back({index, counter.serial});
    }
  }
  for (const CounterRef& bar : shape.bars) links.raises.push_back({bar->index, bar->serial});
  const auto by_index = [](const auto& a, const auto& b) { return a.index < b.index; };
  const auto same = [](const auto& a, const auto& b) { return a.index == b.index; };
  std::sort(links.raises.begin(), links.raises.end(), by_index);
  links.raises.erase(std::unique(links.raises.begin(), links.raises.end(), same),
                     links.raises.end());
  state_.links_.write(shape.index, 0) = std::move(links);
  matches_.add(shape);
}

// Counters that no shape had before: those of the others that they count, or bar, learn of them. A
// bar is raised by the pods that brought it alone.
void SnapshotBuilder::take_in_counters(const std::vector<CounterRef>& counters,
                                       const Shape& shape) {
  Fresh fresh;
  const auto add = [this](std::vector<ShapeLinks::Link>& links, const Counter& counter) {
    if (links.size() == links.capacity()) {
      std::erase_if(links, [this](const auto& link) { return state_.live(link) == nullptr; });
    }
    links.push_back({counter.index, counter.serial});
  };
  for (const CounterRef& counter : counters) {
    const std::uint32_t index = counter->index;
    if (index >= state_.counts_.size()) state_.counts_.resize(index + 1, 0);
    auto held = std::make_shared<ClusterState::Counts>();
    held->owner = state_.owner_.id();
    held->counter = counter;
    state_.counts_.write(index, 0) = std::move(held);
    for (const std::uint32_t other : matches_.shapes_for(*counter)) {
      const OwnedShape known = book_.shapes()[other].lock();
      if (!known || known.get() == &shape) continue;
      if (counter->kind == Counter::Kind::kBars) {
        if (!matches(counter->pods, known->ns, known->labels)) continue;
        add(state_.links_.write(other, 0).barred_by, *counter);
      } else if (counts(*counter, *known)) {
        add(state_.links_.write(other, 0).raises, *counter);
        fresh[other].push_back(index);
      }
    }
    matches_.add(*counter);
  }
  if (!fresh.empty()) count_running(fresh);
}

void SnapshotBuilder::count_running(const Fresh& fresh) {
  for (PodId id = 0; id < state_.pods_.size() && bound_ > 0; ++id) {
    const PodEntry& entry = state_.pods_[id];
    if (!entry.info || entry.slot < 0) continue;
    const auto it = fresh.find(entry.shape->index);
    if (it == fresh.end()) continue;
    for (const std::uint32_t counter : it->second) {
      state_.bump(counter, static_cast<std::size_t>(entry.slot), +1);
    }
  }
}

void SnapshotBuilder::drop_shape(const Shape& shape) {
  matches_.remove(shape);
  state_.links_.write(shape.index, 0) = {};
  for (const CounterRef& counter : book_.release(shape)) {
    matches_.remove(*counter);
    state_.counts_.write(counter->index, 0).reset();
  }
}

void SnapshotBuilder::note_rules(const std::string& ns) {
  const bool over = rules_.over(ns);
  const auto known = state_.crowded_->find(ns);
  if (!over && known == state_.crowded_->end()) return;
  auto crowded = std::make_shared<ClusterState::Crowded>(*state_.crowded_);
  if (over) {
    crowded->insert_or_assign(ns, rules_.of(ns));
  } else {
    crowded->erase(ns);
    relieved_.insert(ns);
  }
  state_.crowded_ = std::move(crowded);
}

// What their namespace brings is little enough again: their rules count.
void SnapshotBuilder::wake_quiet() {
  for (const std::string& ns : std::exchange(relieved_, {})) {
    if (rules_.over(ns)) continue;
    const auto at = quiet_.find(ns);
    if (at == quiet_.end()) continue;
    const auto pods = std::move(at->second);
    quiet_.erase(at);
    for (const auto& [name, kept] : pods) {
      const auto id = find_pod(ns + '/' + name);
      if (!id) continue;
      PodSpec spec = kept;
      const PodEntry& entry = state_.pods_[*id];
      if (entry.slot >= 0) {
        spec.node_name = state_.info(static_cast<std::size_t>(entry.slot)).name;
        spec.gpu_indices = stated(*id);
      } else if (entry.slot == kPending) {
        spec.node_name.clear();
      }
      upsert_pod(spec);
    }
  }
}

std::optional<PodId> SnapshotBuilder::find_pod(std::string_view name) const {
  const PodId* id = pods_.find(name);
  return id == nullptr ? std::nullopt : std::optional(*id);
}

std::optional<std::int32_t> SnapshotBuilder::find_gang(std::string_view name) const {
  auto it = gangs_.find(name);
  return it == gangs_.end() ? std::nullopt : std::optional(it->second);
}

void SnapshotBuilder::remove_pod(std::string_view name) {
  if (auto id = find_pod(name)) remove_pod(*id);
}

void SnapshotBuilder::detach_pod(PodId id) {
  const std::int32_t slot = state_.pods_[id].slot;  // what is written may move the entry
  if (slot >= 0) {
    forget_guess(id);
    touch(slot);
    take_off(id);
  } else {
    std::erase_if(wanted_, [&](const Wanted& w) { return w.id == id; });
    strays_.erase(id);
  }
  if (state_.pods_[id].info->gang >= 0) leave_gang(id);
}

void SnapshotBuilder::remove_pod(PodId id) {
  detach_pod(id);
  const PodEntry& entry = state_.pods_[id];
  pods_.erase(entry.info->name);
  OwnedShape shape = entry.info->shape;
  const RuleLedger::Entry rules = entry.info->rules;
  const std::string name = entry.info->name.substr(shape->ns.size() + 1);
  state_.pods_.write(id, 0) = {};
  free_pods_.push_back(id);
  if (--shape_refs_[shape->index] == 0) drop_shape(*shape);
  if (rules.set == 0) return;
  rules_.remove(shape->ns, rules);
  if (const auto quiet = quiet_.find(shape->ns); quiet != quiet_.end()) {
    quiet->second.erase(name);
    if (quiet->second.empty()) quiet_.erase(quiet);
  }
  note_rules(shape->ns);
}

GangSpec& SnapshotBuilder::write_gang(std::int32_t index) {
  state_.gangs_version_ = state_.next_version();
  return state_.gangs_.write(static_cast<std::size_t>(index), 0);
}

// Of a gang that is there, or one with nothing asked of it until its object is seen.
std::int32_t SnapshotBuilder::gang_index(const std::string& ns, const std::string& name) {
  const auto [it, fresh] = gangs_.emplace(ns + "/" + name, 0);
  if (!fresh) return it->second;
  if (free_gangs_.empty()) {
    it->second = static_cast<std::int32_t>(state_.gangs_.size());
    state_.gangs_.push_back({}, 0);
    state_.gang_heads_.push_back(-1, 0);
    declared_.push_back(false);
  } else {
    it->second = free_gangs_.back();
    free_gangs_.pop_back();
  }
  GangSpec empty;
  empty.ns = ns;
  empty.name = name;
  write_gang(it->second) = std::move(empty);
  return it->second;
}

void SnapshotBuilder::drop_gang(std::int32_t index) {
  const GangSpec& gang = state_.gang(index);
  gangs_.erase(gang.ns + "/" + gang.name);
  write_gang(index) = {};
  free_gangs_.push_back(index);
}

// One that is known by its members alone goes with the last of them.
void SnapshotBuilder::leave_gang(PodId id) {
  const std::int32_t gang = state_.pods_[id].info->gang;
  state_.unlink_gang(id);
  const auto at = static_cast<std::size_t>(gang);
  if (!declared_[at] && state_.gang_heads_[at] < 0) drop_gang(gang);
}

void SnapshotBuilder::upsert_gang(const GangSpec& spec) {
  const std::int32_t index = gang_index(spec.ns, spec.name);
  declared_[static_cast<std::size_t>(index)] = true;
  if (!(state_.gang(index) == spec)) write_gang(index) = spec;
  auto use = [&](const std::string& key) {
    if (!key.empty()) book_.topology_key(key, true);
  };
  use(spec.required_topology);
  use(spec.preferred_topology);
  for (const auto& sub : spec.subgroups) {
    use(sub.required_topology);
    use(sub.preferred_topology);
  }
}

void SnapshotBuilder::remove_gang(std::string_view name) {
  auto it = gangs_.find(name);
  if (it == gangs_.end()) return;
  const auto at = static_cast<std::size_t>(it->second);
  declared_[at] = false;
  if (state_.gang_heads_[at] < 0) return drop_gang(it->second);
  // Members are still there: they keep the group with nothing asked of it.
  GangSpec empty;
  empty.ns = state_.gang(it->second).ns;
  empty.name = state_.gang(it->second).name;
  write_gang(it->second) = std::move(empty);
}

void SnapshotBuilder::set_budgets(std::vector<BudgetSpec> budgets) {
  state_.budgets_ = std::make_shared<const std::vector<BudgetSpec>>(std::move(budgets));
}

void SnapshotBuilder::touch(std::int32_t slot) {
  if (slot >= 0 && assumed_on_[static_cast<std::size_t>(slot)] > 0) {
    touched_.push_back(static_cast<std::uint32_t>(slot));
  }
}

void SnapshotBuilder::put_on(PodId id, std::uint32_t slot, GpuTake gpus) {
  const auto& free = state_.nodes_[slot].gpu;
  for (std::size_t g = 0; g < kMaxGpusPerNode; ++g) {
    if (free[g] - gpus.take[g] * gpus.unit < kLeastFree) gpus.take[g] = 0;
  }
  state_.bind(id, slot, gpus);
  ++bound_;
}

void SnapshotBuilder::take_off(PodId id) {
  state_.unbind(id);
  --bound_;
}

void SnapshotBuilder::bind(PodId id, std::uint32_t slot, const GpuTake& gpus) {
  touch(static_cast<std::int32_t>(slot));
  put_on(id, slot, gpus);
  note_twins(slot, gpus);
}

void SnapshotBuilder::bind(PodId id, std::uint32_t slot, const std::vector<int>& indices) {
  bind(id, slot, take_of(state_.info(slot), *state_.pods_[id].shape->demand, indices));
}

void SnapshotBuilder::unbind(PodId id) {
  auto slot = state_.pods_[id].slot;
  if (slot < 0) return;
  forget_guess(id);
  touch(slot);
  take_off(id);
}

void SnapshotBuilder::forget_guess(PodId id) {
  const PodEntry& entry = state_.pods_[id];
  if (!entry.assumed) return;
  --assumed_on_[static_cast<std::size_t>(entry.slot)];
  displaced_.erase(id);
  state_.pods_.write(id, 0).assumed = false;
}

std::vector<int> SnapshotBuilder::stated(PodId id) const {
  const PodEntry& entry = state_.pods_[id];
  if (!entry.assumed) return entry.gpus.indices();
  const auto it = displaced_.find(id);
  return it == displaced_.end() ? std::vector<int>{} : it->second;
}

const ClusterState& SnapshotBuilder::state() {
  flush();
  return state_;
}

ClusterSnapshot SnapshotBuilder::publish() {
  flush();
  auto snapshot = std::make_shared<const ClusterState>(state_);
  state_.nodes_.detach();
  state_.node_heads_.detach();
  state_.gang_heads_.detach();
  state_.gangs_.detach();
  state_.pods_.detach();
  state_.links_.detach();
  state_.counts_.detach();
  state_.owner_.renew();
  return snapshot;
}

void SnapshotBuilder::flush() {
  if (!relieved_.empty()) wake_quiet();
  if (!changed_nodes_.empty() || state_.inventory_->keys_version() != book_.keys_version()) {
    rebuild_inventory();
  }
  if (!wanted_.empty()) bind_wanted();
  if (!touched_.empty()) guess_devices();
}

// Pods on changed nodes are taken off and put on again, so that amounts and guesses follow the new
// facts.
void SnapshotBuilder::take_off_changed() {
  std::vector<PodId> pods;
  for (const auto& [name, info] : changed_nodes_) {
    const auto slot = state_.inventory_->slot(name);
    if (slot) state_.for_each_pod_on(*slot, [&](PodId id) { pods.push_back(id); });
  }
  std::sort(pods.begin(), pods.end());
  for (const PodId id : pods) {
    const PodEntry& entry = state_.pods_[id];
    const auto slot = static_cast<std::size_t>(entry.slot);
    wanted_.push_back({id, state_.info(slot).name, stated(id)});
    forget_guess(id);
    take_off(id);
  }
}

// When names come or go, slots shift; what is known of the nodes that stay moves along.
void SnapshotBuilder::rebuild_inventory() {
  take_off_changed();
  const auto before = state_.inventory_;
  std::vector<NodeInfoRef> infos;
  infos.reserve(before->size() + changed_nodes_.size());
  std::vector<std::int32_t> to(before->size(), -1);  // by slot before
  bool shifts = false;
  auto next = changed_nodes_.begin();
  const auto add_next = [&] {
    shifts = shifts || next->second;
    if (next->second) infos.push_back(next->second);
    ++next;
  };
  for (std::size_t i = 0; i < before->size(); ++i) {
    const std::string& name = before->node(i).name;
    while (next != changed_nodes_.end() && next->first < name) add_next();
    NodeInfoRef info = before->nodes()[i];
    if (next != changed_nodes_.end() && next->first == name) info = (next++)->second;
    shifts = shifts || !info;
    if (!info) continue;
    to[i] = static_cast<std::int32_t>(infos.size());
    infos.push_back(std::move(info));
  }
  while (next != changed_nodes_.end()) add_next();
  state_.inventory_ =
      std::make_shared<const Inventory>(std::move(infos), book_, next_owner(), before.get());
  if (shifts) move_slots(to);
  for (const auto& [name, info] : changed_nodes_) {
    const auto slot = state_.inventory_->slot(name);
    if (slot) state_.nodes_.write(*slot, 0) = empty_state(*info);
  }
  changed_nodes_.clear();
}

void SnapshotBuilder::move_slots(const std::vector<std::int32_t>& to) {
  const std::uint64_t version = state_.next_version();
  const std::size_t nodes = state_.nodes();
  const auto move = [&](auto& pages, const auto& of_new) {
    std::remove_cvref_t<decltype(pages)> moved;
    moved.resize(nodes, version);
    for (std::size_t i = 0; i < nodes; ++i) moved.write(i, version) = of_new;
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (to[i] >= 0) moved.write(static_cast<std::size_t>(to[i]), version) = pages[i];
    }
    pages = std::move(moved);
  };
  move(state_.nodes_, NodeState{});
  move(state_.node_heads_, std::int32_t{-1});
  for (std::size_t i = 0; i < state_.counts_.size(); ++i) {
    const auto& held = state_.counts_[i];
    if (!held || held->pages.size() == 0) continue;
    auto moved = std::make_shared<ClusterState::Counts>(*held);
    moved->owner = state_.owner_.id();
    if (moved->total == 0) {
      moved->pages = {};
    } else {
      move(moved->pages, std::uint32_t{0});
    }
    state_.counts_.write(i, 0) = std::move(moved);
  }
  for (PodId id = 0; id < state_.pods_.size(); ++id) {
    const std::int32_t slot = state_.pods_[id].slot;
    if (slot < 0 || to[static_cast<std::size_t>(slot)] == slot) continue;
    state_.pods_.write(id, 0).slot = to[static_cast<std::size_t>(slot)];
  }
  std::vector<std::uint32_t> assumed_on(nodes);
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] >= 0) assumed_on[static_cast<std::size_t>(to[i])] = assumed_on_[i];
  }
  assumed_on_ = std::move(assumed_on);
  std::erase_if(touched_, [&](std::uint32_t slot) { return to[slot] < 0; });
  for (std::uint32_t& slot : touched_) slot = static_cast<std::uint32_t>(to[slot]);
  for (auto& [id, stray] : strays_) wanted_.push_back(std::move(stray));
  strays_.clear();
}

GpuTake SnapshotBuilder::take_of(const NodeInfo& info, const Demand& demand,
                                 const std::vector<int>& indices) const {
  bool mig = demand.kind == GpuDemandSpec::Kind::kMig;
  GpuTake out{.unit = static_cast<std::int16_t>(device_milli(info, demand))};
  if (out.unit == 0 && demand.asks_gpu() && !mig) out.unit = kMilliPerGpu;  // cannot be served here
  if (indices.empty()) return out;
  auto count = mig || takes_shares(info, demand)
                   ? std::max(indices.size(), static_cast<std::size_t>(demand.count))
                   : indices.size();
  for (std::size_t n = 0; n < std::min(count, kMostParts); ++n) {
    auto& take = out.take[static_cast<std::size_t>(indices[n % indices.size()])];
    take = static_cast<std::uint8_t>(std::min(take + 1, kMaxSharesPerGpu));
  }
  return out;
}

void SnapshotBuilder::bind_wanted() {
  auto wanted = std::exchange(wanted_, {});
  for (auto& w : wanted) {
    auto slot = state_.inventory_->slot(w.node);
    if (!slot) {
      state_.pods_.write(w.id, 0).slot = kNoNode;
      strays_.insert_or_assign(w.id, std::move(w));
      continue;
    }
    const NodeInfo& info = state_.info(*slot);
    std::erase_if(w.indices, [&](int i) {
      return i < 0 || i >= kMaxGpusPerNode || ((info.devices | info.mig) >> i & 1) == 0;
    });
    const Demand& demand = *state_.pods_[w.id].shape->demand;
    touch(static_cast<std::int32_t>(*slot));
    if (demand.asks_gpu() && w.indices.empty()) {
      put_on(w.id, *slot, {});
      state_.pods_.write(w.id, 0).assumed = true;
      if (assumed_on_[*slot]++ == 0) touched_.push_back(*slot);
    } else {
      const GpuTake gpus = take_of(info, demand, w.indices);
      put_on(w.id, *slot, gpus);
      note_twins(*slot, gpus);
    }
  }
}

// Two that say they have one device: see part_twins().
void SnapshotBuilder::note_twins(std::uint32_t slot, const GpuTake& gpus) {
  const auto& free = state_.nodes_[slot].gpu;
  for (std::size_t g = 0; g < kMaxGpusPerNode; ++g) {
    if (gpus.take[g] == 0 || free[g] >= 0) continue;
    touched_.push_back(slot);
    return;
  }
}

// What the choice gives, on all devices if need be; a pod that does not fit even so takes the
// devices with the most room.
GpuTake SnapshotBuilder::guess(std::size_t slot, const Demand& demand) const {
  const NodeInfo& info = state_.info(slot);
  const NodeState& node = state_.nodes_[slot];
  auto mig_free = state_.mig_free(slot, demand);
  if (auto chosen = choose_gpus(info, node, demand, mig_free)) return *chosen;
  NodeInfo all = info;
  all.usable = all.devices;
  all.mig_usable = all.mig;
  all.numa_policy = NumaPolicy::kNone;
  if (auto chosen = choose_gpus(all, node, demand, mig_free)) return *chosen;
  if (demand.kind == GpuDemandSpec::Kind::kMig) return {};
  std::vector<int> most;
  auto left = node.gpu;
  unsigned open = info.devices;
  int unit = take_of(info, demand, {}).unit;
  for (std::size_t n = 0; n < kMostParts && static_cast<int>(n) < demand.count && open != 0; ++n) {
    int best = std::countr_zero(open);
    for (unsigned bits = open; bits != 0; bits &= bits - 1) {
      int g = std::countr_zero(bits);
      if (left[static_cast<std::size_t>(g)] > left[static_cast<std::size_t>(best)]) best = g;
    }
    most.push_back(best);
    auto& free = left[static_cast<std::size_t>(best)];
    free = static_cast<std::int16_t>(std::max(free - unit, kLeastFree));
    if (!takes_shares(info, demand)) open &= ~(1u << best);
  }
  return take_of(info, demand, most);
}

// A whole device is one pod's. Of those that say they have the same one, the first by name does,
// and the others have some other: what is free follows from how many run there, whatever they say.
void SnapshotBuilder::part_twins(std::uint32_t slot, std::vector<PodId>& guessed) {
  const auto& now = state_.nodes_[slot].gpu;
  const auto is_displaced = [this](PodId id) { return displaced_.contains(id); };
  if (std::none_of(now.begin(), now.end(), [](int left) { return left < 0; }) &&
      std::none_of(guessed.begin(), guessed.end(), is_displaced)) {
    return;
  }
  const NodeInfo& info = state_.info(slot);
  std::map<std::string_view, PodId> whole;  // by name
  state_.for_each_pod_on(slot, [&](PodId id) {
    const PodEntry& entry = state_.pods_[id];
    const Demand& demand = *entry.shape->demand;
    const bool one = demand.kind == GpuDemandSpec::Kind::kWhole && !takes_shares(info, demand);
    if (one) whole.emplace(entry.info->name, id);
  });
  std::map<PodId, std::vector<int>> says;
  for (const auto& [name, id] : whole) {
    says.emplace(id, stated(id));
    take_off(id);
  }
  for (const PodId id : guessed) {
    if (!is_displaced(id)) continue;
    says.emplace(id, stated(id));
    whole.emplace(state_.pods_[id].info->name, id);
  }
  std::erase_if(guessed, is_displaced);
  for (const auto& [name, id] : whole) {
    const GpuTake gpus = take_of(info, *state_.pods_[id].shape->demand, says[id]);
    const auto& free = state_.nodes_[slot].gpu;
    bool fits = true;
    for (std::size_t g = 0; g < kMaxGpusPerNode; ++g) {
      fits = fits && (gpus.take[g] == 0 || free[g] >= gpus.take[g] * gpus.unit);
    }
    const bool was = is_displaced(id);
    if (fits) {
      put_on(id, slot, gpus);
      if (was) forget_guess(id);
      continue;
    }
    if (!was) ++assumed_on_[slot];
    state_.pods_.write(id, 0).assumed = true;
    displaced_.insert_or_assign(id, says[id]);
    guessed.push_back(id);
  }
  std::sort(guessed.begin(), guessed.end(), [this](PodId a, PodId b) {
    return state_.pods_[a].info->name < state_.pods_[b].info->name;
  });
}

// Guesses follow name order after all pods with known devices, whatever order the pods came in.
void SnapshotBuilder::guess_devices() {
  std::sort(touched_.begin(), touched_.end());
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  for (auto slot : touched_) {
    std::vector<PodId> assumed;
    state_.for_each_pod_on(slot, [&](PodId id) {
      if (state_.pods_[id].assumed) assumed.push_back(id);
    });
    std::sort(assumed.begin(), assumed.end(), [&](PodId a, PodId b) {
      return state_.pods_[a].info->name < state_.pods_[b].info->name;
    });
    for (auto id : assumed) take_off(id);
    part_twins(slot, assumed);
    for (auto id : assumed) put_on(id, slot, guess(slot, *state_.pods_[id].shape->demand));
  }
  touched_.clear();
}

}  // namespace berth::model
