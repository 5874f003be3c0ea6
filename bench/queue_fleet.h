// Queues over a fleet of 8-GPU nodes in racks of 16 and blocks of 8 racks, for benchmarks.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "model/amounts.h"
#include "model/workload.h"

namespace berth::bench {

inline constexpr const char* kBlockKey = "topology.kubernetes.io/block";
inline constexpr const char* kRackKey = "topology.kubernetes.io/rack";
inline constexpr std::int64_t kSecondNs = 1'000'000'000;

inline model::NodeSpec gpu_host(int i) {
  model::NodeSpec node;
  node.name = fmt::format("node-{:05}", i);
  node.labels = {{kBlockKey, fmt::format("b{:03}", i / 128)},
                 {kRackKey, fmt::format("r{:04}", i / 16)},
                 {model::kHostnameLabel, node.name}};
  node.allocatable = {
      {"cpu", 192'000}, {"memory", 2LL << 40}, {"ephemeral-storage", 1LL << 40}, {"pods", 110}};
  for (int g = 0; g < 8; ++g) {
    node.gpus.emplace_back();
    node.gpus.back().index = g;
    node.gpus.back().model = "NVIDIA-H100-80GB-HBM3";
    node.gpus.back().memory_mib = 81559;
    node.gpus.back().nvlink_clique = 0;
  }
  return node;
}

inline std::shared_ptr<const model::PodSpec> gpu_pod(int gpus) {
  auto pod = std::make_shared<model::PodSpec>();
  pod->requests = {{"cpu", 1000}, {"memory", 1LL << 30}};
  pod->gpu.kind = model::GpuDemandSpec::Kind::kWhole;
  pod->gpu.count = gpus;
  pod->gpus_by_container = {gpus};
  return pod;
}

inline model::QueueSpec gpu_queue(const std::string& name, std::int64_t gpus) {
  model::QueueSpec out;
  out.name = name;
  out.cohort = "all";
  out.namespaces = text::Selector{};
  const auto quota = [](const std::string& resource, std::int64_t amount) {
    model::ResourceQuota q;
    q.resource = resource;
    q.nominal = amount;
    return q;
  };
  out.groups = {{.covered = {"cpu", "memory", model::kGpuResource},
                 .flavors = {{.flavor = "h100",
                              .resources = {quota("cpu", model::kUnlimited),
                                            quota("memory", model::kUnlimited),
                                            quota(model::kGpuResource, gpus)}}}}};
  return out;
}

inline model::QueueInputs gpu_world(std::vector<model::QueueSpec> queues, bool topology) {
  model::QueueInputs out;
  out.flavors.emplace_back();
  out.flavors.back().name = "h100";
  if (topology) {
    out.flavors.back().topology = "fabric";
    out.topologies.push_back(
        {.name = "fabric", .levels = {kBlockKey, kRackKey, model::kHostnameLabel}});
  }
  for (const auto& queue : queues) {
    out.local_queues.push_back({.ns = "bench", .name = queue.name, .queue = queue.name});
  }
  out.queues = std::move(queues);
  return out;
}

inline model::WorkloadSpec gpu_job(const std::string& name, const std::string& queue, int pods,
                                   int gpus, int priority, std::int64_t created_s) {
  model::WorkloadSpec out;
  out.ns = "bench";
  out.name = name;
  out.queue = queue;
  out.priority = priority;
  out.created_ns = created_s * kSecondNs;
  out.pod_sets.resize(1);
  out.pod_sets[0].count = pods;
  out.pod_sets[0].pod = gpu_pod(gpus);
  out.pod_sets[0].requests = model::amounts_of(*out.pod_sets[0].pod);
  return out;
}

// The job runs on the nodes first, first + 1, ..., one pod each; its pods are added to pods.
inline void run_on(model::WorkloadSpec& job, int first, bool topology,
                   std::vector<model::PodSpec>& pods) {
  model::PodSetAdmission set;
  set.name = "main";
  set.count = job.pod_sets[0].count;
  for (const auto& [resource, amount] : job.pod_sets[0].requests) {
    set.flavors[resource] = "h100";
    set.usage[resource] = amount * set.count;
  }
  if (topology) set.topology.emplace().levels = {model::kHostnameLabel};
  for (int i = 0; i < set.count; ++i) {
    model::PodSpec pod = *job.pod_sets[0].pod;
    pod.ns = job.ns;
    pod.name = fmt::format("{}-{}", job.name, i);
    pod.node_name = gpu_host(first + i).name;
    for (int g = 0; g < pod.gpu.count; ++g) pod.gpu_indices.push_back(g);
    if (topology) set.topology->domains.push_back({{pod.node_name}, 1});
    job.pod_sets[0].pods.push_back(pod.ns + '/' + pod.name);
    pods.push_back(std::move(pod));
  }
  job.admission.emplace();
  job.admission->queue = job.queue;
  job.admission->pod_sets = {std::move(set)};
  job.admitted = true;
  job.reserved_ns = job.created_ns;
}

}  // namespace berth::bench
