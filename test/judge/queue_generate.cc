#include "judge/queue_generate.h"

#include <algorithm>

#include "judge/queue_tree.h"

namespace berth::judging {

using model::QueueInputs;
using model::QueueSpec;
using model::ResourceGroup;
using model::WorkloadSpec;

namespace {

constexpr std::int64_t kTick = 1'000'000'000;
constexpr const char* kPoolKey = "pool";
constexpr const char* kZoneKey = "zone";

bool percent(Random& random, int of_hundred) {
  return random.chance(static_cast<std::uint64_t>(of_hundred), 100);
}

int upto(Random& random, int low, int high) { return static_cast<int>(random.between(low, high)); }

// Group 0 has gpu, and cpu in some worlds; group 1 memory or pods.
std::vector<std::string> covered_by(int group, bool wide) {
  if (group == 0)
    return wide ? std::vector<std::string>{"cpu", "gpu"} : std::vector<std::string>{"gpu"};
  return {wide ? "pods" : "memory"};
}

std::string flavor_name(int group, int index) {
  return std::string(group == 0 ? "a" : "b") + std::to_string(index);
}

class WorldMaker {
 public:
  WorldMaker(Random& random, const QueueMix& mix) : random_(random), mix_(mix) {}

  QueueInputs make() {
    groups_ = upto(random_, 1, mix_.max_groups);
    flavors_ = upto(random_, 1, mix_.max_flavors);
    wide_ = percent(random_, 50);
    add_config();
    add_flavors();
    add_cohorts();
    const int queues = percent(random_, 10) ? 1 : upto(random_, 2, mix_.max_queues);
    for (int i = 0; i < queues; ++i) add_queue(i);
    world_.checks.push_back({.name = "check", .controller = "c", .active = true});
    world_.namespaces = {{"n0", {{"team", "red"}}}, {"n1", {{"team", "blue"}}}};
    add_holders();
    for (int i = 0; i < mix_.pending; ++i) {
      world_.workloads.push_back(random_workload(random_, mix_, world_, 100 + i, kQueuesAt));
    }
    sort_lists();
    return world_;
  }

 private:
  void add_config() {
    model::QueueConfig& config = world_.config;
    config.fair_sharing = mix_.fair_sharing.value_or(percent(random_, 50));
    using Strategy = model::QueueConfig::Strategy;
    if (percent(random_, 30)) config.strategies = {Strategy::kLessThanOrEqualToFinalShare};
    if (percent(random_, 20)) config.strategies = {Strategy::kLessThanInitialShare};
    config.ignore_undeclared = percent(random_, 20);
    config.block_admission = mix_.block_admission;
    if (mix_.admission_fair_sharing) {
      config.half_life_s = 600;
      config.sampling_s = 4;
    }
  }

  void add_flavors() {
    for (int group = 0; group < groups_; ++group) {
      for (int i = 0; i < flavors_; ++i) {
        model::FlavorSpec flavor;
        flavor.name = flavor_name(group, i);
        if (percent(random_, 70)) flavor.node_labels[kPoolKey] = std::to_string(i);
        if (percent(random_, 30)) flavor.node_labels[kZoneKey] = std::to_string(random_.below(2));
        if (percent(random_, i == 0 ? 5 : mix_.choosy_percent)) {
          flavor.node_taints.push_back({"spot", "yes",
                                        percent(random_, 80)
                                            ? model::TaintEffect::kNoSchedule
                                            : model::TaintEffect::kPreferNoSchedule});
          if (percent(random_, 30)) {
            flavor.tolerations.push_back({"spot", model::Toleration::Op::kExists, "", {}});
          }
        }
        world_.flavors.push_back(flavor);
      }
    }
  }

  std::int64_t amount(int most) {
    if (percent(random_, mix_.unlimited_percent)) return quota::kUnlimited;
    return percent(random_, 12) ? 0 : random_.between(1, most);
  }

  model::ResourceQuota random_quota(const std::string& resource, int most, bool limited) {
    model::ResourceQuota quota{resource, amount(most), {}, {}};
    if (limited && percent(random_, mix_.limits_percent)) {
      quota.borrowing_limit = random_.between(0, 4);
    }
    if (limited && percent(random_, mix_.limits_percent)) {
      quota.lending_limit = random_.between(0, 4);
    }
    return quota;
  }

  std::vector<ResourceGroup> random_groups(int most, bool limited) {
    std::vector<ResourceGroup> groups;
    for (int group = 0; group < groups_; ++group) {
      ResourceGroup& out = groups.emplace_back();
      out.covered = covered_by(group, wide_);
      std::vector<int> order;
      for (int i = 0; i < flavors_; ++i) order.push_back(i);
      if (percent(random_, 30)) random_.shuffle(order);
      for (int i : order) {
        if (!out.flavors.empty() && percent(random_, 20)) continue;
        model::FlavorQuota& flavor = out.flavors.emplace_back();
        flavor.flavor = flavor_name(group, i);
        for (const std::string& resource : out.covered) {
          flavor.resources.push_back(random_quota(resource, most, limited));
        }
      }
    }
    return groups;
  }

  double random_weight() {
    constexpr double kWeights[] = {1, 1, 1, 2, 0.5, 4, 0};
    return kWeights[random_.below(std::size(kWeights))];
  }

  void add_cohorts() {
    const int roots = percent(random_, 60) ? 1 : upto(random_, 1, mix_.max_roots);
    for (int root = 0; root < roots; ++root) {
      std::vector<std::string> above = {"r" + std::to_string(root)};
      add_cohort(above.front(), "");
      const int levels = percent(random_, 50) ? 1 : upto(random_, 1, mix_.max_levels);
      for (int level = 1; level < levels; ++level) {
        std::vector<std::string> here;
        const int count = upto(random_, 1, 2);
        for (int i = 0; i < count; ++i) {
          const std::string& parent = above[random_.below(above.size())];
          here.push_back(parent + static_cast<char>('a' + i));
          add_cohort(here.back(), parent);
        }
        above = here;
      }
    }
  }

  void add_cohort(const std::string& name, const std::string& parent) {
    cohorts_.push_back(name);
    if (parent.empty() && percent(random_, 40)) return;  // implicit
    model::CohortSpec cohort{.name = name, .parent = parent, .groups = {}, .weight = 1};
    if (percent(random_, 40)) cohort.groups = random_groups(4, !parent.empty());
    cohort.weight = random_weight();
    if (percent(random_, mix_.odd_percent) && percent(random_, 10))
      cohort.parent = name;  // a cycle
    world_.cohorts.push_back(cohort);
  }

  void add_queue(int number) {
    QueueSpec queue;
    queue.name = "q" + std::to_string(number);
    if (!percent(random_, 12)) queue.cohort = cohorts_[random_.below(cohorts_.size())];
    queue.groups = random_groups(7, !queue.cohort.empty());
    queue.strict_fifo = percent(random_, 30);
    queue.namespaces = text::Selector{};
    queue.borrow_stops_search = percent(random_, 60);
    queue.preempt_stops_search = percent(random_, 40);
    if (!queue.borrow_stops_search && !queue.preempt_stops_search) {
      queue.prefer_less_borrowing = percent(random_, 50);
    }
    queue.within = static_cast<model::PreemptWithin>(random_.below(3));
    queue.reclaim = static_cast<model::Reclaim>(random_.below(3));
    if (queue.reclaim != model::Reclaim::kNever && percent(random_, 40)) {
      queue.borrow_by_preemption = true;
      if (percent(random_, 50)) queue.max_priority_threshold = upto(random_, 0, 2);
    }
    queue.weight = random_weight();
    queue.admission_fair_sharing = mix_.admission_fair_sharing && percent(random_, 70);
    if (percent(random_, mix_.odd_percent)) make_odd(queue);
    for (int i = 0, count = upto(random_, 1, 2); i < count; ++i) {
      model::LocalQueueSpec local{.ns = "n" + std::to_string(random_.below(2)),
                                  .name = "l" + std::to_string(number) + std::to_string(i),
                                  .queue = queue.name,
                                  .stop = model::StopPolicy::kNone,
                                  .weight = percent(random_, 70) ? 1.0 : 2.0};
      if (percent(random_, mix_.odd_percent)) local.stop = model::StopPolicy::kHold;
      world_.local_queues.push_back(local);
    }
    world_.queues.push_back(queue);
  }

  void make_odd(QueueSpec& queue) {
    switch (random_.below(5)) {
      case 0:
        queue.stop =
            percent(random_, 50) ? model::StopPolicy::kHold : model::StopPolicy::kHoldAndDrain;
        break;
      case 1:
        queue.namespaces = text::Selector{{"team", text::Operator::kIn, {"red"}}};
        break;
      case 2:
        queue.namespaces.reset();
        break;
      case 3:
        queue.checks.push_back({percent(random_, 70) ? "check" : "missing", {}});
        break;
      default:
        queue.groups[0].flavors.front().flavor = "missing";
        break;
    }
  }

  // ---- holders ----

  void add_holders() {
    quota::QuotaTree tree(world_);
    quota::QuotaState state(tree);
    for (int i = 0; i < mix_.holders; ++i) {
      WorkloadSpec spec = random_workload(random_, mix_, world_, i, kQueuesAt);
      spec.held_by.clear();
      spec.active = true;
      spec.requeue_at_ns = 0;
      spec.reclaimable.clear();
      const QueueSpec* queue = queue_of(spec);
      if (queue == nullptr || tree.cyclic(quota::queue_node(queue->name))) continue;
      spec.admission = admission_for(spec, *queue);
      quota::Holding holding{.workload = spec.name, .queue = queue->name};
      for (const model::PodSetAdmission& set : spec.admission->pod_sets) {
        for (const auto& [resource, flavor] : set.flavors) {
          holding.usage[{flavor, resource}] += set.usage.at(resource);
        }
      }
      const bool over = percent(random_, mix_.over_percent);
      if (!over && !state.fits(queue->name, holding.usage, true)) continue;
      state.put(holding);
      hold(spec);
      world_.workloads.push_back(spec);
    }
  }

  void hold(WorkloadSpec& spec) {
    spec.admitted = percent(random_, 90);
    spec.reserved_ns = kQueuesAt - kTick * upto(random_, 1, 8);
    spec.admitted_ns = spec.admitted ? spec.reserved_ns : 0;
    spec.preemption_gated = false;
    if (percent(random_, mix_.evicted_percent)) {
      spec.evicted = "Preempted";
      spec.evicted_ns = kQueuesAt;
    }
    model::PodSetSpec& first = spec.pod_sets.front();
    if (!first.min_count && first.count > 1 && percent(random_, mix_.odd_percent)) {
      spec.reclaimable[first.name] = 1;
    }
  }

  const QueueSpec* queue_of(const WorkloadSpec& spec) const {
    for (const model::LocalQueueSpec& local : world_.local_queues) {
      if (local.ns != spec.ns || local.name != spec.queue) continue;
      for (const QueueSpec& queue : world_.queues) {
        if (queue.name == local.queue) return &queue;
      }
    }
    return nullptr;
  }

  model::AdmissionSpec admission_for(const WorkloadSpec& spec, const QueueSpec& queue) {
    model::AdmissionSpec admission{.queue = queue.name, .pod_sets = {}};
    for (const model::PodSetSpec& set : spec.pod_sets) {
      model::PodSetAdmission& out = admission.pod_sets.emplace_back();
      out.name = set.name;
      out.count = set.count;
      for (const ResourceGroup& group : queue.groups) {
        const std::string& flavor = group.flavors[random_.below(group.flavors.size())].flavor;
        for (const std::string& resource : group.covered) {
          auto asked = set.requests.find(resource);
          if (asked == set.requests.end() && resource != "pods") continue;
          out.flavors[resource] = flavor;
          out.usage[resource] = resource == "pods" ? set.count : asked->second * set.count;
        }
      }
    }
    return admission;
  }

  void sort_lists() {
    auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
    auto by_both = [](const auto& a, const auto& b) {
      return std::pair(a.ns, a.name) < std::pair(b.ns, b.name);
    };
    std::sort(world_.flavors.begin(), world_.flavors.end(), by_name);
    std::sort(world_.queues.begin(), world_.queues.end(), by_name);
    std::sort(world_.cohorts.begin(), world_.cohorts.end(), by_name);
    std::sort(world_.local_queues.begin(), world_.local_queues.end(), by_both);
    std::sort(world_.workloads.begin(), world_.workloads.end(), by_both);
  }

  Random& random_;
  const QueueMix& mix_;
  int groups_ = 1, flavors_ = 1;
  bool wide_ = false;
  std::vector<std::string> cohorts_;
  QueueInputs world_;
};

// ---- workloads ----

void choose_nodes(Random& random, model::PodSpec& pod) {
  if (percent(random, 20)) pod.node_selector[kPoolKey] = std::to_string(random.below(2));
  if (percent(random, 10)) pod.node_selector[kZoneKey] = std::to_string(random.below(2));
  for (int terms = percent(random, 40) ? upto(random, 1, 2) : 0; terms > 0; --terms) {
    model::NodeSelectorTerm& term = pod.required_nodes.emplace_back();
    if (percent(random, 15)) {
      term.fields.push_back({"metadata.name", text::Operator::kIn, {"node"}});
    }
    if (percent(random, 80)) {
      const bool in = percent(random, 60);
      term.labels.push_back({percent(random, 60) ? kPoolKey : kZoneKey,
                             in ? text::Operator::kIn : text::Operator::kNotIn,
                             {std::to_string(random.below(3))}});
    }
    if (percent(random, 20)) term.labels.push_back({"other", text::Operator::kExists, {}});
  }
  if (percent(random, 50)) {
    pod.tolerations.push_back(
        {"spot", model::Toleration::Op::kEqual, percent(random, 80) ? "yes" : "no", {}});
  }
}

model::PodSetSpec random_pod_set(Random& random, const QueueMix& mix,
                                 const std::vector<std::string>& resources, const std::string& name,
                                 bool may_shrink) {
  model::PodSetSpec set;
  set.name = name;
  set.count = percent(random, 65) ? 1 : upto(random, 2, 4);
  const int most = set.count == 1 ? 4 : 2;
  for (const std::string& resource : resources) {
    if (resource == "pods" || percent(random, 10)) continue;
    set.requests[resource] = percent(random, 5) ? 0 : random.between(1, most);
  }
  if (percent(random, mix.odd_percent) && percent(random, 30))
    set.requests["disk"] = upto(random, 0, 1);
  if (may_shrink && set.count > 1) {
    set.min_count = upto(random, 1, set.count - 1);
  }
  if (percent(random, mix.choosy_percent)) {
    auto pod = std::make_shared<model::PodSpec>();
    choose_nodes(random, *pod);
    set.pod = pod;
  }
  return set;
}

void make_odd_workload(Random& random, std::int64_t now_ns, WorkloadSpec& spec) {
  model::PodSetSpec& first = spec.pod_sets.front();
  switch (random.below(7)) {
    case 0:
      spec.active = false;
      break;
    case 1:
      spec.held_by = "someone";
      break;
    case 2:
      spec.requeue_at_ns = now_ns + kTick * upto(random, 0, 4);
      break;
    case 3:
      spec.evicted = percent(random, 50) ? "PodsReadyTimeout" : "AdmissionCheck";
      spec.evicted_ns = now_ns - kTick * upto(random, 0, 4);
      break;
    case 4:
      spec.checks["check"] = static_cast<model::CheckState>(random.below(4));
      break;
    case 5:
      if (!first.min_count) spec.reclaimable[first.name] = upto(random, 0, first.count);
      break;
    default:
      spec.queue = "missing";
      break;
  }
}

}  // namespace

QueueInputs generate_queues(Random& random, const QueueMix& mix) {
  return WorldMaker(random, mix).make();
}

WorkloadSpec random_workload(Random& random, const QueueMix& mix, const QueueInputs& world,
                             int serial, std::int64_t now_ns) {
  WorkloadSpec spec;
  const model::LocalQueueSpec& local = world.local_queues[random.below(world.local_queues.size())];
  spec.ns = local.ns;
  spec.queue = local.name;
  spec.name = "w" + std::to_string(10000 + serial).substr(1);
  if (percent(random, 70)) spec.uid = "u" + std::to_string(random.below(1'000'000)) + spec.name;
  spec.priority = upto(random, 0, 3);
  spec.created_ns = now_ns - kTick * upto(random, 0, 5);
  std::vector<std::string> resources;
  for (const QueueSpec& queue : world.queues) {
    if (queue.name != local.queue) continue;
    for (const ResourceGroup& group : queue.groups) {
      resources.insert(resources.end(), group.covered.begin(), group.covered.end());
    }
  }
  const int sets = percent(random, mix.several_sets_percent) ? upto(random, 2, 3) : 1;
  int shrinks = percent(random, mix.min_count_percent) ? upto(random, 0, sets - 1) : -1;
  for (int i = 0; i < sets; ++i) {
    spec.pod_sets.push_back(
        random_pod_set(random, mix, resources, "s" + std::to_string(i), i == shrinks));
  }
  if (!world.workloads.empty() && percent(random, mix.twins_percent)) {
    const WorkloadSpec& twin = world.workloads[random.below(world.workloads.size())];
    spec.ns = twin.ns;
    spec.queue = twin.queue;
    spec.priority = twin.priority;
    spec.pod_sets = twin.pod_sets;
  }
  if (percent(random, mix.odd_percent)) make_odd_workload(random, now_ns, spec);
  if (percent(random, mix.odd_percent)) spec.preemption_gated = true;
  return spec;
}

QueueOperation random_operation(Random& random, const QueueMix& mix, const QueueInputs& world,
                                const std::vector<std::string>& holders, int serial,
                                std::int64_t now_ns) {
  QueueOperation operation;
  const std::uint64_t dice = random.below(100);
  if (dice < 50) return operation;
  if (dice < 65) {
    operation.kind = QueueOperation::Kind::kEvictionsDone;
  } else if (dice < 80 && !holders.empty()) {
    operation.kind = QueueOperation::Kind::kFinish;
    operation.workload = holders[random.below(holders.size())];
  } else {
    operation.kind = QueueOperation::Kind::kAdd;
    operation.spec = random_workload(random, mix, world, serial, now_ns);
  }
  return operation;
}

}  // namespace berth::judging
