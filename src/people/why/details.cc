#include "people/why/details.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <set>

#include "decide/schedule/rule_memo.h"
#include "model/amounts.h"
#include "people/view/words.h"
#include "people/why/endings.h"
#include "people/why/pod_template.h"
#include "text/path.h"
#include "text/quantity.h"

namespace berth::people {

using model::Constraint;
using model::GpuDemandSpec;
using model::PodSpec;
using model::Reason;
using schedule::bit;

namespace {

constexpr std::size_t kMostNodes = 32, kMostNames = 8, kMostPlaces = 16;

std::int64_t asked_milli(const GpuDemandSpec& demand) {
  switch (demand.kind) {
    case GpuDemandSpec::Kind::kWhole:
      return std::int64_t{demand.count} * model::kMilliPerGpu;
    case GpuDemandSpec::Kind::kFraction:
      return std::int64_t{demand.count} * demand.milli;
    default:
      return 0;  // depends on the node
  }
}

std::string amount_text(const std::string& resource, std::int64_t amount) {
  if (amount == std::numeric_limits<std::int64_t>::max()) return "unlimited";
  if (resource == "cpu") return text::Quantity::from_milli(amount).to_string();
  const bool bytes = resource == "memory" || resource == "ephemeral-storage";
  return text::Quantity::from_units(amount,
                                    bytes ? text::Format::kBinarySI : text::Format::kDecimalSI)
      .to_string();
}

}  // namespace

Need need_of(const Unit& unit) {
  Need out;
  const PodSpec* sample = unit.sample();
  if (sample == nullptr) return out;
  out.each = show_demand(sample->gpu);
  out.each_milli = asked_milli(sample->gpu);
  for (const std::string& model : sample->gpu_models) {
    out.model += (out.model.empty() ? "" : " or ") + short_model(model);
  }
  const auto product = sample->node_selector.find("nvidia.com/gpu.product");
  if (out.model.empty() && product != sample->node_selector.end()) {
    out.model = short_model(product->second);
  }
  out.priority = sample->priority;
  if (unit.queued != nullptr) {
    out.queue = unit.queued->queue;
    out.priority = unit.queued->priority;
    for (const model::PodSetSpec& set : unit.queued->pod_sets) {
      out.pods += set.count;
      out.all_milli += asked_milli(set.pod->gpu) * set.count;
      if (out.topology.empty()) out.topology = short_key(set.topology.level);
    }
    return out;
  }
  const auto& pods = unit.pending.empty() ? unit.running : unit.pending;
  out.pods = static_cast<int>(pods.size());
  for (const PodSpec* pod : pods) out.all_milli += asked_milli(pod->gpu);
  if (unit.gang != nullptr) out.topology = short_key(unit.gang->required_topology);
  return out;
}

std::vector<std::string> where_it_runs(Trials& trials, const Unit& unit) {
  std::vector<std::string> out;
  const model::ClusterState& state = trials.before();
  for (const PodSpec* pod : unit.running) {
    if (out.size() >= kMostPlaces) break;
    const auto slot = state.inventory().slot(pod->node_name);
    if (!slot) continue;
    std::string where = pod->node_name;
    state.for_each_pod_on(*slot, [&](model::PodId id) {
      const model::PodEntry& entry = state.pod(id);
      if (entry.info->name != pod->ns + '/' + pod->name || entry.gpus.empty()) return;
      where += ", GPU " + show_ranges(entry.gpus.indices());
    });
    out.push_back(std::move(where));
  }
  return out;
}

PodSpec queued_sample(const kinds::Inputs& inputs, const Draft& draft, const Unit& unit,
                      std::size_t pod_set) {
  const model::QueueRules& queues = draft.rules(inputs.queues);
  PodSpec out;
  if (const PodSpec* sample = unit.sample()) out = *sample;
  if (unit.queued != nullptr) {
    const auto changed = draft.workloads.find(unit.decided);
    const auto& sets =
        changed == draft.workloads.end() ? unit.queued->pod_sets : changed->second.pod_sets;
    if (pod_set < sets.size()) out = *sets[pod_set].pod;
  }
  out.name = fmt::format("\x01sample-{}", pod_set);  // no pod has such a name
  out.ns = unit.ns;
  out.node_name.clear();
  out.gang.clear();
  out.queued = false;
  if (unit.queued == nullptr) return out;
  const model::QueueSpec* found = nullptr;
  for (const model::LocalQueueSpec& local : queues.local_queues) {
    if (local.ns != unit.queued->ns || local.name != unit.queued->queue) continue;
    for (const model::QueueSpec& queue : queues.queues) {
      if (queue.name == local.queue) found = &queue;
    }
  }
  if (found == nullptr || found->groups.empty() || found->groups.front().flavors.size() != 1) {
    return out;
  }
  for (const model::FlavorSpec& flavor : queues.flavors) {
    if (flavor.name != found->groups.front().flavors.front().flavor) continue;
    for (const auto& [key, value] : flavor.node_labels) out.node_selector.emplace(key, value);
    out.tolerations.insert(out.tolerations.end(), flavor.tolerations.begin(),
                           flavor.tolerations.end());
  }
  return out;
}

namespace {

// The untolerated taint of the most of those nodes that count and have the least else in the way.
std::string taints_in_the_way(const NodePicture& picture, const model::ClusterState& state,
                              const PodSpec& pod) {
  constexpr auto kTaint = schedule::Blockers{1} << static_cast<unsigned>(Constraint::kTaints);
  const auto nearest = [&](const NodeView& view) {
    return picture.counts(view) && (view.blockers & kTaint) != 0
               ? std::popcount(view.blockers | view.lasting)
               : model::kConstraints;
  };
  int least = model::kConstraints;
  for (const NodeView& view : picture.nodes) least = std::min(least, nearest(view));
  struct Behind {
    std::int64_t free_milli = 0;
    int meant = 0;  // other taints of a node that it tolerates: it was written for such nodes
    int nodes = 0;
    auto operator<=>(const Behind&) const = default;
  };
  std::map<std::string, Behind> taints;  // where the GPUs are is where people look
  for (const NodeView& view : picture.nodes) {
    if (nearest(view) != least || !picture.counts(view)) continue;
    const auto& all = state.info(view.slot).taints;
    const auto tolerated = [&pod](const model::Taint& taint) {
      return taint.effect == model::TaintEffect::kPreferNoSchedule ||
             std::any_of(pod.tolerations.begin(), pod.tolerations.end(),
                         [&](const auto& t) { return tolerates(t, taint); });
    };
    const int meant = static_cast<int>(std::count_if(all.begin(), all.end(), tolerated));
    for (const model::Taint& taint : all) {
      if (tolerated(taint)) continue;
      Behind& behind = taints[taint.key + (taint.value.empty() ? "" : '=' + taint.value)];
      behind.free_milli += view.free_milli;
      behind.meant = std::max(behind.meant, meant);
      ++behind.nodes;
    }
  }
  const auto most =
      std::max_element(taints.begin(), taints.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == taints.end()) return "a taint is not tolerated";
  return fmt::format("it does not tolerate the taint {} of {}", most->first,
                     show_count(most->second.nodes, "node"));
}

std::string selector_in_the_way(const NodePicture& picture, const model::ClusterState& state,
                                const PodSpec& pod) {
  std::string worst;
  int most = 0, large_enough = 0;
  for (const NodeView& view : picture.nodes) large_enough += picture.counts(view) ? 1 : 0;
  for (const auto& [key, value] : pod.node_selector) {
    int missing = 0;
    for (const NodeView& view : picture.nodes) {
      if (!picture.counts(view)) continue;
      const auto has = state.inventory().label(state.info(view.slot), key);
      missing += !has || *has != value ? 1 : 0;
    }
    if (missing > most) {
      most = missing;
      worst = key + '=' + value;
    }
  }
  return fmt::format("no node that is large enough has the label {}{}", worst,
                     most < large_enough ? " and meets its other rules" : "");
}

// "2 nodes that could take it", or "1 of 2 nodes ...", where something else keeps it off the rest.
std::string short_of_gpus(const NodePicture& picture, const std::string& could) {
  int nodes = 0;
  for (const NodeView& view : picture.nodes) {
    nodes += picture.counts(view) && (view.blockers & bit(Constraint::kGpus)) != 0 ? 1 : 0;
  }
  return nodes == 0 || nodes == picture.blamed ? could : fmt::format("{} of {}", nodes, could);
}

}  // namespace

std::string message_of(const NodePicture& picture, const model::ClusterState& state,
                       const PodSpec& pod, Reason reason, const std::string& otherwise) {
  const std::string could = show_count(picture.blamed, "node") + " that could take it";
  const std::string each = show_demand(pod.gpu);
  switch (reason) {
    case Reason::kTaintNotTolerated:
      return taints_in_the_way(picture, state, pod);
    case Reason::kNodeSelectorMismatch:
      return selector_in_the_way(picture, state, pod);
    case Reason::kFragmented:
      if (pod.gpu.kind == GpuDemandSpec::Kind::kMig) {
        return fmt::format("{} on one node, and no node has that free", each);
      }
      return fmt::format(
          "{} on one node, and no node has that free; {} are free in total, at most {} on a node",
          each, show_milli(picture.room_milli), show_milli(picture.room_largest));
    case Reason::kInsufficientGpus:
      if (pod.gpu.kind != GpuDemandSpec::Kind::kWhole) break;
      return fmt::format("needs {} on one node; {} free on {}", each,
                         show_milli(picture.room_milli), short_of_gpus(picture, could));
    case Reason::kGpuUnhealthy:
      return fmt::format("it would fit {} but for GPUs that are unhealthy or reserved",
                         show_count(picture.blamed_only, "node"));
    default:
      break;
  }
  if (picture.binding == Constraint::kCount) return otherwise;
  if (model::reason_of(picture.binding) != reason) return otherwise;
  const int blocked = picture.blamed_only > 0 ? picture.blamed_only : picture.blamed;
  return fmt::format("{} of {}: {}", blocked, could, model::sentence(picture.binding));
}

std::string absent_resource(const kinds::Inputs& inputs, const PodSpec& pod) {
  std::set<std::string> offered, asked;
  for (const model::NodeSpec& node : inputs.nodes) {
    for (const auto& [resource, amount] : node.allocatable) {
      if (amount > 0) offered.insert(resource);
    }
    // A device that is cut into slices is offered by their names alone.
    const bool whole = std::any_of(node.gpus.begin(), node.gpus.end(),
                                   [](const model::GpuSpec& gpu) { return gpu.mig.empty(); });
    if (whole && model::offers_gpus(node)) offered.insert(model::kGpuResource);
    if (whole && model::offers_shares(node)) offered.insert(model::kSharedGpuResource);
  }
  if (offered.empty()) return "";
  for (const auto& [resource, amount] : pod.requests) asked.insert(resource);
  if (pod.gpu.kind == GpuDemandSpec::Kind::kMig) asked.insert(pod.gpu.mig);
  if (pod.gpu.kind == GpuDemandSpec::Kind::kShared) asked.insert(model::kSharedGpuResource);
  if (pod.gpu.kind == GpuDemandSpec::Kind::kWhole) asked.insert(model::kGpuResource);
  for (const std::string& resource : asked) {
    if (offered.contains(resource) || resource.find('/') == std::string::npos) continue;
    std::string others;
    int more = 0;
    for (const std::string& other : offered) {
      if (other.find('/') == std::string::npos) continue;
      if (++more <= 4) others += (others.empty() ? "" : ", ") + other;
    }
    if (more > 4) others += fmt::format(" and {} more", more - 4);
    return fmt::format("no node offers {}{}", resource,
                       others.empty() ? "" : "; what nodes offer: " + others);
  }
  return "";
}

void show_nodes(const NodePicture& picture, const model::ClusterState& state, const PodSpec& pod,
                Answer& out) {
  Have have{.nodes = static_cast<int>(picture.nodes.size()),
            .eligible = picture.eligible,
            .with_room = picture.with_room,
            .free_milli = picture.free_milli,
            .largest_milli = picture.largest_milli,
            .free_by_node = {}};
  constexpr schedule::Blockers kFromCpuOn =
      ~((schedule::Blockers{1} << static_cast<int>(Constraint::kCpu)) - 1);
  for (const NodeView& view : picture.nodes) {
    if ((view.blockers & ~kFromCpuOn) != 0 || view.free_milli <= 0) continue;
    have.free_by_node.push_back({state.info(view.slot).name, view.free_milli});
  }
  std::stable_sort(have.free_by_node.begin(), have.free_by_node.end(),
                   [](const auto& a, const auto& b) { return a.free_milli > b.free_milli; });
  if (have.free_by_node.size() > kMostNodes) have.free_by_node.resize(kMostNodes);
  out.have = std::move(have);
  const std::int64_t needed = asked_milli(pod.gpu);
  if (out.reason == Reason::kFragmented) {
    out.fragmentation = {.free_milli = picture.room_milli,
                         .largest_milli = picture.room_largest,
                         .needed_milli = needed,
                         .stranded_milli = picture.room_milli};
  }
  int left = static_cast<int>(picture.nodes.size());
  schedule::Blockers before = 0;
  for (int c = 0; c < model::kConstraints; ++c) {
    FunnelStep step{.constraint = static_cast<Constraint>(c)};
    const schedule::Blockers mask = bit(step.constraint);
    for (const NodeView& view : picture.nodes) {
      if ((view.blockers & mask) == 0) continue;
      ++step.removed;
      step.only += view.blockers == mask ? 1 : 0;
      left -= (view.blockers & before) == 0 ? 1 : 0;
      if (step.nodes.size() < kMostNames) step.nodes.push_back(state.info(view.slot).name);
    }
    before |= mask;
    step.left = left;
    if (step.removed > 0) out.funnel.push_back(std::move(step));
  }
  std::vector<const NodeView*> order;
  for (const NodeView& view : picture.nodes) order.push_back(&view);
  std::stable_sort(order.begin(), order.end(), [&](const NodeView* a, const NodeView* b) {
    return std::tuple(!picture.counts(*a), std::popcount(a->blockers)) <
           std::tuple(!picture.counts(*b), std::popcount(b->blockers));
  });
  for (const NodeView* view : order) {
    if (out.nodes.size() >= kMostNodes) break;
    BlockedNode node{
        .name = state.info(view->slot).name, .free_milli = view->free_milli, .blockers = {}};
    for (int c = 0; c < model::kConstraints; ++c) {
      if ((view->blockers >> c & 1) != 0) node.blockers.push_back(static_cast<Constraint>(c));
    }
    out.nodes.push_back(std::move(node));
  }
  out.nodes_more = static_cast<int>(order.size() - out.nodes.size());
}

namespace {

std::optional<std::int64_t> end_of(const model::PodInfo& pod, const ObjectSource* objects) {
  const std::size_t slash = pod.name.find('/');
  const std::string_view owner = pod.shape == nullptr ? std::string_view() : pod.shape->owner;
  const std::size_t job = owner.find("/Job/");
  return declared_end(objects, pod.name.substr(0, slash), pod.name.substr(slash + 1),
                      job == std::string_view::npos ? "" : owner.substr(job + 1), pod.started_ns);
}

}  // namespace

void show_holders(const NodePicture& picture, const model::ClusterState& state,
                  const ObjectSource* objects, std::size_t most, Answer& out) {
  std::vector<const NodeView*> nodes;
  for (const NodeView& view : picture.nodes) {
    if (view.lasting == 0 && view.gpus > 0) nodes.push_back(&view);
    const model::NodeInfo& info = state.info(view.slot);
    if (!picture.counts(view)) continue;
    if (!info.ready) out.health.push_back({info.name, -1, "the node is not Ready"});
    if ((view.blockers & bit(Constraint::kGpuHealth)) == 0) continue;
    for (const model::GpuSpec& gpu : info.gpus) {
      if (gpu.health == model::Health::kHealthy && !gpu.reserved) continue;
      out.health.push_back({info.name, gpu.index,
                            gpu.reserved                ? "reserved"
                            : gpu.health_reason.empty() ? "unhealthy"
                                                        : gpu.health_reason});
    }
  }
  if (out.health.size() > kMostNodes) out.health.resize(kMostNodes);
  std::stable_sort(nodes.begin(), nodes.end(), [](const NodeView* a, const NodeView* b) {
    return a->free_milli > b->free_milli;
  });
  for (const NodeView* view : nodes) {
    std::vector<HolderView> held;
    state.for_each_pod_on(view->slot, [&](model::PodId id) {
      const model::PodEntry& pod = state.pod(id);
      if (pod.gpus.empty()) return;
      if (out.holders.size() + held.size() >= most) {
        ++out.holders_more;
        return;
      }
      held.push_back({.node = state.info(view->slot).name,
                      .pod = pod.info->name,
                      .milli = pod.gpus.milli(),
                      .priority = pod.info->priority,
                      .ends_ns = end_of(*pod.info, objects)});
    });
    std::sort(held.begin(), held.end(), [](const HolderView& a, const HolderView& b) {
      return a.milli != b.milli ? a.milli > b.milli : a.pod < b.pod;
    });
    out.holders.insert(out.holders.end(), held.begin(), held.end());
  }
}

std::optional<Quota> quota_of(const model::Decision& decision, const Unit& unit,
                              const model::Outcome& no) {
  if (unit.queued == nullptr || no.queue.empty()) return std::nullopt;
  model::Amounts wanted;
  for (const model::PodSetSpec& set : unit.queued->pod_sets) {
    for (const auto& [resource, amount] : set.requests) wanted[resource] += amount * set.count;
  }
  for (const model::QueueUse& use : decision.queues) {
    if (use.name != no.queue) continue;
    Quota out{.queue = use.name, .cohort = use.cohort, .cells = {}};
    for (const model::QueueUse::Cell& cell : use.cells) {
      const bool unlimited = cell.potential == std::numeric_limits<std::int64_t>::max();
      const std::int64_t more =
          unlimited ? cell.potential : std::max<std::int64_t>(0, cell.potential - cell.nominal);
      const auto asked = wanted.find(cell.resource);
      out.cells.push_back({.flavor = cell.flavor,
                           .resource = cell.resource,
                           .nominal = amount_text(cell.resource, cell.nominal),
                           .used = amount_text(cell.resource, cell.used),
                           .available = amount_text(cell.resource, cell.available),
                           .borrowable = amount_text(cell.resource, more),
                           .short_of = asked != wanted.end() && asked->second > cell.available});
    }
    return out;
  }
  return std::nullopt;
}

bool checks_to_come(const kinds::Inputs& inputs, const Unit& unit) {
  if (unit.queued == nullptr || unit.queued->admission) return false;
  for (const model::LocalQueueSpec& local : inputs.queues.local_queues) {
    if (local.ns != unit.queued->ns || local.name != unit.queued->queue) continue;
    for (const model::QueueSpec& queue : inputs.queues.queues) {
      if (queue.name != local.queue) continue;
      return std::any_of(queue.checks.begin(), queue.checks.end(), [&](const auto& check) {
        const auto state = unit.queued->checks.find(check.name);
        return state == unit.queued->checks.end() || state->second != model::CheckState::kReady;
      });
    }
  }
  return false;
}

std::string checks_not_ready(const ObjectSource* objects, const Unit& unit) {
  std::string out;
  if (unit.queued == nullptr) return out;
  const auto raw = objects == nullptr
                       ? std::nullopt
                       : objects->find("Workload", unit.queued->ns, unit.queued->name);
  for (const auto& [check, state] : unit.queued->checks) {
    if (state == model::CheckState::kReady) continue;
    out += (out.empty() ? "" : ", ") + check;
    std::string said = state == model::CheckState::kRetry      ? "to be tried again"
                       : state == model::CheckState::kRejected ? "rejected"
                                                               : "";
    const auto told = at(raw ? raw->value : nullptr, "status.admissionChecks").items();
    for (const text::Value& each : told) {
      const std::string message(text_at(each, "message"));
      if (text_at(each, "name") != check || message.empty()) continue;
      said += (said.empty() ? "" : ": ") + message;
    }
    if (!said.empty()) out += " (" + said + ')';
  }
  return out;
}

std::string told_by_scheduler(const Unit& unit) {
  for (const RawObject& object : unit.objects) {
    if (object.kind != "Pod") continue;
    for (const text::Value& each : at(object.value, "status.conditions").items()) {
      if (text_at(each, "type") != "PodScheduled") continue;
      const std::string message(text_at(each, "message"));
      if (text_at(each, "status") == "False" && !message.empty()) return message;
    }
  }
  return "";
}

namespace {

// The value at a path as notes write it: "spec.containers[0].resources.limits.nvidia.com/gpu".
// Takes it out of its parent; false where there is none.
bool erase_at(Tree& tree, std::string_view path) {
  while (!path.empty() && path.front() == '.') path.remove_prefix(1);
  if (path.empty()) return false;
  if (path.front() == '[') {
    const std::size_t end = path.find(']');
    if (end == std::string_view::npos) return false;
    std::string_view token = path.substr(1, end - 1);
    const std::string_view rest = path.substr(end + 1);
    if (!token.empty() && token.front() == '"') {
      token.remove_prefix(1);
      if (!token.empty()) token.remove_suffix(1);
      if (rest.empty()) return tree.erase(token);
      Tree* next = tree.find(token);
      return next != nullptr && erase_at(*next, rest);
    }
    std::size_t index = 0;
    for (const char c : token) {
      if (c < '0' || c > '9' || index > 100'000) return false;
      index = index * 10 + static_cast<std::size_t>(c - '0');
    }
    if (tree.items().size() <= index) return false;
    if (rest.empty()) {
      tree.items().erase(tree.items().begin() + static_cast<std::ptrdiff_t>(index));
      return true;
    }
    return erase_at(tree.items()[index], rest);
  }
  // Keys may hold dots: the longest that fits.
  std::string best;
  for (const auto& [key, value] : tree.members()) {
    if (!path.starts_with(key) || key.size() < best.size()) continue;
    const bool whole =
        path.size() == key.size() || path[key.size()] == '.' || path[key.size()] == '[';
    if (whole) best = key;
  }
  if (best.empty()) return false;
  if (path.size() == best.size()) return tree.erase(best);
  return erase_at(*tree.find(best), path.substr(best.size()));
}

}  // namespace

std::vector<ObjectChange> unsuspended(const ObjectSource* objects, const Unit& unit) {
  Draft draft;
  if (Tree* object = draft.edit(objects, unit.kind, unit.ns, unit.name)) {
    Tree& spec = (*object)["spec"];
    spec.erase("suspend");
    spec.erase("paused");
    if (Tree* policy = spec.find("runPolicy")) policy->erase("suspend");
    for (const char* field : {"parallelism", "replicas"}) {
      const Tree* now = spec.find(field);
      if (now != nullptr && now->string() == "0") spec[field] = Tree::of_number(1);
    }
  }
  return std::move(draft.objects);
}

std::vector<ObjectChange> without_complaints(const ObjectSource* objects, const Unit& unit) {
  Draft draft;
  Tree* object = draft.edit(objects, unit.kind, unit.ns, unit.name);
  bool changed = false;
  for (const kinds::Note* note : unit.complaints) {
    const bool deep = note->path.find('.') != std::string::npos;
    if (object != nullptr && deep) changed |= erase_at(*object, note->path);
  }
  return changed ? std::move(draft.objects) : std::vector<ObjectChange>();
}

std::optional<Ahead> ahead_of(const Trials& trials, const Unit& unit, const model::Outcome& no) {
  Ahead out;
  const model::Decision& decision = trials.decision();
  if (no.queued) {
    if (no.position == 0) return std::nullopt;
    out.position = no.position;
    std::set<std::string> before;
    for (const model::Outcome& other : decision.outcomes) {
      const bool ahead = other.queued && other.queue == no.queue && other.position > 0 &&
                         other.position < no.position;
      if (ahead) before.insert(other.workload);
    }
    out.workloads = static_cast<int>(before.size());
    for (const model::WorkloadSpec& spec : trials.inputs().queues.workloads) {
      if (!before.contains(spec.ns + '/' + spec.name)) continue;
      for (const model::PodSetSpec& set : spec.pod_sets) {
        out.gpus_milli += asked_milli(set.pod->gpu) * set.count;
      }
    }
    return out;
  }
  std::set<std::string> before;
  for (const model::Outcome& other : decision.outcomes) {
    if (other.workload == no.workload) break;
    if (!other.queued && other.verdict != model::Verdict::kPlaced) before.insert(other.workload);
  }
  for (const PodSpec* pod : unit.pending) before.erase(pod->ns + '/' + pod->name);
  out.position = static_cast<int>(before.size()) + 1;
  out.workloads = static_cast<int>(before.size());
  for (const PodSpec& pod : trials.inputs().pods) {
    if (!pod.node_name.empty() || before.empty()) continue;
    const bool ahead = before.contains(pod.ns + '/' + pod.name) ||
                       (!pod.gang.empty() && before.contains(pod.ns + '/' + pod.gang));
    if (ahead) out.gpus_milli += asked_milli(pod.gpu);
  }
  return out;
}

Refusal refusal_of(const Unit& unit) {
  Refusal out;
  for (const RawObject& object : unit.objects) {
    if (object.kind != "Pod") continue;
    const text::Value* reason = find(*object.value, "status.reason");
    const text::Value* message = find(*object.value, "status.message");
    if (reason != nullptr && !reason->string().empty()) {
      out.message = reason->string();
      if (message != nullptr) out.message += ": " + std::string(message->string());
      return out;
    }
    out.started = true;
    const text::Value* containers = find(*object.value, "status.containerStatuses");
    for (const text::Value& each :
         containers == nullptr ? std::span<const text::Value>() : containers->items()) {
      const text::Value* why = find(each, "state.waiting.reason");
      const text::Value* name = each.find("name");
      if (why == nullptr || name == nullptr) continue;
      out.message = fmt::format("container {}: {}", name->string(), why->string());
      const text::Value* more = find(each, "state.waiting.message");
      if (more != nullptr) out.message += fmt::format(": {}", more->string());
      return out;
    }
  }
  return out;
}

namespace {

// It backs off after an eviction: the time is known.
std::optional<Start> start_after_backoff(const Situation& s) {
  const model::WorkloadSpec* queued = s.unit.queued;
  if (queued == nullptr || s.reason != Reason::kOnHold) return std::nullopt;
  if (queued->requeue_at_ns <= s.options.plan.now_ns) return std::nullopt;
  Draft draft;
  edit_queued(s, draft)->requeue_at_ns = 1;  // long ago
  if (!s.trials.run(draft, s.unit, false).starts) {
    return Start{.at_ns = std::nullopt, .because = "it backs off, and would wait after that too"};
  }
  return Start{.at_ns = queued->requeue_at_ns,
               .because = "when it is queued again after its eviction"};
}

// Reasons that pass when others end.
bool waits_for_others(Reason reason) {
  const Stage stage = facts_of(reason).stage;
  return stage == Stage::kCapacity || stage == Stage::kGang || reason == Reason::kWaitingForQuota;
}

}  // namespace

Start start_of(const Situation& s, const Answer& answer) {
  if (const auto known = start_after_backoff(s)) return *known;
  std::set<std::string_view> nodes;  // that could take it; of queues all: quota is everywhere
  if (s.picture != nullptr && s.state != nullptr && s.unit.queued == nullptr) {
    for (const NodeView& view : s.picture->nodes) {
      if (view.lasting == 0) nodes.insert(s.state->info(view.slot).name);
    }
  }
  std::function<bool(const PodSpec&)> in_the_way;
  if (!nodes.empty())
    in_the_way = [&](const PodSpec& pod) { return nodes.contains(pod.node_name); };
  const Endings endings = endings_of(s.inputs(), s.objects(), s.options.plan.now_ns, in_the_way);
  Start out = earliest_start(endings, [&](std::span<const Ending> ended) {
    Draft draft;
    take_out(s.inputs(), ended, draft);
    return s.trials.run(draft, s.unit, false).starts;
  });
  if (!out.at_ns && !waits_for_others(answer.reason)) out.because = "it does not wait for time";
  return out;
}

}  // namespace berth::people
