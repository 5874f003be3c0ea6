#include "explain/makers.h"

#include <fmt/format.h>

#include <algorithm>

#include "explain/pod_template.h"
#include "text/path.h"

namespace berth::explain {

namespace {

using text::Value;

constexpr int kMostOfASet = 256;
constexpr std::int64_t kLargestCount = 1'000'000;
constexpr std::size_t kMostSets = 16;
constexpr const char* kLabelOfQueue = "kueue.x-k8s.io/queue-name";
constexpr const char* kLabelOfClass = "kueue.x-k8s.io/priority-class";
constexpr const char* kKueueVersion = "kueue.x-k8s.io/v1beta2";

using Keys = std::vector<std::string>;

std::int64_t whole_number(const Value* from, const text::Path& path, std::int64_t otherwise) {
  return std::clamp<std::int64_t>(int_at(from, path, otherwise), 0, kLargestCount);
}

int few(std::int64_t pods) {
  return static_cast<int>(std::clamp<std::int64_t>(pods, 0, kMostOfASet));
}

// A name as pod sets have it.
std::string set_name(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 63)) {
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

// Of the spec of a Job, some of whose pods may be done.
int pods_of_job(const Value* spec, std::int64_t done = 0) {
  const std::int64_t parallel = whole_number(spec, "parallelism", 1);
  if (find(spec, "completions") == nullptr) return few(parallel);
  return few(std::min(parallel, whole_number(spec, "completions", parallel) - done));
}

void of_job_set(const Value* spec, std::vector<MadeSet>& out) {
  const auto jobs = at(spec, "replicatedJobs").items();
  for (std::size_t i = 0; i < jobs.size() && i < kMostSets; ++i) {
    const Value* job = find(jobs[i], "template.spec");
    out.push_back({set_name(std::string(text_at(jobs[i], "name"))),
                   {"spec", "replicatedJobs", std::to_string(i), "template", "spec", "template"},
                   few(whole_number(&jobs[i], "replicas", 1) * pods_of_job(job))});
  }
}

void of_ray(const Value* cluster, const Keys& path, std::vector<MadeSet>& out) {
  const auto below = [&path](Keys more) {
    more.insert(more.begin(), path.begin(), path.end());
    return more;
  };
  if (find(cluster, "headGroupSpec.template") == nullptr) return;
  out.push_back({"head", below({"headGroupSpec", "template"}), 1});
  const auto groups = at(cluster, "workerGroupSpecs").items();
  for (std::size_t i = 0; i < groups.size() && i < kMostSets; ++i) {
    const std::int64_t least = whole_number(&groups[i], "minReplicas", 0);
    const std::int64_t pods = std::max(least, whole_number(&groups[i], "replicas", least)) *
                              whole_number(&groups[i], "numOfHosts", 1);
    out.push_back({set_name(std::string(text_at(groups[i], "groupName"))),
                   below({"workerGroupSpecs", std::to_string(i), "template"}), few(pods)});
  }
}

// PyTorchJob, MPIJob and their like: a template for each role.
void of_roles(const Value* spec, std::string_view field, std::vector<MadeSet>& out) {
  const Value* roles = spec == nullptr ? nullptr : spec->find(field);
  for (const text::Member& role :
       roles == nullptr ? std::span<const text::Member>() : roles->members()) {
    if (out.size() >= kMostSets) break;
    out.push_back({set_name(role.key),
                   {"spec", std::string(field), std::string(role.key), "template"},
                   few(whole_number(&role.value, "replicas", 1))});
  }
}

// A Volcano Job.
void of_tasks(const Value* spec, std::vector<MadeSet>& out) {
  const auto tasks = at(spec, "tasks").items();
  for (std::size_t i = 0; i < tasks.size() && i < kMostSets; ++i) {
    const std::string name(text_at(tasks[i], "name"));
    out.push_back({name.empty() ? "default" + std::to_string(i) : name,
                   {"spec", "tasks", std::to_string(i), "template"},
                   few(whole_number(&tasks[i], "replicas", 1))});
  }
}

// A leader and the workers beside it; groups start one by one, so one of them is looked at.
void of_leader_workers(const Value* spec, std::vector<MadeSet>& out) {
  const Value* both = find(spec, "leaderWorkerTemplate");
  const std::int64_t groups = whole_number(spec, "replicas", 1);
  const std::int64_t size = whole_number(both, "size", 1);
  const bool leads = find(both, "leaderTemplate") != nullptr;
  if (leads) {
    out.push_back({"leader",
                   {"spec", "leaderWorkerTemplate", "leaderTemplate"},
                   few(std::min<std::int64_t>(groups, 1))});
  }
  out.push_back({"worker",
                 {"spec", "leaderWorkerTemplate", "workerTemplate"},
                 few(std::min<std::int64_t>(groups, 1) * (leads ? size - 1 : size))});
}

// The field of the templates of a training job, or null.
const char* roles_of(std::string_view kind) {
  constexpr std::pair<std::string_view, const char*> kFields[] = {
      {"PyTorchJob", "pytorchReplicaSpecs"}, {"MPIJob", "mpiReplicaSpecs"},
      {"TFJob", "tfReplicaSpecs"},           {"XGBoostJob", "xgbReplicaSpecs"},
      {"PaddleJob", "paddleReplicaSpecs"},   {"JAXJob", "jaxReplicaSpecs"}};
  for (const auto& [name, field] : kFields) {
    if (name == kind) return field;
  }
  return nullptr;
}

int pods_of_one_template(const RawObject& object) {
  const Value* spec = find(object.value, "spec");
  if (object.kind != "Job") return few(whole_number(spec, "replicas", 1));
  return pods_of_job(spec, whole_number(object.value, "status.succeeded", 0));
}

bool is_set(const Value* at) { return at != nullptr && at->as_bool(); }

// What Kueue makes a Workload of; Deployments and the like wait there pod by pod.
bool waits_as_one(std::string_view kind) {
  return kind == "JobSet" || kind == "LeaderWorkerSet" || kind == "RayJob" ||
         kind == "RayCluster" || kind == "RayService" || roles_of(kind) != nullptr;
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
            fmt::format("{}-{}", set_name(object.kind), object.name));
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
  const Value* spec = find(object.value, "spec");
  if (object.kind == "JobSet") {
    of_job_set(spec, out);
  } else if (object.kind == "RayJob") {
    of_ray(find(spec, "rayClusterSpec"), {"spec", "rayClusterSpec"}, out);
  } else if (object.kind == "RayService") {
    of_ray(find(spec, "rayClusterConfig"), {"spec", "rayClusterConfig"}, out);
  } else if (object.kind == "RayCluster") {
    of_ray(spec, {"spec"}, out);
  } else if (object.kind == "LeaderWorkerSet") {
    of_leader_workers(spec, out);
  } else if (const char* roles = roles_of(object.kind)) {
    of_roles(spec, roles, out);
  } else if (object.kind == "Job" && find(spec, "tasks") != nullptr) {
    of_tasks(spec, out);
  } else if (object.kind == "CronJob") {
    const Value* job = find(spec, "jobTemplate.spec");
    out.push_back({"main", {"spec", "jobTemplate", "spec", "template"}, pods_of_job(job)});
  } else {
    out.push_back({"main", {"spec", "template"}, pods_of_one_template(object)});
  }
  Tree whole(*object.value);
  std::erase_if(out, [&whole](const MadeSet& set) {
    const Tree* at = below(&whole, set.path);
    return at == nullptr || at->find("spec") == nullptr || set.name.empty();
  });
  return out;
}

const Value* template_at(const RawObject& object, const TemplatePlace& place) {
  const Value* at = object.value;
  for (const std::string& token : place.path) {
    if (at == nullptr) return nullptr;
    const bool index = !token.empty() && token.find_first_not_of("0123456789") == std::string::npos;
    const std::size_t number = index && token.size() < 6 ? std::stoul(token) : 0;
    at = !index ? at->find(token) : number < at->size() ? &at->items()[number] : nullptr;
  }
  return at;
}

std::vector<TemplatePlace> places_of(const RawObject& object) {
  std::vector<TemplatePlace> out;
  std::vector<MadeSet> sets = made_sets(object);
  const bool some =
      std::any_of(sets.begin(), sets.end(), [](const auto& s) { return s.count > 0; });
  for (MadeSet& set : sets) {
    // What makes none is no pod set of its workload.
    if (set.count == 0 && some && waits_as_one(object.kind)) continue;
    out.push_back({object.kind, object.ns, object.name, std::move(set.path), out.size()});
  }
  return out;
}

std::string held_by_field(const RawObject& object) {
  if (is_set(find(object.value, "spec.suspend"))) return "spec.suspend";
  const bool roles = roles_of(object.kind) != nullptr;
  const bool rests = roles && is_set(find(object.value, "spec.runPolicy.suspend"));
  return rests ? "spec.runPolicy.suspend" : "";
}

std::string queue_of(const ObjectSource& objects, const RawObject& object) {
  if (!waits_as_one(object.kind)) return "";
  const std::string queue =
      std::string(at(object.value, "metadata.labels")[kLabelOfQueue].string());
  return queue.empty() || objects.of_kind("ClusterQueue").empty() ? "" : queue;
}

int pods_at(const ObjectSource& objects, const RawObject& object, const TemplatePlace& place) {
  const bool rests = !held_by_field(object).empty() && queue_of(objects, object).empty();
  const bool by_queue =
      object.kind == "Job" &&
      !std::string(at(object.value, "metadata.labels")[kLabelOfQueue].string()).empty();
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

}  // namespace berth::explain
