// Queues and what waits: quota that nobody can use, GPUs that nobody can get, groups that never
// start.
#include <algorithm>
#include <map>
#include <set>

#include "app/views/doctor.h"
#include "kinds/queue_marks.h"
#include "kinds/readers.h"
#include "model/amounts.h"
#include "people/view/words.h"
#include "text/path.h"

namespace berth::app {

namespace {

bool counts_gpus(std::string_view resource) {
  return resource == model::kGpuResource || resource == model::kSharedGpuResource ||
         resource.starts_with("nvidia.com/mig-");
}

bool flavor_has(const model::FlavorSpec& flavor, const model::NodeSpec& node) {
  return std::all_of(flavor.node_labels.begin(), flavor.node_labels.end(), [&](const auto& label) {
    const auto it = node.labels.find(label.first);
    return it != node.labels.end() && it->second == label.second;
  });
}

// What the nodes of a flavor have when everything is well.
model::Amounts capacity_of(const model::FlavorSpec& flavor, const kinds::Inputs& in, int& nodes) {
  model::Amounts out;
  for (const model::NodeSpec& node : in.nodes) {
    if (!flavor_has(flavor, node)) continue;
    ++nodes;
    model::NodeSpec well = node;
    for (model::GpuSpec& gpu : well.gpus) {
      gpu.health = model::Health::kHealthy;
      gpu.reserved = false;
    }
    for (const auto& [resource, amount] : model::amounts_of(well)) out[resource] += amount;
  }
  return out;
}

struct FlavorGround {
  const model::FlavorSpec* spec = nullptr;
  int nodes = 0;
  model::Amounts capacity;
};

void check_quota(const model::QueueSpec& queue, const model::FlavorQuota& quota,
                 const FlavorGround& ground, Findings& out) {
  for (const model::ResourceQuota& resource : quota.resources) {
    if (resource.nominal == 0 || !counts_gpus(resource.resource)) continue;
    const std::string object = "ClusterQueue " + queue.name;
    const std::string cell = quota.flavor + '/' + resource.resource;
    if (ground.nodes == 0) {
      out.add("flavor-without-nodes", Severity::kWarning, object,
              "quota of " + model::show_amount(resource.resource, resource.nominal) + " of " +
                  cell + " can never be used: no node has the flavor's labels",
              "correct spec.nodeLabels of ResourceFlavor " + quota.flavor + ", or label the nodes");
      continue;
    }
    const auto has = ground.capacity.find(resource.resource);
    const std::int64_t most = has == ground.capacity.end() ? 0 : has->second;
    if (resource.nominal == model::kUnlimited || resource.nominal <= most) continue;
    out.add("quota-above-capacity", Severity::kWarning, object,
            "nominal quota " + model::show_amount(resource.resource, resource.nominal) + " of " +
                cell + ", and the flavor's " + people::show_count(ground.nodes, "node") +
                (ground.nodes == 1 ? " has " : " have ") + std::to_string(most),
            "lower nominalQuota to what is there, or add nodes");
  }
}

// Nodes with GPUs that no queue has quota for.
void check_cover(const DoctorInput& input, const std::map<std::string, FlavorGround>& grounds,
                 Findings& out) {
  const kinds::Inputs& in = input.view.inputs;
  std::set<std::string> flavors;
  for (const model::QueueSpec& queue : in.queues.queues) {
    for (const model::ResourceGroup& group : queue.groups) {
      for (const model::FlavorQuota& quota : group.flavors) {
        const bool some = std::any_of(
            quota.resources.begin(), quota.resources.end(), [&](const model::ResourceQuota& r) {
              return counts_gpus(r.resource) && (r.nominal > 0 || !queue.cohort.empty());
            });
        if (some) flavors.insert(quota.flavor);
      }
    }
  }
  std::map<std::string, int> bare;  // by model
  for (const model::NodeSpec& node : in.nodes) {
    if (node.gpus.empty()) continue;
    const bool covered = std::any_of(flavors.begin(), flavors.end(), [&](const std::string& name) {
      const auto it = grounds.find(name);
      return it != grounds.end() && it->second.spec != nullptr &&
             flavor_has(*it->second.spec, node);
    });
    if (!covered) bare[node.gpus.front().model] += static_cast<int>(node.gpus.size());
  }
  for (const auto& [model, gpus] : bare) {
    out.add("gpus-without-quota", Severity::kWarning,
            "model " + (model.empty() ? std::string("unknown") : people::short_model(model)),
            people::show_count(gpus, "GPU") + " on nodes that no queue has quota for",
            "add a ResourceFlavor for these nodes to a ClusterQueue");
  }
}

void check_names(const DoctorInput& input, Findings& out) {
  const model::QueueInputs& queues = input.view.inputs.queues;
  std::set<std::string> exist;
  for (const model::QueueSpec& queue : queues.queues) exist.insert(queue.name);
  for (const model::LocalQueueSpec& local : queues.local_queues) {
    if (exist.contains(local.queue)) continue;
    out.add("local-queue-dangling", Severity::kError, "LocalQueue " + local.ns + '/' + local.name,
            "its ClusterQueue " + local.queue + " does not exist: what waits there never starts",
            "create the ClusterQueue, or make a LocalQueue that names another one");
  }
  for (const people::QueueRow& row : input.queues.queues) {
    if (!row.inactive.empty()) {
      out.add("queue-inactive", row.waiting.empty() ? Severity::kWarning : Severity::kError,
              "ClusterQueue " + row.name, "it admits nothing: " + row.inactive,
              "create what is missing, or end its stopPolicy");
    }
    if (row.local_queues.empty() && row.admitted == 0 && row.waiting.empty()) {
      out.add("queue-without-local-queue", Severity::kWarning, "ClusterQueue " + row.name,
              "no LocalQueue leads to it: nobody can use its quota",
              "create a LocalQueue in the namespaces that shall use it");
    }
  }
}

void check_reach(const DoctorInput& input, Findings& out) {
  std::map<std::string, std::pair<int, int>> nodes;  // by model: all, cordoned
  for (const people::FleetNode& node : input.fleet.nodes) {
    if (node.gpus.empty()) continue;
    auto& [all, closed] = nodes[node.model];
    ++all;
    closed += node.cordoned ? 1 : 0;
  }
  for (const auto& [model, counts] : nodes) {
    if (counts.first != counts.second) continue;
    out.add("gpus-unreachable", Severity::kWarning, "model " + people::short_model(model),
            counts.first == 1 ? "its only node is cordoned"
                              : "all its " + std::to_string(counts.first) + " nodes are cordoned",
            "kubectl uncordon, when the nodes may take work again");
  }
}

void check_namespaces(const DoctorInput& input, Findings& out) {
  const kinds::Inputs& in = input.view.inputs;
  if (in.queues.queues.empty()) return;
  std::set<std::string> with_queue;
  for (const model::LocalQueueSpec& local : in.queues.local_queues) with_queue.insert(local.ns);
  std::map<std::string, int> bare;
  for (const model::PodSpec& pod : in.pods) {
    if (pod.gpu.kind == model::GpuDemandSpec::Kind::kNone || with_queue.contains(pod.ns)) continue;
    ++bare[pod.ns];
  }
  for (const auto& [ns, pods] : bare) {
    out.add("namespace-without-queue", Severity::kWarning, "Namespace " + ns,
            people::show_count(pods, "pod") + " with GPUs and no LocalQueue: outside of all quota",
            "create a LocalQueue there, best one named default");
  }
}

bool requires_queue(const kinds::Inputs& in, const std::string& name) {
  const auto ns = in.queues.namespaces.find(name);
  if (ns == in.queues.namespaces.end()) return false;
  const auto label = ns->second.find(kinds::kQueueRequiredLabel);
  return label != ns->second.end() && label->second != "false";
}

// Pods with GPUs beside all quota, where nothing keeps them from it.
void check_outsiders(const DoctorInput& input, Findings& out) {
  const kinds::Inputs& in = input.view.inputs;
  if (in.queues.queues.empty() || in.queues.config.manage_without_queue) return;
  std::set<std::string> inside;
  for (const model::WorkloadSpec& workload : in.queues.workloads) {
    for (const model::PodSetSpec& set : workload.pod_sets) {
      inside.insert(set.pods.begin(), set.pods.end());
    }
  }
  std::map<std::string, int> outside;
  for (const model::PodSpec& pod : in.pods) {
    const bool none = pod.gpu.kind == model::GpuDemandSpec::Kind::kNone;
    if (none || pod.queued || inside.contains(pod.ns + '/' + pod.name)) continue;
    if (!pod.needs_queue && !requires_queue(in, pod.ns)) ++outside[pod.ns];
  }
  for (const auto& [ns, pods] : outside) {
    out.add("queue-not-required", Severity::kWarning, "Namespace " + ns,
            people::show_count(pods, "pod") +
                " with GPUs in no queue, and nothing requires one: quota does not bind them",
            "kubectl label namespace " + ns + " " + std::string(kinds::kQueueRequiredLabel) +
                "=true, or set manageJobsWithoutQueueName in Kueue's Configuration");
  }
}

// Queues of Volcano and KAI that anybody can name, and those that nobody can.
void check_doors(const DoctorInput& input, Findings& out) {
  struct Door {
    bool given = false;
    std::string parent;
  };
  std::map<std::string, Door> doors;  // by system and name
  const auto queues = input.view.of_kind("Queue");
  const auto key = [](const ObjectFacts& queue, std::string_view name) {
    const bool kai = text_at(*queue.value, "apiVersion").starts_with("scheduling.run.ai/");
    return (kai ? "kai/" : "volcano/") + std::string(name);
  };
  for (const ObjectFacts& queue : queues) {
    Door& door = doors[key(queue, queue.name)];
    const std::string_view text =
        at(*queue.value, "metadata.annotations")[kinds::kNamespacesAnnotation].string();
    const text::Value* notes = find(*queue.value, "metadata.annotations");
    door.given = notes != nullptr && notes->find(kinds::kNamespacesAnnotation) != nullptr;
    for (const std::string_view field : {"parent", "parentQueue"}) {
      const std::string_view parent = at(*queue.value, "spec")[field].string();
      if (!parent.empty() && parent != queue.name) door.parent = key(queue, parent);
    }
    if (!door.given || !kinds::parse_queue_door(text).bad) continue;
    out.add("queue-takes-nobody", Severity::kError, "Queue " + queue.name,
            "its annotation " + std::string(kinds::kNamespacesAnnotation) + " cannot be read",
            "write names of namespaces with commas between them, or *");
  }
  for (const ObjectFacts& queue : queues) {
    std::string at = key(queue, queue.name);
    for (std::size_t steps = 0; steps < doors.size() && !doors[at].given; ++steps) {
      if (doors[at].parent.empty()) break;
      at = doors[at].parent;
    }
    if (doors[at].given) continue;
    out.add("queue-open-to-all", Severity::kWarning, "Queue " + queue.name,
            "every namespace can name it",
            "annotate it: " + std::string(kinds::kNamespacesAnnotation) +
                " with the namespaces that it is for, or *");
  }
}

void check_groups(const DoctorInput& input, Findings& out) {
  const kinds::Inputs& in = input.view.inputs;
  struct Members {
    int all = 0, pending = 0;
  };
  std::map<std::string, Members> members;
  for (const model::PodSpec& pod : in.pods) {
    if (pod.gang.empty()) continue;
    Members& of = members[pod.ns + '/' + pod.gang];
    ++of.all;
    of.pending += pod.node_name.empty() ? 1 : 0;
  }
  for (const model::GangSpec& gang : in.gangs) {
    const auto it = members.find(gang.ns + '/' + gang.name);
    if (it == members.end() || it->second.pending == 0 || it->second.all >= gang.min_member) {
      continue;
    }
    out.add("group-too-small", Severity::kWarning, "PodGroup " + gang.ns + '/' + gang.name,
            "minMember is " + std::to_string(gang.min_member) + ", and it has " +
                people::show_count(it->second.all, "pod") + ": it never starts",
            "make the missing pods, or lower minMember");
  }
}

// Pods that other schedulers put on GPUs: we count them and cannot move them.
void check_foreign(const DoctorInput& input, Findings& out) {
  if (!input.view.live) return;
  std::set<std::string> with_gpus;
  for (const model::PodSpec& pod : input.view.inputs.pods) {
    if (pod.gpu.kind != model::GpuDemandSpec::Kind::kNone && !pod.node_name.empty()) {
      with_gpus.insert(pod.ns + '/' + pod.name);
    }
  }
  std::map<std::string, int> by_scheduler;
  for (const ObjectFacts& pod : input.view.of_kind("Pod")) {
    if (!with_gpus.contains(pod.ns + '/' + pod.name)) continue;
    std::string scheduler(text_at(*pod.value, "spec.schedulerName"));
    if (scheduler.empty()) scheduler = "default-scheduler";
    if (scheduler != "berth") ++by_scheduler[scheduler];
  }
  for (const auto& [scheduler, pods] : by_scheduler) {
    out.add("foreign-gpu-pods", Severity::kWarning, "scheduler " + scheduler,
            "it has put " + people::show_count(pods, "pod") +
                " on GPUs: two schedulers give out the same ones",
            "set schedulerName: berth, or let berth's webhook do it, or keep them on other nodes");
  }
}

}  // namespace

void check_queues(const DoctorInput& input, Findings& out) {
  const kinds::Inputs& in = input.view.inputs;
  check_reach(input, out);
  check_names(input, out);
  check_doors(input, out);
  if (in.queues.queues.empty()) return;
  std::map<std::string, FlavorGround> grounds;
  for (const model::FlavorSpec& flavor : in.queues.flavors) {
    FlavorGround& ground = grounds[flavor.name];
    ground.spec = &flavor;
    ground.capacity = capacity_of(flavor, in, ground.nodes);
  }
  for (const model::QueueSpec& queue : in.queues.queues) {
    for (const model::ResourceGroup& group : queue.groups) {
      for (const model::FlavorQuota& quota : group.flavors) {
        const auto it = grounds.find(quota.flavor);
        if (it != grounds.end() && !in.nodes.empty()) check_quota(queue, quota, it->second, out);
      }
    }
  }
  check_cover(input, grounds, out);
  check_namespaces(input, out);
  check_outsiders(input, out);
}

void check_loads(const DoctorInput& input, Findings& out) {
  check_groups(input, out);
  check_foreign(input, out);
  for (const people::FleetWaiting& waiting : input.fleet.waiting) {
    if (!waiting.never) continue;
    out.add("workload-never-fits", Severity::kWarning, "workload " + waiting.workload,
            std::string(model::name(waiting.reason)) + ": " + waiting.message,
            "berth why " + waiting.workload);
  }
  for (const kinds::Note& note : input.view.inputs.invalid) {
    out.add("invalid-object", Severity::kWarning, note.object,
            (note.path.empty() ? "" : note.path + ": ") + note.message,
            "correct the object; until then it is left out of every decision");
  }
}

}  // namespace berth::app
