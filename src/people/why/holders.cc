#include "people/why/holders.h"

#include <algorithm>
#include <limits>

#include "decide/admit/departure.h"

namespace berth::people {

using model::WorkloadSpec;

namespace {

std::string named(const WorkloadSpec& spec) { return spec.ns + '/' + spec.name; }

// It stays as long as nobody sends it away.
bool stays(const admit::Book& book, const WorkloadSpec& spec, std::int64_t now_ns) {
  const admit::QueueId queue = book.find_queue(spec.admission->queue);
  const bool plain = spec.admitted && !spec.finished && spec.evicted.empty() &&
                     spec.reclaimable.empty() && spec.unhealthy_nodes.empty();
  return plain && queue != admit::kNoId && !admit::departure_of(book, spec, queue, now_ns);
}

std::size_t place_of(auto& list, const auto& value, auto& places) {
  const auto [it, fresh] = places.emplace(value, list.size());
  if (fresh) list.push_back(value);
  return it->second;
}

// The queue that a workload waits in; null: there is none.
const model::QueueSpec* queue_of(const WorkloadSpec& spec, const model::QueueRules& rules) {
  for (const model::LocalQueueSpec& local : rules.local_queues) {
    if (local.ns != spec.ns || local.name != spec.queue) continue;
    for (const model::QueueSpec& queue : rules.queues) {
      if (queue.name == local.queue) return &queue;
    }
  }
  return nullptr;
}

// Queues that use more of some flavor than is theirs.
std::set<std::string> borrowers(
    const model::QueueRules& rules,
    const std::map<std::string, std::map<Holders::Cell, std::int64_t>>& used) {
  std::set<std::string> out;
  for (const model::QueueSpec& queue : rules.queues) {
    const auto of_queue = used.find(queue.name);
    if (of_queue == used.end()) continue;
    for (const model::ResourceGroup& group : queue.groups) {
      for (const model::FlavorQuota& flavor : group.flavors) {
        for (const model::ResourceQuota& cell : flavor.resources) {
          const auto amount = of_queue->second.find({flavor.flavor, cell.resource});
          if (amount != of_queue->second.end() && amount->second > cell.nominal) {
            out.insert(queue.name);
          }
        }
      }
    }
  }
  return out;
}

// Whom its queue lets a workload send away, as far as queues and priorities tell.
class Reach {
 public:
  Reach(const WorkloadSpec& own, const model::QueueRules& rules,
        const std::set<std::string>& borrowers)
      : own_(own), rules_(rules), queue_(queue_of(own, rules)) {
    any_ = queue_ != nullptr &&
           (queue_->within != model::PreemptWithin::kNever ||
            queue_->reclaim != model::Reclaim::kNever || queue_->borrow_by_preemption);
    for (const model::QueueSpec& each : rules.queues) {
      const bool shared = any_ && !queue_->cohort.empty() && !each.cohort.empty();
      if (shared && borrowers.contains(each.name)) cohort_.insert(each.name);
    }
  }

  bool includes(const std::string& queue, const WorkloadSpec& holder) const {
    if (!any_) return false;
    if (queue == queue_->name) {
      if (rules_.config.fair_sharing) return true;
      switch (queue_->within) {
        case model::PreemptWithin::kNever:
          return false;
        case model::PreemptWithin::kLowerPriority:
          return holder.priority < own_.priority;
        case model::PreemptWithin::kLowerOrNewerEqualPriority:
          return holder.priority <= own_.priority;
      }
    }
    if (!cohort_.contains(queue)) return false;
    const bool anybody = rules_.config.fair_sharing || queue_->reclaim == model::Reclaim::kAny;
    return anybody || holder.priority < own_.priority;
  }

 private:
  const WorkloadSpec& own_;
  const model::QueueRules& rules_;
  const model::QueueSpec* queue_;
  bool any_ = false;
  std::set<std::string> cohort_;  // queues that may have borrowed what it wants
};

bool are_kin(const WorkloadSpec& a, const std::string& name, const WorkloadSpec& own,
             const std::string& own_name) {
  const bool family =
      !own.variant_of.empty() && (a.variant_of == own.variant_of || name == own.variant_of);
  return family || a.variant_of == own_name || a.replaces == own_name ||
         (!own.replaces.empty() && name == own.replaces);
}

// A holder of the amounts that nobody can send away.
WorkloadSpec crowd_of(const std::string& queue) {
  WorkloadSpec out;
  out.ns =
      "\x01"
      "crowd";  // no namespace has such a name
  out.name = queue;
  out.priority = std::numeric_limits<int>::max();
  out.admitted = true;
  out.admission.emplace();
  out.admission->queue = queue;
  return out;
}

void add_to_crowd(WorkloadSpec& crowd, const std::string& flavor, const std::string& resource,
                  std::int64_t amount) {
  if (crowd.pod_sets.empty() || crowd.pod_sets.back().name != flavor) {
    crowd.pod_sets.emplace_back();
    crowd.pod_sets.back().name = flavor;
    crowd.admission->pod_sets.emplace_back();
    crowd.admission->pod_sets.back().name = flavor;
    crowd.admission->pod_sets.back().count = 1;
  }
  model::PodSetAdmission& set = crowd.admission->pod_sets.back();
  set.flavors[resource] = flavor;
  set.usage[resource] = amount;
}

}  // namespace

Holders::Holders(const model::QueueInputs& inputs, std::int64_t now_ns) {
  const admit::Book book(inputs);
  std::map<std::string, std::size_t> queues;
  std::map<Cell, std::size_t> cells;
  for (const WorkloadSpec& spec : inputs.workloads) {
    if (!spec.admission) {
      waiting_.push_back({.spec = &spec, .name = named(spec)});
      continue;
    }
    Holder holder{.spec = &spec,
                  .name = named(spec),
                  .stays = stays(book, spec, now_ns),
                  .queue = place_of(queues_, spec.admission->queue, queues),
                  .amounts = {}};
    for (const model::PodSetAdmission& set : spec.admission->pod_sets) {
      for (const auto& [resource, flavor] : set.flavors) {
        const auto used = set.usage.find(resource);
        if (used == set.usage.end()) continue;
        holder.amounts.emplace_back(place_of(cells_, Cell(flavor, resource), cells), used->second);
      }
    }
    holders_.push_back(std::move(holder));
  }
}

void Holders::add(const Holder& holder, Sums& sums) {
  for (const auto& [cell, amount] : holder.amounts) sums[holder.queue][cell] += amount;
}

std::map<std::string, std::map<Holders::Cell, std::int64_t>> Holders::by_name(
    const Sums& sums) const {
  std::map<std::string, std::map<Cell, std::int64_t>> out;
  for (std::size_t q = 0; q < queues_.size(); ++q) {
    for (std::size_t c = 0; c < cells_.size(); ++c) {
      if (sums[q][c] > 0) out[queues_[q]][cells_[c]] = sums[q][c];
    }
  }
  return out;
}

Holders::Few Holders::beside(const WorkloadSpec& own, const model::QueueRules& rules,
                             const std::set<std::string>& gone) const {
  Few out;
  const std::string own_name = named(own);
  for (const Waiting& other : waiting_) {
    const bool kin = are_kin(*other.spec, other.name, own, own_name);
    if (kin && other.name != own_name && !gone.contains(other.name)) {
      out.workloads.push_back(other.spec);
    }
  }
  const auto is_out = [&](const Holder& holder) {
    return holder.name == own_name || gone.contains(holder.name);
  };
  Sums sums(queues_.size(), std::vector<std::int64_t>(cells_.size()));
  for (const Holder& holder : holders_) {
    if (!is_out(holder)) add(holder, sums);
  }
  const Reach reach(own, rules, borrowers(rules, by_name(sums)));
  for (auto& of_queue : sums) std::fill(of_queue.begin(), of_queue.end(), 0);
  for (const Holder& holder : holders_) {
    if (is_out(holder)) continue;
    if (!holder.stays || reach.includes(queues_[holder.queue], *holder.spec) ||
        are_kin(*holder.spec, holder.name, own, own_name)) {
      out.workloads.push_back(holder.spec);
      continue;
    }
    add(holder, sums);
  }
  for (const auto& [queue, amounts] : by_name(sums)) {
    out.crowds.push_back(crowd_of(queue));
    for (const auto& [cell, amount] : amounts) {
      add_to_crowd(out.crowds.back(), cell.first, cell.second, amount);
    }
  }
  for (const WorkloadSpec& crowd : out.crowds) out.workloads.push_back(&crowd);
  out.workloads.push_back(&own);
  std::sort(out.workloads.begin(), out.workloads.end(),
            [](const WorkloadSpec* a, const WorkloadSpec* b) {
              return std::pair(std::string_view(a->ns), std::string_view(a->name)) <
                     std::pair(std::string_view(b->ns), std::string_view(b->name));
            });
  return out;
}

}  // namespace berth::people
