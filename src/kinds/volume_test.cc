#include "kinds/volume.h"

#include "kinds/read_for_test.h"

namespace berth::kinds {
namespace {

constexpr const char* kUsesClaim =
    "  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}, {name: t, emptyDir: {}}]\n";

std::string claim(const char* spec, const char* meta = "", const char* status = "") {
  return "---\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data" +
         std::string(meta) + "}, spec: {" + spec + "}, status: {" + status + "}}\n";
}
std::string volume(const char* spec, const char* labels = "") {
  return "---\n{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv, labels: {" +
         std::string(labels) + "}}, spec: {" + spec + "}}\n";
}
using text::Operator;
using text::Selector;

TEST(Volume, NodeAffinityAndZones) {
  const std::string local =
      "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: "
      "kubernetes.io/hostname, operator: In, values: [n1]}]}]}}";
  auto pod =
      read_clean(pod_yaml(kUsesClaim) + claim("volumeName: pv") + volume(local.c_str())).pods.at(0);
  ASSERT_EQ(pod.volumes.size(), 1u);
  EXPECT_EQ(pod.volumes[0].claim, "data");
  ASSERT_EQ(pod.volumes[0].node_terms.size(), 1u);
  EXPECT_EQ(pod.volumes[0].node_terms[0].labels,
            (Selector{{"kubernetes.io/hostname", Operator::kIn, {"n1"}}}));

  pod = read_clean(pod_yaml(kUsesClaim) + claim("volumeName: pv") +
                   volume("",
                          "failure-domain.beta.kubernetes.io/zone: a__b, "
                          "topology.kubernetes.io/region: r"))
            .pods.at(0);
  EXPECT_EQ(pod.volumes.at(0).node_terms.at(0).labels,
            (Selector{{"topology.kubernetes.io/region", Operator::kIn, {"r"}},
                      {"topology.kubernetes.io/zone", Operator::kIn, {"a", "b"}}}));

  pod = read_clean(pod_yaml(kUsesClaim) + claim("volumeName: pv") +
                   volume(local.c_str(), "topology.kubernetes.io/zone: z"))
            .pods.at(0);
  EXPECT_EQ(pod.volumes.at(0).node_terms.at(0).labels.size(), 2u);
}

TEST(Volume, ClaimRefBinds) {
  const auto pod = read_clean(pod_yaml(kUsesClaim) + claim("") +
                              volume("claimRef: {namespace: default, name: data}"))
                       .pods.at(0);
  EXPECT_EQ(pod.volume_missing, "");
  EXPECT_EQ(pod.volumes.size(), 1u);
}

TEST(Volume, NotBound) {
  EXPECT_EQ(clean_pod(kUsesClaim).volume_missing, "data");
  EXPECT_EQ(read_clean(pod_yaml(kUsesClaim) + claim("")).pods.at(0).volume_missing, "data");
  EXPECT_EQ(
      read_clean(pod_yaml(kUsesClaim) + claim("storageClassName: ''")).pods.at(0).volume_missing,
      "data");
  EXPECT_EQ(read_clean(pod_yaml(kUsesClaim) + claim("volumeName: pv", "", "phase: Lost"))
                .pods.at(0)
                .volume_missing,
            "data");
  const Inputs dynamic = read(pod_yaml(kUsesClaim) + claim("storageClassName: fast"));
  EXPECT_EQ(dynamic.pods.at(0).volume_missing, "");
  EXPECT_EQ(dynamic.warnings.size(), 1u);
  const Inputs gone = read(pod_yaml(kUsesClaim) + claim("volumeName: elsewhere"));
  EXPECT_EQ(gone.pods.at(0).volume_missing, "");
  EXPECT_EQ(gone.warnings.size(), 1u);
  const auto picked = read_clean(pod_yaml(kUsesClaim) +
                                 claim("storageClassName: x",
                                       ", annotations: {volume.kubernetes.io/selected-node: n7}"))
                          .pods.at(0);
  EXPECT_EQ(picked.volumes.at(0).node_terms.at(0).fields,
            (Selector{{"metadata.name", Operator::kIn, {"n7"}}}));
}

TEST(Volume, Ephemeral) {
  const Inputs in = read(
      pod_yaml("  volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {}}}}]\n"));
  EXPECT_EQ(in.pods.at(0).volume_missing, "");
  EXPECT_EQ(in.warnings.size(), 1u);
}

}  // namespace
}  // namespace berth::kinds
