#include "model/inventory.h"

#include <algorithm>

#include "model/amounts.h"

namespace berth::model {
namespace {

// Labels with more values than this would make classes too small to be worth it.
constexpr std::size_t kMaxClassValues = 64;

void derive_gpus(NodeInfo& info, const NodeSpec& spec) {
  info.gpus = spec.gpus;
  info.gpus_assumed = spec.gpus_assumed;
  info.shares_per_gpu = std::clamp(spec.shares_per_gpu, 1, kMaxSharesPerGpu);
  const auto share = static_cast<std::int16_t>(kMilliPerGpu / info.shares_per_gpu);
  info.gpu_milli = offers_gpus(spec) ? share : std::int16_t{0};
  info.shared_milli = offers_shares(spec) ? share : std::int16_t{0};
  info.numa_known = !info.gpus.empty();
  for (const auto& gpu : info.gpus) {
    auto bit = static_cast<std::uint16_t>(1u << gpu.index);
    bool usable = gpu.health == Health::kHealthy && !gpu.reserved;
    auto& all = gpu.mig.empty() ? info.devices : info.mig;
    auto& good = gpu.mig.empty() ? info.usable : info.mig_usable;
    all = static_cast<std::uint16_t>(all | bit);
    if (usable) good = static_cast<std::uint16_t>(good | bit);
    if (gpu.numa < 0) info.numa_known = false;
  }
  if (info.gpus.empty()) return;
  info.gpu_model = info.gpus.front().model;
  info.gpu_memory_mib = info.gpus.front().memory_mib;
}

// MIG slots that devices are known to carry are counted from the devices: those of usable ones
// under the resource's name, those of the others under a name of their own (see mig_unusable()).
Amounts with_mig_slots(const NodeSpec& spec) {
  Amounts out = spec.allocatable;
  for (const auto& gpu : spec.gpus) {
    for (const auto& slots : gpu.mig) out.erase(slots.resource);
  }
  for (const auto& gpu : spec.gpus) {
    bool usable = gpu.health == Health::kHealthy && !gpu.reserved;
    for (const auto& slots : gpu.mig) {
      out[slots.resource] += usable ? slots.count : 0;
      if (!usable) out[mig_unusable(slots.resource)] += slots.count;
    }
  }
  return out;
}

std::optional<SymbolId> value_of(const NodeInfo& node, SymbolId key) {
  const auto it =
      std::lower_bound(node.labels.begin(), node.labels.end(), std::pair{key, SymbolId{0}});
  return it != node.labels.end() && it->first == key ? std::optional(it->second) : std::nullopt;
}

}  // namespace

NodeInfo make_node_info(const NodeSpec& spec, Interner& strings) {
  NodeInfo info;
  info.name = spec.name;
  info.labels.reserve(spec.labels.size());
  for (const auto& [key, value] : spec.labels) {
    info.labels.emplace_back(strings.intern(key), strings.intern(value));
  }
  std::sort(info.labels.begin(), info.labels.end());
  info.taints = spec.taints;
  std::sort(info.taints.begin(), info.taints.end());
  info.unschedulable = spec.unschedulable;
  info.ready = spec.ready;
  info.pods = 110;  // the kubelet's default where the node does not say
  for (const auto& [name, amount] : with_mig_slots(spec)) {
    if (name == "cpu") {
      info.cpu = amount;
    } else if (name == "memory") {
      info.memory = amount;
    } else if (name == "ephemeral-storage") {
      info.ephemeral = amount;
    } else if (name == "pods") {
      info.pods = static_cast<std::int32_t>(std::min<std::int64_t>(amount, 1 << 20));
    } else if (info.extended.size() < kMaxExtended) {
      info.extended.emplace_back(strings.intern(name), amount);
    }
  }
  derive_gpus(info, spec);
  info.numa_policy = spec.numa_policy;
  info.numa_scope = spec.numa_scope;
  return info;
}

Inventory::Inventory(std::vector<NodeInfoRef> nodes, const ShapeBook& book, std::uint64_t version,
                     const Inventory* before)
    : nodes_(std::move(nodes)),
      strings_(book.shared_strings()),
      version_(version),
      keys_version_(book.keys_version()) {
  by_name_.reserve(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    by_name_.emplace(std::string_view(nodes_[i]->name), static_cast<std::uint32_t>(i));
  }
  build_domains(book);
  find_class_keys(book);
  build_classes(before);
}

std::optional<std::uint32_t> Inventory::slot(std::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? std::nullopt : std::optional(it->second);
}

std::optional<std::string_view> Inventory::label(const NodeInfo& node, std::string_view key) const {
  auto id = strings_->find(key);
  if (!id) return std::nullopt;
  const auto value = value_of(node, *id);
  return value ? std::optional(strings_->text(*value)) : std::nullopt;
}

bool Inventory::in_class(std::string_view label) const {
  auto id = strings_->find(label);
  if (!id) return true;  // no node has it
  return std::binary_search(class_keys_.begin(), class_keys_.end(), *id);
}

int Inventory::topology_key(std::string_view label) const {
  const auto it = topology_keys_.find(std::string(label));
  return it == topology_keys_.end() ? -1 : it->second;
}

void Inventory::build_domains(const ShapeBook& book) {
  Domains nobody;
  nobody.of.assign(nodes_.size(), -1);
  nobody.with_key = NodeSet(nodes_.size());
  without_ = std::make_shared<const Domains>(std::move(nobody));
  for (const auto& key : book.topology_keys()) {
    topology_keys_.emplace(key, static_cast<int>(domains_.size()));
    const auto id = strings_->find(key);
    if (!id) {
      domains_.push_back(without_);
      continue;
    }
    Domains d = *without_;
    boost::unordered_flat_map<SymbolId, std::vector<std::uint32_t>> by_value;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (const auto value = value_of(*nodes_[i], *id)) {
        by_value[*value].push_back(static_cast<std::uint32_t>(i));
        d.with_key.set(i);
      }
    }
    std::vector<std::pair<std::string_view, std::vector<std::uint32_t>>> groups;
    for (auto& [value, slots] : by_value)
      groups.emplace_back(strings_->text(value), std::move(slots));
    std::sort(groups.begin(), groups.end());
    bool sets = groups.size() <= Domains::kMaxSets;
    for (auto& [value, slots] : groups) {
      auto domain = static_cast<std::int32_t>(d.values.size());
      d.values.push_back(value);
      NodeSet set(sets ? nodes_.size() : 0);
      for (auto slot : slots) {
        d.of[slot] = domain;
        if (sets) set.set(slot);
      }
      if (sets) d.sets.push_back(std::move(set));
      d.slots.push_back(std::move(slots));
    }
    domains_.push_back(std::make_shared<const Domains>(std::move(d)));
  }
}

void Inventory::find_class_keys(const ShapeBook& book) {
  for (const auto& key : book.label_keys()) {
    auto id = strings_->find(key);
    if (!id) continue;
    boost::unordered_flat_map<SymbolId, bool> values;
    for (const auto& node : nodes_) {
      if (const auto value = value_of(*node, *id)) values.emplace(*value, true);
      if (values.size() > kMaxClassValues) break;
    }
    if (values.size() <= kMaxClassValues) class_keys_.push_back(*id);
  }
  std::sort(class_keys_.begin(), class_keys_.end());
}

// Equal for nodes of one class.
std::string Inventory::class_key(const NodeInfo& node) const {
  std::string key;
  for (const auto& [k, v] : node.labels) {
    if (std::binary_search(class_keys_.begin(), class_keys_.end(), k)) {
      key.append(reinterpret_cast<const char*>(&k), sizeof k);
      key.append(reinterpret_cast<const char*>(&v), sizeof v);
    }
  }
  key += node.unschedulable ? "|u" : "|";
  key += node.ready ? "r" : "";
  key += "|" + node.gpu_model + "|" + std::to_string(node.gpu_memory_mib);
  for (const auto& taint : node.taints) {
    key +=
        "|" + taint.key + "=" + taint.value + ":" + std::to_string(static_cast<int>(taint.effect));
  }
  return key;
}

// Classes are numbered by their first node. A node that was in the inventory before is in a class
// with whoever shared one with it there, so that only one of those is looked at.
void Inventory::build_classes(const Inventory* before) {
  constexpr std::uint32_t kUnknown = UINT32_MAX;
  const bool same_keys = before != nullptr && before->class_keys_ == class_keys_;
  std::vector<std::uint32_t> known(same_keys ? before->classes() : 0, kUnknown);
  boost::unordered_flat_map<std::string, std::uint32_t> ids;
  std::size_t at = 0;  // in the one before
  class_of_.reserve(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    std::uint32_t* by_old = nullptr;
    if (same_keys) {
      while (at < before->size() && before->nodes_[at] != nodes_[i] &&
             before->node(at).name < nodes_[i]->name) {
        ++at;
      }
      const bool stays = at < before->size() && before->nodes_[at] == nodes_[i];
      if (stays) by_old = &known[before->class_of_[at]];
    }
    std::uint32_t c = by_old != nullptr ? *by_old : kUnknown;
    if (c == kUnknown) {
      const auto fresh = static_cast<std::uint32_t>(class_nodes_.size());
      c = ids.emplace(class_key(*nodes_[i]), fresh).first->second;
      if (c == fresh) {
        class_nodes_.emplace_back(nodes_.size());
        class_first_.push_back(static_cast<std::uint32_t>(i));
      }
      if (by_old != nullptr) *by_old = c;
    }
    class_of_.push_back(c);
    class_nodes_[c].set(i);
  }
}

}  // namespace berth::model
