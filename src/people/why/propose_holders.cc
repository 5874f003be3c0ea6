// Fixes that take running pods away: to another node, or one, two, a whole job for good.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "decide/schedule/rule_memo.h"
#include "kinds/pod_body.h"
#include "people/view/words.h"
#include "people/why/fixes.h"

namespace berth::people {

namespace {

using model::PodSpec;

struct HeldPod {
  std::string name;  // "ns/name"
  int milli = 0;
  int priority = 0;
};

using PodNames = std::set<std::string, std::less<>>;

// A static pod: its node makes it anew.
bool comes_back_there(const PodSpec& pod) { return pod.owner.starts_with("Node/"); }

// Whose end gives it nothing: pods of the same Job, set or group, and those that come back.
PodNames pods_to_keep(const Situation& s) {
  PodNames out;
  for (const PodSpec& pod : s.inputs().pods) {
    const bool one_owner = !pod.owner.empty() && pod.owner == s.sample.owner;
    const bool one_gang = !pod.gang.empty() && pod.gang == s.sample.gang;
    const bool own = pod.ns == s.sample.ns && (one_owner || one_gang);
    const bool stays = !pod.node_name.empty() && comes_back_there(pod);
    if (own || stays) out.insert(pod.ns + '/' + pod.name);
  }
  return out;
}

std::vector<HeldPod> pods_on(const Situation& s, std::uint32_t slot, const PodNames& but,
                             bool of_queues = false) {
  std::vector<HeldPod> out;
  s.state->for_each_pod_on(slot, [&](model::PodId id) {
    const model::PodEntry& pod = s.state->pod(id);
    if ((pod.info->queued && !of_queues) || but.contains(pod.info->name)) return;
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

bool is_made_anew(const Situation& s, const PodSpec& pod) {
  const std::size_t slash = pod.owner.find('/');
  if (slash == std::string::npos || s.objects() == nullptr) return false;
  const std::string kind = pod.owner.substr(0, slash);
  if (kind == "DaemonSet") return true;
  const bool makes = kind == "Job" || kind == "ReplicaSet" || kind == "StatefulSet";
  return makes && s.objects()->find(kind, pod.ns, pod.owner.substr(slash + 1)).has_value();
}

// Pods whose node is a part of what they are, that stand and fall with others, or that leave.
bool stays_where_it_is(const PodSpec& pod) {
  return comes_back_there(pod) || pod.owner.starts_with("DaemonSet/") || !pod.gang.empty() ||
         pod.terminating || pod.gpu.kind == model::GpuDemandSpec::Kind::kNone;
}

// A pod that leaves enough room behind it, and where it runs.
struct Movable {
  HeldPod pod;
  std::uint32_t slot = 0;
};

// Where the pod could run now, were it not where it is: the fullest such node.
std::optional<std::uint32_t> other_place(const Situation& s, const Movable& movable,
                                         const PodSpec& spec, schedule::Placer& placer) {
  std::vector<const NodeView*> nodes;
  for (const NodeView& view : s.picture->nodes) {
    if (view.slot != movable.slot && view.free_milli >= movable.pod.milli) nodes.push_back(&view);
  }
  if (nodes.empty()) return std::nullopt;
  std::stable_sort(nodes.begin(), nodes.end(), [](const NodeView* a, const NodeView* b) {
    return a->free_milli < b->free_milli;
  });
  model::SnapshotBuilder builder = s.trials.after();
  PodSpec waits = spec;
  waits.node_name.clear();
  waits.gpu_indices.clear();
  builder.upsert_pod(waits);
  const model::ClusterState& state = builder.state();
  const auto id = builder.find_pod(movable.pod.name);
  if (!id) return std::nullopt;
  constexpr std::size_t kMostPlacesTried = 32;
  if (nodes.size() > kMostPlacesTried) nodes.resize(kMostPlacesTried);
  for (const NodeView* view : nodes) {
    const std::string& name = s.state->info(view->slot).name;
    const auto slot = state.inventory().slot(name);
    if (slot && placer.blockers_on(state, state.pod(*id).shape, *slot) == 0) return view->slot;
  }
  return std::nullopt;
}

// The pod as it is made on the other node once the old one is gone.
void make_again(const Situation& s, Draft& draft, const PodSpec& spec, const std::string& node) {
  PodSpec moved = spec;
  moved.node_name = node;
  moved.gpu_indices.clear();
  moved.started_ns = 0;
  draft.pods[spec.ns + '/' + spec.name] = std::move(moved);
  const auto raw =
      s.objects() == nullptr ? std::nullopt : s.objects()->find("Pod", spec.ns, spec.name);
  if (!raw) return;
  draft.remove(s.objects(), "Pod", spec.ns, spec.name);
  Tree tree(*raw->value);
  tree["apiVersion"] = Tree::of_text(raw->api_version);
  tree["kind"] = Tree::of_text(raw->kind);
  Tree& meta = tree["metadata"];
  meta["namespace"] = Tree::of_text(spec.ns);
  for (const char* key : {"uid", "resourceVersion", "creationTimestamp", "generation",
                          "managedFields", "selfLink", "generateName"}) {
    meta.erase(key);
  }
  if (Tree* annotations = meta.find("annotations")) annotations->erase(kinds::kGpusAnnotation);
  tree["spec"]["nodeName"] = Tree::of_text(node);
  tree.erase("status");
  draft.create(std::move(tree));
}

// Pods that would run on another node as well, and leave enough room behind: smallest first.
void propose_moves(const Situation& s, int needed, Proposals& out) {
  constexpr std::size_t kMostLookedAtToMove = 6, kMostMoves = 3;
  int largest = 0;  // free on one node, wherever it is
  for (const NodeView& view : s.picture->nodes) largest = std::max(largest, view.free_milli);
  if (needed == 0 || largest == 0) return;
  std::vector<Movable> movable;
  for (const NodeView& view : s.picture->nodes) {
    if (!s.picture->counts(view) || movable.size() > 400) continue;
    for (const HeldPod& pod : pods_on(s, view.slot, {}, true)) {
      const bool enough = pod.milli > 0 && view.free_milli + pod.milli >= needed;
      if (enough && pod.milli <= largest) movable.push_back({pod, view.slot});
    }
  }
  std::stable_sort(movable.begin(), movable.end(), [](const Movable& a, const Movable& b) {
    return std::pair(a.pod.milli, a.pod.priority) < std::pair(b.pod.milli, b.pod.priority);
  });
  std::optional<schedule::Placer> placer;
  std::size_t looked = 0, moves = 0;
  for (const Movable& each : movable) {
    if (looked >= kMostLookedAtToMove || moves >= kMostMoves) return;
    const PodSpec* spec = spec_of(s, each.pod.name);
    if (spec == nullptr || spec->node_name.empty() || stays_where_it_is(*spec)) continue;
    ++looked;
    if (!placer) placer.emplace(s.trials.policy().placement);
    const auto place = other_place(s, each, *spec, *placer);
    if (!place) continue;
    ++moves;
    const std::string& to = s.state->info(*place).name;
    out.push_back({.title = fmt::format("move {} from {} to {} ({})", each.pod.name,
                                        spec->node_name, to, show_demand(spec->gpu)),
                   .kind = "move-pod",
                   .disturbance = 3,
                   .restarts = 1,
                   .takes = {each.pod.name},
                   .apply = [&s, spec, to](Draft& draft) {
                     make_again(s, draft, *spec, to);
                     return true;
                   }});
  }
}

// Whoever made it makes it anew, and it waits; a pod of nobody is gone.
void take_away(const Situation& s, Draft& draft, const std::string& name) {
  const PodSpec* pod = spec_of(s, name);
  if (pod == nullptr) return;
  draft.remove(s.objects(), "Pod", pod->ns, pod->name);
  if (!is_made_anew(s, *pod)) {
    draft.gone_pods.insert(name);
    return;
  }
  PodSpec again = *pod;
  again.node_name.clear();
  again.gpu_indices.clear();
  again.started_ns = 0;
  // The pods of a Job have its age; others are as old as they are.
  if (!pod->owner.starts_with("Job/")) again.created_ns = s.options.plan.now_ns;
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
  const bool anew = only != nullptr && only->owner.starts_with("Job/") && is_made_anew(s, *only);
  out.push_back({.title = leaves ? fmt::format("let {} on {} end: it is being deleted", list, node)
                                 : fmt::format("delete {} on {}{}", list, node,
                                               anew ? ", which its Job makes anew elsewhere" : ""),
                 .kind = "delete-pod",
                 .disturbance = 3 + static_cast<int>(pods.size()) / 2,
                 .restarts = static_cast<int>(pods.size()),
                 .takes = names,
                 .apply = [&s, names](Draft& draft) {
                   for (const std::string& name : names) take_away(s, draft, name);
                   return true;
                 }});
}

// Pods of one node whose place would be enough.
struct Candidate {
  int milli = 0;
  std::vector<HeldPod> pods;
  std::string node;
};

// The fewest that leave enough behind them, the largest first; held: smallest first.
std::vector<HeldPod> fewest(const std::vector<HeldPod>& held, int free, int needed) {
  std::vector<HeldPod> out;
  for (auto it = held.rbegin(); it != held.rend() && free < needed && it->milli > 0; ++it) {
    free += it->milli;
    out.push_back(*it);
  }
  // One that was taken early may not be needed any more.
  std::erase_if(out, [&](const HeldPod& pod) {
    const bool spare = free - pod.milli >= needed;
    if (spare) free -= pod.milli;
    return spare;
  });
  return free < needed ? std::vector<HeldPod>() : out;
}

// What a pod stands or falls with: its Job, or itself.
std::string whole_of(const PodSpec& pod) {
  return pod.owner.starts_with("Job/") ? pod.ns + '/' + pod.owner.substr(4)
                                       : pod.ns + '/' + pod.name;
}

void stop_all(const Situation& s, const std::vector<const PodSpec*>& pods, Draft& draft) {
  for (const PodSpec* pod : pods) {
    draft.gone_pods.insert(pod->ns + '/' + pod->name);
    draft.remove(s.objects(), "Pod", pod->ns, pod->name);
    if (pod->owner.starts_with("Job/")) {
      draft.remove(s.objects(), "Job", pod->ns, pod->owner.substr(4));
    }
  }
}

void propose_stop(const Situation& s, const std::string& names,
                  const std::vector<const PodSpec*>& pods, Proposals& out) {
  const int count = static_cast<int>(pods.size());
  out.push_back({.title = fmt::format("stop {} ({})", names, show_count(count, "pod")),
                 .kind = "stop-job",
                 .disturbance = 4,
                 .restarts = count,
                 .apply = [&s, pods](Draft& draft) {
                   stop_all(s, pods, draft);
                   return true;
                 }});
}

// A Job makes a pod that was deleted anew, and it takes its place again: such Jobs are stopped. Of
// candidates those that stop the fewest pods, then the fewest GPUs, then what matters least.
void stop_jobs(const Situation& s, const std::vector<Candidate>& candidates, Proposals& out) {
  struct Stop {
    std::size_t count = 0;
    int milli = 0, priority = 0;
    std::string names;
    std::vector<const PodSpec*> pods;
  };
  std::set<std::string_view> nodes;
  for (const Candidate& candidate : candidates) nodes.insert(candidate.node);
  std::map<std::string, const PodSpec*> by_name;  // on those nodes
  using Owner = std::pair<std::string_view, std::string_view>;
  std::map<Owner, std::vector<const PodSpec*>> members;  // of Jobs that have pods there
  for (const PodSpec& pod : s.inputs().pods) {
    if (!nodes.contains(pod.node_name)) continue;
    by_name.emplace(pod.ns + '/' + pod.name, &pod);
    if (pod.owner.starts_with("Job/")) members[{pod.ns, pod.owner}];
  }
  if (members.empty()) return;
  for (const PodSpec& pod : s.inputs().pods) {
    if (pod.node_name.empty() || pod.owner.empty()) continue;
    const auto it = members.find({pod.ns, pod.owner});
    if (it != members.end()) it->second.push_back(&pod);
  }
  std::vector<Stop> stops;
  std::set<std::string> seen;
  for (const Candidate& candidate : candidates) {
    Stop stop{.milli = candidate.milli};
    std::set<std::string> wholes;
    bool job = false;
    for (const HeldPod& held : candidate.pods) {
      const auto found = by_name.find(held.name);
      if (found == by_name.end() || !wholes.insert(whole_of(*found->second)).second) continue;
      const PodSpec* pod = found->second;
      if (const auto it = members.find({pod->ns, pod->owner}); it != members.end()) {
        stop.pods.insert(stop.pods.end(), it->second.begin(), it->second.end());
        job = true;
      } else {
        stop.pods.push_back(pod);
      }
      stop.priority = std::max(stop.priority, pod->priority);
    }
    int named = 0;
    for (const std::string& whole : wholes) {
      if (++named <= 3) stop.names += (named == 1 ? "" : ", ") + whole;
    }
    if (named > 3) stop.names += fmt::format(" and {} more", named - 3);
    stop.count = stop.pods.size();
    if (job && seen.insert(stop.names).second) stops.push_back(std::move(stop));
  }
  std::stable_sort(stops.begin(), stops.end(), [](const Stop& a, const Stop& b) {
    return std::tie(a.count, a.milli, a.priority) < std::tie(b.count, b.milli, b.priority);
  });
  if (stops.size() > 4) stops.resize(4);
  for (const Stop& stop : stops) propose_stop(s, stop.names, stop.pods, out);
}

// Running pods by the job they belong to, smallest first.
void whole_jobs(const Situation& s, const PodNames& but, Proposals& out) {
  std::map<std::string, std::vector<const PodSpec*>> jobs;
  for (const PodSpec& pod : s.inputs().pods) {
    if (pod.node_name.empty() || pod.queued || pod.gpu.count == 0) continue;
    if (but.contains(pod.ns + '/' + pod.name)) continue;
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
  for (const auto& [count, name] : order) propose_stop(s, name, jobs.at(name), out);
}

// What it asks for, in milli of GPUs, on a node with so many shares of each.
int needed_on(const Situation& s, int shares) {
  const model::GpuDemandSpec& gpu = s.sample.gpu;
  const bool counted = gpu.kind == model::GpuDemandSpec::Kind::kWhole ||
                       gpu.kind == model::GpuDemandSpec::Kind::kShared;
  return gpu.count * (counted ? model::kMilliPerGpu / std::max(1, shares) : gpu.milli);
}

}  // namespace

void propose_holders(const Situation& s, Proposals& out) {
  if (s.picture == nullptr || s.state == nullptr) return;
  std::vector<Candidate> one, two, several;
  propose_moves(s, needed_on(s, 1), out);
  const PodNames keep = pods_to_keep(s);
  for (const NodeView& view : s.picture->nodes) {
    if (!s.picture->counts(view)) continue;
    if (one.size() + two.size() > 400) break;
    const int needed = needed_on(s, s.state->info(view.slot).shares_per_gpu);
    const std::vector<HeldPod> held = pods_on(s, view.slot, keep);
    const std::string& node = s.state->info(view.slot).name;
    Candidate more{.pods = fewest(held, view.free_milli, needed), .node = node};
    for (const HeldPod& pod : more.pods) more.milli += pod.milli;
    if (more.pods.size() > 2) several.push_back(std::move(more));
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
  const auto by_size = [](const Candidate& a, const Candidate& b) {
    return std::pair(a.pods.size(), a.milli) < std::pair(b.pods.size(), b.milli);
  };
  for (auto* list : {&one, &two, &several}) std::stable_sort(list->begin(), list->end(), by_size);
  for (std::size_t i = 0; i < one.size() && i < 6; ++i) propose(s, one[i].pods, one[i].node, out);
  for (std::size_t i = 0; i < two.size() && i < 3; ++i) propose(s, two[i].pods, two[i].node, out);
  if (one.size() > 8) one.resize(8);
  if (two.size() > 4) two.resize(4);
  if (several.size() > 2) several.resize(2);
  one.insert(one.end(), two.begin(), two.end());
  one.insert(one.end(), several.begin(), several.end());
  stop_jobs(s, one, out);
  whole_jobs(s, keep, out);
}

}  // namespace berth::people
