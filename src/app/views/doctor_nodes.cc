// Nodes, their agents and their devices.
#include <map>
#include <set>

#include "app/views/doctor.h"
#include "kinds/readers.h"
#include "model/amounts.h"
#include "people/view/words.h"
#include "text/path.h"
#include "text/quantity.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

constexpr std::int64_t kLeaseGrace_ns = 120'000'000'000;

std::int64_t allocatable_gpus(const text::Value& node) {
  std::int64_t sum = 0;
  const text::Value* amounts = find(node, "status.allocatable");
  if (amounts == nullptr) return 0;
  for (const char* resource : {"nvidia.com/gpu", "nvidia.com/gpu.shared"}) {
    const text::Value* amount = amounts->find(resource);
    if (amount == nullptr) continue;
    const Result<text::Quantity> read =
        text::parse_quantity(amount->is_string() ? amount->string() : amount->number_text());
    if (read.ok()) sum += read->value();
  }
  return sum;
}

void check_ready(const DoctorInput& input, Findings& out) {
  if (input.fleet.nodes.empty() && !input.view.hides("nodes")) {
    out.add("no-nodes", Severity::kError, "cluster", "there is no node",
            "join nodes to the cluster, or give doctor files that hold them");
  }
  for (const people::FleetNode& node : input.fleet.nodes) {
    if (node.ready) continue;
    out.add("node-not-ready", node.gpus.empty() ? Severity::kWarning : Severity::kError,
            "Node " + node.name, "the node is not ready: its GPUs take no work",
            "kubectl describe node; look at its kubelet and network");
  }
  for (const ObjectFacts& lease : input.view.of_kind("Lease")) {
    if (lease.ns != "kube-node-lease" || input.view.find("Node", "", lease.name) == nullptr) {
      continue;
    }
    const Result<std::int64_t> renewed =
        text::parse_rfc3339(text_at(*lease.value, "spec.renewTime"));
    if (!renewed.ok() || input.view.now_ns - *renewed < kLeaseGrace_ns) continue;
    out.add("node-lease-stale", Severity::kWarning, "Node " + lease.name,
            "its kubelet has not renewed its lease for over 2 minutes",
            "look at the kubelet of the node; pods move away when the node is tainted");
  }
}

void check_agent(const DoctorInput& input, const people::FleetNode& node, bool agents_here,
                 Findings& out) {
  const ObjectFacts* object = input.view.find("Node", "", node.name);
  if (object == nullptr || node.gpus.empty()) return;
  const ObjectFacts* agent = input.view.find("GpuNode", "", node.name);
  if (agent == nullptr && agents_here) {
    out.add("agent-missing", Severity::kWarning, "Node " + node.name,
            "it has GPUs and no GpuNode: no agent tells of them, devices are guessed from labels",
            "see that the agent runs there: taints, node selector, kubectl get pods -o wide");
  }
  const text::Value* ready = find_type(at(*object->value, "status.conditions"), "GpuReady");
  if (ready != nullptr && text_at(*ready, "status") != "True") {
    out.add("agent-not-ready", Severity::kError, "Node " + node.name,
            "GpuReady is " + std::string(text_at(*ready, "status")) + ": " +
                std::string(text_at(*ready, "reason")) + ": " +
                std::string(text_at(*ready, "message")),
            "docs/health.md says what each step needs; kubectl logs of the agent there");
  }
  if (agent == nullptr || node.gpus.empty()) return;
  std::int64_t healthy = 0;
  for (const people::FleetGpu& gpu : node.gpus) {
    const bool well = gpu.state != people::GpuState::kUnhealthy && gpu.mig_slots == 0 &&
                      gpu.state != people::GpuState::kUnknown;
    healthy += well ? node.shares_per_gpu : 0;
  }
  const std::int64_t offered = allocatable_gpus(*object->value);
  if (offered >= healthy || !node.ready) return;
  out.add(
      "allocatable-below-discovered", Severity::kError, "Node " + node.name,
      "the agent found " + std::to_string(healthy) + " healthy GPUs (or shares), the kubelet " +
          "offers " + std::to_string(offered),
      "look at the device plugin's registration: kubectl logs of the agent, restart the kubelet");
}

void check_orphans(const DoctorInput& input, Findings& out) {
  for (const ObjectFacts& agent : input.view.of_kind("GpuNode")) {
    if (input.view.find("Node", "", agent.name) != nullptr) continue;
    out.add("gpunode-orphan", Severity::kWarning, "GpuNode " + agent.name,
            "there is no Node of that name", "kubectl delete gpunode, when the machine is gone");
  }
}

// One driver for all nodes of a model, one version for all agents.
void check_skew(const DoctorInput& input, Findings& out) {
  std::map<std::string, std::map<std::string, int>> drivers;
  for (const people::FleetNode& node : input.fleet.nodes) {
    const ObjectFacts* agent = input.view.find("GpuNode", "", node.name);
    if (agent == nullptr) continue;
    const std::string driver(text_at(*agent->value, "status.driverVersion"));
    if (!driver.empty()) ++drivers[node.model][driver];
  }
  const auto listed = [](const std::map<std::string, int>& counts) {
    std::string text;
    for (const auto& [version, count] : counts) {
      text += (text.empty() ? "" : ", ") + version + " on " + std::to_string(count);
    }
    return text;
  };
  for (const auto& [model, versions] : drivers) {
    if (versions.size() < 2) continue;
    out.add("driver-skew", Severity::kWarning, "model " + people::short_model(model),
            "its nodes have different drivers: " + listed(versions),
            "roll one driver out; gangs over different drivers may fail in NCCL");
  }
  std::map<std::string, int> images;
  for (const ObjectFacts& pod : input.view.of_kind("Pod")) {
    const std::string_view of = text_at(*pod.value, "metadata.labels[app.kubernetes.io/name]");
    if (of != "berth-agent" && of != "berth-controller") continue;
    const text::Value* containers = find(*pod.value, "spec.containers");
    if (containers == nullptr || containers->items().empty()) continue;
    const std::string image(text_at(containers->items()[0], "image"));
    const std::size_t tag = image.rfind(':');
    if (tag != std::string::npos) ++images[image.substr(tag + 1)];
  }
  if (images.size() < 2) return;
  out.add("agent-version-skew", Severity::kWarning, "berth",
          "its agents and controllers have different versions: " + listed(images),
          "finish or undo the update: kubectl rollout status");
}

bool tolerated_by(const std::vector<model::Toleration>& tolerations, const model::Taint& taint) {
  for (const model::Toleration& toleration : tolerations) {
    if (model::tolerates(toleration, taint)) return true;
  }
  return false;
}

// Taints that the node's life puts there pass by themselves.
bool passing(const model::Taint& taint) {
  return taint.key.starts_with("node.kubernetes.io/") ||
         taint.key.starts_with("node.cloudprovider.kubernetes.io/") ||
         taint.key == "berth.dev/agent-not-ready";
}

void check_taints(const DoctorInput& input, Findings& out) {
  const kinds::Inputs& in = input.view.inputs;
  std::set<model::Taint> all;
  for (const model::NodeSpec& node : in.nodes) {
    if (node.gpus.empty()) continue;
    for (const model::Taint& taint : node.taints) {
      if (taint.effect != model::TaintEffect::kPreferNoSchedule && !passing(taint)) {
        all.insert(taint);
      }
    }
  }
  std::set<model::Taint> tolerated;
  for (const model::Taint& taint : all) {
    bool known = false;
    for (const model::PodSpec& pod : in.pods) {
      known |=
          pod.gpu.kind != model::GpuDemandSpec::Kind::kNone && tolerated_by(pod.tolerations, taint);
    }
    for (const model::FlavorSpec& flavor : in.queues.flavors) {
      known |= tolerated_by(flavor.tolerations, taint);
    }
    for (const model::WorkloadSpec& workload : in.queues.workloads) {
      for (const auto& set : workload.pod_sets) known |= tolerated_by(set.pod->tolerations, taint);
    }
    // The API server gives every pod that asks for a resource a toleration of its name, where the
    // admission plugin is on.
    if (known || taint.key == model::kGpuResource) tolerated.insert(taint);
  }
  for (const model::NodeSpec& node : in.nodes) {
    for (const model::Taint& taint : node.taints) {
      if (!all.contains(taint) || tolerated.contains(taint) || node.gpus.empty()) continue;
      out.add("taint-nobody-tolerates", Severity::kWarning, "Node " + node.name,
              "its taint " + taint.key + (taint.value.empty() ? "" : "=" + taint.value) +
                  " is tolerated by no pod, workload or ResourceFlavor: its GPUs stay empty",
              "give the flavor or the pods a toleration, or take the taint away");
    }
  }
}

}  // namespace

void check_nodes(const DoctorInput& input, Findings& out) {
  check_ready(input, out);
  const bool agents_here = !input.view.of_kind("GpuNode").empty();
  for (const people::FleetNode& node : input.fleet.nodes) {
    check_agent(input, node, agents_here, out);
    for (const people::FleetGpu& gpu : node.gpus) {
      if (gpu.state != people::GpuState::kUnhealthy) continue;
      out.add("gpu-unhealthy", gpu.pods.empty() ? Severity::kWarning : Severity::kError,
              "GPU " + node.name + '/' + std::to_string(gpu.index),
              (gpu.why.empty() ? "unhealthy" : gpu.why) +
                  (gpu.pods.empty() ? "" : "; held by " + gpu.pods.front()),
              "docs/health.md says which probe ends the verdict; drain the node when it stays");
    }
  }
  if (!agents_here && input.fleet.total.discovered() > 0) {
    out.add("agent-missing", Severity::kInfo, "cluster",
            "no GpuNode exists: GPUs are known from labels alone, without health and topology",
            "run berth agent on the GPU nodes");
  }
  check_orphans(input, out);
  check_skew(input, out);
  check_taints(input, out);
}

}  // namespace berth::app
