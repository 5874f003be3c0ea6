// The collections that the controller follows. Those that a cluster does not have are empty.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/random.h"
#include "edge/kube/informer.h"

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

  // Of a kind that is followed, in the first of its versions.
  kube::Informer& of(std::string_view group, std::string_view kind);
  std::vector<kube::Informer*> groups();

 private:
  void follow(const kinds::KindRow& row);
  kube::Informer& add(const kube::Resource& resource, kube::Keep keep, std::string ns = {},
                      std::string field_selector = {});

  kube::Client& client_;
  Random random_;
  MetricsRegistry& metrics_;
  Change change_;
  std::function<void()> synced_;
  std::vector<std::unique_ptr<kube::Informer>> all_;
};

}  // namespace berth::control
