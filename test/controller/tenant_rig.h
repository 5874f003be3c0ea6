// Two tenants who may write in their own namespace alone.
#pragma once

#include <fmt/format.h>

#include <string>

#include "controller/rig.h"

namespace berth::control_test {

// Two namespaces, each with a queue of four GPUs, on four nodes of four; both require a queue.
class TenantRig : public Rig {
 public:
  TenantRig() : Rig("pools: [{name: m, count: 4, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]") {
    define_kueue();
    apply(
        "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}, spec: "
        "{}}");
    for (const char* ns : {"evil", "good"}) {
      apply(fmt::format(
          "{{apiVersion: v1, kind: Namespace, metadata: {{name: {0}, labels: "
          "{{berth.dev/queue-required: 'true'}}}}}}\n---\n"
          "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {{name: q-{0}}}, "
          "spec: {{namespaceSelector: {{}}, resourceGroups: [{{coveredResources: "
          "[nvidia.com/gpu], flavors: [{{name: f, resources: [{{name: nvidia.com/gpu, "
          "nominalQuota: 4}}]}}]}}]}}}}\n---\n"
          "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {{name: lq, "
          "namespace: {0}}}, spec: {{clusterQueue: q-{0}}}}}",
          ns));
    }
    run(31 * kSecond);
    start();
  }
  // more: further fields of the metadata, with a comma before them.
  void job(const std::string& ns, const std::string& name, int pods, int gpus,
           const std::string& more = ", labels: {kueue.x-k8s.io/queue-name: lq}") {
    apply(fmt::format(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: {1}, namespace: {0}{4}}}, spec: "
        "{{suspend: {5}, parallelism: {2}, template: {{metadata: {{annotations: "
        "{{sim.berth.dev/run-seconds: "
        "'100000'}}}}, spec: {{schedulerName: berth, restartPolicy: Never, containers: [{{name: c, "
        "image: i, resources: {{limits: {{nvidia.com/gpu: {3}}}}}}}]}}}}}}}}",
        ns, name, pods, gpus, more, more.find("queue-name") != std::string::npos));
  }
  void owned_pod(const std::string& name, const std::string& kind, const std::string& owner,
                 int gpus) {
    const std::string path =
        kind == "Job" ? "/apis/batch/v1/namespaces/evil/jobs/" : "/api/v1/namespaces/evil/pods/";
    apply(fmt::format(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {0}, namespace: evil, ownerReferences: "
        "[{{apiVersion: {1}, kind: {2}, name: {3}, uid: {4}, controller: true}}]}}, spec: "
        "{{schedulerName: berth, containers: [{{name: c, image: i, resources: {{limits: "
        "{{nvidia.com/gpu: {5}}}}}}}]}}}}",
        name, kind == "Job" ? "batch/v1" : "v1", kind, owner, get(path + owner).at("metadata.uid"),
        gpus));
  }
  // GPUs of the namespace's pods that are on nodes.
  int held(const std::string& ns) {
    int sum = 0;
    const auto list = get("/api/v1/namespaces/" + ns + "/pods");
    for (const text::Value& pod : list.root().find("items")->items()) {
      if (pod.find("spec")->find("nodeName") == nullptr) continue;
      const std::string_view phase = pod.find("status")->find("phase")->string();
      if (phase != "Failed" && phase != "Succeeded") sum += gpus_in(pod);
    }
    return sum;
  }
  std::string job_path(const std::string& ns, const std::string& name) {
    return "/apis/batch/v1/namespaces/" + ns + "/jobs/" + name;
  }
};

// Queues of Volcano and KAI, four GPUs each, on the same nodes.
class OthersRig : public Rig {
 public:
  OthersRig() : Rig("pools: [{name: m, count: 4, model: NVIDIA-H100-80GB-HBM3, gpus: 4}]") {
    define("scheduling.run.ai", "v2", "Queue", false);
    define("scheduling.volcano.sh", "v1beta1", "Queue", false);
    define("scheduling.volcano.sh", "v1beta1", "PodGroup", true);
    for (const char* team : {"red", "blue"}) {
      apply(fmt::format(
          "{{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {{name: kai-{0}}}, spec: "
          "{{resources: {{gpu: {{quota: 4, limit: 4, overQuotaWeight: 1}}}}}}}}\n---\n"
          "{{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {{name: {0}}}, "
          "spec: {{capability: {{nvidia.com/gpu: 4}}, deserved: {{nvidia.com/gpu: 4}}}}}}",
          team));
    }
    run(31 * kSecond);
    start();
  }
  int gpus_of_all() {
    int sum = 0;
    const auto list = get("/api/v1/namespaces/default/pods");
    for (const text::Value& pod : list.root().find("items")->items()) {
      if (pod.find("spec")->find("nodeName") != nullptr) sum += gpus_in(pod);
    }
    return sum;
  }
};

}  // namespace berth::control_test
