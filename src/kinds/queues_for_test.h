// Objects that tests of queues are made of. For tests of this folder.
#pragma once

#include <string>
#include <vector>

#include "kinds/read_for_test.h"

namespace berth::kinds::resolve_queues_test {

using Names = std::vector<std::string>;

inline const std::string kQueues = R"(---
{apiVersion: kueue.x-k8s.io/v1beta1, kind: ResourceFlavor, metadata: {name: f}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cq}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: f, resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: q, namespace: ml}
spec: {clusterQueue: cq}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: gold}
value: 100
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 8, memory: 8Gi, pods: 110}}
)";

inline std::string config_body(const std::string& body) {
  return "---\n{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, " + body + "}\n";
}
inline std::string job_body(const std::string& meta, const std::string& spec = "",
                            const std::string& ann = "", const std::string& name = "j") {
  return "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name + ", namespace: ml, " +
         meta + "}\nspec: {" + spec + " template: {metadata: {annotations: {" + ann +
         "}}, spec: {restartPolicy: Never, containers: [{name: c, resources: {limits: "
         "{nvidia.com/gpu: 2}}}]}}}\n";
}
inline const std::string kInQ = "labels: {kueue.x-k8s.io/queue-name: q}";
inline const std::string kOwned =
    "ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, controller: true}]";

inline std::string pod(const std::string& name, const std::string& meta,
                       const std::string& spec = "", const std::string& status = "") {
  return "---\n{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", namespace: ml, " + meta +
         "}, spec: {" + spec +
         " containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}, status: {" + status +
         "}}\n";
}
inline std::string workload_body(const std::string& meta, const std::string& spec = "",
                                 const std::string& status = "") {
  return "---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w, namespace: "
         "ml, " +
         meta + "}, spec: {queueName: q, " + spec +
         " podSets: [{name: main, count: 2, template: {spec: {containers: [{name: c, resources: "
         "{limits: {nvidia.com/gpu: 2}}}]}}}]}, status: {" +
         status + "}}\n";
}
inline const std::string kHolds =
    "admission: {clusterQueue: cq, podSetAssignments: [{name: main, count: 2, flavors: "
    "{nvidia.com/gpu: f}, resourceUsage: {nvidia.com/gpu: 4}}]}, conditions: [{type: Admitted, "
    "status: 'True'}]";

inline Names pod_names(const Inputs& in) {
  Names out;
  for (const auto& p : in.pods) out.push_back(p.name);
  return out;
}
inline Names workload_names(const Inputs& in) {
  Names out;
  for (const auto& w : in.queues.workloads) out.push_back(w.ns + "/" + w.name);
  return out;
}
inline const model::WorkloadSpec& only_one(const Inputs& in) {
  static const model::WorkloadSpec kNone;
  EXPECT_EQ(in.queues.workloads.size(), 1u) << all(in.invalid);
  return in.queues.workloads.empty() ? kNone : in.queues.workloads[0];
}
inline void invalid(const std::string& yaml, const std::string& part) {
  const Inputs in = read(kQueues + yaml);
  EXPECT_NE(all(in.invalid).find(part), std::string::npos) << part << " in:\n" << all(in.invalid);
  EXPECT_TRUE(in.queues.workloads.empty());
}

}  // namespace berth::kinds::resolve_queues_test
