// Why somebody whose leaving would help is not preempted.
#include <fmt/format.h>

#include <algorithm>

#include "people/why/fixes.h"

namespace berth::people {

namespace {

using model::QueueSpec;
using model::WorkloadSpec;

std::string by_priority(int own, int theirs) {
  if (theirs == own) return "same priority";
  return fmt::format("its priority is higher ({}, not {})", theirs, own);
}

const QueueSpec* queue_named(const Situation& s, const std::string& name) {
  const auto& queues = s.inputs().queues.queues;
  const auto it = std::find_if(queues.begin(), queues.end(),
                               [&](const QueueSpec& queue) { return queue.name == name; });
  return it == queues.end() ? nullptr : &*it;
}

const QueueSpec* queue_of_unit(const Situation& s) {
  for (const model::LocalQueueSpec& local : s.inputs().queues.local_queues) {
    if (local.ns != s.unit.queued->ns || local.name != s.unit.queued->queue) continue;
    return queue_named(s, local.queue);
  }
  return nullptr;
}

// Empty: nothing forbids it.
std::string by_queue(const Situation& s, const WorkloadSpec& victim) {
  const QueueSpec* own = queue_of_unit(s);
  if (own == nullptr || !victim.admission) return "";
  const int mine = s.unit.queued->priority;
  const bool lower = victim.priority < mine;
  if (victim.admission->queue == own->name) {
    if (own->within == model::PreemptWithin::kNever) {
      return fmt::format("withinClusterQueue of {} is Never", own->name);
    }
    const bool equal =
        victim.priority == mine && own->within == model::PreemptWithin::kLowerOrNewerEqualPriority;
    if (equal) return "same priority, and it is older";
    return lower ? "" : by_priority(mine, victim.priority);
  }
  const QueueSpec* theirs = queue_named(s, victim.admission->queue);
  if (own->cohort.empty() || theirs == nullptr) {
    return fmt::format("its queue shares nothing with {}", own->name);
  }
  if (theirs->cohort != own->cohort) return "";  // cohorts may have a common parent
  if (own->reclaim == model::Reclaim::kNever) {
    return fmt::format("reclaimWithinCohort of {} is Never", own->name);
  }
  if (own->reclaim == model::Reclaim::kLowerPriority && !lower) {
    return by_priority(mine, victim.priority);
  }
  return "";
}

// A pod that no queue has; empty: nothing forbids it.
std::string outside_queues(const Situation& s, const model::PodSpec& victim) {
  if (!s.sample.preempts) return "its own preemptionPolicy is Never";
  const int own = s.unit.gang != nullptr ? s.unit.gang->priority.value_or(s.sample.priority)
                                         : s.sample.priority;
  return victim.priority < own ? "" : by_priority(own, victim.priority);
}

}  // namespace

std::optional<Refused> refused_preemption(const Situation& s, const std::string& name) {
  const auto is_it = [&](const auto& each) {
    return name.size() == each.ns.size() + 1 + each.name.size() && name.starts_with(each.ns) &&
           name[each.ns.size()] == '/' && name.ends_with(each.name);
  };
  Refused out{.title = "preempt " + name, .because = {}};
  const std::string forbidden = s.trials.policy().placement.preemption ? ""
                                : s.options.plan.flags.no_preemption
                                    ? "--no-preemption"
                                    : "spec.preemption.enabled of BerthPolicy default is false";
  if (s.unit.queued != nullptr) {
    const auto& workloads = s.inputs().queues.workloads;
    const auto it = std::find_if(workloads.begin(), workloads.end(), is_it);
    if (it == workloads.end()) return std::nullopt;
    out.because = forbidden.empty() ? by_queue(s, *it) : forbidden;
  } else {
    const auto& pods = s.inputs().pods;
    const auto it = std::find_if(pods.begin(), pods.end(), is_it);
    if (it == pods.end() || it->terminating || it->queued) return std::nullopt;
    out.because = forbidden.empty() ? outside_queues(s, *it) : forbidden;
  }
  if (out.because.empty()) return std::nullopt;
  return out;
}

}  // namespace berth::people
