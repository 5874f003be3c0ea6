#include "decide/schedule/jobs.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace berth::schedule {

using model::ClusterState;
using model::PodId;

int gang_priority(const ClusterState& state, std::int32_t gang) {
  if (state.gang(gang).priority) return *state.gang(gang).priority;
  int highest = INT32_MIN;
  state.for_each_in_gang(gang, [&](PodId id) {
    const model::PodEntry& pod = state.pod(id);
    if (pod.slot == model::kPending && pod.info->terminating) return;
    highest = std::max(highest, pod.info->priority);
  });
  return highest;
}

namespace {

// Pods of the cluster's own namespace are nobody's to evict, and the API server would not let us
// (deploy/rbac/controller-fence.yaml).
bool is_nobodys(const model::PodInfo& pod) {
  return pod.stays || pod.name.starts_with("kube-system/");
}

}  // namespace

std::vector<Job> jobs_below(const ClusterState& state, int priority, std::int32_t itself,
                            std::int64_t now_ns) {
  std::map<std::pair<std::int32_t, PodId>, Job> found;  // by gang, or by pod
  for (PodId id = 0; id < state.pod_ids(); ++id) {
    const model::PodEntry& pod = state.pod(id);
    if (!pod.info || pod.slot < 0 || pod.info->terminating || pod.info->queued) continue;
    auto gang = pod.info->gang;
    if (gang < 0 ? pod.info->priority >= priority : gang == itself) continue;
    auto [it, fresh] = found.try_emplace(gang >= 0 ? std::pair{gang, PodId{0}} : std::pair{-1, id});
    Job& job = it->second;
    if (fresh) {
      job.gang = gang;
      job.name = gang >= 0 ? state.gang(gang).ns + "/" + state.gang(gang).name : pod.info->name;
      job.priority = gang >= 0 ? gang_priority(state, gang) : pod.info->priority;
    }
    job.stays |= is_nobodys(*pod.info);
    job.pods.push_back(id);
    std::int64_t ran = pod.info->started_ns == 0 ? 0 : now_ns - pod.info->started_ns;
    job.lost += Work{pod.gpus.milli()} * std::max<std::int64_t>(ran, 0);
  }
  std::vector<Job> jobs;
  for (auto& [key, job] : found) {
    if (job.priority >= priority || job.stays) continue;
    std::sort(job.pods.begin(), job.pods.end(),
              [&](PodId a, PodId b) { return state.pod(a).info->name < state.pod(b).info->name; });
    jobs.push_back(std::move(job));
  }
  std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) {
    return std::tuple(a.priority, std::string_view(a.name), a.gang < 0) <
           std::tuple(b.priority, std::string_view(b.name), b.gang < 0);
  });
  return jobs;
}

BudgetCount::BudgetCount(const ClusterState& state)
    : budgets_(&state.budgets()), used_(state.budgets().size()) {}

bool BudgetCount::covers(std::size_t budget, const model::Shape& shape) const {
  const model::BudgetSpec& b = (*budgets_)[budget];
  return model::matches(
      {.namespaces = {b.ns}, .selector = b.selector, .match_nothing = b.match_nothing}, shape.ns,
      shape.labels);
}

bool BudgetCount::evict(const model::Shape& shape) {
  bool exceeded = false;
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (covers(i, shape)) exceeded |= ++used_[i] > (*budgets_)[i].disruptions_allowed;
  }
  return exceeded;
}

bool BudgetCount::forbids(const ClusterState& state, const Job& job) const {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    int mine = 0;
    for (PodId id : job.pods) mine += covers(i, *state.pod(id).shape) ? 1 : 0;
    if (mine > 0 && used_[i] + mine > (*budgets_)[i].disruptions_allowed) return true;
  }
  return false;
}

}  // namespace berth::schedule
