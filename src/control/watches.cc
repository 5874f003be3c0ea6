#include "control/watches.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "control/kueue_lease.h"

namespace berth::control {

using kube::Keep;
using kube::Resource;

Watches::Watches(kube::Client& client, Random random, MetricsRegistry& metrics, Change change,
                 std::function<void()> synced)
    : client_(client),
      random_(random),
      metrics_(metrics),
      change_(std::move(change)),
      synced_(std::move(synced)) {
  namespace r = kube::resources;
  for (const kinds::KindRow& row : kinds::kind_table()) {
    if (row.is_asked(kinds::asked::kDecided) && row.kind != "Pod") follow(row);
  }
  add(r::config_maps(), Keep::kKeys, kKueueNamespace,
      std::string("metadata.name=") + kKueueConfigMap);
  add(r::leases(), Keep::kKeys, kKueueNamespace, std::string("metadata.name=") + kKueueLease);
  add(r::pods(), Keep::kKeys);  // last: what they refer to is there by then
}

void Watches::follow(const kinds::KindRow& row) {
  const Keep keep = row.is_asked(kinds::asked::kWhole) ? Keep::kWhole : Keep::kKeys;
  const std::size_t each = row.is_asked(kinds::asked::kEachVersion) ? row.read().size() : 1;
  for (std::size_t version = 0; version < each; ++version) {
    add(kube::resource_of(row, version), keep);
  }
}

kube::Informer& Watches::of(std::string_view group, std::string_view kind) {
  const auto it = std::find_if(all_.begin(), all_.end(), [&](const auto& informer) {
    const Resource& resource = informer->options().resource;
    return resource.group == group && resource.kind == kind;
  });
  BERTH_ASSERT(it != all_.end(), "the kind is followed");
  return **it;
}

std::vector<kube::Informer*> Watches::groups() {
  std::vector<kube::Informer*> out;
  for (const auto& informer : all_) {
    if (informer->options().resource.kind == "PodGroup") out.push_back(informer.get());
  }
  return out;
}

kube::Informer& Watches::add(const Resource& resource, Keep keep, std::string ns,
                             std::string field_selector) {
  kube::InformerOptions options;
  options.resource = resource;
  options.ns = std::move(ns);
  options.field_selector = std::move(field_selector);
  options.keep = keep;
  all_.push_back(std::make_unique<kube::Informer>(client_, random_, std::move(options), &metrics_));
  kube::Informer& informer = *all_.back();
  informer.add_handler(
      [this, &informer](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
        change_(informer.options().resource, before, after);
      });
  informer.on_synced([this] { synced_(); });
  return informer;
}

void Watches::start() {
  for (const auto& informer : all_) informer->start();
}

bool Watches::synced() const {
  return std::all_of(all_.begin(), all_.end(), [](const auto& i) { return i->synced(); });
}

std::vector<std::string> Watches::missing() const {
  std::vector<std::string> out;
  for (const auto& i : all_) {
    const Resource& r = i->options().resource;
    if (!i->synced()) out.push_back(r.group.empty() ? r.plural : r.plural + '.' + r.group);
  }
  return out;
}

// As numbers, which they are on every server that we know; without leading zeros.
std::string Watches::version() const {
  std::string_view newest;
  for (const auto& i : all_) {
    const std::string_view each = i->version();
    if (std::pair(each.size(), each) > std::pair(newest.size(), newest)) newest = each;
  }
  return std::string(newest);
}

}  // namespace berth::control
