#include "app/words.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "text/escape.h"
#include "text/quantity.h"

namespace berth::app {

using model::GpuDemandSpec;
using model::Reason;

std::string show_milli(std::int64_t milli) {
  // Shares of a third of a GPU add up to 999: rounded to hundredths, as people count.
  const std::int64_t hundredths = (milli + 5) / 10;
  std::string out = std::to_string(hundredths / 100);
  const std::int64_t rest = hundredths % 100;
  if (rest == 0) return out;
  return out + (rest % 10 == 0 ? fmt::format(".{}", rest / 10) : fmt::format(".{:02}", rest));
}

std::string show_ranges(const std::vector<int>& sorted) {
  std::string out;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t j = i;
    while (j + 1 < sorted.size() && sorted[j + 1] <= sorted[j] + 1) ++j;
    if (!out.empty()) out += ',';
    out += std::to_string(sorted[i]);
    if (sorted[j] != sorted[i]) out += '-' + std::to_string(sorted[j]);
    i = j + 1;
  }
  return out;
}

std::string show_count(std::int64_t n, std::string_view noun) {
  return std::to_string(n) + ' ' + std::string(noun) + (n == 1 ? "" : "s");
}

namespace {

struct ReasonRow {
  Reason reason;
  ReasonText text;
};
constexpr ReasonRow kReasons[] = {
    {Reason::kNone, {"nothing is in the way", ""}},
    {Reason::kNodeNotReady,
     {"the nodes that could take it are not Ready", "bring the nodes back, or add nodes"}},
    {Reason::kNodeNameNotFound,
     {"the pod names a node that does not exist", "correct or remove spec.nodeName"}},
    {Reason::kNodeUnschedulable,
     {"the nodes that could take it are cordoned", "kubectl uncordon one of them"}},
    {Reason::kTaintNotTolerated,
     {"the nodes that could take it have a taint that it does not tolerate",
      "add the toleration, or remove the taint"}},
    {Reason::kNodeSelectorMismatch,
     {"no node that could take it has every label of spec.nodeSelector",
      "label a node, or correct the selector"}},
    {Reason::kNodeAffinityMismatch,
     {"no required node affinity term matches a node that could take it",
      "label a node, or loosen the affinity"}},
    {Reason::kVolumeUnreachable,
     {"a volume can only be reached from nodes that cannot take it",
      "free one of those nodes, or move the volume"}},
    {Reason::kGpuModelMismatch,
     {"the GPUs that are there are not of a model that it accepts",
      "accept another model, or add nodes with that one"}},
    {Reason::kGpuMemoryTooSmall,
     {"the GPUs have less memory than it asks for",
      "ask for less memory, or add nodes with larger GPUs"}},
    {Reason::kPodAffinityUnmet,
     {"no pod that it must be near runs where it could run",
      "start that pod first, or loosen the affinity"}},
    {Reason::kPodAntiAffinityViolated,
     {"a pod that it must keep apart from runs in every domain that could take it",
      "add nodes or domains, or loosen the anti-affinity"}},
    {Reason::kTopologySpreadViolated,
     {"every domain that could take it would exceed maxSkew",
      "make room in the domains with the fewest pods, or raise maxSkew"}},
    {Reason::kHostPortTaken,
     {"a host port that it needs is taken on every node that could take it",
      "use another port, or a Service instead"}},
    {Reason::kInsufficientCpu,
     {"too little cpu is free on the nodes that could take it", "ask for less cpu, or free some"}},
    {Reason::kInsufficientMemory,
     {"too little memory is free on the nodes that could take it",
      "ask for less memory, or free some"}},
    {Reason::kInsufficientEphemeralStorage,
     {"too little ephemeral storage is free on the nodes that could take it",
      "ask for less, or free some"}},
    {Reason::kTooManyPods,
     {"the nodes that could take it run as many pods as they may",
      "raise maxPods of the kubelet, or free a slot"}},
    {Reason::kInsufficientResource,
     {"too little of an extended resource is free, or no node has it",
      "ask for less, or install what provides the resource"}},
    {Reason::kInsufficientGpus,
     {"fewer GPUs are free than it asks for", "free GPUs, add nodes, or raise its priority"}},
    {Reason::kGpuUnhealthy,
     {"it would fit if unhealthy or reserved GPUs could be used",
      "repair the GPUs, or lift the reservation"}},
    {Reason::kNumaMisaligned,
     {"the kubelet's Topology Manager would refuse it: the free GPUs span NUMA nodes",
      "free GPUs on one NUMA node, or ask for fewer in a container"}},
    {Reason::kNoNodes,
     {"there is no node at all", "add the nodes to the input: kubectl get nodes -o yaml"}},
    {Reason::kFragmented,
     {"enough GPUs are free in total, but too few on any one node",
      "ask for smaller pods, or move a pod away"}},
    {Reason::kNeverFits,
     {"it would not fit the cluster with no pod on it",
      "ask for less, or add larger or more nodes"}},
    {Reason::kGangIncomplete,
     {"fewer members exist than must start together",
      "create the missing members, or lower minMember"}},
    {Reason::kGangDoesNotFit,
     {"some members fit, but not enough of them at once",
      "free room for the rest, or lower minMember"}},
    {Reason::kTopologyDomainTooSmall,
     {"it fits the cluster, but no single domain of the required level",
      "free room in one domain, or prefer the level instead of requiring it"}},
    {Reason::kVolumeMissing,
     {"a claim is not in the input, or not bound",
      "add pvc and pv to the input, or create or bind the claim"}},
    {Reason::kResourceClaimNotRead,
     {"it asks for devices by a ResourceClaim, which is not read",
      "ask for nvidia.com/gpu instead, or place it by hand"}},
    {Reason::kGated, {"it has scheduling gates", "remove the gates, or wait for who set them"}},
    {Reason::kPreempted,
     {"it was evicted for a workload of higher priority", "nothing: it waits for its turn again"}},
    {Reason::kPendingEvaluation,
     {"it is in its queue and was not looked at yet", "nothing: its turn comes; run more cycles"}},
    {Reason::kWaitingForQuota,
     {"others use the quota that it needs",
      "wait for them to finish, raise the quota, or its priority where the queue preempts"}},
    {Reason::kExceedsMaxQuota,
     {"it asks for more than its queue could ever get, borrowing included",
      "ask for less, or raise nominalQuota or borrowingLimit"}},
    {Reason::kNoMatchingFlavor,
     {"no flavor of its queue takes its pods, or no quota covers a resource",
      "add the toleration or selector that the flavor wants, or cover the resource"}},
    {Reason::kTopologyPlacementFailed,
     {"quota would allow it, but no domain of its topology has room",
      "free room in one domain, or prefer the level instead of requiring it"}},
    {Reason::kWaitingForPreemptedWorkloads,
     {"the workloads that make room for it have not left yet",
      "nothing: it starts when they are gone"}},
    {Reason::kPreemptionGated,
     {"it would have to make room, and a preemption gate is closed", "open the gate"}},
    {Reason::kWaitingForPodsReady,
     {"admission is blocked until the pods of all admitted workloads are ready",
      "bring those pods up, or set blockAdmission false"}},
    {Reason::kMisconfigured,
     {"its queue does not exist or cannot admit it",
      "correct the queue, the flavor or the selector that the message names"}},
    {Reason::kOnHold,
     {"its queue is stopped, or it backs off after an eviction",
      "set stopPolicy None, or wait for its requeueAt"}},
    {Reason::kAdmissionGated,
     {"somebody else holds it back by an annotation", "remove the annotation when it may go"}},
    {Reason::kDeactivated, {"its spec.active is false", "set spec.active true"}},
    {Reason::kUnsatisfiedAdmissionChecks,
     {"it holds quota; an admission check is not ready", "wait for the controller of the check"}},
};
static_assert(std::size(kReasons) == static_cast<std::size_t>(Reason::kCount));

std::string mig_profile(const GpuDemandSpec& demand) {
  constexpr std::string_view kVendor = "nvidia.com/";
  std::string_view name = demand.mig;
  if (name.starts_with(kVendor)) name.remove_prefix(kVendor.size());
  return std::string(name);
}
}  // namespace

std::string show_demand(const GpuDemandSpec& demand) {
  const std::string each = demand.count > 1 ? fmt::format("{} x ", demand.count) : "";
  switch (demand.kind) {
    case GpuDemandSpec::Kind::kNone:
      return "no GPU";
    case GpuDemandSpec::Kind::kWhole:
      return show_count(demand.count, "GPU");
    case GpuDemandSpec::Kind::kFraction:
      return each + show_milli(demand.milli) + " of a GPU";
    case GpuDemandSpec::Kind::kMemory:
      return each + std::to_string(demand.memory_mib) + " MiB of a GPU";
    case GpuDemandSpec::Kind::kShared:
      return show_count(demand.count, "GPU share");
    case GpuDemandSpec::Kind::kMig:
      return std::to_string(demand.count) + ' ' + mig_profile(demand);
  }
  return "";
}

std::string show_gpus_column(const GpuDemandSpec& demand, int pods) {
  switch (demand.kind) {
    case GpuDemandSpec::Kind::kNone:
      return "0";
    case GpuDemandSpec::Kind::kWhole:
      return std::to_string(std::int64_t{demand.count} * pods);
    case GpuDemandSpec::Kind::kFraction:
      return show_milli(std::int64_t{demand.milli} * demand.count * pods);
    case GpuDemandSpec::Kind::kMemory:
      return std::to_string((demand.memory_mib * demand.count * pods + 512) / 1024) + "Gi";
    case GpuDemandSpec::Kind::kShared:
      return std::to_string(demand.count * pods) + "sh";
    case GpuDemandSpec::Kind::kMig:
      return std::to_string(demand.count * pods) + "mig";
  }
  return "";
}

std::string short_model(std::string_view product) {
  for (const std::string_view vendor : {"NVIDIA-", "Tesla-"}) {
    if (product.starts_with(vendor)) product.remove_prefix(vendor.size());
  }
  if (product.empty()) return "unknown model";
  if (product.starts_with("RTX")) return std::string(product);
  return std::string(product.substr(0, product.find('-')));
}

std::string short_key(std::string_view label) {
  const std::size_t slash = label.rfind('/');
  return std::string(slash == std::string_view::npos ? label : label.substr(slash + 1));
}

std::string constraint_key(model::Constraint constraint) {
  std::string out;
  bool upper = false;
  for (const char c : model::name(constraint)) {
    if (c == ' ' || c == '-') {
      upper = true;
      continue;
    }
    const auto letter = static_cast<unsigned char>(c);
    out += static_cast<char>(upper ? std::toupper(letter) : std::tolower(letter));
    upper = false;
  }
  return out;
}

ReasonText reason_text(Reason reason) {
  const auto* found = std::find_if(std::begin(kReasons), std::end(kReasons),
                                   [reason](const auto& row) { return row.reason == reason; });
  return found == std::end(kReasons) ? ReasonText{} : found->text;
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string padded(std::string text, std::size_t width) {
  const std::size_t now = width_of(text);
  if (now < width) text.append(width - now, ' ');
  return text;
}

std::string padded_left(std::string_view text, std::size_t width) {
  const std::size_t now = width_of(text);
  return std::string(now < width ? width - now : 0, ' ').append(text);
}

std::string fit(std::string_view text, std::size_t width) {
  return padded(text::elide_middle(text::terminal_safe(text), width), width);
}

}  // namespace berth::app
