#include "queue_memory.h"

#include <algorithm>
#include <set>

namespace berth::scenario {

namespace {

constexpr std::int64_t kNano = 1'000'000'000;

// base, 2 x base, 4 x base ... up to the most.
std::int64_t backoff_ns(const model::QueueConfig& config, int tries) {
  std::int64_t seconds = config.backoff_base_s;
  for (int i = 1; i < tries && seconds < config.backoff_max_s; ++i) seconds *= 2;
  return std::min<std::int64_t>(seconds, config.backoff_max_s) * kNano;
}

bool is_set_of(const model::WorkloadSpec& workload, const model::PodSetSpec& set,
               const std::string& pod) {
  if (workload.pod_sets.size() == 1) return true;
  return pod.starts_with(workload.ns + '/' + workload.name + '-' + set.name + '-');
}

}  // namespace

bool QueueMemory::holds(const std::string& workload) const {
  const auto it = states_.find(workload);
  return it != states_.end() && it->second.admission.has_value();
}

void QueueMemory::remember_eviction(const model::Eviction& eviction, const kinds::Inputs& inputs,
                                    std::int64_t now_ns) {
  State state;
  state.since_ns = now_ns;
  const bool preempted = eviction.reason.starts_with("In");
  state.evicted = preempted ? "Preempted" : eviction.reason;
  if (const auto before = states_.find(eviction.workload); before != states_.end()) {
    state.preemptions_ns = before->second.preemptions_ns;
  }
  if (preempted) {
    state.preempted = eviction.reason;
    state.preempted_by = eviction.by;
    state.preemptions_ns.push_back(now_ns);
  }
  for (const model::WorkloadSpec& workload : inputs.queues.workloads) {
    if (preempted && workload.ns + '/' + workload.name == eviction.by && !workload.uid.empty()) {
      state.preempted_by = workload.uid;
    }
    if (workload.ns + '/' + workload.name != eviction.workload) continue;
    state.requeues = workload.requeues;
    if (eviction.reason != "PodsReadyTimeout") continue;
    ++state.requeues;
    state.requeue_at_ns = now_ns + backoff_ns(inputs.queues.config, state.requeues);
  }
  states_[eviction.workload] = std::move(state);
}

QueueMemory::State QueueMemory::state_before(const std::string& name,
                                             const kinds::Inputs& inputs) const {
  const auto it = states_.find(name);
  if (it != states_.end()) return it->second;
  State state;
  for (const model::WorkloadSpec& workload : inputs.queues.workloads) {
    if (workload.ns + '/' + workload.name == name) state.since_ns = workload.reserved_ns;
  }
  return state;
}

void QueueMemory::remember(const model::Decision& decision, const kinds::Inputs& inputs,
                           std::int64_t now_ns) {
  std::set<std::string> waiting;
  for (const model::Outcome& outcome : decision.outcomes) {
    const bool has_quota = outcome.verdict == model::Verdict::kPlaced ||
                           outcome.reason == model::Reason::kUnsatisfiedAdmissionChecks;
    if (outcome.queued && !has_quota) waiting.insert(outcome.workload);
  }
  for (const model::Eviction& eviction : decision.evictions) {
    remember_eviction(eviction, inputs, now_ns);
  }
  for (const model::Admission& admission : decision.admissions) {
    if (waiting.contains(admission.workload)) continue;
    // One whose pods left a failed node ran before, and the rest of it runs on.
    State state;
    state.since_ns = now_ns;
    if (const auto before = states_.find(admission.workload); before != states_.end()) {
      state.preempted_by = before->second.preempted_by;
      state.preemptions_ns = before->second.preemptions_ns;
    }
    if (!admission.replaced_node.empty()) state = state_before(admission.workload, inputs);
    state.admission = {admission.queue, admission.pod_sets};
    state.admitted = admission.checks.empty();
    if (!admission.replaces.empty()) {
      State& old = states_[admission.replaces];
      state.pods = std::move(old.pods);
      old = {};
      old.finished = true;
    }
    for (const model::Placement& placement : decision.placements) {
      if (placement.gang != admission.workload) continue;
      std::vector<int> gpus = placement.gpus;
      gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
      state.pods[placement.pod] = {placement.node, std::move(gpus)};
    }
    states_[admission.workload] = std::move(state);
  }
}

void QueueMemory::add_pods(const State& state, model::WorkloadSpec& workload,
                           kinds::Inputs& inputs) {
  for (const auto& [name, at] : state.pods) {
    const auto known =
        std::find_if(inputs.pods.begin(), inputs.pods.end(),
                     [&](const model::PodSpec& p) { return p.ns + '/' + p.name == name; });
    if (known != inputs.pods.end()) continue;  // the engine binds those of the input
    for (model::PodSetSpec& set : workload.pod_sets) {
      if (!is_set_of(workload, set, name)) continue;
      model::PodSpec pod = *set.pod;
      pod.ns = workload.ns;
      pod.name = name.substr(name.find('/') + 1);
      pod.owner = workload.owner;
      pod.node_name = at.node;
      pod.gpu_indices = at.gpus;
      pod.started_ns = state.since_ns;
      pod.queued = true;
      inputs.pods.push_back(std::move(pod));
      set.pods.push_back(name);
      break;
    }
  }
}

void QueueMemory::recall(kinds::Inputs& inputs) const {
  std::erase_if(inputs.queues.workloads, [this](const model::WorkloadSpec& workload) {
    const auto it = states_.find(workload.ns + '/' + workload.name);
    return it != states_.end() && it->second.finished;
  });
  for (model::WorkloadSpec& workload : inputs.queues.workloads) {
    const auto it = states_.find(workload.ns + '/' + workload.name);
    if (it == states_.end()) continue;
    const State& state = it->second;
    workload.admission = state.admission;
    workload.admitted = state.admitted;
    workload.evicted = state.evicted;
    workload.preempted = state.preempted;
    workload.preempted_by = state.preempted_by;
    workload.preemptions_ns = state.preemptions_ns;
    if (state.admission) {
      workload.reserved_ns = workload.admitted_ns = state.since_ns;
      workload.requeue_at_ns = 0;
      add_pods(state, workload, inputs);
      continue;
    }
    workload.evicted_ns = state.since_ns;
    workload.requeues = state.requeues;
    workload.requeue_at_ns = state.requeue_at_ns;
    workload.pods_ready = true;
    if (state.evicted.starts_with("Deactivated")) workload.active = false;
    for (auto& [check, how] : workload.checks) how = model::CheckState::kAwaited;
  }
  for (model::WorkloadSpec& workload : inputs.queues.workloads) {
    for (model::PodSetSpec& set : workload.pod_sets) std::sort(set.pods.begin(), set.pods.end());
  }
}

}  // namespace berth::scenario
