#include "control/group_statuses.h"

#include <tuple>
#include <utility>
#include <vector>

#include "kinds/quota_requests.h"
#include "text/path.h"

namespace berth::control {

using text::Value;

namespace {

constexpr std::size_t kMostGroupsAtOnce = 100;

}  // namespace

bool GroupStatuses::changed(const Change& change) {
  if (change.is("PodGroup")) dirty_.insert(change.name());
  if (!change.is("Pod")) return false;
  if (!change.before.group.empty()) dirty_.insert(change.key.ns + '/' + change.before.group);
  const kinds::LivePod* live = common_.world.objects().pod(change.name());
  if (live != nullptr && !live->group().empty()) dirty_.insert(change.key.ns + '/' + live->group());
  return false;
}

// Told when it is another reason.
void GroupStatuses::decided(const Decided& what) {
  if (watches_.of("scheduling.run.ai", "PodGroup").size() == 0 && waits_.empty()) return;
  std::map<std::string, std::pair<std::string, std::string>> now_wait;
  for (const model::Outcome& o : what.decision.outcomes) {
    if (o.verdict == model::Verdict::kPlaced) continue;
    if (!o.gang && !o.queued) continue;
    now_wait.emplace(o.workload, std::pair(std::string(model::name(o.reason)), o.message));
  }
  const auto mark = [this](const auto& from, const auto& other) {
    for (const auto& [name, why] : from) {
      const auto it = other.find(name);
      if (it == other.end() || it->second.first != why.first) dirty_.insert(name);
    }
  };
  mark(now_wait, waits_);
  mark(waits_, now_wait);
  waits_ = std::move(now_wait);
}

bool GroupStatuses::tick(std::int64_t) {
  std::vector<std::string> later;
  for (std::size_t n = 0; n < kMostGroupsAtOnce && !dirty_.empty(); ++n) {
    std::string name = std::move(dirty_.extract(dirty_.begin()).value());
    if (!keep(name)) later.push_back(std::move(name));
  }
  dirty_.insert(later.begin(), later.end());
  return false;
}

kinds::GroupCounts GroupStatuses::count(const std::string& name) const {
  kinds::GroupCounts counts;
  common_.world.objects().for_each_member(name, [&](const std::string&, const kinds::LivePod& pod) {
    ++counts.pods;
    counts.bound += pod.node.empty() ? 0 : 1;
    counts.running += pod.phase == "Running" ? 1 : 0;
    counts.succeeded += pod.phase == "Succeeded" ? 1 : 0;
    counts.failed += pod.phase == "Failed" ? 1 : 0;
    if (pod.finished() || !pod.body->valid) return;
    for (const auto& [resource, amount] : kinds::quota_requests(pod.body->object.spec, {})) {
      counts.requested[resource] += amount;
      if (!pod.node.empty()) counts.allocated[resource] += amount;
    }
  });
  if (const auto it = waits_.find(name); it != waits_.end()) {
    std::tie(counts.reason, counts.message) = it->second;
  }
  return counts;
}

bool GroupStatuses::keep(const std::string& name) {
  const std::size_t slash = name.find('/');
  const kube::Key key{name.substr(0, slash), name.substr(slash + 1)};
  kinds::GroupCounts counts = count(name);
  bool all = true;
  for (kube::Informer* informer : watches_.groups()) {
    const kube::ObjectPtr object = informer->find(key);
    if (!object) continue;
    const Value* spec = object->root().find("spec");
    const Value* min = spec == nullptr ? nullptr : spec->find("minMember");
    if (min == nullptr) {
      min = find(object->root(), "spec.schedulingPolicy.gang.minCount");
    }
    if (min != nullptr) counts.min_member = static_cast<int>(min->as_int64().value_or(1));
    const kube::Resource& resource = informer->options().resource;
    std::string patch = kinds::group_status_patch(resource.group, object->root(), counts,
                                                  common_.loop.wall().now_ns());
    if (patch.empty()) continue;
    Write write = write_patch(resource, key, kube::PatchType::kMerge, std::move(patch), "status");
    write.kind = WriteClass::kStatus;
    write.key = "group|" + resource.group + '|' + name;
    write.copy = informer;
    all = common_.writer.add(std::move(write)) && all;
  }
  return all;
}

}  // namespace berth::control
