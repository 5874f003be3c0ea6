// Workloads that stand for one another: one of several flavors.
#include "kinds/resolve/workloads.h"

namespace berth::kinds {

// A parent is not decided, and what it seems to hold is what its variant holds. Where none does, it
// is held by the parent: a Workload that calls itself a variant frees nothing.
void Workloads::know_variants() {
  std::map<std::string, bool, std::less<>> parents;  // whether a variant holds quota
  for (model::WorkloadSpec& workload : out_.queues.workloads) {
    if (workload.variant_of.empty()) continue;
    bool& holds = parents[workload.variant_of];
    holds = holds || workload.admission.has_value();
  }
  for (model::WorkloadSpec& workload : out_.queues.workloads) {
    const auto parent = parents.find(qualified(workload.ns, workload.name));
    if (parent == parents.end() || (workload.admission && !parent->second)) continue;
    workload.has_variants = true;
    workload.admission.reset();
    workload.admitted = false;
  }
}

const model::QueueSpec* Workloads::queue_of(const model::WorkloadSpec& workload) const {
  const KnownQueues::Locals* own = queues_.locals(workload.ns);
  if (own == nullptr) return nullptr;
  const auto local = own->find(workload.queue);
  return local == own->end() ? nullptr : queues_.queue_named(local->second);
}

void Workloads::make_variants() {
  model::QueueInputs& queues = out_.queues;
  if (!queues.config.gate("ConcurrentAdmission", false)) return;
  const std::size_t count = queues.workloads.size();
  for (std::size_t i = 0; i < count; ++i) {
    const model::WorkloadSpec parent = queues.workloads[i];
    if (parent.admission || parent.has_variants || !parent.variant_of.empty() ||
        !parent.replaces.empty()) {
      continue;
    }
    const model::QueueSpec* queue = queue_of(parent);
    if (queue == nullptr || !queue->concurrent || queue->groups.size() != 1) continue;
    queues.workloads[i].has_variants = true;
    for (std::size_t f = 0; f < queue->groups.front().flavors.size(); ++f) {
      model::WorkloadSpec variant = parent;
      const std::string& flavor = queue->groups.front().flavors[f].flavor;
      variant.name = parent.name + "-variant-" + flavor;
      const std::string& uid = parent.uid.empty() ? parent.name : parent.uid;
      variant.uid = uid + '-' + std::to_string(100 + f);  // the better flavor first
      variant.variant_of = qualified(parent.ns, parent.name);
      variant.allowed_flavors = {flavor};
      add(std::move(variant));
    }
  }
}

}  // namespace berth::kinds
