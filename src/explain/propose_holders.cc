// Fixes that take running pods away: one, two, or a whole job.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "explain/fixes.h"
#include "explain/words.h"
#include "schedule/rule_memo.h"

namespace berth::explain {

namespace {

using model::PodSpec;

struct HeldPod {
  std::string name;  // "ns/name"
  int milli = 0;
  int priority = 0;
};

std::vector<HeldPod> pods_on(const Situation& s, std::uint32_t slot) {
  std::vector<HeldPod> out;
  s.state->for_each_pod_on(slot, [&](model::PodId id) {
    const model::PodEntry& pod = s.state->pod(id);
    if (pod.info->queued) return;
    out.push_back({pod.info->name, pod.gpus.milli(), pod.info->priority});
  });
  std::sort(out.begin(), out.end(), [](const HeldPod& a, const HeldPod& b) {
    return std::tie(a.milli, a.priority, a.name) < std::tie(b.milli, b.priority, b.name);
  });
  return out;
}

const PodSpec* spec_of(const Situation& s, const std::string& name) {
  for (const PodSpec& pod : s.inputs().pods) {
    // No name is put together for each of the cluster's pods.
    const std::size_t at = pod.ns.size();
    const bool may_be = name.size() == at + 1 + pod.name.size() && name[at] == '/';
    if (may_be && name.ends_with(pod.name) && name.starts_with(pod.ns)) return &pod;
  }
  return nullptr;
}

// Whoever made it makes it anew, and it waits; a pod of nobody is gone.
void take_away(const Situation& s, Draft& draft, const std::string& name) {
  const PodSpec* pod = spec_of(s, name);
  if (pod == nullptr) return;
  draft.remove(s.objects(), "Pod", pod->ns, pod->name);
  const bool made_anew = pod->owner.starts_with("Job/") && s.objects() != nullptr &&
                         s.objects()->find("Job", pod->ns, pod->owner.substr(4)).has_value();
  if (!made_anew) {
    draft.gone_pods.insert(name);
    return;
  }
  PodSpec again = *pod;
  again.node_name.clear();
  again.gpu_indices.clear();
  again.started_ns = 0;
  draft.pods[name] = std::move(again);
}

void propose(const Situation& s, const std::vector<HeldPod>& pods, const std::string& node,
             Proposals& out) {
  std::string list;
  std::vector<std::string> names;
  for (const HeldPod& pod : pods) {
    list += (list.empty() ? "" : " and ") + pod.name;
    if (pod.milli > 0) list += fmt::format(" ({})", show_milli(pod.milli));
    names.push_back(pod.name);
  }
  const PodSpec* only = pods.size() == 1 ? spec_of(s, pods.front().name) : nullptr;
  const bool leaves = only != nullptr && only->terminating;
  out.push_back({.title = leaves ? fmt::format("let {} on {} end: it is being deleted", list, node)
                                 : fmt::format("delete {} on {}", list, node),
                 .kind = "delete-pod",
                 .disturbance = 3 + static_cast<int>(pods.size()) / 2,
                 .restarts = static_cast<int>(pods.size()),
                 .apply = [&s, names](Draft& draft) {
                   for (const std::string& name : names) take_away(s, draft, name);
                   return true;
                 }});
}

// Running pods by the job they belong to, smallest first.
void whole_jobs(const Situation& s, Proposals& out) {
  std::map<std::string, std::vector<const PodSpec*>> jobs;
  for (const PodSpec& pod : s.inputs().pods) {
    if (pod.node_name.empty() || pod.queued || pod.gpu.count == 0) continue;
    const std::string key = !pod.gang.empty() ? pod.ns + '/' + pod.gang
                            : !pod.owner.empty()
                                ? pod.ns + '/' + pod.owner.substr(pod.owner.find('/') + 1)
                                : "";
    if (!key.empty()) jobs[key].push_back(&pod);
  }
  std::vector<std::pair<std::size_t, std::string>> order;
  for (const auto& [name, pods] : jobs) {
    if (pods.size() > 1) order.emplace_back(pods.size(), name);
  }
  std::sort(order.begin(), order.end());
  if (order.size() > 4) order.resize(4);
  for (const auto& [count, name] : order) {
    out.push_back(
        {.title = fmt::format("stop {} ({})", name, show_count(static_cast<int>(count), "pod")),
         .kind = "stop-job",
         .disturbance = 4,
         .restarts = static_cast<int>(count),
         .apply = [&s, pods = jobs.at(name)](Draft& draft) {
           for (const PodSpec* pod : pods) {
             draft.gone_pods.insert(pod->ns + '/' + pod->name);
             draft.remove(s.objects(), "Pod", pod->ns, pod->name);
             if (pod->owner.starts_with("Job/")) {
               draft.remove(s.objects(), "Job", pod->ns, pod->owner.substr(4));
             }
           }
           return true;
         }});
  }
}

}  // namespace

void propose_holders(const Situation& s, Proposals& out) {
  if (s.picture == nullptr || s.state == nullptr) return;
  struct Candidate {
    int milli = 0;
    std::vector<HeldPod> pods;
    std::string node;
  };
  std::vector<Candidate> one, two;
  const int needed = s.sample.gpu.kind == model::GpuDemandSpec::Kind::kWhole
                         ? s.sample.gpu.count * model::kMilliPerGpu
                         : s.sample.gpu.milli * s.sample.gpu.count;
  for (const NodeView& view : s.picture->nodes) {
    if (!s.picture->counts(view)) continue;
    if (one.size() + two.size() > 400) break;
    const std::vector<HeldPod> held = pods_on(s, view.slot);
    const std::string& node = s.state->info(view.slot).name;
    for (std::size_t i = 0; i < held.size() && i < 16; ++i) {
      if (needed == 0 || view.free_milli + held[i].milli >= needed) {
        one.push_back({held[i].milli, {held[i]}, node});
      } else {
        for (std::size_t j = i + 1; j < held.size() && j < 16; ++j) {
          const int milli = held[i].milli + held[j].milli;
          if (view.free_milli + milli >= needed) two.push_back({milli, {held[i], held[j]}, node});
        }
      }
    }
  }
  const auto by_size = [](const Candidate& a, const Candidate& b) { return a.milli < b.milli; };
  std::stable_sort(one.begin(), one.end(), by_size);
  std::stable_sort(two.begin(), two.end(), by_size);
  for (std::size_t i = 0; i < one.size() && i < 6; ++i) propose(s, one[i].pods, one[i].node, out);
  for (std::size_t i = 0; i < two.size() && i < 3; ++i) propose(s, two[i].pods, two[i].node, out);
  whole_jobs(s, out);
}

}  // namespace berth::explain
