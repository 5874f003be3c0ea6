#include "rules/quota.h"

#include <gtest/gtest.h>

#include "text/yaml.h"

namespace berth::rules {
namespace {

text::Document read_yaml(std::string_view yaml) {
  auto parsed = text::parse_yaml(yaml);
  EXPECT_TRUE(parsed.ok() && parsed->size() == 1) << yaml;
  return parsed.ok() && !parsed->empty() ? std::move(parsed->front()) : text::Document();
}

std::string usage(std::string_view resource, std::string_view yaml, std::int64_t now_ns = 0) {
  const text::Document object = read_yaml(yaml);
  return listed(usage_of(resource, object.root(), now_ns));
}

TEST(Quota, LinesAreOfOneKindOfObjects) {
  for (const char* line : {"pods", "count/pods", "cpu", "requests.cpu", "limits.memory",
                           "requests.nvidia.com/gpu", "hugepages-2Mi", "requests.hugepages-1Gi",
                           "requests.deviceclass.resource.kubernetes.io/gpu"}) {
    EXPECT_TRUE(counts_on(line, "pods")) << line;
    EXPECT_FALSE(counts_on(line, "services")) << line;
  }
  for (const char* line : {"nvidia.com/gpu", "limits.nvidia.com/gpu", "requests.storage", "secrets",
                           "count/jobs.batch", "requests.example"}) {
    EXPECT_FALSE(counts_on(line, "pods")) << line;
  }
  EXPECT_TRUE(counts_on("count/jobs.batch", "jobs.batch"));
  EXPECT_TRUE(counts_on("secrets", "secrets"));
  EXPECT_FALSE(counts_on("deployments", "deployments.apps"));
  EXPECT_TRUE(counts_on("requests.storage", "persistentvolumeclaims"));
  EXPECT_TRUE(
      counts_on("gold.storageclass.storage.k8s.io/requests.storage", "persistentvolumeclaims"));
  EXPECT_TRUE(counts_on("services.nodeports", "services"));
  EXPECT_FALSE(is_counted("events"));
}

TEST(Quota, WhatAPodTakes) {
  constexpr const char* kPod = R"(
spec:
  overhead: {cpu: 100m}
  initContainers:
  - {name: big, resources: {requests: {cpu: 3, memory: 1Gi}}}
  - {name: side, restartPolicy: Always, resources: {requests: {cpu: 500m}}}
  containers:
  - name: main
    resources: {limits: {nvidia.com/gpu: 2, memory: 2Gi}, requests: {cpu: 1, example: 4}}
)";
  EXPECT_EQ(usage("pods", kPod),
            "count/pods=1,cpu=3100m,limits.memory=2Gi,memory=2Gi,pods=1,requests.cpu=3100m,"
            "requests.memory=2Gi,requests.nvidia.com/gpu=2");
  EXPECT_EQ(usage("pods", "status: {phase: Failed}"), "count/pods=1");
  // What a lost node does not let go is not charged for ever: thirty seconds after it should have
  // been gone it is not.
  constexpr const char* kGoing =
      "metadata: {deletionTimestamp: '1970-01-01T00:01:00Z', deletionGracePeriodSeconds: 30}";
  EXPECT_EQ(usage("pods", kGoing, 90'000'000'000), "count/pods=1,pods=1");
  EXPECT_EQ(usage("pods", kGoing, 90'000'000'001), "count/pods=1");
}

TEST(Quota, APodInTheMiddleOfAResizeHasTheMostOfWhatIsSaid) {
  constexpr const char* kPod = R"(
spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}
status:
  containerStatuses: [{name: c, allocatedResources: {cpu: 2}, resources: {requests: {cpu: 3}}}]
)";
  EXPECT_EQ(usage("pods", kPod), "count/pods=1,cpu=3,pods=1,requests.cpu=3");
  EXPECT_EQ(usage("pods", std::string(kPod) +
                              "  conditions: [{type: PodResizePending, reason: Infeasible}]\n"),
            "count/pods=1,cpu=3,pods=1,requests.cpu=3");
  constexpr const char* kShrunk = R"(
spec: {containers: [{name: c, resources: {requests: {cpu: 9}}}]}
status:
  conditions: [{type: PodResizePending, reason: Infeasible}]
  containerStatuses: [{name: c, allocatedResources: {cpu: 2}}]
)";
  EXPECT_EQ(usage("pods", kShrunk), "count/pods=1,cpu=2,pods=1,requests.cpu=2");
}

TEST(Quota, WhatOthersTake) {
  EXPECT_EQ(usage("jobs.batch", "{}"), "count/jobs.batch=1");
  EXPECT_EQ(usage("secrets", "{}"), "count/secrets=1,secrets=1");
  EXPECT_EQ(usage("services", "spec: {type: LoadBalancer, ports: [{port: 1}, {port: 2}]}"),
            "count/services=1,services=1,services.loadbalancers=1,services.nodeports=2");
  EXPECT_EQ(usage("services",
                  "spec: {type: LoadBalancer, allocateLoadBalancerNodePorts: false, "
                  "ports: [{port: 1}, {port: 2, nodePort: 30000}]}"),
            "count/services=1,services=1,services.loadbalancers=1,services.nodeports=1");
  EXPECT_EQ(usage("persistentvolumeclaims",
                  "spec: {storageClassName: gold, resources: {requests: {storage: 1.5Gi}}}"),
            "count/persistentvolumeclaims=1,"
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,"
            "gold.storageclass.storage.k8s.io/requests.storage=1536Mi,persistentvolumeclaims=1,"
            "requests.storage=1536Mi");
}

TEST(Quota, WhatClaimsTakeOfDeviceClasses) {
  EXPECT_EQ(usage("resourceclaims.resource.k8s.io", R"(
spec:
  devices:
    requests:
      - {exactly: {deviceClassName: a, allocationMode: ExactCount, count: 2}}
      - {exactly: {deviceClassName: a, allocationMode: ExactCount, count: 1}}
      - {exactly: {deviceClassName: all, allocationMode: All}}
      - firstAvailable:
          - {deviceClassName: b, allocationMode: ExactCount, count: 1}
          - {deviceClassName: b, allocationMode: ExactCount, count: 4}
          - {deviceClassName: c, allocationMode: ExactCount, count: 8}
)"),
            "a.deviceclass.resource.k8s.io/devices=3,all.deviceclass.resource.k8s.io/devices=32,"
            "b.deviceclass.resource.k8s.io/devices=4,c.deviceclass.resource.k8s.io/devices=8,"
            "count/resourceclaims.resource.k8s.io=1");
  constexpr const char* kLine = "a.deviceclass.resource.k8s.io/devices";
  EXPECT_TRUE(counts_on(kLine, "resourceclaims.resource.k8s.io"));
  EXPECT_FALSE(counts_on(kLine, "pods"));
}

TEST(Quota, Scopes) {
  struct Case {
    const char* scopes;
    const char* pod;
    bool in;
  };
  const Case cases[] = {
      {"scopes: [BestEffort]", "spec: {containers: [{resources: {limits: {gpu: 1}}}]}", true},
      {"scopes: [NotBestEffort]", "spec: {containers: [{resources: {limits: {cpu: 1}}}]}", true},
      {"scopes: [BestEffort]", "{spec: {}, status: {qosClass: Burstable}}", false},
      {"scopes: [Terminating]", "spec: {activeDeadlineSeconds: 5}", true},
      {"scopes: [NotTerminating]", "spec: {activeDeadlineSeconds: 5}", false},
      {"scopes: [Terminating, BestEffort]", "spec: {}", false},
      {"scopes: [PriorityClass]", "spec: {priorityClassName: high}", true},
      {"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, "
       "values: [high]}]}",
       "spec: {priorityClassName: high}", true},
      {"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, "
       "values: [high]}]}",
       "spec: {}", false},
      {"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: NotIn, "
       "values: [high]}]}",
       "spec: {}", true},
      {"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: DoesNotExist}]}",
       "spec: {}", true},
      {"scopes: [CrossNamespacePodAffinity]",
       "spec: {affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
       "[{podAffinityTerm: {namespaces: [a]}}]}}}",
       true},
  };
  for (const Case& c : cases) {
    const text::Document quota = read_yaml("spec: {" + std::string(c.scopes) + "}");
    const text::Document pod = read_yaml(c.pod);
    EXPECT_EQ(in_scopes(quota.root(), "pods", pod.root()), c.in) << c.scopes << " " << c.pod;
    EXPECT_FALSE(in_scopes(quota.root(), "secrets", pod.root()));
  }
}

TEST(Quota, Sentences) {
  const text::Document spec = read_yaml(R"(
containers: [{name: b}, {name: a}, {name: c, resources: {limits: {cpu: 1, memory: 1Gi}}}]
initContainers: [{name: i, resources: {requests: {cpu: 1}}}]
)");
  const Sums hard = {{"cpu", text::Quantity::from_units(4)},
                     {"limits.memory", text::Quantity::from_units(4)},
                     {"pods", text::Quantity::from_units(4)}};
  EXPECT_EQ(unstated("q", hard, spec.root()),
            "failed quota: q: must specify cpu for: a,b; limits.memory for: a,b,i");
  EXPECT_EQ(silent_on("cpu", spec.root()), (std::vector<std::string>{"b", "a"}));
  const text::Document whole =
      read_yaml("{resources: {limits: {cpu: 1}}, containers: [{name: a}]}");
  EXPECT_EQ(unstated("q", hard, whole.root()), "");
  const Sums used = {{"cpu", text::Quantity::from_milli(3500)},
                     {"pods", text::Quantity::from_units(3)}};
  const Sums more = {{"cpu", text::Quantity::from_units(1)},
                     {"pods", text::Quantity::from_units(1)},
                     {"secrets", text::Quantity::from_units(1)}};
  EXPECT_EQ(exceeded("q", hard, used, more),
            "exceeded quota: q, requested: cpu=1, used: cpu=3500m, limited: cpu=4");
  EXPECT_EQ(exceeded("q", hard, {}, more), "");
  // Used above a bound that was lowered: what takes nothing of it is let be.
  EXPECT_EQ(exceeded("q", {{"cpu", {}}}, used, {{"cpu", {}}}), "");
}

}  // namespace
}  // namespace berth::rules
