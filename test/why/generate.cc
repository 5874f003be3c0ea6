#include "generate.h"

#include <functional>

#include "base/random.h"

namespace berth::why_corpus {

namespace {

constexpr const char* kModel = "NVIDIA-H100-80GB-HBM3";
constexpr const char* kToleration = R"({"key":"nvidia.com/gpu","operator":"Exists"})";

std::string taint(const std::string& key, const std::string& value) {
  return R"({"key":")" + key + R"(","value":")" + value + R"(","effect":"NoSchedule"})";
}

struct RandomNode {
  std::string name, model, rack;
  int gpus = 8;
  std::vector<std::string> taints;  // as JSON
  bool cordoned = false, ready = true;
  int unhealthy = 0;  // the first so many GPUs
  bool told = false;  // has a GpuNode
};

// What is made of it: a pod, a Job, a gang, or a Job of a queue.
enum class Form : std::uint8_t { kPod, kJob, kGang, kQueued };

struct Draft {
  Random random;
  Form form = Form::kPod;
  int pods = 1, gpus = 1;
  std::vector<RandomNode> targets, others;
  std::string cpu = "4";
  bool tolerates = true, gated = false, stopped = false, suspended = false, spot = false;
  std::string queue = "main";  // that the Job names
  std::string selector, affinity, model, claim, port;
  int min_member = 0, quota = 1000;
  std::vector<std::string> extra;  // objects as JSON
  Case out;

  explicit Draft(std::uint64_t seed) : random(seed) {}
};

// ---- objects ----

std::string node_json(const RandomNode& node) {
  std::string taints;
  for (const std::string& one : node.taints) taints += (taints.empty() ? "" : ",") + one;
  const std::string gpus = std::to_string(node.gpus);
  std::string labels = R"("kubernetes.io/hostname":")" + node.name +
                       R"(","topology.kubernetes.io/rack":")" + node.rack + '"';
  std::string allocatable = R"("cpu":"96","memory":"1Ti","pods":"110")";
  if (node.gpus > 0) {
    labels += R"(,"nvidia.com/gpu.product":")" + node.model + R"(","nvidia.com/gpu.count":")" +
              gpus + '"';
    allocatable += R"(,"nvidia.com/gpu":")" + gpus + '"';
  }
  return R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")" + node.name +
         R"(","labels":{)" + labels + R"(}},"spec":{"taints":[)" + taints +
         R"(],"unschedulable":)" + (node.cordoned ? "true" : "false") +
         R"(},"status":{"allocatable":{)" + allocatable +
         R"(},"conditions":[{"type":"Ready","status":")" + (node.ready ? "True" : "False") +
         R"("}]}})";
}

std::string gpu_node_json(const RandomNode& node) {
  std::string gpus;
  for (int i = 0; i < node.gpus; ++i) {
    gpus += (i == 0 ? "" : ",") + std::string(R"({"index":)") + std::to_string(i) +
            R"(,"model":")" + node.model + R"(","memoryMiB":81559,"health":)" +
            (i < node.unhealthy ? R"({"state":"Unhealthy","reason":"Xid 79"}})"
                                : R"({"state":"Healthy"}})");
  }
  return R"({"apiVersion":"berth.dev/v1alpha1","kind":"GpuNode","metadata":{"name":")" + node.name +
         R"("},"status":{"gpus":[)" + gpus + "]}}";
}

// A pod of somebody else that runs; gpus are the last ones of the node.
std::string holder_json(const std::string& name, const RandomNode& node, int gpus,
                        const std::string& cpu, const std::string& more = "") {
  std::string held;
  for (int i = node.gpus - gpus; i < node.gpus; ++i) {
    held += (held.empty() ? "" : ",") + std::to_string(i);
  }
  const std::string limits =
      gpus == 0 ? "" : R"("limits":{"nvidia.com/gpu":")" + std::to_string(gpus) + R"("},)";
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
         R"(","namespace":"busy","labels":{"app":"busy"})" +
         (gpus == 0 ? "" : R"(,"annotations":{"berth.dev/gpus":")" + held + R"("})") +
         R"(},"spec":{"nodeName":")" + node.name +
         R"(","priority":1000,"containers":[{"name":"c",)" + more + R"("resources":{)" + limits +
         R"("requests":{"cpu":")" + cpu + R"("}}}]},"status":{"phase":"Running"}})";
}

std::string pod_spec_json(const Draft& d) {
  std::string out = R"({"tolerations":[)" + std::string(d.tolerates ? kToleration : "") + "]";
  if (!d.selector.empty()) out += R"(,"nodeSelector":{"example.com/pool":")" + d.selector + R"("})";
  if (!d.affinity.empty()) out += R"(,"affinity":)" + d.affinity;
  if (d.gated) out += R"(,"schedulingGates":[{"name":"example.com/data"}])";
  if (!d.claim.empty()) {
    out +=
        R"(,"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":")" + d.claim + R"("}}])";
  }
  return out + R"(,"containers":[{"name":"main",)" + d.port +
         R"("resources":{"requests":{"cpu":")" + d.cpu + R"("},"limits":{"nvidia.com/gpu":")" +
         std::to_string(d.gpus) + R"("}}}])";
}

std::string annotations_json(const Draft& d) {
  if (d.model.empty()) return "";
  return R"("annotations":{"berth.dev/gpu-model":")" + d.model + R"("})";
}

std::string job_json(const Draft& d) {
  const std::string pods = std::to_string(d.pods);
  const bool queued = d.form == Form::kQueued;
  return R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"train","namespace":"team")" +
         (queued ? R"(,"labels":{"kueue.x-k8s.io/queue-name":")" + d.queue + "\"}" : "") +
         R"(},"spec":{"suspend":)" + (queued || d.suspended ? "true" : "false") +
         R"(,"parallelism":)" + pods + R"(,"completions":)" + pods +
         R"(,"template":{"metadata":{)" + annotations_json(d) + R"(},"spec":)" + pod_spec_json(d) +
         R"(,"restartPolicy":"Never"}}}})";
}

void add_subject(Draft& d) {
  Objects& objects = d.out.objects;
  if (d.form == Form::kJob || d.form == Form::kQueued) return objects.add_json(job_json(d));
  const bool gang = d.form == Form::kGang;
  if (gang) {
    objects.add_json(R"({"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":)"
                     R"({"name":"train","namespace":"team"},"spec":{"minMember":)" +
                     std::to_string(d.min_member) + "}}");
  }
  for (int i = 0; i < d.pods; ++i) {
    const std::string annotations = annotations_json(d);
    objects.add_json(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"train)" +
                     (gang ? "-" + std::to_string(i) : "") + R"(","namespace":"team")" +
                     (gang ? R"(,"labels":{"scheduling.x-k8s.io/pod-group":"train"})" : "") +
                     (annotations.empty() ? "" : "," + annotations) + R"(},"spec":)" +
                     pod_spec_json(d) + "}}");
  }
}

std::string cluster_queue_json(const std::string& name, int gpus, bool stopped) {
  return R"({"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ClusterQueue","metadata":{"name":")" +
         name + R"("},"spec":{"namespaceSelector":{},"stopPolicy":")" +
         (stopped ? "Hold" : "None") +
         R"(","resourceGroups":[{"coveredResources":["cpu","nvidia.com/gpu"],"flavors":[{"name":)"
         R"("default","resources":[{"name":"cpu","nominalQuota":"10000"},{"name":"nvidia.com/gpu",)"
         R"("nominalQuota":")" +
         std::to_string(gpus) + R"("}]}]}]}})";
}

void add_queue(Draft& d) {
  Objects& objects = d.out.objects;
  objects.add_json(R"({"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ResourceFlavor",)"
                   R"("metadata":{"name":"default"},"spec":{"nodeTaints":[)" +
                   (d.spot ? taint("spot", "true") : "") + "]}}");
  objects.add_json(cluster_queue_json("team", d.quota, d.stopped));
  objects.add_json(cluster_queue_json("other", 0, true));  // somebody else's, of no help
  objects.add_json(R"({"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"LocalQueue","metadata":)"
                   R"({"name":"main","namespace":"team"},"spec":{"clusterQueue":"team"}})");
}

// ---- causes ----

void cure(Draft& d, const std::string& reason, const std::string& line) {
  d.out.cures.emplace_back(reason, line);
}

// A patch of the workload's pods, wherever they are described; path begins below the pod's root.
void cure_pods(Draft& d, const std::string& reason, const std::string& op, const std::string& path,
               const std::string& value = "") {
  const bool job = d.form == Form::kJob || d.form == Form::kQueued;
  const std::string patch = R"([{"op":")" + op + R"(","path":")" + (job ? "/spec/template" : "") +
                            path + '"' + (value.empty() ? "" : R"(,"value":)" + value) + "}]";
  if (job) return cure(d, reason, "patch Job/team/train " + patch);
  for (int i = 0; i < d.pods; ++i) {
    const std::string name = d.form == Form::kGang ? "train-" + std::to_string(i) : "train";
    cure(d, reason, "patch Pod/team/" + name + ' ' + patch);
  }
}

void cure_targets(Draft& d, const std::string& reason, const std::string& patch) {
  for (const RandomNode& node : d.targets) cure(d, reason, "patch Node/" + node.name + ' ' + patch);
}

void hold_targets(Draft& d, const std::string& reason, const std::string& name, int gpus,
                  const std::string& cpu, const std::string& more = "") {
  for (const RandomNode& node : d.targets) {
    const std::string pod = name + '-' + node.name;
    d.extra.push_back(holder_json(pod, node, gpus, cpu, more));
    cure(d, reason, "delete Pod/busy/" + pod);
  }
}

// A cause that can be put into a draft. group: of one group at most one is put in.
struct Cause {
  const char* reason;
  const char* verdict;
  const char* stage;
  const char* group;
  std::function<bool(const Draft&)> possible;
  std::function<void(Draft&)> inject;
};

bool always(const Draft&) { return true; }
bool queued(const Draft& d) { return d.form == Form::kQueued; }
bool ungrouped(const Draft& d) { return d.form == Form::kPod || d.form == Form::kGang; }
int most_gpus(const Draft& d) { return d.targets.front().gpus; }
int count_of_targets(const Draft& d) { return static_cast<int>(d.targets.size()); }

std::vector<Cause> rule_causes() {
  return {
      {"TaintNotTolerated", "misconfigured", "constraints", "taint", always,
       [](Draft& d) {
         for (RandomNode& node : d.targets) node.taints.push_back(taint("maintenance", "true"));
         cure_targets(d, "TaintNotTolerated", R"([{"op":"remove","path":"/spec/taints/1"}])");
       }},
      {"TaintNotTolerated", "misconfigured", "constraints", "taint", always,
       [](Draft& d) {
         d.tolerates = false;
         cure_pods(d, "TaintNotTolerated", "add", "/spec/tolerations/-", kToleration);
       }},
      {"NodeSelectorMismatch", "misconfigured", "constraints", "selector", always,
       [](Draft& d) {
         d.selector = "train";
         cure_pods(d, "NodeSelectorMismatch", "remove", "/spec/nodeSelector");
       }},
      {"NodeAffinityMismatch", "misconfigured", "constraints", "affinity", always,
       [](Draft& d) {
         d.affinity = R"({"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)"
                      R"({"nodeSelectorTerms":[{"matchExpressions":[{"key":"example.com/fabric",)"
                      R"("operator":"Exists"}]}]}}})";
         cure_pods(d, "NodeAffinityMismatch", "remove", "/spec/affinity");
       }},
      {"GpuModelMismatch", "misconfigured", "constraints", "model", always,
       [](Draft& d) {
         d.model = "NVIDIA-B200";
         cure_pods(d, "GpuModelMismatch", "remove", "/metadata/annotations");
       }},
      {"PodAntiAffinityViolated", "waiting", "constraints", "affinity", ungrouped,
       [](Draft& d) {
         d.affinity = R"({"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)"
                      R"([{"labelSelector":{"matchLabels":{"app":"busy"}},"namespaces":["busy"],)"
                      R"("topologyKey":"kubernetes.io/hostname"}]}})";
         hold_targets(d, "PodAntiAffinityViolated", "noisy", 0, "1");
         cure_pods(d, "PodAntiAffinityViolated", "remove", "/spec/affinity");
       }},
      {"HostPortTaken", "waiting", "constraints", "port",
       [](const Draft& d) { return d.pods <= count_of_targets(d); },
       [](Draft& d) {
         d.port = R"("ports":[{"containerPort":9400,"hostPort":9400}],)";
         hold_targets(d, "HostPortTaken", "exporter", 0, "1", d.port);
       }},
  };
}

std::vector<Cause> node_causes() {
  return {
      {"NodeUnschedulable", "waiting", "constraints", "node", always,
       [](Draft& d) {
         for (RandomNode& node : d.targets) node.cordoned = true;
         cure_targets(d, "NodeUnschedulable",
                      R"([{"op":"replace","path":"/spec/unschedulable","value":false}])");
       }},
      {"NodeNotReady", "fault", "health", "node", always,
       [](Draft& d) {
         for (RandomNode& node : d.targets) node.ready = false;
         cure_targets(d, "NodeNotReady",
                      R"([{"op":"replace","path":"/status/conditions/0/status","value":"True"}])");
       }},
      {"InsufficientCpu", "waiting", "capacity", "cpu", always,
       [](Draft& d) { hold_targets(d, "InsufficientCpu", "loader", 0, "95"); }},
      {"InsufficientGpus", "waiting", "capacity", "gpus", always,
       [](Draft& d) { hold_targets(d, "InsufficientGpus", "hold", most_gpus(d), "1"); }},
      {"Fragmented", "waiting", "capacity", "gpus",
       [](const Draft& d) { return d.gpus >= 2 && (d.gpus - 1) * count_of_targets(d) >= d.gpus; },
       [](Draft& d) { hold_targets(d, "Fragmented", "hold", most_gpus(d) - d.gpus + 1, "1"); }},
      {"GpuUnhealthy", "fault", "health", "gpus", always,
       [](Draft& d) {
         for (RandomNode& node : d.targets) {
           node.told = true;
           node.unhealthy = node.gpus - d.gpus + 1;
           std::string patch;
           for (int i = 0; i < node.unhealthy; ++i) {
             patch += (i == 0 ? "" : ",") +
                      std::string(R"({"op":"replace","path":"/status/gpus/)") + std::to_string(i) +
                      R"(/health","value":{"state":"Healthy"}})";
           }
           cure(d, "GpuUnhealthy", "patch GpuNode/" + node.name + " [" + patch + "]");
         }
       }},
      {"NeverFits", "never", "capacity", "gpus", always,
       [](Draft& d) {
         const std::string fits = std::to_string(d.gpus);
         d.gpus = most_gpus(d) + 1;
         cure_pods(d, "NeverFits", "replace", "/spec/containers/0/resources/limits/nvidia.com~1gpu",
                   '"' + fits + '"');
       }},
  };
}

std::vector<Cause> gate_causes() {
  return {
      {"Gated", "waiting", "gate", "gate", [](const Draft& d) { return d.form == Form::kPod; },
       [](Draft& d) {
         d.gated = true;
         cure_pods(d, "Gated", "remove", "/spec/schedulingGates");
       }},
      {"VolumeMissing", "waiting", "constraints", "claim",
       [](const Draft& d) { return d.form != Form::kQueued; },
       [](Draft& d) {
         d.claim = "dataset";
         cure(d, "VolumeMissing",
              R"(create {"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":)"
              R"({"name":"dataset","namespace":"team"},"spec":{"storageClassName":"fast"},)"
              R"("status":{"phase":"Pending"}})");
       }},
      {"GangIncomplete", "waiting", "gang", "gate",
       [](const Draft& d) {  // the member that is missing would have room
         const int room = most_gpus(d) / d.gpus * count_of_targets(d);
         return d.form == Form::kGang && room > d.pods;
       },
       [](Draft& d) {
         d.min_member = d.pods + 1;
         cure(d, "GangIncomplete",
              R"(patch PodGroup/team/train [{"op":"replace","path":"/spec/minMember","value":)" +
                  std::to_string(d.pods) + "}]");
       }},
      {"ExceedsMaxQuota", "never", "quota", "quota", queued,
       [](Draft& d) {
         d.quota = d.pods * d.gpus - 1;
         cure(d, "ExceedsMaxQuota",
              R"(patch ClusterQueue/team [{"op":"replace","path":"/spec/resourceGroups/0/flavors/)"
              R"(0/resources/1/nominalQuota","value":"1000"}])");
       }},
      {"OnHold", "waiting", "gate", "stop", queued,
       [](Draft& d) {
         d.stopped = true;
         cure(d, "OnHold",
              R"(patch ClusterQueue/team [{"op":"replace","path":"/spec/stopPolicy",)"
              R"("value":"None"}])");
       }},
  };
}

std::vector<Cause> object_causes() {
  return {
      {"Suspended", "waiting", "gate", "gate", [](const Draft& d) { return d.form == Form::kJob; },
       [](Draft& d) {
         d.suspended = true;
         cure(d, "Suspended",
              R"(patch Job/team/train [{"op":"replace","path":"/spec/suspend","value":false}])");
       }},
      {"Misconfigured", "misconfigured", "gate", "name", queued,
       [](Draft& d) {
         d.queue = "mian";
         cure(d, "Misconfigured",
              R"(patch Job/team/train [{"op":"replace","path":)"
              R"("/metadata/labels/kueue.x-k8s.io~1queue-name","value":"main"}])");
       }},
      {"NoMatchingFlavor", "misconfigured", "quota", "flavor", queued,
       [](Draft& d) {
         d.spot = true;
         cure(d, "NoMatchingFlavor",
              R"(patch ResourceFlavor/default [{"op":"replace","path":"/spec/nodeTaints",)"
              R"("value":[]}])");
       }},
  };
}

const std::vector<Cause>& all_causes() {
  static const std::vector<Cause> causes = [] {
    std::vector<Cause> out = rule_causes();
    for (const auto& more : {node_causes(), gate_causes(), object_causes()}) {
      out.insert(out.end(), more.begin(), more.end());
    }
    return out;
  }();
  return causes;
}

// ---- the cluster ----

void make_nodes(Draft& d) {
  const int gpus = d.random.chance(1, 3) ? 4 : 8;
  const auto targets = d.random.between(2, 6);
  for (std::int64_t i = 0; i < targets; ++i) {
    d.targets.push_back({.name = "gpu-" + std::to_string(i),
                         .model = kModel,
                         .rack = "r" + std::to_string(i / 2),
                         .gpus = gpus,
                         .taints = {taint("nvidia.com/gpu", "present")}});
  }
  const auto others = d.random.between(0, 4);
  for (std::int64_t i = 0; i < others; ++i) {
    RandomNode node{.name = "other-" + std::to_string(i), .model = "NVIDIA-L4", .rack = "r9"};
    node.taints = {taint("dedicated", "other")};
    if (d.random.chance(1, 3)) {
      node.gpus = 0;
    } else {
      node.gpus = 4;
      d.extra.push_back(holder_json("embed-" + node.name, node, 4, "1"));
    }
    node.ready = d.random.chance(3, 4);
    d.others.push_back(node);
  }
}

void make_workload(Draft& d) {
  d.form = static_cast<Form>(d.random.below(4));
  d.gpus = static_cast<int>(d.random.between(1, most_gpus(d)));
  const int fitting = most_gpus(d) / d.gpus * count_of_targets(d);
  const auto most = std::min<std::int64_t>({fitting, 4, count_of_targets(d)});
  d.pods = d.form == Form::kPod ? 1 : static_cast<int>(d.random.between(1, most));
  d.min_member = d.pods;
}

void inject(Draft& d) {
  std::vector<Cause> open = all_causes();
  std::vector<std::string> groups;
  const bool two = d.random.chance(1, 2);
  while (!open.empty() && groups.size() < (two ? 2u : 1u)) {
    const auto at = static_cast<std::ptrdiff_t>(d.random.below(open.size()));
    const Cause cause = open[static_cast<std::size_t>(at)];
    open.erase(open.begin() + at);
    if (contains(groups, cause.group) || !cause.possible(d)) continue;
    // Room for what is asked for is part of the quota, so the smaller request would do.
    const bool sizes =
        cause.group == std::string_view("gpus") || cause.group == std::string_view("quota");
    if (sizes && (contains(groups, "gpus") || contains(groups, "quota"))) continue;
    cause.inject(d);
    groups.emplace_back(cause.group);
    d.out.name += (d.out.name.empty() ? "" : "+") + std::string(cause.reason);
    d.out.reasons.emplace_back(cause.reason);
    d.out.verdicts.emplace_back(cause.verdict);
    d.out.stages.emplace_back(cause.stage);
  }
  if (groups.size() > 1) d.out.also = d.out.reasons;
  // A workload that tolerates nothing and has another cause is as near to the full nodes of others.
  for (RandomNode& node : d.others) node.cordoned |= !d.tolerates && groups.size() > 1;
}

}  // namespace

Case random_case(std::uint64_t seed) {
  Draft d(seed);
  make_nodes(d);
  make_workload(d);
  inject(d);
  constexpr const char* kForms[] = {"pod", "job", "podgroup", "job"};
  d.out.kind = kForms[static_cast<std::size_t>(d.form)];
  d.out.ns = "team";
  d.out.subject = "train";
  d.out.name = "seed " + std::to_string(seed) + ": " + d.out.kind +
               (d.form == Form::kQueued ? " of a queue, " : ", ") + d.out.name;
  for (const auto* nodes : {&d.targets, &d.others}) {
    for (const RandomNode& node : *nodes) {
      d.out.objects.add_json(node_json(node));
      if (node.told) d.out.objects.add_json(gpu_node_json(node));
    }
  }
  for (const std::string& one : d.extra) d.out.objects.add_json(one);
  if (d.form == Form::kQueued) add_queue(d);
  add_subject(d);
  d.out.not_named = {"dedicated"};
  return std::move(d.out);
}

}  // namespace berth::why_corpus
