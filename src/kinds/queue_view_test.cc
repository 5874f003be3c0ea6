#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "kinds/names.h"
#include "kinds/object_set.h"
#include "text/yaml.h"

namespace berth::kinds {
namespace {

// A cluster with queues whose objects come, change and go at random, and what is kept of it.
class QueueHistory {
 public:
  explicit QueueHistory(std::uint64_t seed) : random_(seed) {
    put("kueue.x-k8s.io/v1beta2", "ResourceFlavor", "metadata: {name: any}\n");
    cluster_queue();
    for (const char* ns : {"a", "b"}) local_queue(ns);
    for (const char* node : {"n0", "n1", "n2"}) put_node(node);
  }

  void step() {
    const std::string ns = random_.chance(1, 2) ? "a" : "b";
    switch (random_.below(18)) {
      case 0:
        put_node(fmt::format("n{}", random_.below(3)));
        break;
      case 1:
        set.remove("v1", "Node", "", fmt::format("n{}", random_.below(3)));
        break;
      case 2:
        if (random_.chance(1, 4)) cluster_queue();
        break;
      case 3:
        if (random_.chance(1, 3)) set.remove(kKueue, "LocalQueue", ns, "q");
        if (random_.chance(2, 3)) local_queue(ns);
        break;
      case 4:
      case 5:
        put_job(ns, some_name());
        break;
      case 6:
        set.remove("batch/v1", "Job", ns, some_name());
        break;
      case 7:
      case 8:
        put_workload(ns, random_.chance(1, 3) ? some_name() : "job-" + some_name());
        break;
      case 9:
        set.remove(kKueue, "Workload", ns,
                   random_.chance(1, 3) ? some_name() : "job-" + some_name());
        break;
      case 10:
        put_group(ns, some_name());
        break;
      case 11:
        put_space(ns);
        break;
      case 12:
        believe(ns);
        break;
      case 14:
        if (random_.chance(1, 3)) volcano_queue();
        put_claim(ns);
        break;
      case 15:
        put_jobset(ns, some_name());
        break;
      case 13:
        if (random_.chance(1, 2)) set.remove("v1", "Pod", ns, pod_name());
        break;
      default:
        put_pod(ns);
    }
    if (random_.chance(1, 40)) set.touch_all();
  }

  // What was told of changes adds up to what everything at once comes to.
  void check(const std::string& at) {
    const auto where = [this](const std::string& key, const LivePod&) {
      const auto it = places.find(key);
      return it == places.end() ? ObjectSet::Place{} : it->second;
    };
    const QueueChanges changes = set.take_queue_changes(where);
    for (const std::string& name : changes.gone) ASSERT_EQ(workloads.erase(name), 1u) << at;
    for (const auto& spec : changes.workloads) {
      workloads.insert_or_assign(qualified(spec->ns, spec->name), *spec);
    }
    for (const std::string& pod : changes.gone_pods) pods.erase(pod);
    for (const model::PodSpec& pod : changes.pods) {
      pods.insert_or_assign(qualified(pod.ns, pod.name), pod);
    }
    const Inputs all = set.inputs(where);
    std::vector<std::string> wanted, have;
    for (const model::WorkloadSpec& spec : all.queues.workloads) {
      const std::string name = qualified(spec.ns, spec.name);
      wanted.push_back(name);
      ASSERT_TRUE(workloads.contains(name)) << at << ": " << name;
      ASSERT_TRUE(workloads.at(name) == spec)
          << at << ": " << name << difference(workloads.at(name), spec);
    }
    for (const auto& spec : set.queues().workloads) {
      have.push_back(qualified(spec->ns, spec->name));
    }
    ASSERT_EQ(have, wanted) << at;
    std::vector<std::string> of_queues, kept;
    for (const model::PodSpec& pod : all.pods) {
      const std::string name = qualified(pod.ns, pod.name);
      if (!set.in_queue(name)) continue;
      of_queues.push_back(name);
      ASSERT_TRUE(pods.contains(name)) << at << ": " << name << " was not told";
      ASSERT_TRUE(pods.at(name) == pod) << at << ": " << name << shown(pods.at(name)) << shown(pod);
    }
    for (const auto& [name, pod] : pods) kept.push_back(name);
    ASSERT_EQ(kept, of_queues) << at;
    auto beyond = all.beyond;
    std::sort(beyond.begin(), beyond.end());
    ASSERT_EQ(set.queues().beyond, beyond) << at;
    seen += wanted.size();
  }

  ObjectSet set{{.scheduler_names = {"berth"}, .seed = 7}};
  std::map<std::string, ObjectSet::Place> places;
  std::map<std::string, model::WorkloadSpec> workloads;
  std::map<std::string, model::PodSpec> pods;
  std::size_t seen = 0;

 private:
  static constexpr const char* kKueue = "kueue.x-k8s.io/v1beta2";

  static std::string shown(const model::PodSpec& pod) {
    return fmt::format(
        "\n on '{}', gated {}, queued {}, charged '{}' by '{}', leftover {}, needs queue {}, gang "
        "'{}', queue '{}', {} tolerations, {} indices",
        pod.node_name, pod.gated, pod.queued, pod.charged, pod.let_in_by, pod.leftover,
        pod.needs_queue, pod.gang, pod.queue, pod.tolerations.size(), pod.gpu_indices.size());
  }
  static std::string difference(const model::WorkloadSpec& kept, const model::WorkloadSpec& all) {
    std::string out;
    const auto sets = [](const model::WorkloadSpec& spec) {
      std::string text;
      for (const auto& each : spec.pod_sets) {
        text += fmt::format(" {} x{}:", each.name, each.count);
        for (const std::string& pod : each.pods) text += ' ' + pod;
        for (const auto& [resource, amount] : each.requests)
          text += fmt::format(" {}={}", resource, amount);
      }
      return text;
    };
    if (!(kept.pod_sets == all.pod_sets)) out += "\n kept" + sets(kept) + "\n all " + sets(all);
    if (kept.admission != all.admission) out += "\n another admission";
    if (kept.incomplete != all.incomplete)
      out += "\n kept " + kept.incomplete + "\n all " + all.incomplete;
    const auto admitted = [](const model::WorkloadSpec& spec) {
      std::string text =
          spec.queue + ' ' + spec.owner +
          fmt::format(" priority {}, leftover {}, unmade {}, stale {}, evicted {}", spec.priority,
                      spec.leftover, spec.unmade, spec.stale, spec.evicted);
      for (const auto& set :
           spec.admission ? spec.admission->pod_sets : std::vector<model::PodSetAdmission>()) {
        text += fmt::format(" {} x{}:", set.name, set.count);
        for (const auto& [resource, amount] : set.usage)
          text += fmt::format(" {}={}", resource, amount);
      }
      return text;
    };
    if (admitted(kept) != admitted(all))
      out += "\n kept " + admitted(kept) + "\n all " + admitted(all);
    if (kept.charge != all.charge) out += "\n kept " + kept.charge + "\n all " + all.charge;
    return out;
  }

  void put(const char* version, const char* kind, const std::string& yaml) {
    const auto documents = text::parse_yaml(yaml);
    ASSERT_TRUE(documents.ok()) << yaml;
    set.put(version, kind, documents->front().root());
  }
  std::string some_name() { return fmt::format("w{}", random_.below(4)); }
  std::string pod_name() {
    return random_.chance(1, 3) ? some_name() : fmt::format("p{}", random_.below(8));
  }
  std::string uid_of(const std::string& name) {
    return "u-" + name + (random_.chance(1, 12) ? "x" : "");
  }

  void put_node(const std::string& name) {
    put("v1", "Node",
        fmt::format(
            "metadata: {{name: {}, labels: {{kubernetes.io/hostname: {}{}}}}}\nstatus: "
            "{{allocatable: {{cpu: 16, memory: 64Gi, nvidia.com/gpu: 4, pods: 20}}, conditions: "
            "[{{type: Ready, status: '{}'}}]}}\n",
            name, name, random_.chance(1, 2) ? ", rack: r" : "",
            random_.chance(5, 6) ? "True" : "False"));
  }
  void cluster_queue() {
    put(kKueue, "ClusterQueue",
        fmt::format(
            "metadata: {{name: cq}}\nspec: {{namespaceSelector: {{}}, resourceGroups: "
            "[{{coveredResources: [cpu, memory, nvidia.com/gpu], flavors: [{{name: any, resources: "
            "[{{name: "
            "cpu, nominalQuota: {}}}, {{name: memory, nominalQuota: 8Gi}}, {{name: nvidia.com/gpu, "
            "nominalQuota: 4}}]}}]}}]}}\n",
            2 + random_.below(8)));
  }
  void local_queue(const std::string& ns) {
    put(kKueue, "LocalQueue",
        fmt::format("metadata: {{name: {}, namespace: {}}}\nspec: {{clusterQueue: cq}}\n",
                    random_.chance(1, 5) ? "default" : "q", ns));
  }
  // While it is there, everything is resolved at once.
  void volcano_queue() {
    constexpr const char* kVersion = "scheduling.volcano.sh/v1beta1";
    if (random_.chance(2, 3)) return (void)set.remove(kVersion, "Queue", "", "v");
    put(kVersion, "Queue", "metadata: {name: v}\nspec: {weight: 1}\n");
  }
  void put_claim(const std::string& ns) {
    put("v1", "PersistentVolumeClaim",
        fmt::format("metadata: {{name: c, namespace: {}}}\nspec: {{volumeName: {}}}\n", ns,
                    random_.chance(1, 2) ? "v" : "''"));
    put("v1", "PersistentVolume",
        fmt::format("metadata: {{name: v, labels: {{topology.kubernetes.io/zone: z{}}}}}\nspec: "
                    "{{claimRef: {{namespace: {}, name: c}}}}\n",
                    random_.below(2), ns));
  }
  void put_jobset(const std::string& ns, const std::string& name) {
    constexpr const char* kVersion = "jobset.x-k8s.io/v1alpha2";
    if (random_.chance(1, 3)) return (void)set.remove(kVersion, "JobSet", ns, name);
    put(kVersion, "JobSet",
        fmt::format("metadata: {{name: {}, namespace: {}, uid: us-{}, {}}}\nspec: {{suspend: {}, "
                    "replicatedJobs: [{{name: r, replicas: 1, template: {{spec: {{parallelism: 2, "
                    "template: {{spec: {{restartPolicy: Never, {}}}}}}}}}}}]}}\n",
                    name, ns, name, queue_label(), random_.chance(1, 2), container(1)));
  }
  void put_space(const std::string& ns) {
    put("v1", "Namespace",
        fmt::format("metadata: {{name: {}, labels: {{berth.dev/queue-required: '{}'}}}}\n", ns,
                    random_.chance(1, 4)));
  }
  std::string container(int cpu) {
    return fmt::format(
        "containers: [{{name: c, image: i, resources: {{requests: {{cpu: {}, memory: {}Gi}}, "
        "limits: {{nvidia.com/gpu: 1}}}}}}]",
        cpu, 1 + random_.below(3));
  }
  std::string queue_label() {
    return random_.chance(2, 3) ? "labels: {kueue.x-k8s.io/queue-name: q}" : "labels: {app: x}";
  }
  void put_job(const std::string& ns, const std::string& name) {
    put("batch/v1", "Job",
        fmt::format("metadata: {{name: {}, namespace: {}, uid: {}, {}}}\nspec: {{suspend: {}, "
                    "parallelism: {}, "
                    "template: {{spec: {{restartPolicy: Never, {}}}}}}}\n",
                    name, ns, uid_of(name), queue_label(), random_.chance(1, 2),
                    1 + random_.below(2), container(1)));
  }
  void put_workload(const std::string& ns, const std::string& name) {
    const std::string job = name.starts_with("job-") ? name.substr(4) : name;
    std::string status = "{}";
    if (random_.chance(2, 3)) {
      const int count = static_cast<int>(1 + random_.below(2));
      status = fmt::format(
          "{{admission: {{clusterQueue: cq, podSetAssignments: [{{name: main, count: {}, flavors: "
          "{{cpu: any, memory: any, nvidia.com/gpu: any}}, resourceUsage: {{cpu: {}, memory: {}Gi, "
          "nvidia.com/gpu: {}}}}}]}}, conditions: [{{type: QuotaReserved, status: 'True', reason: "
          "x}}, {{type: Admitted, status: 'True', reason: x}}{}]}}",
          count, count, count, count,
          random_.chance(1, 5) ? ", {type: Evicted, status: 'True', reason: Preempted}" : "");
    } else if (random_.chance(1, 4)) {
      status = "{conditions: [{type: Finished, status: 'True', reason: x}]}";
    }
    std::string owner;
    if (random_.chance(3, 4)) {
      owner = fmt::format(
          ", ownerReferences: [{{apiVersion: batch/v1, kind: Job, name: {}, uid: {}, controller: "
          "true}}]",
          job, uid_of(job));
    }
    put(kKueue, "Workload",
        fmt::format(
            "metadata: {{name: {}, namespace: {}, uid: uw-{}{}}}\nspec: {{queueName: q, podSets: "
            "[{{name: "
            "main, count: {}, template: {{spec: {{restartPolicy: Never, {}}}}}}}]}}\nstatus: {}\n",
            name, ns, name, owner, 1 + random_.below(3), container(1), status));
  }
  void put_group(const std::string& ns, const std::string& name) {
    if (random_.chance(1, 3))
      return (void)set.remove("scheduling.x-k8s.io/v1alpha1", "PodGroup", ns, name);
    put("scheduling.x-k8s.io/v1alpha1", "PodGroup",
        fmt::format("metadata: {{name: {}, namespace: {}, {}}}\nspec: {{minMember: {}}}\n", name,
                    ns, queue_label(), 1 + random_.below(2)));
  }
  void put_pod(const std::string& ns) {
    const std::string name = pod_name(), of = some_name();
    std::string labels = random_.chance(1, 2) ? "kueue.x-k8s.io/queue-name: q" : "app: x";
    std::string annotations = "x: z";
    if (random_.chance(1, 4)) labels += ", kueue.x-k8s.io/pod-group-name: " + of;
    if (random_.chance(1, 4)) annotations += ", kueue.x-k8s.io/pod-group-total-count: '2'";
    if (random_.chance(1, 5)) labels += ", scheduling.x-k8s.io/pod-group: " + of;
    if (random_.chance(1, 5)) annotations += ", kueue.x-k8s.io/workload: job-" + of;
    if (random_.chance(1, 6)) labels += ", jobset.sigs.k8s.io/jobset-name: " + of;
    const bool bound = random_.chance(1, 2);
    if (bound && random_.chance(2, 3)) annotations += ", berth.dev/charged-to: kueue/cq/job-" + of;
    std::string meta =
        fmt::format("name: {}, namespace: {}, uid: {}, labels: {{{}}}, annotations: {{{}}}", name,
                    ns, uid_of(name), labels, annotations);
    if (random_.chance(2, 3)) {
      meta += fmt::format(
          ", ownerReferences: [{{apiVersion: batch/v1, kind: Job, name: {}, uid: {}, controller: "
          "true}}]",
          of, uid_of(of));
    }
    if (random_.chance(1, 12)) meta += ", deletionTimestamp: '2026-01-01T00:00:00Z'";
    constexpr const char* kPhases[] = {"Pending", "Running", "Running", "Succeeded"};
    put("v1", "Pod",
        fmt::format(
            "metadata: {{{}}}\nspec: {{schedulerName: {}, {}{}{}}}\nstatus: {{phase: {}}}\n", meta,
            random_.chance(9, 10) ? "berth" : "other",
            container(static_cast<int>(1 + random_.below(3))),
            bound ? fmt::format(", nodeName: n{}", random_.below(3)) : "",
            random_.chance(1, 6) ? ", volumes: [{name: a, persistentVolumeClaim: {claimName: c}}]"
                                 : "",
            bound ? kPhases[random_.below(4)] : "Pending"));
  }
  void believe(const std::string& ns) {
    const std::string pod = ns + '/' + pod_name();
    if (places.erase(pod) == 0) {
      places[pod] = {.node = fmt::format("n{}", random_.below(3)),
                     .gpus = {0},
                     .charged = random_.chance(1, 2) ? "kueue/cq/job-" + some_name() : ""};
    }
    set.touch_place(pod);
  }

  Random random_;
};

TEST(QueueView, ChangesAddUpToEverythingAtOnce) {
  std::size_t seen = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    QueueHistory history(seed);
    for (int step = 0; step < 120; ++step) {
      history.step();
      if (step % 3 == 0) history.check(fmt::format("seed {}, step {}", seed, step));
      if (testing::Test::HasFatalFailure()) return;
    }
    seen += history.seen;
  }
  EXPECT_GT(seen, 1'000u);
}

}  // namespace
}  // namespace berth::kinds
