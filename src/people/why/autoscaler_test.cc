#include "people/why/autoscaler.h"

#include <gtest/gtest.h>

#include "text/json.h"
#include "text/yaml.h"

namespace berth::people {
namespace {

// Objects as files have them.
class ScalerObjects : public ObjectSource {
 public:
  explicit ScalerObjects(const std::string& yaml) {
    auto parsed = text::parse_yaml(yaml);
    EXPECT_TRUE(parsed.ok());
    if (parsed.ok()) documents_ = std::move(*parsed);
    for (const text::Document& document : documents_) {
      const auto text = [&](std::initializer_list<const char*> keys) {
        const text::Value* at = &document.root();
        for (const char* key : keys) at = at == nullptr ? nullptr : at->find(key);
        return at == nullptr ? std::string() : std::string(at->string());
      };
      objects_.push_back({text({"apiVersion"}), text({"kind"}), text({"metadata", "namespace"}),
                          text({"metadata", "name"}), "", "", &document.root()});
    }
  }
  std::optional<RawObject> find(std::string_view kind, std::string_view ns,
                                std::string_view name) const override {
    for (const RawObject& object : objects_) {
      if (object.kind == kind && object.ns == ns && object.name == name) return object;
    }
    return std::nullopt;
  }
  std::vector<RawObject> of_kind(std::string_view kind) const override {
    std::vector<RawObject> out;
    for (const RawObject& object : objects_) {
      if (object.kind == kind) out.push_back(object);
    }
    return out;
  }

 private:
  std::vector<text::Document> documents_;
  std::vector<RawObject> objects_;
};

std::optional<Autoscaler> told_by(const std::string& yaml) {
  model::PodSpec pod;
  pod.ns = "team";
  pod.name = "train";
  pod.gpu = {.kind = model::GpuDemandSpec::Kind::kWhole, .count = 8};
  pod.requests = {{"cpu", 4000}};
  Unit unit;
  unit.ns = "team";
  unit.name = "train";
  unit.pending = {&pod};
  return autoscaler_of(ScalerObjects(yaml), unit, pod);
}

std::string status_map(const std::string& status) {
  std::string out =
      "apiVersion: v1\nkind: ConfigMap\n"
      "metadata: {name: cluster-autoscaler-status, namespace: kube-system}\ndata:\n  status: |\n";
  for (std::size_t at = 0; at < status.size();) {
    const std::size_t end = std::min(status.find('\n', at), status.size());
    out += "    " + status.substr(at, end - at) + '\n';
    at = end + 1;
  }
  return out;
}

TEST(Autoscaler, NobodyTellsOfOne) {
  EXPECT_FALSE(told_by("{apiVersion: v1, kind: Pod, metadata: {name: x}}"));
  EXPECT_FALSE(told_by(status_map("nodeGroups: []")));
  EXPECT_FALSE(told_by(status_map("")));
  EXPECT_FALSE(told_by(status_map("\"a: [")));
  EXPECT_FALSE(
      told_by("{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-autoscaler-"
              "status, namespace: kube-system}, data: [1]}"));
}

// Zeroes are left out of the YAML; a node that is registered and not Ready is not on its way.
TEST(Autoscaler, CountsOfAGroup) {
  const auto told =
      told_by(status_map("nodeGroups:\n"
                         "- name: a/b/gpu\n"
                         "  health: {status: Unhealthy, cloudProviderTarget: 6, maxSize: 8,\n"
                         "    nodeCounts: {registered: {total: 4, ready: 2, notStarted: 1}}}\n"
                         "- {name: idle, health: {maxSize: 3}}\n"));
  ASSERT_TRUE(told && told->pools.size() == 2u);
  const PoolView& gpu = told->pools[0];
  EXPECT_EQ(gpu.name, "gpu");
  EXPECT_EQ(gpu.nodes, 2);
  EXPECT_EQ(gpu.in_flight, 3);
  EXPECT_EQ(gpu.max, 8);
  EXPECT_EQ(gpu.at_limit, "");
  EXPECT_FALSE(gpu.healthy);
  EXPECT_EQ(told->pools[1].in_flight, 0);
  EXPECT_EQ(told->pools[1].min, 0);
}

// Machines that were made and never became nodes are no nodes on their way.
TEST(Autoscaler, NodesThatNeverJoinAreAFailure) {
  const auto yaml =
      told_by(status_map("nodeGroups:\n"
                         "- name: gpu\n"
                         "  health: {cloudProviderTarget: 6, maxSize: 8,\n"
                         "    nodeCounts: {registered: {total: 2, ready: 2}, longUnregistered: 3, "
                         "unregistered: 1}}\n"));
  const auto lines = told_by(status_map(
      "Cluster-wide:\nNodeGroups:\n"
      "  Name:        gpu\n"
      "  Health:      Healthy (ready=2 unready=0 notStarted=0 longNotStarted=0 registered=2 "
      "longUnregistered=3 cloudProviderTarget=6 (minSize=0, maxSize=8))\n"
      "  ScaleUp:     NoActivity\n"));
  for (const auto& told : {yaml, lines}) {
    ASSERT_TRUE(told && told->pools.size() == 1u);
    EXPECT_EQ(told->pools[0].failure, "3 nodes did not register in time");
    EXPECT_EQ(told->pools[0].in_flight, 1);
  }
  const auto pool = told_by(
      "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: g}, status: {conditions: "
      "[{type: NodeRegistrationHealthy, status: 'False', message: m}]}}");
  ASSERT_TRUE(pool && pool->pools.size() == 1u);
  EXPECT_EQ(pool->pools[0].failure, "its nodes do not register: m");
}

TEST(Autoscaler, AFailedScaleUpNamesThePoolsThatMayGrow) {
  Autoscaler scaler;
  for (const char* name : {"a", "b", "c", "cpu"}) {
    PoolView& pool = scaler.pools.emplace_back();
    pool.name = name;
  }
  scaler.fitting = 3;
  EXPECT_EQ(scale_up_failed(scaler), "");
  scaler.pools[0].failure = "no capacity";
  EXPECT_EQ(scale_up_failed(scaler), "scale-up failed in a; b, c may grow");
  scaler.pools[1].at_limit = "8 nodes";
  EXPECT_EQ(scale_up_failed(scaler), "scale-up failed in a; c may grow");
  scaler.pools[2].failure = "quota";
  EXPECT_EQ(scale_up_failed(scaler),
            "scale-up failed in a, c; no other pool of such nodes may grow");
  scaler.fitting = 100;  // more than are there
  EXPECT_EQ(scale_up_failed(scaler), "scale-up failed in a, c; cpu may grow");
}

TEST(Autoscaler, ALimitThatThePodWouldBreakIsReached) {
  const auto pool = [](const std::string& limits) {
    const auto told = told_by(
        "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: g}, "
        "spec: {limits: " +
        limits + "}, status: {resources: {cpu: 96, nodes: 2, nvidia.com/gpu: 16}}}");
    return told && !told->pools.empty() ? told->pools[0] : PoolView();
  };
  EXPECT_EQ(pool("{nvidia.com/gpu: 24}").at_limit, "");
  EXPECT_EQ(pool("{nvidia.com/gpu: 23}").at_limit, "23 nvidia.com/gpu");
  EXPECT_EQ(pool("{cpu: 96, nvidia.com/gpu: 16}").at_limit, "16 nvidia.com/gpu");
  EXPECT_EQ(pool("{cpu: 99}").at_limit, "99 cpu");
  EXPECT_EQ(pool("{nodes: 2}").at_limit, "2 nodes");
  EXPECT_EQ(pool("{nodes: 3}").at_limit, "");
  EXPECT_EQ(pool("{nodes: 3}").max, 3);
  EXPECT_EQ(pool("{cpu: -9223372036854775808, memory: x}").limits.size(), 1u);
}

TEST(Autoscaler, TheLatestEventOfItsPods) {
  const std::string later =
      "apiVersion: events.k8s.io/v1\nkind: Event\nmetadata: {name: b, namespace: team}\n"
      "regarding: {kind: Pod, namespace: team, name: train}\nreason: NotTriggerScaleUp\n"
      "note: no group fits\neventTime: null\ndeprecatedLastTimestamp: '2026-01-01T10:00:00Z'\n";
  const std::string first =
      "apiVersion: v1\nkind: Event\nmetadata: {name: a, namespace: team}\n"
      "involvedObject: {kind: Pod, namespace: team, name: train}\nreason: TriggeredScaleUp\n"
      "message: earlier\nlastTimestamp: '2026-01-01T09:00:00Z'\n";
  for (const std::string& both : {first + "---\n" + later, later + "---\n" + first}) {
    const auto told = told_by(both);
    ASSERT_TRUE(told && told->event);
    EXPECT_EQ(told->event->reason, "NotTriggerScaleUp");
    EXPECT_EQ(told->event->message, "no group fits");
  }
}

TEST(Autoscaler, WhatIsSaidHasABound) {
  std::string yaml;
  for (int i = 0; i < 40; ++i) {
    yaml += "---\n{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: p" +
            std::to_string(i) +
            "}, status: {conditions: [{type: Ready, status: 'False', message: "
            "'" +
            std::string(399, 'x') + "\u00e9\u00e9'}]}}\n";
  }
  auto told = told_by(yaml);
  ASSERT_TRUE(told);
  keep_few_pools(*told);
  EXPECT_EQ(told->pools.size(), kMostPools);
  EXPECT_EQ(told->pools_more, 24);
  EXPECT_EQ(told->pools[0].failure, std::string(399, 'x') + "...") << "no half of a character";
}

TEST(Autoscaler, AWordOfTheNameTellsTheGroup) {
  Autoscaler scaler;
  scaler.pools.resize(1);
  scaler.pools[0].by = "cluster-autoscaler";
  scaler.pools[0].name = "gke-ml-gpu-pool-1f2e-grp";
  scaler.pools[0].at_limit = "8 nodes";
  model::NodeSpec node;
  const auto limit = [&](const std::string& pool) {
    node.labels = {{"cloud.google.com/gke-nodepool", pool}};
    return limit_in_the_way(scaler, node);
  };
  EXPECT_EQ(limit("gpu-pool"), "pool gke-ml-gpu-pool-1f2e-grp (8 nodes)");
  EXPECT_EQ(limit("pu-pool"), "");
  EXPECT_EQ(limit(""), "");
  EXPECT_EQ(limit("cpu"), "");
  scaler.pools.push_back(scaler.pools[0]);
  scaler.pools[1].at_limit.clear();
  EXPECT_EQ(limit("gpu-pool"), "") << "one of them may grow";
}

}  // namespace
}  // namespace berth::people
