#include "decide/schedule/rule_memo.h"

#include <algorithm>

namespace berth::schedule {

using model::Constraint;
using model::Inventory;
using model::NodeInfo;
using model::NodeRules;

namespace {

bool term_matches(const Inventory& inventory, const NodeInfo& node,
                  const model::NodeSelectorTerm& term) {
  if (term.labels.empty() && term.fields.empty()) return false;
  auto label = [&](std::string_view key) { return inventory.label(node, key); };
  auto field = [&](std::string_view key) -> std::optional<std::string_view> {
    if (key == "metadata.name") return std::string_view(node.name);
    return std::nullopt;
  };
  return text::matches(term.labels, label) && text::matches(term.fields, field);
}

bool any_term(const Inventory& inventory, const NodeInfo& node,
              const std::vector<model::NodeSelectorTerm>& terms) {
  return std::any_of(terms.begin(), terms.end(),
                     [&](const auto& term) { return term_matches(inventory, node, term); });
}

bool tolerated(const NodeRules& rules, const model::Taint& taint) {
  return std::any_of(rules.tolerations.begin(), rules.tolerations.end(),
                     [&](const auto& t) { return model::tolerates(t, taint); });
}

const model::Taint kCordon{"node.kubernetes.io/unschedulable", "", model::TaintEffect::kNoSchedule};

constexpr std::string_view kConditionTaints = "node.kubernetes.io/";

// but: keys of which it is true do not count.
bool taints_tolerated(const NodeInfo& node, const NodeRules& rules,
                      bool (*but)(std::string_view) = nullptr) {
  return std::all_of(node.taints.begin(), node.taints.end(), [&](const model::Taint& taint) {
    return taint.effect == model::TaintEffect::kPreferNoSchedule ||
           (but != nullptr && but(taint.key)) || tolerated(rules, taint);
  });
}

bool is_condition_taint(std::string_view key) { return key.starts_with(kConditionTaints); }

bool uniform(const Inventory& inventory, const model::NodeSelectorTerm& term) {
  return term.fields.empty() &&
         std::all_of(term.labels.begin(), term.labels.end(),
                     [&](const auto& r) { return inventory.in_class(r.key); });
}

// Every label the rules name has one value per class.
bool uniform(const Inventory& inventory, const NodeRules& rules) {
  auto all = [&](const auto& terms) {
    return std::all_of(terms.begin(), terms.end(),
                       [&](const auto& term) { return uniform(inventory, term); });
  };
  return std::all_of(rules.node_selector.begin(), rules.node_selector.end(),
                     [&](const auto& kv) { return inventory.in_class(kv.first); }) &&
         all(rules.required_nodes) &&
         std::all_of(rules.preferred_nodes.begin(), rules.preferred_nodes.end(),
                     [&](const auto& p) { return uniform(inventory, p.term); }) &&
         std::all_of(rules.volumes.begin(), rules.volumes.end(),
                     [&](const auto& v) { return all(v.node_terms); });
}

}  // namespace

bool is_notice_taint(std::string_view key) {
  return key == "aws-node-termination-handler/spot-itn" ||
         key == "cloud.google.com/impending-node-termination" || key == "berth.dev/interruption";
}

bool is_parting_taint(std::string_view key) {
  return is_notice_taint(key) || key == "ToBeDeletedByClusterAutoscaler" ||
         key == "karpenter.sh/disrupted" || key == "karpenter.sh/disruption";
}

bool is_passing_taint(std::string_view key) {
  return is_condition_taint(key) || key.starts_with("node.cloudprovider.kubernetes.io/") ||
         key.ends_with("/agent-not-ready") || key == "karpenter.sh/unregistered" ||
         is_parting_taint(key);
}

Blockers rule_blockers(const Inventory& inventory, const NodeInfo& node, const NodeRules& rules,
                       bool lasting) {
  Blockers out = 0;
  if (!lasting && !node.ready) out |= bit(Constraint::kNodeReady);
  if (!lasting && node.unschedulable && !tolerated(rules, kCordon)) {
    out |= bit(Constraint::kUnschedulable);
  }
  // The taints that come with a cordon or a lost node say the same thing once more.
  const auto but = lasting ? &is_passing_taint : out != 0 ? &is_condition_taint : nullptr;
  if (!taints_tolerated(node, rules, but)) {
    out |= bit(Constraint::kTaints);
  }
  for (const auto& [key, value] : rules.node_selector) {
    if (inventory.label(node, key) != std::optional<std::string_view>(value)) {
      out |= bit(Constraint::kNodeSelector);
    }
  }
  if (!rules.required_nodes.empty() && !any_term(inventory, node, rules.required_nodes)) {
    out |= bit(Constraint::kNodeAffinity);
  }
  for (const auto& volume : rules.volumes) {
    if (!volume.node_terms.empty() && !any_term(inventory, node, volume.node_terms)) {
      out |= bit(Constraint::kVolumes);
    }
  }
  if (rules.asks_gpu && !rules.gpu_models.empty() &&
      std::find(rules.gpu_models.begin(), rules.gpu_models.end(), node.gpu_model) ==
          rules.gpu_models.end()) {
    out |= bit(Constraint::kGpuModel);
  }
  if (rules.gpu_memory_mib > node.gpu_memory_mib) out |= bit(Constraint::kGpuMemory);
  return out;
}

std::int32_t rule_preference(const Inventory& inventory, const NodeInfo& node,
                             const NodeRules& rules) {
  std::int32_t sum = 0;
  for (const auto& p : rules.preferred_nodes) {
    if (term_matches(inventory, node, p.term)) sum += p.weight;
  }
  for (const auto& taint : node.taints) {
    if (taint.effect == model::TaintEffect::kPreferNoSchedule && !tolerated(rules, taint))
      sum -= 100;
  }
  return sum;
}

RuleResult RuleMemo::evaluate(const Inventory& inventory, const NodeRules& rules) const {
  std::size_t n = inventory.size();
  RuleResult out{.blockers = std::vector<Blockers>(n),
                 .allowed = model::NodeSet(n),
                 .affinity = model::NodeSet(n),
                 .tolerated = model::NodeSet(n),
                 .preference = std::vector<std::int32_t>(n)};
  bool by_class = uniform(inventory, rules);
  struct Ruling {
    Blockers blockers = 0;
    std::int32_t preference = 0;
    bool tolerated = false;
  };
  const auto rule_on = [&](const NodeInfo& node) {
    return Ruling{rule_blockers(inventory, node, rules), rule_preference(inventory, node, rules),
                  taints_tolerated(node, rules)};
  };
  std::vector<Ruling> classes;
  for (std::size_t c = 0; by_class && c < inventory.classes(); ++c) {
    classes.push_back(rule_on(inventory.node(inventory.class_first(c))));
  }
  bool preferences = false;
  constexpr Blockers kAffinity = bit(Constraint::kNodeSelector) | bit(Constraint::kNodeAffinity);
  for (std::size_t i = 0; i < n; ++i) {
    const Ruling of = by_class ? classes[inventory.class_of(i)] : rule_on(inventory.node(i));
    out.blockers[i] = of.blockers;
    out.preference[i] = of.preference;
    preferences |= of.preference != 0;
    if (of.blockers == 0) out.allowed.set(i);
    if ((of.blockers & kAffinity) == 0) out.affinity.set(i);
    if (of.tolerated) out.tolerated.set(i);
  }
  if (!preferences) out.preference.clear();
  return out;
}

const RuleResult& RuleMemo::get(const Inventory& inventory,
                                const std::shared_ptr<const NodeRules>& rules) {
  if (inventory.version() != inventory_version_) {
    entries_.clear();
    by_serial_.clear();
    inventory_version_ = inventory.version();
  }
  if (!entries_.empty() && entries_.front().serial == rules->serial) return entries_.front().result;
  if (auto it = by_serial_.find(rules->serial); it != by_serial_.end()) {
    entries_.splice(entries_.begin(), entries_, it->second);
    return it->second->result;
  }
  if (entries_.size() >= kMaxEntries) {
    by_serial_.erase(entries_.back().serial);
    entries_.pop_back();
  }
  entries_.push_front({rules->serial, evaluate(inventory, *rules)});
  by_serial_.emplace(rules->serial, entries_.begin());
  return entries_.front().result;
}

}  // namespace berth::schedule
