#include "objects/kueue_convert.h"

#include <gtest/gtest.h>

#include "objects/kueue_workload.h"
#include "text/json.h"
#include "text/yaml.h"

namespace berth::objects {
namespace {

text::Document document(const std::string& yaml) {
  auto read = text::parse_yaml(yaml);
  EXPECT_TRUE(read.ok());
  return std::move(read->front());
}
text::Document converted(const text::Document& from, KueueVersion to) {
  auto read = text::parse_json(convert_kueue(from.root(), to));
  EXPECT_TRUE(read.ok());
  return std::move(*read);
}

constexpr const char* kQueue1 = R"(
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team}
spec:
  cohort: org
  namespaceSelector: {}
  admissionChecks: [prov]
  flavorFungibility: {whenCanBorrow: Borrow, whenCanPreempt: Preempt}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: f, resources: [{name: cpu, nominalQuota: 4, borrowingLimit: 2}]}]
)";

TEST(KueueConvert, AQueueReadsTheSameInBothVersions) {
  const text::Document first = document(kQueue1);
  const text::Document second = converted(first, KueueVersion::kV1beta2);
  EXPECT_EQ(second.root().find("apiVersion")->string(), "kueue.x-k8s.io/v1beta2");
  EXPECT_EQ(second.root().find("spec")->find("cohort"), nullptr);
  const text::Document back = converted(second, KueueVersion::kV1beta1);
  model::QueueSpec a, b, c;
  text::Decoder d;
  decode_cluster_queue(first.root(), KueueVersion::kV1beta1, a, d);
  decode_cluster_queue(second.root(), KueueVersion::kV1beta2, b, d);
  decode_cluster_queue(back.root(), KueueVersion::kV1beta1, c, d);
  EXPECT_TRUE(d.ok());
  EXPECT_TRUE(d.issues().empty());  // no field of the other version is left
  EXPECT_EQ(a, b);
  EXPECT_EQ(a, c);
  EXPECT_EQ(b.checks.size(), 1u);
}

constexpr const char* kWorkload1 = R"(
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: w, namespace: d}
spec:
  queueName: q
  priorityClassName: high
  priorityClassSource: kueue.x-k8s.io/workloadpriorityclass
  podSets:
  - name: main
    count: 3
    template: {spec: {containers: [{name: c, image: x}]}}
status:
  conditions: [{type: QuotaReserved, status: "True", reason: QuotaReserved}]
  accumulatedPastExexcutionTimeSeconds: 7
  admission:
    clusterQueue: team
    podSetAssignments:
    - name: main
      count: 3
      flavors: {cpu: f}
      resourceUsage: {cpu: "3"}
      topologyAssignment:
        levels: [rack, kubernetes.io/hostname]
        domains: [{values: [r1, n1], count: 2}, {values: [r2, n5], count: 1}]
)";

TEST(KueueConvert, AWorkloadReadsTheSameInBothVersions) {
  const text::Document first = document(kWorkload1);
  const text::Document second = converted(first, KueueVersion::kV1beta2);
  const text::Document back = converted(second, KueueVersion::kV1beta1);
  WorkloadObject a, b, c;
  text::Decoder d;
  decode_workload(first.root(), KueueVersion::kV1beta1, a, d);
  decode_workload(second.root(), KueueVersion::kV1beta2, b, d);
  decode_workload(back.root(), KueueVersion::kV1beta1, c, d);
  EXPECT_TRUE(d.ok());
  for (const WorkloadObject* other : {&b, &c}) {
    EXPECT_EQ(a.priority_class, other->priority_class);
    EXPECT_EQ(a.pod_class, other->pod_class);
    EXPECT_EQ(a.spec.past_execution_s, other->spec.past_execution_s);
    EXPECT_EQ(a.spec.admission, other->spec.admission);
  }
  ASSERT_TRUE(b.spec.admission->pod_sets[0].topology);
  EXPECT_EQ(b.spec.admission->pod_sets[0].topology->domains.size(), 2u);
  EXPECT_EQ(b.spec.past_execution_s, 7);
}

}  // namespace
}  // namespace berth::objects
