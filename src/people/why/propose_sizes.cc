// Fixes of how much is asked for: GPUs, other resources, members, topology.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "decide/schedule/rule_memo.h"
#include "people/view/words.h"
#include "people/why/fixes.h"
#include "people/why/pod_template.h"
#include "text/path.h"
#include "text/quantity.h"

namespace berth::people {

namespace {

using model::Constraint;
using model::GpuDemandSpec;
using model::PodSpec;

Tree* listed_amounts(Tree& holder, const char* list) {
  Tree* resources = holder.find("resources");
  return resources == nullptr ? nullptr : resources->find(list);
}

// No more than the value in what is there; false: it is not stated.
bool at_most(Tree* amounts, const std::string& resource, const text::Quantity& most,
             const std::string& value) {
  const Tree* now = amounts == nullptr ? nullptr : amounts->find(resource);
  if (now == nullptr) return false;
  const auto parsed = text::parse_quantity(now->string());
  if (!parsed.ok() || *parsed > most) (*amounts)[resource] = Tree::of_text(value);
  return true;
}

// What the pod's overhead and the containers that run beside the others leave of the value; plain
// init containers and spec.resources ask for no more than it.
std::string left_of(Tree& spec, const std::string& resource, const std::string& value) {
  const auto parsed = text::parse_quantity(value);
  if (!parsed.ok()) return value;
  text::Quantity left = *parsed;
  const Tree* overhead = spec.find("overhead");
  if (const Tree* fixed = overhead == nullptr ? nullptr : overhead->find(resource)) {
    if (const auto amount = text::parse_quantity(fixed->string()); amount.ok()) left -= *amount;
  }
  for (const char* list : {"limits", "requests"}) {
    at_most(listed_amounts(spec, list), resource, left, left.to_string());
  }
  std::vector<Tree> none;
  for (Tree& container :
       spec.find("initContainers") == nullptr ? none : spec["initContainers"].items()) {
    const Tree* restart = container.find("restartPolicy");
    if (restart == nullptr || restart->string() != "Always") continue;
    Tree* asked = listed_amounts(container, "requests");
    if (asked == nullptr || asked->find(resource) == nullptr) {
      asked = listed_amounts(container, "limits");
    }
    const Tree* now = asked == nullptr ? nullptr : asked->find(resource);
    const auto amount = text::parse_quantity(now == nullptr ? "0" : now->string());
    if (amount.ok()) left -= *amount;
  }
  for (Tree& container :
       spec.find("initContainers") == nullptr ? none : spec["initContainers"].items()) {
    const Tree* restart = container.find("restartPolicy");
    if (restart != nullptr && restart->string() == "Always") continue;
    for (const char* list : {"limits", "requests"}) {
      at_most(listed_amounts(container, list), resource, left, left.to_string());
    }
  }
  return left.is_negative() || left.is_zero() ? value : left.to_string();
}

// Sets the amount of a resource for the pod: the first container that asks for it gets what the
// rest leaves, the others ask for none. Where only a default asks, the first container states it.
void set_resource(Tree& spec, const std::string& resource, const std::string& pod_value) {
  Tree* containers = spec.find("containers");
  if (containers == nullptr) return;
  const std::string value = left_of(spec, resource, pod_value);
  const auto most = text::parse_quantity(value);
  bool given = false;
  for (Tree& container : containers->items()) {
    bool asks = false;
    for (const char* list : {"limits", "requests"}) {
      Tree* amounts = listed_amounts(container, list);
      if (amounts == nullptr || amounts->find(resource) == nullptr) continue;
      asks = true;
      if (given) {
        amounts->erase(resource);
      } else if (most.ok()) {
        at_most(amounts, resource, *most, value);
      }
    }
    given |= asks;
  }
  const bool stated = given || spec.find("initContainers") != nullptr ||
                      spec.find("resources") != nullptr || containers->items().empty();
  if (!stated) {
    Tree& resources = containers->items().front()["resources"];
    resources["requests"][resource] = Tree::of_text(value);
    if (resources.find("limits") != nullptr) resources["limits"][resource] = Tree::of_text(value);
  }
}

// One container asks for it, so that the amount can be set.
bool one_asks(const PodSpec& pod) { return pod.gpus_by_container.size() <= 1; }

// Job: parallelism and completions times a factor.
void scale_job(Tree& job, int factor) {
  Tree& spec = job["spec"];
  for (const char* field : {"parallelism", "completions"}) {
    const Tree* now = spec.find(field);
    const std::string text = now == nullptr ? "" : now->string();
    if (text.empty() && std::string_view(field) == "completions") continue;
    const int count = text.empty() ? 1 : std::stoi(text);
    spec[field] = Tree::of_number(std::int64_t{count} * factor);
  }
}

bool is_plain_job(const Situation& s) {
  return s.unit.places.size() == 1 && s.unit.places.front().kind == "Job" &&
         s.unit.places.front().path.size() == 2;
}

void set_gpus(PodSpec& pod, int count) {
  if (pod.gpu.kind != GpuDemandSpec::Kind::kWhole || pod.gpu.count < count) return;
  pod.gpu.count = count;
  if (!pod.gpus_by_container.empty()) pod.gpus_by_container = {count};
}

// The same GPUs in more, smaller pods.
void split(const Situation& s, int each, Proposals& out) {
  const int factor = s.sample.gpu.count / each;
  const int pods = static_cast<int>(std::max<std::size_t>(1, s.unit.pending.size()));
  out.push_back(
      {.title = fmt::format("ask for {} x {}", show_count(std::int64_t{pods} * factor, "pod"),
                            show_count(each, "GPU")),
       .kind = "fewer-gpus",
       .apply = [&s, each, factor](Draft& draft) {
         const auto per_pod = std::to_string(each);
         edit_pods(
             s, draft, [&](PodSpec& pod) { set_gpus(pod, each); },
             [&](Tree&, Tree& spec) { set_resource(spec, "nvidia.com/gpu", per_pod); });
         const TemplatePlace& place = s.unit.places.front();
         if (Tree* job = draft.edit(s.objects(), "Job", place.ns, place.name)) {
           scale_job(*job, factor);
         }
         if (model::WorkloadSpec* spec = edit_queued(s, draft)) {
           for (model::PodSetSpec& set : spec->pod_sets) {
             set.count *= factor;
             set.min_count.reset();
           }
           return true;
         }
         if (s.unit.gang != nullptr) {
           model::GangSpec gang = *s.unit.gang;
           gang.min_member *= factor;
           draft.gangs[s.unit.decided] = gang;
         }
         for (const PodSpec* pod : s.unit.pending) {
           for (int i = 1; i < factor; ++i) {
             PodSpec copy = draft.pods.at(pod->ns + '/' + pod->name);
             copy.name += fmt::format("-part-{}", i);
             const std::string name = copy.ns + '/' + copy.name;
             draft.own_pods.insert(name);
             draft.pods.emplace(name, std::move(copy));
           }
         }
         return true;
       }});
}

void fewer_gpus(const Situation& s, Proposals& out) {
  const GpuDemandSpec& demand = s.sample.gpu;
  if (demand.kind != GpuDemandSpec::Kind::kWhole || demand.count < 2 || !one_asks(s.sample)) return;
  std::set<int, std::greater<>> sizes;
  const int largest = s.picture == nullptr ? 0 : s.picture->largest_milli / model::kMilliPerGpu;
  for (int size = demand.count / 2; size > 0; size /= 2) sizes.insert(size);
  if (largest > 0 && largest < demand.count) sizes.insert(largest);
  int most = 0;
  for (const NodeView& view : s.picture == nullptr ? std::vector<NodeView>() : s.picture->nodes) {
    most = std::max(most, view.gpus);
  }
  if (most > 0 && most < demand.count) sizes.insert(most);
  for (const int each : sizes) {
    if (is_plain_job(s) && demand.count % each == 0) split(s, each, out);
    out.push_back({.title = fmt::format("ask for {} a pod instead of {}", show_count(each, "GPU"),
                                        demand.count),
                   .kind = "fewer-gpus",
                   .disturbance = 2,
                   .apply = [&s, each](Draft& draft) {
                     const auto per_pod = std::to_string(each);
                     return edit_pods(
                         s, draft, [&](PodSpec& pod) { set_gpus(pod, each); },
                         [&](Tree&, Tree& spec) { set_resource(spec, "nvidia.com/gpu", per_pod); });
                   }});
  }
}

struct AskedAmount {
  const char* resource;
  Constraint constraint;
};

// The most that is free on a node that counts.
std::int64_t most_free(const Situation& s, const std::string& resource, bool empty) {
  std::int64_t most = 0;
  for (const NodeView& view : s.picture->nodes) {
    if (view.lasting != 0) continue;
    const model::NodeInfo& info = s.state->info(view.slot);
    const model::NodeState& state = s.state->node(view.slot);
    if (resource == "cpu") {
      most = std::max(most, empty ? info.cpu : state.cpu);
    } else if (resource == "memory") {
      most = std::max(most, empty ? info.memory : state.memory);
    } else if (resource == "ephemeral-storage") {
      most = std::max(most, empty ? info.ephemeral : state.ephemeral);
    } else {
      for (std::size_t i = 0; i < info.extended.size(); ++i) {
        if (s.state->inventory().strings().text(info.extended[i].first) != resource) continue;
        most = std::max(most, empty ? info.extended[i].second : state.extended[i]);
      }
    }
  }
  return most;
}

// What the overhead of its RuntimeClass leaves of the value; the template does not state it.
std::string less_overhead(const Situation& s, const Tree& spec, const std::string& resource,
                          const std::string& value) {
  const Tree* name = spec.find("runtimeClassName");
  if (name == nullptr || spec.find("overhead") != nullptr || s.objects() == nullptr) return value;
  for (const RawObject& raw : s.objects()->of_kind("RuntimeClass")) {
    const auto fixed =
        text::parse_quantity(std::string(at(raw.value, "overhead.podFixed")[resource].string()));
    const auto whole = text::parse_quantity(value);
    if (raw.name != name->string() || !fixed.ok() || !whole.ok()) continue;
    text::Quantity left = *whole;
    left -= *fixed;
    if (!left.is_negative() && !left.is_zero()) return left.to_string();
  }
  return value;
}

void fewer_others(const Situation& s, Proposals& out) {
  if (s.picture == nullptr) return;
  for (const auto& [resource, asked] : s.sample.requests) {
    const std::int64_t most = most_free(s, resource, false);
    if (asked <= most) continue;
    const bool cpu = resource == "cpu";
    const bool bytes = resource == "memory" || resource == "ephemeral-storage" ||
                       resource.starts_with("hugepages-");
    // Round numbers below what is there.
    const std::int64_t unit = cpu ? 1000 : bytes ? std::int64_t{1} << 30 : 1;
    const std::int64_t amount = most / unit * unit;
    if (amount <= 0 && !resource.starts_with("hugepages-") && (cpu || bytes)) continue;
    const std::string text =
        cpu ? text::Quantity::from_milli(amount).to_string()
            : text::Quantity::from_units(amount,
                                         bytes ? text::Format::kBinarySI : text::Format::kDecimalSI)
                  .to_string();
    out.push_back(
        {.title = amount == 0 ? "ask for no " + resource : "ask for " + text + ' ' + resource,
         .kind = "fewer-resources",
         .disturbance = 2,
         .apply = [&s, what = resource, amount, text](Draft& draft) {
           return edit_pods(
               s, draft,
               [&](PodSpec& pod) {
                 if (amount == 0) {
                   pod.requests.erase(what);
                 } else {
                   pod.requests[what] = amount;
                 }
               },
               [&](Tree&, Tree& spec) {
                 set_resource(spec, what, less_overhead(s, spec, what, text));
               });
         }});
  }
}

// minMember of the group object, whatever scheduler it is of.
bool set_minimum(Tree& group, int members) {
  Tree& spec = group["spec"];
  if (spec.find("minMember") != nullptr) {
    spec["minMember"] = Tree::of_number(members);
    return true;
  }
  Tree* policy = spec.find("schedulingPolicy");
  Tree* gang = policy == nullptr ? nullptr : policy->find("gang");
  if (gang == nullptr || gang->find("minCount") == nullptr) return false;
  (*gang)["minCount"] = Tree::of_number(members);
  return true;
}

// Pods of a group of Kueue say how many they are and of which queue; the rest may never come.
void one_group(const Situation& s, Proposals& out) {
  const bool lacks = s.unit.queued != nullptr && !s.unit.queued->incomplete.empty();
  if (!lacks || s.objects() == nullptr || s.unit.pending.empty()) return;
  const auto mark = [&](std::string title, const char* kind, const char* map, const char* key,
                        const std::string& value) {
    out.push_back({.title = std::move(title),
                   .kind = kind,
                   .disturbance = 2,
                   .objects_only = true,
                   .apply = [&s, map, key, value](Draft& draft) {
                     return edit_pods(
                         s, draft, [](PodSpec&) {},
                         [&](Tree& meta, Tree&) { meta[map][key] = Tree::of_text(value); });
                   }});
  };
  const std::string exist = std::to_string(s.unit.pending.size());
  mark(fmt::format("a total count of {} for its pods", exist), "smaller-gang", "annotations",
       "kueue.x-k8s.io/pod-group-total-count", exist);
  mark(fmt::format("the queue {} for all its pods", s.unit.queued->queue), "other-queue", "labels",
       "kueue.x-k8s.io/queue-name", s.unit.queued->queue);
}

// The minimum of a subgroup in whatever object says it: a PodGroup of Volcano or KAI, a Volcano
// Job.
bool set_subgroup_minimum(Tree& spec, const std::string& name, int members) {
  if (Tree* tasks = spec.find("minTaskMember")) {
    (*tasks)[name] = Tree::of_number(members);
    return true;
  }
  for (const auto& [list, field] :
       {std::pair("subGroups", "minMember"), std::pair("tasks", "minAvailable")}) {
    if (spec.find(list) == nullptr) continue;
    for (Tree& each : spec[list].items()) {
      const Tree* own = each.find("name");
      if (own == nullptr || own->string() != name) continue;
      each[field] = Tree::of_number(members);
      return true;
    }
  }
  return false;
}

struct Subminimum {
  std::string name;
  int members = 0;
};

bool set_minimums(const Situation& s, Draft& draft, const std::vector<Subminimum>& least, int all) {
  const model::GangSpec& gang = *s.unit.gang;
  Tree* object = draft.edit(s.objects(), "PodGroup", gang.ns, gang.name);
  const bool group = object != nullptr;
  if (!group) object = draft.edit(s.objects(), "Job", gang.ns, gang.name);
  if (object == nullptr) return false;
  Tree& spec = (*object)["spec"];
  for (const Subminimum& each : least) {
    if (!set_subgroup_minimum(spec, each.name, each.members)) return false;
  }
  const char* field = group ? "minMember" : "minAvailable";
  if (spec.find(field) != nullptr) spec[field] = Tree::of_number(all);
  return true;
}

// Subgroups that lack members: those that exist are enough.
void smaller_subgroups(const Situation& s, Proposals& out) {
  const model::GangSpec& gang = *s.unit.gang;
  if (s.reason != model::Reason::kGangIncomplete || s.objects() == nullptr) return;
  std::map<std::string, int> exist;
  int all = 0;
  for (const auto* pods : {&s.unit.pending, &s.unit.running}) {
    for (const PodSpec* pod : *pods) ++exist[pod->subgroup];
    all += static_cast<int>(pods->size());
  }
  std::vector<Subminimum> least;
  std::string title;
  for (const model::SubgroupSpec& sub : gang.subgroups) {
    const int members = exist[sub.name];
    if (members >= sub.min_member) continue;
    least.push_back({sub.name, members});
    title += fmt::format("{}{} of {} instead of {}", title.empty() ? "" : ", ", members, sub.name,
                         sub.min_member);
  }
  if (least.empty()) title = fmt::format("{} instead of {}", all, gang.min_member);
  out.push_back({.title = "at least " + title,
                 .kind = "smaller-gang",
                 .disturbance = 2,
                 .objects_only = true,
                 .apply = [&s, least, minimum = std::min(gang.min_member, all)](Draft& draft) {
                   return set_minimums(s, draft, least, minimum);
                 }});
}

void smaller_gang(const Situation& s, Proposals& out) {
  const model::GangSpec* gang = s.unit.gang;
  if (gang == nullptr) return;
  if (!gang->subgroups.empty()) return smaller_subgroups(s, out);
  const int exist = static_cast<int>(s.unit.pending.size() + s.unit.running.size());
  const bool group = s.objects() != nullptr && s.objects()->find("PodGroup", gang->ns, gang->name);
  std::set<int, std::greater<>> sizes;
  if (exist < gang->min_member) sizes.insert(exist);
  if (s.reason != model::Reason::kGangIncomplete) {
    for (int size = gang->min_member - 1; size > 0; size = size > 4 ? size / 2 : size - 1) {
      sizes.insert(size);
    }
  }
  for (const int members : sizes) {
    if (members < 1) continue;
    if (group && members >= exist) {
      out.push_back({.title = fmt::format("minMember {} instead of {}", members, gang->min_member),
                     .kind = "smaller-gang",
                     .disturbance = 2,
                     .apply = [&s, members](Draft& draft) {
                       model::GangSpec changed = *s.unit.gang;
                       changed.min_member = members;
                       draft.gangs[s.unit.decided] = changed;
                       Tree* object = draft.edit(s.objects(), "PodGroup", changed.ns, changed.name);
                       return object != nullptr && set_minimum(*object, members);
                     }});
      continue;
    }
    if (members >= exist) continue;
    // Fewer members: the last ones are left out.
    const bool by_job = is_plain_job(s);
    if (!group && !by_job) continue;
    out.push_back(
        {.title = fmt::format("start with {} instead of {}", show_count(members, "member"), exist),
         .kind = "smaller-gang",
         .disturbance = 2,
         .apply = [&s, members, by_job](Draft& draft) {
           model::GangSpec changed = *s.unit.gang;
           changed.min_member = std::min(changed.min_member, members);
           draft.gangs[s.unit.decided] = changed;
           for (std::size_t i = 0; i < s.unit.pending.size(); ++i) {
             const PodSpec& pod = *s.unit.pending[i];
             const int left = members - static_cast<int>(s.unit.running.size());
             if (static_cast<int>(i) < left) continue;
             draft.gone_pods.insert(pod.ns + '/' + pod.name);
             draft.remove(s.objects(), "Pod", pod.ns, pod.name);
           }
           if (by_job) {
             const TemplatePlace& place = s.unit.places.front();
             Tree* job = draft.edit(s.objects(), "Job", place.ns, place.name);
             if (job == nullptr) return false;
             (*job)["spec"]["parallelism"] = Tree::of_number(members);
             if ((*job)["spec"].find("completions") != nullptr) {
               (*job)["spec"]["completions"] = Tree::of_number(members);
             }
             return true;
           }
           Tree* object = draft.edit(s.objects(), "PodGroup", changed.ns, changed.name);
           return object != nullptr && set_minimum(*object, changed.min_member);
         }});
  }
}

// Fewer pods of a Job in a queue.
void smaller_queued(const Situation& s, Proposals& out) {
  if (s.unit.queued == nullptr || !is_plain_job(s) || s.unit.queued->pod_sets.size() != 1) return;
  const int count = s.unit.queued->pod_sets.front().count;
  for (int pods = count / 2; pods > 0; pods /= 2) {
    out.push_back(
        {.title = fmt::format("run {} at a time instead of {}", show_count(pods, "pod"), count),
         .kind = "fewer-pods",
         .disturbance = 2,
         .apply = [&s, pods](Draft& draft) {
           edit_queued(s, draft)->pod_sets.front().count = pods;
           const TemplatePlace& place = s.unit.places.front();
           Tree* job = draft.edit(s.objects(), "Job", place.ns, place.name);
           if (job == nullptr) return false;
           (*job)["spec"]["parallelism"] = Tree::of_number(pods);
           draft.remove(s.objects(), "Workload", s.unit.ns, s.unit.queued->name);
           return true;
         }});
  }
}

constexpr const char* kRequired[] = {"berth.dev/topology-required",
                                     "kueue.x-k8s.io/podset-required-topology",
                                     "kai.scheduler/topology-required-placement"};
constexpr const char* kPreferred[] = {"berth.dev/topology-preferred",
                                      "kueue.x-k8s.io/podset-preferred-topology",
                                      "kai.scheduler/topology-preferred-placement"};

void soften(Tree& meta) {
  Tree* notes = meta.find("annotations");
  if (notes == nullptr) return;
  for (std::size_t i = 0; i < std::size(kRequired); ++i) {
    const Tree* value = notes->find(kRequired[i]);
    if (value == nullptr) continue;
    const Tree kept = *value;
    notes->erase(kRequired[i]);
    (*notes)[kPreferred[i]] = kept;
  }
}

void soften_all(const Situation& s, Draft& draft) {
  for (const TemplatePlace& place : s.unit.places) {
    Tree* object = draft.edit(s.objects(), place.kind, place.ns, place.name);
    if (object == nullptr) continue;
    soften((*object)["metadata"]);
    Tree* made_of = place.kind == "Workload" ? nullptr : below(object, place.path);
    Tree* meta = made_of == nullptr ? nullptr : made_of->find("metadata");
    if (meta != nullptr) soften(*meta);
    if (place.kind != "Workload") continue;
    for (Tree& set : (*object)["spec"]["podSets"].items()) {
      Tree* ask = set.find("topologyRequest");
      const Tree* level = ask == nullptr ? nullptr : ask->find("required");
      if (level == nullptr) continue;
      const Tree kept = *level;
      ask->erase("required");
      (*ask)["preferred"] = kept;
    }
  }
  if (s.unit.gang == nullptr) return;
  if (Tree* group = draft.edit(s.objects(), "PodGroup", s.unit.gang->ns, s.unit.gang->name)) {
    soften((*group)["metadata"]);
    for (const char* field : {"requiredTopologyLevel"}) {
      Tree* ask = (*group)["spec"].find("topologyConstraint");
      const Tree* level = ask == nullptr ? nullptr : ask->find(field);
      if (level == nullptr) continue;
      const Tree kept = *level;
      ask->erase(field);
      (*ask)["preferredTopologyLevel"] = kept;
    }
  }
}

void topology(const Situation& s, Proposals& out) {
  const bool gang = s.unit.gang != nullptr && !s.unit.gang->required_topology.empty();
  const bool queued = s.unit.queued != nullptr &&
                      std::any_of(s.unit.queued->pod_sets.begin(), s.unit.queued->pod_sets.end(),
                                  [](const auto& set) {
                                    return set.topology.mode == model::TopologyAsk::Mode::kRequired;
                                  });
  if (!gang && !queued) return;
  out.push_back({.title = "prefer its topology level instead of requiring it",
                 .kind = "prefer-topology",
                 .apply = [&s](Draft& draft) {
                   if (s.unit.gang != nullptr) {
                     model::GangSpec changed = *s.unit.gang;
                     changed.preferred_topology = changed.required_topology;
                     changed.required_topology.clear();
                     draft.gangs[s.unit.decided] = changed;
                   }
                   if (model::WorkloadSpec* spec = edit_queued(s, draft)) {
                     for (model::PodSetSpec& set : spec->pod_sets) {
                       if (set.topology.mode == model::TopologyAsk::Mode::kRequired) {
                         set.topology.mode = model::TopologyAsk::Mode::kPreferred;
                       }
                     }
                   }
                   soften_all(s, draft);
                   return true;
                 }});
}

}  // namespace

void propose_sizes(const Situation& s, Proposals& out) {
  topology(s, out);
  fewer_gpus(s, out);
  fewer_others(s, out);
  one_group(s, out);
  smaller_gang(s, out);
  smaller_queued(s, out);
}

}  // namespace berth::people
