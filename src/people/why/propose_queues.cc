// Fixes of queues: quota, limits, another queue, priority, who holds the quota.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "model/amounts.h"
#include "people/view/words.h"
#include "people/why/fixes.h"
#include "people/why/pod_template.h"
#include "text/path.h"
#include "text/quantity.h"

namespace berth::people {

namespace {

using model::QueueSpec;
using model::WorkloadSpec;

constexpr const char* kQueueNameLabel = "kueue.x-k8s.io/queue-name";
constexpr const char* kPriorityLabel = "kueue.x-k8s.io/priority-class";
constexpr const char* kNamespacesNote = "berth.dev/namespaces";
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

std::string quantity(const std::string& resource, std::int64_t amount) {
  if (resource == "cpu") return text::Quantity::from_milli(amount).to_string();
  const bool bytes = resource == "memory" || resource == "ephemeral-storage";
  return text::Quantity::from_units(amount,
                                    bytes ? text::Format::kBinarySI : text::Format::kDecimalSI)
      .to_string();
}

const model::LocalQueueSpec* local_queue(const Situation& s) {
  for (const model::LocalQueueSpec& queue : s.inputs().queues.local_queues) {
    if (queue.ns == s.unit.queued->ns && queue.name == s.unit.queued->queue) return &queue;
  }
  return nullptr;
}

const QueueSpec* cluster_queue(const Situation& s) {
  const model::LocalQueueSpec* local = local_queue(s);
  for (const QueueSpec& queue : s.inputs().queues.queues) {
    if (local != nullptr && queue.name == local->queue) return &queue;
  }
  return nullptr;
}

// What all its pods ask of quota.
model::Amounts asked(const WorkloadSpec& spec) {
  model::Amounts out;
  for (const model::PodSetSpec& set : spec.pod_sets) {
    for (const auto& [resource, amount] : set.requests) out[resource] += amount * set.count;
    out["pods"] += set.count;
  }
  return out;
}

const model::QueueUse* use_of(const Situation& s, const std::string& queue) {
  for (const model::QueueUse& use : s.trials.decision().queues) {
    if (use.name == queue) return &use;
  }
  return nullptr;
}

struct QuotaRaise {
  std::string resource;
  std::int64_t nominal = 0, borrowing = 0;  // to be; borrowing 0: not set
};

// How a ClusterQueue object spells the quota of a flavor and resource.
Tree* quota_of(Tree& queue, const std::string& flavor, const std::string& resource) {
  for (Tree& group : queue["spec"]["resourceGroups"].items()) {
    for (Tree& each : group["flavors"].items()) {
      if (each["name"].string() != flavor) continue;
      for (Tree& quota : each["resources"].items()) {
        if (quota["name"].string() == resource) return &quota;
      }
    }
  }
  return nullptr;
}

void raise(const Situation& s, const QueueSpec& queue, const std::string& flavor,
           const std::vector<QuotaRaise>& raises, bool borrow, Proposals& out) {
  std::string list;
  for (const QuotaRaise& each : raises) {
    list +=
        fmt::format("{}{} {}", list.empty() ? "" : ", ",
                    quantity(each.resource, borrow ? each.borrowing : each.nominal), each.resource);
  }
  out.push_back(
      {.title = fmt::format("{} of {} ({}): {}", borrow ? "borrowingLimit" : "nominalQuota",
                            queue.name, flavor, list),
       .kind = borrow ? "raise-borrowing-limit" : "raise-quota",
       .disturbance = 3,
       .apply = [&s, name = queue.name, flavor, raises, borrow](Draft& draft) {
         for (QueueSpec& spec : edit_rules(s, draft).queues) {
           if (spec.name != name) continue;
           for (model::ResourceGroup& group : spec.groups) {
             for (model::FlavorQuota& quota : group.flavors) {
               if (quota.flavor != flavor) continue;
               for (model::ResourceQuota& cell : quota.resources) {
                 for (const QuotaRaise& each : raises) {
                   if (cell.resource != each.resource) continue;
                   if (borrow) {
                     cell.borrowing_limit = each.borrowing;
                   } else {
                     cell.nominal = each.nominal;
                   }
                 }
               }
             }
           }
         }
         Tree* object = draft.edit(s.objects(), "ClusterQueue", "", name);
         if (object == nullptr) return s.objects() == nullptr;
         for (const QuotaRaise& each : raises) {
           Tree* quota = quota_of(*object, flavor, each.resource);
           if (quota == nullptr) return false;
           (*quota)[borrow ? "borrowingLimit" : "nominalQuota"] =
               Tree::of_text(quantity(each.resource, borrow ? each.borrowing : each.nominal));
         }
         return true;
       }});
}

// What those in front of it in its queue ask, who would take what is raised for it alone.
model::Amounts asked_ahead(const Situation& s) {
  const auto& outcomes = s.trials.decision().outcomes;
  const auto self = std::find_if(outcomes.begin(), outcomes.end(), [&s](const model::Outcome& o) {
    return o.queued && o.workload == s.unit.decided;
  });
  std::set<std::string> names;
  for (const model::Outcome& o : outcomes) {
    const bool ahead = self != outcomes.end() && o.queued && o.queue == self->queue &&
                       o.position > 0 && o.position < self->position;
    if (ahead) names.insert(o.workload);
  }
  model::Amounts out;
  if (names.empty()) return out;
  for (const WorkloadSpec& spec : s.inputs().queues.workloads) {
    if (!names.contains(spec.ns + '/' + spec.name)) continue;
    for (const auto& [resource, amount] : asked(spec)) out[resource] += amount;
  }
  return out;
}

void quotas_for(const Situation& s, const QueueSpec& queue, const model::QueueUse& use,
                const model::Amounts& wanted, Proposals& out) {
  std::set<std::string> flavors;
  for (const model::QueueUse::Cell& cell : use.cells) {
    if (!flavors.insert(cell.flavor).second || flavors.size() > 3) continue;
    std::vector<QuotaRaise> nominal, borrowing;
    for (const model::QueueUse::Cell& each : use.cells) {
      const auto it = wanted.find(each.resource);
      if (each.flavor != cell.flavor || it == wanted.end() || it->second <= each.available)
        continue;
      if (each.nominal == kNoLimit) continue;
      const std::int64_t lacking = it->second - each.available;
      nominal.push_back(
          {each.resource, std::max(each.nominal + lacking, each.used + it->second), 0});
      borrowing.push_back(
          {each.resource, 0, std::max<std::int64_t>(1, each.used + it->second - each.nominal)});
    }
    if (nominal.empty()) continue;
    raise(s, queue, cell.flavor, nominal, false, out);
    if (!queue.cohort.empty()) raise(s, queue, cell.flavor, borrowing, true, out);
  }
}

// More whole GPUs than there are: no quota helps.
bool exceeds_nodes(const Situation& s, const model::Amounts& wanted) {
  const auto& sets = s.unit.queued->pod_sets;
  const bool whole = std::all_of(sets.begin(), sets.end(), [](const model::PodSetSpec& set) {
    return set.pod->gpu.kind == model::GpuDemandSpec::Kind::kWhole && !set.min_count;
  });
  if (!whole || s.options.plan.quota_only) return false;
  const auto gpus = wanted.find(model::kGpuResource);
  const auto all = s.trials.capacity().find(model::kGpuResource);
  return gpus != wanted.end() && all != s.trials.capacity().end() && gpus->second > all->second;
}

void quotas(const Situation& s, Proposals& out) {
  const QueueSpec* queue = cluster_queue(s);
  const model::QueueUse* use = queue == nullptr ? nullptr : use_of(s, queue->name);
  if (use == nullptr) return;
  model::Amounts wanted = asked(*s.unit.queued);
  if (exceeds_nodes(s, wanted)) return;
  quotas_for(s, *queue, *use, wanted, out);
  const model::Amounts ahead = asked_ahead(s);
  if (ahead.empty()) return;
  for (auto& [resource, amount] : wanted) {
    if (const auto it = ahead.find(resource); it != ahead.end()) amount += it->second;
  }
  quotas_for(s, *queue, *use, wanted, out);
}

// Queues of Volcano and KAI have a most, and so have those above them.
class Caps {
 public:
  explicit Caps(const Situation& s) : s_(s) {
    for (const RawObject& raw : s.objects()->of_kind("Queue")) queues_.emplace(raw.name, raw);
    for (const model::QueueUse& use : s.trials.decision().queues) {
      for (const std::string& name : chain(use.name)) {
        for (const auto& cell : use.cells) used_[name][cell.resource] += cell.used;
      }
    }
  }

  // What each of the queues that are short of it would have to have.
  std::map<std::string, model::Amounts> short_of(const std::string& queue,
                                                 const model::Amounts& wanted) const {
    std::map<std::string, model::Amounts> out;
    for (const std::string& name : chain(queue)) {
      const auto used = used_.find(name);
      for (const auto& [resource, amount] : wanted) {
        const auto most = cap(queues_.at(name), resource);
        std::int64_t sum = amount;
        if (used != used_.end()) {
          const auto it = used->second.find(resource);
          sum += it == used->second.end() ? 0 : it->second;
        }
        if (most && *most < sum) out[name][resource] = sum;
      }
    }
    return out;
  }

  static bool of_kai(const RawObject& queue) {
    return queue.api_version.starts_with("scheduling.run.ai/");
  }

  bool set(Draft& draft, const std::string& queue, const std::string& resource,
           std::int64_t amount) const {
    Tree* object = draft.edit(s_.objects(), "Queue", "", queue);
    if (object == nullptr) return false;
    if (!of_kai(queues_.at(queue))) {
      (*object)["spec"]["capability"][resource] = Tree::of_text(quantity(resource, amount));
      return true;
    }
    const std::int64_t unit = unit_of(resource);
    (*object)["spec"]["resources"][kai_name(resource)]["limit"] =
        Tree::of_number((amount + unit - 1) / unit);
    return true;
  }

  const RawObject* find(const std::string& queue) const {
    const auto it = queues_.find(queue);
    return it == queues_.end() ? nullptr : &it->second;
  }

 private:
  static std::string kai_name(const std::string& resource) {
    return resource == model::kGpuResource ? "gpu" : resource;
  }
  static std::int64_t unit_of(const std::string& resource) {
    return resource == "memory" ? 1'000'000 : 1;
  }

  std::vector<std::string> chain(std::string name) const {
    std::vector<std::string> out;
    while (out.size() < 32) {
      const auto it = queues_.find(name);
      if (it == queues_.end()) break;
      out.push_back(name);
      name = std::string(
          at(it->second.value, "spec")[of_kai(it->second) ? "parentQueue" : "parent"].string());
    }
    return out;
  }

  // Absent: without end.
  static std::optional<std::int64_t> cap(const RawObject& queue, const std::string& resource) {
    if (!of_kai(queue)) {
      const model::Amounts all = amounts_of(at(queue.value, "spec.capability"));
      const auto it = all.find(resource);
      return it == all.end() ? std::nullopt : std::optional(it->second);
    }
    const text::Value* limit =
        text::find(at(queue.value, "spec.resources")[kai_name(resource)], "limit");
    if (limit == nullptr || !limit->is_number() || limit->as_double() < 0) return std::nullopt;
    const double most = std::min(limit->as_double(), 1e12) * static_cast<double>(unit_of(resource));
    return static_cast<std::int64_t>(most);
  }

  const Situation& s_;
  std::map<std::string, RawObject> queues_;
  std::map<std::string, model::Amounts> used_;  // with that of the queues below
};

void raise_caps(const Situation& s, const std::string& queue, const model::Amounts& wanted,
                Proposals& out) {
  const auto caps = std::make_shared<const Caps>(s);
  const auto lacking = caps->short_of(queue, wanted);
  if (lacking.empty()) return;
  std::string title;
  for (const auto& [name, amounts] : lacking) {
    title += fmt::format("{}{} of the queue {}:", title.empty() ? "" : ", and ",
                         Caps::of_kai(*caps->find(name)) ? "limit" : "capability", name);
    for (const auto& [resource, amount] : amounts) {
      title += fmt::format(" {} {}", quantity(resource, amount), resource);
    }
  }
  out.push_back({.title = std::move(title),
                 .kind = "raise-capability",
                 .disturbance = 3,
                 .objects_only = true,
                 .apply = [caps, lacking](Draft& draft) {
                   for (const auto& [name, amounts] : lacking) {
                     for (const auto& [resource, amount] : amounts) {
                       if (!caps->set(draft, name, resource, amount)) return false;
                     }
                   }
                   return true;
                 }});
}

void caps_of_others(const Situation& s, Proposals& out) {
  const QueueSpec* queue = cluster_queue(s);
  if (queue == nullptr || s.objects() == nullptr) return;
  model::Amounts wanted = asked(*s.unit.queued);
  if (exceeds_nodes(s, wanted)) return;
  raise_caps(s, queue->name, wanted, out);
  const model::Amounts ahead = asked_ahead(s);
  if (ahead.empty()) return;
  for (auto& [resource, amount] : wanted) {
    if (const auto it = ahead.find(resource); it != ahead.end()) amount += it->second;
  }
  raise_caps(s, queue->name, wanted, out);
}

// The object that names the queue: the Job, the Workload or the pods.
void name_queue(const Situation& s, Draft& draft, const std::string& queue) {
  for (const TemplatePlace& place : s.unit.places) {
    Tree* object = draft.edit(s.objects(), place.kind, place.ns, place.name);
    if (object == nullptr) continue;
    if (place.kind == "Workload") {
      (*object)["spec"]["queueName"] = Tree::of_text(queue);
    } else {
      (*object)["metadata"]["labels"][kQueueNameLabel] = Tree::of_text(queue);
    }
  }
  const bool by_job = !s.unit.places.empty() && s.unit.places.front().kind == "Job";
  if (by_job && s.unit.queued != nullptr)
    draft.remove(s.objects(), "Workload", s.unit.ns, s.unit.queued->name);
}

void other_queues(const Situation& s, Proposals& out) {
  int proposed = 0;
  for (const model::LocalQueueSpec& queue : s.inputs().queues.local_queues) {
    if (queue.ns != s.unit.queued->ns || queue.name == s.unit.queued->queue) continue;
    if (++proposed > 4) break;
    out.push_back({.title = "use the queue " + queue.name,
                   .kind = "other-queue",
                   .apply = [&s, name = queue.name](Draft& draft) {
                     WorkloadSpec& spec = *edit_queued(s, draft);
                     spec.queue = name;
                     if (s.reason == model::Reason::kQueueRequired) spec.incomplete.clear();
                     name_queue(s, draft, name);
                     return true;
                   }});
  }
}

// Its namespace requires a queue, and no workload stands for it: one of those that are there.
void required_queue(const Situation& s, Proposals& out) {
  if (s.reason != model::Reason::kQueueRequired || s.objects() == nullptr) return;
  int proposed = 0;
  for (const model::LocalQueueSpec& queue : s.inputs().queues.local_queues) {
    if (queue.ns != s.unit.ns) continue;
    if (++proposed > 4) break;
    out.push_back({.title = "use the queue " + queue.name,
                   .kind = "other-queue",
                   .objects_only = true,
                   .apply = [&s, name = queue.name](Draft& draft) {
                     name_queue(s, draft, name);
                     return !draft.objects.empty();
                   }});
  }
}

// A queue of Volcano or KAI that does not take its namespace.
void open_door(const Situation& s, Proposals& out) {
  if (s.reason != model::Reason::kQueueNotAllowed || s.objects() == nullptr) return;
  for (const RawObject& raw : s.objects()->of_kind("Queue")) {
    if (raw.name != s.unit.queued->queue) continue;
    out.push_back({.title = fmt::format("let the queue {} take namespace {}", raw.name, s.unit.ns),
                   .kind = "open-queue",
                   .disturbance = 4,
                   .objects_only = true,
                   .apply = [&s, name = raw.name](Draft& draft) {
                     Tree* object = draft.edit(s.objects(), "Queue", "", name);
                     if (object == nullptr) return false;
                     Tree& notes = (*object)["metadata"]["annotations"];
                     const Tree* given = notes.find(kNamespacesNote);
                     const std::string before =
                         given == nullptr || given->string().empty() ? "" : given->string() + ',';
                     notes[kNamespacesNote] = Tree::of_text(before + s.unit.ns);
                     return true;
                   }});
    break;
  }
}

void drop_workload(const Situation& s, Draft& draft, const WorkloadSpec& victim) {
  draft.gone_workloads.insert(victim.ns + '/' + victim.name);
  draft.remove(s.objects(), "Workload", victim.ns, victim.name);
  if (victim.owner.starts_with("Job/")) {
    draft.remove(s.objects(), "Job", victim.ns, victim.owner.substr(4));
  }
  std::set<std::string> members;
  for (const model::PodSetSpec& set : victim.pod_sets) {
    members.insert(set.pods.begin(), set.pods.end());
  }
  for (const model::PodSpec& pod : s.inputs().pods) {
    const std::string name = pod.ns + '/' + pod.name;
    const bool owned = !victim.owner.empty() && pod.ns == victim.ns && pod.owner == victim.owner;
    if (!owned && !members.contains(name)) continue;
    draft.gone_pods.insert(name);
    draft.remove(s.objects(), "Pod", pod.ns, pod.name);
  }
}

// Who holds quota, those of the own queue first, then the smallest.
void holders(const Situation& s, Proposals& out) {
  const QueueSpec* queue = cluster_queue(s);
  if (queue == nullptr) return;
  struct QuotaHolder {
    bool foreign = false;
    std::int64_t gpus = 0;
    const WorkloadSpec* spec = nullptr;
  };
  std::vector<QuotaHolder> found;
  for (const WorkloadSpec& spec : s.inputs().queues.workloads) {
    if (!spec.admission || spec.finished || &spec == s.unit.queued) continue;
    const model::Amounts amounts = asked(spec);
    const auto gpus = amounts.find("nvidia.com/gpu");
    found.push_back(
        {spec.admission->queue != queue->name, gpus == amounts.end() ? 0 : gpus->second, &spec});
  }
  std::stable_sort(found.begin(), found.end(), [](const QuotaHolder& a, const QuotaHolder& b) {
    return std::pair(a.foreign, a.gpus) < std::pair(b.foreign, b.gpus);
  });
  for (std::size_t i = 0; i < found.size() && i < 6; ++i) {
    const WorkloadSpec& victim = *found[i].spec;
    const int pods = victim.pod_sets.empty() ? 1 : victim.pod_sets.front().count;
    out.push_back({.title = fmt::format("stop {}/{}, which holds {}", victim.ns, victim.name,
                                        show_count(found[i].gpus, "GPU")),
                   .kind = "stop-workload",
                   .disturbance = 4,
                   .restarts = pods,
                   .takes = {victim.ns + '/' + victim.name},
                   .apply = [&s, &victim](Draft& draft) {
                     drop_workload(s, draft, victim);
                     return true;
                   }});
  }
}

struct PriorityValue {
  std::int64_t value = 0;
  std::string name;
};

std::vector<PriorityValue> classes_above(const Situation& s, const char* kind, int priority) {
  std::vector<PriorityValue> out;
  if (s.objects() == nullptr) return out;
  for (const RawObject& raw : s.objects()->of_kind(kind)) {
    const text::Value* value = raw.value->find("value");
    const auto number = value == nullptr ? std::nullopt : value->as_int64();
    if (number && *number > priority && *number <= 1'000'000'000)
      out.push_back({*number, raw.name});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.value < b.value; });
  if (out.size() > 3) out.resize(3);
  return out;
}

void priorities(const Situation& s, Proposals& out) {
  if (s.unit.queued != nullptr) {
    for (const PriorityValue& each :
         classes_above(s, "WorkloadPriorityClass", s.unit.queued->priority)) {
      out.push_back({.title = fmt::format("priority {} ({})", each.name, each.value),
                     .kind = "raise-priority",
                     .disturbance = 3,
                     .objects_only = true,
                     .apply = [&s, each](Draft& draft) {
                       for (const TemplatePlace& place : s.unit.places) {
                         Tree* object = draft.edit(s.objects(), place.kind, place.ns, place.name);
                         if (object == nullptr || place.kind == "Workload") return false;
                         (*object)["metadata"]["labels"][kPriorityLabel] = Tree::of_text(each.name);
                       }
                       return true;
                     }});
    }
    return;
  }
  for (const PriorityValue& each : classes_above(s, "PriorityClass", s.sample.priority)) {
    out.push_back({.title = fmt::format("priority class {} ({})", each.name, each.value),
                   .kind = "raise-priority",
                   .disturbance = 3,
                   .apply = [&s, each](Draft& draft) {
                     return edit_pods(
                         s, draft,
                         [&](model::PodSpec& pod) {
                           pod.priority = static_cast<int>(each.value);
                           pod.priority_class = each.name;
                         },
                         [&](Tree&, Tree& spec) {
                           spec["priorityClassName"] = Tree::of_text(each.name);
                           spec.erase("priority");
                           spec.erase("preemptionPolicy");
                         });
                   }});
  }
}

}  // namespace

void propose_queues(const Situation& s, Proposals& out) {
  priorities(s, out);
  if (s.unit.queued == nullptr) return required_queue(s, out);
  open_door(s, out);
  other_queues(s, out);
  quotas(s, out);
  caps_of_others(s, out);
  holders(s, out);
}

}  // namespace berth::people
