#include "people/why/kai_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "kinds/gpu_demand.h"
#include "people/why/makers.h"
#include "people/why/pod_template.h"
#include "text/path.h"

namespace berth::people {

namespace {

using model::Reason;
using text::Value;

constexpr const char* kKaiGroup = "scheduling.run.ai/";
constexpr std::int64_t kNotPreempted = 100;  // priorities from here on
constexpr int kMostLevels = 32;

// In what KAI counts: GPUs, thousandths of cpus, megabytes.
using KaiAmounts = std::map<std::string, double>;

// A pod or a template as KAI sees it.
struct KaiWork {
  std::string queue;
  bool kept = false;  // not to be preempted
  KaiAmounts asked;
};

std::optional<RawObject> kai_group_of(const ObjectSource& objects, const std::string& ns,
                                      const Value* meta) {
  const std::string name(text_at(meta, "annotations.pod-group-name"));
  const auto group = name.empty() ? std::nullopt : objects.find("PodGroup", ns, name);
  return group && group->api_version.starts_with(kKaiGroup) ? group : std::nullopt;
}

std::int64_t priority_of(const ObjectSource& objects, const Value* group, const Value* meta,
                         const Value* spec) {
  std::string name(text_at(group, "spec.priorityClassName"));
  if (name.empty()) name = text_at(meta, "labels.priorityClassName");
  if (name.empty()) name = text_at(spec, "priorityClassName");
  for (const RawObject& raw : objects.of_kind("PriorityClass")) {
    const Value* value = raw.value->find("value");
    if (raw.name == name && value != nullptr) return value->as_int64().value_or(0);
  }
  const Value* own = find(spec, "priority");
  return own == nullptr ? 0 : own->as_int64().value_or(0);
}

KaiAmounts asked_by(const Value* meta, const Value* spec) {
  KaiAmounts out;
  PodTemplate read;
  if (spec == nullptr || !read_spec(*spec, read)) return out;
  for (const auto& [resource, amount] : read.requests) {
    if (resource == "cpu") out["cpu"] = static_cast<double>(amount);
    if (resource == "memory") out["memory"] = static_cast<double>(amount) / 1e6;
    if (resource == "nvidia.com/gpu") out["gpu"] = static_cast<double>(amount);
  }
  int milli = 0;
  bool exact = true;
  const std::string part(text_at(meta, "annotations.gpu-fraction"));
  if (!part.empty() && kinds::parse_fraction(part, milli, exact)) out["gpu"] = milli / 1000.0;
  return out;
}

KaiWork work_of(const ObjectSource& objects, const std::string& ns, const Value* owner,
                const Value* pod) {
  KaiWork out;
  const Value* meta = find(pod, "metadata");
  const auto group = kai_group_of(objects, ns, meta);
  const Value* raw = group ? group->value : nullptr;
  for (const Value* from : {meta, find(owner, "metadata")}) {
    if (out.queue.empty()) out.queue = std::string(at(from, "labels")[kKaiQueueLabel].string());
  }
  if (out.queue.empty()) out.queue = text_at(raw, "spec.queue");
  if (out.queue.empty()) return out;
  std::string says(text_at(raw, "spec.preemptibility"));
  for (const Value* from : {meta, find(owner, "metadata")}) {
    if (says.empty()) says = std::string(at(from, "labels")[kPreemptibilityLabel].string());
  }
  const Value* spec = find(pod, "spec");
  out.kept = says == "non-preemptible" ||
             (says.empty() && priority_of(objects, raw, meta, spec) >= kNotPreempted);
  if (out.kept) out.asked = asked_by(meta, spec);
  return out;
}

class Quotas {
 public:
  explicit Quotas(const ObjectSource& objects) {
    for (const RawObject& raw : objects.of_kind("Queue")) {
      if (raw.api_version.starts_with(kKaiGroup)) queues_.emplace(raw.name, raw);
    }
  }
  bool none() const { return queues_.empty(); }

  // The queue and those above it.
  std::vector<std::string> chain(std::string name) const {
    std::vector<std::string> out;
    while (static_cast<int>(out.size()) < kMostLevels) {
      const auto it = queues_.find(name);
      if (it == queues_.end()) break;
      out.push_back(name);
      name = text_at(it->second.value, "spec.parentQueue");
    }
    return out;
  }
  // Absent: without end.
  std::optional<double> deserved(const std::string& queue, const std::string& resource) const {
    const Value* quota = find(at(queues_.at(queue).value, "spec.resources")[resource], "quota");
    if (quota == nullptr || !quota->is_number() || quota->as_double() < 0) return std::nullopt;
    return quota->as_double();
  }

 private:
  std::map<std::string, RawObject> queues_;
};

std::string show_kai(const std::string& resource, double amount) {
  const std::string number = fmt::format("{:g}", std::ceil(amount * 1000) / 1000);
  if (resource == "gpu") return number + (number == "1" ? " GPU" : " GPUs");
  return resource == "cpu" ? number + "m cpu" : number + " MB memory";
}

const char* kai_unit(const std::string& resource) {
  return resource == "gpu" ? "GPUs" : resource == "cpu" ? "thousandths of a cpu" : "MB";
}

}  // namespace

std::optional<Held> by_deserved_quota(const ObjectSource& objects,
                                      const std::vector<TemplatePlace>& places) {
  const Quotas quotas(objects);
  if (quotas.none()) return std::nullopt;
  KaiWork mine;
  std::set<std::string> own;
  for (const TemplatePlace& place : places) {
    const auto raw = objects.find(place.kind, place.ns, place.name);
    if (!raw || place.kind == "Workload") continue;
    const bool pod = place.kind == "Pod";
    if (pod) own.insert(place.ns + '/' + place.name);
    const KaiWork work = work_of(objects, place.ns, raw->value, template_at(*raw, place));
    if (!work.kept) continue;
    if (mine.queue.empty()) mine.queue = work.queue;
    const int pods = pod ? 1 : pods_at(objects, *raw, place);
    for (const auto& [resource, amount] : work.asked) mine.asked[resource] += amount * pods;
  }
  const std::vector<std::string> chain = quotas.chain(mine.queue);
  if (mine.asked.empty() || chain.empty()) return std::nullopt;
  std::map<std::string, KaiAmounts> used;  // by queue of the chain
  for (const RawObject& pod : objects.of_kind("Pod")) {
    const bool runs = !text_at(pod.value, "spec.nodeName").empty() && !has_ended(*pod.value);
    if (!runs || own.contains(pod.ns + '/' + pod.name)) continue;
    const KaiWork work = work_of(objects, pod.ns, nullptr, pod.value);
    if (!work.kept) continue;
    for (const std::string& queue : quotas.chain(work.queue)) {
      for (const auto& [resource, amount] : work.asked) used[queue][resource] += amount;
    }
  }
  for (const std::string& queue : chain) {
    for (const auto& [resource, asked] : mine.asked) {
      const auto most = quotas.deserved(queue, resource);
      const double has = used[queue][resource];
      if (!most || asked == 0 || has + asked <= *most) continue;
      const bool never = asked > *most;
      return Held{.by = Held::By::kDeserved,
                  .reason = never ? Reason::kExceedsMaxQuota : Reason::kWaitingForQuota,
                  .message = fmt::format(
                      "it may not be preempted, and such work keeps to the quota of the queue {}: "
                      "{}, {} of them used; it asks for {}",
                      queue, show_kai(resource, *most), fmt::format("{:g}", has),
                      fmt::format("{:g}", asked)),
                  .never = never,
                  .object = queue,
                  .resource = resource,
                  .enough = fmt::format("{:.0f}", std::min(std::ceil(has + asked), 1e15)),
                  .asked = {},
                  .name = kai_unit(resource)};
    }
  }
  return std::nullopt;
}

}  // namespace berth::people
