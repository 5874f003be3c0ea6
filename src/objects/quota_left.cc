#include "objects/quota_left.h"

#include "objects/readers.h"

namespace berth::objects {

namespace {

constexpr int kDeepest = 64;  // cohorts above one another; circles end there

}  // namespace

QuotaLeft::QuotaLeft(const model::QueueInputs& queues) {
  std::map<std::string_view, std::string_view> parents;
  for (const model::CohortSpec& cohort : queues.cohorts) parents[cohort.name] = cohort.parent;
  const auto top_of = [&](std::string_view at) {
    for (int depth = 0; depth < kDeepest && !at.empty(); ++depth) {
      const auto above = parents.find(at);
      if (above == parents.end() || above->second.empty()) break;
      at = above->second;
    }
    return at.empty() ? std::string() : "cohort/" + std::string(at);
  };
  for (const model::QueueSpec& queue : queues.queues) {
    const std::string top = top_of(queue.cohort);
    give(queue.name, queue.groups, !top.empty());
    if (top.empty()) continue;
    give(top, queue.groups, false);
    top_.emplace(queue.name, top);
  }
  for (const model::CohortSpec& cohort : queues.cohorts) {
    give(top_of(cohort.name), cohort.groups, false);
  }
  for (const model::WorkloadSpec& holder : queues.workloads) {
    if (!holder.admission) continue;
    const auto top = top_.find(holder.admission->queue);
    for (const model::PodSetAdmission& set : holder.admission->pod_sets) {
      for (const auto& [resource, amount] : set.usage) {
        const auto flavor = set.flavors.find(resource);
        if (flavor == set.flavors.end()) continue;
        left_[{holder.admission->queue, flavor->second, resource}] -= amount;
        if (top != top_.end()) left_[{top->second, flavor->second, resource}] -= amount;
      }
    }
  }
}

void QuotaLeft::give(const std::string& owner, const std::vector<model::ResourceGroup>& groups,
                     bool may_borrow) {
  for (const model::ResourceGroup& group : groups) {
    for (const model::FlavorQuota& quotas : group.flavors) {
      for (const model::ResourceQuota& quota : quotas.resources) {
        Amount& left = left_[{owner, quotas.flavor, quota.resource}];
        left += quota.nominal;
        if (may_borrow) left += quota.borrowing_limit.value_or(kMaxAmount);
      }
    }
  }
}

bool QuotaLeft::take(const std::string& queue, const std::vector<Ask>& asks) {
  const auto top = top_.find(queue);
  std::vector<std::pair<Amount*, std::int64_t>> parts;
  for (const Ask& ask : asks) {
    parts.emplace_back(&left_[{queue, ask.flavor, ask.resource}], ask.amount);
    if (top == top_.end()) continue;
    parts.emplace_back(&left_[{top->second, ask.flavor, ask.resource}], ask.amount);
  }
  for (const auto& [left, amount] : parts) {
    if (*left < amount) return false;
  }
  for (const auto& [left, amount] : parts) *left -= amount;
  return true;
}

}  // namespace berth::objects
