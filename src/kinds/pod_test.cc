#include "kinds/read_for_test.h"

namespace berth::kinds {
namespace {

using model::Amounts;
using ::testing::Test;

// ---- effective requests ----
struct RequestCase {
  const char* name;
  const char* spec;
  Amounts want;
};

class RequestTest : public ::testing::TestWithParam<RequestCase> {};

TEST_P(RequestTest, Effective) { EXPECT_EQ(clean_pod(GetParam().spec).requests, GetParam().want); }

INSTANTIATE_TEST_SUITE_P(
    Table, RequestTest,
    ::testing::Values(
        RequestCase{"none", "", {}},
        RequestCase{"sum",
                    "  containers:\n"
                    "  - {name: a, resources: {requests: {cpu: 100m, memory: 1Gi}}}\n"
                    "  - {name: b, resources: {requests: {cpu: 1, memory: 1Mi}}}\n",
                    {{"cpu", 1100}, {"memory", (1 << 30) + (1 << 20)}}},
        RequestCase{"milli_rounds_up",
                    "  containers: [{name: a, resources: {requests: {cpu: 0.0001, "
                    "memory: 1500m}}}]\n",
                    {{"cpu", 1}, {"memory", 2}}},
        RequestCase{"limits_stand_in",
                    "  containers: [{name: a, resources: {limits: {cpu: 2, memory: 1Ki}, "
                    "requests: {cpu: 1}}}]\n",
                    {{"cpu", 1000}, {"memory", 1024}}},
        RequestCase{"init_max",
                    "  initContainers:\n"
                    "  - {name: i, resources: {requests: {cpu: 3}}}\n"
                    "  - {name: j, resources: {requests: {memory: 5}}}\n"
                    "  containers:\n"
                    "  - {name: a, resources: {requests: {cpu: 1, memory: 9}}}\n",
                    {{"cpu", 3000}, {"memory", 9}}},
        RequestCase{"sidecar_counts_from_its_place",
                    "  initContainers:\n"
                    "  - {name: i, resources: {requests: {cpu: 4}}}\n"
                    "  - {name: s, restartPolicy: Always, resources: {requests: {cpu: 1}}}\n"
                    "  - {name: j, resources: {requests: {cpu: 4}}}\n"
                    "  containers:\n"
                    "  - {name: a, resources: {requests: {cpu: 1}}}\n",
                    {{"cpu", 5000}}},
        RequestCase{"sidecar_adds_to_apps",
                    "  initContainers:\n"
                    "  - {name: s, restartPolicy: Always, resources: {requests: {cpu: 2}}}\n"
                    "  containers:\n"
                    "  - {name: a, resources: {requests: {cpu: 3}}}\n",
                    {{"cpu", 5000}}},
        RequestCase{"overhead",
                    "  overhead: {cpu: 250m, memory: 64}\n"
                    "  containers: [{name: a, resources: {requests: {cpu: 1}}}]\n",
                    {{"cpu", 1250}, {"memory", 64}}},
        RequestCase{"pod_level_request_wins",
                    "  resources: {requests: {cpu: 4}}\n"
                    "  containers: [{name: a, resources: {requests: {cpu: 1, memory: 7}}}]\n",
                    {{"cpu", 4000}, {"memory", 7}}},
        RequestCase{"pod_level_limit_only_where_nobody_asks",
                    "  resources: {limits: {cpu: 4, memory: 9}}\n"
                    "  containers: [{name: a, resources: {requests: {cpu: 1}}}]\n",
                    {{"cpu", 1000}, {"memory", 9}}},
        RequestCase{"extended",
                    "  containers: [{name: a, resources: {limits: {rdma/hca_a: 2, "
                    "nvidia.com/rdma_shared_device_a: 1}}}]\n",
                    {{"nvidia.com/rdma_shared_device_a", 1}, {"rdma/hca_a", 2}}}),
    [](const auto& suite) { return suite.param.name; });

// ---- errors, with their path ----
struct ErrorCase {
  const char* name;
  const char* spec;
  const char* want;  // part of what is said
};

class PodErrorTest : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(PodErrorTest, Says) {
  const std::string errors = pod_errors(GetParam().spec);
  EXPECT_NE(errors.find(GetParam().want), std::string::npos) << errors;
}

INSTANTIATE_TEST_SUITE_P(
    Table, PodErrorTest,
    ::testing::Values(
        ErrorCase{"negative", "  containers: [{name: a, resources: {requests: {cpu: -1}}}]\n",
                  "spec.containers[0].resources.requests.cpu: found number -1"},
        ErrorCase{"overflow", "  containers: [{name: a, resources: {requests: {memory: 100Ei}}}]\n",
                  "spec.containers[0].resources.requests.memory: found string \"100Ei\", want at"},
        ErrorCase{"sum_overflow",
                  "  containers:\n"
                  "  - {name: a, resources: {requests: {memory: 5Pi}}}\n"
                  "  - {name: b, resources: {requests: {memory: 5Pi}}}\n",
                  "spec: found requests that add up"},
        ErrorCase{"malformed", "  containers: [{name: a, resources: {requests: {cpu: lots}}}]\n",
                  "requests.cpu: found string \"lots\", want a quantity"},
        ErrorCase{"above_limit",
                  "  containers: [{name: a, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]\n",
                  "requests.cpu: found number 2, want at most the limit of 1"},
        ErrorCase{"extended_differs",
                  "  containers: [{name: a, resources: {requests: {x.io/y: 2}, "
                  "limits: {x.io/y: 3}}}]\n",
                  "requests[\"x.io/y\"]: found number 2, want the limit of 3"},
        ErrorCase{"extended_without_limit",
                  "  containers: [{name: a, resources: {requests: {x.io/y: 2}}}]\n",
                  "found a request without a limit"},
        ErrorCase{"extended_fraction",
                  "  containers: [{name: a, resources: {limits: {x.io/y: 500m}}}]\n",
                  "found string \"500m\", want a whole number"},
        ErrorCase{"pod_level_gpu", "  resources: {limits: {nvidia.com/gpu: 1}}\n",
                  "spec.resources.limits[\"nvidia.com/gpu\"]: found a resource that only"},
        ErrorCase{"no_containers", "  containers: []\n", "spec.containers: found no containers"},
        ErrorCase{"restart_policy", "  restartPolicy: Sometimes\n", "spec.restartPolicy"},
        ErrorCase{"host_port_differs",
                  "  hostNetwork: true\n"
                  "  containers: [{name: a, ports: [{containerPort: 80, hostPort: 81}]}]\n",
                  "want the containerPort 80"},
        ErrorCase{"port_range", "  containers: [{name: a, ports: [{containerPort: 70000}]}]\n",
                  "spec.containers[0].ports[0].containerPort"},
        ErrorCase{"protocol",
                  "  containers: [{name: a, ports: [{containerPort: 1, protocol: ICMP}]}]\n",
                  "one of TCP, UDP, SCTP"},
        ErrorCase{"toleration_no_key", "  tolerations: [{value: x}]\n",
                  "spec.tolerations[0]: found no key"},
        ErrorCase{"toleration_exists_value",
                  "  tolerations: [{key: a, operator: Exists, value: x}]\n",
                  "spec.tolerations[0].value"},
        ErrorCase{"toleration_seconds",
                  "  tolerations: [{key: a, operator: Exists, tolerationSeconds: 3}]\n",
                  "the effect NoExecute"},
        ErrorCase{"toleration_effect", "  tolerations: [{key: a, effect: Never}]\n",
                  "spec.tolerations[0].effect"},
        ErrorCase{"affinity_no_terms",
                  "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                  "{nodeSelectorTerms: []}}}\n",
                  "nodeSelectorTerms: found an empty array"},
        ErrorCase{"affinity_field",
                  "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                  "{nodeSelectorTerms: [{matchFields: [{key: spec.x, operator: In, values: "
                  "[a]}]}]}}}\n",
                  "metadata.name, the only field"},
        ErrorCase{"affinity_weight",
                  "  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
                  "[{weight: 101, preference: {}}]}}\n",
                  "[0].weight: found number 101"},
        ErrorCase{"pod_affinity_no_key",
                  "  affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                  "[{labelSelector: {}}]}}\n",
                  "topologyKey"},
        ErrorCase{"spread_skew",
                  "  topologySpreadConstraints: [{maxSkew: 0, topologyKey: z, "
                  "whenUnsatisfiable: DoNotSchedule}]\n",
                  "topologySpreadConstraints[0].maxSkew"},
        ErrorCase{"spread_min_domains",
                  "  topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, minDomains: 2, "
                  "whenUnsatisfiable: ScheduleAnyway}]\n",
                  "minDomains only with DoNotSchedule"},
        ErrorCase{"unknown_class", "  priorityClassName: gold\n",
                  "spec.priorityClassName: found \"gold\", want a PriorityClass"},
        ErrorCase{"preemption_policy", "  preemptionPolicy: Maybe\n", "spec.preemptionPolicy"}),
    [](const auto& suite) { return suite.param.name; });

TEST(Pod, EveryErrorOfAnObjectIsTold) {
  const Inputs in =
      read(pod_yaml("  restartPolicy: X\n  tolerations: [{value: x}]\n  nodeName: 3\n"));
  EXPECT_EQ(in.invalid.size(), 3u) << all(in.invalid);
  EXPECT_EQ(in.counts.invalid_objects, 1u);
  EXPECT_GT(in.invalid[0].line, 0);
}

TEST(Pod, UnknownFieldsWarnWithTheirPath) {
  const Inputs in = read(pod_yaml("  containres: []\n"));
  ASSERT_EQ(in.pods.size(), 1u);
  EXPECT_NE(all(in.warnings).find("spec.containres"), std::string::npos) << all(in.warnings);
}

// ---- the rest ----
TEST(Pod, Tolerations) {
  const auto pod = clean_pod(
      "  tolerations:\n"
      "  - {key: a, value: b, effect: NoSchedule}\n"
      "  - {operator: Exists}\n"
      "  - {key: c, operator: Exists, effect: NoExecute, tolerationSeconds: 300}\n");
  using T = model::Toleration;
  const std::vector<T> want = {{"a", T::Op::kEqual, "b", model::TaintEffect::kNoSchedule},
                               {"", T::Op::kExists, "", std::nullopt},
                               {"c", T::Op::kExists, "", model::TaintEffect::kNoExecute}};
  EXPECT_EQ(pod.tolerations, want);
}

TEST(Pod, NumericTolerationsAreLeftOut) {
  const Inputs in = read(pod_yaml("  tolerations: [{key: a, operator: Gt, value: '5'}]\n"));
  ASSERT_EQ(in.pods.size(), 1u);
  EXPECT_TRUE(in.pods[0].tolerations.empty());
  EXPECT_EQ(in.warnings.size(), 1u);
}

TEST(Pod, HostPorts) {
  const auto pod = clean_pod(
      "  initContainers: [{name: s, restartPolicy: Always, ports: [{containerPort: 9, "
      "hostPort: 9}]}, {name: i, ports: [{containerPort: 8, hostPort: 8}]}]\n"
      "  containers:\n"
      "  - {name: a, ports: [{containerPort: 80, hostPort: 8080, hostIP: 10.0.0.1}, "
      "{containerPort: 81}, {containerPort: 53, hostPort: 53, protocol: UDP}]}\n");
  const std::vector<model::HostPort> want = {
      {"TCP", "0.0.0.0", 9}, {"TCP", "10.0.0.1", 8080}, {"UDP", "0.0.0.0", 53}};
  EXPECT_EQ(pod.host_ports, want);
  const auto host =
      clean_pod("  hostNetwork: true\n  containers: [{name: a, ports: [{containerPort: 80}]}]\n");
  EXPECT_EQ(host.host_ports, (std::vector<model::HostPort>{{"TCP", "0.0.0.0", 80}}));
}

TEST(Pod, NodeAffinity) {
  const auto pod = clean_pod(R"(
  nodeSelector: {disk: ssd}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: gpu, operator: Gt, values: ["3"]}]
          matchFields: [{key: metadata.name, operator: NotIn, values: [n1]}]
        - {}
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 7, preference: {matchExpressions: [{key: z, operator: Exists}]}}
)");
  ASSERT_EQ(pod.required_nodes.size(), 2u);
  EXPECT_EQ(pod.required_nodes[0].labels, (text::Selector{{"gpu", text::Operator::kGt, {"3"}}}));
  EXPECT_EQ(pod.required_nodes[0].fields,
            (text::Selector{{"metadata.name", text::Operator::kNotIn, {"n1"}}}));
  EXPECT_TRUE(pod.required_nodes[1].labels.empty());
  ASSERT_EQ(pod.preferred_nodes.size(), 1u);
  EXPECT_EQ(pod.preferred_nodes[0].weight, 7);
  EXPECT_EQ(pod.node_selector, (model::Labels{{"disk", "ssd"}}));
}

std::string anti_affinity(const char* term) {
  return "  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" +
         std::string(term) + "]}}\n";
}

TEST(Pod, AffinityNamespaces) {
  const char* meta = "  namespace: a\n  labels: {app: x, rev: '2'}\n";
  const auto term = [&](const char* text) {
    return clean_pod(anti_affinity(text), meta).anti_affinity.at(0);
  };
  using Strings = std::vector<std::string>;
  auto own = term("{topologyKey: k, labelSelector: {matchLabels: {app: x}}}");
  EXPECT_EQ(own.pods.namespaces, Strings{"a"});
  EXPECT_FALSE(own.pods.match_nothing);
  EXPECT_TRUE(term("{topologyKey: k}").pods.match_nothing);
  EXPECT_TRUE(term("{topologyKey: k, namespaceSelector: {}}").pods.all_namespaces);
  EXPECT_EQ(term("{topologyKey: k, namespaces: [c, b, c]}").pods.namespaces, (Strings{"b", "c"}));
  EXPECT_EQ(term("{topologyKey: k, namespaceSelector: {matchLabels: "
                 "{kubernetes.io/metadata.name: q}}}")
                .pods.namespaces,
            Strings{"q"});
  const auto keys = term(
      "{topologyKey: k, labelSelector: {}, matchLabelKeys: [rev, none], mismatchLabelKeys: [app]}");
  EXPECT_EQ(keys.pods.selector, (text::Selector{{"rev", text::Operator::kIn, {"2"}},
                                                {"app", text::Operator::kNotIn, {"x"}}}));
}

TEST(Pod, OtherNamespaceSelectorsErrToTheStrictSide) {
  const char* term =
      "{topologyKey: k, labelSelector: {}, namespaceSelector: {matchLabels: {t: u}}}";
  Inputs in = read(pod_yaml(anti_affinity(term)));
  ASSERT_EQ(in.pods.size(), 1u);
  EXPECT_TRUE(in.pods[0].anti_affinity.at(0).pods.all_namespaces);
  EXPECT_EQ(in.warnings.size(), 1u);
  in =
      read(pod_yaml("  affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" +
                    std::string(term) + "]}}\n"));
  EXPECT_FALSE(in.pods.at(0).affinity.at(0).pods.all_namespaces);
  EXPECT_EQ(in.pods[0].affinity[0].pods.namespaces, std::vector<std::string>{"default"});
}

TEST(Pod, Spread) {
  const auto pod = clean_pod(R"(
  topologySpreadConstraints:
  - {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 3,
     labelSelector: {matchLabels: {app: x}}, matchLabelKeys: [rev],
     nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor}
  - {maxSkew: 1, topologyKey: host, whenUnsatisfiable: ScheduleAnyway}
)",
                             "  labels: {rev: r1}\n");
  ASSERT_EQ(pod.spread.size(), 2u);
  const auto& hard = pod.spread[0];
  EXPECT_EQ(hard.max_skew, 2);
  EXPECT_EQ(hard.min_domains, 3);
  EXPECT_TRUE(hard.hard);
  EXPECT_FALSE(hard.honor_affinity);
  EXPECT_TRUE(hard.honor_taints);
  EXPECT_EQ(hard.pods.selector, (text::Selector{{"app", text::Operator::kIn, {"x"}},
                                                {"rev", text::Operator::kIn, {"r1"}}}));
  EXPECT_FALSE(pod.spread[1].hard);
  EXPECT_TRUE(pod.spread[1].pods.match_nothing);
}

TEST(Pod, OwnerServiceTimesGates) {
  const auto pod = clean_pod("  schedulingGates: [{name: g}]\n",
                             "  creationTimestamp: 1970-01-01T00:00:01Z\n"
                             "  deletionTimestamp: 1970-01-01T00:00:09Z\n"
                             "  uid: u1\n"
                             "  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, "
                             "name: web-6f, uid: x, controller: true}]\n");
  EXPECT_EQ(pod.owner, "ReplicaSet/web-6f");
  EXPECT_TRUE(pod.service);
  EXPECT_TRUE(pod.gated);
  EXPECT_TRUE(pod.terminating);
  EXPECT_EQ(pod.created_ns, 1'000'000'000);
  EXPECT_EQ(pod.uid, "u1");
  EXPECT_FALSE(clean_pod("").service);
  EXPECT_FALSE(
      clean_pod("", "  ownerReferences: [{kind: Job, name: j, controller: true}]\n").service);
}

TEST(Pod, Priorities) {
  const std::string classes =
      "---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: gold}, "
      "value: 1000, preemptionPolicy: Never}\n"
      "---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: base}, "
      "value: 5, globalDefault: true}\n";
  const auto with = [&](const char* spec) {
    return read_clean(pod_yaml(spec) + classes).pods.at(0);
  };
  EXPECT_EQ(with("").priority, 5);
  EXPECT_EQ(with("").priority_class, "base");
  EXPECT_EQ(with("  priorityClassName: gold\n").priority, 1000);
  EXPECT_FALSE(with("  priorityClassName: gold\n").preempts);
  EXPECT_TRUE(
      with("  priorityClassName: gold\n  preemptionPolicy: PreemptLowerPriority\n").preempts);
  EXPECT_EQ(with("  priorityClassName: system-node-critical\n").priority, 2'000'001'000);
  EXPECT_EQ(with("  priorityClassName: elsewhere\n  priority: 77\n").priority, 77);
  EXPECT_EQ(clean_pod("").priority, 0);
}

}  // namespace
}  // namespace berth::kinds
