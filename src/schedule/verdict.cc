// Why a workload waits: verdict, reason, certificate (docs/placement.md, "Verdicts").
#include <fmt/format.h>

#include <algorithm>

#include "model/fit.h"
#include "schedule/domains.h"
#include "schedule/placement.h"

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
  for (int c = static_cast<int>(Constraint::kCpu); c <= static_cast<int>(Constraint::kNumaPolicy); ++c) {
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

// The same cluster with no pod on it, every node up and every device healthy.
std::pair<model::NodeInfo, bool> repaired(const model::NodeInfo& info) {
  if (info.usable == info.devices && info.mig_usable == info.mig) return {{}, false};
  model::NodeInfo copy = info;
  copy.usable = copy.devices;
  copy.mig_usable = copy.mig;
  return {std::move(copy), true};
}

constexpr Blockers kPassing = bit(Constraint::kNodeReady) | bit(Constraint::kUnschedulable);

// Copies of the shape that fit the empty cluster, per domain of the key.
int best_empty_room(Placer& placer, const ClusterState& state, const model::Shape& shape, int key,
                    int limit) {
  const RuleResult& rules = placer.rules(state, shape);
  const model::Domains* domains = key < 0 ? nullptr : &state.inventory().domains(key);
  std::vector<std::int64_t> rooms(domains == nullptr ? 1 : domains->values.size());
  for (std::size_t i = 0; i < state.nodes(); ++i) {
    if ((rules.blockers[i] & ~kPassing) != 0) continue;
    std::int32_t d = domains == nullptr ? 0 : domains->of[i];
    if (d < 0) continue;
    const model::NodeInfo& info = state.info(i);
    auto [fixed, changed] = repaired(info);
    rooms[static_cast<std::size_t>(d)] +=
        model::fit_count(changed ? fixed : info, model::empty_state(info), *shape.demand, limit);
  }
  auto best = std::max_element(rooms.begin(), rooms.end());
  return best == rooms.end() ? 0 : static_cast<int>(std::min<std::int64_t>(*best, INT32_MAX));
}

Certificate empty_certificate(Placer& placer, const ClusterState& state, const model::Shape& shape) {
  const RuleResult& rules = placer.rules(state, shape);
  std::vector<Blockers> blockers(state.nodes());
  for (std::size_t i = 0; i < state.nodes(); ++i) {
    const model::NodeInfo& info = state.info(i);
    auto [fixed, changed] = repaired(info);
    blockers[i] = (rules.blockers[i] & ~kPassing) |
                  capacity_blockers(changed ? fixed : info, model::empty_state(info), *shape.demand);
  }
  Certificate out;
  count_blockers(blockers, out);
  return out;
}

struct Needs {
  const model::Shape* shape = nullptr;
  int count = 0;
};

// How many of each shape must start at once: for a gang, running members included.
std::vector<Needs> needs_of(const ClusterState& state, const Workload& workload) {
  std::vector<Needs> needs;
  int left = workload.min_pending + static_cast<int>(workload.running.size());
  auto add = [&](PodId id) {
    const model::Shape* shape = state.pod(id).shape.get();
    auto it = std::find_if(needs.begin(), needs.end(), [&](const Needs& n) {
      return n.shape->demand == shape->demand && n.shape->rules == shape->rules;
    });
    if (it == needs.end()) it = needs.insert(needs.end(), {shape, 0});
    ++it->count;
  };
  for (PodId id : workload.running) add(id);
  for (PodId id : workload.pending) add(id);
  int all = static_cast<int>(workload.running.size() + workload.pending.size());
  // With several shapes and a minimum below all members, only what every choice of members needs
  // can prove "never".
  for (auto& n : needs) n.count = std::max(0, n.count - (all - left));
  return needs;
}

int required_key(const ClusterState& state, const Workload& workload) {
  if (workload.gang < 0) return -1;
  const auto& label = state.gang(workload.gang).required_topology;
  return label.empty() ? -1 : state.inventory().topology_key(label);
}

// A proof that the workload can never start: the shape that cannot, or null.
const model::Shape* never(Placer& placer, const ClusterState& state, const Workload& workload) {
  int key = required_key(state, workload);
  for (const auto& need : needs_of(state, workload)) {
    if (need.count > 0 && best_empty_room(placer, state, *need.shape, key, need.count) < need.count) {
      return need.shape;
    }
  }
  return nullptr;
}

std::string describe(const ClusterState& state, const model::Demand& d) {
  using Kind = model::GpuDemandSpec::Kind;
  switch (d.kind) {
    case Kind::kNone: return fmt::format("cpu {}m, memory {} MiB", d.cpu, d.memory >> 20);
    case Kind::kWhole: return fmt::format("{} GPU{}", d.count, d.count == 1 ? "" : "s");
    case Kind::kFraction: return fmt::format("{} x {} milli-GPU", d.count, d.milli);
    case Kind::kMemory: return fmt::format("{} x {} MiB of GPU memory", d.count, d.memory_mib);
    case Kind::kShared: return fmt::format("{} GPU share{}", d.count, d.count == 1 ? "" : "s");
    case Kind::kMig: return fmt::format("{} x {}", d.count, state.inventory().strings().text(d.mig));
  }
  return "";
}

std::string gpus(int milli) {
  return milli % model::kMilliPerGpu == 0 ? std::to_string(milli / model::kMilliPerGpu)
                                          : fmt::format("{:.2f}", milli / 1000.0);
}

std::string message_of(const ClusterState& state, const Workload& workload, const model::Shape& shape,
                       const model::Outcome& o) {
  const Certificate& c = o.certificate;
  std::string need = describe(state, *shape.demand);
  auto best = c.domains.empty() ? 0 : c.domains.front().fits;
  switch (o.reason) {
    case Reason::kNoNodes: return "the cluster has no nodes";
    case Reason::kFragmented:
      return fmt::format("needs {} on one node; {} are free in total, at most {} on a node", need,
                         gpus(c.free_gpu_milli), gpus(c.largest_free_milli));
    case Reason::kNeverFits:
      return o.gang ? fmt::format("needs {} pods x {} at once; the empty cluster has room for {}",
                                  c.needed_pods, need, best)
                    : fmt::format("needs {} on one node; no node is that large, even empty", need);
    case Reason::kGangDoesNotFit:
      return fmt::format("needs {} pods x {} at once; {} fit now", c.needed_pods, need, best);
    case Reason::kTopologyDomainTooSmall:
      return fmt::format("needs {} pods x {} in one domain of {}; the best has room for {}",
                         c.needed_pods, need, state.gang(workload.gang).required_topology, best);
    case Reason::kInsufficientGpus:
      return fmt::format("needs {} on one node; {} free on {} node{} that would do otherwise", need,
                         gpus(c.free_gpu_milli),
                         c.only[static_cast<std::size_t>(Constraint::kGpus)],
                         c.only[static_cast<std::size_t>(Constraint::kGpus)] == 1 ? "" : "s");
    default: break;
  }
  if (c.binding == Constraint::kCount) return "";
  auto b = static_cast<std::size_t>(c.binding);
  if (c.only[b] == c.removed[b]) {
    return fmt::format("{} of {} nodes: {}", c.removed[b], c.nodes, sentence(c.binding));
  }
  return fmt::format("{} of {} nodes: {} ({} for no other reason)", c.removed[b], c.nodes,
                     sentence(c.binding), c.only[b]);
}

void list_domains(const ClusterState& state, int key, std::vector<DomainRoom> rooms, Certificate& out) {
  std::sort(rooms.begin(), rooms.end(), [](const DomainRoom& a, const DomainRoom& b) {
    return a.fits != b.fits ? a.fits > b.fits : a.domain < b.domain;
  });
  out.domains_total = static_cast<int>(rooms.size());
  for (const auto& room : rooms) {
    if (out.domains.size() >= Certificate::kMaxDomains) break;
    out.domains.push_back(
        {key < 0 ? "cluster"
                 : std::string(state.inventory().domains(key).values[static_cast<std::size_t>(room.domain)]),
         room.fits});
  }
}

// The member whose blockers are shown: the first that fits no node by itself, else the first.
model::ShapeRef shown_member(Placer& placer, const ClusterState& state, const Workload& workload) {
  const model::Shape* last = nullptr;
  for (PodId id : workload.pending) {
    const auto& shape = state.pod(id).shape;
    if (shape.get() == last) continue;
    last = shape.get();
    if (!placer.find(state, shape)) return shape;
  }
  return state.pod(workload.pending.front()).shape;
}

bool fits_without_topology(Placer& placer, const ClusterState& state, const Workload& workload) {
  int key = required_key(state, workload);
  if (key < 0) return false;
  ClusterState trial = state;
  Workload free = workload;
  free.ignore_topology = true;
  return !place(placer, trial, free).pods.empty();
}

}  // namespace

model::Outcome explain_no(Placer& placer, const ClusterState& state, const Workload& workload,
                          bool certificate) {
  model::Outcome out{.workload = workload.name,
                     .gang = workload.gang >= 0,
                     .pods = static_cast<int>(workload.pending.size())};
  if (state.nodes() == 0) {
    out.reason = Reason::kNoNodes;
    out.message = "the cluster has no nodes";
    return out;
  }
  Certificate& proof = out.certificate;
  auto shape = shown_member(placer, state, workload);
  int key = required_key(state, workload);
  int all = static_cast<int>(workload.pending.size());
  const model::Shape* impossible = never(placer, state, workload);
  auto blockers = placer.blockers(state, shape);
  count_blockers(blockers, proof);
  proof.needed_pods = workload.min_pending;
  for (std::size_t i = 0; i < blockers.size(); ++i) {
    if ((blockers[i] & ~kCapacity) != 0) continue;
    int free = model::free_usable_milli(state.info(i), state.node(i));
    proof.free_gpu_milli += free;
    proof.largest_free_milli = std::max(proof.largest_free_milli, free);
  }
  auto rooms = domain_rooms(placer, state, shape, key, nullptr, all);
  int best = 0;
  for (const auto& room : rooms) best = std::max(best, room.fits);
  list_domains(state, key, std::move(rooms), proof);
  bool equal = equal_members(state, workload.pending);
  proof.exact = workload.gang < 0 || proof.fitting_nodes == 0 || (equal && best < workload.min_pending);
  if (impossible != nullptr) {
    proof.exact = true;
    out.verdict = Verdict::kNever;
    Certificate empty = empty_certificate(placer, state, *impossible);
    out.reason = empty.fitting_nodes == 0 && empty.binding != Constraint::kCount &&
                         !is_capacity(empty.binding)
                     ? model::reason_of(empty.binding)
                     : Reason::kNeverFits;
    if (out.reason == Reason::kNeverFits && out.gang) {
      proof.domains = {{"empty cluster", best_empty_room(placer, state, *impossible, key, workload.min_pending)}};
      proof.needed_pods = workload.min_pending + static_cast<int>(workload.running.size());
    }
    out.message = message_of(state, workload, *impossible, out);
  } else {
    out.verdict = Verdict::kWait;
    if (proof.fitting_nodes > 0) {
      out.reason = fits_without_topology(placer, state, workload) ? Reason::kTopologyDomainTooSmall
                                                                   : Reason::kGangDoesNotFit;
    } else {
      out.reason = model::reason_of(proof.binding);
      const model::Demand& d = *shape->demand;
      bool enough = proof.free_gpu_milli >=
                    (d.kind == model::GpuDemandSpec::Kind::kWhole ? d.count * model::kMilliPerGpu
                                                                  : d.count * std::max(d.milli, 1));
      if (proof.binding == Constraint::kGpus && enough) out.reason = Reason::kFragmented;
    }
    out.message = message_of(state, workload, *shape, out);
  }
  if (!certificate) proof = {};
  return out;
}

}  // namespace berth::schedule
