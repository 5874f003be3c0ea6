// Short ways to write queues and workloads in tests of this folder.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/workload.h"

namespace berth::admit {

inline constexpr const char* kGpu = "nvidia.com/gpu";

// A queue of one flavor of GPUs.
inline model::QueueSpec gpu_queue(const std::string& name, const std::string& cohort,
                                  std::int64_t nominal) {
  model::QueueSpec queue;
  queue.name = name;
  queue.cohort = cohort;
  queue.namespaces = text::Selector{};
  queue.groups = {{.covered = {kGpu},
                   .flavors = {{.flavor = "h100",
                                .resources = {{.resource = kGpu,
                                               .nominal = nominal,
                                               .borrowing_limit = {},
                                               .lending_limit = {}}}}}}};
  return queue;
}

inline model::QueueInputs world_of(std::vector<model::QueueSpec> queues,
                                   std::vector<std::string> flavors = {"h100"}) {
  model::QueueInputs out;
  for (auto& flavor : flavors) {
    out.flavors.emplace_back();
    out.flavors.back().name = std::move(flavor);
  }
  for (const auto& queue : queues) {
    out.local_queues.push_back({.ns = "d", .name = queue.name, .queue = queue.name});
  }
  out.queues = std::move(queues);
  return out;
}

// Created `order` seconds after the epoch.
inline model::WorkloadSpec asks(const std::string& name, const std::string& queue, int pods,
                                std::int64_t gpus, int priority, int order) {
  model::WorkloadSpec out;
  out.ns = "d";
  out.name = name;
  out.queue = queue;
  out.priority = priority;
  out.created_ns = std::int64_t{order} * 1'000'000'000;
  out.pod_sets.emplace_back();
  out.pod_sets[0].count = pods;
  out.pod_sets[0].requests = {{kGpu, gpus}};
  return out;
}

inline model::WorkloadSpec holding(model::WorkloadSpec spec, std::int64_t since_s) {
  model::AdmissionSpec admission;
  admission.queue = spec.queue;
  for (const auto& set : spec.pod_sets) {
    model::PodSetAdmission one;
    one.name = set.name;
    one.count = set.count;
    for (const auto& [resource, amount] : set.requests) {
      one.flavors[resource] = "h100";
      one.usage[resource] = amount * set.count;
    }
    admission.pod_sets.push_back(std::move(one));
  }
  spec.admission = std::move(admission);
  spec.admitted = true;
  spec.reserved_ns = since_s * 1'000'000'000;
  return spec;
}

}  // namespace berth::admit
