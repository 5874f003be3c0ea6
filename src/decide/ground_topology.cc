// The topologies of the ground: trees, what holders take of them, failed nodes.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "decide/node_ground.h"
#include "model/amounts.h"

namespace berth::decide {

using admit::Assignment;
using admit::Choice;
using admit::WorkloadId;
using model::PodId;
using schedule::Reservation;
using schedule::TopologyTree;

namespace {

constexpr const char* kPodsResource = "pods";

bool labels_match(const model::Labels& wanted, const model::Labels& labels) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    const auto it = labels.find(label.first);
    return it != labels.end() && it->second == label.second;
  });
}

}  // namespace

std::vector<std::int64_t> NodeGround::amounts(const model::Amounts& from) const {
  std::vector<std::int64_t> out(resources_.size(), 0);
  for (std::size_t r = 0; r < resources_.size(); ++r) {
    const auto it = from.find(resources_[r]);
    if (it != from.end()) out[r] = it->second;
  }
  return out;
}

// What pods take on each node that no topology-aware workload counts.
std::map<std::string_view, std::vector<std::int64_t>> NodeGround::used_outside() {
  std::set<std::string_view> counted;  // pods of holders with domains
  for (const auto& [id, known] : known_) {
    if (!known.holds || known.domains.empty()) continue;
    for (const auto& name : known.names) counted.insert(name);
  }
  std::map<std::string_view, std::vector<std::int64_t>> used;
  const model::ClusterState& state = builder_.state();
  for (std::size_t slot = 0; slot < state.nodes(); ++slot) {
    auto& row = used[state.info(slot).name];
    row.assign(resources_.size(), 0);
    state.for_each_pod_on(slot, [&](PodId pod) {
      const std::string& name = state.pod(pod).info->name;
      if (counted.contains(name)) return;
      model::Amounts takes;
      if (const model::PodSpec* spec = index_.pod(name)) takes = amounts_of(*spec);
      takes[kPodsResource] = 1;
      const auto one = amounts(takes);
      for (std::size_t r = 0; r < one.size(); ++r) row[r] += one[r];
    });
  }
  return used;
}

NodeGround::Tree NodeGround::build_tree(
    admit::FlavorId flavor, const model::TopologySpec& topology,
    const std::map<std::string_view, std::vector<std::int64_t>>& used) const {
  Tree out{.flavor = flavor,
           .hostnames = topology.levels.back() == model::kHostnameLabel,
           .tree = std::make_unique<TopologyTree>(topology.name, topology.levels, resources_)};
  for (const model::NodeSpec* each : index_.nodes()) {
    const model::NodeSpec& node = *each;
    if (!node.ready || node.unschedulable ||
        !labels_match(book_.flavor(flavor).node_labels, node.labels)) {
      continue;
    }
    schedule::TopologyHost host;
    host.name = node.name;
    for (const auto& level : topology.levels) {
      const auto label = node.labels.find(level);
      if (label == node.labels.end()) break;
      host.values.push_back(label->second);
    }
    if (host.values.size() != topology.levels.size()) continue;
    host.free = amounts(amounts_of(node));
    if (const auto it = used.find(node.name); it != used.end()) {
      for (std::size_t r = 0; r < host.free.size(); ++r) host.free[r] -= it->second[r];
    }
    host.labels = node.labels;
    host.taints = node.taints;
    out.tree->add_host(std::move(host));
  }
  out.tree->seal();
  return out;
}

void NodeGround::build_trees() {
  trees_.clear();
  if (!has_topologies_) return;
  std::set<std::string> resources{kPodsResource};
  for (const auto& [id, known] : known_) {
    for (const auto& set : known.spec->pod_sets) {
      for (const auto& [resource, amount] : model::amounts_of(*set.pod)) resources.insert(resource);
    }
  }
  resources_.assign(resources.begin(), resources.end());
  std::optional<std::map<std::string_view, std::vector<std::int64_t>>> used;
  for (admit::FlavorId f = 0; f < book_.flavors().size(); ++f) {
    const model::TopologySpec* topology = book_.topology_of(f);
    if (topology == nullptr || book_.flavor(f).topology.empty()) continue;
    if (!used) used = used_outside();
    trees_.push_back(build_tree(f, *topology, *used));
  }
  for (auto& [id, known] : known_) {
    known.held.charges.clear();
    if (!known.holds) continue;
    for (const Domains& d : known.domains) {
      for (std::size_t t = 0; t < trees_.size(); ++t) {
        if (trees_[t].flavor != d.flavor) continue;
        charge_domains(t, d.assignment, d.per_pod, known.held.charges);
      }
    }
  }
}

// ---- holders ----

void NodeGround::know(WorkloadId id, const model::WorkloadSpec& spec, bool holds) {
  Known& known = known_[id];
  known.spec = &spec;
  known.holds = holds;
  for (const auto& set : spec.pod_sets) {
    if (!has_topologies_) break;
    for (const auto& [resource, amount] : model::amounts_of(*set.pod)) {
      stale_ |= !std::binary_search(resources_.begin(), resources_.end(), resource);
    }
  }
  if (!holds) return;
  for (const auto& admitted : spec.admission->pod_sets) {
    known.counts[admitted.name] = admitted.count;
  }
  for (const auto& set : spec.pod_sets) {
    for (const auto& admitted : spec.admission->pod_sets) {
      if (admitted.name != set.name || !admitted.topology || admitted.flavors.empty()) continue;
      for (const auto& [resource, flavor] : admitted.flavors) {
        const admit::FlavorId f = book_.find_flavor(flavor);
        if (f == admit::kNoId || book_.flavor(f).topology.empty()) continue;
        known.domains.push_back({set.name, f, *admitted.topology, model::amounts_of(*set.pod)});
        break;
      }
    }
  }
  known.plain = marked_ && !topology_only_ && spec.admitted && spec.seats.empty() &&
                std::none_of(spec.admission->pod_sets.begin(), spec.admission->pod_sets.end(),
                             [](const auto& admitted) { return admitted.topology.has_value(); });
  stale_ = stale_ || has_topologies_ || !known.plain;
  known.unseen = known.plain;
  if (!known.plain) seen_.insert(id);
  if (!topology_only_ && !known.unseen && !looks_later_) take_in_pods(known);
}

void NodeGround::begin(bool nodes_changed) {
  BERTH_ASSERT(lent_.empty(), "between decisions");
  overlay_.reset();
  placements_.clear();
  has_.clear();
  if (nodes_changed) {
    sets_.clear();
    fits_empty_.clear();
  }
  seen_.insert(made_.begin(), made_.end());  // pods of the state before
  made_.clear();
  for (auto it = seen_.begin(); it != seen_.end();) {
    const auto found = known_.find(*it);
    const bool looks = found != known_.end() && found->second.holds && !found->second.plain;
    if (found != known_.end()) {
      Known& known = found->second;
      known.pods.clear();
      known.names.clear();
      known.made.clear();
      known.seated.clear();
      known.held.pods.clear();
      known.unseen = known.plain && known.holds;
    }
    it = looks ? std::next(it) : seen_.erase(it);
  }
  looks_later_ = true;
}

void NodeGround::look(std::span<const WorkloadId> in_order) {
  looks_later_ = false;
  stale_ = stale_ || has_topologies_ || !seen_.empty();
  if (seen_.empty() || topology_only_) return;
  for (const WorkloadId id : in_order) {
    if (!seen_.contains(id)) continue;
    Known& known = known_.at(id);
    if (known.holds && !known.plain) take_in_pods(known);
  }
}

void NodeGround::forget(WorkloadId id) {
  const auto it = known_.find(id);
  if (it != known_.end()) {
    give_up(it->second, it->second.names);
    give_up(it->second, it->second.inherited_names);
    known_.erase(it);
  }
  seen_.erase(id);
  made_.erase(id);
  refusals_.erase(id);
}

// Where the builder put the pods of holders.
void NodeGround::find_holders() {
  for (const WorkloadId id : seen_) {
    const auto found = known_.find(id);
    if (found == known_.end()) continue;
    if (found->second.holds && found->second.made == "held") locate(found->second);
  }
}

void NodeGround::locate(Known& known) {
  const model::ClusterState& state = builder_.state();
  known.held.pods.clear();
  for (const PodId pod : known.pods[0]) {
    const model::PodEntry& entry = state.pod(pod);
    if (entry.slot < 0) continue;
    known.held.pods.push_back({.id = pod,
                               .evicted = false,
                               .slot = static_cast<std::uint32_t>(entry.slot),
                               .gpus = entry.gpus});
  }
  for (const auto& name : known.seated) {
    const auto pod = builder_.find_pod(name);
    if (!pod || state.pod(*pod).slot < 0) continue;
    const auto step = std::find_if(known.held.pods.begin(), known.held.pods.end(),
                                   [&](const auto& s) { return s.id == *pod; });
    if (step != known.held.pods.end()) record(known, {&*step, 1});
  }
  known.seated.clear();
}

NodeGround::Known& NodeGround::seen(WorkloadId id) {
  Known& known = known_.at(id);
  if (!std::exchange(known.unseen, false)) return known;
  seen_.insert(id);
  take_in_pods(known);
  locate(known);
  return known;
}

void NodeGround::recount() {
  BERTH_ASSERT(lent_.empty(), "between cycles");
  overlay_.reset();
  find_holders();
  build_trees();
  stale_ = false;
}

// ---- charges ----

void NodeGround::charge(const Charge& c, bool add) {
  if (add) {
    trees_[c.tree].tree->add(c.leaf, c.count, *c.per_pod);
  } else {
    trees_[c.tree].tree->take(c.leaf, c.count, *c.per_pod);
  }
}

// On its own tree, and on every other that has the same nodes.
void NodeGround::charge_domains(std::size_t tree, const model::TopologyAssignment& assignment,
                                const model::Amounts& per_pod, std::vector<Charge>& out) {
  const auto row = std::make_shared<const std::vector<std::int64_t>>(amounts(per_pod));
  for (const auto& domain : assignment.domains) {
    for (std::size_t t = 0; t < trees_.size(); ++t) {
      if (t != tree && !(trees_[t].hostnames && trees_[tree].hostnames)) continue;
      const auto leaf = trees_[t].tree->leaf(domain.values);
      if (leaf == TopologyTree::kNoLeaf) continue;
      out.push_back({t, leaf, domain.count, row});
      charge(out.back(), true);
    }
  }
}

std::vector<NodeGround::Domains> NodeGround::domains_of(const Known& known,
                                                        const std::vector<Choice>& pod_sets) const {
  std::vector<Domains> out;
  for (std::size_t i = 0; i < pod_sets.size(); ++i) {
    const auto tree = tree_of(pod_sets[i]);
    if (!tree || !pod_sets[i].topology) continue;
    out.push_back({known.spec->pod_sets[i].name, trees_[*tree].flavor, *pod_sets[i].topology,
                   model::amounts_of(*known.spec->pod_sets[i].pod)});
  }
  return out;
}

std::optional<std::size_t> NodeGround::tree_of(const Choice& choice) const {
  for (const auto& [resource, flavor] : choice.flavors) {
    for (std::size_t t = 0; t < trees_.size(); ++t) {
      if (trees_[t].flavor == flavor) return t;
    }
  }
  return std::nullopt;
}

// Later units see what earlier ones took; the charges stand until the caller takes them back.
bool NodeGround::place_topology(const Known& known, const admit::Workload& workload,
                                Assignment& assignment, bool empty, bool why, Site& site,
                                Answer& answer) {
  const auto& config = book_.config();
  for (const auto& unit : workload.form->units) {
    const auto tree = tree_of(assignment.pod_sets[unit.front()]);
    if (!tree) continue;
    const auto has_domains = [&](std::uint32_t i) {
      return assignment.pod_sets[i].topology.has_value();
    };
    if (known.holds && !empty && std::all_of(unit.begin(), unit.end(), has_domains)) {
      for (const std::uint32_t i : unit) {
        charge_domains(*tree, *assignment.pod_sets[i].topology,
                       model::amounts_of(*known.spec->pod_sets[i].pod), site.charges);
      }
      continue;
    }
    std::vector<schedule::TopologyPodSet> sets;
    std::vector<std::uint32_t> placed;  // a slice may ask for no more pods of some set
    for (const std::uint32_t i : unit) {
      const auto& set = known.spec->pod_sets[i];
      assignment.pod_sets[i].topology.reset();
      if (assignment.pod_sets[i].count == 0) continue;
      placed.push_back(i);
      sets.push_back({.count = assignment.pod_sets[i].count,
                      .per_pod = amounts(model::amounts_of(*set.pod)),
                      .ask = set.topology,
                      .pod = set.pod.get(),
                      .tolerations = book_.flavor(trees_[*tree].flavor).tolerations});
    }
    if (sets.empty()) continue;
    schedule::TopologyAnswer found =
        trees_[*tree].tree->place(sets, {.empty = empty,
                                         .balanced = config.gate("TASBalancedPlacement", false),
                                         .mixed = config.gate("TASProfileMixed", true),
                                         .explain = why});
    if (!found.ok) {
      answer.topology = true;
      answer.never = found.invalid;
      if (why) {
        answer.message = fmt::format("couldn't assign flavors to pod set {}: {}",
                                     known.spec->pod_sets[unit.front()].name, found.message);
      }
      return false;
    }
    for (std::size_t k = 0; k < placed.size(); ++k) {
      if (!empty) {
        charge_domains(*tree, found.assignments[k],
                       model::amounts_of(*known.spec->pod_sets[placed[k]].pod), site.charges);
      }
      assignment.pod_sets[placed[k]].topology = std::move(found.assignments[k]);
    }
  }
  return true;
}

std::string NodeGround::replace(WorkloadId id, const std::string& node,
                                std::vector<model::PodSetAdmission>& pod_sets) {
  if (stale_) recount();
  Known& known = seen(id);
  for (const Charge& c : known.held.charges) charge(c, false);
  std::string why = "its domains are not nodes";
  for (std::size_t d = 0, at = 0; at < pod_sets.size(); ++at) {
    model::PodSetAdmission& set = pod_sets[at];
    if (!set.topology || d >= known.domains.size()) continue;
    Domains& held = known.domains[d++];
    const auto spec = std::find_if(known.spec->pod_sets.begin(), known.spec->pod_sets.end(),
                                   [&](const auto& s) { return s.name == set.name; });
    if (spec == known.spec->pod_sets.end()) continue;
    for (std::size_t t = 0; t < trees_.size(); ++t) {
      if (trees_[t].flavor != held.flavor || !trees_[t].hostnames) continue;
      model::TopologyAssignment rest = held.assignment;
      std::erase_if(rest.domains, [&](const auto& dom) { return dom.values.back() == node; });
      if (rest == held.assignment) {
        why.clear();
        continue;  // nothing of this set was there
      }
      std::vector<Charge> kept;
      charge_domains(t, rest, held.per_pod, kept);
      const schedule::TopologyAnswer found =
          trees_[t].tree->replace({.count = set.count,
                                   .per_pod = amounts(held.per_pod),
                                   .ask = spec->topology,
                                   .pod = spec->pod.get(),
                                   .tolerations = book_.flavor(held.flavor).tolerations},
                                  held.assignment, node, {});
      for (std::size_t i = kept.size(); i-- > 0;) charge(kept[i], false);
      why = found.ok ? "" : found.message;
      if (!found.ok) break;
      held.assignment = found.assignments.front();
      set.topology = held.assignment;
    }
    if (!why.empty()) break;
  }
  known.held.charges.clear();
  for (const Domains& held : known.domains) {
    for (std::size_t t = 0; t < trees_.size(); ++t) {
      if (trees_[t].flavor == held.flavor) {
        charge_domains(t, held.assignment, held.per_pod, known.held.charges);
      }
    }
  }
  return why;
}

}  // namespace berth::decide
