// The status of ClusterQueues and LocalQueues.
#include <algorithm>

#include "control/queue_keeper.h"

namespace berth::control {

namespace {

constexpr std::int64_t kQueueStatusGap = 1'000'000'000;  // between two writes of one queue

// ClusterQueues by "ns/name" of the LocalQueues that name them.
std::map<std::string, std::string> queues_of_locals(const model::QueueRules& queues) {
  std::map<std::string, std::string> out;
  for (const auto& local : queues.local_queues) out[local.ns + '/' + local.name] = local.queue;
  return out;
}

}  // namespace

std::optional<QueueKeeper::QueueWrite> QueueKeeper::queue_write(
    const kube::ObjectPtr& object, const kinds::QueueCounts& counts,
    const std::vector<model::ResourceGroup>& groups, bool cluster_queue,
    const std::string& inactive) {
  std::string patch = kinds::queue_status_patch(object->root(), counts, groups, cluster_queue,
                                                inactive, common_.loop.wall().now_ns());
  if (patch.empty()) return std::nullopt;
  const std::string key = (cluster_queue ? "cluster|" : "local|") + object->key.to_string();
  const std::int64_t now = common_.now();
  const std::int64_t told = told_at_[key];
  if (!common_.writer.is_free(key) || (told != 0 && now - told < kQueueStatusGap)) {
    withheld_until_ = std::min(withheld_until_, std::max(told, now) + kQueueStatusGap);
    return std::nullopt;
  }
  return QueueWrite{told, cluster_queue, object->key, key, std::move(patch)};
}

// Those that were told longest ago first: where the server is slow, not all get their turn.
void QueueKeeper::write_queues(std::vector<QueueWrite> writes) {
  const std::int64_t now = common_.now();
  std::stable_sort(writes.begin(), writes.end(),
                   [](const QueueWrite& x, const QueueWrite& y) { return x.told < y.told; });
  for (QueueWrite& write : writes) {
    if (!queue_statuses_.take(now, common_.writer.answer_ns())) {
      withheld_until_ = std::min(withheld_until_, now + kQueueStatusGap);
      return;
    }
    told_at_[write.key] = now;
    Write out = write_patch(
        write.cluster_queue ? kube::resources::cluster_queues() : kube::resources::local_queues(),
        write.at, kube::PatchType::kMerge, std::move(write.patch), "status");
    out.kind = WriteClass::kStatus;
    out.key = write.key;
    out.copy = write.cluster_queue ? &views_.cluster_queues : &views_.local_queues;
    common_.writer.add(std::move(out));
  }
}

void QueueKeeper::keep_queues(const model::Decision& decision) {
  std::map<std::string, std::string> queue_of = queues_of_locals(rules());
  std::map<std::string, const model::QueueSpec*> specs;
  std::map<std::string, kinds::QueueCounts> of_queue, of_local;
  for (const auto& queue : rules().queues) specs[queue.name] = &queue;
  std::map<std::string_view, const model::Admission*> admissions;
  for (const auto& a : decision.admissions) admissions[a.workload] = &a;
  for (const auto& each : world_.queues().workloads) {
    const model::WorkloadSpec& w = *each;
    const std::string local = w.ns + '/' + w.queue;
    const auto fresh = admissions.find(w.ns + '/' + w.name);
    const bool is_fresh = fresh != admissions.end();
    const auto* sets = is_fresh      ? &fresh->second->pod_sets
                       : w.admission ? &w.admission->pod_sets
                                     : nullptr;
    const bool admitted = is_fresh ? fresh->second->checks.empty() : w.admitted;
    const std::string queue = is_fresh      ? fresh->second->queue
                              : w.admission ? w.admission->queue
                                            : queue_of[local];
    for (kinds::QueueCounts* counts : {&of_queue[queue], &of_local[local]}) {
      counts->pending += sets == nullptr ? 1 : 0;
      if (sets == nullptr) continue;
      ++counts->reserving;
      counts->admitted += admitted ? 1 : 0;
      for (const model::PodSetAdmission& set : *sets) {
        for (const auto& [resource, amount] : set.usage) {
          const auto flavor = set.flavors.find(resource);
          if (flavor == set.flavors.end()) continue;
          auto& [reserved, used] = counts->use[flavor->second][resource];
          reserved += amount;
          if (admitted) used += amount;
        }
      }
    }
  }
  for (const auto& [local, waiting] : world_.objects().waiting_behind()) {
    of_local[local].pending += waiting;
    of_queue[queue_of[local]].pending += waiting;
  }
  std::map<std::string_view, std::string> inactive;
  for (const auto& use : decision.queues) {
    inactive[use.name] = use.inactive;
    // Pods that are done are given back, and what leaves is still held: the decision knows.
    for (const auto& cell : use.cells) {
      auto& [reserved, used] = of_queue[use.name].use[cell.flavor][cell.resource];
      reserved = cell.used;
      used = std::min(used, reserved);
    }
    if (rules().config.fair_sharing) of_queue[use.name].weighted_share = use.weighted_share;
  }
  std::vector<QueueWrite> writes;
  const auto keep = [&writes](std::optional<QueueWrite> write) {
    if (write) writes.push_back(std::move(*write));
  };
  for (const auto& [name, spec] : specs) {
    const auto object = views_.cluster_queues.find({"", name});
    if (object) keep(queue_write(object, of_queue[name], spec->groups, true, inactive[name]));
  }
  for (const auto& local : rules().local_queues) {
    const auto object = views_.local_queues.find({local.ns, local.name});
    const auto spec = specs.find(local.queue);
    if (!object) continue;
    const std::string why = spec == specs.end() ? "ClusterQueueDoesNotExist: Can't submit new "
                                                  "workloads to clusterQueue"
                                                : inactive[local.queue];
    keep(queue_write(
        object, of_local[local.ns + '/' + local.name],
        spec == specs.end() ? std::vector<model::ResourceGroup>{} : spec->second->groups, false,
        why));
  }
  write_queues(std::move(writes));
}

}  // namespace berth::control
