#include "decide/node_ground.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
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

NodeGround::NodeGround(const Setting& s)
    : builder_(s.builder),
      placer_(s.placer),
      book_(s.book),
      nodes_(s.nodes),
      topology_only_(s.topology_only) {
  for (const model::PodSpec& pod : s.pods) {
    input_pods_.emplace(pod.ns + '/' + pod.name, &pod);
    if (!pod.owner.empty() && !pod.node_name.empty()) {
      running_of_[pod.ns + '/' + pod.owner].push_back(&pod);
    }
  }
  for (const model::NodeSpec& node : nodes_) {
    const auto label = node.labels.find(model::kHostnameLabel);
    node_of_hostname_.emplace(label == node.labels.end() ? node.name : label->second, node.name);
  }
}

NodeGround::~NodeGround() = default;

// ---- topologies ----

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
      if (const auto it = input_pods_.find(name); it != input_pods_.end()) {
        takes = amounts_of(*it->second);
      }
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
  for (const model::NodeSpec& node : nodes_) {
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
  std::set<std::string> resources{kPodsResource};
  for (const auto& [id, known] : known_) {
    for (const auto& set : known.spec.pod_sets) {
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
  known.spec = spec;
  known.holds = holds;
  for (const auto& set : spec.pod_sets) {
    for (const auto& [resource, amount] : model::amounts_of(*set.pod)) {
      stale_ |= !std::binary_search(resources_.begin(), resources_.end(), resource);
    }
  }
  if (!holds) return;
  stale_ = true;
  for (const auto& set : spec.pod_sets) {
    for (const auto& admitted : spec.admission->pod_sets) {
      if (admitted.name != set.name || !admitted.topology || admitted.flavors.empty()) continue;
      for (const auto& [resource, flavor] : admitted.flavors) {
        const admit::FlavorId f = book_.find_flavor(flavor);
        if (f == admit::kNoId || book_.flavor(f).topology.empty()) continue;
        known.domains.push_back({f, *admitted.topology, model::amounts_of(*set.pod)});
        break;
      }
    }
  }
  if (!topology_only_) take_in_pods(known);
}

void NodeGround::forget(WorkloadId id) {
  known_.erase(id);
  refusals_.erase(id);
}

// Pods of a holder: those of the input, or, where its domains are nodes, one pod for each that
// must be there.
void NodeGround::take_in_pods(Known& known) {
  std::vector<model::PodSpec> pods;
  std::set<std::string> seen;
  const auto take = [&](const model::PodSpec& pod) {
    if (!pod.node_name.empty() && seen.insert(pod.name).second) pods.push_back(pod);
  };
  for (const auto& set : known.spec.pod_sets) {
    for (const auto& name : set.pods) {
      if (const auto it = input_pods_.find(name); it != input_pods_.end()) take(*it->second);
    }
  }
  if (!known.spec.owner.empty()) {
    const auto it = running_of_.find(known.spec.ns + '/' + known.spec.owner);
    if (it != running_of_.end()) {
      for (const model::PodSpec* pod : it->second) take(*pod);
    }
  }
  if (pods.empty()) {
    for (std::size_t s = 0; s < known.spec.pod_sets.size(); ++s) {
      for (const auto& admitted : known.spec.admission->pod_sets) {
        if (admitted.name != known.spec.pod_sets[s].name || !admitted.topology) continue;
        if (admitted.topology->levels.back() != model::kHostnameLabel) continue;
        const auto names = pod_names(known, s, admitted.count);
        std::size_t next = 0;
        for (const auto& domain : admitted.topology->domains) {
          const auto node = node_of_hostname_.find(domain.values.back());
          for (int k = 0; k < domain.count && next < names.size(); ++k, ++next) {
            if (node == node_of_hostname_.end()) continue;
            pods.push_back(*known.spec.pod_sets[s].pod);
            pods.back().ns = known.spec.ns;
            pods.back().name = names[next];
            pods.back().node_name = node->second;
          }
        }
      }
    }
  }
  known.pods.resize(1);
  for (model::PodSpec& pod : pods) {
    pod.queued = true;
    known.names.push_back(pod.ns + '/' + pod.name);
    known.pods[0].push_back(builder_.upsert_pod(pod));
    known.made = "held";
  }
}

// Where the builder put the pods of holders.
void NodeGround::find_holders() {
  const model::ClusterState& state = builder_.state();
  for (auto& [id, known] : known_) {
    if (!known.holds || known.made != "held") continue;
    known.held.pods.clear();
    for (const PodId pod : known.pods[0]) {
      const model::PodEntry& entry = state.pod(pod);
      if (entry.slot < 0) continue;
      known.held.pods.push_back({.id = pod,
                                 .evicted = false,
                                 .slot = static_cast<std::uint32_t>(entry.slot),
                                 .gpus = entry.gpus});
    }
  }
}

void NodeGround::recount() {
  BERTH_ASSERT(lent_.empty(), "between cycles");
  overlay_.reset();
  sets_.clear();
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
    out.push_back({trees_[*tree].flavor, *pod_sets[i].topology,
                   model::amounts_of(*known.spec.pod_sets[i].pod)});
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
    std::vector<schedule::TopologyPodSet> sets;
    for (const std::uint32_t i : unit) {
      const auto& set = known.spec.pod_sets[i];
      sets.push_back({.count = assignment.pod_sets[i].count,
                      .per_pod = amounts(model::amounts_of(*set.pod)),
                      .ask = set.topology,
                      .pod = set.pod.get(),
                      .tolerations = book_.flavor(trees_[*tree].flavor).tolerations});
    }
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
                                     known.spec.pod_sets[unit.front()].name, found.message);
      }
      return false;
    }
    for (std::size_t k = 0; k < unit.size(); ++k) {
      if (!empty) {
        charge_domains(*tree, found.assignments[k],
                       model::amounts_of(*known.spec.pod_sets[unit[k]].pod), site.charges);
      }
      assignment.pod_sets[unit[k]].topology = std::move(found.assignments[k]);
    }
  }
  return true;
}

// ---- trials ----

admit::Ground::Answer NodeGround::place(WorkloadId id, const admit::Workload& workload,
                                        Assignment& assignment, bool why) {
  if (stale_) recount();
  Known& known = known_.at(id);
  Answer answer;
  auto site = std::make_shared<Site>();
  answer.fits = place_topology(known, workload, assignment, false, why, *site, answer);
  if (answer.fits && !topology_only_) {
    answer.fits = place_pods(id, workload, assignment, *site, answer);
    if (!answer.fits && why) refuse_pods(id, workload, assignment, answer);
  }
  for (std::size_t i = site->charges.size(); i-- > 0;) charge(site->charges[i], false);
  if (answer.fits) {
    site->serial = known.serial;
    assignment.site = std::move(site);
    refusals_.erase(id);
  }
  return answer;
}

bool NodeGround::ever(WorkloadId id, const admit::Workload& workload, const Assignment& assignment,
                      Answer& answer) {
  if (stale_) recount();
  Known& known = known_.at(id);
  Site site;
  Assignment trial = assignment;
  if (!place_topology(known, workload, trial, true, true, site, answer)) return false;
  if (topology_only_) return true;
  if (!refusals_.contains(id)) {  // quota was short: the nodes were not asked yet
    Answer now = place(id, workload, trial, true);
    if (now.fits) return true;
  }
  const auto it = refusals_.find(id);
  if (it == refusals_.end() || it->second.verdict != model::Verdict::kNever) return true;
  answer.message = it->second.message;
  answer.never = true;
  return false;
}

void NodeGround::take_away(WorkloadId id) {
  Known& known = known_.at(id);
  if (stale_) recount();
  known.away = true;
  for (const Charge& c : known.held.charges) charge(c, false);
  if (!overlay_) return;
  for (const auto& step : known.held.pods) overlay_->unbind(step.id);
}

void NodeGround::bring_back(WorkloadId id) {
  Known& known = known_.at(id);
  known.away = false;
  for (const Charge& c : known.held.charges) charge(c, true);
  if (!overlay_) return;
  for (const auto& step : known.held.pods) overlay_->bind(step.id, step.slot, step.gpus);
}

// The builder's state, less those that are away, plus what was put for this cycle.
model::ClusterState& NodeGround::overlay() {
  if (overlay_) return *overlay_;
  overlay_.emplace(builder_.state());
  for (const auto& [id, known] : known_) {
    if (!known.away) continue;
    for (const auto& step : known.held.pods) overlay_->unbind(step.id);
  }
  for (const auto& [id, site] : lent_) {
    for (const auto& step : site.pods) overlay_->bind(step.id, step.slot, step.gpus);
  }
  return *overlay_;
}

const model::NodeSet& NodeGround::nodes_in(const std::vector<std::string>& levels,
                                           const std::vector<std::string>& values) {
  std::vector<std::string> key = levels;
  key.insert(key.end(), values.begin(), values.end());
  const auto [it, fresh] = sets_.try_emplace(std::move(key));
  if (!fresh) return it->second;
  const model::Inventory& inventory = builder_.state().inventory();
  it->second = model::NodeSet(inventory.size());
  for (const model::NodeSpec& node : nodes_) {
    bool inside = true;
    for (std::size_t l = 0; l < levels.size(); ++l) {
      const auto label = node.labels.find(levels[l]);
      inside &= label != node.labels.end() && label->second == values[l];
    }
    const auto slot = inside ? inventory.slot(node.name) : std::nullopt;
    if (slot) it->second.set(*slot);
  }
  return it->second;
}

bool NodeGround::place_in_domains(const std::vector<PodId>& pods,
                                  const model::TopologyAssignment& topology, Reservation& out) {
  std::size_t next = 0;
  for (const auto& domain : topology.domains) {
    const model::NodeSet& nodes = nodes_in(topology.levels, domain.values);
    for (int k = 0; k < domain.count; ++k, ++next) {
      const PodId pod = pods[next];
      const auto target = placer_.find(*overlay_, overlay_->pod(pod).shape, &nodes);
      if (!target) return false;
      out.bind(pod, *target);
    }
  }
  return true;
}

schedule::Workload NodeGround::rest_of(const Known& known, const admit::Workload& workload,
                                       const Assignment& assignment) const {
  schedule::Workload out{
      .name = workload.name, .priority = workload.priority(), .created_ns = workload.created_ns};
  for (std::size_t i = 0; i < known.pods.size(); ++i) {
    if (assignment.pod_sets[i].topology) continue;
    out.pending.insert(out.pending.end(), known.pods[i].begin(), known.pods[i].end());
  }
  schedule::sort_members(*overlay_, out.pending);
  out.min_pending = static_cast<int>(out.pending.size());
  if (out.pending.size() > 1) {
    model::GangSpec together;
    together.ns = known.spec.ns;
    together.name = known.spec.name;
    together.min_member = out.min_pending;
    out.terms = std::make_shared<const model::GangSpec>(std::move(together));
  }
  return out;
}

bool NodeGround::place_pods(WorkloadId id, const admit::Workload& workload,
                            const Assignment& assignment, Site& site, Answer& answer) {
  make_pods(id, assignment);
  const Known& known = known_.at(id);
  model::ClusterState& state = overlay();
  Reservation in_domains(state);
  for (std::size_t i = 0; i < known.pods.size(); ++i) {
    if (!assignment.pod_sets[i].topology) continue;
    if (!place_in_domains(known.pods[i], *assignment.pod_sets[i].topology, in_domains)) {
      answer.message = fmt::format(
          "the nodes of its topology domains cannot take the pods of pod set {}: devices, ports "
          "or rules between pods are in the way",
          known.spec.pod_sets[i].name);
      return false;
    }
  }
  const schedule::Workload rest = rest_of(known, workload, assignment);
  if (!rest.pending.empty()) {
    const schedule::Placed placed = schedule::place(placer_, state, rest);
    if (placed.pods.empty()) return false;
    site.pods = placed.pods;
    for (std::size_t i = placed.pods.size(); i-- > 0;) state.unbind(placed.pods[i].id);
  }
  const auto steps = in_domains.placed();
  site.pods.insert(site.pods.begin(), steps.begin(), steps.end());
  return true;
}

// The proof that the nodes cannot take it now, or ever.
void NodeGround::refuse_pods(WorkloadId id, const admit::Workload& workload,
                             const Assignment& assignment, Answer& answer) {
  const Known& known = known_.at(id);
  const schedule::Workload rest = rest_of(known, workload, assignment);
  model::Outcome no;
  if (rest.pending.empty()) {
    no.workload = workload.name;
    no.reason = model::Reason::kTopologyPlacementFailed;
    no.message = answer.message;
  } else {
    no = schedule::explain_no(placer_, *overlay_, rest, true);
  }
  no.pods = 0;
  for (const auto& pods : known.pods) no.pods += static_cast<int>(pods.size());
  answer.never = no.verdict == model::Verdict::kNever;
  answer.message = no.message;
  refusals_.insert_or_assign(id, std::move(no));
}

// ---- pods ----

std::vector<std::string> NodeGround::pod_names(const Known& known, std::size_t set,
                                               int count) const {
  const model::PodSetSpec& spec = known.spec.pod_sets[set];
  std::vector<std::string> out;
  for (const auto& name : spec.pods) {
    if (static_cast<int>(out.size()) < count) out.push_back(name.substr(name.find('/') + 1));
  }
  // A Job's pods are named after it; those of other workloads after the pod set too.
  const bool job = known.spec.owner.starts_with("Job/");
  const std::string stem = job ? known.spec.owner.substr(4) : known.spec.name + '-' + spec.name;
  for (int i = static_cast<int>(out.size()); i < count; ++i) {
    out.push_back(fmt::format("{}-{}", stem, i));
  }
  return out;
}

model::PodSpec NodeGround::pod_for(const Known& known, std::size_t set, const std::string& name,
                                   const Choice& choice) const {
  const auto existing = input_pods_.find(known.spec.ns + '/' + name);
  model::PodSpec pod =
      existing != input_pods_.end() ? *existing->second : *known.spec.pod_sets[set].pod;
  pod.ns = known.spec.ns;
  pod.name = name;
  if (pod.owner.empty()) pod.owner = known.spec.owner;
  pod.node_name.clear();
  pod.gpu_indices.clear();
  pod.queued = true;
  pod.gated = false;
  pod.gang.clear();
  pod.subgroup.clear();
  pod.created_ns = known.spec.created_ns;
  std::set<admit::FlavorId> flavors;
  for (const auto& [resource, flavor] : choice.flavors) flavors.insert(flavor);
  for (const admit::FlavorId f : flavors) {
    const model::FlavorSpec& flavor = book_.flavor(f);
    for (const auto& [key, value] : flavor.node_labels) pod.node_selector[key] = value;
    pod.tolerations.insert(pod.tolerations.end(), flavor.tolerations.begin(),
                           flavor.tolerations.end());
  }
  return pod;
}

void NodeGround::make_pods(WorkloadId id, const Assignment& assignment) {
  Known& known = known_.at(id);
  std::string key;
  for (const Choice& choice : assignment.pod_sets) {
    key += std::to_string(choice.count) + ':';
    for (const auto& [resource, flavor] : choice.flavors) key += std::to_string(flavor) + ',';
    key += ';';
  }
  if (known.made == key) return;
  drop_pods(known);
  known.made = key;
  known.serial = ++serial_;
  known.pods.assign(assignment.pod_sets.size(), {});
  for (std::size_t i = 0; i < known.pods.size(); ++i) {
    const Choice& choice = assignment.pod_sets[i];
    for (const std::string& name : pod_names(known, i, choice.count)) {
      const model::PodSpec pod = pod_for(known, i, name, choice);
      known.names.push_back(pod.ns + '/' + pod.name);
      known.pods[i].push_back(builder_.upsert_pod(pod));
    }
  }
  made_.insert(id);
  overlay_.reset();
}

void NodeGround::drop_pods(Known& known) {
  if (known.made.empty()) return;
  for (const auto& name : known.names) {
    builder_.remove_pod(name);
    const auto input = input_pods_.find(name);
    if (input == input_pods_.end()) continue;
    model::PodSpec pod = *input->second;  // waits for its workload
    pod.queued = true;
    pod.node_name.clear();
    pod.gpu_indices.clear();
    builder_.upsert_pod(pod);
  }
  known.names.clear();
  known.pods.clear();
  known.made.clear();
  overlay_.reset();
}

// ---- for good ----

void NodeGround::record(const Known& known) {
  const model::ClusterState& state = builder_.state();
  for (const auto& step : known.held.pods) {
    placements_.push_back({.pod = state.pod(step.id).info->name,
                           .node = state.info(step.slot).name,
                           .gpus = step.gpus.indices(),
                           .gpu_milli = step.gpus.unit,
                           .gang = known.spec.ns + '/' + known.spec.name});
  }
}

void NodeGround::put(WorkloadId id, const Assignment& assignment, bool for_good) {
  Known& known = known_.at(id);
  const auto* site = static_cast<const Site*>(assignment.site.get());
  BERTH_ASSERT(site != nullptr && site->serial == known.serial,
               "a site of the pods that are there");
  for (const Charge& c : site->charges) charge(c, true);
  if (!for_good) {
    lent_.emplace_back(id, *site);
    if (!topology_only_) {
      for (const auto& step : site->pods) overlay().bind(step.id, step.slot, step.gpus);
    }
    return;
  }
  known.held = *site;
  known.holds = true;
  known.domains = domains_of(known, assignment.pod_sets);
  made_.erase(id);
  for (const auto& step : site->pods) {
    builder_.bind(step.id, step.slot, step.gpus);
    if (overlay_) overlay_->bind(step.id, step.slot, step.gpus);
  }
  record(known);
}

void NodeGround::end_cycle() {
  for (const auto& [id, site] : lent_) {
    for (const Charge& c : site.charges) charge(c, false);
  }
  lent_.clear();
  for (const WorkloadId id : made_) drop_pods(known_.at(id));
  made_.clear();
  overlay_.reset();
}

void NodeGround::release(WorkloadId id) {
  Known& known = known_.at(id);
  for (const Charge& c : known.held.charges) charge(c, false);
  known.held = {};
  known.domains.clear();
  known.holds = false;
  drop_pods(known);
}

bool NodeGround::budgets_allow(WorkloadId id) {
  schedule::BudgetCount budgets(builder_.state());
  bool exceeded = false;
  for (const auto& step : known_.at(id).held.pods) {
    exceeded |= budgets.evict(*builder_.state().pod(step.id).shape);
  }
  return !exceeded;
}

const model::Outcome* NodeGround::refusal(WorkloadId id) const {
  const auto it = refusals_.find(id);
  return it == refusals_.end() ? nullptr : &it->second;
}

std::vector<model::Placement> NodeGround::take_placements() {
  return std::exchange(placements_, {});
}

std::vector<std::pair<std::string, std::string>> NodeGround::pods_of(WorkloadId id) {
  std::vector<std::pair<std::string, std::string>> out;
  const model::ClusterState& state = builder_.state();
  for (const auto& step : known_.at(id).held.pods) {
    out.emplace_back(state.pod(step.id).info->name, state.info(step.slot).name);
  }
  return out;
}

}  // namespace berth::decide
