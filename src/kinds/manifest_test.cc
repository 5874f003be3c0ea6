#include "kinds/manifest.h"

#include <algorithm>

#include "kinds/read_for_test.h"

namespace berth::kinds {
namespace {

std::string small_pod(const char* name, const char* meta = "") {
  return "---\n{apiVersion: v1, kind: Pod, metadata: {name: " + std::string(name) + meta +
         "}, spec: {containers: [{name: c}]}}\n";
}

TEST(Manifest, UnknownKindsAreNamed) {
  const Inputs in = read(
      "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: a}}\n"
      "---\n{apiVersion: batch/v1beta1, kind: Job, metadata: {name: j}}\n");
  ASSERT_EQ(in.ignored.size(), 2u);
  EXPECT_EQ(in.ignored[0].object, "Service a/web");
  EXPECT_EQ(in.ignored[0].message, "kind Service of v1 is not read");
  EXPECT_EQ(in.ignored[1].message, "version batch/v1beta1 is not read; Job is read in batch/v1");
  EXPECT_EQ(in.ignored[1].document, 1);
  EXPECT_TRUE(in.invalid.empty());
}

TEST(Manifest, Lists) {
  const Inputs in = read_clean(R"(
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: [{name: c}]}}
- apiVersion: v1
  kind: PodList
  metadata: {resourceVersion: "1"}
  items: [{metadata: {name: a}, spec: {containers: [{name: c}]}}]
---
{apiVersion: v1, kind: NodeList, items: [{metadata: {name: n0}, status: {allocatable: {pods: 1}}}]}
---
{apiVersion: v1, kind: PodList, items: null}
)");
  EXPECT_EQ(in.pods.size(), 2u);
  EXPECT_EQ(in.pods[0].name, "a");
  EXPECT_EQ(in.nodes.size(), 1u);
  const Inputs bad = read(
      "{apiVersion: v1, kind: PodList, items: [{metadata: {name: a}, spec: "
      "{containers: 3}}, 7]}");
  ASSERT_EQ(bad.invalid.size(), 2u) << all(bad.invalid);
  EXPECT_NE(all(bad.invalid).find("items[0].spec.containers: found number 3"), std::string::npos)
      << all(bad.invalid);
}

TEST(Manifest, Names) {
  const auto errors = [](const std::string& text) { return all(read(text).invalid); };
  EXPECT_NE(errors("{kind: Pod, metadata: {name: a}}").find("apiVersion"), std::string::npos);
  EXPECT_NE(errors("{apiVersion: v1, metadata: {name: a}}").find("kind"), std::string::npos);
  EXPECT_NE(errors("[1]").find("want an object"), std::string::npos);
  EXPECT_NE(errors("{apiVersion: v1, kind: Pod, spec: {containers: [{name: c}]}}").find("metadata"),
            std::string::npos);
  EXPECT_NE(errors(small_pod("\"\"")).find("metadata.name"), std::string::npos);
  EXPECT_NE(errors(small_pod("Upper")).find("metadata.name: found string \"Upper\""),
            std::string::npos);
  EXPECT_NE(errors(small_pod("a", ", namespace: a.b")).find("metadata.namespace"),
            std::string::npos);
  EXPECT_NE(errors("{apiVersion: v1, kind: Pod, metadata: {generateName: a-}, spec: {containers: "
                   "[{name: c}]}}")
                .find("only generateName"),
            std::string::npos);
  EXPECT_NE(
      errors("{apiVersion: v1, kind: Node, metadata: {labels: {a: b}}}").find("metadata.name"),
      std::string::npos);
}

TEST(Manifest, Duplicates) {
  ManifestReader reader;
  add_yaml(reader, small_pod("x", ", labels: {from: b}"), "b.yaml");
  add_yaml(reader, small_pod("x", ", labels: {from: a}"), "a.yaml");
  add_yaml(reader, small_pod("x", ", namespace: other"), "c.yaml");
  const Inputs in = reader.finish();
  ASSERT_EQ(in.pods.size(), 2u);
  EXPECT_EQ(in.pods[0].labels.at("from"), "a");
  ASSERT_EQ(in.invalid.size(), 1u);
  EXPECT_EQ(in.invalid[0].source, "b.yaml");
  EXPECT_NE(in.invalid[0].message.find("\"a.yaml\", document 0"), std::string::npos)
      << in.invalid[0].message;
}

TEST(Manifest, FinishedAndStrayPods) {
  const Inputs in = read(
      "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c}]}, status: "
      "{phase: Succeeded}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {nodeName: "
      "gone, containers: [{name: c}]}, status: {phase: Running, startTime: "
      "1970-01-01T00:00:05Z}}\n");
  ASSERT_EQ(in.pods.size(), 1u) << "the one whose node is missing";
  EXPECT_EQ(in.pods[0].node_name, "gone");
  EXPECT_EQ(in.counts.finished_pods, 1u);
  EXPECT_EQ(in.counts.stray_pods, 1u);
  EXPECT_EQ(in.warnings.size(), 1u);
}

TEST(Manifest, NotesAreBounded) {
  std::string text;
  for (int i = 0; i < 1200; ++i) {
    text += "---\n{apiVersion: v1, kind: Secret, metadata: {name: s" + std::to_string(i) + "}}\n";
  }
  const Inputs in = read(text);
  EXPECT_EQ(in.ignored.size(), kMaxNotes);
  EXPECT_EQ(in.counts.ignored, 1200u);
}

TEST(Manifest, JobPodsAreBounded) {
  ManifestReader reader({.max_job_pods = 10});
  for (const char* name : {"a", "b", "c"}) {
    add_yaml(reader, "{apiVersion: batch/v1, kind: Job, metadata: {name: " + std::string(name) +
                         "}, spec: {parallelism: 5, template: {spec: {restartPolicy: Never, "
                         "containers: [{name: c}]}}}}");
  }
  const Inputs in = reader.finish();
  EXPECT_EQ(in.pods.size(), 10u);
  EXPECT_EQ(in.invalid.size(), 1u);
}

TEST(Manifest, HostileNamesAreSafeToPrint) {
  const Inputs in = read("{apiVersion: v1, kind: \"Ev\\e[31mil\", metadata: {name: \"a\\nb\"}}");
  ASSERT_EQ(in.ignored.size(), 1u);
  EXPECT_EQ(in.ignored[0].object.find('\x1b'), std::string::npos);
  EXPECT_EQ(in.ignored[0].object.find('\n'), std::string::npos);
}

// The order of the documents does not matter.
TEST(Manifest, OrderDoesNotMatter) {
  const std::vector<std::string> texts = {
      small_pod("a", ", annotations: {pod-group-name: g, berth.dev/topology-required: rack}"),
      small_pod("b", ", annotations: {pod-group-name: g, berth.dev/topology-required: zone}"),
      small_pod("a", ", labels: {second: x}"),
      "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}, spec: "
      "{minMember: 2}}",
      "{apiVersion: v1, kind: Node, metadata: {name: n0, labels: {x: w}}, status: {allocatable: "
      "{pods: 3, nvidia.com/gpu: 2}}}",
      "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 2, template: "
      "{spec: {restartPolicy: Never, priorityClassName: p, containers: [{name: c}]}}}}",
      "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: p}, value: 3}",
      "{apiVersion: v1, kind: Secret, metadata: {name: s}}"};
  std::vector<std::size_t> order = {0, 1, 2, 3, 4, 5, 6, 7};
  const auto read_in = [&](const std::vector<std::size_t>& o) {
    ManifestReader reader;
    for (const std::size_t i : o) add_yaml(reader, texts[i], "f" + std::to_string(i));
    return reader.finish();
  };
  const Inputs want = read_in(order);
  EXPECT_EQ(want.pods.size(), 4u);
  EXPECT_EQ(want.invalid.size(), 1u);
  for (int turn = 0; turn < 8; ++turn) {
    std::rotate(order.begin(), order.begin() + 3, order.end());
    if (turn % 2 == 1) std::reverse(order.begin(), order.end());
    const Inputs got = read_in(order);
    EXPECT_EQ(got.pods, want.pods);
    EXPECT_EQ(got.gangs, want.gangs);
    EXPECT_EQ(got.nodes, want.nodes);
    EXPECT_EQ(got.invalid, want.invalid);
    EXPECT_EQ(got.warnings, want.warnings);
    EXPECT_EQ(got.ignored, want.ignored);
  }
}

// What a cluster prints of a running pod and its node gives no warning.
TEST(Manifest, DumpsAreClean) {
  const Inputs in = read_clean(R"(
apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- apiVersion: v1
  kind: Pod
  metadata:
    annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}
    creationTimestamp: "2026-01-02T03:04:05Z"
    finalizers: [batch.kubernetes.io/job-tracking]
    generateName: web-
    generation: 1
    labels: {app: web, pod-template-hash: 5f}
    managedFields: [{apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:metadata": {}}, manager: k,
                     operation: Update, time: "2026-01-02T03:04:05Z"}]
    name: web-5f-abc
    namespace: prod
    ownerReferences: [{apiVersion: apps/v1, blockOwnerDeletion: true, controller: true,
                       kind: ReplicaSet, name: web-5f, uid: u0}]
    resourceVersion: "123"
    uid: u1
  spec:
    activeDeadlineSeconds: 100
    affinity: {}
    automountServiceAccountToken: true
    containers:
    - args: [a]
      command: [b]
      env: [{name: A, value: b}]
      envFrom: [{configMapRef: {name: x}}]
      image: nginx
      imagePullPolicy: IfNotPresent
      lifecycle: {}
      livenessProbe: {httpGet: {path: /, port: 80}}
      name: web
      ports: [{containerPort: 80, name: http, protocol: TCP}]
      readinessProbe: {}
      resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]
      resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: 500m, memory: 1Gi}}
      securityContext: {runAsNonRoot: true}
      startupProbe: {}
      stdin: true
      stdinOnce: true
      terminationMessagePath: /dev/termination-log
      terminationMessagePolicy: File
      tty: true
      volumeDevices: []
      volumeMounts: [{mountPath: /x, name: kube-api-access-1, readOnly: true}]
      workingDir: /
    dnsPolicy: ClusterFirst
    enableServiceLinks: true
    hostIPC: false
    hostNetwork: false
    hostPID: false
    hostUsers: true
    hostname: h
    imagePullSecrets: [{name: s}]
    nodeName: n1
    os: {name: linux}
    preemptionPolicy: PreemptLowerPriority
    priority: 0
    readinessGates: []
    restartPolicy: Always
    runtimeClassName: nvidia
    schedulerName: default-scheduler
    securityContext: {}
    serviceAccount: default
    serviceAccountName: default
    setHostnameAsFQDN: false
    shareProcessNamespace: false
    subdomain: s
    terminationGracePeriodSeconds: 30
    tolerations:
    - {effect: NoExecute, key: node.kubernetes.io/not-ready, operator: Exists,
       tolerationSeconds: 300}
    volumes:
    - name: kube-api-access-1
      projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: token}}]}
  status:
    conditions: [{lastProbeTime: null, status: "True", type: Ready, observedGeneration: 1}]
    containerStatuses: [{containerID: x, image: nginx, ready: true}]
    hostIP: 10.0.0.1
    hostIPs: [{ip: 10.0.0.1}]
    phase: Running
    podIP: 10.1.0.1
    qosClass: Burstable
    startTime: "2026-01-02T03:04:06Z"
- apiVersion: v1
  kind: Node
  metadata:
    annotations: {node.alpha.kubernetes.io/ttl: "0"}
    creationTimestamp: "2026-01-01T00:00:00Z"
    labels: {kubernetes.io/hostname: n1, nvidia.com/gpu.present: "false"}
    name: n1
    uid: u2
  spec: {podCIDR: 10.1.0.0/24, podCIDRs: [10.1.0.0/24], providerID: "x://y"}
  status:
    addresses: [{address: 10.0.0.1, type: InternalIP}]
    allocatable: {cpu: "8", ephemeral-storage: "47093746742", hugepages-1Gi: "0", memory: 32Gi,
                  pods: "110"}
    capacity: {cpu: "8", ephemeral-storage: 51Gi, hugepages-1Gi: "0", memory: 33Gi, pods: "110"}
    conditions: [{lastHeartbeatTime: "2026-01-01T00:00:00Z", reason: KubeletReady,
                  status: "True", type: Ready}]
    daemonEndpoints: {kubeletEndpoint: {Port: 10250}}
    images: [{names: [a], sizeBytes: 1}]
    nodeInfo: {architecture: amd64}
    volumesInUse: []
)");
  ASSERT_EQ(in.pods.size(), 1u);
  EXPECT_EQ(in.pods[0].node_name, "n1");
  EXPECT_TRUE(in.pods[0].service);
  EXPECT_EQ(in.pods[0].started_ns - in.pods[0].created_ns, 1'000'000'000);
  EXPECT_TRUE(in.nodes.at(0).ready);
}

}  // namespace
}  // namespace berth::kinds
