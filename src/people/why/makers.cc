#include "people/why/makers.h"

#include <fmt/format.h>

#include <algorithm>

#include "kinds/kind_table.h"
#include "people/why/pod_template.h"
#include "text/path.h"

namespace berth::people {

namespace {

using text::Value;

constexpr int kMostOfASet = 256;
constexpr const char* kLabelOfQueue = "kueue.x-k8s.io/queue-name";
constexpr const char* kLabelOfClass = "kueue.x-k8s.io/priority-class";
constexpr const char* kKueueVersion = "kueue.x-k8s.io/v1beta2";

// Looked at of a set: more of them would say nothing new.
int few(std::int64_t pods) {
  return static_cast<int>(std::clamp<std::int64_t>(pods, 0, kMostOfASet));
}

// What is not known is taken to make equal pods, as most kinds do.
const kinds::PodMaker& maker_of(const RawObject& object) {
  const kinds::PodMaker* known = kinds::find_maker(object.api_version, object.kind);
  return known == nullptr ? kinds::kReplicasMaker : *known;
}

bool is_set(const Value* at) { return at != nullptr && at->as_bool(); }

// What a plan makes a workload of by itself.
bool is_planned(const RawObject& object) {
  const kinds::KindRow* row = kinds::find_kind_of(object.api_version, object.kind);
  return (row != nullptr && row->versions[0].take != nullptr) || object.kind == "Job";
}

// What Kueue makes a Workload of, and a plan does not by itself. Deployments and the like wait
// there pod by pod.
bool waits_as_one(const RawObject& object) {
  return maker_of(object).per == kinds::WorkloadPer::kObject && !is_planned(object);
}

// Whether it waits in a queue as a whole, and a plan knows that.
bool is_planned_in_queue(const ObjectSource& objects, const RawObject& object) {
  return is_planned(object) && maker_of(object).queued() && object.kind != "Job" &&
         !at(object.value, "metadata.labels")[kLabelOfQueue].string().empty() &&
         !objects.of_kind("ClusterQueue").empty();
}

Tree owner_reference(const RawObject& owner) {
  Tree by;
  by["apiVersion"] = Tree::of_text(owner.api_version);
  by["kind"] = Tree::of_text(owner.kind);
  by["name"] = Tree::of_text(owner.name);
  by["uid"] = Tree::of_text(owner.uid.empty() ? owner.name : owner.uid);
  by["controller"] = Tree::of_bool(true);
  return by;
}

void name_made(Tree& made, const char* version, const char* kind, const RawObject& owner,
               const std::string& name) {
  made["apiVersion"] = Tree::of_text(version);
  made["kind"] = Tree::of_text(kind);
  Tree& meta = made["metadata"];
  meta["name"] = Tree::of_text(name);
  meta["namespace"] = Tree::of_text(owner.ns);
  const std::string created(text_at(owner.value, "metadata.creationTimestamp"));
  if (!created.empty()) meta["creationTimestamp"] = Tree::of_text(created);
  meta["ownerReferences"] = Tree();
  meta["ownerReferences"].items().push_back(owner_reference(owner));
}

// What a template asks of topology by annotations, as a pod set says it.
void ask_topology(const Tree& made_of, Tree& set) {
  const Tree* meta = made_of.find("metadata");
  const Tree* notes = meta == nullptr ? nullptr : meta->find("annotations");
  if (notes == nullptr) return;
  constexpr std::pair<const char*, const char*> kAsks[] = {
      {"kueue.x-k8s.io/podset-required-topology", "required"},
      {"kueue.x-k8s.io/podset-preferred-topology", "preferred"},
      {"kueue.x-k8s.io/podset-slice-required-topology", "podSetSliceRequiredTopology"}};
  for (const auto& [note, field] : kAsks) {
    if (const Tree* level = notes->find(note)) set["topologyRequest"][field] = *level;
  }
  const Tree* size = notes->find("kueue.x-k8s.io/podset-slice-size");
  const std::string digits = size == nullptr ? "" : size->string();
  const bool number = !digits.empty() && digits.size() < 7 &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  if (number) set["topologyRequest"]["podSetSliceSize"] = Tree::of_number(std::stoll(digits));
  if (notes->find("kueue.x-k8s.io/podset-unconstrained-topology") != nullptr) {
    set["topologyRequest"]["unconstrained"] = Tree::of_bool(true);
  }
}

// Its own label says the class, else its pods do.
void rank(const RawObject& object, const Tree& first, Tree& spec) {
  const std::string own = std::string(at(object.value, "metadata.labels")[kLabelOfClass].string());
  const Tree* of_pods = first.find("spec");
  const Tree* name = of_pods == nullptr ? nullptr : of_pods->find("priorityClassName");
  if (own.empty() && (name == nullptr || name->string().empty())) return;
  Tree& by = spec["priorityClassRef"];
  by["group"] = Tree::of_text(own.empty() ? "scheduling.k8s.io" : "kueue.x-k8s.io");
  by["kind"] = Tree::of_text(own.empty() ? "PriorityClass" : "WorkloadPriorityClass");
  by["name"] = Tree::of_text(own.empty() ? name->string() : own);
}

void make_workload(const RawObject& object, Tree now, const std::string& queue, Draft& draft) {
  Tree made;
  name_made(made, kKueueVersion, "Workload", object,
            fmt::format("{}-{}", kinds::set_name(object.kind), object.name));
  Tree& spec = made["spec"];
  spec["queueName"] = Tree::of_text(queue);
  bool first = true;
  for (const MadeSet& each : made_sets(object)) {
    Tree* from = below(&now, each.path);
    if (from == nullptr || each.count == 0) continue;
    if (first) rank(object, *from, spec);
    first = false;
    Tree set;
    set["name"] = Tree::of_text(each.name);
    set["count"] = Tree::of_number(each.count);
    set["template"]["spec"] = *from->find("spec");
    if (const Tree* meta = from->find("metadata")) set["template"]["metadata"] = *meta;
    ask_topology(*from, set);
    spec["podSets"].items().push_back(std::move(set));
  }
  if (!first) draft.create(std::move(made));
}

void make_job(const RawObject& object, const Tree& now, Draft& draft) {
  const Tree* spec = now.find("spec");
  const Tree* made_of = spec == nullptr ? nullptr : spec->find("jobTemplate");
  if (made_of == nullptr) return;
  Tree made = *made_of;
  name_made(made, "batch/v1", "Job", object, object.name + "-next");
  draft.create(std::move(made));
}

}  // namespace

std::vector<MadeSet> made_sets(const RawObject& object) {
  std::vector<MadeSet> out;
  for (kinds::PodSetAt& set : kinds::pod_sets_of(maker_of(object), *object.value)) {
    out.push_back({std::move(set.name), std::move(set.path), few(set.count)});
  }
  return out;
}

const Value* template_at(const RawObject& object, const TemplatePlace& place) {
  return object.value == nullptr ? nullptr : kinds::value_at(*object.value, place.path);
}

std::vector<TemplatePlace> places_of(const RawObject& object) {
  std::vector<TemplatePlace> out;
  std::vector<MadeSet> sets = made_sets(object);
  const bool some =
      std::any_of(sets.begin(), sets.end(), [](const auto& s) { return s.count > 0; });
  for (MadeSet& set : sets) {
    // What makes none is no pod set of its workload.
    if (set.count == 0 && some && (waits_as_one(object) || maker_of(object).queued())) continue;
    out.push_back({object.kind, object.ns, object.name, std::move(set.path), out.size()});
  }
  return out;
}

std::string held_by_field(const RawObject& object) {
  const kinds::PodMaker& maker = maker_of(object);
  return kinds::rests(maker, *object.value) ? std::string(maker.suspend->text()) : "";
}

std::string queue_of(const ObjectSource& objects, const RawObject& object) {
  if (!waits_as_one(object)) return "";
  const std::string queue =
      std::string(at(object.value, "metadata.labels")[kLabelOfQueue].string());
  return queue.empty() || objects.of_kind("ClusterQueue").empty() ? "" : queue;
}

int pods_at(const ObjectSource& objects, const RawObject& object, const TemplatePlace& place) {
  const bool rests = !held_by_field(object).empty() && queue_of(objects, object).empty();
  const bool by_queue = (object.kind == "Job" || maker_of(object).queued()) &&
                        !at(object.value, "metadata.labels")[kLabelOfQueue].string().empty();
  if (rests && !by_queue) return 0;
  for (const MadeSet& set : made_sets(object)) {
    if (set.path == place.path) return set.count;
  }
  return 0;
}

void make_next(const ObjectSource& objects, const RawObject& object, const Tree& now,
               Draft& draft) {
  const std::string queue = queue_of(objects, object);
  if (!queue.empty()) return make_workload(object, now, queue, draft);
  if (is_planned_in_queue(objects, object)) return;
  const bool rests = !held_by_field(object).empty() || is_set(find(object.value, "spec.paused"));
  if (rests) return;
  if (object.kind == "CronJob") return make_job(object, now, draft);
  Tree from = now;
  const std::vector<MadeSet> sets = made_sets(object);
  for (const MadeSet& set : sets) {
    const Tree* made_of = below(&from, set.path);
    for (int i = 0; made_of != nullptr && i < set.count; ++i) {
      const std::string name = sets.size() == 1 ? fmt::format("{}-{}", object.name, i)
                                                : fmt::format("{}-{}-{}", object.name, set.name, i);
      if (objects.find("Pod", object.ns, name)) continue;
      Tree pod = *made_of;
      name_made(pod, "v1", "Pod", object, name);
      draft.create(std::move(pod));
    }
  }
}

}  // namespace berth::people
