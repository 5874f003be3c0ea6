#include "kinds/pod_maker.h"

#include <algorithm>
#include <utility>

#include "kinds/kind_table.h"
#include "kinds/kueue_workload.h"

namespace berth::kinds {

namespace {

using text::Value;
using Keys = std::vector<std::string>;

constexpr std::int64_t kLargestCount = 1'000'000;
// One more than a Workload may have: who has more is told so.
constexpr std::size_t kSetsLookedAt = kMostPodSets + 1;

std::int64_t whole_number(const Value* from, const text::Path& path, std::int64_t otherwise) {
  return std::clamp<std::int64_t>(int_at(from, path, otherwise), 0, kLargestCount);
}

std::int64_t times(std::int64_t a, std::int64_t b) { return std::min(a * b, kLargestCount); }

Ended by_conditions(const Value& object, std::string_view good, std::string_view bad) {
  for (const Value& condition : at(object, "status.conditions").items()) {
    if (text_at(condition, "status") != "True") continue;
    if (text_at(condition, "type") == good) return Ended::kSucceeded;
    if (text_at(condition, "type") == bad) return Ended::kFailed;
  }
  return Ended::kNo;
}

// ---- Job, CronJob ----

// Of the spec of a Job, some of whose pods may be done.
std::int64_t pods_of_job(const Value* spec, std::int64_t done = 0) {
  const std::int64_t parallel = whole_number(spec, "parallelism", 1);
  if (find(spec, "completions") == nullptr) return parallel;
  const std::int64_t left = whole_number(spec, "completions", parallel) - done;
  return std::clamp<std::int64_t>(left, 0, parallel);
}

void sets_of_job(const Value& job, std::vector<PodSetAt>& out) {
  const std::int64_t done = whole_number(&job, "status.succeeded", 0);
  out.push_back({"main", {"spec", "template"}, pods_of_job(find(job, "spec"), done)});
}

Ended job_ended(const Value& job) { return by_conditions(job, "Complete", "Failed"); }

int job_ready(const Value& job) {
  return static_cast<int>(whole_number(&job, "status.ready", 0) +
                          whole_number(&job, "status.succeeded", 0)) +
         static_cast<int>(at(job, "status.uncountedTerminatedPods.succeeded").size());
}

int job_active(const Value& job) {
  return static_cast<int>(whole_number(&job, "status.active", 0));
}

void sets_of_cron_job(const Value& cron, std::vector<PodSetAt>& out) {
  out.push_back({"main",
                 {"spec", "jobTemplate", "spec", "template"},
                 pods_of_job(find(cron, "spec.jobTemplate.spec"))});
}

// ---- what makes equal pods ----

void sets_of_replicas(const Value& object, std::vector<PodSetAt>& out) {
  out.push_back({"main", {"spec", "template"}, whole_number(&object, "spec.replicas", 1)});
}

// ---- JobSet ----

void sets_of_job_set(const Value& set, std::vector<PodSetAt>& out) {
  const auto jobs = at(set, "spec.replicatedJobs").items();
  for (std::size_t i = 0; i < jobs.size() && i < kSetsLookedAt; ++i) {
    out.push_back({set_name(text_at(jobs[i], "name")),
                   {"spec", "replicatedJobs", std::to_string(i), "template", "spec", "template"},
                   times(whole_number(&jobs[i], "replicas", 1),
                         pods_of_job(find(jobs[i], "template.spec")))});
  }
}

// What is ready of a JobSet is told in Jobs.
int job_set_pods(const Value& set, const text::Path& counts, bool succeeded) {
  std::int64_t pods = 0;
  const auto jobs = at(set, "spec.replicatedJobs").items();
  for (const Value& status : at(set, "status.replicatedJobsStatus").items()) {
    const auto job = std::find_if(jobs.begin(), jobs.end(), [&](const Value& each) {
      return text_at(each, "name") == text_at(status, "name");
    });
    if (job == jobs.end()) continue;
    const std::int64_t made =
        whole_number(&status, counts, 0) + (succeeded ? whole_number(&status, "succeeded", 0) : 0);
    pods += times(made, pods_of_job(find(*job, "template.spec")));
  }
  return static_cast<int>(std::min(pods, kLargestCount));
}

Ended job_set_ended(const Value& set) { return by_conditions(set, "Completed", "Failed"); }
int job_set_ready(const Value& set) { return job_set_pods(set, "ready", true); }
int job_set_active(const Value& set) { return job_set_pods(set, "active", false); }

// ---- AppWrapper ----

// Of what is wrapped: a pod is its own template.
std::vector<PodSetAt> sets_of_wrapped(const Value& wrapped) {
  const std::string_view version = text_at(wrapped, "apiVersion"), kind = text_at(wrapped, "kind");
  if (version == "v1" && kind == "Pod") return {{"", {}, 1}};
  const KindRow* row = find_kind_of(version, kind);
  const bool again = row == nullptr || row->maker == nullptr || row->maker == &kAppWrapperMaker;
  return again ? std::vector<PodSetAt>() : pod_sets_of(*row->maker, wrapped);
}

// Each pod set of a component is told apart, in the order in which the component has them: written
// down, or those of the kind that is wrapped.
void sets_of_app_wrapper(const Value& wrapper, std::vector<PodSetAt>& out) {
  const auto components = at(wrapper, "spec.components").items();
  for (std::size_t i = 0; i < components.size(); ++i) {
    const Keys here = {"spec", "components", std::to_string(i)};
    std::vector<PodSetAt> sets;
    const Value& wrapped = at(components[i], "template");
    const auto declared = at(components[i], "podSets").items();
    for (const Value& each : declared.first(std::min(declared.size(), kSetsLookedAt))) {
      const std::string_view text = text_at(each, "path");
      const auto path = text::Path::parse(text);
      PodSetAt set{"", {}, whole_number(&each, "replicas", 1)};
      for (std::size_t step = 0; path && step < path->size(); ++step) {
        set.path.emplace_back((*path)[step]);
      }
      if (!path) set.path = {std::string(text.substr(0, 100))};  // where nothing stands
      if (!set.path.empty() && set.path.front() == "template") set.path.erase(set.path.begin());
      sets.push_back(std::move(set));
    }
    if (declared.empty()) sets = sets_of_wrapped(wrapped);
    for (std::size_t j = 0; j < sets.size() && out.size() < kSetsLookedAt; ++j) {
      PodSetAt& set = sets[j];
      set.name = set_name(text_at(wrapper, "metadata.name").substr(0, 56)) + '-' +
                 std::to_string(out.size());
      set.path.insert(set.path.begin(), "template");
      set.path.insert(set.path.begin(), here.begin(), here.end());
      set.told = here;
      set.told.insert(set.told.end(), {"podSetInfos", std::to_string(j)});
      out.push_back(std::move(set));
    }
  }
}

Ended app_wrapper_ended(const Value& wrapper) {
  const std::string_view phase = text_at(wrapper, "status.phase");
  if (phase == "Succeeded") return Ended::kSucceeded;
  return phase == "Failed" ? Ended::kFailed : Ended::kNo;
}

// It tells of all of its pods together.
int all_pods(const Value& wrapper) {
  std::vector<PodSetAt> sets;
  sets_of_app_wrapper(wrapper, sets);
  std::int64_t pods = 0;
  for (const PodSetAt& set : sets) pods += set.count;
  return static_cast<int>(std::min(pods, kLargestCount));
}
bool is_so(const Value& object, std::string_view type) {
  const Value* condition = text::find_type(at(object, "status.conditions"), type);
  return condition != nullptr && text_at(*condition, "status") == "True";
}
int app_wrapper_ready(const Value& wrapper) {
  return is_so(wrapper, "PodsReady") ? all_pods(wrapper) : 0;
}
int app_wrapper_active(const Value& wrapper) {
  return is_so(wrapper, "QuotaReserved") ? all_pods(wrapper) : 0;
}

// ---- Ray ----

void of_ray(const Value* cluster, const Keys& path, std::vector<PodSetAt>& out) {
  const auto below = [&path](Keys more) {
    more.insert(more.begin(), path.begin(), path.end());
    return more;
  };
  if (find(cluster, "headGroupSpec.template") == nullptr) return;
  out.push_back({"head", below({"headGroupSpec", "template"}), 1});
  const auto groups = at(cluster, "workerGroupSpecs").items();
  for (std::size_t i = 0; i < groups.size() && out.size() < kSetsLookedAt; ++i) {
    const std::int64_t least = whole_number(&groups[i], "minReplicas", 0);
    const std::int64_t replicas = std::max(least, whole_number(&groups[i], "replicas", least));
    out.push_back({set_name(text_at(groups[i], "groupName")),
                   below({"workerGroupSpecs", std::to_string(i), "template"}),
                   times(replicas, whole_number(&groups[i], "numOfHosts", 1))});
  }
}

void sets_of_ray_job(const Value& job, std::vector<PodSetAt>& out) {
  of_ray(find(job, "spec.rayClusterSpec"), {"spec", "rayClusterSpec"}, out);
}
void sets_of_ray_cluster(const Value& cluster, std::vector<PodSetAt>& out) {
  of_ray(find(cluster, "spec"), {"spec"}, out);
}
void sets_of_ray_service(const Value& service, std::vector<PodSetAt>& out) {
  of_ray(find(service, "spec.rayClusterConfig"), {"spec", "rayClusterConfig"}, out);
}

// ---- PyTorchJob, MPIJob and their like: a template for each role ----

template <const char* kField>
void sets_of_roles(const Value& job, std::vector<PodSetAt>& out) {
  const Value* spec = find(job, "spec");
  const Value* roles = spec == nullptr ? nullptr : spec->find(kField);
  for (const text::Member& role :
       roles == nullptr ? std::span<const text::Member>() : roles->members()) {
    if (out.size() >= kSetsLookedAt) break;
    out.push_back({set_name(role.key),
                   {"spec", kField, std::string(role.key), "template"},
                   whole_number(&role.value, "replicas", 1)});
  }
}

constexpr char kPyTorch[] = "pytorchReplicaSpecs", kMpi[] = "mpiReplicaSpecs",
               kTf[] = "tfReplicaSpecs", kXgBoost[] = "xgbReplicaSpecs",
               kPaddle[] = "paddleReplicaSpecs", kJax[] = "jaxReplicaSpecs";

// ---- Volcano Job ----

void sets_of_tasks(const Value& job, std::vector<PodSetAt>& out) {
  const auto tasks = at(job, "spec.tasks").items();
  for (std::size_t i = 0; i < tasks.size() && i < kSetsLookedAt; ++i) {
    const std::string_view name = text_at(tasks[i], "name");
    out.push_back({name.empty() ? "default" + std::to_string(i) : std::string(name),
                   {"spec", "tasks", std::to_string(i), "template"},
                   whole_number(&tasks[i], "replicas", 1)});
  }
}

// ---- LeaderWorkerSet ----

// A leader and the workers beside it; groups start one by one, so one of them is looked at.
void sets_of_leader_workers(const Value& set, std::vector<PodSetAt>& out) {
  const Value* both = find(set, "spec.leaderWorkerTemplate");
  const std::int64_t groups = std::min<std::int64_t>(whole_number(&set, "spec.replicas", 1), 1);
  const std::int64_t size = whole_number(both, "size", 1);
  const bool leads = find(both, "leaderTemplate") != nullptr;
  if (leads) out.push_back({"leader", {"spec", "leaderWorkerTemplate", "leaderTemplate"}, groups});
  const std::int64_t workers = std::max<std::int64_t>(leads ? size - 1 : size, 0);
  out.push_back({"worker", {"spec", "leaderWorkerTemplate", "workerTemplate"}, groups * workers});
}

// What its pods are like is not written as templates: they are its runtime's, or its operator's.
void no_templates(const Value&, std::vector<PodSetAt>&) {}

constexpr text::Path kSuspend = "spec.suspend", kRunPolicy = "spec.runPolicy.suspend",
                     kParallelism = "spec.parallelism", kStartTime = "status.startTime";

constexpr PodMaker of_kubeflow(void (*sets)(const Value&, std::vector<PodSetAt>&)) {
  return {.pod_sets = sets, .per = WorkloadPer::kObject, .suspend = kRunPolicy};
}
constexpr PodMaker of_ray_kind(void (*sets)(const Value&, std::vector<PodSetAt>&),
                               std::string_view makes) {
  return {.pod_sets = sets, .per = WorkloadPer::kObject, .suspend = kSuspend, .makes = makes};
}

}  // namespace

const PodMaker kJobMaker = {.pod_sets = sets_of_job,
                            .per = WorkloadPer::kObject,
                            .suspend = kSuspend,
                            .count = kParallelism,
                            .started = kStartTime,
                            .ended = job_ended,
                            .ready = job_ready,
                            .active = job_active};
const PodMaker kVolcanoJobMaker = {.pod_sets = sets_of_tasks};
const PodMaker kCronJobMaker = {.pod_sets = sets_of_cron_job, .suspend = kSuspend, .makes = "Job"};
const PodMaker kReplicasMaker = {.pod_sets = sets_of_replicas};
const PodMaker kDeploymentMaker = {.pod_sets = sets_of_replicas, .makes = "ReplicaSet"};
const PodMaker kJobSetMaker = {.pod_sets = sets_of_job_set,
                               .per = WorkloadPer::kObject,
                               .suspend = kSuspend,
                               .makes = "Job",
                               .pods_name_it = "jobset.sigs.k8s.io/jobset-name",
                               .ended = job_set_ended,
                               .ready = job_set_ready,
                               .active = job_set_active};
const PodMaker kAppWrapperMaker = {.pod_sets = sets_of_app_wrapper,
                                   .per = WorkloadPer::kObject,
                                   .suspend = kSuspend,
                                   .makes = "",
                                   .pods_name_it = "workload.codeflare.dev/appwrapper",
                                   .ended = app_wrapper_ended,
                                   .ready = app_wrapper_ready,
                                   .active = app_wrapper_active};
const PodMaker kLeaderWorkerSetMaker = {
    .pod_sets = sets_of_leader_workers, .per = WorkloadPer::kObject, .makes = "StatefulSet"};
const PodMaker kRayJobMaker = of_ray_kind(sets_of_ray_job, "RayCluster");
const PodMaker kRayClusterMaker = of_ray_kind(sets_of_ray_cluster, "Pod");
const PodMaker kRayServiceMaker = of_ray_kind(sets_of_ray_service, "RayCluster");
const PodMaker kPyTorchJobMaker = of_kubeflow(sets_of_roles<kPyTorch>);
const PodMaker kMpiJobMaker = of_kubeflow(sets_of_roles<kMpi>);
const PodMaker kTfJobMaker = of_kubeflow(sets_of_roles<kTf>);
const PodMaker kXgBoostJobMaker = of_kubeflow(sets_of_roles<kXgBoost>);
const PodMaker kPaddleJobMaker = of_kubeflow(sets_of_roles<kPaddle>);
const PodMaker kJaxJobMaker = of_kubeflow(sets_of_roles<kJax>);
const PodMaker kTrainJobMaker = {
    .pod_sets = no_templates, .per = WorkloadPer::kObject, .suspend = kSuspend, .makes = "Job"};

std::string set_name(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 63)) {
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

const PodMaker kSparkApplicationMaker = {
    .pod_sets = no_templates, .per = WorkloadPer::kObject, .suspend = kSuspend};

const Value* value_at(const Value& root, const std::vector<std::string>& path) {
  const Value* now = &root;
  for (const std::string& step : path) {
    if (now == nullptr) return nullptr;
    now = text::step_down(*now, step);
  }
  return now;
}

std::vector<PodSetAt> pod_sets_of(const PodMaker& maker, const Value& object) {
  std::vector<PodSetAt> out;
  maker.pod_sets(object, out);
  std::erase_if(out, [&object](const PodSetAt& set) {
    const Value* made_of = value_at(object, set.path);
    return made_of == nullptr || !at(*made_of, "spec").is_object() || set.name.empty();
  });
  return out;
}

bool rests(const PodMaker& maker, const Value& object) {
  return maker.suspend && true_at(object, *maker.suspend);
}

}  // namespace berth::kinds
