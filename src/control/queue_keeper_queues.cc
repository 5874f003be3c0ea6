// The status of ClusterQueues and LocalQueues.
#include <algorithm>

#include "control/queue_keeper.h"

namespace berth::control {

namespace {

constexpr std::int64_t kQueueStatusGap = 1'000'000'000;  // between two writes of one queue

std::string queue_key(const kube::Key& queue, bool cluster_queue) {
  return (cluster_queue ? "cluster|" : "local|") + queue.to_string();
}

}  // namespace

std::optional<QueueKeeper::QueueWrite> QueueKeeper::queue_write(
    const kube::ObjectPtr& object, const kinds::QueueCounts& counts,
    const std::vector<model::ResourceGroup>& groups, bool cluster_queue,
    const std::string& inactive, bool& settled) {
  std::string patch = kinds::queue_status_patch(object->root(), counts, groups, cluster_queue,
                                                inactive, common_.loop.wall().now_ns());
  settled = patch.empty();
  if (settled) return std::nullopt;
  const std::string key = queue_key(object->key, cluster_queue);
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
  // What is being admitted counts as if its status said so, for now.
  std::vector<std::pair<const model::WorkloadSpec*, const model::Admission*>> fresh;
  for (const auto& a : decision.admissions) {
    const model::WorkloadSpec* spec = world_.workload(a.workload);
    if (spec != nullptr) fresh.emplace_back(spec, &a);
  }
  const auto count_fresh = [&](int by) {
    for (const auto& [spec, a] : fresh) {
      count(*spec, -by);
      count(*spec, &a->pod_sets, a->queue, a->checks.empty(), by);
    }
  };
  count_fresh(+1);
  const std::map<std::string, int> behind = world_.objects().waiting_behind();
  std::map<std::string, int> behind_of_queue;
  for (const auto& [local, waiting] : behind) {
    const auto leads_to = queue_of_local_.find(local);
    if (leads_to != queue_of_local_.end()) behind_of_queue[leads_to->second] += waiting;
  }
  std::map<std::string_view, const model::QueueUse*> uses;
  for (const auto& use : decision.queues) uses[use.name] = &use;
  std::map<std::string_view, const model::QueueSpec*> specs;
  for (const auto& queue : rules().queues) specs[queue.name] = &queue;
  const auto counts_in = [](const auto& all, const auto& more, const std::string& name) {
    const auto it = all.find(name);
    kinds::QueueCounts out = it == all.end() ? kinds::QueueCounts() : it->second;
    if (const auto add = more.find(name); add != more.end()) out.pending += add->second;
    return out;
  };
  std::vector<QueueWrite> writes;
  for (const auto& [name, spec] : specs) {
    const auto object = views_.cluster_queues.find({"", std::string(name)});
    if (!object) continue;
    kinds::QueueCounts counts = counts_in(of_queue_, behind_of_queue, std::string(name));
    std::string inactive;
    if (const auto use = uses.find(name); use != uses.end()) {
      inactive = use->second->inactive;
      // Pods that are done are given back, and what leaves is still held: the decision knows.
      for (const auto& cell : use->second->cells) {
        auto& [reserved, used] = counts.use[cell.flavor][cell.resource];
        reserved = cell.used;
        used = std::min(used, reserved);
      }
      if (rules().config.fair_sharing) counts.weighted_share = use->second->weighted_share;
    }
    compare_queue(object, std::move(counts), spec->groups, true, inactive, writes);
  }
  for (const auto& local : rules().local_queues) {
    const auto object = views_.local_queues.find({local.ns, local.name});
    if (!object) continue;
    const auto spec = specs.find(local.queue);
    const auto use = uses.find(local.queue);
    const std::string why = spec == specs.end() ? "ClusterQueueDoesNotExist: Can't submit new "
                                                  "workloads to clusterQueue"
                            : use == uses.end() ? ""
                                                : use->second->inactive;
    compare_queue(object, counts_in(of_local_, behind, local.ns + '/' + local.name),
                  spec == specs.end() ? std::vector<model::ResourceGroup>{} : spec->second->groups,
                  false, why, writes);
  }
  count_fresh(-1);
  write_queues(std::move(writes));
}

void QueueKeeper::compare_queue(const kube::ObjectPtr& object, kinds::QueueCounts counts,
                                const std::vector<model::ResourceGroup>& groups, bool cluster_queue,
                                const std::string& inactive, std::vector<QueueWrite>& writes) {
  const std::string key = queue_key(object->key, cluster_queue);
  const auto seen = queues_seen_.find(key);
  if (seen != queues_seen_.end() && seen->second.object == object &&
      seen->second.counts == counts && seen->second.inactive == inactive) {
    return;
  }
  bool settled = false;
  if (auto write = queue_write(object, counts, groups, cluster_queue, inactive, settled)) {
    writes.push_back(std::move(*write));
  } else if (settled) {
    queues_seen_.insert_or_assign(key, QueueSeen{object, std::move(counts), inactive});
  }
}

}  // namespace berth::control
