#include "kinds/resolve/quota_left.h"

#include <algorithm>

#include "kinds/readers.h"

namespace berth::kinds {

namespace {

constexpr int kDeepest = 64;  // cohorts above one another; circles end there

template <class Use>
void each_quota(const std::vector<model::ResourceGroup>& groups, const Use& use) {
  for (const model::ResourceGroup& group : groups) {
    for (const model::FlavorQuota& quotas : group.flavors) {
      for (const model::ResourceQuota& quota : quotas.resources) use(quotas.flavor, quota);
    }
  }
}

}  // namespace

QuotaLeft::QuotaLeft(const model::QueueRules& queues) {
  std::map<std::string_view, std::string_view> parents;
  for (const model::CohortSpec& cohort : queues.cohorts) parents[cohort.name] = cohort.parent;
  const auto top_of = [&](std::string_view at) {
    for (int depth = 0; depth < kDeepest && !at.empty(); ++depth) {
      const auto above = parents.find(at);
      if (above == parents.end() || above->second.empty()) break;
      at = above->second;
    }
    return std::string(at);
  };
  for (const model::QueueSpec& queue : queues.queues) {
    const std::string top = top_of(queue.cohort);
    if (!top.empty()) top_.emplace(queue.name, top);
    each_quota(queue.groups, [&](const std::string& flavor, const model::ResourceQuota& quota) {
      Own& own = own_[{queue.name, flavor, quota.resource}];
      own.most += quota.nominal;
      if (top.empty()) return;
      const std::int64_t lent =
          std::min(quota.nominal, quota.lending_limit.value_or(quota.nominal));
      own.most += quota.borrowing_limit.value_or(kMaxAmount);
      own.kept += quota.nominal - lent;
      pool_[{top, flavor, quota.resource}] += lent;
    });
  }
  for (const model::CohortSpec& cohort : queues.cohorts) {
    const std::string top = top_of(cohort.name);
    each_quota(cohort.groups, [&](const std::string& flavor, const model::ResourceQuota& quota) {
      pool_[{top, flavor, quota.resource}] += quota.nominal;
    });
  }
}

QuotaLeft::QuotaLeft(const model::QueueInputs& queues)
    : QuotaLeft(static_cast<const model::QueueRules&>(queues)) {
  for (const model::WorkloadSpec& workload : queues.workloads) hold(workload);
}

void QuotaLeft::hold(const model::WorkloadSpec& workload) {
  if (!workload.admission) return;
  for (const model::PodSetAdmission& set : workload.admission->pod_sets) {
    for (const auto& [resource, amount] : set.usage) {
      const auto flavor = set.flavors.find(resource);
      if (flavor == set.flavors.end()) continue;
      use(workload.admission->queue, {flavor->second, resource, amount});
    }
  }
}

QuotaLeft::Amount QuotaLeft::shared(const Own& own) const {
  return std::max<Amount>(0, own.used - own.kept);
}

QuotaLeft::Amount QuotaLeft::left(const std::string& queue, const Ask& ask) {
  const Own& own = own_[{queue, ask.flavor, ask.resource}];
  const Amount alone = own.most - own.used;
  const auto top = top_.find(queue);
  if (top == top_.end()) return alone;
  const Amount kept = std::max<Amount>(0, own.kept - own.used);
  const Amount pool = pool_[{top->second, ask.flavor, ask.resource}];
  return std::min(alone, kept + std::max<Amount>(0, pool));
}

void QuotaLeft::use(const std::string& queue, const Ask& ask) {
  Own& own = own_[{queue, ask.flavor, ask.resource}];
  const Amount before = shared(own);
  own.used += ask.amount;
  const auto top = top_.find(queue);
  if (top != top_.end()) {
    pool_[{top->second, ask.flavor, ask.resource}] -= shared(own) - before;
  }
}

bool QuotaLeft::take(const std::string& queue, const std::vector<Ask>& asks) {
  for (const Ask& ask : asks) {
    if (left(queue, ask) < ask.amount) return false;
  }
  for (const Ask& ask : asks) use(queue, ask);
  return true;
}

std::int64_t QuotaLeft::take_most(const std::string& queue, const Ask& ask) {
  const Amount most =
      std::clamp<Amount>(left(queue, ask), 0, std::max<std::int64_t>(ask.amount, 0));
  use(queue, {ask.flavor, ask.resource, static_cast<std::int64_t>(most)});
  return static_cast<std::int64_t>(most);
}

}  // namespace berth::kinds
