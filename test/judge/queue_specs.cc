#include "judge/queue_specs.h"

#include <set>

namespace berth::judging {

namespace {

std::string short_name(const std::string& workload) {
  return workload.starts_with("d/") ? workload.substr(2) : workload;
}

std::string text_of_admission(const QueueAdmitted& one, const QueueJudge& judge) {
  std::string text = "+" + short_name(one.workload) + "@";
  const model::WorkloadSpec& spec = judge.spec(one.workload);
  for (std::size_t i = 0; i < one.admission.pod_sets.size(); ++i) {
    const model::PodSetAdmission& set = one.admission.pod_sets[i];
    if (i > 0) text += "+";
    std::set<std::string> flavors;
    for (const auto& [resource, flavor] : set.flavors) flavors.insert(flavor);
    for (auto it = flavors.begin(); it != flavors.end(); ++it) {
      text += (it == flavors.begin() ? "" : ",") + *it;
    }
    if (set.count != spec.pod_sets[i].count) text += "*" + std::to_string(set.count);
  }
  return text;
}

}  // namespace

model::QueueInputs world_of(std::vector<model::QueueSpec> queues,
                            std::vector<model::WorkloadSpec> workloads,
                            std::vector<model::CohortSpec> cohorts) {
  model::QueueInputs inputs;
  std::set<std::string> flavors;
  for (const model::QueueSpec& queue : queues) {
    for (const model::ResourceGroup& group : queue.groups) {
      for (const model::FlavorQuota& quota : group.flavors) flavors.insert(quota.flavor);
    }
    model::LocalQueueSpec local;
    local.ns = "d";
    local.name = local.queue = queue.name;
    inputs.local_queues.push_back(local);
  }
  for (const std::string& flavor : flavors) inputs.flavors.emplace_back().name = flavor;
  inputs.queues = std::move(queues);
  inputs.cohorts = std::move(cohorts);
  inputs.workloads = std::move(workloads);
  inputs.namespaces["d"] = {};
  return inputs;
}

std::string text_of(const QueueCycle& cycle, const QueueJudge& judge) {
  std::vector<std::string> parts;
  for (const QueueAdmitted& one : cycle.admitted) parts.push_back(text_of_admission(one, judge));
  for (const QueuePreempted& one : cycle.preempted) {
    parts.push_back("-" + short_name(one.workload) + " " + one.reason + "<" + short_name(one.by));
  }
  for (const QueueLeft& one : cycle.left) {
    parts.push_back(short_name(one.workload) + " " + one.reason +
                    (one.parked ? " parked" : " heap"));
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

std::string run_cycle(QueueJudge& judge, std::int64_t now_ns) {
  QueueCycle cycle = judge.cycle(now_ns);
  return text_of(cycle, judge);
}

std::string first_cycle(const model::QueueInputs& inputs) {
  QueueJudge judge(inputs, 0);
  return run_cycle(judge);
}

}  // namespace berth::judging
