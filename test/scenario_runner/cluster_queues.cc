#include "cluster_queues.h"

#include <algorithm>

#include "text/path.h"
#include "text/quantity.h"

namespace berth::scenario {

namespace {

std::int64_t amount_of(const std::string& resource, const std::string& text) {
  const auto quantity = text::parse_quantity(text);
  if (!quantity.ok()) return 0;
  return resource == "cpu" ? quantity->milli_value() : quantity->value();
}

// From the status of a ClusterQueue.
model::QueueUse use_of(const text::Value& queue) {
  model::QueueUse out;
  const text::Value* name = find(queue, "metadata.name");
  if (name != nullptr) out.name = name->string();
  const text::Value* status = queue.find("status");
  for (const text::Value& flavor : at(status, "flavorsReservation").items()) {
    for (const text::Value& one : at(flavor, "resources").items()) {
      model::QueueUse::Cell cell{.flavor = std::string(text_at(flavor, "name")),
                                 .resource = std::string(text_at(one, "name"))};
      cell.used = amount_of(cell.resource, std::string(text_at(one, "total")));
      out.borrowing |= amount_of(cell.resource, std::string(text_at(one, "borrowed"))) > 0;
      out.cells.push_back(std::move(cell));
    }
  }
  out.pending = static_cast<int>(int_at(status, "pendingWorkloads"));
  out.admitted = static_cast<int>(int_at(status, "admittedWorkloads"));
  out.weighted_share = int_at(status, "fairSharing.weightedShare");
  for (const text::Value& condition : at(status, "conditions").items()) {
    if (text_at(condition, "type") != "Active" || text_at(condition, "status") == "True") continue;
    out.inactive = std::string(text_at(condition, "reason")) + ": " +
                   std::string(text_at(condition, "message"));
  }
  return out;
}

}  // namespace

void ClusterQueues::decided(const text::Value& line) {
  for (const text::Value& one : at(line, "admissions").items()) {
    const std::string name(text_at(one, "workload"));
    if (std::find(admitted_.begin(), admitted_.end(), name) == admitted_.end()) {
      admitted_.push_back(name);
    }
  }
  for (const text::Value& one : at(line, "evictions").items()) {
    model::Eviction eviction;
    eviction.workload = text_at(one, "workload");
    eviction.by = text_at(one, "by");
    eviction.reason = text_at(one, "reason");
    evicted_.push_back(std::move(eviction));
  }
}

std::string ClusterQueues::shown(const model::WorkloadSpec& workload) const {
  std::string name = workload.ns + '/' + workload.name;
  const std::size_t slash = workload.owner.find('/');
  if (slash == std::string::npos || written_.contains(name)) return name;
  return workload.ns + '/' + workload.owner.substr(slash + 1);
}

std::map<std::string, model::Outcome> ClusterQueues::renamed(
    std::map<std::string, model::Outcome> outcomes, const kinds::Inputs& inputs) const {
  for (const model::WorkloadSpec& workload : inputs.queues.workloads) {
    auto node = outcomes.extract(workload.ns + '/' + workload.name);
    if (node.empty()) continue;
    node.key() = node.mapped().workload = shown(workload);
    outcomes.insert(std::move(node));
  }
  return outcomes;
}

void ClusterQueues::observe(const kinds::Inputs& inputs,
                            const std::vector<text::Document>& cluster_queues, Observed& out) {
  std::map<std::string, const model::WorkloadSpec*> workloads;
  for (const model::WorkloadSpec& workload : inputs.queues.workloads) {
    const std::string name = workload.ns + '/' + workload.name;
    workloads[name] = &workload;
    known_names_[name] = shown(workload);
  }
  const auto shown_as = [&](const std::string& name) {
    const auto it = known_names_.find(name);
    return it == known_names_.end() ? name : it->second;
  };
  std::set<std::string> told;
  for (const std::string& name : admitted_) {
    model::Admission admission;
    admission.workload = shown_as(name);
    // Before and after the object that stands for a Job was made.
    if (!told.insert(admission.workload).second) continue;
    for (const auto& [object, workload] : workloads) {
      if (!workload->admission || shown_as(object) != admission.workload) continue;
      admission.queue = workload->admission->queue;
      admission.pod_sets = workload->admission->pod_sets;
      admission.replaces = workload->replaces;
      if (!workload->admitted) admission.checks = {"to come"};
    }
    out.admissions.push_back(std::move(admission));
  }
  for (model::Eviction& eviction : evicted_) {
    eviction.workload = shown_as(eviction.workload);
    if (!eviction.by.empty()) eviction.by = shown_as(eviction.by);
    out.evictions.push_back(std::move(eviction));
  }
  for (const auto& [name, workload] : workloads) {
    if (!workload->admission || workload->admitted || !workload->evicted.empty()) continue;
    model::Outcome reserved;
    reserved.workload = shown_as(name);
    reserved.reason = model::Reason::kUnsatisfiedAdmissionChecks;
    out.pending.emplace(reserved.workload, reserved);
  }
  for (const text::Document& queue : cluster_queues) out.queues.push_back(use_of(queue.root()));
  for (const model::QueueSpec& queue : inputs.queues.queues) {
    const bool told_of = std::any_of(out.queues.begin(), out.queues.end(),
                                     [&](const auto& use) { return use.name == queue.name; });
    if (!told_of) out.silent_queues.insert(queue.name);
  }
  admitted_.clear();
  evicted_.clear();
}

}  // namespace berth::scenario
