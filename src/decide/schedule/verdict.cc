// Why a workload waits: verdict, reason, certificate (docs/placement.md, "Verdicts").
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "decide/schedule/walk.h"
#include "model/fit.h"
#include "text/quantity.h"

namespace berth::schedule {

using model::Certificate;
using model::ClusterState;
using model::Constraint;
using model::PodId;
using model::Reason;
using model::Verdict;

namespace {

constexpr Blockers capacity_mask() {
  Blockers out = 0;
  for (int c = static_cast<int>(Constraint::kCpu); c <= static_cast<int>(Constraint::kNumaPolicy);
       ++c) {
    out |= Blockers{1} << c;
  }
  return out;
}
constexpr Blockers kCapacity = capacity_mask();

bool is_capacity(Constraint c) { return (bit(c) & kCapacity) != 0; }

Constraint binding_of(const Certificate& c) {
  auto largest = [](const auto& counts) {
    return static_cast<int>(std::max_element(counts.begin(), counts.end()) - counts.begin());
  };
  int by_only = largest(c.only);
  if (c.only[static_cast<std::size_t>(by_only)] > 0) return static_cast<Constraint>(by_only);
  int by_removed = largest(c.removed);
  return c.removed[static_cast<std::size_t>(by_removed)] > 0 ? static_cast<Constraint>(by_removed)
                                                             : Constraint::kCount;
}

void count_blockers(const std::vector<Blockers>& blockers, Certificate& out) {
  out.nodes = static_cast<int>(blockers.size());
  for (Blockers b : blockers) {
    if (b == 0) ++out.fitting_nodes;
    for (int c = 0; c < model::kConstraints; ++c) {
      if ((b >> c & 1) == 0) continue;
      ++out.removed[static_cast<std::size_t>(c)];
      if (b == Blockers{1} << c) ++out.only[static_cast<std::size_t>(c)];
    }
  }
  out.binding = binding_of(out);
}

// A node as it would be with no pod on it, up and with every device healthy.
struct EmptyNode {
  EmptyNode(const model::NodeInfo& info, const model::Demand& demand)
      : state(model::empty_state(info)), node(&info) {
    if (info.usable == info.devices && info.mig_usable == info.mig) return;
    int slots = info.extended_column(demand.mig), lost = info.extended_column(demand.mig_unusable);
    if (demand.kind == model::GpuDemandSpec::Kind::kMig && slots >= 0 && lost >= 0) {
      state.extended[static_cast<std::size_t>(slots)] +=
          std::exchange(state.extended[static_cast<std::size_t>(lost)], 0);
    }
    repaired = info;
    repaired.usable = info.devices;
    repaired.mig_usable = info.mig;
    node = &repaired;
  }
  EmptyNode(const EmptyNode&) = delete;
  EmptyNode& operator=(const EmptyNode&) = delete;

  model::NodeInfo repaired;
  model::NodeState state;
  const model::NodeInfo* node;
};

// What keeps the shape off the node for ever: rules that time does not heal, and sheer size.
Blockers lasting_blockers(const ClusterState& state, const model::Shape& shape, std::size_t slot) {
  const model::NodeInfo& info = state.info(slot);
  EmptyNode empty(info, *shape.demand);
  return rule_blockers(state.inventory(), info, *shape.rules, true) |
         capacity_blockers(*empty.node, empty.state, *shape.demand);
}

int copies_on_empty(const ClusterState& state, const model::Shape& shape, std::size_t slot) {
  const model::NodeInfo& info = state.info(slot);
  if (rule_blockers(state.inventory(), info, *shape.rules, true) != 0) return 0;
  EmptyNode empty(info, *shape.demand);
  return model::fit_count(*empty.node, empty.state, *shape.demand, INT32_MAX);
}

bool could_ever_fit(const ClusterState& state, const model::Shape& shape) {
  for (std::size_t i = 0; i < state.nodes(); ++i) {
    if (lasting_blockers(state, shape, i) == 0) return true;
  }
  return false;
}

// Copies of the shape that fit the empty cluster, in its best domain of the key; looks no further
// once they are enough.
std::int64_t best_empty_room(const ClusterState& state, const model::Shape& shape, int key,
                             std::int64_t enough = INT64_MAX) {
  const model::Domains* domains = key < 0 ? nullptr : &state.inventory().domains(key);
  std::vector<std::int64_t> rooms(domains == nullptr ? 1 : domains->values.size());
  for (std::size_t i = 0; i < state.nodes(); ++i) {
    std::int32_t d = domains == nullptr ? 0 : domains->of[i];
    if (d < 0) continue;
    std::int64_t& room = rooms[static_cast<std::size_t>(d)];
    room += copies_on_empty(state, shape, i);
    if (room >= enough) return room;
  }
  return rooms.empty() ? 0 : *std::max_element(rooms.begin(), rooms.end());
}

int required_key(const ClusterState& state, const Workload& workload) {
  if (gang_of(state, workload) == nullptr) return -1;
  const auto& label = gang_of(state, workload)->required_topology;
  return label.empty() ? -1 : state.inventory().topology_key(label);
}

bool equal_terms(const auto& a, const auto& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.counter == y.counter && x.key == y.key;
  });
}

// Members that no rule tells apart: the same demands and the same questions about nodes and pods.
bool interchangeable(const ClusterState& state, const Workload& workload) {
  const model::PodEntry& first = state.pod(workload.pending.front());
  const model::Shape& a = *first.shape;
  return std::all_of(workload.pending.begin(), workload.pending.end(), [&](PodId id) {
    const model::Shape& b = *state.pod(id).shape;
    if (&a == &b) return first.info->subgroup == state.pod(id).info->subgroup;
    return first.info->subgroup == state.pod(id).info->subgroup && a.demand == b.demand &&
           a.rules == b.rules && equal_terms(a.affinity, b.affinity) &&
           equal_terms(a.anti_affinity, b.anti_affinity) &&
           equal_terms(a.hard_spread, b.hard_spread) && equal_terms(a.soft_spread, b.soft_spread) &&
           a.host_ports == b.host_ports;
  });
}

// Pods that run, or other members, may rule nodes out for the shape.
bool between_pods(const ClusterState& state, const model::Shape& shape) {
  if (!shape.affinity.empty() || !shape.anti_affinity.empty() || !shape.hard_spread.empty() ||
      !shape.host_ports.empty()) {
    return true;
  }
  bool barred = false;
  state.for_each_bar(shape, [&](const model::Counter&) { barred = true; });
  return barred;
}

bool own_topologies(const model::GangSpec& gang) {
  return std::any_of(gang.subgroups.begin(), gang.subgroups.end(), [](const auto& sub) {
    return !sub.required_topology.empty() || !sub.preferred_topology.empty();
  });
}

// Members for which pred(shape) holds; asked once per shape.
template <class Pred>
int count_members(const ClusterState& state, const Workload& workload, Pred&& pred) {
  std::map<const model::Shape*, bool> known;
  int count = 0;
  for (PodId id : workload.pending) {
    const auto& shape = state.pod(id).shape;
    auto it = known.find(shape);
    if (it == known.end()) it = known.emplace(shape, pred(shape)).first;
    count += it->second ? 1 : 0;
  }
  return count;
}

// Room for the first member in the domains of the required level, or in the cluster; where members
// run, only their domains are open.
std::vector<DomainRoom> open_rooms(Placer& placer, const ClusterState& state,
                                   const Workload& workload) {
  int key = required_key(state, workload);
  auto rooms = domain_rooms(placer, state, state.pod(workload.pending.front()).shape, key, nullptr);
  if (key < 0) return rooms;
  std::set<std::int32_t> inhabited;
  for (PodId id : workload.running) {
    if (state.pod(id).slot < 0) continue;
    auto slot = static_cast<std::size_t>(state.pod(id).slot);
    if (auto d = state.inventory().domains(key).of[slot]; d >= 0) inhabited.insert(d);
  }
  std::erase_if(rooms, [&](const DomainRoom& room) {
    return !inhabited.empty() && !inhabited.contains(room.domain);
  });
  return rooms;
}

bool exact_no(Placer& placer, const ClusterState& state, const Workload& workload) {
  if (gang_of(state, workload) == nullptr) return true;
  const auto& first = state.pod(workload.pending.front()).shape;
  if (interchangeable(state, workload)) {
    if (!between_pods(state, *first) && !own_topologies(*gang_of(state, workload))) return true;
    std::int64_t most = 0;
    for (const auto& room : open_rooms(placer, state, workload)) {
      most = std::max<std::int64_t>(most, room.fits);
    }
    if (most < workload.min_pending) return true;
  }
  constexpr Blockers kLoose = bit(Constraint::kPodAffinity) | bit(Constraint::kTopologySpread);
  return count_members(state, workload, [&](const auto& shape) {
           auto blockers = placer.blockers(state, shape);
           return std::any_of(blockers.begin(), blockers.end(),
                              [](Blockers b) { return (b & ~kLoose) == 0; });
         }) < workload.min_pending;
}

std::string cores(std::int64_t milli) { return text::Quantity::from_milli(milli).to_string(); }
std::string bytes(std::int64_t count) {
  return text::Quantity::from_units(count, text::Format::kBinarySI).to_string();
}

std::string describe(const ClusterState& state, const model::Demand& d) {
  using Kind = model::GpuDemandSpec::Kind;
  switch (d.kind) {
    case Kind::kNone:
      return fmt::format("{} cpu and {} of memory", cores(d.cpu), bytes(d.memory));
    case Kind::kWhole:
      return fmt::format("{} GPU{}", d.count, d.count == 1 ? "" : "s");
    case Kind::kFraction:
      return fmt::format("{} x {} milli-GPU", d.count, d.milli);
    case Kind::kMemory:
      return fmt::format("{} x {} MiB of GPU memory", d.count, d.memory_mib);
    case Kind::kShared:
      return fmt::format("{} GPU share{}", d.count, d.count == 1 ? "" : "s");
    case Kind::kMig:
      return fmt::format("{} x {}", d.count, state.inventory().strings().text(d.mig));
  }
  return "";
}

std::string gpus(int milli) {
  return milli % model::kMilliPerGpu == 0 ? std::to_string(milli / model::kMilliPerGpu)
                                          : fmt::format("{:.2f}", milli / 1000.0);
}

std::string pods(int count) { return fmt::format("{} pod{}", count, count == 1 ? "" : "s"); }

// The parts of the demand that no node has, even empty: "64 cpu (the largest node has 32)".
std::string too_large(const ClusterState& state, const model::Shape& shape) {
  const model::Demand& d = *shape.demand;
  std::int64_t cpu = 0, memory = 0, ephemeral = 0;
  int devices = 0;
  bool gpus_somewhere = !d.asks_gpu();
  std::map<SymbolId, std::int64_t> extended;
  for (std::size_t i = 0; i < state.nodes(); ++i) {
    const model::NodeInfo& info = state.info(i);
    if (rule_blockers(state.inventory(), info, *shape.rules, true) != 0) continue;
    cpu = std::max(cpu, info.cpu);
    memory = std::max(memory, info.memory);
    ephemeral = std::max(ephemeral, info.ephemeral);
    devices =
        std::max(devices, std::popcount(static_cast<unsigned>(info.devices)) * info.shares_per_gpu);
    gpus_somewhere |= (lasting_blockers(state, shape, i) & bit(Constraint::kGpus)) == 0;
    for (const auto& [resource, amount] : info.extended) {
      extended[resource] = std::max(extended[resource], amount);
    }
  }
  std::vector<std::string> parts;
  auto add = [&](const std::string& asked, std::int64_t most, const std::string& shown) {
    parts.push_back(asked +
                    (most > 0 ? " (the largest node has " + shown + ")" : " (no node has any)"));
  };
  if (!gpus_somewhere) add(describe(state, d), devices, std::to_string(devices));
  if (d.cpu > cpu) add(cores(d.cpu) + " cpu", cpu, cores(cpu));
  if (d.memory > memory) add(bytes(d.memory) + " of memory", memory, bytes(memory));
  if (d.ephemeral > ephemeral) {
    add(bytes(d.ephemeral) + " of ephemeral storage", ephemeral, bytes(ephemeral));
  }
  for (const auto& [resource, amount] : d.extended) {
    if (amount <= extended[resource]) continue;
    const std::string name(state.inventory().strings().text(resource));
    const auto shown = [&name](std::int64_t of_it) {
      return name.starts_with("hugepages-") ? bytes(of_it) : std::to_string(of_it);
    };
    add(shown(amount) + ' ' + name, extended[resource], shown(extended[resource]));
  }
  if (parts.empty()) {
    return fmt::format(
        "needs {} with {} cpu and {} of memory on one node; no node has all of it, even empty",
        describe(state, d), cores(d.cpu), bytes(d.memory));
  }
  return fmt::format("needs {} on one node", fmt::join(parts, " and "));
}

std::string never_message(const ClusterState& state, const Workload& workload,
                          const model::Shape& shape, const Certificate& c) {
  if (gang_of(state, workload) == nullptr) return too_large(state, shape);
  for (PodId id : workload.pending) {
    const model::Shape& member = *state.pod(id).shape;
    if (!could_ever_fit(state, member)) {
      return fmt::format("its pod {} {}", state.pod(id).info->name, too_large(state, member));
    }
  }
  const std::string& label = gang_of(state, workload)->required_topology;
  int key = required_key(state, workload);
  if (key >= 0 && state.inventory().domains(key).values.empty()) {
    return fmt::format("must be in one domain of {}, and no node has that label", label);
  }
  std::string room = fmt::format(
      "{} has room for {}", key < 0 ? "the empty cluster" : "the best empty domain of " + label,
      best_empty_room(state, shape, key));
  return interchangeable(state, workload)
             ? fmt::format("needs {} x {} at once; {}", pods(c.needed_pods),
                           describe(state, *shape.demand), room)
             : fmt::format("needs {} at once; not so many fit even the empty cluster",
                           pods(c.needed_pods));
}

std::string message_of(const ClusterState& state, const Workload& workload,
                       const model::Shape& shape, const model::Outcome& o) {
  const Certificate& c = o.certificate;
  std::string need = describe(state, *shape.demand);
  std::string members = pods(c.needed_pods);
  if (o.gang && interchangeable(state, workload)) members += " x " + need;
  auto best = c.domains.empty() ? 0 : c.domains.front().fits;
  switch (o.reason) {
    case Reason::kNoNodes:
      return "the cluster has no nodes";
    case Reason::kFragmented:
      return fmt::format("needs {} on one node; {} are free in total, at most {} on a node", need,
                         gpus(c.free_gpu_milli), gpus(c.largest_free_milli));
    case Reason::kNeverFits:
      return never_message(state, workload, shape, c);
    case Reason::kGangDoesNotFit:
      return fmt::format("needs {} at once; {} now", members,
                         best == 1 ? "1 fits" : fmt::format("{} fit", best));
    case Reason::kTopologyDomainTooSmall:
      return fmt::format("needs {} in one domain of {}; the best has room for {}", members,
                         gang_of(state, workload)->required_topology, best);
    case Reason::kInsufficientGpus:
      return fmt::format("needs {} on one node; {} free on {} node{} that would do otherwise", need,
                         gpus(c.free_gpu_milli),
                         c.only[static_cast<std::size_t>(Constraint::kGpus)],
                         c.only[static_cast<std::size_t>(Constraint::kGpus)] == 1 ? "" : "s");
    default:
      break;
  }
  if (c.binding == Constraint::kCount) return "";
  auto b = static_cast<std::size_t>(c.binding);
  if (c.only[b] == c.removed[b]) {
    return fmt::format("{} of {} nodes: {}", c.removed[b], c.nodes, sentence(c.binding));
  }
  return fmt::format("{} of {} nodes: {} ({} for no other reason)", c.removed[b], c.nodes,
                     sentence(c.binding), c.only[b]);
}

// How many members fit each domain of the required level, or the cluster.
void add_domains(Placer& placer, const ClusterState& state, const Workload& workload,
                 Certificate& out) {
  int key = required_key(state, workload);
  const auto& first = state.pod(workload.pending.front()).shape;
  auto rooms = open_rooms(placer, state, workload);
  int all = static_cast<int>(workload.pending.size());
  if (interchangeable(state, workload) && !between_pods(state, *first) &&
      !own_topologies(*gang_of(state, workload))) {
    for (auto& room : rooms) room.fits = std::min(room.fits, all);
  } else {
    ClusterState trial = state;
    for (auto& room : rooms) {
      Reservation reservation(trial);
      Walk walk(placer, trial, workload, reservation, {});
      model::NodeSet nodes;
      if (key >= 0) nodes = domain_nodes(state, key, room.domain, nullptr);
      room.fits = walk.most_in(key < 0 ? nullptr : &nodes);
    }
  }
  std::sort(rooms.begin(), rooms.end(), [](const DomainRoom& a, const DomainRoom& b) {
    return a.fits != b.fits ? a.fits > b.fits : a.domain < b.domain;
  });
  out.domains_total = static_cast<int>(rooms.size());
  for (const auto& room : rooms) {
    if (out.domains.size() >= Certificate::kMaxDomains) break;
    auto domain = static_cast<std::size_t>(room.domain);
    out.domains.push_back(
        {key < 0 ? "cluster" : std::string(state.inventory().domains(key).values[domain]),
         room.fits});
  }
}

// The free GPUs of nodes that would do otherwise; true when together they would serve the demand.
bool add_free_gpus(const ClusterState& state, const model::Shape& shape,
                   const std::vector<Blockers>& blockers, Certificate& out) {
  const model::Demand& demand = *shape.demand;
  std::int64_t slots = 0;
  int smallest = 0;
  for (std::size_t i = 0; i < blockers.size(); ++i) {
    const model::NodeInfo& info = state.info(i);
    if ((blockers[i] & ~kCapacity) != 0 || !demand.asks_gpu() || info.gpus.empty()) continue;
    if (int column = info.extended_column(demand.mig);
        demand.kind == model::GpuDemandSpec::Kind::kMig && column >= 0) {
      slots += std::max<std::int64_t>(state.node(i).extended[static_cast<std::size_t>(column)], 0);
    }
    int unit = model::device_milli(info, demand);
    if (unit <= 0) continue;
    smallest = smallest == 0 ? unit : std::min(smallest, unit);
    int free = model::free_milli(state.node(i), info.usable);
    out.free_gpu_milli += free;
    out.largest_free_milli = std::max(out.largest_free_milli, free);
  }
  if (demand.kind == model::GpuDemandSpec::Kind::kMig) return slots >= demand.count;
  return smallest > 0 && out.free_gpu_milli >= demand.count * smallest;
}

// The member whose blockers are shown: the first that fits no node by itself, else the first.
model::ShapeRef shown_member(Placer& placer, const ClusterState& state, const Workload& workload) {
  model::ShapeRef last = nullptr;
  for (PodId id : workload.pending) {
    const auto& shape = state.pod(id).shape;
    if (shape == last) continue;
    last = shape;
    if (!placer.find(state, shape)) return shape;
  }
  return state.pod(workload.pending.front()).shape;
}

bool fits_without_topology(Placer& placer, const ClusterState& state, const Workload& workload,
                           bool all) {
  const model::GangSpec& gang = *gang_of(state, workload);
  if (gang.required_topology.empty() &&
      std::all_of(gang.subgroups.begin(), gang.subgroups.end(),
                  [](const auto& sub) { return sub.required_topology.empty(); })) {
    return false;
  }
  ClusterState trial = state;
  Workload free = workload;
  free.ignore_topology = true;
  auto placed = place(placer, trial, free).pods.size();
  return placed > 0 && (!all || placed == workload.pending.size());
}

Reason reason_to_wait(Placer& placer, const ClusterState& state, const Workload& workload,
                      const Certificate& proof, bool enough_in_total, bool partial) {
  if (gang_of(state, workload) != nullptr && count_members(state, workload, [&](const auto& shape) {
                                               return placer.find(state, shape).has_value();
                                             }) > 0) {
    return fits_without_topology(placer, state, workload, partial) ? Reason::kTopologyDomainTooSmall
                                                                   : Reason::kGangDoesNotFit;
  }
  if (proof.binding == Constraint::kGpus && enough_in_total) return Reason::kFragmented;
  return model::reason_of(proof.binding);
}

Reason reason_for_never(const ClusterState& state, const Workload& workload) {
  const model::Shape* shape = state.pod(workload.pending.front()).shape;
  for (PodId id : workload.pending) {
    const model::Shape& each = *state.pod(id).shape;
    if (!could_ever_fit(state, each)) {
      shape = &each;
      break;
    }
  }
  std::vector<Blockers> blockers(state.nodes());
  for (std::size_t i = 0; i < blockers.size(); ++i)
    blockers[i] = lasting_blockers(state, *shape, i);
  Certificate empty;
  count_blockers(blockers, empty);
  return empty.fitting_nodes > 0 || is_capacity(empty.binding) ? Reason::kNeverFits
                                                               : model::reason_of(empty.binding);
}

}  // namespace

bool never_fits(const ClusterState& state, const Workload& workload) {
  const auto& first = *state.pod(workload.pending.front()).shape;
  if (gang_of(state, workload) == nullptr) return !could_ever_fit(state, first);
  if (interchangeable(state, workload)) {
    return best_empty_room(state, first, required_key(state, workload), workload.min_pending) <
           workload.min_pending;
  }
  return count_members(state, workload, [&](const auto& shape) {
           return could_ever_fit(state, *shape);
         }) < workload.min_pending;
}

model::Outcome explain_no(Placer& placer, const ClusterState& state, const Workload& workload,
                          bool certificate, std::optional<PodId> unplaced) {
  model::Outcome out{.workload = workload.name,
                     .gang = gang_of(state, workload) != nullptr,
                     .pods = static_cast<int>(workload.pending.size()) + workload.gated};
  Certificate& proof = out.certificate;
  auto shape = unplaced ? state.pod(*unplaced).shape : shown_member(placer, state, workload);
  auto blockers = placer.blockers(state, shape);
  count_blockers(blockers, proof);
  bool enough = add_free_gpus(state, *shape, blockers, proof);
  if (out.gang) {
    proof.needed_pods = workload.min_pending;
    add_domains(placer, state, workload, proof);
    proof.exact = exact_no(placer, state, workload);
  }
  if (!unplaced && never_fits(state, workload)) {
    out.verdict = Verdict::kNever;
    out.reason = reason_for_never(state, workload);
  } else {
    out.verdict = unplaced ? Verdict::kPartial : Verdict::kWait;
    out.reason = reason_to_wait(placer, state, workload, proof, enough, unplaced.has_value());
  }
  out.message = message_of(state, workload, *shape, out);
  if (!certificate) proof = {};
  return out;
}

}  // namespace berth::schedule
