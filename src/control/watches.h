// The collections that the controller follows. Those that a cluster does not have are empty.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/random.h"
#include "kube/informer.h"

namespace berth::control {

class Watches {
 public:
  // version and kind as the collection has them; after is null for a deletion.
  using Change = std::function<void(const kube::Resource& resource, const kube::ObjectPtr& before,
                                    const kube::ObjectPtr& after)>;

  Watches(kube::Client& client, Random random, MetricsRegistry& metrics, Change change,
          std::function<void()> synced);
  void start();
  bool synced() const;
  std::vector<std::string> missing() const;  // collections that are not complete yet
  std::string version() const;               // the newest that any of them has seen

  kube::Informer& pods() { return *pods_; }
  kube::Informer& jobs() { return *jobs_; }
  kube::Informer& workloads() { return *workloads_; }
  kube::Informer& cluster_queues() { return *cluster_queues_; }
  kube::Informer& local_queues() { return *local_queues_; }
  const std::vector<kube::Informer*>& groups() const { return groups_; }
  const kube::Informer& kai_groups() const { return *groups_[2]; }

 private:
  kube::Informer& add(const kube::Resource& resource, kube::Keep keep, std::string ns = {},
                      std::string field_selector = {});

  kube::Client& client_;
  Random random_;
  MetricsRegistry& metrics_;
  Change change_;
  std::function<void()> synced_;
  std::vector<std::unique_ptr<kube::Informer>> all_;
  kube::Informer *pods_, *jobs_, *workloads_, *cluster_queues_, *local_queues_;
  std::vector<kube::Informer*> groups_;
};

}  // namespace berth::control
