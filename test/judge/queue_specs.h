// Short ways to write worlds of queues in the tests: one flavor "f" and one resource "gpu" unless
// said otherwise, namespace "d", every queue with a local queue of its own name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "judge/queue_judge.h"
#include "model/workload.h"

namespace berth::judging {

struct Limits {
  std::optional<std::int64_t> borrow = {}, lend = {};
};

inline model::FlavorQuota flavor_quota(const std::string& flavor, std::int64_t nominal,
                                       Limits limits = {}, const std::string& resource = "gpu") {
  return {flavor, {{resource, nominal, limits.borrow, limits.lend}}};
}

inline model::QueueSpec a_queue(const std::string& name, const std::string& cohort,
                                std::vector<model::FlavorQuota> flavors,
                                const std::string& resource = "gpu") {
  model::QueueSpec queue;
  queue.name = name;
  queue.cohort = cohort;
  queue.groups.push_back({{resource}, std::move(flavors)});
  queue.namespaces = text::Selector{};
  return queue;
}

inline model::QueueSpec a_queue(const std::string& name, const std::string& cohort,
                                std::int64_t nominal, Limits limits = {}) {
  return a_queue(name, cohort, {flavor_quota("f", nominal, limits)});
}

// Policies, in the order within, reclaim.
inline model::QueueSpec with(model::QueueSpec queue, model::PreemptWithin within,
                             model::Reclaim reclaim = model::Reclaim::kNever) {
  queue.within = within;
  queue.reclaim = reclaim;
  return queue;
}

inline model::CohortSpec a_cohort(const std::string& name, const std::string& parent,
                                  std::optional<std::int64_t> nominal = {}, Limits limits = {}) {
  model::CohortSpec cohort{.name = name, .parent = parent, .groups = {}, .weight = 1};
  if (nominal) cohort.groups.push_back({{"gpu"}, {flavor_quota("f", *nominal, limits)}});
  return cohort;
}

inline model::WorkloadSpec ask(const std::string& name, const std::string& queue,
                               std::int64_t amount, int priority = 0, std::int64_t created_ns = 0) {
  model::WorkloadSpec workload;
  workload.ns = "d";
  workload.name = name;
  workload.queue = queue;
  workload.priority = priority;
  workload.created_ns = created_ns;
  workload.pod_sets.emplace_back();
  workload.pod_sets[0].requests["gpu"] = amount;
  return workload;
}

// Holds all it asks for, of one flavor.
inline model::WorkloadSpec holds(model::WorkloadSpec workload, std::int64_t reserved_ns = 0,
                                 const std::string& flavor = "f") {
  workload.admission = model::AdmissionSpec{.queue = workload.queue, .pod_sets = {}};
  for (const model::PodSetSpec& set : workload.pod_sets) {
    model::PodSetAdmission& out = workload.admission->pod_sets.emplace_back();
    out.name = set.name;
    out.count = set.count;
    for (const auto& [resource, amount] : set.requests) {
      out.flavors[resource] = flavor;
      out.usage[resource] = amount * set.count;
    }
  }
  workload.admitted = true;
  workload.reserved_ns = reserved_ns;
  return workload;
}

inline model::WorkloadSpec pods(model::WorkloadSpec workload, int count,
                                std::optional<int> min_count = {}) {
  workload.pod_sets[0].count = count;
  workload.pod_sets[0].min_count = min_count;
  return workload;
}

inline model::WorkloadSpec with_pod(model::WorkloadSpec workload, model::PodSpec pod) {
  workload.pod_sets[0].pod = std::make_shared<model::PodSpec>(std::move(pod));
  return workload;
}

// Flavors and local queues are added for whatever the queues name.
model::QueueInputs world_of(std::vector<model::QueueSpec> queues,
                            std::vector<model::WorkloadSpec> workloads,
                            std::vector<model::CohortSpec> cohorts = {});

// "+a@f -v InClusterQueue<p x NoFit heap": what was admitted with the flavors of its sets (and
// "*2" where a set has fewer pods than asked), victims, then what was left, "; " between.
std::string text_of(const QueueCycle& cycle, const QueueJudge& judge);
std::string run_cycle(QueueJudge& judge, std::int64_t now_ns = 1'000);
std::string first_cycle(const model::QueueInputs& inputs);  // of a fresh judge

}  // namespace berth::judging
