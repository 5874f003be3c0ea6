#include "people/why/endings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "kinds/readers.h"
#include "people/view/words.h"
#include "people/why/pod_template.h"
#include "text/path.h"

namespace berth::people {

using model::PodSpec;
using model::WorkloadSpec;

namespace {

constexpr std::int64_t kNsPerS = 1'000'000'000;
constexpr std::int64_t kLongest_s = 10LL * 366 * 86'400;  // beyond it nothing is promised
constexpr std::size_t kMostLookedAt = 4096;

// How long it says that it runs, in seconds; 0: it does not.
std::int64_t declared_s(const RawObject& object) {
  const text::Value* limit = find(object.value, "spec.activeDeadlineSeconds");
  std::int64_t seconds = limit == nullptr ? 0 : limit->as_int64().value_or(0);
  if (seconds <= 0) {
    std::string run(text_at(object.value, "metadata.annotations[sim.berth.dev/run-seconds]"));
    run.resize(std::min(run.size(), run.find('.')));
    if (!kinds::parse_int(run, seconds)) seconds = 0;
  }
  return seconds > 0 && seconds <= kLongest_s ? seconds : 0;
}

// "90 s", "45 min", "1 h": as it was declared, not rounded.
std::string declared_words(std::int64_t ns) {
  const std::int64_t seconds = ns / kNsPerS;
  if (seconds % 3600 == 0) return fmt::format("{} h", seconds / 3600);
  return seconds % 60 == 0 ? fmt::format("{} min", seconds / 60) : fmt::format("{} s", seconds);
}

// maximumExecutionTimeSeconds of the workload, or what its Job says.
std::optional<std::int64_t> workload_end(const WorkloadSpec& spec, const ObjectSource* objects) {
  if (!spec.admitted || spec.finished || spec.admitted_ns == 0) return std::nullopt;
  if (spec.max_execution_s > 0) {
    const std::int64_t left = std::int64_t{spec.max_execution_s} - spec.past_execution_s;
    return spec.admitted_ns + std::max<std::int64_t>(0, left) * kNsPerS;
  }
  if (objects == nullptr || !spec.owner.starts_with("Job/")) return std::nullopt;
  const auto job = objects->find("Job", spec.ns, spec.owner.substr(4));
  const std::int64_t seconds = job ? declared_s(*job) : 0;
  return seconds == 0 ? std::nullopt : std::optional(spec.admitted_ns + seconds * kNsPerS);
}

// The pods that run for a workload say when they end.
struct OfWorkload {
  std::optional<std::int64_t> end;  // of the workload itself
  std::int64_t last = 0;            // of its pods
  int pods = 0, silent = 0;
};

}  // namespace

std::optional<std::int64_t> declared_end(const ObjectSource* objects, const std::string& ns,
                                         const std::string& name, std::string_view owner,
                                         std::int64_t started_ns) {
  if (objects == nullptr || started_ns == 0) return std::nullopt;
  const auto pod = objects->find("Pod", ns, name);
  std::int64_t seconds = pod ? declared_s(*pod) : 0;
  if (seconds == 0 && owner.starts_with("Job/")) {
    const auto job = objects->find("Job", ns, owner.substr(4));
    seconds = job ? declared_s(*job) : 0;
  }
  return seconds == 0 ? std::nullopt : std::optional(started_ns + seconds * kNsPerS);
}

Endings endings_of(const kinds::Inputs& inputs, const ObjectSource* objects, std::int64_t now_ns,
                   const std::function<bool(const PodSpec&)>& in_the_way) {
  // Names are not copied: queues may have tens of thousands of pods.
  std::unordered_map<const WorkloadSpec*, OfWorkload> workloads;
  std::unordered_map<std::string_view, const WorkloadSpec*> by_pod;
  std::map<std::pair<std::string_view, std::string_view>, const WorkloadSpec*> by_owner;
  for (const WorkloadSpec& spec : inputs.queues.workloads) {
    if (!spec.admission || spec.finished || workloads.size() >= kMostLookedAt) continue;
    workloads[&spec].end = workload_end(spec, objects);
    if (!spec.owner.empty())
      by_owner.emplace(std::pair<std::string_view, std::string_view>(spec.ns, spec.owner), &spec);
    for (const model::PodSetSpec& set : spec.pod_sets) {
      for (const std::string& pod : set.pods) by_pod.emplace(pod, &spec);
    }
  }
  Endings out;
  std::size_t looked = 0;
  for (const PodSpec& pod : inputs.pods) {
    if (pod.node_name.empty() || (in_the_way && !in_the_way(pod))) continue;
    if (++looked > kMostLookedAt) {
      out.more = true;
      break;
    }
    const std::string name = pod.ns + '/' + pod.name;
    const auto end = declared_end(objects, pod.ns, pod.name, pod.owner, pod.started_ns);
    const WorkloadSpec* of = nullptr;
    if (const auto it = by_pod.find(name); it != by_pod.end()) of = it->second;
    const auto owner = by_owner.find({pod.ns, pod.owner});
    if (of == nullptr && owner != by_owner.end()) of = owner->second;
    if (of == nullptr) {
      if (end) {
        out.ends.push_back({std::max(*end, now_ns), name, false, *end - pod.started_ns});
      }
      out.silent += !end && pod.gpu.kind != model::GpuDemandSpec::Kind::kNone ? 1 : 0;
      continue;
    }
    OfWorkload& workload = workloads[of];
    ++workload.pods;
    workload.silent += end ? 0 : 1;
    workload.last = std::max(workload.last, end.value_or(0));
  }
  for (const WorkloadSpec& spec : inputs.queues.workloads) {
    const auto it = workloads.find(&spec);
    if (it == workloads.end()) continue;
    const OfWorkload& workload = it->second;
    const bool all_say = workload.pods > 0 && workload.silent == 0;
    std::optional<std::int64_t> end = workload.end;
    if (all_say) end = end ? std::min(*end, workload.last) : workload.last;
    if (end) {
      const bool own = workload.end == end && spec.past_execution_s == 0;  // else its pods say it
      out.ends.push_back({std::max(*end, now_ns), spec.ns + '/' + spec.name, true,
                          own ? *end - spec.admitted_ns : 0});
    }
    if (!end) out.silent += std::max(workload.pods, in_the_way ? 0 : 1);
  }
  std::sort(out.ends.begin(), out.ends.end());
  return out;
}

void take_out(const kinds::Inputs& inputs, std::span<const Ending> ended, Draft& draft) {
  for (const Ending& ending : ended) {
    (ending.workload ? draft.gone_workloads : draft.gone_pods).insert(ending.name);
  }
  if (draft.gone_workloads.empty()) return;
  std::set<std::string> owners;  // "ns/owner"
  for (const WorkloadSpec& spec : inputs.queues.workloads) {
    if (!draft.gone_workloads.contains(spec.ns + '/' + spec.name)) continue;
    for (const model::PodSetSpec& set : spec.pod_sets) {
      draft.gone_pods.insert(set.pods.begin(), set.pods.end());
    }
    if (!spec.owner.empty()) owners.insert(spec.ns + '/' + spec.owner);
  }
  for (const PodSpec& pod : inputs.pods) {
    const bool owned = !pod.owner.empty() && owners.contains(pod.ns + '/' + pod.owner);
    if (owned) draft.gone_pods.insert(pod.ns + '/' + pod.name);
  }
}

Start earliest_start(const Endings& endings,
                     const std::function<bool(std::span<const Ending>)>& starts_without) {
  const std::span<const Ending> ends = endings.ends;
  const std::string silent = fmt::format(
      "{}{} with GPUs {} not say how long {} (activeDeadlineSeconds)",
      endings.more ? "at least " : "", show_count(endings.silent, "pod"),
      endings.silent == 1 ? "does" : "do", endings.silent == 1 ? "it runs" : "they run");
  Start out;
  if (ends.empty()) {
    out.because = endings.silent > 0 ? silent : "nothing that runs says how long";
    return out;
  }
  if (!starts_without(ends)) {
    out.because = endings.silent > 0
                      ? "not when all that say how long they run have ended; " + silent
                      : "not even when everything that runs has ended";
    return out;
  }
  std::size_t low = 0, high = ends.size();  // low does not suffice, high does
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (starts_without(ends.first(middle)) ? high : low) = middle;
  }
  out.at_ns = ends[high - 1].at_ns;
  const Ending& last = ends[high - 1];
  out.because = "when " + last.name + " ends" +
                (last.declared_ns > 0 ? " (declared " + declared_words(last.declared_ns) + ')'
                                      : ", as it declares");
  return out;
}

}  // namespace berth::people
