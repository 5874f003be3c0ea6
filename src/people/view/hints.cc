#include "people/view/hints.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/amounts.h"
#include "people/view/reasons.h"
#include "people/view/words.h"
#include "text/quantity.h"

namespace berth::people {

namespace {

using model::Constraint;
using model::GpuDemandSpec;
using model::Reason;

struct Hint {
  const Workload& workload;
  const model::Outcome& outcome;
  const kinds::Inputs& inputs;

  const model::PodSpec& pod() const { return workload.sample; }
  const model::Certificate& proof() const { return outcome.certificate; }

  std::string nodes_removed(Constraint constraint) const {
    return show_count(proof().removed[static_cast<std::size_t>(constraint)], "node");
  }
  std::string best_domain() const {
    if (proof().domains.empty()) return "";
    const auto& best = proof().domains.front();
    const int needed = std::max(proof().needed_pods, 1);
    if (best.fits >= needed &&
        workload.running + static_cast<int>(workload.placements.size()) > 0) {
      return "no room beside its running pods";
    }
    const std::string where = workload.required_topology.empty() || best.name == "cluster"
                                  ? std::string()
                                  : short_key(workload.required_topology) + ' ' + best.name + ": ";
    return fmt::format("{}room for {} of {}", where, best.fits, show_count(needed, "pod"));
  }

  std::string taint() const;
  std::string selector() const;
  std::string model_hint() const;
  std::string gpu_memory() const;
  std::string never() const;
  std::string amount(const char* resource, Constraint constraint) const;
  std::string extended() const;
  std::string free_gpus() const;
  std::string incomplete() const;
};

// The untolerated taint that most nodes have.
std::string Hint::taint() const {
  std::map<std::string, int> nodes_by_taint;
  for (const model::NodeSpec& node : inputs.nodes) {
    for (const model::Taint& taint : node.taints) {
      if (taint.effect == model::TaintEffect::kPreferNoSchedule) continue;
      const bool tolerated =
          std::any_of(pod().tolerations.begin(), pod().tolerations.end(),
                      [&](const auto& toleration) { return tolerates(toleration, taint); });
      if (tolerated) continue;
      ++nodes_by_taint[taint.key];
    }
  }
  const auto most =
      std::max_element(nodes_by_taint.begin(), nodes_by_taint.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == nodes_by_taint.end() ? "tolerate the taints" : "tolerate " + most->first;
}

std::string Hint::selector() const {
  for (const auto& [key, value] : pod().node_selector) {
    const bool found = std::any_of(inputs.nodes.begin(), inputs.nodes.end(), [&](const auto& node) {
      const auto it = node.labels.find(key);
      return it != node.labels.end() && it->second == value;
    });
    if (found) continue;
    const bool product = key == "nvidia.com/gpu.product";
    return "no node has " + (product ? short_model(value) : key + '=' + value);
  }
  return "labels missing on " + nodes_removed(Constraint::kNodeSelector);
}

std::string Hint::model_hint() const {
  std::string wanted;
  for (const std::string& model : pod().gpu_models)
    wanted += (wanted.empty() ? "" : " or ") + short_model(model);
  std::map<std::string, int> there;
  for (const model::NodeSpec& node : inputs.nodes) {
    if (!node.gpus.empty()) ++there[short_model(node.gpus.front().model)];
  }
  std::string have;
  for (const auto& [model, nodes] : there) have += (have.empty() ? "" : ", ") + model;
  return "wants " + wanted + (have.empty() ? "; no node has GPUs" : ", there is " + have);
}

std::string Hint::gpu_memory() const {
  std::int64_t most = 0;
  for (const model::NodeSpec& node : inputs.nodes) {
    for (const model::GpuSpec& gpu : node.gpus) most = std::max(most, gpu.memory_mib);
  }
  const std::int64_t asked = std::max(pod().gpu_min_memory_mib, pod().gpu.memory_mib);
  return fmt::format("asks {} MiB a GPU, most have {}", asked, most);
}

std::string Hint::never() const {
  const GpuDemandSpec& demand = pod().gpu;
  int largest = 0;
  std::int64_t capacity = 0;
  for (const model::NodeSpec& node : inputs.nodes) {
    if (!model::offers_gpus(node)) continue;
    const int gpus = static_cast<int>(node.gpus.size()) * node.shares_per_gpu;
    largest = std::max(largest, gpus);
    if (demand.count > 0) capacity += gpus / demand.count;
  }
  if (demand.kind == GpuDemandSpec::Kind::kWhole && demand.count > largest) {
    return fmt::format("largest node has {}", show_count(largest, "GPU"));
  }
  if (!outcome.gang || outcome.message.starts_with("its pod") ||
      outcome.message.starts_with("must be")) {
    return outcome.message;
  }
  if (demand.kind != GpuDemandSpec::Kind::kWhole) return "does not fit the empty cluster";
  const int needed = std::max(1, proof().needed_pods);
  if (outcome.gang && !workload.mixed && capacity < needed) {
    const bool whole_nodes = demand.count == largest;
    return whole_nodes ? fmt::format("{} whole nodes; {} exist", needed, capacity)
                       : fmt::format("{} pods, the empty cluster takes {}", needed, capacity);
  }
  return outcome.gang && !proof().domains.empty() ? best_domain() + " when empty"
                                                  : "does not fit the empty cluster";
}

std::string Hint::amount(const char* resource, Constraint constraint) const {
  const auto it = pod().requests.find(resource);
  std::string asked;
  if (it != pod().requests.end()) {
    const bool cpu = std::string_view(resource) == "cpu";
    asked = cpu ? text::Quantity::from_milli(it->second).to_string()
                : text::Quantity::from_units(it->second, text::Format::kBinarySI).to_string();
  }
  return fmt::format("asks {} {}; {} too full", asked, resource, nodes_removed(constraint));
}

std::string Hint::extended() const {
  for (const auto& [resource, asked] : pod().requests) {
    if (resource == "cpu" || resource == "memory" || resource == "ephemeral-storage") continue;
    return fmt::format("asks {} {}", asked, resource);
  }
  return "free the extended resource";
}

std::string Hint::free_gpus() const {
  const std::int64_t each = workload.asked_milli / std::max(1, workload.pods);
  if (each == 0 || outcome.gang) {
    return fmt::format("{} free", show_milli(proof().free_gpu_milli));
  }
  return fmt::format("asks {}, {} free", show_milli(each), show_milli(proof().free_gpu_milli));
}

std::string Hint::incomplete() const {
  for (const model::GangSpec& gang : inputs.gangs) {
    if (gang.ns + '/' + gang.name != outcome.workload) continue;
    const int exist = outcome.pods + workload.running;
    if (exist >= gang.min_member) return outcome.message;  // a subgroup lacks some
    return fmt::format("{} of {} members exist", exist, gang.min_member);
  }
  return "create the missing members";
}

// The queue's own words with the numbers, less what the row says already.
std::string in_queue(const model::Outcome& outcome) {
  constexpr std::string_view kPrefix = "couldn't assign flavors to pod set main: ";
  std::string_view text = outcome.message;
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  if (outcome.position == 0) return std::string(text);
  return fmt::format("no. {} in {}: {}", outcome.position, outcome.queue, text);
}

// Where one rule keeps it off the nodes; empty for the reasons of a whole request.
std::string what_helps_on_nodes(const Hint& h, Reason reason) {
  switch (reason) {
    case Reason::kNodeNotReady:
      return h.nodes_removed(Constraint::kNodeReady) + " not Ready";
    case Reason::kNodeUnschedulable:
      return "uncordon " + h.nodes_removed(Constraint::kUnschedulable);
    case Reason::kTaintNotTolerated:
      return h.taint();
    case Reason::kNodeSelectorMismatch:
      return h.selector();
    case Reason::kNodeAffinityMismatch:
      return "no node affinity term matches";
    case Reason::kVolumeUnreachable:
      return "its volume is on other nodes";
    case Reason::kGpuModelMismatch:
      return h.model_hint();
    case Reason::kGpuMemoryTooSmall:
      return h.gpu_memory();
    case Reason::kPodAffinityUnmet:
      return "start the pod it must be near";
    case Reason::kPodAntiAffinityViolated:
      return "pods to avoid on " + h.nodes_removed(Constraint::kPodAntiAffinity);
    case Reason::kTopologySpreadViolated:
      return "room in the emptier domains";
    case Reason::kHostPortTaken:
      return "port taken on " + h.nodes_removed(Constraint::kHostPorts);
    case Reason::kInsufficientCpu:
      return h.amount("cpu", Constraint::kCpu);
    case Reason::kInsufficientMemory:
      return h.amount("memory", Constraint::kMemory);
    case Reason::kInsufficientEphemeralStorage:
      return h.amount("ephemeral-storage", Constraint::kEphemeralStorage);
    case Reason::kTooManyPods:
      return "pod limit reached on " + h.nodes_removed(Constraint::kPods);
    case Reason::kInsufficientResource:
      return h.extended();
    case Reason::kInsufficientGpus:
      return h.free_gpus();
    case Reason::kGpuUnhealthy:
      return "repair GPUs on " + h.nodes_removed(Constraint::kGpuHealth);
    case Reason::kNumaMisaligned:
      return "free GPUs on one NUMA node";
    default:
      return "";
  }
}

}  // namespace

std::string what_helps(const Workload& workload, const model::Outcome& outcome,
                       const kinds::Inputs& inputs) {
  const Hint h{workload, outcome, inputs};
  std::string on_nodes = what_helps_on_nodes(h, outcome.reason);
  if (!on_nodes.empty()) return on_nodes;
  switch (outcome.reason) {
    case Reason::kNoNodes:
      return "add nodes to the input";
    case Reason::kFragmented:
      return fmt::format("{} free, max {} a node", show_milli(h.proof().free_gpu_milli),
                         show_milli(h.proof().largest_free_milli));
    case Reason::kNeverFits:
      return h.never();
    case Reason::kGangIncomplete:
      return h.incomplete();
    case Reason::kGangDoesNotFit:
    case Reason::kTopologyDomainTooSmall:
      return h.best_domain();
    case Reason::kVolumeMissing:
      return workload.sample.volume_missing.empty()
                 ? "bind its claim"
                 : "bind claim " + workload.sample.volume_missing;
    case Reason::kGated:
      return "remove its gates";
    case Reason::kPreempted:
      return "waits for its turn again";
    case Reason::kWaitingForQuota:
    case Reason::kExceedsMaxQuota:
    case Reason::kNoMatchingFlavor:
    case Reason::kTopologyPlacementFailed:
    case Reason::kWaitingForPreemptedWorkloads:
    case Reason::kMisconfigured:
    case Reason::kOnHold:
    case Reason::kUnsatisfiedAdmissionChecks:
      if (!outcome.message.empty()) return in_queue(outcome);
      break;
    default:
      break;
  }
  return std::string(facts_of(outcome.reason).what_to_do);
}

}  // namespace berth::people
