#include "kinds/resolve/queue_forest.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/amounts.h"
#include "text/quantity.h"

namespace berth::kinds {

namespace {

using model::Amounts;

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

std::int64_t plus(std::int64_t a, std::int64_t b) {  // of amounts; kUnlimited stays
  return a > kUnlimited - b ? kUnlimited : a + b;
}
// a - b, at least 0; kUnlimited less something is kUnlimited, less itself nothing.
std::int64_t above(std::int64_t a, std::int64_t b) {
  if (a <= b) return 0;
  return a == kUnlimited ? kUnlimited : a - b;
}

const std::int64_t* stated(const Amounts& amounts, const std::string& resource) {
  const auto it = amounts.find(resource);
  return it == amounts.end() ? nullptr : &it->second;
}

class Forest {
 public:
  Forest(std::vector<ForestQueue> queues, const Amounts& totals)
      : queues_(std::move(queues)), totals_(totals) {
    for (const ForestQueue& queue : queues_) by_name_[queue.name] = &queue;
    for (const ForestQueue& queue : queues_) {
      children_[parent_of(queue)].push_back(&queue);
      weights_[parent_of(queue)] += queue.weight;
    }
  }

  const std::vector<ForestQueue>& queues() const { return queues_; }
  bool has_children(const std::string& name) const { return children_.contains(name); }

  // Itself and everything below it.
  std::int64_t whole(const ForestQueue& queue, const std::string& resource) const {
    if (!has_children(queue.name)) return own(queue, resource);
    const std::int64_t* said = stated(queue.nominal, resource);
    const std::int64_t below = sum_below(queue.name, resource);
    if (said == nullptr && !queue.by_weight) return below;
    return std::max(below, said != nullptr ? *said : own(queue, resource));
  }

  std::int64_t sum_below(const std::string& name, const std::string& resource) const {
    std::int64_t sum = 0;
    const auto it = children_.find(name);
    if (it == children_.end()) return 0;
    for (const ForestQueue* child : it->second) sum = plus(sum, whole(*child, resource));
    return sum;
  }

 private:
  std::string parent_of(const ForestQueue& queue) const {
    return by_name_.contains(queue.parent) ? queue.parent : std::string();
  }

  // What a queue states or is due by weight.
  std::int64_t own(const ForestQueue& queue, const std::string& resource) const {
    std::int64_t amount = kUnlimited;
    if (const std::int64_t* said = stated(queue.nominal, resource)) {
      amount = *said;
    } else if (queue.by_weight) {
      amount = by_weight(queue, resource);
    }
    const std::int64_t* cap = stated(queue.cap, resource);
    return cap == nullptr ? amount : std::min(amount, *cap);
  }

  std::int64_t by_weight(const ForestQueue& queue, const std::string& resource) const {
    const std::string parent = parent_of(queue);
    std::int64_t base = kUnlimited;
    if (!parent.empty()) {
      base = own(*by_name_.at(parent), resource);
    } else if (const std::int64_t* total = stated(totals_, resource)) {
      base = *total;
    }
    if (base == kUnlimited) return kUnlimited;
    const double weights = weights_.at(parent);
    if (weights <= 0) return 0;
    // Weights are whole and small: the product is exact in 128 bits.
    return static_cast<std::int64_t>(text::Int128{base} * static_cast<std::int64_t>(queue.weight) /
                                     static_cast<std::int64_t>(weights));
  }

  std::vector<ForestQueue> queues_;
  const Amounts& totals_;
  std::map<std::string, const ForestQueue*> by_name_;
  std::map<std::string, std::vector<const ForestQueue*>> children_;
  std::map<std::string, double> weights_;  // of the children
};

std::string free_cohort(std::string name, const model::QueueInputs& out,
                        const std::set<std::string>& made) {
  const auto taken = [&](const std::string& n) {
    return made.contains(n) ||
           std::any_of(out.cohorts.begin(), out.cohorts.end(),
                       [&](const auto& c) { return c.name == n || c.parent == n; }) ||
           std::any_of(out.queues.begin(), out.queues.end(),
                       [&](const auto& q) { return q.cohort == n; });
  };
  while (taken(name)) name += "-queues";
  return name;
}

model::ResourceQuota quota_of(const Forest& forest, const ForestQueue& queue,
                              const std::string& resource) {
  model::ResourceQuota out;
  out.resource = resource;
  const std::int64_t whole = forest.whole(queue, resource);
  out.nominal = above(whole, forest.sum_below(queue.name, resource));
  if (!forest.has_children(queue.name)) out.nominal = whole;
  if (const std::int64_t* cap = stated(queue.cap, resource)) {
    out.borrowing_limit = above(*cap, whole);
  }
  const std::int64_t* guarantee = stated(queue.guarantee, resource);
  if (guarantee != nullptr && whole != kUnlimited) out.lending_limit = above(whole, *guarantee);
  return out;
}

model::ResourceGroup group_of(const std::set<std::string>& resources, const std::string& flavor) {
  model::ResourceGroup group;
  group.covered.assign(resources.begin(), resources.end());
  group.flavors.push_back({.flavor = flavor, .resources = {}});
  return group;
}

}  // namespace

Amounts cluster_totals(const std::vector<model::NodeSpec>& nodes) {
  Amounts out{{"cpu", 0}, {"memory", 0}, {"nvidia.com/gpu", 0}};
  for (const model::NodeSpec& node : nodes) {
    for (const char* resource : {"cpu", "memory"}) {
      const auto it = node.allocatable.find(resource);
      if (it != node.allocatable.end()) out[resource] = plus(out[resource], it->second);
    }
    for (const model::GpuSpec& gpu : node.gpus) {
      if (gpu.mig.empty() && model::offers_gpus(node)) out["nvidia.com/gpu"] += node.shares_per_gpu;
    }
  }
  return out;
}

void plant(const std::string& root, std::vector<ForestQueue> queues, const Amounts& totals,
           const std::set<std::string>& resources, const std::string& flavor,
           model::QueueInputs& out) {
  const Forest forest(std::move(queues), totals);
  std::set<std::string> made;
  const std::string top = free_cohort(root, out, made);
  made.insert(top);
  std::map<std::string, std::string> cohorts;  // by queue
  for (const ForestQueue& queue : forest.queues()) {
    if (!forest.has_children(queue.name)) continue;
    cohorts[queue.name] = free_cohort(queue.name, out, made);
    made.insert(cohorts[queue.name]);
  }
  for (const ForestQueue& queue : forest.queues()) {
    model::ResourceGroup group = group_of(resources, flavor);
    for (const auto& r : resources)
      group.flavors[0].resources.push_back(quota_of(forest, queue, r));
    const auto parent = cohorts.find(queue.parent);
    const std::string& above_it = parent == cohorts.end() ? top : parent->second;
    if (forest.has_children(queue.name)) {
      out.cohorts.push_back({.name = cohorts[queue.name],
                             .parent = above_it,
                             .groups = {std::move(group)},
                             .weight = queue.weight});
      continue;
    }
    model::QueueSpec spec;
    spec.name = queue.name;
    spec.cohort = above_it;
    spec.groups.push_back(std::move(group));
    spec.strict_fifo = queue.fifo;
    spec.namespaces = text::Selector();
    spec.within = model::PreemptWithin::kLowerPriority;
    spec.reclaim = model::Reclaim::kAny;
    spec.stop = queue.closed ? model::StopPolicy::kHold : model::StopPolicy::kNone;
    spec.weight = queue.weight;
    out.queues.push_back(std::move(spec));
  }
  model::ResourceGroup rest = group_of(resources, flavor);
  for (const auto& r : resources) {
    const std::int64_t* total = stated(totals, r);
    model::ResourceQuota quota;
    quota.resource = r;
    quota.nominal = total == nullptr ? 0 : above(*total, forest.sum_below("", r));
    rest.flavors[0].resources.push_back(std::move(quota));
  }
  out.cohorts.push_back({.name = top, .parent = "", .groups = {std::move(rest)}, .weight = 1});
}

}  // namespace berth::kinds
